// SPDX-License-Identifier: Apache-2.0
//
// option_help.c: --help, made from the option tables.
#include "cli/option_help.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_COLUMN = 34, LAST_COLUMN = 100 };

// The words of `text` from `column` on, broken before LAST_COLUMN and indented to `indent`.
static void print_wrapped(FILE *file, const char *text, int indent, int column)
{
    while (*text) {
        int size = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + size > LAST_COLUMN) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", size, text);
        column += size;
        text += size;
        if (*text == '\n') {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        }
        text += *text != '\0';
    }
    fputc('\n', file);
}

// What a value may be: "from 1 to 64", "a|b|c".
static void describe_values(const ps_option *option, char *text, size_t size)
{
    text[0] = '\0';
    if (option->type == PS_OPTION_INT && option->max < INT64_MAX)
        snprintf(text, size, "; from %" PRId64 " to %" PRId64, option->min, option->max);
    if (option->type != PS_OPTION_CHOICE)
        return;
    snprintf(text, size, "; one of");
    for (const char *const *choice = option->choices; *choice; choice++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s %s", choice == option->choices ? "" : ",", *choice);
    }
}

// One row: names, then help, values and default, wrapped.
static void print_option(FILE *file, const ps_option *option)
{
    char name[80];
    char values[256];
    char text[768];
    char dash[8] = "    ";
    if (option->short_name)
        snprintf(dash, sizeof dash, "-%c, ", option->short_name);
    snprintf(name, sizeof name, "  %s--%s%s%s", dash, option->name, option->metavar ? " " : "",
             option->metavar ? option->metavar : "");
    describe_values(option, values, sizeof values);
    snprintf(text, sizeof text, "%s%s%s%s%s", option->help, values, option->default_text ? " [" : "",
             option->default_text ? option->default_text : "", option->default_text ? "]" : "");

    int size = (int)strlen(name);
    if (size + 1 > NAME_COLUMN)
        fprintf(file, "%s\n%*s", name, NAME_COLUMN, "");
    else
        fprintf(file, "%-*s", NAME_COLUMN, name);
    print_wrapped(file, text, NAME_COLUMN, NAME_COLUMN);
}

void ps_command_usage(FILE *file, const ps_command *command)
{
    fprintf(file, "usage: pipesched %s [options]%s%s\n", command->name, command->operands[0] ? " " : "",
            command->operands);
}

void ps_command_help(FILE *file, const ps_command *command)
{
    ps_command_usage(file, command);
    fputc('\n', file);
    print_wrapped(file, command->about, 0, 0);
    for (const ps_option_group *const *group = command->groups; *group; group++) {
        fprintf(file, "\n%s:\n", (*group)->title);
        for (int32_t index = 0; index < (*group)->count; index++)
            print_option(file, &(*group)->option[index]);
    }
    fprintf(file, "\nExamples:\n");
    for (const char *line = command->examples; *line; line += *line == '\n') {
        int size = (int)strcspn(line, "\n");
        fprintf(file, "  %.*s\n", size, line);
        line += size;
    }
}
