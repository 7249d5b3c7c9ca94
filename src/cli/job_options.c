// SPDX-License-Identifier: Apache-2.0
//
// job_options.c: the job options as rows of the command line; ps_job_set() reads their values. The defaults shown are
// those of ps_job_init(), which a test compares.
#include "cli/job_options.h"

#include <stdio.h>
#include <string.h>

#define JOB(option, values, otherwise, text)                                                                           \
    {                                                                                                                  \
        .name = (option), .type = PS_OPTION_JOB, .metavar = (values), .default_text = (otherwise), .help = (text)      \
    }

// Shared by the two tables below.
#define ROW_SEQ_LENGTH JOB("seq-length", "N", NULL, "tokens in a sequence")
#define ROW_MICRO_BATCH_SIZE JOB("micro-batch-size", "LIST", "auto", "sequences in a micro-batch")
#define ROW_TP JOB("tp", "LIST", "auto", "tensor parallel ranks")
#define ROW_PRECISION JOB("precision", "NAME", "bf16", "bf16, fp16 or fp32")
#define ROW_OPTIMIZER JOB("optimizer", "NAME", "adam", "adam, adamw or sgd")
#define ROW_ZERO                                                                                                       \
    JOB("zero", "N", "1",                                                                                              \
        "what the data parallel ranks share out: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too")
#define ROW_GRAD_DTYPE JOB("grad-dtype", "NAME", "fp32", "gradients: fp32 or bf16")
#define ROW_OPTIMIZER_DTYPE JOB("optimizer-dtype", "NAME", "fp32", "moments of the optimizer: fp32 or bf16")
#define ROW_RECOMPUTE JOB("recompute", "LIST", "auto", "activations recomputed in the backward: none, full")
#define ROW_ATTENTION JOB("attention", "NAME", "flash", "flash or unfused")
#define ROW_SEQUENCE_PARALLEL                                                                                          \
    JOB("sequence-parallel", "on|off", "on", "shard activations between tensor parallel regions")
#define ROW_OVERLAP_TP JOB("overlap-tp", "on|off", "on", "hide part of tensor parallel communication behind GEMMs")
#define ROW_EXTRAPOLATE JOB("extrapolate", "on|off", "off", "use measurements beyond their sizes")

static const ps_option all[] = {
    JOB("global-batch-size", "N", NULL, "sequences in an iteration; required"),
    JOB("seq-length", "N", NULL, "tokens in a sequence; required"),
    ROW_MICRO_BATCH_SIZE,
    ROW_TP,
    JOB("pp", "LIST", "auto", "pipeline ranks"),
    JOB("vp", "LIST", "auto", "virtual stages a pipeline rank"),
    JOB("dp", "LIST", "auto", "data parallel replicas"),
    JOB("cp", "LIST", "auto", "context parallel ranks; only 1 so far"),
    JOB("ep", "LIST", "auto", "expert parallel ranks; only 1 so far"),
    JOB("etp", "LIST", "auto", "tensor parallel ranks of experts; only 1 so far"),
    ROW_PRECISION,
    ROW_OPTIMIZER,
    ROW_ZERO,
    ROW_GRAD_DTYPE,
    ROW_OPTIMIZER_DTYPE,
    ROW_RECOMPUTE,
    ROW_ATTENTION,
    ROW_SEQUENCE_PARALLEL,
    JOB("overlap-grad-sync", "on|off", "on", "hide the reduction of gradients behind the backward"),
    ROW_OVERLAP_TP,
    JOB("overlap-p2p", "on|off", "on",
        "ranks compute while stages send; off: an op ends when its output has been sent"),
    JOB("schedule", "LIST", "auto",
        "gpipe, 1f1b, interleaved, zb-h1, zb-h2, looped-bfs, interleaved-zb, zb-v, v-half, v-min, dualpipev, dualpipe, "
        "gpipe-recompute, or zb, the best order of F, I and W that a search finds within memory; auto tries them all"),
    JOB("optimizer-barrier", "on|off", "on",
        "all ranks wait before the optimizer; off: post-validation, the span counts"),
    JOB("target", "NAME", "any", "framework that must be able to launch the plan; only any so far"),
    JOB("objective", "NAME", "time", "what is best; only time so far"),
    JOB("memory-reserve", "SIZE", "2GiB", "kept free on every GPU"),
    JOB("memory-limit", "SIZE", NULL, "of one GPU, instead of its usable memory"),
    JOB("op-overhead", "TIME", "0", "added to every op"),
    JOB("jitter", "SHARE", "0",
        "rank the best plans by their p95 with every op and transfer up to this much shorter or longer at random, as in "
        "5% or 0.05"),
    JOB("jitter-samples", "N", "200", "runs of each plan with --jitter"),
    ROW_EXTRAPOLATE,
    JOB("rank-order", "ORDER", "tp-cp-ep-dp-pp", "from the innermost rank; only this one so far"),
    JOB("effort", "N", "1", "cuts and orders tried a layout"),
    JOB("threads", "N", NULL, "all cores unless given; the plan does not depend on it"),
};

static const ps_option for_cost[] = {
    ROW_SEQ_LENGTH,  ROW_MICRO_BATCH_SIZE, ROW_TP,        ROW_PRECISION, ROW_OPTIMIZER,         ROW_ZERO,
    ROW_GRAD_DTYPE,  ROW_OPTIMIZER_DTYPE,  ROW_RECOMPUTE, ROW_ATTENTION, ROW_SEQUENCE_PARALLEL, ROW_OVERLAP_TP,
    ROW_EXTRAPOLATE,
};

const ps_option_group ps_job_option_group = {"Job options (LIST is auto, or values separated by commas)", all,
                                             PS_OPTION_COUNT(all)};
const ps_option_group ps_job_cost_option_group = {"Cost options (for a model without times)", for_cost,
                                                  PS_OPTION_COUNT(for_cost)};

ps_code ps_job_from_options(const ps_run *run, const char *file, ps_job *job, ps_status *status)
{
    ps_job_init(job);
    if (file)
        PS_TRY(ps_job_load(run->arena, file, job, status));
    for (int32_t index = 0; index < run->parsed.num_job_settings; index++) {
        const ps_job_setting *setting = &run->parsed.job_setting[index];
        if (ps_job_set(job, setting->name, setting->value, status) == PS_OK)
            continue;
        status->code = PS_USAGE;
        if (strncmp(status->message, "--", 2) == 0)
            return PS_USAGE; // it names the option itself
        char name[64];
        snprintf(name, sizeof name, "--%s", setting->name);
        return ps_fail_at(status, name, 0, 0, NULL);
    }
    return PS_OK;
}
