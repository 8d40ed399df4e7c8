/* raw_test.c - history in blobs, for clients that can read them. */
#include "api/test/fixture.h"
#include "wire/names.h"
#include "wire/thrift.h"

#define HEADER(name_, value_)                                                                      \
    {                                                                                              \
        SLICE_LITERAL(name_), SLICE_LITERAL(value_)                                                \
    }

static const struct call_header go_client[] = {HEADER("cadence-client-name", "uber-go"),
                                               HEADER("cadence-client-feature-version", "1.6.0")};
static const struct call_header old_client[] = {HEADER("cadence-client-name", "uber-go"),
                                                HEADER("cadence-client-feature-version", "1.5.9")};

static API(GetWorkflowExecutionHistoryResponse) *
read_as(struct fixture *fixture, const struct call_header headers[2],
        const API(GetWorkflowExecutionHistoryRequest) *request)
{
    fixture->headers = headers;
    fixture->header_count = headers == NULL ? 0 : 2;
    API(GetWorkflowExecutionHistoryResponse) *response = read_history(fixture, request);
    fixture->header_count = 0;
    return response;
}

/* A run that has ended after a decision with a marker: batches 1-2, 3, 4-5. */
static void
ended_run(struct fixture *fixture)
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
}

/* The events of the blobs are those that a client without blobs gets. */
static void
expect_same(struct fixture *fixture, const API(GetWorkflowExecutionHistoryResponse) *raw,
            API(HistoryEvent) **plain, size_t count)
{
    size_t seen = 0;
    EXPECT_EQ(raw->history->n_events, 0);
    for (size_t i = 0; i < raw->n_raw_history; i++) {
        API(HistoryEvent) **events;
        size_t in_blob;
        EXPECT_EQ(raw->raw_history[i]->encoding_type,
                  API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW));
        EXPECT_OK(thrift_decode_history(fixture->arena, ERR_BAD_REQUEST,
                                        presence_read_bytes(raw->raw_history[i]->data), &events,
                                        &in_blob));
        for (size_t j = 0; j < in_blob; j++, seen++) {
            EXPECT(seen < count);
            EXPECT(slice_equal(message_encode(fixture->arena, &events[j]->base),
                               message_encode(fixture->arena, &plain[seen]->base)));
        }
    }
    EXPECT_EQ(seen, count);
}

static void
blobs(struct fixture *fixture)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    ended_run(fixture);
    API(GetWorkflowExecutionHistoryResponse) *plain = read_as(fixture, go_client, request);
    EXPECT_EQ(plain->n_raw_history, 0); /* it is not switched on */
    fixture_set(fixture, "frontend.sendRawWorkflowHistory:\n- value: true\n");
    EXPECT_EQ(read_as(fixture, NULL, request)->n_raw_history, 0);
    EXPECT_EQ(read_as(fixture, old_client, request)->history->n_events, plain->history->n_events);
    API(GetWorkflowExecutionHistoryResponse) *raw = read_as(fixture, go_client, request);
    EXPECT_EQ(raw->n_raw_history, 3);
    expect_same(fixture, raw, plain->history->events, plain->history->n_events);

    request->page_size = 1;
    raw = read_as(fixture, go_client, request);
    EXPECT_EQ(raw->n_raw_history, 1);
    expect_same(fixture, raw, plain->history->events, 2);
    request->next_page_token = raw->next_page_token;
    raw = read_as(fixture, go_client, request);
    expect_same(fixture, raw, plain->history->events + 2, 1);
}

TEST(raw_history, a_client_that_can_read_them_gets_blobs_with_the_same_events, "A-234")
{
    fixture_run(blobs);
}

/* A failed decision is tried again without events in the store; they come behind the others. */
SERVER_TEST(raw_history, the_events_of_a_decision_that_is_tried_again_are_a_blob_of_their_own,
            "A-234")
{
    fixture_set(fixture, "frontend.sendRawWorkflowHistory:\n- value: true\n"
                         "frontend.historyMaxPageSize:\n- value: 1\n");
    run_start(fixture, "wf");
    EXPECT_OK(API_CALL(fixture, NULL, respond_decision_task_failed,
                       .task_token = poll_decision(fixture, "work")->task_token));
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->attempt, 1);
    EXPECT_EQ(task->history->n_events, 2); /* a decision never comes in blobs */
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    API(HistoryEvent) **events = NULL;
    size_t count = 0;
    request->next_page_token = task->next_page_token;
    while (request->next_page_token.len > 0) {
        API(GetWorkflowExecutionHistoryResponse) *page = read_as(fixture, go_client, request);
        EXPECT(page->n_raw_history > 0);
        struct slice last = presence_read_bytes(page->raw_history[page->n_raw_history - 1]->data);
        EXPECT_OK(thrift_decode_history(fixture->arena, ERR_BAD_REQUEST, last, &events, &count));
        request->next_page_token = page->next_page_token;
    }
    EXPECT_EQ(count, 2);
    EXPECT_EQ(events[0]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_SCHEDULED_EVENT_ATTRIBUTES));
    EXPECT_EQ(events[1]->event_id, task->started_event_id);
}

SERVER_TEST(raw_history, of_the_close_event_the_blob_that_holds_it, "A-234")
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    ended_run(fixture);
    API(GetWorkflowExecutionHistoryResponse) *plain = read_as(fixture, go_client, request);
    fixture_set(fixture, "frontend.sendRawWorkflowHistory:\n- value: true\n");
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    API(GetWorkflowExecutionHistoryResponse) *raw = read_as(fixture, go_client, request);
    EXPECT_EQ(raw->n_raw_history, 1);
    expect_same(fixture, raw, plain->history->events + 3, 2);
}
