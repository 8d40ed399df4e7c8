/* test_scheduling.c - see test_scheduling.h. */
#include "system/test_scheduling.h"

#define CALL(method, request, type, response)                                                      \
    EXPECT_OK(scheduling_send(fixture, method, &(request)->base, API_TYPE(type), response))

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
    API(CreateScheduleRequest) *request = message_new(arena, API_TYPE(create_schedule_request));
    API(ScheduleAction__StartWorkflowAction) *action =
        message_new(arena, API_TYPE(schedule_action__start_workflow_action));
    request->domain = "orders";
    request->schedule_id = (char *)id;
    request->spec = message_new(arena, API_TYPE(schedule_spec));
    request->spec->cron_expression = (char *)cron;
    request->action = message_new(arena, API_TYPE(schedule_action));
    request->action->start_workflow = action;
    action->workflow_type = message_new(arena, API_TYPE(workflow_type));
    action->workflow_type->name = "order";
    action->task_list = fixture_list(fixture, "work");
    action->execution_start_to_close_timeout = presence_make_duration(arena, 100000);
    action->task_start_to_close_timeout = presence_make_duration(arena, 10);
    request->policies = message_new(arena, API_TYPE(schedule_policies));
    return request;
}

struct error *
scheduling_send(struct fixture *fixture, const char *method, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *type, void *response)
{
    return fixture_call(fixture, arena_format(fixture->arena, SCHEDULE_API "%s", method), request,
                        type, response);
}

struct error *
scheduling_try(struct fixture *fixture, const API(CreateScheduleRequest) *request)
{
    API(CreateScheduleResponse) *response;
    struct error *err = scheduling_send(fixture, "CreateSchedule", &request->base,
                                        API_TYPE(create_schedule_response), &response);
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
    API(DescribeScheduleRequest) *request =
        message_new(fixture->arena, API_TYPE(describe_schedule_request));
    API(DescribeScheduleResponse) *response;
    request->domain = "orders";
    request->schedule_id = (char *)id;
    CALL("DescribeSchedule", request, describe_schedule_response, &response);
    return response;
}

void
scheduling_pause(struct fixture *fixture, const char *id, const char *reason)
{
    API(PauseScheduleRequest) *request =
        message_new(fixture->arena, API_TYPE(pause_schedule_request));
    API(PauseScheduleResponse) *response;
    request->domain = "orders";
    request->schedule_id = (char *)id;
    request->reason = (char *)reason;
    request->identity = "somebody";
    CALL("PauseSchedule", request, pause_schedule_response, &response);
}

void
scheduling_unpause(struct fixture *fixture, const char *id, API(ScheduleCatchUpPolicy) policy)
{
    API(UnpauseScheduleRequest) *request =
        message_new(fixture->arena, API_TYPE(unpause_schedule_request));
    API(UnpauseScheduleResponse) *response;
    request->domain = "orders";
    request->schedule_id = (char *)id;
    request->catch_up_policy = policy;
    CALL("UnpauseSchedule", request, unpause_schedule_response, &response);
}

void
scheduling_delete(struct fixture *fixture, const char *id)
{
    API(DeleteScheduleRequest) *request =
        message_new(fixture->arena, API_TYPE(delete_schedule_request));
    API(DeleteScheduleResponse) *response;
    request->domain = "orders";
    request->schedule_id = (char *)id;
    CALL("DeleteSchedule", request, delete_schedule_response, &response);
}

API(UpdateScheduleRequest) *
scheduling_update(struct fixture *fixture, const char *id)
{
    API(UpdateScheduleRequest) *request =
        message_new(fixture->arena, API_TYPE(update_schedule_request));
    request->domain = "orders";
    request->schedule_id = (char *)id;
    return request;
}

void
scheduling_send_update(struct fixture *fixture, const API(UpdateScheduleRequest) *request)
{
    API(UpdateScheduleResponse) *response;
    CALL("UpdateSchedule", request, update_schedule_response, &response);
}

API(BackfillScheduleRequest) *
scheduling_backfill(struct fixture *fixture, const char *id, int64_t from, int64_t to)
{
    API(BackfillScheduleRequest) *request =
        message_new(fixture->arena, API_TYPE(backfill_schedule_request));
    int64_t now = clock_wall();
    request->domain = "orders";
    request->schedule_id = (char *)id;
    request->start_time = presence_make_timestamp(fixture->arena, now - from * NS_PER_S);
    request->end_time = presence_make_timestamp(fixture->arena, now - to * NS_PER_S);
    return request;
}

struct error *
scheduling_send_backfill(struct fixture *fixture, const API(BackfillScheduleRequest) *request)
{
    API(BackfillScheduleResponse) *response;
    return scheduling_send(fixture, "BackfillSchedule", &request->base,
                           API_TYPE(backfill_schedule_response), &response);
}

const API(ListSchedulesResponse) *
scheduling_list(struct fixture *fixture, int32_t page_size, ProtobufCBinaryData token)
{
    API(ListSchedulesRequest) *request =
        message_new(fixture->arena, API_TYPE(list_schedules_request));
    API(ListSchedulesResponse) *response;
    request->domain = "orders";
    request->page_size = page_size;
    request->next_page_token = token;
    CALL("ListSchedules", request, list_schedules_response, &response);
    return response;
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
    API(Decision) *decision = message_new(fixture->arena, API_TYPE(decision));
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_FAIL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
    decision->fail_workflow_execution_decision_attributes =
        message_new(fixture->arena, API_TYPE(fail_workflow_execution_decision_attributes));
    decision->fail_workflow_execution_decision_attributes->failure =
        message_new(fixture->arena, API_TYPE(failure));
    decision->fail_workflow_execution_decision_attributes->failure->reason = "sold out";
    answer_one(fixture, decision);
}
