/* thrift_value.c - offsets into pointers; seconds and nanoseconds. */
#include "wire/thrift_value.h"

#include "base/check.h"

size_t *
thrift_count_of(const struct thrift_field *field, const ProtobufCMessage *message)
{
    check(thrift_is_counted(field) && field->group == NULL);
    return (size_t *)((char *)message + field->count_offset);
}

ProtobufCMessage *
thrift_attributes_of(const API(HistoryEvent) *event)
{
    /* all arms are pointers to messages, in one union */
    check(event->workflow_execution_started_event_attributes != NULL);
    return &event->workflow_execution_started_event_attributes->base;
}

static int64_t
clamp(__int128 number, int64_t low, int64_t high)
{
    return number < low ? low : number > high ? high : (int64_t)number;
}

int64_t
thrift_seconds_of(const struct thrift_field *field, const GOOGLE(Duration) *duration)
{
    if (field->kind == THRIFT_SECONDS)
        return clamp(duration->seconds, INT32_MIN, INT32_MAX);
    check(field->kind == THRIFT_LONG_SECONDS);
    return clamp(duration->seconds, -THRIFT_SECONDS_MAX, THRIFT_SECONDS_MAX);
}

bool
thrift_value_is_set(const struct thrift_field *field, const union thrift_place place, size_t count)
{
    bool is_part = field->group != NULL; /* and the group is there */
    switch (field->kind) {
    case THRIFT_TEXT:
        return is_part || (*place.text != NULL && **place.text != '\0');
    case THRIFT_BYTES:
        return place.bytes->len > 0;
    case THRIFT_BOOL:
        return *place.boolean;
    case THRIFT_I32:
    case THRIFT_LONG_I32:
        return *place.int32 != 0;
    case THRIFT_I64:
        return is_part || *place.int64 != 0;
    case THRIFT_DOUBLE:
        return *place.float64 != 0;
    case THRIFT_ENUM:
        return *place.int32 > 0;
    case THRIFT_PAYLOAD:
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
    case THRIFT_TIME:
    case THRIFT_STRUCT:
        return *place.message != NULL;
    case THRIFT_EVENT_TYPE:
        return true;
    default:
        return count > 0;
    }
}
