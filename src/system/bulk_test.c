/* bulk_test.c - batch jobs in a whole server, as Cadence's tools start them. */
#include "system/bulk.h"

#include "base/json.h"
#include "engine/run/mutation.h"
#include "system/test_fixture.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

/* --- a batch ---- */

static const char *
params(struct fixture *fixture, const char *verb, const char *more)
{
    return arena_format(fixture->arena,
                        "{\"DomainName\":\"orders\",\"Query\":\"WorkflowType = 'order' and "
                        "CloseTime = missing\",\"Reason\":\"tidy\",\"BatchType\":\"%s\"%s}",
                        verb, more);
}

static const char *
start_batch(struct fixture *fixture, const char *id, const char *type, const char *input)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, id);
    start->domain = BULK_DOMAIN;
    start->workflow_type->name = (char *)type;
    start->task_list = fixture_list(fixture, BULK_LIST);
    start->input = fixture_payload(fixture, input);
    start->execution_start_to_close_timeout = presence_make_duration(fixture->arena, BULK_FOREVER);
    API(StartWorkflowExecutionResponse) *started = fixture_ok(fixture, start);
    return started->run_id;
}

static const API(HistoryEvent) *
wait_closed(struct fixture *fixture, const char *id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, id);
    request->domain = BULK_DOMAIN;
    request->wait_for_new_event = true;
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    for (;;) {
        API(GetWorkflowExecutionHistoryResponse) *read = read_history(fixture, request);
        if (read->history->n_events > 0)
            return read->history->events[0];
        request->next_page_token = read->next_page_token;
    }
}

static struct bulk_progress
wait_done(struct fixture *fixture, const char *id)
{
    const API(HistoryEvent) *last = wait_closed(fixture, id);
    struct bulk_progress progress;
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT(bulk_read_progress(
        presence_read_payload(last->workflow_execution_completed_event_attributes->result).bytes,
        fixture->arena, &progress));
    return progress;
}

static API(DescribeWorkflowExecutionResponse) *
describe(struct fixture *fixture, const char *domain, const char *id)
{
    return API_OK(fixture, describe_workflow_execution, .domain = (char *)domain,
                  .workflow_execution = fixture_execution(fixture, id));
}

/* --- the runs that it is about ---- */

static const char *
name(struct fixture *fixture, int number)
{
    return arena_format(fixture->arena, "wf-%03d", number);
}

static void
start_runs(struct fixture *fixture, int count)
{
    for (int i = 0; i < count; i++)
        run_start(fixture, name(fixture, i));
}

static int
count_events(struct fixture *fixture, const char *id, int kind)
{
    const API(History) *history = read_history(fixture, fixture_history(fixture, id))->history;
    int count = 0;
    for (size_t i = 0; i < history->n_events; i++)
        count += (int)history->events[i]->attributes_case == kind;
    return count;
}

/* --- stories ---- */

SERVER_TEST(batch, all_runs_that_the_query_finds_are_terminated, "A-263")
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    start_runs(fixture, 30);
    start_batch(fixture, "job", BULK_TYPE_V2, params(fixture, "terminate", ",\"PageSize\":7"));
    struct bulk_progress done = wait_done(fixture, "job");
    EXPECT_EQ(done.total, 30);
    EXPECT_EQ(done.success, 30);
    EXPECT_EQ(done.error, 0);
    for (int i = 0; i < 30; i++)
        EXPECT_EQ(
            count_events(fixture, name(fixture, i), EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED)), 1);
}

SERVER_TEST(batch, runs_are_signalled_refreshed_and_cancelled_once, "A-263")
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    start_runs(fixture, 10);
    start_batch(
        fixture, "signals", BULK_TYPE,
        params(fixture, "signal", ",\"SignalParams\":{\"SignalName\":\"go\",\"Input\":\"5\"}"));
    EXPECT_EQ(wait_done(fixture, "signals").success, 10);
    start_batch(fixture, "refreshes", BULK_TYPE, params(fixture, "refresh", ""));
    EXPECT_EQ(wait_done(fixture, "refreshes").success, 10);
    start_batch(fixture, "cancels", BULK_TYPE, params(fixture, "cancel", ""));
    EXPECT_EQ(wait_done(fixture, "cancels").success, 10);
    for (int i = 0; i < 10; i++) {
        const char *id = name(fixture, i);
        EXPECT_EQ(count_events(fixture, id, EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED)), 1);
        EXPECT_EQ(count_events(fixture, id, EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED)), 1);
    }
}

/* Ten a second, so that it can be watched. */
static void
watched(struct fixture *fixture)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    start_runs(fixture, 100);
    int64_t began = clock_monotonic();
    start_batch(fixture, "job", BULK_TYPE_V2,
                params(fixture, "terminate", ",\"RPS\":10,\"Concurrency\":3"));
    int64_t seen = 0;
    while (seen < 60) {
        struct bulk_progress progress;
        EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
        const API(DescribeWorkflowExecutionResponse) *job = describe(fixture, BULK_DOMAIN, "job");
        EXPECT_EQ(job->n_pending_activities, 1);
        EXPECT(bulk_read_progress(
            presence_read_payload(job->pending_activities[0]->heartbeat_details).bytes,
            fixture->arena, &progress));
        EXPECT(progress.success >= seen);
        EXPECT_EQ(progress.total, 100);
        seen = progress.success;
        EXPECT(seen <= 10 + 10 * (clock_monotonic() - began) / NS_PER_S);
    }
    EXPECT_OK(
        API_CALL(fixture, NULL, signal_workflow_execution, .domain = BULK_DOMAIN,
                 .workflow_execution = fixture_execution(fixture, "job"), .signal_name = BULK_TUNE,
                 .request_id = fixture_uuid(fixture),
                 .signal_input = fixture_payload(fixture, "{\"RPS\":1000,\"Concurrency\":9}")));
    int64_t tuned = clock_monotonic();
    EXPECT_EQ(wait_done(fixture, "job").success, 100);
    EXPECT(clock_monotonic() - tuned < 3 * NS_PER_S);
}

TEST(batch, a_batch_shows_its_progress_keeps_its_rate_and_can_be_tuned, "A-263")
{
    fixture_run(watched);
}

static int
count_open(struct fixture *fixture, int count)
{
    int open = 0;
    for (int i = 0; i < count; i++)
        open +=
            describe(fixture, "orders", name(fixture, i))->workflow_execution_info->close_status ==
            0;
    return open;
}

SERVER_TEST(batch, a_batch_that_is_terminated_stops, "A-263")
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    start_runs(fixture, 60);
    start_batch(fixture, "job", BULK_TYPE_V2, params(fixture, "terminate", ",\"RPS\":10"));
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, fixture->arena));
    EXPECT_OK(API_CALL(fixture, NULL, terminate_workflow_execution, .domain = BULK_DOMAIN,
                       .workflow_execution = fixture_execution(fixture, "job")));
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, fixture->arena));
    int open = count_open(fixture, 60);
    EXPECT(open > 10 && open < 60);
    EXPECT_OK(fiber_sleep(20 * NS_PER_S, fixture->arena));
    EXPECT_EQ(count_open(fixture, 60), open);
}

SERVER_TEST(batch, what_can_never_be_done_fails_at_once, "A-263")
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    start_batch(fixture, "bad", BULK_TYPE_V2, params(fixture, "dance", ""));
    const API(HistoryEvent) *last = wait_closed(fixture, "bad");
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    EXPECT_TEXT(
        arena_text_of(fixture->arena,
                      presence_read_bytes(
                          last->workflow_execution_failed_event_attributes->failure->details)),
        "not supported batch type: dance");
    start_batch(fixture, "far", BULK_TYPE_V2,
                params(fixture, "replicate",
                       ",\"ReplicateParams\":{\"SourceCluster\":\"a\",\"TargetCluster\":\"b\"}"));
    last = wait_closed(fixture, "far");
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    start_batch(fixture, "none", BULK_TYPE_V2, params(fixture, "cancel", ""));
    EXPECT_EQ(wait_done(fixture, "none").success, 0);
}

/* One run takes no more signals: it is tried so often, then counted, and the others are done. */
SERVER_TEST(batch, a_run_that_fails_is_tried_again_then_counted_and_final_errors_are_not_tried,
            "A-263")
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    fixture_set(fixture, "history.maximumSignalsPerExecution: [{value: 1}]\n");
    start_runs(fixture, 5);
    EXPECT_OK(API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                       .workflow_execution = fixture_execution(fixture, name(fixture, 2)),
                       .signal_name = "first", .request_id = fixture_uuid(fixture)));
#define GO ",\"SignalParams\":{\"SignalName\":\"go\",\"Input\":\"5\"}"
    int64_t began = clock_monotonic();
    start_batch(fixture, "tries", BULK_TYPE_V2,
                params(fixture, "signal", GO ",\"AttemptsOnRetryableError\":4"));
    struct bulk_progress done = wait_done(fixture, "tries");
    EXPECT_EQ(done.success, 4);
    EXPECT_EQ(done.error, 1);
    int64_t with_tries = clock_monotonic() - began;
    began = clock_monotonic();
    start_batch(fixture, "final", BULK_TYPE_V2,
                params(fixture, "signal",
                       GO ",\"NonRetryableErrors\":[\"exceeded workflow execution limit for signal "
                          "events\"]"));
    done = wait_done(fixture, "final");
    EXPECT_EQ(done.error, 5);
    EXPECT(clock_monotonic() - began < with_tries);
}
