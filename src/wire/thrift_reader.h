/* thrift_reader.h - the lowest level of thrift's binary protocol: big-endian numbers, lengths and
 * headers in bytes that may be anything.
 *
 * Inside wire/ only. A reader stands at a place in bytes that it does not own. Each function moves
 * it on, or returns false and says in `problem` what is wrong; a reader that failed is not used
 * again. */
#ifndef CADENZA_WIRE_THRIFT_READER_H
#define CADENZA_WIRE_THRIFT_READER_H

#include "base/compiler.h"
#include "base/slice.h"
#include "wire/thrift_table.h"

#define THRIFT_DEPTH_MAX 64 /* of what is skipped: containers in containers */

struct thrift_reader {
    const uint8_t *at;
    const uint8_t *end;
    const char *problem; /* a text that lives for ever; NULL until something is wrong */
};

/* A reader of all of `bytes`. */
struct thrift_reader thrift_reader_of(struct slice bytes);
/* Says what is wrong; returns false. */
bool thrift_reader_fail(struct thrift_reader *reader, const char *problem);

/* Numbers, big-endian. */
must_use bool thrift_reader_u8(struct thrift_reader *reader, uint8_t *value);
must_use bool thrift_reader_i32(struct thrift_reader *reader, int32_t *value);
must_use bool thrift_reader_i64(struct thrift_reader *reader, int64_t *value);
/* A length and as many bytes; *bytes points into what is read. */
must_use bool thrift_reader_bytes(struct thrift_reader *reader, struct slice *bytes);
/* The next field of a struct: its type, which exists, and id. THRIFT_STOP: none, the struct ends.
 */
must_use bool thrift_reader_field(struct thrift_reader *reader, enum thrift_type *type,
                                  int16_t *id);
/* The head of a list. The elements must be of the type given, and as many bytes must be left as
 * they take at least. */
must_use bool thrift_reader_list(struct thrift_reader *reader, enum thrift_type element,
                                 size_t *count);
/* The head of a map from binary to binary, likewise. */
must_use bool thrift_reader_map(struct thrift_reader *reader, size_t *count);
/* Passes a value of the type. */
must_use bool thrift_reader_skip(struct thrift_reader *reader, enum thrift_type type);

#endif
