/* reader.h - the lowest level of protobuf: tags, varints and lengths in bytes that may be anything.
 *
 * Inside wire/ only. A reader stands at a place in bytes that it does not own. Each function moves
 * it on, or returns false and says in `problem` what is wrong; a reader that failed is not used
 * again. */
#ifndef CADENZA_WIRE_READER_H
#define CADENZA_WIRE_READER_H

#include "base/check.h"
#include "base/compiler.h"
#include "base/slice.h"

enum wire_kind {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP_START = 3,
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5,
};

struct wire_reader {
    const uint8_t *at;
    const uint8_t *end;
    const char *problem; /* a text that lives for ever; NULL until something is wrong */
};

/* A reader of all of `bytes`. */
struct wire_reader wire_reader_of(struct slice bytes);
/* Is nothing left? */
static inline bool
wire_reader_is_done(const struct wire_reader *reader)
{
    return reader->at == reader->end;
}

/* Records what is wrong; returns false, for the caller to return. */
bool wire_reader_fail(struct wire_reader *reader, const char *problem);
/* How many bytes are left. */
static inline size_t
wire_reader_left(const struct wire_reader *reader)
{
    check(reader->at <= reader->end);
    return (size_t)(reader->end - reader->at);
}

/* A number in up to 10 bytes that fits 64 bits. */
must_use bool wire_reader_long_varint(struct wire_reader *reader, uint64_t *value);
/* The same, quick for the many that are one byte. */
must_use static inline bool
wire_reader_varint(struct wire_reader *reader, uint64_t *value)
{
    if (reader->at == reader->end || *reader->at >= 0x80)
        return wire_reader_long_varint(reader, value);
    *value = *reader->at++;
    return true;
}

/* The number (1 .. 2^29 - 1) and kind of the next field; kinds 6 and 7 do not exist. */
must_use bool wire_reader_long_tag(struct wire_reader *reader, uint32_t *number,
                                   enum wire_kind *kind);
/* The same, quick for numbers up to 15. */
must_use static inline bool
wire_reader_tag(struct wire_reader *reader, uint32_t *number, enum wire_kind *kind)
{
    uint8_t tag = reader->at == reader->end ? 0 : *reader->at;
    if (tag < 1 << 3 || tag >= 0x80 || (tag & 7) > WIRE_FIXED32)
        return wire_reader_long_tag(reader, number, kind);
    *number = tag >> 3;
    *kind = (enum wire_kind)(tag & 7);
    reader->at++;
    return true;
}

/* Little-endian. */
must_use bool wire_reader_fixed32(struct wire_reader *reader, uint32_t *value);
must_use bool wire_reader_fixed64(struct wire_reader *reader, uint64_t *value);
/* A length and as many bytes; *bytes points into what is read. */
must_use static inline bool
wire_reader_bytes(struct wire_reader *reader, struct slice *bytes)
{
    uint64_t length;
    if (!wire_reader_varint(reader, &length))
        return false;
    if (length > wire_reader_left(reader))
        return wire_reader_fail(reader, "longer than what is left");
    *bytes = slice_of(reader->at, (size_t)length);
    reader->at += length;
    return true;
}

/* Passes the value of a field whose tag was just read, whole groups included. */
must_use bool wire_reader_skip(struct wire_reader *reader, uint32_t number, enum wire_kind kind);

#endif
