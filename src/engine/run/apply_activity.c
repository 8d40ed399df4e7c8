/* apply_activity.c - events about activities.
 *
 * With a retry policy the start of an activity is written only with its end, when it is known which
 * attempt was the last; until then its started id is EVENT_TRANSIENT. */
#include "engine/run/inside.h"

static const char *
activity_domain(const struct mutation *mutation, const char *name)
{
    const struct run_context *context = mutation->context;
    if (name[0] == '\0' || context->find_domain == NULL)
        return mutation->run->core->domain_id;
    const struct domain *domain = context->find_domain(context->find_domain_context, name);
    return domain == NULL ? mutation->run->core->domain_id : domain->id; /* deleted since then */
}

static uint64_t
send_activity(struct mutation *mutation, const STORED(PendingActivity) *activity)
{
    STORED(TransferRow) *transfer = message_new(mutation->arena, STORED_TYPE(transfer_row));
    transfer->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY;
    transfer->schedule_id = activity->schedule_id;
    transfer->attempt = activity->attempt;
    transfer->task_list = activity->task_list;
    if (strcmp(activity->domain_id, mutation->run->core->domain_id) != 0)
        transfer->list_domain_id = activity->domain_id;
    if (activity->schedule_to_start > 0)
        transfer->expiry_time = activity->scheduled_time + activity->schedule_to_start * SECOND;
    return mutation_add_transfer(mutation, transfer);
}

static void
keep_timeouts(STORED(PendingActivity) *activity,
              const API(ActivityTaskScheduledEventAttributes) *scheduled)
{
    activity->schedule_to_close = duration_seconds(scheduled->schedule_to_close_timeout);
    activity->schedule_to_start = duration_seconds(scheduled->schedule_to_start_timeout);
    activity->start_to_close = duration_seconds(scheduled->start_to_close_timeout);
    activity->heartbeat_timeout = duration_seconds(scheduled->heartbeat_timeout);
    int64_t expiration = scheduled->retry_policy == NULL
                             ? 0
                             : duration_seconds(scheduled->retry_policy->expiration_interval);
    if (expiration > 0)
        activity->expiration_time = activity->scheduled_time + expiration * SECOND;
}

void
apply_activity_scheduled(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(ActivityTaskScheduledEventAttributes) *scheduled =
        event->activity_task_scheduled_event_attributes;
    struct run *run = mutation->run;
    check(event->event_id > 0 && run_is_open(run));
    check(scheduled->activity_type != NULL && scheduled->task_list != NULL);
    STORED(PendingActivity) *activity = message_new(run->arena, STORED_TYPE(pending_activity));
    activity->event_version = event->version;
    activity->schedule_id = event->event_id;
    activity->schedule_batch_event_id = mutation_first_event_id(mutation);
    activity->started_id = EVENT_NONE;
    activity->cancel_requested_event_id = EVENT_NONE;
    activity->activity_id = run_keep_text(run, scheduled->activity_id);
    activity->activity_type = run_keep(run, scheduled->activity_type);
    activity->domain_id = run_keep_text(run, activity_domain(mutation, scheduled->domain));
    activity->domain_name = run_keep_text(run, scheduled->domain);
    activity->task_list = run_keep(run, scheduled->task_list);
    activity->first_scheduled_time = activity->scheduled_time = event_time(event);
    activity->retry_policy = run_keep(run, scheduled->retry_policy);
    activity->input = run_keep(run, scheduled->input);
    activity->header = run_keep(run, scheduled->header);
    keep_timeouts(activity, scheduled);
    activity->row = send_activity(mutation, activity);
    mutation_put_activity(mutation, activity);
}

void
apply_activity_started(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(ActivityTaskStartedEventAttributes) *started =
        event->activity_task_started_event_attributes;
    struct run *run = mutation->run;
    STORED(PendingActivity) *activity =
        mutation_change_activity(mutation, started->scheduled_event_id);
    check(activity->started_id == EVENT_NONE || activity->started_id == EVENT_TRANSIENT);
    /* Less: attempts before it left no events. More: of a cluster that lost (fits.c). */
    check(activity->attempt <= started->attempt || mutation->has_replicated_events);
    bool is_known = activity->started_id == EVENT_TRANSIENT && /* then the time is known too */
                    activity->attempt == started->attempt;
    activity->attempt = started->attempt;
    mutation_drop_transfer(mutation, activity->row);
    activity->row = 0;
    activity->event_version = event->version;
    activity->started_id = event->event_id;
    activity->request_id = run_keep_text(run, started->request_id);
    activity->identity = run_keep_text(run, started->identity);
    if (!is_known)
        activity->started_time = activity->heartbeat_time = event_time(event);
}

/* Started or not. */
void
apply_activity_ended(struct mutation *mutation, const API(HistoryEvent) *event)
{
    int64_t schedule_id;
    const int64_t *started_id = event_started_id(event, &schedule_id);
    check(started_id != NULL);
    const STORED(PendingActivity) *activity = run_find_activity(mutation->run, schedule_id);
    check_that(activity != NULL, "activity %lld ends, but is not pending", (long long)schedule_id);
    mutation_drop_transfer(mutation, activity->row);
    mutation_remove_activity(mutation, schedule_id);
}

void
apply_activity_cancel_requested(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const char *activity_id = event->activity_task_cancel_requested_event_attributes->activity_id;
    const STORED(PendingActivity) *old = run_find_activity_id(mutation->run, activity_id);
    if (old == NULL || old->is_cancel_requested) /* the next event says that it was in vain */
        return;
    STORED(PendingActivity) *activity = mutation_change_activity(mutation, old->schedule_id);
    activity->event_version = event->version;
    activity->is_cancel_requested = true;
    activity->cancel_requested_event_id = event->event_id;
}

/* ---- a buffered event got its id ---- */

int64_t *
event_started_id(const API(HistoryEvent) *event, int64_t *schedule_id)
{
#define CASE(KIND, field, id)                                                                      \
    case EVENT_KIND(KIND):                                                                         \
        *schedule_id = event->field##_event_attributes->id;                                        \
        return &event->field##_event_attributes->started_event_id
#define ACTIVITY(KIND, field) CASE(ACTIVITY_TASK_##KIND, activity_task_##field, scheduled_event_id)
#define CHILD(KIND, field)                                                                         \
    CASE(CHILD_WORKFLOW_EXECUTION_##KIND, child_workflow_execution_##field, initiated_event_id)
    switch (event->attributes_case) {
        ACTIVITY(COMPLETED, completed);
        ACTIVITY(FAILED, failed);
        ACTIVITY(TIMED_OUT, timed_out);
        ACTIVITY(CANCELED, canceled);
        CHILD(COMPLETED, completed);
        CHILD(FAILED, failed);
        CHILD(CANCELED, canceled);
        CHILD(TIMED_OUT, timed_out);
        CHILD(TERMINATED, terminated);
    default:
        return NULL;
    }
#undef CHILD
#undef ACTIVITY
#undef CASE
}

/* The activity or child that the event starts; 0: it is not a start. */
static int64_t
started_what(const API(HistoryEvent) *event)
{
    if (event->attributes_case == EVENT_KIND(ACTIVITY_TASK_STARTED))
        return event->activity_task_started_event_attributes->scheduled_event_id;
    if (event->attributes_case == EVENT_KIND(CHILD_WORKFLOW_EXECUTION_STARTED))
        return event->child_workflow_execution_started_event_attributes->initiated_event_id;
    return 0;
}

/* The start of an activity or a child among the events of this step: it was buffered as well, and
 * went first. */
static int64_t
find_start(const struct mutation *mutation, int64_t schedule_id)
{
    for (size_t i = mutation->events.count; i-- > 0;)
        if (started_what(mutation->events.items[i]) == schedule_id)
            return mutation->events.items[i]->event_id;
    unreachable("the start of %lld is not in the buffer", (long long)schedule_id);
}

static void
give_start_its_id(struct mutation *mutation, const API(HistoryEvent) *event)
{
    int64_t schedule_id = started_what(event);
    const STORED(PendingActivity) *activity = run_find_activity(mutation->run, schedule_id);
    const STORED(PendingChild) *child = run_find_child(mutation->run, schedule_id);
    check(activity == NULL || activity->started_id == EVENT_BUFFERED);
    check(child == NULL || child->started_id == EVENT_BUFFERED);
    /* After memory was lost it has a later version than when it was buffered. */
    if (activity != NULL) {
        STORED(PendingActivity) *started = mutation_change_activity(mutation, schedule_id);
        started->started_id = event->event_id;
        started->event_version = event->version;
    } else if (child != NULL) {
        STORED(PendingChild) *started = mutation_change_child(mutation, schedule_id);
        started->started_id = event->event_id;
        started->event_version = event->version;
    } /* else it is over already */
}

void
run_apply_id(struct mutation *mutation, API(HistoryEvent) *event)
{
    check(event->event_id > 0);
    if (started_what(event) != 0) {
        give_start_its_id(mutation, event);
        return;
    }
    int64_t schedule_id;
    int64_t *started_id = event_started_id(event, &schedule_id);
    if (started_id != NULL && *started_id == EVENT_BUFFERED)
        *started_id = find_start(mutation, schedule_id);
}
