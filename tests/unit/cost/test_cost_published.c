// SPDX-License-Identifier: Apache-2.0
//
// Predictions against published runs (golden_fit.csv of the reference data). Nothing was fitted to them: the caps are
// what an uncalibrated model must keep, and the figures are printed.
#include "unit/cost/csv.h"
#include "unit/cost/fixtures.h"

typedef struct errors {
    int32_t count;
    double absolute; // sums, in percent
    double signed_;
    double largest;
} errors;

static void add_error(errors *e, double predicted, double measured)
{
    double error = 100 * (predicted / measured - 1);
    double size = error < 0 ? -error : error;
    e->count++;
    e->signed_ += error;
    e->absolute += size;
    if (size > e->largest)
        e->largest = size;
}

static void report(const char *group, errors e, int32_t rows, double cap)
{
    assert_int_equal(e.count, rows);
    print_message("%-24s n=%2d mean |error| %5.2f %% bias %+6.2f %% largest %5.2f %%\n", group, (int)e.count,
                  e.absolute / e.count, e.signed_ / e.count, e.largest);
    if (e.absolute / e.count > cap)
        fail_msg("%s: mean error %.2f %% is above %.0f %%", group, e.absolute / e.count, cap);
}

// One row of the file as the cost model takes it.
typedef struct run {
    ps_model model;
    ps_group group;
    ps_job job;
    ps_layout layout;
    bool selective;  // recomputes core attention
    bool short_ends; // first and last stage hold one block fewer
    int32_t blocks;
} run;

static int32_t integer(const csv *table, int32_t row, const char *column, int32_t if_empty)
{
    return (int32_t)csv_number(table, row, column, if_empty);
}

static void read_run(ps_arena *arena, const csv *table, int32_t row, const ps_block *block, run *out)
{
    const char *recompute = csv_text(table, row, "recompute");
    bool tied = block->norm == PS_NORM_LAYER;

    *out = (run){.blocks = integer(table, row, "layers", 0), .selective = strcmp(recompute, "selective") == 0};
    out->model = transformer(arena, block, out->blocks, tied);
    out->group = a100_group((integer(table, row, "gpus", 8) + 7) / 8);
    out->job = plain_job(integer(table, row, "seq", 0));
    out->job.sequence_parallel = csv_number(table, row, "seq_parallel", 0) > 0;
    out->job.overlap_grad_sync = false;
    out->layout = plain_layout();
    out->layout.tp = integer(table, row, "tp", 1);
    out->layout.pp = integer(table, row, "pp", 1);
    out->layout.dp = integer(table, row, "dp", 1);
    out->layout.vp = integer(table, row, "vp", 1);
    out->layout.micro_batch_size = integer(table, row, "micro_batch", 1);
    out->layout.num_microbatches =
        integer(table, row, "global_batch", 0) / (out->layout.dp * out->layout.micro_batch_size);
    out->layout.recompute = strncmp(recompute, "full", 4) == 0 ? PS_RECOMPUTE_FULL : PS_RECOMPUTE_NONE;
}

static ps_block gpt_of_row(const csv *table, int32_t row)
{
    return gpt_block(integer(table, row, "hidden", 0), integer(table, row, "heads", 0),
                     integer(table, row, "vocab", 51200), integer(table, row, "seq", 0));
}

static double seconds_of(const ps_layer_cost *cost)
{
    return (double)(cost->forward_ns + cost->backward_input_ns + cost->backward_weight_ns + cost->recompute_ns) * 1e-9;
}

// Seconds that repeating core attention adds to a block's backward: its forward terms.
static double core_attention_seconds(ps_arena *arena, const run *r)
{
    ps_cost_terms terms;
    ps_status status = {0};
    double ms = 0;
    assert_ok(ps_cost_explain(arena, &r->model, &r->group, &r->job, &r->layout, 1, &terms, &status), &status);
    for (int32_t i = 0; i < terms.count; i++)
        if (strcmp(terms.term[i].quantity, "forward") == 0 && strncmp(terms.term[i].formula, "core attention", 14) == 0)
            ms += terms.term[i].value;
    assert_true(ms > 0);
    return ms * 1e-3;
}

// Sends are synchronous there: the slowest hop paces all of them.
static double slowest_hop_seconds(const run *r, int64_t bytes)
{
    int64_t slowest = 0;
    for (int32_t rank = 1; rank < r->layout.pp; rank++) {
        ps_cost_link link = ps_cost_pipeline_link(&r->group, &r->layout, rank - 1, rank);
        int64_t ns = link.latency_ns + ps_cost_transfer_ns(link, bytes);
        slowest = ns > slowest ? ns : slowest;
    }
    return (double)slowest * 1e-9;
}

// Closed forms of 1F1B and interleaved 1F1B (Narayanan et al. 2021): m slots of the slowest stage, one pass over the
// rest of the pipeline (over v when interleaved), every transfer exposed, then gradients and optimizer.
static double iteration_seconds(ps_arena *arena, const run *r)
{
    const ps_layout *layout = &r->layout;
    ps_cost_table table = cost_of(arena, &r->model, &r->group, &r->job, layout);
    double block = seconds_of(&table.layer[1]) + (r->selective ? core_attention_seconds(arena, r) : 0);
    double p = layout->pp;
    double m = layout->num_microbatches;
    double v = layout->vp;
    double per_stage = (r->blocks + (r->short_ends ? 2 : 0)) / p;
    double ends = r->short_ends ? per_stage - 1 : per_stage;
    double first = seconds_of(&table.layer[0]) + (p > 1 ? ends : per_stage) * block;
    double head = seconds_of(&table.layer[r->blocks + 1]) + seconds_of(&table.layer[r->blocks + 2]);
    double last = ends * block + head;
    double sum = p > 1 ? first + last + (p - 2) * per_stage * block : first + head;
    double slowest = per_stage * block;

    if (p == 1 || first > slowest)
        slowest = p == 1 ? sum : first;
    if (p > 1 && last > slowest)
        slowest = last;

    // Megatron scattered what it sent over the tensor parallel ranks even without sequence parallelism.
    double hop = slowest_hop_seconds(r, table.layer[1].output_bytes / (r->job.sequence_parallel ? 1 : layout->tp));
    double seconds = v > 1 ? m * slowest + (p - 1) / v * sum / p + 2 * (p - 1) * hop + 2 * v * m * hop
                           : (m - 1) * slowest + sum + 2 * (p - 1) * hop + 2 * (m - 1) * hop;

    ps_layer_cost share = table.prefix[1 + (int32_t)per_stage];
    ps_iteration_cost once = ps_cost_iteration(&r->group, &r->job, layout, &share);
    int64_t tied = ps_cost_tied_ns(&r->group, &r->job, layout, share.copy_parameters);
    return seconds + (double)(once.reduce_ns + tied + once.optimizer_ns + once.gather_ns) * 1e-9;
}

static bool row_is(const csv *table, int32_t row, const char *group, const char *note)
{
    return strcmp(csv_text(table, row, "group"), group) == 0 && strstr(csv_text(table, row, "note"), note);
}

// Megatron of 2021 and 2022 on A100: unfused attention, fp16, replicated optimizer, fp16 gradients.
static errors gpt_time_errors(ps_arena *arena, const csv *table, const char *group, const char *note)
{
    errors e = {0};
    for (int32_t row = 0; row < table->num_rows; row++) {
        double measured = csv_number(table, row, "measured_iteration_s", 0);
        if (!row_is(table, row, group, note) || measured == 0)
            continue;
        ps_block block = gpt_of_row(table, row);
        run r;
        read_run(arena, table, row, &block, &r);
        r.job.flash_attention = false;
        r.job.precision = PS_PRECISION_FP16;
        r.layout.zero = 0;
        r.job.gradient_bytes = 2;
        r.short_ends = strcmp(group, "zero-bubble-a100") == 0;
        if (strstr(note, "1F1B-I")) // one block a chunk
            r.layout.vp = (r.blocks + 2) / r.layout.pp;
        add_error(&e, iteration_seconds(arena, &r), measured);
    }
    return e;
}

static void iteration_time_on_a100_is_near_published_runs(void **state)
{
    csv table = csv_read(*state, "golden_fit.csv");
    report("Korthikanti 2022", gpt_time_errors(*state, &table, "korthikanti-t5-a100", ""), 8, 12);
    report("Megatron 2020", gpt_time_errors(*state, &table, "megatron-2020-a100", ""), 8, 12);
    report("zero bubble, 1F1B", gpt_time_errors(*state, &table, "zero-bubble-a100", "schedule=1F1B;"), 6, 12);
    report("zero bubble, interleaved", gpt_time_errors(*state, &table, "zero-bubble-a100", "schedule=1F1B-I;"), 6, 12);
}

// Largest over the stages of 1F1B: state, micro-batches in flight, and the worst transient; 0.3 GiB of small buffers.
static double peak_gib(ps_arena *arena, const run *r)
{
    const double gib = 1024.0 * 1024 * 1024;
    const ps_layout *layout = &r->layout;
    ps_cost_table table = cost_of(arena, &r->model, &r->group, &r->job, layout);
    int32_t layer = 0;
    double worst = 0;

    for (int32_t stage = 0; stage < layout->pp; stage++) {
        int32_t blocks = (r->blocks + (r->short_ends ? 2 : 0)) / layout->pp;
        bool is_last = stage == layout->pp - 1;
        int32_t in_flight = layout->pp - stage;
        if (in_flight > layout->num_microbatches)
            in_flight = layout->num_microbatches;
        if (r->short_ends && (stage == 0 || is_last))
            blocks--;
        int32_t end = layer + blocks + (stage == 0 ? 1 : 0) + (is_last ? 2 : 0);
        double bytes = 0;
        double transient = 0;
        for (; layer < end; layer++) {
            const ps_layer_cost *cost = &table.layer[layer];
            ps_state_bytes copy = ps_cost_state_bytes(&r->job, layout);
            bytes += (double)(cost->parameter_bytes + cost->gradient_bytes + cost->optimizer_bytes) +
                     (double)in_flight * (double)cost->held_after_forward_bytes;
            if (layout->pp > 1)
                bytes += (double)cost->copy_parameters * (copy.parameters + copy.gradients + copy.optimizer);
            if ((double)cost->transient_bytes > transient)
                transient = (double)cost->transient_bytes;
        }
        if (bytes + transient > worst)
            worst = bytes + transient;
    }
    assert_int_equal(layer, r->model.num_layers);
    return worst / gib + 0.3;
}

static void peak_memory_is_near_published_llama3_runs(void **state)
{
    csv table = csv_read(*state, "golden_fit.csv");
    errors e = {0};
    for (int32_t row = 0; row < table.num_rows; row++) {
        if (!row_is(&table, row, "simumax-b200-llama", ""))
            continue;
        ps_block block = llama3_70b_block();
        block.hidden_size = integer(&table, row, "hidden", 0);
        block.attention_heads = integer(&table, row, "heads", 0);
        block.kv_heads = integer(&table, row, "kv", 0);
        block.ffn_size = integer(&table, row, "ffn", 0);
        run r;
        read_run(*state, &table, row, &block, &r);
        double measured = csv_number(&table, row, "measured_mem_gib", 0);
        double predicted = peak_gib(*state, &r);
        print_message("  %-12s tp %d pp %d: %6.2f GiB measured, %6.2f predicted\n", csv_text(&table, row, "model"),
                      (int)r.layout.tp, (int)r.layout.pp, measured, predicted);
        add_error(&e, predicted, measured);
        assert_true(predicted > 0.95 * measured); // falling short is what makes a plan fail
    }
    report("SimuMax Llama-3, memory", e, 8, 8);
}

static void peak_memory_is_near_published_gpt_runs(void **state)
{
    csv table = csv_read(*state, "golden_fit.csv");
    errors e = {0};
    for (int32_t row = 0; row < table.num_rows; row++) {
        if (!row_is(&table, row, "zero-bubble-a100", "schedule=1F1B;"))
            continue;
        ps_block block = gpt_of_row(&table, row);
        run r;
        read_run(*state, &table, row, &block, &r);
        r.job.flash_attention = false;
        r.short_ends = true;
        add_error(&e, peak_gib(*state, &r), csv_number(&table, row, "measured_mem_gib", 0));
    }
    report("zero bubble, memory", e, 6, 8);
}

// Figure 1 of Korthikanti et al. 2022, the 22B model on one stage: 59.25 GiB of activations, 45.56 GiB of state.
static void activations_of_the_22b_model_match_the_paper(void **state)
{
    const double gib = 1024.0 * 1024 * 1024;
    csv table = csv_read(*state, "golden_fit.csv");
    int32_t found = 0;
    for (int32_t row = 0; row < table.num_rows; row++) {
        if (!row_is(&table, row, "korthikanti-fig1-a100", "activations=59.2500 GiB"))
            continue;
        ps_block block = gpt_of_row(&table, row);
        run r;
        read_run(*state, &table, row, &block, &r);
        r.job.flash_attention = false;
        ps_cost_table cost = cost_of(*state, &r.model, &r.group, &r.job, &r.layout);
        assert_near(48 * (double)cost.layer[1].held_after_forward_bytes / gib, 59.25, 1e-6);
        const ps_layer_cost *sum = &cost.prefix[cost.num_layers];
        assert_near((double)(sum->parameter_bytes + sum->gradient_bytes + sum->optimizer_bytes) / gib, 45.5625, 0.03);
        found++;
    }
    assert_int_equal(found, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(iteration_time_on_a100_is_near_published_runs),
        test_in_arena(peak_memory_is_near_published_llama3_runs),
        test_in_arena(peak_memory_is_near_published_gpt_runs),
        test_in_arena(activations_of_the_22b_model_match_the_paper),
    };
    return run_reference_tests(tests);
}
