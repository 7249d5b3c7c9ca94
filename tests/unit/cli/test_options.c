// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include "cli/commands.h"
#include "cli/option_value.h"
#include "job/job_options.h"
#include "pipesched/schedule.h"
#include "support/cmocka_all.h"

typedef struct values {
    ps_common_options common;
    int64_t count;
    int32_t color;
    double rate;
    ps_number_list times;
    ps_number_list memory;
    int64_t wait;
} values;

static const char *const colors[] = {"red", "green", NULL};
static const ps_option rows[] = {
    PS_OPTION_INT_AT(values, count, "count", 1, 9, "3", "a count"),
    PS_OPTION_CHOICE_AT(values, color, "color", colors, "green", "a colour"),
    PS_OPTION_AT(RATE, values, rate, "rate", "RATE", NULL, "a rate"),
    PS_OPTION_AT(TIMES, values, times, "times", "TIMES", NULL, "times"),
    PS_OPTION_AT(MEMORY, values, memory, "memory", "SIZES", NULL, "sizes"),
    PS_OPTION_AT(DURATION, values, wait, "wait", "TIME", NULL, "a time"),
    {.name = "tp", .type = PS_OPTION_JOB, .metavar = "LIST", .help = "a job option"},
    {.name = "pp", .type = PS_OPTION_JOB, .metavar = "LIST", .help = "another"},
};
static const ps_option_group group = {"Options", rows, PS_OPTION_COUNT(rows)};
static const ps_option_group *const groups[] = {&group, &ps_common_option_group, NULL};

typedef struct parse {
    ps_code code;
    ps_status status;
    ps_parsed_options parsed;
    values values;
} parse;

#define PARSE(arena, ...)                                                                                              \
    parse_words(arena, (const char *[]){__VA_ARGS__, NULL},                                                            \
                (int32_t)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)))

static parse parse_words(ps_arena *arena, const char **word, int32_t count)
{
    parse result = {0};
    result.code = ps_options_parse(arena, groups, sizeof(values), count, word, &result.parsed, &result.status);
    result.values = *(const values *)result.parsed.values;
    return result;
}

static void an_option_that_is_not_given_has_the_default_of_its_row(void **state)
{
    parse result = PARSE(*state, "operand");
    assert_ok(result.code, &result.status);
    assert_int_equal(result.values.count, 3);
    assert_int_equal(result.values.color, 1);
    assert_int_equal(result.values.times.count, 0);
    assert_false(ps_option_given(&result.parsed, "count"));
}

static void options_may_follow_operands_and_take_their_value_with_or_without_an_equals_sign(void **state)
{
    parse result = PARSE(*state, "model.json", "--count=5", "-", "--color", "red", "-v", "-oplan.json");
    assert_ok(result.code, &result.status);
    assert_int_equal(result.values.count, 5);
    assert_int_equal(result.values.color, 0);
    assert_true(result.values.common.verbose);
    assert_string_equal(result.values.common.output, "plan.json");
    assert_int_equal(result.parsed.num_operands, 2);
    assert_string_equal(result.parsed.operand[0], "model.json");
    assert_string_equal(result.parsed.operand[1], "-");
    assert_true(ps_option_given(&result.parsed, "count"));
}

static void two_dashes_end_the_options(void **state)
{
    parse result = PARSE(*state, "--json", "--", "--count", "x");
    assert_ok(result.code, &result.status);
    assert_int_equal(result.values.count, 3);
    assert_int_equal(result.parsed.num_operands, 2);
    assert_string_equal(result.parsed.operand[0], "--count");
}

static void a_bare_duration_is_in_seconds(void **state)
{
    assert_int_equal(PARSE(*state, "--wait", "5").values.wait, INT64_C(5000000000));
    assert_int_equal(PARSE(*state, "--wait", "0.25").values.wait, 250000000);
    assert_int_equal(PARSE(*state, "--wait", "5ms").values.wait, 5000000);
    assert_int_equal(PARSE(*state, "--wait", "2min").values.wait, INT64_C(120000000000));
    assert_non_null(strstr(PARSE(*state, "--wait", "-1").status.message, "seconds"));
}

static void bare_times_are_milliseconds_and_units_are_exact(void **state)
{
    parse result = PARSE(*state, "--times", "18.522,2us,1s,0");
    assert_ok(result.code, &result.status);
    assert_int_equal(result.values.times.count, 4);
    assert_int_equal(result.values.times.value[0], 18522000);
    assert_int_equal(result.values.times.value[1], 2000);
    assert_int_equal(result.values.times.value[2], 1000000000);
    assert_int_equal(result.values.times.value[3], 0);
}

static void memory_knows_whether_it_had_units(void **state)
{
    parse bare = PARSE(*state, "--memory", "201216,0");
    parse sized = PARSE(*state, "--memory", "80GiB,0");
    assert_ok(bare.code, &bare.status);
    assert_ok(sized.code, &sized.status);
    assert_true(bare.values.memory.bare && !bare.values.memory.with_unit);
    assert_true(sized.values.memory.with_unit && !sized.values.memory.bare);
    assert_int_equal(sized.values.memory.value[0], INT64_C(80) << 30);

    const ps_number_list *const lists[] = {&bare.values.memory, &sized.values.memory};
    const char *const names[] = {"--a", "--b"};
    ps_status status = {0};
    assert_int_equal(ps_memory_units_agree(lists, names, 2, &status), PS_USAGE);
    assert_string_equal(status.rule, "mixed-units");
    assert_ok(ps_memory_units_agree(lists, names, 1, &status), &status);
}

static void job_options_keep_their_order(void **state)
{
    parse result = PARSE(*state, "--pp", "4", "--tp=1,2");
    assert_ok(result.code, &result.status);
    assert_int_equal(result.parsed.num_job_settings, 2);
    assert_string_equal(result.parsed.job_setting[0].name, "pp");
    assert_string_equal(result.parsed.job_setting[1].value, "1,2");
}

typedef struct fault {
    const char *rule;
    const char *word[4];
    const char *hint; // part of it; NULL: none
} fault;

static void every_fault_of_the_command_line_has_its_rule(void **state)
{
    static const fault faults[] = {
        {"unknown-option", {"--cuont", "3"}, "--count"},
        {"unknown-option", {"--cuont=3"}, "--count"},
        {"unknown-option", {"--coun"}, "--count"}, // no abbreviations
        {"unknown-option", {"-x"}, NULL},
        {"unknown-option", {"--no-json"}, NULL},
        {"repeated-option", {"--count", "3", "--count=3"}, NULL},
        {"missing-value", {"--count"}, NULL},
        {"unwanted-value", {"--json=yes"}, NULL},
        {"bad-value", {"--count", "0"}, NULL},
        {"bad-value", {"--count", "10"}, NULL},
        {"bad-value", {"--count", "3x"}, NULL},
        {"bad-value", {"--count="}, NULL},
        {"bad-value", {"--output="}, NULL},
        {"bad-value", {"--color", "gren"}, "green"},
        {"bad-value", {"--rate", "400"}, "unit"},
        {"bad-value", {"--rate", "0Gb/s"}, NULL},
        {"bad-value", {"--rate", "400 gigs"}, NULL},
        {"bad-value", {"--times", "1,,2"}, NULL},
        {"bad-value", {"--times", "-1"}, NULL},
        {"bad-value", {"--times", "nan"}, NULL},
        {"bad-value", {"--times", "1e300"}, NULL},
        {"bad-value", {"--times", "3h"}, NULL}, // beyond the limit for one op
        {"bad-value", {"--memory", "80 gigs"}, NULL},
        {"bad-value", {"--memory", "0.5"}, NULL},
    };
    for (size_t index = 0; index < sizeof faults / sizeof *faults; index++) {
        const fault *at = &faults[index];
        const char *word[4];
        int32_t count = 0;
        for (; count < 4 && at->word[count]; count++)
            word[count] = at->word[count];
        parse result = parse_words(*state, word, count);
        print_message("%s: %s\n", at->word[0], result.status.message);
        assert_int_equal(result.code, PS_USAGE);
        assert_string_equal(result.status.rule, at->rule);
        if (at->hint)
            assert_non_null(strstr(result.status.hint, at->hint));
    }
}

static void defaults_of_every_table_parse(void **state)
{
    for (int32_t command = 0; command < ps_command_table_count; command++) {
        const ps_command *of = ps_command_table[command];
        char *place = ps_arena_alloc(*state, 1, (int64_t)of->options_size);
        for (const ps_option_group *const *at = of->groups; *at; at++) {
            for (int32_t row = 0; row < (*at)->count; row++) {
                const ps_option *option = &(*at)->option[row];
                ps_status status = {0};
                if (option->default_text && option->type != PS_OPTION_JOB)
                    assert_ok(ps_option_set(*state, option, option->default_text, place, &status), &status);
                assert_true(option->type == PS_OPTION_FLAG || option->metavar);
                assert_true(option->offset < of->options_size);
            }
        }
    }
}

static const ps_option *find_row(const ps_command *command, const char *name)
{
    for (const ps_option_group *const *at = command->groups; *at; at++)
        for (int32_t row = 0; row < (*at)->count; row++)
            if (strcmp((*at)->option[row].name, name) == 0)
                return &(*at)->option[row];
    return NULL;
}

// A default that --help shows and the job does not have would be a lie.
static void job_defaults_in_help_are_those_of_the_job(void **state)
{
    (void)state;
    for (const ps_option_group *const *at = ps_command_plan.groups; *at; at++) {
        for (int32_t row = 0; row < (*at)->count; row++) {
            const ps_option *option = &(*at)->option[row];
            ps_job job;
            ps_job untouched;
            ps_status status = {0};
            if (option->type != PS_OPTION_JOB || !option->default_text)
                continue;
            ps_job_init(&job);
            ps_job_init(&untouched);
            assert_ok(ps_job_set(&job, option->name, option->default_text, &status), &status);
            job.precision_given = untouched.precision_given;
            assert_memory_equal(&job, &untouched, sizeof job);
        }
    }
}

static void plan_offers_every_job_option(void **state)
{
    (void)state;
    for (int32_t index = 0; index < ps_job_num_options; index++) {
        const job_option *option = &ps_job_options[index];
        if (option->type == JOB_NOWHERE)
            continue;
        print_message("--%s\n", option->name);
        assert_non_null(find_row(&ps_command_plan, option->name));
    }
}

static void simulate_offers_every_schedule_family_and_the_searches(void **state)
{
    (void)state;
    const ps_option *row = find_row(&ps_command_simulate, "schedule");
    assert_non_null(row);
    int32_t count = 0;
    for (; count < PS_SCHEDULE_KINDS; count++) {
        assert_non_null(row->choices[count]);
        assert_non_null(ps_schedule_family_named(row->choices[count]));
    }
    assert_string_equal(row->choices[count], "zb"); // searched for
    assert_string_equal(row->choices[count + 1], "auto");
    assert_null(row->choices[count + 2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(an_option_that_is_not_given_has_the_default_of_its_row),
        test_in_arena(options_may_follow_operands_and_take_their_value_with_or_without_an_equals_sign),
        test_in_arena(two_dashes_end_the_options),
        test_in_arena(a_bare_duration_is_in_seconds),
        test_in_arena(bare_times_are_milliseconds_and_units_are_exact),
        test_in_arena(memory_knows_whether_it_had_units),
        test_in_arena(job_options_keep_their_order),
        test_in_arena(every_fault_of_the_command_line_has_its_rule),
        test_in_arena(defaults_of_every_table_parse),
        test_in_arena(job_defaults_in_help_are_those_of_the_job),
        test_in_arena(plan_offers_every_job_option),
        test_in_arena(simulate_offers_every_schedule_family_and_the_searches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
