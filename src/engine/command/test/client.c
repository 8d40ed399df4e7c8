/* client.c - see client.h. */
#include "engine/command/test/client.h"

#include "engine/run/apply.h"

/* One history while it is read. */
struct reading {
    struct client *client;
    API(HistoryEvent) *const *events;
    size_t count;
    const struct fixture *fixture;
    uint64_t seed;
};

#define DECISION_KIND(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)

/* Which events a decision may become, and what waits from then on. */
static const struct {
    API(Decision__AttributesCase) decision;
    API(HistoryEvent__AttributesCase) event, other;
    enum client_machine machine;
} table[] = {
    {DECISION_KIND(SCHEDULE_ACTIVITY_TASK), EVENT_KIND(ACTIVITY_TASK_SCHEDULED), 0,
     CLIENT_ACTIVITY},
    {DECISION_KIND(REQUEST_CANCEL_ACTIVITY_TASK), EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED), 0, 0},
    {DECISION_KIND(START_TIMER), EVENT_KIND(TIMER_STARTED), 0, CLIENT_TIMER},
    {DECISION_KIND(CANCEL_TIMER), EVENT_KIND(TIMER_CANCELED), EVENT_KIND(CANCEL_TIMER_FAILED), 0},
    {DECISION_KIND(RECORD_MARKER), EVENT_KIND(MARKER_RECORDED), 0, 0},
    {DECISION_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES),
     EVENT_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES), 0, 0},
    {DECISION_KIND(START_CHILD_WORKFLOW_EXECUTION),
     EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_INITIATED), 0, CLIENT_CHILD},
    {DECISION_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION),
     EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED), 0, CLIENT_EXTERNAL},
    {DECISION_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION),
     EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED), 0, CLIENT_EXTERNAL},
    {DECISION_KIND(COMPLETE_WORKFLOW_EXECUTION), EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED), 0, 0},
};

no_return static void
stop(const struct reading *reading, const API(HistoryEvent) *event, const char *why)
{
    const struct fixture *fixture = reading->fixture;
    TEST_FAIL("seed %llu: a client cannot read event %lld, %s: %s\n%s",
              (unsigned long long)reading->seed, (long long)event->event_id,
              event_name(event->attributes_case), why,
              fixture_history(fixture, fixture->run_count - 1));
}

void
client_send(struct client *client, struct fixture *fixture, API(Decision) *const *decisions,
            size_t count)
{
    int64_t started_id = fixture->decision.started_id;
    struct client_list *list = arena_make(fixture->arena, struct client_list);
    EXPECT(started_id < CLIENT_EVENTS_MAX && count <= CLIENT_LIST_MAX);
    for (size_t i = 0; i < count; i++)
        list->kinds[i] = decisions[i]->attributes_case;
    list->count = count;
    client->sent[started_id] = list;
}

/* ---- the events of a list ---- */

static void
read_decided(const struct reading *reading, const API(HistoryEvent) *event,
             API(Decision__AttributesCase) kind)
{
    size_t i = 0;
    while (table[i].decision != kind)
        i++;
    if (event->attributes_case != table[i].event && event->attributes_case != table[i].other)
        stop(reading, event, "its place in the list belongs to another decision");
    reading->client->by_id[event->event_id].machine = table[i].machine;
    reading->client->by_id[event->event_id].state = CLIENT_BEGUN;
    if (event->attributes_case == EVENT_KIND(TIMER_CANCELED)) {
        int64_t id = event->timer_canceled_event_attributes->started_event_id;
        if (reading->client->by_id[id].machine != CLIENT_TIMER)
            stop(reading, event, "no such timer");
        reading->client->by_id[id].state = CLIENT_OVER;
    }
}

/* The events of all decisions of the list, which stand behind its DecisionTaskCompleted without a
 * gap. Returns where they end. */
static size_t
read_list(const struct reading *reading, size_t index)
{
    const API(HistoryEvent) *completed = reading->events[index];
    int64_t started_id = completed->decision_task_completed_event_attributes->started_event_id;
    const struct client_list *list = reading->client->sent[started_id];
    if (list == NULL)
        stop(reading, completed, "nobody answered this decision");
    if (index + list->count >= reading->count)
        stop(reading, completed, "the events of its decisions are not all there");
    for (size_t i = 0; i < list->count; i++)
        read_decided(reading, reading->events[index + 1 + i], list->kinds[i]);
    return index + 1 + list->count;
}

/* ---- all others ---- */

/* The machine under this id goes on to a state; it has not been there. */
static void
move_machine(const struct reading *reading, const API(HistoryEvent) *event, int64_t id,
             enum client_machine machine, enum client_state state)
{
    if (id <= 0 || id >= event->event_id || reading->client->by_id[id].machine != machine)
        stop(reading, event, "it is about a decision that is unknown");
    if (reading->client->by_id[id].state >= state)
        stop(reading, event, "it is about something that is over, or comes twice");
    reading->client->by_id[id].state = state;
    if (state == CLIENT_RUNNING)
        reading->client->by_id[id].started_id = event->event_id;
}

static void
read_activity_end(const struct reading *reading, const API(HistoryEvent) *event, int64_t id,
                  int64_t started_id)
{
    move_machine(reading, event, id, CLIENT_ACTIVITY, CLIENT_OVER);
    if (started_id > 0 && reading->client->by_id[id].started_id != started_id)
        stop(reading, event, "it names a start that is not the activity's");
}

#define ENDS_ACTIVITY(KIND, field)                                                                 \
    case EVENT_KIND(ACTIVITY_TASK_##KIND):                                                         \
        read_activity_end(reading, event,                                                          \
                          event->activity_task_##field##_event_attributes->scheduled_event_id,     \
                          event->activity_task_##field##_event_attributes->started_event_id);      \
        return
#define MOVES(KIND, field, id, machine, state)                                                     \
    case EVENT_KIND(KIND):                                                                         \
        move_machine(reading, event, event->field##_event_attributes->id, machine, state);         \
        return

static void
read_outside_event(const struct reading *reading, const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
        ENDS_ACTIVITY(COMPLETED, completed);
        ENDS_ACTIVITY(FAILED, failed);
        ENDS_ACTIVITY(TIMED_OUT, timed_out);
        ENDS_ACTIVITY(CANCELED, canceled);
        MOVES(ACTIVITY_TASK_STARTED, activity_task_started, scheduled_event_id, CLIENT_ACTIVITY,
              CLIENT_RUNNING);
        MOVES(TIMER_FIRED, timer_fired, started_event_id, CLIENT_TIMER, CLIENT_OVER);
        MOVES(CHILD_WORKFLOW_EXECUTION_STARTED, child_workflow_execution_started,
              initiated_event_id, CLIENT_CHILD, CLIENT_RUNNING);
        MOVES(CHILD_WORKFLOW_EXECUTION_COMPLETED, child_workflow_execution_completed,
              initiated_event_id, CLIENT_CHILD, CLIENT_OVER);
        MOVES(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED, external_workflow_execution_signaled,
              initiated_event_id, CLIENT_EXTERNAL, CLIENT_OVER);
        MOVES(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
              external_workflow_execution_cancel_requested, initiated_event_id, CLIENT_EXTERNAL,
              CLIENT_OVER);
    default:
        if (event_comes_from_decision(event->attributes_case))
            stop(reading, event, "nobody decided that");
    }
}

void
client_read(struct client *client, const struct fixture *fixture, bool is_sticky, uint64_t seed)
{
    const struct fixture_run *run = &fixture->runs[fixture->run_count - 1];
    struct reading reading = {.client = client,
                              .events = run->events.items,
                              .count = run->events.count,
                              .fixture = fixture,
                              .seed = seed};
    EXPECT(reading.count < CLIENT_EVENTS_MAX);
    if (!is_sticky) {
        memset(client->by_id, 0, sizeof client->by_id);
        client->seen = 0;
    }
    while (client->seen < reading.count) {
        const API(HistoryEvent) *event = reading.events[client->seen];
        if (event->attributes_case == EVENT_KIND(DECISION_TASK_COMPLETED)) {
            client->seen = read_list(&reading, client->seen);
            continue;
        }
        read_outside_event(&reading, event);
        client->seen++;
    }
    if (fixture->decision.transient_started != NULL) /* they come with the task */
        client->seen = (size_t)fixture->decision.started_id;
}
