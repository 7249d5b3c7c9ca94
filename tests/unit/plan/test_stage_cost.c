// SPDX-License-Identifier: Apache-2.0
//
// test_stage_cost.c: what a stage takes over from its layers, and what the end of a step makes of it.
#include "plan/pipeline_build.h"

#include "support/planned.h"
#include "unit/cost/fixtures.h"

static void assert_stage_is_sum(const ps_cost_table *table, const ps_job *job, int32_t first, int32_t end)
{
    ps_layer_cost stage = ps_stage_cost(table, job, first, end, false);
    ps_layer_cost sum = {0};
    for (int32_t layer = first; layer < end; layer++) {
        const ps_layer_cost *row = &table->layer[layer];
        sum.forward_ns += row->forward_ns;
        sum.held_after_forward_bytes += row->held_after_forward_bytes;
        sum.parameters += row->parameters;
        sum.expert_parameters += row->expert_parameters;
        sum.frozen_parameters += row->frozen_parameters;
        sum.parameter_bytes += row->parameter_bytes;
        sum.gradient_bytes += row->gradient_bytes;
        sum.optimizer_bytes += row->optimizer_bytes;
    }
    assert_int_equal(stage.forward_ns, sum.forward_ns);
    assert_int_equal(stage.held_after_forward_bytes, sum.held_after_forward_bytes);
    assert_int_equal(stage.parameters, sum.parameters);
    assert_int_equal(stage.expert_parameters, sum.expert_parameters);
    assert_int_equal(stage.frozen_parameters, sum.frozen_parameters);
    assert_int_equal(stage.parameter_bytes, sum.parameter_bytes);
    assert_int_equal(stage.gradient_bytes, sum.gradient_bytes);
    assert_int_equal(stage.optimizer_bytes, sum.optimizer_bytes);
}

static void a_stage_has_the_experts_and_the_frozen_weights_of_its_layers(void **state)
{
    ps_block block = mixtral_block();
    ps_model model = transformer(*state, &block, 4, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.ep = layout.dp = 4;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_true(table.layer[1].expert_parameters > 0);
    assert_stage_is_sum(&table, &job, 0, 3);
    job.lora_rank = 8;
    table = cost_of(*state, &model, &group, &job, &layout);
    assert_true(table.layer[1].frozen_parameters > 0);
    assert_stage_is_sum(&table, &job, 2, 5);
}

#define COMMON "global-batch-size", "64", "seq-length", "2048", "micro-batch-size", "1", "schedule", "1f1b"

static const char CLUSTER[] = "2x8xH100-SXM5-80GB";

static int64_t reduced_ns(const ps_plan *plan)
{
    int64_t sum = 0;
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        sum += plan->stage[stage].grad_sync_ns;
    return sum;
}

// With as many expert parallel ranks as replicas each expert is there once.
static void experts_that_are_there_once_are_not_reduced(void **state)
{
    ps_plan shared = plan_of(*state, "mixtral-8x7b", CLUSTER,
                             OPTIONS(COMMON, "pp", "2", "dp", "8", "ep", "1", "zero", "3", "memory-limit", "400GiB"));
    ps_plan once = plan_of(*state, "mixtral-8x7b", CLUSTER, OPTIONS(COMMON, "pp", "2", "dp", "8", "ep", "8"));
    ps_plan twice = plan_of(*state, "mixtral-8x7b", CLUSTER,
                            OPTIONS(COMMON, "pp", "2", "dp", "8", "ep", "4", "memory-limit", "400GiB"));
    assert_int_equal(reduced_ns(&shared), 0); // inside the layers
    assert_true(reduced_ns(&once) * 4 < reduced_ns(&twice));
    assert_true(once.device[0].optimizer_ns > twice.device[0].optimizer_ns * 9 / 10); // as much to step
}

static void frozen_weights_are_neither_reduced_nor_stepped(void **state)
{
    ps_plan full = plan_of(*state, "llama-3.1-8b", CLUSTER, OPTIONS(COMMON, "pp", "2", "tp", "1"));
    ps_plan adapters =
        plan_of(*state, "llama-3.1-8b", CLUSTER, OPTIONS(COMMON, "pp", "2", "tp", "1", "lora-rank", "16"));
    assert_true(reduced_ns(&adapters) * 20 < reduced_ns(&full));
    assert_true(adapters.device[0].optimizer_ns * 20 < full.device[0].optimizer_ns);
}

static void bounds_hold_with_experts_and_adapters(void **state)
{
    static const char *const models[] = {"mixtral-8x7b", "llama-3.1-8b", "gpt2"};
    static const char *const barrier[] = {"on", "off"};
    static const char *const rank[] = {"0", "8"};
    for (size_t m = 0; m < 3; m++)
        for (size_t b = 0; b < 2; b++)
            for (size_t r = 0; r < 2; r++) {
                ps_plan plan =
                    plan_of(*state, models[m], CLUSTER,
                            OPTIONS("global-batch-size", "32", "seq-length", "512", "optimizer-barrier", barrier[b],
                                    "lora-rank", rank[r], "overlap-grad-sync", barrier[b], "schedule", "1f1b"));
                assert_true(plan.feasible);
                assert_true(plan.bounds.iteration_ns <= plan.prediction.iteration_ns);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_stage_has_the_experts_and_the_frozen_weights_of_its_layers),
        test_in_arena(experts_that_are_there_once_are_not_reduced),
        test_in_arena(frozen_weights_are_neither_reduced_nor_stepped),
        test_in_arena(bounds_hold_with_experts_and_adapters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
