/* Sticky execution: decisions go to the worker that has the run in its memory, while it takes them.
 */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/message.h"

#define FIRST_FOUR                                                                                 \
    "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted DecisionTaskCompleted"
#define DECISION CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION

/* Completes the started decision and asks for the next ones on list "sticky", within 5 s. */
static void
complete_sticky(struct fixture *fixture, bool is_forced)
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->sticky_attributes =
        API_NEW(fixture->arena, sticky_execution_attributes,
                .worker_task_list = API_NEW(fixture->arena, task_list, .name = "sticky"),
                .schedule_to_start_timeout = fixture_duration(fixture, 5));
    request->force_create_new_decision_task = is_forced;
    EXPECT_OK(fixture_respond(fixture, request));
}

static struct fixture *
sticky_run(void)
{
    struct fixture *fixture = fixture_new();
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    complete_sticky(fixture, false);
    return fixture;
}

static struct error *
reset_stickiness(void *context, struct step *step)
{
    return command_reset_sticky(step);
}

COMMAND_TEST_IN(sticky, the_next_decision_goes_where_the_last_completion_said, sticky_run(),
                "A-081")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    const STORED(TransferRow) *task = fixture_task(fixture, DECISION);
    EXPECT_TEXT(task->task_list->name, "sticky");
    EXPECT_EQ(task->task_list->kind, API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY));
    EXPECT_TEXT(task->normal_list, "list");
    EXPECT_EQ(task->expiry_time, fixture->context.now + 5 * FIXTURE_SECOND);
    const API(TaskList) *said = fixture_event(fixture, task->schedule_id)
                                    ->decision_task_scheduled_event_attributes->task_list;
    EXPECT_TEXT(said->name, "sticky"); /* histories of decisions do not tell kinds */
    EXPECT_EQ(said->kind, API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT(fixture->decision.is_sticky);
    EXPECT_EQ(fixture->decision.first_event_id, fixture->decision.previous_started_id + 1);
    EXPECT_TEXT(fixture->decision.task_list->name, "list"); /* the normal one */

    EXPECT_OK(fixture_complete(fixture)); /* without sticky attributes */
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    task = fixture_task(fixture, DECISION);
    EXPECT_TEXT(task->task_list->name, "list");
    EXPECT_TEXT(task->normal_list, "");
    EXPECT_EQ(task->expiry_time, fixture_run(fixture)->core->timeout_time);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT(!fixture->decision.is_sticky);
    EXPECT_EQ(fixture->decision.first_event_id, 1);
}

COMMAND_TEST_IN(sticky, one_that_nobody_took_goes_to_the_normal_list_as_a_first_attempt,
                sticky_run(), "A-091")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    fixture_advance(fixture, 4);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled");
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled "
                                       "DecisionTaskTimedOut DecisionTaskScheduled");
    EXPECT_EQ(fixture_event(fixture, 7)->decision_task_timed_out_event_attributes->timeout_type,
              API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    EXPECT_EQ(fixture->tasks.count, 1); /* the sticky one is gone */
    EXPECT_TEXT(fixture_task(fixture, DECISION)->task_list->name, "list");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
    EXPECT(!fixture->decision.is_sticky);
    fixture_advance(fixture, 9); /* nothing of the sticky timeout is left */
    EXPECT(run_has_started_decision(fixture_run(fixture)));
}

COMMAND_TEST_IN(sticky, after_a_reset_the_timeout_still_comes_and_counts_as_an_attempt,
                sticky_run(), "A-092")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_OK(fixture_step(fixture, reset_stickiness, NULL));
    fixture_advance(fixture, 5);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled "
                                       "DecisionTaskTimedOut");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
}

COMMAND_TEST_IN(sticky, a_reset_gives_the_next_poll_the_whole_history_and_a_closed_run_refuses_it,
                sticky_run(), "A-093")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_OK(fixture_step(fixture, reset_stickiness, NULL));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT(!fixture->decision.is_sticky);
    EXPECT_EQ(fixture->decision.first_event_id, 1);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_KIND(fixture_step(fixture, reset_stickiness, NULL), ERR_ALREADY_COMPLETED);
}

TEST(sticky, a_list_that_is_too_old_is_forgotten_at_the_next_schedule, "A-094")
{
    for (int is_old = 0; is_old < 2; is_old++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        fixture_configure(fixture, "history.stickyTTL: [{value: 60s}]\n");
        fixture_begin(fixture);
        EXPECT(fixture_poll_decision(fixture));
        complete_sticky(fixture, false);
        fixture_advance(fixture, is_old ? 61 : 60);
        EXPECT_OK(fixture_signal(fixture, "go", ""));
        EXPECT_TEXT(fixture_task(fixture, DECISION)->task_list->name, is_old ? "list" : "sticky");
        EXPECT_EQ(fixture_run(fixture)->core->sticky_task_list == NULL, is_old);
    }
}

COMMAND_TEST_IN(sticky, after_a_sticky_timeout_failures_count_from_the_start, sticky_run(), "A-091",
                "A-095")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    fixture_advance(fixture, 5);
    for (int round = 0; round < 2; round++) {
        for (int attempt = 0; attempt < 3; attempt++) {
            EXPECT(fixture_poll_decision(fixture));
            EXPECT_EQ(fixture->decision.attempt, attempt);
            EXPECT_OK(fixture_fail_decision(fixture));
        }
        EXPECT_OK(fixture_signal(fixture, "again", "")); /* starts to count at 0 */
    }
}

COMMAND_TEST_IN(sticky, a_failed_decision_ends_stickiness, sticky_run())
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT(fixture_run(fixture)->core->sticky_task_list == NULL);
    EXPECT_TEXT(fixture_task(fixture, DECISION)->task_list->name, "list");
}

COMMAND_TEST(sticky, a_relayed_decision_has_no_sticky_timeout)
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    complete_sticky(fixture, true);
    EXPECT(run_has_pending_decision(fixture_run(fixture)));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture_run(fixture)->core->decision->schedule_timeout_time, 0);
    fixture_advance(fixture, 9);
    EXPECT(run_has_started_decision(fixture_run(fixture)));
}

/* --- a list that the run does not know ---- */

/* As runs were stored that came from another cluster while a decision waited for a worker there. */
static struct error *
lose(void *context, struct step *step)
{
    (void)context;
    mutation_clear_sticky(step->mutation);
    STORED(PendingDecision) *decision = mutation_change_decision(step->mutation);
    decision->task_list =
        message_copy(mutation_run(step->mutation)->arena, &decision->task_list->base);
    decision->task_list->name = "worker elsewhere";
    decision->schedule_timeout_time = 0;
    return NULL;
}

static struct error *
refresh(void *context, struct step *step)
{
    (void)context;
    return command_refresh(step);
}

static struct error *
take_over(void *context, struct step *step)
{
    (void)context;
    EXPECT(take_over_is_needed(mutation_run(step->mutation)));
    command_take_over(step, false);
    EXPECT(!take_over_is_needed(mutation_run(step->mutation)));
    return NULL;
}

static void
expect_found(struct error *(*decide)(void *context, struct step *step))
{
    scoped(fixture_drop) struct fixture *fixture = sticky_run();
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    int64_t next = fixture_run(fixture)->core->next_event_id;
    EXPECT_OK(fixture_step(fixture, lose, NULL));
    EXPECT_OK(fixture_step(fixture, decide, NULL));
    EXPECT_TEXT(fixture_task(fixture, DECISION)->task_list->name, "list");
    EXPECT_TEXT(fixture_task(fixture, DECISION)->normal_list, "");
    EXPECT_EQ(fixture->tasks.count, 1);
    EXPECT_EQ(fixture_run(fixture)->core->next_event_id, next); /* no event comes of it */
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.first_event_id, 1);
}

TEST(sticky, a_decision_on_a_list_that_the_run_does_not_know_is_sent_to_its_own)
{
    expect_found(refresh);
    expect_found(take_over);
}

/* The worker may be one of a time before: the workflow was elsewhere meanwhile. */
COMMAND_TEST_IN(sticky,
                a_decision_on_the_sticky_list_goes_to_the_runs_own_when_the_run_changes_hands,
                sticky_run())
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_OK(fixture_step(fixture, refresh, NULL)); /* that alone changes nothing */
    EXPECT_TEXT(fixture_task(fixture, DECISION)->task_list->name, "sticky");
    EXPECT_OK(fixture_step(fixture, take_over, NULL));
    EXPECT_TEXT(fixture_task(fixture, DECISION)->task_list->name, "list");
    EXPECT(fixture_run(fixture)->core->sticky_task_list == NULL);
    fixture_advance(fixture, 9); /* it does not time out */
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.first_event_id, 1);
}
