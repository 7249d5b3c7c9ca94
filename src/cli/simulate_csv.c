// SPDX-License-Identifier: Apache-2.0
//
// simulate_csv.c: PyTorch schedule files in and out of `simulate`.
#include "cli/simulate_csv.h"

#include <inttypes.h>

#include "cli/option_value.h"
#include "pipesched/limits.h"
#include "pipesched/timeline.h"

const char *const ps_csv_forms[] = {"compute", "slots", "comms", NULL};
const char *const ps_csv_sends[] = {"rendezvous", "buffered", NULL};

static ps_code check_options(const ps_run *run, const ps_torch_csv *csv, ps_status *status)
{
    if (!csv->has_transfers && ps_option_given(&run->parsed, "sends"))
        return ps_fail(status, PS_USAGE, "conflicting-options", "--sends is for a CSV with transfers; this has none");
    PS_TRY(ps_run_require(run, "forward", status));
    PS_TRY(ps_run_exclude(run, "backward", "backward-input", status));
    return ps_run_exclude(run, "backward", "backward-weight", status);
}

ps_code ps_csv_simulation_load(ps_run *run, const char *path, const ps_file_bytes *bytes, const ps_bare_options *bare,
                               const ps_csv_options *options, ps_csv_simulation *out, ps_status *status)
{
    ps_torch_csv *csv = &out->csv;
    PS_TRY(ps_torch_csv_parse(run->arena, path, bytes->data, bytes->size, csv, status));
    PS_TRY(check_options(run, csv, status));
    // First, since a deadlock says more than the ops that a cut-down example of one leaves out.
    if (csv->has_transfers &&
        ps_actions_check_transfers(run->arena, &csv->actions, (ps_send_mode)options->sends, status) != PS_OK) {
        if (options->sends == PS_SEND_RENDEZVOUS)
            ps_fail_hint(status, "sends that wait for their receiver are assumed (--sends rendezvous); "
                                 "`--sends buffered --to-csv comms` places transfers anew, free of cycles");
        return ps_fail_at(status, path, 0, 0, NULL);
    }
    PS_TRY(ps_torch_csv_check(run->arena, csv, status));
    ps_bare_ground ground = {.name = "the schedule",
                             .shape = {.num_devices = csv->actions.num_devices,
                                       .num_stages = csv->placement.num_stages,
                                       .num_microbatches = csv->placement.num_microbatches},
                             .device = csv->placement.device,
                             .splits_backward = csv->split_backward};
    return ps_bare_pipeline_on(run->arena, bare, &ground, &out->pipeline, status);
}

// When every op takes one unit of time and hops none.
static ps_code unit_timeline(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                             ps_timeline *out, ps_status *status)
{
    ps_pipeline unit = *pipeline;
    unit.stage = ps_new(arena, ps_stage, pipeline->num_stages);
    unit.forward_hop = ps_new(arena, ps_hop, pipeline->num_stages);
    unit.backward_hop = ps_new(arena, ps_hop, pipeline->num_stages);
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++) {
        unit.stage[stage].device = pipeline->stage[stage].device;
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            unit.stage[stage].duration_ns[kind] = 1;
    }
    ps_pipeline_assign_lanes(arena, &unit);
    return ps_simulate(arena, &unit, schedule, out, status);
}

static ps_code write_slots(ps_run *run, const ps_pipeline *pipeline, const ps_schedule *schedule,
                           const ps_actions *compute, ps_status *status)
{
    ps_timeline timeline;
    PS_TRY(unit_timeline(run->arena, pipeline, schedule, &timeline, status));
    if (timeline.makespan_ns > PS_MAX_OPS / schedule->num_devices)
        return ps_fail(status, PS_ILLEGAL, "too-many-slots",
                       "%" PRId64 " units of time on %d ranks are more than %" PRId64 " cells", timeline.makespan_ns,
                       (int)schedule->num_devices, PS_MAX_OPS);
    ps_torch_csv_write(run->out, compute, timeline.start_ns, timeline.makespan_ns);
    return PS_OK;
}

ps_code ps_csv_simulation_write(ps_run *run, ps_csv_form form, const ps_pipeline *pipeline, const ps_schedule *schedule,
                                const ps_actions *actions, ps_status *status)
{
    ps_actions compute;
    if (pipeline->num_routes > 0) {
        ps_fail(status, PS_ILLEGAL, "csv-routes",
                "a PyTorch schedule sends every micro-batch through all stages, and here there are %d routes",
                (int)pipeline->num_routes);
        return ps_fail_hint(status, "use --schedule dualpipev, the same schedule folded onto half of the ranks");
    }
    if (actions)
        ps_actions_compute(run->arena, actions, &compute);
    else
        ps_actions_from_schedule(run->arena, schedule, &compute);
    if (form == PS_CSV_SLOTS)
        return write_slots(run, pipeline, schedule, &compute, status);
    if (form == PS_CSV_COMMS) {
        int32_t *device = ps_new_raw(run->arena, int32_t, pipeline->num_stages);
        for (int32_t stage = 0; stage < pipeline->num_stages; stage++)
            device[stage] = pipeline->stage[stage].device;
        ps_stage_map placement = {
            .num_stages = pipeline->num_stages, .num_microbatches = pipeline->num_microbatches, .device = device};
        ps_actions all;
        PS_TRY(ps_actions_add_transfers(run->arena, &placement, &compute, &all, status));
        compute = all;
    }
    ps_torch_csv_write(run->out, &compute, NULL, 0);
    return PS_OK;
}
