// SPDX-License-Identifier: Apache-2.0
//
// layout_rules.c: what makes a layout impossible on a model and a GPU, each with the nearest that works.
#include <stdio.h>

#include "cost/rank_view.h"

// Query heads are split evenly; KV heads are split evenly or each is replicated evenly.
static bool heads_fit(const ps_block *block, int64_t tp)
{
    int64_t kv_heads = block->kv_heads > 0 ? block->kv_heads : block->attention_heads;
    return block->attention_heads % tp == 0 && (kv_heads % tp == 0 || tp % kv_heads == 0);
}

static bool ffn_fits(const ps_block *block, int64_t tp)
{
    return block->ffn_size % tp == 0 && block->expert_ffn_size % tp == 0;
}

// The closest tp that fits in every way, the smaller of two at the same distance; 1 always does.
static int64_t nearest_tp(const ps_block *block, int64_t tp)
{
    for (int64_t distance = 1; distance < tp; distance++) {
        if (heads_fit(block, tp - distance) && ffn_fits(block, tp - distance))
            return tp - distance;
        if (heads_fit(block, tp + distance) && ffn_fits(block, tp + distance))
            return tp + distance;
    }
    return 1;
}

static ps_code check_block(const ps_layer *layer, int64_t tp, ps_status *status)
{
    const ps_block *block = layer->block;

    if (!heads_fit(block, tp)) {
        ps_fail(status, PS_ILLEGAL, "tp-heads",
                "layer %s: tensor parallelism %lld does not divide %lld attention heads (%lld KV heads)", layer->name,
                (long long)tp, (long long)block->attention_heads, (long long)block->kv_heads);
        return ps_fail_hint(status, "use --tp %lld", (long long)nearest_tp(block, tp));
    }
    if (!ffn_fits(block, tp)) {
        int64_t size = block->ffn_size % tp != 0 ? block->ffn_size : block->expert_ffn_size;
        ps_fail(status, PS_ILLEGAL, "tp-ffn", "layer %s: tensor parallelism %lld does not divide the FFN size %lld",
                layer->name, (long long)tp, (long long)size);
        return ps_fail_hint(status, "use --tp %lld", (long long)nearest_tp(block, tp));
    }
    return PS_OK;
}

static ps_code check_given_times(const ps_layer *layer, const ps_layout *layout, ps_status *status)
{
    if (layer->forward_ns < 0 || layer->block)
        return PS_OK;
    if (layout->tp != 1) {
        ps_fail(status, PS_ILLEGAL, "times-with-tp",
                "layer %s gives its times for one GPU; they say nothing about tensor parallelism %d", layer->name,
                (int)layout->tp);
        return ps_fail_hint(status, "use --tp 1, give the layer's architecture, or give measurements with \"tp\": %d",
                            (int)layout->tp);
    }
    if (layout->micro_batch_size != 1) {
        ps_fail(status, PS_ILLEGAL, "times-with-micro-batch",
                "layer %s gives its times for one micro-batch; they say nothing about micro-batches of %d sequences",
                layer->name, (int)layout->micro_batch_size);
        return ps_fail_hint(status, "use --micro-batch-size 1, or give the layer's architecture");
    }
    return PS_OK;
}

ps_code ps_rank_view_check_gpu(const ps_rank_view *view, ps_status *status)
{
    const ps_gpu *gpu = &view->group->gpu;
    ps_precision precision = view->job->precision;
    char has[128] = "";
    size_t size = 0;

    if (gpu->peak_flops[precision].value > 0) {
        if (gpu->memory_bytes_per_s.value > 0)
            return PS_OK;
        ps_fail(status, PS_ILLEGAL, "gpu-figure-missing", "the memory bandwidth of %s is not known", gpu->name);
        return ps_fail_hint(status, "give \"memory_bandwidth\" in the cluster's \"gpu\"");
    }
    ps_precision first = PS_PRECISIONS;
    for (int32_t other = 0; other < PS_PRECISIONS; other++) {
        if (gpu->peak_flops[other].value <= 0)
            continue;
        if (first == PS_PRECISIONS)
            first = (ps_precision)other;
        size += (size_t)snprintf(has + size, sizeof has - size, "%s%s", size ? ", " : "",
                                 ps_precision_name((ps_precision)other));
    }
    ps_fail(status, PS_ILLEGAL, "precision-unsupported", "%s does not compute in %s; it has %s", gpu->name,
            ps_precision_name(precision), size ? has : "no known format");
    return size ? ps_fail_hint(status, "use --precision %s", ps_precision_name(first)) : status->code;
}

ps_code ps_rank_view_check(const ps_rank_view *view, const ps_model *model, ps_status *status)
{
    const ps_layout *layout = view->layout;

    if (layout->cp != 1)
        return ps_fail(status, PS_ILLEGAL, "unsupported-cp", "context parallelism %d is not modelled yet, only 1",
                       (int)layout->cp);
    if (layout->ep != 1)
        return ps_fail(status, PS_ILLEGAL, "unsupported-ep", "expert parallelism %d is not modelled yet, only 1",
                       (int)layout->ep);
    const ps_block *checked = NULL;
    for (int32_t i = 0; i < model->num_layers; i++) {
        const ps_layer *layer = &model->layer[i];
        PS_TRY(check_given_times(layer, layout, status));
        if (layer->class_ == PS_LAYER_DECODER && layer->block && layer->block != checked) {
            PS_TRY(check_block(layer, layout->tp, status));
            checked = layer->block;
        }
    }
    return PS_OK;
}
