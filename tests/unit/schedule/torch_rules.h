// SPDX-License-Identifier: Apache-2.0
//
// torch_rules.h: what torch.distributed.pipelining itself asks of a schedule file, with a reader of its own.
//
// PipelineScheduleMulti._validate_schedule: as many rows as ranks; each stage on one rank, with F's of m different
// micro-batches, and B's plus half of I's and W's together m; I's as many as W's; in the order of a row, B and I after
// their F and W after its I. Files without transfers have none; files with transfers have no empty cell, and they are
// tried in steps as _simulate_comms_compute does: a RECV comes after its SEND, and some rank can always go on.
#ifndef PS_TESTS_TORCH_RULES_H
#define PS_TESTS_TORCH_RULES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka_all.h"

enum { TORCH_KINDS = 8, TORCH_STAGES = 32, TORCH_MICROBATCHES = 64, TORCH_RANKS = 16, TORCH_ROW = 1024 };

typedef struct torch_cell {
    int stage;
    int kind;
    int microbatch;
} torch_cell;

typedef struct torch_file {
    int num_rows;
    int count[TORCH_RANKS];
    torch_cell row[TORCH_RANKS][TORCH_ROW];
} torch_file;

static const char *const torch_kind[TORCH_KINDS] = {"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};

static inline torch_cell torch_read_action(const char *text)
{
    char word[16];
    torch_cell cell = {.kind = -1};
    assert_int_equal(sscanf(text, "%d%15[A-Z_]%d", &cell.stage, word, &cell.microbatch), 3);
    for (int kind = 0; kind < TORCH_KINDS; kind++)
        if (strcmp(word, torch_kind[kind]) == 0)
            cell.kind = kind;
    assert_in_range(cell.kind, 0, TORCH_KINDS - 1);
    assert_in_range(cell.stage, 0, TORCH_STAGES - 1);
    assert_in_range(cell.microbatch, 0, TORCH_MICROBATCHES - 1);
    return cell;
}

static inline void torch_read_cell(torch_file *file, const char *cell, size_t size, bool with_transfers)
{
    int rank = file->num_rows;
    if (size == 0) {
        assert_false(with_transfers);
        return;
    }
    if (cell[0] == '(') {
        file->row[rank][file->count[rank]++] = torch_read_action(cell + 1);
        cell += strcspn(cell, ";");
    }
    file->row[rank][file->count[rank]++] = torch_read_action(cell + strspn(cell, ";"));
    assert_in_range(file->count[rank], 1, TORCH_ROW - 2);
    assert_true(with_transfers || file->row[rank][file->count[rank] - 1].kind < 4);
}

static inline torch_file *torch_read(const char *text, bool with_transfers)
{
    torch_file *file = calloc(1, sizeof *file);
    assert_non_null(file);
    while (*text) {
        size_t size = strcspn(text, ",\n");
        torch_read_cell(file, text, size, with_transfers);
        if (text[size] == '\n')
            file->num_rows++;
        assert_in_range(file->num_rows, 0, TORCH_RANKS - 1);
        text += size + 1;
    }
    return file;
}

static inline void torch_validate(const torch_file *file, int num_stages, int num_microbatches)
{
    static bool seen[TORCH_KINDS][TORCH_STAGES][TORCH_MICROBATCHES];
    int count[TORCH_KINDS][TORCH_STAGES] = {{0}};
    int rank_of[TORCH_STAGES];
    memset(seen, 0, sizeof seen);
    memset(rank_of, 0xff, sizeof rank_of);
    for (int rank = 0; rank < file->num_rows; rank++)
        for (int i = 0; i < file->count[rank]; i++) {
            torch_cell cell = file->row[rank][i];
            assert_true(rank_of[cell.stage] < 0 || rank_of[cell.stage] == rank);
            rank_of[cell.stage] = rank;
            if (cell.kind == 1 || cell.kind == 2)
                assert_true(seen[0][cell.stage][cell.microbatch]);
            if (cell.kind == 3)
                assert_true(seen[2][cell.stage][cell.microbatch]);
            count[cell.kind][cell.stage] += !seen[cell.kind][cell.stage][cell.microbatch];
            seen[cell.kind][cell.stage][cell.microbatch] = true;
        }
    for (int stage = 0; stage < num_stages; stage++) {
        assert_int_equal(count[0][stage], num_microbatches);
        assert_int_equal(count[2][stage], count[3][stage]);
        assert_int_equal(count[1][stage] + (count[2][stage] + count[3][stage]) / 2, num_microbatches);
    }
}

// Every rank does one action a step; a RECV waits until its SEND is in an earlier step.
static inline void torch_dry_run(const torch_file *file)
{
    static bool sent[2][TORCH_STAGES + 2][TORCH_MICROBATCHES]; // by direction and the stage that receives, plus one
    int next[TORCH_RANKS] = {0};
    bool progress = true;
    memset(sent, 0, sizeof sent);
    while (progress) {
        torch_cell done[TORCH_RANKS];
        int num_done = 0;
        progress = false;
        for (int rank = 0; rank < file->num_rows; rank++) {
            if (next[rank] == file->count[rank])
                continue;
            torch_cell cell = file->row[rank][next[rank]];
            bool receives = cell.kind == 5 || cell.kind == 7;
            if (receives && !sent[cell.kind == 7][cell.stage + 1][cell.microbatch])
                continue;
            next[rank]++;
            done[num_done++] = cell;
            progress = true;
        }
        for (int i = 0; i < num_done; i++)
            if (done[i].kind == 4 || done[i].kind == 6)
                sent[done[i].kind == 6][done[i].stage + 1 + (done[i].kind == 4 ? 1 : -1)][done[i].microbatch] = true;
    }
    for (int rank = 0; rank < file->num_rows; rank++)
        assert_int_equal(next[rank], file->count[rank]);
}

static inline void pytorch_accepts(const char *text, int ranks, int stages, int microbatches, bool with_transfers)
{
    torch_file *file = torch_read(text, with_transfers);
    assert_int_equal(file->num_rows, ranks);
    torch_validate(file, stages, microbatches);
    if (with_transfers)
        torch_dry_run(file);
    free(file);
}

#endif
