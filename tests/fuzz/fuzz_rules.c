// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <string.h>

#include "pipesched/timeline.h"
#include "schedule/rule_file.h"

static ps_pipeline unit_pipeline(ps_arena *arena, ps_schedule_shape shape, const int32_t *device)
{
    ps_pipeline pipeline = {.num_stages = shape.num_stages,
                            .num_devices = shape.num_devices,
                            .num_microbatches = shape.num_microbatches,
                            .stage = ps_new(arena, ps_stage, shape.num_stages),
                            .forward_hop = ps_new(arena, ps_hop, shape.num_stages),
                            .backward_hop = ps_new(arena, ps_hop, shape.num_stages),
                            .device = ps_new(arena, ps_device, shape.num_devices)};
    for (int32_t stage = 0; stage < shape.num_stages; stage++) {
        pipeline.stage[stage].device = device[stage];
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            pipeline.stage[stage].duration_ns[kind] = 1;
    }
    ps_pipeline_assign_lanes(arena, &pipeline);
    return pipeline;
}

// Whatever rules make has every op once, so at worst ops wait for each other.
ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_rules rules;
    PS_TRY(ps_rules_parse(arena, "fuzz", text, size, &rules, status));
    for (int32_t ranks = 1; ranks <= 3; ranks++) {
        ps_schedule_shape shape = {.num_devices = ranks, .num_stages = 2 * ranks, .num_microbatches = 4};
        const int32_t *device;
        ps_schedule schedule;
        ps_timeline timeline;
        ps_status verdict = {0};
        if (ps_rules_place(arena, &rules, &shape, &device, &verdict) != PS_OK)
            continue;
        ps_pipeline pipeline = unit_pipeline(arena, shape, device);
        PS_TRY(ps_pipeline_validate(&pipeline, status));
        PS_TRY(ps_rules_generate(arena, &rules, &pipeline, &schedule, status));
        ps_code code = ps_simulate(arena, &pipeline, &schedule, &timeline, status);
        if (code != PS_OK && strcmp(status->rule, "deadlock") != 0)
            abort();
        PS_TRY(code);
    }
    return PS_OK;
}
