/* headers.c - what the headers of a call say about its caller, and what follows from it.
 *
 * not every client knows the error that a run has completed already; the others get what
 * they knew before there was one. A-011: on request, clients that are newer than the protocol here
 * are refused. */
#include "api/inside.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "wire/errors.h"

#define HEADER_NAME            "cadence-client-name"
#define HEADER_FEATURE_VERSION "cadence-client-feature-version"
#define HEADER_LIBRARY_VERSION "cadence-client-library-version"
#define HEADER_FEATURE_FLAGS   "cadence-client-feature-flags"
#define HEADER_ISOLATION_GROUP "cadence-client-isolation-group"
#define HEADER_CONSISTENCY     "cadenza-consistency" /* beyond Cadence */
#define HEADER_WORKER_GROUP    "cadence-worker-isolation-group"
#define PARTITION_GROUP        "isolation-group"

/* What is known of the clients that send their name. */
static const struct client {
    const char *name;
    const char *newest;            /* feature version that the protocol here covers */
    const char *already_completed; /* feature version from which that error is known */
    const char *raw_history;       /* feature version from which it reads history as blobs */
    const char *sticky_query;      /* as a worker: answers queries from its memory; NULL: never */
    const char *strong_query;      /* as a worker: answers queries that ride on decisions */
} clients[] = {
    {"uber-go", "1.7.0", "1.7.0", "1.6.0", "1.0.0", "1.5.0"},
    {"uber-java", "1.5.0", "1.4.0", "1.3.0", "1.0.0", "1.5.0"},
    {"cli", "1.7.0", "1.7.0", "1.6.0", NULL, NULL},
};
#define STICKY_QUERY_UNNAMED "1.0.0" /* of clients that do not send their name */

static const char *
read_header(const struct rpc_call *call, const char *name)
{
    struct slice value = rpc_header(call, name);
    if (value.length == 0 || !text_is_utf8(value, NULL) ||
        memchr(value.data, '\0', value.length) != NULL)
        return "";
    return arena_text_of(call->arena, value);
}

struct caller
api_caller(const struct rpc_call *call)
{
    return (struct caller){
        .name = read_header(call, HEADER_NAME),
        .feature_version = read_header(call, HEADER_FEATURE_VERSION),
        .library_version = read_header(call, HEADER_LIBRARY_VERSION),
    };
}

/* Of a call that another cluster sent on: the group of its client there. */
static const char *
forwarded_group(const struct rpc_call *call)
{
    const char *group = "";
    struct slice config = rpc_header(call, HEADER_PARTITION);
    struct json_reader reader = object_begin(config, call->arena);
    const char *name;
    while (object_next(&reader, &name)) {
        if (strcmp(name, PARTITION_GROUP) == 0)
            object_text(&reader, &group);
        else
            object_skip(&reader);
    }
    return object_end(&reader) ? group : "";
}

bool
api_is_forwarded(const struct rpc_call *call)
{
    return rpc_header(call, HEADER_FORWARDED_BY).length > 0;
}

struct slice
api_forwarded_partition(const struct rpc_call *call)
{
    const char *group = read_header(call, HEADER_ISOLATION_GROUP);
    if (group[0] == '\0')
        return (struct slice){0};
    struct json_writer writer = object_write_begin(call->arena, 1, strlen(group));
    object_write_text(&writer, PARTITION_GROUP, group);
    return object_write_end(&writer);
}

void
api_caller_partition(const struct rpc_call *call, struct caller_partition *partition)
{
    const char *group =
        api_is_forwarded(call) ? forwarded_group(call) : read_header(call, HEADER_ISOLATION_GROUP);
    *partition = (struct caller_partition){
        .keys = {PARTITION_GROUP}, .values = {group}, .count = group[0] == '\0' ? 0 : 1};
}

bool
api_caller_wants_committed(const struct rpc_call *call)
{
    return strcmp(read_header(call, HEADER_CONSISTENCY), "committed") == 0;
}

const char *
api_worker_group(const struct rpc_call *call)
{
    const char *group = read_header(call, HEADER_WORKER_GROUP);
    return group[0] != '\0' ? group : read_header(call, HEADER_ISOLATION_GROUP);
}

static const struct client *
find_client(const char *name)
{
    for (size_t i = 0; i < array_length(clients); i++) {
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    }
    return NULL;
}

/* --- versions ------------------------------------------------------------------------------------
 */

struct version {
    int64_t part[3];
};

/* Numbers between dots, up to three; what follows '-' or '+' does not count. */
static bool
version_parse(const char *text, struct version *version)
{
    *version = (struct version){0};
    text += *text == 'v';
    struct slice left = slice_of(text, strcspn(text, "-+"));
    for (size_t i = 0; i < array_length(version->part); i++) {
        const uint8_t *dot = left.length == 0 ? NULL : memchr(left.data, '.', left.length);
        size_t length = dot == NULL ? left.length : (size_t)(dot - left.data);
        if (!text_parse_int64(slice_of(left.data, length), 0, INT32_MAX, &version->part[i]))
            return false;
        if (dot == NULL)
            return true;
        left = slice_skip(left, length + 1);
    }
    return false;
}

/* <0, 0, >0. Both must be good. */
static int
version_compare(const struct version *one, const struct version *other)
{
    for (size_t i = 0; i < array_length(one->part); i++) {
        if (one->part[i] != other->part[i])
            return one->part[i] < other->part[i] ? -1 : 1;
    }
    return 0;
}

/* Is `text` a version, and not below (sign 1) or not above (sign -1) the bound? */
static bool
version_is_within(const char *text, const char *bound, int sign)
{
    struct version version, limit;
    bool is_bound = version_parse(bound, &limit);
    check(is_bound && (sign == 1 || sign == -1)); /* bounds are ours */
    return version_parse(text, &version) && version_compare(&version, &limit) * sign >= 0;
}

bool
api_caller_reads_raw_history(const struct rpc_call *call)
{
    struct caller caller = api_caller(call);
    const struct client *client = find_client(caller.name);
    return client != NULL && version_is_within(caller.feature_version, client->raw_history, 1);
}

bool
caller_answers_sticky_queries(const char *name, const char *feature_version)
{
    const struct client *client = find_client(name);
    const char *least = client == NULL ? NULL : client->sticky_query;
    if (name[0] == '\0')
        least = STICKY_QUERY_UNNAMED;
    return least != NULL && version_is_within(feature_version, least, 1);
}

struct error *
caller_check_strong_queries(const struct caller *caller, struct arena *arena)
{
    const struct client *client = find_client(caller->name);
    const char *least = client == NULL ? NULL : client->strong_query;
    if (least != NULL && version_is_within(caller->feature_version, least, 1))
        return NULL;
    return errors_client_version_not_supported(arena, caller->feature_version, caller->name,
                                               least == NULL ? ""
                                                             : arena_format(arena, ">=%s", least));
}

/* --- the hooks -----------------------------------------------------------------------------------
 */

/* A flag is a field of a message of the IDL: clients say its name in JSON, or the name that it has
 * in the message. Other spellings are other flags. */
struct feature_flag {
    const char *json_name, *field_name;
};
static const struct feature_flag flag_already_completed = {
    "WorkflowExecutionAlreadyCompletedErrorEnabled",
    "workflow_execution_already_completed_error_enabled"};
static const struct feature_flag flag_forwards = {"autoforwardingEnabled",
                                                  "autoforwarding_enabled"};

/* Malformed JSON means that no flag is set. */
static bool
has_feature_flag(const struct rpc_call *call, const struct feature_flag *flag)
{
    bool is_enabled = false;
    struct slice flags = rpc_header(call, HEADER_FEATURE_FLAGS);
    struct json_reader reader = object_begin(flags, call->arena);
    const char *name;
    while (object_next(&reader, &name)) {
        if (strcmp(name, flag->json_name) == 0 || strcmp(name, flag->field_name) == 0)
            object_flag(&reader, &is_enabled);
        else
            object_skip(&reader);
    }
    return object_end(&reader) && is_enabled;
}

bool
api_caller_forwards(const struct rpc_call *call)
{
    return has_feature_flag(call, &flag_forwards);
}

struct error *
api_refine(struct rpc_call *call, struct error *err)
{
    if (err->kind != ERR_ALREADY_COMPLETED)
        return err;
    struct caller caller = api_caller(call);
    const struct client *client = find_client(caller.name);
    bool is_known = client != NULL && has_feature_flag(call, &flag_already_completed) &&
                    version_is_within(caller.feature_version, client->already_completed, 1);
    return is_known ? err
                    : errors_entity_not_exists(call->arena, NULL,
                                               "Workflow execution already completed.");
}

/* Calls about the server itself are always let in. */
static bool
is_about_server(const char *path)
{
    static const char *const paths[] = {
        "/uber.cadence.api.v1.MetaAPI/Health",
        "/uber.cadence.api.v1.WorkflowAPI/GetClusterInfo",
        "/grpc.health.v1.Health/Check",
    };
    for (size_t i = 0; i < array_length(paths); i++) {
        if (strcmp(paths[i], path) == 0)
            return true;
    }
    return false;
}

static struct error *
check_client_version(struct rpc_call *call)
{
    struct caller caller = api_caller(call);
    const struct client *client = find_client(caller.name);
    if (client == NULL || caller.feature_version[0] == '\0' ||
        version_is_within(caller.feature_version, client->newest, -1))
        return NULL;
    return errors_client_version_not_supported(call->arena, caller.feature_version, caller.name,
                                               arena_format(call->arena, "<=%s", client->newest));
}

struct error *
api_admit(struct rpc_call *call)
{
    const struct api *api = api_of(call);
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    bool is_draining = atomic_load_explicit(&api->is_draining, memory_order_relaxed);
    bool is_checked = dynamic_flag(api->options.dynamic, DYNAMIC_CLIENT_VERSION_CHECK, &filter);
    if ((!is_draining && !is_checked) || is_about_server(rpc_method(call)->path))
        return NULL;
    if (is_draining)
        return error_new(call->arena, ERR_INTERNAL, "Shutting down");
    return check_client_version(call);
}
