/* bulk.c - the workflow of a batch job: one activity, and when it is tuned another one that goes on
 * where the first stopped. See bulk.h. */
#include "system/bulk.h"

#include "base/check.h"
#include "system/fold.h"
#include "system/types.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RETRY_FIRST       10 /* seconds */
#define RETRY_COEFFICIENT 1.7
#define RETRY_LONGEST     300

struct bulk_state {
    struct slice input;
    int64_t rate, concurrency; /* as tuned; 0: as started */
    int64_t activities;        /* so far */
    int64_t schedule_id;       /* of the one in work */
    bool is_working;
    bool is_tuned;            /* since the activity was scheduled */
    bool is_cancel_asked;     /* of the activity */
    bool is_cancel_requested; /* of the workflow */
    struct fold_end end;      /* of the newest activity */
};

static void
fold_signal(struct bulk_state *state, const API(HistoryEvent) *event, struct arena *arena)
{
    int64_t rate, concurrency;
    const API(WorkflowExecutionSignaledEventAttributes) *attributes =
        event->workflow_execution_signaled_event_attributes;
    if (strcmp(attributes->signal_name, BULK_TUNE) != 0)
        return;
    bulk_read_tuning(presence_read_payload(attributes->input).bytes, arena, &rate, &concurrency);
    if (rate > 0)
        state->rate = rate;
    if (concurrency > 0)
        state->concurrency = concurrency;
    state->is_tuned = true;
}

static void
fold(void *context, const API(HistoryEvent) *event, struct arena *arena)
{
    struct bulk_state *state = context;
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_STARTED):
        state->input =
            fold_payload(event->workflow_execution_started_event_attributes->input, arena);
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED):
        fold_signal(state, event, arena);
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED):
        state->is_cancel_requested = true;
        break;
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED):
        state->activities++;
        state->schedule_id = event->event_id;
        state->is_working = true;
        state->is_tuned = state->is_cancel_asked = false;
        break;
    case EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED):
        state->is_cancel_asked = true;
        break;
    default:
        if (fold_activity_end(&state->end, event, arena))
            state->is_working = false;
        break;
    }
}

static void
bulk_state_check(const struct bulk_state *state)
{
    check(state->rate >= 0 && state->concurrency >= 0 && state->activities >= 0);
    check(!state->is_working || state->activities > 0);
}

static const char *
activity_id(int64_t number, struct arena *arena)
{
    return arena_format(arena, "%lld", (long long)number);
}

static API(RetryPolicy) *
retry_policy(const struct bulk_params *params, struct arena *arena)
{
    API(RetryPolicy) *policy = system_retry(arena, RETRY_FIRST, BULK_FOREVER, BULK_FINAL);
    policy->maximum_interval = presence_make_duration(arena, RETRY_LONGEST);
    policy->backoff_coefficient = RETRY_COEFFICIENT;
    policy->maximum_attempts = (int32_t)params->retries_max;
    return policy;
}

static void
schedule(const struct bulk_state *state, const struct bulk_params *params, bool is_second,
         struct system_decider *decider)
{
    check(!state->is_working); /* one activity at a time */
    struct bulk_order order = {
        .params = state->input, .rate = state->rate, .concurrency = state->concurrency};
    if (state->end.how == FOLD_CANCELED)
        order.progress = state->end.details;
    system_schedule(decider, &(struct system_activity_order){
                                 .id = activity_id(state->activities, decider->arena),
                                 .type = is_second ? BULK_ACTIVITY_V2 : BULK_ACTIVITY,
                                 .list = BULK_LIST,
                                 .input = bulk_write_order(&order, decider->arena),
                                 .start_to_close = BULK_FOREVER,
                                 .heartbeat_timeout = params->heartbeat_timeout,
                                 .retry = retry_policy(params, decider->arena)});
}

static void
ask_cancel(const struct bulk_state *state, struct system_decider *decider)
{
    check(state->is_working && !state->is_cancel_asked);
    API(Decision) *decision = system_decide(
        decider, API_VALUE(DECISION__ATTRIBUTES_REQUEST_CANCEL_ACTIVITY_TASK_DECISION_ATTRIBUTES));
    decision->request_cancel_activity_task_decision_attributes =
        message_new(decider->arena, API_TYPE(request_cancel_activity_task_decision_attributes));
    decision->request_cancel_activity_task_decision_attributes->activity_id =
        (char *)activity_id(state->activities - 1, decider->arena);
}

static void
decide_next(const struct bulk_state *state, const struct bulk_params *params, bool is_second,
            struct system_decider *decider)
{
    switch (state->end.how) {
    case FOLD_COMPLETED:
        system_complete(decider, state->end.result);
        break;
    case FOLD_FAILED:
        system_fail(decider, state->end.reason, state->end.details);
        break;
    case FOLD_TIMED_OUT:
        system_fail(decider, "cadenceInternal:Timeout HEARTBEAT", state->end.details);
        break;
    default:
        if (state->is_cancel_requested)
            system_cancel(decider, state->end.details);
        else
            schedule(state, params, is_second, decider);
        break;
    }
}

static void
decide_as(const struct bulk_state *state, bool is_second, struct system_decider *decider)
{
    struct bulk_params params;
    struct error *err = bulk_read_params(state->input, decider->arena, &params);
    bool wants_cancel = state->is_cancel_requested || (is_second && state->is_tuned);
    bulk_state_check(state);
    if (err != NULL)
        system_fail(decider, BULK_FINAL, slice_text(err->message));
    else if (!state->is_working)
        decide_next(state, &params, is_second, decider);
    else if (wants_cancel && !state->is_cancel_asked)
        ask_cancel(state, decider);
}

static void
decide(void *state, struct system_decider *decider)
{
    decide_as(state, false, decider);
}

static void
decide_second(void *state, struct system_decider *decider)
{
    decide_as(state, true, decider);
}

const struct system_workflow bulk_workflow = {.type = BULK_TYPE,
                                              .list = BULK_LIST,
                                              .domain = BULK_DOMAIN,
                                              .state_size = sizeof(struct bulk_state),
                                              .fold = fold,
                                              .decide = decide};

const struct system_workflow bulk_workflow_v2 = {.type = BULK_TYPE_V2,
                                                 .list = BULK_LIST,
                                                 .domain = BULK_DOMAIN,
                                                 .state_size = sizeof(struct bulk_state),
                                                 .fold = fold,
                                                 .decide = decide_second};
