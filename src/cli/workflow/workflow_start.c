/* workflow_start.c - see workflow_start.h. */
#include "cli/workflow/workflow_start.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/request.h"
#include "cli/output/render.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FILE_MAX (8u * 1024 * 1024)

static struct error *
wrong(struct cli_call *call, const char *sentence)
{
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST, "%s", sentence));
}

/* ---- texts and files ---- */

/* What `key` was given, or else the text of the file; NULL: neither. */
static struct error *
read_text(struct cli_call *call, const char *key, const char *file_key, const char **text)
{
    *text = cli_text(call, key);
    const char *file = file_key == NULL ? NULL : cli_text(call, file_key);
    if (*text != NULL || file == NULL)
        return NULL;
    struct slice bytes;
    struct error *err = file_load(file, FILE_MAX, call->arena, &bytes);
    if (err == NULL)
        *text = arena_text_of(call->arena, bytes);
    return err;
}

static struct error *
check_json(struct cli_call *call, const char *key, const char *text)
{
    const char *reason;
    if (json_values_check(text, call->arena, &reason))
        return NULL;
    return wrong(call,
                 arena_format(call->arena, "--%s: %s; a text needs its quotes: '\"like this\"'",
                              cli_flag_name(key), reason));
}

static API(Payload) *
make_payload(const char *text, struct arena *arena)
{
    return presence_make_payload(arena, (struct maybe_bytes){true, slice_text(text)});
}

/* The JSON of `key`, or of the file that `file_key` names; NULL: neither was given. May yield. */
static struct error *
workflow_read_input(struct cli_call *call, const char *key, const char *file_key,
                    API(Payload) **payload)
{
    const char *text;
    struct error *err = read_text(call, key, file_key, &text);
    if (err != NULL || text == NULL)
        return err;
    err = check_json(call, key, text);
    if (err == NULL)
        *payload = make_payload(text, call->arena);
    return err;
}

/* ---- maps of payloads ---- */

/* Keys and values, in pairs; the counts must agree. `add` takes each pair. */
struct key_values {
    const char **keys, **values;
    size_t count;
};

static struct error *
read_key_values(struct cli_call *call, const char *key_flag, const char *value_flag,
                const char *file_flag, struct key_values *key_values)
{
    const char *text, *keys = cli_text(call, key_flag);
    size_t values = 0;
    *key_values = (struct key_values){0};
    struct error *err = read_text(call, value_flag, file_flag, &text);
    if (err != NULL || (keys == NULL && text == NULL))
        return err;
    err = check_json(call, value_flag, text == NULL ? "" : text);
    if (err != NULL)
        return err;
    key_values->keys = words_cut(keys == NULL ? "" : keys, ' ', call->arena, &key_values->count);
    key_values->values = json_values_cut(text, call->arena, &values);
    if (values == key_values->count)
        return NULL;
    return wrong(call, arena_format(call->arena, "--%s names %zu keys, but there are %zu values",
                                    cli_flag_name(key_flag), key_values->count, values));
}

static struct error *
set_memo(struct cli_call *call, API(StartWorkflowExecutionRequest) *start)
{
    struct key_values key_values;
    struct error *err = read_key_values(call, "memo_key", "memo", "memo_file", &key_values);
    if (err != NULL || key_values.count == 0)
        return err;
    start->memo = message_new(call->arena, API_TYPE(memo));
    start->memo->fields = arena_zalloc(call->arena, key_values.count, sizeof *start->memo->fields);
    for (size_t i = 0; i < key_values.count; i++) {
        API(Memo__FieldsEntry) *entry = message_new(call->arena, API_TYPE(memo__fields_entry));
        entry->key = (char *)key_values.keys[i];
        entry->value = make_payload(key_values.values[i], call->arena);
        start->memo->fields[start->memo->n_fields++] = entry;
    }
    wire_map_sort(call->arena, start->memo->fields, &start->memo->n_fields);
    return NULL;
}

static struct error *
set_header(struct cli_call *call, API(StartWorkflowExecutionRequest) *start)
{
    struct key_values key_values;
    struct error *err =
        read_key_values(call, "header_key", "header_value", "header_file", &key_values);
    if (err != NULL || key_values.count == 0)
        return err;
    start->header = message_new(call->arena, API_TYPE(header));
    start->header->fields =
        arena_zalloc(call->arena, key_values.count, sizeof *start->header->fields);
    for (size_t i = 0; i < key_values.count; i++) {
        API(Header__FieldsEntry) *entry = message_new(call->arena, API_TYPE(header__fields_entry));
        entry->key = (char *)key_values.keys[i];
        entry->value = make_payload(key_values.values[i], call->arena);
        start->header->fields[start->header->n_fields++] = entry;
    }
    wire_map_sort(call->arena, start->header->fields, &start->header->n_fields);
    return NULL;
}

/* A number, true, false or a list is JSON as it is; anything else is a text. */
static const char *
attribute_json(const char *value, struct arena *arena)
{
    json_t *json = json_loads(value, JSON_DECODE_ANY, NULL);
    bool is_plain = json != NULL && !json_is_object(json) && !json_is_null(json);
    if (json != NULL)
        json_decref(json);
    if (is_plain)
        return value;
    json_t *text = json_string(value);
    size_t length = json_dumpb(text, NULL, 0, JSON_ENCODE_ANY);
    char *out = arena_zalloc(arena, length + 1, 1);
    (void)json_dumpb(text, out, length, JSON_ENCODE_ANY);
    json_decref(text);
    return out;
}

static struct error *
set_search_attributes(struct cli_call *call, API(StartWorkflowExecutionRequest) *start)
{
    const char *keys = cli_text(call, "search_attr_key"),
               *values = cli_text(call, "search_attr_value");
    size_t key_count = 0, value_count = 0;
    if (keys == NULL && values == NULL)
        return NULL;
    const char **names = words_cut(keys == NULL ? "" : keys, '|', call->arena, &key_count);
    const char **texts = words_cut(values == NULL ? "" : values, '|', call->arena, &value_count);
    if (key_count != value_count)
        return wrong(call, arena_format(call->arena,
                                        "--search_attr_key names %zu keys, but there are %zu "
                                        "values",
                                        key_count, value_count));
    API(SearchAttributes) *all = message_new(call->arena, API_TYPE(search_attributes));
    all->indexed_fields = arena_zalloc(call->arena, key_count, sizeof *all->indexed_fields);
    for (size_t i = 0; i < key_count; i++) {
        API(SearchAttributes__IndexedFieldsEntry) *entry =
            message_new(call->arena, API_TYPE(search_attributes__indexed_fields_entry));
        entry->key = (char *)names[i];
        entry->value = make_payload(attribute_json(texts[i], call->arena), call->arena);
        all->indexed_fields[all->n_indexed_fields++] = entry;
    }
    wire_map_sort(call->arena, all->indexed_fields, &all->n_indexed_fields);
    start->search_attributes = all;
    return NULL;
}

/* ---- policies ---- */

static struct error *
set_retries(struct cli_call *call, API(StartWorkflowExecutionRequest) *start)
{
    static const char *const fields[][3] = {
        {"maximum_attempts", "retry_attempts", NULL},
        {"expiration_interval", "retry_expiration", NULL},
        {"initial_interval", "retry_interval", "10"},
        {"backoff_coefficient", "retry_backoff", "1"},
        {"maximum_interval", "retry_max_interval", NULL},
    };
    const struct request_context context = {.arena = call->arena, .now = clock_wall()};
    if (cli_text(call, "retry_attempts") == NULL && cli_text(call, "retry_expiration") == NULL) {
        if (cli_text(call, "retry_interval") == NULL && cli_text(call, "retry_backoff") == NULL)
            return NULL;
        return wrong(call, "retries need --retry_attempts N or --retry_expiration SECONDS");
    }
    start->retry_policy = message_new(call->arena, API_TYPE(retry_policy));
    for (size_t i = 0; i < array_length(fields); i++) {
        const char *value = cli_text(call, fields[i][1]);
        value = value != NULL ? value : fields[i][2];
        if (value == NULL)
            continue;
        struct error *err =
            request_set(&context, &start->retry_policy->base, fields[i][0], fields[i][1], value);
        if (err != NULL)
            return cli_wrong(call, err);
    }
    return NULL;
}

static struct error *
set_cluster_attribute(struct cli_call *call, API(StartWorkflowExecutionRequest) *start)
{
    const char *scope = cli_text(call, "cluster_attribute_scope"),
               *name = cli_text(call, "cluster_attribute_name");
    if (scope == NULL && name == NULL)
        return NULL;
    if (scope == NULL || name == NULL)
        return wrong(call, "--cluster_attribute_scope and --cluster_attribute_name go together");
    start->active_cluster_selection_policy =
        message_new(call->arena, API_TYPE(active_cluster_selection_policy));
    API(ClusterAttribute) *attribute = message_new(call->arena, API_TYPE(cluster_attribute));
    attribute->scope = (char *)scope;
    attribute->name = (char *)name;
    start->active_cluster_selection_policy->cluster_attribute = attribute;
    return NULL;
}

/* ---- the face ---- */

static struct error *
complete(struct cli_call *call, API(StartWorkflowExecutionRequest) *start)
{
    if (start->workflow_id[0] == '\0')
        start->workflow_id = uuid_new_text(call->arena);
    if (start->request_id[0] == '\0')
        start->request_id = uuid_new_text(call->arena);
    start->identity = (char *)cli_identity(call->arena);
    struct error *err = workflow_read_input(call, "input", "input_file", &start->input);
    if (err == NULL)
        err = set_memo(call, start);
    if (err == NULL)
        err = set_header(call, start);
    if (err == NULL)
        err = set_search_attributes(call, start);
    if (err == NULL)
        err = set_retries(call, start);
    if (err == NULL)
        err = set_cluster_attribute(call, start);
    return err;
}

struct error *
workflow_complete_start(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == API_TYPE(start_workflow_execution_request));
    return complete(call, (API(StartWorkflowExecutionRequest) *)request);
}

struct error *
workflow_complete_signal_with_start(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == API_TYPE(signal_with_start_workflow_execution_request));
    API(SignalWithStartWorkflowExecutionRequest) *both =
        (API(SignalWithStartWorkflowExecutionRequest) *)request;
    struct error *err = complete(call, both->start_request);
    if (err == NULL)
        err = workflow_read_input(call, "signal_input", "signal_input_file", &both->signal_input);
    return err;
}

struct error *
workflow_complete_signal(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == API_TYPE(signal_workflow_execution_request));
    return workflow_read_input(call, "input", "input_file",
                               &((API(SignalWorkflowExecutionRequest) *)request)->signal_input);
}

struct error *
workflow_complete_query(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == API_TYPE(query_workflow_request));
    API(QueryWorkflowRequest) *query = (API(QueryWorkflowRequest) *)request;
    if (query->query == NULL) /* stack */
        query->query = message_new(call->arena, API_TYPE(workflow_query));
    if (query->query->query_type[0] == '\0')
        query->query->query_type = "__stack_trace";
    return workflow_read_input(call, "input", "input_file", &query->query->query_args);
}
