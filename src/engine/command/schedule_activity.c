/* schedule_activity.c - a decision schedules an activity.
 *
 * Timeouts that are not given follow from those that are, and a retry policy stretches
 * them: a task that nobody picks up is not helped by putting it on the same list again. */
#include "base/check.h"
#include "engine/command/retry.h"
#include "engine/command/target.h"
#include "wire/message.h"
#include "wire/presence.h"

#define BAD       FAILED_CAUSE(BAD_SCHEDULE_ACTIVITY_ATTRIBUTES)
#define DUPLICATE FAILED_CAUSE(SCHEDULE_ACTIVITY_DUPLICATE_ID)
#define SECOND    1000000000LL

/* Seconds each. */
struct timeouts {
    int64_t schedule_to_close, schedule_to_start, start_to_close, heartbeat;
};

static bool
are_names_good(struct decision_list *decision_list,
               const API(ScheduleActivityTaskDecisionAttributes) *request)
{
    const char *type = request->activity_type == NULL ? "" : request->activity_type->name;
    const char *fault = NULL;
    if (request->activity_id[0] == '\0')
        fault = "ActivityId is not set on decision.";
    else if (type[0] == '\0')
        fault = "ActivityType is not set on decision.";
    else if (retry_policy_fault(request->retry_policy) != NULL)
        fault = retry_policy_fault(request->retry_policy);
    else if (target_is_longer(decision_list, request->activity_id, DYNAMIC_ACTIVITY_ID_LENGTH))
        fault = "ActivityID exceeds length limit.";
    else if (target_is_longer(decision_list, type, DYNAMIC_ACTIVITY_TYPE_LENGTH))
        fault = "ActivityType exceeds length limit.";
    else if (target_is_longer(decision_list, request->domain, DYNAMIC_DOMAIN_NAME_LENGTH))
        fault = "Domain exceeds length limit.";
    if (fault != NULL)
        decision_list_refuse(decision_list, BAD, "%s", fault);
    return fault == NULL;
}

static int64_t
lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The timeouts as requested, none longer than the run's. False: one is negative. */
static bool
read_timeouts(const API(ScheduleActivityTaskDecisionAttributes) *request, int64_t longest,
              struct timeouts *timeouts)
{
    *timeouts = (struct timeouts){
        .schedule_to_close = lesser(command_seconds(request->schedule_to_close_timeout), longest),
        .schedule_to_start = lesser(command_seconds(request->schedule_to_start_timeout), longest),
        .start_to_close = lesser(command_seconds(request->start_to_close_timeout), longest),
        .heartbeat = lesser(command_seconds(request->heartbeat_timeout), longest),
    };
    return timeouts->schedule_to_close >= 0 && timeouts->schedule_to_start >= 0 &&
           timeouts->start_to_close >= 0 && timeouts->heartbeat >= 0;
}

/* Fills in what was not given. False: too little was. */
static bool
deduce_timeouts(struct timeouts *timeouts, int64_t longest)
{
    if (timeouts->schedule_to_close > 0) {
        if (timeouts->schedule_to_start == 0)
            timeouts->schedule_to_start = timeouts->schedule_to_close;
        if (timeouts->start_to_close == 0)
            timeouts->start_to_close = timeouts->schedule_to_close;
        return true;
    }
    if (timeouts->schedule_to_start == 0 || timeouts->start_to_close == 0)
        return false;
    timeouts->schedule_to_close =
        lesser(timeouts->schedule_to_start + timeouts->start_to_close, longest);
    return true;
}

/* With retries the whole may last until the policy expires. */
static void
stretch_timeouts(const struct run_context *context, const API(RetryPolicy) *policy, int64_t longest,
                 struct timeouts *timeouts)
{
    int64_t expiration = command_seconds(policy->expiration_interval);
    if (expiration == 0 || expiration > longest)
        expiration = longest;
    const char *reason =
        retry_timeout_reason(API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    int64_t start_max = lesser(
        expiration,
        run_context_duration(context, DYNAMIC_ACTIVITY_SCHEDULE_TO_START_MAX_FOR_RETRY) / SECOND);
    if (!retry_is_final(policy, reason) && timeouts->schedule_to_start < start_max)
        timeouts->schedule_to_start = start_max;
    if (timeouts->schedule_to_close < expiration)
        timeouts->schedule_to_close = expiration;
}

static bool
find_timeouts(struct decision_list *decision_list,
              const API(ScheduleActivityTaskDecisionAttributes) *request, struct timeouts *timeouts)
{
    int64_t longest = mutation_run(decision_list->mutation)->core->execution_timeout;
    if (!read_timeouts(request, longest, timeouts)) {
        decision_list_refuse(decision_list, BAD, "A valid timeout may not be negative.");
        return false;
    }
    if (!deduce_timeouts(timeouts, longest)) {
        decision_list_refuse(decision_list, BAD,
                             "A valid ScheduleToCloseTimeout is not set on decision.");
        return false;
    }
    if (request->retry_policy != NULL)
        stretch_timeouts(decision_list->step->context, request->retry_policy, longest, timeouts);
    check(timeouts->schedule_to_start > 0 && timeouts->start_to_close > 0);
    check(timeouts->schedule_to_close > 0 && timeouts->heartbeat >= 0);
    return true;
}

/* Limits that end the run when they are passed. */
static bool
is_input_good(struct decision_list *decision_list, const API(Payload) *input)
{
    int64_t size = input == NULL ? 0 : (int64_t)input->data.len;
    if (size <= run_context_integer(decision_list->step->context, DYNAMIC_BLOB_SIZE_ERROR))
        return true;
    decision_list->run_failure_reason = "DECISION_BLOB_SIZE_EXCEEDS_LIMIT";
    decision_list->run_failure_details =
        "ScheduleActivityTaskDecisionAttributes.Input exceeds size limit.";
    return false;
}

static bool
is_room_left(struct decision_list *decision_list)
{
    const struct run_context *context = decision_list->step->context;
    int64_t pending = (int64_t)map64_count(mutation_run(decision_list->mutation)->activities);
    if (!run_context_flag(context, DYNAMIC_PENDING_ACTIVITY_LIMITED) ||
        pending < run_context_integer(context, DYNAMIC_PENDING_ACTIVITY_ERROR))
        return true;
    decision_list->run_failure_reason = "PENDING_ACTIVITY_EXCEEDS_LIMIT";
    decision_list->run_failure_details = "Too many pending activities";
    return false;
}

static int64_t
add_scheduled(struct decision_list *decision_list,
              const API(ScheduleActivityTaskDecisionAttributes) *request, API(TaskList) *list,
              const struct timeouts *timeouts)
{
    struct arena *arena = decision_list->step->arena;
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(ACTIVITY_TASK_SCHEDULED));
    API(ActivityTaskScheduledEventAttributes) *attributes =
        event->activity_task_scheduled_event_attributes;
    attributes->activity_id = request->activity_id;
    attributes->activity_type = request->activity_type;
    attributes->domain = request->domain;
    attributes->task_list = list;
    attributes->input = request->input;
    attributes->header = request->header;
    attributes->retry_policy = request->retry_policy;
    attributes->schedule_to_close_timeout =
        presence_make_duration(arena, timeouts->schedule_to_close);
    attributes->schedule_to_start_timeout =
        presence_make_duration(arena, timeouts->schedule_to_start);
    attributes->start_to_close_timeout = presence_make_duration(arena, timeouts->start_to_close);
    attributes->heartbeat_timeout = presence_make_duration(arena, timeouts->heartbeat);
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    return mutation_add_event(decision_list->mutation, event);
}

/* The decider has room for the activity and wants it at once: it is started, and its task, which is
 * not in the store yet, is dropped. */
static void
give_to_decider(struct decision_list *decision_list, int64_t schedule_id)
{
    char request_id[UUID_TEXT_LENGTH + 1];
    const struct step *step = decision_list->step;
    const struct run_context *context = step->context;
    if (!run_context_flag(context, DYNAMIC_ACTIVITY_LOCAL_DISPATCH) ||
        !run_context_take_turn(context, step->domain_id, step->workflow_id))
        return;
    struct uuid uuid = run_context_uuid(context);
    uuid_format(&uuid, request_id);
    activity_begin(decision_list->mutation, schedule_id,
                   arena_text(decision_list->step->arena, request_id), decision_list->identity);
    vector_push_in(&decision_list->local, decision_list->step->arena, schedule_id);
}

void
decide_schedule_activity(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(ScheduleActivityTaskDecisionAttributes) *request =
        decision->schedule_activity_task_decision_attributes;
    struct timeouts timeouts;
    if (target_find_domain(decision_list, request->domain, BAD,
                           "Unable to schedule activity across domain") == NULL)
        return;
    API(TaskList) *list = target_choose_list(decision_list, request->task_list, BAD);
    if (list == NULL || !are_names_good(decision_list, request) ||
        !find_timeouts(decision_list, request, &timeouts))
        return;
    if (!is_input_good(decision_list, request->input))
        return;
    const struct run *run = mutation_run(decision_list->mutation);
    if (run_find_activity_id(run, request->activity_id) != NULL) {
        decision_list_refuse(decision_list, DUPLICATE, "%s", "");
        return;
    }
    if (!is_room_left(decision_list))
        return;
    int64_t schedule_id = add_scheduled(decision_list, request, list, &timeouts);
    const STORED(PendingActivity) *activity = run_find_activity(run, schedule_id);
    check(activity != NULL && activity->row != 0); /* apply made it and sent its task */
    if (request->request_local_dispatch)
        give_to_decider(decision_list, schedule_id);
}
