// SPDX-License-Identifier: Apache-2.0
//
// job_options.c: the options themselves. A new option is one row; a newly supported word gets its value.
#include "job/job_options.h"

#include "pipesched/limits.h"

enum { NOT_YET = -1 };

static const job_word precisions[] = {{"bf16", PS_PRECISION_BF16},
                                      {"fp16", PS_PRECISION_FP16},
                                      {"fp32", PS_PRECISION_FP32},
                                      {"fp8", PS_PRECISION_FP8},
                                      {"mxfp8", PS_PRECISION_MXFP8},
                                      {"nvfp4", PS_PRECISION_NVFP4},
                                      {NULL, 0}};
static const job_word optimizers[] = {{"adam", PS_OPTIMIZER_ADAM},
                                      {"adamw", PS_OPTIMIZER_ADAMW},
                                      {"sgd", PS_OPTIMIZER_SGD},
                                      {"muon", NOT_YET},
                                      {NULL, 0}};
static const job_word state_types[] = {{"fp32", 4}, {"bf16", 2}, {NULL, 0}};
static const job_word recomputes[] = {
    {"none", PS_RECOMPUTE_NONE}, {"full", PS_RECOMPUTE_FULL}, {"selective", PS_RECOMPUTE_SELECTIVE}, {NULL, 0}};
static const job_word recompute_parts[] = {{"core-attention", PS_RECOMPUTE_CORE_ATTENTION},
                                           {"norm", PS_RECOMPUTE_NORM},
                                           {"activation", PS_RECOMPUTE_ACTIVATION},
                                           {"mla-up", PS_RECOMPUTE_MLA_UP},
                                           {"moe", PS_RECOMPUTE_MOE},
                                           {"attention", PS_RECOMPUTE_ATTENTION},
                                           {"ffn", PS_RECOMPUTE_FFN},
                                           {"ops", PS_RECOMPUTE_OPS},
                                           {NULL, 0}};
static const job_word schedules[] = {{"gpipe", PS_SCHEDULE_GPIPE},
                                     {"1f1b", PS_SCHEDULE_1F1B},
                                     {"interleaved", PS_SCHEDULE_INTERLEAVED},
                                     {"zb-h1", PS_SCHEDULE_ZB_H1},
                                     {"zb-h2", PS_SCHEDULE_ZB_H2},
                                     {"looped-bfs", PS_SCHEDULE_LOOPED_BFS},
                                     {"interleaved-zb", PS_SCHEDULE_INTERLEAVED_ZB},
                                     {"zb-v", PS_SCHEDULE_ZB_V},
                                     {"v-half", PS_SCHEDULE_V_HALF},
                                     {"v-min", PS_SCHEDULE_V_MIN},
                                     {"dualpipev", PS_SCHEDULE_DUALPIPEV},
                                     {"dualpipe", PS_SCHEDULE_DUALPIPE},
                                     {"gpipe-recompute", PS_SCHEDULE_GPIPE_RECOMPUTE},
                                     {"zb", PS_SCHEDULE_ZB},
                                     {NULL, 0}};
static const job_word cp_methods[] = {
    {"ring", PS_CP_RING}, {"all-to-all", PS_CP_ALL_TO_ALL}, {"all-gather", PS_CP_ALL_GATHER}, {NULL, 0}};
static const job_word dispatches[] = {{"all-to-all", PS_DISPATCH_ALL_TO_ALL}, {"dedup", PS_DISPATCH_DEDUP}, {NULL, 0}};
static const job_word moe_parallels[] = {{"expert", 0}, {"head", 1}, {NULL, 0}};
static const job_word kernels[] = {{"fused", 1}, {"eager", 0}, {NULL, 0}};
static const job_word losses[] = {{"fused", 1}, {"plain", 0}, {NULL, 0}};
static const job_word attentions[] = {{"flash", 1}, {"unfused", 0}, {NULL, 0}};
static const job_word switches[] = {{"on", 1}, {"off", 0}, {NULL, 0}};
// One value is supported so far, so there is no field to set.
static const job_word targets[] = {
    {"any", 0}, {"megatron", NOT_YET}, {"torchtitan", NOT_YET}, {"deepspeed", NOT_YET}, {NULL, 0}};
static const job_word objectives[] = {{"time", 0},         {"cost", NOT_YET},   {"energy", NOT_YET},
                                      {"memory", NOT_YET}, {"pareto", NOT_YET}, {NULL, 0}};
static const job_word rank_orders[] = {{"tp-cp-ep-dp-pp", 0}, {NULL, 0}};

#define FIELD(name) offsetof(ps_job, name)
enum { NO_FIELD = 0 };

const job_option ps_job_options[] = {
    {"global-batch-size", JOB_INT64, FIELD(global_batch_size), 1, PS_MAX_BATCH, NULL, NULL},
    {"seq-length", JOB_INT64, FIELD(seq_length), 1, PS_MAX_SEQUENCE, NULL, NULL},
    {"micro-batch-size", JOB_INT_SET, FIELD(micro_batch_size), 1, INT32_MAX, NULL, NULL},
    {"tp", JOB_INT_SET, FIELD(tp), 1, PS_MAX_GPUS, NULL, NULL},
    {"pp", JOB_INT_SET, FIELD(pp), 1, PS_MAX_DEVICES, NULL, NULL},
    {"vp", JOB_INT_SET, FIELD(vp), 1, PS_MAX_STAGES, NULL, NULL},
    {"dp", JOB_INT_SET, FIELD(dp), 1, PS_MAX_GPUS, NULL, NULL},
    {"cp", JOB_INT_SET, FIELD(cp), 1, PS_MAX_GPUS, NULL, NULL},
    {"ep", JOB_INT_SET, FIELD(ep), 1, PS_MAX_GPUS, NULL, NULL},
    {"etp", JOB_INT_SET, FIELD(etp), 1, PS_MAX_GPUS, NULL, NULL},
    {"cp-method", JOB_WORD, FIELD(cp_method), 0, 0, cp_methods, NULL},
    {"ep-dispatch", JOB_WORD, FIELD(dispatch), 0, 0, dispatches, NULL},
    {"overlap-ep", JOB_SWITCH, FIELD(overlap_ep), 0, 0, switches, NULL},
    {"moe-parallel", JOB_SWITCH, FIELD(head_parallel_moe), 0, 0, moe_parallels, NULL},
    {"expert-capacity", JOB_REAL, FIELD(expert_capacity), 0, 1000, NULL, NULL},
    {"expert-imbalance", JOB_REAL, FIELD(expert_imbalance), 1, 1000, NULL, NULL},
    {"precision", JOB_WORD, FIELD(precision), 0, 0, precisions, NULL},
    {"optimizer", JOB_WORD, FIELD(optimizer), 0, 0, optimizers, NULL},
    {"zero", JOB_INT32, FIELD(zero), 0, 3, NULL, NULL},
    {"grad-dtype", JOB_WORD, FIELD(gradient_bytes), 0, 0, state_types, NULL},
    {"optimizer-dtype", JOB_WORD, FIELD(optimizer_bytes), 0, 0, state_types, NULL},
    {"recompute", JOB_WORD_SET, FIELD(recompute), 0, 0, recomputes, NULL},
    {"recompute-parts", JOB_BITS, FIELD(recompute_parts), 0, 0, recompute_parts, NULL},
    {"attention", JOB_SWITCH, FIELD(flash_attention), 0, 0, attentions, NULL},
    {"repeat-kv", JOB_SWITCH, FIELD(repeat_kv), 0, 0, switches, NULL},
    {"kernels", JOB_SWITCH, FIELD(fused_kernels), 0, 0, kernels, NULL},
    {"sequence-parallel", JOB_SWITCH, FIELD(sequence_parallel), 0, 0, switches, NULL},
    {"loss", JOB_SWITCH, FIELD(fused_loss), 0, 0, losses, NULL},
    {"cuda-graphs", JOB_SWITCH, FIELD(cuda_graphs), 0, 0, switches, NULL},
    {"lora-rank", JOB_INT64, FIELD(lora_rank), 0, PS_MAX_DIMENSION, NULL, NULL},
    {"packed-length", JOB_INT64, FIELD(packed_length), 0, PS_MAX_SEQUENCE, NULL, NULL},
    {"offload-activations", JOB_SHARE, FIELD(offload_activations_ppm), 0, 1000000, NULL, NULL},
    {"offload-optimizer", JOB_SWITCH, FIELD(offload_optimizer), 0, 0, switches, NULL},
    {"overlap-grad-sync", JOB_SWITCH, FIELD(overlap_grad_sync), 0, 0, switches, NULL},
    {"overlap-tp", JOB_SWITCH, FIELD(overlap_tp), 0, 0, switches, NULL},
    {"overlap-p2p", JOB_SWITCH, FIELD(overlap_p2p), 0, 0, switches, NULL},
    {"schedule", JOB_WORD_SET, FIELD(schedule), 0, 0, schedules, NULL},
    {"optimizer-barrier", JOB_SWITCH, FIELD(optimizer_barrier), 0, 0, switches, NULL},
    {"extrapolate", JOB_SWITCH, FIELD(extrapolate), 0, 0, switches, NULL},
    {"target", JOB_WORD, NO_FIELD, 0, 0, targets, NULL},
    {"objective", JOB_WORD, NO_FIELD, 0, 0, objectives, NULL},
    {"memory-reserve", JOB_BYTES, FIELD(memory_reserve_bytes), 0, PS_MAX_BYTES, NULL, NULL},
    {"memory-framework", JOB_BYTES, FIELD(memory_framework_bytes), 0, PS_MAX_BYTES, NULL, NULL},
    {"memory-fragmentation", JOB_SHARE, FIELD(memory_fragmentation_ppm), 0, 1000000, NULL, NULL},
    {"memory-limit", JOB_BYTES, FIELD(memory_limit_bytes), 1, PS_MAX_BYTES, NULL, NULL},
    {"op-overhead", JOB_TIME, FIELD(op_overhead_ns), 0, PS_MAX_LAYER_NS, NULL, NULL},
    {"p2p-wait", JOB_TIME, FIELD(p2p_wait_ns), 0, PS_MAX_LAYER_NS, NULL, NULL},
    {"rank-order", JOB_WORD, NO_FIELD, 0, 0, rank_orders, NULL},
    {"jitter", JOB_SHARE, FIELD(jitter_ppm), 0, 1000000, NULL, NULL},
    {"jitter-samples", JOB_INT32, FIELD(jitter_samples), 1, 100000, NULL, NULL},
    {"effort", JOB_INT32, FIELD(effort), 1, 1000, NULL, NULL},
    {"threads", JOB_INT32, FIELD(threads), 0, 1024, NULL, NULL},
    {"calibration", JOB_NOWHERE, NO_FIELD, 0, 0, NULL, "give it on the command line: plan --calibration FILE"},
    {"profile", JOB_NOWHERE, NO_FIELD, 0, 0, NULL, "give measured times in the model's \"measurements\""},
    {"time-limit", JOB_NOWHERE, NO_FIELD, 0, 0, NULL, "give it on the command line: it is no part of what to train"},
    {"seed", JOB_NOWHERE, NO_FIELD, 0, 0, NULL, "leave it out: nothing is drawn at random"},
};
const int32_t ps_job_num_options = sizeof ps_job_options / sizeof ps_job_options[0];
