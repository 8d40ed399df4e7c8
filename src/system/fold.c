/* fold.c - see fold.h. */
#include "system/fold.h"

#include "base/check.h"
#include "wire/message.h"
#include "wire/presence.h"

struct slice
fold_payload(const API(Payload) *payload, struct arena *arena)
{
    return arena_slice(arena, presence_read_payload(payload).bytes);
}

static void
fold_failed(struct fold_end *end, const API(ActivityTaskFailedEventAttributes) *attributes,
            struct arena *arena)
{
    const API(Failure) *failure = attributes->failure;
    end->how = FOLD_FAILED;
    end->schedule_id = attributes->scheduled_event_id;
    end->reason = failure == NULL ? "" : arena_text(arena, failure->reason);
    if (failure != NULL)
        end->details = arena_slice(arena, presence_read_bytes(failure->details));
}

bool
fold_activity_end(struct fold_end *end, const API(HistoryEvent) *event, struct arena *arena)
{
    switch (event->attributes_case) {
    case EVENT_KIND(ACTIVITY_TASK_COMPLETED):
        end->how = FOLD_COMPLETED;
        end->schedule_id = event->activity_task_completed_event_attributes->scheduled_event_id;
        end->result = fold_payload(event->activity_task_completed_event_attributes->result, arena);
        return true;
    case EVENT_KIND(ACTIVITY_TASK_FAILED):
        fold_failed(end, event->activity_task_failed_event_attributes, arena);
        return true;
    case EVENT_KIND(ACTIVITY_TASK_TIMED_OUT):
        end->how = FOLD_TIMED_OUT;
        end->schedule_id = event->activity_task_timed_out_event_attributes->scheduled_event_id;
        end->details =
            fold_payload(event->activity_task_timed_out_event_attributes->details, arena);
        return true;
    case EVENT_KIND(ACTIVITY_TASK_CANCELED):
        end->how = FOLD_CANCELED;
        end->schedule_id = event->activity_task_canceled_event_attributes->scheduled_event_id;
        end->details = fold_payload(event->activity_task_canceled_event_attributes->details, arena);
        return true;
    default:
        return false;
    }
}

API(RetryPolicy) *
system_retry(struct arena *arena, int64_t interval, int64_t expiry, const char *final_reason)
{
    check(interval > 0 && expiry >= interval); /* or nothing is ever tried again */
    API(RetryPolicy) *policy = message_new(arena, API_TYPE(retry_policy));
    policy->initial_interval = presence_make_duration(arena, interval);
    policy->maximum_interval = presence_make_duration(arena, interval);
    policy->expiration_interval = presence_make_duration(arena, expiry);
    policy->backoff_coefficient = 1;
    if (final_reason == NULL)
        return policy;
    policy->n_non_retryable_error_reasons = 1;
    policy->non_retryable_error_reasons =
        arena_zalloc(arena, 1, sizeof policy->non_retryable_error_reasons[0]);
    policy->non_retryable_error_reasons[0] = (char *)final_reason;
    return policy;
}
