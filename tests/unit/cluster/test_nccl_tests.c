// SPDX-License-Identifier: Apache-2.0
//
// Logs of nccl-tests as several versions and launchers print them, made of times that follow a known line.
#include "pipesched/nccl_tests.h"

#include "base/text.h"
#include "support/cmocka_all.h"

#define HEADER                                                                                                         \
    "#                                                              out-of-place                       in-place\n"     \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "   \
    "#wrong\n"                                                                                                         \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
#define OLD_HEADER                                                                                                     \
    "#                                                     out-of-place                    in-place\n"                 \
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"     \
    "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
#define STARTING(name) "# Collective test starting: " name "_perf\n"

static void assert_near(double value, double expected, double tolerance)
{
    if (!(value >= expected - tolerance && value <= expected + tolerance))
        fail_msg("%.9g is not %.9g +- %.3g", value, expected, tolerance);
}

static void add_ranks(ps_text *text, int32_t nodes, int32_t per_node)
{
    ps_text_addf(text, "# Using devices\n");
    for (int32_t rank = 0; rank < nodes * per_node; rank++)
        ps_text_addf(text, "#  Rank %2d Group  0 Pid %d on  node%02d device %2d [0x07] NVIDIA H100 80GB HBM3\n",
                     (int)rank, 1000 + (int)rank, (int)(rank / per_node), (int)(rank % per_node));
}

typedef struct line_shape {
    const char *middle; // between type and time
    int32_t sets;
    double bus;      // busbw : algbw
    double multiple; // full tensor : size
} line_shape;

static const line_shape all_reduce_of_8 = {"sum -1", 2, 1.75, 1};

// 20 us and 100 GB/s of the full tensor.
static double line_us(double bytes)
{
    return 20 + bytes / 100e3;
}

static void add_row(ps_text *text, const line_shape *shape, int64_t size, double us)
{
    double algbw = (double)size * shape->multiple / us * 1e-3;
    ps_text_addf(text, "%12lld %12lld float %s", (long long)size, (long long)size / 4, shape->middle);
    for (int32_t set = 0; set < shape->sets; set++)
        ps_text_addf(text, " %.2f %.2f %.2f N/A", us, algbw, algbw * shape->bus);
    ps_text_addf(text, "\n");
}

static void add_rows(ps_text *text, const line_shape *shape)
{
    for (int64_t size = 1024; size <= INT64_C(1) << 30; size *= 4)
        add_row(text, shape, size, line_us((double)size * shape->multiple));
}

static ps_code parse(ps_arena *arena, const char *source, const char *text, ps_nccl_tests *out, ps_status *status)
{
    ps_nccl_text log = {source, text, (int64_t)strlen(text)};
    return ps_nccl_tests_parse(arena, &log, 1, out, status);
}

static ps_nccl_tests read(ps_arena *arena, const char *text)
{
    ps_nccl_tests tests;
    ps_status status = {0};
    assert_ok(parse(arena, "log", text, &tests, &status), &status);
    return tests;
}

static void assert_refused(ps_arena *arena, const char *text, const char *rule, int32_t line)
{
    ps_nccl_tests tests;
    ps_status status = {0};
    ps_code code = parse(arena, "log", text, &tests, &status);
    if (code != PS_BAD_INPUT || strcmp(status.rule, rule) != 0)
        fail_msg("expected %s, got code %d, rule %s: %s", rule, (int)code, status.rule, status.message);
    assert_int_equal(status.line, line);
    assert_string_equal(status.source, "log");
}

static ps_text begin(ps_arena *arena, const char *first, int32_t nodes, int32_t per_node)
{
    ps_text text = {.arena = arena};
    ps_text_addf(&text, "%s", first);
    add_ranks(&text, nodes, per_node);
    return text;
}

static void a_log_is_one_test_among_the_ranks_that_it_lists(void **state)
{
    ps_text text = begin(*state, STARTING("all_reduce"), 2, 4);
    ps_text_addf(&text, HEADER);
    add_rows(&text, &all_reduce_of_8);
    ps_text_addf(&text, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 70.7\n#\n");
    ps_nccl_tests tests = read(*state, text.data);
    assert_int_equal(tests.count, 1);
    assert_int_equal(tests.num_warnings, 0);
    const ps_nccl_test *test = &tests.test[0];
    assert_string_equal(test->name, "all_reduce");
    assert_true(test->has_curve && test->collective == PS_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(test->ranks, 8);
    assert_int_equal(test->nodes, 2);
    assert_string_equal(test->gpu, "NVIDIA H100 80GB HBM3");
    assert_int_equal(test->num_points, 11);
    assert_true(test->bytes[0] == 1024 && test->bytes[10] == 0x1p30);
    assert_near(test->seconds[0], 20.01e-6, 1e-11);
}

static void the_line_through_a_test_is_found(void **state)
{
    ps_text text = begin(*state, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&text, HEADER);
    add_rows(&text, &all_reduce_of_8);
    ps_nccl_tests tests = read(*state, text.data);
    ps_nccl_fit fit = ps_nccl_fit_line(&tests.test[0]);
    assert_true(fit.found);
    assert_near(fit.latency_seconds, 20e-6, 1e-8);
    assert_near(fit.bytes_per_s, 100e9, 1e8);
    assert_true(fit.floor_seconds == 0 && fit.error < 0.001);
}

static void a_flat_beginning_becomes_a_floor(void **state)
{
    double bytes[16];
    double seconds[16];
    for (int32_t point = 0; point < 16; point++) {
        bytes[point] = (double)(INT64_C(1) << (10 + point));
        double us = 30 + bytes[point] / 100e3;
        seconds[point] = (us > 50 ? us : 50) * 1e-6;
    }
    ps_nccl_test test = {.num_points = 16, .bytes = bytes, .seconds = seconds};
    ps_nccl_fit fit = ps_nccl_fit_line(&test);
    assert_true(fit.found);
    assert_near(fit.floor_seconds, 50e-6, 1e-7);
    assert_near(fit.latency_seconds, 30e-6, 1e-6);
    assert_true(fit.error < 0.001);
    (void)state;
}

static void no_line_goes_through_times_that_do_not_grow(void **state)
{
    const double bytes[] = {256, 512, 1024, 2048};
    const double seconds[] = {34e-6, 34e-6, 32e-6, 31e-6};
    ps_nccl_test test = {.num_points = 4, .bytes = bytes, .seconds = seconds};
    assert_false(ps_nccl_fit_line(&test).found);
    test.num_points = 2;
    assert_false(ps_nccl_fit_line(&test).found);
    (void)state;
}

static void layouts_of_every_version_are_read(void **state)
{
    static const struct {
        const char *name;
        const char *header;
        line_shape shape;
    } layouts[] = {
        {"all_reduce", HEADER, {"sum -1", 2, 1.75, 1}},
        {"all_reduce", OLD_HEADER, {"sum", 2, 1.75, 1}},
        {"all_reduce", "", {"sum -1", 2, 1.75, 1}},
        {"all_reduce", "", {"sum", 2, 1.75, 1}},
        {"all_reduce", "", {"sum", 1, 1.75, 1}},
        {"all_gather", HEADER, {"none -1", 2, 0.875, 1}},
        {"all_gather", HEADER, {"", 2, 0.875, 1}},
        {"alltoall", "", {"", 2, 0.875, 1}},
        {"reduce_scatter", "", {"sum -1", 1, 0.875, 8}},
        {"sendrecv", HEADER, {"sum -1", 2, 1, 1}},
        {"all_reduce", "# size count type redop time algbw busbw error\n", {"sum", 1, 1.75, 1}},
    };
    for (size_t index = 0; index < sizeof layouts / sizeof *layouts; index++) {
        ps_text text = begin(*state, "", 1, 8);
        ps_text_addf(&text, STARTING("%s") "%s", layouts[index].name, layouts[index].header);
        add_rows(&text, &layouts[index].shape);
        ps_nccl_tests tests = read(*state, text.data);
        assert_int_equal(tests.count, 1);
        assert_int_equal(tests.num_warnings, 0);
        assert_int_equal(tests.test[0].num_points, 11);
        assert_true(tests.test[0].bytes[0] == 1024 * layouts[index].shape.multiple);
        assert_near(tests.test[0].seconds[0], line_us(tests.test[0].bytes[0]) * 1e-6, 1e-8);
    }
}

static void other_output_between_rows_is_read_over(void **state)
{
    ps_text text = begin(*state, "+ mpirun -np 8 ./build/all_reduce_perf -b 8 -e 1G -f 4\n", 1, 8);
    ps_text_addf(&text, "node00:1000:1000 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n" HEADER);
    add_row(&text, &all_reduce_of_8, 1024, line_us(1024));
    ps_text_addf(&text, "[node00:4242] 7 more processes have sent help message help-mpi-btl.txt\n\n\r\n");
    ps_text_addf(&text, "        4096         1024 float node00:1:1 [0] NCCL INFO Channel 00/24\n");
    add_row(&text, &all_reduce_of_8, 16384, line_us(16384));
    ps_text_addf(&text, "[1,0]<stdout>:");
    add_row(&text, &all_reduce_of_8, 65536, line_us(65536));
    ps_text_addf(&text, "0: ");
    add_row(&text, &all_reduce_of_8, 262144, line_us(262144));
    ps_text_addf(&text, "     1048576       262144     float     sum      -1    30.4");
    ps_nccl_tests tests = read(*state, text.data);
    assert_int_equal(tests.count, 1);
    assert_int_equal(tests.test[0].num_points, 4);
    assert_int_equal(tests.num_warnings, 1);
    assert_non_null(strstr(tests.warning[0], "2 rows cut or mixed with other output, the first in line 19"));
}

static void several_tests_of_one_file_stay_apart(void **state)
{
    const line_shape gather_of_4 = {"none -1", 2, 0.75, 1};
    ps_text text = begin(*state, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&text, HEADER);
    add_rows(&text, &all_reduce_of_8);
    ps_text_addf(&text, STARTING("all_gather") "# nThread 1 nGpus 1 minBytes 8\n");
    add_ranks(&text, 4, 1);
    ps_text_addf(&text, HEADER);
    add_rows(&text, &gather_of_4);
    ps_nccl_tests tests = read(*state, text.data);
    assert_int_equal(tests.count, 2);
    assert_int_equal(tests.test[0].ranks, 8);
    assert_string_equal(tests.test[1].name, "all_gather");
    assert_int_equal(tests.test[1].ranks, 4);
    assert_int_equal(tests.test[1].nodes, 4);
}

static void groups_of_ranks_that_ran_side_by_side_are_one_test(void **state)
{
    const line_shape of_2 = {"sum -1", 2, 1, 1};
    ps_text text = {.arena = *state};
    ps_text_addf(&text, STARTING("all_reduce"));
    for (int32_t rank = 0; rank < 8; rank++)
        ps_text_addf(&text, "#  Rank  %d Group  %d Pid 1 on node%d device  0 [0x07] NVIDIA H100\n", (int)rank,
                     (int)(rank % 4), (int)(rank / 4));
    ps_text_addf(&text, HEADER);
    add_rows(&text, &of_2);
    ps_nccl_tests tests = read(*state, text.data);
    assert_int_equal(tests.test[0].ranks, 2);
    assert_int_equal(tests.test[0].nodes, 2);
}

static void a_size_measured_again_takes_the_median(void **state)
{
    ps_text text = begin(*state, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&text, HEADER);
    add_row(&text, &all_reduce_of_8, 1024, 20);
    add_row(&text, &all_reduce_of_8, 4096, 22);
    add_row(&text, &all_reduce_of_8, 1024, 30);
    add_row(&text, &all_reduce_of_8, 1024, 21);
    ps_nccl_tests tests = read(*state, text.data);
    assert_int_equal(tests.test[0].num_points, 2);
    assert_near(tests.test[0].seconds[0], 21e-6, 1e-12);
}

static void sizes_too_small_for_so_many_ranks_are_no_rows(void **state)
{
    ps_text text = begin(*state, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&text, HEADER "0 0 float sum -1 5.10 0.00 0.00 0 5.10 0.00 0.00 0\n");
    add_rows(&text, &all_reduce_of_8);
    assert_int_equal(read(*state, text.data).test[0].num_points, 11);
}

static void the_name_of_the_file_is_a_last_resort(void **state)
{
    ps_text text = begin(*state, "", 1, 8);
    ps_text_addf(&text, HEADER);
    add_rows(&text, &all_reduce_of_8);
    ps_nccl_tests tests;
    ps_status status = {0};
    assert_ok(parse(*state, "logs/allreduce-8.txt", text.data, &tests, &status), &status);
    assert_string_equal(tests.test[0].name, "all_reduce");
    assert_int_equal(tests.num_warnings, 1);
    assert_refused(*state, text.data, "nccl-collective", 13);
}

static void a_person_may_say_what_the_log_does_not(void **state)
{
    const line_shape of_16 = {"sum -1", 2, 1.875, 1};
    ps_text text = {.arena = *state};
    ps_text_addf(&text, "# pipesched: collective all_reduce ranks 16 nodes 2\n" HEADER);
    add_rows(&text, &of_16);
    ps_nccl_tests tests = read(*state, text.data);
    assert_int_equal(tests.test[0].ranks, 16);
    assert_int_equal(tests.test[0].nodes, 2);
    assert_null(tests.test[0].gpu);
}

// One row under a whole header of eight ranks, and a second size that is right.
static const char *with_row(ps_arena *arena, const char *row)
{
    ps_text text = begin(arena, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&text, HEADER "%s\n", row);
    add_row(&text, &all_reduce_of_8, 1 << 20, line_us(1 << 20));
    return text.data;
}

static void nonsense_is_refused_by_name(void **state)
{
    static const char *const rows[][2] = {
        {"1024 256 float sum -1 0.00 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-time"},
        {"1024 256 float sum -1 -20.01 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-time"},
        {"1024 256 float sum -1 nan 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-time"},
        {"1024 256 float sum -1 1e999 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-time"},
        {"1024 256 float sum -1 1e30 0.00 0.00 0 1e30 0.00 0.00 0", "nccl-time"},
        {"-2147483648 536870912 float sum -1 20.01 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-size"},
        {"99999999999999999999 1 float sum -1 20.01 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-size"},
        {"1048576 262144 float sum -1 20.01 0.05 0.09 0 20.01 0.05 0.09 0", "nccl-bandwidth"},
        {"1048576 262144 float sum -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0", "nccl-bandwidth"},
        {"1048576 262144 float sum -1 100.0 10.49 18.35 0 50.00 10.49 18.35 0", "nccl-bandwidth"},
        {"1048576 262144 float sum -1 100.0 N/A 18.35 0 100.0 10.49 18.35 0", "nccl-bandwidth"},
        {"1048576 262144 float sum -1 100.0 10.49 18.35 7 100.0 10.49 18.35 0", "nccl-wrong"},
        {"1048576 262144 float sum -1 100.0 10.49 18.35 0 100.0 10.49 18.35 1e+03", "nccl-wrong"},
    };
    for (size_t index = 0; index < sizeof rows / sizeof *rows; index++)
        assert_refused(*state, with_row(*state, rows[index][0]), rows[index][1], 14);
    assert_refused(*state, with_row(*state, "1048576 262144 float sum -1 61.00 17.19 30.08 0 61.00 17.19 30.08 0"),
                   "nccl-duplicate", 14 + 1);
}

static void what_makes_no_curve_is_refused_by_name(void **state)
{
    static const char row[] = "1024 256 float sum -1 20.01 0.05 0.09 0 20.01 0.05 0.09 0\n";
    static const char *const cases[][2] = {
        {"", "nccl-rows"},
        {"\x7f\x45LF\x01\x02 no log\n", "nccl-rows"},
        {"{\"results\": []}", "nccl-rows"},
        {STARTING("all_reduce"), "nccl-rows"},
        {"# Collective test starting: all_redcue_perf\n", "nccl-collective"},
        {"# pipesched: collective all_reduce ranks 16\n", "nccl-ranks"},
        {"# pipesched: collective all_reduce ranks 16 nodes 3\n", "nccl-ranks"},
        {"# pipesched: collective all_reduce ranks many nodes 1\n", "nccl-ranks"},
        {"# pipesched: all_reduce\n", "nccl-ranks"},
        {"#        (B)    (elements)     (ms)  (GB/s)  (GB/s)\n", "nccl-unit"},
    };
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++)
        assert_refused(*state, cases[index][0], cases[index][1], 1);
    assert_refused(*state, ps_text_format(*state, STARTING("all_reduce") "%s", row), "nccl-ranks", 2);
    ps_text alone = begin(*state, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&alone, "%s", row);
    assert_refused(*state, alone.data, "nccl-sizes", 11);
    ps_text one = begin(*state, STARTING("all_reduce"), 1, 1);
    ps_text_addf(&one, "%s", row);
    assert_refused(*state, one.data, "nccl-ranks", 4);
}

static void ranks_must_stand_alike(void **state)
{
    static const char *const extra[][2] = {
        {"#  Rank  8 Group  0 Pid 1 on node77 device  0 [0x07] NVIDIA H100 80GB HBM3\n", "nccl-nodes"},
        {"#  Rank  8 Group  0 Pid 1 on node77 device  0 [0x07] NVIDIA A100-SXM4-80GB\n", "nccl-ranks"},
        {"#  Rank  8 Group  1 Pid 1 on node00 device  0 [0x07] NVIDIA H100 80GB HBM3\n", "nccl-nodes"},
        {"#  Rank  7 Group  0 Pid 1 on node00 device  0 [0x07] NVIDIA H100 80GB HBM3\n", "nccl-ranks"},
    };
    for (size_t index = 0; index < sizeof extra / sizeof *extra; index++) {
        ps_text text = begin(*state, STARTING("all_reduce"), 2, 4);
        ps_text_addf(&text, "%s" HEADER, extra[index][0]);
        add_rows(&text, &all_reduce_of_8);
        assert_refused(*state, text.data, extra[index][1], 15);
    }
}

static void cut_anywhere_a_log_is_read_or_refused(void **state)
{
    ps_text text = begin(*state, STARTING("all_reduce"), 1, 8);
    ps_text_addf(&text, HEADER);
    int64_t text_before_rows = text.size;
    add_rows(&text, &all_reduce_of_8);
    for (int64_t size = 0; size < text.size; size++) {
        ps_arena *arena = ps_arena_new(0);
        ps_nccl_text log = {"log", ps_text_copy_n(arena, text.data, size), size};
        ps_nccl_tests tests;
        ps_status status = {0};
        ps_code code = ps_nccl_tests_parse(arena, &log, 1, &tests, &status);
        bool in_rows = size > text_before_rows;
        if (in_rows && code != PS_OK && strcmp(status.rule, "nccl-rows") != 0 && strcmp(status.rule, "nccl-sizes") != 0)
            fail_msg("cut after %lld bytes: %s: %s", (long long)size, status.rule, status.message);
        if (code != PS_OK && strncmp(status.rule, "nccl-", 5) != 0)
            fail_msg("cut after %lld bytes: %s: %s", (long long)size, status.rule, status.message);
        ps_arena_free(arena);
    }
}

static void a_line_without_end_is_read_over(void **state)
{
    enum { LENGTH = 1 << 24 };
    char *text = ps_new(*state, char, LENGTH + 1);
    memset(text, '7', LENGTH);
    assert_refused(*state, text, "nccl-rows", 1);
    memset(text, ' ', LENGTH);
    assert_refused(*state, text, "nccl-rows", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_log_is_one_test_among_the_ranks_that_it_lists),
        test_in_arena(the_line_through_a_test_is_found),
        test_in_arena(a_flat_beginning_becomes_a_floor),
        test_in_arena(no_line_goes_through_times_that_do_not_grow),
        test_in_arena(layouts_of_every_version_are_read),
        test_in_arena(other_output_between_rows_is_read_over),
        test_in_arena(several_tests_of_one_file_stay_apart),
        test_in_arena(groups_of_ranks_that_ran_side_by_side_are_one_test),
        test_in_arena(a_size_measured_again_takes_the_median),
        test_in_arena(sizes_too_small_for_so_many_ranks_are_no_rows),
        test_in_arena(the_name_of_the_file_is_a_last_resort),
        test_in_arena(a_person_may_say_what_the_log_does_not),
        test_in_arena(nonsense_is_refused_by_name),
        test_in_arena(what_makes_no_curve_is_refused_by_name),
        test_in_arena(ranks_must_stand_alike),
        test_in_arena(cut_anywhere_a_log_is_read_or_refused),
        test_in_arena(a_line_without_end_is_read_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
