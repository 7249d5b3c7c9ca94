// SPDX-License-Identifier: Apache-2.0
//
// csv_read.c: one pass over the bytes. Quotes are refused, so a comma always ends a cell and a line end a row.
#include "io/csv_read.h"

#include <inttypes.h>
#include <string.h>

static int32_t cut(int64_t place)
{
    return place < INT32_MAX ? (int32_t)place : INT32_MAX;
}

ps_code ps_csv_fail_at(const char *source, const ps_csv_cell *cell, ps_status *status)
{
    return ps_fail_at(status, source, cut(cell->row), cut(cell->column), NULL);
}

ps_code ps_csv_begin(ps_csv_reader *reader, const char *source, const char *text, int64_t size, ps_status *status)
{
    static const char mark[] = "\xEF\xBB\xBF";
    *reader = (ps_csv_reader){.source = source, .at = text, .end = text + size, .row_start = text, .row = 1};
    if (size == 0) {
        ps_fail(status, PS_BAD_INPUT, "csv-empty", "the file is empty");
        return ps_fail_at(status, source, 1, 1, NULL);
    }
    if (size >= 3 && memcmp(text, mark, 3) == 0) {
        ps_fail(status, PS_BAD_INPUT, "csv-bom", "the file begins with a byte order mark");
        ps_fail_at(status, source, 1, 1, NULL);
        return ps_fail_hint(status, "save it as UTF-8 without BOM; PyTorch does not read over the mark either");
    }
    return PS_OK;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static ps_code refuse_byte(const ps_csv_reader *reader, const char *at, ps_status *status)
{
    unsigned byte = (unsigned char)*at;
    if (byte == '"') {
        ps_fail(status, PS_BAD_INPUT, "csv-quote", "cell %" PRId64 " has a quote", reader->number);
        ps_fail_hint(status, "cells are written without quotes: 0F0,0F1");
    } else if (byte == '\r') {
        ps_fail(status, PS_BAD_INPUT, "csv-line-end", "a carriage return without a line feed after it");
        ps_fail_hint(status, "end rows with LF or CRLF");
    } else {
        ps_fail(status, PS_BAD_INPUT, "csv-character", "cell %" PRId64 " has the byte 0x%02x; only printable ASCII",
                reader->number, byte);
    }
    ps_csv_cell place = {.row = reader->row, .column = at - reader->row_start + 1};
    return ps_csv_fail_at(reader->source, &place, status);
}

ps_code ps_csv_next(ps_csv_reader *reader, ps_csv_cell *cell, ps_status *status)
{
    const char *at = reader->at;
    const char *end = reader->end;
    reader->number++;
    for (; at < end && *at != ',' && *at != '\n'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '\r' && at + 1 < end && at[1] == '\n')
            break;
        if (byte == '"' || byte >= 0x7f || (byte < ' ' && byte != '\t'))
            return refuse_byte(reader, at, status);
    }
    const char *first = reader->at;
    const char *last = at;
    while (first < last && is_blank(*first))
        first++;
    while (last > first && is_blank(last[-1]))
        last--;
    bool comma = at < end && *at == ',';
    *cell = (ps_csv_cell){.text = first,
                          .size = last - first,
                          .row = reader->row,
                          .number = reader->number,
                          .column = first - reader->row_start + 1,
                          .ends_row = !comma};
    if (at < end)
        at += *at == '\r' ? 2 : 1;
    reader->at = at;
    reader->after_comma = comma;
    if (!comma) {
        reader->row++;
        reader->number = 0;
        reader->row_start = at;
    }
    return PS_OK;
}

ps_code ps_csv_next_row(ps_csv_reader *reader, ps_csv_cell *cell, bool *found, ps_status *status)
{
    *cell = (ps_csv_cell){.row = reader->row, .column = 1, .ends_row = true};
    *found = false;
    while (!ps_csv_done(reader)) {
        PS_TRY(ps_csv_next(reader, cell, status));
        bool comment = cell->size > 0 && cell->text[0] == '#';
        *found = !comment && (cell->size > 0 || !cell->ends_row);
        if (*found)
            return PS_OK;
        while (!cell->ends_row && !ps_csv_done(reader))
            PS_TRY(ps_csv_next(reader, cell, status));
    }
    return PS_OK;
}
