// SPDX-License-Identifier: Apache-2.0
//
// jitter_options.c: shares and factors from words to millionths.
#include "cli/jitter_options.h"

#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"

// "5%" or "0.05"
static ps_code parse_share(const char *text, int64_t *share, ps_status *status)
{
    int64_t size = (int64_t)strlen(text);
    bool percent = size > 0 && text[size - 1] == '%';
    if (ps_decimal_scaled(text, size - percent, percent ? PS_JITTER_ONE / 100 : PS_JITTER_ONE, share) &&
        *share <= PS_JITTER_ONE)
        return PS_OK;
    ps_fail(status, PS_USAGE, "bad-value", "expected a share of at most 100%%, such as 5%% or 0.05, got \"%.80s\"",
            text);
    return ps_fail_at(status, "--jitter", 0, 0, NULL);
}

// "3:1.5"
static ps_code parse_straggler(ps_arena *arena, const char *text, ps_jitter_options *out, ps_status *status)
{
    const char *colon = strchr(text, ':');
    int64_t rank;
    if (colon &&
        ps_parse_int(ps_text_copy_n(arena, text, colon - text), 0, PS_MAX_DEVICES - 1, &rank, &(ps_status){0}) ==
            PS_OK &&
        ps_decimal_scaled(colon + 1, (int64_t)strlen(colon + 1), PS_JITTER_ONE, &out->factor) &&
        out->factor >= PS_JITTER_ONE && out->factor <= PS_JITTER_MAX_FACTOR) {
        out->straggler = (int32_t)rank;
        return PS_OK;
    }
    ps_fail(status, PS_USAGE, "bad-value", "expected a rank and a factor from 1 to %d, such as 3:1.5, got \"%.80s\"",
            PS_JITTER_MAX_FACTOR / PS_JITTER_ONE, text);
    return ps_fail_at(status, "--straggler", 0, 0, NULL);
}

ps_code ps_jitter_options_read(const ps_run *run, const ps_jitter_words *words, ps_jitter_options *out,
                               ps_status *status)
{
    static const char *const details[] = {"samples", "seed", "straggler"};
    for (size_t i = 0; i < sizeof details / sizeof *details && !words->share; i++) {
        if (!ps_option_given(&run->parsed, details[i]))
            continue;
        ps_fail(status, PS_USAGE, "missing-option", "--%s is for --jitter, which is not given", details[i]);
        return ps_fail_hint(status, "add --jitter 5%%, or --jitter 0 for a straggler alone");
    }
    if (!words->share)
        return PS_OK;
    *out = (ps_jitter_options){
        .samples = (int32_t)words->samples, .seed = words->seed, .straggler = -1, .factor = PS_JITTER_ONE};
    PS_TRY(parse_share(words->share, &out->share, status));
    return words->straggler ? parse_straggler(run->arena, words->straggler, out, status) : PS_OK;
}

ps_code ps_jitter_straggler_expect(const ps_jitter_options *options, int32_t num_devices, ps_status *status)
{
    if (options->straggler < num_devices)
        return PS_OK;
    ps_fail(status, PS_USAGE, "bad-value", "there is no rank %d: ranks are 0 to %d", (int)options->straggler,
            (int)num_devices - 1);
    return ps_fail_at(status, "--straggler", 0, 0, NULL);
}
