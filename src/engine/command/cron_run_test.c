/* Runs that follow each other by a cron schedule. */
#include "base/cron.h"
#include "engine/command/schedule.h"
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

#define INITIATOR(name) API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_##name)
#define BUFFER_ONE      API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE)
#define SKIPPED         API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_SKIPPED)
#define SECOND          FIXTURE_SECOND

static API(StartWorkflowExecutionRequest) *
cron_request(struct fixture *fixture, const char *schedule)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->cron_schedule = (char *)schedule;
    request->input = fixture_payload(fixture, "input");
    request->memo = API_NEW(fixture->arena, memo);
    return request;
}

static const API(WorkflowExecutionStartedEventAttributes) *
first_event(struct fixture *fixture)
{
    return fixture_event(fixture, 1)->workflow_execution_started_event_attributes;
}

static const API(WorkflowExecutionContinuedAsNewEventAttributes) *
last_event_of(struct fixture *fixture, size_t index)
{
    const struct fixture_run *run = &fixture->runs[index];
    const API(HistoryEvent) *event = run->events.items[run->events.count - 1];
    EXPECT_EQ(event->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW));
    return event->workflow_execution_continued_as_new_event_attributes;
}

static void
decide(struct fixture *fixture, API(Decision) *decision)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, decision));
}

/* Seconds until the first decision of the newest run. */
static int64_t
wait_of(struct fixture *fixture)
{
    return (fixture_run(fixture)->core->execution_time - fixture->context.now) / SECOND;
}

COMMAND_TEST(cron_run, the_first_decision_waits_for_the_first_fire, "A-183")
{
    EXPECT_OK(fixture_start(fixture, cron_request(fixture, "@every 3s")));
    EXPECT_EQ(first_event(fixture)->first_decision_task_backoff->seconds, 3);
    EXPECT_EQ(fixture_run(fixture)->core->execution_time - fixture_run(fixture)->core->start_time,
              3 * SECOND);
    EXPECT(!fixture_poll_decision(fixture));
    fixture_advance(fixture, 2);
    EXPECT(!fixture_poll_decision(fixture));
    fixture_advance(fixture, 1);
    EXPECT(fixture_poll_decision(fixture));
}

/* Parts of a second: the fire is a whole one, and nothing begins before it. */
COMMAND_TEST(cron_run, the_wait_is_rounded_up_to_a_second, "A-183")
{
    fixture->context.now += SECOND / 2;
    EXPECT_OK(fixture_start(fixture, cron_request(fixture, "* * * * *")));
    EXPECT_EQ(first_event(fixture)->first_decision_task_backoff->seconds, 40);
    int64_t fire = fixture->context.now / (60 * SECOND) * 60 * SECOND + 60 * SECOND;
    EXPECT(fixture_run(fixture)->core->execution_time >= fire);
    EXPECT(fixture_run(fixture)->core->execution_time < fire + SECOND);
}

TEST(cron_run, a_delay_comes_before_the_first_fire_is_looked_for, "A-183")
{
    scoped(fixture_drop) struct fixture *fixture = fixture_new(); /* it is :20 */
    API(StartWorkflowExecutionRequest) *request = cron_request(fixture, "* * * * *");
    request->delay_start = fixture_duration(fixture, 50);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_EQ(wait_of(fixture), 100);
}

COMMAND_TEST(cron_run, a_time_for_the_first_run_overrides_the_schedule_once, "A-042")
{
    API(StartWorkflowExecutionRequest) *request = cron_request(fixture, "* * * * *");
    request->first_run_at =
        presence_make_timestamp(fixture->arena, fixture->context.now + 7 * SECOND);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_EQ(wait_of(fixture), 7);
    fixture_advance(fixture, 7);
    decide(fixture, fixture_complete_run(fixture));
    EXPECT_EQ(wait_of(fixture), 33);
}

COMMAND_TEST(cron_run, a_signal_before_the_first_fire_schedules_nothing, "A-041")
{
    EXPECT_OK(fixture_start(fixture, cron_request(fixture, "@every 10s")));
    EXPECT_OK(fixture_signal(fixture, "early", ""));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionSignaled");
    EXPECT(!run_has_pending_decision(fixture_run(fixture)));
    fixture_advance(fixture, 10);
    EXPECT(run_has_pending_decision(fixture_run(fixture)));
}

COMMAND_TEST(cron_run, one_that_completes_is_followed_by_the_next_with_its_result, "A-184", "A-195")
{
    EXPECT_OK(fixture_start(fixture, cron_request(fixture, "@every 10s")));
    const GOOGLE(Timestamp) *first_time = first_event(fixture)->first_scheduled_time;
    fixture_advance(fixture, 10);
    fixture_advance(fixture, 4);
    API(Decision) *decision = fixture_complete_run(fixture);
    decision->complete_workflow_execution_decision_attributes->result =
        fixture_payload(fixture, "good");
    decide(fixture, decision);
    EXPECT_EQ(fixture->run_count, 2);
    const API(WorkflowExecutionContinuedAsNewEventAttributes) *last = last_event_of(fixture, 0);
    EXPECT_EQ(last->initiator, INITIATOR(CRON_SCHEDULE));
    EXPECT(last->failure == NULL);
    EXPECT_TEXT(fixture_payload_text(fixture, last->last_completion_result), "good");
    EXPECT_TEXT(fixture_payload_text(fixture, last->input), "input");
    EXPECT_EQ(last->backoff_start_interval->seconds, 6);
    EXPECT(last->memo != NULL);
    EXPECT_EQ(last->decision_task_completed_event_id, 4);
    const API(WorkflowExecutionStartedEventAttributes) *first = first_event(fixture);
    EXPECT_EQ(first->initiator, INITIATOR(CRON_SCHEDULE));
    EXPECT_TEXT(first->cron_schedule, "@every 10s");
    EXPECT_TEXT(fixture_payload_text(fixture, first->input), "input");
    EXPECT_TEXT(fixture_payload_text(fixture, first->last_completion_result), "good");
    EXPECT_TEXT(first->first_execution_run_id, fixture_run_at(fixture, 0)->core->run_id);
    EXPECT_TEXT(first->continued_execution_run_id, fixture_run_at(fixture, 0)->core->run_id);
    EXPECT(first->memo != NULL && first->attempt == 0);
    EXPECT_EQ(first->first_scheduled_time->seconds, first_time->seconds);
    EXPECT_EQ(wait_of(fixture), 6);
}

COMMAND_TEST(cron_run, one_that_fails_keeps_the_result_of_the_last_success, "A-184", "A-185")
{
    EXPECT_OK(fixture_start(fixture, cron_request(fixture, "@every 10s")));
    for (int i = 0; i < 3; i++) {
        fixture_advance(fixture, 10);
        API(Decision) *decision =
            i > 0 ? fixture_fail_run(fixture, "broken") : fixture_complete_run(fixture);
        if (i == 0)
            decision->complete_workflow_execution_decision_attributes->result =
                fixture_payload(fixture, "good");
        decide(fixture, decision);
    }
    EXPECT_EQ(fixture->run_count, 4);
    const API(WorkflowExecutionContinuedAsNewEventAttributes) *last = last_event_of(fixture, 2);
    EXPECT_EQ(last->initiator, INITIATOR(CRON_SCHEDULE));
    EXPECT_TEXT(last->failure->reason, "broken");
    EXPECT_TEXT(first_event(fixture)->continued_failure->reason, "broken");
    EXPECT_EQ(first_event(fixture)->continued_failure->details.len, strlen("details"));
    EXPECT_TEXT(fixture_payload_text(fixture, first_event(fixture)->last_completion_result),
                "good");
    fixture_advance(fixture, 10);
    decide(fixture, fixture_complete_run(fixture));
    EXPECT(first_event(fixture)->continued_failure == NULL);
}

/* The worker has the decision and never answers. */
COMMAND_TEST(cron_run, one_that_times_out_is_followed_by_the_next, "A-186")
{
    API(StartWorkflowExecutionRequest) *request = cron_request(fixture, "@every 60s");
    request->execution_start_to_close_timeout = fixture_duration(fixture, 5);
    request->retry_policy =
        API_NEW(fixture->arena, retry_policy, .initial_interval = fixture_duration(fixture, 100),
                .backoff_coefficient = 1, .expiration_interval = fixture_duration(fixture, 50));
    EXPECT_OK(fixture_start(fixture, request));
    int64_t expiration = fixture_run(fixture)->core->expiration_time;
    fixture_advance(fixture, 60);
    EXPECT(fixture_poll_decision(fixture));
    fixture_advance(fixture, 5);
    EXPECT_EQ(fixture->run_count, 2);
    EXPECT_HISTORY_OF(fixture, 0,
                      "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                      "DecisionTaskFailed WorkflowExecutionContinuedAsNew");
    const API(WorkflowExecutionContinuedAsNewEventAttributes) *last = last_event_of(fixture, 0);
    EXPECT_EQ(last->initiator, INITIATOR(CRON_SCHEDULE));
    EXPECT_TEXT(last->failure->reason, "cadenceInternal:Timeout START_TO_CLOSE");
    EXPECT_EQ(last->backoff_start_interval->seconds, 55);
    EXPECT_EQ(fixture_run(fixture)->core->expiration_time, expiration + 60 * SECOND);
    EXPECT_EQ(fixture_run(fixture)->core->attempt, 0);
    fixture_advance(fixture, 55);
    EXPECT(fixture_poll_decision(fixture));
}

TEST(cron_run, it_stops_when_it_is_terminated_or_cancelled, "A-187")
{
    for (int i = 0; i < 4; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        EXPECT_OK(fixture_start(fixture, cron_request(fixture, "@every 10s")));
        fixture_advance(fixture, 10);
        if (i == 0) {
            EXPECT_OK(fixture_terminate(fixture));
        } else {
            EXPECT_OK(fixture_request_cancel(fixture, "please"));
            EXPECT(fixture_poll_decision(fixture));
        }
        if (i == 1)
            EXPECT_OK(fixture_complete(fixture, fixture_cancel_run(fixture)));
        if (i == 2)
            EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
        if (i == 3)
            fixture_advance(fixture, 100); /* it times out, and was asked to end */
        EXPECT_EQ(fixture->run_count, 1);
        EXPECT(!run_is_open(fixture_run(fixture)));
    }
}

TEST(cron_run, fires_that_were_missed_are_skipped_or_one_is_made_up_for, "A-188")
{
    for (int i = 0; i < 2; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        API(StartWorkflowExecutionRequest) *request = cron_request(fixture, "@every 10s");
        request->cron_overlap_policy = i == 0 ? SKIPPED : BUFFER_ONE;
        EXPECT_OK(fixture_start(fixture, request));
        fixture_advance(fixture, 10);
        EXPECT(fixture_poll_decision(fixture));
        fixture_advance(fixture, 5); /* in time: the policy does not matter */
        EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
        EXPECT_EQ(wait_of(fixture), 5);
        fixture_advance(fixture, 5);
        EXPECT(fixture_poll_decision(fixture));
        fixture_advance(fixture, 9);
        EXPECT_OK(fixture_complete(fixture)); /* it goes on for long */
        EXPECT_OK(fixture_signal(fixture, "go", ""));
        fixture_advance(fixture, 26);
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
        EXPECT_EQ(wait_of(fixture), i == 0 ? 5 : 0);
        EXPECT_EQ(fixture_run(fixture)->core->cron_overlap_policy, request->cron_overlap_policy);
        EXPECT_EQ(fixture_task(fixture,
                               CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION) != NULL,
                  i == 1);
    }
}

TEST(cron_run, jitter_is_added_to_every_wait, "A-043")
{
    bool seen[2][4] = {{false}};
    for (int i = 0; i < 100; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        random_seed(&fixture->random, (uint64_t)i);
        API(StartWorkflowExecutionRequest) *request = cron_request(fixture, "* * * * *");
        request->jitter_start = fixture_duration(fixture, 3);
        EXPECT_OK(fixture_start(fixture, request)); /* it is :20 */
        for (int j = 0; j < 2; j++) {
            int64_t wait = wait_of(fixture), least = 60 - fixture->context.now / SECOND % 60;
            EXPECT(wait >= least && wait <= least + 3);
            seen[j][wait - least] = true;
            fixture_advance(fixture, wait);
            decide(fixture, fixture_complete_run(fixture));
        }
        EXPECT_EQ(fixture_run(fixture)->core->jitter_start, 3);
    }
    for (int i = 0; i < 8; i++)
        EXPECT(seen[i / 4][i % 4]);
}

COMMAND_TEST(cron_run, a_decision_to_go_on_with_a_bad_schedule_is_refused, "A-182")
{
    fixture_begin(fixture);
    API(Decision) *decision = fixture_continue_as_new(fixture);
    decision->continue_as_new_workflow_execution_decision_attributes->cron_schedule =
        (char *)"0 0 30 2 *";
    decide(fixture, decision);
    EXPECT_EQ(fixture->run_count, 1);
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(
        failed->cause,
        API_VALUE(
            DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES));
    struct slice details = presence_read_bytes(failed->failure->details);
    EXPECT_TEXT(arena_text_of(fixture->arena, details),
                "Invalid CronSchedule, no next firing time found, maybe impossible date: "
                "\"0 0 30 2 *\"");
}

TEST(cron_run, a_schedule_is_refused_with_the_words_that_clients_know, "A-182")
{
    struct arena *arena = arena_new(0);
    EXPECT_TEXT(schedule_fault("x", 0, arena),
                "Invalid CronSchedule, failed to parse: \"x\", err: expected exactly 5 fields, "
                "found 1: [x]");
    EXPECT(schedule_fault("", 0, arena) == NULL);
    EXPECT(schedule_fault("CRON_TZ=Europe/Paris @hourly", 0, arena) == NULL);
    EXPECT_EQ(schedule_period("* * * * *"), 60);
    EXPECT_EQ(schedule_period("@every 20s"), 20);
    EXPECT_EQ(schedule_period("0 3 * * *"), 3 * 3600);
    arena_free(arena);
}

/* What Cadence answers for these. Times are counted from 2018-12-17 00:00 UTC. */
TEST(cron_run, the_wait_after_a_run_is_as_cadence_works_it_out, "A-188")
{
    const int64_t day = 1545004800, hour = 3600;
    const struct {
        const char *schedule;
        int64_t start, end, skipped, buffered;
    } cases[] = {
        {"0 10 * * *", 16 * hour, 16 * hour, 18 * hour, 18 * hour},
        {"0 10 * * *", 34 * hour, 34 * hour, 24 * hour, 24 * hour},
        {"0 10 * * *", 8 * hour, 72 * hour, 10 * hour, 0},
        {"0 10 * * *", 8 * hour, 9 * hour, hour, hour},
        {"*/10 * * * *", 240, hour + 120, 480, 0},
        {"@every 5h", 8 * hour, 9 * hour, 4 * hour, 4 * hour},
        {"@every 5h", 8 * hour, 24 * hour, 4 * hour, 0},
        {"0 10 * * *", 10 * hour, 11 * hour, 23 * hour, 23 * hour},
        {"0 10 * * *", 10 * hour, 34 * hour + 2700, 23 * hour + 900, 0},
        {"0 10 * * *", 10 * hour, 322 * hour + 2700, 23 * hour + 900, 0},
        {"0 10 * * *", 10 * hour, 34 * hour, 0, 0},
        {"CRON_TZ=America/New_York 5 16 * * *", 0, 20 * hour, hour + 300, hour + 300},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        int64_t start = (day + cases[i].start) * SECOND, end = (day + cases[i].end) * SECOND;
        EXPECT_EQ(schedule_backoff(cases[i].schedule, SKIPPED, start, end), cases[i].skipped);
        EXPECT_EQ(schedule_backoff(cases[i].schedule, BUFFER_ONE, start, end), cases[i].buffered);
        EXPECT_EQ(schedule_backoff(cases[i].schedule, 0, start, end), cases[i].skipped);
    }
}

/* A year passes: every fire has its run, none is early, none is late, none comes twice. */
COMMAND_TEST(cron_run, a_year_of_cron)
{
    struct cron cron;
    const char *schedule = "CRON_TZ=Europe/Paris 30 */6 * * *";
    EXPECT(cron_parse(schedule, fixture->arena, &cron) == NULL);
    EXPECT_OK(fixture_start(fixture, cron_request(fixture, schedule)));
    int64_t fire = fixture->context.now / SECOND, end = fire + 365 * 86400;
    int runs = 0;
    for (; fire < end; runs++) {
        fire = cron_next(&cron, fire);
        fixture_advance(fixture, fire - fixture->context.now / SECOND - 1);
        EXPECT(!fixture_poll_decision(fixture));
        fixture_advance(fixture, 1);
        decide(fixture, fixture_complete_run(fixture));
        fixture_forget_closed(fixture);
    }
    EXPECT(runs > 4 * 364 && runs < 4 * 366);
}
