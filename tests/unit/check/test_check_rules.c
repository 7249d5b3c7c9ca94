// SPDX-License-Identifier: Apache-2.0
//
// Rules that overlap with others: each must speak for itself, at the place that is wrong.
#include "unit/check/checked.h"

static void edit_cell_beyond(ps_plan *plan)
{
    plan->schedule.op[0].microbatch = 99;
}

static void edit_transfer_without_bandwidth(ps_plan *plan)
{
    plan->link[0].bytes_per_s = 0;
}

static void edit_unused_link(ps_plan *plan)
{
    static ps_plan_link links[2];
    links[0] = plan->link[0];
    links[1] = (ps_plan_link){"spare", 1, 1e9};
    plan->link = links;
    plan->num_links = 2;
}

static void edit_hop_listed_twice(ps_plan *plan)
{
    static ps_plan_hop hops[3];
    memcpy(hops, plan->hop, 2 * sizeof *hops);
    hops[2] = hops[0];
    plan->hop = hops;
    plan->num_hops = 3;
}

static void edit_hop_to_itself(ps_plan *plan)
{
    plan->hop[0].to_stage = 0;
}

static void edit_layer_name_dropped(ps_plan *plan)
{
    plan->stage[1].num_layers--;
}

static void edit_more_evaluated_than_there_are(ps_plan *plan)
{
    plan->search.evaluated = plan->search.candidates + 1;
}

static void edit_one_more_pruned(ps_plan *plan)
{
    plan->search.pruned++;
}

static void edit_alternative_micro_batches(ps_plan *plan)
{
    plan->search.alternative[1].layout.num_microbatches++;
}

static void edit_alternative_degree(ps_plan *plan)
{
    plan->search.alternative[1].layout.tp = 2;
}

static void edit_alternative_stages(ps_plan *plan)
{
    plan->search.alternative[0].layout.vp = 2;
}

static void edit_alternative_experts(ps_plan *plan)
{
    plan->search.alternative[0].layout.ep = 2;
}

static void edit_alternative_option(ps_plan *plan)
{
    plan->search.alternative[0].layout.schedule = PS_SCHEDULE_GPIPE; // the job asks for 1F1B
}

static void edit_alternative_beyond_capacity(ps_plan *plan)
{
    plan->search.alternative[0].peak_bytes = plan->device[0].memory.capacity + 1;
}

static void edit_alternative_below_the_reserve(ps_plan *plan)
{
    plan->search.alternative[1].peak_bytes = plan->inputs.job.memory_reserve_bytes - 1;
}

static void edit_fewer_evaluated_than_shown(ps_plan *plan)
{
    plan->search.evaluated -= 4;
    plan->search.pruned += 4;
}

static void edit_limit_hit(ps_plan *plan)
{
    plan->search.limit_hit = true;
}

static void edit_limit_diagnostic(ps_plan *plan)
{
    plan->diagnostic[0].code = "time-limit";
}

static void edit_launch_rule_of_another_target(ps_plan *plan)
{
    plan->launchable[0].verdict = "torchtitan-1-microbatches";
}

static void edit_launch_rule_without_a_name(ps_plan *plan)
{
    plan->launchable[0].verdict = "megatron-";
}

static void edit_alternative_loss(ps_plan *plan)
{
    plan->search.alternative[1].loses += 1e-6;
}

static void edit_rank_count(ps_plan *plan)
{
    plan->num_ranks--;
}

static void edit_expert_degree(ps_plan *plan)
{
    plan->layout.ep = 2; // a dense model
}

static void edit_negative_memory(ps_plan *plan)
{
    plan->device[0].memory.transient = -1;
}

static void edit_chunk(ps_plan *plan)
{
    plan->stage[1].chunk = 1;
}

static void edit_stage_recompute(ps_plan *plan)
{
    plan->stage[1].recompute = PS_RECOMPUTE_FULL;
}

static void edit_recompute_time(ps_plan *plan)
{
    plan->stage[1].recompute_ns = 1;
}

static void edit_unknown_gpu(ps_plan *plan)
{
    plan->device[1].gpu = "other";
}

static void edit_gpu_twice(ps_plan *plan)
{
    static ps_plan_gpu gpus[2];
    gpus[0] = gpus[1] = plan->gpu[0];
    plan->gpu = gpus;
    plan->num_gpus = 2;
}

static void edit_gpu_unused(ps_plan *plan)
{
    edit_gpu_twice(plan);
    plan->gpu[1].name = "other";
}

static void edit_exposed_sync(ps_plan *plan)
{
    plan->prediction.grad_sync_exposed_ns--;
    plan->prediction.iteration_ns--;
}

static void edit_optimizer_time(ps_plan *plan)
{
    plan->prediction.optimizer_ns--;
    plan->prediction.iteration_ns--;
}

static void edit_gather_time(ps_plan *plan)
{
    plan->prediction.param_gather_exposed_ns--;
    plan->prediction.iteration_ns--;
}

static void edit_iteration(ps_plan *plan)
{
    plan->prediction.iteration_ns++;
}

static void edit_zero_degree(ps_plan *plan)
{
    plan->layout.cp = 0;
}

static void edit_devices(ps_plan *plan)
{
    plan->num_devices = 1;
}

static void edit_lists_of_cells(ps_plan *plan)
{
    plan->schedule.num_devices = 1;
}

static void edit_endless_transfer(ps_plan *plan)
{
    plan->hop[1].transfer_ns = INT64_MAX;
}

static void edit_endless_sync(ps_plan *plan)
{
    plan->device[1].grad_sync_hidden_ns = INT64_MAX;
}

static void edit_endless_reserve(ps_plan *plan)
{
    plan->inputs.job.memory_reserve_bytes = INT64_MAX;
}

static void each_rule_reports_at_its_own_place(void **state)
{
    static const struct {
        void (*edit)(ps_plan *plan);
        const char *rule;
        const char *pointer;
    } edits[] = {
        {edit_cell_beyond, "unknown-cell", "/schedule/cells/0/0"},
        {edit_transfer_without_bandwidth, "hop-transfer", "/hops/0/link"},
        {edit_unused_link, "link-unused", "/links/1/name"},
        {edit_hop_listed_twice, "hop-count", "/hops"},
        {edit_hop_to_itself, "hop-stages", "/hops/0"},
        {edit_layer_name_dropped, "layer-names", "/stages/1/layers"},
        {edit_more_evaluated_than_there_are, "search-count", "/search/candidates"},
        {edit_one_more_pruned, "search-count", "/search/candidates"},
        {edit_alternative_micro_batches, "alternative-layout", "/search/alternatives/1/layout"},
        {edit_alternative_degree, "alternative-layout", "/search/alternatives/1/layout"},
        {edit_alternative_stages, "alternative-layout", "/search/alternatives/0/layout"},
        {edit_alternative_experts, "alternative-layout", "/search/alternatives/0/layout"},
        {edit_alternative_option, "alternative-layout", "/search/alternatives/0/layout"},
        {edit_alternative_beyond_capacity, "alternative-memory", "/search/alternatives/0/peak_bytes"},
        {edit_alternative_below_the_reserve, "alternative-memory", "/search/alternatives/1/peak_bytes"},
        {edit_fewer_evaluated_than_shown, "search-count", "/search/evaluated"},
        {edit_limit_hit, "limit-hit", "/search/limit_hit"},
        {edit_limit_diagnostic, "limit-hit", "/search/limit_hit"},
        {edit_launch_rule_of_another_target, "launch-verdict", "/launchable"},
        {edit_launch_rule_without_a_name, "launch-verdict", "/launchable"},
        {edit_alternative_loss, "alternative-loss", "/search/alternatives/1/loses"},
        {edit_rank_count, "rank-count", "/ranks/count"},
        {edit_expert_degree, "expert-degree", "/layout/ep"},
        {edit_negative_memory, "out-of-range", "/devices/0/memory"},
        {edit_chunk, "stage-chunk", "/stages/1/chunk"},
        {edit_chunk, "stage-chunk", "/devices/1/stages/0"},
        {edit_stage_recompute, "stage-recompute", "/stages/1/recompute"},
        {edit_recompute_time, "recompute-time", "/stages/1/recompute_ms"},
        {edit_unknown_gpu, "unknown-gpu", "/devices/1/gpu"},
        {edit_gpu_twice, "gpu-twice", "/gpus/1/name"},
        {edit_gpu_unused, "gpu-unused", "/gpus/1/name"},
        {edit_exposed_sync, "grad-sync", "/prediction/grad_sync_exposed_ms"},
        {edit_optimizer_time, "optimizer-time", "/prediction/optimizer_ms"},
        {edit_gather_time, "param-gather", "/prediction/param_gather_exposed_ms"},
        {edit_iteration, "iteration-sum", "/prediction/iteration_ms"},
        {edit_zero_degree, "out-of-range", "/layout"},
        {edit_devices, "device-count", "/devices"},
        {edit_lists_of_cells, "device-count", "/schedule/cells"},
        {edit_endless_transfer, "time-overflow", "/hops/1"},
        {edit_endless_sync, "time-overflow", "/devices/1"},
        {edit_endless_reserve, "memory-overflow", "/inputs/job/memory_reserve_bytes"},
    };
    for (size_t index = 0; index < sizeof edits / sizeof edits[0]; index++) {
        ps_plan *plan = small_plan(*state);
        edits[index].edit(plan);
        assert_found(*state, plan, edits[index].rule, edits[index].pointer);
    }
}

static void launch_verdicts_of_known_and_other_targets_hold(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->launchable[0].verdict = "megatron-1-schedule";
    assert_holds(*state, plan);
    plan->launchable[0] = (ps_plan_launchable){"nemo", "whatever"};
    assert_holds(*state, plan);
}

static void an_infeasible_plan_accounts_for_its_search(void **state)
{
    ps_plan *plan = small_plan(*state);
    ps_reason reason = {.rule = "memory", .message = "too large"};
    plan->feasible = false;
    plan->num_reasons = 1;
    plan->reason = &reason;
    assert_holds(*state, plan);
    plan->search.pruned++;
    assert_found(*state, plan, "search-count", "/search/candidates");
}

// Interleaved needs two chunks a device at least.
static void shapes_that_interleaved_cannot_have_are_found(void **state)
{
    ps_plan *plan = small_plan(*state);
    plan->layout.schedule = PS_SCHEDULE_INTERLEAVED;
    assert_found(*state, plan, "schedule-chunks", "/layout/vp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(each_rule_reports_at_its_own_place),
        test_in_arena(launch_verdicts_of_known_and_other_targets_hold),
        test_in_arena(an_infeasible_plan_accounts_for_its_search),
        test_in_arena(shapes_that_interleaved_cannot_have_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
