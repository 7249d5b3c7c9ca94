// SPDX-License-Identifier: Apache-2.0
#include "support/cmocka_all.h"

#include <stdlib.h>

int arena_setup(void **state)
{
    *state = ps_arena_new(0);
    return *state ? 0 : -1;
}

int arena_teardown(void **state)
{
    ps_arena_free(*state);
    return 0;
}

void assert_ok(ps_code code, const ps_status *status)
{
    if (code == PS_OK)
        return;
    char text[2048];
    ps_status_format(status, text, (int32_t)sizeof text);
    fail_msg("code %d, rule %s: %s", (int)code, status->rule, text);
}

const char *reference_data(void)
{
    return getenv("PIPESCHED_REFERENCE_DATA");
}

int reference_missing(void)
{
    print_message("not run: PIPESCHED_REFERENCE_DATA is not set\n");
    return 77;
}

bool split_csv_line(char *line, char **field, int32_t fields)
{
    int32_t count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at; count++) {
        char *comma = strchr(at, ',');
        if (count < fields)
            field[count] = at;
        if (comma)
            *comma++ = '\0';
        at = comma;
    }
    return count == fields;
}
