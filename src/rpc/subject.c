/* subject.c - see subject.h. Fields are known by their names, which mean the same in all requests
 * of the interface; a test goes through all methods and finds one that names its owner differently.
 */
#include "rpc/subject.h"

#include <string.h>

#include "base/compiler.h"
#include "uber/cadence/api/v1/common.pb-c.h"

/* --- the fields of a type ---- */

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *type, const char *name, ProtobufCType kind)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(type, name);
    bool is_one = field != NULL && field->type == kind && field->label != PROTOBUF_C_LABEL_REPEATED;
    return is_one ? field : NULL;
}

static const ProtobufCFieldDescriptor *
find_text(const ProtobufCMessageDescriptor *type, const char *const *names)
{
    const ProtobufCFieldDescriptor *field = NULL;
    for (; *names != NULL && field == NULL; names++)
        field = find_field(type, *names, PROTOBUF_C_TYPE_STRING);
    return field;
}

/* The request inside of a request inside; `fields` notes the way. */
static const ProtobufCMessageDescriptor *
find_innermost(const ProtobufCMessageDescriptor *type, struct subject_fields *fields)
{
    static const char *const names[] = {"request", "start_request"};
    for (size_t i = 0; i < array_length(names); i++) {
        fields->outer[i] = find_field(type, names[i], PROTOBUF_C_TYPE_MESSAGE);
        if (fields->outer[i] != NULL)
            type = fields->outer[i]->descriptor;
    }
    return type;
}

struct subject_fields
subject_fields_of(const ProtobufCMessageDescriptor *type)
{
    static const char *const domain[] = {"domain", "name", "domain_name", NULL};
    static const char *const domain_id[] = {"domain_id", "id", NULL};
    static const char *const workflow_id[] = {"workflow_id", NULL}, *const run_id[] = {"run_id",
                                                                                       NULL};
    static const char *const schedule_id[] = {"schedule_id", NULL};
    struct subject_fields fields = {0};
    fields.type = type = find_innermost(type, &fields);
    fields.domain = find_text(type, domain);
    fields.domain_id = find_text(type, domain_id);
    fields.filters = find_field(type, "filters", PROTOBUF_C_TYPE_MESSAGE);
    if (fields.filters != NULL)
        fields.filters_domain_id = find_text(fields.filters->descriptor, domain_id);
    fields.execution = find_field(type, "workflow_execution", PROTOBUF_C_TYPE_MESSAGE);
    if (fields.execution == NULL)
        fields.execution = find_field(type, "execution", PROTOBUF_C_TYPE_MESSAGE);
    fields.workflow_id = find_text(type, workflow_id);
    fields.run_id = find_text(type, run_id);
    fields.schedule_id = find_text(type, schedule_id);
    fields.token = find_field(type, "task_token", PROTOBUF_C_TYPE_BYTES);
    fields.task_list = find_field(type, "task_list", PROTOBUF_C_TYPE_MESSAGE);
    fields.shard = find_field(type, "shard_id", PROTOBUF_C_TYPE_INT32);
    return fields;
}

bool
subject_names(const struct subject_fields *fields, enum call_owner owner)
{
    switch (owner) {
    case OWNER_UNDECIDED:
        return false;
    case OWNER_NONE:
        return true;
    case OWNER_DOMAIN:
        return fields->domain != NULL || fields->domain_id != NULL ||
               fields->filters_domain_id != NULL;
    case OWNER_WORKFLOW:
        return fields->token != NULL || fields->execution != NULL || fields->workflow_id != NULL ||
               fields->schedule_id != NULL;
    case OWNER_TASK_LIST:
        return fields->task_list != NULL;
    case OWNER_SHARD:
        return fields->shard != NULL;
    }
    return false;
}

/* --- one request ---- */

/* NULL: the request has no such field, or another of the same choice was made. */
static const void *
value_at(const void *message, const ProtobufCFieldDescriptor *field)
{
    if (field == NULL)
        return NULL;
    const char *bytes = message;
    bool is_choice = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    if (is_choice && *(const uint32_t *)(bytes + field->quantifier_offset) != field->id)
        return NULL;
    return bytes + field->offset;
}

static const char *
text_at(const void *message, const ProtobufCFieldDescriptor *field)
{
    const char *const *value = value_at(message, field);
    return value == NULL || *value == NULL ? "" : *value;
}

static const void *
message_at(const void *message, const ProtobufCFieldDescriptor *field)
{
    const void *const *value = value_at(message, field);
    return value == NULL ? NULL : *value;
}

const void *
subject_request(const struct subject_fields *fields, const ProtobufCMessage *request)
{
    const void *found = request;
    for (size_t i = 0; i < array_length(fields->outer); i++)
        if (fields->outer[i] != NULL && found != NULL)
            found = message_at(found, fields->outer[i]);
    return found;
}

static void
read_workflow(const struct subject_fields *fields, const void *request, struct rpc_subject *subject)
{
    const API(WorkflowExecution) *execution = message_at(request, fields->execution);
    subject->workflow_id = text_at(request, fields->workflow_id);
    subject->run_id = text_at(request, fields->run_id);
    if (execution != NULL && fields->workflow_id == NULL) {
        subject->workflow_id = execution->workflow_id;
        subject->run_id = execution->run_id;
    }
    subject->schedule_id = text_at(request, fields->schedule_id);
    const ProtobufCBinaryData *token = value_at(request, fields->token);
    subject->has_token = token != NULL;
    subject->token = token == NULL ? (struct slice){0} : slice_of(token->data, token->len);
}

static void
read_domain(const struct subject_fields *fields, const void *request, struct rpc_subject *subject)
{
    subject->domain = text_at(request, fields->domain);
    subject->domain_id = text_at(request, fields->domain_id);
    const void *filters = message_at(request, fields->filters);
    if (filters != NULL)
        subject->domain_id = text_at(filters, fields->filters_domain_id);
}

void
subject_read(const struct subject_fields *fields, const ProtobufCMessage *whole,
             struct rpc_subject *subject)
{
    const void *request = subject->request = subject_request(fields, whole);
    if (request == NULL) {
        *subject = (struct rpc_subject){.domain = "",
                                        .domain_id = "",
                                        .workflow_id = "",
                                        .run_id = "",
                                        .schedule_id = "",
                                        .shard = -1};
        return;
    }
    read_domain(fields, request, subject);
    read_workflow(fields, request, subject);
    subject->task_list = message_at(request, fields->task_list);
    const int32_t *shard = value_at(request, fields->shard);
    subject->shard = shard == NULL ? -1 : *shard;
}
