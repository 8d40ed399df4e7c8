/* event.c - making events and putting them where they belong: the history, or the buffer.
 *
 *   1. Ids have no gaps: an event gets the next one, at once, or when the buffer is flushed.
 *   2. Times never go backwards, whatever the clock does: an event is not before the one before it.
 *   3. Nothing is added to a run that has closed. */
#include "engine/run/inside.h"
#include "wire/presence.h"
#include "wire/thrift.h"

const ProtobufCFieldDescriptor *
event_field(API(HistoryEvent__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field =
        message_find_field(API_TYPE(history_event), (uint32_t)kind);
    check_that(field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE, "no event kind %d",
               (int)kind);
    return field;
}

ProtobufCMessage *
event_attributes(const API(HistoryEvent) *event)
{
    const ProtobufCFieldDescriptor *field = event_field(event->attributes_case);
    ProtobufCMessage *attributes;
    memcpy(&attributes, (const char *)event + field->offset, sizeof attributes);
    check(attributes != NULL);
    return attributes;
}

int64_t
duration_seconds(const GOOGLE(Duration) *duration)
{
    if (duration == NULL)
        return 0;
    if (duration->seconds > INT32_MAX)
        return INT32_MAX;
    return duration->seconds < INT32_MIN ? INT32_MIN : duration->seconds;
}

int64_t
event_time(const API(HistoryEvent) *event)
{
    check(event->event_time != NULL);
    return presence_time(event->event_time);
}

API(HistoryEvent) *
mutation_new_event(struct mutation *mutation, API(HistoryEvent__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field = event_field(kind);
    API(HistoryEvent) *event = message_new(mutation->arena, API_TYPE(history_event));
    void *attributes = message_new(mutation->arena, field->descriptor);
    memcpy((char *)event + field->offset, &attributes, sizeof attributes);
    event->attributes_case = kind;
    event->version = mutation->context->event_version;
    int64_t last = mutation->run->core->last_event_time;
    int64_t now = mutation->context->now;
    event->event_time = presence_make_timestamp(mutation->arena, now > last ? now : last);
    return event;
}

void
event_append(struct mutation *mutation, API(HistoryEvent) *event)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    if (core->next_event_id == 0) {
        check(event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
        core->next_event_id = 1;
    }
    if (event_time(event) < core->last_event_time)
        event->event_time = presence_make_timestamp(mutation->arena, core->last_event_time);
    core->last_event_time = event_time(event);
    check(event->event_id <= 0 && event->task_id == 0); /* neither has been given yet */
    event->event_id = core->next_event_id++;
    vector_push_in(&mutation->events, mutation->arena, event);
}

/* Does it end something whose start is still buffered? */
static bool
event_follows_buffered(const API(HistoryEvent) *event)
{
    int64_t schedule_id;
    const int64_t *started_id = event_started_id(event, &schedule_id);
    return started_id != NULL && *started_id == EVENT_BUFFERED;
}

static void
event_check_welcome(const struct mutation *mutation, const API(HistoryEvent) *event)
{
    const STORED(RunRecord) *core = mutation->run->core;
    const char *name = event_name(event->attributes_case);
    bool is_first = event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_STARTED);
    check_that(is_first == (core->state == 0), "%s in state %d", name, (int)core->state);
    check_that(is_first || run_is_open(mutation->run), "%s behind the close", name);
    int64_t last =
        core->n_versions == 0 ? INT64_MIN : core->versions[core->n_versions - 1]->event_version;
    check_that(event->version >= last, "%s of version %lld after one of %lld", name,
               (long long)event->version, (long long)last);
}

int64_t
mutation_add_event(struct mutation *mutation, API(HistoryEvent) *event)
{
    check(!mutation->is_over && event->event_id <= 0);
    event_check_welcome(mutation, event);
    /* What goes into history is what every cluster can keep. Events share parts with requests and
     * with records of the run, which stay as they are. */
    thrift_make_canonical(mutation->arena, event);
    bool is_started = run_has_started_decision(mutation->run);
    if (is_started && event_may_be_buffered(event->attributes_case)) {
        event->event_id = EVENT_BUFFERED;
        buffered_put(mutation, event);
        run_apply(mutation, event);
        return EVENT_BUFFERED;
    }
#ifndef CADENZA_FAULT_start_among_decisions
    if (mutation->is_holding && event_may_be_buffered(event->attributes_case)) {
        held_add(mutation, event);
        return EVENT_BUFFERED;
    }
#endif
    check_that(!is_started || !event_comes_from_decision(event->attributes_case),
               "%s while a decision is started", event_name(event->attributes_case));
    bool follows = event_follows_buffered(event);
    if (follows)
        mutation_flush_buffered(mutation);
    event_append(mutation, event);
    if (follows)
        run_apply_id(mutation, event);
    run_apply(mutation, event);
    return event->event_id;
}

int64_t
mutation_first_event_id(const struct mutation *mutation)
{
    if (mutation->events.count > 0)
        return mutation->events.items[0]->event_id;
    int64_t next = mutation->run->core->next_event_id;
    return next == 0 ? 1 : next;
}

API(HistoryEvent) *const *
mutation_events(const struct mutation *mutation, size_t *count)
{
    *count = mutation->events.count;
    return mutation->events.items;
}
