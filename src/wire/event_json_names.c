/* event_json_names.c - see event_json_names.h.
 *
 * Names follow from those of the messages: snake_case becomes camelCase, durations say that they
 * are seconds. Where Cadence's types have another name, a table says so. */
#include "wire/event_json_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/compiler.h"
#include "wire/event_json.h"
#include "wire/message.h"

/* Names that do not follow. */
static const struct {
    const ProtobufCMessageDescriptor *type;
    int16_t id;
    const char *name;
} others[] = {
    {API_TYPE(history_event), 20, "timestamp"},
    {API_TYPE(history_event), 30, "eventType"},
    {API_TYPE(retry_policy), 10, "initialIntervalInSeconds"},
    {API_TYPE(retry_policy), 30, "maximumIntervalInSeconds"},
    {API_TYPE(retry_policy), 50, "nonRetriableErrorReasons"},
    {API_TYPE(retry_policy), 60, "expirationIntervalInSeconds"},
    {API_TYPE(reset_point_info), 40, "createdTimeNano"},
    {API_TYPE(reset_point_info), 50, "expiringTimeNano"},
    {API_TYPE(workflow_execution_started_event_attributes), 62, "firstScheduleTimeNano"},
    {API_TYPE(workflow_execution_started_event_attributes), 90, "expirationTimestamp"},
    {API_TYPE(workflow_execution_continued_as_new_event_attributes), 80,
     "backoffStartIntervalInSeconds"},
    {API_TYPE(workflow_execution_continued_as_new_event_attributes), 100, "failureReason"},
    {API_TYPE(workflow_execution_continued_as_new_event_attributes), 110, "failureDetails"},
    {API_TYPE(start_child_workflow_execution_initiated_event_attributes), 190,
     "firstRunAtTimestamp"},
};

/* Parts of messages that Cadence's types do not have: their values lie beside the others. */
static const struct {
    const char *group, *part, *name;
} parts[] = {
    {"failure", "reason", "reason"},
    {"failure", "details", "details"},
    {"failure", "options", "failureOptions"},
    {"last_failure", "reason", "lastFailureReason"},
    {"last_failure", "details", "lastFailureDetails"},
    {"last_failure", "options", "lastFailureOptions"},
    {"continued_failure", "reason", "continuedFailureReason"},
    {"continued_failure", "details", "continuedFailureDetails"},
    {"parent_execution_info", "domain_name", "parentWorkflowDomain"},
    {"parent_execution_info", "workflow_execution", "parentWorkflowExecution"},
    {"parent_execution_info", "initiated_id", "parentInitiatedEventId"},
    {"external_execution_info", "initiated_id", "externalInitiatedEventId"},
    {"external_execution_info", "workflow_execution", "externalWorkflowExecution"},
};

static const ProtobufCFieldDescriptor *
field_at(const ProtobufCMessageDescriptor *type, size_t offset)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].offset == offset)
            return &type->fields[i];
    return NULL;
}

const ProtobufCFieldDescriptor *
event_json_descriptor(const struct thrift_struct *structure, const struct thrift_field *field)
{
    return field_at(field->group != NULL ? field->group : structure->type, field->offset);
}

/* Letters of `length` bytes of snake_case as camelCase; the first one large or as it is. */
static void
make_camel(const char *snake, size_t length, bool is_large, char name[NAME_ROOM])
{
    size_t count = 0;
    check(length < NAME_ROOM);
    for (size_t i = 0; i < length; i++) {
        if (snake[i] == '_')
            is_large = true;
        else
            name[count++] = (char)(is_large ? toupper(snake[i]) : tolower(snake[i]));
        is_large = snake[i] == '_';
    }
    name[count] = '\0';
}

static const char *
find_part(const char *group, const char *part)
{
    for (size_t i = 0; i < array_length(parts); i++)
        if (strcmp(parts[i].group, group) == 0 && strcmp(parts[i].part, part) == 0)
            return parts[i].name;
    unreachable("%s.%s has no name", group, part);
}

const char *
event_json_field_name(const struct thrift_struct *structure, const struct thrift_field *field,
                      char name[NAME_ROOM])
{
    for (size_t i = 0; i < array_length(others); i++)
        if (others[i].type == structure->type && others[i].id == field->id)
            return others[i].name;
    const char *own = event_json_descriptor(structure, field)->name;
    if (field->group != NULL)
        return find_part(field_at(structure->type, field->group_offset)->name, own);
    make_camel(own, strlen(own), false, name);
    size_t length = strlen(name);
    if (field->kind == THRIFT_SECONDS || field->kind == THRIFT_LONG_SECONDS)
        length += (size_t)snprintf(name + length, NAME_ROOM - length, "Seconds");
    check(length < NAME_ROOM);
    return name;
}

static const char *
arm_name(const struct thrift_event *event)
{
    return message_find_field(API_TYPE(history_event), (uint32_t)event->arm)->name;
}

const char *
event_json_attributes_name(const struct thrift_event *event, char name[NAME_ROOM])
{
    make_camel(arm_name(event), strlen(arm_name(event)), false, name);
    return name;
}

const char *
event_json_type_name(const struct thrift_event *event, char name[NAME_ROOM])
{
    size_t length = strlen(arm_name(event)) - strlen("_event_attributes");
    make_camel(arm_name(event), length, true, name);
    return name;
}

/* --- enums ---- */

/* Behind what all values of the enum begin with, which is its name. */
static const char *
own_part(const ProtobufCEnumDescriptor *type, const char *value)
{
    const char *invalid = type->values[0].name; /* THE_NAME_INVALID */
    size_t length = strlen(invalid) - strlen("INVALID");
    check(type->values[0].value == 0 && strncmp(invalid, value, length) == 0);
    return value + length;
}

/* Cadence writes values of these in CamelCase; those of others in capitals. */
static bool
is_camel(const ProtobufCEnumDescriptor *type)
{
    static const char *const names[] = {"FailureCategory", "ContinueAsNewInitiator",
                                        "DecisionTaskTimedOutCause", "WorkflowIdReusePolicy"};
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(type->short_name, names[i]) == 0)
            return true;
    return false;
}

static const char *
capital_name(const char *own)
{
    static const char *const odd[][2] = {
        {"START_TIMER_DUPLICATE_ID", "START_TIMER_DUPLICATE_I_D"},
        {"SCHEDULE_ACTIVITY_DUPLICATE_ID", "SCHEDULE_ACTIVITY_DUPLICATE_I_D"},
        {"RESET_STICKY_TASK_LIST", "RESET_STICKY_TASKLIST"},
    };
    for (size_t i = 0; i < array_length(odd); i++)
        if (strcmp(odd[i][0], own) == 0)
            return odd[i][1];
    return own;
}

const char *
event_json_value_name(const ProtobufCEnumDescriptor *type, int32_t value, char name[NAME_ROOM])
{
    if (strcmp(type->short_name, "CronOverlapPolicy") == 0)
        return "";
    for (unsigned i = 0; i < type->n_values; i++) {
        if (type->values[i].value != value)
            continue;
        const char *own = own_part(type, type->values[i].name);
        if (!is_camel(type))
            return capital_name(own);
        make_camel(own, strlen(own), true, name);
        return name;
    }
    return "";
}

int32_t
event_json_find_value(const ProtobufCEnumDescriptor *type, const char *name)
{
    for (unsigned i = 0; i < type->n_values; i++)
        if (type->values[i].value != 0 &&
            message_is_same_name(own_part(type, type->values[i].name), name))
            return type->values[i].value;
    return 0;
}
