// SPDX-License-Identifier: Apache-2.0
//
// test_coverage.c: what the list of covered effects names is looked up: terms, figures of a plan, options.
#include "pipesched/coverage.h"

#include "base/text.h"
#include "job/job_options.h"
#include "support/plan_text.h"
#include "support/plans.h"
#include "unit/cost/fixtures.h"

typedef struct explained {
    ps_arena *arena;
    ps_cost_terms all[32]; // of one layer each
    int32_t count;
    double kernel_seconds; // of the GPU; 0: the default
} explained;

static void explain(explained *to, const ps_model *model, const ps_job *job, const ps_layout *layout)
{
    ps_group group = h100_group(8);
    ps_status status = {0};
    group.gpu.kernel_seconds.value = to->kernel_seconds;
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        assert_true(to->count < 32);
        assert_ok(ps_cost_explain(to->arena, model, &group, job, layout, layer, &to->all[to->count++], &status),
                  &status);
    }
}

static ps_layout wide_layout(void)
{
    ps_layout layout = plain_layout();
    layout.dp = 4;
    layout.tp = 2;
    return layout;
}

static void explain_gpt(explained *to)
{
    ps_block block = gpt_block(2048, 16, 50257, 2048);
    ps_model model = transformer(to->arena, &block, 1, true);
    ps_job job = plain_job(2048);
    ps_layout layout = wide_layout();
    job.flash_attention = false;
    explain(to, &model, &job, &layout);
    job.lora_rank = 16;
    explain(to, &model, &job, &layout);
}

static void explain_llama(explained *to)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(to->arena, &block, 1, false);
    ps_job job = plain_job(8192);
    ps_layout layout = wide_layout();
    job.precision = PS_PRECISION_FP8;
    layout.zero = 3;
    layout.cp = 8;
    explain(to, &model, &job, &layout);
    job.repeat_kv = true;
    explain(to, &model, &job, &layout);
    job.seq_length = 64; // which takes the GPU less time than the host
    to->kernel_seconds = 1e-6;
    explain(to, &model, &job, &layout);
    to->kernel_seconds = 0;
}

static void explain_mixtral(explained *to)
{
    ps_block block = mixtral_block();
    ps_model model = transformer(to->arena, &block, 1, false);
    ps_job job = plain_job(4096);
    ps_layout layout = wide_layout();
    layout.ep = 4;
    explain(to, &model, &job, &layout);
}

static void explain_mamba(explained *to)
{
    ps_block block = {.hidden_size = 4096,
                      .vocab_size = 32000,
                      .mixer = PS_MIXER_MAMBA2,
                      .inner_size = 8192,
                      .state_size = 128,
                      .mamba_heads = 128,
                      .state_groups = 8,
                      .conv_size = 4};
    ps_model model = transformer(to->arena, &block, 1, false);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    explain(to, &model, &job, &layout);
}

static bool has_term(const explained *in, const ps_cost_effect *effect)
{
    bool time = strcmp(effect->aspect, "time") == 0;
    for (int32_t layer = 0; layer < in->count; layer++) {
        for (int32_t index = 0; index < in->all[layer].count; index++) {
            const ps_cost_term *term = &in->all[layer].term[index];
            if (time == (strcmp(term->unit, "ms") == 0) && strncmp(term->formula, effect->by, strlen(effect->by)) == 0)
                return true;
        }
    }
    return false;
}

static bool is_option(const char *name)
{
    for (int32_t index = 0; index < ps_job_num_options; index++)
        if (strcmp(ps_job_options[index].name, name) == 0)
            return true;
    return false;
}

static void what_is_called_covered_is_found(void **state)
{
    explained terms = {.arena = *state};
    const char *plan = plan_text(*state, small_plan(*state), NULL);
    int32_t count;
    const ps_cost_effect *effect = ps_cost_effects(&count);
    explain_gpt(&terms);
    explain_llama(&terms);
    explain_mixtral(&terms);
    explain_mamba(&terms);
    for (int32_t index = 0; index < count; index++, effect++) {
        bool found = effect->cover == PS_COVER_NONE;
        if (effect->cover == PS_COVER_TERM)
            found = has_term(&terms, effect);
        else if (effect->cover == PS_COVER_PLAN)
            found = strstr(plan, ps_text_format(*state, "\"%s\"", effect->by)) != NULL;
        else if (effect->cover == PS_COVER_OPTION)
            found = is_option(effect->by);
        if (!found)
            fail_msg("%s, %s: there is no %s \"%s\"", effect->aspect, effect->effect, ps_cover_name(effect->cover),
                     effect->by);
    }
}

static void an_effect_of_one_aspect_stands_there_once(void **state)
{
    int32_t count;
    const ps_cost_effect *effect = ps_cost_effects(&count);
    (void)state;
    for (int32_t a = 0; a < count; a++)
        for (int32_t b = a + 1; b < count; b++)
            assert_false(strcmp(effect[a].effect, effect[b].effect) == 0 &&
                         strcmp(effect[a].aspect, effect[b].aspect) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(what_is_called_covered_is_found),
        test_in_arena(an_effect_of_one_aspect_stands_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
