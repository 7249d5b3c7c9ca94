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
#define ROW_PRECISION                                                                                                  \
    JOB("precision", "NAME", "bf16",                                                                                   \
        "bf16, fp16, fp32, fp8, mxfp8 or nvfp4; the last three of GEMMs in blocks, the rest in bf16")
#define ROW_OPTIMIZER JOB("optimizer", "NAME", "adam", "adam, adamw or sgd")
#define ROW_ZERO                                                                                                       \
    JOB("zero", "N", "1",                                                                                              \
        "what the data parallel ranks share out: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too")
#define ROW_GRAD_DTYPE JOB("grad-dtype", "NAME", "fp32", "gradients: fp32 or bf16")
#define ROW_OPTIMIZER_DTYPE JOB("optimizer-dtype", "NAME", "fp32", "moments of the optimizer: fp32 or bf16")
#define ROW_RECOMPUTE JOB("recompute", "LIST", "auto", "activations recomputed in the backward: none, selective, full")
#define ROW_ATTENTION JOB("attention", "NAME", "flash", "flash or unfused")
#define ROW_REPEAT_KV                                                                                                  \
    JOB("repeat-kv", "on|off", "off", "keys and values are copied for every query head before attention")
#define ROW_KERNELS                                                                                                    \
    JOB("kernels", "NAME", "fused",                                                                                    \
        "norms, rotary positions and activations in one kernel each, or eager: operation by operation, norms and "     \
        "positions in 32 bits")
#define ROW_SEQUENCE_PARALLEL                                                                                          \
    JOB("sequence-parallel", "on|off", "on", "shard activations between tensor parallel regions")
#define ROW_OVERLAP_TP JOB("overlap-tp", "on|off", "on", "hide part of tensor parallel communication behind GEMMs")
#define ROW_CP JOB("cp", "LIST", "auto", "context parallel ranks; auto is 1 so far")
#define ROW_EP JOB("ep", "LIST", "auto", "expert parallel ranks; auto tries all that divide the experts")
#define ROW_ETP JOB("etp", "LIST", "auto", "tensor parallel ranks of an expert; auto is as many as of the rest")
#define ROW_CP_METHOD                                                                                                  \
    JOB("cp-method", "NAME", "ring",                                                                                   \
        "keys and values travel in a ring, all-to-all divides the heads meanwhile, or all-gather fetches all of them")
#define ROW_EP_DISPATCH                                                                                                \
    JOB("ep-dispatch", "NAME", "all-to-all",                                                                           \
        "a copy of a token for each chosen expert, or dedup: one for each rank and node that holds some")
#define ROW_OVERLAP_EP                                                                                                 \
    JOB("overlap-ep", "on|off", "off", "hide half of expert exchanges behind the compute of another micro-batch")
#define ROW_MOE_PARALLEL                                                                                               \
    JOB("moe-parallel", "NAME", "expert", "expert parallel ranks divide experts, or head: the heads of the latent")
#define ROW_EXPERT_CAPACITY                                                                                            \
    JOB("expert-capacity", "N", "0", "tokens that an expert takes, by the mean; 0: all that come")
#define ROW_EXPERT_IMBALANCE                                                                                           \
    JOB("expert-imbalance", "N", "1", "tokens of the busiest expert parallel rank, by the mean")
#define ROW_RECOMPUTE_PARTS                                                                                                         \
    JOB("recompute-parts", "LIST", "core-attention",                                                                                \
        "what selective recomputes: core-attention, norm, activation, mla-up, moe, attention, ffn, or ops: all but core attention " \
        "and every other matrix product")
#define ROW_LOSS JOB("loss", "NAME", "fused", "cross-entropy in one kernel, or plain: in several on 32-bit logits")
#define ROW_CUDA_GRAPHS JOB("cuda-graphs", "on|off", "off", "kernels of a layer are launched as one captured graph")
#define ROW_LORA_RANK JOB("lora-rank", "N", "0", "above 0: weights are frozen, adapters of this rank are trained")
#define ROW_PACKED_LENGTH                                                                                                \
    JOB("packed-length", "N", "0",                                                                                       \
        "tokens of the documents packed into a sequence, which see only themselves; of unequal ones the sum of squares " \
        "by the sum")
#define ROW_OFFLOAD_ACTIVATIONS                                                                                        \
    JOB("offload-activations", "SHARE", "0",                                                                           \
        "of what layers hold for the backward, what waits in host memory; PCIe takes it there and back beside the passes")
#define ROW_OFFLOAD_OPTIMIZER                                                                                          \
    JOB("offload-optimizer", "on|off", "off", "optimizer state lives in host memory and is stepped there")
#define ROW_EXTRAPOLATE JOB("extrapolate", "on|off", "off", "use measurements beyond their sizes")

static const ps_option all[] = {
    JOB("global-batch-size", "N", NULL, "sequences in an iteration; required"),
    JOB("seq-length", "N", NULL, "tokens in a sequence; required"),
    ROW_MICRO_BATCH_SIZE,
    ROW_TP,
    JOB("pp", "LIST", "auto", "pipeline ranks"),
    JOB("vp", "LIST", "auto", "virtual stages a pipeline rank"),
    JOB("dp", "LIST", "auto", "data parallel replicas"),
    ROW_CP,
    ROW_EP,
    ROW_ETP,
    ROW_CP_METHOD,
    ROW_EP_DISPATCH,
    ROW_OVERLAP_EP,
    ROW_MOE_PARALLEL,
    ROW_EXPERT_CAPACITY,
    ROW_EXPERT_IMBALANCE,
    ROW_PRECISION,
    ROW_OPTIMIZER,
    ROW_ZERO,
    ROW_GRAD_DTYPE,
    ROW_OPTIMIZER_DTYPE,
    ROW_RECOMPUTE,
    ROW_RECOMPUTE_PARTS,
    ROW_ATTENTION,
    ROW_REPEAT_KV,
    ROW_KERNELS,
    ROW_SEQUENCE_PARALLEL,
    ROW_LOSS,
    ROW_CUDA_GRAPHS,
    ROW_LORA_RANK,
    ROW_PACKED_LENGTH,
    ROW_OFFLOAD_ACTIVATIONS,
    ROW_OFFLOAD_OPTIMIZER,
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
    JOB("memory-framework", "SIZE", "300MiB", "allocated beside the model on every GPU: workspaces, small buffers"),
    JOB("memory-fragmentation", "SHARE", "5%",
        "what the allocator reserves beyond what is allocated, as a share of that"),
    JOB("memory-limit", "SIZE", NULL, "of one GPU, instead of its usable memory"),
    JOB("op-overhead", "TIME", "0", "added to every op"),
    JOB("p2p-wait", "TIME", "250us", "added to every op that sends, with --overlap-p2p off"),
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
    ROW_SEQ_LENGTH,
    ROW_MICRO_BATCH_SIZE,
    ROW_TP,
    ROW_PRECISION,
    ROW_OPTIMIZER,
    ROW_ZERO,
    ROW_GRAD_DTYPE,
    ROW_OPTIMIZER_DTYPE,
    ROW_RECOMPUTE,
    ROW_RECOMPUTE_PARTS,
    ROW_ATTENTION,
    ROW_REPEAT_KV,
    ROW_KERNELS,
    ROW_SEQUENCE_PARALLEL,
    ROW_OVERLAP_TP,
    ROW_CP,
    ROW_EP,
    ROW_ETP,
    ROW_CP_METHOD,
    ROW_EP_DISPATCH,
    ROW_OVERLAP_EP,
    ROW_MOE_PARALLEL,
    ROW_EXPERT_CAPACITY,
    ROW_EXPERT_IMBALANCE,
    ROW_LOSS,
    ROW_CUDA_GRAPHS,
    ROW_LORA_RANK,
    ROW_PACKED_LENGTH,
    ROW_OFFLOAD_ACTIVATIONS,
    ROW_OFFLOAD_OPTIMIZER,
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
