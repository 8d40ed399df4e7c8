/* match_test.c - for instance: words, patterns, and the filters of the older lists. */
#include "base/test.h"
#include "visibility/evaluate.h"
#include "visibility/filters.h"
#include "visibility/test/sample.h"
#include "wire/message.h"
#include "wire/presence.h"

static bool
matches(const char *text, const char *phrase)
{
    return visibility_text_matches(slice_text(text), slice_text(phrase));
}

static bool
like(const char *text, const char *pattern)
{
    return visibility_text_like(slice_text(text), slice_text(pattern));
}

TEST(match, a_phrase_is_found_as_words_side_by_side)
{
    EXPECT(matches("the quick brown fox", "quick"));
    EXPECT(matches("the quick brown fox", "QUICK, Brown!"));
    EXPECT(matches("one two one three", "one three"));
    EXPECT(matches("a", "a"));
    EXPECT(!matches("the quick brown fox", "brown quick"));
    EXPECT(!matches("the quick brown fox", "the brown"));
    EXPECT(!matches("the quickest", "quick"));
    EXPECT(!matches("quick", "quick brown"));
    EXPECT(!matches("", "a"));
    EXPECT(!matches("a", ""));
    EXPECT(!matches("", ""));
    EXPECT(!matches("a b", " - "));
    EXPECT(matches("\xc3\xbc"
                   "ber alles",
                   "\xc3\xbc"
                   "ber"));
}

TEST(match, a_pattern_covers_the_whole_text)
{
    EXPECT(like("", ""));
    EXPECT(like("", "%"));
    EXPECT(like("abc", "%%b%"));
    EXPECT(like("ABC", "a_C"));
    EXPECT(like("\xc3\xbcx", "_x"));
    EXPECT(like("aXbXc", "a%x_"));
    EXPECT(like("100%", "100\\%"));
    EXPECT(like("a\\", "a\\\\"));
    EXPECT(like("a\\", "a\\"));
    EXPECT(!like("abc", "ab"));
    EXPECT(!like("abc", "_bcd"));
    EXPECT(!like("", "_"));
    EXPECT(!like("1000", "100\\%"));
    EXPECT(!like("abcabd", "%abe"));
}

/* A pattern that would take a careless matcher longer than the universe. */
TEST(match, a_pattern_of_many_percents_takes_no_time)
{
    char text[2000], pattern[400];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof pattern; i += 2)
        memcpy(pattern + i, "%a", 2);
    pattern[sizeof pattern - 1] = 'b';
    EXPECT(!visibility_text_like(slice_of(text, sizeof text), slice_of(pattern, sizeof pattern)));
}

/* --- filters -------------------------------------------------------------------------------- */

/* Which of the runs that start at 1 .. 4 ms are found: two open, two closed (completed, failed). */
static const char *
found(struct arena *arena, const struct query_filters *filters)
{
    const struct sample_run runs[] = {
        {.run_id = "a", .start_ms = 1, .workflow_id = "w"},
        {.run_id = "b", .start_ms = 2, .type = "order"},
        {.run_id = "c", .start_ms = 3, .workflow_id = "w", .is_closed = true},
        {.run_id = "d", .start_ms = 4, .type = "order", .is_closed = true, .close_status = 1},
    };
    struct attribute_set *attributes = attribute_set_new(arena);
    struct query query;
    query_of_filters(filters, attributes, arena, &query);
    EXPECT(query.order == NULL && !query.is_ascending);
    const char *list = "";
    for (size_t i = 0; i < array_length(runs); i++) {
        struct visibility_change change = sample_change(arena, &runs[i]);
        struct visibility_row row;
        visibility_read_row(&change, attributes, arena, &row);
        if (query_matches(query.where, &row))
            list = arena_format(arena, "%s%s", list, runs[i].run_id);
    }
    return list;
}

static API(StartTimeFilter) *
times(struct arena *arena, int64_t earliest, int64_t latest)
{
    return API_NEW(arena, start_time_filter,
                   .earliest_time = presence_make_timestamp(arena, earliest),
                   .latest_time = presence_make_timestamp(arena, latest));
}

ARENA_TEST(filters, open_lists_are_of_open_runs_by_start_time)
{
    API(ListOpenWorkflowExecutionsRequest) *request =
        API_NEW(arena, list_open_workflow_executions_request,
                .start_time_filter = times(arena, 0, INT64_MAX));
    struct query_filters filters = query_filters_of_open(request);
    EXPECT_TEXT(found(arena, &filters), "ab");
    request->start_time_filter = times(arena, 1999999, 2000000); /* whole ms, both included */
    filters = query_filters_of_open(request);
    EXPECT_TEXT(found(arena, &filters), "ab");
    request->start_time_filter = times(arena, 2000000, 9000000);
    filters = query_filters_of_open(request);
    EXPECT_TEXT(found(arena, &filters), "b");
    request->start_time_filter = times(arena, 0, INT64_MAX);
    request->filters_case =
        API_VALUE(LIST_OPEN_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_EXECUTION_FILTER);
    request->execution_filter = API_NEW(arena, workflow_execution_filter, .workflow_id = "w");
    filters = query_filters_of_open(request);
    EXPECT_TEXT(found(arena, &filters), "a");
}

ARENA_TEST(filters, closed_lists_are_of_closed_runs_by_start_time, "B-004")
{
    API(ListClosedWorkflowExecutionsRequest) *request = API_NEW(
        arena, list_closed_workflow_executions_request,
        .start_time_filter = times(arena, 4000000, 5000000) /* both close later than that */);
    struct query_filters filters = query_filters_of_closed(request);
    EXPECT_TEXT(found(arena, &filters), "d");
    request->start_time_filter = times(arena, 0, INT64_MAX);
    filters = query_filters_of_closed(request);
    EXPECT_TEXT(found(arena, &filters), "cd");
    request->filters_case = API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_TYPE_FILTER);
    request->type_filter = API_NEW(arena, workflow_type_filter, .name = "order");
    filters = query_filters_of_closed(request);
    EXPECT_TEXT(found(arena, &filters), "d");
    request->filters_case =
        API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_STATUS_FILTER);
    request->status_filter =
        API_NEW(arena, status_filter,
                .status = API_VALUE(
                    WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_COMPLETED));
    filters = query_filters_of_closed(request);
    EXPECT_TEXT(found(arena, &filters), "c");
}
