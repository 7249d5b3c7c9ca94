// SPDX-License-Identifier: Apache-2.0
//
// plan_json_job.c: the job in a plan file: every option as it was resolved.
#include "plan/plan_json_rows.h"

static const char *precision_name(int value)
{
    return ps_precision_name((ps_precision)value);
}

static const char *optimizer_name(int value)
{
    return ps_optimizer_name((ps_optimizer)value);
}

static const char *element_name(int bytes)
{
    return bytes == 4 ? "fp32" : bytes == 2 ? "bf16" : NULL;
}

static const char *attention_name(int flash)
{
    return flash ? "flash" : "unfused";
}

static const char *part_name(int bit)
{
    return ps_recompute_part_name(bit);
}

static const char *cp_method_name(int value)
{
    return ps_cp_method_name((ps_cp_method)value);
}

static const char *dispatch_name(int value)
{
    return ps_dispatch_name((ps_dispatch)value);
}

static const char *moe_parallel_name(int by_head)
{
    return by_head ? "head" : "expert";
}

static const char *kernels_name(int fused)
{
    return fused ? "fused" : "eager";
}

static const char *loss_name(int fused)
{
    return fused ? "fused" : "plain";
}

static const ps_field_names PRECISIONS = {precision_name, 0, PS_PRECISIONS - 1};
static const ps_field_names OPTIMIZERS = {optimizer_name, 0, PS_OPTIMIZERS - 1};
static const ps_field_names ELEMENTS = {element_name, 2, 4};
static const ps_field_names PARTS = {part_name, 0, PS_RECOMPUTE_PARTS - 1};
static const ps_field_names CP_METHODS = {cp_method_name, 0, PS_CP_METHODS - 1};
static const ps_field_names DISPATCHES = {dispatch_name, 0, PS_DISPATCHES - 1};
static const ps_field_names MOE_PARALLELS = {moe_parallel_name, 0, 1};
static const ps_field_names KERNELS = {kernels_name, 0, 1};
static const ps_field_names LOSSES = {loss_name, 0, 1};
static const ps_field_names ATTENTIONS = {attention_name, 0, 1};

// Every option but `threads`: what is planned does not depend on it, and neither may the file.
static const ps_field JOB[] = {
    LONG("global_batch_size", ps_job, global_batch_size, 1, PS_MAX_BATCH),
    LONG("seq_length", ps_job, seq_length, 1, PS_MAX_SEQUENCE),
    SET("micro_batch_size", micro_batch_size, INT32_MAX),
    SET("tp", tp, PS_MAX_GPUS),
    SET("pp", pp, PS_MAX_GPUS),
    SET("vp", vp, PS_MAX_GPUS),
    SET("dp", dp, PS_MAX_GPUS),
    SET("cp", cp, PS_MAX_GPUS),
    SET("ep", ep, PS_MAX_GPUS),
    SET("etp", etp, PS_MAX_GPUS),
    NAME_SET("schedule", schedule, ps_schedule_names),
    NAME_SET("recompute", recompute, ps_recompute_names),
    {.key = "recompute_parts",
     .kind = PS_FIELD_BITS,
     .offset = offsetof(ps_job, recompute_parts),
     .names = &PARTS,
     .max = PS_RECOMPUTE_PARTS},
    NAME("precision", ps_job, precision, PRECISIONS),
    NAME("optimizer", ps_job, optimizer, OPTIMIZERS),
    INT("zero", ps_job, zero, 0, 3),
    NAME("grad_dtype", ps_job, gradient_bytes, ELEMENTS),
    NAME("optimizer_dtype", ps_job, optimizer_bytes, ELEMENTS),
    {.key = "attention",
     .kind = PS_FIELD_NAME,
     .offset = offsetof(ps_job, flash_attention),
     .names = &ATTENTIONS,
     .element_size = sizeof(bool)},
    BOOL("repeat_kv", ps_job, repeat_kv),
    {.key = "kernels",
     .kind = PS_FIELD_NAME,
     .offset = offsetof(ps_job, fused_kernels),
     .names = &KERNELS,
     .element_size = sizeof(bool)},
    BOOL("sequence_parallel", ps_job, sequence_parallel),
    BOOL("overlap_grad_sync", ps_job, overlap_grad_sync),
    BOOL("overlap_tp", ps_job, overlap_tp),
    BOOL("overlap_p2p", ps_job, overlap_p2p),
    BOOL("overlap_ep", ps_job, overlap_ep),
    NAME("cp_method", ps_job, cp_method, CP_METHODS),
    NAME("ep_dispatch", ps_job, dispatch, DISPATCHES),
    {.key = "moe_parallel",
     .kind = PS_FIELD_NAME,
     .offset = offsetof(ps_job, head_parallel_moe),
     .names = &MOE_PARALLELS,
     .element_size = sizeof(bool)},
    DOUBLE("expert_capacity", ps_job, expert_capacity),
    DOUBLE("expert_imbalance", ps_job, expert_imbalance),
    {.key = "loss",
     .kind = PS_FIELD_NAME,
     .offset = offsetof(ps_job, fused_loss),
     .names = &LOSSES,
     .element_size = sizeof(bool)},
    BOOL("cuda_graphs", ps_job, cuda_graphs),
    LONG("lora_rank", ps_job, lora_rank, 0, PS_MAX_DIMENSION),
    LONG("packed_length", ps_job, packed_length, 0, PS_MAX_SEQUENCE),
    LONG("offload_activations_ppm", ps_job, offload_activations_ppm, 0, 1000000),
    BOOL("offload_optimizer", ps_job, offload_optimizer),
    BOOL("optimizer_barrier", ps_job, optimizer_barrier),
    BOOL("extrapolate", ps_job, extrapolate),
    BYTES("memory_reserve_bytes", ps_job, memory_reserve_bytes),
    BYTES("memory_framework_bytes", ps_job, memory_framework_bytes),
    LONG("memory_fragmentation_ppm", ps_job, memory_fragmentation_ppm, 0, 1000000),
    BYTES("memory_limit_bytes", ps_job, memory_limit_bytes),
    NS("op_overhead_ms", ps_job, op_overhead_ns),
    NS("p2p_wait_ms", ps_job, p2p_wait_ns),
    {.key = "jitter_ppm",
     .kind = PS_FIELD_INT64,
     .offset = offsetof(ps_job, jitter_ppm),
     .max = 1000000,
     .optional = true},
    {.key = "jitter_samples",
     .kind = PS_FIELD_INT32,
     .offset = offsetof(ps_job, jitter_samples),
     .max = INT32_MAX,
     .optional = true},
    INT("effort", ps_job, effort, 1, INT32_MAX),
};
const ps_field_table ps_plan_job_fields = TABLE(JOB);
