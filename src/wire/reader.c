/* reader.c - tags, varints and lengths, each checked against the end before it is believed. */
#include "wire/reader.h"

#include <endian.h>

#include "base/check.h"
#include "wire/message.h"

#define FIELD_NUMBER_MAX ((1u << 29) - 1)
#define VARINT_BYTES_MAX 10

bool
wire_reader_fail(struct wire_reader *reader, const char *problem)
{
    reader->problem = problem;
    return false;
}

struct wire_reader
wire_reader_of(struct slice bytes)
{
    static const uint8_t nothing[1]; /* so that pointers can be compared even when data is NULL */
    const uint8_t *data = bytes.data == NULL ? nothing : bytes.data;
    check(bytes.data != NULL || bytes.length == 0);
    return (struct wire_reader){.at = data, .end = data + bytes.length};
}

bool
wire_reader_long_varint(struct wire_reader *reader, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
        if (reader->at == reader->end)
            return wire_reader_fail(reader, "cut off in a number");
        uint64_t byte = *reader->at++;
        if (i == VARINT_BYTES_MAX - 1 && byte > 1)
            break; /* a bit above the 64th, or yet another byte */
        sum |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = sum;
            return true;
        }
    }
    return wire_reader_fail(reader, "a number of more than 64 bits");
}

bool
wire_reader_long_tag(struct wire_reader *reader, uint32_t *number, enum wire_kind *kind)
{
    uint64_t tag;
    if (!wire_reader_varint(reader, &tag))
        return false;
    if (tag >> 3 == 0)
        return wire_reader_fail(reader, "field number 0");
    if (tag >> 3 > FIELD_NUMBER_MAX)
        return wire_reader_fail(reader, "a field number above 536870911");
    if ((tag & 7) > WIRE_FIXED32)
        return wire_reader_fail(reader, "a wire type that does not exist");
    *number = (uint32_t)(tag >> 3);
    *kind = (enum wire_kind)(tag & 7);
    return true;
}

bool
wire_reader_fixed32(struct wire_reader *reader, uint32_t *value)
{
    if (wire_reader_left(reader) < sizeof *value)
        return wire_reader_fail(reader, "cut off in a number");
    memcpy(value, reader->at, sizeof *value);
    *value = le32toh(*value);
    reader->at += sizeof *value;
    return true;
}

bool
wire_reader_fixed64(struct wire_reader *reader, uint64_t *value)
{
    if (wire_reader_left(reader) < sizeof *value)
        return wire_reader_fail(reader, "cut off in a number");
    memcpy(value, reader->at, sizeof *value);
    *value = le64toh(*value);
    reader->at += sizeof *value;
    return true;
}

/* Everything but groups, which nest. */
static bool
wire_reader_skip_flat(struct wire_reader *reader, enum wire_kind kind)
{
    uint64_t number64;
    uint32_t number32;
    struct slice bytes;
    switch (kind) {
    case WIRE_VARINT:
        return wire_reader_varint(reader, &number64);
    case WIRE_FIXED64:
        return wire_reader_fixed64(reader, &number64);
    case WIRE_BYTES:
        return wire_reader_bytes(reader, &bytes);
    case WIRE_FIXED32:
        return wire_reader_fixed32(reader, &number32);
    case WIRE_GROUP_START:
    case WIRE_GROUP_END:
        break;
    }
    return wire_reader_fail(reader, "the end of a group that did not begin");
}

/* Not by recursion: the depth is the sender's choice, the stack is a fiber's. */
bool
wire_reader_skip(struct wire_reader *reader, uint32_t number, enum wire_kind kind)
{
    uint32_t open[MESSAGE_DEPTH_MAX]; /* the groups that we are in */
    size_t depth = 0;
    for (;;) {
        if (kind == WIRE_GROUP_START) {
            if (depth == MESSAGE_DEPTH_MAX)
                return wire_reader_fail(reader, "groups nested too deep");
            open[depth++] = number;
        } else if (kind == WIRE_GROUP_END && depth > 0) {
            if (open[--depth] != number)
                return wire_reader_fail(reader, "the end of another group");
        } else if (!wire_reader_skip_flat(reader, kind)) {
            return false;
        }
        if (depth == 0)
            return true;
        if (!wire_reader_tag(reader, &number, &kind))
            return false;
    }
}
