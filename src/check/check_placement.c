// SPDX-License-Identifier: Apache-2.0
//
// check_placement.c: stages and pipeline ranks name each other, and the layout's degrees hold on every stage.
#include <inttypes.h>
#include <string.h>

#include "check/check_parts.h"

bool ps_check_is_v(ps_schedule_kind kind)
{
    return kind == PS_SCHEDULE_ZB_V || kind == PS_SCHEDULE_V_HALF || kind == PS_SCHEDULE_V_MIN ||
           kind == PS_SCHEDULE_DUALPIPEV || kind == PS_SCHEDULE_DUALPIPE;
}

// A searched order may stand on either placement: its first stage of the second chunk says which, and the others must
// agree.
static bool turns_back(const ps_plan *plan)
{
    const ps_layout *layout = &plan->layout;
    if (layout->schedule == PS_SCHEDULE_ZB)
        return layout->pp > 1 && plan->num_stages > layout->pp && plan->stage[layout->pp].pp_rank == layout->pp - 1;
    return ps_check_is_v(layout->schedule);
}

// Virtual stage s is chunk s / pp. Loop: of pipeline rank s mod pp. V: every second chunk goes through the ranks in
// reverse.
static int32_t rank_of_stage(const ps_plan *plan, int32_t stage)
{
    int32_t pp = plan->layout.pp;
    int32_t chunk = stage / pp;
    int32_t within = stage - chunk * pp;
    return turns_back(plan) && chunk % 2 > 0 ? pp - 1 - within : within;
}

static void check_stage(ps_check *check, int32_t index)
{
    const ps_plan *plan = check->plan;
    const ps_plan_stage *stage = &plan->stage[index];
    const ps_layout *layout = &plan->layout;
    ps_check_equal(check, "stage-number", PS_AT_1("/stages/#/stage", index), stage->stage, index);
    ps_check_equal(check, "stage-device", PS_AT_1("/stages/#/pp_rank", index), stage->pp_rank,
                   rank_of_stage(plan, index));
    ps_check_equal(check, "stage-chunk", PS_AT_1("/stages/#/chunk", index), stage->chunk, index / layout->pp);
    ps_check_equal(check, "stage-degree", PS_AT_1("/stages/#/tp", index), stage->tp, layout->tp);
    ps_check_equal(check, "stage-degree", PS_AT_1("/stages/#/dp", index), stage->dp, layout->dp);
    ps_check_equal(check, "stage-degree", PS_AT_1("/stages/#/cp", index), stage->cp, layout->cp);
    ps_check_equal(check, "stage-degree", PS_AT_1("/stages/#/ep", index), stage->ep, layout->ep);
    if (stage->recompute != layout->recompute)
        ps_check_find(check, "stage-recompute", PS_AT_1("/stages/#/recompute", index),
                      "the stage and the layout do not say the same");
    if (stage->recompute == PS_RECOMPUTE_NONE)
        ps_check_equal_ns(check, "recompute-time", PS_AT_1("/stages/#/recompute_ms", index), stage->recompute_ns, 0);
    if (!ps_check_recomputes(layout->schedule))
        ps_check_equal(check, "recompute-memory", PS_AT_1("/stages/#/added_by_recompute_bytes", index),
                       stage->added_by_recompute_bytes, 0);
    ps_check_equal_ns(check, "op-overhead", PS_AT_1("/stages/#/op_overhead_ms", index), stage->op_overhead_ns,
                      plan->inputs.job.op_overhead_ns);
}

static void check_listed_stages(ps_check *check)
{
    const ps_plan *plan = check->plan;
    int32_t *owner = ps_new_raw(check->arena, int32_t, plan->num_stages);
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        owner[stage] = -1;
    for (int32_t device = 0; device < plan->num_devices; device++) {
        for (int32_t index = 0; index < plan->device[device].num_stages; index++) {
            int32_t stage = plan->device[device].stage[index];
            ps_place place = PS_AT_2("/devices/#/stages/#", device, index);
            if (owner[stage] >= 0)
                ps_check_find(check, "stage-twice", place, "stage %" PRId32 " is also on pipeline rank %" PRId32, stage,
                              owner[stage]);
            else if (plan->stage[stage].pp_rank != device)
                ps_check_find(check, "stage-device", place, "stage %" PRId32 " says it is on pipeline rank %" PRId32,
                              stage, plan->stage[stage].pp_rank);
            else
                ps_check_equal(check, "stage-chunk", place, plan->stage[stage].chunk, index);
            owner[stage] = device;
        }
    }
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        if (owner[stage] < 0)
            ps_check_find(check, "stage-unplaced", PS_AT("/devices"), "stage %" PRId32 " is on no pipeline rank",
                          stage);
}

static int32_t find_gpu(const ps_plan *plan, const char *name)
{
    for (int32_t gpu = 0; gpu < plan->num_gpus; gpu++)
        if (strcmp(plan->gpu[gpu].name, name) == 0)
            return gpu;
    return -1;
}

static void check_gpus(ps_check *check)
{
    const ps_plan *plan = check->plan;
    bool *used = ps_new(check->arena, bool, plan->num_gpus);
    for (int32_t device = 0; device < plan->num_devices; device++) {
        int32_t gpu = find_gpu(plan, plan->device[device].gpu);
        if (gpu < 0)
            ps_check_find(check, "unknown-gpu", PS_AT_1("/devices/#/gpu", device),
                          "no entry of /gpus is named \"%.80s\"", plan->device[device].gpu);
        else
            used[gpu] = true;
    }
    for (int32_t gpu = 0; gpu < plan->num_gpus; gpu++) {
        if (find_gpu(plan, plan->gpu[gpu].name) != gpu)
            ps_check_find(check, "gpu-twice", PS_AT_1("/gpus/#/name", gpu), "\"%.80s\" is listed before",
                          plan->gpu[gpu].name);
        else if (!used[gpu])
            ps_check_find(check, "gpu-unused", PS_AT_1("/gpus/#/name", gpu), "no device is a \"%.80s\"",
                          plan->gpu[gpu].name);
    }
}

void ps_check_placement(ps_check *check)
{
    const ps_plan *plan = check->plan;
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        check_stage(check, stage);
    for (int32_t device = 0; device < plan->num_devices; device++)
        ps_check_equal(check, "device-number", PS_AT_1("/devices/#/pp_rank", device), plan->device[device].pp_rank,
                       device);
    check_listed_stages(check);
    check_gpus(check);
}
