// SPDX-License-Identifier: Apache-2.0
//
// cost_setup.h: one GPU, one job and one layout, for commands that price layers without planning.
#ifndef PS_CLI_COST_SETUP_H
#define PS_CLI_COST_SETUP_H

#include "cli/command.h"
#include "pipesched/cluster.h"
#include "pipesched/cost.h"
#include "pipesched/job.h"
#include "pipesched/layout.h"
#include "pipesched/model.h"

typedef struct ps_cost_setup {
    ps_group group;
    ps_job job;
    ps_layout layout;
} ps_cost_setup;

// `gpu` names the GPU of a node of eight; NULL is enough for a model that gives all its times. PS_USAGE with rules
// missing-option (--gpu, --seq-length) and one-value (a list where one layout is priced).
ps_code ps_cost_setup_gpu(ps_run *run, const ps_model *model, const char *gpu, ps_cost_setup *out, ps_status *status);
// The same on the first group of a cluster.
ps_code ps_cost_setup_cluster(ps_run *run, const ps_model *model, const ps_cluster *cluster, ps_cost_setup *out,
                              ps_status *status);
// With what a calibration file says of that GPU: factors of times, curves of collectives, and layers, which join
// `model`. Refuses another GPU type or precision.
ps_code ps_cost_setup_calibrate(ps_run *run, const char *path, ps_model *model, ps_cost_setup *setup,
                                ps_status *status);

#endif
