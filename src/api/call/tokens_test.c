/* tokens_test.c - tokens look as Cadence's do, and nothing else is taken for one. */
#include "api/call/tokens.h"

#include "base/test.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

static const struct task_token sample = {
    .domain_id = "d-1",
    .workflow_id = "a\"b\\c<\n\xe2\x80\xa8",
    .workflow_type = "order",
    .run_id = "r-1",
    .schedule_id = 5,
    .schedule_attempt = 2,
    .activity_id = "7",
    .activity_type = "charge",
};

ARENA_TEST(tokens, a_task_token_is_the_json_that_cadence_writes, "A-013")
{
    struct slice bytes = task_token_write(&sample, arena);
    EXPECT_TEXT(arena_text_of(arena, bytes),
                "{\"domainId\":\"d-1\",\"workflowId\":\"a\\\"b\\\\c\\u003c\\n\\u2028\","
                "\"workflowType\":\"order\",\"runId\":\"r-1\",\"scheduleId\":5,"
                "\"scheduleAttempt\":2,\"activityId\":\"7\",\"activityType\":\"charge\"}");
    struct task_token read;
    EXPECT_OK(task_token_read(bytes, arena, &read));
    EXPECT_TEXT(read.workflow_id, sample.workflow_id);
    EXPECT_TEXT(read.activity_type, "charge");
    EXPECT_EQ(read.schedule_id, 5);
    EXPECT_EQ(read.schedule_attempt, 2);
}

ARENA_TEST(tokens, a_token_of_another_cluster_is_read_whatever_its_order_and_additions, "A-013")
{
    struct task_token read;
    EXPECT_OK(task_token_read(
        slice_text(" { \"scheduleId\" : -23 , \"new\":{\"a\":[1,2.5e3,\"x\",null,true]},"
                   "\"domainId\":\"\\u0064\\ud83d\\ude00\", \"runId\":null }\n"),
        arena, &read));
    EXPECT_TEXT(read.domain_id, "d\xf0\x9f\x98\x80");
    EXPECT_TEXT(read.run_id, "");
    EXPECT_EQ(read.schedule_id, -23);
}

/* Texts whose end, or whose first byte that is not plain, stands at each place of a word. */
ARENA_TEST(tokens, whatever_stands_in_a_task_token_comes_back)
{
    static const int64_t numbers[] = {0, 9, -10, INT64_MAX, INT64_MIN};
    static const char *const odd[] = {"", "\"", "\\", "\x1f", "\x7f", "\xc3\xa9", "&"};
    for (size_t i = 0; i < 40; i++) {
        struct task_token token = sample, read;
        token.run_id =
            arena_format(arena, "%.*s%s%.*s", (int)i, "abcdefghijklmnopqrstuvwxyzabcdefghijklmn",
                         odd[i % array_length(odd)], (int)(i / 3), "0123456789abcdef");
        token.schedule_id = numbers[i % array_length(numbers)];
        EXPECT_OK(task_token_read(task_token_write(&token, arena), arena, &read));
        EXPECT_TEXT(read.run_id, token.run_id);
        EXPECT_EQ(read.schedule_id, token.schedule_id);
    }
}

ARENA_TEST(tokens, a_malformed_task_token_is_a_bad_request)
{
    static const char *const bad[] = {
        "",
        "x",
        "{",
        "{}",
        "{\"domainId",
        "{\"domainId\"",
        "{\"domainId\"}",
        "{\"domainId\":\"d\"",
        "{\"domainId\":\"d\"} x",
        "{\"domainId\":5}",
        "{\"domainId\":\"d\",}",
        "{\"domainId\":\"d\" \"runId\":\"r\"}",
        "{\"domainId\":\"\\u0000\"}",
        "{\"domainId\":\"\\ud800\"}",
        "{\"domainId\":\"\xff\"}",
        "{\"domainId\":\"a\nb\"}",
        "{\"domainId\":\"d\",\"scheduleId\":1.5}",
        "{\"domainId\":\"d\",\"scheduleId\":99999999999999999999}",
        "{\"domainId\":\"d\",\"scheduleAttempt\":4294967296}",
        "{\"domainId\":\"d\",\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };
    for (size_t i = 0; i < array_length(bad); i++) {
        struct task_token read;
        EXPECT_KIND(task_token_read(slice_text(bad[i]), arena, &read), ERR_BAD_REQUEST);
    }
}

/* One event, as History has it; kind 0: an event without anything. */
static struct slice
event_record(API(HistoryEvent__AttributesCase) kind, struct arena *arena)
{
    API(History) *history = API_NEW(arena, history);
    API(HistoryEvent) *event = API_NEW(arena, history_event, .attributes_case = kind,
                                       .decision_task_scheduled_event_attributes = API_NEW(
                                           arena, decision_task_scheduled_event_attributes));
    history->events = &event;
    history->n_events = 1;
    return message_encode(arena, &history->base);
}
#define SCHEDULED API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_SCHEDULED_EVENT_ATTRIBUTES)

/* What it holds goes into the answer, and is read where the answer has another form. */
ARENA_TEST(tokens, a_page_token_carries_events_of_a_decision_and_nothing_else, "A-228")
{
    const struct {
        struct slice transient;
        bool is_good;
    } cases[] = {
        {{0}, true},
        {event_record(SCHEDULED, arena), true},
        {event_record(0, arena), false},
        {slice_text("\x0a\x01x"), false},
        {slice_text("\x0a\x7f"), false},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        struct history_token read, token = {.run_id = "r",
                                            .first_event_id = 1,
                                            .next_event_id = 2,
                                            .transient = cases[i].transient};
        struct error *err = history_token_read(history_token_write(&token, arena), arena, &read);
        EXPECT_EQ(err == NULL, cases[i].is_good);
        if (err != NULL)
            EXPECT_KIND(err, ERR_BAD_REQUEST);
    }
}

ARENA_TEST(tokens, a_page_token_says_where_to_go_on)
{
    struct history_token token = {
        .run_id = "r-1",
        .first_event_id = 3,
        .next_event_id = 90,
        .is_running = true,
        .position = 41,
        .transient = event_record(SCHEDULED, arena),
        .branch = slice_text("0123456789"),
    };
    struct slice bytes = history_token_write(&token, arena);
    struct history_token read;
    EXPECT_OK(history_token_read(bytes, arena, &read));
    EXPECT_TEXT(read.run_id, "r-1");
    EXPECT_EQ(read.first_event_id, 3);
    EXPECT_EQ(read.next_event_id, 90);
    EXPECT_EQ(read.position, 41);
    EXPECT(read.is_running);
    EXPECT(slice_equal(read.transient, token.transient));
    EXPECT(slice_equal(read.branch, token.branch));
}

#define BEYOND_THE_END                                                                             \
    "{\"RunID\":\"r\",\"FirstEventID\":1,\"NextEventID\":5,"                                       \
    "\"PersistenceToken\":\"AAAAAAAAAAY=\"}"

ARENA_TEST(tokens, a_page_token_that_makes_no_sense_is_a_bad_request, "A-228")
{
    static const char *const bad[] = {
        "",
        "{}",
        "null",
        "{\"RunID\":\"r\",\"FirstEventID\":0,\"NextEventID\":5}",
        "{\"RunID\":\"r\",\"FirstEventID\":9,\"NextEventID\":5}",
        "{\"FirstEventID\":1,\"NextEventID\":5,\"RunID\":\"\",\"BranchToken\":\"\"}",
        BEYOND_THE_END,
        "{\"RunID\":\"r\",\"FirstEventID\":1,\"NextEventID\":5,\"PersistenceToken\":\"AAAA\"}",
        "{\"RunID\":\"r\",\"FirstEventID\":1,\"NextEventID\":5,\"BranchToken\":\"*\"}",
    };
    for (size_t i = 0; i < array_length(bad); i++) {
        struct history_token read;
        struct error *err = history_token_read(slice_text(bad[i]), arena, &read);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT_TEXT(err->message, "Invalid NextPageToken.");
    }
}

ARENA_TEST(tokens, a_query_token_is_json_with_the_names_of_cadence, "A-013")
{
    struct query_token token = {.domain_id = "d-1",
                                .workflow_id = "w \"1\"",
                                .run_id = "r-1",
                                .list = "list",
                                .query_id = "q-1"};
    struct slice bytes = query_token_write(&token, arena);
    EXPECT_TEXT(arena_text_of(arena, bytes),
                "{\"domainId\":\"d-1\",\"workflowId\":\"w \\\"1\\\"\",\"runId\":\"r-1\","
                "\"taskList\":\"list\",\"taskId\":\"q-1\"}");
    struct query_token read;
    EXPECT_OK(query_token_read(bytes, arena, &read));
    EXPECT_TEXT(read.workflow_id, "w \"1\"");
    EXPECT_TEXT(read.list, "list");
    EXPECT_TEXT(read.query_id, "q-1");
    static const char *const bad[] = {"", "{}", "[]", "{\"domainId\":\"d\",\"taskList\":\"l\"}"};
    for (size_t i = 0; i < array_length(bad); i++)
        EXPECT_KIND(query_token_read(slice_text(bad[i]), arena, &read), ERR_BAD_REQUEST);
}
