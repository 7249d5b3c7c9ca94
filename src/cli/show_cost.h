// SPDX-License-Identifier: Apache-2.0
//
// show_cost.h: show --cost: every term of what layers cost, or of the memory of a plan's devices.
#ifndef PS_CLI_SHOW_COST_H
#define PS_CLI_SHOW_COST_H

#include "cli/command.h"
#include "pipesched/cluster.h"
#include "pipesched/model.h"
#include "pipesched/plan.h"

typedef struct ps_show_cost {
    const char *gpu;         // or
    const char *cluster;     // where a model's layers run
    ps_cluster_options how;  // that cluster is read
    const char *calibration; // file that scales a model's times; NULL: none
    const char *model;       // file or name of the model that a plan is for; NULL: a built-in one, if it is one
    int64_t device;          // of a plan; -1: the fullest
} ps_show_cost;

// Of one layer of each type.
ps_code ps_show_model_cost(ps_run *run, const ps_model *model, const ps_show_cost *what, ps_status *status);
// Of the memory of the fullest device, of the one chosen, or with -v of all. Where the plan's model is at hand layers
// are told apart. Rules plan-does-not-hold, unknown-device, other-model.
ps_code ps_show_plan_cost(ps_run *run, const ps_plan *plan, const ps_show_cost *what, ps_status *status);

#endif
