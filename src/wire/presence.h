/* presence.h - set, unset and empty, where clients tell them apart.
 *
 * A message field that is NULL means "unset", and a present one that holds 0 means 0: so times,
 * durations, wrapped numbers and payloads are read into structs with an is_set, and made from them.
 * Scalars and enums have no such difference: 0 is unset. Empty bytes are never written (message.h);
 * a caller that needs a message on the wire even when it is empty sets its pointer.
 *
 * Readers name the field in their error, ERR_BAD_REQUEST. What is made lives in the arena given. */
#ifndef CADENZA_WIRE_PRESENCE_H
#define CADENZA_WIRE_PRESENCE_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/field_mask.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "uber/cadence/api/v1/common.pb-c.h"
#include "wire/names.h"

struct maybe_int64 {
    bool is_set;
    int64_t value; /* 0 when unset */
};

struct maybe_double {
    bool is_set;
    double value; /* 0 when unset */
};

struct maybe_bytes {
    bool is_set;
    struct slice bytes; /* empty when unset; a set one may be empty too */
};

/* ---- Times: nanoseconds since 1970 ---- */

/* The time as a message. */
must_use GOOGLE(Timestamp) *presence_make_timestamp(struct arena *arena, int64_t nanoseconds);
/* The same, or NULL when unset. */
must_use GOOGLE(Timestamp) *presence_make_maybe_timestamp(struct arena *arena,
                                                          struct maybe_int64 nanoseconds);
/* NULL is unset. Error: nanos outside 0 .. 999999999, or a time that 64 bits of nanoseconds cannot
 * hold. */
must_use struct error *presence_read_timestamp(struct arena *arena, const char *field,
                                               const GOOGLE(Timestamp) *timestamp,
                                               struct maybe_int64 *nanoseconds);
/* The time of a message that was checked before, or is only shown. 0: NULL. One that 64 bits cannot
 * hold is the nearest that they can. */
int64_t presence_time(const GOOGLE(Timestamp) *timestamp);

/* ---- Durations: the engine counts whole seconds ---- */

/* The duration as a message. */
must_use GOOGLE(Duration) *presence_make_duration(struct arena *arena, int64_t seconds);
/* NULL is unset; parts of a second are cut off, towards 0. Error: nanos that are no part of a
 * second or whose sign is not that of the seconds, or more than 10,000 years. */
must_use struct error *presence_read_duration(struct arena *arena, const char *field,
                                              const GOOGLE(Duration) *duration,
                                              struct maybe_int64 *seconds);
/* The whole of it, in nanoseconds, for the few durations that are not seconds. Error: as above, or
 * more than 64 bits can hold (292 years). */
must_use struct error *presence_read_duration_nanoseconds(struct arena *arena, const char *field,
                                                          const GOOGLE(Duration) *duration,
                                                          struct maybe_int64 *nanoseconds);
/* Any duration as a message. */
must_use GOOGLE(Duration) *presence_make_duration_nanoseconds(struct arena *arena,
                                                              int64_t nanoseconds);

/* ---- Wrapped numbers ---- */

/* NULL when unset. */
must_use GOOGLE(Int64Value) *presence_make_int64(struct arena *arena, struct maybe_int64 number);
/* NULL is unset. */
struct maybe_int64 presence_read_int64(const GOOGLE(Int64Value) *number);
struct maybe_double presence_read_double(const GOOGLE(DoubleValue) *number);

/* ---- Payloads and bytes ---- */

/* NULL when unset; a set one without bytes is a payload without data, which is something else. The
 * bytes are not copied. */
must_use API(Payload) *presence_make_payload(struct arena *arena, struct maybe_bytes data);
/* NULL is unset. The bytes stay where they are. */
struct maybe_bytes presence_read_payload(const API(Payload) *payload);

/* A bytes field from a slice and back. Nothing is copied. */
ProtobufCBinaryData presence_make_bytes(struct slice bytes);
struct slice presence_read_bytes(ProtobufCBinaryData bytes);
/* An id that is 16 bytes: a copy in the arena, and back. What is read must have that length. */
ProtobufCBinaryData presence_make_uuid(struct arena *arena, struct uuid uuid);
struct uuid presence_read_uuid(ProtobufCBinaryData bytes);
/* A string field, which must not be NULL and is never written through: "" for NULL. Not copied. */
char *presence_make_text(const char *text);

/* ---- Enums: 0 is unset ---- */

/* The value, or `otherwise` when unset. Error: a number that the enum does not have. */
must_use struct error *presence_read_enum(struct arena *arena, const char *field,
                                          const ProtobufCEnumDescriptor *type, int value,
                                          int otherwise, int *out);
/* Does the enum have this number? Clients crash on others. */
bool presence_is_enum(const ProtobufCEnumDescriptor *type, int value);

/* ---- Field masks ---- */

/* Does the mask name this path? No mask at all (NULL) names every path, an empty one none. */
bool presence_mask_has(const GOOGLE(FieldMask) *mask, const char *path);

#endif
