/* script_decisions.c - what the workers of scripts decide. See script.h. */
#include "sim/scripts/script.h"

API(Decision) *
script_complete_workflow(struct script *script)
{
    return API_DECISION(script->arena, complete_workflow_execution);
}

API(Decision) *
script_start_timer(struct script *script, int64_t seconds)
{
    return API_DECISION(script->arena, start_timer, .timer_id = "t",
                        .start_to_fire_timeout = presence_make_duration(script->arena, seconds));
}

API(Decision) *
script_schedule_activity(struct script *script, bool is_retried)
{
    struct arena *arena = script->arena;
    API(Decision) *decision =
        API_DECISION(arena, schedule_activity_task, .activity_id = "a",
                     .activity_type = API_NEW(arena, activity_type, .name = "work"),
                     .task_list = API_NEW(arena, task_list, .name = SCRIPT_LIST),
                     .schedule_to_close_timeout = presence_make_duration(arena, 1000),
                     .schedule_to_start_timeout = presence_make_duration(arena, 1000),
                     .start_to_close_timeout = presence_make_duration(arena, 600),
                     .heartbeat_timeout = presence_make_duration(arena, 300));
    if (is_retried)
        decision->schedule_activity_task_decision_attributes->retry_policy =
            API_NEW(arena, retry_policy, .initial_interval = presence_make_duration(arena, 45),
                    .backoff_coefficient = 1, .maximum_attempts = 5);
    return decision;
}

API(Decision) *
script_ask_other(struct script *script, const char *id, const char *signal_name)
{
    return API_DECISION(script->arena, signal_external_workflow_execution, .domain = SCRIPT_DOMAIN,
                        .workflow_execution = script_execution(script, id, ""),
                        .signal_name = (char *)signal_name);
}

API(Decision) *
script_cancel_other(struct script *script, const char *id)
{
    return API_DECISION(script->arena, request_cancel_external_workflow_execution,
                        .domain = SCRIPT_DOMAIN,
                        .workflow_execution = script_execution(script, id, ""));
}

API(Decision) *
script_start_child(struct script *script, const char *id)
{
    struct arena *arena = script->arena;
    return API_DECISION(script->arena, start_child_workflow_execution, .domain = SCRIPT_DOMAIN,
                        .workflow_id = (char *)id,
                        .workflow_type = API_NEW(arena, workflow_type, .name = "scripted"),
                        .task_list = API_NEW(arena, task_list, .name = SCRIPT_LIST),
                        .execution_start_to_close_timeout = presence_make_duration(arena, 3600),
                        .task_start_to_close_timeout = presence_make_duration(arena, 10));
}
