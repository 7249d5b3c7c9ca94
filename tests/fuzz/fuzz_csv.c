// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <string.h>

#include "pipesched/timeline.h"
#include "pipesched/torch_csv.h"

// Every op takes a unit of time.
static ps_pipeline unit_pipeline(ps_arena *arena, const ps_torch_csv *csv)
{
    ps_pipeline pipeline = {.num_stages = csv->placement.num_stages,
                            .num_devices = csv->actions.num_devices,
                            .num_microbatches = csv->placement.num_microbatches,
                            .stage = ps_new(arena, ps_stage, csv->placement.num_stages),
                            .forward_hop = ps_new(arena, ps_hop, csv->placement.num_stages),
                            .backward_hop = ps_new(arena, ps_hop, csv->placement.num_stages),
                            .device = ps_new(arena, ps_device, csv->actions.num_devices)};
    for (int32_t stage = 0; stage < pipeline.num_stages; stage++) {
        pipeline.stage[stage].device = csv->placement.device[stage];
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            pipeline.stage[stage].duration_ns[kind] = 1;
    }
    ps_pipeline_assign_lanes(arena, &pipeline);
    return pipeline;
}

// What is written must read back as it was.
static void read_back(ps_arena *arena, const ps_actions *actions)
{
    char *text = NULL;
    size_t size = 0;
    ps_torch_csv csv;
    ps_status status = {0};
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return;
    ps_torch_csv_write(file, actions, NULL, 0);
    fclose(file);
    if (ps_torch_csv_read(arena, "written", text, (int64_t)size, &csv, &status) != PS_OK ||
        csv.actions.num_devices != actions->num_devices ||
        memcmp(csv.actions.action, actions->action,
               (size_t)actions->first[actions->num_devices] * sizeof *actions->action) != 0)
        abort();
    free(text);
}

// Any cells may be tried for deadlocks. A whole schedule either replays or is refused, and one that replays can be
// given transfers that complete, unless an overlapped pair waits for itself.
ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_torch_csv csv;
    ps_status verdict = {0};
    PS_TRY(ps_torch_csv_parse(arena, "fuzz", text, size, &csv, status));
    ps_actions_check_transfers(arena, &csv.actions, PS_SEND_RENDEZVOUS, &verdict);
    verdict = (ps_status){0};
    ps_actions_check_transfers(arena, &csv.actions, PS_SEND_BUFFERED, &verdict);
    verdict = (ps_status){0};
    ps_actions_check_transfers(arena, &csv.actions, PS_SEND_BATCH, &verdict);
    PS_TRY(ps_torch_csv_check(arena, &csv, status));
    read_back(arena, &csv.actions);

    ps_timeline timeline;
    ps_actions compute;
    ps_actions all;
    ps_pipeline pipeline = unit_pipeline(arena, &csv);
    PS_TRY(ps_pipeline_validate(&pipeline, status));
    PS_TRY(ps_simulate(arena, &pipeline, &csv.schedule, &timeline, status));
    ps_actions_compute(arena, &csv.actions, &compute);
    ps_code code = ps_actions_add_transfers(arena, &csv.placement, &compute, &all, status);
    if (code != PS_OK && !memchr(text, '(', (size_t)size))
        abort();
    PS_TRY(code);
    if (ps_actions_check_transfers(arena, &all, PS_SEND_RENDEZVOUS, status) != PS_OK ||
        ps_actions_check_transfers(arena, &all, PS_SEND_BUFFERED, status) != PS_OK)
        abort();
    read_back(arena, &all);
    return PS_OK;
}
