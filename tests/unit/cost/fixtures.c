// SPDX-License-Identifier: Apache-2.0
#include "unit/cost/fixtures.h"

#include "base/text.h"
#include "model/model_params.h"

static ps_layer block_layer(const char *name, const char *base_name, ps_layer_class class_, const ps_block *block)
{
    static const char *const kind[] = {"timed", "embedding", "decoder", "norm", "head"};
    ps_layer layer = ps_layer_named(name, base_name, class_, kind[class_]);
    ps_status status = {0};
    assert_ok(ps_layer_set_block(&layer, block, &status), &status);
    return layer;
}

ps_model transformer(ps_arena *arena, const ps_block *block, int32_t blocks, bool tied)
{
    ps_block *own = ps_new(arena, ps_block, 1);
    *own = *block;

    ps_model model = {.name = "transformer", .source = "test", .num_layers = blocks + 3};
    model.layer = ps_new(arena, ps_layer, blocks + 3);
    model.layer[0] = block_layer("embedding", "embedding", PS_LAYER_EMBEDDING, own);
    for (int32_t i = 0; i < blocks; i++)
        model.layer[1 + i] = block_layer(ps_text_format(arena, "block.%d", (int)i), "block", PS_LAYER_DECODER, own);
    model.layer[blocks + 1] = block_layer("norm", "norm", PS_LAYER_NORM, own);
    model.layer[blocks + 2] = block_layer("head", "head", PS_LAYER_HEAD, own);
    if (tied)
        ps_layer_tie(&model.layer[blocks + 2], 0);
    for (int32_t i = 0; i < model.num_layers; i++)
        model.parameters += model.layer[i].parameters;
    return model;
}

ps_block gpt_block(int64_t hidden, int64_t heads, int64_t vocab, int64_t positions)
{
    return (ps_block){.hidden_size = hidden,
                      .vocab_size = vocab,
                      .learned_positions = positions,
                      .attention_heads = heads,
                      .kv_heads = heads,
                      .head_dim = hidden / heads,
                      .ffn_size = 4 * hidden,
                      .qkv_bias = true,
                      .output_bias = true,
                      .ffn_bias = true,
                      .dropout = true,
                      .norm = PS_NORM_LAYER};
}

static ps_block llama_block(int64_t hidden, int64_t heads, int64_t ffn)
{
    return (ps_block){.hidden_size = hidden,
                      .vocab_size = 128256,
                      .attention_heads = heads,
                      .kv_heads = 8,
                      .head_dim = 128,
                      .ffn_size = ffn,
                      .gated_ffn = true,
                      .norm = PS_NORM_RMS};
}

ps_block llama3_8b_block(void)
{
    return llama_block(4096, 32, 14336);
}

ps_block llama3_70b_block(void)
{
    return llama_block(8192, 64, 28672);
}

ps_block mixtral_block(void)
{
    ps_block block = llama_block(4096, 32, 0);
    block.vocab_size = 32000;
    block.experts = 8;
    block.experts_per_token = 2;
    block.expert_ffn_size = 14336;
    return block;
}

ps_model timed_model(ps_arena *arena, int32_t layers, int64_t forward, int64_t backward_input, int64_t backward_weight)
{
    ps_model model = {.name = "timed", .source = "test", .num_layers = layers};
    model.layer = ps_new(arena, ps_layer, layers);
    for (int32_t i = 0; i < layers; i++) {
        ps_layer *layer = &model.layer[i];
        *layer = ps_layer_named(ps_text_format(arena, "layer.%d", (int)i), "layer", PS_LAYER_TIMED, "layer");
        layer->forward_ns = forward;
        layer->backward_input_ns = backward_input;
        layer->backward_weight_ns = backward_weight;
    }
    return model;
}

static ps_figure figure(double value)
{
    return (ps_figure){.value = value, .origin = PS_ORIGIN_GIVEN, .source = "test"};
}

static ps_group eight_gpus(int32_t nodes, double fabric, double nic)
{
    return (ps_group){.name = "test",
                      .nodes = nodes,
                      .gpus_per_node = 8,
                      .intra = {.name = "nvlink",
                                .bytes_per_s = figure(fabric),
                                .efficiency = figure(0.77),
                                .latency_seconds = figure(10e-6)},
                      .inter = {.name = "nic",
                                .bytes_per_s = figure(nic),
                                .efficiency = figure(0.85),
                                .latency_seconds = figure(15e-6)},
                      .nics = 8,
                      .nvlink_domain_nodes = 1};
}

ps_group a100_group(int32_t nodes)
{
    ps_group group = eight_gpus(nodes, 300e9, 25e9);
    group.gpu = (ps_gpu){.name = "A100-SXM4-80GB",
                         .memory_usable_bytes = figure(79.1 * 1073741824),
                         .memory_bytes_per_s = figure(2.0e12),
                         .gemm_efficiency = figure(0.74),
                         .attention_efficiency = figure(0.5),
                         .memory_efficiency = figure(0.75),
                         .kernel_seconds = figure(8e-6)};
    group.gpu.peak_flops[PS_PRECISION_BF16] = figure(312e12);
    group.gpu.peak_flops[PS_PRECISION_FP16] = figure(312e12);
    group.gpu.peak_flops[PS_PRECISION_FP32] = figure(156e12);
    return group;
}

ps_group h100_group(int32_t nodes)
{
    ps_group group = eight_gpus(nodes, 450e9, 50e9);
    group.gpu = (ps_gpu){.name = "H100-SXM5-80GB",
                         .memory_usable_bytes = figure(79.1 * 1073741824),
                         .memory_bytes_per_s = figure(3.35e12),
                         .multiprocessors = figure(132)};
    group.gpu.peak_flops[PS_PRECISION_BF16] = figure(989e12);
    group.gpu.peak_flops[PS_PRECISION_FP16] = figure(989e12);
    group.gpu.peak_flops[PS_PRECISION_FP32] = figure(494e12);
    group.gpu.peak_flops[PS_PRECISION_FP8] = figure(1979e12);
    return group;
}

ps_job plain_job(int64_t seq_length)
{
    return (ps_job){.global_batch_size = 64,
                    .seq_length = seq_length,
                    .precision = PS_PRECISION_BF16,
                    .optimizer = PS_OPTIMIZER_ADAM,
                    .zero = 1,
                    .gradient_bytes = 4,
                    .optimizer_bytes = 4,
                    .flash_attention = true,
                    .sequence_parallel = true,
                    .overlap_grad_sync = true,
                    .fused_loss = true,
                    .fused_kernels = true,
                    .recompute_parts = PS_RECOMPUTE_CORE_ATTENTION,
                    .expert_imbalance = 1};
}

ps_layout plain_layout(void)
{
    return (ps_layout){.dp = 1,
                       .tp = 1,
                       .pp = 1,
                       .vp = 1,
                       .cp = 1,
                       .ep = 1,
                       .micro_batch_size = 1,
                       .num_microbatches = 8,
                       .recompute = PS_RECOMPUTE_NONE,
                       .zero = 1};
}

ps_cost_table cost_of(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                      const ps_layout *layout)
{
    ps_cost_table table;
    ps_status status = {0};
    assert_ok(ps_cost_table_build(arena, model, group, job, layout, &table, &status), &status);
    return table;
}

const char *rule_of_refusal(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                            const ps_layout *layout, ps_status *status)
{
    ps_cost_table table;
    *status = (ps_status){0};
    assert_int_not_equal(ps_cost_table_build(arena, model, group, job, layout, &table, status), PS_OK);
    return status->rule;
}

void assert_near(double a, double b, double share)
{
    double difference = a > b ? a - b : b - a;
    double size = b > 0 ? b : -b;
    if (difference > share * size)
        fail_msg("%.9g is not within %.3g %% of %.9g", a, 100 * share, b);
}
