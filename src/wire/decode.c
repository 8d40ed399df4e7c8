/* decode.c - decoding guided by descriptors.
 *
 * One pass: a frame per message stands on the stack and reads fields until its bytes end, storing
 * each value at the offset that the descriptor names. Frames know their parents only for the sake
 * of error messages. Storing a singular field twice is how the rules want it: a scalar is
 * overwritten, a message is read into the struct that is already there.
 *
 * Repeated fields grow by doubling. The struct has no room for a capacity, so it follows from the
 * count: 4, then the next power of two.
 *
 * Maps are put in order last of all: a map can arrive in as many parts as its parent, and sorting
 * after each part would be quadratic. */
#include "wire/message.h"

#include "base/check.h"
#include "base/text.h"
#include "wire/maps.h"
#include "wire/presence.h"
#include "wire/reader.h"
#include "wire/types.h"

#define REPEATED_FIRST ((size_t)4)

/* A map field that has got an entry. */
struct map_seen {
    struct map_seen *next;
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field;
};

struct message_decoder {
    struct arena *arena;
    enum error_kind kind;  /* of the errors */
    bool is_lent;          /* bytes fields may point into what is read */
    size_t budget;         /* bytes that may still be taken */
    struct map_seen *maps; /* to be put in order */
};

/* One message that is being read. */
struct frame {
    const struct frame *parent;
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field; /* being read; NULL: between fields, or an unknown one */
    size_t index;                          /* of the element, if the field is repeated */
    unsigned depth;
    struct wire_reader reader;
};

static struct error *decode_message(struct message_decoder *decoder, const struct frame *parent,
                                    ProtobufCMessage *message, struct slice bytes);

/* "RegisterDomainRequest.data[2].key" */
static const char *
frame_path(struct arena *arena, const struct frame *frame)
{
    const char *before = frame->parent == NULL ? frame->message->descriptor->short_name
                                               : frame_path(arena, frame->parent);
    if (frame->field == NULL)
        return before;
    if (frame->field->label != PROTOBUF_C_LABEL_REPEATED)
        return arena_format(arena, "%s.%s", before, frame->field->name);
    return arena_format(arena, "%s.%s[%zu]", before, frame->field->name, frame->index);
}

static struct error *
decode_fail(struct message_decoder *decoder, const struct frame *frame, const char *problem)
{
    check(problem != NULL);
    return error_new(decoder->arena, decoder->kind, "%s: %s", frame_path(decoder->arena, frame),
                     problem);
}

/* NULL when the message would take more memory than it may. */
static void *
decode_alloc(struct message_decoder *decoder, size_t size)
{
    size_t counted = size + 16; /* small pieces cost more than their size */
    if (counted > decoder->budget)
        return NULL;
    decoder->budget -= counted;
    return arena_alloc(decoder->arena, size);
}

static struct error *
decode_fail_memory(struct message_decoder *decoder, const struct frame *frame)
{
    return decode_fail(decoder, frame, "the message takes too much memory for its size");
}

static struct error *
decode_string(struct message_decoder *decoder, struct frame *frame, struct slice bytes,
              char **place)
{
    if (bytes.length > 0 && memchr(bytes.data, 0, bytes.length) != NULL)
        return decode_fail(decoder, frame, "holds a NUL byte");
    if (!text_is_utf8(bytes, NULL))
        return decode_fail(decoder, frame, "not valid UTF-8");
    char *text = decode_alloc(decoder, bytes.length + 1);
    if (text == NULL)
        return decode_fail_memory(decoder, frame);
    if (bytes.length > 0)
        memcpy(text, bytes.data, bytes.length);
    text[bytes.length] = '\0';
    *place = text;
    return NULL;
}

static struct error *
decode_bytes(struct message_decoder *decoder, struct frame *frame, struct slice bytes,
             ProtobufCBinaryData *place)
{
    *place = (ProtobufCBinaryData){0};
    if (bytes.length == 0)
        return NULL;
    if (decoder->is_lent) {
        *place = presence_make_bytes(bytes);
        return NULL;
    }
    uint8_t *data = decode_alloc(decoder, bytes.length);
    if (data == NULL)
        return decode_fail_memory(decoder, frame);
    memcpy(data, bytes.data, bytes.length);
    *place = (ProtobufCBinaryData){.len = bytes.length, .data = data};
    return NULL;
}

/* A message field that is already there is read into, not replaced. */
static struct error *
decode_child(struct message_decoder *decoder, struct frame *frame, struct slice bytes,
             ProtobufCMessage **place)
{
    const ProtobufCMessageDescriptor *type = frame->field->descriptor;
    if (*place == NULL) {
        check(type->message_init != NULL);
        ProtobufCMessage *message = decode_alloc(decoder, type->sizeof_message);
        if (message == NULL)
            return decode_fail_memory(decoder, frame);
        type->message_init(message);
        *place = message;
    }
    return decode_message(decoder, frame, *place, bytes);
}

static struct error *
decode_delimited(struct message_decoder *decoder, struct frame *frame, void *place)
{
    struct slice bytes;
    if (!wire_reader_bytes(&frame->reader, &bytes))
        return decode_fail(decoder, frame, frame->reader.problem);
    switch (frame->field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return decode_string(decoder, frame, bytes, place);
    case PROTOBUF_C_TYPE_BYTES:
        return decode_bytes(decoder, frame, bytes, place);
    default:
        check(frame->field->type == PROTOBUF_C_TYPE_MESSAGE);
        return decode_child(decoder, frame, bytes, place);
    }
}

/* Stores a varint as the rules want it: too many bits for a 32-bit type are cut off. */
static void
store_varint(ProtobufCType type, uint64_t value, void *place)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)place = value != 0;
        return;
    case PROTOBUF_C_TYPE_SINT32:
        *(uint32_t *)place = ((uint32_t)value >> 1) ^ -((uint32_t)value & 1);
        return;
    case PROTOBUF_C_TYPE_SINT64:
        *(uint64_t *)place = (value >> 1) ^ -(value & 1);
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)place = value;
        return;
    default:
        check(message_element_size(type) == sizeof(uint32_t));
        *(uint32_t *)place = (uint32_t)value;
    }
}

/* Reads one number, of a packed run or by itself, into `place`. */
static inline struct error *
decode_number(struct message_decoder *decoder, struct frame *frame, enum wire_kind kind,
              struct wire_reader *reader, void *place)
{
    uint64_t value = 0;
    bool is_fine = false;
    if (kind == WIRE_VARINT) {
        is_fine = wire_reader_varint(reader, &value);
        if (is_fine)
            store_varint(frame->field->type, value, place);
    } else if (kind == WIRE_FIXED32) {
        is_fine = wire_reader_fixed32(reader, place);
    } else {
        check(kind == WIRE_FIXED64);
        is_fine = wire_reader_fixed64(reader, place);
    }
    return is_fine ? NULL : decode_fail(decoder, frame, reader->problem);
}

/* Remembers a map when it gets its first entry; false: no memory. */
static bool
decoder_note_map(struct message_decoder *decoder, const struct frame *frame)
{
    if (frame->index > 0 || frame->field->type != PROTOBUF_C_TYPE_MESSAGE ||
        !wire_map_is_entry(frame->field->descriptor))
        return true;
    struct map_seen *seen = decode_alloc(decoder, sizeof *seen);
    if (seen == NULL)
        return false;
    *seen = (struct map_seen){decoder->maps, frame->message, frame->field};
    decoder->maps = seen;
    return true;
}

/* Room for one more element at *place; it is zero and counted already. */
static struct error *
repeated_append(struct message_decoder *decoder, struct frame *frame, void **place)
{
    const ProtobufCFieldDescriptor *field = frame->field;
    size_t *count = (size_t *)((char *)frame->message + field->quantifier_offset);
    char **array = (char **)((char *)frame->message + field->offset);
    size_t size = message_element_size(field->type);
    frame->index = *count;
    if (*count == 0 || (*count >= REPEATED_FIRST && (*count & (*count - 1)) == 0)) {
        size_t capacity = *count == 0 ? REPEATED_FIRST : *count * 2;
        char *larger = decode_alloc(decoder, capacity * size);
        if (larger == NULL || !decoder_note_map(decoder, frame))
            return decode_fail_memory(decoder, frame);
        if (*count > 0)
            memcpy(larger, *array, *count * size);
        *array = larger;
    }
    *place = *array + *count * size;
    memset(*place, 0, size);
    ++*count;
    return NULL;
}

static struct error *
decode_packed(struct message_decoder *decoder, struct frame *frame)
{
    struct slice bytes;
    if (!wire_reader_bytes(&frame->reader, &bytes))
        return decode_fail(decoder, frame, frame->reader.problem);
    struct wire_reader packed = wire_reader_of(bytes);
    enum wire_kind kind = message_wire_kind(frame->field->type);
    while (!wire_reader_is_done(&packed)) {
        void *place;
        struct error *err = repeated_append(decoder, frame, &place);
        if (err == NULL)
            err = decode_number(decoder, frame, kind, &packed, place);
        if (err != NULL)
            return err;
    }
    return NULL;
}

/* Makes this field the arm of its oneof. The arm before it, if another one, is forgotten. */
static void
oneof_choose(struct frame *frame, void *place)
{
    uint32_t *chosen = (uint32_t *)((char *)frame->message + frame->field->quantifier_offset);
    if (*chosen != frame->field->id)
        memset(place, 0, message_element_size(frame->field->type));
    *chosen = frame->field->id;
}

static struct error *
decode_field(struct message_decoder *decoder, struct frame *frame, enum wire_kind kind)
{
    const ProtobufCFieldDescriptor *field = frame->field;
    enum wire_kind wanted = message_wire_kind(field->type);
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    check(is_repeated || field->label == PROTOBUF_C_LABEL_NONE); /* proto3 has no others */
    frame->index = is_repeated ? *(size_t *)((char *)frame->message + field->quantifier_offset) : 0;
    if (is_repeated && kind == WIRE_BYTES && wanted != WIRE_BYTES)
        return decode_packed(decoder, frame);
    if (kind != wanted)
        return decode_fail(decoder, frame, "a wire type that this field does not have");
    void *place = (char *)frame->message + field->offset;
    if (is_repeated) {
        struct error *err = repeated_append(decoder, frame, &place);
        if (err != NULL)
            return err;
    } else if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        oneof_choose(frame, place);
    }
    if (kind == WIRE_BYTES)
        return decode_delimited(decoder, frame, place);
    return decode_number(decoder, frame, kind, &frame->reader, place);
}

static struct error *
decode_message(struct message_decoder *decoder, const struct frame *parent,
               ProtobufCMessage *message, struct slice bytes)
{
    struct frame frame = {
        .parent = parent,
        .message = message,
        .depth = parent == NULL ? 1 : parent->depth + 1,
        .reader = wire_reader_of(bytes),
    };
    if (frame.depth > MESSAGE_DEPTH_MAX)
        return decode_fail(decoder, &frame, "messages nested too deep");
    while (!wire_reader_is_done(&frame.reader)) {
        uint32_t number;
        enum wire_kind kind;
        frame.field = NULL;
        if (!wire_reader_tag(&frame.reader, &number, &kind))
            return decode_fail(decoder, &frame, frame.reader.problem);
        frame.field = message_find_field(message->descriptor, number);
        if (frame.field != NULL) {
            struct error *err = decode_field(decoder, &frame, kind);
            if (err != NULL)
                return err;
        } else if (!wire_reader_skip(&frame.reader, number, kind)) {
            return decode_fail(decoder, &frame, frame.reader.problem);
        }
    }
    return NULL;
}

static void
decoder_sort_maps(struct message_decoder *decoder)
{
    for (struct map_seen *seen = decoder->maps; seen != NULL; seen = seen->next) {
        char *message = (char *)seen->message;
        ProtobufCMessage **entries = *(ProtobufCMessage ***)(message + seen->field->offset);
        size_t *count = (size_t *)(message + seen->field->quantifier_offset);
        wire_map_sort_messages(decoder->arena, entries, count);
    }
}

static struct error *
decode_all(struct message_decoder *decoder, const ProtobufCMessageDescriptor *type,
           struct slice bytes, ProtobufCMessage **out)
{
    decoder->budget = MESSAGE_MEMORY_FREE + bytes.length * MESSAGE_MEMORY_FACTOR;
    ProtobufCMessage *message = message_new(decoder->arena, type);
    struct error *err = decode_message(decoder, NULL, message, bytes);
    if (err != NULL)
        return err;
    decoder_sort_maps(decoder);
    *out = message;
    return NULL;
}

struct error *
message_decode_at(struct arena *arena, enum error_kind kind, const ProtobufCMessageDescriptor *type,
                  struct slice bytes, ProtobufCMessage **out)
{
    struct message_decoder decoder = {.arena = arena, .kind = kind};
    return decode_all(&decoder, type, bytes, out);
}

struct error *
message_decode_lent(struct arena *arena, const ProtobufCMessageDescriptor *type, struct slice bytes,
                    ProtobufCMessage **out)
{
    struct message_decoder decoder = {.arena = arena, .kind = ERR_BAD_REQUEST, .is_lent = true};
    return decode_all(&decoder, type, bytes, out);
}
