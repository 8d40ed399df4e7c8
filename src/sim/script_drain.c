/* script_drain.c - see script_drain.h. */
#include "sim/script_drain.h"

#include <string.h>

#define EVENT(name)    API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define DECISION(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)

API(Domain) *
script_describe_domain(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    API(Domain) *domain = NULL;
    for (int try = 0; domain == NULL && try < 100; try++) {
        fiber_set_deadline(clock_monotonic() + NS_PER_S);
        if (load_describe(&call, SCRIPT_DOMAIN, &domain) != NULL)
            domain = NULL;
        fiber_set_deadline(NEVER);
        script_sleep(script, 10 * NS_PER_MS);
    }
    EXPECT(domain != NULL);
    return domain;
}

static struct error *
ask_graceful(struct script *script, unsigned to, int64_t seconds)
{
    API(FailoverDomainRequest) *request =
        message_new(script->arena, API_TYPE(failover_domain_request));
    request->domain_name = SCRIPT_DOMAIN;
    request->domain_active_cluster_name =
        presence_make_text(arena_format(script->arena, "cluster%u", to));
    request->failover_timeout = presence_make_duration(script->arena, seconds);
    API(FailoverDomainResponse) *response = NULL;
    return script_call(script, to, "DomainAPI/FailoverDomain", request, failover_domain_response,
                       &response);
}

void
script_begin_drain(struct script *script, unsigned to, int64_t seconds)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    const char *name = arena_format(script->arena, "cluster%u", to);
    struct error *err = ask_graceful(script, to, seconds);
    while (err != NULL &&
           strcmp(script_describe_domain(script, to)->active_cluster_name, name) != 0) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 50 * NS_PER_MS);
        err = ask_graceful(script, to, seconds);
    }
}

unsigned
script_count_events(const API(History) *history, int kind)
{
    unsigned count = 0;
    for (size_t i = 0; history != NULL && i < history->n_events; i++)
        count += (int)history->events[i]->attributes_case == kind;
    return count;
}

unsigned
script_count_signals(const API(History) *history, const char *name)
{
    unsigned count = 0;
    for (size_t i = 0; history != NULL && i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        if (event->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED))
            count +=
                strcmp(event->workflow_execution_signaled_event_attributes->signal_name, name) == 0;
    }
    return count;
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
