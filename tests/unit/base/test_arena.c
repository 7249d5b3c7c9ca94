// SPDX-License-Identifier: Apache-2.0
#include "pipesched/arena.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/vec.h"
#include "support/cmocka_all.h"

typedef struct request {
    ps_arena *arena;
    int64_t count;
    int64_t size;
    int32_t guards; // further guards around the request
    bool came_back; // from the guard inside
} request;

static ps_code allocate(void *context, ps_status *status)
{
    request *one = context;
    if (one->guards > 0) {
        one->guards--;
        ps_code code = ps_guard(allocate, one, one->arena, status);
        one->came_back = true;
        return code;
    }
    ps_arena_alloc(one->arena, one->count, one->size);
    return PS_OK;
}

static ps_code guarded(ps_arena *arena, int64_t count, int64_t size, ps_status *status)
{
    request one = {.arena = arena, .count = count, .size = size};
    *status = (ps_status){0};
    return ps_guard(allocate, &one, arena, status);
}

static void memory_is_aligned_zeroed_and_apart(void **state)
{
    ps_arena *arena = *state;
    ps_rng rng = {7};
    unsigned char *block[200];
    int64_t size[200];
    for (int round = 0; round < 3; round++) {
        for (int index = 0; index < 200; index++) {
            size[index] = ps_rng_range(&rng, 0, index % 20 == 0 ? 100000 : 300);
            block[index] = ps_arena_alloc(arena, size[index], 1);
            assert_int_equal((uintptr_t)block[index] % sizeof(max_align_t) % 16, 0);
            for (int64_t at = 0; at < size[index]; at++)
                assert_int_equal(block[index][at], 0);
            memset(block[index], index + 1, (size_t)size[index]);
        }
        for (int index = 0; index < 200; index++)
            for (int64_t at = 0; at < size[index]; at++)
                assert_int_equal(block[index][at], index + 1);
        ps_arena_reset(arena);
        assert_int_equal(ps_arena_used(arena), 0);
    }
}

static void limit_holds_for_what_is_used_at_once(void **state)
{
    (void)state;
    ps_status status;
    ps_arena *arena = ps_arena_new(4096);
    for (int round = 0; round < 100; round++) {
        assert_int_equal(guarded(arena, 1000, 4, &status), PS_OK);
        assert_true(ps_arena_used(arena) >= 4000 && ps_arena_used(arena) <= 4096);
        assert_int_equal(guarded(arena, 100, 4, &status), PS_EXHAUSTED);
        assert_string_equal(status.rule, "out-of-memory");
        assert_string_equal(status.message,
                            "the memory limit of 4.00 KiB is reached: 3.91 KiB are used and 400 B more are needed");
        ps_arena_reset(arena);
    }
    ps_arena_free(arena);
}

static void count_times_size_that_overflows_is_exhaustion(void **state)
{
    ps_arena *arena = *state;
    ps_status status;
    assert_int_equal(guarded(arena, INT64_MAX / 4, 8, &status), PS_EXHAUSTED);
    assert_int_equal(guarded(arena, INT64_MAX, 1, &status), PS_EXHAUSTED);
    assert_int_equal(guarded(arena, INT64_MAX - 8, 1, &status), PS_EXHAUSTED);
    assert_int_equal(guarded(arena, -1, 8, &status), PS_EXHAUSTED);
    assert_int_equal(guarded(arena, 1, 8, &status), PS_OK); // the arena is as good as before
}

static void request_beyond_any_machine_is_exhaustion(void **state)
{
    ps_arena *arena = *state;
    ps_status status;
    assert_int_equal(guarded(arena, INT64_C(1) << 50, 1 << 10, &status), PS_EXHAUSTED);
    assert_string_equal(status.message, "memory ran out: 0 B are used and 1.00 EiB more are needed");
}

static void exhaustion_lands_at_the_innermost_guard(void **state)
{
    (void)state;
    ps_arena *arena = ps_arena_new(100);
    request one = {.arena = arena, .count = 200, .size = 1, .guards = 2};
    ps_status status = {0};
    assert_int_equal(ps_guard(allocate, &one, arena, &status), PS_EXHAUSTED);
    assert_true(one.came_back);
    ps_arena_free(arena);
}

static ps_code exhaust_outer(void *context, ps_status *status)
{
    request *one = context;
    ps_arena *inner = ps_arena_new(0);
    ps_arena_defer(one->arena, (void (*)(void *))ps_arena_free, inner);
    ps_code code = ps_guard(allocate, one, inner, status); // allocates from one->arena, not from inner
    one->came_back = true;
    return code;
}

static void exhaustion_passes_over_guards_of_other_arenas(void **state)
{
    (void)state;
    ps_arena *arena = ps_arena_new(100);
    request one = {.arena = arena, .count = 200, .size = 1};
    ps_status status = {0};
    assert_int_equal(ps_guard(exhaust_outer, &one, arena, &status), PS_EXHAUSTED);
    assert_false(one.came_back);
    ps_arena_free(arena);
}

static ps_code fail_plainly(void *context, ps_status *status)
{
    (void)context;
    return ps_fail(status, PS_INFEASIBLE, "does-not-fit", "it does not fit");
}

static void guard_passes_other_failures_through(void **state)
{
    ps_status status = {0};
    assert_int_equal(ps_guard(fail_plainly, NULL, *state, &status), PS_INFEASIBLE);
    assert_string_equal(status.rule, "does-not-fit");
}

static void exhaustion_outside_any_guard_aborts(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); // cmocka catches it
        dup2(ends[1], STDERR_FILENO);
        ps_arena_alloc(ps_arena_new(100), 200, 1);
        _exit(0);
    }
    close(ends[1]);
    char said[512] = "";
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    close(ends[0]);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    assert_non_null(strstr(said, "outside any guard"));
}

typedef struct note {
    char *log;
    char letter;
} note;

static void write_note(void *context)
{
    note *one = context;
    size_t size = strlen(one->log);
    one->log[size] = one->letter;
    one->log[size + 1] = '\0';
}

static void deferred_calls_run_last_first_and_once(void **state)
{
    (void)state;
    char log[16] = "";
    note notes[] = {{log, 'a'}, {log, 'b'}, {log, 'c'}};
    ps_arena *arena = ps_arena_new(0);
    ps_arena_defer(arena, write_note, &notes[0]);
    ps_arena_defer(arena, write_note, &notes[1]);
    ps_arena_reset(arena);
    assert_string_equal(log, "ba");
    ps_arena_defer(arena, write_note, &notes[2]);
    ps_arena_free(arena);
    assert_string_equal(log, "bac");
    ps_arena_free(NULL);
}

typedef struct deferral {
    ps_arena *arena;
    note *what;
} deferral;

static ps_code defer_note(void *context, ps_status *status)
{
    (void)status;
    deferral *one = context;
    ps_arena_defer(one->arena, write_note, one->what);
    return PS_OK;
}

static void object_is_given_back_when_its_deferral_finds_no_memory(void **state)
{
    (void)state;
    char log[16] = "";
    note what = {log, 'x'};
    ps_arena *arena = ps_arena_new(8);
    ps_status status = {0};
    assert_int_equal(ps_guard(defer_note, &(deferral){arena, &what}, arena, &status), PS_EXHAUSTED);
    assert_string_equal(log, "x");
    ps_arena_free(arena);
    assert_string_equal(log, "x");
}

static void vector_keeps_what_was_pushed(void **state)
{
    ps_arena *arena = *state;
    ps_vec(int64_t) squares = {0};
    for (int64_t index = 0; index < 100000; index++) {
        int64_t *slot = ps_vec_push(arena, &squares);
        assert_int_equal(*slot, 0);
        *slot = index * index;
    }
    assert_int_equal(squares.count, 100000);
    for (int64_t index = 0; index < squares.count; index++)
        assert_int_equal(squares.data[index], index * index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(memory_is_aligned_zeroed_and_apart),
        cmocka_unit_test(limit_holds_for_what_is_used_at_once),
        test_in_arena(count_times_size_that_overflows_is_exhaustion),
        test_in_arena(request_beyond_any_machine_is_exhaustion),
        cmocka_unit_test(exhaustion_lands_at_the_innermost_guard),
        cmocka_unit_test(exhaustion_passes_over_guards_of_other_arenas),
        test_in_arena(guard_passes_other_failures_through),
        cmocka_unit_test(exhaustion_outside_any_guard_aborts),
        cmocka_unit_test(deferred_calls_run_last_first_and_once),
        cmocka_unit_test(object_is_given_back_when_its_deferral_finds_no_memory),
        test_in_arena(vector_keeps_what_was_pushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
