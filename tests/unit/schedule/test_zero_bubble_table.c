// SPDX-License-Identifier: Apache-2.0
//
// test_zero_bubble_table.c: the bubble rates that the Zero Bubble paper prints (Qi et al., ICLR 2024), from its
// measured times. Its cost of 1F1B and ZB-H1 is the makespan, of ZB-H2 the longest stage span.
#include <math.h>

#include "support/cmocka_all.h"
#include "support/pipelines.h"

typedef struct row {
    const char *model;
    int32_t devices;
    int32_t microbatches;
    int64_t forward_us;
    int64_t backward_input_us;
    int64_t backward_weight_us;
    int64_t hop_us;
    double one_f_one_b;
    double zb_h1;
    double zb_h2;
} row;

static const row ROWS[] = {
    {"1.5B", 8, 24, 18522, 18086, 9337, 601, 0.2431, 0.1585, 0.1083},
    {"1.5B", 8, 32, 18513, 18086, 9331, 626, 0.1985, 0.1242, 0.0837},
    {"1.5B", 8, 64, 18546, 18097, 9321, 762, 0.1240, 0.0674, 0.0444},
    {"6.2B", 8, 24, 29718, 29444, 19927, 527, 0.2347, 0.1323, 0.0698},
    {"6.2B", 8, 32, 29802, 29428, 19530, 577, 0.1898, 0.1045, 0.0559},
    {"6.2B", 8, 64, 29935, 29621, 19388, 535, 0.1091, 0.0554, 0.0294},
    {"14.6B", 16, 48, 11347, 11248, 8132, 377, 0.2552, 0.1397, 0.0672},
    {"14.6B", 16, 64, 11307, 11254, 8101, 379, 0.2082, 0.1088, 0.0516},
    {"14.6B", 16, 128, 11325, 11308, 8109, 378, 0.1251, 0.0576, 0.0266},
    {"28.3B", 32, 96, 10419, 10207, 7715, 408, 0.2646, 0.1421, 0.0641},
    {"28.3B", 32, 128, 10408, 10204, 7703, 408, 0.2168, 0.1106, 0.0490},
    {"28.3B", 32, 256, 10402, 10248, 7698, 460, 0.1352, 0.0594, 0.0257},
};

static double four_digits(double value)
{
    return floor(value * 1e4 + 0.5) / 1e4;
}

static ps_timeline run_row(ps_arena *arena, const row *r, ps_schedule_kind kind)
{
    costs cost = {.forward_ns = r->forward_us * 1000,
                  .backward_input_ns = r->backward_input_us * 1000,
                  .backward_weight_ns = r->backward_weight_us * 1000,
                  .hop_latency_ns = r->hop_us * 1000};
    return run(arena, equal_stages(arena, r->devices, r->microbatches, cost), kind);
}

static void bubble_rates_equal_the_published_table_to_four_digits(void **state)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const row *r = &ROWS[i];
        ps_timeline one = run_row(*state, r, PS_SCHEDULE_1F1B);
        ps_timeline h1 = run_row(*state, r, PS_SCHEDULE_ZB_H1);
        ps_timeline h2 = run_row(*state, r, PS_SCHEDULE_ZB_H2);
        assert_near(four_digits(ps_timeline_bubble(&one)), r->one_f_one_b, 1e-9);
        assert_near(four_digits(ps_timeline_bubble(&h1)), r->zb_h1, 1e-9);
        assert_near(four_digits(ps_timeline_span_bubble(&h2)), r->zb_h2, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(bubble_rates_equal_the_published_table_to_four_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
