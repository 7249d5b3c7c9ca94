// SPDX-License-Identifier: Apache-2.0
//
// check_ranks.c: which GPU each rank is, entry by entry.
//
// Order tp-cp-ep-dp-pp, the first varying fastest: rank = tp + TP * (cp + CP * (dp + DP * pp)). Experts are divided
// among the same ranks in a grid of their own: ep = rank / ETP mod EP. Ranks fill nodes one after the other.
#include <string.h>

#include "check/check_parts.h"

#define RANK_ORDER "tp-cp-ep-dp-pp"

static void check_rank(ps_check *check, int32_t index)
{
    const ps_plan *plan = check->plan;
    const ps_layout *layout = &plan->layout;
    const ps_plan_rank *rank = &plan->rank[index];
    int32_t rest = index;
    int32_t tp = rest % layout->tp;
    rest /= layout->tp;
    int32_t cp = rest % layout->cp;
    rest /= layout->cp;
    int32_t dp = rest % layout->dp;
    int32_t pp = rest / layout->dp;
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/rank", index), rank->rank, index);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/dp", index), rank->dp, dp);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/pp", index), rank->pp, pp);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/tp", index), rank->tp, tp);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/cp", index), rank->cp, cp);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/ep", index), rank->ep, index / layout->etp % layout->ep);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/node", index), rank->node,
                   index / plan->inputs.gpus_per_node);
    ps_check_equal(check, "rank-map", PS_AT_1("/ranks/map/#/gpu", index), rank->gpu,
                   index % plan->inputs.gpus_per_node);
}

void ps_check_ranks(ps_check *check)
{
    const ps_plan *plan = check->plan;
    if (strcmp(plan->rank_order, RANK_ORDER) != 0)
        ps_check_find(check, "rank-order", PS_AT("/ranks/order"), "plan says \"%.80s\", should be \"%s\"",
                      plan->rank_order, RANK_ORDER);
    ps_check_equal(check, "ranks-per-node", PS_AT("/ranks/per_node"), plan->ranks_per_node, plan->inputs.gpus_per_node);
    if (!plan->rank) {
        if (plan->num_ranks <= PS_PLAN_MAX_RANK_MAP)
            ps_check_find(check, "rank-map", PS_AT("/ranks"), "the map may be left out only above %d ranks",
                          (int)PS_PLAN_MAX_RANK_MAP);
        return;
    }
    for (int32_t rank = 0; rank < plan->num_ranks && plan->inputs.gpus_per_node > 0; rank++)
        check_rank(check, rank);
}
