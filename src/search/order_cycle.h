// SPDX-License-Identifier: Apache-2.0
//
// order_cycle.h: orders that repeat one pattern every so often, as controllable-memory schedules do.
#ifndef PS_SEARCH_ORDER_CYCLE_H
#define PS_SEARCH_ORDER_CYCLE_H

#include "search/order.h"

// The best order that repeats a pattern, by what it would take with `more` further micro-batches; its value is
// INT64_MAX where no pattern that was tried fits. A grid of patterns, then random changes until `visits` ops were
// looked at.
ps_code ps_order_cycles(ps_arena *arena, ps_order_desk *desk, int64_t visits, int32_t more, ps_order *out);

#endif
