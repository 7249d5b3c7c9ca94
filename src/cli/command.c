// SPDX-License-Identifier: Apache-2.0
//
// command.c: rules across options, and messages beside the result, that several commands share.
#include "cli/command.h"

#include <string.h>

ps_code ps_run_require(const ps_run *run, const char *name, ps_status *status)
{
    if (ps_option_given(&run->parsed, name))
        return PS_OK;
    return ps_fail(status, PS_USAGE, "missing-option", "%s needs --%s here", run->command->name, name);
}

ps_code ps_run_exclude(const ps_run *run, const char *name, const char *other, ps_status *status)
{
    if (!ps_option_given(&run->parsed, name) || !ps_option_given(&run->parsed, other))
        return PS_OK;
    return ps_fail(status, PS_USAGE, "conflicting-options", "--%s and --%s do not go together", name, other);
}

ps_code ps_run_stdin_once(const ps_run *run, const char *value, ps_status *status)
{
    int32_t count = value && strcmp(value, "-") == 0;
    for (int32_t index = 0; index < run->parsed.num_operands; index++)
        count += strcmp(run->parsed.operand[index], "-") == 0;
    return count <= 1 ? PS_OK : ps_run_stdin_again(status);
}

ps_code ps_run_stdin_again(ps_status *status)
{
    ps_fail(status, PS_USAGE, "stdin-twice", "standard input can be read only once, and - stands for it twice");
    return ps_fail_hint(status, "name a file for one of them");
}

static void print_beside(const ps_run *run, const char *level, const char *text)
{
    if (!run->common->quiet)
        fprintf(stderr, "pipesched: %s: %s\n", level, text);
}

void ps_run_warn(const ps_run *run, const char *text)
{
    print_beside(run, "warning", text);
}

void ps_run_note(const ps_run *run, const char *text)
{
    print_beside(run, "note", text);
}
