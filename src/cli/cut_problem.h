// SPDX-License-Identifier: Apache-2.0
//
// cut_problem.h: the options of `partition` to a cutting problem.
#ifndef PS_CLI_CUT_PROBLEM_H
#define PS_CLI_CUT_PROBLEM_H

#include "cli/command.h"
#include "cli/option_value.h"
#include "pipesched/partition.h"

typedef struct ps_partition_command_options {
    ps_common_options common;
    const char *weights; // "3,1,4" or "A=3,1,4;B=6,2,8"
    const char *types;   // "A:2,B:2"
    int64_t stages;      // 0: not given
    int64_t num_microbatches;
    int32_t objective; // ps_objective
    int32_t engine;    // ps_engine
    int32_t contiguous;
    int64_t top_k;
    int32_t schedule;      // into ps_partition_schedules
    ps_number_list memory; // a layer
    ps_number_list activation;
    ps_number_list held_after_backward_input;
    ps_number_list memory_limit; // a type
    ps_number_list cut;          // a cut
    ps_number_list output;       // bytes a layer
    double bandwidth;            // 0: not given
    const char *gpu;
    int64_t time_limit; // ns
} ps_partition_command_options;

extern const char *const ps_partition_schedules[]; // "none" first; ends with NULL

// One column of costs a device type; the problem's arrays live in the run's arena.
typedef struct ps_cut_input {
    ps_partition_problem problem;
    const char *const *layer_name; // NULL: bare weights
} ps_cut_input;

// From --weights, or from the model that is the operand.
ps_code ps_cut_input_from_weights(ps_run *run, ps_cut_input *out, ps_status *status);
ps_code ps_cut_input_from_model(ps_run *run, const char *path, ps_cut_input *out, ps_status *status);

#endif
