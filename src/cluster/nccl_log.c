// SPDX-License-Identifier: Apache-2.0
//
// nccl_log.c: a log of nccl-tests, line by line.
//
//     #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw
//     #wrong #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)
//     (GB/s)
//          1048576        262144     float     sum      -1    203.2    5.16    9.68      0    207.2    5.06    9.49 0
//
// redop and root may be missing, and the second set of times. The size is that of the full tensor, but some builds
// print that of one rank; the bandwidth is always of the full tensor and tells which. Lines that are neither comments
// of nccl-tests nor rows are other programs'; a row that they cut is left out with a warning.
#include "cluster/nccl_log.h"

#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"

// Times have four digits or more, bandwidths two decimals.
#define RELATIVE_TOLERANCE 0.01
#define ABSOLUTE_TOLERANCE 0.011

enum { MAX_ROWS = 1 << 20, SET = 4 };

#define ASK_FOR_TEXT "the text that nccl-tests print is expected, such as all_reduce_perf -b 8 -e 4G -f 2"
#define ASK_FOR_LINE "put it above the rows: # pipesched: collective all_reduce ranks 16 nodes 2"

typedef struct log_reader {
    ps_arena *arena;
    const char *source;
    ps_nccl_rows *rows;
    ps_status *status;
    int32_t line;
    ps_nccl_ranks ranks;
    bool in_table;
    ps_nccl_table next; // what is known of the rows that follow
    bool kind_is_old;   // named for rows that came before another test began
    int32_t set;        // figures of one set of times; 0: neither a header nor a row was seen
    int32_t sets;       // in a row
    bool has_redop;     // columns of the header
    bool has_root;
    int64_t own_rows;
    int32_t left_out;
    int32_t first_left_out; // line
} log_reader;

static ps_code fail_here(const log_reader *reader)
{
    return ps_fail_at(reader->status, reader->source, reader->line, 1, NULL);
}

static int shown(const ps_nccl_word *word)
{
    return word->size < 40 ? (int)word->size : 40;
}

// A test begins: what follows is another table, of ranks that are listed anew.
static void begin_test(log_reader *reader)
{
    if (!reader->in_table)
        return;
    reader->in_table = false;
    reader->ranks = (ps_nccl_ranks){0};
    reader->next.ranks = 0;
    reader->next.gpu = NULL;
    reader->kind_is_old = true;
}

static void set_kind(log_reader *reader, const ps_nccl_kind *kind)
{
    reader->next.kind = kind;
    reader->kind_is_old = false;
}

static ps_code take_kind(log_reader *reader, const ps_nccl_word *word)
{
    const ps_nccl_kind *kind = ps_nccl_kind_of_word(word);
    const char *names[16];

    begin_test(reader);
    if (kind) {
        set_kind(reader, kind);
        return PS_OK;
    }
    for (int32_t index = 0; index < ps_nccl_num_kinds; index++)
        names[index] = ps_nccl_kinds[index].name;
    char *name = ps_text_copy_n(reader->arena, word->text, shown(word));
    const char *nearest = ps_text_nearest(name, names, ps_nccl_num_kinds);
    ps_fail(reader->status, PS_BAD_INPUT, "nccl-collective", "\"%s\" is no collective of nccl-tests", name);
    fail_here(reader);
    if (nearest)
        return ps_fail_hint(reader->status, "did you mean \"%s\"?", nearest);
    return ps_fail_hint(reader->status, "all_reduce, reduce_scatter, all_gather and alltoall are used");
}

static ps_code set_ranks(log_reader *reader, int64_t ranks, int64_t nodes)
{
    if (ranks < 2 || ranks > PS_MAX_GPUS || nodes < 1 || ranks % nodes != 0) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-ranks", "%lld ranks on %lld nodes: as many on each are expected",
                (long long)ranks, (long long)nodes);
        return fail_here(reader);
    }
    reader->ranks = (ps_nccl_ranks){0};
    reader->next.ranks = (int32_t)ranks;
    reader->next.nodes = (int32_t)nodes;
    return PS_OK;
}

// "# pipesched: collective all_reduce ranks 16 nodes 2": what a person adds to a log that does not say.
static ps_code take_note(log_reader *reader, const ps_nccl_line *line)
{
    int64_t ranks = 0;
    int64_t nodes = 0;

    begin_test(reader);
    for (int32_t at = 2; at < line->count; at += 2) {
        const ps_nccl_word *key = &line->word[at];
        bool has_value = at + 1 < line->count;
        if (has_value && ps_nccl_word_is(key, "collective"))
            PS_TRY(take_kind(reader, key + 1));
        else if (!(has_value && ps_nccl_word_is(key, "ranks") && ps_nccl_word_int(key + 1, &ranks)) &&
                 !(has_value && ps_nccl_word_is(key, "nodes") && ps_nccl_word_int(key + 1, &nodes))) {
            ps_fail(reader->status, PS_BAD_INPUT, "nccl-ranks", "\"%.*s\" is not understood here", shown(key),
                    key->text);
            fail_here(reader);
            return ps_fail_hint(reader->status, "as in # pipesched: collective all_reduce ranks 16 nodes 2");
        }
    }
    return ranks != 0 || nodes != 0 ? set_ranks(reader, ranks, nodes) : PS_OK;
}

static ps_code take_header(log_reader *reader, const ps_nccl_line *line)
{
    int32_t first = 0;
    int32_t second = 0;
    reader->has_redop = false;
    reader->has_root = false;
    for (int32_t at = 1; at < line->count; at++) {
        const ps_nccl_word *word = &line->word[at];
        bool time = ps_nccl_word_is(word, "time") || ps_nccl_word_is(word, "cputime");
        second = time && first && !second ? at : second;
        first = time && !first ? at : first;
        reader->has_redop = reader->has_redop || ps_nccl_word_is(word, "redop");
        reader->has_root = reader->has_root || ps_nccl_word_is(word, "root");
    }
    bool whole = first && first + 2 < line->count && ps_nccl_word_is(&line->word[first + 1], "algbw") &&
                 ps_nccl_word_is(&line->word[first + 2], "busbw");
    reader->set = 0;
    reader->in_table = false; // the rows of another table, if it is one
    if (!whole)
        return PS_OK; // cut: rows tell by themselves
    reader->set = second ? second - first : line->count - first < SET ? line->count - first : SET;
    reader->sets = second ? 2 : 1;
    return PS_OK;
}

// "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
static ps_code check_units(log_reader *reader, const ps_nccl_line *line)
{
    for (int32_t at = 1; at < line->count; at++) {
        const ps_nccl_word *unit = &line->word[at];
        if (ps_nccl_word_is(unit, "(B)") || ps_nccl_word_is(unit, "(elements)") || ps_nccl_word_is(unit, "(us)") ||
            ps_nccl_word_is(unit, "(GB/s)"))
            continue;
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-unit", "expected (B), (elements), (us) and (GB/s), got %.*s",
                shown(unit), unit->text);
        return fail_here(reader);
    }
    return PS_OK;
}

static ps_code take_comment(log_reader *reader, const ps_nccl_line *line)
{
    const ps_nccl_word *word = line->word;
    if (line->count < 2)
        return PS_OK;
    if (ps_nccl_word_is(&word[1], "size"))
        return take_header(reader, line);
    if (ps_nccl_word_is(&word[1], "(B)"))
        return check_units(reader, line);
    if (ps_nccl_word_is(&word[1], "pipesched:"))
        return take_note(reader, line);
    if (line->count > 4 && ps_nccl_word_is(&word[1], "Collective") && ps_nccl_word_is(&word[3], "starting:"))
        return take_kind(reader, &word[4]);
    if (ps_nccl_word_is(&word[1], "nThread") || ps_nccl_word_is(&word[1], "Using")) {
        begin_test(reader);
        reader->ranks = (ps_nccl_ranks){0};
    } else if (ps_nccl_word_is(&word[1], "Rank")) {
        begin_test(reader);
        if (ps_nccl_ranks_take(reader->arena, line, &reader->ranks))
            reader->next.ranks = 0;
    }
    return PS_OK;
}

// A command line names the test: "mpirun -np 16 ./build/all_gather_perf -b 8".
static void look_for_command(log_reader *reader, const ps_nccl_line *line)
{
    for (int32_t at = 0; at < line->count; at++) {
        const ps_nccl_word *word = &line->word[at];
        const ps_nccl_kind *kind = NULL;
        if (word->size > 5 && memcmp(word->text + word->size - 5, "_perf", 5) == 0)
            kind = ps_nccl_kind_of_word(word);
        if (!kind)
            continue;
        begin_test(reader);
        set_kind(reader, kind);
        return;
    }
}

static ps_code find_kind(log_reader *reader)
{
    if (reader->next.kind && !reader->kind_is_old)
        return PS_OK;
    const ps_nccl_kind *kind = ps_nccl_kind_in_name(reader->source);
    if (!kind) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-collective", "the log does not say which collective it measures");
        fail_here(reader);
        return ps_fail_hint(reader->status, ASK_FOR_LINE);
    }
    if (!reader->next.kind)
        *ps_vec_push(reader->arena, &reader->rows->warning) =
            ps_text_format(reader->arena, "%s: the log does not say what it measures; by its name that is %s",
                           reader->source, kind->name);
    set_kind(reader, kind);
    return PS_OK;
}

static ps_code find_ranks(log_reader *reader)
{
    if (reader->ranks.list.count > 0 &&
        ps_nccl_ranks_count(reader->arena, &reader->ranks, &reader->next, reader->status))
        return fail_here(reader);
    reader->ranks = (ps_nccl_ranks){0}; // counted
    if (reader->next.ranks >= 2)
        return PS_OK;
    if (reader->next.ranks == 1) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-ranks", "one rank has nobody to talk to: 2 or more are expected");
        return fail_here(reader);
    }
    ps_fail(reader->status, PS_BAD_INPUT, "nccl-ranks", "the log does not list its ranks");
    fail_here(reader);
    return ps_fail_hint(reader->status, ASK_FOR_LINE);
}

static ps_code begin_table(log_reader *reader)
{
    if (reader->in_table)
        return PS_OK;
    PS_TRY(find_kind(reader));
    PS_TRY(find_ranks(reader));
    reader->next.source = reader->source;
    reader->next.multiple = 0;
    *ps_vec_push(reader->arena, &reader->rows->table) = reader->next;
    reader->in_table = true;
    return PS_OK;
}

// The figures of a row from its first time on.
typedef struct row_figures {
    bool has_word; // redop
    int32_t count;
    ps_nccl_figure kind[PS_NCCL_WORDS];
    double value[PS_NCCL_WORDS];
    const ps_nccl_word *word; // of the first
} row_figures;

// Behind size, count and type stand redop and root, one of them, or none.
static row_figures figures_of(const ps_nccl_line *line)
{
    row_figures figures = {0};
    int32_t at = 3;
    double ignored;
    figures.has_word = ps_nccl_word_figure(&line->word[at], &ignored) == PS_NCCL_NO_FIGURE;
    at += figures.has_word;
    figures.word = &line->word[at];
    for (; at < line->count; at++) {
        double value = 0;
        ps_nccl_figure kind = ps_nccl_word_figure(&line->word[at], &value);
        if (kind == PS_NCCL_NO_FIGURE)
            break; // a time of day, or another program's words
        figures.kind[figures.count] = kind;
        figures.value[figures.count++] = value;
    }
    return figures;
}

// Whether a root stands before the first time, 0 or 1; below 0: the row is cut or mixed with other output.
static int32_t find_sets(const log_reader *reader, const row_figures *figures, int32_t *set, int32_t *sets)
{
    *set = reader->set > 0 ? reader->set : SET;
    *sets = reader->set > 0 ? reader->sets : figures->count >= 2 * SET ? 2 : 1;
    int32_t before = figures->count - *set * *sets;
    bool root = reader->has_root && (figures->has_word || !reader->has_redop);
    return before == 0 + root || (reader->set == 0 && before == 1) ? before : -1;
}

static bool agrees(double stated, double expected)
{
    double tolerance = ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * expected;
    return stated > expected - tolerance && stated < expected + tolerance;
}

static double bus_factor(const ps_nccl_table *table)
{
    double others = (double)(table->ranks - 1) / table->ranks;
    switch (table->kind->bus) {
    case PS_NCCL_BUS_OTHERS: return others;
    case PS_NCCL_BUS_TWICE: return 2 * others;
    default: return 1;
    }
}

static ps_nccl_table *table_of(const log_reader *reader)
{
    return &reader->rows->table.data[reader->rows->table.count - 1];
}

static ps_code check_bus(const log_reader *reader, double algbw, double busbw)
{
    const ps_nccl_table *table = table_of(reader);
    double factor = bus_factor(table);
    if (table->kind->bus == PS_NCCL_BUS_ANY || agrees(busbw, factor * algbw))
        return PS_OK;
    ps_fail(reader->status, PS_BAD_INPUT, "nccl-bandwidth",
            "busbw is %.4g GB/s and algbw %.4g GB/s: for %s among %d ranks busbw is %.4g times algbw", busbw, algbw,
            table->kind->name, (int)table->ranks, factor);
    fail_here(reader);
    return ps_fail_hint(reader->status, "is it another collective, or another number of ranks?");
}

// One set of times against the size. `multiple` gains what this row tells.
static ps_code check_set(const log_reader *reader, const row_figures *figures, int32_t at, double bytes)
{
    ps_nccl_table *table = table_of(reader);
    double us = figures->value[at];
    double algbw = figures->value[at + 1];
    double busbw = figures->value[at + 2];
    const ps_nccl_word *word = &figures->word[at];

    if (figures->kind[at] != PS_NCCL_NUMBER || !(us > 0) || us > (double)PS_MAX_LAYER_NS * 1e-3) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-time",
                "a time above 0 and below %lld s in us is expected, got \"%.*s\"",
                (long long)(PS_MAX_LAYER_NS / 1000000000), shown(word), word->text);
        return fail_here(reader);
    }
    if (figures->kind[at + 1] != PS_NCCL_NUMBER || figures->kind[at + 2] != PS_NCCL_NUMBER || algbw < 0 || busbw < 0) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-bandwidth", "bandwidths in GB/s are expected, got %.*s and %.*s",
                shown(&word[1]), word[1].text, shown(&word[2]), word[2].text);
        return fail_here(reader);
    }
    double gb_per_s = bytes / us * 1e-3;
    bool full = table->multiple != table->ranks && agrees(algbw, gb_per_s);
    bool share = table->multiple != 1 && agrees(algbw, gb_per_s * table->ranks);
    if (!full && !share) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-bandwidth",
                "%.15g bytes in %.4g us are %.4g GB/s, the row says %.4g GB/s", bytes, us,
                gb_per_s * (table->multiple > 1 ? table->multiple : 1), algbw);
        fail_here(reader);
        return ps_fail_hint(reader->status, "is the time in us, and the row whole?");
    }
    if (full != share)
        table->multiple = full ? 1 : table->ranks;
    return check_bus(reader, algbw, busbw);
}

static ps_code check_wrong(const log_reader *reader, const row_figures *figures, int32_t at)
{
    const ps_nccl_word *word = &figures->word[at];
    if (figures->kind[at] == PS_NCCL_NOT_GIVEN || (figures->kind[at] == PS_NCCL_NUMBER && figures->value[at] < 1))
        return PS_OK;
    ps_fail(reader->status, PS_BAD_INPUT, "nccl-wrong", "%.*s values came out wrong", shown(word), word->text);
    fail_here(reader);
    return ps_fail_hint(reader->status, "times of a collective that fails its check say nothing: repair it first");
}

static ps_code check_size(const log_reader *reader, const ps_nccl_word *word, int64_t size)
{
    if (size >= 0 && (double)size <= 0x1p53)
        return PS_OK;
    ps_fail(reader->status, PS_BAD_INPUT, "nccl-size", "a size from 0 to 2^53 bytes is expected, got \"%.*s\"",
            shown(word), word->text);
    fail_here(reader);
    return ps_fail_hint(reader->status, "sizes beyond 2^31 wrap around in old builds: end the run below, as in -e 1G");
}

// The first set is out-of-place.
static ps_code take_row(log_reader *reader, const ps_nccl_line *line, int64_t size)
{
    row_figures figures = figures_of(line);
    int32_t set = 0;
    int32_t sets = 0;
    int32_t before = find_sets(reader, &figures, &set, &sets);

    if (before < 0) {
        reader->first_left_out = reader->left_out++ == 0 ? reader->line : reader->first_left_out;
        return PS_OK;
    }
    PS_TRY(check_size(reader, &line->word[0], size));
    PS_TRY(begin_table(reader));
    if (reader->set == 0) { // the rows below are alike
        reader->set = set;
        reader->sets = sets;
        reader->has_root = before == 1;
    }
    if (size == 0)
        return PS_OK; // too few elements for so many ranks
    for (int32_t index = 0; index < sets; index++) {
        int32_t at = before + index * set;
        if (index > 0 && figures.kind[at] == PS_NCCL_NOT_GIVEN)
            continue;
        PS_TRY(check_set(reader, &figures, at, (double)size));
        if (set >= SET)
            PS_TRY(check_wrong(reader, &figures, at + 3));
    }
    if (reader->rows->row.count == MAX_ROWS) {
        ps_fail(reader->status, PS_BAD_INPUT, "nccl-rows", "at most %d rows are read", (int)MAX_ROWS);
        return fail_here(reader);
    }
    *ps_vec_push(reader->arena, &reader->rows->row) = (ps_nccl_row){.table = reader->rows->table.count - 1,
                                                                    .order = reader->rows->row.count,
                                                                    .line = reader->line,
                                                                    .bytes = (double)size,
                                                                    .seconds = figures.value[before] * 1e-6};
    reader->own_rows++;
    return PS_OK;
}

// "1048576  262144  float ...": two whole numbers and the type of an element.
static bool is_row(const ps_nccl_line *line, int64_t *size)
{
    static const char *const types[] = {"int8",     "char",     "uint8",  "int32",  "int",    "uint32",
                                        "int64",    "uint64",   "half",   "float",  "double", "bfloat16",
                                        "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "fp16",   "bf16"};
    int64_t count;
    if (line->count < 4 || !ps_nccl_word_int(&line->word[0], size) || !ps_nccl_word_int(&line->word[1], &count))
        return false;
    for (size_t type = 0; type < sizeof types / sizeof *types; type++)
        if (ps_nccl_word_is(&line->word[2], types[type]))
            return true;
    return false;
}

static ps_code take_line(log_reader *reader, const char *begin, const char *end)
{
    ps_nccl_line line = ps_nccl_line_split(begin, end);
    int64_t size = 0;

    if (line.count == 0)
        return PS_OK;
    if (ps_nccl_word_is(&line.word[0], "#"))
        return take_comment(reader, &line);
    if (is_row(&line, &size))
        return take_row(reader, &line, size);
    look_for_command(reader, &line);
    return PS_OK;
}

static ps_code fail_empty(log_reader *reader)
{
    ps_fail(reader->status, PS_BAD_INPUT, "nccl-rows",
            reader->left_out > 0 ? "no row of results is whole" : "no row of results: size, count, type, time, ...");
    reader->line = reader->left_out > 0 ? reader->first_left_out : 1;
    fail_here(reader);
    return ps_fail_hint(reader->status, ASK_FOR_TEXT);
}

ps_code ps_nccl_log_read(ps_arena *arena, const ps_nccl_text *text, ps_nccl_rows *rows, ps_status *status)
{
    log_reader reader = {
        .arena = arena, .source = ps_text_copy(arena, text->source), .rows = rows, .status = status, .next.nodes = 1};
    const char *text_end = text->text + text->size;

    for (const char *line = text->text; line < text_end;) {
        const char *end = memchr(line, '\n', (size_t)(text_end - line));
        end = end ? end : text_end;
        reader.line += reader.line < INT32_MAX;
        PS_TRY(take_line(&reader, line, end));
        line = end + 1;
    }
    if (reader.own_rows == 0)
        return fail_empty(&reader);
    if (reader.left_out > 0)
        *ps_vec_push(arena, &rows->warning) =
            ps_text_format(arena, "%s: %d row%s cut or mixed with other output, the first in line %d: left out",
                           reader.source, (int)reader.left_out, ps_plural(reader.left_out), (int)reader.first_left_out);
    return PS_OK;
}
