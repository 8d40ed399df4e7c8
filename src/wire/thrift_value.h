/* thrift_value.h - where the value of a row is in its message, and values whose shape differs.
 *
 * Inside wire/ only. */
#ifndef CADENZA_WIRE_THRIFT_VALUE_H
#define CADENZA_WIRE_THRIFT_VALUE_H

#include <stdbool.h>

#include "base/check.h"
#include "wire/presence.h"
#include "wire/thrift_table.h"

#define THRIFT_SECONDS_MAX INT64_C(315576000000) /* of a Duration: 10,000 years */

/* The place of a value in its message; its row says which member is meant. */
union thrift_place {
    char *raw;
    char **text;
    ProtobufCBinaryData *bytes;
    API(Payload) **payload;
    protobuf_c_boolean *boolean;
    int32_t *int32; /* enums too */
    int64_t *int64;
    double *float64;
    GOOGLE(Duration) **duration;
    GOOGLE(Timestamp) **timestamp;
    API(HistoryEvent__AttributesCase) *arm;
    ProtobufCMessage **message;
    ProtobufCMessage ***messages; /* of a list of structs or a map */
    char ***texts;
};

/* Where `message` points to the row's group. */
static inline ProtobufCMessage **
thrift_group_of(const struct thrift_field *field, const ProtobufCMessage *message)
{
    check(field->group != NULL);
    return (ProtobufCMessage **)((char *)message + field->group_offset);
}

/* The place of the row's value in `message`, which is of the row's struct. False: it is part of a
 * group that is not there. */
static inline bool
thrift_place_of(const struct thrift_field *field, const ProtobufCMessage *message,
                union thrift_place *place)
{
    const ProtobufCMessage *holder = message;
    if (field->group != NULL)
        holder = *thrift_group_of(field, message);
    if (holder == NULL)
        return false;
    check(field->group == NULL || holder->descriptor == field->group);
    place->raw = (char *)holder + field->offset;
    return true;
}

/* Where the number of elements is; the row must be that of a list or map. */
size_t *thrift_count_of(const struct thrift_field *field, const ProtobufCMessage *message);
/* The arm that is set, as a message. */
ProtobufCMessage *thrift_attributes_of(const API(HistoryEvent) *event);
/* Is the row that of a list or map? */
static inline bool
thrift_is_counted(const struct thrift_field *field)
{
    return field->count_offset != 0;
}

/* Is there something to write at the place of the row's value? `count`: of a list or map. */
bool thrift_value_is_set(const struct thrift_field *field, union thrift_place place, size_t count);

/* The whole seconds of a duration, as many as the row's type can hold. */
int64_t thrift_seconds_of(const struct thrift_field *field, const GOOGLE(Duration) *duration);

#endif
