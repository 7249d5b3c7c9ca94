// SPDX-License-Identifier: Apache-2.0
//
// bare_pipeline.c: a pipeline from the bare numbers of `simulate`.
#include "cli/bare_pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/option_value.h"
#include "pipesched/limits.h"

static ps_code any_shape(ps_schedule_shape shape, ps_status *status)
{
    (void)shape;
    (void)status;
    return PS_OK;
}

const ps_schedule_family ps_bare_zb = {
    .name = "zb", .splits_backward = true, .virtual_stages = true, .legal = any_shape};
const ps_schedule_family ps_bare_auto = {.name = "auto", .virtual_stages = true, .legal = any_shape};

static ps_code check_backward(const ps_bare_options *bare, const ps_bare_ground *ground, ps_status *status)
{
    bool splits = ground->splits_backward;
    if (splits && bare->backward.count > 0) {
        ps_fail(status, PS_USAGE, "conflicting-options", "%s splits the backward, so --backward does not say enough",
                ground->name);
        return ps_fail_hint(status, "give --backward-input and --backward-weight");
    }
    if (splits && bare->backward_weight.count == 0)
        return ps_fail(status, PS_USAGE, "missing-option", "%s splits the backward and needs --backward-weight",
                       ground->name);
    if (bare->backward.count == 0 && bare->backward_input.count == 0)
        return ps_fail(status, PS_USAGE, "missing-option", "simulate needs %s here",
                       splits ? "--backward-input" : "--backward or --backward-input");
    return PS_OK;
}

// R is timed where the order has it, and only there: elsewhere its time would be lost.
static ps_code check_recompute(const ps_bare_options *bare, const ps_bare_ground *ground, ps_status *status)
{
    if (ground->recomputes && bare->recompute.count == 0) {
        ps_fail(status, PS_USAGE, "missing-option", "%s has ops R and needs --recompute", ground->name);
        return ps_fail_hint(status, "the time of R, such as that of --forward");
    }
    if (!ground->recomputes && bare->recompute.count + bare->held_after_recompute.count > 0) {
        ps_fail(status, PS_USAGE, "conflicting-options", "%s has no ops R, so %s does not go with it", ground->name,
                bare->recompute.count > 0 ? "--recompute" : "--held-after-recompute");
        return ps_fail_hint(status, "use gpipe-recompute or rules with R, or add the recompute to the backward");
    }
    for (int32_t stage = 0; bare->held_after_recompute.count > 0 && stage < ground->shape.num_stages; stage++) {
        int64_t before = ps_number_at(&bare->activation, stage);
        int64_t after = ps_number_at(&bare->held_after_recompute, stage);
        if (after >= before)
            continue;
        ps_fail(status, PS_USAGE, "recompute-frees",
                "stage %d holds %" PRId64 " after F and %" PRId64 " after R, which only adds to it", (int)stage, before,
                after);
        return ps_fail_hint(status, "--activation is what F leaves, --held-after-recompute what there is after R");
    }
    return PS_OK;
}

// Stages that have figures of their own: those of one way.
static int32_t listed_stages(const ps_bare_ground *ground)
{
    return ground->placement == PS_PLACEMENT_DUAL ? ground->shape.num_stages / 2 : ground->shape.num_stages;
}

static ps_code check_lists(const ps_bare_options *bare, const ps_bare_ground *ground, ps_status *status)
{
    int64_t stages = listed_stages(ground);
    const char *what = ground->placement == PS_PLACEMENT_DUAL ? "stage of the model" : "virtual stage";
    const ps_number_list *const memory[] = {&bare->activation, &bare->held_after_backward_input, &bare->memory_limit,
                                            &bare->memory_curve, &bare->held_after_recompute};
    const char *const memory_name[] = {"--activation", "--held-after-backward-input", "--memory-limit",
                                       "--memory-curve", "--held-after-recompute"};
    PS_TRY(ps_memory_units_agree(memory, memory_name, 5, status));
    PS_TRY(ps_memory_limit_expect(&bare->memory_limit, status));
    PS_TRY(ps_numbers_expect(&bare->forward, "--forward", stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->backward_input, "--backward-input", stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->backward_weight, "--backward-weight", stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->backward, "--backward", stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->recompute, "--recompute", stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->held_after_recompute, memory_name[4], stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->comm_latency, "--comm-ms", stages - 1, "hop", status));
    PS_TRY(ps_numbers_expect(&bare->comm_occupy, "--comm-occupy-ms", stages - 1, "hop", status));
    PS_TRY(ps_numbers_expect(&bare->activation, memory_name[0], stages, what, status));
    PS_TRY(ps_numbers_expect(&bare->held_after_backward_input, memory_name[1], stages, what, status));
    return ps_numbers_expect(&bare->memory_limit, memory_name[2], ground->shape.num_devices, "rank", status);
}

// Integers of a comma list, as many as `most` written to `out`; how many there are goes to `*listed`.
static ps_code read_integers(ps_arena *arena, const char *option, const char *text, int64_t least, int32_t most,
                             int32_t *out, int32_t *listed, ps_status *status)
{
    *listed = 0;
    for (const char *at = text;; at++) {
        int64_t size = (int64_t)strcspn(at, ",");
        int64_t value;
        if (ps_parse_int(ps_text_copy_n(arena, at, size), least, PS_MAX_MICROBATCHES, &value, status) != PS_OK) {
            status->code = PS_USAGE;
            snprintf(status->rule, sizeof status->rule, "bad-value");
            return ps_fail_at(status, option, 0, 0, NULL);
        }
        if (*listed < most)
            out[*listed] = (int32_t)value;
        *listed += *listed < INT32_MAX;
        at += size;
        if (*at == '\0')
            return PS_OK;
    }
}

// One count, or one a rank.
static ps_code read_launch_counts(ps_arena *arena, const char *text, int32_t ranks, const int32_t **out,
                                  ps_status *status)
{
    int32_t *count = ps_new(arena, int32_t, ranks);
    int32_t listed = 0;
    PS_TRY(read_integers(arena, "--launch-counts", text, 1, ranks, count, &listed, status));
    ps_number_list length = {.count = listed};
    PS_TRY(ps_numbers_expect(&length, "--launch-counts", ranks, "rank", status));
    for (int32_t rank = listed; rank < ranks; rank++)
        count[rank] = count[0];
    *out = count;
    return PS_OK;
}

// The rank of every virtual stage, as listed.
static ps_code read_ranks(ps_arena *arena, const char *text, ps_schedule_shape shape, int32_t *device,
                          ps_status *status)
{
    int32_t listed = 0;
    if (read_integers(arena, "--placement", text, 0, shape.num_stages, device, &listed, status) != PS_OK)
        return ps_fail_hint(status, "loop, v, or the rank of every virtual stage, as in 0,1,1,0");
    if (listed != shape.num_stages) {
        ps_fail(status, PS_USAGE, "list-length", "--placement has %d ranks for %d virtual stages", (int)listed,
                (int)shape.num_stages);
        return ps_fail_hint(status, "list the rank of every virtual stage, pp * vp of them, or write loop or v");
    }
    for (int32_t stage = 0; stage < listed; stage++)
        if (device[stage] >= shape.num_devices)
            return ps_fail(status, PS_USAGE, "bad-value", "--placement: virtual stage %d is on rank %d, the last is %d",
                           (int)stage, (int)device[stage], (int)shape.num_devices - 1);
    return PS_OK;
}

static ps_code place_stages(ps_arena *arena, const ps_bare_options *bare, const ps_schedule_family *family,
                            ps_schedule_shape shape, int32_t *device, ps_status *status)
{
    ps_placement placement = family->placement;
    bool named = !bare->placement || strcmp(bare->placement, "loop") == 0;
    if (bare->placement && strcmp(bare->placement, "v") == 0) {
        if (shape.num_stages != 2 * shape.num_devices)
            return ps_fail(status, PS_USAGE, "conflicting-options",
                           "--placement v has two virtual stages a rank, --vp is %d", (int)bare->vp);
        placement = PS_PLACEMENT_V;
        named = true;
    }
    for (int32_t stage = 0; stage < shape.num_stages && named; stage++)
        device[stage] = ps_schedule_device(placement, shape, stage);
    return named ? PS_OK : read_ranks(arena, bare->placement, shape, device, status);
}

static ps_code check_choices(const ps_bare_options *bare, const ps_schedule_family *family, ps_status *status)
{
    if (bare->placement && family != &ps_bare_zb && family != &ps_bare_auto) {
        ps_fail(status, PS_USAGE, "conflicting-options", "--placement is for a search, and %s has its own",
                family->name);
        return ps_fail_hint(status, "use --schedule zb or auto, or leave --placement out");
    }
    if (bare->group_size > 0 && family->kind != PS_SCHEDULE_INTERLEAVED)
        return ps_fail(status, PS_USAGE, "conflicting-options", "--group-size is for interleaved, not for %s",
                       family->name);
    if (bare->launch_counts && family->kind != PS_SCHEDULE_H_1F1B)
        return ps_fail(status, PS_USAGE, "conflicting-options", "--launch-counts is for h-1f1b, not for %s",
                       family->name);
    if (!bare->launch_counts && family->kind == PS_SCHEDULE_H_1F1B) {
        ps_fail(status, PS_USAGE, "missing-option", "h-1f1b needs --launch-counts");
        return ps_fail_hint(status, "one a rank, such as --launch-counts 6,4,2,1; or use 1f1b, which has its own");
    }
    return PS_OK;
}

ps_code ps_bare_shape(ps_arena *arena, const ps_bare_options *bare, const ps_schedule_family *family,
                      ps_schedule_shape *out, ps_status *status)
{
    PS_TRY(check_choices(bare, family, status));
    if (bare->pp * bare->vp > PS_MAX_STAGES)
        return ps_fail(status, PS_USAGE, "too-many-stages",
                       "%" PRId64 " ranks of %" PRId64 " virtual stages are %" PRId64 " stages, at most %d", bare->pp,
                       bare->vp, bare->pp * bare->vp, (int)PS_MAX_STAGES);
    *out = (ps_schedule_shape){.num_devices = (int32_t)bare->pp,
                               .num_stages = (int32_t)(bare->pp * bare->vp),
                               .num_microbatches = (int32_t)bare->num_microbatches,
                               .group_size = (int32_t)bare->group_size};
    if (bare->launch_counts)
        PS_TRY(read_launch_counts(arena, bare->launch_counts, out->num_devices, &out->launch_count, status));
    return family->legal(*out, status);
}

static ps_stage bare_stage(const ps_bare_options *bare, int32_t stage, int32_t device)
{
    int64_t input_ns = ps_number_at(&bare->backward_input, stage);
    int64_t weight_ns = ps_number_at(&bare->backward_weight, stage);
    int64_t held = ps_number_at(&bare->activation, stage);
    return (ps_stage){
        .device = device,
        .duration_ns = {[PS_OP_FORWARD] = ps_number_at(&bare->forward, stage),
                        [PS_OP_BACKWARD] =
                            bare->backward.count > 0 ? ps_number_at(&bare->backward, stage) : input_ns + weight_ns,
                        [PS_OP_BACKWARD_INPUT] = input_ns,
                        [PS_OP_BACKWARD_WEIGHT] = weight_ns,
                        [PS_OP_RECOMPUTE] = ps_number_at(&bare->recompute, stage)},
        .held_after_forward = held,
        .added_by_recompute =
            bare->held_after_recompute.count > 0 ? ps_number_at(&bare->held_after_recompute, stage) - held : 0,
        .held_after_backward_input = ps_number_at(&bare->held_after_backward_input, stage),
    };
}

ps_code ps_bare_pipeline(ps_arena *arena, const ps_bare_options *bare, const ps_schedule_family *family,
                         ps_pipeline *out, ps_status *status)
{
    ps_bare_ground ground = {.name = family->name,
                             .splits_backward = family->splits_backward,
                             .recomputes = family->recomputes,
                             .placement = family->placement};
    PS_TRY(check_backward(bare, &ground, status));
    PS_TRY(ps_bare_shape(arena, bare, family, &ground.shape, status));

    int32_t *device = ps_new_raw(arena, int32_t, ground.shape.num_stages);
    PS_TRY(place_stages(arena, bare, family, ground.shape, device, status));
    ground.device = device;
    return ps_bare_pipeline_on(arena, bare, &ground, out, status);
}

ps_code ps_bare_pipeline_on(ps_arena *arena, const ps_bare_options *bare, const ps_bare_ground *ground,
                            ps_pipeline *out, ps_status *status)
{
    ps_schedule_shape shape = ground->shape;
    int32_t listed = listed_stages(ground);
    PS_TRY(check_backward(bare, ground, status));
    PS_TRY(check_lists(bare, ground, status));
    PS_TRY(check_recompute(bare, ground, status));
    *out = (ps_pipeline){.num_stages = shape.num_stages,
                         .num_devices = shape.num_devices,
                         .num_microbatches = shape.num_microbatches,
                         .stage = ps_new(arena, ps_stage, shape.num_stages),
                         .forward_hop = ps_new(arena, ps_hop, shape.num_stages),
                         .backward_hop = ps_new(arena, ps_hop, shape.num_stages),
                         .device = ps_new(arena, ps_device, shape.num_devices)};
    for (int32_t stage = 0; stage < shape.num_stages; stage++)
        out->stage[stage] = bare_stage(bare, stage < listed ? stage : stage - listed, ground->device[stage]);
    for (int32_t hop = 0; hop + 1 < shape.num_stages; hop++) {
        if (out->stage[hop].device == out->stage[hop + 1].device)
            continue; // nothing is sent
        int32_t own = hop < listed ? hop : hop - listed;
        if (own == listed - 1)
            continue; // from one way to the other
        out->forward_hop[hop] = (ps_hop){.occupy_ns = ps_number_at(&bare->comm_occupy, own),
                                         .latency_ns = ps_number_at(&bare->comm_latency, own)};
        out->backward_hop[hop] = out->forward_hop[hop];
    }
    for (int32_t device = 0; device < shape.num_devices; device++)
        out->device[device].memory_limit =
            bare->memory_limit.count > 0 ? ps_number_at(&bare->memory_limit, device) : INT64_MAX;
    ps_schedule_set_routes(arena, ground->placement, out);
    ps_pipeline_assign_lanes(arena, out);
    ps_code code = ps_pipeline_validate(out, status);
    if (code == PS_BAD_INPUT)
        status->code = code = PS_USAGE; // the figures come from the command line
    return code;
}
