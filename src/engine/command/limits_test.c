/* Limits of a run's history. */
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIRST_THREE "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted"

static const API(HistoryEvent) *
last_event(const struct fixture *fixture)
{
    const struct fixture_run *run = &fixture->runs[0];
    return run->events.items[run->events.count - 1];
}

/* Signals come, then the worker decides something harmless. */
static void
decide_after(struct fixture *fixture, int signals)
{
    fixture_begin(fixture);
    for (int i = 0; i < signals; i++)
        EXPECT_OK(fixture_signal(fixture, "more", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m")));
}

static void
expect_too_long(const struct fixture *fixture)
{
    const API(HistoryEvent) *last = last_event(fixture);
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    const API(Failure) *failure = last->workflow_execution_failed_event_attributes->failure;
    EXPECT_TEXT(failure->reason, "HISTORY_EXCEEDS_LIMIT");
    EXPECT(slice_equal(presence_read_bytes(failure->details),
                       slice_text("Workflow history size / count exceeds limit.")));
    EXPECT(!run_is_open(fixture_run(fixture)));
}

TEST(limits, a_run_with_too_many_events_fails_when_it_decides, "A-250")
{
    for (int i = 0; i < 2; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        fixture_configure(fixture, "limit.historyCount.error: [{value: 20}]\n");
        decide_after(fixture, 16 + i); /* 20 or 21 events, with those of the decision */
        if (i == 1)
            expect_too_long(fixture);
        else
            EXPECT(run_is_open(fixture_run(fixture)));
    }
}

COMMAND_TEST(limits, a_run_with_too_many_bytes_fails_when_it_decides, "A-250")
{
    fixture_configure(fixture, "limit.historySize.error: [{value: 2000}]\n");
    decide_after(fixture, 50);
    expect_too_long(fixture);
}

/* A limit is not a reason to try again. */
COMMAND_TEST(limits, a_run_that_is_too_long_is_not_followed_by_another, "A-250")
{
    fixture_configure(fixture, "limit.historyCount.error: [{value: 3}]\n");
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->cron_schedule = (char *)"@every 10s";
    EXPECT_OK(fixture_start(fixture, request));
    fixture_advance(fixture, 10);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT_EQ(fixture->run_count, 1);
    expect_too_long(fixture);
}

/* Far more than where Cadence begins to warn. */
COMMAND_TEST(limits, a_run_below_the_limits_is_left_in_peace, "A-253")
{
    fixture_configure(fixture, "limit.historyCount.warn: [{value: 5}]\n"
                               "limit.historySize.warn: [{value: 50}]\n");
    decide_after(fixture, 100);
    EXPECT(run_is_open(fixture_run(fixture)));
}

TEST(limits, a_list_that_makes_too_much_history_ends_the_run, "A-252")
{
    for (int i = 0; i < 2; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        fixture_configure(fixture, "system.transactionSizeLimit: [{value: 5000}]\n");
        fixture_begin(fixture);
        EXPECT(fixture_poll_decision(fixture));
        API(Decision) *marker = fixture_marker(fixture, "m");
        API(Decision) *last = fixture_continue_as_new(fixture);
        char *bytes = arena_zalloc(fixture->arena, 1, 6000);
        memset(bytes, 'x', 5999);
        marker->record_marker_decision_attributes->details = fixture_payload(fixture, bytes);
        struct error *err =
            i == 0 ? fixture_complete(fixture, marker) : fixture_complete(fixture, marker, last);
        EXPECT_KIND(err, ERR_BAD_REQUEST); /* the step happens, and the worker is told */
        EXPECT(strstr(err->message, " exceeds limit of 5000 bytes") != NULL);
        EXPECT_EQ(fixture->run_count, 1);
        EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionTerminated");
        const API(WorkflowExecutionTerminatedEventAttributes) *terminated =
            last_event(fixture)->workflow_execution_terminated_event_attributes;
        EXPECT_TEXT(terminated->reason, "TRANSACTION_SIZE_EXCEEDS_LIMIT");
        EXPECT_TEXT(terminated->identity, "history-service");
    }
}
