/* model_decision.c - the model's decisions: their life, and what a list of them does. See model.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "engine/command/test/model.h"

#define CAUSE_UNHANDLED       1
#define CAUSE_TIMER_DUPLICATE 12

/* ---- the life of a decision ---- */

void
model_schedule_decision(struct model *model)
{
    check(model->decision.state == MODEL_NONE && model->is_open);
    if (model_flush(model) || model->retry_time != 0)
        model->failed_attempts = 0; /* there is news */
    model->retry_time = 0;
    model->first_decision_time = 0;
    struct model_decision *decision = &model->decision;
    *decision = (struct model_decision){.state = MODEL_SCHEDULED,
                                        .attempt = model->failed_attempts,
                                        .is_sticky = model->sticky_timeout != 0};
    if (decision->attempt == 0)
        decision->scheduled = model_add(model, "DecisionTaskScheduled", NULL, NULL);
    decision->history_count = model->history_count;
    if (decision->is_sticky)
        decision->deadline = model->now + model->sticky_timeout * MODEL_SECOND;
    model->failed_attempts = 0;
}

void
model_schedule_if_needed(struct model *model)
{
    if (model->is_open && model->decision.state == MODEL_NONE && model->first_decision_time == 0)
        model_schedule_decision(model);
}

enum model_answer
model_start_decision(struct model *model, const char *request)
{
    struct model_decision *decision = &model->decision;
    if (!model->is_open || decision->state == MODEL_NONE)
        return MODEL_NOT_FOUND;
    if (decision->state == MODEL_STARTED)
        return strcmp(decision->request, request) == 0 ? MODEL_DONE : MODEL_TAKEN;
    if (decision->attempt > 0 && decision->history_count != model->history_count) {
        decision->attempt = 0; /* there is news: it is written down as a first attempt */
        decision->scheduled = model_add(model, "DecisionTaskScheduled", NULL, NULL);
    }
    if (decision->attempt == 0)
        decision->started = model_add(model, "DecisionTaskStarted", decision->scheduled, NULL);
    decision->state = MODEL_STARTED;
    snprintf(decision->request, sizeof decision->request, "%s", request);
    model_set_decision_timeout(model, model->decision_timeout);
    return MODEL_DONE;
}

void
model_set_decision_timeout(struct model *model, int64_t seconds)
{
    model->decision.deadline = model->now + seconds * MODEL_SECOND;
}

void
model_decision_timeout(const struct model *model, int64_t *least, int64_t *most)
{
    int32_t attempt = model->decision.attempt;
    *least = *most = model->decision_timeout;
    if (attempt < 2)
        return;
    *most = attempt == 2 ? 60 : attempt == 3 ? 120 : attempt == 4 ? 240 : 300;
    *least = *most * 8 / 10;
}

void
model_end_attempt(struct model *model, const char *event, int64_t number)
{
    struct model_decision *decision = &model->decision;
    int32_t attempt = decision->attempt;
    if (attempt == 0)
        model_add(model, event, decision->scheduled, decision->started)->number = number;
    *decision = (struct model_decision){.state = MODEL_NONE};
    model->failed_attempts = attempt + 1;
    model->sticky_timeout = 0;
}

void
model_retry_decision(struct model *model)
{
    static const int64_t pauses[] = {0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300};
    size_t most = sizeof pauses / sizeof pauses[0] - 1;
    size_t attempts = (size_t)model->failed_attempts;
    int64_t pause = pauses[attempts < most ? attempts : most];
    if (pause > 0 && model->buffer_count == 0)
        model->retry_time = model->now + pause * MODEL_SECOND;
    else
        model_schedule_decision(model);
}

enum model_answer
model_fail_decision(struct model *model, int cause)
{
    if (!model->is_open)
        return MODEL_CLOSED;
    if (model->decision.state != MODEL_STARTED)
        return MODEL_NOT_FOUND;
    model_end_attempt(model, "DecisionTaskFailed", cause);
    model_retry_decision(model);
    return MODEL_DONE;
}

enum model_answer
model_reset_sticky(struct model *model)
{
    if (!model->is_open)
        return MODEL_CLOSED;
    model->sticky_timeout = 0; /* a decision that waits on the sticky list waits on */
    return MODEL_DONE;
}

/* ---- a list of decisions ---- */

struct deciding_model {
    const struct model_event *completed;
    bool has_unhandled, needs_decision;
    int cause; /* not 0: the list is bad */
};

static struct model_timer *
find_timer(struct model *model, const char *id)
{
    for (size_t i = 0; i < MODEL_TIMERS_MAX; i++) {
        if (model->timers[i].is_pending && strcmp(model->timers[i].id, id) == 0)
            return &model->timers[i];
    }
    return NULL;
}

static void
take_timer(struct model *model, const struct model_order *order, struct deciding_model *deciding)
{
    if (find_timer(model, order->id) != NULL) {
        deciding->cause = CAUSE_TIMER_DUPLICATE;
        return;
    }
    struct model_timer *timer = model->timers;
    while (timer->is_pending)
        timer++;
    check(timer < model->timers + MODEL_TIMERS_MAX);
    *timer = (struct model_timer){.is_pending = true,
                                  .fire_time = model->now + order->seconds * MODEL_SECOND};
    memcpy(timer->id, order->id, sizeof timer->id);
    timer->started = model_add(model, "TimerStarted", deciding->completed, NULL);
    snprintf(timer->started->text, sizeof timer->started->text, "%s", order->id);
}

/* Takes a TimerFired that nobody saw out of the buffer; the start of its timer, or NULL. */
static const struct model_event *
unbuffer(struct model *model, const char *timer_id)
{
    for (size_t i = 0; i < model->buffer_count; i++) {
        struct model_event *event = model->buffer[i];
        if (strcmp(event->name, "TimerFired") != 0 || strcmp(event->text, timer_id) != 0)
            continue;
        model->buffer_count--;
        memmove(model->buffer + i, model->buffer + i + 1,
                (model->buffer_count - i) * sizeof model->buffer[0]);
        return event->refers[0];
    }
    return NULL;
}

static void
take_cancel_timer(struct model *model, const struct model_order *order,
                  struct deciding_model *deciding)
{
    struct model_timer *timer = find_timer(model, order->id);
    const struct model_event *started = timer != NULL ? timer->started : unbuffer(model, order->id);
    struct model_event *event =
        started != NULL ? model_add(model, "TimerCanceled", started, deciding->completed)
                        : model_add(model, "CancelTimerFailed", deciding->completed, NULL);
    snprintf(event->text, sizeof event->text, "%s", order->id);
    if (timer != NULL)
        timer->is_pending = false;
    deciding->has_unhandled = model->buffer_count > 0; /* what did not happen needs no answer */
}

static void
take_cancel_activity(struct model *model, const struct model_order *order,
                     struct deciding_model *deciding)
{
    struct model_activity *activity = model_find_activity(model, order->id);
    bool is_new = activity != NULL && activity->cancel == NULL;
    struct model_event *event =
        model_add(model, "ActivityTaskCancelRequested", deciding->completed, NULL);
    snprintf(event->text, sizeof event->text, "%s", order->id);
    if (!is_new) {
        event = model_add(model, "RequestCancelActivityTaskFailed", deciding->completed, NULL);
        snprintf(event->text, sizeof event->text, "%s", order->id);
        return;
    }
    activity->cancel = event;
    if (activity->phase == MODEL_RUNNING)
        return;
    model_end_activity(model, activity, "ActivityTaskCanceled", 0);
    deciding->needs_decision = true;
}

static void
take_close(struct model *model, const struct model_order *order, struct deciding_model *deciding)
{
    static const char *const names[] = {
        [ORDER_COMPLETE] = "WorkflowExecutionCompleted",
        [ORDER_FAIL] = "WorkflowExecutionFailed",
        [ORDER_CANCEL] = "WorkflowExecutionCanceled",
        [ORDER_CONTINUE] = "WorkflowExecutionContinuedAsNew",
    };
    if (deciding->has_unhandled) {
        deciding->cause = CAUSE_UNHANDLED;
        return;
    }
    bool is_canceled =
        model->is_cancel_requested && (order->kind == ORDER_FAIL || order->kind == ORDER_CONTINUE);
    model_close(model, names[is_canceled ? ORDER_CANCEL : order->kind], deciding->completed);
}

static void
take(struct model *model, const struct model_order *order, struct deciding_model *deciding)
{
    switch (order->kind) {
    case ORDER_ACTIVITY:
        if (model_is_bad_activity(model, order, &deciding->cause))
            return;
        model_add_activity(model, order, deciding->completed);
        if (order->is_local)
            model_start_activity(model, model_find_activity(model, order->id), "local");
        return;
    case ORDER_CANCEL_ACTIVITY:
        take_cancel_activity(model, order, deciding);
        return;
    case ORDER_TIMER:
        take_timer(model, order, deciding);
        return;
    case ORDER_CANCEL_TIMER:
        take_cancel_timer(model, order, deciding);
        return;
    case ORDER_MARKER: {
        struct model_event *event = model_add(model, "MarkerRecorded", deciding->completed, NULL);
        snprintf(event->text, sizeof event->text, "%s", order->id);
        return;
    }
    default:
        take_close(model, order, deciding);
    }
}

static void
write_completed(struct model *model, struct deciding_model *deciding)
{
    struct model_decision decision = model->decision;
    model->decision = (struct model_decision){.state = MODEL_NONE};
    if (decision.attempt > 0) {
        decision.scheduled = model_add(model, "DecisionTaskScheduled", NULL, NULL);
        decision.scheduled->number = decision.attempt;
        decision.started = model_add(model, "DecisionTaskStarted", decision.scheduled, NULL);
    }
    deciding->completed =
        model_add(model, "DecisionTaskCompleted", decision.scheduled, decision.started);
}

/* What the list brought about is written behind its own events and behind what was buffered. */
static void
model_end_list(struct model *model)
{
    size_t count = model->held_count;
    model->is_deciding = false;
    model->held_count = 0;
    if (!model->is_open)
        return;
    model_flush(model);
    for (size_t i = 0; i < count; i++)
        model_append(model, model->held[i]);
}

enum model_answer
model_complete_decision(struct model *model, const struct model_order *orders, size_t count,
                        bool forces_new, int64_t sticky_timeout)
{
    if (!model->is_open)
        return MODEL_CLOSED;
    if (model->decision.state != MODEL_STARTED)
        return MODEL_NOT_FOUND;
    struct model *before = arena_make(model->arena, struct model);
    *before = *model;
    struct deciding_model deciding = {.has_unhandled = model->buffer_count > 0};
    write_completed(model, &deciding);
    model->sticky_timeout = sticky_timeout;
    model->is_deciding = true;
    for (size_t i = 0; i < count && deciding.cause == 0 && model->is_open; i++)
        take(model, &orders[i], &deciding);
    if (deciding.cause != 0) { /* as if nothing of the list had been said */
        *model = *before;
        return model_fail_decision(model, deciding.cause);
    }
    model_end_list(model);
    if (deciding.has_unhandled || deciding.needs_decision || forces_new)
        model_schedule_if_needed(model);
    return MODEL_DONE;
}
