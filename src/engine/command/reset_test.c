/* reset_test.c - a workflow begins again from one of its decisions. */
#include "engine/command/test/fixture.h"
#include "engine/run/rebuild.h"
#include "wire/message.h"

#define ACTIVITY CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY

/* The newest run is reset at this event: what engine/shard/reset.c reads from a store is here at
 * hand. */
struct reset {
    API(ResetWorkflowExecutionRequest) request;
    struct reset_command command;
    const char *run_id;
    int64_t fork;
};

static void
rebuild_prefix(struct fixture *fixture, struct reset *reset)
{
    const struct fixture_run *base = &fixture->runs[fixture->run_count - 1];
    struct rebuild rebuild;
    rebuild_begin(&rebuild, reset->command.rebuilt, &fixture->context, fixture->arena);
    int64_t from = 0;
    for (size_t i = 0; i < base->batches.count && from < reset->fork - 1; i++) {
        int64_t count = (int64_t)base->batches.items[i];
        if (from + count > reset->fork - 1)
            count = reset->fork - 1 - from;
        API(History) history;
        uber__cadence__api__v1__history__init(&history);
        history.n_events = (size_t)count;
        history.events = base->events.items + from;
        rebuild_add(&rebuild, history.events, history.n_events,
                    message_encode(fixture->arena, &history.base).length, fixture->arena);
        from += count;
    }
    rebuild_end(&rebuild);
    reset->command.children = (int64_t)map64_count(rebuild.run->children);
}

static void
take_signals(struct fixture *fixture, struct reset *reset)
{
    typedef const API(WorkflowExecutionSignaledEventAttributes) *signal_t;
    const struct fixture_run *base = &fixture->runs[fixture->run_count - 1];
    signal_t *signals = arena_zalloc(fixture->arena, base->events.count + 1, sizeof(signal_t));
    for (size_t i = (size_t)reset->fork - 1; i < base->events.count; i++) {
        const API(HistoryEvent) *event = base->events.items[i];
        if (event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED))
            signals[reset->command.signal_count++] =
                event->workflow_execution_signaled_event_attributes;
    }
    reset->command.signals = signals;
}

static struct error *
decide(void *context, struct step *step)
{
    struct reset *reset = context;
    return command_reset(step, &reset->command, &reset->run_id);
}

static struct error *
reset_at(struct fixture *fixture, int64_t fork, struct reset *reset)
{
    const struct run *base = fixture_run(fixture);
    *reset = (struct reset){.fork = fork};
    uber__cadence__api__v1__reset_workflow_execution_request__init(&reset->request);
    reset->request.decision_finish_event_id = fork;
    reset->request.reason = "bad code";
    reset->request.request_id = fixture_request_id(fixture);
    struct error *err = reset_check_base(base, &reset->request, fixture->arena);
    if (err == NULL && fork < base->core->next_event_id)
        err = reset_check_event(fixture_event(fixture, fork), fixture->arena);
    if (err != NULL)
        return err;
    reset->command = (struct reset_command){
        .request = &reset->request,
        .rebuilt = reset_new_run(base, &fixture->context),
        .base_run_id = arena_text(fixture->arena, base->core->run_id),
        .fork_version = fixture->context.event_version,
        .chain_request_id = base->core->create_request_id,
    };
    rebuild_prefix(fixture, reset);
    take_signals(fixture, reset);
    fixture->inherited = (size_t)fork - 1;
    err = fixture_step(fixture, decide, reset);
    fixture->inherited = 0;
    if (reset->command.rebuilt != NULL)
        run_free(reset->command.rebuilt);
    return err;
}

static void
expect_refused(struct fixture *fixture, int64_t fork, const char *why)
{
    struct reset reset;
    struct error *err = reset_at(fixture, fork, &reset);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, why);
}

static API(Decision) *
activity(struct fixture *fixture, const char *id)
{
    return API_DECISION(fixture->arena, schedule_activity_task, .activity_id = (char *)id,
                        .activity_type = API_NEW(fixture->arena, activity_type, .name = "work"),
                        .task_list = API_NEW(fixture->arena, task_list, .name = "list"),
                        .schedule_to_close_timeout = fixture_duration(fixture, 50),
                        .schedule_to_start_timeout = fixture_duration(fixture, 50),
                        .start_to_close_timeout = fixture_duration(fixture, 50),
                        .heartbeat_timeout = fixture_duration(fixture, 0));
}

/* Started, decided once, signalled, decided again. */
static void
grow(struct fixture *fixture)
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, "t", 60)));
    EXPECT_OK(fixture_signal(fixture, "one", "request-1"));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m")));
}

COMMAND_TEST(reset, events_before_the_decision_are_kept_and_it_has_failed, "A-199")
{
    struct reset reset;
    grow(fixture);
    EXPECT_OK(reset_at(fixture, 4, &reset)); /* DecisionTaskCompleted */
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskFailed WorkflowExecutionSignaled DecisionTaskScheduled");
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(failed->cause,
              API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_RESET_WORKFLOW));
    EXPECT_TEXT(failed->failure->reason, "bad code");
    EXPECT_TEXT(failed->base_run_id, fixture_run_at(fixture, 0)->core->run_id);
    EXPECT_TEXT(failed->new_run_id, fixture_run(fixture)->core->run_id);
    EXPECT_TEXT(failed->identity, "history-service");
    EXPECT_EQ(failed->fork_event_version, fixture->context.event_version);
    EXPECT_EQ(failed->scheduled_event_id, 2);
    EXPECT_EQ(failed->started_event_id, 3);
    EXPECT_TEXT(reset.run_id, fixture_run(fixture)->core->run_id);
    EXPECT(map_count(fixture_run(fixture)->timers) == 0); /* it came of the decision that failed */
    fixture_expect_rebuilt(fixture, 1);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
}

COMMAND_TEST(reset, a_decision_that_was_only_scheduled_has_timed_out, "A-200")
{
    struct reset reset;
    grow(fixture);
    EXPECT_OK(reset_at(fixture, 8, &reset)); /* the second DecisionTaskStarted */
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted TimerStarted WorkflowExecutionSignaled "
                            "DecisionTaskScheduled DecisionTaskTimedOut DecisionTaskScheduled");
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        fixture_event(fixture, 8)->decision_task_timed_out_event_attributes;
    EXPECT_EQ(timed_out->cause,
              API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_RESET));
    EXPECT_EQ(timed_out->timeout_type, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    EXPECT_TEXT(timed_out->reason, "bad code");
    EXPECT_TEXT(timed_out->base_run_id, fixture_run_at(fixture, 0)->core->run_id);
    EXPECT_EQ(map_count(fixture_run(fixture)->timers), 1);
    fixture_advance(fixture, 61);
    EXPECT(fixture_event(fixture, 10)->attributes_case == EVENT_KIND(TIMER_FIRED));
}

COMMAND_TEST(reset, the_open_run_is_terminated_in_the_same_step_and_resets_follow_resets, "A-201")
{
    struct reset reset;
    grow(fixture);
    EXPECT_OK(reset_at(fixture, 4, &reset));
    const struct run *old = fixture_run_at(fixture, 0);
    EXPECT(!run_is_open(old));
    const API(HistoryEvent) *last = fixture_event_of(fixture, 0, old->core->next_event_id - 1);
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->reason, "bad code");
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->identity, "history-service");
    EXPECT_TEXT(fixture->current->run_id, reset.run_id);

    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT_OK(reset_at(fixture, 8, &reset)); /* of the closed run that a reset made */
    EXPECT(run_is_open(fixture_run(fixture)));
    EXPECT_EQ(fixture->run_count, 3);
}

COMMAND_TEST(reset, its_clock_begins_again, "A-202")
{
    struct reset reset;
    grow(fixture);
    fixture_advance(fixture, 30);
    int64_t now = fixture->context.now;
    EXPECT_OK(reset_at(fixture, 4, &reset));
    const STORED(RunRecord) *core = fixture_run(fixture)->core;
    EXPECT_EQ(core->start_time, now);
    EXPECT_EQ(core->timeout_time, now + 100 * FIXTURE_SECOND);
    EXPECT(fixture_event_time(fixture_event(fixture, 1)) < now);
}

COMMAND_TEST(reset, a_repeated_signal_is_known_after_the_reset, "A-203")
{
    struct reset reset;
    grow(fixture);
    EXPECT_OK(reset_at(fixture, 4, &reset));
    EXPECT_OK(fixture_signal(fixture, "one", "request-1"));
    EXPECT_EQ(fixture_run(fixture)->core->signal_count, 1);
}

COMMAND_TEST(reset, started_activities_fail_and_others_are_sent_again, "A-204")
{
    struct reset reset;
    struct activity_start start;
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, activity(fixture, "a"), activity(fixture, "b")));
    EXPECT(fixture_poll_activity(fixture, &start));
    EXPECT_OK(fixture_signal(fixture, "one", "request-1"));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture));
    fixture_advance(fixture, 20);
    EXPECT_OK(reset_at(fixture, 11, &reset));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskScheduled "
                            "ActivityTaskStarted WorkflowExecutionSignaled DecisionTaskScheduled "
                            "DecisionTaskStarted DecisionTaskFailed ActivityTaskFailed "
                            "DecisionTaskScheduled");
    const API(ActivityTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 12)->activity_task_failed_event_attributes;
    EXPECT_TEXT(failed->failure->reason, "bad code");
    const STORED(TransferRow) *task = fixture_task(fixture, ACTIVITY);
    EXPECT(task != NULL && strcmp(task->run_id, reset.run_id) == 0);
    const STORED(PendingActivity) *left = run_find_activity_id(fixture_run(fixture), "b");
    EXPECT(left != NULL);
    EXPECT_EQ(left->scheduled_time, fixture->context.now);
    fixture_advance(fixture, 40); /* its fifty seconds are new */
    EXPECT(run_find_activity_id(fixture_run(fixture), "b") != NULL);
}

COMMAND_TEST(reset, only_a_decision_s_event_will_do, "A-205")
{
    struct reset reset;
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    EXPECT_OK(fixture_start(fixture, request));
    expect_refused(fixture, 1, "Cannot reset workflow without a decision task schedule.");
    fixture_advance(fixture, 10);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m")));
    const char *bounds = "Decision finish ID must be > 1 && <= workflow next event ID.";
    expect_refused(fixture, 1, bounds);
    expect_refused(fixture, 7, bounds);
    expect_refused(fixture, 6, "reset event ID 6 not found in the history events");
    expect_refused(fixture, 5,
                   "reset event must be of type DecisionTaskStarted, DecisionTaskTimedOut, "
                   "DecisionTaskFailed, or DecisionTaskCompleted. Attempting to reset on event "
                   "type: MarkerRecorded");
    EXPECT_OK(reset_at(fixture, 4, &reset));
}

COMMAND_TEST(reset, a_repeat_is_known_also_by_the_runs_that_follow, "A-206")
{
    struct reset reset;
    grow(fixture);
    EXPECT_OK(reset_at(fixture, 4, &reset));
    EXPECT_TEXT(reset_find_repeat(fixture_run(fixture), &reset.request), reset.run_id);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_continue_as_new(fixture)));
    EXPECT_TEXT(reset_find_repeat(fixture_run(fixture), &reset.request), reset.run_id);
    reset.request.request_id = "another";
    EXPECT(reset_find_repeat(fixture_run(fixture), &reset.request) == NULL);
}

COMMAND_TEST(reset, back_to_the_decision_that_is_pending, "A-200", "A-205")
{
    struct reset reset;
    fixture_begin(fixture);
    EXPECT_OK(reset_at(fixture, 3, &reset)); /* nothing is behind the fork */
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskTimedOut "
                            "DecisionTaskScheduled");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
}

/* Started, its first decision starts a child and signals another workflow, then a second one. */
static void
grow_child_tree(struct fixture *fixture)
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    API(Decision) *start =
        API_DECISION(fixture->arena, start_child_workflow_execution, .workflow_id = "kid",
                     .workflow_type = API_NEW(fixture->arena, workflow_type, .name = "kid"));
    API(Decision) *tell = API_DECISION(
        fixture->arena, signal_external_workflow_execution,
        .workflow_execution = API_NEW(fixture->arena, workflow_execution, .workflow_id = "other"),
        .signal_name = "s");
    EXPECT_OK(fixture_complete(fixture, start, tell)); /* 5 and 6 */
    EXPECT_OK(fixture_signal(fixture, "one", "request-1"));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m"))); /* 10 */
    fixture_expect_rebuilt(fixture, 0);
}

static struct error *
refuse_child(void *context, struct step *step)
{
    (void)context;
    return command_child_refused(step, 5);
}

/* Children are not taken along: they would have two parents. */
COMMAND_TEST(reset, a_run_with_open_children_is_left_alone, "A-205")
{
    struct reset reset;
    grow_child_tree(fixture);
    expect_refused(fixture, 10, "Can not reset workflow with pending child workflows");
    EXPECT(run_is_open(fixture_run(fixture)));
    EXPECT_EQ(fixture->run_count, 1);
    EXPECT_OK(reset_at(fixture, 4, &reset)); /* before there was one */
    EXPECT_EQ(map64_count(fixture_run(fixture)->children), 0);
}

COMMAND_TEST(reset, a_signal_on_its_way_to_another_workflow_is_sent_again)
{
    struct reset reset;
    grow_child_tree(fixture);
    EXPECT_OK(fixture_step(fixture, refuse_child, NULL)); /* a decision follows */
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "n")));
    const struct run *base = fixture_run(fixture);
    uint64_t first_row = run_find_external(base, 6)->row;
    int64_t fork = base->core->next_event_id - 2; /* DecisionTaskCompleted */
    EXPECT_OK(reset_at(fixture, fork, &reset));
    const STORED(PendingExternal) *external = run_find_external(fixture_run(fixture), 6);
    EXPECT(external != NULL && external->row > first_row);
    EXPECT_TEXT(external->workflow_id, "other");
}

/* The end of the old one stands behind the start of the new one, here in a batch of its own. */
COMMAND_TEST(reset, a_name_that_is_used_again_is_known_across_batches)
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, "t", 2)));
    EXPECT_OK(fixture_signal(fixture, "one", ""));
    EXPECT(fixture_poll_decision(fixture));
    fixture_advance(fixture, 3); /* it fires, and waits behind the decision */
    EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, "t", 60)));
    const struct run *run = fixture_run(fixture);
    const STORED(PendingTimer) *timer = run_find_timer(run, "t");
    struct run *rebuilt = reset_new_run(run, &fixture->context);
    struct rebuild rebuild;
    rebuild_begin(&rebuild, rebuilt, &fixture->context, fixture->arena);
    for (int64_t id = 1; id < run->core->next_event_id; id++) {
        API(HistoryEvent) *event = fixture_event(fixture, id);
        rebuild_add(&rebuild, &event, 1, 1, fixture->arena);
    }
    rebuild_end(&rebuild);
    EXPECT_EQ(map_count(rebuilt->timers), 1);
    EXPECT_EQ(run_find_timer(rebuilt, "t")->started_id, timer->started_id);
    run_free(rebuilt);
}

static struct error *
refresh(void *context, struct step *step)
{
    (void)context;
    return command_refresh(step);
}

COMMAND_TEST(refresh, tasks_and_the_wake_up_timer_come_again_and_no_event_does, "A-210")
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, activity(fixture, "a")));
    EXPECT_OK(fixture_signal(fixture, "one", ""));
    int64_t next = fixture_run(fixture)->core->next_event_id;
    uint64_t wakeup_row = fixture_run(fixture)->core->alarm_row;
    uint64_t before = fixture->ids.next;
    EXPECT_OK(fixture_step(fixture, refresh, NULL));
    EXPECT_EQ(fixture_run(fixture)->core->next_event_id, next);
    EXPECT(fixture_run(fixture)->core->alarm_row > wakeup_row);
    EXPECT_EQ(fixture->tasks.count, 2); /* the old rows are gone */
    for (size_t i = 0; i < fixture->tasks.count; i++)
        EXPECT(fixture->tasks.items[i].row >= before);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT_OK(fixture_step(fixture, refresh, NULL)); /* a closed run has none */
    EXPECT_EQ(fixture->tasks.count, 0);
}

COMMAND_TEST(refresh, what_is_for_other_workflows_is_sent_again, "A-210")
{
    grow_child_tree(fixture);
    size_t rows = fixture->tasks.count;
    uint64_t before = fixture->ids.next;
    EXPECT_OK(fixture_step(fixture, refresh, NULL));
    EXPECT(run_find_external(fixture_run(fixture), 6)->row >= before);
    EXPECT_EQ(fixture->tasks.count, rows + 1); /* the start of a child is not known by its row */
}
