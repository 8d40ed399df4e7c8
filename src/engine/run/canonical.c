/* canonical.c - events are brought into the one form that every cluster of a group keeps.
 *
 * The history format of Cadence's stores counts timeouts in whole seconds of 32 bits, knows maps
 * without order, and lacks a few fields that the API has. If we kept more than that, a run's
 * history here and there would differ. So what cannot be kept everywhere is not written at all.
 *
 * Events share parts with requests and with records of the run, which must not be written to: so a
 * first walk only looks, and what is not canonical is copied before it is set right. */
#include "engine/run/inside.h"

struct walk {
    struct arena *arena;
    bool is_fixing;       /* else only looking */
    bool has_fault;       /* something is to be fixed */
    bool keeps_options;   /* of failures: only events of activities have a place for them */
    bool has_long_timers; /* only the time of a timer may be longer than 32 bits of seconds */
};

static void walk_message(struct walk *walk, ProtobufCMessage *message);

static void
walk_duration(struct walk *walk, GOOGLE(Duration) *duration)
{
    int64_t seconds = duration->seconds;
    bool is_long = !walk->has_long_timers && (seconds > INT32_MAX || seconds < INT32_MIN);
    if (duration->nanos == 0 && !is_long)
        return;
    walk->has_fault = true;
    if (!walk->is_fixing)
        return;
    duration->nanos = 0;
    if (is_long)
        duration->seconds = seconds < 0 ? INT32_MIN : INT32_MAX;
}

static void
walk_failure(struct walk *walk, API(Failure) *failure)
{
    if (walk->keeps_options || failure->options == NULL)
        return;
    walk->has_fault = true;
    if (walk->is_fixing)
        failure->options = NULL;
}

static void
walk_parent(struct walk *walk, API(ParentExecutionInfo) *parent)
{
    if (parent->domain_id == NULL || parent->domain_id[0] == '\0')
        return;
    walk->has_fault = true;
    if (walk->is_fixing)
        parent->domain_id = presence_make_text(NULL);
}

/* The key of an entry of a map from texts. */
static struct slice
entry_key(const ProtobufCMessage *entry)
{
    char *key;
    memcpy(&key, (const char *)entry + entry->descriptor->fields[0].offset, sizeof key);
    return slice_text(key);
}

static bool
map_is_good(ProtobufCMessage **entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *value = &entries[i]->descriptor->fields[1];
        void *place;
        memcpy(&place, (const char *)entries[i] + value->offset, sizeof place);
        if (place == NULL)
            return false;
        if (i > 0 && slice_compare(entry_key(entries[i - 1]), entry_key(entries[i])) >= 0)
            return false;
    }
    return true;
}

static void
walk_repeated(struct walk *walk, const ProtobufCFieldDescriptor *field, char *message)
{
    ProtobufCMessage **items;
    size_t count;
    memcpy(&items, message + field->offset, sizeof items);
    memcpy(&count, message + field->quantifier_offset, sizeof count);
    if (wire_map_is_entry(field->descriptor) && !map_is_good(items, count)) {
        walk->has_fault = true;
        if (walk->is_fixing) {
            wire_map_sort_messages(walk->arena, items, &count);
            memcpy(message + field->quantifier_offset, &count, sizeof count);
        }
    }
    for (size_t i = 0; i < count; i++)
        walk_message(walk, items[i]);
}

/* Numbers that nobody knows are kept, but there is no room below 0. */
static void
walk_enum(struct walk *walk, const ProtobufCFieldDescriptor *field, char *message)
{
    int number;
    check(field->label != PROTOBUF_C_LABEL_REPEATED);
    memcpy(&number, message + field->offset, sizeof number);
    if (number >= 0)
        return;
    walk->has_fault = true;
    if (walk->is_fixing)
        memset(message + field->offset, 0, sizeof number);
}

static void
walk_field(struct walk *walk, const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    if (field->type == PROTOBUF_C_TYPE_ENUM)
        walk_enum(walk, field, (char *)message);
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return;
    check((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0); /* attributes have none */
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        walk_repeated(walk, field, (char *)message);
        return;
    }
    ProtobufCMessage *value;
    memcpy(&value, (char *)message + field->offset, sizeof value);
    if (value != NULL)
        walk_message(walk, value);
}

static void
walk_message(struct walk *walk, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type == GOOGLE_TYPE(duration))
        walk_duration(walk, (GOOGLE(Duration) *)message);
    else if (type == API_TYPE(failure))
        walk_failure(walk, (API(Failure) *)message);
    else if (type == API_TYPE(parent_execution_info))
        walk_parent(walk, (API(ParentExecutionInfo) *)message);
    for (unsigned i = 0; i < type->n_fields; i++)
        walk_field(walk, &type->fields[i], message);
}

static bool
kind_keeps_options(API(HistoryEvent__AttributesCase) kind)
{
    return kind == EVENT_KIND(ACTIVITY_TASK_STARTED) || kind == EVENT_KIND(ACTIVITY_TASK_FAILED) ||
           kind == EVENT_KIND(ACTIVITY_TASK_TIMED_OUT);
}

void
event_make_canonical(API(HistoryEvent) *event, struct arena *arena)
{
    API(HistoryEvent__AttributesCase) kind = event->attributes_case;
    struct walk walk = {.arena = arena,
                        .keeps_options = kind_keeps_options(kind),
                        .has_long_timers = kind == EVENT_KIND(TIMER_STARTED)};
    ProtobufCMessage *attributes = event_attributes(event);
    walk_message(&walk, attributes);
    if (!walk.has_fault)
        return;
    attributes = message_copy(arena, attributes);
    memcpy((char *)event + event_field(kind)->offset, &attributes, sizeof attributes);
    walk.is_fixing = true;
    walk_message(&walk, attributes);
    walk.is_fixing = walk.has_fault = false;
    walk_message(&walk, attributes);
    check_that(!walk.has_fault, "%s is not canonical", event_name(kind));
}
