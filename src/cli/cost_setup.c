// SPDX-License-Identifier: Apache-2.0
//
// cost_setup.c: one GPU, one job and one layout, for commands that price layers without planning.
#include "cli/cost_setup.h"

#include "base/text.h"
#include "cli/job_options.h"
#include "pipesched/calibration.h"

static bool gives_all_times(const ps_model *model)
{
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        if (model->layer[layer].forward_ns < 0)
            return false;
    return true;
}

static ps_code only_value(const ps_int_set *set, const char *option, int32_t otherwise, int32_t *value,
                          ps_status *status)
{
    *value = set->count > 0 ? set->value[0] : otherwise;
    if (set->count <= 1)
        return PS_OK;
    ps_fail(status, PS_USAGE, "one-value", "one layout is priced here, got %d values", (int)set->count);
    return ps_fail_at(status, option, 0, 0, NULL);
}

static ps_code set_layout(const ps_job *job, ps_layout *layout, ps_status *status)
{
    int32_t recompute;
    *layout = (ps_layout){.dp = 1, .pp = 1, .vp = 1, .num_microbatches = 1, .zero = job->zero};
    PS_TRY(only_value(&job->tp, "--tp", 1, &layout->tp, status));
    PS_TRY(only_value(&job->cp, "--cp", 1, &layout->cp, status));
    PS_TRY(only_value(&job->ep, "--ep", 1, &layout->ep, status));
    PS_TRY(only_value(&job->etp, "--etp", 0, &layout->etp, status));
    PS_TRY(only_value(&job->micro_batch_size, "--micro-batch-size", 1, &layout->micro_batch_size, status));
    PS_TRY(only_value(&job->recompute, "--recompute", PS_RECOMPUTE_NONE, &recompute, status));
    layout->recompute = (ps_recompute)recompute;
    return PS_OK;
}

// bf16 is the default only where the GPU has it.
static void choose_precision(const ps_run *run, const ps_gpu *gpu, ps_job *job)
{
    if (job->precision_given || gpu->peak_flops[PS_PRECISION_BF16].value > 0 ||
        !(gpu->peak_flops[PS_PRECISION_FP16].value > 0))
        return;
    job->precision = PS_PRECISION_FP16;
    ps_run_note(run, ps_text_format(run->arena, "%s has no bf16: priced in fp16", gpu->name));
}

static ps_code set_up(ps_run *run, const ps_model *model, ps_cost_setup *out, ps_status *status)
{
    PS_TRY(ps_job_from_options(run, NULL, &out->job, status));
    if (out->job.seq_length == 0 && !gives_all_times(model)) {
        ps_fail(status, PS_USAGE, "missing-option", "%s gives no times, so --seq-length is needed to predict them",
                model->name);
        return ps_fail_hint(status, "add --seq-length 4096, and --micro-batch-size if it is not 1");
    }
    if (out->job.seq_length == 0)
        out->job.seq_length = 1; // nothing depends on it
    choose_precision(run, &out->group.gpu, &out->job);
    return set_layout(&out->job, &out->layout, status);
}

ps_code ps_cost_setup_cluster(ps_run *run, const ps_model *model, const ps_cluster *cluster, ps_cost_setup *out,
                              ps_status *status)
{
    *out = (ps_cost_setup){.group = cluster->group[0]};
    return set_up(run, model, out, status);
}

ps_code ps_cost_setup_gpu(ps_run *run, const ps_model *model, const char *gpu, ps_cost_setup *out, ps_status *status)
{
    if (gpu) {
        ps_cluster cluster;
        const ps_cluster_options none = {0};
        ps_gpu known;
        PS_TRY(ps_catalog_gpu(run->arena, gpu, &known, status)); // before the name is part of a longer one
        PS_TRY(ps_cluster_load(run->arena, ps_text_format(run->arena, "1x8x%s", gpu), &none, &cluster, status));
        return ps_cost_setup_cluster(run, model, &cluster, out, status);
    }
    if (!gives_all_times(model)) {
        ps_fail(status, PS_USAGE, "missing-option", "%s gives no times, so --gpu is needed to predict them",
                model->name);
        return ps_fail_hint(status, "add --gpu H100-SXM5-80GB; pipesched show --list has the names");
    }
    *out = (ps_cost_setup){.group = {.name = "any", .gpu = {.name = "any", .fabric = "none"}, .gpus_per_node = 1}};
    return set_up(run, model, out, status);
}

ps_code ps_cost_setup_calibrate(ps_run *run, const char *path, ps_model *model, ps_cost_setup *setup, ps_status *status)
{
    ps_calibration *calibration = ps_new(run->arena, ps_calibration, 1);
    PS_TRY(ps_calibration_load(run->arena, path, calibration, status));
    PS_TRY(ps_calibration_check(calibration, &setup->group.gpu, setup->job.precision, NULL, status));
    setup->job.calibration = calibration;
    return ps_calibration_join(run->arena, calibration, &setup->group, model, status);
}
