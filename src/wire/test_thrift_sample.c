/* test_thrift_sample.c - fills messages at random, field by field of their descriptors. */
#include "wire/test_thrift_sample.h"

#include <string.h>

#include "base/check.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/types.h"

#define TEXT_LENGTH_MAX 40
#define COUNT_MAX       4

static void fill_message(struct sample *sample, ProtobufCMessage *message);

static bool
sample_chance(struct sample *sample, unsigned percent)
{
    return random_below(&sample->random, 100) < percent;
}

/* Small, huge and around 0. */
static int64_t
sample_int64(struct sample *sample)
{
    static const int64_t edges[] = {0, 1, -1, -23, -24, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    if (sample_chance(sample, 30))
        return edges[random_below(&sample->random, array_length(edges))];
    return (int64_t)random_next(&sample->random) >> random_below(&sample->random, 64);
}

static char *
sample_text(struct sample *sample)
{
    static const char *const pieces[] = {"a", "Z", "0", "-", " ", "\x01", "é", "→", "😀", "\""};
    char *text = arena_alloc(sample->arena, TEXT_LENGTH_MAX + 8);
    size_t length = 0, wanted = random_below(&sample->random, TEXT_LENGTH_MAX);
    while (length < wanted) {
        const char *piece = pieces[random_below(&sample->random, array_length(pieces))];
        memcpy(text + length, piece, strlen(piece));
        length += strlen(piece);
    }
    text[length] = '\0';
    return text;
}

static ProtobufCBinaryData
sample_bytes(struct sample *sample)
{
    size_t length = random_below(&sample->random, TEXT_LENGTH_MAX);
    uint8_t *data = arena_alloc(sample->arena, length);
    for (size_t i = 0; i < length; i++)
        data[i] = (uint8_t)random_next(&sample->random);
    return (ProtobufCBinaryData){.len = length, .data = length == 0 ? NULL : data};
}

/* Thrift has 32 bits of whole seconds, for timers more. */
static GOOGLE(Duration) *
sample_duration(struct sample *sample, const ProtobufCFieldDescriptor *field)
{
    int64_t seconds = (int32_t)sample_int64(sample);
    if (sample->is_wild || strcmp(field->name, "start_to_fire_timeout") == 0)
        seconds *= 100;
    GOOGLE(Duration) *duration = presence_make_duration(sample->arena, seconds);
    if (sample->is_wild)
        duration->nanos = seconds < 0 ? -5 : 5;
    return duration;
}

static ProtobufCMessage *
sample_message(struct sample *sample, const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessageDescriptor *type = field->descriptor;
    if (type == GOOGLE_TYPE(duration))
        return &sample_duration(sample, field)->base;
    if (type == GOOGLE_TYPE(timestamp))
        return &presence_make_timestamp(sample->arena, sample_int64(sample))->base;
    ProtobufCMessage *message = message_new(sample->arena, type);
    fill_message(sample, message);
    return message;
}

static void
fill_value(struct sample *sample, const ProtobufCFieldDescriptor *field, void *place)
{
    const ProtobufCEnumDescriptor *numbers = field->descriptor;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)place = sample_text(sample);
        return;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)place = sample_bytes(sample);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)place = true;
        return;
    case PROTOBUF_C_TYPE_INT32:
        *(int32_t *)place = (int32_t)sample_int64(sample);
        return;
    case PROTOBUF_C_TYPE_INT64:
        *(int64_t *)place = sample_int64(sample);
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)place = (double)sample_int64(sample) / 1024;
        return;
    case PROTOBUF_C_TYPE_ENUM:
        *(int *)place = numbers->values[random_below(&sample->random, numbers->n_values)].value;
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)place = sample_message(sample, field);
        return;
    default:
        unreachable("a field of type %d", (int)field->type);
    }
}

static void
fill_repeated(struct sample *sample, ProtobufCMessage *message,
              const ProtobufCFieldDescriptor *field)
{
    size_t *count = (size_t *)((char *)message + field->quantifier_offset);
    size_t size = message_element_size(field->type);
    *count = random_below(&sample->random, COUNT_MAX + 1);
    char *items = arena_zalloc(sample->arena, COUNT_MAX, size);
    for (size_t i = 0; i < *count; i++)
        fill_value(sample, field, items + i * size);
    *(void **)((char *)message + field->offset) = items;
    bool is_map = field->type == PROTOBUF_C_TYPE_MESSAGE && wire_map_is_entry(field->descriptor);
    if (is_map && !sample->is_wild)
        wire_map_sort_messages(sample->arena, (ProtobufCMessage **)items, count);
}

static bool
type_ends_with(const ProtobufCMessageDescriptor *type, const char *suffix)
{
    size_t length = strlen(type->short_name), suffix_length = strlen(suffix);
    return length >= suffix_length &&
           strcmp(type->short_name + length - suffix_length, suffix) == 0;
}

/* What thrift has no field for. */
static void
drop_unknown(ProtobufCMessage *message)
{
    if (message->descriptor == API_TYPE(parent_execution_info))
        ((API(ParentExecutionInfo) *)message)->domain_id = presence_make_text("");
    bool has_options = message->descriptor == API_TYPE(activity_task_started_event_attributes) ||
                       message->descriptor == API_TYPE(activity_task_failed_event_attributes) ||
                       message->descriptor == API_TYPE(activity_task_timed_out_event_attributes);
    if (has_options || !type_ends_with(message->descriptor, "EventAttributes"))
        return;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        API(Failure) **failure = (API(Failure) **)((char *)message + field->offset);
        if (field->descriptor == API_TYPE(failure) && *failure != NULL)
            (*failure)->options = NULL;
    }
}

static void
fill_message(struct sample *sample, ProtobufCMessage *message)
{
    bool is_entry = wire_map_is_entry(message->descriptor); /* keys and values are always there */
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        bool is_arm = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (is_arm || (!is_entry && !sample_chance(sample, sample->fill)))
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            fill_repeated(sample, message, field);
        else
            fill_value(sample, field, (char *)message + field->offset);
    }
    if (!sample->is_wild)
        drop_unknown(message);
}

API(HistoryEvent) *
sample_event(struct sample *sample, unsigned arm)
{
    const ProtobufCFieldDescriptor *field = message_find_field(API_TYPE(history_event), arm);
    check(field != NULL && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0);
    API(HistoryEvent) *event = message_new(sample->arena, API_TYPE(history_event));
    fill_message(sample, &event->base);
    event->attributes_case = (API(HistoryEvent__AttributesCase))arm;
    fill_value(sample, field, (char *)event + field->offset);
    return event;
}
