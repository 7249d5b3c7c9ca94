// SPDX-License-Identifier: Apache-2.0
//
// plan_json_fields.c: every field of a plan file, object by object.
#include "plan/plan_json_rows.h"

#include <string.h>

static const char *schedule_name(int value)
{
    return ps_schedule_family_at((ps_schedule_kind)value)->name;
}

static const char *recompute_name(int value)
{
    return ps_recompute_name((ps_recompute)value);
}

const ps_field_names ps_schedule_names = {schedule_name, 0, PS_SCHEDULE_ZB};
const ps_field_names ps_recompute_names = {recompute_name, 0, PS_RECOMPUTES - 1};

static const ps_field MODEL[] = {
    TEXT("name", ps_plan_inputs, model_name),
    TEXT("sha256", ps_plan_inputs, model_sha256),
    INT("layers", ps_plan_inputs, model_layers, 1, PS_MAX_LAYERS),
    LONG("parameters", ps_plan_inputs, model_parameters, 0, PS_MAX_PARAMETERS),
    LONG("experts", ps_plan_inputs, model_experts, 0, PS_MAX_DIMENSION),
    DOUBLE("flops_per_sequence", ps_plan_inputs, model_flops_per_sequence),
};
static const ps_field_table MODEL_TABLE = TABLE(MODEL);

static const ps_field CLUSTER[] = {
    TEXT("name", ps_plan_inputs, cluster_name),
    TEXT("sha256", ps_plan_inputs, cluster_sha256),
    INT("nodes", ps_plan_inputs, cluster_nodes, 1, (int32_t)PS_MAX_GPUS),
    INT("gpus_per_node", ps_plan_inputs, gpus_per_node, 1, (int32_t)PS_MAX_GPUS),
    INT("domain_nodes", ps_plan_inputs, domain_nodes, 1, (int32_t)PS_MAX_GPUS),
    DOUBLE("usd_per_gpu_hour", ps_plan_inputs, usd_per_gpu_hour),
    DOUBLE("usd_per_kwh", ps_plan_inputs, usd_per_kwh),
    DOUBLE("gpu_watts", ps_plan_inputs, gpu_watts),
};
static const ps_field_table CLUSTER_TABLE = TABLE(CLUSTER);

#define FACTOR(KEY, INDEX) DOUBLE(KEY, ps_plan_calibration, factor[INDEX])
static const ps_field FACTORS[] = {
    FACTOR("gemm", PS_FACTOR_GEMM),     FACTOR("attention", PS_FACTOR_ATTENTION),
    FACTOR("memory", PS_FACTOR_MEMORY), FACTOR("kernel", PS_FACTOR_KERNEL),
    FACTOR("tp", PS_FACTOR_TP),         FACTOR("dp", PS_FACTOR_DP),
    FACTOR("pp", PS_FACTOR_PP),
};
static const ps_field_table FACTOR_TABLE = TABLE(FACTORS);

static const ps_field CALIBRATION[] = {
    TEXT("source", ps_plan_calibration, source),
    TEXT("sha256", ps_plan_calibration, sha256),
    TEXT("framework", ps_plan_calibration, framework),
    INT("runs", ps_plan_calibration, runs, 0, INT32_MAX),
    DOUBLE("error", ps_plan_calibration, error),
    {.key = "leave_one_out",
     .kind = PS_FIELD_DOUBLE,
     .offset = offsetof(ps_plan_calibration, leave_one_out),
     .optional = true},
    {.key = "factors", .kind = PS_FIELD_OBJECT, .table = &FACTOR_TABLE, .one_line = true},
};
static const ps_field_table CALIBRATION_TABLE = TABLE(CALIBRATION);

static const ps_field INPUTS[] = {
    {.key = "model", .kind = PS_FIELD_OBJECT, .table = &MODEL_TABLE},
    {.key = "cluster", .kind = PS_FIELD_OBJECT, .table = &CLUSTER_TABLE},
    {.key = "job", .kind = PS_FIELD_OBJECT, .offset = offsetof(ps_plan_inputs, job), .table = &ps_plan_job_fields},
    {.key = "calibration",
     .kind = PS_FIELD_OBJECT,
     .offset = offsetof(ps_plan_inputs, calibration),
     .table = &CALIBRATION_TABLE,
     .optional = true},
};
static const ps_field_table INPUTS_TABLE = TABLE(INPUTS);

static const ps_field REASON[] = {
    TEXT("rule", ps_reason, rule),
    TEXT("message", ps_reason, message),
    LONG("have", ps_reason, have, -MAX_JSON_INT, MAX_JSON_INT),
    LONG("need", ps_reason, need, -MAX_JSON_INT, MAX_JSON_INT),
    TEXT_OR_NULL("dominant", ps_reason, dominant),
    TEXT_OR_NULL("hint", ps_reason, hint),
};
static const ps_field_table REASON_TABLE = TABLE(REASON);

#define LAYOUT_ROWS                                                                                                    \
    INT("dp", ps_layout, dp, 1, (int32_t)PS_MAX_GPUS), INT("tp", ps_layout, tp, 1, (int32_t)PS_MAX_GPUS),              \
        INT("pp", ps_layout, pp, 1, PS_MAX_DEVICES), INT("vp", ps_layout, vp, 1, PS_MAX_STAGES),                       \
        INT("cp", ps_layout, cp, 1, (int32_t)PS_MAX_GPUS), INT("ep", ps_layout, ep, 1, (int32_t)PS_MAX_GPUS),          \
        INT("etp", ps_layout, etp, 1, (int32_t)PS_MAX_GPUS),                                                           \
        INT("micro_batch_size", ps_layout, micro_batch_size, 1, INT32_MAX),                                            \
        INT("num_microbatches", ps_layout, num_microbatches, 1, PS_MAX_MICROBATCHES),                                  \
        NAME("schedule", ps_layout, schedule, ps_schedule_names),                                                      \
        NAME("recompute", ps_layout, recompute, ps_recompute_names), INT("zero", ps_layout, zero, 0, 3)

static const ps_field LAYOUT[] = {LAYOUT_ROWS, {.key = "target", .kind = PS_FIELD_TARGET}};
static const ps_field_table LAYOUT_TABLE = TABLE(LAYOUT);
static const ps_field OTHER_LAYOUT[] = {LAYOUT_ROWS};
static const ps_field_table OTHER_LAYOUT_TABLE = TABLE(OTHER_LAYOUT);

static const ps_field LINK[] = {
    TEXT("name", ps_plan_link, name),
    NS("latency_ms", ps_plan_link, latency_ns),
    DOUBLE("bytes_per_s", ps_plan_link, bytes_per_s),
};
static const ps_field_table LINK_TABLE = TABLE(LINK);

static const ps_field GPU[] = {
    TEXT("name", ps_plan_gpu, name),
    BYTES("memory_usable_bytes", ps_plan_gpu, memory_usable_bytes),
    DOUBLE("peak_flops", ps_plan_gpu, peak_flops),
};
static const ps_field_table GPU_TABLE = TABLE(GPU);

static const ps_field STAGE[] = {
    INT("stage", ps_plan_stage, stage, 0, PS_MAX_STAGES),
    INT("pp_rank", ps_plan_stage, pp_rank, 0, PS_MAX_DEVICES),
    INT("chunk", ps_plan_stage, chunk, 0, PS_MAX_STAGES),
    {.key = "layer_ids", .kind = PS_FIELD_LAYER_IDS, .max = PS_MAX_LAYERS},
    {.key = "layers", .kind = PS_FIELD_LAYER_NAMES, .max = PS_MAX_LAYERS},
    INT("tp", ps_plan_stage, tp, 1, (int32_t)PS_MAX_GPUS),
    INT("dp", ps_plan_stage, dp, 1, (int32_t)PS_MAX_GPUS),
    INT("cp", ps_plan_stage, cp, 1, (int32_t)PS_MAX_GPUS),
    INT("ep", ps_plan_stage, ep, 1, (int32_t)PS_MAX_GPUS),
    NAME("recompute", ps_plan_stage, recompute, ps_recompute_names),
    LONG("parameters", ps_plan_stage, parameters, 0, PS_MAX_PARAMETERS),
    NS("forward_ms", ps_plan_stage, forward_ns),
    NS("backward_input_ms", ps_plan_stage, backward_input_ns),
    NS("backward_weight_ms", ps_plan_stage, backward_weight_ns),
    NS("recompute_ms", ps_plan_stage, recompute_ns),
    NS("op_overhead_ms", ps_plan_stage, op_overhead_ns),
    NS("grad_sync_ms", ps_plan_stage, grad_sync_ns),
    NS("tied_sync_ms", ps_plan_stage, tied_sync_ns),
    INT("tied_to", ps_plan_stage, tied_to, 0, PS_MAX_STAGES),
    NS("param_gather_ms", ps_plan_stage, param_gather_ns),
    INT("sync_buckets", ps_plan_stage, sync_buckets, 1, INT32_MAX),
    BYTES("held_after_forward_bytes", ps_plan_stage, held_after_forward_bytes),
    {.key = "added_by_recompute_bytes",
     .kind = PS_FIELD_INT64,
     .offset = offsetof(ps_plan_stage, added_by_recompute_bytes),
     .max = MAX_JSON_INT,
     .optional = true},
    BYTES("held_after_backward_input_bytes", ps_plan_stage, held_after_backward_input_bytes),
    BYTES("transient_bytes", ps_plan_stage, transient_bytes),
    BYTES("output_bytes", ps_plan_stage, output_bytes),
    BYTES("parameter_bytes", ps_plan_stage, parameter_bytes),
    BYTES("gradient_bytes", ps_plan_stage, gradient_bytes),
    BYTES("optimizer_bytes", ps_plan_stage, optimizer_bytes),
    BYTES("single_microbatch_bytes", ps_plan_stage, single_microbatch_bytes),
    INT("launch_count", ps_plan_stage, launch_count, 0, PS_MAX_MICROBATCHES),
};
static const ps_field_table STAGE_TABLE = TABLE(STAGE);

static const ps_field HOP[] = {
    INT("from_stage", ps_plan_hop, from_stage, 0, PS_MAX_STAGES),
    INT("to_stage", ps_plan_hop, to_stage, 0, PS_MAX_STAGES),
    BYTES("bytes", ps_plan_hop, bytes),
    NS("latency_ms", ps_plan_hop, latency_ns),
    NS("transfer_ms", ps_plan_hop, transfer_ns),
    TEXT("link", ps_plan_hop, link),
};
static const ps_field_table HOP_TABLE = TABLE(HOP);

static const ps_field MEMORY[] = {
    BYTES("parameters", ps_plan_memory, parameters),
    BYTES("gradients", ps_plan_memory, gradients),
    BYTES("optimizer", ps_plan_memory, optimizer),
    BYTES("activations_peak", ps_plan_memory, activations_peak),
    BYTES("transient", ps_plan_memory, transient),
    BYTES("framework", ps_plan_memory, framework),
    BYTES("fragmentation", ps_plan_memory, fragmentation),
    BYTES("reserve", ps_plan_memory, reserve),
    BYTES("total_peak", ps_plan_memory, total_peak),
    BYTES("capacity", ps_plan_memory, capacity),
    LONG("headroom", ps_plan_memory, headroom, -MAX_JSON_INT, MAX_JSON_INT),
};
static const ps_field_table MEMORY_TABLE = TABLE(MEMORY);

static const ps_field IDLE[] = {
    PLAIN_NS("warmup", ps_idle, warmup_ns),
    PLAIN_NS("steady", ps_idle, steady_ns),
    PLAIN_NS("cooldown", ps_idle, cooldown_ns),
};
static const ps_field_table IDLE_TABLE = TABLE(IDLE);

static const ps_field DEVICE[] = {
    INT("pp_rank", ps_plan_device, pp_rank, 0, PS_MAX_DEVICES),
    {.key = "stages", .kind = PS_FIELD_STAGE_LIST, .max = PS_MAX_STAGES},
    TEXT("gpu", ps_plan_device, gpu),
    {.key = "memory", .kind = PS_FIELD_OBJECT, .offset = offsetof(ps_plan_device, memory), .table = &MEMORY_TABLE},
    NS("grad_sync_ms", ps_plan_device, grad_sync_ns),
    NS("grad_sync_exposed_ms", ps_plan_device, grad_sync_exposed_ns),
    NS("grad_sync_hidden_ms", ps_plan_device, grad_sync_hidden_ns),
    NS("optimizer_ms", ps_plan_device, optimizer_ns),
    NS("param_gather_ms", ps_plan_device, param_gather_ns),
    NS("param_gather_exposed_ms", ps_plan_device, param_gather_exposed_ns),
    NS("done_ms", ps_plan_device, done_ns),
    NS("validated_ms", ps_plan_device, validated_ns),
    NS("busy_ms", ps_plan_device, busy_ns),
    NS("idle_ms", ps_plan_device, idle_ns),
    {.key = "idle",
     .kind = PS_FIELD_OBJECT,
     .offset = offsetof(ps_plan_device, idle),
     .table = &IDLE_TABLE,
     .one_line = true},
    INT("in_flight_peak", ps_plan_device, in_flight_peak, 0, INT32_MAX),
};
static const ps_field_table DEVICE_TABLE = TABLE(DEVICE);

static const ps_field RANK[] = {
    INT("rank", ps_plan_rank, rank, 0, (int32_t)PS_MAX_GPUS), INT("dp", ps_plan_rank, dp, 0, (int32_t)PS_MAX_GPUS),
    INT("pp", ps_plan_rank, pp, 0, (int32_t)PS_MAX_GPUS),     INT("tp", ps_plan_rank, tp, 0, (int32_t)PS_MAX_GPUS),
    INT("cp", ps_plan_rank, cp, 0, (int32_t)PS_MAX_GPUS),     INT("ep", ps_plan_rank, ep, 0, (int32_t)PS_MAX_GPUS),
    INT("node", ps_plan_rank, node, 0, (int32_t)PS_MAX_GPUS), INT("gpu", ps_plan_rank, gpu, 0, (int32_t)PS_MAX_GPUS),
};
static const ps_field_table RANK_TABLE = TABLE(RANK);

static const ps_field RANKS[] = {
    TEXT("order", ps_plan, rank_order),
    INT("per_node", ps_plan, ranks_per_node, 1, (int32_t)PS_MAX_GPUS),
    LONG("count", ps_plan, num_ranks, 1, PS_MAX_GPUS),
    {.key = "map", .kind = PS_FIELD_RANK_MAP, .table = &RANK_TABLE, .max = PS_PLAN_MAX_RANK_MAP, .optional = true},
};
static const ps_field_table RANKS_TABLE = TABLE(RANKS);

static const ps_field SCHEDULE[] = {
    {.key = "kind",
     .kind = PS_FIELD_NAME_AGAIN,
     .offset = offsetof(ps_plan, layout.schedule),
     .names = &ps_schedule_names},
    {.key = "cells", .kind = PS_FIELD_CELLS},
};
static const ps_field_table SCHEDULE_TABLE = TABLE(SCHEDULE);

static const ps_field PREDICTION[] = {
    NS("iteration_ms", ps_plan_prediction, iteration_ns),
    NS("pipeline_ms", ps_plan_prediction, pipeline_ns),
    NS("grad_sync_exposed_ms", ps_plan_prediction, grad_sync_exposed_ns),
    NS("optimizer_ms", ps_plan_prediction, optimizer_ns),
    NS("param_gather_exposed_ms", ps_plan_prediction, param_gather_exposed_ns),
    NS("barrier_ms", ps_plan_prediction, barrier_ns),
    NS("validation_hop_ms", ps_plan_prediction, validation_hop_ns),
    NS("makespan_ms", ps_plan_prediction, makespan_ns),
    NS("span_ms", ps_plan_prediction, span_ns),
    DOUBLE("bubble", ps_plan_prediction, bubble),
    DOUBLE("span_bubble", ps_plan_prediction, span_bubble),
    DOUBLE("tokens_per_s", ps_plan_prediction, tokens_per_s),
    DOUBLE("model_tflops_per_gpu", ps_plan_prediction, model_tflops_per_gpu),
    DOUBLE("mfu", ps_plan_prediction, mfu),
    DOUBLE("usd_per_iteration", ps_plan_prediction, usd_per_iteration),
    DOUBLE("kwh_per_iteration", ps_plan_prediction, kwh_per_iteration),
    TEXT_OR_NULL("accuracy", ps_plan_prediction, accuracy),
};
static const ps_field_table PREDICTION_TABLE = TABLE(PREDICTION);

static const ps_field BOUNDS[] = {
    NS("iteration_ms", ps_plan_bounds, iteration_ns), DOUBLE("gap", ps_plan_bounds, gap),
    BOOL("proved", ps_plan_bounds, proved),           TEXT_OR_NULL("limited_by", ps_plan_bounds, limited_by),
    TEXT_OR_NULL("method", ps_plan_bounds, method),
};
static const ps_field_table BOUNDS_TABLE = TABLE(BOUNDS);

static const ps_field ALTERNATIVE[] = {
    {.key = "layout",
     .kind = PS_FIELD_OBJECT,
     .offset = offsetof(ps_plan_alternative, layout),
     .table = &OTHER_LAYOUT_TABLE},
    NS("iteration_ms", ps_plan_alternative, iteration_ns),
    DOUBLE("loses", ps_plan_alternative, loses),
    BYTES("peak_bytes", ps_plan_alternative, peak_bytes),
};
static const ps_field_table ALTERNATIVE_TABLE = TABLE(ALTERNATIVE);

static const ps_field SEARCH[] = {
    LONG("candidates", ps_plan_search, candidates, 0, MAX_JSON_INT),
    LONG("pruned", ps_plan_search, pruned, 0, MAX_JSON_INT),
    LONG("evaluated", ps_plan_search, evaluated, 0, MAX_JSON_INT),
    {.key = "infeasible", .kind = PS_FIELD_COUNTS, .max = 1000},
    TEXT_OR_NULL("engine", ps_plan_search, engine),
    INT("effort", ps_plan_search, effort, 0, INT32_MAX),
    {.key = "alternatives",
     .kind = PS_FIELD_ARRAY,
     .offset = offsetof(ps_plan_search, alternative),
     .count_offset = offsetof(ps_plan_search, num_alternatives),
     .element_size = sizeof(ps_plan_alternative),
     .table = &ALTERNATIVE_TABLE,
     .max = 10,
     .one_line = true},
    BOOL("limit_hit", ps_plan_search, limit_hit),
};
static const ps_field_table SEARCH_TABLE = TABLE(SEARCH);

static const ps_field TIMELINE_OP[] = {
    INT("pp_rank", ps_plan_event, pp_rank, 0, PS_MAX_DEVICES),
    {.key = "cell", .kind = PS_FIELD_CELL},
    NS("start_ms", ps_plan_event, start_ns),
    NS("end_ms", ps_plan_event, end_ns),
};
const ps_field_table ps_plan_op_fields = TABLE(TIMELINE_OP);

static const ps_field TIMELINE_TRANSFER[] = {
    INT("from_stage", ps_plan_event, from_stage, 0, PS_MAX_STAGES),
    INT("to_stage", ps_plan_event, to_stage, 0, PS_MAX_STAGES),
    INT("microbatch", ps_plan_event, microbatch, 0, INT32_MAX),
    NS("start_ms", ps_plan_event, start_ns),
    NS("end_ms", ps_plan_event, end_ns),
};
const ps_field_table ps_plan_transfer_fields = TABLE(TIMELINE_TRANSFER);

static const ps_field DIAGNOSTIC[] = {
    TEXT("level", ps_plan_diagnostic, level),
    TEXT("code", ps_plan_diagnostic, code),
    TEXT("message", ps_plan_diagnostic, message),
};
static const ps_field_table DIAGNOSTIC_TABLE = TABLE(DIAGNOSTIC);

#define ARRAY(KEY, MEMBER, COUNT, TYPE, ROWS, MAX)                                                                     \
    .key = (KEY), .kind = PS_FIELD_ARRAY, .offset = offsetof(ps_plan, MEMBER),                                         \
    .count_offset = offsetof(ps_plan, COUNT), .element_size = sizeof(TYPE), .table = &(ROWS), .max = (MAX)
#define OBJECT(KEY, MEMBER, ROWS)                                                                                      \
    .key = (KEY), .kind = PS_FIELD_OBJECT, .offset = offsetof(ps_plan, MEMBER), .table = &(ROWS)

static const ps_field PLAN[] = {
    {.key = "format", .kind = PS_FIELD_FORMAT, .when_infeasible = true},
    {.key = "tool", .kind = PS_FIELD_TOOL, .when_infeasible = true},
    {OBJECT("inputs", inputs, INPUTS_TABLE), .when_infeasible = true},
    {.key = "verdict", .kind = PS_FIELD_VERDICT, .when_infeasible = true},
    {ARRAY("reasons", reason, num_reasons, ps_reason, REASON_TABLE, 1000), .when_infeasible = true},
    {OBJECT("layout", layout, LAYOUT_TABLE)},
    {ARRAY("links", link, num_links, ps_plan_link, LINK_TABLE, 1000), .one_line = true},
    {ARRAY("gpus", gpu, num_gpus, ps_plan_gpu, GPU_TABLE, 1000), .one_line = true},
    {ARRAY("stages", stage, num_stages, ps_plan_stage, STAGE_TABLE, PS_MAX_STAGES)},
    {ARRAY("hops", hop, num_hops, ps_plan_hop, HOP_TABLE, 2 * PS_MAX_STAGES), .one_line = true},
    {ARRAY("devices", device, num_devices, ps_plan_device, DEVICE_TABLE, PS_MAX_DEVICES)},
    {.key = "ranks", .kind = PS_FIELD_OBJECT, .table = &RANKS_TABLE},
    {.key = "schedule", .kind = PS_FIELD_OBJECT, .table = &SCHEDULE_TABLE},
    {OBJECT("prediction", prediction, PREDICTION_TABLE)},
    {OBJECT("bounds", bounds, BOUNDS_TABLE)},
    {OBJECT("search", search, SEARCH_TABLE), .when_infeasible = true},
    {.key = "launchable", .kind = PS_FIELD_LAUNCHABLE, .max = 100},
    {ARRAY("diagnostics", diagnostic, num_diagnostics, ps_plan_diagnostic, DIAGNOSTIC_TABLE, 10000),
     .when_infeasible = true},
    {.key = "timeline", .kind = PS_FIELD_TIMELINE, .max = 2 * PS_MAX_OPS},
};
const ps_field_table ps_plan_fields = TABLE(PLAN);

int ps_field_get_name(const ps_field *field, const void *object)
{
    const char *at = (const char *)object + field->offset;
    if (field->element_size == sizeof(bool)) {
        bool value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    int value;
    memcpy(&value, at, sizeof value);
    return value;
}

void ps_field_set_name(const ps_field *field, void *object, int value)
{
    char *at = (char *)object + field->offset;
    bool flag = value != 0;
    if (field->element_size == sizeof(bool))
        memcpy(at, &flag, sizeof flag);
    else
        memcpy(at, &value, sizeof value);
}
