/* activity.c - what the verbs about activities share: finding one, sending its task, trying again.
 *
 * An activity with a retry policy is started without an event (EVENT_TRANSIENT): attempts leave no
 * trace in the history, only the last one has events, written together with how it ended. Between
 * two attempts it is not started and has no row in the outbox; its scheduled time says when the
 * next one begins, and the run's wake-up timer fires then. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "engine/command/retry.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SECOND 1000000000LL

static bool
is_meant(const STORED(PendingActivity) *activity, const struct task_name *task,
         bool must_be_started)
{
    if (activity == NULL || (must_be_started && activity->started_id == EVENT_NONE))
        return false;
    return task->schedule_id == EVENT_NONE || task->attempt == activity->attempt;
}

struct error *
activity_find(struct mutation *mutation, const struct task_name *task, bool must_be_started,
              const STORED(PendingActivity) **activity)
{
    const struct run *run = mutation_run(mutation);
    struct arena *arena = mutation_arena(mutation);
    if (task->schedule_id == EVENT_NONE && task->activity_id[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Neither ActivityID nor ScheduleID is provided");
    *activity = task->schedule_id == EVENT_NONE ? run_find_activity_id(run, task->activity_id)
                                                : run_find_activity(run, task->schedule_id);
    if (!is_meant(*activity, task, must_be_started))
        return errors_entity_not_exists(arena, NULL, "activity task not found");
    return NULL;
}

bool
activity_retry(struct mutation *mutation, const STORED(PendingActivity) *activity,
               const API(Failure) *failure)
{
    const struct run_context *context = mutation_context(mutation);
    bool is_unwanted = activity->is_cancel_requested; /* nobody waits for it any more */
#ifdef CADENZA_FAULT_cancelled_is_retried
    is_unwanted = false;
#endif
    check(activity == run_find_activity(mutation_run(mutation), activity->schedule_id));
    if (activity->retry_policy == NULL || is_unwanted)
        return false;
    struct retry_state state = {
        .now = context->now,
        .expiration_time = activity->expiration_time,
        .attempt = activity->attempt,
        .reason = failure == NULL ? "" : failure->reason,
    };
    int64_t seconds = retry_backoff(activity->retry_policy, &state);
    if (seconds == 0)
        return false;

    probe("activity_retried");
    mutation_drop_transfer(mutation, activity->row);
    STORED(PendingActivity) *next = mutation_change_activity(mutation, activity->schedule_id);
    next->event_version = context->event_version;
    next->attempt++;
    next->scheduled_time = context->now + seconds * SECOND;
    next->started_id = EVENT_NONE;
    next->started_time = 0;
    next->request_id = (char *)protobuf_c_empty_string;
    next->row = 0;
    next->last_failure = run_keep(mutation_run(mutation), (API(Failure) *)failure);
    next->last_worker_identity = next->identity;
    return true;
}

int64_t
activity_started_event(struct mutation *mutation, const STORED(PendingActivity) *activity)
{
    check(activity == run_find_activity(mutation_run(mutation), activity->schedule_id));
    if (activity->started_id != EVENT_TRANSIENT)
        return activity->started_id;
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_STARTED));
    API(ActivityTaskStartedEventAttributes) *attributes =
        event->activity_task_started_event_attributes;
    attributes->scheduled_event_id = activity->schedule_id;
    attributes->attempt = activity->attempt;
    attributes->identity = activity->identity;
    attributes->request_id = activity->request_id;
    attributes->last_failure = activity->last_failure;
    /* When it was started, unless that is before what is in the history already. */
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    int64_t time = activity->started_time > core->last_event_time ? activity->started_time
                                                                  : core->last_event_time;
    event->event_time = presence_make_timestamp(mutation_arena(mutation), time);
    return mutation_add_event(mutation, event);
}

void
activity_dispatch(struct mutation *mutation, int64_t schedule_id)
{
    STORED(PendingActivity) *activity = mutation_change_activity(mutation, schedule_id);
    check(activity->started_id == EVENT_NONE);
    check(activity->row == 0);
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    STORED(TransferRow) *transfer =
        message_new(mutation_arena(mutation), STORED_TYPE(transfer_row));
    transfer->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY;
    transfer->schedule_id = schedule_id;
    transfer->attempt = activity->attempt;
    transfer->task_list = activity->task_list;
    if (strcmp(activity->domain_id, core->domain_id) != 0)
        transfer->list_domain_id = activity->domain_id;
    transfer->expiry_time = activity->scheduled_time + activity->schedule_to_start * SECOND;
    activity->row = mutation_add_transfer(mutation, transfer);
    check(activity->row != 0 || run_is_zombie(mutation_run(mutation)));
}
