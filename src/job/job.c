// SPDX-License-Identifier: Apache-2.0
//
// job.c: defaults, and one option set from its text.
#include "pipesched/job.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "job/job_options.h"

static_assert(sizeof(ps_precision) == sizeof(int32_t) && sizeof(ps_optimizer) == sizeof(int32_t),
              "JOB_WORD writes an int32_t");

void ps_job_init(ps_job *job)
{
    *job = (ps_job){.precision = PS_PRECISION_BF16,
                    .optimizer = PS_OPTIMIZER_ADAM,
                    .zero = 1,
                    .gradient_bytes = 4,
                    .optimizer_bytes = 4,
                    .flash_attention = true,
                    .fused_kernels = true,
                    .sequence_parallel = true,
                    .overlap_grad_sync = true,
                    .overlap_tp = true,
                    .overlap_p2p = true,
                    .fused_loss = true,
                    .p2p_wait_ns = 250000,
                    .recompute_parts = PS_RECOMPUTE_CORE_ATTENTION,
                    .expert_imbalance = 1,
                    .optimizer_barrier = true,
                    .memory_framework_bytes = INT64_C(300) << 20,
                    .memory_fragmentation_ppm = 50000,
                    .memory_reserve_bytes = INT64_C(2) << 30,
                    .jitter_samples = 200,
                    .effort = 1};
}

const char *ps_optimizer_name(ps_optimizer optimizer)
{
    static const char *const names[PS_OPTIMIZERS] = {"adam", "adamw", "sgd"};
    return names[optimizer];
}

const char *ps_cp_method_name(ps_cp_method method)
{
    static const char *const names[PS_CP_METHODS] = {"ring", "all-to-all", "all-gather"};
    return names[method];
}

const char *ps_dispatch_name(ps_dispatch dispatch)
{
    static const char *const names[PS_DISPATCHES] = {"all-to-all", "dedup"};
    return names[dispatch];
}

const char *ps_recompute_part_name(int32_t bit)
{
    static const char *const names[PS_RECOMPUTE_PARTS] = {"core-attention", "norm", "activation", "mla-up", "moe",
                                                          "attention",      "ffn",  "ops"};
    return names[bit];
}

const char *ps_recompute_name(ps_recompute recompute)
{
    static const char *const names[PS_RECOMPUTES] = {"none", "full", "selective"};
    return names[recompute];
}

// "gpipe, 1f1b, zb-h1": the words that are supported.
static const char *list_words(const job_word *words, char text[256])
{
    size_t used = 0;
    text[0] = '\0';
    for (const job_word *word = words; word->word; word++)
        if (word->value >= 0)
            used += (size_t)snprintf(text + used, 256 - used, "%s%s", used > 0 ? ", " : "", word->word);
    return text;
}

static ps_code refuse_unsupported(const job_option *option, const char *value, ps_status *status)
{
    char rule[64];
    snprintf(rule, sizeof rule, "unsupported-%s", option->name);
    return ps_fail(status, PS_USAGE, rule, "\"%.64s\" is not supported yet", value);
}

static ps_code refuse_word(const job_option *option, const char *value, ps_status *status)
{
    const char *names[32];
    int32_t count = 0;
    for (const job_word *word = option->words; word->word; word++)
        names[count++] = word->word;
    ps_fail(status, PS_USAGE, "bad-value", "there is no such choice as \"%.64s\"", value);
    const char *nearest = ps_text_nearest(value, names, count);
    if (nearest)
        return ps_fail_hint(status, "did you mean \"%s\"?", nearest);
    char text[256];
    return ps_fail_hint(status, "expected one of: %s", list_words(option->words, text));
}

static ps_code find_word(const job_option *option, const char *value, int32_t *out, ps_status *status)
{
    // A target may carry a version: megatron@0.12.
    const char *version = strchr(value, '@');
    for (const job_word *word = option->words; word->word; word++) {
        bool versioned = version && word->value < 0 && strcmp(option->name, "target") == 0 &&
                         strlen(word->word) == (size_t)(version - value) &&
                         strncmp(word->word, value, (size_t)(version - value)) == 0;
        if (strcmp(word->word, value) != 0 && !versioned)
            continue;
        if (word->value < 0) {
            char text[256];
            refuse_unsupported(option, value, status);
            return ps_fail_hint(status, "supported: %s", list_words(option->words, text));
        }
        *out = word->value;
        return PS_OK;
    }
    return refuse_word(option, value, status);
}

static ps_code find_number(const job_option *option, const char *value, int64_t *out, ps_status *status)
{
    if (ps_parse_int(value, option->min, option->max, out, status) == PS_OK)
        return PS_OK;
    *status = (ps_status){0};
    return ps_fail(status, PS_USAGE, "bad-value", "expected a whole number from %lld to %lld, got \"%.64s\"",
                   (long long)option->min, (long long)option->max, value);
}

// Keep the set ascending, so that it reads and enumerates the same however it was written.
static ps_code insert(ps_int_set *set, int32_t value, const char *text, ps_status *status)
{
    int32_t at = set->count;
    while (at > 0 && set->value[at - 1] >= value)
        at--;
    if (at < set->count && set->value[at] == value)
        return ps_fail(status, PS_USAGE, "bad-value", "%s is listed twice", text);
    if (set->count == PS_SET_MAX)
        return ps_fail(status, PS_USAGE, "bad-value", "expected at most %d values", (int)PS_SET_MAX);
    memmove(&set->value[at + 1], &set->value[at], (size_t)(set->count - at) * sizeof set->value[0]);
    set->value[at] = value;
    set->count++;
    return PS_OK;
}

// "auto", or values between commas.
static ps_code parse_set(const job_option *option, const char *value, ps_int_set *out, ps_status *status)
{
    *out = (ps_int_set){0};
    if (strcmp(value, "auto") == 0)
        return PS_OK;
    const char *start = value;
    for (;;) {
        size_t size = strcspn(start, ",");
        char item[64];
        if (size == 0 || size >= sizeof item)
            return ps_fail(status, PS_USAGE, "bad-value", "expected auto or a list such as %s, got \"%.64s\"",
                           option->words ? option->words[0].word : "1,2,4", value);
        memcpy(item, start, size);
        item[size] = '\0';
        int32_t element = 0;
        if (option->words) {
            PS_TRY(find_word(option, item, &element, status));
        } else {
            int64_t number = 0;
            PS_TRY(find_number(option, item, &number, status));
            element = (int32_t)number;
        }
        PS_TRY(insert(out, element, item, status));
        start += size;
        if (*start++ == '\0')
            return PS_OK;
    }
}

static ps_code find_quantity(const job_option *option, const char *value, int64_t *out, ps_status *status)
{
    bool bytes = option->type == JOB_BYTES;
    if (bytes && option->min > 0 && strcmp(value, "auto") == 0) {
        *out = 0;
        return PS_OK;
    }
    ps_code code = bytes ? ps_parse_bytes(value, out, status) : ps_parse_duration(value, out, status);
    if (code != PS_OK) {
        status->code = PS_USAGE;
        return PS_USAGE;
    }
    if (*out < option->min || *out > option->max)
        return ps_fail(status, PS_USAGE, "bad-value", "%.64s is out of range", value);
    return PS_OK;
}

static ps_code find_share(const job_option *option, const char *value, int64_t *out, ps_status *status)
{
    int64_t size = (int64_t)strlen(value);
    bool percent = size > 0 && value[size - 1] == '%';
    if (ps_decimal_scaled(value, size - percent, percent ? option->max / 100 : option->max, out) &&
        *out >= option->min && *out <= option->max)
        return PS_OK;
    return ps_fail(status, PS_USAGE, "bad-value",
                   "expected a share of at most 100%%, such as 5%% or 0.05, got \"%.64s\"", value);
}

static ps_code find_real(const job_option *option, const char *value, double *out, ps_status *status)
{
    if (ps_decimal_double(value, (int64_t)strlen(value), out) && *out >= (double)option->min &&
        *out <= (double)option->max)
        return PS_OK;
    return ps_fail(status, PS_USAGE, "bad-value", "expected a number from %lld to %lld, got \"%.64s\"",
                   (long long)option->min, (long long)option->max, value);
}

// Words between commas, each a bit of the value.
static ps_code find_bits(const job_option *option, const char *value, int32_t *out, ps_status *status)
{
    ps_int_set set;
    *out = 0;
    PS_TRY(parse_set(option, value, &set, status));
    for (int32_t index = 0; index < set.count; index++)
        *out |= set.value[index];
    if (set.count > 0)
        return PS_OK;
    char text[256];
    ps_fail(status, PS_USAGE, "bad-value", "auto is no list of parts");
    return ps_fail_hint(status, "expected some of: %s", list_words(option->words, text));
}

static const job_option *find_option(const char *name)
{
    for (int32_t index = 0; index < ps_job_num_options; index++)
        if (strcmp(ps_job_options[index].name, name) == 0)
            return &ps_job_options[index];
    return NULL;
}

static ps_code refuse_option(const char *name, ps_status *status)
{
    const char *names[64];
    assert(ps_job_num_options <= 64);
    for (int32_t index = 0; index < ps_job_num_options; index++)
        names[index] = ps_job_options[index].name;
    ps_fail(status, PS_USAGE, "unknown-option", "there is no job option \"%.64s\"", name);
    const char *nearest = ps_text_nearest(name, names, ps_job_num_options);
    return nearest ? ps_fail_hint(status, "did you mean \"%s\"?", nearest) : PS_USAGE;
}

// The value goes to a local first: a refused one leaves the job as it was.
static ps_code set_field(ps_job *job, const job_option *option, const char *value, ps_status *status)
{
    void *field = (char *)job + option->offset;
    ps_int_set set;
    int64_t number = 0;
    int32_t word = 0;
    double real = 0;
    switch (option->type) {
    case JOB_INT_SET:
    case JOB_WORD_SET:
        PS_TRY(parse_set(option, value, &set, status));
        *(ps_int_set *)field = set;
        return PS_OK;
    case JOB_WORD:
        PS_TRY(find_word(option, value, &word, status));
        if (option->offset > 0)
            memcpy(field, &word, sizeof word);
        return PS_OK;
    case JOB_BITS:
        PS_TRY(find_bits(option, value, &word, status));
        *(int32_t *)field = word;
        return PS_OK;
    case JOB_REAL:
        PS_TRY(find_real(option, value, &real, status));
        *(double *)field = real;
        return PS_OK;
    case JOB_SWITCH:
        PS_TRY(find_word(option, value, &word, status));
        *(bool *)field = word != 0;
        return PS_OK;
    case JOB_INT64:
    case JOB_INT32:
        PS_TRY(find_number(option, value, &number, status));
        if (option->type == JOB_INT64)
            *(int64_t *)field = number;
        else
            *(int32_t *)field = (int32_t)number;
        return PS_OK;
    case JOB_SHARE:
        PS_TRY(find_share(option, value, &number, status));
        *(int64_t *)field = number;
        return PS_OK;
    case JOB_BYTES:
    case JOB_TIME:
        PS_TRY(find_quantity(option, value, &number, status));
        *(int64_t *)field = number;
        return PS_OK;
    case JOB_NOWHERE: refuse_unsupported(option, value, status); return ps_fail_hint(status, "%s", option->instead);
    }
    return PS_OK;
}

ps_code ps_job_set(ps_job *job, const char *name, const char *value, ps_status *status)
{
    const job_option *option = find_option(name);
    if (!option)
        return refuse_option(name, status);
    if (set_field(job, option, value, status) != PS_OK) {
        char source[64];
        snprintf(source, sizeof source, "--%s", name);
        return ps_fail_at(status, source, 0, 0, NULL);
    }
    if (strcmp(name, "precision") == 0)
        job->precision_given = true;
    return PS_OK;
}
