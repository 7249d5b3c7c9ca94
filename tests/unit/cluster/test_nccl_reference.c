// SPDX-License-Identifier: Apache-2.0
//
// Real logs: what is counted in them, and their lines. Those of all-reduce were fitted independently.
#include "base/text.h"
#include "io/file.h"
#include "pipesched/nccl_tests.h"
#include "support/cmocka_all.h"

typedef struct real_log {
    const char *file;
    const char *note; // what the log does not say
    const char *name;
    int32_t ranks;
    int32_t nodes;
    int32_t sizes;
    double latency_us; // 0: no line fits
    double gb_per_s;
} real_log;

static const real_log logs[] = {
    {"all_reduce_8xA100_nvswitch_1node.log", "", "all_reduce", 8, 1, 30, 40.6, 112},
    {"all_reduce_16xH100_gcp_a3mega_2nodes.log", "", "all_reduce", 16, 2, 31, 143, 146},
    {"all_gather_16xH100_gcp_tcpxo_2nodes.log", "# pipesched: ranks 16 nodes 2\n", "all_gather", 16, 2, 11, 5608, 302},
    {"sendrecv_2xA40_2nodes.excerpt.log", "", "sendrecv", 2, 2, 5, 0, 0},
};

static void assert_near(double value, double expected)
{
    if (!(value > 0.98 * expected && value < 1.02 * expected))
        fail_msg("%.6g is not %.6g", value, expected);
}

static void real_logs_are_read(void **state)
{
    for (size_t index = 0; index < sizeof logs / sizeof *logs; index++) {
        ps_arena *arena = *state;
        const real_log *log = &logs[index];
        const char *path = ps_text_format(arena, "%s/nccl-tests/%s", reference_data(), log->file);
        ps_file_bytes bytes;
        ps_nccl_tests tests;
        ps_status status = {0};
        assert_ok(ps_file_read(arena, path, 1 << 20, &bytes, &status), &status);
        const char *text = ps_text_format(arena, "%s%s", log->note, bytes.data);
        ps_nccl_text input = {log->file, text, (int64_t)strlen(text)};
        assert_ok(ps_nccl_tests_parse(arena, &input, 1, &tests, &status), &status);
        assert_int_equal(tests.count, 1);
        const ps_nccl_test *test = &tests.test[0];
        assert_string_equal(test->name, log->name);
        assert_int_equal(test->ranks, log->ranks);
        assert_int_equal(test->nodes, log->nodes);
        assert_int_equal(test->num_points, log->sizes);
        ps_nccl_fit fit = ps_nccl_fit_line(test);
        assert_int_equal(fit.found, log->latency_us > 0);
        if (!fit.found)
            continue;
        assert_near(fit.latency_seconds * 1e6, log->latency_us);
        assert_near(fit.bytes_per_s * 1e-9, log->gb_per_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(real_logs_are_read)};
    return run_reference_tests(tests);
}
