/* thrift_decode.h - structs of the table out of bytes.
 *
 * Inside wire/ only. Functions return false when something is wrong; the reader's problem says
 * what, and the decoder is not used again. */
#ifndef CADENZA_WIRE_THRIFT_DECODE_H
#define CADENZA_WIRE_THRIFT_DECODE_H

#include "base/arena.h"
#include "wire/thrift_reader.h"
#include "wire/thrift_table.h"

struct thrift_decoder {
    struct arena *arena; /* for what is made */
    struct thrift_reader reader;
    size_t budget; /* bytes that may still be taken */
};

/* Says what is wrong; returns false. */
bool thrift_decode_fail(struct thrift_decoder *decoder, const char *problem);
/* `size` bytes, not initialised; NULL: more memory than the blob may take. */
must_use void *thrift_decode_alloc(struct thrift_decoder *decoder, size_t size);
/* A new message, every field unset; NULL as above. */
must_use void *thrift_decode_new(struct thrift_decoder *decoder,
                                 const ProtobufCMessageDescriptor *type);
/* A struct, as a new message. */
must_use bool thrift_decode_struct(struct thrift_decoder *decoder,
                                   const struct thrift_struct *structure,
                                   ProtobufCMessage **message);
/* One field of a struct, whose type and id were just read, into the struct's message. */
must_use bool thrift_decode_field(struct thrift_decoder *decoder,
                                  const struct thrift_struct *structure, ProtobufCMessage *message,
                                  enum thrift_type type, int16_t id);

#endif
