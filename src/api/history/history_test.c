/* history_test.c - histories as clients read them. */
#include "api/call/tokens.h"
#include "api/test/fixture.h"
#include "fiber/sync.h"
#include "wire/names.h"

static void
end_run(struct fixture *fixture)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
}

static API(GetWorkflowExecutionHistoryRequest) *
waiting_request(struct fixture *fixture, bool is_close_only)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    request->wait_for_new_event = true;
    if (is_close_only)
        request->history_event_filter_type =
            API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    return request;
}

SERVER_TEST(history, it_comes_in_pages_of_whole_batches_until_the_token_is_empty, "A-228", "A-229")
{
    run_start(fixture, "wf");
    for (int i = 0; i < 9; i++)
        run_signal(fixture, "wf", "go");
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
    EXPECT_EQ(read_history(fixture, request)->history->n_events, 11);
    EXPECT_EQ(read_history(fixture, request)->next_page_token.len, 0);
    request->page_size = 3;
    int64_t next = 1;
    int count = 0;
    do {
        API(GetWorkflowExecutionHistoryResponse) *page = read_history(fixture, request);
        /* The batch of the start has two events; a page of three batches is never cut. */
        EXPECT_EQ(page->history->n_events, count == 0 ? 4 : next == 11 ? 1 : 3);
        for (size_t i = 0; i < page->history->n_events; i++)
            EXPECT_EQ(page->history->events[i]->event_id, next++);
        request->next_page_token = page->next_page_token;
        run_signal(fixture, "wf", "late"); /* the first page fixed where it ends */
        count++;
    } while (request->next_page_token.len > 0);
    EXPECT_EQ(next, 12);
    EXPECT_EQ(count, 4);
}

SERVER_TEST(history, a_token_of_another_run_or_of_nobody_is_refused, "A-228")
{
    run_start(fixture, "wf");
    for (int i = 0; i < 3; i++)
        run_signal(fixture, "wf", "go");
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "wf");
#define READ fixture_call(fixture, request, NULL)
    request->page_size = 1;
    request->next_page_token = read_history(fixture, request)->next_page_token;
    request->workflow_execution->run_id = fixture_uuid(fixture);
    struct error *err = READ;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "RunID in the request does not match the NextPageToken.");
    request->workflow_execution->run_id = "";
    struct slice good = presence_read_bytes(request->next_page_token);
    request->next_page_token = presence_make_bytes(slice_text("garbage"));
    err = READ;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Invalid NextPageToken.");
    struct history_token forged; /* points between the two events that the run began with */
    EXPECT_OK(history_token_read(good, fixture->arena, &forged));
    forged.position = 2;
    request->next_page_token = presence_make_bytes(history_token_write(&forged, fixture->arena));
    err = READ;
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Invalid NextPageToken.");
    request->next_page_token = (ProtobufCBinaryData){0};
    request->workflow_execution->workflow_id = "nobody";
    EXPECT_KIND(READ, ERR_ENTITY_NOT_EXISTS);
}

struct reader {
    struct fixture *fixture;
    API(GetWorkflowExecutionHistoryRequest) *request;
    API(GetWorkflowExecutionHistoryResponse) *response;
    struct latch done;
    int64_t took;
};

static void
reader_run(void *argument)
{
    struct reader *reader = argument;
    int64_t began = clock_monotonic();
    reader->response = read_history(reader->fixture, reader->request);
    reader->took = clock_monotonic() - began;
    latch_done(&reader->done);
}

static void
reader_start(struct reader *reader, struct fixture *fixture,
             API(GetWorkflowExecutionHistoryRequest) *request)
{
    *reader = (struct reader){.fixture = fixture, .request = request};
    latch_init(&reader->done, 1);
    fiber_start("reader", reader_run, reader);
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
}

SERVER_TEST(history, a_reader_that_waits_gets_events_as_they_come_and_no_token_after_the_end,
            "A-230")
{
    fixture->timeout = 60 * NS_PER_S;
    run_start(fixture, "wf");
    API(GetWorkflowExecutionHistoryRequest) *request = waiting_request(fixture, false);
    API(GetWorkflowExecutionHistoryResponse) *page = read_history(fixture, request);
    EXPECT_EQ(page->history->n_events, 2); /* what is there comes at once */
    EXPECT(page->next_page_token.len > 0);
    request->next_page_token = page->next_page_token;

    struct reader reader;
    reader_start(&reader, fixture, request);
    EXPECT_EQ(reader.done.open, 1); /* it waits */
    run_signal(fixture, "wf", "go");
    latch_wait(&reader.done);
    EXPECT(reader.took < 2 * NS_PER_S);
    EXPECT_EQ(reader.response->history->n_events, 1);
    EXPECT_EQ(reader.response->history->events[0]->event_id, 3);
    request->next_page_token = reader.response->next_page_token;

    page = read_history(fixture, request); /* nothing happens for twenty seconds */
    EXPECT_EQ(page->history->n_events, 0);
    EXPECT(page->next_page_token.len > 0);
    request->next_page_token = page->next_page_token;
    end_run(fixture);
    while (request->next_page_token.len > 0) {
        page = read_history(fixture, request);
        EXPECT(page->history->n_events > 0);
        request->next_page_token = page->next_page_token;
    }
    EXPECT_EQ(page->history->events[page->history->n_events - 1]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES));
}

SERVER_TEST(history, a_wait_ends_with_an_empty_page_in_time, "A-230")
{
    fixture->timeout = 60 * NS_PER_S;
    run_start(fixture, "wf");
    API(GetWorkflowExecutionHistoryRequest) *request = waiting_request(fixture, false);
    request->next_page_token = read_history(fixture, request)->next_page_token;
    int64_t began = clock_monotonic();
    EXPECT_EQ(read_history(fixture, request)->history->n_events, 0);
    int64_t took = clock_monotonic() - began;
    EXPECT(took > 19900 * NS_PER_MS && took < 20500 * NS_PER_MS);
    fixture->timeout = 3 * NS_PER_S; /* shorter than the server would wait: answered before */
    began = clock_monotonic();
    EXPECT_EQ(read_history(fixture, request)->history->n_events, 0);
    EXPECT(clock_monotonic() - began > 2800 * NS_PER_MS);
}

SERVER_TEST(history, the_close_filter_gives_exactly_the_last_event_of_a_closed_run, "A-231")
{
    fixture->timeout = 60 * NS_PER_S;
    const char *run_id = run_start(fixture, "wf");
    API(GetWorkflowExecutionHistoryRequest) *request = waiting_request(fixture, true);
    request->wait_for_new_event = false;
    API(GetWorkflowExecutionHistoryResponse) *page = read_history(fixture, request);
    EXPECT_EQ(page->history->n_events, 0);
    EXPECT_EQ(page->next_page_token.len, 0);

    request->wait_for_new_event = true;
    page = read_history(fixture, request); /* it stays open for twenty seconds */
    EXPECT_EQ(page->history->n_events, 0);
    EXPECT(page->next_page_token.len > 0);
    request->next_page_token = page->next_page_token;
    struct reader reader;
    reader_start(&reader, fixture, request);
    run_signal(fixture, "wf", "go"); /* no close: it goes on waiting */
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    EXPECT_EQ(reader.done.open, 1);
    end_run(fixture);
    latch_wait(&reader.done);
    EXPECT(reader.took < 5 * NS_PER_S);
    EXPECT_EQ(reader.response->history->n_events, 1);
    EXPECT_EQ(reader.response->next_page_token.len, 0);

    request->next_page_token = (ProtobufCBinaryData){0};
    request->workflow_execution->run_id = (char *)run_id;
    page = read_history(fixture, request);
    EXPECT_EQ(page->history->n_events, 1);
    EXPECT_EQ(page->next_page_token.len, 0);
    EXPECT_EQ(page->history->events[0]->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES));
}

SERVER_TEST(history, readers_that_wait_are_answered_when_the_server_drains)
{
    fixture->timeout = 60 * NS_PER_S;
    run_start(fixture, "wf");
    struct reader reader;
    reader_start(&reader, fixture, waiting_request(fixture, true));
    api_drain(fixture->api);
    latch_wait(&reader.done);
    EXPECT(reader.took < 2 * NS_PER_S);
    EXPECT(reader.response->next_page_token.len > 0);
}

/* The readers' connection goes away while they wait; fixture_run sees what is left behind. */
static void
reader_cancelled(void *argument)
{
    struct reader *reader = argument;
    struct error *err = fixture_call(reader->fixture, reader->request, NULL);
    EXPECT_KIND(err, ERR_CANCELLED);
    latch_done(&reader->done);
}

SERVER_TEST(history, a_reader_may_go_away_at_any_moment)
{
    run_start(fixture, "wf");
    struct reader reader = {.fixture = fixture, .request = waiting_request(fixture, true)};
    for (int i = 0; i < 8; i++) {
        latch_init(&reader.done, 1);
        struct fiber *fiber = fiber_start("reader", reader_cancelled, &reader);
        EXPECT_OK(fiber_sleep((int64_t)entropy_below(20 * NS_PER_MS), fixture->arena));
        fiber_cancel(fiber);
        latch_wait(&reader.done);
    }
    end_run(fixture);
}

SERVER_TEST(history, a_run_is_described, "A-029", "A-237", "A-238", "A-239")
{
    const char *run_id = run_start(fixture, "wf");
    const API(DescribeWorkflowExecutionResponse) *response = run_describe(fixture, "wf", "");
    const API(WorkflowExecutionInfo) *info = response->workflow_execution_info;
    EXPECT_TEXT(info->workflow_execution->run_id, run_id);
    EXPECT_TEXT(info->type->name, "order");
    EXPECT_EQ(info->history_length, 2);
    EXPECT(info->start_time != NULL && info->close_time == NULL);
    EXPECT_TEXT(response->execution_configuration->task_list->name, "work");
    EXPECT_EQ(response->execution_configuration->execution_start_to_close_timeout->seconds, 600);
    EXPECT_EQ(response->pending_decision->state,
              API_VALUE(PENDING_DECISION_STATE__PENDING_DECISION_STATE_SCHEDULED));
    end_run(fixture);
    response = run_describe(fixture, "wf", "");
    info = response->workflow_execution_info;
    EXPECT_EQ(
        info->close_status,
        API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_COMPLETED));
    EXPECT(info->close_time != NULL && response->pending_decision == NULL);
    EXPECT_EQ(info->history_length, 5);
}

static API(WorkflowExecutionInfo) *
describe_id(struct fixture *fixture, const char *workflow_id)
{
    API(DescribeWorkflowExecutionResponse) *response = run_describe(fixture, workflow_id, "");
    EXPECT(response->pending_decision == NULL || !response->workflow_execution_info->is_cron);
    return response->workflow_execution_info;
}

SERVER_TEST(history, a_run_by_a_schedule_is_described_with_it, "A-189", "A-237")
{
    const API(CronOverlapPolicy) policy =
        API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE);
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "cron");
    start->cron_schedule = "@every 1h";
    start->cron_overlap_policy = policy;
    run_start_by(fixture, start);
    run_start(fixture, "plain");
    EXPECT(!describe_id(fixture, "plain")->is_cron);
    for (int i = 0; i < 2; i++) { /* open, then terminated */
        API(WorkflowExecutionInfo) *info = describe_id(fixture, "cron");
        EXPECT(info->is_cron);
        EXPECT_TEXT(info->cron_schedule, "@every 1h");
        EXPECT_EQ(info->cron_overlap_policy, policy);
        EXPECT_EQ(info->execution_time->seconds - info->start_time->seconds, 3600);
        EXPECT_EQ(info->close_time != NULL, i == 1);
        if (i == 0)
            terminate_run(fixture, "cron");
    }
}

SERVER_TEST(history, without_a_run_id_the_current_run_is_meant, "A-132")
{
    const char *first = run_start(fixture, "wf");
    end_run(fixture);
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    const char *run_id = run_start_by(fixture, request);
    run_signal(fixture, "wf", "go"); /* names no run */
    API(GetWorkflowExecutionHistoryRequest) *history = fixture_history(fixture, "wf");
    EXPECT_EQ(read_history(fixture, history)->history->n_events, 3);
    history->workflow_execution->run_id = (char *)run_id;
    EXPECT_EQ(read_history(fixture, history)->history->n_events, 3);
    history->workflow_execution->run_id = (char *)first;
    EXPECT_EQ(read_history(fixture, history)->history->n_events, 5);
}
