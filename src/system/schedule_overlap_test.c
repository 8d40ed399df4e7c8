/* schedule_overlap_test.c - what a schedule does when a workflow that it started is still running,
 * or has failed. */
#include "system/test_scheduling.h"

static const API(ScheduleInfo) *
info_of(struct fixture *fixture, const char *id)
{
    return scheduling_describe(fixture, id)->info;
}

static void
begin(struct fixture *fixture, API(ScheduleOverlapPolicy) policy)
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "busy", "@every 60s");
    request->policies->overlap_policy = policy;
    request->policies->buffer_limit = policy == OVERLAP(BUFFER) ? 2 : 0;
    scheduling_create(fixture, request);
    scheduling_wait(fixture, 61);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 1);
}

static int64_t
count_closed(struct fixture *fixture, const char *status)
{
    return scheduling_count_where(
        fixture,
        arena_format(fixture->arena, "CadenceScheduleID = 'busy' and CloseStatus = '%s'", status));
}

SERVER_TEST(schedule_overlap, by_default_a_fire_is_skipped_while_a_run_is_open, "A-274")
{
    begin(fixture, OVERLAP(INVALID)); /* which is SKIP_NEW */
    scheduling_wait(fixture, 120);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 1);
    EXPECT_EQ(info_of(fixture, "busy")->skipped_runs, 2);
    scheduling_end_one(fixture);
    scheduling_wait(fixture, 60);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 2);
    EXPECT_EQ(scheduling_count(fixture, "busy"), 2);
}

SERVER_TEST(schedule_overlap, buffered_fires_are_started_one_after_the_other, "A-274")
{
    begin(fixture, OVERLAP(BUFFER));
    scheduling_wait(fixture, 180); /* three more, of which two fit */
    const API(ScheduleInfo) *info = info_of(fixture, "busy");
    EXPECT_EQ(info->total_runs, 1);
    EXPECT_EQ(info->buffered_fire_count, 2);
    EXPECT_EQ(info->skipped_runs, 1);
    int64_t last = info->last_run_time->seconds;
    scheduling_end_one(fixture);
    scheduling_wait(fixture, 25);
    info = info_of(fixture, "busy");
    EXPECT_EQ(info->total_runs, 2);
    EXPECT_EQ(info->buffered_fire_count, 1);
    EXPECT_EQ(info->last_run_time->seconds, last);
    scheduling_end_one(fixture);
    scheduling_wait(fixture, 5);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 3); /* a run that is short is looked at soon */
    EXPECT_EQ(info_of(fixture, "busy")->buffered_fire_count, 0);
    EXPECT_EQ(scheduling_count(fixture, "busy"), 3);
    API(UpdateScheduleRequest) *update = scheduling_update(fixture, "busy");
    scheduling_wait(fixture, 60);
    EXPECT_EQ(info_of(fixture, "busy")->buffered_fire_count, 1);
    update->policies = API_NEW(fixture->arena, schedule_policies);
    scheduling_send_update(fixture, update);
    EXPECT_EQ(info_of(fixture, "busy")->buffered_fire_count, 0);
    EXPECT_EQ(info_of(fixture, "busy")->skipped_runs, 2);
}

SERVER_TEST(schedule_overlap, concurrent_runs_are_limited_only_if_a_limit_is_given, "A-274")
{
    begin(fixture, OVERLAP(CONCURRENT));
    scheduling_wait(fixture, 180);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 4);
    API(UpdateScheduleRequest) *update = scheduling_update(fixture, "busy");
    update->policies = API_NEW(fixture->arena, schedule_policies,
                               .overlap_policy = OVERLAP(CONCURRENT), .concurrency_limit = 3);
    scheduling_send_update(fixture, update);
    scheduling_wait(fixture, 180);
    /* Of those before the limit only the last is known. */
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 6);
    EXPECT_EQ(info_of(fixture, "busy")->skipped_runs, 1);
    EXPECT_EQ(info_of(fixture, "busy")->running_workflow_count, 3);
}

SERVER_TEST(schedule_overlap, the_previous_run_is_asked_to_end, "A-274")
{
    begin(fixture, OVERLAP(CANCEL_PREVIOUS));
    scheduling_wait(fixture, 60);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 2);
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    const API(HistoryEvent) *last = NULL;
    for (size_t i = 0; i < task->history->n_events; i++)
        if (task->history->events[i]->attributes_case ==
            EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED))
            last = task->history->events[i];
    EXPECT(last != NULL);
    EXPECT_TEXT(last->workflow_execution_cancel_requested_event_attributes->cause,
                "schedule overlap policy: CANCEL_PREVIOUS");
}

SERVER_TEST(schedule_overlap, the_previous_run_is_terminated, "A-274")
{
    begin(fixture, OVERLAP(TERMINATE_PREVIOUS));
    scheduling_wait(fixture, 120);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 3);
    EXPECT_EQ(count_closed(fixture, "TERMINATED"), 2);
    EXPECT_EQ(scheduling_count(fixture, "busy"), 3);
}

SERVER_TEST(schedule_overlap, a_run_that_fails_pauses_the_schedule_if_it_says_so, "A-279")
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "busy", "@every 60s");
    request->policies->pause_on_failure = true;
    scheduling_create(fixture, request);
    scheduling_wait(fixture, 62);
    scheduling_end_one(fixture);
    scheduling_wait(fixture, 30);
    EXPECT(!scheduling_describe(fixture, "busy")->state->paused);
    scheduling_wait(fixture, 30);
    scheduling_fail_one(fixture);
    scheduling_wait(fixture, 30);
    const API(DescribeScheduleResponse) *described = scheduling_describe(fixture, "busy");
    EXPECT(described->state->paused);
    EXPECT_TEXT(described->state->pause_info->paused_by, "cadence-scheduler");
    EXPECT(strstr(described->state->pause_info->reason, " failed") != NULL);
    scheduling_wait(fixture, 300);
    EXPECT_EQ(info_of(fixture, "busy")->total_runs, 2);
    EXPECT_EQ(count_closed(fixture, "FAILED"), 1);
}
