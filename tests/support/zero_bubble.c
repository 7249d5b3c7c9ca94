// SPDX-License-Identifier: Apache-2.0
//
// zero_bubble.c: rows of the reference table zero_bubble_baseline.csv, as pipelines.
#include "support/zero_bubble.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

// Columns; times are in microseconds.
enum {
    SET = 0,
    METHOD = 1,
    MODEL = 2,
    P = 3,
    M = 4,
    F = 5,
    B = 6,
    W = 7,
    C = 8,
    HELD = 9,
    WEIGHT_HELD = 11,
    LIMIT = 12,
    MAKESPAN = 13,
    METRIC = 17,
    ACTIVATIONS = 18,
    FIELDS = 19
};

static int64_t read_number(const char *text, int64_t scale)
{
    char *end;
    double value = strtod(text, &end) * (double)scale;
    assert_true(end != text && *end == '\0');
    return (int64_t)(value + (value < 0 ? -0.5 : 0.5));
}

FILE *zero_bubble_open(void)
{
    char path[4096];
    if (!reference_data())
        return NULL;
    snprintf(path, sizeof path, "%s/zero_bubble_baseline.csv", reference_data());
    return fopen(path, "r");
}

// The limits of rows without memory figures count activations of half a device where stages are folded.
static void read_row(char *field[FIELDS], zero_bubble_row *out)
{
    bool has_memory = field[LIMIT][0] != '\0';
    *out = (zero_bubble_row){.devices = (int32_t)read_number(field[P], 1),
                             .microbatches = (int32_t)read_number(field[M], 1),
                             .forward_ns = read_number(field[F], 1000),
                             .input_ns = read_number(field[B], 1000),
                             .weight_ns = read_number(field[W], 1000),
                             .hop_ns = read_number(field[C], 1000),
                             .folded = strncmp(field[METHOD], "ZB-V", 4) == 0 || strncmp(field[METHOD], "V-", 2) == 0,
                             .span = strcmp(field[METRIC], "span") == 0,
                             .value_ns = read_number(field[MAKESPAN], 1000)};
    snprintf(out->set, sizeof out->set, "%s", field[SET]);
    snprintf(out->method, sizeof out->method, "%s", field[METHOD]);
    snprintf(out->model, sizeof out->model, "%s", field[MODEL]);
    out->held = has_memory ? read_number(field[HELD], 1) : 1;
    out->weight_held = has_memory ? -read_number(field[WEIGHT_HELD], 1) : 0;
    out->memory_limit =
        has_memory ? read_number(field[LIMIT], 1) : read_number(field[ACTIVATIONS], out->folded ? 2 : 1);
}

bool zero_bubble_next(FILE *table, const char *method, zero_bubble_row *out)
{
    char line[1024];
    while (fgets(line, sizeof line, table)) {
        char *field[FIELDS];
        assert_true(split_csv_line(line, field, FIELDS));
        if (strcmp(field[METHOD], method) != 0)
            continue;
        read_row(field, out);
        return true;
    }
    return false;
}

void zero_bubble_pipeline(ps_arena *arena, const zero_bubble_row *row, ps_pipeline *out)
{
    int32_t chunks = row->folded ? 2 : 1;
    int32_t stages = row->devices * chunks;
    *out = (ps_pipeline){.num_stages = stages,
                         .num_devices = row->devices,
                         .num_microbatches = row->microbatches,
                         .stage = ps_new(arena, ps_stage, stages),
                         .forward_hop = ps_new(arena, ps_hop, stages),
                         .backward_hop = ps_new(arena, ps_hop, stages),
                         .device = ps_new(arena, ps_device, row->devices)};
    for (int32_t s = 0; s < stages; s++) {
        int64_t input = row->input_ns / chunks;
        int64_t weight = row->weight_ns / chunks;
        ps_stage *stage = &out->stage[s];
        *stage = (ps_stage){.device = s < row->devices ? s : stages - 1 - s,
                            .held_after_forward = row->held,
                            .held_after_backward_input = row->weight_held};
        stage->duration_ns[PS_OP_FORWARD] = row->forward_ns / chunks;
        stage->duration_ns[PS_OP_BACKWARD] = input + weight;
        stage->duration_ns[PS_OP_BACKWARD_INPUT] = input;
        stage->duration_ns[PS_OP_BACKWARD_WEIGHT] = weight;
        bool sends = s + 1 < stages && (!row->folded || s != row->devices - 1);
        out->forward_hop[s] = out->backward_hop[s] = (ps_hop){.latency_ns = sends ? row->hop_ns : 0};
    }
    for (int32_t d = 0; d < row->devices; d++)
        out->device[d].memory_limit = row->memory_limit;
    ps_pipeline_assign_lanes(arena, out);
}
