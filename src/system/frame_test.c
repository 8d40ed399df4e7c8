/* frame_test.c - the server's own workers, with workflows made for the purpose. */
#include "engine/run/mutation.h"
#include "system/fold.h"
#include "system/inside.h"
#include "system/test_fixture.h"

#define LIST "cadence-sys-test"

/* --- a workflow that counts signals, until it is asked to work ---- */

struct counter {
    int64_t signals;
    bool is_signalled, is_working, is_cancel_asked, is_cancel_requested;
    struct fold_end end;
};

static void
fold(void *context, const API(HistoryEvent) *event, struct arena *arena)
{
    struct counter *counter = context;
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED):
        counter->signals++;
        counter->is_signalled =
            counter->is_signalled ||
            strcmp(event->workflow_execution_signaled_event_attributes->signal_name, "work") == 0;
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED):
        counter->is_cancel_requested = true;
        break;
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED):
        counter->is_working = true;
        break;
    case EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED):
        counter->is_cancel_asked = true;
        break;
    default:
        fold_activity_end(&counter->end, event, arena);
        break;
    }
}

static void
work(const char *type, struct system_decider *decider)
{
    system_schedule(decider, &(struct system_activity_order){
                                 .id = "a",
                                 .type = type,
                                 .list = LIST,
                                 .input = slice_text("in"),
                                 .start_to_close = 3600,
                                 .heartbeat_timeout = 5,
                                 .retry = system_retry(decider->arena, 1, 3600, "final")});
}

static void
decide(void *context, struct system_decider *decider)
{
    struct counter *counter = context;
    switch (counter->end.how) {
    case FOLD_COMPLETED:
        system_complete(decider, counter->end.result);
        break;
    case FOLD_CANCELED:
        system_cancel(decider, counter->end.details);
        break;
    case FOLD_FAILED:
        system_fail(decider, counter->end.reason, counter->end.details);
        break;
    default:
        if (counter->is_signalled && !counter->is_working)
            work(counter->signals > 5 ? "slow" : "quick", decider);
        if (counter->is_cancel_requested && !counter->is_cancel_asked) {
            API(Decision) *decision = system_decide(
                decider,
                API_VALUE(DECISION__ATTRIBUTES_REQUEST_CANCEL_ACTIVITY_TASK_DECISION_ATTRIBUTES));
            decision->request_cancel_activity_task_decision_attributes =
                API_NEW(decider->arena, request_cancel_activity_task_decision_attributes,
                        .activity_id = "a");
        }
        break;
    }
}

static struct error *
query(void *context, const char *type, struct slice arguments, struct arena *arena,
      struct slice *answer)
{
    const struct counter *counter = context;
    if (strcmp(type, "signals") != 0)
        return error_new(arena, ERR_QUERY_FAILED, "unknown queryType %s", type);
    *answer = slice_text(arena_format(arena, "%lld", (long long)counter->signals));
    return NULL;
}

/* Fails once, and finds what it said before. */
static struct error *
run_quick(struct system_task *task, struct slice *result)
{
    if (task->attempt == 0) {
        struct error *err = system_heartbeat(task, slice_text("half"));
        return err != NULL ? err : error_new(task->arena, ERR_INTERNAL, "not this time");
    }
    *result = task->details;
    return NULL;
}

/* Until it is cancelled. */
static struct error *
run_slow(struct system_task *task, struct slice *result)
{
    for (;;) {
        *result = slice_text("so far");
        struct error *err = fiber_sleep(NS_PER_S, task->arena);
        if (err == NULL)
            err = system_heartbeat(task, slice_text("so far"));
        if (err != NULL)
            return err;
    }
}

static const struct system_workflow counter_workflow = {.type = "counter",
                                                        .list = LIST,
                                                        .state_size = sizeof(struct counter),
                                                        .fold = fold,
                                                        .decide = decide,
                                                        .query = query};
static const struct system_activity quick = {.type = "quick", .list = LIST, .run = run_quick};
static const struct system_activity slow = {.type = "slow", .list = LIST, .run = run_slow};
static const struct system_types types = {
    .workflows = (const struct system_workflow *const[]){&counter_workflow, NULL},
    .activities = (const struct system_activity *const[]){&quick, &slow, NULL}};

/* --- from outside ---- */

static void
start(struct fixture *fixture, const char *id)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, id);
    request->workflow_type->name = "counter";
    request->task_list = fixture_list(fixture, LIST);
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static void
signal_with(struct fixture *fixture, const char *id, const char *name, const char *input)
{
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, signal_workflow_execution_request, .domain = "orders",
        .workflow_execution = fixture_execution(fixture, id), .signal_name = (char *)name,
        .request_id = fixture_uuid(fixture), .signal_input = fixture_payload(fixture, input));
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static struct error *
ask(struct fixture *fixture, const char *id, const char *type, const char **answer)
{
    API(QueryWorkflowResponse) *response;
    struct error *err =
        API_CALL(fixture, &response, query_workflow, .domain = "orders",
                 .workflow_execution = fixture_execution(fixture, id),
                 .query = API_NEW(fixture->arena, workflow_query, .query_type = (char *)type));
    if (err == NULL)
        *answer =
            arena_text_of(fixture->arena, presence_read_payload(response->query_result).bytes);
    return err;
}

static const char *
count_of(struct fixture *fixture, const char *id)
{
    const char *answer = "";
    EXPECT_OK(ask(fixture, id, "signals", &answer));
    return answer;
}

static const API(HistoryEvent) *
wait_closed(struct fixture *fixture, const char *id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, id);
    request->wait_for_new_event = true;
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    const API(History) *history = read_history(fixture, request)->history;
    EXPECT_EQ(history->n_events, 1);
    return history->events[0];
}

static void
expect_completed(struct fixture *fixture, const char *id, const char *result)
{
    const API(HistoryEvent) *last = wait_closed(fixture, id);
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    struct slice bytes =
        presence_read_payload(last->workflow_execution_completed_event_attributes->result).bytes;
    EXPECT_TEXT(arena_text_of(fixture->arena, bytes), result);
}

/* Lists that somebody polls, or wants to. */
static size_t
count_served_lists(const struct fixture *fixture)
{
    const struct system_frame *frame = fixture->system.context;
    size_t count = 0;
    for (unsigned i = 0; i < frame->loop_count; i++)
        count += map_count(frame->loops[i].served_lists);
    return count;
}

/* --- tests ---- */

SERVER_TEST(frame, runs_in_any_domain_are_served_and_nobody_polls_afterwards)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &types);
    EXPECT_EQ(count_served_lists(fixture), 0);
    for (int i = 0; i < 100; i++) { /* more than work at a time */
        const char *id = arena_format(fixture->arena, "wf-%d", i);
        start(fixture, id);
        signal_with(fixture, id, "work", "");
    }
    for (int i = 0; i < 100; i++)
        expect_completed(fixture, arena_format(fixture->arena, "wf-%d", i), "half");
    EXPECT_TEXT(count_of(fixture, "wf-7"), "1"); /* it is closed */
    const char *answer;
    EXPECT_KIND(ask(fixture, "wf-7", "nonsense", &answer), ERR_QUERY_FAILED);
    EXPECT_OK(fiber_sleep(POLL_LINGER + NS_PER_S, fixture->arena));
    EXPECT_EQ(count_served_lists(fixture), 0); /* quiet again */
}

/* More than one page of history, and queries that ride on decisions. */
SERVER_TEST(frame, a_long_history_is_folded_page_by_page)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &types);
    char *large = arena_zalloc(fixture->arena, 200001, 1);
    memset(large, 'x', 200000);
    start(fixture, "wf");
    for (int i = 0; i < 15; i++) {
        signal_with(fixture, "wf", "count", large);
        EXPECT_TEXT(count_of(fixture, "wf"), arena_format(fixture->arena, "%d", i + 1));
    }
}

static void
cancelled(struct fixture *fixture)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &types);
    start(fixture, "wf");
    for (int i = 0; i < 6; i++)
        signal_with(fixture, "wf", "count", "");
    signal_with(fixture, "wf", "work", "");
    EXPECT_OK(fiber_sleep(30 * NS_PER_S, fixture->arena)); /* heartbeats keep it */
    EXPECT_OK(API_CALL(fixture, NULL, request_cancel_workflow_execution, .domain = "orders",
                       .workflow_execution = fixture_execution(fixture, "wf"),
                       .request_id = fixture_uuid(fixture)));
    const API(HistoryEvent) *last = wait_closed(fixture, "wf");
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_CANCELED));
    struct slice details =
        presence_read_payload(last->workflow_execution_canceled_event_attributes->details).bytes;
    EXPECT_TEXT(arena_text_of(fixture->arena, details), "so far");
}

TEST(frame, an_activity_lives_by_its_heartbeats_and_hears_that_it_is_cancelled)
{
    fixture_run(cancelled);
}

/* What waits when the server starts again is worked on as soon as there is somebody. */
SERVER_TEST(frame, what_waited_before_the_frame_was_open_is_not_forgotten)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_wire_system(fixture, &types);
    start(fixture, "wf");
    signal_with(fixture, "wf", "work", "");
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    EXPECT(count_served_lists(fixture) > 0);
    fixture_start_system(fixture);
    expect_completed(fixture, "wf", "half");
}

/* A list of the same name in a domain that a type does not live in is its users' own. */
SERVER_TEST(frame, a_type_of_one_domain_is_not_served_in_others, "A-264")
{
    fixture->timeout = 5 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    EXPECT(!system_serves(fixture->system.context,
                          domains_find_name(fixture->domains, "orders")->id,
                          "cadence-sys-batcher-tasklist"));
    EXPECT(system_serves(fixture->system.context,
                         domains_find_name(fixture->domains, "cadence-batcher")->id,
                         "cadence-sys-batcher-tasklist"));
}
