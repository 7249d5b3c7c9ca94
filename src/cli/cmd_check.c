// SPDX-License-Identifier: Apache-2.0
//
// cmd_check.c: a plan against itself, by the independent checker: the gate for CI.
#include <inttypes.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/load.h"
#include "io/json_write.h"
#include "pipesched/check.h"
#include "pipesched/plan.h"

typedef struct check_options {
    ps_common_options common;
} check_options;

static const ps_option_group *const groups[] = {&ps_common_option_group, NULL};

static ps_code write_json(FILE *file, const ps_check_result *result, ps_status *status)
{
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/check/v1");
    ps_json_put_string(&json, "verdict", result->total == 0 ? "ok" : "failed");
    ps_json_put_int(&json, "total", result->total);
    ps_json_array(&json, "findings");
    for (int32_t index = 0; index < result->count; index++) {
        const ps_finding *finding = &result->finding[index];
        ps_json_object_inline(&json, NULL);
        ps_json_put_string(&json, "rule", finding->rule);
        ps_json_put_string(&json, "pointer", finding->pointer);
        ps_json_put_string(&json, "message", finding->message);
        ps_json_close(&json);
    }
    ps_json_close(&json);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static void write_text(FILE *file, const char *path, const ps_plan *plan, const ps_check_result *result)
{
    char cells[32];
    bool both_ways = ps_schedule_family_at(plan->layout.schedule)->placement == PS_PLACEMENT_DUAL;
    for (int32_t index = 0; index < result->count; index++)
        fprintf(file, "%s: %s: %s: %s\n", path, result->finding[index].pointer, result->finding[index].rule,
                result->finding[index].message);
    if (result->total > result->count)
        fprintf(file, "and %" PRId64 " more\n", result->total - result->count);
    if (result->total > 0)
        fprintf(file, "failed: %" PRId64 " finding%s\n", result->total, result->total == 1 ? "" : "s");
    else if (!plan->feasible)
        fprintf(file, "ok: %s: says that nothing fits, and why\n", path);
    else
        fprintf(file, "ok: %s: %d layer%s once each%s on %d stage%s, %s ops in order, every figure agrees\n", path,
                (int)plan->inputs.model_layers, ps_plural(plan->inputs.model_layers), both_ways ? " way" : "",
                (int)plan->num_stages, ps_plural(plan->num_stages),
                ps_format_count(plan->schedule.first[plan->schedule.num_devices], cells));
}

static ps_code run_check(ps_run *run, ps_status *status)
{
    const char *path = run->parsed.operand[0];
    ps_plan plan;
    ps_check_result result;
    PS_TRY(ps_load_plan(run, path, &plan, status));
    PS_TRY(ps_check_plan(run->arena, &plan, &result, status));
    if (result.total > 0)
        run->verdict = PS_INFEASIBLE;
    if (run->common->json)
        return write_json(run->out, &result, status);
    write_text(run->out, path, &plan, &result);
    return PS_OK;
}

const ps_command ps_command_check = {
    .name = "check",
    .operands = "PLAN",
    .summary = "verify a plan against itself; exit status 1 when it does not hold",
    .about = "Derives placement, dependencies, times, memory and every printed figure again from the plan alone, by "
             "code of its own, and lists what does not agree. Exit status 0 when the plan holds, 1 when it does not.",
    .examples = "pipesched check plan.json\n"
                "pipesched plan llama-3.1-8b 1x8xH100-SXM5-80GB --global-batch-size 256 --seq-length 8192 --json | \\\n"
                "  pipesched check - --json",
    .min_operands = 1,
    .max_operands = 1,
    .groups = groups,
    .options_size = sizeof(check_options),
    .run = run_check,
};
