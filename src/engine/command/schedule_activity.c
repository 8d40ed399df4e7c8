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
are_names_good(struct deciding *deciding, const API(ScheduleActivityTaskDecisionAttributes) *wish)
{
    const char *type = wish->activity_type == NULL ? "" : wish->activity_type->name;
    const char *fault = NULL;
    if (wish->activity_id[0] == '\0')
        fault = "ActivityId is not set on decision.";
    else if (type[0] == '\0')
        fault = "ActivityType is not set on decision.";
    else if (retry_policy_fault(wish->retry_policy) != NULL)
        fault = retry_policy_fault(wish->retry_policy);
    else if (target_is_longer(deciding, wish->activity_id, DYNAMIC_ACTIVITY_ID_LENGTH))
        fault = "ActivityID exceeds length limit.";
    else if (target_is_longer(deciding, type, DYNAMIC_ACTIVITY_TYPE_LENGTH))
        fault = "ActivityType exceeds length limit.";
    else if (target_is_longer(deciding, wish->domain, DYNAMIC_DOMAIN_NAME_LENGTH))
        fault = "Domain exceeds length limit.";
    if (fault != NULL)
        deciding_refuse(deciding, BAD, "%s", fault);
    return fault == NULL;
}

static int64_t
lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The timeouts as wished, none longer than the run's. False: one is negative. */
static bool
read_timeouts(const API(ScheduleActivityTaskDecisionAttributes) *wish, int64_t longest,
              struct timeouts *timeouts)
{
    *timeouts = (struct timeouts){
        .schedule_to_close = lesser(retry_seconds(wish->schedule_to_close_timeout), longest),
        .schedule_to_start = lesser(retry_seconds(wish->schedule_to_start_timeout), longest),
        .start_to_close = lesser(retry_seconds(wish->start_to_close_timeout), longest),
        .heartbeat = lesser(retry_seconds(wish->heartbeat_timeout), longest),
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
stretch_timeouts(const struct facts *facts, const API(RetryPolicy) *policy, int64_t longest,
                 struct timeouts *timeouts)
{
    int64_t expiration = retry_seconds(policy->expiration_interval);
    if (expiration == 0 || expiration > longest)
        expiration = longest;
    const char *reason =
        retry_timeout_reason(API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    int64_t start_max =
        lesser(expiration,
               facts_duration(facts, DYNAMIC_ACTIVITY_SCHEDULE_TO_START_MAX_FOR_RETRY) / SECOND);
    if (!retry_is_final(policy, reason) && timeouts->schedule_to_start < start_max)
        timeouts->schedule_to_start = start_max;
    if (timeouts->schedule_to_close < expiration)
        timeouts->schedule_to_close = expiration;
}

static bool
find_timeouts(struct deciding *deciding, const API(ScheduleActivityTaskDecisionAttributes) *wish,
              struct timeouts *timeouts)
{
    int64_t longest = mutation_run(deciding->mutation)->core->execution_timeout;
    if (!read_timeouts(wish, longest, timeouts)) {
        deciding_refuse(deciding, BAD, "A valid timeout may not be negative.");
        return false;
    }
    if (!deduce_timeouts(timeouts, longest)) {
        deciding_refuse(deciding, BAD, "A valid ScheduleToCloseTimeout is not set on decision.");
        return false;
    }
    if (wish->retry_policy != NULL)
        stretch_timeouts(deciding->step->facts, wish->retry_policy, longest, timeouts);
    check(timeouts->schedule_to_start > 0 && timeouts->start_to_close > 0);
    return true;
}

/* Limits that end the run when they are passed. */
static bool
is_input_good(struct deciding *deciding, const API(Payload) *input)
{
    int64_t size = input == NULL ? 0 : (int64_t)input->data.len;
    if (size <= facts_integer(deciding->step->facts, DYNAMIC_BLOB_SIZE_ERROR))
        return true;
    deciding->run_failure_reason = "DECISION_BLOB_SIZE_EXCEEDS_LIMIT";
    deciding->run_failure_details =
        "ScheduleActivityTaskDecisionAttributes.Input exceeds size limit.";
    return false;
}

static bool
is_room_left(struct deciding *deciding)
{
    const struct facts *facts = deciding->step->facts;
    int64_t pending = (int64_t)map64_count(mutation_run(deciding->mutation)->activities);
    if (!facts_flag(facts, DYNAMIC_PENDING_ACTIVITY_LIMITED) ||
        pending < facts_integer(facts, DYNAMIC_PENDING_ACTIVITY_ERROR))
        return true;
    deciding->run_failure_reason = "PENDING_ACTIVITY_EXCEEDS_LIMIT";
    deciding->run_failure_details = "Too many pending activities";
    return false;
}

static int64_t
add_scheduled(struct deciding *deciding, const API(ScheduleActivityTaskDecisionAttributes) *wish,
              API(TaskList) *list, const struct timeouts *timeouts)
{
    struct arena *arena = deciding->step->arena;
    API(HistoryEvent) *event =
        mutation_new_event(deciding->mutation, EVENT_KIND(ACTIVITY_TASK_SCHEDULED));
    API(ActivityTaskScheduledEventAttributes) *attributes =
        event->activity_task_scheduled_event_attributes;
    attributes->activity_id = wish->activity_id;
    attributes->activity_type = wish->activity_type;
    attributes->domain = wish->domain;
    attributes->task_list = list;
    attributes->input = wish->input;
    attributes->header = wish->header;
    attributes->retry_policy = wish->retry_policy;
    attributes->schedule_to_close_timeout =
        presence_make_duration(arena, timeouts->schedule_to_close);
    attributes->schedule_to_start_timeout =
        presence_make_duration(arena, timeouts->schedule_to_start);
    attributes->start_to_close_timeout = presence_make_duration(arena, timeouts->start_to_close);
    attributes->heartbeat_timeout = presence_make_duration(arena, timeouts->heartbeat);
    attributes->decision_task_completed_event_id = deciding->completed_id;
    return mutation_add_event(deciding->mutation, event);
}

/* Who decides has room for the activity and wants it at once: it is started, and its task, which is
 * not in the store yet, is taken back. */
static void
give_to_decider(struct deciding *deciding, int64_t schedule_id)
{
    char request_id[UUID_TEXT_LENGTH + 1];
    const struct step *step = deciding->step;
    const struct facts *facts = step->facts;
    if (!facts_flag(facts, DYNAMIC_ACTIVITY_LOCAL_DISPATCH) ||
        !facts_take_turn(facts, step->domain_id, step->workflow_id))
        return;
    struct uuid uuid = facts_uuid(facts);
    uuid_format(&uuid, request_id);
    activity_begin(deciding->mutation, schedule_id, arena_text(deciding->step->arena, request_id),
                   deciding->identity);
    vector_push_in(&deciding->local, deciding->step->arena, schedule_id);
}

void
decide_schedule_activity(struct deciding *deciding, const API(Decision) *decision)
{
    const API(ScheduleActivityTaskDecisionAttributes) *wish =
        decision->schedule_activity_task_decision_attributes;
    struct timeouts timeouts;
    if (target_find_domain(deciding, wish->domain, BAD,
                           "Unable to schedule activity across domain") == NULL)
        return;
    API(TaskList) *list = target_choose_list(deciding, wish->task_list, BAD);
    if (list == NULL || !are_names_good(deciding, wish) ||
        !find_timeouts(deciding, wish, &timeouts))
        return;
    if (!is_input_good(deciding, wish->input))
        return;
    const struct run *run = mutation_run(deciding->mutation);
    if (run_find_activity_id(run, wish->activity_id) != NULL) {
        deciding_refuse(deciding, DUPLICATE, "%s", "");
        return;
    }
    if (!is_room_left(deciding))
        return;
    int64_t schedule_id = add_scheduled(deciding, wish, list, &timeouts);
    const STORED(PendingActivity) *activity = run_find_activity(run, schedule_id);
    check(activity != NULL && activity->row != 0); /* apply made it and sent its task */
    if (wish->request_local_dispatch)
        give_to_decider(deciding, schedule_id);
}
