// SPDX-License-Identifier: Apache-2.0
//
// simulate_csv.h: PyTorch schedule files in and out of `simulate`.
#ifndef PS_CLI_SIMULATE_CSV_H
#define PS_CLI_SIMULATE_CSV_H

#include "cli/bare_pipeline.h"
#include "cli/command.h"
#include "io/file.h"
#include "pipesched/torch_csv.h"

typedef struct ps_csv_options {
    int32_t to_csv; // ps_csv_form
    int32_t sends;  // ps_send_mode
} ps_csv_options;

// What --to-csv writes.
typedef enum ps_csv_form {
    PS_CSV_COMPUTE, // the ops
    PS_CSV_SLOTS,   // the same, with an empty cell for every idle unit of time when each op takes one
    PS_CSV_COMMS    // the ops and transfers
} ps_csv_form;

extern const char *const ps_csv_forms[]; // as the user writes them; ends with NULL
extern const char *const ps_csv_sends[];

typedef struct ps_csv_simulation {
    ps_torch_csv csv;
    ps_pipeline pipeline; // its stages and ranks, with the costs of the command line
} ps_csv_simulation;

// A file that has been read. PS_BAD_INPUT with row and column as torch_csv.h says; PS_ILLEGAL as
// ps_actions_check_transfers() when it has transfers.
ps_code ps_csv_simulation_load(ps_run *run, const char *path, const ps_file_bytes *bytes, const ps_bare_options *bare,
                               const ps_csv_options *options, ps_csv_simulation *out, ps_status *status);

// Write a schedule to run->out. `actions` is what it was read from, for its overlapped pairs; NULL: none.
ps_code ps_csv_simulation_write(ps_run *run, ps_csv_form form, const ps_pipeline *pipeline, const ps_schedule *schedule,
                                const ps_actions *actions, ps_status *status);

#endif
