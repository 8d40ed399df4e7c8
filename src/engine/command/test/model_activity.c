/* model_activity.c - the model's activities. See model.h. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "engine/command/test/model.h"

#define CAUSE_BAD       2
#define CAUSE_DUPLICATE 22

#define TYPE_START_TO_CLOSE    1
#define TYPE_SCHEDULE_TO_START 2
#define TYPE_SCHEDULE_TO_CLOSE 3
#define TYPE_HEARTBEAT         4

struct model_activity *
model_find_activity(struct model *model, const char *id)
{
    for (size_t i = 0; i < MODEL_ACTIVITIES_MAX; i++) {
        if (model->activities[i].is_pending && strcmp(model->activities[i].id, id) == 0)
            return &model->activities[i];
    }
    return NULL;
}

static int64_t
most(int64_t value, int64_t limit)
{
    return value > limit ? limit : value;
}

/* What is not given follows from what is. False: it does not. */
static bool
complete_timeouts(struct model_timeouts *timeouts, int64_t run)
{
    timeouts->schedule_to_close = most(timeouts->schedule_to_close, run);
    timeouts->schedule_to_start = most(timeouts->schedule_to_start, run);
    timeouts->start_to_close = most(timeouts->start_to_close, run);
    timeouts->heartbeat = most(timeouts->heartbeat, run);
    if (timeouts->schedule_to_close == 0) {
        if (timeouts->schedule_to_start == 0 || timeouts->start_to_close == 0)
            return false;
        timeouts->schedule_to_close =
            most(timeouts->schedule_to_start + timeouts->start_to_close, run);
        return true;
    }
    if (timeouts->schedule_to_start == 0)
        timeouts->schedule_to_start = timeouts->schedule_to_close;
    if (timeouts->start_to_close == 0)
        timeouts->start_to_close = timeouts->schedule_to_close;
    return true;
}

bool
model_is_bad_activity(struct model *model, const struct model_order *order, int *cause)
{
    struct model_timeouts timeouts = order->timeouts;
    if (!complete_timeouts(&timeouts, model->execution_timeout))
        *cause = CAUSE_BAD;
    else if (model_find_activity(model, order->id) != NULL)
        *cause = CAUSE_DUPLICATE;
    return *cause != 0;
}

/* The longest that a task may wait grows with the time there is for retries, up to half an hour. */
static void
stretch(struct model_timeouts *timeouts, const struct model_policy *policy, int64_t run)
{
    int64_t whole = policy->expiration == 0 ? run : most(policy->expiration, run);
    if (timeouts->schedule_to_close < whole)
        timeouts->schedule_to_close = whole;
    if (!policy->start_is_final && timeouts->schedule_to_start < most(whole, 1800))
        timeouts->schedule_to_start = most(whole, 1800);
}

void
model_add_activity(struct model *model, const struct model_order *order,
                   const struct model_event *completed)
{
    struct model_activity *activity = model->activities;
    while (activity->is_pending)
        activity++;
    check(activity < model->activities + MODEL_ACTIVITIES_MAX);
    *activity = (struct model_activity){.is_pending = true,
                                        .phase = MODEL_SENT,
                                        .scheduled_time = model->now,
                                        .timeouts = order->timeouts,
                                        .policy = order->policy};
    memcpy(activity->id, order->id, sizeof activity->id);
    check(complete_timeouts(&activity->timeouts, model->execution_timeout));
    if (order->policy.is_set)
        stretch(&activity->timeouts, &order->policy, model->execution_timeout);
    if (order->policy.expiration != 0)
        activity->expiration_time = model->now + order->policy.expiration * MODEL_SECOND;
    activity->scheduled = model_add(model, "ActivityTaskScheduled", completed, NULL);
    snprintf(activity->scheduled->text, sizeof activity->scheduled->text, "%s", order->id);
}

void
model_end_activity(struct model *model, struct model_activity *activity, const char *name,
                   int64_t number)
{
    if (activity->phase == MODEL_RUNNING && activity->started == NULL) { /* told only now */
        activity->started = model_add(model, "ActivityTaskStarted", activity->scheduled, NULL);
        activity->started->number = activity->attempt;
    }
    struct model_event *event =
        model_add(model, name, activity->scheduled,
                  activity->phase == MODEL_RUNNING ? activity->started : NULL);
    event->number = number;
    activity->is_pending = false;
}

bool
model_retry(struct model *model, struct model_activity *activity, const char *reason)
{
    const struct model_policy *policy = &activity->policy;
    if (!policy->is_set || activity->cancel != NULL)
        return false;
    if (policy->attempts > 0 && activity->attempt + 1 >= policy->attempts)
        return false;
    if (policy->boom_is_final && strcmp(reason, "boom") == 0)
        return false;
    if (policy->start_is_final && strcmp(reason, "cadenceInternal:Timeout SCHEDULE_TO_START") == 0)
        return false;
    int64_t wait = policy->initial;
    for (int32_t i = 0; i < activity->attempt && wait < 1000000; i++)
        wait *= policy->coefficient;
    if (policy->maximum > 0)
        wait = most(wait, policy->maximum);
    int64_t next = model->now + wait * MODEL_SECOND;
    if (activity->expiration_time != 0 && next > activity->expiration_time)
        return false;
    activity->attempt++;
    activity->phase = MODEL_WAITING;
    activity->scheduled_time = next;
    return true;
}

static void
consider(int64_t *time, int *type, int64_t other_time, int other_type)
{
    if (*time != 0 && *time <= other_time)
        return;
    *time = other_time;
    *type = other_type;
}

bool
model_activity_due(const struct model_activity *activity, int64_t *time, int *type)
{
    const struct model_timeouts *timeouts = &activity->timeouts;
    int64_t scheduled = activity->scheduled_time, started = activity->started_time;
    *time = 0;
    if (activity->phase == MODEL_WAITING)
        consider(time, type, scheduled, 0);
    if (activity->phase == MODEL_RUNNING)
        consider(time, type, started + timeouts->start_to_close * MODEL_SECOND,
                 TYPE_START_TO_CLOSE);
    else
        consider(time, type, scheduled + timeouts->schedule_to_start * MODEL_SECOND,
                 TYPE_SCHEDULE_TO_START);
    consider(time, type, scheduled + timeouts->schedule_to_close * MODEL_SECOND,
             TYPE_SCHEDULE_TO_CLOSE);
    if (activity->phase == MODEL_RUNNING && timeouts->heartbeat > 0)
        consider(time, type, activity->alive_time + timeouts->heartbeat * MODEL_SECOND,
                 TYPE_HEARTBEAT);
    return true;
}

enum model_answer
model_start_activity(struct model *model, struct model_activity *activity, const char *request)
{
    if (!model->is_open || !activity->is_pending)
        return MODEL_NOT_FOUND;
    if (activity->phase == MODEL_RUNNING)
        return strcmp(activity->request, request) == 0 ? MODEL_DONE : MODEL_TAKEN;
    activity->phase = MODEL_RUNNING;
    activity->started_time = activity->alive_time = model->now;
    activity->started = NULL;
    snprintf(activity->request, sizeof activity->request, "%s", request);
    if (!activity->policy.is_set)
        activity->started = model_add(model, "ActivityTaskStarted", activity->scheduled, NULL);
    return MODEL_DONE;
}

static enum model_answer
check_running(const struct model *model, const struct model_activity *activity)
{
    if (!model->is_open)
        return MODEL_CLOSED;
    bool is_running = activity->is_pending && activity->phase == MODEL_RUNNING;
    return is_running ? MODEL_DONE : MODEL_NOT_FOUND;
}

enum model_answer
model_complete_activity(struct model *model, struct model_activity *activity)
{
    enum model_answer answer = check_running(model, activity);
    if (answer != MODEL_DONE)
        return answer;
    model_end_activity(model, activity, "ActivityTaskCompleted", 0);
    model_schedule_if_needed(model);
    return MODEL_DONE;
}

enum model_answer
model_fail_activity(struct model *model, struct model_activity *activity, const char *reason)
{
    enum model_answer answer = check_running(model, activity);
    if (answer != MODEL_DONE || model_retry(model, activity, reason))
        return answer;
    model_end_activity(model, activity, "ActivityTaskFailed", 0);
    model_schedule_if_needed(model);
    return MODEL_DONE;
}

enum model_answer
model_cancel_activity(struct model *model, struct model_activity *activity)
{
    enum model_answer answer = check_running(model, activity);
    if (answer != MODEL_DONE)
        return answer;
    if (activity->cancel == NULL)
        return MODEL_INTERNAL;
    model_end_activity(model, activity, "ActivityTaskCanceled", 0);
    model_schedule_if_needed(model);
    return MODEL_DONE;
}

enum model_answer
model_heartbeat_activity(struct model *model, struct model_activity *activity, int beat,
                         bool *is_cancel_requested)
{
    enum model_answer answer = check_running(model, activity);
    if (answer != MODEL_DONE)
        return answer;
    activity->alive_time = model->now;
    activity->beat = beat;
    *is_cancel_requested = activity->cancel != NULL;
    return MODEL_DONE;
}
