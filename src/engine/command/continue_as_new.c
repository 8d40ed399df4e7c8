/* continue_as_new.c - a run goes on as another one: one ends, one begins, in one step.
 *
 * The worker decides it, or the run's end is followed by the next attempt or the next run of a cron
 * schedule (next_run.c). What a decision leaves out, the new run takes from the old one. */
#include "engine/command/start.h"

#include "base/check.h"
#include "domain/active.h"
#include "engine/command/schedule.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SECOND 1000000000LL

#define RESERVED_LIST_PREFIX "/__cadence_sys/"

typedef API(ContinueAsNewWorkflowExecutionDecisionAttributes) request_t;

/* What is wrong with it, or NULL. */
static const char *
find_fault(const struct run_context *context, const request_t *request, struct arena *arena)
{
    int64_t type_length = run_context_integer(context, DYNAMIC_WORKFLOW_TYPE_LENGTH);
    int64_t list_length = run_context_integer(context, DYNAMIC_TASK_LIST_NAME_LENGTH);
    const char *list = request->task_list == NULL ? "" : request->task_list->name;
    if (request->workflow_type != NULL &&
        (int64_t)strlen(request->workflow_type->name) > type_length)
        return "WorkflowType exceeds length limit.";
    if ((int64_t)strlen(list) > list_length)
        return arena_format(arena, "task list name exceeds length limit of %lld",
                            (long long)list_length);
    if (strncmp(list, RESERVED_LIST_PREFIX, strlen(RESERVED_LIST_PREFIX)) == 0)
        return "task list name cannot start with reserved prefix " RESERVED_LIST_PREFIX;
    if (command_seconds(request->backoff_start_interval) < 0)
        return "BackoffStartInterval is less than 0.";
    return schedule_fault(request->cron_schedule, context->now, arena);
}

static const char *
find_attribute_fault(const struct decision_list *decision_list, const request_t *request)
{
    const STORED(RunRecord) *core = mutation_run(decision_list->mutation)->core;
    if (cluster_attribute_of(request->active_cluster_selection_policy).scope == NULL)
        return NULL;
    return start_move_attribute(decision_list->step, core->active_cluster_selection_policy,
                                request->active_cluster_selection_policy, "continue as new");
}

/* The request, with what it left out. */
static request_t *
complete_request(const struct run *run, const request_t *given, struct arena *arena)
{
    const STORED(RunRecord) *core = run->core;
    request_t *request = arena_make(arena, request_t);
    *request = *given;
    if (request->workflow_type == NULL || request->workflow_type->name[0] == '\0')
        request->workflow_type = core->workflow_type;
    API(TaskList) *list = command_copy_list(core->task_list, arena);
    if (request->task_list != NULL && request->task_list->name[0] != '\0')
        list->name = request->task_list->name; /* another name, not another kind */
    request->task_list = list;
    if (command_seconds(request->execution_start_to_close_timeout) <= 0)
        request->execution_start_to_close_timeout =
            presence_make_duration(arena, core->execution_timeout);
    if (command_seconds(request->task_start_to_close_timeout) <= 0)
        request->task_start_to_close_timeout =
            presence_make_duration(arena, core->decision_timeout);
    if (request->backoff_start_interval == NULL)
        request->backoff_start_interval = presence_make_duration(arena, 0);
    if (request->initiator == 0)
        request->initiator =
            API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_DECIDER);
    if (request->memo == NULL)
        request->memo = core->memo;
    if (request->search_attributes == NULL)
        request->search_attributes = core->search_attributes;
    if (cluster_attribute_of(request->active_cluster_selection_policy).scope == NULL)
        request->active_cluster_selection_policy = core->active_cluster_selection_policy;
    return request;
}

/* The close event of the run that goes on. */
static void
write_continued(struct mutation *mutation, const request_t *request, int64_t completed_id,
                const char *new_run_id)
{
    check(completed_id == EVENT_NONE || completed_id > 0);
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW));
    API(WorkflowExecutionContinuedAsNewEventAttributes) *attributes =
        event->workflow_execution_continued_as_new_event_attributes;
    attributes->new_execution_run_id = presence_make_text(new_run_id);
    attributes->workflow_type = request->workflow_type;
    attributes->task_list = request->task_list;
    attributes->input = request->input;
    attributes->execution_start_to_close_timeout = request->execution_start_to_close_timeout;
    attributes->task_start_to_close_timeout = request->task_start_to_close_timeout;
    attributes->decision_task_completed_event_id = completed_id;
    attributes->backoff_start_interval = request->backoff_start_interval;
    attributes->initiator = request->initiator;
    attributes->failure = request->failure;
    attributes->last_completion_result = request->last_completion_result;
    attributes->header = request->header;
    attributes->memo = request->memo;
    attributes->search_attributes = request->search_attributes;
    attributes->cron_overlap_policy = request->cron_overlap_policy;
    attributes->active_cluster_selection_policy = request->active_cluster_selection_policy;
    mutation_add_event(mutation, event);
}

static void
put_partitions(API(WorkflowExecutionStartedEventAttributes) *attributes,
               const STORED(RunRecord) *core, struct arena *arena)
{
    typedef API(WorkflowExecutionStartedEventAttributes__PartitionConfigEntry) entry_t;
    size_t count = core->n_partition_config;
    attributes->partition_config = arena_zalloc(arena, count, sizeof(entry_t *));
    for (size_t i = 0; i < count; i++) {
        entry_t *entry = message_new(
            arena, API_TYPE(workflow_execution_started_event_attributes__partition_config_entry));
        entry->key = core->partition_config[i]->key;
        entry->value = core->partition_config[i]->value;
        attributes->partition_config[i] = entry;
    }
    attributes->n_partition_config = count;
}

/* A retry is one more attempt before the same expiration; everything else starts to count at 0. */
static void
put_attempt(API(WorkflowExecutionStartedEventAttributes) *attributes,
            const struct mutation *mutation, const request_t *request)
{
    const struct run *run = mutation_run(mutation);
    struct arena *arena = mutation_arena(mutation);
    bool is_retry = request->initiator ==
                    API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_RETRY_POLICY);
    attributes->attempt = is_retry ? run->core->attempt + 1 : 0;
#ifdef CADENZA_FAULT_attempt_forgotten
    attributes->attempt = is_retry;
#endif
    if (is_retry && run->core->expiration_time != 0)
        attributes->expiration_time = presence_make_timestamp(arena, run->core->expiration_time);
    else
        attributes->expiration_time =
            start_expiration(mutation_context(mutation), request->retry_policy,
                             command_seconds(request->backoff_start_interval), arena);
    if (request->cron_schedule[0] != '\0' && run->birth != NULL)
        attributes->first_scheduled_time = run->birth->first_scheduled_time;
}

/* Points of this run can be used until it is deleted, which is its retention after its end. */
static API(ResetPoints) *
pass_on_points(const struct mutation *mutation)
{
    struct arena *arena = mutation_arena(mutation);
    const struct run_context *context = mutation_context(mutation);
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    const API(ResetPoints) *points = core->auto_reset_points;
    if (points == NULL || context->domain == NULL)
        return core->auto_reset_points;
    const API(Domain) *domain = context->domain->record->domain;
    int64_t retention = command_seconds(domain->workflow_execution_retention_period);
    API(ResetPoints) *passed = message_new(arena, API_TYPE(reset_points));
    passed->points = arena_zalloc(arena, points->n_points, sizeof passed->points[0]);
    for (size_t i = 0; i < points->n_points; i++) {
        API(ResetPointInfo) *point = arena_make(arena, API(ResetPointInfo));
        *point = *points->points[i];
        if (strcmp(point->run_id, core->run_id) == 0)
            point->expiring_time =
                presence_make_timestamp(arena, context->now + retention * SECOND);
        passed->points[passed->n_points++] = point;
    }
    return passed;
}

/* The first event of the run that it goes on as. */
static API(WorkflowExecutionStartedEventAttributes) *
next_attributes(const struct mutation *mutation, const request_t *request, const char *new_run_id)
{
    struct arena *arena = mutation_arena(mutation);
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    API(WorkflowExecutionStartedEventAttributes) *attributes =
        message_new(arena, API_TYPE(workflow_execution_started_event_attributes));
    attributes->workflow_type = request->workflow_type;
    attributes->parent_execution_info = core->parent;
    attributes->task_list = request->task_list;
    attributes->input = request->input;
    attributes->execution_start_to_close_timeout = request->execution_start_to_close_timeout;
    attributes->task_start_to_close_timeout = request->task_start_to_close_timeout;
    attributes->continued_execution_run_id = core->run_id;
    attributes->initiator = request->initiator;
    attributes->continued_failure = request->failure;
    attributes->last_completion_result = request->last_completion_result;
    attributes->original_execution_run_id = presence_make_text(new_run_id);
    attributes->first_execution_run_id = core->first_execution_run_id;
    attributes->retry_policy = request->retry_policy;
    put_attempt(attributes, mutation, request);
    attributes->cron_schedule = request->cron_schedule;
    attributes->cron_overlap_policy = request->cron_overlap_policy;
    attributes->first_decision_task_backoff = request->backoff_start_interval;
    attributes->memo = request->memo;
    attributes->search_attributes = request->search_attributes;
    attributes->prev_auto_reset_points = pass_on_points(mutation);
    attributes->header = request->header;
    attributes->active_cluster_selection_policy = request->active_cluster_selection_policy;
    put_partitions(attributes, core, arena);
    return attributes;
}

void
run_go_on(struct step *step, struct mutation *mutation,
          const API(ContinueAsNewWorkflowExecutionDecisionAttributes) *request,
          int64_t completed_id)
{
    check(run_is_open(mutation_run(mutation)) && !run_has_started_decision(mutation_run(mutation)));
    struct mutation *begun = step_begin_run(step);
    const char *run_id = mutation_run(begun)->core->run_id;
    struct uuid new_id = run_context_uuid(step->context);
    char *request_id = arena_alloc(step->arena, UUID_TEXT_LENGTH + 1);
    uuid_format(&new_id, request_id);
    API(WorkflowExecutionStartedEventAttributes) *attributes =
        next_attributes(mutation, request, run_id);
    attributes->request_id = request_id;
    write_continued(mutation, request, completed_id, run_id);
    const STORED(RunRecord) *old = mutation_run(mutation)->core;
    bool is_first = old->chain_request_id[0] == '\0';
    run_begin(begun,
              &(struct run_birth){
                  .attributes = attributes,
                  .create_request_id = request_id,
                  .chain_request_id = is_first ? old->create_request_id : old->chain_request_id,
                  .jitter_start = command_seconds(request->jitter_start),
                  .has_first_decision = true,
              });
    reset_hand_down(mutation, begun);
    step_check(step);
}

void
decide_continue_as_new(struct decision_list *decision_list, const API(Decision) *decision)
{
    const request_t *request = decision->continue_as_new_workflow_execution_decision_attributes;
    const struct run *run = mutation_run(decision_list->mutation);
    if (!decision_list_may_close(decision_list, "complete workflow"))
        return;
    const char *fault =
        find_fault(decision_list->step->context, request, decision_list->step->arena);
    struct error *err = run_context_check_search(
        decision_list->step->context, request->search_attributes, decision_list->step->arena);
    if (fault == NULL && err != NULL)
        fault = err->message;
    if (fault == NULL)
        fault = find_attribute_fault(decision_list, request);
    if (fault != NULL) {
        decision_list_refuse(decision_list, FAILED_CAUSE(BAD_CONTINUE_AS_NEW_ATTRIBUTES), "%s",
                             fault);
        return;
    }
    if (!decision_list_may_hold(decision_list,
                                request->input == NULL ? 0 : request->input->data.len,
                                "ContinueAsNewWorkflowExecutionDecisionAttributes. Input"))
        return;
    if (run->core->is_cancel_requested) /* cancellation is sticky */
        decision_list_close_canceled(decision_list, NULL);
    else
        run_go_on(decision_list->step, decision_list->mutation,
                  complete_request(run, request, decision_list->step->arena),
                  decision_list->completed_id);
    decision_list->is_closed = true;
}
