/* schedule_test.c - what a schedule does next, told by its history. */
#include "schedule/tale.h"

static API(SchedulePolicies) *
policies_of(struct tale *tale)
{
    return tale->folded.definition->policies;
}

static void
unpause(struct tale *tale, API(ScheduleCatchUpPolicy) policy)
{
    API(UnpauseScheduleRequest) *request =
        message_new(tale->arena, API_TYPE(unpause_schedule_request));
    request->catch_up_policy = policy;
    tale_signal(tale, SCHEDULE_UNPAUSE, &request->base);
}

static void
pause(struct tale *tale)
{
    API(PauseScheduleRequest) *request = message_new(tale->arena, API_TYPE(pause_schedule_request));
    request->reason = "why not";
    tale_signal(tale, SCHEDULE_PAUSE, &request->base);
}

static void
backfill(struct tale *tale, const char *id, int64_t from, int64_t to)
{
    API(BackfillScheduleRequest) *request =
        message_new(tale->arena, API_TYPE(backfill_schedule_request));
    request->start_time = presence_make_timestamp(tale->arena, from * NANOSECONDS);
    request->end_time = presence_make_timestamp(tale->arena, to * NANOSECONDS);
    request->backfill_id = (char *)id;
    tale_signal(tale, SCHEDULE_BACKFILL, &request->base);
}

/* --- waiting and firing ---- */

TEST(schedule, it_waits_by_a_timer_and_fires_when_the_time_has_come)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    tale_begin(&tale, arena, tale_request(arena, "@every 60s"));
    tale_decide(&tale);
    EXPECT(!tale.plan.fires && tale.plan.has_timer);
    EXPECT_EQ(tale.plan.timer_seconds, 60);
    tale_at(&tale, 1030); /* woken for nothing: the timer runs already */
    tale_decide(&tale);
    EXPECT(!tale.plan.fires && !tale.plan.has_timer && !tale.plan.has_marker);
    tale_at(&tale, 1060);
    tale_decide(&tale);
    EXPECT(tale.plan.fires);
    EXPECT_EQ(tale.task->n_fires, 1);
    EXPECT_EQ(tale.task->fires[0]->nominal, 1060);
    tale_decide(&tale); /* one activity at a time */
    EXPECT(!tale.plan.fires);
    tale_fired(&tale);
    EXPECT_EQ(tale_progress(&tale)->total_runs, 1);
    EXPECT_EQ(tale_progress(&tale)->n_ready, 0);
    tale_decide(&tale);
    EXPECT(!tale.plan.fires);
}

/* The report of a start may be lost in a hundred ways; what is asked for then must be the same. */
TEST(schedule, what_was_lost_is_asked_for_again_with_the_same_ids)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    tale_begin(&tale, arena, tale_request(arena, "@every 60s"));
    tale_at(&tale, 1060);
    tale_decide(&tale);
    const API(StartWorkflowExecutionRequest) *first =
        schedule_start_request(tale.task, tale.task->fires[0], arena);
    tale_at(&tale, 1100);
    tale_lost(&tale);
    tale_decide(&tale);
    EXPECT(tale.plan.fires);
    const API(StartWorkflowExecutionRequest) *second =
        schedule_start_request(tale.task, tale.task->fires[0], arena);
    EXPECT_TEXT(second->request_id, first->request_id);
    EXPECT_TEXT(second->workflow_id, first->workflow_id);
    EXPECT_TEXT(first->workflow_id, "plan-1970-01-01T00:17:40Z");
    tale_fired(&tale);
    EXPECT_EQ(tale_progress(&tale)->total_runs, 1);
}

TEST(schedule, no_two_fires_have_the_same_request_id)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    STORED(ScheduleTask) *task = message_new(arena, STORED_TYPE(schedule_task));
    STORED(ScheduleFire) *fire = schedule_new_fire(arena, 60);
    task->action = tale_request(arena, "@every 60s")->action;
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
sleep_through(struct tale *tale, struct arena *arena, API(ScheduleCatchUpPolicy) policy)
{
    API(CreateScheduleRequest) *request = tale_request(arena, "@every 60s");
    request->policies->overlap_policy = OVERLAP(CONCURRENT);
    request->policies->catch_up_policy = policy;
    tale_begin(tale, arena, request);
    tale_at(tale, 1370); /* 1060 was waited for; 1120 ... 1300 are late, 1360 is not */
    tale_decide(tale);
}

TEST(schedule, after_an_outage_the_catch_up_policy_has_what_is_late, "A-275")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    sleep_through(&tale, arena, CATCH_UP(SKIP));
    EXPECT_EQ(tale.task->n_fires, 2);
    EXPECT_EQ(tale.task->fires[0]->nominal, 1060);
    EXPECT_EQ(tale.task->fires[1]->nominal, 1360);
    EXPECT_EQ(tale_progress(&tale)->missed_runs, 4);
    sleep_through(&tale, arena, CATCH_UP(ONE));
    EXPECT_EQ(tale.task->n_fires, 3);
    EXPECT_EQ(tale.task->fires[1]->nominal, 1300);
    EXPECT_EQ(tale_progress(&tale)->missed_runs, 3);
    sleep_through(&tale, arena, CATCH_UP(ALL));
    EXPECT_EQ(tale.task->n_fires, 4); /* 1120 ... 1300 first */
    EXPECT_EQ(tale.task->fires[0]->nominal, 1120);
    tale_fired(&tale);
    tale_decide(&tale);
    EXPECT_EQ(tale.task->n_fires, 2);
    tale_fired(&tale);
    EXPECT_EQ(tale_progress(&tale)->total_runs, 6);
    EXPECT_EQ(tale_progress(&tale)->missed_runs, 0);
}

TEST(schedule, what_is_older_than_the_window_is_missed, "A-275")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    API(CreateScheduleRequest) *request = tale_request(arena, "@every 60s");
    request->policies->overlap_policy = OVERLAP(CONCURRENT);
    request->policies->catch_up_policy = CATCH_UP(ALL);
    request->policies->catch_up_window = presence_make_duration(arena, 150);
    tale_begin(&tale, arena, request);
    pause(&tale);
    tale_at(&tale, 1600); /* 1060 ... 1600: ten, of which 1480, 1540, 1600 are young enough */
    unpause(&tale, CATCH_UP(INVALID));
    EXPECT_EQ(tale_progress(&tale)->missed_runs, 7);
    tale_decide(&tale);
    EXPECT_EQ(tale.task->n_fires, 3);
    EXPECT_EQ(tale.task->fires[0]->nominal, 1480);
}

TEST(schedule, a_window_that_is_not_given_is_a_year_where_one_counts, "A-275")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    API(CreateScheduleRequest) *request = tale_request(arena, "@every 60s");
    request->policies->catch_up_policy = CATCH_UP(ONE);
    tale_begin(&tale, arena, request);
    EXPECT_EQ(policies_of(&tale)->catch_up_window->seconds, 365 * 86400);
    request->policies->catch_up_policy = CATCH_UP(SKIP);
    tale_begin(&tale, arena, request);
    EXPECT(policies_of(&tale)->catch_up_window == NULL);
}

/* A pause counts from its event, whenever somebody comes to decide. */
TEST(schedule, what_was_due_before_a_pause_is_kept_and_what_comes_in_it_is_not)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    tale_begin(&tale, arena, tale_request(arena, "@every 60s"));
    tale_at(&tale, 1061);
    pause(&tale);
    EXPECT_EQ(tale_progress(&tale)->n_ready, 1);
    tale_at(&tale, 1500);
    tale_decide(&tale);
    EXPECT(!tale.plan.fires && !tale.plan.has_timer && !tale.plan.is_over);
    unpause(&tale, CATCH_UP(INVALID));
    EXPECT_EQ(tale_progress(&tale)->missed_runs, 7);
    tale_decide(&tale);
    EXPECT_EQ(tale.task->n_fires, 1);
    EXPECT_EQ(tale.task->fires[0]->nominal, 1060);
}

/* --- going on ---- */

TEST(schedule, the_next_run_knows_what_this_one_knew)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale, next;
    API(CreateScheduleRequest) *request = tale_request(arena, "@every 60s");
    request->policies->overlap_policy = OVERLAP(BUFFER);
    tale_begin(&tale, arena, request);
    tale_at(&tale, 1060);
    tale_decide(&tale);
    tale_fired(&tale);
    backfill(&tale, "b", 100, 500);
    tale.limits.events = 3;
    tale_at(&tale, 1120);
    tale_decide(&tale);
    EXPECT(tale.plan.continues && !tale.plan.fires && !tale.plan.has_timer);
    tale_begin_with(&next, arena, tale.plan.input, 1121 * NANOSECONDS);
    const STORED(ScheduleProgress) *progress = tale_progress(&next);
    EXPECT_EQ(progress->total_runs, 1);
    EXPECT_EQ(progress->create_time, 1000 * NANOSECONDS);
    EXPECT_EQ(progress->n_ready, 1);
    EXPECT_EQ(progress->n_running, 1);
    EXPECT_EQ(progress->n_backfills, 1);
    tale_decide(&next);
    EXPECT_EQ(next.task->fires[0]->nominal, 1120);
    EXPECT(next.plan.has_timer);
}

TEST(schedule, a_run_does_not_continue_while_an_activity_is_at_work)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    tale_begin(&tale, arena, tale_request(arena, "@every 60s"));
    tale_at(&tale, 1060);
    tale_decide(&tale);
    tale.limits.events = 1;
    tale_decide(&tale);
    EXPECT(!tale.plan.continues);
    tale_fired(&tale);
    tale_decide(&tale);
    EXPECT(tale.plan.continues);
}

TEST(schedule, it_ends_when_it_is_deleted_or_has_nothing_left, "A-284")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    API(CreateScheduleRequest) *request = tale_request(arena, "@every 60s");
    tale_begin(&tale, arena, request);
    tale_signal(&tale, SCHEDULE_DELETE, NULL);
    tale_decide(&tale);
    EXPECT(tale.plan.is_over);
    request->spec->end_time = presence_make_timestamp(arena, 1070 * NANOSECONDS);
    tale_begin(&tale, arena, request);
    tale_at(&tale, 1090);
    tale_decide(&tale);
    EXPECT(!tale.plan.is_over && tale.plan.fires);
    tale_fired(&tale);
    tale_decide(&tale);
    EXPECT(tale.plan.is_over);
}

/* --- updates ---- */

static void
update(struct tale *tale, const char *cron, int64_t end)
{
    API(UpdateScheduleRequest) *request =
        message_new(tale->arena, API_TYPE(update_schedule_request));
    request->spec = message_new(tale->arena, API_TYPE(schedule_spec));
    request->spec->cron_expression = (char *)cron;
    request->spec->end_time = presence_make_timestamp(tale->arena, end * NANOSECONDS);
    tale_signal(tale, SCHEDULE_UPDATE, &request->base);
}

TEST(schedule, another_end_keeps_the_rhythm_and_another_rhythm_begins_anew, "A-277")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    tale_begin(&tale, arena, tale_request(arena, "@every 60s"));
    backfill(&tale, "b", 100, 500);
    tale_at(&tale, 1050);
    update(&tale, "@every 60s", 9999);
    EXPECT_EQ(schedule_next(&tale.folded, tale_progress(&tale)->watermark), 1060);
    EXPECT_EQ(tale_progress(&tale)->n_backfills, 1);
    tale_at(&tale, 1065); /* nobody looked; 1060 was due and is not lost */
    update(&tale, "@every 100s", 9999);
    EXPECT_EQ(tale_progress(&tale)->n_ready, 1);
    EXPECT_EQ(schedule_next(&tale.folded, tale_progress(&tale)->watermark), 1165);
    EXPECT_EQ(tale_progress(&tale)->n_backfills, 0);
}

/* --- runs ---- */

TEST(schedule, a_buffer_waits_for_the_run_and_looks_less_and_less_often, "A-274")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct tale tale;
    API(CreateScheduleRequest) *request = tale_request(arena, "0 * * * *");
    request->policies->overlap_policy = OVERLAP(BUFFER);
    tale_begin(&tale, arena, request);
    tale_at(&tale, 3600);
    tale_decide(&tale);
    tale_fired(&tale);
    tale_at(&tale, 7200);
    tale_decide(&tale);
    tale_fired_some(&tale, 0, END(STARTED));
    EXPECT_EQ(tale_progress(&tale)->n_buffered, 1);
    tale_decide(&tale);
    EXPECT(!tale.plan.fires && tale.plan.has_timer);
    EXPECT_EQ(tale.plan.timer_seconds, 30); /* it has run for an hour */
    tale_at(&tale, 7230);
    tale_decide(&tale);
    EXPECT_EQ(tale.task->fires[0]->nominal, 7200);
    tale_fired(&tale);
    EXPECT_EQ(tale_progress(&tale)->n_buffered, 0);
    EXPECT_EQ(tale_progress(&tale)->total_runs, 2);
}

TEST(schedule, only_failures_pause_and_only_if_that_is_wanted, "A-279")
{
    static const struct {
        API(WorkflowExecutionCloseStatus) status;
        bool wants, pauses;
    } ends[] = {{2, true, true}, {1, true, false}, {3, true, false}, {2, false, false}};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct tale tale;
        API(CreateScheduleRequest) *request = tale_request(arena, "@every 60s");
        request->policies->pause_on_failure = ends[i].wants;
        tale_begin(&tale, arena, request);
        tale_at(&tale, 1060);
        tale_decide(&tale);
        tale_fired(&tale);
        tale_at(&tale, 1120);
        tale_decide(&tale);
        tale_closed(&tale, "run-1060", ends[i].status);
        EXPECT_EQ(tale_progress(&tale)->is_paused, ends[i].pauses);
        EXPECT_EQ(tale_progress(&tale)->n_running, 0);
    }
}
