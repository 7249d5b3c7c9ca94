// SPDX-License-Identifier: Apache-2.0
//
// commands.c: the table of commands, and what is said about all of them together.
#include "cli/commands.h"

#include <string.h>

#include "base/text.h"
#include "io/json_read.h"
#include "io/xml_read.h"
#include "milp/milp.h"
#include "pipesched/version.h"

// A new command is one new file and one new row.
const ps_command *const ps_command_table[] = {
    &ps_command_plan,  &ps_command_partition, &ps_command_simulate,
    &ps_command_check, &ps_command_show,      &ps_command_calibrate,
};
const int32_t ps_command_table_count = (int32_t)(sizeof ps_command_table / sizeof *ps_command_table);

const ps_command *ps_command_named(const char *name)
{
    for (int32_t index = 0; index < ps_command_table_count; index++)
        if (strcmp(ps_command_table[index]->name, name) == 0)
            return ps_command_table[index];
    return NULL;
}

ps_code ps_command_unknown(const char *name, ps_status *status)
{
    enum { MOST = 32 };
    const char *names[MOST];
    int32_t count = 0;
    for (; count < ps_command_table_count && count < MOST; count++)
        names[count] = ps_command_table[count]->name;

    ps_fail(status, PS_USAGE, "unknown-command", "unknown command \"%.80s\"", name);
    const char *near = ps_text_nearest(name, names, count);
    if (near)
        return ps_fail_hint(status, "did you mean \"%s\"?", near);
    return ps_fail_hint(status, "pipesched --help lists the commands");
}

void ps_commands_help(FILE *file)
{
    fputs("usage: pipesched COMMAND [options] ...\n\n"
          "Plans pipeline-parallel training offline: reads a model and a cluster, cuts the model into\n"
          "stages, orders every forward and backward, simulates the result and says how good it can get.\n\n"
          "Commands:\n",
          file);
    for (int32_t index = 0; index < ps_command_table_count; index++)
        fprintf(file, "  %-10s %-18s %s\n", ps_command_table[index]->name, ps_command_table[index]->operands,
                ps_command_table[index]->summary);
    fputs("\n  help COMMAND, COMMAND --help    options and examples of a command\n"
          "  --version                       this version and those of the linked libraries\n\n"
          "Exit status: 0 done, or the answer is yes; 1 the answer is no; 2 usage; 3 bad input; 4 input or\n"
          "output failed; 5 the time limit was hit and the best so far was printed; 70 internal.\n\n"
          "Start with:\n"
          "  pipesched plan llama-3.1-8b 1x8xH100-SXM5-80GB --global-batch-size 256 --seq-length 8192\n",
          file);
}

void ps_commands_version(FILE *file)
{
    fprintf(file, "pipesched %s\n", PS_VERSION);
    fprintf(file, "cJSON %s, GLPK %s, hwloc %s, Expat %s, popt %s, libmd %s\n", ps_json_library_version(),
            ps_milp_library_version(), PS_HWLOC_VERSION, ps_xml_library_version(), PS_POPT_VERSION, PS_LIBMD_VERSION);
}
