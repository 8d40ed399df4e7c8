/* permissions.c - what each call needs, and who has it (J-023, J-024). */
#include "access/inside.h"
#include "base/check.h"
#include "wire/services.h"

#define PUBLIC "uber.cadence.api.v1."

/* Calls that are not named here are for administrators. Answers of workers need no permission: only
 * the worker that got a task has its token. */
static const struct {
    const char *method;
    enum permission permission;
} permissions[] = {
    {"Check", PERMISSION_NONE}, /* grpc.health */
    {"Health", PERMISSION_NONE},
    {"GetClusterInfo", PERMISSION_NONE},
    {"GetSearchAttributes", PERMISSION_NONE},
    {"RespondDecisionTaskCompleted", PERMISSION_NONE},
    {"RespondDecisionTaskFailed", PERMISSION_NONE},
    {"RespondQueryTaskCompleted", PERMISSION_NONE},
    {"RespondActivityTaskCompleted", PERMISSION_NONE},
    {"RespondActivityTaskCompletedByID", PERMISSION_NONE},
    {"RespondActivityTaskFailed", PERMISSION_NONE},
    {"RespondActivityTaskFailedByID", PERMISSION_NONE},
    {"RespondActivityTaskCanceled", PERMISSION_NONE},
    {"RespondActivityTaskCanceledByID", PERMISSION_NONE},
    {"RecordActivityTaskHeartbeat", PERMISSION_NONE},
    {"RecordActivityTaskHeartbeatByID", PERMISSION_NONE},
    {"ResetStickyTaskList", PERMISSION_NONE},
    {"ListDomains", PERMISSION_KNOWN}, /* shows those that one may read */
    {"DescribeDomain", PERMISSION_READ},
    {"ListFailoverHistory", PERMISSION_READ},
    {"FailoverDomain", PERMISSION_WRITE},
    {"PollForDecisionTask", PERMISSION_POLL},
    {"PollForActivityTask", PERMISSION_POLL},
    {"StartWorkflowExecution", PERMISSION_WRITE},
    {"StartWorkflowExecutionAsync", PERMISSION_WRITE},
    {"SignalWorkflowExecution", PERMISSION_WRITE},
    {"SignalWithStartWorkflowExecution", PERMISSION_WRITE},
    {"SignalWithStartWorkflowExecutionAsync", PERMISSION_WRITE},
    {"RequestCancelWorkflowExecution", PERMISSION_WRITE},
    {"TerminateWorkflowExecution", PERMISSION_WRITE},
    {"ResetWorkflowExecution", PERMISSION_WRITE},
    {"RestartWorkflowExecution", PERMISSION_WRITE},
    {"RefreshWorkflowTasks", PERMISSION_WRITE},
    {"DescribeWorkflowExecution", PERMISSION_READ},
    {"DiagnoseWorkflowExecution", PERMISSION_READ},
    {"GetWorkflowExecutionHistory", PERMISSION_READ},
    {"QueryWorkflow", PERMISSION_READ},
    {"DescribeTaskList", PERMISSION_READ},
    {"ListTaskListPartitions", PERMISSION_READ},
    {"GetTaskListsByDomain", PERMISSION_READ},
    {"ListWorkflowExecutions", PERMISSION_READ},
    {"ListOpenWorkflowExecutions", PERMISSION_READ},
    {"ListClosedWorkflowExecutions", PERMISSION_READ},
    {"ListArchivedWorkflowExecutions", PERMISSION_READ},
    {"ScanWorkflowExecutions", PERMISSION_READ},
    {"CountWorkflowExecutions", PERMISSION_READ},
    {"CreateSchedule", PERMISSION_WRITE},
    {"UpdateSchedule", PERMISSION_WRITE},
    {"DeleteSchedule", PERMISSION_WRITE},
    {"PauseSchedule", PERMISSION_WRITE},
    {"UnpauseSchedule", PERMISSION_WRITE},
    {"BackfillSchedule", PERMISSION_WRITE},
    {"DescribeSchedule", PERMISSION_READ},
    {"ListSchedules", PERMISSION_READ},
};

static bool
is_public(const struct wire_method *method)
{
    return strncmp(method->service->name, PUBLIC, strlen(PUBLIC)) == 0 ||
           strcmp(method->service->name, "grpc.health.v1.Health") == 0;
}

enum permission
permission_of(size_t index, bool shows_names)
{
    struct wire_method method = wire_method_at(index);
    if (!is_public(&method))
        return strcmp(method.name, "DescribeCluster") == 0 ? PERMISSION_KNOWN : PERMISSION_ADMIN;
    if (shows_names && strcmp(method.name, "ListDomains") == 0)
        return PERMISSION_NONE;
    for (size_t i = 0; i < array_length(permissions); i++)
        if (strcmp(permissions[i].method, method.name) == 0)
            return permissions[i].permission;
    return PERMISSION_ADMIN;
}

void
permission_table_check(void)
{
    size_t found = 0;
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        for (size_t k = 0; is_public(&method) && k < array_length(permissions); k++)
            found += strcmp(permissions[k].method, method.name) == 0;
    }
    check_that(found == array_length(permissions), "a method of the table is in no proto");
}

/* --- which domain ---- */

static const void *
field(const ProtobufCMessage *message, const char *name, ProtobufCType type)
{
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (found == NULL || found->type != type)
        return NULL;
    bool is_choice = (found->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    const char *bytes = (const char *)message;
    if (is_choice && *(const uint32_t *)(bytes + found->quantifier_offset) != found->id)
        return NULL; /* another one was chosen */
    return *(void *const *)(bytes + found->offset);
}

static const char *
text_field(const ProtobufCMessage *message, const char *name)
{
    const char *text = field(message, name, PROTOBUF_C_TYPE_STRING);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

const struct domain *
permission_domain(const struct domains *domains, const ProtobufCMessage *request,
                  struct arena *arena)
{
    static const char *const inner[] = {"request", "start_request"};
    static const char *const names[] = {"domain", "name", "domain_name"};
    static const char *const ids[] = {"domain_id", "id"};
    for (size_t i = 0; i < array_length(inner); i++) {
        const ProtobufCMessage *next = field(request, inner[i], PROTOBUF_C_TYPE_MESSAGE);
        request = next == NULL ? request : next;
    }
    for (size_t i = 0; i < array_length(names); i++) {
        const char *name = text_field(request, names[i]);
        if (name != NULL)
            return domains_find_name(domains, name);
    }
    for (size_t i = 0; i < array_length(ids); i++) {
        const char *id = text_field(request, ids[i]);
        if (id != NULL)
            return domains_find_id(domains, id);
    }
    const ProtobufCMessage *filters = field(request, "filters", PROTOBUF_C_TYPE_MESSAGE);
    return filters == NULL ? NULL : permission_domain(domains, filters, arena);
}

/* --- who has it ---- */

static const char *
data_of(const struct domain *domain, const char *key)
{
    const API(Domain) *record = domain->record->domain;
    for (size_t i = 0; i < record->n_data; i++)
        if (strcmp(record->data[i]->key, key) == 0)
            return record->data[i]->value;
    return "";
}

/* Have the two lists, words between blanks, one in common? */
static bool
share_a_word(const char *one, const char *other)
{
    for (one += strspn(one, " "); *one != '\0'; one += strspn(one, " ")) {
        size_t length = strcspn(one, " ");
        for (const char *word = other + strspn(other, " "); *word != '\0';
             word += strspn(word, " ")) {
            size_t size = strcspn(word, " ");
            if (size == length && memcmp(one, word, size) == 0)
                return true;
            word += size;
        }
        one += length;
    }
    return false;
}

bool
permission_suits(enum permission permission, const char *groups, const struct domain *domain)
{
    check(permission >= PERMISSION_READ); /* the others do not depend on groups */
    if (permission == PERMISSION_ADMIN || domain == NULL)
        return false;
    if (share_a_word(groups, data_of(domain, "WRITE_GROUPS")))
        return true;
    if (permission == PERMISSION_READ)
        return share_a_word(groups, data_of(domain, "READ_GROUPS"));
    return permission == PERMISSION_POLL && share_a_word(groups, data_of(domain, "PROCESS_GROUPS"));
}
