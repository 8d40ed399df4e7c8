/* thrift.h - batches of history events as the blobs that clusters exchange, and back.
 *
 * Between clusters a batch travels as one THRIFTRW blob: a byte 0x59, then the thrift struct
 * History in the binary protocol. Thrift has other shapes for some values (whole seconds for
 * durations, nanoseconds for times, plain binary for payloads, reason and details for failures),
 * and some protobuf fields have no thrift field at all. An event that loses nothing on the way is
 * *canonical*; history holds only such events, so that every cluster stores the same bytes.
 *
 * Promises:
 *   1. For a canonical event, encoding and decoding again gives the same message.
 *   2. Absent stays absent: no thrift field appears for an unset message field, nor the reverse.
 *      Numbers, texts and enums have no "unset" in protobuf other than 0 and "": those are not
 *      written, but where they alone say that a Failure or an info about another run is there.
 *   3. Any bytes may be decoded: depth, time and memory are bounded as in message.h. Unknown fields
 *      are skipped; a known one of another type, a text that is not UTF-8 or holds a NUL byte, an
 *      event whose eventType and attributes do not agree, and bytes behind the end are refused.
 *   4. Numbers of enums that we do not know are kept.
 *
 * The fields are in thrift_fields.h. What comes out lives in the arena given; nothing points into
 * the bytes. Nothing yields. */
#ifndef CADENZA_WIRE_THRIFT_H
#define CADENZA_WIRE_THRIFT_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

/* The blob of `count` events, in their order. Each must have its attributes. What an event has
 * beyond its canonical form is left out. */
must_use struct slice thrift_encode_history(struct arena *arena, API(HistoryEvent) *const *events,
                                            size_t count);

/* The same for events that a run has kept, which are canonical. A build with the address sanitizer
 * makes sure of it: it reads the blob and compares. */
must_use struct slice thrift_encode_kept(struct arena *arena, API(HistoryEvent) *const *events,
                                         size_t count);

/* The events of a blob. Error: of kind `kind` (ERR_CORRUPT for stored bytes, ERR_BAD_REQUEST for
 * those of a caller), says at which byte; *events and *count are untouched then. */
must_use struct error *thrift_decode_history(struct arena *arena, enum error_kind kind,
                                             struct slice bytes, API(HistoryEvent) ***events,
                                             size_t *count);

/* Makes an event canonical: drops the fields that thrift does not have, cuts durations to whole
 * seconds and puts maps in order. It gets a copy of its attributes for that, and the original stays
 * as it is; texts and bytes are not copied. */
void thrift_make_canonical(struct arena *arena, API(HistoryEvent) *event);

/* Does it lose nothing on the way? For tests: it goes all the way. */
bool thrift_is_canonical(struct arena *arena, API(HistoryEvent) *event);

/* Has this field of this message, which is part of an event, a place in thrift? Failure.options has
 * one in the failures of activities only: true. Walks the table: for tests and checks at start. */
bool thrift_field_is_known(const ProtobufCMessageDescriptor *type, uint32_t number);

#endif
