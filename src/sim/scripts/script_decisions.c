/* script_decisions.c - what the workers of scripts decide. See script.h. */
#include "sim/scripts/script.h"

API(Decision) *
script_decision(struct script *script, int kind)
{
    API(Decision) *decision = message_new(script->arena, API_TYPE(decision));
    decision->attributes_case = kind;
    return decision;
}

API(Decision) *
script_complete_workflow(struct script *script)
{
    API(Decision) *decision = script_decision(script, DECISION(COMPLETE_WORKFLOW_EXECUTION));
    decision->complete_workflow_execution_decision_attributes =
        message_new(script->arena, API_TYPE(complete_workflow_execution_decision_attributes));
    return decision;
}

API(Decision) *
script_start_timer(struct script *script, int64_t seconds)
{
    API(Decision) *decision = script_decision(script, DECISION(START_TIMER));
    decision->start_timer_decision_attributes =
        message_new(script->arena, API_TYPE(start_timer_decision_attributes));
    decision->start_timer_decision_attributes->timer_id = "t";
    decision->start_timer_decision_attributes->start_to_fire_timeout =
        presence_make_duration(script->arena, seconds);
    return decision;
}

API(Decision) *
script_schedule_activity(struct script *script, bool is_retried)
{
    struct arena *arena = script->arena;
    API(Decision) *decision = script_decision(script, DECISION(SCHEDULE_ACTIVITY_TASK));
    API(ScheduleActivityTaskDecisionAttributes) *attributes =
        message_new(arena, API_TYPE(schedule_activity_task_decision_attributes));
    attributes->activity_id = "a";
    attributes->activity_type = message_new(arena, API_TYPE(activity_type));
    attributes->activity_type->name = "work";
    attributes->task_list = message_new(arena, API_TYPE(task_list));
    attributes->task_list->name = SCRIPT_LIST;
    attributes->schedule_to_close_timeout = presence_make_duration(arena, 1000);
    attributes->schedule_to_start_timeout = presence_make_duration(arena, 1000);
    attributes->start_to_close_timeout = presence_make_duration(arena, 600);
    attributes->heartbeat_timeout = presence_make_duration(arena, 300);
    if (is_retried) {
        attributes->retry_policy = message_new(arena, API_TYPE(retry_policy));
        attributes->retry_policy->initial_interval = presence_make_duration(arena, 45);
        attributes->retry_policy->backoff_coefficient = 1;
        attributes->retry_policy->maximum_attempts = 5;
    }
    decision->schedule_activity_task_decision_attributes = attributes;
    return decision;
}

API(Decision) *
script_ask_other(struct script *script, const char *id, const char *signal_name)
{
    API(Decision) *decision = script_decision(script, DECISION(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION));
    API(SignalExternalWorkflowExecutionDecisionAttributes) *attributes = message_new(
        script->arena, API_TYPE(signal_external_workflow_execution_decision_attributes));
    attributes->domain = SCRIPT_DOMAIN;
    attributes->workflow_execution = message_new(script->arena, API_TYPE(workflow_execution));
    attributes->workflow_execution->workflow_id = (char *)id;
    attributes->signal_name = (char *)signal_name;
    decision->signal_external_workflow_execution_decision_attributes = attributes;
    return decision;
}

API(Decision) *
script_cancel_other(struct script *script, const char *id)
{
    API(Decision) *decision =
        script_decision(script, DECISION(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION));
    API(RequestCancelExternalWorkflowExecutionDecisionAttributes) *attributes = message_new(
        script->arena, API_TYPE(request_cancel_external_workflow_execution_decision_attributes));
    attributes->domain = SCRIPT_DOMAIN;
    attributes->workflow_execution = message_new(script->arena, API_TYPE(workflow_execution));
    attributes->workflow_execution->workflow_id = (char *)id;
    decision->request_cancel_external_workflow_execution_decision_attributes = attributes;
    return decision;
}

API(Decision) *
script_start_child(struct script *script, const char *id)
{
    struct arena *arena = script->arena;
    API(Decision) *decision = script_decision(script, DECISION(START_CHILD_WORKFLOW_EXECUTION));
    API(StartChildWorkflowExecutionDecisionAttributes) *attributes =
        message_new(arena, API_TYPE(start_child_workflow_execution_decision_attributes));
    attributes->domain = SCRIPT_DOMAIN;
    attributes->workflow_id = (char *)id;
    attributes->workflow_type = message_new(arena, API_TYPE(workflow_type));
    attributes->workflow_type->name = "scripted";
    attributes->task_list = message_new(arena, API_TYPE(task_list));
    attributes->task_list->name = SCRIPT_LIST;
    attributes->execution_start_to_close_timeout = presence_make_duration(arena, 3600);
    attributes->task_start_to_close_timeout = presence_make_duration(arena, 10);
    decision->start_child_workflow_execution_decision_attributes = attributes;
    return decision;
}
