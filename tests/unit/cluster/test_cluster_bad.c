// SPDX-License-Identifier: Apache-2.0
//
// Every file of tests/bad/cluster is named after the rule that refuses it: RULE.json or RULE-what-exactly.json.
#include "clusters.h"

#include <dirent.h>
#include <stdio.h>

static bool is_named_after(const char *file, const char *rule)
{
    size_t length = strlen(rule);
    return strncmp(file, rule, length) == 0 && (file[length] == '-' || file[length] == '.');
}

static void every_bad_file_is_refused_by_the_rule_in_its_name(void **state)
{
    ps_arena *arena = *state;
    const char *folder = TESTS_FOLDER "/bad/cluster";
    DIR *directory = opendir(folder);
    int32_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        ps_cluster cluster;
        ps_status status = {0};
        ps_code code =
            ps_cluster_load(arena, ps_text_format(arena, "%s/%s", folder, entry->d_name), NULL, &cluster, &status);
        ps_code expected = is_named_after(entry->d_name, "file-missing") ? PS_IO : PS_BAD_INPUT;
        if (code != expected || !is_named_after(entry->d_name, status.rule))
            fail_msg("%s: code %d, rule \"%s\": %s", entry->d_name, (int)code, status.rule, status.message);
        if (!status.source[0] || !status.message[0])
            fail_msg("%s: the error has no place or no words", entry->d_name);
        count++;
    }
    closedir(directory);
    assert_true(count > 60);
}

// A status names the place in the file, not only the file.
static void errors_point_at_the_value(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster;
    ps_status status = {0};

    ps_cluster_load(arena, TESTS_FOLDER "/bad/cluster/bad-quantity-memory.json", NULL, &cluster, &status);
    assert_string_equal(status.pointer, "/groups/0/node/host_memory");
    assert_true(status.line > 0);
    assert_non_null(strstr(status.message, "\"2 terabytes\""));
}

static void a_newer_hwloc_file_comes_with_the_command_that_converts_it(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster;
    ps_status status = {0};

    ps_cluster_load(arena, TESTS_FOLDER "/bad/cluster/hwloc-version.xml", NULL, &cluster, &status);
    assert_non_null(strstr(status.hint, "lstopo --of xml --export-xml-flags 2"));
}

static ps_code parse_alone(const char *text, size_t size)
{
    ps_arena *scratch = ps_arena_new(0);
    ps_cluster cluster;
    ps_status status = {0};
    ps_code code = ps_cluster_parse(scratch, "damaged.xml", text, (int64_t)size, NULL, &cluster, &status);
    ps_arena_free(scratch);
    return code;
}

static size_t read_node(ps_arena *arena, const char *name, char text[16384])
{
    FILE *file = fopen(ps_text_format(arena, "%s/data/hwloc/%s", TESTS_FOLDER, name), "r");
    assert_non_null(file);
    size_t size = fread(text, 1, 16384, file);
    fclose(file);
    assert_in_range(size, 1000, 16383);
    return size;
}

static const char *const node_files[] = {"a100-nvswitch.xml", "v100-hwloc1.xml", "mi300x-xgmi.xml"};

static void truncated_files_are_refused(void **state)
{
    for (size_t i = 0; i < sizeof node_files / sizeof *node_files; i++) {
        char text[16384];
        size_t size = read_node(*state, node_files[i], text);
        for (size_t cut = 0; cut + 3 < size; cut += 397)
            assert_int_equal(parse_alone(text, cut), PS_BAD_INPUT);
    }
}

// hwloc itself crashes on some of these.
static void a_missing_attribute_is_refused_or_harmless(void **state)
{
    for (size_t i = 0; i < sizeof node_files / sizeof *node_files; i++) {
        char text[16384];
        size_t size = read_node(*state, node_files[i], text);
        for (size_t at = 0; at + 1 < size; at++) {
            if (text[at] != '=' || text[at + 1] != '"')
                continue;
            char last = text[at - 1];
            text[at - 1] = '_'; // the attribute gets a name that means nothing
            ps_code code = parse_alone(text, size);
            assert_true(code == PS_OK || code == PS_BAD_INPUT);
            text[at - 1] = last;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_bad_file_is_refused_by_the_rule_in_its_name),
        test_in_arena(errors_point_at_the_value),
        test_in_arena(a_newer_hwloc_file_comes_with_the_command_that_converts_it),
        test_in_arena(truncated_files_are_refused),
        test_in_arena(a_missing_attribute_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
