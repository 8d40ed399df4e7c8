/* schedule_test.c - what a schedule does next, from its history. */
#include "schedule/test/schedule_fixture.h"

static API(SchedulePolicies) *
policies_of(struct schedule_fixture *schedule_fixture)
{
    return schedule_fixture->folded.definition->policies;
}

static void
unpause(struct schedule_fixture *schedule_fixture, API(ScheduleCatchUpPolicy) policy)
{
    API(UnpauseScheduleRequest) *request =
        API_NEW(schedule_fixture->arena, unpause_schedule_request, .catch_up_policy = policy);
    schedule_fixture_signal(schedule_fixture, SCHEDULE_UNPAUSE, &request->base);
}

static void
pause(struct schedule_fixture *schedule_fixture)
{
    API(PauseScheduleRequest) *request =
        API_NEW(schedule_fixture->arena, pause_schedule_request, .reason = "why not");
    schedule_fixture_signal(schedule_fixture, SCHEDULE_PAUSE, &request->base);
}

static void
backfill(struct schedule_fixture *schedule_fixture, const char *id, int64_t from, int64_t to)
{
    API(BackfillScheduleRequest) *request =
        API_NEW(schedule_fixture->arena, backfill_schedule_request,
                .start_time = presence_make_timestamp(schedule_fixture->arena, from * NANOSECONDS),
                .end_time = presence_make_timestamp(schedule_fixture->arena, to * NANOSECONDS),
                .backfill_id = (char *)id);
    schedule_fixture_signal(schedule_fixture, SCHEDULE_BACKFILL, &request->base);
}

/* --- waiting and firing ---- */

ARENA_TEST(schedule, it_waits_by_a_timer_and_fires_when_the_time_has_come)
{
    struct schedule_fixture schedule_fixture;
    schedule_fixture_begin(&schedule_fixture, arena, schedule_fixture_request(arena, "@every 60s"));
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.fires && schedule_fixture.plan.has_timer);
    EXPECT_EQ(schedule_fixture.plan.timer_seconds, 60);
    schedule_fixture_at(&schedule_fixture, 1030); /* woken for nothing: the timer runs already */
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.fires && !schedule_fixture.plan.has_timer &&
           !schedule_fixture.plan.has_marker);
    schedule_fixture_at(&schedule_fixture, 1060);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(schedule_fixture.plan.fires);
    EXPECT_EQ(schedule_fixture.task->n_fires, 1);
    EXPECT_EQ(schedule_fixture.task->fires[0]->nominal, 1060);
    schedule_fixture_decide(&schedule_fixture); /* one activity at a time */
    EXPECT(!schedule_fixture.plan.fires);
    schedule_fixture_fired(&schedule_fixture);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->total_runs, 1);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_ready, 0);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.fires);
}

/* The report of a start may be lost in a hundred ways; what is asked for then must be the same. */
ARENA_TEST(schedule, what_was_lost_is_asked_for_again_with_the_same_ids)
{
    struct schedule_fixture schedule_fixture;
    schedule_fixture_begin(&schedule_fixture, arena, schedule_fixture_request(arena, "@every 60s"));
    schedule_fixture_at(&schedule_fixture, 1060);
    schedule_fixture_decide(&schedule_fixture);
    const API(StartWorkflowExecutionRequest) *first =
        schedule_start_request(schedule_fixture.task, schedule_fixture.task->fires[0], arena);
    schedule_fixture_at(&schedule_fixture, 1100);
    schedule_fixture_lost(&schedule_fixture);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(schedule_fixture.plan.fires);
    const API(StartWorkflowExecutionRequest) *second =
        schedule_start_request(schedule_fixture.task, schedule_fixture.task->fires[0], arena);
    EXPECT_TEXT(second->request_id, first->request_id);
    EXPECT_TEXT(second->workflow_id, first->workflow_id);
    EXPECT_TEXT(first->workflow_id, "plan-1970-01-01T00:17:40Z");
    schedule_fixture_fired(&schedule_fixture);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->total_runs, 1);
}

ARENA_TEST(schedule, no_two_fires_have_the_same_request_id)
{
    STORED(ScheduleTask) *task = STORED_NEW(arena, schedule_task);
    STORED(ScheduleFire) *fire = schedule_new_fire(arena, 60);
    task->action = schedule_fixture_request(arena, "@every 60s")->action;
    task->schedule_id = "plan";
    const char *one = schedule_start_request(task, fire, arena)->request_id;
    fire->backfill_id = "b";
    const char *two = schedule_start_request(task, fire, arena)->request_id;
    fire->nominal = 120;
    const char *three = schedule_start_request(task, fire, arena)->request_id;
    task->schedule_id = "plan b";
    fire->backfill_id = "";
    const char *four = schedule_start_request(task, fire, arena)->request_id;
    const char *all[] = {one, two, three, four};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            EXPECT(strcmp(all[i], all[j]) != 0);
}

/* --- late ---- */

static void
sleep_through(struct schedule_fixture *schedule_fixture, struct arena *arena,
              API(ScheduleCatchUpPolicy) policy)
{
    API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "@every 60s");
    request->policies->overlap_policy = OVERLAP(CONCURRENT);
    request->policies->catch_up_policy = policy;
    schedule_fixture_begin(schedule_fixture, arena, request);
    schedule_fixture_at(schedule_fixture,
                        1370); /* 1060 was waited for; 1120 ... 1300 are late, 1360 is not */
    schedule_fixture_decide(schedule_fixture);
}

ARENA_TEST(schedule, after_an_outage_the_catch_up_policy_has_what_is_late, "A-275")
{
    struct schedule_fixture schedule_fixture;
    sleep_through(&schedule_fixture, arena, CATCH_UP(SKIP));
    EXPECT_EQ(schedule_fixture.task->n_fires, 2);
    EXPECT_EQ(schedule_fixture.task->fires[0]->nominal, 1060);
    EXPECT_EQ(schedule_fixture.task->fires[1]->nominal, 1360);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->missed_runs, 4);
    sleep_through(&schedule_fixture, arena, CATCH_UP(ONE));
    EXPECT_EQ(schedule_fixture.task->n_fires, 3);
    EXPECT_EQ(schedule_fixture.task->fires[1]->nominal, 1300);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->missed_runs, 3);
    sleep_through(&schedule_fixture, arena, CATCH_UP(ALL));
    EXPECT_EQ(schedule_fixture.task->n_fires, 4); /* 1120 ... 1300 first */
    EXPECT_EQ(schedule_fixture.task->fires[0]->nominal, 1120);
    schedule_fixture_fired(&schedule_fixture);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT_EQ(schedule_fixture.task->n_fires, 2);
    schedule_fixture_fired(&schedule_fixture);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->total_runs, 6);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->missed_runs, 0);
}

ARENA_TEST(schedule, what_is_older_than_the_window_is_missed, "A-275")
{
    struct schedule_fixture schedule_fixture;
    API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "@every 60s");
    request->policies->overlap_policy = OVERLAP(CONCURRENT);
    request->policies->catch_up_policy = CATCH_UP(ALL);
    request->policies->catch_up_window = presence_make_duration(arena, 150);
    schedule_fixture_begin(&schedule_fixture, arena, request);
    pause(&schedule_fixture);
    schedule_fixture_at(&schedule_fixture,
                        1600); /* 1060 ... 1600: ten, of which 1480, 1540, 1600 are young enough */
    unpause(&schedule_fixture, CATCH_UP(INVALID));
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->missed_runs, 7);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT_EQ(schedule_fixture.task->n_fires, 3);
    EXPECT_EQ(schedule_fixture.task->fires[0]->nominal, 1480);
}

ARENA_TEST(schedule, a_window_that_is_not_given_is_a_year_where_one_counts, "A-275")
{
    struct schedule_fixture schedule_fixture;
    API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "@every 60s");
    request->policies->catch_up_policy = CATCH_UP(ONE);
    schedule_fixture_begin(&schedule_fixture, arena, request);
    EXPECT_EQ(policies_of(&schedule_fixture)->catch_up_window->seconds, 365 * 86400);
    request->policies->catch_up_policy = CATCH_UP(SKIP);
    schedule_fixture_begin(&schedule_fixture, arena, request);
    EXPECT(policies_of(&schedule_fixture)->catch_up_window == NULL);
}

/* A pause counts from its event, however late the next decision is. */
ARENA_TEST(schedule, what_was_due_before_a_pause_is_kept_and_what_comes_in_it_is_not)
{
    struct schedule_fixture schedule_fixture;
    schedule_fixture_begin(&schedule_fixture, arena, schedule_fixture_request(arena, "@every 60s"));
    schedule_fixture_at(&schedule_fixture, 1061);
    pause(&schedule_fixture);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_ready, 1);
    schedule_fixture_at(&schedule_fixture, 1500);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.fires && !schedule_fixture.plan.has_timer &&
           !schedule_fixture.plan.is_over);
    unpause(&schedule_fixture, CATCH_UP(INVALID));
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->missed_runs, 7);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT_EQ(schedule_fixture.task->n_fires, 1);
    EXPECT_EQ(schedule_fixture.task->fires[0]->nominal, 1060);
}

/* --- going on ---- */

ARENA_TEST(schedule, the_next_run_knows_what_this_one_knew)
{
    struct schedule_fixture schedule_fixture, next;
    API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "@every 60s");
    request->policies->overlap_policy = OVERLAP(BUFFER);
    schedule_fixture_begin(&schedule_fixture, arena, request);
    schedule_fixture_at(&schedule_fixture, 1060);
    schedule_fixture_decide(&schedule_fixture);
    schedule_fixture_fired(&schedule_fixture);
    backfill(&schedule_fixture, "b", 100, 500);
    schedule_fixture.limits.events = 3;
    schedule_fixture_at(&schedule_fixture, 1120);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(schedule_fixture.plan.continues && !schedule_fixture.plan.fires &&
           !schedule_fixture.plan.has_timer);
    schedule_fixture_begin_with(&next, arena, schedule_fixture.plan.input, 1121 * NANOSECONDS);
    const STORED(ScheduleProgress) *progress = schedule_fixture_progress(&next);
    EXPECT_EQ(progress->total_runs, 1);
    EXPECT_EQ(progress->create_time, 1000 * NANOSECONDS);
    EXPECT_EQ(progress->n_ready, 1);
    EXPECT_EQ(progress->n_running, 1);
    EXPECT_EQ(progress->n_backfills, 1);
    schedule_fixture_decide(&next);
    EXPECT_EQ(next.task->fires[0]->nominal, 1120);
    EXPECT(next.plan.has_timer);
}

ARENA_TEST(schedule, a_run_does_not_continue_while_an_activity_is_at_work)
{
    struct schedule_fixture schedule_fixture;
    schedule_fixture_begin(&schedule_fixture, arena, schedule_fixture_request(arena, "@every 60s"));
    schedule_fixture_at(&schedule_fixture, 1060);
    schedule_fixture_decide(&schedule_fixture);
    schedule_fixture.limits.events = 1;
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.continues);
    schedule_fixture_fired(&schedule_fixture);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(schedule_fixture.plan.continues);
}

ARENA_TEST(schedule, it_ends_when_it_is_deleted_or_has_nothing_left, "A-284")
{
    struct schedule_fixture schedule_fixture;
    API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "@every 60s");
    schedule_fixture_begin(&schedule_fixture, arena, request);
    schedule_fixture_signal(&schedule_fixture, SCHEDULE_DELETE, NULL);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(schedule_fixture.plan.is_over);
    request->spec->end_time = presence_make_timestamp(arena, 1070 * NANOSECONDS);
    schedule_fixture_begin(&schedule_fixture, arena, request);
    schedule_fixture_at(&schedule_fixture, 1090);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.is_over && schedule_fixture.plan.fires);
    schedule_fixture_fired(&schedule_fixture);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(schedule_fixture.plan.is_over);
}

/* --- updates ---- */

static void
update(struct schedule_fixture *schedule_fixture, const char *cron, int64_t end)
{
    API(UpdateScheduleRequest) *request = API_NEW(
        schedule_fixture->arena, update_schedule_request,
        .spec = API_NEW(schedule_fixture->arena, schedule_spec, .cron_expression = (char *)cron,
                        .end_time =
                            presence_make_timestamp(schedule_fixture->arena, end * NANOSECONDS)));
    schedule_fixture_signal(schedule_fixture, SCHEDULE_UPDATE, &request->base);
}

ARENA_TEST(schedule, another_end_keeps_the_rhythm_and_another_rhythm_begins_again, "A-277")
{
    struct schedule_fixture schedule_fixture;
    schedule_fixture_begin(&schedule_fixture, arena, schedule_fixture_request(arena, "@every 60s"));
    backfill(&schedule_fixture, "b", 100, 500);
    schedule_fixture_at(&schedule_fixture, 1050);
    update(&schedule_fixture, "@every 60s", 9999);
    EXPECT_EQ(schedule_next(&schedule_fixture.folded,
                            schedule_fixture_progress(&schedule_fixture)->watermark),
              1060);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_backfills, 1);
    schedule_fixture_at(&schedule_fixture, 1065); /* nobody looked; 1060 was due and is not lost */
    update(&schedule_fixture, "@every 100s", 9999);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_ready, 1);
    EXPECT_EQ(schedule_next(&schedule_fixture.folded,
                            schedule_fixture_progress(&schedule_fixture)->watermark),
              1165);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_backfills, 0);
}

/* --- runs ---- */

ARENA_TEST(schedule, a_buffer_waits_for_the_run_and_looks_less_and_less_often, "A-274")
{
    struct schedule_fixture schedule_fixture;
    API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "0 * * * *");
    request->policies->overlap_policy = OVERLAP(BUFFER);
    schedule_fixture_begin(&schedule_fixture, arena, request);
    schedule_fixture_at(&schedule_fixture, 3600);
    schedule_fixture_decide(&schedule_fixture);
    schedule_fixture_fired(&schedule_fixture);
    schedule_fixture_at(&schedule_fixture, 7200);
    schedule_fixture_decide(&schedule_fixture);
    schedule_fixture_fired_some(&schedule_fixture, 0, END(STARTED));
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_buffered, 1);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT(!schedule_fixture.plan.fires && schedule_fixture.plan.has_timer);
    EXPECT_EQ(schedule_fixture.plan.timer_seconds, 30); /* it has run for an hour */
    schedule_fixture_at(&schedule_fixture, 7230);
    schedule_fixture_decide(&schedule_fixture);
    EXPECT_EQ(schedule_fixture.task->fires[0]->nominal, 7200);
    schedule_fixture_fired(&schedule_fixture);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_buffered, 0);
    EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->total_runs, 2);
}

TEST(schedule, only_failures_pause_and_only_if_that_is_wanted, "A-279")
{
    static const struct {
        API(WorkflowExecutionCloseStatus) status;
        bool wants, pauses;
    } ends[] = {{2, true, true}, {1, true, false}, {3, true, false}, {2, false, false}};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct schedule_fixture schedule_fixture;
        API(CreateScheduleRequest) *request = schedule_fixture_request(arena, "@every 60s");
        request->policies->pause_on_failure = ends[i].wants;
        schedule_fixture_begin(&schedule_fixture, arena, request);
        schedule_fixture_at(&schedule_fixture, 1060);
        schedule_fixture_decide(&schedule_fixture);
        schedule_fixture_fired(&schedule_fixture);
        schedule_fixture_at(&schedule_fixture, 1120);
        schedule_fixture_decide(&schedule_fixture);
        schedule_fixture_closed(&schedule_fixture, "run-1060", ends[i].status);
        EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->is_paused, ends[i].pauses);
        EXPECT_EQ(schedule_fixture_progress(&schedule_fixture)->n_running, 0);
    }
}
