/* model_compare.c - is the run what the model says? Everything that a user could see is compared,
 * and the outbox, which a user would miss. */
#include <stdio.h>

#include "engine/command/test/model_world.h"
#include "engine/run/apply.h"

#define DIFFERS(world, what, actual, wanted)                                                       \
    ((int64_t)(actual) == (int64_t)(wanted)                                                        \
         ? (void)0                                                                                 \
         : TEST_FAIL("seed %llu after %s: %s is %lld, the model says %lld\n%s",                    \
                     (unsigned long long)(world)->seed, (world)->last, (what),                     \
                     (long long)(actual), (long long)(wanted),                                     \
                     fixture_history((world)->fixture, (world)->fixture->run_count - 1)))

/* An event in the model's words. */
struct flat {
    int64_t refers[2];
    int64_t number;
    const char *text;
};

static int64_t
positive(int64_t id)
{
    return id > 0 ? id : 0;
}

/* The ends of an activity have the same two ids. */
#define FLAT_END(KIND, field, number_)                                                             \
    case EVENT_KIND(KIND):                                                                         \
        return (struct flat)                                                                       \
        {                                                                                          \
            {event->field->scheduled_event_id, positive(event->field->started_event_id)},          \
                (number_), ""                                                                      \
        }
/* What comes of a decision points to its completion. */
#define FLAT_DECIDED(KIND, field, text_)                                                           \
    case EVENT_KIND(KIND):                                                                         \
        return (struct flat)                                                                       \
        {                                                                                          \
            {event->field->decision_task_completed_event_id, 0}, 0, (text_)                        \
        }

static struct flat
flatten_activity(const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
        FLAT_DECIDED(ACTIVITY_TASK_SCHEDULED, activity_task_scheduled_event_attributes,
                     event->activity_task_scheduled_event_attributes->activity_id);
        FLAT_DECIDED(ACTIVITY_TASK_CANCEL_REQUESTED,
                     activity_task_cancel_requested_event_attributes,
                     event->activity_task_cancel_requested_event_attributes->activity_id);
        FLAT_DECIDED(REQUEST_CANCEL_ACTIVITY_TASK_FAILED,
                     request_cancel_activity_task_failed_event_attributes,
                     event->request_cancel_activity_task_failed_event_attributes->activity_id);
        FLAT_END(ACTIVITY_TASK_COMPLETED, activity_task_completed_event_attributes, 0);
        FLAT_END(ACTIVITY_TASK_FAILED, activity_task_failed_event_attributes, 0);
        FLAT_END(ACTIVITY_TASK_CANCELED, activity_task_canceled_event_attributes, 0);
        FLAT_END(ACTIVITY_TASK_TIMED_OUT, activity_task_timed_out_event_attributes,
                 event->activity_task_timed_out_event_attributes->timeout_type);
    case EVENT_KIND(ACTIVITY_TASK_STARTED):
        return (struct flat){{event->activity_task_started_event_attributes->scheduled_event_id, 0},
                             event->activity_task_started_event_attributes->attempt,
                             ""};
    default:
        return (struct flat){.text = ""};
    }
}

static struct flat
flatten_decision(const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
        FLAT_END(DECISION_TASK_COMPLETED, decision_task_completed_event_attributes, 0);
        FLAT_END(DECISION_TASK_FAILED, decision_task_failed_event_attributes,
                 event->decision_task_failed_event_attributes->cause);
        FLAT_END(DECISION_TASK_TIMED_OUT, decision_task_timed_out_event_attributes,
                 event->decision_task_timed_out_event_attributes->timeout_type);
    case EVENT_KIND(DECISION_TASK_SCHEDULED):
        return (struct flat){{0}, event->decision_task_scheduled_event_attributes->attempt, ""};
    case EVENT_KIND(DECISION_TASK_STARTED):
        return (struct flat){
            {event->decision_task_started_event_attributes->scheduled_event_id, 0}, 0, ""};
    default:
        return flatten_activity(event);
    }
}

static struct flat
flatten(const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
        FLAT_DECIDED(TIMER_STARTED, timer_started_event_attributes,
                     event->timer_started_event_attributes->timer_id);
        FLAT_DECIDED(CANCEL_TIMER_FAILED, cancel_timer_failed_event_attributes,
                     event->cancel_timer_failed_event_attributes->timer_id);
        FLAT_DECIDED(MARKER_RECORDED, marker_recorded_event_attributes,
                     event->marker_recorded_event_attributes->marker_name);
        FLAT_DECIDED(WORKFLOW_EXECUTION_COMPLETED, workflow_execution_completed_event_attributes,
                     "");
        FLAT_DECIDED(WORKFLOW_EXECUTION_FAILED, workflow_execution_failed_event_attributes, "");
        FLAT_DECIDED(WORKFLOW_EXECUTION_CANCELED, workflow_execution_canceled_event_attributes, "");
        FLAT_DECIDED(WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
                     workflow_execution_continued_as_new_event_attributes, "");
    case EVENT_KIND(TIMER_FIRED):
        return (struct flat){{event->timer_fired_event_attributes->started_event_id, 0},
                             0,
                             event->timer_fired_event_attributes->timer_id};
    case EVENT_KIND(TIMER_CANCELED):
        return (struct flat){
            {event->timer_canceled_event_attributes->started_event_id,
             event->timer_canceled_event_attributes->decision_task_completed_event_id},
            0,
            event->timer_canceled_event_attributes->timer_id};
    case EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED):
        return (struct flat){
            {0}, 0, event->workflow_execution_signaled_event_attributes->signal_name};
    default:
        return flatten_decision(event);
    }
}

static void
compare_event(struct world *world, const API(HistoryEvent) *event, const struct model_event *wanted)
{
    const char *name = event_name(event->attributes_case);
    struct flat flat = flatten(event);
    if (strcmp(name, wanted->name) != 0 || strcmp(flat.text, wanted->text) != 0)
        TEST_FAIL("seed %llu after %s: event %lld is %s \"%s\", the model says %s \"%s\"\n%s",
                  (unsigned long long)world->seed, world->last, (long long)event->event_id, name,
                  flat.text, wanted->name, wanted->text,
                  fixture_history(world->fixture, world->fixture->run_count - 1));
    DIFFERS(world, name, event->event_id, wanted->id);
    DIFFERS(world, name, flat.number, wanted->number);
    for (int i = 0; i < 2; i++)
        DIFFERS(world, name, flat.refers[i], wanted->refers[i] == NULL ? 0 : wanted->refers[i]->id);
}

static void
compare_history(struct world *world)
{
    const struct fixture *fixture = world->fixture;
    const struct fixture_run *run = &fixture->runs[fixture->run_count - 1];
    const struct model *model = world->model;
    size_t count =
        run->events.count < model->history_count ? run->events.count : model->history_count;
    for (size_t i = 0; i < count; i++)
        compare_event(world, run->events.items[i], model->history[i]);
    DIFFERS(world, "events", run->events.count, model->history_count);
    DIFFERS(world, "buffered events", map64_count(run->run->buffered), model->buffer_count);
}

static void
compare_decision(struct world *world, const struct run *run)
{
    const struct model_decision *wanted = &world->model->decision;
    const STORED(PendingDecision) *decision = run->core->decision;
    DIFFERS(world, "pending decision", decision != NULL, wanted->state != MODEL_NONE);
    if (decision == NULL)
        return;
    DIFFERS(world, "started decision", decision->started_id != EVENT_NONE,
            wanted->state == MODEL_STARTED);
    DIFFERS(world, "decision attempt", decision->attempt, wanted->attempt);
}

static void
compare_activity(struct world *world, const struct run *run, const struct model_activity *wanted)
{
    const STORED(PendingActivity) *activity = run_find_activity_id(run, wanted->id);
    DIFFERS(world, "activity", activity != NULL, 1);
    DIFFERS(world, "activity's event", activity->schedule_id, wanted->scheduled->id);
    DIFFERS(world, "activity's attempt", activity->attempt, wanted->attempt);
    DIFFERS(world, "activity started", activity->started_id != EVENT_NONE,
            wanted->phase == MODEL_RUNNING);
    DIFFERS(world, "activity's task", activity->row != 0, wanted->phase == MODEL_SENT);
    DIFFERS(world, "activity cancelled", activity->is_cancel_requested, wanted->cancel != NULL);
    DIFFERS(world, "activity's time", activity->scheduled_time, wanted->scheduled_time);
    int beat = activity->heartbeat_details == NULL ? 0 : (int)activity->heartbeat_details->data.len;
    DIFFERS(world, "activity's details", beat, wanted->beat);
}

/* Decisions and activities that wait for a poller have a row each, and nobody else has. */
static void
compare_outbox(struct world *world)
{
    const struct model *model = world->model;
    size_t wanted = model->decision.state == MODEL_SCHEDULED;
    for (size_t i = 0; i < MODEL_ACTIVITIES_MAX && model->is_open; i++) {
        const struct model_activity *activity = &model->activities[i];
        wanted += activity->is_pending && activity->phase == MODEL_SENT;
    }
    DIFFERS(world, "rows of the outbox", world->fixture->tasks.count, wanted);
}

static void
compare_pending(struct world *world, const struct run *run)
{
    const struct model *model = world->model;
    size_t activities = 0, timers = 0;
    for (size_t i = 0; i < MODEL_ACTIVITIES_MAX; i++) {
        if (!model->activities[i].is_pending)
            continue;
        activities++;
        if (model->is_open)
            compare_activity(world, run, &model->activities[i]);
    }
    for (size_t i = 0; i < MODEL_TIMERS_MAX; i++) {
        const struct model_timer *wanted = &model->timers[i];
        if (!wanted->is_pending)
            continue;
        timers++;
        const STORED(PendingTimer) *timer = run_find_timer(run, wanted->id);
        DIFFERS(world, "timer", timer != NULL, 1);
        DIFFERS(world, "timer's time", timer->fire_time, wanted->fire_time);
    }
    if (model->is_open) /* of a closed run the history alone counts: fixture_expect_rebuilt */
        DIFFERS(world, "activities", map64_count(run->activities), activities);
    DIFFERS(world, "timers", map_count(run->timers), timers);
}

void
world_compare(struct world *world)
{
    const struct run *run = fixture_run(world->fixture);
    compare_history(world);
    DIFFERS(world, "open", run_is_open(run), world->model->is_open);
    compare_decision(world, run);
    compare_pending(world, run);
    compare_outbox(world);
    DIFFERS(world, "deadline", run_is_open(run) ? run_next_deadline(run) : 0,
            model_next_deadline(world->model)); /* deletion is not the model's */
    fixture_expect_rebuilt(world->fixture, world->fixture->run_count - 1);
}

void
world_expect_answer(struct world *world, struct error *refusal, enum model_answer wanted)
{
    static const enum error_kind kinds[] = {
        [MODEL_NOT_FOUND] = ERR_ENTITY_NOT_EXISTS,
        [MODEL_CLOSED] = ERR_ALREADY_COMPLETED,
        [MODEL_TAKEN] = ERR_EVENT_ALREADY_STARTED,
        [MODEL_ALREADY_REQUESTED] = ERR_CANCELLATION_ALREADY_REQUESTED,
        [MODEL_INTERNAL] = ERR_INTERNAL,
    };
    DIFFERS(world, "refusal", refusal != NULL, wanted != MODEL_DONE);
    if (refusal != NULL)
        DIFFERS(world, "kind of refusal", refusal->kind, kinds[wanted]);
}
