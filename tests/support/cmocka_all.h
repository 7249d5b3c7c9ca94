// SPDX-License-Identifier: Apache-2.0
//
// cmocka_all.h: cmocka with the headers it needs, and the arena that most tests run in.
#ifndef PS_TESTS_CMOCKA_ALL_H
#define PS_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

// *state is a ps_arena of its own for each test. A test that runs out of memory aborts.
int arena_setup(void **state);
int arena_teardown(void **state);

#define test_in_arena(function) cmocka_unit_test_setup_teardown(function, arena_setup, arena_teardown)

// The call succeeds; otherwise the test fails and prints the status.
void assert_ok(ps_code code, const ps_status *status);

// Directory of the reference data (environment variable PIPESCHED_REFERENCE_DATA), or NULL.
const char *reference_data(void);

// Tests over the reference data have programs of their own, so that CTest reports them as skipped, never as passed,
// where the data are not there: exit status 77.
#define run_reference_tests(tests) (reference_data() ? cmocka_run_group_tests(tests, NULL, NULL) : reference_missing())
int reference_missing(void);

// Cut a line of a CSV without quotes at its commas, in place; false unless it has just so many fields.
bool split_csv_line(char *line, char **field, int32_t fields);

#endif
