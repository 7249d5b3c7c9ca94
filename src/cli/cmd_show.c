// SPDX-License-Identifier: Apache-2.0
//
// cmd_show.c: what was understood of a model, a cluster or a plan, and the terms of what a layer costs.
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/load.h"
#include "cli/show_cost.h"
#include "cluster/cluster_formats.h"
#include "io/builtin.h"
#include "io/file.h"
#include "io/json_write.h"
#include "pipesched/limits.h"
#include "pipesched/plan.h"
#include "report/cluster_summary.h"
#include "report/model_summary.h"
#include "report/plan_summary.h"

typedef struct show_options {
    ps_common_options common;
    bool list;
    bool cost;
    double nic;
    const char *gpu;
    int64_t nodes;
    const char *cluster;
    const char *calibration;
    const char *model;
    int64_t device;
} show_options;

static const ps_option rows[] = {
    PS_OPTION_FLAG_AT(show_options, list, "list", "list the built-in models, clusters and GPU types"),
    PS_OPTION_AT(RATE, show_options, nic, "nic", "RATE", NULL, "network bandwidth of a GPU, as in 400Gb/s"),
    PS_OPTION_AT(STRING, show_options, gpu, "gpu", "TYPE", NULL,
                 "GPU type: of a node file that does not name it, or for --cost"),
    PS_OPTION_INT_AT(show_options, nodes, "nodes", 1, PS_MAX_GPUS, NULL, "copies of a node file; 1 unless given"),
    PS_OPTION_FLAG_AT(show_options, cost, "cost",
                      "every term of the cost of one layer of each type, or of the memory of a plan's devices"),
    PS_OPTION_AT(STRING, show_options, cluster, "cluster", "CLUSTER", NULL, "cluster for --cost, instead of --gpu"),
    PS_OPTION_AT(STRING, show_options, calibration, "calibration", "FILE", NULL,
                 "scale the times of --cost as calibrate found"),
    PS_OPTION_AT(STRING, show_options, model, "model", "MODEL", NULL,
                 "with --cost of a plan: the model that it is for, to tell its layers apart; built-in ones are found"),
    PS_OPTION_INT_AT(show_options, device, "device", 0, PS_MAX_GPUS, NULL,
                     "with --cost of a plan: its pipeline rank; the fullest unless given, all with -v"),
};

static const ps_option_group own_group = {"Show options", rows, PS_OPTION_COUNT(rows)};
static const ps_option_group *const groups[] = {&own_group, &ps_job_cost_option_group, &ps_common_option_group, NULL};

static ps_cluster_options cluster_options_of(const ps_run *run)
{
    const show_options *options = run->parsed.values;
    return (ps_cluster_options){.nic_bytes_per_s = options->nic, .gpu = options->gpu, .nodes = (int32_t)options->nodes};
}

static ps_show_cost cost_options_of(const ps_run *run)
{
    const show_options *options = run->parsed.values;
    return (ps_show_cost){.gpu = options->gpu,
                          .cluster = options->cluster,
                          .how = cluster_options_of(run),
                          .calibration = options->calibration,
                          .model = options->model,
                          .device = ps_option_given(&run->parsed, "device") ? options->device : -1};
}

typedef struct name_list {
    const char *title;
    const char *key;
    const char *const *name;
    int32_t count;
} name_list;

static ps_code show_list(ps_run *run, ps_status *status)
{
    name_list lists[] = {
        {"models", "models", NULL, 0}, {"clusters", "clusters", NULL, 0}, {"GPU types", "gpus", NULL, 0}};
    lists[0].name = ps_builtin_names(run->arena, PS_BUILTIN_MODEL, &lists[0].count);
    lists[1].name = ps_builtin_names(run->arena, PS_BUILTIN_CLUSTER, &lists[1].count);
    PS_TRY(ps_catalog_names(run->arena, &lists[2].name, &lists[2].count, status));

    ps_json_writer json;
    ps_json_begin(&json, run->out);
    if (run->common->json) {
        ps_json_object(&json, NULL);
        ps_json_put_string(&json, "format", "pipesched/show/v1");
        ps_json_put_string(&json, "shows", "list");
    }
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
        if (run->common->json)
            ps_json_array(&json, lists[list].key);
        else
            fprintf(run->out, "%s:\n", lists[list].title);
        for (int32_t index = 0; index < lists[list].count; index++) {
            if (run->common->json)
                ps_json_put_string(&json, NULL, lists[list].name[index]);
            else
                fprintf(run->out, "  %s\n", lists[list].name[index]);
        }
        if (run->common->json)
            ps_json_close(&json);
    }
    if (!run->common->json)
        return PS_OK;
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static ps_code refuse_options(const ps_run *run, const char *what, const char *const *name, ps_status *status)
{
    for (; *name; name++)
        if (ps_option_given(&run->parsed, *name))
            return ps_fail(status, PS_USAGE, "conflicting-options", "--%s says nothing about %s", *name, what);
    return PS_OK;
}

static ps_code refuse_cost_options(const ps_run *run, const char *what, ps_status *status)
{
    static const char *const names[] = {"cost", "cluster", "calibration", "model", "device", NULL};
    if (run->parsed.num_job_settings > 0)
        return ps_fail(status, PS_USAGE, "conflicting-options", "--%s is for --cost", run->parsed.job_setting[0].name);
    return refuse_options(run, what, names, status);
}

static ps_code show_model(ps_run *run, const ps_model *model, ps_status *status)
{
    static const char *const always[] = {"nodes", "nic", NULL};
    static const char *const names[] = {"gpu", "nodes", "nic", NULL};
    static const char *const of_a_plan[] = {"model", "device", NULL};
    const show_options *options = run->parsed.values;
    if (options->cost) {
        PS_TRY(refuse_options(run, "a model", of_a_plan, status));
        if (!options->cluster)
            PS_TRY(refuse_options(run, "a GPU type alone", always, status));
        const ps_show_cost what = cost_options_of(run);
        return ps_show_model_cost(run, model, &what, status);
    }
    PS_TRY(refuse_cost_options(run, "a model without --cost", status));
    PS_TRY(refuse_options(run, "a model without --cost", names, status));
    if (run->common->json)
        return ps_model_json(run->out, run->arena, model, status);
    ps_model_text(run->out, run->arena, model, run->common->verbose);
    return PS_OK;
}

static ps_code show_cluster(ps_run *run, const ps_cluster *cluster, ps_status *status)
{
    PS_TRY(refuse_cost_options(run, "a cluster", status));
    if (run->common->json)
        return ps_cluster_json(run->out, cluster, status);
    ps_cluster_text(run->out, run->arena, cluster, run->common->verbose);
    return PS_OK;
}

// A plan's costs are those of its own job and GPU.
static ps_code show_plan_cost(ps_run *run, const ps_plan *plan, ps_status *status)
{
    static const char *const names[] = {"calibration", NULL};
    static const char *const of_a_cluster[] = {"gpu", "nodes", "nic", NULL};
    const show_options *options = run->parsed.values;
    const ps_show_cost what = cost_options_of(run);
    if (run->parsed.num_job_settings > 0)
        return ps_fail(status, PS_USAGE, "conflicting-options", "--%s is for a model: a plan has its own job",
                       run->parsed.job_setting[0].name);
    PS_TRY(refuse_options(run, "the memory of a plan", names, status));
    if (!options->cluster)
        PS_TRY(refuse_options(run, "a plan", of_a_cluster, status));
    return ps_show_plan_cost(run, plan, &what, status);
}

static ps_code show_plan(ps_run *run, const ps_plan *plan, ps_status *status)
{
    static const char *const names[] = {"gpu", "nodes", "nic", NULL};
    const show_options *options = run->parsed.values;
    if (options->cost)
        return show_plan_cost(run, plan, status);
    PS_TRY(refuse_cost_options(run, "a plan without --cost", status));
    PS_TRY(refuse_options(run, "a plan", names, status));
    if (run->common->json)
        return ps_plan_write_json(plan, NULL, run->out, status);
    ps_report_plan(run->arena, run->out, plan, run->common->verbose, &run->style);
    return PS_OK;
}

static ps_code show_file(ps_run *run, const char *path, ps_status *status)
{
    ps_file_bytes bytes;
    ps_content content;
    ps_model model;
    ps_cluster cluster;
    ps_plan plan;
    const ps_cluster_options how = cluster_options_of(run);

    PS_TRY(ps_file_read(run->arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    PS_TRY(ps_content_of(run->arena, path, &bytes, &content, status));
    switch (content) {
    case PS_CONTENT_MODEL:
        PS_TRY(ps_model_parse(run->arena, path, bytes.data, bytes.size, &model, status));
        return show_model(run, &model, status);
    case PS_CONTENT_CLUSTER:
        PS_TRY(ps_cluster_parse(run->arena, path, bytes.data, bytes.size, &how, &cluster, status));
        return show_cluster(run, &cluster, status);
    case PS_CONTENT_PLAN:
        PS_TRY(ps_plan_read_json(run->arena, path, bytes.data, bytes.size, &plan, status));
        return show_plan(run, &plan, status);
    case PS_CONTENT_SCHEDULE_CSV:
    case PS_CONTENT_UNKNOWN: break;
    }
    ps_fail(status, PS_BAD_INPUT, "unsupported-format", "not a model, cluster or plan");
    ps_fail_at(status, path, 0, 0, NULL);
    return ps_fail_hint(status, "show reads pipesched/model/v1, cluster/v1 and plan/v1, a Hugging Face config.json and "
                                "hwloc XML");
}

static ps_code unknown_name(ps_run *run, const char *name, ps_status *status)
{
    int32_t num_models;
    int32_t num_clusters;
    const char *const *models = ps_builtin_names(run->arena, PS_BUILTIN_MODEL, &num_models);
    const char *const *clusters = ps_builtin_names(run->arena, PS_BUILTIN_CLUSTER, &num_clusters);
    const char *near = ps_text_nearest(name, models, num_models);
    if (!near)
        near = ps_text_nearest(name, clusters, num_clusters);
    ps_fail(status, PS_IO, "file-missing", "there is no such file, built-in model or built-in cluster");
    ps_fail_at(status, name, 0, 0, NULL);
    if (near)
        return ps_fail_hint(status, "did you mean \"%s\"?", near);
    return ps_fail_hint(status, "pipesched show --list has the names");
}

static ps_code show_name(ps_run *run, const char *name, ps_status *status)
{
    const ps_cluster_options how = cluster_options_of(run);
    ps_model model;
    ps_cluster cluster;
    if (strcmp(name, "this-machine") == 0 || ps_cluster_is_shorthand(name) ||
        ps_builtin_find(PS_BUILTIN_CLUSTER, name)) {
        PS_TRY(ps_cluster_load(run->arena, name, &how, &cluster, status));
        return show_cluster(run, &cluster, status);
    }
    if (!ps_builtin_find(PS_BUILTIN_MODEL, name))
        return unknown_name(run, name, status);
    PS_TRY(ps_model_load(run->arena, name, &model, status));
    return show_model(run, &model, status);
}

static ps_code run_show(ps_run *run, ps_status *status)
{
    const show_options *options = run->parsed.values;
    if (options->list && run->parsed.num_operands > 0)
        return ps_fail(status, PS_USAGE, "conflicting-options", "--list takes no FILE");
    if (options->list)
        return show_list(run, status);
    if (run->parsed.num_operands == 0) {
        ps_fail(status, PS_USAGE, "missing-operand", "show needs a FILE or a NAME");
        return ps_fail_hint(status, "pipesched show --list has the names");
    }
    PS_TRY(ps_run_stdin_once(run, options->cluster, status));
    PS_TRY(ps_run_stdin_once(run, options->calibration, status));
    PS_TRY(ps_run_stdin_once(run, options->model, status));
    const char *name = run->parsed.operand[0];
    bool is_path = strcmp(name, "-") == 0 || strchr(name, '/') || ps_file_exists(name);
    return is_path ? show_file(run, name, status) : show_name(run, name, status);
}

const ps_command ps_command_show = {
    .name = "show",
    .operands = "[FILE|NAME]",
    .summary = "what was understood of a model, cluster or plan",
    .about =
        "Prints what was understood of a file or a built-in name: parameters per kind of layer, GPUs and links with "
        "the origin of every figure, or the summary of a plan. With --cost, every term of what a layer costs, or of what a plan's fullest "
        "device holds, and what the cost model covers and what not (-q: without that).",
    .examples = "pipesched show --list\n"
                "pipesched show llama-3.1-8b\n"
                "pipesched show 8x8xH100-SXM5-80GB --nic 400Gb/s --json\n"
                "pipesched show llama-3.1-8b --cost --gpu H100-SXM5-80GB --seq-length 8192\n"
                "pipesched show plan.json --cost --device 0",
    .max_operands = 1,
    .groups = groups,
    .options_size = sizeof(show_options),
    .run = run_show,
};
