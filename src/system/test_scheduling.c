/* test_scheduling.c - see test_scheduling.h. */
#include "system/test_scheduling.h"

void
scheduling_open(struct fixture *fixture)
{
    fixture->timeout = 30 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    listing_wait(fixture);
}

void
scheduling_wait(struct fixture *fixture, int64_t seconds)
{
    EXPECT_OK(fiber_sleep(seconds * NS_PER_S, fixture->arena));
}

API(CreateScheduleRequest) *
scheduling_new(struct fixture *fixture, const char *id, const char *cron)
{
    struct arena *arena = fixture->arena;
    API(CreateScheduleRequest) *request = API_NEW(arena, create_schedule_request);
    API(ScheduleAction__StartWorkflowAction) *action =
        message_new(arena, API_TYPE(schedule_action__start_workflow_action));
    request->domain = "orders";
    request->schedule_id = (char *)id;
    request->spec = API_NEW(arena, schedule_spec, .cron_expression = (char *)cron);
    request->action = API_NEW(arena, schedule_action, .start_workflow = action);
    action->workflow_type = API_NEW(arena, workflow_type, .name = "order");
    action->task_list = fixture_list(fixture, "work");
    action->execution_start_to_close_timeout = presence_make_duration(arena, 100000);
    action->task_start_to_close_timeout = presence_make_duration(arena, 10);
    request->policies = API_NEW(arena, schedule_policies);
    return request;
}

struct error *
scheduling_try(struct fixture *fixture, const API(CreateScheduleRequest) *request)
{
    API(CreateScheduleResponse) *response;
    struct error *err = fixture_call(fixture, request, &response);
    if (err == NULL)
        EXPECT_TEXT(response->schedule_id, request->schedule_id);
    return err;
}

void
scheduling_create(struct fixture *fixture, const API(CreateScheduleRequest) *request)
{
    EXPECT_OK(scheduling_try(fixture, request));
}

const API(DescribeScheduleResponse) *
scheduling_describe(struct fixture *fixture, const char *id)
{
    return API_OK(fixture, describe_schedule, .domain = "orders", .schedule_id = (char *)id);
}

void
scheduling_pause(struct fixture *fixture, const char *id, const char *reason)
{
    EXPECT_OK(API_CALL(fixture, NULL, pause_schedule, .domain = "orders", .schedule_id = (char *)id,
                       .reason = (char *)reason, .identity = "somebody"));
}

void
scheduling_unpause(struct fixture *fixture, const char *id, API(ScheduleCatchUpPolicy) policy)
{
    EXPECT_OK(API_CALL(fixture, NULL, unpause_schedule, .domain = "orders",
                       .schedule_id = (char *)id, .catch_up_policy = policy));
}

void
scheduling_delete(struct fixture *fixture, const char *id)
{
    EXPECT_OK(
        API_CALL(fixture, NULL, delete_schedule, .domain = "orders", .schedule_id = (char *)id));
}

API(UpdateScheduleRequest) *
scheduling_update(struct fixture *fixture, const char *id)
{
    return API_NEW(fixture->arena, update_schedule_request, .domain = "orders",
                   .schedule_id = (char *)id);
}

void
scheduling_send_update(struct fixture *fixture, const API(UpdateScheduleRequest) *request)
{
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

API(BackfillScheduleRequest) *
scheduling_backfill(struct fixture *fixture, const char *id, int64_t from, int64_t to)
{
    API(BackfillScheduleRequest) *request = API_NEW(fixture->arena, backfill_schedule_request);
    int64_t now = clock_wall();
    request->domain = "orders";
    request->schedule_id = (char *)id;
    request->start_time = presence_make_timestamp(fixture->arena, now - from * NS_PER_S);
    request->end_time = presence_make_timestamp(fixture->arena, now - to * NS_PER_S);
    return request;
}

const API(ListSchedulesResponse) *
scheduling_list(struct fixture *fixture, int32_t page_size, ProtobufCBinaryData token)
{
    return API_OK(fixture, list_schedules, .domain = "orders", .page_size = page_size,
                  .next_page_token = token);
}

int64_t
scheduling_count_where(struct fixture *fixture, const char *query)
{
    int64_t count = 0;
    EXPECT_OK(list_send_count(fixture, query, &count));
    return count;
}

int64_t
scheduling_count(struct fixture *fixture, const char *id)
{
    return scheduling_count_where(fixture,
                                  arena_format(fixture->arena, "CadenceScheduleID = '%s'", id));
}

static void
answer_one(struct fixture *fixture, API(Decision) *decision)
{
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decision));
}

void
scheduling_end_one(struct fixture *fixture)
{
    answer_one(fixture, decide_end(fixture));
}

void
scheduling_fail_one(struct fixture *fixture)
{
    API(Decision) *decision =
        API_DECISION(fixture->arena, fail_workflow_execution,
                     .failure = API_NEW(fixture->arena, failure, .reason = "sold out"));
    answer_one(fixture, decision);
}
