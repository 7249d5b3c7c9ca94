// SPDX-License-Identifier: Apache-2.0
//
// layout_rules.c: what makes a layout impossible on a model and a GPU, each with the nearest that works.
#include <stdio.h>

#include "cost/rank_view.h"

// Query heads are split evenly; KV heads are split evenly or each is replicated evenly.
static bool heads_fit(const ps_block *block, int64_t tp)
{
    if (block->attention_heads == 0)
        return true;
    int64_t kv_heads = block->kv_heads > 0 ? block->kv_heads : block->attention_heads;
    return block->attention_heads % tp == 0 && (kv_heads % tp == 0 || tp % kv_heads == 0);
}

static bool ffn_fits(const ps_block *block, int64_t tp)
{
    return block->ffn_size % tp == 0 && block->shared_ffn_size % tp == 0;
}

static bool mamba_fits(const ps_block *block, int64_t tp)
{
    return block->mamba_heads % tp == 0 && (block->state_groups % tp == 0 || block->state_groups == 1);
}

// The closest tp that fits in every way, the smaller of two at the same distance; 1 always does.
static int64_t nearest_tp(const ps_block *block, int64_t tp)
{
    for (int64_t distance = 1; distance < tp; distance++)
        for (int64_t near = tp - distance; near <= tp + distance; near += 2 * distance)
            if (heads_fit(block, near) && ffn_fits(block, near) && mamba_fits(block, near))
                return near;
    return 1;
}

static ps_code refuse_tp(const ps_layer *layer, const char *rule, const char *what, int64_t size, int64_t tp,
                         ps_status *status)
{
    ps_fail(status, PS_ILLEGAL, rule, "layer %s: tensor parallelism %lld does not divide %s %lld", layer->name,
            (long long)tp, what, (long long)size);
    return ps_fail_hint(status, "use --tp %lld", (long long)nearest_tp(layer->block, tp));
}

static ps_code check_tp(const ps_layer *layer, int64_t tp, ps_status *status)
{
    const ps_block *block = layer->block;

    if (!heads_fit(block, tp)) {
        ps_fail(status, PS_ILLEGAL, "tp-heads",
                "layer %s: tensor parallelism %lld does not divide %lld attention heads (%lld KV heads)", layer->name,
                (long long)tp, (long long)block->attention_heads, (long long)block->kv_heads);
        return ps_fail_hint(status, "use --tp %lld", (long long)nearest_tp(block, tp));
    }
    if (block->ffn_size % tp != 0)
        return refuse_tp(layer, "tp-ffn", "the FFN size", block->ffn_size, tp, status);
    if (block->shared_ffn_size % tp != 0)
        return refuse_tp(layer, "tp-ffn", "the FFN size of the shared experts", block->shared_ffn_size, tp, status);
    if (!mamba_fits(block, tp))
        return refuse_tp(layer, "tp-mamba-heads", "the Mamba heads (or the groups of their states)", block->mamba_heads,
                         tp, status);
    return PS_OK;
}

static int64_t largest_divisor_below(int64_t number, int64_t limit)
{
    int64_t divisor = limit < number ? limit : number;
    while (divisor > 1 && number % divisor != 0)
        divisor--;
    return divisor > 0 ? divisor : 1;
}

// Experts are divided whole, and each over ranks of its own.
static ps_code check_experts(const ps_layer *layer, const ps_layout *layout, ps_status *status)
{
    const ps_block *block = layer->block;
    int64_t etp = ps_rank_etp(layout);

    if (block->experts == 0)
        return PS_OK;
    if (block->experts % layout->ep != 0) {
        ps_fail(status, PS_ILLEGAL, "ep-experts", "layer %s: expert parallelism %d does not divide %lld experts",
                layer->name, (int)layout->ep, (long long)block->experts);
        return ps_fail_hint(status, "use --ep %lld", (long long)largest_divisor_below(block->experts, layout->ep));
    }
    if (block->expert_ffn_size % etp != 0) {
        ps_fail(status, PS_ILLEGAL, "etp-ffn",
                "layer %s: %lld tensor parallel ranks of an expert do not divide its FFN size %lld", layer->name,
                (long long)etp, (long long)block->expert_ffn_size);
        return ps_fail_hint(status, "use --etp %lld", (long long)largest_divisor_below(block->expert_ffn_size, etp));
    }
    return PS_OK;
}

// While attention runs, all-to-all divides the heads that tensor parallelism has left.
static ps_code check_cp_heads(const ps_rank_view *view, const ps_layer *layer, ps_status *status)
{
    const ps_block *block = layer->block;
    int64_t cp = view->layout->cp;
    int64_t heads = block->attention_heads / view->layout->tp;

    if (cp == 1 || view->job->cp_method != PS_CP_ALL_TO_ALL || heads % cp == 0)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "cp-heads",
            "layer %s: context parallelism %lld by all-to-all does not divide the %lld attention heads of a rank",
            layer->name, (long long)cp, (long long)heads);
    return ps_fail_hint(status, "use --cp %lld or --cp-method ring", (long long)largest_divisor_below(heads, cp));
}

// A causal sequence is cut into 2c parts, of which a rank takes an early and a late one, so that all do equal work.
static ps_code check_cp_sequence(const ps_rank_view *view, ps_status *status)
{
    int64_t cp = view->layout->cp;
    int64_t tokens = view->job->seq_length;

    if (cp == 1 || tokens % (2 * cp) == 0)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "cp-sequence",
            "context parallelism %lld cuts a sequence into %lld parts, which do not divide its %lld tokens",
            (long long)cp, (long long)(2 * cp), (long long)tokens);
    return ps_fail_hint(status, "use --cp %lld, or a --seq-length that is a multiple of %lld",
                        (long long)(tokens % 2 == 0 ? largest_divisor_below(tokens / 2, cp) : 1), (long long)(2 * cp));
}

static ps_code check_block(const ps_rank_view *view, const ps_layer *layer, ps_status *status)
{
    PS_TRY(check_tp(layer, view->layout->tp, status));
    PS_TRY(check_experts(layer, view->layout, status));
    return check_cp_heads(view, layer, status);
}

static bool has_parts(const ps_layer *layer)
{
    return layer->block &&
           (layer->class_ == PS_LAYER_DECODER || layer->class_ == PS_LAYER_MAMBA || layer->class_ == PS_LAYER_MTP);
}

static ps_code check_given_times(const ps_layer *layer, const ps_layout *layout, ps_status *status)
{
    if (layer->forward_ns < 0 || layer->block)
        return PS_OK;
    if (layout->cp != 1 || layout->ep != 1) {
        ps_fail(status, PS_ILLEGAL, "times-with-ranks",
                "layer %s gives its times for one GPU; they say nothing about context parallelism %d or expert "
                "parallelism %d",
                layer->name, (int)layout->cp, (int)layout->ep);
        return ps_fail_hint(status, "use --cp 1 --ep 1, or give the layer's architecture");
    }
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
    const ps_block *checked = NULL;

    PS_TRY(check_cp_sequence(view, status));
    for (int32_t i = 0; i < model->num_layers; i++) {
        const ps_layer *layer = &model->layer[i];
        PS_TRY(check_given_times(layer, view->layout, status));
        if (has_parts(layer) && layer->block != checked) {
            PS_TRY(check_block(view, layer, status));
            checked = layer->block;
        }
    }
    return PS_OK;
}
