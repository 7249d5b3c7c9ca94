// SPDX-License-Identifier: Apache-2.0
//
// step_options.c: what ends the step, from the command line.
#include "cli/step_options.h"

#include "cli/option_value.h"

const char *const ps_step_switch[] = {"on", "off", NULL};

static const char *const names[] = {"grad-sync",  "param-gather",      "optimizer-step", "optimizer-barrier",
                                    "barrier-ms", "overlap-grad-sync", "grad-buckets"};
enum { COUNT = sizeof names / sizeof *names, DETAILS = 5 }; // the last say how to reduce and gather

// By the words: the choices' order is theirs.
static bool is_on(int32_t choice)
{
    return ps_step_switch[choice][1] == 'n';
}

// Stages that have figures of their own: with dualpipe those of one way, which the other way has once more.
static int32_t listed_stages(const ps_pipeline *pipeline)
{
    return pipeline->num_routes > 0 ? pipeline->route[0].num_stops : pipeline->num_stages;
}

static ps_code check_words(const ps_run *run, const ps_step_words *words, const ps_pipeline *pipeline,
                           ps_status *status)
{
    int64_t stages = listed_stages(pipeline);
    const char *what = pipeline->num_routes > 0 ? "stage of the model" : "virtual stage";
    bool moves = words->grad_sync.count + words->param_gather.count > 0;
    for (int32_t i = DETAILS; i < COUNT && !moves; i++) {
        if (!ps_option_given(&run->parsed, names[i]))
            continue;
        ps_fail(status, PS_USAGE, "missing-option", "--%s is about --grad-sync and --param-gather, which are not given",
                names[i]);
        return ps_fail_hint(status, "add one of them, or leave --%s out", names[i]);
    }
    if (words->barrier.count > 0 && !is_on(words->optimizer_barrier)) {
        ps_fail(status, PS_USAGE, "conflicting-options", "--barrier-ms is for --optimizer-barrier on, which is off");
        return ps_fail_hint(status, "leave out either; without a barrier the step is validated afterwards");
    }
    PS_TRY(ps_numbers_expect(&words->grad_sync, "--grad-sync", stages, what, status));
    PS_TRY(ps_numbers_expect(&words->param_gather, "--param-gather", stages, what, status));
    PS_TRY(ps_numbers_expect(&words->optimizer_step, "--optimizer-step", pipeline->num_devices, "rank", status));
    if (words->barrier.count <= 1)
        return PS_OK;
    ps_fail(status, PS_USAGE, "list-length", "expected one time for all ranks, got %d", (int)words->barrier.count);
    return ps_fail_at(status, "--barrier-ms", 0, 0, NULL);
}

static int64_t slowest_hop(const ps_pipeline *pipeline)
{
    int64_t slowest = 0;
    for (int32_t stage = 0; stage + 1 < pipeline->num_stages; stage++)
        if (pipeline->forward_hop[stage].latency_ns > slowest)
            slowest = pipeline->forward_hop[stage].latency_ns;
    return slowest;
}

ps_code ps_step_options_read(const ps_run *run, const ps_step_words *words, const ps_pipeline *pipeline, ps_step **out,
                             ps_status *status)
{
    bool given = false;
    for (int32_t i = 0; i < COUNT; i++)
        given |= ps_option_given(&run->parsed, names[i]);
    *out = NULL;
    if (!given)
        return PS_OK;
    PS_TRY(check_words(run, words, pipeline, status));
    ps_step *step = ps_new(run->arena, ps_step, 1);
    *step = (ps_step){.stage = ps_new(run->arena, ps_step_stage, pipeline->num_stages),
                      .optimizer_ns = ps_new(run->arena, int64_t, pipeline->num_devices),
                      .barrier = is_on(words->optimizer_barrier),
                      .overlap = is_on(words->overlap)};
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++) {
        int32_t listed = stage % listed_stages(pipeline);
        step->stage[stage] = (ps_step_stage){.reduce_ns = ps_number_at(&words->grad_sync, listed),
                                             .gather_ns = ps_number_at(&words->param_gather, listed),
                                             .buckets = (int32_t)words->buckets};
    }
    for (int32_t device = 0; device < pipeline->num_devices; device++)
        step->optimizer_ns[device] = ps_number_at(&words->optimizer_step, device);
    if (step->barrier)
        step->barrier_ns = ps_number_at(&words->barrier, 0);
    else
        step->validation_hop_ns = slowest_hop(pipeline);
    *out = step;
    ps_code code = ps_step_validate(pipeline, step, status);
    if (code == PS_BAD_INPUT)
        status->code = code = PS_USAGE; // the figures come from the command line
    return code;
}

ps_code ps_step_options_exclude(const ps_run *run, const char *other, ps_status *status)
{
    for (int32_t i = 0; i < COUNT; i++)
        PS_TRY(ps_run_exclude(run, other, names[i], status));
    return PS_OK;
}

ps_code ps_step_options_refuse(const ps_run *run, ps_status *status)
{
    for (int32_t i = 0; i < COUNT; i++) {
        if (!ps_option_given(&run->parsed, names[i]))
            continue;
        ps_fail(status, PS_USAGE, "conflicting-options", "--%s is for bare numbers and does not go with a plan",
                names[i]);
        return ps_fail_hint(status, "a plan carries its own figures; leave out either");
    }
    return PS_OK;
}
