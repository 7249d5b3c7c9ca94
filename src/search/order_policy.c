// SPDX-License-Identifier: Apache-2.0
//
// order_policy.c: the best order that the list scheduler makes under many rules.
//
// Depth. A device that turns micro-batches around in time RT, of which the slowest device takes one every C, has RT / C
// of them in flight when nothing waits. The grid tries multiples of that, up to no cap but memory's.
#include "search/order_policy.h"

#include "base/rng.h"
#include "search/order_list.h"

// In eighths of RT / C; 0: no cap.
static const int32_t DEPTHS[] = {0, 16, 12, 10, 9, 8, 6};
// In quarters of the longest W of a device; below 0: a pending W goes first.
static const int32_t PATIENCE[] = {0, 4, 2, 1, -1};

enum { COUNT_DEPTHS = sizeof DEPTHS / sizeof *DEPTHS, COUNT_PATIENCE = sizeof PATIENCE / sizeof *PATIENCE };

// The rules of a grid point, as indices.
typedef struct grid_point {
    int32_t depth;
    int32_t gradient;
    int32_t forward;
    bool forward_first;
    bool late_forward;
    bool late_gradient;
} grid_point;

typedef struct policy {
    const ps_order_problem *problem;
    const ps_policy_options *options;
    ps_list *list;
    ps_order *best;   // of all, seeds from elsewhere included
    int64_t value_ns; // of the best rules
    ps_order candidate;
    ps_order_trial *trial;
    double *in_flight; // [devices] RT / C summed over its stages
    ps_list_rule *rule;
    ps_list_rule *best_rule;
    ps_rng rng;
} policy;

static int64_t hop_ns(const ps_order_hop *hop)
{
    return hop->occupy_ns + hop->latency_ns;
}

static void find_in_flight(policy *p)
{
    const ps_order_problem *problem = p->problem;
    int64_t cycle = 1;
    for (int32_t d = 0; d < problem->num_devices; d++)
        cycle = problem->work_ns[d] > cycle ? problem->work_ns[d] : cycle;
    double each = (double)cycle / problem->num_microbatches;
    int64_t round_trip = 0;
    for (int32_t s = problem->num_stages - 1; s >= 0; s--) {
        const ps_order_stage *stage = &problem->stage[s];
        round_trip += stage->duration_ns[PS_STEP_FORWARD] + hop_ns(&stage->hop[PS_STEP_FORWARD]);
        p->in_flight[stage->device] += ((double)round_trip + (double)stage->duration_ns[PS_STEP_GRADIENT]) / each;
        round_trip += stage->duration_ns[PS_STEP_GRADIENT] + hop_ns(&stage->hop[PS_STEP_GRADIENT]);
    }
}

static int32_t stages_on(const ps_order_problem *problem, int32_t device)
{
    return problem->first_stage[device + 1] - problem->first_stage[device];
}

static int32_t cap_of(const policy *p, int32_t device, int32_t eighths)
{
    int32_t stages = stages_on(p->problem, device);
    int64_t all = (int64_t)stages * p->problem->num_microbatches;
    double cap = p->in_flight[device] * eighths / 8 + 0.999;
    if (eighths == 0 || cap >= (double)all)
        return (int32_t)all;
    return cap > stages ? (int32_t)cap : stages;
}

static int64_t longest_weight(const ps_order_problem *problem, int32_t device)
{
    int64_t longest = 0;
    for (int32_t i = problem->first_stage[device]; i < problem->first_stage[device + 1]; i++) {
        int64_t weight = problem->stage[problem->stage_of[i]].duration_ns[PS_STEP_WEIGHT];
        longest = weight > longest ? weight : longest;
    }
    return longest;
}

static int64_t patience_ns(const ps_order_problem *problem, int32_t device, int32_t quarters)
{
    return quarters < 0 ? -1 : longest_weight(problem, device) * quarters / 4;
}

// Make and time the order of the rules at hand; keep it when it is better.
static bool try_rules(policy *p)
{
    int64_t limit = p->value_ns - 1;
    if (!ps_list_schedule(p->list, p->rule, limit, &p->candidate))
        return false;
    if (!ps_order_time(p->problem, &p->candidate, p->trial, limit))
        return false;
    p->value_ns = p->candidate.value_ns;
    if (p->value_ns < p->best->value_ns) {
        ps_order kept = *p->best;
        *p->best = p->candidate;
        p->candidate = kept;
    }
    for (int32_t d = 0; d < p->problem->num_devices; d++)
        p->best_rule[d] = p->rule[d];
    return true;
}

static bool done(const policy *p)
{
    return p->best->value_ns <= p->options->bound_ns;
}

static ps_code poll(const policy *p)
{
    const ps_control *control = p->options->control;
    return control && control->should_stop ? control->should_stop(control->context) : PS_OK;
}

static ps_code try_point(policy *p, grid_point point)
{
    for (int32_t d = 0; d < p->problem->num_devices; d++)
        p->rule[d] = (ps_list_rule){
            .gradient_patience_ns = patience_ns(p->problem, d, PATIENCE[point.gradient]),
            .forward_patience_ns = patience_ns(p->problem, d, PATIENCE[point.forward]),
            .most_in_flight = cap_of(p, d, DEPTHS[point.depth]),
            .forward_first = point.forward_first,
            .late_forward = point.late_forward,
            .late_gradient = point.late_gradient,
        };
    try_rules(p);
    return poll(p);
}

static ps_code try_grid(policy *p)
{
    bool several = p->problem->num_stages > p->problem->num_devices;
    int32_t patience = p->problem->fused ? 1 : COUNT_PATIENCE;
    for (int32_t which = 0; which < (several ? 8 : 2); which++)
        for (int32_t depth = 0; depth < COUNT_DEPTHS; depth++)
            for (int32_t gradient = 0; gradient < patience; gradient++)
                for (int32_t forward = 0; forward < patience && !done(p); forward++)
                    PS_TRY(try_point(p, (grid_point){.depth = depth,
                                                     .gradient = gradient,
                                                     .forward = forward,
                                                     .forward_first = which % 2,
                                                     .late_forward = which / 2 % 2 == 0,
                                                     .late_gradient = which / 4 == 0}));
    return PS_OK;
}

// Change one thing about one device, or about all from one on.
static void change_rules(policy *p)
{
    const ps_order_problem *problem = p->problem;
    for (int32_t d = 0; d < problem->num_devices; d++)
        p->rule[d] = p->best_rule[d];
    int32_t low = (int32_t)ps_rng_range(&p->rng, 0, problem->num_devices - 1);
    int32_t high = ps_rng_range(&p->rng, 0, 3) ? low : (int32_t)ps_rng_range(&p->rng, low, problem->num_devices - 1);
    int64_t what = ps_rng_range(&p->rng, 0, 9);
    int32_t by = ps_rng_range(&p->rng, 0, 1) ? 1 : -1;
    int32_t quarters = (int32_t)ps_rng_range(&p->rng, -1, 8);
    for (int32_t d = low; d <= high; d++) {
        ps_list_rule *rule = &p->rule[d];
        int32_t least = stages_on(problem, d);
        int32_t cap = rule->most_in_flight + by;
        int32_t most = cap_of(p, d, 32);
        if (what < 4)
            rule->most_in_flight = cap < least ? least : cap > most ? most : cap;
        else if (what < 6)
            rule->gradient_patience_ns = patience_ns(problem, d, quarters);
        else if (what < 8)
            rule->forward_patience_ns = patience_ns(problem, d, quarters);
        else
            rule->forward_first = !rule->forward_first;
    }
}

ps_code ps_order_policy(ps_arena *arena, const ps_order_problem *problem, const ps_policy_options *options,
                        ps_order *order, ps_order_trial *trial)
{
    policy p = {.problem = problem,
                .options = options,
                .list = ps_list_new(arena, problem),
                .best = order,
                .value_ns = INT64_MAX,
                .trial = trial,
                .in_flight = ps_new(arena, double, problem->num_devices),
                .rule = ps_new(arena, ps_list_rule, problem->num_devices),
                .best_rule = ps_new(arena, ps_list_rule, problem->num_devices),
                .rng = {2}};
    ps_order_new(arena, problem, &p.candidate);
    find_in_flight(&p);
    int64_t begun = trial->visits;
    ps_code code = try_grid(&p);
    while (code == PS_OK && !done(&p) && p.value_ns < INT64_MAX &&
           ps_list_visits(p.list) + trial->visits - begun < options->visits) {
        change_rules(&p);
        try_rules(&p);
        code = poll(&p);
    }
    trial->visits += ps_list_visits(p.list);
    return code;
}
