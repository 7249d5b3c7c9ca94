// SPDX-License-Identifier: Apache-2.0
//
// run.c: one run of the tool. A command fills a buffer; only when it has succeeded, and the buffer is complete, does
// anything reach a file or standard output. So a failed run leaves no half result anywhere.
#include "cli/run.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/option_help.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/json_write.h"

// A stream into memory. That of open_memstream() drops what it finds no memory for without an error (glibc 2.36).
typedef struct buffer {
    FILE *file;
    char *data; // complete once the file is flushed
    size_t size;
    size_t room;
    bool failed; // some of it found no memory
} buffer;

// Exhaustion is told once, by finish_buffer(), and not by whoever flushes first.
static ssize_t write_buffer(void *cookie, const char *data, size_t size)
{
    buffer *full = cookie;
    if (!full->failed && full->room - full->size < size) {
        size_t room = full->room;
        while (room - full->size < size)
            room = room == 0 ? 16384 : 2 * room;
        char *grown = realloc(full->data, room);
        if (!grown) {
            full->failed = true;
            return (ssize_t)size;
        }
        full->data = grown;
        full->room = room;
    }
    if (!full->failed) {
        memcpy(full->data + full->size, data, size);
        full->size += size;
    }
    return (ssize_t)size;
}

static void free_buffer(void *object)
{
    buffer *owned = object;
    if (owned->file)
        fclose(owned->file);
    free(owned->data);
}

static ps_code open_buffer(ps_arena *arena, buffer **out, ps_status *status)
{
    *out = ps_new(arena, buffer, 1);
    (*out)->file = fopencookie(*out, "w", (cookie_io_functions_t){.write = write_buffer});
    ps_arena_defer(arena, free_buffer, *out);
    if (!(*out)->file)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for the output");
    return PS_OK;
}

static ps_code finish_buffer(const buffer *full, ps_status *status)
{
    if (fflush(full->file) != 0 || ferror(full->file) || full->failed)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for the output");
    return PS_OK;
}

typedef struct session {
    int num_words;
    char **argument;
    const char **word; // the same
    ps_run run;
} session;

static ps_code fail_interrupted(ps_status *status)
{
    return ps_fail(status, PS_STOPPED, "interrupted", "interrupted: nothing is written");
}

static ps_code write_file(const ps_run *run, const buffer *full, ps_status *status)
{
    ps_output *output;
    ps_cli_catch_signals(); // one that ended the process here would leave the temporary file behind
    PS_TRY(ps_output_open(run->arena, run->common->output, &output, status));
    PS_TRY(ps_output_write(output, full->data, full->size, status));
    if (ps_cli_interrupted())
        return fail_interrupted(status);
    return ps_output_commit(output, status);
}

static ps_code run_command(ps_run *run, ps_status *status)
{
    buffer *out;
    buffer *file;
    PS_TRY(open_buffer(run->arena, &out, status));
    PS_TRY(open_buffer(run->arena, &file, status));
    run->to_file = run->common->output && strcmp(run->common->output, "-") != 0;
    run->style = ps_terminal_style(run->to_file);
    run->out = out->file;
    run->file = file->file;

    ps_code code = run->command->run(run, status);
    ps_cli_control_end(&run->control);
    PS_TRY(code);
    if (ps_cli_interrupted())
        return fail_interrupted(status);
    PS_TRY(finish_buffer(out, status));
    PS_TRY(finish_buffer(file, status));

    // A command that wrote nothing of its own for the file has one result, which goes there instead of to stdout.
    if (run->to_file)
        PS_TRY(write_file(run, file->size > 0 ? file : out, status));
    if (run->to_file && file->size == 0)
        return PS_OK;
    return ps_terminal_write(out->data, out->size, status);
}

static ps_code check_operands(const ps_run *run, ps_status *status)
{
    const ps_command *command = run->command;
    int32_t given = run->parsed.num_operands;
    if (given < command->min_operands)
        ps_fail(status, PS_USAGE, "missing-operand", "%s needs %s", command->name, command->operands);
    else if (given > command->max_operands && command->max_operands == 0)
        ps_fail(status, PS_USAGE, "unsupported-operands", "%s takes no operand, got \"%.80s\"", command->name,
                run->parsed.operand[0]);
    else if (given > command->max_operands)
        ps_fail(status, PS_USAGE, "unsupported-operands", "%s takes %s and nothing more, got \"%.80s\"", command->name,
                command->operands, run->parsed.operand[command->max_operands]);
    else
        return PS_OK;
    return ps_fail_hint(status, "pipesched %s --help shows how", command->name);
}

static ps_code print_help(ps_arena *arena, const ps_command *command, ps_status *status)
{
    buffer *out;
    PS_TRY(open_buffer(arena, &out, status));
    if (command)
        ps_command_help(out->file, command);
    else
        ps_commands_help(out->file);
    PS_TRY(finish_buffer(out, status));
    return ps_terminal_write(out->data, out->size, status);
}

static ps_code print_version(ps_arena *arena, ps_status *status)
{
    buffer *out;
    PS_TRY(open_buffer(arena, &out, status));
    ps_commands_version(out->file);
    PS_TRY(finish_buffer(out, status));
    return ps_terminal_write(out->data, out->size, status);
}

// pipesched help [COMMAND]. Help is text, so that --json changes nothing.
static ps_code help_command(const session *words, ps_status *status)
{
    int at = 1;
    while (at < words->num_words && strcmp(words->word[at], "--json") == 0)
        at++;
    if (at == words->num_words)
        return print_help(words->run.arena, NULL, status);
    const ps_command *command = ps_command_named(words->word[at]);
    return command ? print_help(words->run.arena, command, status) : ps_command_unknown(words->word[at], status);
}

static ps_code no_command(ps_status *status)
{
    ps_fail(status, PS_USAGE, "missing-command", "no command given");
    return ps_fail_hint(status, "pipesched --help lists the commands");
}

static ps_code run_words(void *context, ps_status *status)
{
    session *words = context;
    ps_run *run = &words->run;
    if (words->num_words == 0)
        return no_command(status);
    words->word = ps_new(run->arena, const char *, words->num_words);
    for (int index = 0; index < words->num_words; index++)
        words->word[index] = words->argument[index];
    const char *first = words->word[0];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return print_help(run->arena, NULL, status);
    if (strcmp(first, "--version") == 0)
        return print_version(run->arena, status);
    if (strcmp(first, "help") == 0)
        return help_command(words, status);
    if (first[0] == '-') {
        ps_fail(status, PS_USAGE, "missing-command", "a command must come before the options, got \"%.80s\"", first);
        return ps_fail_hint(status, "pipesched --help lists the commands");
    }
    run->command = ps_command_named(first);
    if (!run->command)
        return ps_command_unknown(first, status);

    PS_TRY(ps_options_parse(run->arena, run->command->groups, run->command->options_size, words->num_words - 1,
                            words->word + 1, &run->parsed, status));
    run->common = run->parsed.values;
    if (run->common->help)
        return print_help(run->arena, run->command, status);
    PS_TRY(check_operands(run, status));
    return run_command(run, status);
}

static void print_error(const ps_status *status)
{
    char text[2048];
    ps_status_format(status, text, (int32_t)sizeof text);
    fprintf(stderr, "pipesched: error: %s\n", text);
    if (status->hint[0])
        fprintf(stderr, "  hint: %s\n", status->hint);
}

// The failure as a document on stdout; when stdout itself is what failed, the line on stderr has to do.
static void print_error_json(const ps_status *status)
{
    ps_json_writer writer;
    ps_status ignored = {0};
    ps_json_begin(&writer, stdout);
    ps_json_put_error(&writer, status);
    ps_json_write_end(&writer, &ignored);
}

// --json counts for the error too, wherever on the line it stands and whatever else is wrong with it.
static bool asks_for_json(int num_words, char **word)
{
    for (int index = 0; index < num_words && strcmp(word[index], "--") != 0; index++)
        if (strcmp(word[index], "--json") == 0)
            return true;
    return false;
}

int ps_cli_run(int num_words, char **word)
{
    ps_status status = {0};
    session all = {.num_words = num_words, .argument = word};
    all.run.arena = ps_arena_new(0);
    if (!all.run.arena) {
        fputs("pipesched: error: no memory\n", stderr);
        return ps_exit_status(PS_EXHAUSTED);
    }

    ps_code code = ps_guard(run_words, &all, all.run.arena, &status);
    if (code != PS_OK) {
        ps_cli_control_end(&all.run.control);
        if (asks_for_json(num_words, word))
            print_error_json(&status);
        print_error(&status);
    } else {
        code = all.run.verdict;
    }
    ps_arena_free(all.run.arena);
    return ps_exit_status(code);
}
