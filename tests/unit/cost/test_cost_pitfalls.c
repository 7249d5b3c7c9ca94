// SPDX-License-Identifier: Apache-2.0
//
// test_cost_pitfalls.c: what models of training costs are known to get wrong, one test each, where no other test here
// stands for it already. Those that do:
//   a padded vocabulary, a tied embedding that lives twice, logits and loss of the head      test_cost_memory.c
//   a head worth several blocks, FLOP that are causal and without recompute                  test_cost_compute.c
//   latency and floor of collectives                                                         test_cost_communication.c
//   interleaving with micro-batches that are no multiple of the ranks                        test_schedule_families.c
//   stages that are uneven                                                                   test_check_times.c
#include "base/text.h"
#include "model/model_params.h"
#include "support/planned.h"
#include "unit/cost/fixtures.h"

enum { BLOCK = 1 }; // a decoder layer of transformer()

static ps_layer_cost block_cost(ps_arena *arena, const ps_block *block, const ps_job *job, const ps_layout *layout)
{
    ps_model model = transformer(arena, block, 1, false);
    ps_group group = h100_group(8);
    return cost_of(arena, &model, &group, job, layout).layer[BLOCK];
}

static int64_t state_bytes(const ps_layer_cost *cost)
{
    return cost->parameter_bytes + cost->gradient_bytes + cost->optimizer_bytes;
}

// Qwen3, Gemma and gpt-oss have heads wider than hidden size / heads.
static void the_head_size_is_not_hidden_size_over_heads(void **state)
{
    ps_block block = llama3_8b_block();
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_layer_cost narrow = block_cost(*state, &block, &job, &layout);
    block.head_dim *= 2;
    ps_layer_cost wide = block_cost(*state, &block, &job, &layout);
    int64_t query = 32 * 128;
    int64_t key = 8 * 128;
    assert_int_equal(wide.parameters - narrow.parameters, 2 * 4096 * (query + key));
    assert_int_equal(wide.held_after_forward_bytes - narrow.held_after_forward_bytes, 2 * 4096 * 2 * (query + key));
    assert_true(wide.forward_ns > narrow.forward_ns);
}

// The replicas of an expert are fewer than those of the rest, and only they share its state out.
static void experts_shard_their_state_among_their_own_replicas(void **state)
{
    ps_block block = mixtral_block();
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.dp = layout.ep = 8;
    ps_layer_cost alone = block_cost(*state, &block, &job, &layout);
    int64_t dense = alone.parameters - alone.expert_parameters;
    assert_near((double)alone.optimizer_bytes, 12.0 * ((double)dense / 8 + (double)alone.expert_parameters), 1e-6);
    layout.dp = 16;
    ps_layer_cost twice = block_cost(*state, &block, &job, &layout);
    assert_near((double)twice.optimizer_bytes, 12.0 * ((double)dense / 16 + (double)alone.expert_parameters / 2), 1e-6);
}

#define COMMON "global-batch-size", "32", "micro-batch-size", "1", "schedule", "1f1b", "recompute", "none"

static void layers_that_the_stages_do_not_divide_are_all_placed(void **state)
{
    ps_plan plan = plan_of(*state, "llama-3.1-8b", "1x6xH100-SXM5-80GB",
                           OPTIONS(COMMON, "seq-length", "4096", "pp", "6", "tp", "1"));
    int32_t layers = 0;
    for (int32_t stage = 0; stage < 6; stage++)
        layers += plan.stage[stage].num_layers;
    assert_int_equal(layers, plan.inputs.model_layers);
    assert_int_not_equal(layers % 6, 0);
}

// 16k tokens by a vocabulary of 128k: more than the first stage holds of activations.
static void the_loss_needs_memory_on_the_last_stage_alone_where_it_can_be_the_most(void **state)
{
    ps_plan plan = plan_of(*state, "llama-3.1-8b", "1x8xH100-SXM5-80GB",
                           OPTIONS("global-batch-size", "32", "schedule", "1f1b", "seq-length", "8192", "pp", "8",
                                   "micro-batch-size", "2", "recompute", "full"));
    const ps_plan_memory *last = &plan.device[7].memory;
    int64_t logits = 2 * 8192 * INT64_C(128256);
    assert_int_equal(last->transient, 6 * logits);
    for (int32_t device = 0; device < 7; device++) {
        assert_true(plan.device[device].memory.transient < last->transient / 2);
        assert_true(plan.device[device].memory.total_peak < last->total_peak);
    }
}

static void a_gigabyte_is_not_a_gibibyte(void **state)
{
    ps_job job = job_of(OPTIONS("memory-limit", "80GB"));
    ps_job binary = job_of(OPTIONS("memory-limit", "80GiB"));
    char text[32];
    (void)state;
    assert_int_equal(job.memory_limit_bytes, 80000000000);
    assert_int_equal(binary.memory_limit_bytes, 85899345920);
    assert_string_equal(ps_format_bytes(job.memory_limit_bytes, text), "74.5 GiB");
}

static void logits_in_32_bits_cost_time_and_memory(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    int64_t logits = 4096 * INT64_C(128256);
    ps_layer_cost fused = cost_of(*state, &model, &group, &job, &layout).layer[3];
    job.fused_loss = false;
    ps_layer_cost plain = cost_of(*state, &model, &group, &job, &layout).layer[3];
    assert_int_equal(fused.transient_bytes, 6 * logits);
    assert_int_equal(plain.transient_bytes, 10 * logits); // a copy in 32 bits, and its gradient
    assert_true(plain.forward_ns > fused.forward_ns);
    assert_true(plain.backward_input_ns > fused.backward_input_ns);
}

static void full_recompute_repeats_the_exchanges_of_tensor_parallelism(void **state)
{
    ps_block block = llama3_8b_block();
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.recompute = PS_RECOMPUTE_FULL;
    ps_layer_cost cost = block_cost(*state, &block, &job, &layout);
    assert_int_equal(cost.recompute_ns, cost.forward_ns);
    job.overlap_tp = true;
    ps_layer_cost hidden = block_cost(*state, &block, &job, &layout);
    assert_true(hidden.forward_ns < cost.forward_ns);
    assert_int_equal(hidden.recompute_ns, hidden.forward_ns);
}

static double exchange_ms(ps_arena *arena, const ps_block *block, int32_t tp)
{
    ps_model model = transformer(arena, block, 1, false);
    ps_group group = h100_group(8);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_cost_terms terms;
    ps_status status = {0};
    double sum = 0;
    layout.tp = tp;
    assert_ok(ps_cost_explain(arena, &model, &group, &job, &layout, BLOCK, &terms, &status), &status);
    for (int32_t index = 0; index < terms.count; index++)
        if (strcmp(terms.term[index].quantity, "forward") == 0 &&
            strncmp(terms.term[index].formula, "tensor parallel", 15) == 0)
            sum += terms.term[index].value;
    return sum;
}

// The same bytes for each rank, and eight NICs in place of NVLink.
static void tensor_parallelism_beyond_a_node_goes_over_the_nics(void **state)
{
    ps_block block = llama3_70b_block();
    double within = exchange_ms(*state, &block, 8);
    double across = exchange_ms(*state, &block, 16);
    assert_true(within > 0);
    assert_true(across > 1.4 * within);
}

// 56 GiB at a hidden size of 1024, in a row of Megatron-LM's own tests.
static void unfused_attention_holds_the_square_of_the_sequence(void **state)
{
    ps_block block = gpt_block(1024, 16, 51200, 0);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    int64_t beyond_flash[2];
    for (int32_t doubled = 0; doubled < 2; doubled++) {
        job.seq_length = 4096 << doubled;
        job.flash_attention = true;
        int64_t flash = block_cost(*state, &block, &job, &layout).held_after_forward_bytes;
        int64_t log_sum_exp = 4 * job.seq_length * 16;
        job.flash_attention = false;
        beyond_flash[doubled] =
            block_cost(*state, &block, &job, &layout).held_after_forward_bytes - flash + log_sum_exp;
    }
    assert_int_equal(beyond_flash[0], INT64_C(5) * 16 * 4096 * 4096);
    assert_int_equal(beyond_flash[1], 4 * beyond_flash[0]);
}

static void one_replica_shares_nothing_out(void **state)
{
    ps_block block = llama3_8b_block();
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.zero = 0;
    ps_layer_cost whole = block_cost(*state, &block, &job, &layout);
    layout.zero = 3;
    ps_layer_cost sharded = block_cost(*state, &block, &job, &layout);
    assert_int_equal(state_bytes(&sharded), state_bytes(&whole));
}

static void context_ranks_share_out_state_like_replicas(void **state)
{
    ps_block block = llama3_8b_block();
    ps_job job = plain_job(8192);
    ps_layout layout = plain_layout();
    layout.dp = 8;
    ps_layer_cost replicas = block_cost(*state, &block, &job, &layout);
    layout.dp = 2;
    layout.cp = 4;
    ps_layer_cost context = block_cost(*state, &block, &job, &layout);
    assert_int_equal(context.optimizer_bytes, replicas.optimizer_bytes);
    assert_int_equal(context.parameter_bytes, replicas.parameter_bytes);
}

// With 2 KV heads 8 ranks hold as much of them each as 2 ranks do.
static void kv_heads_fewer_than_ranks_are_replicated(void **state)
{
    ps_block block = llama3_8b_block();
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    ps_layer_cost divided = block_cost(*state, &block, &job, &layout);
    block.kv_heads = 2;
    ps_layer_cost replicated = block_cost(*state, &block, &job, &layout);
    block.kv_heads = 4;
    ps_layer_cost again = block_cost(*state, &block, &job, &layout);
    assert_int_equal(replicated.parameters, divided.parameters); // one head a rank in each case
    assert_int_equal(again.held_after_forward_bytes, divided.held_after_forward_bytes);
}

// DeepSeek-V3 predicts one more token with a block, a projection before it, and the head and embedding once more.
static void a_layer_that_predicts_one_more_token_is_a_block_and_a_head(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 2, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_status status = {0};
    ps_layer *mtp = &model.layer[2];
    *mtp = ps_layer_named("mtp", "mtp", PS_LAYER_MTP, "mtp");
    assert_ok(ps_layer_set_block(mtp, model.layer[1].block, &status), &status);
    ps_layer_tie(mtp, 0);
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    const ps_layer_cost *cost = table.layer;
    assert_true(cost[2].parameters >= cost[1].parameters + 2 * 4096 * 4096);
    assert_int_equal(cost[2].copy_parameters, cost[0].parameters);
    assert_true(cost[2].forward_ns > cost[1].forward_ns + cost[4].forward_ns);
    assert_true(cost[2].held_after_forward_bytes > cost[1].held_after_forward_bytes + cost[4].held_after_forward_bytes);
}

static void a_small_message_takes_no_less_than_the_latency(void **state)
{
    ps_group group = a100_group(1);
    int64_t least = ps_cost_all_reduce_ns(&group, 8, 1, 8);
    (void)state;
    assert_true(least > 40000); // 93 us where nccl-tests measured it
    assert_true(ps_cost_all_reduce_ns(&group, 8, 1, 1 << 20) < 2 * least);
}

// Benchmarks that force an even routing are faster than training.
static void uneven_routing_takes_time_and_memory(void **state)
{
    ps_block block = mixtral_block();
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.dp = layout.ep = 8;
    ps_layer_cost even = block_cost(*state, &block, &job, &layout);
    job.expert_imbalance = 1.25;
    ps_layer_cost uneven = block_cost(*state, &block, &job, &layout);
    assert_true(uneven.forward_ns > even.forward_ns);
    assert_true(uneven.held_after_forward_bytes > even.held_after_forward_bytes);
    assert_int_equal(uneven.parameters, even.parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(the_head_size_is_not_hidden_size_over_heads),
        test_in_arena(experts_shard_their_state_among_their_own_replicas),
        test_in_arena(layers_that_the_stages_do_not_divide_are_all_placed),
        test_in_arena(the_loss_needs_memory_on_the_last_stage_alone_where_it_can_be_the_most),
        test_in_arena(a_gigabyte_is_not_a_gibibyte),
        test_in_arena(logits_in_32_bits_cost_time_and_memory),
        test_in_arena(full_recompute_repeats_the_exchanges_of_tensor_parallelism),
        test_in_arena(tensor_parallelism_beyond_a_node_goes_over_the_nics),
        test_in_arena(unfused_attention_holds_the_square_of_the_sequence),
        test_in_arena(one_replica_shares_nothing_out),
        test_in_arena(context_ranks_share_out_state_like_replicas),
        test_in_arena(kv_heads_fewer_than_ranks_are_replicated),
        test_in_arena(a_layer_that_predicts_one_more_token_is_a_block_and_a_head),
        test_in_arena(a_small_message_takes_no_less_than_the_latency),
        test_in_arena(uneven_routing_takes_time_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
