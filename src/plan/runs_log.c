// SPDX-License-Identifier: Apache-2.0
//
// runs_log.c: the log of a Megatron-LM run: " iteration 5/ 100 | ... | elapsed time per iteration (ms): 812.4 | ...".
//
// A log is one run. The first iterations compile and warm up, so they are left out, and the median of the rest counts.
// Where the log has the list of arguments that Megatron prints ("  micro_batch_size ........ 1"), the layout is read
// from it; what it lacks comes from the command line.
#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"
#include "plan/calibrate_fit.h"
#include "plan/runs.h"

static const char time_label[] = "elapsed time per iteration (ms):";

enum { WARM_UP = 2, MAX_ITERATIONS = 1 << 20 };

typedef struct log_argument {
    const char *name;
    const char *option;
    const char *when;  // only this value matters; NULL: any but None
    const char *value; // of the option then; NULL: as printed
} log_argument;

static const log_argument arguments[] = {
    {"tensor_model_parallel_size", "tp", NULL, NULL},
    {"pipeline_model_parallel_size", "pp", NULL, NULL},
    {"virtual_pipeline_model_parallel_size", "vp", NULL, NULL},
    {"data_parallel_size", "dp", NULL, NULL},
    {"context_parallel_size", "cp", NULL, NULL},
    {"expert_model_parallel_size", "ep", NULL, NULL},
    {"expert_tensor_parallel_size", "etp", NULL, NULL},
    {"micro_batch_size", "micro-batch-size", NULL, NULL},
    {"global_batch_size", "global-batch-size", NULL, NULL},
    {"seq_length", "seq-length", NULL, NULL},
    {"recompute_granularity", "recompute", "full", "full"},
    {"recompute_granularity", "recompute", "selective", "selective"},
    {"bf16", "precision", "True", "bf16"},
    {"fp16", "precision", "True", "fp16"},
    {"fp8", "precision", "hybrid", "fp8"},
    {"fp8", "precision", "e4m3", "fp8"},
    {"sequence_parallel", "sequence-parallel", "True", "on"},
    {"sequence_parallel", "sequence-parallel", "False", "off"},
    {"use_distributed_optimizer", "zero", "True", "1"},
    {"use_distributed_optimizer", "zero", "False", "0"},
    {"overlap_grad_reduce", "overlap-grad-sync", "True", "on"},
    {"overlap_grad_reduce", "overlap-grad-sync", "False", "off"},
};
enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

typedef struct log_scan {
    ps_runs_reader *reader;
    ps_measured_run *run;
    ps_vec(double) milliseconds;
    int32_t line;
} log_scan;

bool ps_runs_is_log(const char *text)
{
    return strstr(text, time_label) != NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static ps_code fail_line(const log_scan *scan)
{
    scan->reader->status->code = PS_BAD_INPUT; // the file is at fault, not the command line
    return ps_fail_at(scan->reader->status, scan->reader->source, scan->line, 0, NULL);
}

static ps_code take_time(log_scan *scan, const char *at, const char *end)
{
    const int64_t most_ns = PS_MAX_TIME_NS / 1024; // so that sums of times stay in range
    double value = 0;
    while (at < end && is_blank(*at))
        at++;
    const char *stop = at;
    while (stop < end && !is_blank(*stop) && *stop != '|' && *stop != '\r')
        stop++;
    if (!ps_decimal_double(at, stop - at, &value) || !(value > 0) || value > (double)most_ns * 1e-6) {
        ps_fail(scan->reader->status, PS_BAD_INPUT, "run-time",
                "the time of an iteration must be above 0 in milliseconds, got \"%.*s\"",
                (int)(stop - at < 40 ? stop - at : 40), at);
        return fail_line(scan);
    }
    if (scan->milliseconds.count < MAX_ITERATIONS)
        *ps_vec_push(scan->reader->arena, &scan->milliseconds) = value;
    return PS_OK;
}

// "  name ........ value", whatever the launcher wrote before it.
static const char *value_of(const char *line, const char *end, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = line; at + size < end; at++) {
        if (strncmp(at, name, size) != 0 || (at > line && !is_blank(at[-1])))
            continue;
        const char *dots = at + size;
        while (dots < end && is_blank(*dots))
            dots++;
        if (dots + 2 > end || strncmp(dots, "..", 2) != 0)
            return NULL;
        while (dots < end && (*dots == '.' || is_blank(*dots)))
            dots++;
        return dots < end ? dots : NULL;
    }
    return NULL;
}

static ps_code take_argument(log_scan *scan, const log_argument *argument, const char *line, const char *end)
{
    ps_runs_reader *reader = scan->reader;
    const char *at = value_of(line, end, argument->name);
    if (!at)
        return PS_OK;
    while (end > at && (is_blank(end[-1]) || end[-1] == '\r'))
        end--;
    const char *value = ps_text_copy_n(reader->arena, at, end - at);
    if (strcmp(value, "None") == 0 || (argument->when && strcmp(value, argument->when) != 0))
        return PS_OK;
    if (ps_job_set(&scan->run->job, argument->option, argument->value ? argument->value : value, reader->status))
        return fail_line(scan);
    return PS_OK;
}

static ps_code take_line(log_scan *scan, const char *line, const char *end)
{
    const char *found = memchr(line, '|', (size_t)(end - line));
    if (found) {
        for (; found + sizeof time_label < end; found++)
            if (strncmp(found, time_label, sizeof time_label - 1) == 0)
                return take_time(scan, found + sizeof time_label - 1, end);
        return PS_OK;
    }
    for (int32_t row = 0; row < ARGUMENTS; row++)
        PS_TRY(take_argument(scan, &arguments[row], line, end));
    return PS_OK;
}

ps_code ps_runs_read_log(ps_runs_reader *reader)
{
    log_scan scan = {.reader = reader, .run = ps_vec_push(reader->arena, &reader->runs)};
    const char *text_end = reader->text + reader->size;

    *scan.run = (ps_measured_run){
        .name = reader->source, .framework = reader->framework ? reader->framework : "megatron", .job = *reader->base};
    for (const char *line = reader->text; line < text_end;) {
        const char *end = memchr(line, '\n', (size_t)(text_end - line));
        end = end ? end : text_end;
        scan.line++;
        PS_TRY(take_line(&scan, line, end));
        line = end + 1;
    }
    int32_t count = (int32_t)scan.milliseconds.count;
    int32_t skipped = count > 2 * WARM_UP ? WARM_UP : count / 2;
    if (count == 0) {
        ps_fail(reader->status, PS_BAD_INPUT, "runs-missing", "no line tells the time of an iteration");
        return ps_fail_at(reader->status, reader->source, 0, 0, NULL);
    }
    if (count - skipped < WARM_UP)
        *ps_vec_push(reader->arena, &reader->warnings) =
            ps_text_format(reader->arena, "%s: only %d iteration%s after the warm-up", reader->source,
                           (int)(count - skipped), ps_plural(count - skipped));
    scan.run->seconds = ps_fit_median(reader->arena, scan.milliseconds.data + skipped, count - skipped) * 1e-3;
    return PS_OK;
}
