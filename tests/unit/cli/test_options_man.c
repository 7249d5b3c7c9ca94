// SPDX-License-Identifier: Apache-2.0
//
// The man page lists the options of every table under the table's title, and no others.
#include "base/text.h"
#include "cli/commands.h"
#include "io/file.h"
#include "support/cmocka_all.h"

static const char *man_page(ps_arena *arena)
{
    ps_file_bytes bytes;
    ps_status status = {0};
    assert_ok(ps_file_read(arena, MAN_PAGE, 1 << 20, &bytes, &status), &status);
    return bytes.data;
}

// ".It Fl o , Fl Fl output Ar FILE"
static const char *man_item(ps_arena *arena, const ps_option *option)
{
    ps_text text = {.arena = arena};
    ps_text_addf(&text, ".It ");
    if (option->short_name)
        ps_text_addf(&text, "Fl %c , ", option->short_name);
    ps_text_addf(&text, "Fl Fl %s", option->name);
    if (option->metavar)
        ps_text_addf(&text, " Ar %s", option->metavar);
    return text.data;
}

// The text under ".Ss TITLE", without what stands in parentheses in the table's title, up to the next heading.
static const char *man_section(ps_arena *arena, const char *page, const char *title)
{
    int64_t size = (int64_t)strcspn(title, "(");
    while (size > 0 && title[size - 1] == ' ')
        size--;
    const char *heading = ps_text_format(arena, "\n.Ss %.*s\n", (int)size, title);
    const char *start = strstr(page, heading);
    if (!start)
        fail_msg("the man page has no section \"%s\"", heading + 5);
    start += strlen(heading) - 1;
    const char *end = strstr(start, "\n.S");
    return end ? ps_text_copy_n(arena, start, end - start + 1) : start;
}

static int32_t count_items(const char *section)
{
    int32_t count = 0;
    for (const char *at = section; (at = strstr(at, "\n.It ")); at += 5)
        count++;
    return count;
}

static void the_man_page_has_every_option_and_no_other(void **state)
{
    ps_arena *arena = *state;
    const char *page = man_page(arena);
    for (int32_t command = 0; command < ps_command_table_count; command++) {
        for (const ps_option_group *const *group = ps_command_table[command]->groups; *group; group++) {
            const char *section = man_section(arena, page, (*group)->title);
            for (int32_t row = 0; row < (*group)->count; row++) {
                const char *item = ps_text_format(arena, "\n%s\n", man_item(arena, &(*group)->option[row]));
                if (!strstr(section, item))
                    fail_msg("%s: the man page lacks %s", (*group)->title, item);
            }
            assert_int_equal(count_items(section), (*group)->count);
        }
    }
}

static void the_man_page_has_every_command(void **state)
{
    ps_arena *arena = *state;
    const char *page = man_page(arena);
    for (int32_t command = 0; command < ps_command_table_count; command++)
        assert_non_null(strstr(page, ps_text_format(arena, "\n.It Cm %s\n", ps_command_table[command]->name)));
}

// Values are typed as they stand there: a sentence that begins with one must not change its case.
static void no_value_of_an_option_is_capitalised(void **state)
{
    static const char *const wrong[] = {"Bf16", "Fp16", "Fp32", "Adam", "Sgd", "Flash", "Gpipe", "Off", "Auto"};
    const char *page = man_page(*state);
    for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++)
        for (const char *end = ", .:;"; *end; end++)
            assert_null(strstr(page, ps_text_format(*state, "\n%s%c", wrong[index], *end)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(the_man_page_has_every_option_and_no_other),
        test_in_arena(the_man_page_has_every_command),
        test_in_arena(no_value_of_an_option_is_capitalised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
