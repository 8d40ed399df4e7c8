/* query_test.c - for instance: which texts are queries, what they mean, how others are refused.
 *
 * Trees are printed, so that a test shows what an engine gets. */
#include "base/buffer.h"
#include "base/test.h"
#include "visibility/query.h"

/* --- a tree as text ------------------------------------------------------------------------- */

static void
print_value(struct buffer *out, const struct attribute_value *value)
{
    switch (value->type) {
    case ATTRIBUTE_STRING:
    case ATTRIBUTE_KEYWORD:
        buffer_append_format(out, "'%.*s'", SLICE_ARG(value->text));
        break;
    case ATTRIBUTE_DOUBLE:
        buffer_append_format(out, "%g", value->number);
        break;
    default:
        buffer_append_format(out, "%lld", (long long)value->integer);
    }
}

static void
print_node(struct buffer *out, const struct query_node *node)
{
    static const char *const operators[] = {"=",  "!=",   "<",        "<=",      ">",
                                            ">=", "like", "not-like", "missing", "there"};
    static const char *const kinds[] = {"and", "or", "not"};
    if (node->kind == QUERY_COMPARE) {
        buffer_append_format(out, "%s %s", node->attribute->name, operators[node->operator]);
        if (node->operator<QUERY_MISSING) {
            buffer_append_text(out, " ");
            print_value(out, &node->value);
        }
        return;
    }
    buffer_append_format(out, "%s(", kinds[node->kind]);
    for (size_t i = 0; i < node->child_count; i++) {
        buffer_append_text(out, i == 0 ? "" : ", ");
        print_node(out, node->child[i]);
    }
    buffer_append_text(out, ")");
}

struct query_fixture {
    struct arena *arena;
    struct attribute_set *attributes;
};

static struct query_fixture
query_fixture_new(void)
{
    struct arena *arena = arena_new(0);
    return (struct query_fixture){arena, attribute_set_new(arena)};
}

static void
query_fixture_free(struct query_fixture *query_fixture)
{
    arena_free(query_fixture->arena);
}

static const char *
tree_of(struct query_fixture *query_fixture, const char *text)
{
    struct query query;
    EXPECT_OK(query_parse(text, query_fixture->attributes, query_fixture->arena, &query));
    struct buffer out = {0};
    if (query.where != NULL)
        print_node(&out, query.where);
    if (query.order != NULL)
        buffer_append_format(&out, "%sby %s %s", query.where != NULL ? " " : "", query.order->name,
                             query.is_ascending ? "up" : "down");
    const char *tree = arena_text_of(query_fixture->arena, buffer_slice(&out));
    buffer_free(&out);
    return tree;
}

static const char *
refusal_of(struct query_fixture *query_fixture, const char *text)
{
    struct query query;
    struct error *err = query_parse(text, query_fixture->attributes, query_fixture->arena, &query);
    if (err == NULL)
        TEST_FAIL("%s was taken", text);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    return err->message;
}

/* One bench per test; the macros need it. */
#define BENCH scoped(query_fixture_free) struct query_fixture query_fixture = query_fixture_new()

#define EXPECT_TREE(text, tree)       EXPECT_TEXT(tree_of(&query_fixture, (text)), (tree))
#define EXPECT_REFUSED(text, message) EXPECT_TEXT(refusal_of(&query_fixture, (text)), (message))

/* --- what is a query ------------------------------------------------------------------------ */

TEST(query, where_and_order_may_both_be_left_out, "B-013")
{
    BENCH;
    EXPECT_TREE("", "");
    EXPECT_TREE(" \t\n", "");
    EXPECT_TREE("RunID = 'a'", "RunID = 'a'");
    EXPECT_TREE("ORDER BY RunID", "by RunID up");
    EXPECT_TREE("RunID = 'a' ORDER BY RunID DESC", "RunID = 'a' by RunID down");
}

TEST(query, all_operators_become_few, "B-014")
{
    BENCH;
    EXPECT_TREE("CustomIntField <> 3", "CustomIntField != 3");
    EXPECT_TREE("CustomIntField BETWEEN 3 AND 5", "and(CustomIntField >= 3, CustomIntField <= 5)");
    EXPECT_TREE("CustomIntField NOT BETWEEN 3 AND 5",
                "not(and(CustomIntField >= 3, CustomIntField <= 5))");
    EXPECT_TREE("CustomIntField in (3,4 , 5)",
                "or(CustomIntField = 3, CustomIntField = 4, CustomIntField = 5)");
    EXPECT_TREE("CustomIntField NOT IN (3,4)", "and(CustomIntField != 3, CustomIntField != 4)");
    EXPECT_TREE("CustomIntField IN (3)", "CustomIntField = 3");
    EXPECT_TREE("CloseTime IS NULL or CloseTime is not null",
                "or(CloseTime missing, CloseTime there)");
    EXPECT_TREE("RunID LIKE 'a%' AND RunID NOT LIKE 'b\\\\'",
                "and(RunID like 'a%%', RunID not-like 'b\\\\%')");
    EXPECT_TREE("RunID<'a'and RunID<='b'and RunID>'c'and RunID>='d'and RunID!='e'",
                "and(RunID < 'a', RunID <= 'b', RunID > 'c', RunID >= 'd', RunID != 'e')");
}

TEST(query, and_binds_closer_than_or_and_not_closest, "B-022")
{
    BENCH;
    EXPECT_TREE("RunID='a' OR RunID='b' AND RunID='c'",
                "or(RunID = 'a', and(RunID = 'b', RunID = 'c'))");
    EXPECT_TREE("(RunID='a' OR RunID='b') AND CloseTime = missing",
                "and(or(RunID = 'a', RunID = 'b'), CloseTime missing)");
    EXPECT_TREE("NOT RunID='a' AND RunID='b'", "and(not(RunID = 'a'), RunID = 'b')");
    EXPECT_TREE("not (not ((RunID='a')))", "not(not(RunID = 'a'))");
}

TEST(query, names_are_exact_and_words_of_the_language_are_not, "B-015")
{
    BENCH;
    EXPECT_TREE("RunID = 'a' oR RunID = 'b' order By RunID Desc",
                "or(RunID = 'a', RunID = 'b') by RunID down");
    EXPECT_TREE("`RunID` = 'a' AND `Attr.CustomIntField` = 1 AND Attr.CustomIntField = 2",
                "and(RunID = 'a', CustomIntField = 1, CustomIntField = 2)");
    EXPECT_REFUSED("runid = 'a'", "invalid search attribute \"runid\"");
    EXPECT_REFUSED("Attr.RunID = 'a'", "invalid search attribute \"Attr.RunID\"");
    EXPECT_REFUSED("CloseTime = missing AND Nonsense = 1", "invalid search attribute \"Nonsense\"");
    EXPECT_REFUSED("ORDER BY Nonsense", "invalid order by attribute");
}

TEST(query, a_key_that_was_added_can_be_asked_for)
{
    BENCH;
    EXPECT_REFUSED("Colour = 'red'", "invalid search attribute \"Colour\"");
    EXPECT_OK(attribute_set_add(query_fixture.attributes, "Colour", ATTRIBUTE_KEYWORD,
                                query_fixture.arena));
    EXPECT_TREE("Colour = 'red'", "Colour = 'red'");
    EXPECT_TREE("Attr.Colour = 'red'", "Colour = 'red'");
}

/* --- values --------------------------------------------------------------------------------- */

TEST(query, texts_may_hold_any_quote)
{
    BENCH;
    EXPECT_TREE("RunID = 'it''s'", "RunID = 'it's'");
    EXPECT_TREE("RunID = \"it's \"\"so\"\"\"", "RunID = 'it's \"so\"'");
    EXPECT_TREE("RunID = 'a\\'b\\\\c\\n'", "RunID = 'a'b\\c\n'");
    EXPECT_TREE("RunID = ''", "RunID = ''");
    EXPECT_TREE("RunID = 7", "RunID = '7'");
    EXPECT_TREE("RunID = 'missing'", "RunID = 'missing'");
    EXPECT_TREE("RunID = '; DROP TABLE runs --'", "RunID = '; DROP TABLE runs --'");
}

TEST(query, numbers_may_be_quoted_and_must_be_of_the_type)
{
    BENCH;
    EXPECT_TREE("CustomIntField = '-12' OR CustomIntField = +12",
                "or(CustomIntField = -12, CustomIntField = 12)");
    EXPECT_TREE("CustomDoubleField > -1.5e2 OR CustomDoubleField > .5",
                "or(CustomDoubleField > -150, CustomDoubleField > 0.5)");
    EXPECT_TREE("CustomBoolField = TRUE OR CustomBoolField = 'false'",
                "or(CustomBoolField = 1, CustomBoolField = 0)");
    EXPECT_REFUSED("CustomIntField = 1.5", "Error when parse query: CustomIntField is compared "
                                           "with a whole number near `1.5` at 18");
    EXPECT_REFUSED("CustomIntField = 9223372036854775808",
                   "Error when parse query: CustomIntField is compared with a whole number near "
                   "`9223372036854775808` at 18");
    EXPECT_REFUSED("CustomDoubleField = 'nan'", "Error when parse query: CustomDoubleField is "
                                                "compared with a number near `'nan'` at 21");
    EXPECT_REFUSED("CustomBoolField = 'yes'", "Error when parse query: CustomBoolField is "
                                              "compared with true or false near `'yes'` at 19");
}

TEST(query, times_of_columns_are_compared_by_whole_milliseconds, "B-017")
{
    BENCH;
    EXPECT_TREE("StartTime = 1999999", "and(StartTime >= 1000000, StartTime < 2000000)");
    EXPECT_TREE("StartTime != '1970-01-01T00:00:00.0015Z'",
                "not(and(StartTime >= 1000000, StartTime < 2000000))");
    EXPECT_TREE("CloseTime < '1970-01-01T01:00:00.0019+01:00'", "CloseTime < 1000000");
    EXPECT_TREE("CloseTime <= 1999999", "CloseTime < 2000000");
    EXPECT_TREE("ExecutionTime > 1999999", "ExecutionTime >= 2000000");
    EXPECT_TREE("ExecutionTime >= -1", "ExecutionTime >= -1000000");
    EXPECT_TREE("CustomDatetimeField = '1970-01-01T00:00:00.0019Z'",
                "CustomDatetimeField = 1900000"); /* an attribute is compared as it is */
    EXPECT_TREE("CustomDatetimeField < '1970-01-01T00:00:00.000000001Z'",
                "CustomDatetimeField < 1");
    EXPECT_TREE("StartTime > '9999-12-31T23:59:59Z'", "StartTime >= 9223372036854775807");
    EXPECT_REFUSED("StartTime > 'yesterday'",
                   "Error when parse query: StartTime is compared with a time (RFC 3339 or "
                   "nanoseconds) near `'yesterday'` at 13");
}

TEST(query, a_status_has_a_name_and_a_number, "B-018")
{
    BENCH;
    static const char *const names[] = {"completed",  "Failed",           "CANCELED",
                                        "terminated", "continued_as_new", "Timed_Out"};
    for (int i = 0; i < 6; i++) {
        const char *tree = arena_format(query_fixture.arena, "CloseStatus = %d", i);
        EXPECT_TREE(arena_format(query_fixture.arena, "CloseStatus = '%s'", names[i]), tree);
        EXPECT_TREE(arena_format(query_fixture.arena, "CloseStatus = \"%d\"", i), tree);
        EXPECT_TREE(tree, tree);
        EXPECT_TREE(arena_format(query_fixture.arena, "ExecutionStatus = '%s'", names[i]),
                    arena_format(query_fixture.arena, "ExecutionStatus = %d", i + 2));
    }
    EXPECT_TREE("ExecutionStatus IN ('pending', 'started')",
                "or(ExecutionStatus = 0, ExecutionStatus = 1)");
    EXPECT_REFUSED("CloseStatus = 'started'",
                   "Error when parse query: unknown enum value for "
                   "\"WorkflowExecutionCloseStatus\" near `'started'` at 15");
}

TEST(query, missing_is_a_word_for_every_attribute, "B-016")
{
    BENCH;
    EXPECT_TREE("CloseTime = missing", "CloseTime missing");
    EXPECT_TREE("CloseTime != MISSING", "CloseTime there");
    EXPECT_TREE("CustomKeywordField in (missing, 'a')",
                "or(CustomKeywordField missing, CustomKeywordField = 'a')");
    EXPECT_REFUSED("CloseTime > missing",
                   "Invalid query. Only = and != go with missing near `missing` at 13");
}

/* --- order ---------------------------------------------------------------------------------- */

TEST(query, what_cannot_be_sorted_by_is_refused, "B-024", "B-025")
{
    BENCH;
    EXPECT_TREE("ORDER BY CustomIntField desc", "by CustomIntField down");
    EXPECT_TREE("order by `Attr.CustomKeywordField` asc", "by CustomKeywordField up");
    EXPECT_REFUSED("ORDER BY CustomStringField",
                   "Error when parse query: not able to sort by IndexedValueTypeString field, use "
                   "IndexedValueTypeKeyword field");
    EXPECT_REFUSED("ORDER BY StartTime, CloseTime",
                   "Error when parse query: only one field can be used to sort");
    EXPECT_REFUSED("ORDER BY StartTime DESC, RunID",
                   "Error when parse query: only one field can be used to sort");
}

/* --- what is not a query ---------------------------------------------------------------------- */

TEST(query, what_is_no_query_is_refused_with_its_place, "B-015")
{
    BENCH;
    EXPECT_REFUSED("WorkflowType = 'a' AND RunID = 'b' ORDR BY StartTime",
                   "Invalid query. Expected AND, OR or ORDER BY near `ORDR` at 36");
    EXPECT_REFUSED("RunID", "Invalid query. Expected a comparison at the end");
    EXPECT_REFUSED("RunID =", "Invalid query. Expected a value at the end");
    EXPECT_REFUSED("RunID = a", "Invalid query. Expected a value near `a` at 9");
    EXPECT_REFUSED("RunID = 'a", "Invalid query. Expected a value near `'a` at 9");
    EXPECT_REFUSED("RunID == 'a'", "Invalid query. Expected a value near `=` at 8");
    EXPECT_REFUSED("(RunID = 'a'", "Invalid query. Expected ) at the end");
    EXPECT_REFUSED("RunID = 'a')", "Invalid query. Expected AND, OR or ORDER BY near `)` at 12");
    EXPECT_REFUSED("RunID IN ()", "Invalid query. Expected a value near `)` at 11");
    EXPECT_REFUSED("RunID IN ('a' 'b')", "Invalid query. Expected , or ) near `'b'` at 15");
    EXPECT_REFUSED("RunID NOT 'a'", "Invalid query. Expected IN, BETWEEN or LIKE near `'a'` at 11");
    EXPECT_REFUSED("RunID = 'a' AND", "Invalid query. Expected a name at the end");
    EXPECT_REFUSED("RunID = 'a'; DROP TABLE runs",
                   "Invalid query. Expected AND, OR or ORDER BY near `;` at 12");
    EXPECT_REFUSED("'a' = RunID", "invalid comparison expression: a name comes first near `'a'` "
                                  "at 1");
    EXPECT_REFUSED("ORDER RunID", "Invalid query. Expected BY near `RunID` at 7");
    EXPECT_REFUSED("ORDER BY RunID LIMIT 5", "Invalid query. Expected the end near `LIMIT` at 16");
    EXPECT_REFUSED(
        "CustomIntField LIKE '5'",
        "Invalid query. CustomIntField is not a text, LIKE is for texts near `'5'` at 21");
    EXPECT_REFUSED("CustomIntField = 12abc", "Invalid query. Expected a value near `1` at 18");
}

static const char *
repeated(struct arena *arena, const char *text, size_t times)
{
    struct buffer out = {0};
    for (size_t i = 0; i < times; i++)
        buffer_append_text(&out, text);
    const char *all = arena_text_of(arena, buffer_slice(&out));
    buffer_free(&out);
    return all;
}

TEST(query, depth_and_length_are_bounded)
{
    BENCH;
    const char *deep = repeated(query_fixture.arena, "(", QUERY_DEPTH_MAX);
    const char *end = repeated(query_fixture.arena, ")", QUERY_DEPTH_MAX);
    EXPECT_TREE(arena_format(query_fixture.arena, "%sRunID = 'a'%s", deep, end), "RunID = 'a'");
    EXPECT_REFUSED(arena_format(query_fixture.arena, "%s(RunID = 'a')%s", deep, end),
                   "Invalid query. Expected less depth near `(` at 65");
    EXPECT_REFUSED(repeated(query_fixture.arena, "NOT ", 1000000),
                   "Invalid query. Expected less depth near `NOT` at 257");
    const char *many = repeated(query_fixture.arena, "1,", QUERY_COMPARISONS_MAX - 1);
    (void)tree_of(&query_fixture,
                  arena_format(query_fixture.arena, "CustomIntField IN (%s1)", many));
    EXPECT_REFUSED(arena_format(query_fixture.arena, "CustomIntField IN (%s1,2)", many),
                   "Invalid query. It has more than 1024 comparisons near `2` at 2068");
}

TEST(query, an_error_shows_no_half_character)
{
    BENCH;
    const char *long_name = repeated(query_fixture.arena, "\xc3\xa4", 40);
    EXPECT_REFUSED(arena_format(query_fixture.arena, "RunID = %s", long_name),
                   arena_format(query_fixture.arena,
                                "Invalid query. Expected a value near `%.32s` at 9", long_name));
    EXPECT_REFUSED("RunID = a\xff", "Invalid query. Expected a value near `a\xff` at 9");
}
