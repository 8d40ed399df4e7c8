/* model.c - the model's run: its events, its ends, its time. See model.h. */
#include "engine/command/test/model.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define CAUSE_FORCE_CLOSE 17

/* Events that may come at any time, or as a consequence of a decision; all others come from a
 * decision itself or are about one. */
static const struct {
    const char *name;
    bool goes_last;
} outside[] = {
    {"WorkflowExecutionSignaled", false},
    {"WorkflowExecutionCancelRequested", false},
    {"TimerFired", false},
    {"ActivityTaskStarted", false},
    {"ActivityTaskCompleted", true},
    {"ActivityTaskFailed", true},
    {"ActivityTaskTimedOut", true},
    {"ActivityTaskCanceled", true},
    {"RequestCancelActivityTaskFailed", false},
};

void
model_append(struct model *model, struct model_event *event)
{
    check(model->history_count < MODEL_EVENTS_MAX);
    model->history[model->history_count++] = event;
    event->id = (int64_t)model->history_count;
}

struct model_event *
model_add(struct model *model, const char *name, const struct model_event *first,
          const struct model_event *second)
{
    struct model_event *event = arena_make(model->arena, struct model_event);
    event->name = name;
    event->refers[0] = first;
    event->refers[1] = second;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        if (strcmp(outside[i].name, name) != 0)
            continue;
        event->goes_last = outside[i].goes_last;
        if (model->decision.state == MODEL_STARTED) {
            model->buffer[model->buffer_count++] = event;
            return event;
        }
        if (model->is_deciding) {
            model->held[model->held_count++] = event;
            return event;
        }
    }
    model_append(model, event);
    return event;
}

bool
model_flush(struct model *model)
{
    size_t count = model->buffer_count;
    for (int last = 0; last <= 1; last++) {
        for (size_t i = 0; i < count; i++) {
            if (model->buffer[i]->goes_last == (last == 1))
                model_append(model, model->buffer[i]);
        }
    }
    model->buffer_count = 0;
    return count > 0;
}

/* ---- the run ---- */

struct model *
model_start(struct arena *arena, int64_t now, int64_t execution_timeout, int64_t decision_timeout,
            int64_t delay, const char *signal)
{
    struct model *model = arena_make(arena, struct model);
    model->arena = arena;
    model->now = now;
    model->is_open = true;
    model->execution_timeout = execution_timeout;
    model->decision_timeout = decision_timeout;
    model->timeout_time = now + (delay + execution_timeout) * MODEL_SECOND;
    model_add(model, "WorkflowExecutionStarted", NULL, NULL);
    if (signal != NULL) {
        struct model_event *event = model_add(model, "WorkflowExecutionSignaled", NULL, NULL);
        snprintf(event->text, sizeof event->text, "%s", signal);
    }
    if (delay > 0)
        model->first_decision_time = now + delay * MODEL_SECOND;
    model_schedule_if_needed(model);
    return model;
}

void
model_close(struct model *model, const char *name, const struct model_event *first)
{
    model_add(model, name, first, NULL);
    model->is_open = false;
    model->close = name;
    model->buffer_count = 0;
    model->retry_time = 0;
    model->decision = (struct model_decision){.state = MODEL_NONE};
}

/* The run ends and nobody asks its worker. */
static void
force_close(struct model *model, const char *name)
{
    if (model->decision.state == MODEL_STARTED)
        model_end_attempt(model, "DecisionTaskFailed", CAUSE_FORCE_CLOSE);
    model_flush(model);
    model_close(model, name, NULL);
}

enum model_answer
model_terminate(struct model *model)
{
    if (!model->is_open)
        return MODEL_CLOSED;
    force_close(model, "WorkflowExecutionTerminated");
    return MODEL_DONE;
}

enum model_answer
model_signal(struct model *model, const char *name, const char *request)
{
    for (size_t i = 0; i < model->signal_count; i++) {
        if (strcmp(model->signals[i], request) == 0)
            return MODEL_DONE; /* also when the run has closed */
    }
    if (!model->is_open)
        return MODEL_CLOSED;
    check(model->signal_count < MODEL_REQUESTS_MAX);
    snprintf(model->signals[model->signal_count++], sizeof model->signals[0], "%s", request);
    struct model_event *event = model_add(model, "WorkflowExecutionSignaled", NULL, NULL);
    snprintf(event->text, sizeof event->text, "%s", name);
    model_schedule_if_needed(model);
    return MODEL_DONE;
}

enum model_answer
model_request_cancel(struct model *model, const char *request)
{
    bool is_repeat = model->is_cancel_requested && strcmp(model->cancel_request, request) == 0;
    if (!model->is_open) {
        bool did_it = strcmp(model->close, "WorkflowExecutionCanceled") == 0;
        return is_repeat && did_it ? MODEL_DONE : MODEL_CLOSED;
    }
    if (model->is_cancel_requested)
        return is_repeat ? MODEL_DONE : MODEL_ALREADY_REQUESTED;
    model->is_cancel_requested = true;
    snprintf(model->cancel_request, sizeof model->cancel_request, "%s", request);
    model_add(model, "WorkflowExecutionCancelRequested", NULL, NULL);
    if (model->decision.state == MODEL_NONE) /* a delayed first decision does not wait any more */
        model_schedule_decision(model);
    return MODEL_DONE;
}

/* ---- time ---- */

enum { DUE_RUN, DUE_DECISION, DUE_RETRY, DUE_FIRST, DUE_TIMER, DUE_ACTIVITY };

struct model_due {
    int64_t time; /* 0: nothing */
    int kind;
    int64_t event_id;
    size_t index;
    int type;
};

/* Keeps the one that comes first. */
static void
consider(struct model_due *first, struct model_due other)
{
    bool is_earlier = first->time == 0 || other.time < first->time ||
                      (other.time == first->time &&
                       (other.kind < first->kind ||
                        (other.kind == first->kind && other.event_id < first->event_id)));
    if (other.time != 0 && is_earlier)
        *first = other;
}

static struct model_due
next_due(const struct model *model)
{
    struct model_due first = {0};
    if (!model->is_open)
        return first;
    consider(&first, (struct model_due){.time = model->timeout_time, .kind = DUE_RUN});
    consider(&first, (struct model_due){.time = model->decision.deadline, .kind = DUE_DECISION});
    consider(&first, (struct model_due){.time = model->retry_time, .kind = DUE_RETRY});
    consider(&first, (struct model_due){.time = model->first_decision_time, .kind = DUE_FIRST});
    for (size_t i = 0; i < MODEL_TIMERS_MAX; i++) {
        const struct model_timer *timer = &model->timers[i];
        if (timer->is_pending)
            consider(&first, (struct model_due){.time = timer->fire_time,
                                                .kind = DUE_TIMER,
                                                .event_id = timer->started->id,
                                                .index = i});
    }
    for (size_t i = 0; i < MODEL_ACTIVITIES_MAX; i++) {
        const struct model_activity *activity = &model->activities[i];
        struct model_due due = {.kind = DUE_ACTIVITY, .index = i};
        if (!activity->is_pending || !model_activity_due(activity, &due.time, &due.type))
            continue;
        due.event_id = activity->scheduled->id;
        consider(&first, due);
    }
    return first;
}

int64_t
model_next_deadline(const struct model *model)
{
    return next_due(model).time;
}

static void
time_out_decision(struct model *model)
{
    bool is_started = model->decision.state == MODEL_STARTED;
    bool is_sticky = model->sticky_timeout != 0;
    model_end_attempt(model, "DecisionTaskTimedOut", is_started ? 1 : 2);
    if (!is_started && is_sticky)
        model->failed_attempts = 0; /* nobody polled the sticky list: not the workflow's fault */
    model_schedule_if_needed(model);
}

static void
fire_timer(struct model *model, struct model_timer *timer)
{
    struct model_event *event = model_add(model, "TimerFired", timer->started, NULL);
    snprintf(event->text, sizeof event->text, "%s", timer->id);
    timer->is_pending = false;
}

/* True: its worker has something to learn. */
static bool
wake_activity(struct model *model, struct model_activity *activity, int type)
{
    static const char *const reasons[] = {
        NULL, "cadenceInternal:Timeout START_TO_CLOSE", "cadenceInternal:Timeout SCHEDULE_TO_START",
        "cadenceInternal:Timeout SCHEDULE_TO_CLOSE", "cadenceInternal:Timeout HEARTBEAT"};
    if (type == 0) {
        activity->phase = MODEL_SENT;
        return false;
    }
    if (model_retry(model, activity, reasons[type]))
        return false;
    model_end_activity(model, activity, "ActivityTaskTimedOut", type);
    return true;
}

void
model_wake(struct model *model, int64_t now)
{
    model->now = now;
    bool needs_decision = false;
    for (struct model_due due = next_due(model); due.time != 0 && due.time <= now;
         due = next_due(model)) {
        switch (due.kind) {
        case DUE_RUN:
            force_close(model, "WorkflowExecutionTimedOut");
            break;
        case DUE_DECISION:
            time_out_decision(model);
            break;
        case DUE_RETRY:
            if (!needs_decision)
                model->retry_time = 0; /* nothing new: the next attempt */
            model_schedule_decision(model);
            break;
        case DUE_FIRST:
            model_schedule_decision(model);
            break;
        case DUE_TIMER:
            fire_timer(model, &model->timers[due.index]);
            needs_decision = true;
            break;
        default:
            if (wake_activity(model, &model->activities[due.index], due.type))
                needs_decision = true;
        }
    }
    if (needs_decision)
        model_schedule_if_needed(model);
}
