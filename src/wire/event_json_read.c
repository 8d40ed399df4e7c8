/* event_json_read.c - batches of history out of JSON. See event_json.h.
 *
 * One pass, guided by the table: members that it does not have are skipped, and so is null. The
 * table bounds how deep structs nest. An object of two bytes may become a message of hundreds, so
 * memory is paid from a budget that grows with the bytes. */
#include "base/check.h"
#include "base/text.h"
#include "base/vector.h"
#include "wire/event_json.h"
#include "wire/event_json_names.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/thrift_value.h"

#define MEMORY_FREE   ((size_t)1024 * 1024)
#define MEMORY_FACTOR ((size_t)16)

struct json_decoder {
    struct json_reader json;
    struct arena *arena;
    size_t budget;
};

static void read_struct(struct json_decoder *decoder, const struct thrift_struct *structure,
                        ProtobufCMessage **message);

static void
refuse(struct json_decoder *decoder)
{
    decoder->json.is_bad = true;
}

/* A new message, NULL when it takes too much. */
static void *
make(struct json_decoder *decoder, const ProtobufCMessageDescriptor *type)
{
    if (type->sizeof_message > decoder->budget || decoder->json.is_bad) {
        refuse(decoder);
        return NULL;
    }
    decoder->budget -= type->sizeof_message;
    return message_new(decoder->arena, type);
}

/* --- scalars ---- */

static void
read_int32(struct json_decoder *decoder, int32_t *value)
{
    int64_t number = 0;
    object_integer(&decoder->json, &number);
    if (number < INT32_MIN || number > INT32_MAX)
        refuse(decoder);
    *value = (int32_t)number;
}

static void
read_text(struct json_decoder *decoder, char **value)
{
    const char *text = "";
    object_text(&decoder->json, &text);
    *value = (char *)text;
}

static void
read_bytes(struct json_decoder *decoder, ProtobufCBinaryData *data)
{
    struct slice bytes = {0};
    object_bytes(&decoder->json, &bytes);
    *data = (ProtobufCBinaryData){.len = bytes.length,
                                  .data = bytes.length == 0 ? NULL : (uint8_t *)bytes.data};
}

static void
read_payload(struct json_decoder *decoder, API(Payload) **payload)
{
    *payload = make(decoder, API_TYPE(payload));
    if (*payload != NULL)
        read_bytes(decoder, &(*payload)->data);
}

/* By its name, or by its number in thrift. */
static void
read_enum(struct json_decoder *decoder, const ProtobufCEnumDescriptor *type, int32_t *value)
{
    if (object_peek(&decoder->json) != '"') {
        read_int32(decoder, value);
        if (*value < 0 || *value == INT32_MAX)
            refuse(decoder);
        *value = decoder->json.is_bad ? 0 : *value + 1;
        return;
    }
    const char *name = "";
    object_text(&decoder->json, &name);
    *value = event_json_find_value(type, name);
    if (*value == 0)
        refuse(decoder);
}

static void
read_duration(struct json_decoder *decoder, GOOGLE(Duration) **duration)
{
    int64_t seconds = 0;
    object_integer(&decoder->json, &seconds);
    if (seconds < -THRIFT_SECONDS_MAX || seconds > THRIFT_SECONDS_MAX)
        refuse(decoder);
    *duration = make(decoder, GOOGLE_TYPE(duration));
    if (*duration != NULL)
        (*duration)->seconds = seconds;
}

/* A number of nanoseconds, or a text. */
static void
read_time(struct json_decoder *decoder, GOOGLE(Timestamp) **timestamp)
{
    int64_t nanoseconds = 0;
    const char *text = "";
    if (object_peek(&decoder->json) != '"') {
        object_integer(&decoder->json, &nanoseconds);
    } else {
        object_text(&decoder->json, &text);
        if (!text_parse_moment(slice_text(text), &nanoseconds))
            refuse(decoder);
    }
    if (make(decoder, GOOGLE_TYPE(timestamp)) != NULL)
        *timestamp = presence_make_timestamp(decoder->arena, nanoseconds);
}

/* --- lists and maps ---- */

static void
read_texts(struct json_decoder *decoder, char ***texts, size_t *count)
{
    vector_of(char *) list = {0};
    size_t begun = 0;
    array_enter(&decoder->json);
    while (array_next(&decoder->json, &begun)) {
        char *text = "";
        read_text(decoder, &text);
        vector_push(&list, text);
    }
    *count = list.count;
    *texts = arena_zalloc(decoder->arena, list.count, sizeof **texts);
    if (list.count > 0)
        memcpy(*texts, list.items, list.count * sizeof **texts);
    vector_free(&list);
}

/* Adopts messages that were gathered; half of the room is for sorting. */
struct messages {
    ProtobufCMessage **items;
    size_t count, capacity;
};

static void
adopt(struct json_decoder *decoder, struct messages *list, ProtobufCMessage ***messages,
      size_t *count)
{
    *count = list->count;
    *messages = arena_zalloc(decoder->arena, 2 * list->count, sizeof **messages);
    if (list->count > 0)
        memcpy(*messages, list->items, list->count * sizeof **messages);
    vector_free(list);
}

static void
read_structs(struct json_decoder *decoder, const struct thrift_struct *structure,
             ProtobufCMessage ***messages, size_t *count)
{
    struct messages list = {0};
    size_t begun = 0;
    array_enter(&decoder->json);
    while (array_next(&decoder->json, &begun)) {
        ProtobufCMessage *message = NULL;
        read_struct(decoder, structure, &message);
        if (message != NULL)
            vector_push(&list, message);
    }
    adopt(decoder, &list, messages, count);
}

static void
read_map(struct json_decoder *decoder, const struct thrift_field *field,
         ProtobufCMessage ***entries, size_t *count)
{
    struct messages list = {0};
    const ProtobufCFieldDescriptor *columns = field->entry->fields;
    const char *key = "";
    bool outer = object_enter(&decoder->json);
    while (object_next(&decoder->json, &key)) {
        ProtobufCMessage *entry = make(decoder, field->entry);
        if (entry == NULL)
            break;
        union thrift_place value = {.raw = (char *)entry + columns[1].offset};
        *(char **)((char *)entry + columns[0].offset) = (char *)key;
        if (field->kind == THRIFT_TEXT_MAP)
            read_text(decoder, value.text);
        else
            read_payload(decoder, value.payload);
        vector_push(&list, entry);
    }
    object_leave(&decoder->json, outer);
    adopt(decoder, &list, entries, count);
    if (!decoder->json.is_bad)
        wire_map_sort_messages(decoder->arena, *entries, count);
}

/* --- structs ---- */

static void
read_flag(struct json_decoder *decoder, protobuf_c_boolean *value)
{
    bool flag = false;
    object_flag(&decoder->json, &flag);
    *value = flag;
}

static void
read_value(struct json_decoder *decoder, const struct thrift_field *field,
           const ProtobufCFieldDescriptor *descriptor, union thrift_place place, size_t *count)
{
    switch (field->kind) {
    case THRIFT_TEXT:
        return read_text(decoder, place.text);
    case THRIFT_BYTES:
        return read_bytes(decoder, place.bytes);
    case THRIFT_PAYLOAD:
        return read_payload(decoder, place.payload);
    case THRIFT_BOOL:
        return read_flag(decoder, place.boolean);
    case THRIFT_I32:
    case THRIFT_LONG_I32:
        return read_int32(decoder, place.int32);
    case THRIFT_I64:
        return object_integer(&decoder->json, place.int64);
    case THRIFT_DOUBLE:
        return object_number(&decoder->json, place.float64);
    case THRIFT_ENUM:
        return read_enum(decoder, descriptor->descriptor, place.int32);
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
        return read_duration(decoder, place.duration);
    case THRIFT_TIME:
        return read_time(decoder, place.timestamp);
    case THRIFT_EVENT_TYPE:
        return object_skip(&decoder->json); /* the attributes say it */
    case THRIFT_STRUCT:
        return read_struct(decoder, field->structure(), place.message);
    case THRIFT_STRUCT_LIST:
        return read_structs(decoder, field->structure(), place.messages, count);
    case THRIFT_TEXT_LIST:
        return read_texts(decoder, place.texts, count);
    case THRIFT_TEXT_MAP:
    case THRIFT_PAYLOAD_MAP:
        return read_map(decoder, field, place.messages, count);
    case THRIFT_KIND_COUNT:
        break;
    }
    unreachable("a field of kind %d", (int)field->kind);
}

static const struct thrift_field *
find_member(const struct thrift_struct *structure, const char *name)
{
    char room[NAME_ROOM];
    for (const struct thrift_field *field = structure->fields; field->id != 0; field++)
        if (strcmp(event_json_field_name(structure, field, room), name) == 0)
            return field;
    return NULL;
}

static void
read_member(struct json_decoder *decoder, const struct thrift_struct *structure,
            ProtobufCMessage *message, const char *name)
{
    const struct thrift_field *field = find_member(structure, name);
    if (field == NULL)
        return object_skip(&decoder->json);
    if (object_null(&decoder->json))
        return;
    ProtobufCMessage **group = field->group == NULL ? NULL : thrift_group_of(field, message);
    if (group != NULL && *group == NULL)
        *group = make(decoder, field->group);
    union thrift_place place;
    if (!thrift_place_of(field, message, &place))
        return;
    read_value(decoder, field, event_json_descriptor(structure, field), place,
               thrift_is_counted(field) ? thrift_count_of(field, message) : NULL);
}

static void
read_struct(struct json_decoder *decoder, const struct thrift_struct *structure,
            ProtobufCMessage **message)
{
    const char *name = "";
    *message = make(decoder, structure->type);
    if (*message == NULL)
        return;
    bool outer = object_enter(&decoder->json);
    while (object_next(&decoder->json, &name))
        read_member(decoder, structure, *message, name);
    object_leave(&decoder->json, outer);
}

/* --- events ---- */

static const struct thrift_event *
find_attributes(const char *name)
{
    char room[NAME_ROOM];
    const struct thrift_event *events = thrift_events();
    for (size_t i = 0; i < THRIFT_EVENT_COUNT; i++)
        if (strcmp(event_json_attributes_name(&events[i], room), name) == 0)
            return &events[i];
    return NULL;
}

static void
read_event(struct json_decoder *decoder, API(HistoryEvent) **event)
{
    const char *name = "";
    *event = make(decoder, API_TYPE(history_event));
    if (*event == NULL)
        return;
    bool outer = object_enter(&decoder->json);
    while (object_next(&decoder->json, &name)) {
        const struct thrift_event *kind = find_attributes(name);
        if (kind == NULL) {
            read_member(decoder, thrift_history_event(), &(*event)->base, name);
        } else if (!object_null(&decoder->json)) {
            ProtobufCMessage *attributes = NULL;
            read_struct(decoder, kind->attributes(), &attributes);
            (*event)->attributes_case = kind->arm;
            (*event)->workflow_execution_started_event_attributes = (void *)attributes;
        }
    }
    object_leave(&decoder->json, outer);
    if ((*event)->attributes_case == 0)
        refuse(decoder);
}

static void
read_events(struct json_decoder *decoder, API(History) *batch)
{
    struct messages list = {0};
    size_t begun = 0;
    array_enter(&decoder->json);
    while (array_next(&decoder->json, &begun)) {
        API(HistoryEvent) *event = NULL;
        read_event(decoder, &event);
        if (event != NULL)
            vector_push(&list, &event->base);
    }
    adopt(decoder, &list, (ProtobufCMessage ***)&batch->events, &batch->n_events);
}

struct error *
event_json_read_batch(struct slice json, struct arena *arena, API(History) **batch)
{
    struct json_decoder decoder = {.json = object_begin(json, arena),
                                   .arena = arena,
                                   .budget = MEMORY_FREE + MEMORY_FACTOR * json.length};
    const char *name = "";
    *batch = message_new(arena, API_TYPE(history));
    while (object_next(&decoder.json, &name)) {
        if (strcmp(name, "events") == 0 && (*batch)->n_events == 0)
            read_events(&decoder, *batch);
        else
            object_skip(&decoder.json);
    }
    if (object_end(&decoder.json))
        return NULL;
    return error_new(arena, ERR_CORRUPT, "an archived batch of events cannot be read");
}
