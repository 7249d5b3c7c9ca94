// SPDX-License-Identifier: Apache-2.0
//
// show_cost.c: show --cost of a model, or of a plan.
#include "cli/show_cost.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "cli/cost_setup.h"
#include "io/builtin.h"
#include "pipesched/check.h"
#include "report/cost_terms.h"
#include "report/memory_terms.h"
#include "report/model_summary.h"

static ps_coverage coverage(void)
{
    ps_coverage all;
    all.effect = ps_cost_effects(&all.count);
    return all;
}

// One layer of each type: repeated blocks cost the same.
static ps_code explain_layers(ps_run *run, const ps_model *model, const ps_cost_setup *setup, ps_cost_report *report,
                              ps_status *status)
{
    ps_vec(ps_cost_terms) layers = {0};
    const char **name = ps_new(run->arena, const char *, model->num_layers);
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        name[layer] = model->layer[layer].base_name;
    const int32_t *first = ps_first_of_each(run->arena, name, model->num_layers);
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        if (first[layer] != layer)
            continue;
        ps_cost_terms terms;
        PS_TRY(ps_cost_explain(run->arena, model, &setup->group, &setup->job, &setup->layout, layer, &terms, status));
        *ps_vec_push(run->arena, &layers) = terms;
    }
    report->num_layers = (int32_t)layers.count;
    report->layer = layers.data;
    return PS_OK;
}

static ps_code set_up(ps_run *run, ps_model *model, const ps_show_cost *what, ps_cost_setup *out, ps_status *status)
{
    if (what->cluster) {
        ps_cluster cluster;
        PS_TRY(ps_cluster_load(run->arena, what->cluster, &what->how, &cluster, status));
        PS_TRY(ps_cost_setup_cluster(run, model, &cluster, out, status));
    } else {
        PS_TRY(ps_cost_setup_gpu(run, model, what->gpu, out, status));
    }
    if (!what->calibration)
        return PS_OK;
    return ps_cost_setup_calibrate(run, what->calibration, model, out, status);
}

ps_code ps_show_model_cost(ps_run *run, const ps_model *model, const ps_show_cost *what, ps_status *status)
{
    ps_model calibrated = *model;
    ps_cost_setup setup;
    PS_TRY(set_up(run, &calibrated, what, &setup, status));
    ps_cost_report report = {.model = model->name,
                             .gpu = setup.group.gpu.name,
                             .micro_batch_size = setup.layout.micro_batch_size,
                             .seq_length = setup.job.seq_length,
                             .tp = setup.layout.tp,
                             .calibration = setup.job.calibration,
                             .coverage = coverage()};
    PS_TRY(explain_layers(run, &calibrated, &setup, &report, status));
    if (run->common->json)
        return ps_cost_json(run->out, &report, status);
    ps_cost_text(run->out, run->arena, &report, run->common->quiet);
    return PS_OK;
}

static ps_code expect_holds(ps_run *run, const ps_plan *plan, ps_status *status)
{
    ps_check_result result;
    PS_TRY(ps_check_plan(run->arena, plan, &result, status));
    if (result.total == 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "plan-does-not-hold", "%s: %s", result.finding[0].pointer, result.finding[0].message);
    return ps_fail_hint(status, "pipesched check names all that is wrong with the plan");
}

// What a memory report is made from, and why it may have to do without the model.
typedef struct plan_source {
    ps_memory_source memory;
    ps_pipeline pipeline;
    ps_timeline timeline;
    ps_model model;
    ps_group group;
    const char *not_split;
} plan_source;

static ps_code find_group(ps_run *run, const ps_plan *plan, const ps_show_cost *what, ps_group *out, ps_status *status)
{
    const char *name = plan->device[0].gpu;
    if (!what->cluster) {
        *out = (ps_group){.name = "plan", .nodes = plan->inputs.cluster_nodes};
        out->gpus_per_node = plan->inputs.gpus_per_node;
        out->nvlink_domain_nodes = plan->inputs.domain_nodes;
        return ps_catalog_gpu(run->arena, name, &out->gpu, status);
    }
    ps_cluster cluster;
    PS_TRY(ps_cluster_load(run->arena, what->cluster, &what->how, &cluster, status));
    *out = cluster.group[0];
    if (strcmp(out->gpu.name, name) == 0)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "other-cluster", "the plan is for %s, the cluster has %s", name,
                   out->gpu.name);
}

// A built-in model is the plan's when its bytes are.
static bool find_builtin(ps_run *run, const ps_plan *plan, ps_model *out)
{
    ps_status status = {0};
    const char *name = plan->inputs.model_name;
    return ps_builtin_find(PS_BUILTIN_MODEL, name) && ps_model_load(run->arena, name, out, &status) == PS_OK &&
           strcmp(out->sha256, plan->inputs.model_sha256) == 0;
}

static ps_code find_model(ps_run *run, const ps_plan *plan, const ps_show_cost *what, plan_source *source,
                          ps_status *status)
{
    if (!what->model && !find_builtin(run, plan, &source->model)) {
        source->not_split = ps_text_format(run->arena, "--model FILE tells the layers apart, where FILE is that of %s",
                                           plan->inputs.model_name);
        return PS_OK;
    }
    if (what->model)
        PS_TRY(ps_model_load(run->arena, what->model, &source->model, status));
    if (strcmp(source->model.sha256, plan->inputs.model_sha256) != 0) {
        ps_fail(status, PS_BAD_INPUT, "other-model", "not the model that the plan is for, %s", plan->inputs.model_name);
        ps_fail_at(status, what->model, 0, 0, NULL);
        return ps_fail_hint(status, "leave --model out to see the plan's own figures");
    }
    source->memory.model = &source->model;
    return find_group(run, plan, what, &source->group, status);
}

// Without --model a plan of another version is shown all the same, stage by stage.
static ps_code device_terms(ps_run *run, const ps_show_cost *what, plan_source *source, int32_t device,
                            ps_memory_terms *out, ps_status *status)
{
    ps_code code = ps_plan_memory_terms(run->arena, &source->memory, device, out, status);
    if (code == PS_OK || what->model || !source->memory.model)
        return code;
    source->not_split = ps_text_format(run->arena, "layers stand together: %s", status->message);
    source->memory.model = NULL;
    *status = (ps_status){0};
    return ps_plan_memory_terms(run->arena, &source->memory, device, out, status);
}

static ps_code open_plan(ps_run *run, const ps_plan *plan, const ps_show_cost *what, plan_source *out,
                         ps_status *status)
{
    PS_TRY(ps_plan_pipeline(run->arena, plan, &out->pipeline, status));
    PS_TRY(expect_holds(run, plan, status));
    PS_TRY(ps_simulate(run->arena, &out->pipeline, &plan->schedule, &out->timeline, status));
    out->memory = (ps_memory_source){.plan = plan, .timeline = &out->timeline, .group = &out->group};
    return find_model(run, plan, what, out, status);
}

ps_code ps_show_plan_cost(ps_run *run, const ps_plan *plan, const ps_show_cost *what, ps_status *status)
{
    plan_source *source = ps_new(run->arena, plan_source, 1);
    PS_TRY(open_plan(run, plan, what, source, status));
    if (what->device >= plan->num_devices)
        return ps_fail(status, PS_USAGE, "unknown-device", "--device %" PRId64 ": the plan has pipeline ranks 0 to %d",
                       what->device, (int)plan->num_devices - 1);
    bool all = what->device < 0 && run->common->verbose;
    int32_t first = what->device >= 0 ? (int32_t)what->device : all ? 0 : ps_plan_fullest(plan);
    int32_t count = all ? plan->num_devices : 1;
    ps_memory_terms *device = ps_new(run->arena, ps_memory_terms, count);
    for (int32_t index = 0; index < count; index++)
        PS_TRY(device_terms(run, what, source, first + index, &device[index], status));
    const ps_memory_report report = {
        .plan = plan, .not_split = source->not_split, .num_devices = count, .device = device, .coverage = coverage()};
    if (run->common->json)
        return ps_memory_json(run->out, &report, status);
    ps_memory_text(run->out, run->arena, &report, run->common->quiet);
    return PS_OK;
}
