// SPDX-License-Identifier: Apache-2.0
//
// test_torch_csv_reference.c: schedules that PyTorch's own generators made replay to the figures of an evaluator that
// shares no code with this one.
#include "io/file.h"
#include "support/cmocka_all.h"
#include "support/csv_text.h"
#include "support/pipelines.h"
#include "unit/schedule/torch_rules.h"

typedef struct row {
    char file[64];
    char schedule[32];
    int ranks;
    int chunks;
    int microbatches;
    costs cost;
    double makespan;
    double span;
    double peak; // in activations of a whole rank
    double bound;
} row;

static bool read_row(const char *line, row *out)
{
    int f;
    int b;
    int w;
    int c;
    if (sscanf(line, "%63[^,],%31[^,],%d,%d,%d,%d,%d,%d,%d,%lf,%lf,%*f,%*f,%lf,%lf", out->file, out->schedule,
               &out->ranks, &out->chunks, &out->microbatches, &f, &b, &w, &c, &out->makespan, &out->span, &out->peak,
               &out->bound) != 13)
        return false;
    out->cost = (costs){.forward_ns = f,
                        .backward_input_ns = b,
                        .backward_weight_ns = w,
                        .hop_latency_ns = c,
                        .held_after_forward = 2,
                        .held_after_backward_input = 1};
    return true;
}

static ps_pipeline *pipeline_of(ps_arena *arena, const ps_torch_csv *csv, costs cost)
{
    ps_pipeline *pipeline = looped_stages(arena, csv->actions.num_devices, csv->placement.num_stages,
                                          csv->placement.num_microbatches, cost);
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++)
        pipeline->stage[stage].device = csv->placement.device[stage];
    for (int32_t hop = 0; hop + 1 < pipeline->num_stages; hop++)
        if (pipeline->stage[hop].device == pipeline->stage[hop + 1].device)
            pipeline->forward_hop[hop] = pipeline->backward_hop[hop] = (ps_hop){0};
    ps_pipeline_assign_lanes(arena, pipeline);
    return pipeline;
}

static void check_row(ps_arena *arena, const row *want)
{
    ps_file_bytes bytes;
    ps_status status = {0};
    const char *path = ps_text_format(arena, "%s/torch_csv/%s", reference_data(), want->file);
    assert_ok(ps_file_read(arena, path, 1 << 20, &bytes, &status), &status);
    ps_torch_csv csv = csv_read(arena, bytes.data);
    assert_int_equal(csv.actions.num_devices, want->ranks);
    assert_int_equal(csv.placement.num_stages, want->ranks * want->chunks);
    assert_int_equal(csv.placement.num_microbatches, want->microbatches);

    ps_pipeline *pipeline = pipeline_of(arena, &csv, want->cost);
    ps_timeline timeline = simulate(arena, pipeline, &csv.schedule);
    assert_near((double)timeline.makespan_ns, want->makespan, 0);
    assert_near((double)timeline.span_ns, want->span, 0);
    int64_t peak = 0;
    for (int32_t device = 0; device < timeline.num_devices; device++)
        if (timeline.device[device].peak_activation > peak)
            peak = timeline.device[device].peak_activation;
    assert_near((double)peak / 2 / want->chunks, want->peak, 0);

    // The evaluator's bounds take every backward of a stage to be as the first is, which DualPipeV's are not.
    ps_schedule_bound bound;
    ps_schedule_bound_compute(pipeline, !csv.split_backward, &bound);
    assert_true(bound.makespan_ns <= timeline.makespan_ns);
    if (strcmp(want->schedule, "DualPipeV") != 0)
        assert_true((double)bound.makespan_ns >= want->bound); // ours knows more reasons to idle

    ps_actions compute;
    ps_actions all;
    ps_actions_compute(arena, &csv.actions, &compute);
    assert_ok(ps_actions_add_transfers(arena, &csv.placement, &compute, &all, &status), &status);
    pytorch_accepts(csv_text(arena, &compute), want->ranks, pipeline->num_stages, want->microbatches, false);
    pytorch_accepts(csv_text(arena, &all), want->ranks, pipeline->num_stages, want->microbatches, true);
    assert_ok(ps_actions_check_transfers(arena, &all, PS_SEND_RENDEZVOUS, &status), &status);
    assert_ok(ps_actions_check_transfers(arena, &all, PS_SEND_BUFFERED, &status), &status);
}

static void files_of_pytorch_replay_to_their_figures(void **state)
{
    (void)state;
    ps_arena *arena = ps_arena_new(0);
    ps_file_bytes table;
    ps_status status = {0};
    int32_t rows = 0;
    assert_ok(
        ps_file_read(arena, ps_text_format(arena, "%s/torch_csv/EVAL.csv", reference_data()), 1 << 20, &table, &status),
        &status);
    for (const char *line = strchr(table.data, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        row want;
        if (!read_row(line + 1, &want))
            fail_msg("not a row: %.80s", line + 1);
        ps_arena *scratch = ps_arena_new(0);
        check_row(scratch, &want);
        ps_arena_free(scratch);
        rows++;
    }
    print_message("%d rows, all equal\n", (int)rows);
    assert_in_range(rows, 100, 100000);
    ps_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_pytorch_replay_to_their_figures),
    };
    return run_reference_tests(tests);
}
