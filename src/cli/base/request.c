/* request.c - see request.h. Guided by the descriptors that the protobuf compiler makes. */
#include "cli/base/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/flags.h"
#include "wire/message.h"
#include "wire/presence.h"

#define DURATION_SECONDS_MAX (10000LL * 366 * 24 * 3600)

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *type, const char *path)
{
    size_t length = strcspn(path, ".");
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (strlen(field->name) == length && strncmp(field->name, path, length) == 0)
            return field;
    }
    return NULL;
}

/* ---- enums ---- */

/* What all names of the enum begin with: up to the last '_' before its value 0, INVALID. */
static size_t
prefix_length(const ProtobufCEnumDescriptor *type)
{
    const char *end = strrchr(type->values[0].name, '_');
    return end == NULL ? 0 : (size_t)(end - type->values[0].name) + 1;
}

static struct error *
refuse_enum(const struct request_context *context, const ProtobufCEnumDescriptor *type,
            const char *flag, const char *value)
{
    const char *names = "";
    size_t prefix = prefix_length(type);
    for (unsigned i = 1; i < type->n_values; i++)
        names = arena_format(context->arena, "%s%s%s", names, i == 1 ? "" : ", ",
                             type->values[i].name + prefix);
    return error_new(context->arena, ERR_BAD_REQUEST, "--%s: '%s' is not one of %s", flag, value,
                     names);
}

/* A number counts as in the cadence command line, whose enums begin with 0 for the first. */
static struct error *
read_enum(const struct request_context *context, const ProtobufCEnumDescriptor *type,
          const char *flag, const char *value, int *number)
{
    int64_t given;
    size_t prefix = prefix_length(type);
    if (text_parse_int64(slice_text(value), 0, (int64_t)type->n_values - 2, &given)) {
        *number = (int)given + 1;
        return NULL;
    }
    for (unsigned i = 1; i < type->n_values; i++) {
        if (message_is_same_name(type->values[i].name + prefix, value)) {
            *number = type->values[i].value;
            return NULL;
        }
    }
    return refuse_enum(context, type, flag, value);
}

/* --- messages that wrap a value ---- */

static struct error *
make_duration(const struct request_context *context, const char *flag, const char *value,
              void **message)
{
    int64_t seconds, nanoseconds;
    if (text_parse_int64(slice_text(value), 0, DURATION_SECONDS_MAX, &seconds))
        *message = presence_make_duration(context->arena, seconds);
    else if (text_parse_duration(slice_text(value), &nanoseconds) && nanoseconds >= 0)
        *message = presence_make_duration_nanoseconds(context->arena, nanoseconds);
    else
        return error_new(context->arena, ERR_BAD_REQUEST,
                         "--%s: '%s' is not a duration; give seconds, or 90s, 15m, 1h30m", flag,
                         value);
    return NULL;
}

static struct error *
make_time(const struct request_context *context, const char *flag, const char *value,
          void **message)
{
    int64_t nanoseconds;
    if (!time_read(value, context->now, &nanoseconds))
        return error_new(
            context->arena, ERR_BAD_REQUEST,
            "--%s: '%s' is not a time; give 2026-11-15T09:00:00Z or how long ago: 15m, 2h, 3d",
            flag, value);
    *message = presence_make_timestamp(context->arena, nanoseconds);
    return NULL;
}

static struct error *
make_payload(const struct request_context *context, const char *flag, const char *value,
             void **message)
{
    const char *wrong;
    if (!json_values_check(value, context->arena, &wrong))
        return error_new(context->arena, ERR_BAD_REQUEST,
                         "--%s: %s; a text needs its quotes: '\"like this\"'", flag, wrong);
    *message = presence_make_payload(context->arena,
                                     (struct maybe_bytes){.is_set = true, slice_text(value)});
    return NULL;
}

static const struct {
    const char *type;
    struct error *(*make)(const struct request_context *context, const char *flag,
                          const char *value, void **message);
} makers[] = {
    {"google.protobuf.Duration", make_duration},
    {"google.protobuf.Timestamp", make_time},
    {"uber.cadence.api.v1.Payload", make_payload},
};

static struct error *
set_message(const struct request_context *context, const ProtobufCFieldDescriptor *field,
            const char *flag, const char *value, void **place)
{
    const ProtobufCMessageDescriptor *type = field->descriptor;
    for (size_t i = 0; i < array_length(makers); i++) {
        if (strcmp(type->name, makers[i].type) == 0)
            return makers[i].make(context, flag, value, place);
    }
    check_that(false, "%s cannot be given as one text", type->name);
    return NULL;
}

/* ---- scalars ---- */

static struct error *
refuse(const struct request_context *context, const char *flag, const char *value, const char *what)
{
    return error_new(context->arena, ERR_BAD_REQUEST, "--%s: '%s' is not %s", flag, value, what);
}

static struct error *
set_number(const struct request_context *context, const ProtobufCFieldDescriptor *field,
           const char *flag, const char *value, void *place)
{
    bool is_long = field->type == PROTOBUF_C_TYPE_INT64;
    int64_t number;
    if (!text_parse_int64(slice_text(value), is_long ? INT64_MIN : INT32_MIN,
                          is_long ? INT64_MAX : INT32_MAX, &number))
        return refuse(context, flag, value, "a number");
    if (is_long)
        *(int64_t *)place = number;
    else
        *(int32_t *)place = (int32_t)number;
    return NULL;
}

static struct error *
set_double(const struct request_context *context, const char *flag, const char *value,
           double *place)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0')
        return refuse(context, flag, value, "a number");
    *place = number;
    return NULL;
}

static struct error *
set_bool(const struct request_context *context, const char *flag, const char *value,
         protobuf_c_boolean *place)
{
    bool is_true;
    if (!flag_parse_bool(value, &is_true))
        return refuse(context, flag, value, "true or false");
    *place = is_true;
    return NULL;
}

static struct error *
set_field(const struct request_context *context, const ProtobufCFieldDescriptor *field,
          const char *flag, const char *value, void *place)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)place = arena_text(context->arena, value);
        return NULL;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)place = presence_make_bytes(slice_text(value));
        return NULL;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_INT64:
        return set_number(context, field, flag, value, place);
    case PROTOBUF_C_TYPE_DOUBLE:
        return set_double(context, flag, value, place);
    case PROTOBUF_C_TYPE_BOOL:
        return set_bool(context, flag, value, place);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(context, field->descriptor, flag, value, place);
    case PROTOBUF_C_TYPE_MESSAGE:
        return set_message(context, field, flag, value, place);
    default:
        check_that(false, "%s: no flag sets such a field", field->name);
        return NULL;
    }
}

/* ---- the face ---- */

struct error *
request_set(const struct request_context *context, ProtobufCMessage *message, const char *path,
            const char *flag, const char *value)
{
    for (;;) {
        const ProtobufCFieldDescriptor *field = find_field(message->descriptor, path);
        check_that(field != NULL, "%s has no field %s", message->descriptor->name, path);
        check(field->label != PROTOBUF_C_LABEL_REPEATED);
        void *place = (char *)message + field->offset;
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
            *(uint32_t *)((char *)message + field->quantifier_offset) = field->id;
        path += strcspn(path, ".");
        if (*path == '\0')
            return set_field(context, field, flag, value, place);
        check(field->type == PROTOBUF_C_TYPE_MESSAGE);
        if (*(void **)place == NULL)
            *(void **)place = message_new(context->arena, field->descriptor);
        message = *(ProtobufCMessage **)place;
        path++;
    }
}

const char *
request_text(const ProtobufCMessage *message, const char *path)
{
    while (message != NULL) {
        const ProtobufCFieldDescriptor *field = find_field(message->descriptor, path);
        if (field == NULL)
            return NULL;
        const void *place = (const char *)message + field->offset;
        path += strcspn(path, ".");
        if (*path == '\0')
            return field->type == PROTOBUF_C_TYPE_STRING ? *(char *const *)place : NULL;
        message = *(ProtobufCMessage *const *)place;
        path++;
    }
    return NULL;
}
