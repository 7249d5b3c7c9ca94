// SPDX-License-Identifier: Apache-2.0
//
// coverage.c: one row an effect. A new term of the model gets a row, or falls under one that is there.
#include "pipesched/coverage.h"

#define TIME(what, covered, name)                                                                                      \
    {                                                                                                                  \
        .aspect = "time", .effect = (what), .cover = (covered), .by = (name)                                           \
    }
#define MEMORY(what, covered, name)                                                                                    \
    {                                                                                                                  \
        .aspect = "memory", .effect = (what), .cover = (covered), .by = (name)                                         \
    }

static const ps_cost_effect effects[] = {
    TIME("matrix products, bytes and kernels", PS_COVER_TERM, "QKV: "),
    TIME("idle multiprocessors by matrix shape", PS_COVER_TERM, "QKV: "),
    TIME("core attention", PS_COVER_TERM, "core attention: "),
    TIME("scores of unfused attention", PS_COVER_TERM, "core attention, softmax: "),
    TIME("random numbers of dropout", PS_COVER_TERM, "random numbers of dropout: "),
    TIME("norms", PS_COVER_TERM, "norms: "),
    TIME("residuals and dropout", PS_COVER_TERM, "residuals: "),
    TIME("rotary positions", PS_COVER_TERM, "rotary positions: "),
    TIME("activation functions", PS_COVER_TERM, "activation: "),
    TIME("keys and values repeated for heads", PS_COVER_TERM, "keys and values repeated: "),
    TIME("routing to experts", PS_COVER_TERM, "router softmax and top-k: "),
    TIME("sorting of tokens by expert", PS_COVER_TERM, "permute and unpermute: "),
    TIME("casts to 8 or 4 bits", PS_COVER_TERM, "casts to 8 or 4 bits: "),
    TIME("gather and scatter of the embedding", PS_COVER_TERM, "scatter-add: "),
    TIME("logits", PS_COVER_TERM, "logits: "),
    TIME("cross-entropy", PS_COVER_TERM, "cross-entropy: "),
    TIME("scan of a state space", PS_COVER_TERM, "scan: "),
    TIME("adapters (LoRA)", PS_COVER_TERM, "LoRA adapter: "),
    TIME("what is recomputed, exchanges too", PS_COVER_TERM, "QKV: "),
    TIME("tensor parallel exchanges not hidden", PS_COVER_TERM, "tensor parallel: "),
    TIME("context parallel exchanges not hidden", PS_COVER_TERM, "ring attention: "),
    TIME("joining blocks of attention", PS_COVER_TERM, "joining blocks of attention: "),
    TIME("expert parallel exchanges not hidden", PS_COVER_TERM, "expert parallel: "),
    TIME("ZeRO-3 gathers and scatters not hidden", PS_COVER_TERM, "ZeRO-3: gather"),
    TIME("kernels the host launches too slowly", PS_COVER_TERM, "launch bound: "),
    TIME("idle time of the pipeline", PS_COVER_PLAN, "idle_ms"),
    TIME("transfers between stages", PS_COVER_PLAN, "transfer_ms"),
    TIME("gradients among replicas", PS_COVER_PLAN, "grad_sync_exposed_ms"),
    TIME("gradients of tied embeddings", PS_COVER_PLAN, "tied_sync_ms"),
    TIME("agreement on the gradient norm", PS_COVER_PLAN, "barrier_ms"),
    TIME("optimizer step", PS_COVER_PLAN, "optimizer_ms"),
    TIME("gathering of stepped parameters", PS_COVER_PLAN, "param_gather_exposed_ms"),
    TIME("copies of activations to the host", PS_COVER_OPTION, "offload-activations"),
    TIME("documents packed into a sequence", PS_COVER_OPTION, "packed-length"),
    TIME("busiest expert of uneven routing", PS_COVER_OPTION, "expert-imbalance"),
    TIME("work of the framework for each op", PS_COVER_OPTION, "op-overhead"),
    TIME("waiting for sends", PS_COVER_OPTION, "p2p-wait"),
    TIME("operations that are not fused", PS_COVER_OPTION, "kernels"),
    TIME("random variation", PS_COVER_OPTION, "jitter"),
    TIME("loading of data", PS_COVER_NONE, "taken to be read ahead"),
    TIME("checkpoints, evaluation, logging", PS_COVER_NONE, "happen beside the iteration that is priced"),
    TIME("start-up, compilation, first iterations", PS_COVER_NONE, "an iteration behind the warm-up is priced"),
    TIME("interpreter beyond kernel launches", PS_COVER_NONE, "depends on the framework; see --op-overhead"),
    TIME("collectives slowing down compute", PS_COVER_NONE, "overlap takes no cores and no memory bandwidth here"),
    TIME("transfers that meet on a link", PS_COVER_NONE, "each has the rate it reaches alone; NICs are shared evenly"),
    TIME("other jobs on the network", PS_COVER_NONE, "not known to a planner"),
    TIME("slow GPUs", PS_COVER_NONE, "all GPUs of a group are alike; simulate --straggler shows the effect of one"),
    TIME("clocks that power or heat lowers", PS_COVER_NONE,
         "only as far as the catalog's efficiencies were reached so"),
    TIME("scales of 8-bit tensors among ranks", PS_COVER_NONE, "small all-reduces, left out"),
    TIME("norm and clipping of gradients", PS_COVER_NONE, "gradients are not read once more for it"),
    TIME("balancing loss of experts", PS_COVER_NONE, "small beside the router, left out"),
    MEMORY("parameters", PS_COVER_TERM, "w*P"),
    MEMORY("gradients", PS_COVER_TERM, "gradient bytes*P"),
    MEMORY("optimizer state", PS_COVER_TERM, "(32-bit copy + moments)*P"),
    MEMORY("weights held twice when tied", PS_COVER_TERM, "elements shared with another layer: "),
    MEMORY("inputs and outputs of norms", PS_COVER_TERM, "inputs of norms: "),
    MEMORY("queries, keys, values and outputs", PS_COVER_TERM, "Q, K, V and attention output: "),
    MEMORY("scores of unfused attention", PS_COVER_TERM, "scores: "),
    MEMORY("inputs of FFN and activation", PS_COVER_TERM, "FFN input of the activation: "),
    MEMORY("tokens and outputs of experts", PS_COVER_TERM, "permuted tokens: "),
    MEMORY("dropout masks", PS_COVER_TERM, "dropout masks: "),
    MEMORY("logits", PS_COVER_TERM, "logits or their gradient: "),
    MEMORY("what waits for its weight gradient", PS_COVER_TERM, "FFN matrices, inputs and output gradients: "),
    MEMORY("loss while it runs", PS_COVER_TERM, "cross-entropy: "),
    MEMORY("gradients inside a layer", PS_COVER_TERM, "FFN gradients: "),
    MEMORY("one weight gradient before it is added", PS_COVER_TERM, "gradient of the FFN's first matrix: "),
    MEMORY("gathered input of tensor parallelism", PS_COVER_TERM, "gathered input: "),
    MEMORY("buffers of context parallelism", PS_COVER_TERM, "ring attention, two buffers"),
    MEMORY("ZeRO-3: gathered layers", PS_COVER_TERM, "ZeRO-3: this layer and the next"),
    MEMORY("activations of micro-batches in flight", PS_COVER_PLAN, "activations_peak"),
    MEMORY("workspaces, small buffers", PS_COVER_OPTION, "memory-framework"),
    MEMORY("what the allocator loses", PS_COVER_OPTION, "memory-fragmentation"),
    MEMORY("CUDA context, communicators", PS_COVER_OPTION, "memory-reserve"),
    MEMORY("busiest expert of uneven routing", PS_COVER_OPTION, "expert-imbalance"),
    MEMORY("NCCL channels beyond the reserve", PS_COVER_NONE, "grow with communicators, which are not counted"),
    MEMORY("buffers of pipeline transfers", PS_COVER_NONE, "two tensors between stages, within the reserve"),
    MEMORY("copies of weights in 8 or 4 bits", PS_COVER_NONE, "a weight takes 2 bytes, and nothing more"),
    MEMORY("bucket padding, unevenness of shards", PS_COVER_NONE, "shards are exact shares"),
    MEMORY("activations in host memory", PS_COVER_OPTION, "offload-activations"),
    MEMORY("host memory, page-locked buffers", PS_COVER_NONE, "host memory has no limit here"),
};

const ps_cost_effect *ps_cost_effects(int32_t *count)
{
    *count = (int32_t)(sizeof effects / sizeof *effects);
    return effects;
}

const char *ps_cover_name(ps_cover cover)
{
    static const char *const name[] = {"term", "plan", "option", "none"};
    return name[cover];
}
