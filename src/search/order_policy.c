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
static const int32_t DEPTHS[] = {0, 16, 12, 10, 9, 8, 7, 6, 5};
// Of gradient op and F, in quarters of the longest W of a device; below 0: a pending W goes first. A fused backward has
// no W, so that the first will do.
static const int32_t PATIENCE[][2] = {{0, 0}, {4, 4}, {4, 0}, {2, 2}, {0, 4}, {-1, -1}};

enum { COUNT_DEPTHS = sizeof DEPTHS / sizeof *DEPTHS, COUNT_PATIENCE = sizeof PATIENCE / sizeof *PATIENCE };

// The rules of a grid point, as indices.
typedef struct grid_point {
    int32_t depth;
    int32_t patience;
    ps_list_turn turn;
    bool thrifty;
    bool patient_start;
    bool late_forward;
    bool late_gradient;
} grid_point;

typedef struct policy {
    const ps_order_problem *problem;
    ps_order_desk *desk;
    ps_list *list;
    ps_order *best;    // of all, seeds from elsewhere included
    int64_t value_ns;  // of the rules at hand
    double *in_flight; // [stages] RT / C
    ps_list_rules rules;
    ps_list_rules kept_rules;
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
        p->in_flight[s] = ((double)round_trip + (double)stage->duration_ns[PS_STEP_GRADIENT]) / each;
        round_trip += stage->duration_ns[PS_STEP_GRADIENT] + hop_ns(&stage->hop[PS_STEP_GRADIENT]);
    }
}

static int32_t cap_of(const policy *p, int32_t stage, int32_t eighths)
{
    int32_t all = p->problem->num_microbatches;
    double cap = p->in_flight[stage] * eighths / 8 + 0.999;
    if (eighths == 0 || cap >= all)
        return all;
    return cap > 1 ? (int32_t)cap : 1;
}

static int64_t longest(const ps_order_problem *problem, int32_t device, int32_t step)
{
    int64_t most = 0;
    for (int32_t i = problem->first_stage[device]; i < problem->first_stage[device + 1]; i++) {
        int64_t duration = problem->stage[problem->stage_of[i]].duration_ns[step];
        most = duration > most ? duration : most;
    }
    return most;
}

static int64_t patience_ns(const ps_order_problem *problem, int32_t device, int32_t quarters)
{
    return quarters < 0 ? -1 : longest(problem, device, PS_STEP_WEIGHT) * quarters / 4;
}

static void copy_rules(const ps_order_problem *problem, const ps_list_rules *from, ps_list_rules *to)
{
    for (int32_t d = 0; d < problem->num_devices; d++)
        to->device[d] = from->device[d];
    for (int32_t s = 0; s < problem->num_stages; s++)
        to->most_in_flight[s] = from->most_in_flight[s];
}

// Make and time the order of the changed rules; they become those at hand when it is within the limit.
static bool try_rules(policy *p, int64_t limit)
{
    ps_order *candidate = &p->desk->candidate;
    if (!ps_list_schedule(p->list, &p->rules, limit, candidate))
        return false;
    if (!ps_order_time(p->problem, candidate, &p->desk->trial, limit))
        return false;
    p->value_ns = candidate->value_ns;
    copy_rules(p->problem, &p->rules, &p->kept_rules);
    if (p->value_ns < p->best->value_ns)
        ps_order_copy(p->problem, candidate, p->best);
    return true;
}

static bool done(const policy *p)
{
    return p->best->value_ns <= p->desk->bound_ns;
}

static ps_code try_point(policy *p, grid_point point)
{
    for (int32_t d = 0; d < p->problem->num_devices; d++)
        p->rules.device[d] = (ps_list_rule){
            .gradient_patience_ns = patience_ns(p->problem, d, PATIENCE[point.patience][0]),
            .forward_patience_ns = patience_ns(p->problem, d, PATIENCE[point.patience][1]),
            .warmup_slack_ns = point.patient_start ? 0 : INT64_MAX,
            .turn = point.turn,
            .thrifty = point.thrifty,
            .late_forward = point.late_forward,
            .late_gradient = point.late_gradient,
        };
    for (int32_t s = 0; s < p->problem->num_stages; s++)
        p->rules.most_in_flight[s] = cap_of(p, s, DEPTHS[point.depth]);
    try_rules(p, p->value_ns - 1);
    return ps_order_poll(p->desk);
}

static ps_code try_patience(policy *p, grid_point point)
{
    int32_t ways = p->problem->fused ? 1 : COUNT_PATIENCE + 2;
    for (int32_t i = 0; i < 2 * COUNT_DEPTHS; i++) {
        point.depth = i / 2;
        point.patient_start = i % 2 == 0;
        for (int32_t way = 0; way < ways && !done(p); way++) {
            point.thrifty = way >= COUNT_PATIENCE;
            point.patience = point.thrifty ? way - COUNT_PATIENCE + 1 : way;
            PS_TRY(try_point(p, point));
        }
    }
    return PS_OK;
}

static ps_code try_grid(policy *p)
{
    for (int32_t turn = PS_TURN_GRADIENT; turn <= PS_TURN_ALTERNATE && !done(p); turn++)
        PS_TRY(try_patience(p, (grid_point){.turn = (ps_list_turn)turn, .late_forward = true, .late_gradient = true}));
    return PS_OK;
}

static int32_t draw(policy *p, int32_t low, int32_t high)
{
    return (int32_t)ps_rng_range(&p->rng, low, high);
}

// Change one thing about one device or stage, or about all of a range.
static void change_rules(policy *p)
{
    const ps_order_problem *problem = p->problem;
    copy_rules(problem, &p->kept_rules, &p->rules);
    int32_t what = draw(p, 0, problem->num_stages > problem->num_devices ? 13 : 11);
    int32_t last = (what < 4 ? problem->num_stages : problem->num_devices) - 1;
    int32_t low = draw(p, 0, last);
    int32_t high = draw(p, 0, 3) ? low : draw(p, low, last);
    int32_t by = draw(p, 0, 1) ? 1 : -1;
    int32_t quarters = draw(p, -1, 8);
    int32_t turn = draw(p, PS_TURN_GRADIENT, PS_TURN_ALTERNATE);
    for (int32_t i = low; i <= high; i++) {
        if (what < 4) {
            int32_t cap = p->rules.most_in_flight[i] + by;
            int32_t most = cap_of(p, i, 32);
            p->rules.most_in_flight[i] = cap < 1 ? 1 : cap > most ? most : cap;
            continue;
        }
        ps_list_rule *rule = &p->rules.device[i];
        if (what < 6)
            rule->gradient_patience_ns = patience_ns(problem, i, quarters);
        else if (what < 8)
            rule->forward_patience_ns = patience_ns(problem, i, quarters);
        else if (what < 9)
            rule->turn = (ps_list_turn)turn;
        else if (what < 10)
            rule->thrifty = !rule->thrifty;
        else if (what == 12)
            rule->late_forward = !rule->late_forward;
        else if (what == 13)
            rule->late_gradient = !rule->late_gradient;
        else
            rule->warmup_slack_ns =
                quarters > 7 ? INT64_MAX : (quarters + 1) * longest(problem, i, PS_STEP_FORWARD) / 8;
    }
}

static ps_list_rules new_rules(ps_arena *arena, const ps_order_problem *problem, int64_t bound_ns)
{
    return (ps_list_rules){.device = ps_new(arena, ps_list_rule, problem->num_devices),
                           .most_in_flight = ps_new(arena, int32_t, problem->num_stages),
                           .bound_ns = bound_ns};
}

ps_code ps_order_policy(ps_arena *arena, ps_order_desk *desk, int64_t visits, ps_order *order)
{
    const ps_order_problem *problem = desk->problem;
    policy p = {.problem = problem,
                .desk = desk,
                .list = ps_list_new(arena, problem),
                .best = order,
                .value_ns = INT64_MAX,
                .in_flight = ps_new(arena, double, problem->num_stages),
                .rules = new_rules(arena, problem, desk->bound_ns),
                .kept_rules = new_rules(arena, problem, desk->bound_ns),
                .rng = {2}};
    find_in_flight(&p);
    int64_t begun = desk->trial.visits;
    ps_code code = try_grid(&p);
    while (code == PS_OK && !done(&p) && p.value_ns < INT64_MAX) {
        int64_t left = visits - (ps_list_visits(p.list) + desk->trial.visits - begun);
        if (left <= 0)
            break;
        change_rules(&p);
        int64_t level = (int64_t)((double)p.best->value_ns / 2000 * (double)left / (double)visits);
        try_rules(&p, p.value_ns + ps_rng_range(&p.rng, 0, level > 0 ? level : 0));
        code = ps_order_poll(desk);
    }
    desk->trial.visits += ps_list_visits(p.list);
    return code;
}
