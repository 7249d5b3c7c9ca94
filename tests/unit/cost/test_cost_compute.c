// SPDX-License-Identifier: Apache-2.0
#include "cost/model_flops.h"

#include "cost/constants.h"
#include "cost/exchange.h"
#include "cost/part.h"
#include "cost/tiles.h"
#include "unit/cost/fixtures.h"

// A GPU without memory or kernel time: what is left is FLOP over the rate.
static ps_group flops_only(void)
{
    ps_group group = a100_group(1);
    group.gpu.memory_bytes_per_s.value = 1e30;
    group.gpu.kernel_seconds.value = 1e-30;
    group.gpu.peak_flops[PS_PRECISION_FP32].value = 1e30; // random numbers of dropout
    group.gpu.attention_efficiency.value = group.gpu.gemm_efficiency.value;
    return group;
}

// Qi et al. 2024, table 1: F, B and W of a GPT layer are as (24h + 4s) : (24h + 8s) : 24h.
static void gpt_backward_splits_as_in_the_zero_bubble_paper(void **state)
{
    ps_block block = gpt_block(4096, 32, 50304, 2048);
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = flops_only();
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    job.flash_attention = false;
    ps_layer_cost cost = cost_of(*state, &model, &group, &job, &layout).layer[1];

    double unit = 24.0 * 4096;
    double weight = (double)cost.backward_weight_ns * PS_COST_WEIGHT_GRADIENT_SHARE;
    assert_near((double)cost.forward_ns / weight, (unit + 4 * 2048) / unit, 1e-6);
    assert_near((double)cost.backward_input_ns / weight, (unit + 8 * 2048) / unit, 1e-6);
    assert_near(weight, 24.0 * 2048 * 4096 * 4096 / (312e12 * 0.74) * 1e9, 1e-6);
}

// Flash attention skips the masked half forward and recomputes scores backward: 2.5 times its forward.
static void flash_attention_costs_half_forward_and_two_and_a_half_times_that_backward(void **state)
{
    ps_block block = gpt_block(4096, 32, 50304, 2048);
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = flops_only();
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_layer_cost cost = cost_of(*state, &model, &group, &job, &layout).layer[1];

    double unit = 24.0 * 4096;
    double weight = (double)cost.backward_weight_ns * PS_COST_WEIGHT_GRADIENT_SHARE;
    double core = 2 * 2048 + 2 * PS_COST_FLASH_RAMP_TOKENS; // the ramp of a short sequence
    assert_near((double)cost.forward_ns / weight, (unit + core) / unit, 1e-6);
    assert_near((double)cost.backward_input_ns / weight, (unit + 2.5 * core) / unit, 1e-6);
}

static int64_t all_passes(const ps_layer_cost *cost)
{
    return cost->forward_ns + cost->backward_input_ns + cost->backward_weight_ns + cost->recompute_ns;
}

// Why even cuts are wrong: the head of Llama-3-8B has 2.4 times the FLOP of a block's matrices.
static void head_of_llama3_8b_weighs_more_than_two_blocks(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 32, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    double blocks = (double)all_passes(&table.layer[34]) / (double)all_passes(&table.layer[1]);
    assert_true(blocks > 2.1 && blocks < 2.5);
}

static void sliding_window_shortens_only_attention(void **state)
{
    ps_block full = llama3_8b_block();
    ps_block windowed = llama3_8b_block();
    windowed.sliding_window = 4096;
    ps_model a = transformer(*state, &full, 1, false);
    ps_model b = transformer(*state, &windowed, 1, false);
    ps_group group = flops_only();
    ps_job job = plain_job(8192);
    ps_layout layout = plain_layout();
    ps_layer_cost ca = cost_of(*state, &a, &group, &job, &layout).layer[1];
    ps_layer_cost cb = cost_of(*state, &b, &group, &job, &layout).layer[1];

    // Mean keys of a query: 4096 of 8192 without a window, 4096 * (1 - 4096 / 16384) = 3072 with.
    double ramp = (8192 + PS_COST_FLASH_RAMP_TOKENS) / 8192;
    double saved = ramp * 4.0 * 8192 * 1024 * 4096 / (312e12 * 0.74) * 1e9;
    assert_near((double)(ca.forward_ns - cb.forward_ns), saved, 1e-4);
    assert_int_equal(ca.backward_weight_ns, cb.backward_weight_ns);
    windowed.sliding_window = 8192;
    ps_model c = transformer(*state, &windowed, 1, false);
    assert_int_equal(cost_of(*state, &c, &group, &job, &layout).layer[1].forward_ns, ca.forward_ns);
}

// Two of eight experts work on a token, so Mixtral computes as a dense model of two FFNs.
static void experts_cost_as_many_flops_as_a_token_uses(void **state)
{
    ps_block experts = mixtral_block();
    ps_block dense = mixtral_block();
    dense.experts = dense.experts_per_token = dense.expert_ffn_size = 0;
    dense.ffn_size = 2 * 14336;
    ps_model a = transformer(*state, &experts, 1, false);
    ps_model b = transformer(*state, &dense, 1, false);
    double router = 6.0 * 4096 * 4096 * 8;
    assert_near(ps_layer_model_flops(&a.layer[1], 4096) - router, ps_layer_model_flops(&b.layer[1], 4096), 1e-12);

    ps_group group = a100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    int64_t of_experts = cost_of(*state, &a, &group, &job, &layout).layer[1].forward_ns;
    int64_t of_dense = cost_of(*state, &b, &group, &job, &layout).layer[1].forward_ns;
    assert_true(of_experts > of_dense && of_experts < of_dense * 3 / 2);
}

// With few tokens reading all experts' weights binds, so time hardly falls with the batch.
static void few_tokens_leave_experts_bound_by_memory(void **state)
{
    ps_block block = mixtral_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_layout layout = plain_layout();
    ps_job few = plain_job(64);
    ps_job more = plain_job(128);
    double a = (double)cost_of(*state, &model, &group, &few, &layout).layer[1].forward_ns;
    double b = (double)cost_of(*state, &model, &group, &more, &layout).layer[1].forward_ns;
    assert_near(a, b, 0.05);
    double weights = 2.0 * 8 * 3 * 4096 * 14336 / (3.35e12 * 0.75) * 1e9;
    assert_true(a > weights);
}

// Narayanan et al. 2021, equation 3 counts 72 s l h^2 (1 + s/6h) without recompute, attention unmasked; the causal half
// makes it s/12h. Vocabulary: 6 s h V.
static void model_flops_are_causal_and_without_recompute(void **state)
{
    ps_block block = gpt_block(12288, 96, 51200, 2048);
    ps_model model = transformer(*state, &block, 96, false);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.recompute = PS_RECOMPUTE_FULL;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    double s = 2048;
    double h = 12288;
    assert_near(table.model_flops, 72 * s * 96 * h * h * (1 + s / (12 * h)) + 6 * s * h * 51200, 1e-12);
}

static void full_recompute_repeats_the_forward_of_blocks_only(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 2, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.tp = 4;
    layout.recompute = PS_RECOMPUTE_FULL;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_int_equal(table.layer[0].recompute_ns, 0);
    assert_int_equal(table.layer[1].recompute_ns, table.layer[1].forward_ns);
    assert_int_equal(table.layer[3].recompute_ns, 0);
    assert_int_equal(table.layer[4].recompute_ns, 0);
}

static void more_work_never_takes_less_time(void **state)
{
    ps_block blocks[] = {llama3_8b_block(), mixtral_block(), gpt_block(4096, 32, 50304, 2048)};
    ps_group group = h100_group(2);

    for (int32_t i = 0; i < 3; i++) {
        ps_model model = transformer(*state, &blocks[i], 1, false);
        int64_t before[4] = {0};
        for (int32_t size = 1; size <= 64; size *= 2) {
            ps_job job = plain_job(1024);
            ps_layout layout = plain_layout();
            layout.micro_batch_size = size;
            ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
            for (int32_t layer = 0; layer < 4; layer++) {
                assert_true(all_passes(&table.layer[layer]) >= before[layer]);
                before[layer] = all_passes(&table.layer[layer]);
            }
        }
    }
}

// Eight ranks of one NVLink domain share a block's work but wait for each other.
static void tensor_parallelism_shares_work_and_adds_communication(void **state)
{
    ps_block block = llama3_70b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(4);
    ps_job job = plain_job(8192);
    ps_layout layout = plain_layout();
    int64_t alone = all_passes(&cost_of(*state, &model, &group, &job, &layout).layer[1]);
    layout.tp = 8;
    int64_t shared = all_passes(&cost_of(*state, &model, &group, &job, &layout).layer[1]);
    job.overlap_tp = true;
    int64_t overlapped = all_passes(&cost_of(*state, &model, &group, &job, &layout).layer[1]);
    assert_true(shared < alone / 4 && shared > alone / 8);
    assert_true(overlapped < shared && overlapped > alone / 8);
}

static void fp8_speeds_up_matrices_but_not_attention(void **state)
{
    ps_block block = llama3_70b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    ps_layer_cost bf16 = cost_of(*state, &model, &group, &job, &layout).layer[1];
    job.precision = PS_PRECISION_FP8;
    ps_layer_cost fp8 = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_near((double)bf16.backward_weight_ns / (double)fp8.backward_weight_ns, 1.6, 0.02);
    assert_true(fp8.backward_input_ns * 3 > bf16.backward_input_ns * 2);
}

// The sum of fourth powers: at the ridge 19 % above either limit, far from it that limit.
static void roofline_is_rounded_at_the_ridge(void **state)
{
    (void)state;
    assert_near(ps_part_roofline(3, 3), 3 * 1.189207115, 1e-9);
    assert_near(ps_part_roofline(3, 0), 3, 1e-12);
    assert_near(ps_part_roofline(0, 5), 5, 1e-12);
    assert_near(ps_part_roofline(1, 10), 10, 1e-4);
}

// 108 multiprocessors: 12 x 9 tiles of 256 x 128 are one round, one row more is a second; small products choose small
// tiles, and an unknown GPU loses nothing.
static void tiles_leave_the_last_round_idle(void **state)
{
    (void)state;
    assert_near(ps_tiles_busy_share(108, 3072, 1152, 1), 1, 1e-12);
    assert_true(ps_tiles_busy_share(108, 3073, 1152, 1) < 0.75);
    assert_true(ps_tiles_busy_share(108, 1024, 5120, 1) > 0.9); // 320 tiles of 128 x 128 in 3 rounds, not 160 in 2
    assert_near(ps_tiles_busy_share(108, 3072, 128, 9), 1, 1e-12);
    assert_near(ps_tiles_busy_share(108, 256, 128, 1), 4 * 0.85 / 108, 1e-12);
    assert_near(ps_tiles_busy_share(0, 3073, 1152, 1), 1, 1e-12);
    for (double rows = 1; rows < 20000; rows += 37) // time never falls with the size
        assert_true(rows / ps_tiles_busy_share(108, rows, 1152, 1) <=
                    (rows + 37) / ps_tiles_busy_share(108, rows + 37, 1152, 1) * (1 + 1e-12));
}

// What is not fused moves more, forward and backward, and nothing else changes.
static void eager_kernels_take_longer_in_norms_positions_and_activations(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = flops_only();
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    group.gpu.memory_bytes_per_s.value = 1e12;
    group.gpu.memory_efficiency.value = 1;
    double fused = (double)cost_of(*state, &model, &group, &job, &layout).layer[1].forward_ns;
    int64_t weight = cost_of(*state, &model, &group, &job, &layout).layer[1].backward_weight_ns;
    job.fused_kernels = false;
    ps_layer_cost eager = cost_of(*state, &model, &group, &job, &layout).layer[1];
    double more =
        (2 * (PS_COST_EAGER_NORM_BYTES - PS_COST_NORM_BYTES) * 4096 +
         (PS_COST_EAGER_ROTARY_BYTES - PS_COST_ROTARY_BYTES) * (4096 + 1024) + PS_COST_EAGER_ACTIVATION_BYTES * 14336) *
        8192 / 1e12 * 1e9;
    assert_near((double)eager.forward_ns - fused, more, 1e-4);
    assert_int_equal(eager.backward_weight_ns, weight);
}

// Of the seven products of a gated block, by operation the key projection, the output and the gate run again.
static void recompute_by_operation_repeats_every_other_product(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = flops_only();
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    layout.recompute = PS_RECOMPUTE_SELECTIVE;
    job.recompute_parts = PS_RECOMPUTE_OPS;
    ps_layer_cost cost = cost_of(*state, &model, &group, &job, &layout).layer[1];
    double again = 2.0 * 8192 * (4096.0 * 1024 + 4096.0 * 4096 + 4096.0 * 14336);
    assert_near((double)cost.recompute_ns, again / (312e12 * 0.74) * 1e9, 1e-3);
    layout.recompute = PS_RECOMPUTE_NONE;
    ps_layer_cost whole = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_true(cost.held_after_forward_bytes < whole.held_after_forward_bytes * 2 / 3);
    assert_int_equal(cost.forward_ns, whole.forward_ns);
}

// Grouped keys and values are held and moved as many times as heads read them.
static void repeated_keys_are_as_wide_as_queries(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = a100_group(1);
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    ps_layer_cost grouped = cost_of(*state, &model, &group, &job, &layout).layer[1];
    job.repeat_kv = true;
    ps_layer_cost repeated = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_int_equal(repeated.held_after_forward_bytes - grouped.held_after_forward_bytes,
                     INT64_C(2) * 8192 * 2 * (4096 - 1024));
    assert_true(repeated.forward_ns > grouped.forward_ns);
    ps_block plain = gpt_block(4096, 32, 50304, 8192); // has a key for every query: nothing to repeat
    ps_model gpt = transformer(*state, &plain, 1, false);
    int64_t once = cost_of(*state, &gpt, &group, &job, &layout).layer[1].forward_ns;
    job.repeat_kv = false;
    assert_int_equal(cost_of(*state, &gpt, &group, &job, &layout).layer[1].forward_ns, once);
}

// Random numbers cost the forward alone: with dropout it is closer to the input gradient than without.
static void dropout_draws_its_numbers_forward(void **state)
{
    ps_block block = gpt_block(2304, 24, 50304, 1024);
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = a100_group(1);
    ps_layout layout = plain_layout();
    ps_job job = plain_job(1024);
    job.flash_attention = false;
    int64_t drawn = cost_of(*state, &model, &group, &job, &layout).layer[1].forward_ns;
    int64_t backward = cost_of(*state, &model, &group, &job, &layout).layer[1].backward_input_ns;
    double numbers = 1024.0 * 1024 * 24 + 2.0 * 1024 * 2304;
    double seconds = PS_COST_DRAW_INSTRUCTIONS * numbers / (156e12 / 2);
    group.gpu.peak_flops[PS_PRECISION_FP32].value = 1e30;
    ps_layer_cost free = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_near((double)(drawn - free.forward_ns), seconds * 1e9, 1e-4);
    assert_int_equal(free.backward_input_ns, backward);
}

// All keys and values lie on every rank, and a slow network shows.
static void gathering_keys_holds_all_of_them(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(2);
    ps_layout layout = plain_layout();
    ps_job job = plain_job(16384);
    layout.cp = 16; // across nodes
    job.cp_method = PS_CP_ALL_GATHER;
    int64_t few = cost_of(*state, &model, &group, &job, &layout).layer[1].transient_bytes;
    job.repeat_kv = true;
    ps_layer_cost gathered = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_true(gathered.transient_bytes - few == INT64_C(4) * 16384 * 3072);
    group.inter.bytes_per_s.value /= 100;
    assert_true(gathered.forward_ns < cost_of(*state, &model, &group, &job, &layout).layer[1].forward_ns);
}

// Products in 8 bits gather their inputs in 8 bits: of a gather and a scatter three quarters are left.
static void eight_bits_halve_what_is_gathered(void **state)
{
    (void)state;
    ps_group group = h100_group(1);
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    layout.tp = 8;
    ps_rank_view wide = ps_rank_view_of(&group, &job, &layout);
    job.precision = PS_PRECISION_FP8;
    ps_rank_view narrow = ps_rank_view_of(&group, &job, &layout);
    double latency = 2 * ps_tp_half_exchange_seconds(&wide, 1e-9);
    assert_near(ps_tp_exchange_seconds(&narrow, 1e9) - latency, 0.75 * (ps_tp_exchange_seconds(&wide, 1e9) - latency),
                1e-9);
}

// Documents of a quarter of the sequence: a query sees an eighth of it instead of half.
static void packed_documents_shorten_only_attention(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = flops_only();
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    ps_layer_cost whole = cost_of(*state, &model, &group, &job, &layout).layer[1];
    job.packed_length = 2048;
    ps_layer_cost packed = cost_of(*state, &model, &group, &job, &layout).layer[1];
    double ramp = (8192 + PS_COST_FLASH_RAMP_TOKENS) / 8192;
    double saved = ramp * 4.0 * 8192 * (4096 - 1024) * 4096 / (312e12 * 0.74) * 1e9;
    assert_near((double)(whole.forward_ns - packed.forward_ns), saved, 1e-4);
    assert_int_equal(whole.backward_weight_ns, packed.backward_weight_ns);
    job.packed_length = 8192;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[1].forward_ns, whole.forward_ns);
}

// What waits in host memory is not held; copies show where they take longer than the pass beside them.
static void offloaded_activations_cost_what_no_pass_hides(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_layout layout = plain_layout();
    ps_job job = plain_job(8192);
    ps_layer_cost here = cost_of(*state, &model, &group, &job, &layout).layer[1];
    job.offload_activations_ppm = 500000;
    group.gpu.pcie_bytes_per_s.value = 1e12; // hidden
    ps_layer_cost half = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_near((double)half.held_after_forward_bytes, (double)here.held_after_forward_bytes / 2, 1e-6);
    assert_int_equal(half.forward_ns, here.forward_ns);
    assert_int_equal(half.backward_input_ns, here.backward_input_ns);
    group.gpu.pcie_bytes_per_s.value = 1e9;
    ps_layer_cost slow = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_near((double)slow.forward_ns, (double)here.held_after_forward_bytes / 2, 1e-6);
    assert_near((double)(slow.backward_input_ns + slow.backward_weight_ns), (double)here.held_after_forward_bytes / 2,
                1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(packed_documents_shorten_only_attention),
        test_in_arena(offloaded_activations_cost_what_no_pass_hides),
        test_in_arena(gathering_keys_holds_all_of_them),
        test_in_arena(eight_bits_halve_what_is_gathered),
        test_in_arena(tiles_leave_the_last_round_idle),
        test_in_arena(eager_kernels_take_longer_in_norms_positions_and_activations),
        test_in_arena(recompute_by_operation_repeats_every_other_product),
        test_in_arena(repeated_keys_are_as_wide_as_queries),
        test_in_arena(dropout_draws_its_numbers_forward),
        test_in_arena(gpt_backward_splits_as_in_the_zero_bubble_paper),
        test_in_arena(flash_attention_costs_half_forward_and_two_and_a_half_times_that_backward),
        test_in_arena(head_of_llama3_8b_weighs_more_than_two_blocks),
        test_in_arena(sliding_window_shortens_only_attention),
        test_in_arena(experts_cost_as_many_flops_as_a_token_uses),
        test_in_arena(few_tokens_leave_experts_bound_by_memory),
        test_in_arena(model_flops_are_causal_and_without_recompute),
        test_in_arena(full_recompute_repeats_the_forward_of_blocks_only),
        test_in_arena(more_work_never_takes_less_time),
        test_in_arena(tensor_parallelism_shares_work_and_adds_communication),
        cmocka_unit_test(roofline_is_rounded_at_the_ridge),
        test_in_arena(fp8_speeds_up_matrices_but_not_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
