// SPDX-License-Identifier: Apache-2.0
//
// gpu_json.c: figures with their sources. One table says which key of a GPU fills which field.
#include "cluster/gpu_json.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"

typedef struct gpu_key {
    const char *key;
    ps_figure_unit unit;
    size_t offset;
} gpu_key;

static const gpu_key gpu_keys[] = {
    {"memory_nominal", PS_FIGURE_BYTES, offsetof(ps_gpu, memory_nominal_bytes)},
    {"memory_usable", PS_FIGURE_BYTES, offsetof(ps_gpu, memory_usable_bytes)},
    {"memory_bandwidth", PS_FIGURE_RATE, offsetof(ps_gpu, memory_bytes_per_s)},
    {"fabric_bandwidth", PS_FIGURE_RATE, offsetof(ps_gpu, fabric_bytes_per_s)},
    {"pcie_bandwidth", PS_FIGURE_RATE, offsetof(ps_gpu, pcie_bytes_per_s)},
    {"multiprocessors", PS_FIGURE_NUMBER, offsetof(ps_gpu, multiprocessors)},
    {"power_watts", PS_FIGURE_NUMBER, offsetof(ps_gpu, power_watts)},
    {"usd_per_hour", PS_FIGURE_NUMBER, offsetof(ps_gpu, usd_per_hour)},
    {"gemm_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, gemm_efficiency)},
    {"fp8_gemm_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, fp8_gemm_efficiency)},
    {"fp4_gemm_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, fp4_gemm_efficiency)},
    {"grouped_gemm_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, grouped_gemm_efficiency)},
    {"batched_gemm_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, batched_gemm_efficiency)},
    {"attention_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, attention_efficiency)},
    {"attention_backward_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, attention_backward_efficiency)},
    {"memory_efficiency", PS_FIGURE_SHARE, offsetof(ps_gpu, memory_efficiency)},
    {"kernel_time", PS_FIGURE_SECONDS, offsetof(ps_gpu, kernel_seconds)},
};

static ps_code read_value(ps_json holder, const char *key, ps_figure_unit unit, double *out, ps_status *status)
{
    int64_t integer = 0;
    ps_json at = ps_json_member(holder, key);

    switch (unit) {
    case PS_FIGURE_BYTES:
        PS_TRY(ps_json_get_bytes(holder, key, PS_REQUIRED, &integer, status));
        if (integer == 0)
            return ps_json_fail(at, "out-of-range", status, "\"%s\" is 0, which no memory is", key);
        *out = (double)integer;
        return PS_OK;
    case PS_FIGURE_RATE:
        PS_TRY(ps_json_get_rate(holder, key, PS_REQUIRED, out, status));
        if (!(*out > 0) || *out > PS_MAX_RATE_BYTES_PER_S)
            return ps_json_fail(at, "out-of-range", status, "a rate above 0 and at most 1000TB/s is wanted");
        return PS_OK;
    case PS_FIGURE_SECONDS:
        PS_TRY(ps_json_get_ms(holder, key, PS_REQUIRED, PS_MAX_LAYER_NS, &integer, status));
        *out = (double)integer * 1e-9;
        return PS_OK;
    case PS_FIGURE_SHARE:
        PS_TRY(ps_json_get_double(holder, key, PS_REQUIRED, 0, 1, out, status));
        if (!(*out > 0))
            return ps_json_fail(at, "out-of-range", status, "a share above 0 and at most 1 is wanted");
        return PS_OK;
    case PS_FIGURE_NUMBER: return ps_json_get_double(holder, key, PS_REQUIRED, 0, 1e6, out, status);
    case PS_FIGURE_TERA:
        PS_TRY(ps_json_get_double(holder, key, PS_REQUIRED, 0, 1e6, out, status));
        *out *= 1e12;
        return PS_OK;
    }
    return PS_OK;
}

ps_code ps_figure_read(const ps_figure_context *context, ps_json object, const char *key, ps_figure_unit unit,
                       ps_figure *out, ps_status *status)
{
    static const char *const figure_keys[] = {"value", "source", NULL};
    ps_json member = ps_json_member(object, key);
    const char *source = context->source;
    double value = 0;

    if (!member.node)
        return PS_OK;
    if (ps_json_is(member, PS_JSON_OBJECT)) {
        PS_TRY(ps_json_check_keys(member, figure_keys, status));
        PS_TRY(ps_json_get_string(member, "source", PS_REQUIRED, &source, status));
        if (!source[0])
            return ps_json_fail(member, "empty-source", status, "\"%s\" has an empty source", key);
        PS_TRY(read_value(member, "value", unit, &value, status));
    } else {
        PS_TRY(read_value(object, key, unit, &value, status));
    }

    bool assumed = context->origin == PS_ORIGIN_LOOKED_UP && strncmp(source, "assumed", 7) == 0;
    out->value = value;
    out->origin = assumed ? PS_ORIGIN_ASSUMED : context->origin;
    out->source = ps_text_copy(context->arena, source);
    return PS_OK;
}

void ps_gpu_mark_unknown(ps_gpu *gpu)
{
    const ps_figure unknown = {0, PS_ORIGIN_ASSUMED, ""};

    for (size_t i = 0; i < sizeof gpu_keys / sizeof *gpu_keys; i++) {
        ps_figure *field = (ps_figure *)(void *)((char *)gpu + gpu_keys[i].offset);
        if (!field->source)
            *field = unknown;
    }
    for (int i = 0; i < PS_PRECISIONS; i++)
        if (!gpu->peak_flops[i].source)
            gpu->peak_flops[i] = unknown;
}

static ps_code read_peaks(const ps_figure_context *context, ps_json peaks, ps_gpu *gpu, ps_status *status)
{
    const char *names[PS_PRECISIONS + 1] = {NULL};

    if (!peaks.node)
        return PS_OK;
    PS_TRY(ps_json_expect(peaks, PS_JSON_OBJECT, status));
    for (int i = 0; i < PS_PRECISIONS; i++)
        names[i] = ps_precision_name((ps_precision)i);
    PS_TRY(ps_json_check_keys(peaks, names, status));
    for (int i = 0; i < PS_PRECISIONS; i++)
        PS_TRY(ps_figure_read(context, peaks, names[i], PS_FIGURE_TERA, &gpu->peak_flops[i], status));
    return PS_OK;
}

ps_code ps_gpu_read(const ps_figure_context *context, ps_json object, ps_gpu *gpu, ps_status *status)
{
    const char *text = NULL;

    for (size_t i = 0; i < sizeof gpu_keys / sizeof *gpu_keys; i++) {
        ps_figure *field = (ps_figure *)(void *)((char *)gpu + gpu_keys[i].offset);
        PS_TRY(ps_figure_read(context, object, gpu_keys[i].key, gpu_keys[i].unit, field, status));
    }
    PS_TRY(read_peaks(context, ps_json_member(object, "peak_tflops"), gpu, status));

    PS_TRY(ps_json_get_string(object, "vendor", PS_OPTIONAL, &text, status));
    if (text)
        gpu->vendor = ps_text_copy(context->arena, text);
    text = NULL;
    PS_TRY(ps_json_get_string(object, "fabric", PS_OPTIONAL, &text, status));
    if (text)
        gpu->fabric = ps_text_copy(context->arena, text);
    return PS_OK;
}

ps_code ps_link_read(const ps_figure_context *context, ps_json object, ps_link *link, ps_status *status)
{
    PS_TRY(ps_figure_read(context, object, "bandwidth", PS_FIGURE_RATE, &link->bytes_per_s, status));
    PS_TRY(ps_figure_read(context, object, "efficiency", PS_FIGURE_SHARE, &link->efficiency, status));
    PS_TRY(ps_figure_read(context, object, "peer_share", PS_FIGURE_SHARE, &link->peer_share, status));
    return ps_figure_read(context, object, "latency", PS_FIGURE_SECONDS, &link->latency_seconds, status);
}
