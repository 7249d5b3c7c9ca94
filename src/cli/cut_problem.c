// SPDX-License-Identifier: Apache-2.0
//
// cut_problem.c: the options of `partition` to a cutting problem. What both sources of costs share comes first, then
// bare weights, then a model priced on each type of GPU.
#include "cli/cut_problem.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/cost_setup.h"
#include "pipesched/limits.h"
#include "pipesched/schedule.h"

const char *const ps_partition_schedules[] = {"none", "gpipe", "1f1b", "zb-h1", "zb-h2", NULL};

typedef ps_partition_command_options cut_options;

static ps_code fail_option(const char *option, ps_status *status)
{
    return ps_fail_at(status, option, 0, 0, NULL);
}

// "A100:4,V100:4" to types; without --types one type with as many devices as stages.
static ps_code read_types(ps_run *run, ps_partition_problem *problem, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    ps_vec(ps_device_type) types = {0};
    if (!options->types) {
        const char *name = options->gpu ? options->gpu : "any";
        *ps_vec_push(run->arena, &types) = (ps_device_type){name, (int32_t)options->stages, INT64_MAX};
    }
    for (const char *at = options->types; at && *at; at += *at == ',') {
        int64_t size = (int64_t)strcspn(at, ",");
        char *name = ps_text_copy_n(run->arena, at, size);
        char *colon = strrchr(name, ':');
        int64_t count;
        if (!colon || colon == name || ps_parse_int(colon + 1, 1, PS_MAX_STAGES, &count, status) != PS_OK) {
            ps_fail(status, PS_USAGE, "bad-value", "expected TYPE:COUNT, got \"%.80s\"", name);
            ps_fail_hint(status, "as in --types A100:4,V100:4");
            return fail_option("--types", status);
        }
        *colon = '\0';
        *ps_vec_push(run->arena, &types) = (ps_device_type){name, (int32_t)count, INT64_MAX};
        at += size;
    }
    problem->num_types = (int32_t)types.count;
    problem->type = types.data;
    PS_TRY(ps_numbers_expect(&options->memory_limit, "--memory-limit", types.count, "type", status));
    PS_TRY(ps_memory_limit_expect(&options->memory_limit, status));
    problem->memory_is_bytes = options->memory_limit.with_unit;
    for (int32_t type = 0; type < types.count && options->memory_limit.count > 0; type++)
        types.data[type].memory_limit = ps_number_at(&options->memory_limit, type);
    return PS_OK;
}

// One value a layer, or NULL when the option was not given.
static ps_code layer_values(ps_run *run, const ps_number_list *list, const char *option, int32_t layers,
                            const int64_t **out, ps_status *status)
{
    PS_TRY(ps_numbers_expect(list, option, layers, "layer", status));
    if (list->count == 0)
        return PS_OK;
    int64_t *value = ps_new(run->arena, int64_t, layers);
    for (int32_t layer = 0; layer < layers; layer++)
        value[layer] = ps_number_at(list, layer);
    *out = value;
    return PS_OK;
}

// --cut-ms, and bytes / bandwidth of what the layer before the cut sends. Both stages at a cut pay it.
static ps_code add_cut_costs(ps_run *run, const int64_t *output_bytes, ps_partition_problem *problem, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    int32_t cuts = problem->num_layers - 1;
    PS_TRY(ps_numbers_expect(&options->cut, "--cut-ms", cuts, "cut", status));
    if (options->bandwidth > 0 && !output_bytes)
        return ps_fail(status, PS_USAGE, "missing-option",
                       "--bandwidth needs --output-bytes, or a model that has them");
    if (options->cut.count == 0 && !(options->bandwidth > 0))
        return PS_OK;
    int64_t *cut_ns = ps_new(run->arena, int64_t, cuts + 1);
    for (int32_t cut = 0; cut < cuts; cut++) {
        int64_t send_ns = 0;
        if (options->bandwidth > 0)
            PS_TRY(
                ps_ns_from_seconds((double)output_bytes[cut] / options->bandwidth, PS_MAX_LAYER_NS, &send_ns, status));
        cut_ns[cut] = ps_number_at(&options->cut, cut) + send_ns;
    }
    problem->cut_ns = cut_ns;
    return PS_OK;
}

// What each stage has in flight under --schedule, one stage a device.
static ps_code add_depths(ps_run *run, ps_partition_problem *problem, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    if (options->schedule == 0)
        return PS_OK;
    PS_TRY(ps_run_require(run, "num-microbatches", status));
    if (problem->num_stages == 0)
        return ps_fail(status, PS_USAGE, "missing-option", "--schedule needs --stages");
    const ps_schedule_family *family = ps_schedule_family_named(ps_partition_schedules[options->schedule]);
    ps_schedule_shape shape = {.num_devices = problem->num_stages,
                               .num_stages = problem->num_stages,
                               .num_microbatches = (int32_t)options->num_microbatches};
    ps_depth_list *depth = ps_new(run->arena, ps_depth_list, 1);
    PS_TRY(ps_schedule_depths(run->arena, family->kind, shape, depth, status));
    problem->depth = depth;
    return PS_OK;
}

static ps_code start_problem(ps_run *run, ps_partition_problem *problem, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    *problem = (ps_partition_problem){.num_stages = (int32_t)options->stages,
                                      .num_microbatches = (int32_t)options->num_microbatches,
                                      .objective = (ps_objective)options->objective};
    if (options->stages == 0 && !options->types)
        return ps_run_require(run, "stages", status);
    if (problem->objective == PS_OBJECTIVE_ITERATION)
        PS_TRY(ps_run_require(run, "num-microbatches", status));
    return read_types(run, problem, status);
}

// "3,1,4", the same for every type, or "A=3,1,4;B=6,2,8".
static ps_code read_weights(ps_run *run, ps_partition_problem *problem, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    const int64_t **cost = ps_new(run->arena, const int64_t *, problem->num_types);
    bool is_by_type = strpbrk(options->weights, "=;") != NULL;
    for (const char *at = options->weights; *at; at += *at == ';') {
        int64_t size = (int64_t)strcspn(at, ";");
        char *part = ps_text_copy_n(run->arena, at, size);
        char *numbers = is_by_type ? strchr(part, '=') : part;
        if (!numbers) {
            ps_fail(status, PS_USAGE, "bad-value", "expected TYPE=LIST for every type, got \"%.80s\"", part);
            ps_fail_hint(status, "as in --weights 'A=3,1,4;B=6,2,8'");
            return fail_option("--weights", status);
        }
        if (is_by_type)
            *numbers++ = '\0';
        ps_number_list list;
        PS_TRY(ps_times_parse(run->arena, "--weights", numbers, &list, status));
        if (problem->num_layers != 0 && list.count != problem->num_layers) {
            ps_fail(status, PS_USAGE, "list-length", "%d weights of one type and %d of another",
                    (int)problem->num_layers, (int)list.count);
            return fail_option("--weights", status);
        }
        problem->num_layers = list.count;
        int32_t matches = 0;
        for (int32_t type = 0; type < problem->num_types; type++) {
            if (is_by_type && strcmp(problem->type[type].name, part) != 0)
                continue;
            cost[type] = list.value;
            matches++;
        }
        if (matches == 0) {
            ps_fail(status, PS_USAGE, "unknown-type", "type \"%.80s\" is not in --types", part);
            return fail_option("--weights", status);
        }
        at += size;
    }
    for (int32_t type = 0; type < problem->num_types; type++) {
        if (cost[type])
            continue;
        ps_fail(status, PS_USAGE, "missing-weights", "no weights for type \"%.80s\"", problem->type[type].name);
        return fail_option("--weights", status);
    }
    problem->cost_ns = cost;
    return PS_OK;
}

ps_code ps_cut_input_from_weights(ps_run *run, ps_cut_input *out, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    const ps_number_list *const memory[] = {&options->memory, &options->activation, &options->held_after_backward_input,
                                            &options->memory_limit};
    const char *const name[] = {"--memory", "--activation", "--held-after-backward-input", "--memory-limit"};
    ps_partition_problem *problem = &out->problem;
    const int64_t *output_bytes = NULL;

    *out = (ps_cut_input){0};
    if (run->parsed.num_job_settings > 0)
        return ps_fail(status, PS_USAGE, "conflicting-options", "--%s prices a model and does not go with --weights",
                       run->parsed.job_setting[0].name);
    PS_TRY(ps_run_exclude(run, "gpu", "weights", status));
    PS_TRY(ps_memory_units_agree(memory, name, 4, status));
    PS_TRY(start_problem(run, problem, status));
    PS_TRY(read_weights(run, problem, status));
    int32_t layers = problem->num_layers;
    PS_TRY(layer_values(run, &options->memory, name[0], layers, &problem->static_bytes, status));
    PS_TRY(layer_values(run, &options->activation, name[1], layers, &problem->held_full, status));
    PS_TRY(layer_values(run, &options->held_after_backward_input, name[2], layers, &problem->held_weight, status));
    PS_TRY(layer_values(run, &options->output, "--output-bytes", layers, &output_bytes, status));
    if (output_bytes && !(options->bandwidth > 0))
        return ps_fail(status, PS_USAGE, "missing-option", "--output-bytes needs --bandwidth");
    PS_TRY(add_cut_costs(run, output_bytes, problem, status));
    return add_depths(run, problem, status);
}

// Memory and output of the layers, in the first type's precision.
static void add_model_memory(ps_run *run, const ps_cost_table *table, ps_partition_problem *problem,
                             int64_t *output_bytes)
{
    int32_t layers = problem->num_layers;
    int64_t *fixed = ps_new(run->arena, int64_t, layers);
    int64_t *full = ps_new(run->arena, int64_t, layers);
    int64_t *weight = ps_new(run->arena, int64_t, layers);
    int64_t *transient = ps_new(run->arena, int64_t, layers);
    for (int32_t layer = 0; layer < layers; layer++) {
        const ps_layer_cost *cost = &table->layer[layer];
        fixed[layer] = cost->parameter_bytes + cost->gradient_bytes + cost->optimizer_bytes;
        full[layer] = cost->held_after_forward_bytes;
        weight[layer] = cost->held_after_backward_input_bytes;
        transient[layer] = cost->transient_bytes;
        output_bytes[layer] = cost->output_bytes;
    }
    problem->static_bytes = fixed;
    problem->held_full = full;
    problem->held_weight = weight;
    problem->transient_bytes = transient;
}

static const int64_t *model_costs(ps_run *run, const ps_cost_table *table)
{
    int64_t *cost = ps_new(run->arena, int64_t, table->num_layers);
    for (int32_t layer = 0; layer < table->num_layers; layer++) {
        const ps_layer_cost *of = &table->layer[layer];
        cost[layer] = of->forward_ns + of->backward_input_ns + of->backward_weight_ns + of->recompute_ns;
    }
    return cost;
}

// "last" becomes a number once the stages are known.
static ps_code add_pins(ps_run *run, const ps_model *model, ps_partition_problem *problem, ps_status *status)
{
    problem->keep_with_next = model->keep_with_next;
    if (!model->pinned_stage)
        return PS_OK;
    if (problem->num_stages == 0)
        return ps_fail(status, PS_USAGE, "missing-option", "%s pins layers to stages, so --stages is needed",
                       model->name);
    int32_t *pinned = ps_new(run->arena, int32_t, model->num_layers);
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        pinned[layer] =
            model->pinned_stage[layer] == PS_PIN_LAST ? problem->num_stages - 1 : model->pinned_stage[layer];
    problem->pinned_stage = pinned;
    return PS_OK;
}

static ps_code check_model_options(const ps_run *run, ps_status *status)
{
    static const char *const bare[] = {"memory", "activation", "held-after-backward-input", "output-bytes"};
    const cut_options *options = run->parsed.values;
    for (size_t index = 0; index < sizeof bare / sizeof *bare; index++)
        if (ps_option_given(&run->parsed, bare[index]))
            return ps_fail(status, PS_USAGE, "conflicting-options",
                           "--%s goes with --weights; a model has figures of its own", bare[index]);
    if (options->memory_limit.bare) {
        ps_fail(status, PS_USAGE, "mixed-units", "the memory of a model is in bytes, and --memory-limit has no unit");
        return ps_fail_hint(status, "write it as in --memory-limit 80GiB");
    }
    return ps_run_exclude(run, "gpu", "types", status);
}

ps_code ps_cut_input_from_model(ps_run *run, const char *path, ps_cut_input *out, ps_status *status)
{
    const cut_options *options = run->parsed.values;
    ps_partition_problem *problem = &out->problem;
    ps_model model;

    *out = (ps_cut_input){0};
    PS_TRY(check_model_options(run, status));
    PS_TRY(start_problem(run, problem, status));
    PS_TRY(ps_model_load(run->arena, path, &model, status));
    for (int32_t index = 0; index < model.num_warnings; index++)
        ps_run_warn(run, model.warning[index]);

    problem->num_layers = model.num_layers;
    int64_t *output_bytes = ps_new(run->arena, int64_t, model.num_layers);
    const int64_t **cost = ps_new(run->arena, const int64_t *, problem->num_types);
    for (int32_t type = 0; type < problem->num_types; type++) {
        ps_cost_setup setup;
        ps_cost_table table;
        const char *gpu = options->types ? problem->type[type].name : options->gpu;
        PS_TRY(ps_cost_setup_gpu(run, &model, gpu, &setup, status));
        PS_TRY(ps_cost_table_build(run->arena, &model, &setup.group, &setup.job, &setup.layout, &table, status));
        cost[type] = model_costs(run, &table);
        if (type == 0)
            add_model_memory(run, &table, problem, output_bytes);
    }
    problem->cost_ns = cost;
    PS_TRY(add_pins(run, &model, problem, status));
    PS_TRY(add_cut_costs(run, output_bytes, problem, status));

    const char **name = ps_new(run->arena, const char *, model.num_layers);
    for (int32_t layer = 0; layer < model.num_layers; layer++)
        name[layer] = model.layer[layer].name;
    out->layer_name = name;
    return add_depths(run, problem, status);
}
