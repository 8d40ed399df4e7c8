/* child.c - what a parent learns of its children, and what a child learns of its parent.
 *
 * A quick child may close before its parent has recorded that it started: then the parent records
 * both in one step. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FAILED(name)                                                                               \
    API_VALUE(CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE__CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_##name)
#define ALREADY_RUNNING FAILED(WORKFLOW_ALREADY_RUNNING)

/* ---- the parent ---- */

static API(WorkflowExecution) *
execution_of(const char *workflow_id, const char *run_id, struct arena *arena)
{
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = presence_make_text(workflow_id);
    execution->run_id = presence_make_text(run_id);
    return execution;
}

static void
add_started(struct mutation *mutation, const STORED(PendingChild) *child, const char *run_id)
{
    check(child->started_id == EVENT_NONE);
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(CHILD_WORKFLOW_EXECUTION_STARTED));
    API(ChildWorkflowExecutionStartedEventAttributes) *started =
        event->child_workflow_execution_started_event_attributes;
    started->domain = child->domain_name;
    started->workflow_execution =
        execution_of(child->workflow_id, run_id, mutation_arena(mutation));
    started->workflow_type = child->workflow_type;
    started->initiated_event_id = child->initiated_id;
    started->header = child->start->header;
    mutation_add_event(mutation, event);
}

/* The open run and its child that is not started; *child is NULL when there is no such run or
 * child. */
static struct error *
find_unstarted(struct step *step, int64_t initiated_id, struct mutation **mutation,
               const STORED(PendingChild) **child)
{
    struct error *err = step_open_run(step, mutation);
    if (err != NULL)
        return err;
    *child = run_find_child(mutation_run(*mutation), initiated_id);
    if (*child != NULL && (*child)->started_id != EVENT_NONE)
        *child = NULL;
    return NULL;
}

struct error *
command_child_started(struct step *step, int64_t initiated_id, const char *run_id)
{
    struct mutation *mutation;
    const STORED(PendingChild) *child;
    struct error *err = find_unstarted(step, initiated_id, &mutation, &child);
    if (err != NULL || child == NULL)
        return err;
    add_started(mutation, child, run_id);
    decision_schedule_if_needed(mutation);
    return NULL;
}

struct error *
command_child_refused(struct step *step, int64_t initiated_id)
{
    struct mutation *mutation;
    const STORED(PendingChild) *child;
    struct error *err = find_unstarted(step, initiated_id, &mutation, &child);
    if (err != NULL || child == NULL)
        return err;
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_FAILED));
    API(StartChildWorkflowExecutionFailedEventAttributes) *failed =
        event->start_child_workflow_execution_failed_event_attributes;
    failed->domain = child->domain_name;
    failed->workflow_id = child->workflow_id;
    failed->workflow_type = child->workflow_type;
    failed->initiated_event_id = initiated_id;
    failed->decision_task_completed_event_id = child->start->decision_task_completed_event_id;
    failed->control = child->start->control;
    failed->cause = ALREADY_RUNNING;
    mutation_add_event(mutation, event);
    check(run_find_child(mutation_run(mutation), initiated_id) == NULL);
    decision_schedule_if_needed(mutation);
    return NULL;
}

/* An event for the parent that says how the child ended: what all five have in common. */
#define ADD(KIND, field)                                                                           \
    event = mutation_new_event(mutation, EVENT_KIND(CHILD_WORKFLOW_EXECUTION_##KIND));             \
    event->child_workflow_execution_##field##_event_attributes->domain = child->domain_name;       \
    event->child_workflow_execution_##field##_event_attributes->workflow_execution = execution;    \
    event->child_workflow_execution_##field##_event_attributes->workflow_type =                    \
        child->workflow_type;                                                                      \
    event->child_workflow_execution_##field##_event_attributes->initiated_event_id =               \
        child->initiated_id;                                                                       \
    event->child_workflow_execution_##field##_event_attributes->started_event_id = child->started_id

static void
add_ended(struct mutation *mutation, const STORED(PendingChild) *child,
          const struct child_close *close)
{
    API(HistoryEvent) *event = NULL;
    const API(HistoryEvent) *end = close->event;
    API(WorkflowExecution) *execution =
        execution_of(child->workflow_id, close->run_id, mutation_arena(mutation));
    switch (end->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED):
        ADD(COMPLETED, completed);
        event->child_workflow_execution_completed_event_attributes->result =
            end->workflow_execution_completed_event_attributes->result;
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_FAILED):
        ADD(FAILED, failed);
        event->child_workflow_execution_failed_event_attributes->failure =
            end->workflow_execution_failed_event_attributes->failure;
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_CANCELED):
        ADD(CANCELED, canceled);
        event->child_workflow_execution_canceled_event_attributes->details =
            end->workflow_execution_canceled_event_attributes->details;
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT):
        ADD(TIMED_OUT, timed_out);
        event->child_workflow_execution_timed_out_event_attributes->timeout_type =
            end->workflow_execution_timed_out_event_attributes->timeout_type;
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED):
        ADD(TERMINATED, terminated);
        break;
    default:
        unreachable("a child does not end with kind %d", (int)end->attributes_case);
    }
    mutation_add_event(mutation, event);
}

struct error *
command_child_closed(struct step *step, int64_t initiated_id, const struct child_close *close)
{
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err != NULL)
        return err;
    const struct run *run = mutation_run(mutation);
    const STORED(PendingChild) *child = run_find_child(run, initiated_id);
    if (child == NULL && run->core->next_event_id <= initiated_id)
        return error_new(step->arena, ERR_ENTITY_NOT_EXISTS, "The child was not initiated yet.");
    if (child == NULL || strcmp(child->workflow_id, close->workflow_id) != 0)
        return NULL; /* a repeat, or not ours */
    if (child->started_id == EVENT_NONE) {
        add_started(mutation, child, close->first_run_id);
        child = run_find_child(run, initiated_id); /* another record now */
        check(child != NULL && child->started_id != EVENT_NONE);
    }
    add_ended(mutation, child, close);
    check(run_find_child(run, initiated_id) == NULL);
    decision_schedule_if_needed(mutation);
    return NULL;
}

/* ---- the child ---- */

struct error *
command_parent_knows(struct step *step, const struct origin *origin)
{
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err == NULL)
        err = run_check_parent(mutation, origin);
    if (err != NULL || !mutation_run(mutation)->core->waits_for_parent)
        return err;
    mutation_core(mutation)->waits_for_parent = false;
    decision_schedule_if_needed(mutation); /* or it waits for its time */
    return NULL;
}
