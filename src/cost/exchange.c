// SPDX-License-Identifier: Apache-2.0
//
// exchange.c: who sends what to whom inside a layer, and what of it shows.
#include "cost/exchange.h"

#include "cost/communication.h"
#include "cost/constants.h"

static double exposed_share(const ps_rank_view *view)
{
    return (view->job->overlap_tp ? 1 - PS_COST_TP_HIDDEN_SHARE : 1) * view->exchange_factor;
}

double ps_tp_half_exchange_seconds(const ps_rank_view *view, double bytes)
{
    if (!view->job->sequence_parallel)
        return 0;
    return ps_reduce_scatter_seconds(view->group, view->layout->tp, 1, bytes) * exposed_share(view);
}

double ps_tp_exchange_seconds(const ps_rank_view *view, double bytes)
{
    if (view->job->sequence_parallel) // GEMMs of 8 or 4 bits gather what they cast; sums are scattered as they are
        return ps_tp_half_exchange_seconds(view, bytes) +
               ps_tp_half_exchange_seconds(view, bytes * view->gathered_share);
    return ps_all_reduce_seconds(view->group, view->layout->tp, 1, bytes) * exposed_share(view);
}

static double beyond(double seconds, double hiding)
{
    return seconds > hiding ? seconds - hiding : 0;
}

// c - 1 steps, each behind the attention of the block that came before; backward the gradients of keys and values
// travel too (Liu et al. 2023, section 3).
static void add_ring(const ps_part *part, double exchanged, double forward, double backward)
{
    static const char formula[] =
        "ring attention: c-1 steps of w*T*(keys and values)/t, backward twice, beyond the attention that hides each";
    const ps_rank_view *view = part->view;
    ps_cost_link link = ps_cost_spread_link(view->group, view->layout->cp, view->layout->tp);
    double step = part->w * part->tokens * exchanged / link.bytes_per_s + (double)link.latency_ns * 1e-9;
    double steps = view->cp - 1;

    step *= view->exchange_factor;
    ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, formula, steps * beyond(step, forward / view->cp));
    ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, steps * beyond(2 * step, backward / view->cp));
    ps_part_transient(part, "ring attention, two buffers of keys and values: 2w*T*(keys and values)/t",
                      2 * part->w * part->tokens * exchanged);
}

// Queries, keys and values to the ranks of their heads, outputs back; backward their gradients (Jacobs et al. 2023).
static void add_ulysses(const ps_part *part, double exchanged, double kept)
{
    static const char formula[] = "context all-to-all: of w*T*(queries, keys, values, outputs)/t";
    const ps_rank_view *view = part->view;
    double bytes = part->w * part->tokens * (exchanged + kept);
    double seconds = 2 * PS_COST_SCATTER_BASE_SECONDS +
                     ps_all_to_all_seconds(view->group, view->layout->cp, view->layout->tp, bytes);

    ps_part_exchange(part, formula, seconds * view->exchange_factor);
    ps_part_transient(part, "context all-to-all, tensors before and after: w*T*(queries, keys, values, outputs)/t",
                      bytes);
}

// All keys and values at once, behind the attention of the own block; backward they are gathered again, and their
// gradients scattered behind that (Llama 3, section 3.3.2; PyTorch's context parallel).
static void add_gather(const ps_part *part, double exchanged, double forward, double backward)
{
    static const char formula[] =
        "context gather: all keys and values, w*c*T*(keys and values)/t, beyond the first of c steps of attention";
    const ps_rank_view *view = part->view;
    double bytes = part->w * part->tokens * view->cp * exchanged;
    double seconds =
        ps_reduce_scatter_seconds(view->group, view->layout->cp, view->layout->tp, bytes) * view->exchange_factor;

    ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, formula, beyond(seconds, forward / view->cp));
    ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, beyond(seconds, backward / view->cp));
    ps_part_transient(part, "context gather, keys and values of all ranks: w*c*T*(keys and values)/t", bytes);
}

// Every block's output joins what was there; under a causal mask ranks take half of each block.
static void add_joins(const ps_part *part, double queries, double exchanged)
{
    static const char formula[] =
        "joining blocks of attention: 5w*(c-1)*T*q/2t / memory rate + 2 kernels each, backward "
        "of keys and values too";
    const ps_rank_view *view = part->view;
    double joins = view->cp - 1;
    double share = part->block->bidirectional ? 1 : 0.5;
    double unit = joins * share * PS_COST_JOIN_BYTES * part->w / 2 * part->tokens / view->memory_bytes_per_s;
    double kernels = joins * 2 * view->kernel_seconds;

    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula, unit * queries + kernels, 2 * joins);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, unit * (queries + exchanged) + kernels,
                          2 * joins);
}

void ps_cp_exchange(const ps_part *part, double exchanged, double kept, double forward, double backward)
{
    if (part->view->layout->cp <= 1)
        return;
    switch (part->view->job->cp_method) {
    case PS_CP_ALL_TO_ALL: add_ulysses(part, exchanged, kept); return;
    case PS_CP_ALL_GATHER: add_gather(part, exchanged, forward, backward); break;
    case PS_CP_RING:
    case PS_CP_METHODS: add_ring(part, exchanged, forward, backward); break;
    }
    add_joins(part, kept / 2, exchanged);
}

// Expected distinct places, of `places`, that K draws of different experts out of E reach when each holds E/places:
// places * (1 - C(E - E/places, K) / C(E, K)), as a product of K factors.
static double distinct_places(double experts, double draws, double places)
{
    double missed = 1;
    double elsewhere = experts - experts / places;

    for (int64_t drawn = 0; (double)drawn < draws; drawn++) {
        double i = (double)drawn;
        missed *= elsewhere > i ? (elsewhere - i) / (experts - i) : 0;
    }
    return places * (1 - missed);
}

// Copies of a token that leave for other ranks of the node, and for other nodes.
typedef struct copies {
    double local;
    double remote;
} copies;

static copies copies_of(const ps_part *part, ps_spread spread)
{
    const ps_block *block = part->block;
    const ps_job *job = part->view->job;
    double ranks = part->view->ep;
    double domains = (double)spread.domains;
    double chosen = job->head_parallel_moe ? 1 : (double)block->experts_per_token;

    if (job->head_parallel_moe || job->dispatch == PS_DISPATCH_ALL_TO_ALL) {
        double away = (ranks - spread.local) / ranks;
        return (copies){.local = chosen * ((ranks - 1) / ranks - away), .remote = chosen * away};
    }
    // One copy a node, which is copied on to the ranks of it that need it.
    double nodes = distinct_places((double)block->experts, chosen, domains);
    double each = distinct_places((double)block->experts, chosen, ranks);
    return (copies){.local = each * (ranks - 1) / ranks, .remote = nodes * (domains - 1) / domains};
}

static double exposed(double seconds, double hiding)
{
    double hidden = PS_COST_EP_HIDDEN_SHARE * seconds;
    return seconds - (hidden < hiding ? hidden : hiding);
}

void ps_ep_exchange(const ps_part *part, double tokens, double width)
{
    static const char dispatch[] =
        "expert parallel: dispatch and combine of w*T/t*(copies sent)*h, beyond the compute that hides it";
    static const char gather[] = "ranks of one expert: gather and scatter of w*(x*T*K/t)*h";
    const ps_rank_view *view = part->view;
    const ps_layout *layout = view->layout;
    const double *sum = part->ledger->sum;
    int64_t etp = ps_rank_etp(layout);
    double seconds = 0;

    if (layout->ep > 1) {
        ps_spread spread = ps_spread_of(view->group, layout->ep, etp);
        copies sent = copies_of(part, spread);
        double bytes = part->w * tokens * width;
        seconds = 2 * ps_two_level_exchange_seconds(view->group, spread, sent.local * bytes, sent.remote * bytes) *
                  view->exchange_factor;
        bool overlap = view->job->overlap_ep;
        double backward = sum[PS_QUANTITY_BACKWARD_INPUT] + sum[PS_QUANTITY_BACKWARD_WEIGHT];
        ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, dispatch,
                      overlap ? exposed(seconds, sum[PS_QUANTITY_FORWARD]) : seconds);
        ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_INPUT, dispatch,
                      overlap ? exposed(seconds, backward) : seconds);
    }
    if (etp > 1) {
        double bytes = part->w * (double)etp * tokens * (double)part->block->experts_per_token * width;
        ps_part_exchange(part, gather,
                         2 * ps_reduce_scatter_seconds(view->group, etp, 1, bytes) * view->exchange_factor);
    }
}
