// SPDX-License-Identifier: Apache-2.0
//
// torch_csv_write.c: actions as rows of cells, and the compute ops among them.
#include "pipesched/torch_csv.h"
#include "schedule/torch_cell.h"

void ps_actions_from_schedule(ps_arena *arena, const ps_schedule *schedule, ps_actions *out)
{
    int32_t count = schedule->first[schedule->num_devices];
    *out = (ps_actions){.num_devices = schedule->num_devices,
                        .first = ps_new_raw(arena, int32_t, schedule->num_devices + 1),
                        .action = ps_new_raw(arena, ps_action, (int64_t)count + 1)};
    for (int32_t rank = 0; rank <= schedule->num_devices; rank++)
        out->first[rank] = schedule->first[rank];
    for (int32_t i = 0; i < count; i++) {
        ps_op op = schedule->op[i];
        out->action[i] = (ps_action){.microbatch = op.microbatch, .stage = op.stage, .kind = op.kind};
    }
}

void ps_actions_compute(ps_arena *arena, const ps_actions *actions, ps_actions *out)
{
    int32_t count = 0;
    *out = (ps_actions){.num_devices = actions->num_devices,
                        .first = ps_new(arena, int32_t, actions->num_devices + 1),
                        .action = ps_new_raw(arena, ps_action, (int64_t)actions->first[actions->num_devices] + 1)};
    for (int32_t rank = 0; rank < actions->num_devices; rank++) {
        for (int32_t i = actions->first[rank]; i < actions->first[rank + 1]; i++)
            if (actions->action[i].kind < PS_OP_KINDS)
                out->action[count++] = actions->action[i];
        out->first[rank + 1] = count;
    }
}

static void write_cell(FILE *file, const ps_action *action)
{
    char text[32];
    ps_action_format(action[0], text);
    if (!action[0].paired) {
        fputs(text, file);
        return;
    }
    char backward[32];
    ps_action_format(action[1], backward);
    fprintf(file, "(%s;%s)OVERLAP_F_B", text, backward);
}

static void write_row(FILE *file, const ps_action *action, const ps_action *end, const int64_t *slot, int64_t num_slots)
{
    int64_t cells = 0; // written so far, empty ones too
    while (action < end) {
        for (; slot && cells < *slot; cells++)
            if (cells > 0)
                fputc(',', file);
        if (cells++ > 0)
            fputc(',', file);
        write_cell(file, action);
        int32_t count = action->paired ? 2 : 1;
        action += count;
        slot = slot ? slot + count : NULL;
    }
    for (; cells < num_slots; cells++)
        fputc(',', file);
    fputc('\n', file);
}

void ps_torch_csv_write(FILE *file, const ps_actions *actions, const int64_t *slot, int64_t num_slots)
{
    for (int32_t rank = 0; rank < actions->num_devices; rank++) {
        int32_t first = actions->first[rank];
        write_row(file, actions->action + first, actions->action + actions->first[rank + 1], slot ? slot + first : NULL,
                  slot ? num_slots : 0);
    }
}
