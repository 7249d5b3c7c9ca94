// SPDX-License-Identifier: Apache-2.0
//
// bench_order_search.c: how long the order search takes, and how far from the bound it ends on uneven stages.
//
// Times are of the processor, as other work on the machine would stretch the wall clock, at the effort given as the
// first argument (1). No time is asserted.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "pipesched/order_search.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench_case {
    const char *name;
    int32_t devices;
    int32_t microbatches;
    int64_t forward_ns;
    int64_t input_ns;
    int64_t weight_ns;
    int64_t hop_ns;
    int32_t room_halves; // of one activation
    bool uneven;         // times uniform between those given and twice those
    ps_order_objective objective;
    int32_t effort;
    uint64_t seed;
    ps_arena *arena;
    double took_s;
    ps_order_result result;
} bench_case;

static int64_t draw(const bench_case *c, ps_rng *rng, int64_t ns)
{
    return c->uneven ? ps_rng_range(rng, ns, 2 * ns) : ns;
}

static void fill_pipeline(const bench_case *c, ps_pipeline *out)
{
    ps_rng rng = {c->seed};
    *out = (ps_pipeline){.num_stages = c->devices,
                         .num_devices = c->devices,
                         .num_microbatches = c->microbatches,
                         .stage = ps_new(c->arena, ps_stage, c->devices),
                         .forward_hop = ps_new(c->arena, ps_hop, c->devices),
                         .backward_hop = ps_new(c->arena, ps_hop, c->devices),
                         .device = ps_new(c->arena, ps_device, c->devices)};
    for (int32_t s = 0; s < c->devices; s++) {
        ps_stage *stage = &out->stage[s];
        *stage = (ps_stage){.device = s, .held_after_forward = 2, .held_after_backward_input = 1};
        stage->duration_ns[PS_OP_FORWARD] = draw(c, &rng, c->forward_ns);
        stage->duration_ns[PS_OP_BACKWARD_INPUT] = draw(c, &rng, c->input_ns);
        stage->duration_ns[PS_OP_BACKWARD_WEIGHT] = draw(c, &rng, c->weight_ns);
        stage->duration_ns[PS_OP_BACKWARD] =
            stage->duration_ns[PS_OP_BACKWARD_INPUT] + stage->duration_ns[PS_OP_BACKWARD_WEIGHT];
        out->forward_hop[s] = out->backward_hop[s] = (ps_hop){.latency_ns = c->hop_ns};
        out->device[s].memory_limit = c->room_halves;
    }
    ps_pipeline_assign_lanes(c->arena, out);
}

static ps_code run(void *context, ps_status *status)
{
    bench_case *c = context;
    ps_pipeline pipeline;
    fill_pipeline(c, &pipeline);
    PS_TRY(ps_pipeline_validate(&pipeline, status));
    ps_order_options options = {.objective = c->objective, .effort = c->effort};
    double begun = now_s();
    PS_TRY(ps_order_search(c->arena, &pipeline, &options, &c->result, status));
    c->took_s = now_s() - begun;
    return PS_OK;
}

static void run_case(bench_case *c)
{
    ps_status status = {0};
    c->arena = ps_arena_new(0);
    if (!c->arena || ps_guard(run, c, c->arena, &status) != PS_OK) {
        fprintf(stderr, "bench_order_search: %s: %s\n", c->name, status.message);
        exit(1);
    }
    ps_arena_free(c->arena);
}

static double ratio(int64_t value, int64_t bound)
{
    return (double)value / (double)bound;
}

static void print_case(bench_case c)
{
    run_case(&c);
    printf("%-30s %3d %4d %9.1f ms %10" PRId64 " visits  seed %.5f  result %.5f of the bound%s\n", c.name,
           (int)c.devices, (int)c.microbatches, 1e3 * c.took_s, c.result.visits,
           ratio(c.result.seed_ns, c.result.bound_ns), ratio(c.result.value_ns, c.result.bound_ns),
           c.result.proved ? ", proved" : "");
}

// f, b, w uniform in [1, 2] a stage, room for as many activations as there are devices.
static void run_uneven(int32_t effort)
{
    static const int32_t counts[] = {8, 16, 32};
    double sum[3] = {0};
    double slowest_s = 0;
    double total_s = 0;
    int proved = 0;
    enum { INSTANCES = 60 };
    for (int i = 0; i < INSTANCES; i++) {
        bench_case c = {.name = "uneven",
                        .devices = 8,
                        .microbatches = counts[i % 3],
                        .forward_ns = 1000000,
                        .input_ns = 1000000,
                        .weight_ns = 1000000,
                        .hop_ns = i / 3 % 2 ? 50000 : 0,
                        .room_halves = 16,
                        .uneven = true,
                        .effort = effort,
                        .seed = (uint64_t)i + 1};
        run_case(&c);
        sum[0] += log(ratio(c.result.value_ns, c.result.bound_ns));
        sum[1] += log(ratio(c.result.named_ns, c.result.bound_ns));
        sum[2] += log(ratio(c.result.seed_ns, c.result.bound_ns));
        slowest_s = c.took_s > slowest_s ? c.took_s : slowest_s;
        total_s += c.took_s;
        proved += c.result.proved;
    }
    printf("%d uneven instances, p 8, m 8, 16, 32, geometric mean over the bound: search %.5f, its seeds %.5f, best "
           "named %.5f; %d proved; %.0f ms each, %.0f ms at most\n",
           INSTANCES, exp(sum[0] / INSTANCES), exp(sum[2] / INSTANCES), exp(sum[1] / INSTANCES), proved,
           1e3 * total_s / INSTANCES, 1e3 * slowest_s);
}

int main(int argc, char **argv)
{
    int32_t effort = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 1;
    const bench_case even = {.forward_ns = 18522000,
                             .input_ns = 18086000,
                             .weight_ns = 9337000,
                             .hop_ns = 601000,
                             .effort = effort,
                             .objective = PS_ORDER_SPAN};
    const int32_t shapes[][2] = {{8, 64}, {32, 256}};
    for (int i = 0; i < 2; i++) {
        bench_case c = even;
        c.name = "equal stages, p activations";
        c.devices = shapes[i][0];
        c.microbatches = shapes[i][1];
        c.room_halves = 2 * c.devices;
        print_case(c);
        c.name = "equal stages, 2p activations";
        c.room_halves = 4 * c.devices;
        print_case(c);
        c.name = "uneven stages, p activations";
        c.room_halves = 2 * c.devices;
        c.uneven = true;
        c.objective = PS_ORDER_MAKESPAN;
        c.seed = 3;
        print_case(c);
    }
    run_uneven(effort);
    return 0;
}
