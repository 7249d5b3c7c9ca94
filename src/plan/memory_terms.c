// SPDX-License-Identifier: Apache-2.0
//
// memory_terms.c: the memory of a plan's device taken apart again: stages, kinds of layers, and the formulas of each.
//
// Kinds are rows of the cost table, and their terms come from the functions that made those rows, so that what is shown
// is what was added up. A row is rounded to whole bytes once, which is a term too.
#include "pipesched/memory_terms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "pipesched/cost.h"
#include "plan/memory_peak.h"
#include "plan/pipeline_build.h"

// Layers of one name and one cost on a stage.
typedef struct layer_kind {
    const char *name;
    const ps_layer_cost *row; // of each
    int32_t layers;
    ps_cost_terms terms;
} layer_kind;

typedef struct builder {
    ps_arena *arena;
    const ps_memory_source *source;
    const ps_cost_table *table;
    ps_memory_terms *out;
    ps_vec(ps_memory_term) terms;
    const ps_plan_stage *stage; // the one whose terms are entered
    ps_vec(layer_kind) kinds;   // of its layers
} builder;

// What of a layer is shown in one part of memory.
typedef struct layer_quantity {
    const char *part;
    const char *name; // of the terms of ps_cost_explain()
    size_t row;       // offset in ps_layer_cost of what they add up to
} layer_quantity;

static const layer_quantity PARAMETERS = {"parameters", "parameter state", offsetof(ps_layer_cost, parameter_bytes)};
static const layer_quantity GRADIENTS = {"gradients", "gradient state", offsetof(ps_layer_cost, gradient_bytes)};
static const layer_quantity OPTIMIZER = {"optimizer", "optimizer state", offsetof(ps_layer_cost, optimizer_bytes)};
static const layer_quantity HELD = {"activations_peak", "held after forward",
                                    offsetof(ps_layer_cost, held_after_forward_bytes)};
static const layer_quantity RECOMPUTED = {"activations_peak", "recomputed", offsetof(ps_layer_cost, recomputed_bytes)};
static const layer_quantity BETWEEN = {"activations_peak", "held after backward input",
                                       offsetof(ps_layer_cost, held_after_backward_input_bytes)};
static const layer_quantity TRANSIENT = {"transient", "transient", offsetof(ps_layer_cost, transient_bytes)};

static int64_t row_bytes(const ps_layer_cost *cost, layer_quantity quantity)
{
    int64_t bytes;
    memcpy(&bytes, (const char *)cost + quantity.row, sizeof bytes);
    return bytes;
}

static void add(builder *b, ps_memory_term term)
{
    if (term.each == 0 || term.microbatches == 0)
        return;
    term.stage = b->stage ? b->stage->stage : -1;
    term.bytes = (double)term.layers * term.microbatches * term.each;
    *ps_vec_push(b->arena, &b->terms) = term;
}

static void add_whole(builder *b, const char *part, const char *formula, int32_t microbatches, int64_t bytes)
{
    add(b, (ps_memory_term){
               .part = part, .layers = 1, .microbatches = microbatches, .each = (double)bytes, .formula = formula});
}

// Every formula of a quantity in `layers` layers of a kind.
static void add_kind(builder *b, const layer_kind *kind, int32_t layers, layer_quantity quantity, int32_t microbatches)
{
    ps_memory_term term = {.part = quantity.part, .layer = kind->name, .layers = layers, .microbatches = microbatches};
    double sum = 0;
    for (int32_t index = 0; index < kind->terms.count; index++) {
        if (strcmp(kind->terms.term[index].quantity, quantity.name) != 0)
            continue;
        term.each = kind->terms.term[index].value;
        term.formula = kind->terms.term[index].formula;
        sum += term.each;
        add(b, term);
    }
    term.each = (double)row_bytes(kind->row, quantity) - sum;
    term.formula = "rounded to a whole byte";
    add(b, term);
}

// `whole` is the stage's own figure, which stands for its layers where they are not known.
static void add_layers(builder *b, layer_quantity quantity, int32_t microbatches, int64_t whole)
{
    if (!b->table)
        add_whole(b, quantity.part, "its layers together", microbatches, whole);
    for (int64_t index = 0; index < b->kinds.count; index++)
        add_kind(b, &b->kinds.data[index], b->kinds.data[index].layers, quantity, microbatches);
}

static bool same_kind(const builder *b, const layer_kind *kind, int32_t layer)
{
    const ps_model *model = b->source->model;
    return strcmp(kind->name, model->layer[layer].base_name) == 0 &&
           memcmp(kind->row, &b->table->layer[layer], sizeof *kind->row) == 0;
}

static ps_code find_kinds(builder *b, ps_status *status)
{
    const ps_memory_source *source = b->source;
    const ps_plan *plan = source->plan;
    b->kinds.count = 0;
    if (!b->table)
        return PS_OK;
    for (int32_t layer = b->stage->first_layer[0]; layer <= b->stage->last_layer[0]; layer++) {
        int64_t known = 0;
        while (known < b->kinds.count && !same_kind(b, &b->kinds.data[known], layer))
            known++;
        if (known < b->kinds.count) {
            b->kinds.data[known].layers++;
            continue;
        }
        layer_kind kind = {.name = source->model->layer[layer].base_name, .row = &b->table->layer[layer], .layers = 1};
        PS_TRY(ps_cost_explain(b->arena, source->model, source->group, &plan->inputs.job, &plan->layout, layer,
                               &kind.terms, status));
        *ps_vec_push(b->arena, &b->kinds) = kind;
    }
    return PS_OK;
}

// Each stage of the device in turn: `fn` enters its terms.
static ps_code for_each_stage(builder *b, void (*fn)(builder *b, const ps_memory_holding *holding), ps_status *status)
{
    for (int32_t index = 0; index < b->out->num_holdings; index++) {
        b->stage = &b->source->plan->stage[b->out->holding[index].stage];
        PS_TRY(find_kinds(b, status));
        fn(b, &b->out->holding[index]);
    }
    b->stage = NULL;
    return PS_OK;
}

// State of the weights of which another device has the original.
static void add_copies(builder *b, const char *part, double bytes_an_element)
{
    const ps_memory_source *source = b->source;
    int64_t copies = 0;
    if (!b->table)
        return;
    for (int32_t layer = b->stage->first_layer[0]; layer <= b->stage->last_layer[0]; layer++)
        copies += b->table->layer[layer].copy_parameters;
    int32_t stages = ps_layout_cuts(&source->plan->layout);
    int32_t *first_layer = ps_new(b->arena, int32_t, stages + 1);
    for (int32_t stage = 0; stage < stages; stage++)
        first_layer[stage] = source->plan->stage[stage].first_layer[0];
    first_layer[stages] = source->model->num_layers;
    if (copies > 0 && ps_cut_tied_owner(source->model, &source->plan->layout, first_layer) >= 0)
        add_whole(b, part, "copy of a weight that another device owns", 1,
                  (int64_t)ceil((double)copies * bytes_an_element));
}

static ps_state_bytes state_of(const builder *b)
{
    return ps_cost_state_bytes(&b->source->plan->inputs.job, &b->source->plan->layout);
}

static void add_parameters(builder *b, const ps_memory_holding *holding)
{
    (void)holding;
    add_layers(b, PARAMETERS, 1, b->stage->parameter_bytes);
    add_copies(b, PARAMETERS.part, state_of(b).parameters);
}

static void add_gradients(builder *b, const ps_memory_holding *holding)
{
    (void)holding;
    add_layers(b, GRADIENTS, 1, b->stage->gradient_bytes);
    add_copies(b, GRADIENTS.part, state_of(b).gradients);
}

static void add_optimizer(builder *b, const ps_memory_holding *holding)
{
    (void)holding;
    add_layers(b, OPTIMIZER, 1, b->stage->optimizer_bytes);
    add_copies(b, OPTIMIZER.part, state_of(b).optimizer);
}

// Where R is an op of its own, it brings back what the layers' inputs do not hold already.
static void add_recomputed(builder *b, int32_t microbatches)
{
    if (!b->table)
        add_whole(b, RECOMPUTED.part, "its layers together, recomputed", microbatches,
                  b->stage->added_by_recompute_bytes);
    for (int64_t index = 0; index < b->kinds.count; index++) {
        const layer_kind *kind = &b->kinds.data[index];
        const ps_layer_cost *row = kind->row;
        if (row->recomputed_bytes <= row->held_after_forward_bytes)
            continue;
        add_kind(b, kind, kind->layers, RECOMPUTED, microbatches);
        add(b, (ps_memory_term){.part = RECOMPUTED.part,
                                .layer = kind->name,
                                .layers = kind->layers,
                                .microbatches = microbatches,
                                .each = -(double)row->held_after_forward_bytes,
                                .formula = "less the kept input, which is part of what is recomputed"});
    }
}

static void add_activations(builder *b, const ps_memory_holding *holding)
{
    add_layers(b, HELD, holding->after_forward, b->stage->held_after_forward_bytes);
    add_recomputed(b, holding->recomputed);
    add_layers(b, BETWEEN, holding->after_backward_input, b->stage->held_after_backward_input_bytes);
}

static bool has_recompute_op(const ps_plan *plan)
{
    return ps_schedule_family_at(plan->layout.schedule)->recomputes;
}

static int64_t transient_of(const builder *b, const layer_kind *kind)
{
    return kind->row->transient_bytes - (has_recompute_op(b->source->plan) ? kind->row->recomputed_bytes : 0);
}

// Of the stage that needs most, the layer that needs most: one runs at a time.
static ps_code add_transient(builder *b, ps_status *status)
{
    const ps_plan *plan = b->source->plan;
    const ps_plan_stage *most = &plan->stage[b->out->holding[0].stage];
    for (int32_t index = 1; index < b->out->num_holdings; index++) {
        const ps_plan_stage *stage = &plan->stage[b->out->holding[index].stage];
        if (stage->transient_bytes > most->transient_bytes)
            most = stage;
    }
    b->stage = most;
    PS_TRY(find_kinds(b, status));
    if (!b->table)
        add_whole(b, TRANSIENT.part, "its layer that needs most", 1, most->transient_bytes);
    const layer_kind *largest = b->kinds.count > 0 ? &b->kinds.data[0] : NULL;
    for (int64_t index = 1; index < b->kinds.count; index++)
        if (transient_of(b, &b->kinds.data[index]) > transient_of(b, largest))
            largest = &b->kinds.data[index];
    if (largest && transient_of(b, largest) > 0) {
        add_kind(b, largest, 1, TRANSIENT, 1);
        if (has_recompute_op(plan))
            add(b, (ps_memory_term){.part = TRANSIENT.part,
                                    .layer = largest->name,
                                    .layers = 1,
                                    .microbatches = 1,
                                    .each = -(double)largest->row->recomputed_bytes,
                                    .formula = "less what R has brought back before"});
    }
    b->stage = NULL;
    return PS_OK;
}

static void add_job_options(builder *b)
{
    const ps_plan_memory *memory = b->out->memory;
    const ps_job *job = &b->source->plan->inputs.job;
    char share[32];
    add_whole(b, "framework", "--memory-framework", 1, memory->framework);
    ps_format_double((double)job->memory_fragmentation_ppm / 1e4, share);
    add_whole(b, "fragmentation", ps_text_format(b->arena, "--memory-fragmentation, %s %% of the six before", share), 1,
              memory->fragmentation);
    add_whole(b, "reserve", "--memory-reserve", 1, memory->reserve);
}

static double sum_of(const builder *b, const char *part)
{
    double sum = 0;
    for (int64_t index = 0; index < b->terms.count; index++)
        if (strcmp(b->terms.data[index].part, part) == 0)
            sum += b->terms.data[index].bytes;
    return sum;
}

// Another model, or another version of the cost model, gives other sizes.
static ps_code compare_with_plan(const builder *b, ps_status *status)
{
    const ps_plan_memory *memory = b->out->memory;
    const struct {
        const char *part;
        int64_t bytes;
    } parts[] = {{"parameters", memory->parameters},
                 {"gradients", memory->gradients},
                 {"optimizer", memory->optimizer},
                 {"activations_peak", memory->activations_peak},
                 {"transient", memory->transient}};
    for (size_t index = 0; index < sizeof parts / sizeof *parts; index++) {
        int64_t sum = llround(sum_of(b, parts[index].part));
        if (sum == parts[index].bytes)
            continue;
        ps_fail(status, PS_BAD_INPUT, "other-figures",
                "the plan has %" PRId64 " bytes of %s on pipeline rank %d, this version gives %" PRId64,
                parts[index].bytes, parts[index].part, (int)b->out->device, sum);
        return ps_fail_hint(status, "plan again, or leave --model out to see the plan's own figures");
    }
    return PS_OK;
}

static ps_code build_table(builder *b, ps_status *status)
{
    const ps_memory_source *source = b->source;
    const ps_plan *plan = source->plan;
    ps_cost_table *table = ps_new(b->arena, ps_cost_table, 1);
    if (!source->model)
        return PS_OK;
    if (source->model->num_layers != plan->inputs.model_layers)
        return ps_fail(status, PS_BAD_INPUT, "other-figures", "the plan's model has %d layers, %s has %d",
                       (int)plan->inputs.model_layers, source->model->name, (int)source->model->num_layers);
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        if (plan->stage[stage].num_ranges != 1)
            return ps_fail(status, PS_BAD_INPUT, "other-figures", "the layers of stage %d do not follow each other",
                           (int)stage);
    b->table = table;
    return ps_cost_table_build(b->arena, source->model, source->group, &plan->inputs.job, &plan->layout, table, status);
}

ps_code ps_plan_memory_terms(ps_arena *arena, const ps_memory_source *source, int32_t device, ps_memory_terms *out,
                             ps_status *status)
{
    builder b = {.arena = arena, .source = source, .out = out};
    *out = (ps_memory_terms){.device = device, .memory = &source->plan->device[device].memory};
    PS_TRY(build_table(&b, status));
    ps_memory_find_peak(arena, source, out);
    PS_TRY(for_each_stage(&b, add_parameters, status));
    PS_TRY(for_each_stage(&b, add_gradients, status));
    PS_TRY(for_each_stage(&b, add_optimizer, status));
    PS_TRY(for_each_stage(&b, add_activations, status));
    PS_TRY(add_transient(&b, status));
    add_job_options(&b);
    out->count = (int32_t)b.terms.count;
    out->term = b.terms.data;
    return compare_with_plan(&b, status);
}

int32_t ps_plan_fullest(const ps_plan *plan)
{
    int32_t fullest = 0;
    for (int32_t device = 1; device < plan->num_devices; device++)
        if (plan->device[device].memory.headroom < plan->device[fullest].memory.headroom)
            fullest = device;
    return fullest;
}
