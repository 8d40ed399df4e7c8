/* workflow_children_audit.c - after the storm: did parents and children know each other, once, and
 * part as their policy says? See workflow_load.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"

#define EVENT(name)  API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define CALL_TIMEOUT (10 * NS_PER_S)
#define TRIES_MAX    100

/* What the parent's history says of one child. */
struct child_seen {
    const char *workflow_id;
    int64_t initiated_id;
    unsigned started, ended, asked, answered;
    const char *started_run_id, *ended_run_id;
    int ended_kind; /* how the child's own close event is called */
};

/* The event of a parent that says how a child ended: which, which run, and what the child wrote. */
static int64_t
read_ended(const API(HistoryEvent) *event, const char **run_id, int *kind)
{
#define CASE(KIND, field)                                                                          \
    case EVENT(CHILD_WORKFLOW_EXECUTION_##KIND):                                                   \
        *run_id = event->child_workflow_execution_##field##_event_attributes->workflow_execution   \
                      ->run_id;                                                                    \
        *kind = EVENT(WORKFLOW_EXECUTION_##KIND);                                                  \
        return event->child_workflow_execution_##field##_event_attributes->initiated_event_id
    switch ((int)event->attributes_case) {
        CASE(COMPLETED, completed);
        CASE(CANCELED, canceled);
        CASE(TERMINATED, terminated);
        CASE(FAILED, failed);
        CASE(TIMED_OUT, timed_out);
    default:
        return 0;
    }
#undef CASE
}

static void
see_end(struct child_seen *child, const API(HistoryEvent) *event)
{
    const char *run_id = NULL;
    int kind = 0;
    if (read_ended(event, &run_id, &kind) != child->initiated_id)
        return;
    child->ended++;
    child->ended_run_id = run_id;
    child->ended_kind = kind;
}

/* The parent's first run, read for one child. */
static void
see_child(struct workflow_load *load, const struct history_seen *seen, struct child_seen *child)
{
    int64_t asked_id = 0;
    for (size_t i = (size_t)child->initiated_id; i < seen->count; i++) {
        const API(HistoryEvent) *event = seen->events[i];
        int kind = (int)event->attributes_case;
        see_end(child, event);
        if (kind == EVENT(CHILD_WORKFLOW_EXECUTION_STARTED) &&
            event->child_workflow_execution_started_event_attributes->initiated_event_id ==
                child->initiated_id) {
            child->started++;
            child->started_run_id = event->child_workflow_execution_started_event_attributes
                                        ->workflow_execution->run_id;
        }
        if (kind == EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED) &&
            strcmp(event->signal_external_workflow_execution_initiated_event_attributes
                       ->workflow_execution->workflow_id,
                   child->workflow_id) == 0) {
            child->asked++;
            asked_id = event->event_id;
        }
        if (kind == EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED) &&
            event->external_workflow_execution_signaled_event_attributes->initiated_event_id ==
                asked_id)
            child->answered++;
        if (kind == EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED) ||
            kind == EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED) ||
            kind == EVENT(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED))
            verdict_violate(&load->verdict, "%s could not be asked (kind %d)", child->workflow_id,
                            kind);
    }
}

/* A child that its parent has not recorded may be there all the same. Its run id; NULL: none. */
static const char *
find_unrecorded(struct audit *audit, const char *workflow_id, struct arena *arena)
{
    for (int try = 0; try < TRIES_MAX; try++) {
        struct load_call call = {
            .clients = audit->clients, .host = workflow_any_host(audit->load), .arena = arena};
        API(DescribeWorkflowExecutionRequest) *request =
            API_NEW(arena, describe_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
                    .workflow_execution = workflow_execution(arena, workflow_id, ""));
        API(DescribeWorkflowExecutionResponse) *response = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = workflow_call(audit->load, &call, request, &response);
        fiber_set_deadline(NEVER);
        if (err == NULL) /* abandoned or ended: it may have gone on as another run */
            return response->workflow_execution_info->workflow_execution->run_id;
        if (err->kind == ERR_ENTITY_NOT_EXISTS)
            return NULL;
        scoped(arena_drop) struct arena *sleep = arena_new(0);
        if (fiber_sleep(NS_PER_S, sleep) != NULL)
            break;
    }
    return NULL;
}

static void
judge_parent_link(struct workflow_load *load, const struct workflow_entry *entry,
                  const struct child_seen *child, const struct chain *chain)
{
    const API(ParentExecutionInfo) *parent =
        chain->first.events[0]->workflow_execution_started_event_attributes->parent_execution_info;
    if (parent == NULL || strcmp(parent->workflow_execution->workflow_id, entry->id) != 0 ||
        strcmp(parent->workflow_execution->run_id, entry->run_id) != 0 ||
        parent->initiated_id != child->initiated_id)
        verdict_violate(&load->verdict, "%s does not know its parent", child->workflow_id);
}

/* How the child ended, by its policy. */
static bool
end_is_right(const struct workflow_entry *entry, const struct chain *chain, bool is_whole)
{
    bool is_completed = chain->close_kind == EVENT(WORKFLOW_EXECUTION_COMPLETED);
    switch (entry->workload.child_policy) {
    case CHILD_POLICY_WAITS: /* terminated with a parent that somebody ended */
        return is_completed ||
               (!is_whole && chain->close_kind == EVENT(WORKFLOW_EXECUTION_TERMINATED));
    case CHILD_POLICY_ABANDONS:
        return is_completed;
    case CHILD_POLICY_TERMINATES:
        return chain->close_kind == EVENT(WORKFLOW_EXECUTION_TERMINATED);
    default:
        return chain->close_kind == EVENT(WORKFLOW_EXECUTION_CANCELED) && chain->cancels == 1;
    }
}

static void
judge_child(struct workflow_load *load, const struct workflow_entry *entry,
            const struct child_seen *child, const struct chain *chain)
{
    const char *id = child->workflow_id;
    bool is_whole = entry->fate == FATE_COMPLETE; /* the parent did all it meant to */
    bool waits = entry->workload.child_policy == CHILD_POLICY_WAITS ||
                 entry->workload.child_policy == CHILD_POLICY_REQUESTS;
    judge_parent_link(load, entry, child, chain);
    if (child->started > 1 || child->ended > 1 || child->asked > 1 || child->answered > 1)
        verdict_violate(&load->verdict, "%s: its parent says things twice: %u %u %u %u", id,
                        child->started, child->ended, child->asked, child->answered);
    if (is_whole && (child->started != 1 || (waits && child->ended != 1)))
        verdict_violate(&load->verdict, "%s: its parent knows of %u starts and %u ends", id,
                        child->started, child->ended);
    if (child->ended == 1 && (child->ended_kind != chain->close_kind ||
                              strcmp(child->ended_run_id, chain->last_run_id) != 0))
        verdict_violate(&load->verdict, "%s: its parent knows another end, %d and not %d", id,
                        child->ended_kind, chain->close_kind);
    if (chain->signals[0] > 1 || chain->signals[0] < child->answered)
        verdict_violate(&load->verdict, "%s: heard its parent %u times, which was told %u times",
                        id, chain->signals[0], child->answered);
    if (chain->close_kind == EVENT(WORKFLOW_EXECUTION_COMPLETED) &&
        chain->runs != chain_length(&chain->entry->workload))
        verdict_violate(&load->verdict, "%s: completed after %u runs", id, chain->runs);
    if (!end_is_right(entry, chain, is_whole))
        verdict_violate(
            &load->verdict, "%s: ended with kind %d with policy %u, started %u times, fate %d", id,
            chain->close_kind, entry->workload.child_policy, child->started, (int)entry->fate);
}

/* Follows a run of a child back to the first of its chain, which its history names. */
static const char *
first_run_of(struct audit *audit, const char *workflow_id, const char *run_id, struct arena *arena)
{
    for (int try = 0; try < TRIES_MAX; try++) {
        struct load_call call = {
            .clients = audit->clients, .host = workflow_any_host(audit->load), .arena = arena};
        struct history_seen seen;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = workflow_read_history(audit->load, &call, workflow_id, run_id, &seen);
        fiber_set_deadline(NEVER);
        if (err == NULL && seen.count > 0)
            return seen.events[0]
                ->workflow_execution_started_event_attributes->first_execution_run_id;
        scoped(arena_drop) struct arena *sleep = arena_new(0);
        if (fiber_sleep(NS_PER_S, sleep) != NULL)
            break;
    }
    return NULL;
}

static void
audit_child(struct audit *audit, const struct workflow_entry *entry, struct child_seen *child,
            struct arena *arena)
{
    const char *run_id = child->started_run_id;
    if (child->started == 0) {
        run_id = find_unrecorded(audit, child->workflow_id, arena);
        if (run_id != NULL)
            run_id = first_run_of(audit, child->workflow_id, run_id, arena);
    }
    if (run_id == NULL) {
        if (entry->fate == FATE_COMPLETE)
            verdict_violate(&audit->load->verdict, "%s was never started", child->workflow_id);
        return;
    }
    struct workflow_entry own;
    children_entry(&entry->workload, &own);
    snprintf(own.id, sizeof own.id, "%s", child->workflow_id);
    struct chain chain = {.entry = &own, .next_run_id = run_id};
    if (!audit_chain(audit, &chain, arena))
        return;
    judge_child(audit->load, entry, child, &chain);
    struct world *world = audit->load->sim->world;
    if (child->started == 0)
        world_probe(world, "child_unrecorded");
    if (chain.runs > 1 && own.workload.runs > 0)
        world_probe(world, "child_continued_as_new");
    if (chain.runs > 1 && own.workload.fires > 0)
        world_probe(world, "child_by_schedule");
    if (chain.runs > 1 && own.workload.failures > 0)
        world_probe(world, "child_tried_again");
}

void
audit_children(struct audit *audit, const struct workflow_entry *entry, const struct chain *chain,
               struct arena *arena)
{
    unsigned children = 0;
    for (size_t i = 0; i < chain->first.count; i++) {
        const API(HistoryEvent) *event = chain->first.events[i];
        if (event->attributes_case != EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED))
            continue;
        struct child_seen child = {
            .workflow_id =
                event->start_child_workflow_execution_initiated_event_attributes->workflow_id,
            .initiated_id = event->event_id};
        children++;
        see_child(audit->load, &chain->first, &child);
        audit_child(audit, entry, &child, arena);
    }
    bool is_right = entry->fate == FATE_COMPLETE ? children == entry->workload.children
                                                 : children <= entry->workload.children;
    if (!is_right)
        verdict_violate(&audit->load->verdict, "%s: has %u children", entry->id, children);
}
