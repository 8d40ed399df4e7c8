/* request_test.c - what people type becomes fields of requests. */
#include "cli/base/request.h"

#include "base/test.h"
#include "cli/workflow/reset.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define NS  1000000000LL
#define NOW (1794000000LL * NS)

#define START(arena) API_NEW((arena), start_workflow_execution_request)

static struct error *
set(struct arena *arena, void *message, const char *path, const char *value)
{
    const struct request_context context = {.arena = arena, .now = NOW};
    return request_set(&context, message, path, "flag", value);
}

ARENA_TEST(request, a_field_takes_what_its_type_can_be_told_as)
{
    API(StartWorkflowExecutionRequest) *start = START(arena);
    EXPECT_OK(set(arena, start, "workflow_type.name", "order"));
    EXPECT_OK(set(arena, start, "execution_start_to_close_timeout", "90"));
    EXPECT_OK(set(arena, start, "delay_start", "1h30m"));
    EXPECT_OK(set(arena, start, "first_run_at", "2026-11-15T09:00:00+01:00"));
    EXPECT_OK(set(arena, start, "input", "{\"a\": 1} 2"));
    EXPECT_OK(set(arena, start, "retry_policy.backoff_coefficient", "1.5"));
    EXPECT_OK(set(arena, start, "retry_policy.maximum_attempts", "3"));
    EXPECT_TEXT(start->workflow_type->name, "order");
    EXPECT_EQ(start->execution_start_to_close_timeout->seconds, 90);
    EXPECT_EQ(start->delay_start->seconds, 5400);
    EXPECT_EQ(start->first_run_at->seconds, 1794729600);
    EXPECT(slice_equal(presence_read_bytes(start->input->data), slice_text("{\"a\": 1} 2")));
    EXPECT(start->retry_policy->backoff_coefficient == 1.5);
    EXPECT_EQ(start->retry_policy->maximum_attempts, 3);
    EXPECT_TEXT(request_text(&start->base, "workflow_type.name"), "order");
    EXPECT(request_text(&start->base, "nothing") == NULL);
}

ARENA_TEST(request, an_enum_is_named_in_any_case_or_numbered_as_in_the_cadence_command_line)
{
    API(StartWorkflowExecutionRequest) *start = START(arena);
    static const struct {
        const char *given;
        int meant;
    } cases[] = {{"0", 1}, {"AllowDuplicate", 2}, {"reject_duplicate", 3}, {"3", 4}};
    for (size_t i = 0; i < array_length(cases); i++) {
        EXPECT_OK(set(arena, start, "workflow_id_reuse_policy", cases[i].given));
        EXPECT_EQ((int)start->workflow_id_reuse_policy, cases[i].meant);
    }
    struct error *err = set(arena, start, "workflow_id_reuse_policy", "4");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "--flag: '4' is not one of ALLOW_DUPLICATE_FAILED_ONLY, "
                              "ALLOW_DUPLICATE, REJECT_DUPLICATE, TERMINATE_IF_RUNNING");
}

ARENA_TEST(request, of_a_oneof_the_last_arm_counts)
{
    API(ListClosedWorkflowExecutionsRequest) *list =
        API_NEW(arena, list_closed_workflow_executions_request);
    EXPECT_OK(set(arena, list, "type_filter.name", "order"));
    EXPECT_EQ((int)list->filters_case, 6);
    EXPECT_TEXT(list->type_filter->name, "order");
}

ARENA_TEST(request, what_cannot_be_read_is_refused_by_the_name_of_its_flag)
{
    static const char *const wrong[][2] = {
        {"retry_policy.maximum_attempts", "many"},
        {"retry_policy.maximum_attempts", "3000000000"},
        {"retry_policy.backoff_coefficient", "1x"},
        {"delay_start", "-5"},
        {"delay_start", "soon"},
        {"first_run_at", "tomorrow"},
        {"input", "hello"},
        {"input", ""},
        {"input", "[1, 2"},
    };
    for (size_t i = 0; i < array_length(wrong); i++) {
        struct error *err = set(arena, START(arena), wrong[i][0], wrong[i][1]);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strncmp(err->message, "--flag: ", 8) == 0);
    }
}

TEST(request, times_are_dates_nanoseconds_or_so_long_ago)
{
    static const struct {
        const char *text;
        int64_t meant;
    } cases[] = {
        {"15m", NOW - 900 * NS},
        {"2hour", NOW - 7200 * NS},
        {"1M", NOW - 30LL * 86400 * NS},
        {"1794000000000000000", NOW},
        {"2026-11-06T22:40:00.25Z", 1794004800LL * NS + NS / 4},
        {"2026-11-06T22:40:00-01:00", (1794004800LL + 3600) * NS},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        int64_t time = 0;
        EXPECT(time_read(cases[i].text, NOW, &time));
        EXPECT_EQ(time, cases[i].meant);
    }
    static const char *const wrong[] = {"",
                                        "m",
                                        "0m",
                                        "1x",
                                        "2026-11-06",
                                        "2026-11-06T22:40:00",
                                        "2026-11-06T22:40:00+1:00",
                                        "9999999m",
                                        "-5"};
    for (size_t i = 0; i < array_length(wrong); i++) {
        int64_t time = 0;
        if (time_read(wrong[i], NOW, &time))
            TEST_FAIL("'%s' was read", wrong[i]);
    }
}

ARENA_TEST(request, json_values_are_cut_where_they_end)
{
    size_t count;
    const char *wrong;
    EXPECT(json_values_check(" {\"a b\": [1]}  \"c d\"\n3 ", arena, &wrong));
    const char **values = json_values_cut(" {\"a b\": [1]}  \"c d\"\n3 ", arena, &count);
    EXPECT_EQ(count, 3);
    EXPECT_TEXT(values[0], "{\"a b\": [1]}");
    EXPECT_TEXT(values[1], "\"c d\"");
    EXPECT_TEXT(values[2], "3");
    const char **words = words_cut("a||b", '|', arena, &count);
    EXPECT_EQ(count, 3);
    EXPECT_TEXT(words[1], "");
    (void)words_cut("  a  b ", ' ', arena, &count);
    EXPECT_EQ(count, 2);
}

/* ---- resets ---- */

/* A history of decisions that were scheduled, started and completed at 1 s, 2 s, ... */
static API(HistoryEvent) **
make_history(size_t decisions, struct arena *arena, size_t *count)
{
    static const int arms[] = {9, 10, 11};
    API(HistoryEvent) **events = arena_zalloc(arena, 3 * decisions, sizeof *events);
    for (*count = 0; *count < 3 * decisions; ++*count) {
        API(HistoryEvent) *event =
            API_NEW(arena, history_event, .event_id = (int64_t)*count + 1,
                    .attributes_case = (API(HistoryEvent__AttributesCase))arms[*count % 3],
                    .event_time = presence_make_timestamp(arena, ((int64_t)*count / 3 + 1) * NS));
        events[*count] = event;
    }
    return events;
}

ARENA_TEST(reset, each_type_finds_its_decision)
{
    size_t count;
    API(HistoryEvent) **events = make_history(3, arena, &count);
    static const struct {
        struct reset_criteria criteria;
        int64_t found;
    } cases[] = {
        {{.type = RESET_FIRST_DECISION_COMPLETED}, 3},
        {{.type = RESET_LAST_DECISION_COMPLETED}, 9},
        {{.type = RESET_LAST_DECISION_COMPLETED, .offset = -2}, 3},
        {{.type = RESET_LAST_DECISION_COMPLETED, .offset = -3}, 0},
        {{.type = RESET_FIRST_DECISION_SCHEDULED}, 2},
        {{.type = RESET_LAST_DECISION_SCHEDULED}, 8},
        {{.type = RESET_DECISION_COMPLETED_TIME, .earliest = 2 * NS}, 6},
        {{.type = RESET_DECISION_COMPLETED_TIME, .latest = 2 * NS}, 6},
        {{.type = RESET_DECISION_COMPLETED_TIME, .earliest = 4 * NS}, 0},
    };
    for (size_t i = 0; i < array_length(cases); i++)
        EXPECT_EQ(reset_find(&cases[i].criteria, events, count), cases[i].found);
}

TEST(reset, types_are_known_by_their_names)
{
    enum reset_type type;
    EXPECT(reset_type_read("lastdecisioncompleted", &type) &&
           type == RESET_LAST_DECISION_COMPLETED);
    EXPECT(!reset_type_read("Nothing", &type));
    scoped(arena_drop) struct arena *arena = arena_new(0);
    size_t count;
    const char **names = words_cut(reset_type_names(), ',', arena, &count);
    EXPECT_EQ(count, RESET_TYPE_COUNT);
    for (size_t i = 0; i < count; i++) /* every name that is told is one that is read */
        EXPECT(reset_type_read(names[i] + strspn(names[i], " "), &type) && type == i);
}
