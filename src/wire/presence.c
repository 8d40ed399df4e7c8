/* presence.c - set, unset and empty. See presence.h. */
#include "wire/presence.h"

#include "base/check.h"
#include "wire/message.h"

#define NANOSECONDS_PER_SECOND INT64_C(1000000000)
#define DURATION_SECONDS_MAX   INT64_C(315576000000) /* 10,000 years, as protobuf has it */

GOOGLE(Timestamp) *
presence_make_timestamp(struct arena *arena, int64_t nanoseconds)
{
    GOOGLE(Timestamp) *timestamp = message_new(arena, GOOGLE_TYPE(timestamp));
    timestamp->seconds = nanoseconds / NANOSECONDS_PER_SECOND;
    timestamp->nanos = (int32_t)(nanoseconds % NANOSECONDS_PER_SECOND);
    if (timestamp->nanos < 0) { /* nanos count forwards, before 1970 too */
        timestamp->nanos += NANOSECONDS_PER_SECOND;
        timestamp->seconds--;
    }
    check(timestamp->nanos >= 0 && timestamp->nanos < NANOSECONDS_PER_SECOND);
    return timestamp;
}

GOOGLE(Timestamp) *
presence_make_maybe_timestamp(struct arena *arena, struct maybe_int64 nanoseconds)
{
    return nanoseconds.is_set ? presence_make_timestamp(arena, nanoseconds.value) : NULL;
}

/* seconds * 10^9 + nanos; false: does not fit. Borrows a second when the signs differ, so that no
 * step on the way to a number that fits does not fit. */
static bool
nanoseconds_of(int64_t seconds, int64_t nanos, int64_t *nanoseconds)
{
    if (seconds < 0 && nanos > 0) {
        seconds++;
        nanos -= NANOSECONDS_PER_SECOND;
    }
    return !__builtin_mul_overflow(seconds, NANOSECONDS_PER_SECOND, nanoseconds) &&
           !__builtin_add_overflow(*nanoseconds, nanos, nanoseconds);
}

struct error *
presence_read_timestamp(struct arena *arena, const char *field, const GOOGLE(Timestamp) *timestamp,
                        struct maybe_int64 *nanoseconds)
{
    *nanoseconds = (struct maybe_int64){0};
    if (timestamp == NULL)
        return NULL;
    if (timestamp->nanos < 0 || timestamp->nanos >= NANOSECONDS_PER_SECOND)
        return error_new(arena, ERR_BAD_REQUEST, "%s: nanos %d of a time are not in 0 .. 999999999",
                         field, timestamp->nanos);
    int64_t value;
    if (!nanoseconds_of(timestamp->seconds, timestamp->nanos, &value))
        return error_new(arena, ERR_BAD_REQUEST, "%s: a time too far from now", field);
    *nanoseconds = (struct maybe_int64){.is_set = true, .value = value};
    return NULL;
}

int64_t
presence_time(const GOOGLE(Timestamp) *timestamp)
{
    int64_t nanoseconds;
    if (timestamp == NULL)
        return 0;
    if (nanoseconds_of(timestamp->seconds, timestamp->nanos, &nanoseconds))
        return nanoseconds;
    return timestamp->seconds < 0 ? INT64_MIN : INT64_MAX;
}

GOOGLE(Duration) *
presence_make_duration(struct arena *arena, int64_t seconds)
{
    check(seconds >= -DURATION_SECONDS_MAX && seconds <= DURATION_SECONDS_MAX);
    GOOGLE(Duration) *duration = message_new(arena, GOOGLE_TYPE(duration));
    duration->seconds = seconds;
    return duration;
}

GOOGLE(Duration) *
presence_make_duration_nanoseconds(struct arena *arena, int64_t nanoseconds)
{
    GOOGLE(Duration) *duration = message_new(arena, GOOGLE_TYPE(duration));
    duration->seconds = nanoseconds / NANOSECONDS_PER_SECOND;
    duration->nanos = (int32_t)(nanoseconds % NANOSECONDS_PER_SECOND);
    return duration;
}

static struct error *
duration_check(struct arena *arena, const char *field, const GOOGLE(Duration) *duration)
{
    bool is_part =
        duration->nanos > -NANOSECONDS_PER_SECOND && duration->nanos < NANOSECONDS_PER_SECOND;
    bool is_one_sign = !(duration->seconds > 0 && duration->nanos < 0) &&
                       !(duration->seconds < 0 && duration->nanos > 0);
    if (!is_part || !is_one_sign)
        return error_new(arena, ERR_BAD_REQUEST, "%s: nanos %d do not go with %lld seconds", field,
                         duration->nanos, (long long)duration->seconds);
    if (duration->seconds > DURATION_SECONDS_MAX || duration->seconds < -DURATION_SECONDS_MAX)
        return error_new(arena, ERR_BAD_REQUEST, "%s: a duration of more than 10000 years", field);
    return NULL;
}

struct error *
presence_read_duration(struct arena *arena, const char *field, const GOOGLE(Duration) *duration,
                       struct maybe_int64 *seconds)
{
    *seconds = (struct maybe_int64){0};
    struct error *err = duration == NULL ? NULL : duration_check(arena, field, duration);
    if (err == NULL && duration != NULL)
        *seconds = (struct maybe_int64){.is_set = true, .value = duration->seconds};
    return err;
}

struct error *
presence_read_duration_nanoseconds(struct arena *arena, const char *field,
                                   const GOOGLE(Duration) *duration,
                                   struct maybe_int64 *nanoseconds)
{
    *nanoseconds = (struct maybe_int64){0};
    struct error *err = duration == NULL ? NULL : duration_check(arena, field, duration);
    if (err != NULL || duration == NULL)
        return err;
    int64_t value;
    if (!nanoseconds_of(duration->seconds, duration->nanos, &value))
        return error_new(arena, ERR_BAD_REQUEST, "%s: a duration of more than 292 years", field);
    *nanoseconds = (struct maybe_int64){.is_set = true, .value = value};
    return NULL;
}

GOOGLE(Int64Value) *
presence_make_int64(struct arena *arena, struct maybe_int64 number)
{
    if (!number.is_set)
        return NULL;
    GOOGLE(Int64Value) *wrapped = message_new(arena, GOOGLE_TYPE(int64_value));
    wrapped->value = number.value;
    return wrapped;
}

struct maybe_int64
presence_read_int64(const GOOGLE(Int64Value) *number)
{
    return (struct maybe_int64){.is_set = number != NULL,
                                .value = number == NULL ? 0 : number->value};
}

struct maybe_double
presence_read_double(const GOOGLE(DoubleValue) *number)
{
    return (struct maybe_double){.is_set = number != NULL,
                                 .value = number == NULL ? 0 : number->value};
}

API(Payload) *
presence_make_payload(struct arena *arena, struct maybe_bytes data)
{
    if (!data.is_set)
        return NULL;
    API(Payload) *payload = message_new(arena, API_TYPE(payload));
    payload->data = presence_make_bytes(data.bytes);
    return payload;
}

struct maybe_bytes
presence_read_payload(const API(Payload) *payload)
{
    if (payload == NULL)
        return (struct maybe_bytes){0};
    return (struct maybe_bytes){.is_set = true, .bytes = presence_read_bytes(payload->data)};
}

ProtobufCBinaryData
presence_make_bytes(struct slice bytes)
{
    check(bytes.data != NULL || bytes.length == 0);
    return (ProtobufCBinaryData){.len = bytes.length, .data = (uint8_t *)bytes.data};
}

struct slice
presence_read_bytes(ProtobufCBinaryData bytes)
{
    return slice_of(bytes.data, bytes.len);
}

ProtobufCBinaryData
presence_make_uuid(struct arena *arena, struct uuid uuid)
{
    return presence_make_bytes(arena_slice(arena, slice_of(uuid.bytes, sizeof uuid.bytes)));
}

struct uuid
presence_read_uuid(ProtobufCBinaryData bytes)
{
    struct uuid uuid;
    check(bytes.len == sizeof uuid.bytes);
    memcpy(uuid.bytes, bytes.data, sizeof uuid.bytes);
    return uuid;
}

char *
presence_make_text(const char *text)
{
    return (char *)(text == NULL ? protobuf_c_empty_string : text);
}

bool
presence_is_enum(const ProtobufCEnumDescriptor *type, int value)
{
    return protobuf_c_enum_descriptor_get_value(type, value) != NULL;
}

struct error *
presence_read_enum(struct arena *arena, const char *field, const ProtobufCEnumDescriptor *type,
                   int value, int otherwise, int *out)
{
    check(presence_is_enum(type, otherwise));
    if (!presence_is_enum(type, value))
        return error_new(arena, ERR_BAD_REQUEST, "%s: %s has no number %d", field, type->short_name,
                         value);
    *out = value == 0 ? otherwise : value;
    return NULL;
}

bool
presence_mask_has(const GOOGLE(FieldMask) *mask, const char *path)
{
    if (mask == NULL)
        return true;
    for (size_t i = 0; i < mask->n_paths; i++)
        if (strcmp(mask->paths[i], path) == 0)
            return true;
    return false;
}
