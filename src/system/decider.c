/* decider.c - decisions as system workflows make them. See worker.h. */
#include "base/check.h"
#include "base/vector.h"
#include "system/worker.h"
#include "wire/message.h"
#include "wire/presence.h"

static API(Payload) *
payload_of(struct slice bytes, struct arena *arena)
{
    return presence_make_payload(arena,
                                 (struct maybe_bytes){.is_set = bytes.length > 0, .bytes = bytes});
}

/* Does a decision of this kind end the run? */
static bool
is_end(int attributes_case)
{
    switch (attributes_case) {
    case API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES):
    case API_VALUE(DECISION__ATTRIBUTES_FAIL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES):
    case API_VALUE(DECISION__ATTRIBUTES_CANCEL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES):
    case API_VALUE(DECISION__ATTRIBUTES_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES):
        return true;
    default:
        return false;
    }
}

/* The engine refuses decisions behind the end of a run, so a type that made one would be tried
 * again for ever. */
static void
system_decider_check(const struct system_decider *decider)
{
    check(decider->count <= decider->capacity);
    check(decider->count == 0 || !is_end(decider->decisions[decider->count - 1]->attributes_case));
}

API(Decision) *
system_decide(struct system_decider *decider, int attributes_case)
{
    system_decider_check(decider);
    if (decider->count == decider->capacity)
        decider->decisions =
            vector_grow(decider->arena, decider->decisions, decider->count, &decider->capacity,
                        decider->count + 1, sizeof decider->decisions[0]);
    API(Decision) *decision = message_new(decider->arena, API_TYPE(decision));
    decision->attributes_case = attributes_case;
    decider->decisions[decider->count++] = decision;
    return decision;
}

void
system_complete(struct system_decider *decider, struct slice result)
{
    API(Decision) *decision = system_decide(
        decider, API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES));
    decision->complete_workflow_execution_decision_attributes =
        message_new(decider->arena, API_TYPE(complete_workflow_execution_decision_attributes));
    decision->complete_workflow_execution_decision_attributes->result =
        payload_of(result, decider->arena);
}

void
system_fail(struct system_decider *decider, const char *reason, struct slice details)
{
    API(Decision) *decision = system_decide(
        decider, API_VALUE(DECISION__ATTRIBUTES_FAIL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES));
    API(Failure) *failure = message_new(decider->arena, API_TYPE(failure));
    failure->reason = (char *)reason;
    failure->details = presence_make_bytes(details);
    decision->fail_workflow_execution_decision_attributes =
        message_new(decider->arena, API_TYPE(fail_workflow_execution_decision_attributes));
    decision->fail_workflow_execution_decision_attributes->failure = failure;
}

void
system_cancel(struct system_decider *decider, struct slice details)
{
    API(Decision) *decision = system_decide(
        decider, API_VALUE(DECISION__ATTRIBUTES_CANCEL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES));
    decision->cancel_workflow_execution_decision_attributes =
        message_new(decider->arena, API_TYPE(cancel_workflow_execution_decision_attributes));
    decision->cancel_workflow_execution_decision_attributes->details =
        payload_of(details, decider->arena);
}

void
system_schedule(struct system_decider *decider, const struct system_activity_order *order)
{
    struct arena *arena = decider->arena;
    check(order->start_to_close > 0 && order->heartbeat_timeout >= 0);
    check(order->id[0] != '\0' && order->type[0] != '\0' && order->list[0] != '\0');
    API(Decision) *decision = system_decide(
        decider, API_VALUE(DECISION__ATTRIBUTES_SCHEDULE_ACTIVITY_TASK_DECISION_ATTRIBUTES));
    API(ScheduleActivityTaskDecisionAttributes) *attributes =
        message_new(arena, API_TYPE(schedule_activity_task_decision_attributes));
    decision->schedule_activity_task_decision_attributes = attributes;
    attributes->activity_id = (char *)order->id;
    attributes->activity_type = message_new(arena, API_TYPE(activity_type));
    attributes->activity_type->name = (char *)order->type;
    attributes->task_list = message_new(arena, API_TYPE(task_list));
    attributes->task_list->name = (char *)order->list;
    attributes->input = payload_of(order->input, arena);
    attributes->schedule_to_start_timeout = presence_make_duration(arena, order->start_to_close);
    attributes->start_to_close_timeout = presence_make_duration(arena, order->start_to_close);
    attributes->schedule_to_close_timeout = presence_make_duration(arena, order->start_to_close);
    attributes->heartbeat_timeout = presence_make_duration(arena, order->heartbeat_timeout);
    attributes->retry_policy = order->retry;
}

void
system_start_timer(struct system_decider *decider, const char *id, int64_t seconds)
{
    check(seconds > 0);
    API(Decision) *decision =
        system_decide(decider, API_VALUE(DECISION__ATTRIBUTES_START_TIMER_DECISION_ATTRIBUTES));
    decision->start_timer_decision_attributes =
        message_new(decider->arena, API_TYPE(start_timer_decision_attributes));
    decision->start_timer_decision_attributes->timer_id = (char *)id;
    decision->start_timer_decision_attributes->start_to_fire_timeout =
        presence_make_duration(decider->arena, seconds);
}

void
system_cancel_timer(struct system_decider *decider, const char *id)
{
    API(Decision) *decision =
        system_decide(decider, API_VALUE(DECISION__ATTRIBUTES_CANCEL_TIMER_DECISION_ATTRIBUTES));
    decision->cancel_timer_decision_attributes =
        message_new(decider->arena, API_TYPE(cancel_timer_decision_attributes));
    decision->cancel_timer_decision_attributes->timer_id = (char *)id;
}
