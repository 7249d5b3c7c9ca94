// SPDX-License-Identifier: Apache-2.0
//
// parallel.c: workers that take indices from a counter.
//
// Indices are handed out in ascending order, and none is handed out once a call has failed. So when the lowest failing
// index fails, every lower one is already taken and will be finished: which failure is returned does not depend on the
// number of threads.
#include "base/parallel.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

typedef struct parallel_loop {
    ps_parallel_fn fn;
    void *context;
    int64_t n;
    int64_t byte_limit;

    pthread_mutex_t lock; // guards what follows
    int64_t next;
    int64_t failed_index; // n: none
    ps_status failure;
} parallel_loop;

typedef struct call {
    parallel_loop *loop;
    ps_arena *scratch;
    int64_t index;
} call;

static ps_code run_call(void *context, ps_status *status)
{
    call *one = context;
    return one->loop->fn(one->loop->context, one->index, one->scratch, status);
}

static bool take_index(parallel_loop *loop, int64_t *index)
{
    pthread_mutex_lock(&loop->lock);
    bool taken = loop->next < loop->n && loop->failed_index == loop->n;
    if (taken)
        *index = loop->next++;
    pthread_mutex_unlock(&loop->lock);
    return taken;
}

static void report_failure(parallel_loop *loop, int64_t index, const ps_status *status)
{
    pthread_mutex_lock(&loop->lock);
    if (index < loop->failed_index) {
        loop->failed_index = index;
        loop->failure = *status;
    }
    pthread_mutex_unlock(&loop->lock);
}

static void work(parallel_loop *loop, ps_arena *scratch)
{
    call one = {.loop = loop, .scratch = scratch};
    while (take_index(loop, &one.index)) {
        ps_status status = {0};
        ps_code code = ps_guard(run_call, &one, scratch, &status);
        if (code != PS_OK) {
            status.code = code;
            report_failure(loop, one.index, &status);
        }
        ps_arena_reset(scratch);
    }
}

// A helping thread without memory for its arena leaves the work to the others.
static void *help(void *context)
{
    parallel_loop *loop = context;
    ps_arena *scratch = ps_arena_new(loop->byte_limit);
    if (scratch)
        work(loop, scratch);
    ps_arena_free(scratch);
    return NULL;
}

static int32_t count_threads(int64_t n, int32_t threads)
{
    int64_t wanted = threads;
    if (wanted <= 0)
        wanted = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > MOST_THREADS)
        wanted = MOST_THREADS;
    if (wanted > n)
        wanted = n;
    return wanted < 1 ? 1 : (int32_t)wanted;
}

ps_code ps_parallel_for(int64_t n, int32_t threads, int64_t byte_limit, ps_parallel_fn fn, void *context,
                        ps_status *status)
{
    assert(n >= 0);
    ps_arena *scratch = ps_arena_new(byte_limit);
    if (!scratch)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "memory ran out before any work was begun");

    parallel_loop loop = {.fn = fn, .context = context, .n = n, .byte_limit = byte_limit, .failed_index = n};
    pthread_mutex_init(&loop.lock, NULL);

    // The caller works too. Threads that cannot be started are done without.
    pthread_t helper[MOST_THREADS];
    int32_t started = 0;
    int32_t helpers = count_threads(n, threads) - 1;
    while (started < helpers && pthread_create(&helper[started], NULL, help, &loop) == 0)
        started++;
    work(&loop, scratch);
    for (int32_t index = 0; index < started; index++)
        pthread_join(helper[index], NULL);

    pthread_mutex_destroy(&loop.lock);
    ps_arena_free(scratch);
    if (loop.failed_index == n)
        return PS_OK;
    *status = loop.failure;
    return status->code;
}
