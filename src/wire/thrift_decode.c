/* thrift_decode.c - structs out of bytes, guided by the table.
 *
 * One pass. The table bounds how deep known structs nest; what is unknown is skipped by the reader,
 * which bounds its depth itself. Memory is paid from a budget that grows with the bytes, since an
 * empty struct is one byte here and a hundred in memory.
 *
 * The rules of thrift are simpler than those of protobuf: a field given again replaces the value.
 */
#include "wire/thrift_decode.h"

#include "base/check.h"
#include "base/text.h"
#include "wire/maps.h"
#include "wire/thrift_value.h"

bool
thrift_decode_fail(struct thrift_decoder *decoder, const char *problem)
{
    return thrift_reader_fail(&decoder->reader, problem);
}

/* False when the blob would take more memory than it may. */
static bool
decode_pay(struct thrift_decoder *decoder, size_t size)
{
    size_t counted = size + 16; /* small pieces cost more than their size */
    if (counted > decoder->budget)
        return thrift_decode_fail(decoder, "takes too much memory for its size");
    decoder->budget -= counted;
    return true;
}

void *
thrift_decode_alloc(struct thrift_decoder *decoder, size_t size)
{
    return decode_pay(decoder, size) ? arena_alloc(decoder->arena, size) : NULL;
}

void *
thrift_decode_new(struct thrift_decoder *decoder, const ProtobufCMessageDescriptor *type)
{
    void *message = thrift_decode_alloc(decoder, type->sizeof_message);
    if (message != NULL)
        type->message_init(message);
    return message;
}

static bool
decode_text(struct thrift_decoder *decoder, char **text)
{
    struct slice bytes;
    if (!thrift_reader_bytes(&decoder->reader, &bytes))
        return false;
    if (bytes.length > 0 && memchr(bytes.data, 0, bytes.length) != NULL)
        return thrift_decode_fail(decoder, "a text with a NUL byte");
    if (!text_is_utf8(bytes, NULL))
        return thrift_decode_fail(decoder, "a text that is not UTF-8");
    char *copy = thrift_decode_alloc(decoder, bytes.length + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, bytes.data, bytes.length);
    copy[bytes.length] = '\0';
    *text = copy;
    return true;
}

static bool
decode_bytes(struct thrift_decoder *decoder, ProtobufCBinaryData *data)
{
    struct slice bytes;
    *data = (ProtobufCBinaryData){0};
    if (!thrift_reader_bytes(&decoder->reader, &bytes))
        return false;
    if (bytes.length == 0)
        return true;
    uint8_t *copy = thrift_decode_alloc(decoder, bytes.length);
    if (copy == NULL)
        return false;
    memcpy(copy, bytes.data, bytes.length);
    *data = (ProtobufCBinaryData){.len = bytes.length, .data = copy};
    return true;
}

static bool
decode_payload(struct thrift_decoder *decoder, API(Payload) **payload)
{
    *payload = thrift_decode_new(decoder, API_TYPE(payload));
    return *payload != NULL && decode_bytes(decoder, &(*payload)->data);
}

static bool
decode_bool(struct thrift_decoder *decoder, protobuf_c_boolean *value)
{
    uint8_t byte;
    if (!thrift_reader_u8(&decoder->reader, &byte))
        return false;
    if (byte > 1)
        return thrift_decode_fail(decoder, "a bool that is neither 0 nor 1");
    *value = byte;
    return true;
}

static bool
decode_int32(struct thrift_decoder *decoder, int32_t *value)
{
    int64_t number;
    if (!thrift_reader_i64(&decoder->reader, &number))
        return false;
    if (number < INT32_MIN || number > INT32_MAX)
        return thrift_decode_fail(decoder, "a number of more than 32 bits");
    *value = (int32_t)number;
    return true;
}

static bool
decode_double(struct thrift_decoder *decoder, double *value)
{
    int64_t bits;
    if (!thrift_reader_i64(&decoder->reader, &bits))
        return false;
    memcpy(value, &bits, sizeof *value);
    return true;
}

static bool
decode_enum(struct thrift_decoder *decoder, int32_t *value)
{
    int32_t number;
    if (!thrift_reader_i32(&decoder->reader, &number))
        return false;
    if (number < 0 || number == INT32_MAX)
        return thrift_decode_fail(decoder, "a number that no enum has");
    *value = number + 1;
    return true;
}

static bool
decode_duration(struct thrift_decoder *decoder, enum thrift_kind kind, GOOGLE(Duration) **duration)
{
    int32_t few = 0;
    int64_t seconds = 0;
    bool is_read = kind == THRIFT_SECONDS ? thrift_reader_i32(&decoder->reader, &few)
                                          : thrift_reader_i64(&decoder->reader, &seconds);
    if (!is_read)
        return false;
    seconds = kind == THRIFT_SECONDS ? few : seconds;
    if (seconds < -THRIFT_SECONDS_MAX || seconds > THRIFT_SECONDS_MAX)
        return thrift_decode_fail(decoder, "a duration of more than 10000 years");
    *duration = thrift_decode_new(decoder, GOOGLE_TYPE(duration));
    if (*duration == NULL)
        return false;
    (*duration)->seconds = seconds;
    return true;
}

static bool
decode_time(struct thrift_decoder *decoder, GOOGLE(Timestamp) **timestamp)
{
    int64_t nanoseconds;
    if (!thrift_reader_i64(&decoder->reader, &nanoseconds))
        return false;
    if (!decode_pay(decoder, sizeof **timestamp))
        return false;
    *timestamp = presence_make_timestamp(decoder->arena, nanoseconds);
    return true;
}

static bool
decode_event_type(struct thrift_decoder *decoder, API(HistoryEvent__AttributesCase) *arm)
{
    int32_t type;
    if (!thrift_reader_i32(&decoder->reader, &type))
        return false;
    const struct thrift_event *event = thrift_event_of_type(type);
    if (event == NULL)
        return thrift_decode_fail(decoder, "an event of a type that does not exist");
    *arm = event->arm;
    return true;
}

static bool
decode_texts(struct thrift_decoder *decoder, char ***texts, size_t *count)
{
    size_t announced;
    if (!thrift_reader_list(&decoder->reader, THRIFT_TYPE_BINARY, &announced))
        return false;
    *count = 0;
    *texts = thrift_decode_alloc(decoder, announced * sizeof **texts);
    for (size_t i = 0; *texts != NULL && i < announced; i++)
        if (!decode_text(decoder, &(*texts)[(*count)++]))
            return false;
    return *texts != NULL;
}

static bool
decode_structs(struct thrift_decoder *decoder, const struct thrift_struct *structure,
               ProtobufCMessage ***messages, size_t *count)
{
    size_t announced;
    if (!thrift_reader_list(&decoder->reader, THRIFT_TYPE_STRUCT, &announced))
        return false;
    *count = 0;
    *messages = thrift_decode_alloc(decoder, announced * sizeof **messages);
    for (size_t i = 0; *messages != NULL && i < announced; i++)
        if (!thrift_decode_struct(decoder, structure, &(*messages)[(*count)++]))
            return false;
    return *messages != NULL;
}

static bool
decode_entry(struct thrift_decoder *decoder, const struct thrift_field *field,
             ProtobufCMessage **entry)
{
    const ProtobufCFieldDescriptor *columns = field->entry->fields;
    *entry = thrift_decode_new(decoder, field->entry);
    if (*entry == NULL)
        return false;
    union thrift_place key = {.raw = (char *)*entry + columns[0].offset};
    union thrift_place value = {.raw = (char *)*entry + columns[1].offset};
    return decode_text(decoder, key.text) &&
           (field->kind == THRIFT_TEXT_MAP ? decode_text(decoder, value.text)
                                           : decode_payload(decoder, value.payload));
}

static bool
decode_map(struct thrift_decoder *decoder, const struct thrift_field *field,
           ProtobufCMessage ***entries, size_t *count)
{
    size_t announced;
    if (!thrift_reader_map(&decoder->reader, &announced))
        return false;
    *count = 0;
    *entries =
        thrift_decode_alloc(decoder, 2 * announced * sizeof **entries); /* half of it for sorting */
    for (size_t i = 0; *entries != NULL && i < announced; i++)
        if (!decode_entry(decoder, field, &(*entries)[(*count)++]))
            return false;
    if (*entries != NULL)
        wire_map_sort_messages(decoder->arena, *entries, count);
    return *entries != NULL;
}

static bool
decode_value(struct thrift_decoder *decoder, const struct thrift_field *field,
             union thrift_place place, size_t *count)
{
    switch (field->kind) {
    case THRIFT_TEXT:
        return decode_text(decoder, place.text);
    case THRIFT_BYTES:
        return decode_bytes(decoder, place.bytes);
    case THRIFT_PAYLOAD:
        return decode_payload(decoder, place.payload);
    case THRIFT_BOOL:
        return decode_bool(decoder, place.boolean);
    case THRIFT_I32:
        return thrift_reader_i32(&decoder->reader, place.int32);
    case THRIFT_LONG_I32:
        return decode_int32(decoder, place.int32);
    case THRIFT_I64:
        return thrift_reader_i64(&decoder->reader, place.int64);
    case THRIFT_DOUBLE:
        return decode_double(decoder, place.float64);
    case THRIFT_ENUM:
        return decode_enum(decoder, place.int32);
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
        return decode_duration(decoder, field->kind, place.duration);
    case THRIFT_TIME:
        return decode_time(decoder, place.timestamp);
    case THRIFT_EVENT_TYPE:
        return decode_event_type(decoder, place.arm);
    case THRIFT_STRUCT:
        return thrift_decode_struct(decoder, field->structure(), place.message);
    case THRIFT_STRUCT_LIST:
        return decode_structs(decoder, field->structure(), place.messages, count);
    case THRIFT_TEXT_LIST:
        return decode_texts(decoder, place.texts, count);
    case THRIFT_TEXT_MAP:
    case THRIFT_PAYLOAD_MAP:
        return decode_map(decoder, field, place.messages, count);
    case THRIFT_KIND_COUNT:
        break;
    }
    unreachable("a field of kind %d", (int)field->kind);
}

/* One field of `message`, whose head was just read. */
bool
thrift_decode_field(struct thrift_decoder *decoder, const struct thrift_struct *structure,
                    ProtobufCMessage *message, enum thrift_type type, int16_t id)
{
    const struct thrift_field *field = thrift_find_field(structure, id);
    if (field == NULL)
        return thrift_reader_skip(&decoder->reader, type);
    if (type != thrift_kind_type(field->kind))
        return thrift_decode_fail(decoder, "a field of another type");
    ProtobufCMessage **group = field->group == NULL ? NULL : thrift_group_of(field, message);
    if (group != NULL && *group == NULL) {
        *group = thrift_decode_new(decoder, field->group);
        if (*group == NULL)
            return false;
    }
    union thrift_place place;
    bool is_there = thrift_place_of(field, message, &place);
    check(is_there);
    return decode_value(decoder, field, place,
                        thrift_is_counted(field) ? thrift_count_of(field, message) : NULL);
}

bool
thrift_decode_struct(struct thrift_decoder *decoder, const struct thrift_struct *structure,
                     ProtobufCMessage **message)
{
    *message = thrift_decode_new(decoder, structure->type);
    while (*message != NULL) {
        enum thrift_type type;
        int16_t id;
        if (!thrift_reader_field(&decoder->reader, &type, &id))
            return false;
        if (type == THRIFT_STOP)
            return true;
        if (!thrift_decode_field(decoder, structure, *message, type, id))
            return false;
    }
    return false;
}
