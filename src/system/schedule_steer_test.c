/* schedule_steer_test.c - schedules are paused, updated and backfilled. */
#include "system/test_scheduling.h"

#define NO_TOKEN ((ProtobufCBinaryData){0})

static int64_t
seconds_of(const GOOGLE(Timestamp) *time)
{
    return time == NULL ? 0 : time->seconds;
}

/* --- paused ---- */

SERVER_TEST(schedule, a_paused_schedule_starts_nothing_and_catches_up_as_it_is_told, "A-275",
            "A-276")
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "rest", "@every 10s");
    request->policies->overlap_policy = OVERLAP(CONCURRENT);
    scheduling_create(fixture, request);
    scheduling_wait(fixture, 25);
    scheduling_pause(fixture, "rest", "sale");
    const API(DescribeScheduleResponse) *described = scheduling_describe(fixture, "rest");
    EXPECT(described->state->paused);
    EXPECT_TEXT(described->state->pause_info->reason, "sale");
    EXPECT_TEXT(described->state->pause_info->paused_by, "somebody");
    EXPECT(clock_wall() / NS_PER_S - seconds_of(described->state->pause_info->paused_at) <= 1);
    EXPECT_EQ(described->info->total_runs, 2);
    scheduling_wait(fixture, 50); /* 30, 40, 50, 60, 70 */
    EXPECT_EQ(scheduling_count(fixture, "rest"), 2);
    scheduling_unpause(fixture, "rest", CATCH_UP(INVALID)); /* its own: skip */
    scheduling_wait(fixture, 2);
    described = scheduling_describe(fixture, "rest");
    EXPECT(!described->state->paused && described->state->pause_info == NULL);
    EXPECT_EQ(described->info->missed_runs, 5);
    EXPECT_EQ(described->info->total_runs, 2);
    scheduling_wait(fixture, 5); /* 80 */
    EXPECT_EQ(scheduling_describe(fixture, "rest")->info->total_runs, 3);
    scheduling_pause(fixture, "rest", "");
    scheduling_wait(fixture, 50); /* 90 ... 130 */
    scheduling_unpause(fixture, "rest", CATCH_UP(ALL));
    scheduling_wait(fixture, 2);
    described = scheduling_describe(fixture, "rest");
    EXPECT_EQ(described->info->total_runs, 8);
    EXPECT_EQ(described->info->missed_runs, 5);
    scheduling_pause(fixture, "rest", "");
    scheduling_wait(fixture, 50); /* 140 ... 180 */
    scheduling_unpause(fixture, "rest", CATCH_UP(ONE));
    scheduling_wait(fixture, 2);
    described = scheduling_describe(fixture, "rest");
    EXPECT_EQ(described->info->total_runs, 9);
    EXPECT_EQ(described->info->missed_runs, 9);
    EXPECT_EQ(scheduling_count(fixture, "rest"), 9);
}

SERVER_TEST(schedule, a_schedule_may_be_paused_from_the_start, "A-283")
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *request = scheduling_new(fixture, "later", "@every 10s");
    request->state = API_NEW(fixture->arena, schedule_state, .paused = true,
                             .pause_info = API_NEW(fixture->arena, schedule_pause_info,
                                                   .reason = "not yet", .paused_by = "me"));
    scheduling_create(fixture, request);
    scheduling_wait(fixture, 35);
    const API(DescribeScheduleResponse) *described = scheduling_describe(fixture, "later");
    EXPECT(described->state->paused);
    EXPECT_TEXT(described->state->pause_info->reason, "not yet");
    EXPECT_TEXT(described->state->pause_info->paused_by, "me");
    EXPECT_EQ(seconds_of(described->state->pause_info->paused_at),
              seconds_of(described->info->create_time));
    EXPECT(scheduling_list(fixture, 0, NO_TOKEN)->schedules[0]->state->paused);
    EXPECT_EQ(scheduling_count(fixture, "later"), 0);
    scheduling_unpause(fixture, "later", CATCH_UP(INVALID));
    scheduling_wait(fixture, 10);
    EXPECT_EQ(scheduling_count(fixture, "later"), 1);
    EXPECT(!scheduling_list(fixture, 0, NO_TOKEN)->schedules[0]->state->paused);
}

/* --- updated ---- */

SERVER_TEST(schedule, an_update_replaces_what_it_has_and_keeps_the_rest, "A-277")
{
    scheduling_open(fixture);
    const API(CreateScheduleRequest) *created = scheduling_new(fixture, "old", "@every 1h");
    scheduling_create(fixture, created);
    API(UpdateScheduleRequest) *request = scheduling_update(fixture, "old");
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "At least one of Spec, Action, Policies, or SearchAttributes must be "
                              "set on request.");
    scheduling_wait(fixture, 3);
    request->spec = API_NEW(fixture->arena, schedule_spec, .cron_expression = "@every 10s");
    scheduling_send_update(fixture, request);
    const API(DescribeScheduleResponse) *described = scheduling_describe(fixture, "old");
    EXPECT_TEXT(described->spec->cron_expression, "@every 10s");
    EXPECT(slice_equal(message_encode(fixture->arena, &created->action->base),
                       message_encode(fixture->arena, &described->action->base)));
    EXPECT_EQ(seconds_of(described->info->last_update_time) -
                  seconds_of(described->info->create_time),
              3);
    request->spec = NULL;
    request->policies = API_NEW(fixture->arena, schedule_policies,
                                .overlap_policy = OVERLAP(CONCURRENT), .concurrency_limit = 2);
    scheduling_send_update(fixture, request);
    described = scheduling_describe(fixture, "old");
    EXPECT_TEXT(described->spec->cron_expression, "@every 10s");
    EXPECT_EQ(described->policies->overlap_policy, OVERLAP(CONCURRENT));
    EXPECT_EQ(described->policies->concurrency_limit, 2);
    scheduling_wait(fixture, 35); /* at 13, 23; then two are running */
    described = scheduling_describe(fixture, "old");
    EXPECT_EQ(described->info->total_runs, 2);
    EXPECT_EQ(described->info->skipped_runs, 1);
    EXPECT_EQ(described->info->running_workflow_count, 2);
    const API(ListSchedulesResponse) *list = scheduling_list(fixture, 0, NO_TOKEN);
    EXPECT_TEXT(list->schedules[0]->cron_expression, "@every 10s");
}

/* --- backfills ---- */

static void
backfills(struct fixture *fixture)
{
    scheduling_open(fixture);
    API(CreateScheduleRequest) *create = scheduling_new(fixture, "past", "0 * * * *");
    create->policies->overlap_policy = OVERLAP(SKIP_NEW);
    scheduling_create(fixture, create);
    API(BackfillScheduleRequest) *request = scheduling_backfill(fixture, "past", 0, 10);
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "EndTime must be after StartTime.");
    request = scheduling_backfill(fixture, "past", 1000 * 3600, 0); /* a thousand hours */
    request->overlap_policy = OVERLAP(CONCURRENT);
    request->backfill_id = "lost";
    for (int i = 0; i < 3; i++)
        EXPECT_OK(fixture_call(fixture, request, NULL));
    const API(ScheduleInfo) *info = scheduling_describe(fixture, "past")->info;
    EXPECT_EQ(info->n_ongoing_backfills, 1);
    EXPECT_TEXT(info->ongoing_backfills[0]->backfill_id, "lost");
    EXPECT_EQ(info->ongoing_backfills[0]->runs_total, 1000);
    EXPECT(info->ongoing_backfills[0]->runs_completed < 1000);
    scheduling_wait(fixture, 60);
    EXPECT_OK(fixture_call(fixture, request, NULL)); /* it is remembered */
    scheduling_wait(fixture, 60);
    info = scheduling_describe(fixture, "past")->info;
    EXPECT_EQ(info->n_ongoing_backfills, 0);
    EXPECT_EQ(info->total_runs, 1000);
    EXPECT_EQ(scheduling_count_where(fixture, "CadenceScheduleBackfillID = 'lost' and "
                                              "CadenceScheduleIsBackfill = true"),
              1000);
    scheduling_pause(fixture, "past", "");
    for (int i = 0; i < 10; i++) {
        request->backfill_id = arena_format(fixture->arena, "b%d", i);
        EXPECT_OK(fixture_call(fixture, request, NULL));
    }
    request->backfill_id = "b10";
    EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_LIMIT_EXCEEDED);
    EXPECT_EQ(scheduling_describe(fixture, "past")->info->n_ongoing_backfills, 10);
}

TEST(schedule, a_backfill_starts_each_time_of_its_range_once, "A-278")
{
    fixture_run(backfills);
}
