/* thrift.c - a blob into events.
 *
 * The fields of an event are rows of the table like any other, but its attributes are one of 42
 * fields in thrift and one arm of a oneof in protobuf. They may stand before or behind eventType,
 * so whether the two agree is seen when the event ends. */
#include "wire/thrift.h"

#include "base/check.h"
#include "wire/message.h"
#include "wire/thrift_decode.h"

/* The attributes seen so far of an event. */
struct thrift_attributes {
    const struct thrift_event *kind; /* NULL: none yet */
    ProtobufCMessage *message;
};

static bool
decode_attributes(struct thrift_decoder *decoder, enum thrift_type type,
                  const struct thrift_event *kind, struct thrift_attributes *attributes)
{
    if (type != THRIFT_TYPE_STRUCT)
        return thrift_decode_fail(decoder, "a field of another type");
    if (attributes->kind != NULL && attributes->kind != kind)
        return thrift_decode_fail(decoder, "an event with two kinds of attributes");
    attributes->kind = kind;
    return thrift_decode_struct(decoder, kind->attributes(), &attributes->message);
}

static bool
decode_event_fields(struct thrift_decoder *decoder, API(HistoryEvent) *event,
                    struct thrift_attributes *attributes)
{
    for (;;) {
        enum thrift_type type;
        int16_t id;
        if (!thrift_reader_field(&decoder->reader, &type, &id))
            return false;
        if (type == THRIFT_STOP)
            return true;
        const struct thrift_event *kind = thrift_event_of_id(id);
        bool is_good = kind != NULL ? decode_attributes(decoder, type, kind, attributes)
                                    : thrift_decode_field(decoder, thrift_history_event(),
                                                          &event->base, type, id);
        if (!is_good)
            return false;
    }
}

static bool
decode_event(struct thrift_decoder *decoder, API(HistoryEvent) **out)
{
    struct thrift_attributes attributes = {0};
    API(HistoryEvent) *event = thrift_decode_new(decoder, API_TYPE(history_event));
    if (event == NULL || !decode_event_fields(decoder, event, &attributes))
        return false;
    if (event->attributes_case == 0)
        return thrift_decode_fail(decoder, "an event without a type");
    if (attributes.kind == NULL || attributes.kind->arm != event->attributes_case)
        return thrift_decode_fail(decoder, "an event without the attributes of its type");
    /* any arm: all are pointers to messages, in one union */
    event->workflow_execution_started_event_attributes = (void *)attributes.message;
    *out = event;
    return true;
}

static bool
decode_events(struct thrift_decoder *decoder, API(HistoryEvent) ***events, size_t *count)
{
    if (!thrift_reader_list(&decoder->reader, THRIFT_TYPE_STRUCT, count))
        return false;
    *events = thrift_decode_alloc(decoder, *count * sizeof **events);
    for (size_t i = 0; *events != NULL && i < *count; i++)
        if (!decode_event(decoder, &(*events)[i]))
            return false;
    return *events != NULL;
}

static bool
decode_history(struct thrift_decoder *decoder, API(HistoryEvent) ***events, size_t *count)
{
    uint8_t preamble;
    if (!thrift_reader_u8(&decoder->reader, &preamble))
        return false;
    if (preamble != THRIFT_PREAMBLE)
        return thrift_decode_fail(decoder, "does not begin with 0x59");
    for (;;) {
        enum thrift_type type;
        int16_t id;
        if (!thrift_reader_field(&decoder->reader, &type, &id))
            return false;
        if (type == THRIFT_STOP)
            break;
        if (id == THRIFT_HISTORY_ID && type != THRIFT_TYPE_LIST)
            return thrift_decode_fail(decoder, "a field of another type");
        bool is_good = id == THRIFT_HISTORY_ID ? decode_events(decoder, events, count)
                                               : thrift_reader_skip(&decoder->reader, type);
        if (!is_good)
            return false;
    }
    if (decoder->reader.at != decoder->reader.end)
        return thrift_decode_fail(decoder, "bytes behind the end");
    return true;
}

struct error *
thrift_decode_history(struct arena *arena, enum error_kind kind, struct slice bytes,
                      API(HistoryEvent) ***events, size_t *count)
{
    struct thrift_decoder decoder = {
        .arena = arena,
        .reader = thrift_reader_of(bytes),
        .budget = MESSAGE_MEMORY_FREE + bytes.length * MESSAGE_MEMORY_FACTOR,
    };
    const uint8_t *start = decoder.reader.at;
    API(HistoryEvent) **decoded = NULL;
    size_t decoded_count = 0;
    if (!decode_history(&decoder, &decoded, &decoded_count)) {
        check(decoder.reader.problem != NULL);
        return error_new(arena, kind, "history blob, byte %zu of %zu: %s",
                         (size_t)(decoder.reader.at - start), bytes.length, decoder.reader.problem);
    }
    *events = decoded;
    *count = decoded_count;
    return NULL;
}

bool
thrift_is_canonical(struct arena *arena, API(HistoryEvent) *event)
{
    API(HistoryEvent) **again;
    size_t count;
    struct slice blob = thrift_encode_history(arena, &event, 1);
    struct error *err = thrift_decode_history(arena, ERR_INTERNAL, blob, &again, &count);
    return err == NULL &&
           slice_equal(message_encode(arena, &event->base), message_encode(arena, &again[0]->base));
}

#if defined(__SANITIZE_ADDRESS__)
#define THRIFT_IS_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define THRIFT_IS_CHECKED 1
#endif
#endif
#ifndef THRIFT_IS_CHECKED
#define THRIFT_IS_CHECKED 0
#endif

struct slice
thrift_encode_kept(struct arena *arena, API(HistoryEvent) *const *events, size_t count)
{
    if (THRIFT_IS_CHECKED) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        for (size_t i = 0; i < count; i++)
            check_that(thrift_is_canonical(scratch, events[i]),
                       "event %lld of kind %d cannot be sent to another cluster",
                       (long long)events[i]->event_id, (int)events[i]->attributes_case);
    }
    return thrift_encode_history(arena, events, count);
}
