// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "base/text.h"

// Whatever a quantity parses to, printing it and parsing again gives the same.
ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    const char *word = ps_text_copy_n(arena, text, size);
    int64_t ns = 0;
    double rate = 0;
    int64_t bytes = 0;
    double real = 0;
    ps_status ignored = {0};
    char printed[32];

    (void)ps_parse_bytes(word, &bytes, &ignored);
    ignored = (ps_status){0};
    (void)ps_parse_rate(word, &rate, &ignored);
    ignored = (ps_status){0};
    if (ps_parse_double(word, -1e300, 1e300, &real, &ignored) == PS_OK) {
        double again = 0;
        ps_format_double(real, printed);
        if (ps_parse_double(printed, -1e300, 1e300, &again, &ignored) || again != real)
            abort();
    }
    return ps_parse_duration(word, &ns, status);
}
