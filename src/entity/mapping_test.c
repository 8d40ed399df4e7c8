/* mapping_test.c - what a file of entities may look like, and what is wrong with others. */
#include "entity/mapping.h"

#include "base/test.h"

static struct error *
read_text(const char *text, struct arena *arena, const char **printed)
{
    struct mapping mapping = {0};
    struct error *err = mapping_read(slice_text(text), arena, &mapping);
    *printed = "";
    for (size_t i = 0; err == NULL && i < mapping.count; i++) {
        const char *region = mapping.entries[i].region;
        *printed = arena_format(arena, "%s%s=%s;", *printed, mapping.entries[i].key,
                                region == NULL ? "null" : region);
        EXPECT(mapping_find(&mapping, mapping.entries[i].key) == &mapping.entries[i]);
    }
    EXPECT(err != NULL || mapping_find(&mapping, "nobody") == NULL);
    return err;
}

TEST(mapping, yaml_lines_and_json_say_the_same)
{
    static const char *const texts[] = {
        "bob: us-east\nann: us-west\n",
        "# users\n---\n\nbob: us-east # moved\r\nann:   us-west",
        "\"bob\": 'us-east'\n'ann': \"us-west\"\n",
        "{\"bob\": \"us-east\", \"ann\": \"us-west\"}",
        "\n  {\"ann\":\"us-west\",\n\"bob\":\"us-east\"}\n",
    };
    for (size_t i = 0; i < array_length(texts); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        const char *printed;
        EXPECT_OK(read_text(texts[i], arena, &printed));
        EXPECT_TEXT(printed, "ann=us-west;bob=us-east;");
    }
}

ARENA_TEST(mapping, keys_may_hold_colons_and_hashes_that_are_not_followed_by_a_blank)
{
    const char *printed;
    EXPECT_OK(read_text("urn:user#7: us-west\n'a: b': us-east\n", arena, &printed));
    EXPECT_TEXT(printed, "a: b=us-east;urn:user#7=us-west;");
    EXPECT_OK(read_text("", arena, &printed));
    EXPECT_TEXT(printed, "");
    EXPECT_OK(read_text("{\"gone\": null}", arena, &printed));
    EXPECT_TEXT(printed, "gone=null;");
}

TEST(mapping, what_is_not_such_a_mapping_is_refused_with_its_line)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"ann: us-west\n  bob: us-east\n", "line 2"},
        {"- ann\n", "line 1"},
        {"ann us-west\n", "line 1"},
        {"ann:\n", "line 1"},
        {"ann: [us-west]\n", "line 1"},
        {"ann: &x us-west\n", "line 1"},
        {"\n\n'ann: us-west\n", "line 3"},
        {"ann: 'us-west' us-east\n", "line 1"},
        {"\"a\\u0041\": us-west\n", "line 1"},
        {"ann: us-west\nann: us-east\n", "'ann' occurs twice"},
        {"{\"ann\": \"us-west\", \"ann\": \"us-east\"}", "'ann' occurs twice"},
        {"{\"ann\": 7}", "JSON"},
        {"{\"ann\": \"us-west\"", "JSON"},
        {"{\"ann\": \"us-west\"} x", "JSON"},
        {"{\"\": \"us-west\"}", "empty"},
        {"ann\xff: us-west\n", "line 1"},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        const char *printed;
        struct error *err = read_text(cases[i].text, arena, &printed);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        if (strstr(err->message, cases[i].fault) == NULL)
            TEST_FAIL("'%s' says: %s", cases[i].text, err->message);
    }
}
