// SPDX-License-Identifier: Apache-2.0
//
// control.c: the clock, the interrupt and the progress line, which the library has none of.
#include "cli/control.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// The one piece of state that outlives a call: a handler has no context.
static volatile sig_atomic_t caught_signal;

static void catch_signal(int number)
{
    caught_signal = number;
}

// SA_RESETHAND: a second signal acts at once, should the work not look in time. What the caller ignores stays ignored.
static void catch_one(int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_IGN)
        return;
    memset(&action, 0, sizeof action);
    action.sa_handler = catch_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(number, &action, NULL);
}

void ps_cli_catch_signals(void)
{
    if (caught_signal != 0) // the next one acts at once
        return;
    catch_one(SIGINT);
    catch_one(SIGTERM);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Whether a new line of progress is due.
static bool is_due(ps_cli_control *control, int64_t now)
{
    enum { INTERVAL_NS = 100000000 };
    if (now < control->next_progress_ns)
        return false;
    control->next_progress_ns = now + INTERVAL_NS;
    control->progress_shown = true;
    return true;
}

static void show_elapsed(ps_cli_control *control)
{
    int64_t now = now_ns();
    if (is_due(control, now))
        fprintf(stderr, "\r\033[K%s: %" PRId64 " s", control->elapsed_of, (now - control->start_ns) / 1000000000);
}

static ps_code should_stop(void *context)
{
    ps_cli_control *control = context;
    if (control->elapsed_of)
        show_elapsed(control);
    if (caught_signal != 0)
        return PS_STOPPED;
    return ps_cli_control_is_late(control) ? PS_TIME_LIMIT : PS_OK;
}

bool ps_cli_control_is_late(const ps_cli_control *control)
{
    return control->is_limited && now_ns() >= control->deadline_ns;
}

static void show_progress(void *context, const char *what, int64_t done, int64_t total)
{
    ps_cli_control *control = context;
    if (!is_due(control, now_ns()))
        return;
    if (total > 0)
        fprintf(stderr, "\r\033[K%" PRId64 " of %" PRId64 " %s", done, total, what);
    else
        fprintf(stderr, "\r\033[K%" PRId64 " %s", done, what);
}

void ps_cli_control_start(ps_cli_control *control, int64_t time_limit_ns, bool shows_progress)
{
    ps_cli_catch_signals();
    *control = (ps_cli_control){
        .control = {.should_stop = should_stop, .progress = shows_progress ? show_progress : NULL, .context = control},
        .is_limited = time_limit_ns >= 0,
    };
    control->start_ns = now_ns();
    if (control->is_limited)
        control->deadline_ns =
            time_limit_ns < INT64_MAX - control->start_ns ? control->start_ns + time_limit_ns : INT64_MAX;
}

void ps_cli_control_end(ps_cli_control *control)
{
    if (control->progress_shown)
        fputs("\r\033[K", stderr);
    control->progress_shown = false;
}

bool ps_cli_interrupted(void)
{
    return caught_signal != 0;
}

void ps_cli_reraise(void)
{
    if (caught_signal == 0)
        return;
    signal(caught_signal, SIG_DFL);
    raise(caught_signal);
}
