// SPDX-License-Identifier: Apache-2.0
#include "unit/check/checked.h"

#include "pipesched/limits.h"

static void a_consistent_plan_has_no_findings(void **state)
{
    assert_holds(*state, small_plan(*state));
}

static void a_dropped_layer_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[0].last_layer[0]--;
    const ps_finding *finding = assert_found(*state, plan, "layer-missing", "/stages/1/layer_ids/0");
    assert_string_equal(finding->message, "layers 1 to 1 are on no stage before this range");
}

static void layers_dropped_at_the_end_are_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[1].last_layer[0]--;
    assert_found(*state, plan, "layer-missing", "/stages");
}

static void a_layer_on_two_stages_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[1].first_layer[0]--;
    assert_found(*state, plan, "layer-twice", "/stages/1/layer_ids/0");
}

static void a_layer_name_on_two_stages_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[1].layer_name[0] = "block.0";
    assert_found(*state, plan, "layer-name-twice", "/stages/1/layers/0");
}

static void a_layer_beyond_the_model_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[1].last_layer[0]++;
    assert_found(*state, plan, "layer-unknown", "/stages");
}

static void a_stage_without_layers_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[0].num_ranges = 0;
    assert_found(*state, plan, "stage-empty", "/stages/0/layer_ids");
}

static void parameters_that_do_not_sum_to_the_model_are_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[0].parameters--;
    assert_found(*state, plan, "parameter-sum", "/inputs/model/parameters");
}

static void two_swapped_ops_are_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    ps_op *op = &plan->schedule.op[plan->schedule.first[0]]; // 0F0 0F1 0B0 ...
    ps_op first = op[0];
    op[0] = op[1];
    op[1] = first;
    assert_found(*state, plan, "schedule-order", "/schedule/cells/0/0");
}

static void a_missing_weight_gradient_is_found(void **state)
{
    ps_plan *plan = consistent_plan(*state, (plan_spec){.pp = 2,
                                                        .vp = 1,
                                                        .dp = 1,
                                                        .tp = 1,
                                                        .num_microbatches = 4,
                                                        .schedule = PS_SCHEDULE_ZB_H1,
                                                        .gpus_per_node = 2});
    assert_holds(*state, plan);
    plan->schedule.first[2]--; // the last cell of the last rank: its last W
    const ps_finding *finding = assert_found(*state, plan, "missing-cell", "/schedule/cells/1");
    assert_string_equal(finding->message, "1W3 never runs");
}

static void a_duplicate_cell_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->schedule.op[1].microbatch = 0;
    const ps_finding *finding = assert_found(*state, plan, "duplicate-cell", "/schedule/cells/0/1");
    assert_string_equal(finding->message, "0F0 runs twice");
    assert_found(*state, plan, "missing-cell", "/schedule/cells/0");
}

static void a_cell_on_the_wrong_device_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->schedule.op[0].stage = 1;
    assert_found(*state, plan, "cell-device", "/schedule/cells/0/0");
}

static void a_split_backward_in_a_whole_schedule_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->schedule.op[2].kind = PS_OP_BACKWARD_INPUT;
    assert_found(*state, plan, "cell-kind", "/schedule/cells/0/2");
}

static void lowered_memory_figures_are_found(void **state)
{
    static const struct {
        size_t offset;
        const char *rule;
        const char *pointer;
    } figures[] = {
        {offsetof(ps_plan_memory, parameters), "memory-parameters", "/devices/1/memory/parameters"},
        {offsetof(ps_plan_memory, gradients), "memory-gradients", "/devices/1/memory/gradients"},
        {offsetof(ps_plan_memory, optimizer), "memory-optimizer", "/devices/1/memory/optimizer"},
        {offsetof(ps_plan_memory, activations_peak), "memory-activations", "/devices/1/memory/activations_peak"},
        {offsetof(ps_plan_memory, transient), "memory-transient", "/devices/1/memory/transient"},
        {offsetof(ps_plan_memory, reserve), "memory-reserve", "/devices/1/memory/reserve"},
        {offsetof(ps_plan_memory, total_peak), "memory-sum", "/devices/1/memory/total_peak"},
        {offsetof(ps_plan_memory, headroom), "memory-headroom", "/devices/1/memory/headroom"},
    };
    for (size_t index = 0; index < sizeof figures / sizeof figures[0]; index++) {
        ps_plan *plan = small_plan(*state);
        char *at = (char *)&plan->device[1].memory + figures[index].offset;
        int64_t value;
        memcpy(&value, at, sizeof value);
        value--;
        memcpy(at, &value, sizeof value);
        assert_found(*state, plan, figures[index].rule, figures[index].pointer);
    }
}

static void a_raised_capacity_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->device[0].memory.capacity += 1000;
    plan->device[0].memory.headroom += 1000;
    assert_found(*state, plan, "memory-capacity", "/devices/0/memory/capacity");
}

static void a_plan_that_does_not_fit_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->gpu[0].memory_usable_bytes = plan->device[0].memory.total_peak - 1;
    for (int32_t device = 0; device < 2; device++) {
        ps_plan_memory *memory = &plan->device[device].memory;
        memory->capacity = plan->gpu[0].memory_usable_bytes;
        memory->headroom = memory->capacity - memory->total_peak;
    }
    assert_found(*state, plan, "memory", "/devices/0/memory/total_peak");
}

static void a_memory_limit_of_the_job_is_the_capacity(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->inputs.job.memory_limit_bytes = 3900000000;
    for (int32_t device = 0; device < 2; device++) {
        plan->device[device].memory.capacity = 3900000000;
        plan->device[device].memory.headroom -= 100000000;
    }
    assert_holds(*state, plan);
}

static void a_makespan_off_by_a_nanosecond_is_found(void **state)
{
    for (int64_t off = -1; off <= 1; off += 2) {
        ps_plan *plan = small_plan(*state);
        plan->prediction.makespan_ns += off;
        assert_found(*state, plan, "makespan", "/prediction/makespan_ms");
    }
}

static void a_false_gap_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->bounds.gap *= 1.0000001;
    assert_found(*state, plan, "gap", "/bounds/gap");

    plan = small_plan(*state);
    plan->bounds.proved = true;
    assert_found(*state, plan, "proved", "/bounds/proved");
}

static void a_bound_above_the_plan_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->bounds.iteration_ns = plan->prediction.iteration_ns + 1;
    plan->bounds.gap = -1.0 / (double)plan->bounds.iteration_ns;
    assert_found(*state, plan, "bound-above", "/bounds/iteration_ms");
}

static void a_pipeline_faster_than_any_order_is_found_first(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->prediction.pipeline_ns = plan->device[0].busy_ns;
    ps_check_result result = check(*state, plan);
    assert_true(result.count > 0);
    assert_string_equal(result.finding[0].rule, "below-bound");
}

static void permuted_ranks_are_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    ps_plan_rank first = plan->rank[0];
    plan->rank[0] = plan->rank[1];
    plan->rank[1] = first;
    assert_found(*state, plan, "rank-map", "/ranks/map/0/rank");

    plan = small_plan(*state);
    plan->rank_order = "tp-dp-pp";
    assert_found(*state, plan, "rank-order", "/ranks/order");
}

static void a_missing_rank_map_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->rank = NULL;
    assert_found(*state, plan, "rank-map", "/ranks");
}

static void a_wrong_hop_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->hop[0].from_stage = 1;
    plan->hop[0].to_stage = 0;
    assert_found(*state, plan, "hop-missing", "/hops");

    plan = small_plan(*state);
    plan->hop[1].bytes++;
    assert_found(*state, plan, "hop-bytes", "/hops/1/bytes");

    plan = small_plan(*state);
    plan->hop[1].transfer_ns++;
    assert_found(*state, plan, "hop-transfer", "/hops/1/transfer_ms");

    plan = small_plan(*state);
    plan->hop[0].link = "fast";
    assert_found(*state, plan, "unknown-link", "/hops/0/link");

    plan = small_plan(*state);
    plan->hop[0].link = "none";
    assert_found(*state, plan, "hop-link", "/hops/0/link");
}

static void a_hop_over_the_link_of_other_hops_is_found(void **state)
{
    // Four ranks on two nodes: the middle hop leaves the node, the others do not.
    ps_plan *plan = consistent_plan(*state, (plan_spec){.pp = 4,
                                                        .vp = 1,
                                                        .dp = 1,
                                                        .tp = 1,
                                                        .num_microbatches = 4,
                                                        .schedule = PS_SCHEDULE_GPIPE,
                                                        .gpus_per_node = 2});
    assert_holds(*state, plan);
    assert_string_equal(plan->hop[0].link, "fast");
    assert_string_equal(plan->hop[1].link, "slow");
    plan->hop[2].link = "slow";
    assert_found(*state, plan, "hop-latency", "/hops/2/latency_ms");
    assert_found(*state, plan, "hop-link", "/hops/2/link");
}

static void a_wrong_stage_time_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[1].backward_weight_ns++;
    assert_found(*state, plan, "busy-time", "/devices/1/busy_ms");
}

static void a_wrong_device_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[0].pp_rank = 1;
    assert_found(*state, plan, "stage-device", "/stages/0/pp_rank");
    assert_found(*state, plan, "stage-device", "/devices/0/stages/0");
}

static void a_stage_on_two_devices_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    int32_t both[] = {1, 0};
    plan->device[1].stage = both;
    plan->device[1].num_stages = 2;
    assert_found(*state, plan, "stage-twice", "/devices/1/stages/1");
}

static void a_stage_on_no_device_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->device[1].num_stages = 0;
    assert_found(*state, plan, "stage-unplaced", "/devices");
}

static void a_wrong_microbatch_count_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->layout.num_microbatches--;
    assert_found(*state, plan, "global-batch", "/inputs/job/global_batch_size");
    assert_found(*state, plan, "cell-count", "/schedule/cells");

    plan = small_plan(*state);
    plan->layout.num_microbatches = PS_MAX_MICROBATCHES;
    assert_found(*state, plan, "cell-count", "/schedule/cells");
}

static void a_layout_that_the_job_does_not_allow_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->inputs.job.schedule.value[0] = PS_SCHEDULE_GPIPE;
    assert_found(*state, plan, "not-allowed", "/layout/schedule");
}

static void ranks_beyond_the_cluster_are_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->inputs.cluster_nodes = 1;
    assert_found(*state, plan, "too-many-ranks", "/layout");
}

static void a_cheaper_iteration_than_its_price_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->prediction.usd_per_iteration *= 0.999999;
    assert_found(*state, plan, "cost", "/prediction/usd_per_iteration");
}

static void an_alternative_faster_than_the_plan_is_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->search.alternative[0].iteration_ns = plan->prediction.iteration_ns - 1;
    assert_found(*state, plan, "alternative-order", "/search/alternatives/0/iteration_ms");
}

static void figures_beyond_all_limits_are_refused_without_overflow(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->stage[0].forward_ns = INT64_MAX;
    assert_found(*state, plan, "time-overflow", "/stages/0");
    plan = small_plan(*state);
    plan->stage[1].optimizer_bytes = INT64_MAX;
    assert_found(*state, plan, "memory-overflow", "/stages/1");
    plan = small_plan(*state);
    plan->layout.vp = INT32_MAX;
    assert_found(*state, plan, "stage-count", "/stages");
}

static void an_infeasible_plan_needs_a_reason(void **state)
{
    ps_plan plan = {.feasible = false};
    assert_found(*state, &plan, "reason-missing", "/reasons");
    ps_reason reason = {.rule = "memory", .message = "too large"};
    plan.num_reasons = 1;
    plan.reason = &reason;
    assert_holds(*state, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_consistent_plan_has_no_findings),
        test_in_arena(a_dropped_layer_is_found),
        test_in_arena(layers_dropped_at_the_end_are_found),
        test_in_arena(a_layer_on_two_stages_is_found),
        test_in_arena(a_layer_name_on_two_stages_is_found),
        test_in_arena(a_layer_beyond_the_model_is_found),
        test_in_arena(a_stage_without_layers_is_found),
        test_in_arena(parameters_that_do_not_sum_to_the_model_are_found),
        test_in_arena(two_swapped_ops_are_found),
        test_in_arena(a_missing_weight_gradient_is_found),
        test_in_arena(a_duplicate_cell_is_found),
        test_in_arena(a_cell_on_the_wrong_device_is_found),
        test_in_arena(a_split_backward_in_a_whole_schedule_is_found),
        test_in_arena(lowered_memory_figures_are_found),
        test_in_arena(a_raised_capacity_is_found),
        test_in_arena(a_plan_that_does_not_fit_is_found),
        test_in_arena(a_memory_limit_of_the_job_is_the_capacity),
        test_in_arena(a_makespan_off_by_a_nanosecond_is_found),
        test_in_arena(a_false_gap_is_found),
        test_in_arena(a_bound_above_the_plan_is_found),
        test_in_arena(a_pipeline_faster_than_any_order_is_found_first),
        test_in_arena(permuted_ranks_are_found),
        test_in_arena(a_missing_rank_map_is_found),
        test_in_arena(a_wrong_hop_is_found),
        test_in_arena(a_hop_over_the_link_of_other_hops_is_found),
        test_in_arena(a_wrong_stage_time_is_found),
        test_in_arena(a_wrong_device_is_found),
        test_in_arena(a_stage_on_two_devices_is_found),
        test_in_arena(a_stage_on_no_device_is_found),
        test_in_arena(a_wrong_microbatch_count_is_found),
        test_in_arena(a_layout_that_the_job_does_not_allow_is_found),
        test_in_arena(ranks_beyond_the_cluster_are_found),
        test_in_arena(a_cheaper_iteration_than_its_price_is_found),
        test_in_arena(an_alternative_faster_than_the_plan_is_found),
        test_in_arena(figures_beyond_all_limits_are_refused_without_overflow),
        test_in_arena(an_infeasible_plan_needs_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
