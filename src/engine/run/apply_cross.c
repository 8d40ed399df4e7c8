/* apply_cross.c - events about what a run has to do with other workflows: children, signals and
 * cancel requests for others, and the end that concerns parent and children.
 *
 * What has to be done elsewhere is kept in the run as a record, with the id of the request that
 * will be made: however often it is made, by whichever owner of the shard or cluster, the id must
 * be the same. So the id follows from the run and the event, not from chance. */
#include "engine/run/inside.h"

#define TRANSFER(name) CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_##name
#define ABANDON        API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_ABANDON)

/* The domain of the target, by name; "" is the run's own. */
static const char *
target_domain(const struct mutation *mutation, const char *name)
{
    const struct run_context *context = mutation->context;
    if (name[0] == '\0' || context->find_domain == NULL)
        return mutation->run->core->domain_id;
    const struct domain *domain = context->find_domain(context->find_domain_context, name);
    return domain == NULL ? name : domain->id; /* deleted since then: nobody has that id */
}

static char *
request_id_of(struct run *run, int64_t event_id)
{
    struct uuid uuid;
    char *text = arena_alloc(run->arena, UUID_TEXT_LENGTH + 1);
    check_that(uuid_parse(slice_text(run->core->run_id), &uuid), "run id %s", run->core->run_id);
    uint64_t words[2];
    memcpy(words, uuid.bytes, sizeof words);
    words[0] ^= (uint64_t)event_id * UINT64_C(0x9e3779b97f4a7c15); /* spreads small numbers */
    words[1] ^= (uint64_t)event_id * UINT64_C(0xc2b2ae3d27d4eb4f);
    memcpy(uuid.bytes, words, sizeof words);
    uuid = uuid_v4(uuid.bytes);
    uuid_format(&uuid, text);
    return text;
}

static uint64_t
add_row(struct mutation *mutation, STORED(TransferType) type, int64_t initiated_id)
{
    STORED(TransferRow) *transfer = message_new(mutation->arena, STORED_TYPE(transfer_row));
    transfer->type = type;
    transfer->schedule_id = initiated_id;
    return mutation_add_transfer(mutation, transfer);
}

/* ---- children ---- */

void
apply_child_initiated(struct mutation *mutation, const API(HistoryEvent) *event)
{
    API(StartChildWorkflowExecutionInitiatedEventAttributes) *initiated =
        event->start_child_workflow_execution_initiated_event_attributes;
    struct run *run = mutation->run;
    check(event->event_id > 0 && initiated->workflow_type != NULL);
    STORED(PendingChild) *child = message_new(run->arena, STORED_TYPE(pending_child));
    child->event_version = event->version;
    child->initiated_id = event->event_id;
    child->started_id = EVENT_NONE;
    child->domain_id = run_keep_text(run, target_domain(mutation, initiated->domain));
    child->domain_name = run_keep_text(run, initiated->domain);
    child->workflow_id = run_keep_text(run, initiated->workflow_id);
    child->workflow_type = run_keep(run, initiated->workflow_type);
    child->request_id = request_id_of(run, event->event_id);
    child->parent_close_policy = initiated->parent_close_policy;
    child->start = run_keep(run, initiated);
    add_row(mutation, TRANSFER(START_CHILD), event->event_id);
    mutation_put_child(mutation, child);
}

void
apply_child_started(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(ChildWorkflowExecutionStartedEventAttributes) *started =
        event->child_workflow_execution_started_event_attributes;
    STORED(PendingChild) *child = mutation_change_child(mutation, started->initiated_event_id);
    check(child->started_id == EVENT_NONE && child->start != NULL);
    child->event_version = event->version;
    child->started_id = event->event_id;
    child->started_run_id = run_keep_text(mutation->run, started->workflow_execution->run_id);
    child->start = NULL;
}

void
apply_child_not_started(struct mutation *mutation, const API(HistoryEvent) *event)
{
    int64_t initiated_id =
        event->start_child_workflow_execution_failed_event_attributes->initiated_event_id;
    const STORED(PendingChild) *child = run_find_child(mutation->run, initiated_id);
    check(child != NULL && child->started_id == EVENT_NONE);
    mutation_remove_child(mutation, initiated_id);
}

void
apply_child_ended(struct mutation *mutation, const API(HistoryEvent) *event)
{
    int64_t initiated_id;
    const int64_t *started_id = event_started_id(event, &initiated_id);
    check(started_id != NULL && *started_id != EVENT_NONE);
    mutation_remove_child(mutation, initiated_id);
}

/* ---- signals and cancel requests for others ---- */

/* What both have in common; the rest is the caller's. */
static STORED(PendingExternal) *
new_external(struct mutation *mutation, const API(HistoryEvent) *event, const char *domain,
             const API(WorkflowExecution) *target)
{
    struct run *run = mutation->run;
    check(event->event_id > 0 && target != NULL);
    STORED(PendingExternal) *external = message_new(run->arena, STORED_TYPE(pending_external));
    external->event_version = event->version;
    external->initiated_id = event->event_id;
    external->domain_id = run_keep_text(run, target_domain(mutation, domain));
    external->domain_name = run_keep_text(run, domain);
    external->workflow_id = run_keep_text(run, target->workflow_id);
    external->run_id = run_keep_text(run, target->run_id);
    external->request_id = request_id_of(run, event->event_id);
    external->row = add_row(mutation, TRANSFER(EXTERNAL), event->event_id);
    return external;
}

void
apply_signal_initiated(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(SignalExternalWorkflowExecutionInitiatedEventAttributes) *initiated =
        event->signal_external_workflow_execution_initiated_event_attributes;
    struct run *run = mutation->run;
    STORED(PendingExternal) *external =
        new_external(mutation, event, initiated->domain, initiated->workflow_execution);
    external->is_child_only = initiated->child_workflow_only;
    external->signal_name = run_keep_text(run, initiated->signal_name);
    external->input = run_keep(run, initiated->input);
    external->control =
        presence_make_bytes(run_keep_bytes(run, presence_read_bytes(initiated->control)));
    mutation_put_external(mutation, external);
}

void
apply_cancel_initiated(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(RequestCancelExternalWorkflowExecutionInitiatedEventAttributes) *initiated =
        event->request_cancel_external_workflow_execution_initiated_event_attributes;
    struct run *run = mutation->run;
    STORED(PendingExternal) *external =
        new_external(mutation, event, initiated->domain, initiated->workflow_execution);
    external->is_cancel = true;
    external->is_child_only = initiated->child_workflow_only;
    external->control =
        presence_make_bytes(run_keep_bytes(run, presence_read_bytes(initiated->control)));
    mutation_put_external(mutation, external);
}

static int64_t
external_initiated_id(const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
    case EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED):
        return event->external_workflow_execution_signaled_event_attributes->initiated_event_id;
    case EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED):
        return event->signal_external_workflow_execution_failed_event_attributes
            ->initiated_event_id;
    case EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED):
        return event->external_workflow_execution_cancel_requested_event_attributes
            ->initiated_event_id;
    case EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED):
        return event->request_cancel_external_workflow_execution_failed_event_attributes
            ->initiated_event_id;
    default:
        unreachable("%s ends nothing elsewhere", event_name(event->attributes_case));
    }
}

void
apply_external_ended(struct mutation *mutation, const API(HistoryEvent) *event)
{
    int64_t initiated_id = external_initiated_id(event);
    const STORED(PendingExternal) *external = run_find_external(mutation->run, initiated_id);
    check_that(external != NULL, "%s, but %lld is not pending", event_name(event->attributes_case),
               (long long)initiated_id);
    mutation_drop_transfer(mutation, external->row);
    mutation_remove_external(mutation, initiated_id);
}

void
run_send_external(struct mutation *mutation, int64_t initiated_id)
{
    STORED(PendingExternal) *external = mutation_change_external(mutation, initiated_id);
    if (external->row != 0)
        mutation_drop_transfer(mutation, external->row);
    external->row = add_row(mutation, TRANSFER(EXTERNAL), initiated_id);
}

void
run_send_child(struct mutation *mutation, int64_t initiated_id)
{
    const STORED(PendingChild) *child = run_find_child(mutation->run, initiated_id);
    check(child != NULL);
    add_row(mutation, TRANSFER(START_CHILD), initiated_id);
}

/* ---- a child that waits ---- */

void
run_ask_parent(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->waits_for_parent && core->parent != NULL);
    STORED(TransferRow) *transfer = message_new(mutation->arena, STORED_TYPE(transfer_row));
    transfer->type = TRANSFER(ASK_PARENT);
    transfer->schedule_id = core->parent->initiated_id;
    transfer->parent = core->parent;
    mutation_add_transfer(mutation, transfer);
    int64_t now = mutation->context->now; /* each time it waits twice as long */
    core->ask_parent_time = now + (now > core->start_time ? now - core->start_time : SECOND);
}

/* ---- the end ---- */

static void
tell_parent(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const STORED(RunRecord) *core = mutation->run->core;
    STORED(TransferRow) *transfer = message_new(mutation->arena, STORED_TYPE(transfer_row));
    transfer->type = TRANSFER(TELL_PARENT);
    transfer->schedule_id = core->parent->initiated_id;
    transfer->parent = core->parent;
    transfer->close_event = (API(HistoryEvent) *)event;
    transfer->first_run_id = core->first_execution_run_id;
    transfer->workflow_type = core->workflow_type;
    mutation_add_transfer(mutation, transfer);
}

/* Is there one that was started and is not to live on alone? One that was not started yet has its
 * own row, which sees to it. */
static bool
has_children_to_end(const struct run *run)
{
    size_t cursor = 0;
    void *value;
    while (map64_next(run->children, &cursor, NULL, &value)) {
        const STORED(PendingChild) *child = value;
        if (child->started_id != EVENT_NONE && child->parent_close_policy != ABANDON)
            return true;
    }
    return false;
}

void
apply_close_to_others(struct mutation *mutation, const API(HistoryEvent) *event)
{
    struct run *run = mutation->run;
    check(!run_is_open(run));
    bool goes_on = event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW);
    if (run->core->parent != NULL && !goes_on)
        tell_parent(mutation, event);
    if (has_children_to_end(run))
        run->core->children_row = add_row(mutation, TRANSFER(END_CHILDREN), 0);
    size_t cursor = 0;
    void *value;
    while (map64_next(run->externals, &cursor, NULL, &value))
        mutation_drop_transfer(mutation, ((const STORED(PendingExternal) *)value)->row);
}
