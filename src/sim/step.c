// SPDX-License-Identifier: Apache-2.0
//
// step.c: what a ps_step must satisfy, and its ops as cells.
#include "pipesched/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "pipesched/limits.h"

static const char *const WORDS[PS_STEP_KINDS] = {
    [PS_STEP_REDUCE_GRAD] = "REDUCE_GRAD", [PS_STEP_REDUCE_TIED] = "REDUCE_TIED", [PS_STEP_BARRIER] = "BARRIER",
    [PS_STEP_VALIDATE] = "VALIDATE",       [PS_STEP_OPTIMIZER] = "OPTIMIZER",     [PS_STEP_GATHER] = "GATHER",
};

static bool is_of_a_stage(int kind)
{
    return kind == PS_STEP_REDUCE_GRAD || kind == PS_STEP_REDUCE_TIED || kind == PS_STEP_GATHER;
}

int32_t ps_step_op_format(const ps_step_op *op, char text[48])
{
    if (!is_of_a_stage(op->kind))
        return snprintf(text, 48, "%s", WORDS[op->kind]);
    if (op->microbatch < 0)
        return snprintf(text, 48, "%" PRId32 "%s", op->stage, WORDS[op->kind]);
    return snprintf(text, 48, "%" PRId32 "%s%" PRId32, op->stage, WORDS[op->kind], op->microbatch);
}

// Digits without leading zeros, at most `max`; NULL when there are none or too many.
static const char *read_index(const char *text, int64_t max, int32_t *value)
{
    int64_t read = 0;
    if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] >= '0' && text[1] <= '9'))
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        read = read * 10 + (*text - '0');
        if (read > max)
            return NULL;
    }
    *value = (int32_t)read;
    return text;
}

bool ps_step_op_parse(const char *text, ps_step_op *out)
{
    *out = (ps_step_op){.stage = -1, .microbatch = -1};
    const char *word = read_index(text, UINT16_MAX, &out->stage);
    if (!word)
        word = text;
    for (int kind = 0; kind < PS_STEP_KINDS; kind++) {
        size_t length = strlen(WORDS[kind]);
        if (strncmp(word, WORDS[kind], length) != 0 || is_of_a_stage(kind) != (out->stage >= 0))
            continue;
        out->kind = (uint8_t)kind;
        if (word[length] == '\0')
            return true;
        const char *end = read_index(word + length, INT32_MAX, &out->microbatch);
        return kind == PS_STEP_REDUCE_GRAD && end && *end == '\0';
    }
    return false;
}

// Stages with one weight name the first of them, and take as long.
static ps_code check_tied(const ps_step *step, int32_t stage, ps_status *status)
{
    const ps_step_stage *tied = &step->stage[stage];
    if (tied->tied_to < 0 || tied->tied_to > stage)
        return ps_fail(status, PS_BAD_INPUT, "step-shape",
                       "stage %d shares weights with stage %d and those after it, expected one from 0 to %d",
                       (int)stage, (int)tied->tied_to, (int)stage);
    const ps_step_stage *first = &step->stage[tied->tied_to];
    if (first->tied_to != tied->tied_to || first->tied_ns != tied->tied_ns)
        return ps_fail(status, PS_BAD_INPUT, "step-shape",
                       "stages %d and %d share weights and reduce them for %" PRId64 " and %" PRId64 " ns",
                       (int)tied->tied_to, (int)stage, first->tied_ns, tied->tied_ns);
    return PS_OK;
}

static ps_code check_stages(const ps_pipeline *pipeline, const ps_step *step, ps_status *status)
{
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        const ps_step_stage *stage = &step->stage[s];
        if (stage->reduce_ns < 0 || stage->gather_ns < 0 || stage->tied_ns < 0)
            return ps_fail(status, PS_BAD_INPUT, "negative-time",
                           "stage %d reduces for %" PRId64 " and %" PRId64 " ns and gathers for %" PRId64 " ns", (int)s,
                           stage->reduce_ns, stage->tied_ns, stage->gather_ns);
        if (stage->buckets < 1)
            return ps_fail(status, PS_BAD_INPUT, "step-shape", "stage %d has %d buckets, at least 1 is needed", (int)s,
                           (int)stage->buckets);
        if (stage->tied_ns > 0)
            PS_TRY(check_tied(step, s, status));
    }
    return PS_OK;
}

// Every start and end is at most the sum of all times; ps_pipeline_validate() leaves as much room again.
static ps_code check_total(const ps_pipeline *pipeline, const ps_step *step, ps_status *status)
{
    int64_t total = step->barrier_ns;
    int64_t times = step->every_microbatch ? pipeline->num_microbatches : 1;
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        total = ps_add_saturating(total, ps_multiply_saturating(step->stage[s].reduce_ns, times));
        total = ps_add_saturating(total, step->stage[s].tied_ns);
        total = ps_add_saturating(total, step->stage[s].gather_ns);
    }
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        total = ps_add_saturating(total, step->optimizer_ns[d]);
    total = ps_add_saturating(total, ps_multiply_saturating(step->validation_hop_ns, 2 * pipeline->num_devices));
    if (total <= PS_MAX_TIME_NS / 2)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "time-overflow",
                   "reductions, optimizer and gathers take more than %" PRId64 " ns together", PS_MAX_TIME_NS / 2);
}

ps_code ps_step_validate(const ps_pipeline *pipeline, const ps_step *step, ps_status *status)
{
    PS_TRY(check_stages(pipeline, step, status));
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        if (step->optimizer_ns[d] < 0)
            return ps_fail(status, PS_BAD_INPUT, "negative-time", "the optimizer of device %d takes %" PRId64 " ns",
                           (int)d, step->optimizer_ns[d]);
    if (step->barrier_ns < 0 || step->validation_hop_ns < 0)
        return ps_fail(status, PS_BAD_INPUT, "negative-time",
                       "the barrier takes %" PRId64 " ns, the state of the gradients %" PRId64 " ns a hop",
                       step->barrier_ns, step->validation_hop_ns);
    if (step->barrier ? step->validation_hop_ns > 0 : step->barrier_ns > 0)
        return ps_fail(status, PS_BAD_INPUT, "step-shape", "a step has a barrier or is validated afterwards, not both");
    return check_total(pipeline, step, status);
}
