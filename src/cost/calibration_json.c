// SPDX-License-Identifier: Apache-2.0
//
// calibration_json.c: pipesched/calibration/v1, read and written.
#include <string.h>

#include "base/text.h"
#include "cluster/collective.h"
#include "io/file.h"
#include "io/json_read.h"
#include "io/json_write.h"
#include "model/model_json.h"
#include "pipesched/calibration.h"
#include "pipesched/limits.h"

#define FORMAT "pipesched/calibration/v1"

enum { MAX_CURVES = 1024, MAX_POINTS = 4096, MAX_RUNS = 1 << 20 };

static const char *const keys[] = {"format",        "framework", "gpu",         "precision",    "runs", "error",
                                   "leave_one_out", "factors",   "collectives", "measurements", NULL};
static const char *const curve_keys[] = {"collective", "ranks", "nodes", "bytes", "us", NULL};

static ps_code read_format(ps_json root, ps_status *status)
{
    const char *format = NULL;
    PS_TRY(ps_json_get_string(root, "format", PS_REQUIRED, &format, status));
    if (strcmp(format, FORMAT) == 0)
        return PS_OK;
    bool version = strncmp(format, "pipesched/calibration/", 22) == 0;
    ps_json_fail(ps_json_member(root, "format"), version ? "unknown-version" : "wrong-format", status,
                 "expected \"%s\", got \"%.64s\"", FORMAT, format);
    return ps_fail_hint(status, "pipesched calibrate ... -o FILE writes one");
}

static ps_code read_conditions(ps_json root, ps_calibration *out, ps_status *status)
{
    const char *precision = NULL;
    PS_TRY(ps_json_get_string(root, "framework", PS_REQUIRED, &out->framework, status));
    PS_TRY(ps_json_get_string(root, "gpu", PS_REQUIRED, &out->gpu, status));
    PS_TRY(ps_json_get_string(root, "precision", PS_REQUIRED, &precision, status));
    int named = ps_precision_named(precision);
    if (named < 0)
        return ps_json_fail(ps_json_member(root, "precision"), "bad-value", status,
                            "expected bf16, fp16, fp32, fp8, mxfp8 or nvfp4, got \"%.64s\"", precision);
    out->precision = (ps_precision)named;
    PS_TRY(ps_json_get_int32(root, "runs", PS_REQUIRED, 0, MAX_RUNS, &out->runs, status));
    PS_TRY(ps_json_get_double(root, "error", PS_OPTIONAL, 0, 1e6, &out->error, status));
    return ps_json_get_double(root, "leave_one_out", PS_OPTIONAL, 0, 1e6, &out->leave_one_out, status);
}

static ps_code read_factors(ps_json root, ps_calibration *out, ps_status *status)
{
    const char *names[PS_FACTORS + 1];
    ps_json factors = ps_json_member(root, "factors");

    for (int factor = 0; factor < PS_FACTORS; factor++)
        names[factor] = ps_factor_name((ps_factor)factor);
    names[PS_FACTORS] = NULL;
    if (!factors.node)
        return PS_OK;
    PS_TRY(ps_json_check_keys(factors, names, status));
    for (int factor = 0; factor < PS_FACTORS; factor++)
        PS_TRY(ps_json_get_double(factors, names[factor], PS_OPTIONAL, PS_FACTOR_LEAST, PS_FACTOR_MOST,
                                  &out->factor[factor], status));
    return PS_OK;
}

// Numbers above 0; sizes ascend.
static ps_code read_numbers(ps_arena *arena, ps_json curve, const char *key, double scale, bool ascending,
                            const double **out, int32_t *count, ps_status *status)
{
    ps_json list = ps_json_member(curve, key);
    if (!list.node)
        return ps_json_fail(curve, "missing-key", status, "the key \"%s\" is missing", key);
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    int64_t size = ps_json_count(list);
    if (size < 1 || size > MAX_POINTS)
        return ps_json_fail(list, "out-of-range", status, "1 to %d values are expected, got %lld", (int)MAX_POINTS,
                            (long long)size);
    double *values = ps_new(arena, double, size);
    *count = 0;
    for (ps_json item = ps_json_first(list); item.node; item = ps_json_next(item)) {
        PS_TRY(ps_json_expect(item, PS_JSON_NUMBER, status));
        double value = ps_json_number(item);
        if (!(value > 0 && value <= 0x1p53))
            return ps_json_fail(item, "out-of-range", status, "a number above 0 and at most 2^53 is expected");
        if (ascending && *count > 0 && value * scale <= values[*count - 1])
            return ps_json_fail(item, "calibration-order", status, "each size must be larger than the one before");
        values[(*count)++] = value * scale;
    }
    *out = values;
    return PS_OK;
}

static ps_code read_curve(ps_arena *arena, ps_json object, ps_collective_curve *out, ps_status *status)
{
    const char *name = NULL;
    int32_t times = 0;
    PS_TRY(ps_json_check_keys(object, curve_keys, status));
    PS_TRY(ps_json_get_string(object, "collective", PS_REQUIRED, &name, status));
    int named = ps_collective_named(name);
    if (named < 0)
        return ps_json_fail(ps_json_member(object, "collective"), "bad-value", status,
                            "expected all_reduce, reduce_scatter, all_gather or all_to_all, got \"%.64s\"", name);
    *out = (ps_collective_curve){.collective = (ps_collective)named, .nodes = 1};
    PS_TRY(ps_json_get_int32(object, "ranks", PS_REQUIRED, 2, (int32_t)PS_MAX_GPUS, &out->ranks, status));
    PS_TRY(ps_json_get_int32(object, "nodes", PS_OPTIONAL, 1, out->ranks, &out->nodes, status));
    PS_TRY(read_numbers(arena, object, "bytes", 1, true, &out->bytes, &out->num_points, status));
    PS_TRY(read_numbers(arena, object, "us", 1e-6, false, &out->seconds, &times, status));
    if (times == out->num_points)
        return PS_OK;
    return ps_json_fail(ps_json_member(object, "us"), "calibration-order", status,
                        "%d times for %d sizes: one a size is expected", (int)times, (int)out->num_points);
}

static ps_code read_curves(ps_arena *arena, ps_json root, ps_calibration *out, ps_status *status)
{
    ps_json list = ps_json_member(root, "collectives");
    if (!list.node)
        return PS_OK;
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    if (ps_json_count(list) > MAX_CURVES)
        return ps_json_fail(list, "out-of-range", status, "at most %d curves are read", (int)MAX_CURVES);
    ps_collective_curve *curves = ps_new(arena, ps_collective_curve, ps_json_count(list));
    out->curve = curves;
    for (ps_json item = ps_json_first(list); item.node; item = ps_json_next(item)) {
        ps_collective_curve *curve = &curves[out->num_curves];
        PS_TRY(read_curve(arena, item, curve, status));
        for (int32_t earlier = 0; earlier < out->num_curves; earlier++)
            if (curves[earlier].collective == curve->collective && curves[earlier].ranks == curve->ranks &&
                curves[earlier].nodes == curve->nodes)
                return ps_json_fail(item, "duplicate-curve", status, "curve %d is of the same ranks", (int)earlier);
        out->num_curves++;
    }
    return PS_OK;
}

ps_code ps_calibration_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_calibration *out,
                             ps_status *status)
{
    ps_json root;
    *out = (ps_calibration){.source = ps_text_copy(arena, source), .leave_one_out = -1};
    for (int factor = 0; factor < PS_FACTORS; factor++)
        out->factor[factor] = 1;
    ps_sha256(text, size, out->sha256);
    PS_TRY(ps_json_parse(arena, source, text, size, &root, status));
    PS_TRY(ps_json_expect(root, PS_JSON_OBJECT, status));
    PS_TRY(read_format(root, status));
    PS_TRY(ps_json_check_keys(root, keys, status));
    PS_TRY(read_conditions(root, out, status));
    PS_TRY(read_factors(root, out, status));
    PS_TRY(read_curves(arena, root, out, status));
    ps_json measured = ps_json_member(root, "measurements");
    if (!measured.node)
        return PS_OK;
    ps_measurement *sets = NULL;
    PS_TRY(ps_measurements_read_any(arena, measured, &sets, &out->num_measurements, status));
    out->measurement = sets;
    return PS_OK;
}

ps_code ps_calibration_load(ps_arena *arena, const char *path, ps_calibration *out, ps_status *status)
{
    ps_file_bytes bytes;
    PS_TRY(ps_file_read(arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    return ps_calibration_parse(arena, path, bytes.data, bytes.size, out, status);
}

static void write_curve(ps_json_writer *json, const ps_collective_curve *curve)
{
    ps_json_object(json, NULL);
    ps_json_put_string(json, "collective", ps_collective_name(curve->collective));
    ps_json_put_int(json, "ranks", curve->ranks);
    ps_json_put_int(json, "nodes", curve->nodes);
    ps_json_array_inline(json, "bytes");
    for (int32_t point = 0; point < curve->num_points; point++)
        ps_json_put_double(json, NULL, curve->bytes[point]);
    ps_json_close(json);
    ps_json_array_inline(json, "us");
    for (int32_t point = 0; point < curve->num_points; point++)
        ps_json_put_ms(json, NULL, (int64_t)(curve->seconds[point] * 1e12 + 0.5)); // six decimals of a microsecond
    ps_json_close(json);
    ps_json_close(json);
}

static void write_measurement(ps_json_writer *json, const ps_measurement *set)
{
    ps_json_object(json, NULL);
    ps_json_put_string(json, "gpu", set->gpu);
    ps_json_put_string(json, "precision", ps_precision_name(set->precision));
    ps_json_put_int(json, "tp", set->tp);
    ps_json_put_int(json, "cp", set->cp);
    ps_json_put_int(json, "ep", set->ep);
    ps_json_put_int(json, "micro_batch_size", set->micro_batch_size);
    ps_json_put_int(json, "seq_length", set->seq_length);
    ps_json_object(json, "layers");
    for (int32_t layer = 0; layer < set->num_layers; layer++) {
        const ps_measured_layer *measured = &set->layer[layer];
        ps_json_object_inline(json, measured->base_name);
        ps_json_put_ms(json, "forward_ms", measured->forward_ns);
        ps_json_put_ms(json, "backward_input_ms", measured->backward_input_ns);
        ps_json_put_ms(json, "backward_weight_ms", measured->backward_weight_ns);
        ps_json_close(json);
    }
    ps_json_close(json);
    ps_json_close(json);
}

ps_code ps_calibration_write(const ps_calibration *calibration, FILE *file, ps_status *status)
{
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", FORMAT);
    ps_json_put_string(&json, "framework", calibration->framework);
    ps_json_put_string(&json, "gpu", calibration->gpu);
    ps_json_put_string(&json, "precision", ps_precision_name(calibration->precision));
    ps_json_put_int(&json, "runs", calibration->runs);
    ps_json_put_double(&json, "error", calibration->error);
    if (calibration->leave_one_out >= 0)
        ps_json_put_double(&json, "leave_one_out", calibration->leave_one_out);
    ps_json_object(&json, "factors");
    for (int factor = 0; factor < PS_FACTORS; factor++)
        ps_json_put_double(&json, ps_factor_name((ps_factor)factor), calibration->factor[factor]);
    ps_json_close(&json);
    if (calibration->num_curves > 0) {
        ps_json_array(&json, "collectives");
        for (int32_t curve = 0; curve < calibration->num_curves; curve++)
            write_curve(&json, &calibration->curve[curve]);
        ps_json_close(&json);
    }
    if (calibration->num_measurements > 0) {
        ps_json_array(&json, "measurements");
        for (int32_t set = 0; set < calibration->num_measurements; set++)
            write_measurement(&json, &calibration->measurement[set]);
        ps_json_close(&json);
    }
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}
