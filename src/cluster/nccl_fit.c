// SPDX-License-Identifier: Apache-2.0
//
// nccl_fit.c: latency and bandwidth of a measured curve.
//
// Absolute residuals would let the largest sizes decide the latency, so relative ones are squared: with u = 1/t and
// v = s/t the sum of (a u + b v - 1)^2 is least where its two derivatives vanish. Small sizes are often flat; a floor
// below which no time falls is fitted to the first sizes if the rest is then met clearly better.
#include "pipesched/nccl_tests.h"

#define FLAT_SHARE 1e-9 // of the largest time that the sizes must add: below it they do not grow
#define FLOOR_GAIN 0.9  // error with a floor : without, from which the floor is worth its number
#define SINGULAR 1e-12

enum { LEAST_POINTS = 3, MOST_SPLITS = 64 };

static double largest(double a, double b)
{
    return a > b ? a : b;
}

static double absolute(double a)
{
    return a < 0 ? -a : a;
}

static double predicted(const ps_nccl_fit *fit, double bytes)
{
    return largest(fit->floor_seconds, fit->latency_seconds + bytes / fit->bytes_per_s);
}

static double mean_error(const ps_nccl_fit *fit, const ps_nccl_test *test)
{
    double sum = 0;
    for (int32_t point = 0; point < test->num_points; point++)
        sum += absolute(predicted(fit, test->bytes[point]) / test->seconds[point] - 1);
    return sum / test->num_points;
}

// The points from `first` on. Sizes and times are shares of the largest, so that products stay in range.
static ps_nccl_fit fit_line(const ps_nccl_test *test, int32_t first)
{
    double most_bytes = test->bytes[test->num_points - 1];
    double most_seconds = test->seconds[test->num_points - 1];
    double u = 0;
    double v = 0;
    double uu = 0;
    double uv = 0;
    double vv = 0;

    for (int32_t point = first; point < test->num_points; point++) {
        double inverse = most_seconds / test->seconds[point];
        double share = test->bytes[point] / most_bytes * inverse;
        u += inverse;
        v += share;
        uu += inverse * inverse;
        uv += inverse * share;
        vv += share * share;
    }
    double determinant = uu * vv - uv * uv;
    if (!(determinant > SINGULAR * uu * vv))
        return (ps_nccl_fit){0};
    double latency = (u * vv - v * uv) / determinant;
    double slope = (v * uu - u * uv) / determinant;
    if (latency < 0) {
        latency = 0;
        slope = v / vv;
    }
    if (!(slope > FLAT_SHARE))
        return (ps_nccl_fit){0};
    return (ps_nccl_fit){
        .found = true, .latency_seconds = latency * most_seconds, .bytes_per_s = most_bytes / (slope * most_seconds)};
}

// One time for the first `count` points.
static double fit_floor(const ps_nccl_test *test, int32_t count)
{
    double u = 0;
    double uu = 0;
    for (int32_t point = 0; point < count; point++) {
        u += 1 / test->seconds[point];
        uu += 1 / test->seconds[point] / test->seconds[point];
    }
    return u / uu;
}

ps_nccl_fit ps_nccl_fit_line(const ps_nccl_test *test)
{
    int32_t most = test->num_points - LEAST_POINTS;
    int32_t step = most > MOST_SPLITS ? most / MOST_SPLITS : 1;

    if (test->num_points < LEAST_POINTS)
        return (ps_nccl_fit){0};
    ps_nccl_fit plain = fit_line(test, 0);
    plain.error = plain.found ? mean_error(&plain, test) : 0;
    ps_nccl_fit best = plain;
    for (int32_t first = 2; first <= most; first += step) {
        ps_nccl_fit fit = fit_line(test, first);
        if (!fit.found)
            continue;
        fit.floor_seconds = fit_floor(test, first);
        fit.error = mean_error(&fit, test);
        if (!best.found || fit.error < best.error)
            best = fit;
    }
    return plain.found && best.error > FLOOR_GAIN * plain.error ? plain : best;
}
