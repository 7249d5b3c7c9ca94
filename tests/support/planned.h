// SPDX-License-Identifier: Apache-2.0
//
// planned.h: plans by the planner itself, from a model's name or text, a cluster and options.
#ifndef PS_TESTS_SUPPORT_PLANNED_H
#define PS_TESTS_SUPPORT_PLANNED_H

#include "pipesched/plan.h"
#include "support/cmocka_all.h"

static inline void load(ps_arena *arena, const char *model, const char *cluster, ps_model *m, ps_cluster *c)
{
    ps_status status = {0};
    ps_cluster_options options = {.nic_bytes_per_s = 50e9};
    if (model[0] == '{')
        assert_ok(ps_model_parse(arena, "model.json", model, (int64_t)strlen(model), m, &status), &status);
    else
        assert_ok(ps_model_load(arena, model, m, &status), &status);
    assert_ok(ps_cluster_load(arena, cluster, &options, c, &status), &status);
}

static inline ps_job job_of(const char *const *options)
{
    ps_job job;
    ps_status status = {0};
    ps_job_init(&job);
    for (; options[0]; options += 2)
        assert_ok(ps_job_set(&job, options[0], options[1], &status), &status);
    return job;
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline ps_plan plan_of(ps_arena *arena, const char *model, const char *cluster, const char *const *options)
{
    ps_model *m = ps_new(arena, ps_model, 1); // the plan keeps what they say of their files
    ps_cluster *c = ps_new(arena, ps_cluster, 1);
    ps_plan plan;
    ps_status status = {0};
    ps_job job = job_of(options);
    load(arena, model, cluster, m, c);
    assert_ok(ps_plan_search_best(arena, m, c, &job, NULL, &plan, &status), &status);
    return plan;
}

#endif
