// SPDX-License-Identifier: Apache-2.0
//
// bad_files.h: walking a folder of malformed files named RULE.json or RULE--DETAIL.json, or .csv or .rules.
#ifndef PS_TESTS_BAD_FILES_H
#define PS_TESTS_BAD_FILES_H

#include "support/cmocka_all.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/text.h"

typedef ps_code (*load_file_fn)(ps_arena *arena, const char *path, ps_status *status);

static inline int is_bad_file(const struct dirent *entry)
{
    const char *ending = strrchr(entry->d_name, '.');
    return ending && (strcmp(ending, ".json") == 0 || strcmp(ending, ".csv") == 0 || strcmp(ending, ".rules") == 0);
}

// Loading must fail with the rule that the file is named after. Faults of syntax have a line; faults of meaning also a
// pointer, unless they are of the file as a whole. Faults of a CSV and of rules have row and column.
static inline void check_bad_file(const char *path, const char *name, const ps_status *status)
{
    size_t length = strcspn(name, ".");
    const char *detail = strstr(name, "--");
    if (detail)
        length = (size_t)(detail - name);
    if (strlen(status->rule) != length || strncmp(status->rule, name, length) != 0)
        fail_msg("%s: got rule \"%s\": %s", name, status->rule, status->message);
    if (strcmp(status->source, path) != 0 || status->message[0] == '\0' || status->line == 0)
        fail_msg("%s: no source, message or line: \"%s\":%d: %s", name, status->source, (int)status->line,
                 status->message);
    bool whole = status->line == 1 && status->column == 1;
    bool json = strcmp(strrchr(name, '.'), ".json") == 0;
    if (!json && status->column == 0)
        fail_msg("%s: no column: %s", name, status->message);
    bool syntax = strncmp(status->rule, "json-", 5) == 0 && strcmp(status->rule, "json-type") != 0;
    if (json && !syntax && !whole && status->pointer[0] == '\0')
        fail_msg("%s: no pointer: %s", name, status->message);
}

static inline void each_bad_file_fails_by_its_name(const char *folder, load_file_fn load, int32_t at_least)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_bad_file, alphasort);
    assert_in_range(count, at_least, 100000);
    for (int index = 0; index < count; index++) {
        ps_arena *arena = ps_arena_new(0);
        ps_status status = {0};
        const char *path = ps_text_format(arena, "%s/%s", folder, entries[index]->d_name);
        ps_code code = load(arena, path, &status);
        if (code != status.code || (code != PS_BAD_INPUT && code != PS_ILLEGAL))
            fail_msg("%s: got code %d, status code %d", entries[index]->d_name, (int)code, (int)status.code);
        check_bad_file(path, entries[index]->d_name, &status);
        ps_arena_free(arena);
        free(entries[index]);
    }
    free(entries);
}

#endif
