/* message.h - bytes of the wire into messages of a call's arena, and back.
 *
 * Messages are the structs that the protobuf compiler makes from proto/; this file reads them
 * guided by their descriptors. It does not use the reader of libprotobuf-c, which cuts a string at
 * its first NUL byte, takes invalid UTF-8, loses scalars when a message is given in two parts,
 * keeps and sends on fields it does not know, and has no limit to depth or memory.
 *
 * Promises:
 *   1. A string of a decoded message is valid UTF-8 without NUL bytes, at any depth.
 *   2. What was decoded is what the protobuf rules say: a singular field given again replaces, a
 *      message given again merges, of a oneof the last arm counts, a map has each key once (the
 *      last), in order of keys, and each entry has its value.
 *   3. Unknown fields are dropped: they are neither kept nor written again. Enum numbers that we
 *      do not know are kept; presence.h refuses them where it matters.
 *   4. Work is linear in the bytes (maps: n log n). Memory is bounded by about
 *      MESSAGE_MEMORY_FACTOR times the bytes, and MESSAGE_MEMORY_FREE on top.
 *
 * Ownership: a decoded message copies what it needs into the arena; nothing points into the bytes,
 * but for message_decode_lent. There is nothing to free: never call the generated __free_unpacked
 * functions on it. */
#ifndef CADENZA_WIRE_MESSAGE_H
#define CADENZA_WIRE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

#define MESSAGE_DEPTH_MAX     100                        /* messages in messages, unknown groups */
#define MESSAGE_MEMORY_FREE   ((size_t)16 * 1024 * 1024) /* any message may take this much */
#define MESSAGE_MEMORY_FACTOR ((size_t)8)                /* and this much per byte of it */

/* A new message of `type` in `arena`, every field unset. */
must_use void *message_new(struct arena *arena, const ProtobufCMessageDescriptor *type);

/* The same with some fields set, by designated initialisers; names.h has it for each package:
 *   API_NEW(arena, workflow_execution, .workflow_id = "order-7")
 * The struct is what the message's generated reader returns, which messages inside of others lack:
 * those need message_new. */
#define MESSAGE_NEW(arena, name, ...)                                                              \
    ((__typeof__(name##__unpack(NULL, 0, NULL)))message_new_like(                                  \
        (arena), &name##__descriptor, &(__typeof__(*name##__unpack(NULL, 0, NULL))){__VA_ARGS__}))

/* Behind the macro: takes the fields of `fields`, a struct of the type; a string that is NULL is
 * unset. */
must_use void *message_new_like(struct arena *arena, const ProtobufCMessageDescriptor *type,
                                const void *fields);

/* Decodes `bytes` as a message of `type` into `arena`; *out is a pointer to its struct. Error:
 * ERR_BAD_REQUEST, whose message begins with the path of the field that is wrong, for example
 * "RegisterDomainRequest.data[2].key: not valid UTF-8". *out is untouched then. */
#define message_decode(arena, type, bytes, out)                                                    \
    message_decode_as((arena), ERR_BAD_REQUEST, (type), (bytes), (out))

/* The same with another kind of error, for bytes that no client sent: ERR_CORRUPT for stored ones.
 * The sum adds nothing: it lets the compiler see that *out is a message. */
#define message_decode_as(arena, kind, type, bytes, out)                                           \
    message_decode_at((arena), (kind), (type), (bytes),                                            \
                      (ProtobufCMessage **)(out) + 0 * sizeof(&(*(out))->base))

/* Behind the macros. */
must_use struct error *message_decode_at(struct arena *arena, enum error_kind kind,
                                         const ProtobufCMessageDescriptor *type, struct slice bytes,
                                         ProtobufCMessage **out);

/* The same for bytes that the caller keeps as long as the message, as a server does with a request:
 * what is a field of bytes, a payload above all, points into them and is not copied. */
must_use struct error *message_decode_lent(struct arena *arena,
                                           const ProtobufCMessageDescriptor *type,
                                           struct slice bytes, ProtobufCMessage **out);

/* The bytes of `message`, in `arena`. Scalars that are 0, empty strings and empty bytes are not
 * written; messages are written when their pointer is set, arms of a oneof when its case is. Fields
 * go in the order of their numbers, so equal messages have equal bytes. */
must_use struct slice message_encode(struct arena *arena, const ProtobufCMessage *message);

/* A deep copy, for those who need it longer, or want to write to it. NULL gives NULL. */
void *message_copy(struct arena *arena, const ProtobufCMessage *message);

/* A new message of `type` whose oneof holds `arm`, in the first field that has its type. */
must_use void *message_new_around(struct arena *arena, const ProtobufCMessageDescriptor *type,
                                  const ProtobufCMessage *arm);

/* The field with this number, or NULL. */
const ProtobufCFieldDescriptor *message_find_field(const ProtobufCMessageDescriptor *type,
                                                   uint32_t number);

/* Names of fields or of an enum's values: are they the same but for case and underscores? */
bool message_is_same_name(const char *one, const char *other);

#endif
