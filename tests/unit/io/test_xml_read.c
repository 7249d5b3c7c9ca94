// SPDX-License-Identifier: Apache-2.0
#include "io/xml_read.h"

#include "base/text.h"
#include "support/cmocka_all.h"

typedef struct recording {
    ps_text log;
    const char *refuse; // element at which the handler fails
} recording;

static ps_code on_start(void *context, const char *element, const char *const *attributes, ps_status *status)
{
    recording *one = context;
    if (one->refuse && strcmp(one->refuse, element) == 0)
        return ps_fail(status, PS_BAD_INPUT, "refused", "no <%s> here", element);
    ps_text_addf(&one->log, "<%s", element);
    for (; *attributes; attributes += 2)
        ps_text_addf(&one->log, " %s=%s", attributes[0], attributes[1]);
    ps_text_addf(&one->log, ">");
    return PS_OK;
}

static ps_code on_end(void *context, const char *element, ps_status *status)
{
    (void)status;
    recording *one = context;
    ps_text_addf(&one->log, "</%s>", element);
    return PS_OK;
}

static ps_code parse(ps_arena *arena, recording *one, const char *text, ps_status *status)
{
    one->log = (ps_text){.arena = arena};
    *status = (ps_status){0};
    ps_xml_handler handler = {.start = on_start, .end = on_end, .context = one};
    return ps_xml_parse(arena, "node.xml", text, (int64_t)strlen(text), &handler, status);
}

static void elements_and_attributes_arrive_in_order(void **state)
{
    recording one = {0};
    ps_status status;
    assert_ok(parse(*state, &one, "<a x='1' y='&lt;&#233;'><b/>text<!-- c --><c><d k=''/></c></a>", &status), &status);
    assert_string_equal(one.log.data, "<a x=1 y=<\xC3\xA9><b></b><c><d k=></d></c></a>");
}

static void document_type_of_hwloc_is_accepted(void **state)
{
    recording one = {0};
    ps_status status;
    assert_ok(parse(*state, &one,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                    "<topology version=\"2.0\"><object type=\"Machine\"/></topology>\n",
                    &status),
              &status);
    assert_string_equal(one.log.data, "<topology version=2.0><object type=Machine></object></topology>");
}

static void assert_refused(ps_arena *arena, const char *text, const char *rule, int32_t line, int32_t column)
{
    recording one = {0};
    ps_status status;
    if (parse(arena, &one, text, &status) != PS_BAD_INPUT)
        fail_msg("accepted: %s", text);
    if (strcmp(status.rule, rule) != 0 || status.line != line || status.column != column)
        fail_msg("%s: rule %s at %d:%d", text, status.rule, (int)status.line, (int)status.column);
    assert_string_equal(status.source, "node.xml");
}

static void malformed_text_is_refused_where_it_goes_wrong(void **state)
{
    assert_refused(*state, "", "xml-syntax", 1, 1);
    assert_refused(*state, "{}", "xml-syntax", 1, 1);
    assert_refused(*state, "<a>\n<b></a>", "xml-syntax", 2, 6);
    assert_refused(*state, "<a>\n<b>", "xml-syntax", 2, 4);
    assert_refused(*state, "<a x='1' x='2'/>", "xml-syntax", 1, 10);
    assert_refused(*state, "<a/>\n<b/>", "xml-syntax", 2, 1);
    assert_refused(*state, "<a>&nope;</a>", "xml-syntax", 1, 4);
    assert_refused(*state, "<a>\xFF</a>", "xml-syntax", 1, 4);
    assert_refused(*state, "<?xml version='1.0' encoding='klingon'?><a/>", "xml-syntax", 1, 31);
}

static void entities_are_refused(void **state)
{
    assert_refused(*state,
                   "<!DOCTYPE lolz [\n"
                   "<!ENTITY lol \"lol\">\n"
                   "<!ENTITY lol1 \"&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;\">\n"
                   "<!ENTITY lol2 \"&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;\">\n"
                   "]>\n<lolz>&lol2;</lolz>",
                   "xml-entity", 2, 14);
    assert_refused(*state, "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>", "xml-entity", 1, 52);
    assert_refused(*state, "<!DOCTYPE a [<!ENTITY % x \"y\">]><a/>", "xml-entity", 1, 27);
    assert_refused(*state, "<!DOCTYPE a SYSTEM \"a.dtd\"><a>&x;</a>", "xml-entity", 1, 31);
}

static void depth_256_is_accepted_and_257_is_not(void **state)
{
    for (int depth = 256; depth <= 257; depth++) {
        ps_text text = {.arena = *state};
        for (int level = 0; level < depth; level++)
            ps_text_addf(&text, "<a>");
        for (int level = 0; level < depth; level++)
            ps_text_addf(&text, "</a>");
        recording one = {0};
        ps_status status;
        assert_int_equal(parse(*state, &one, text.data, &status), depth == 256 ? PS_OK : PS_BAD_INPUT);
        assert_string_equal(status.rule, depth == 256 ? "" : "xml-depth");
    }
}

static void failure_of_a_handler_stops_the_parse_and_gets_its_place(void **state)
{
    recording one = {.refuse = "b"};
    ps_status status;
    assert_int_equal(parse(*state, &one, "<a>\n <b/><c/></a>", &status), PS_BAD_INPUT);
    char text[256];
    ps_status_format(&status, text, sizeof text);
    assert_string_equal(text, "node.xml:2:2: no <b> here");
    assert_string_equal(one.log.data, "<a>");
}

static void text_longer_than_a_chunk_is_read_whole(void **state)
{
    ps_text text = {.arena = *state};
    ps_text_addf(&text, "<a>");
    for (int index = 0; index < 200000; index++)
        ps_text_addf(&text, "<b k='%d'/>\n", index);
    int64_t whole = text.size;
    ps_text_addf(&text, "</a>");
    recording one = {0};
    ps_status status;
    assert_ok(parse(*state, &one, text.data, &status), &status);
    assert_non_null(strstr(one.log.data, "<b k=199999></b></a>"));
    text.data[whole] = '\0';
    assert_int_equal(parse(*state, &one, text.data, &status), PS_BAD_INPUT);
    assert_int_equal(status.line, 200001);
}

typedef struct attempt {
    ps_arena *arena;
    const char *text;
} attempt;

static ps_code parse_guarded(void *context, ps_status *status)
{
    attempt *one = context;
    recording kept = {0};
    return parse(one->arena, &kept, one->text, status);
}

static void exhaustion_in_a_handler_stops_the_parse_and_leaks_nothing(void **state)
{
    (void)state;
    ps_arena *arena = ps_arena_new(200);
    attempt one = {arena, "<a><b k='long enough to need a second block of the text that the handler writes'/>"
                          "<b k='long enough to need a second block of the text that the handler writes'/></a>"};
    ps_status status = {0};
    assert_int_equal(ps_guard(parse_guarded, &one, arena, &status), PS_EXHAUSTED);
    assert_string_equal(status.rule, "out-of-memory");
    assert_int_equal(status.line, 1);
    ps_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(elements_and_attributes_arrive_in_order),
        test_in_arena(document_type_of_hwloc_is_accepted),
        test_in_arena(malformed_text_is_refused_where_it_goes_wrong),
        test_in_arena(entities_are_refused),
        test_in_arena(depth_256_is_accepted_and_257_is_not),
        test_in_arena(failure_of_a_handler_stops_the_parse_and_gets_its_place),
        test_in_arena(text_longer_than_a_chunk_is_read_whole),
        cmocka_unit_test(exhaustion_in_a_handler_stops_the_parse_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
