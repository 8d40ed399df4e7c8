/* attributes_test.c - for instance: names, types, values, times. */
#include "visibility/attributes.h"

#include "base/test.h"
#include "base/text.h"
#include "uber/cadence/api/v1/visibility.pb-c.h"

/* --- sets ----------------------------------------------------------------------------------- */

TEST(attributes, the_default_keys_are_there_with_their_types)
{
    static const struct {
        const char *name;
        int type;
    } expected[] = {
        {"CustomStringField", 1},
        {"CustomKeywordField", 2},
        {"CustomIntField", 3},
        {"CustomDoubleField", 4},
        {"CustomBoolField", 5},
        {"CustomDatetimeField", 6},
        {"DomainID", 2},
        {"StartTime", 3},
        {"CloseTime", 3},
        {"CloseStatus", 3},
        {"IsCron", 5},
        {"BinaryChecksums", 2},
        {"CustomDomain", 1},
        {"CadenceScheduleTime", 6},
        {"ClusterAttributeName", 2},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct attribute_set *set = attribute_set_new(arena);
    EXPECT_EQ(attribute_count(set), 35);
    for (size_t i = 0; i < array_length(expected); i++) {
        const struct search_attribute *attribute = attribute_find(set, expected[i].name);
        EXPECT(attribute != NULL);
        EXPECT_EQ(attribute_wire_type(attribute), expected[i].type);
    }
    for (size_t i = 1; i < attribute_count(set); i++)
        EXPECT(strcmp(attribute_at(set, i - 1)->name, attribute_at(set, i)->name) < 0);
}

ARENA_TEST(attributes, only_a_new_name_or_the_same_again_is_added)
{
    struct attribute_set *set = attribute_set_new(arena);
    EXPECT_OK(attribute_set_add(set, "Colour", ATTRIBUTE_KEYWORD, arena));
    EXPECT_OK(attribute_set_add(set, "Colour", ATTRIBUTE_KEYWORD, arena));
    EXPECT_EQ(attribute_count(set), 36);
    EXPECT_EQ(attribute_find(set, "Attr.Colour")->type, ATTRIBUTE_KEYWORD);
    struct error *err = attribute_set_add(set, "Colour", ATTRIBUTE_INT, arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Key [Colour] is already whitelisted as a different type");
    err = attribute_set_add(set, "RunID", ATTRIBUTE_KEYWORD, arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Key [RunID] is reserved by system");
    EXPECT(attribute_find(set, "colour") == NULL);
    EXPECT(attribute_find(set, "Attr.RunID") == NULL);
}

TEST(attributes, a_type_has_a_name_and_a_number)
{
    enum attribute_type type;
    EXPECT(attribute_type_parse(slice_text("Keyword"), &type) && type == ATTRIBUTE_KEYWORD);
    EXPECT(attribute_type_parse(slice_text("DATETIME"), &type) && type == ATTRIBUTE_DATETIME);
    EXPECT(attribute_type_parse(slice_text("0"), &type) && type == ATTRIBUTE_STRING);
    EXPECT(!attribute_type_parse(slice_text("6"), &type));
    EXPECT(!attribute_type_parse(slice_text("text"), &type));
    EXPECT(!attribute_type_parse(slice_text(""), &type));
}

/* --- values --------------------------------------------------------------------------------- */

/* The number of values; -1: refused. The last value is left in *value. */
static int
read_json(struct arena *arena, const char *key, const char *json, struct attribute_value *value)
{
    struct attribute_value *values;
    size_t count;
    const struct search_attribute *attribute = attribute_find(attribute_set_new(arena), key);
    struct error *err = attribute_read(attribute, slice_text(json), arena, &values, &count);
    if (err != NULL)
        return -1;
    if (count > 0)
        *value = values[count - 1];
    return (int)count;
}

ARENA_TEST(attributes, a_value_is_one_of_its_type_or_a_list_of_them)
{
    struct attribute_value value;
    EXPECT_EQ(read_json(arena, "CustomKeywordField", "\"a\\u0062\"", &value), 1);
    EXPECT(slice_equal(value.text, slice_text("ab")));
    EXPECT_EQ(read_json(arena, "CustomStringField", "[\"a\", \"[{\\\"\"]", &value), 2);
    EXPECT(slice_equal(value.text, slice_text("[{\"")));
    EXPECT_EQ(read_json(arena, "CustomIntField", " -9223372036854775808 ", &value), 1);
    EXPECT(value.integer == INT64_MIN);
    EXPECT_EQ(read_json(arena, "CustomDoubleField", "[1, 2.5]", &value), 2);
    EXPECT(value.number == 2.5);
    EXPECT_EQ(read_json(arena, "CustomBoolField", "true", &value), 1);
    EXPECT_EQ(value.integer, 1);
    EXPECT_EQ(read_json(arena, "CustomDatetimeField", "\"1970-01-01T00:00:00.0019Z\"", &value), 1);
    EXPECT_EQ(value.integer, 1900000);
    EXPECT_EQ(read_json(arena, "CustomIntField", "null", &value), 0);
    EXPECT_EQ(read_json(arena, "CustomIntField", "[]", &value), 0);
}

TEST(attributes, what_is_no_value_of_its_type_is_refused)
{
    static const struct {
        const char *key, *json;
    } bad[] = {
        {"CustomIntField", "\"5\""},
        {"CustomIntField", "1.0"},
        {"CustomIntField", "[1, \"2\"]"},
        {"CustomIntField", "9223372036854775808"},
        {"CustomIntField", ""},
        {"CustomIntField", "5 5"},
        {"CustomKeywordField", "5"},
        {"CustomKeywordField", "red"},
        {"CustomKeywordField", "{}"},
        {"CustomKeywordField", "[[\"a\"]]"},
        {"CustomKeywordField", "\"\xff\""},
        {"CustomBoolField", "1"},
        {"CustomDoubleField", "\"1\""},
        {"CustomDatetimeField", "5"},
        {"CustomDatetimeField", "\"yesterday\""},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct attribute_value value;
    for (size_t i = 0; i < array_length(bad); i++) {
        if (read_json(arena, bad[i].key, bad[i].json, &value) != -1)
            TEST_FAIL("%s: %s was taken", bad[i].key, bad[i].json);
    }
    struct attribute_value *values;
    size_t count;
    struct error *err = attribute_read(attribute_find(attribute_set_new(arena), "CustomIntField"),
                                       slice_text("\"x\""), arena, &values, &count);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "\"x\" is not a valid search attribute value for key CustomIntField");
}

/* Deep nesting must not reach a reader that calls itself. */
ARENA_TEST(attributes, a_million_brackets_are_refused)
{
    char *deep = arena_alloc(arena, 1000001);
    memset(deep, '[', 1000000);
    deep[1000000] = '\0';
    struct attribute_value value;
    EXPECT_EQ(read_json(arena, "CustomIntField", deep, &value), -1);
}

/* --- times ---------------------------------------------------------------------------------- */

TEST(attributes, times_are_read_with_fractions_and_offsets, "B-017")
{
    static const struct {
        const char *text;
        int64_t nanoseconds;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.000000001Z", 1},
        {"1970-01-01T00:00:00.0000000019Z", 1},
        {"1970-01-01T01:30:00.5+01:30", 500000000},
        {"1969-12-31T23:59:59-00:00", -1000000000},
        {"2000-02-29T12:34:56-08:00", 951856496000000000},
        {"2026-11-15T12:00:00Z", 1794744000000000000},
        {"1900-03-01T00:00:00Z", -2203891200000000000},
        {"0000-01-01T00:00:00Z", INT64_MIN},
        {"0001-01-01T00:00:00Z", INT64_MIN},
        {"9999-12-31T23:59:59.999999999Z", INT64_MAX},
    };
    for (size_t i = 0; i < array_length(good); i++) {
        int64_t nanoseconds = 7;
        if (!text_parse_moment(slice_text(good[i].text), &nanoseconds) ||
            nanoseconds != good[i].nanoseconds)
            TEST_FAIL("%s is not %lld", good[i].text, (long long)nanoseconds);
    }
}

TEST(attributes, what_is_no_time_is_refused)
{
    static const char *const bad[] = {
        "",
        "1970",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01 00:00:00Z",
        "1970-01-01T00:00:00z",
        "1970-13-01T00:00:00Z",
        "1970-00-01T00:00:00Z",
        "2001-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "1970-01-32T00:00:00Z",
        "1970-01-00T00:00:00Z",
        "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:60Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+0100",
        "1970-01-01T00:00:00ZZ",
    };
    for (size_t i = 0; i < array_length(bad); i++) {
        int64_t nanoseconds;
        if (text_parse_moment(slice_text(bad[i]), &nanoseconds))
            TEST_FAIL("%s was taken", bad[i]);
    }
}

TEST(attributes, a_millisecond_holds_what_comes_after_it)
{
    EXPECT_EQ(attribute_floor_time(0), 0);
    EXPECT_EQ(attribute_floor_time(999999), 0);
    EXPECT_EQ(attribute_floor_time(-1), -1000000);
    EXPECT_EQ(attribute_floor_time(-1000000), -1000000);
    EXPECT_EQ(attribute_floor_time(INT64_MAX), INT64_MAX - 775807);
    EXPECT_EQ(attribute_floor_time(INT64_MIN), INT64_MIN + 775808);
}
