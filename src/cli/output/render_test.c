/* render_test.c - messages as JSON and as text: golden outputs. */
#include "cli/output/render.h"

#include "base/test.h"
#include "cli/output/table.h"
#include "cli/workflow/run_list.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define NS   1000000000LL
#define TIME (1794000000LL * NS)

/* Lets go of the JSON; its text. */
static const char *
text_of(json_t *json, struct arena *arena)
{
    const char *text = render_compact(json, arena);
    json_decref(json);
    return text;
}

static API(HistoryEvent) *
make_failed(struct arena *arena)
{
    return API_NEW(
        arena, history_event, .event_id = 7,
        .event_time = presence_make_timestamp(arena, TIME + 250000000), .version = 11,
        .attributes_case = 7,
        .workflow_execution_failed_event_attributes = API_NEW(
            arena, workflow_execution_failed_event_attributes,
            .failure = API_NEW(arena, failure, .reason = "poor",
                               .details = presence_make_bytes(slice_text("{\"missing\": 5}")))));
}

ARENA_TEST(render, an_event_is_the_json_that_replayers_read)
{
    API(HistoryEvent) *event = make_failed(arena);
    EXPECT_TEXT(text_of(render_message(&event->base, RENDER_CADENCE, arena), arena),
                "{\"eventId\":7,\"timestamp\":1794000000250000000,"
                "\"eventType\":\"WorkflowExecutionFailed\",\"version\":11,"
                "\"workflowExecutionFailedEventAttributes\":"
                "{\"reason\":\"poor\",\"details\":\"eyJtaXNzaW5nIjogNX0=\"}}");
}

ARENA_TEST(render, people_see_dates_and_what_payloads_hold)
{
    API(HistoryEvent) *event = make_failed(arena);
    EXPECT_TEXT(text_of(render_message(&event->base, RENDER_READABLE, arena), arena),
                "{\"eventId\":7,\"timestamp\":\"2026-11-06T21:20:00.25Z\","
                "\"eventType\":\"WorkflowExecutionFailed\",\"version\":11,"
                "\"workflowExecutionFailedEventAttributes\":"
                "{\"reason\":\"poor\",\"details\":{\"missing\":5}}}");
}

ARENA_TEST(render, a_payload_is_json_or_text_or_base64)
{
    static const struct {
        struct slice bytes;
        const char *shown;
    } cases[] = {
        {SLICE_LITERAL("[1,2]"), "[1,2]"}, {SLICE_LITERAL("\"x\""), "\"x\""},
        {SLICE_LITERAL("1 2"), "\"1 2\""}, {SLICE_LITERAL("\xff\xfe"), "\"//4=\""},
        {SLICE_LITERAL(""), "\"\""},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        API(Payload) *payload =
            presence_make_payload(arena, (struct maybe_bytes){true, cases[i].bytes});
        EXPECT_TEXT(text_of(render_payload(payload, RENDER_READABLE, arena), arena),
                    cases[i].shown);
    }
}

ARENA_TEST(render, a_line_names_members_cuts_them_and_cannot_steer_a_terminal)
{
    json_t *json =
        json_pack("{s:s, s:[i,i], s:s}", "name", "a\033[2Jb", "list", 1, 2, "long", "äöüäöü");
    EXPECT_TEXT(render_line(json, 0, arena), "name: a?[2Jb, list: [1,2], long: äöüäöü");
    EXPECT_TEXT(render_line(json, 3, arena), "name: a?[…, list: [1,…, long: ä…");
    json_decref(json);
}

ARENA_TEST(render, spans_are_short)
{
    static const struct {
        int64_t span;
        const char *shown;
    } cases[] = {{0, "0s"},         {999999, "0s"},      {5000000, "5ms"},     {1234567890, "1.2s"},
                 {61 * NS, "1m1s"}, {7260 * NS, "2h1m"}, {90000 * NS, "1d1h"}, {-2 * NS, "-2.0s"}};
    for (size_t i = 0; i < array_length(cases); i++)
        EXPECT_TEXT(render_span(cases[i].span, arena), cases[i].shown);
    EXPECT_TEXT(render_time(-NS / 2, arena), "1969-12-31T23:59:59.5Z");
}

ARENA_TEST(render, the_status_of_a_run_is_open_until_it_is_closed)
{
    API(WorkflowExecutionInfo) *info = API_NEW(
        arena, workflow_execution_info, .close_status = 1 /* some servers say so of open ones */);
    EXPECT_TEXT(run_list_status(info, arena), "OPEN");
    info->close_time = presence_make_timestamp(arena, TIME);
    EXPECT_TEXT(run_list_status(info, arena), "COMPLETED");
}

ARENA_TEST(render, an_item_of_a_list_is_shown_even_if_it_is_zero)
{
    int32_t shards[] = {0, 7};
    ADMIN(DescribeHistoryHostResponse) *host =
        ADMIN_NEW(arena, describe_history_host_response, .shard_ids = shards,
                  .n_shard_ids = array_length(shards));
    EXPECT_TEXT(text_of(render_message(&host->base, RENDER_READABLE, arena), arena),
                "{\"shardIds\":[0,7]}");
}
