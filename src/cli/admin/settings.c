/* settings.c - see settings.h. */
#include "cli/admin/settings.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "cli/base/request.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define PARTITIONS_MAX 1000

static struct error *
wrong(struct cli_call *call, const char *key, const char *what)
{
    return cli_wrong(call,
                     error_new(call->arena, ERR_BAD_REQUEST, "--%s: %s", cli_flag_name(key), what));
}

/* ---- dynamic config ---- */

static API(DataBlob) *
make_blob(const json_t *json, struct arena *arena)
{
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON);
    blob->data = presence_make_bytes(slice_text(render_compact(json, arena)));
    return blob;
}

/* {"domainName": "orders"}, or [{"Name": "domainName", "Value": "orders"}]. */
static bool
make_filters(const json_t *json, struct arena *arena, ADMIN(DynamicConfigFilter) ***filters,
             size_t *count)
{
    size_t size = json_is_array(json) ? json_array_size(json) : json_object_size(json), i;
    const char *name;
    json_t *value;
    *filters = arena_zalloc(arena, size + 1, sizeof **filters);
    *count = 0;
    json_object_foreach((json_t *)json, name, value)
    {
        ADMIN(DynamicConfigFilter) *filter = message_new(arena, ADMIN_TYPE(dynamic_config_filter));
        filter->name = arena_text(arena, name);
        filter->value = make_blob(value, arena);
        (*filters)[(*count)++] = filter;
    }
    json_array_foreach(json, i, value)
    {
        const char *filter_name = json_string_value(json_object_get(value, "Name"));
        json_t *filter_value = json_object_get(value, "Value");
        if (filter_name == NULL || filter_value == NULL)
            return false;
        ADMIN(DynamicConfigFilter) *filter = message_new(arena, ADMIN_TYPE(dynamic_config_filter));
        filter->name = arena_text(arena, filter_name);
        filter->value = make_blob(filter_value, arena);
        (*filters)[(*count)++] = filter;
    }
    return true;
}

/* One --value: {"Value": ..., "Filters": [...]}. */
static ADMIN(DynamicConfigValue) *
make_value(const char *text, struct arena *arena)
{
    json_t *json = json_loads(text, 0, NULL);
    json_t *value = json_object_get(json, "Value");
    ADMIN(DynamicConfigValue) *made = NULL;
    if (value != NULL) {
        made = message_new(arena, ADMIN_TYPE(dynamic_config_value));
        made->value = make_blob(value, arena);
        if (!make_filters(json_object_get(json, "Filters"), arena, &made->filters,
                          &made->n_filters))
            made = NULL;
    }
    json_decref(json);
    return made;
}

static struct error *
complete_filters(struct cli_call *call, ADMIN(DynamicConfigFilter) ***filters, size_t *count)
{
    const char *text = cli_text(call, "filter");
    if (text == NULL)
        return NULL;
    json_t *json = json_loads(text, 0, NULL);
    bool is_good = json != NULL && make_filters(json, call->arena, filters, count);
    json_decref(json);
    return is_good ? NULL : wrong(call, "filter", "give it as {\"domainName\":\"orders\"}");
}

static struct error *
complete_values(struct cli_call *call, ADMIN(UpdateDynamicConfigRequest) *update)
{
    const struct flag_list *values = cli_list(call, "setting_values");
    if (values->count == 0)
        return wrong(call, "setting_values", "missing; give it as {\"Value\":20}");
    update->config_values = arena_zalloc(call->arena, values->count, sizeof *update->config_values);
    for (size_t i = 0; i < values->count; i++) {
        ADMIN(DynamicConfigValue) *value = make_value(values->items[i], call->arena);
        if (value == NULL)
            return wrong(call, "setting_values",
                         "give it as {\"Value\":20,\"Filters\":{\"domainName\":\"orders\"}}");
        update->config_values[update->n_config_values++] = value;
    }
    return NULL;
}

struct error *
settings_complete(struct cli_call *call, ProtobufCMessage *request)
{
    if (request->descriptor == ADMIN_TYPE(update_dynamic_config_request))
        return complete_values(call, (ADMIN(UpdateDynamicConfigRequest) *)request);
    /* Get and restore have the same fields. */
    check(request->descriptor == ADMIN_TYPE(get_dynamic_config_request) ||
          request->descriptor == ADMIN_TYPE(restore_dynamic_config_request));
    ADMIN(GetDynamicConfigRequest) *get = (ADMIN(GetDynamicConfigRequest) *)request;
    return complete_filters(call, &get->filters, &get->n_filters);
}

struct error *
settings_show_value(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == ADMIN_TYPE(get_dynamic_config_response));
    const API(DataBlob) *blob = ((const ADMIN(GetDynamicConfigResponse) *)message)->value;
    if (blob == NULL || blob->data.len == 0) {
        cli_print("No value is stored; cadenza config keys shows the defaults.\n");
        return NULL;
    }
    API(Payload) payload = API_VALUE(PAYLOAD__INIT);
    payload.data = blob->data;
    cli_print_json(render_payload(&payload, RENDER_READABLE, call->arena));
    return NULL;
}

static json_t *
value_of(const API(DataBlob) *blob, struct arena *arena)
{
    API(Payload) payload = API_VALUE(PAYLOAD__INIT);
    if (blob == NULL)
        return json_null();
    payload.data = blob->data;
    return render_payload(&payload, RENDER_READABLE, arena);
}

static json_t *
entry_of(const ADMIN(DynamicConfigEntry) *entry, struct arena *arena)
{
    json_t *values = json_array();
    for (size_t i = 0; i < entry->n_values; i++) {
        json_t *filters = json_object();
        for (size_t n = 0; n < entry->values[i]->n_filters; n++)
            json_object_set_new(filters, entry->values[i]->filters[n]->name,
                                value_of(entry->values[i]->filters[n]->value, arena));
        json_array_append_new(values, json_pack("{s:o, s:o}", "Value",
                                                value_of(entry->values[i]->value, arena), "Filters",
                                                filters));
    }
    return json_pack("{s:s, s:o}", "Name", entry->name, "Values", values);
}

struct error *
settings_show_list(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == ADMIN_TYPE(list_dynamic_config_response));
    const ADMIN(ListDynamicConfigResponse) *response =
        (const ADMIN(ListDynamicConfigResponse) *)message;
    json_t *all = json_array();
    for (size_t i = 0; i < response->n_entries; i++)
        json_array_append_new(all, entry_of(response->entries[i], call->arena));
    cli_print_json(all);
    return NULL;
}

/* ---- isolation groups ---- */

static void
add_group(API(IsolationGroupConfiguration) *all, const char *name, int state, struct arena *arena)
{
    API(IsolationGroupPartition) *group = message_new(arena, API_TYPE(isolation_group_partition));
    group->name = arena_text(arena, name);
    group->state = (API(IsolationGroupState))state;
    all->isolation_groups[all->n_isolation_groups++] = group;
}

static bool
read_groups(const char *text, struct arena *arena, API(IsolationGroupConfiguration) *all)
{
    json_t *json = json_loads(text, 0, NULL), *one;
    size_t i;
    bool is_good = json_is_array(json);
    all->isolation_groups =
        arena_zalloc(arena, json_array_size(json) + 1, sizeof *all->isolation_groups);
    json_array_foreach(json, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "Name"));
        json_int_t state = json_integer_value(json_object_get(one, "State"));
        is_good = is_good && name != NULL && state >= 1 && state <= 2;
        if (is_good)
            add_group(all, name, (int)state, arena);
    }
    json_decref(json);
    return is_good;
}

static struct error *
make_groups(struct cli_call *call, API(IsolationGroupConfiguration) *all)
{
    const struct flag_list *isolated = cli_list(call, "set-drains");
    const char *text = cli_text(call, "groups_json");
    if (text != NULL)
        return read_groups(text, call->arena, all)
                   ? NULL
                   : wrong(call, "groups_json", "give it as [{\"Name\":\"zone-1\",\"State\":2}]");
    if (isolated->count == 0 && !cli_is_on(call, "remove-all-drains"))
        return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                         "give --set-drains GROUP,... or --remove-all-drains"));
    for (size_t i = 0; i < isolated->count; i++) {
        size_t count;
        const char **names = words_cut(isolated->items[i], ',', call->arena, &count);
        API(IsolationGroupPartition) **items = arena_zalloc(
            call->arena, all->n_isolation_groups + count + 1, sizeof *all->isolation_groups);
        for (size_t n = 0; n < all->n_isolation_groups; n++)
            items[n] = all->isolation_groups[n];
        all->isolation_groups = items;
        for (size_t n = 0; n < count; n++)
            add_group(all, names[n],
                      API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED), call->arena);
    }
    return NULL;
}

struct error *
groups_complete(struct cli_call *call, ProtobufCMessage *request)
{
    API(IsolationGroupConfiguration) *all =
        message_new(call->arena, API_TYPE(isolation_group_configuration));
    if (request->descriptor == ADMIN_TYPE(update_global_isolation_groups_request))
        ((ADMIN(UpdateGlobalIsolationGroupsRequest) *)request)->isolation_groups = all;
    else
        ((ADMIN(UpdateDomainIsolationGroupsRequest) *)request)->isolation_groups = all;
    return make_groups(call, all);
}

struct error *
groups_show(struct cli_call *call, const ProtobufCMessage *message)
{
    /* Both responses have the same field. */
    check(message->descriptor == ADMIN_TYPE(get_global_isolation_groups_response) ||
          message->descriptor == ADMIN_TYPE(get_domain_isolation_groups_response));
    const API(IsolationGroupConfiguration) *all =
        ((const ADMIN(GetGlobalIsolationGroupsResponse) *)message)->isolation_groups;
    struct table table = {.columns = 2, .arena = call->arena};
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    if (all == NULL || all->n_isolation_groups == 0) {
        cli_print("-- No groups found --\n");
        return NULL;
    }
    table_add(&table, "ISOLATION GROUP", "STATE");
    for (size_t i = 0; i < all->n_isolation_groups; i++)
        table_add(&table, all->isolation_groups[i]->name,
                  show_enum(API_TYPE(isolation_group_state), "ISOLATION_GROUP_STATE_",
                            (int)all->isolation_groups[i]->state, call->arena));
    cli_print("%s", table_text(&table));
    return NULL;
}

/* ---- others ---- */

struct error *
search_complete(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == ADMIN_TYPE(add_search_attribute_request));
    ADMIN(AddSearchAttributeRequest) *add = (ADMIN(AddSearchAttributeRequest) *)request;
    ADMIN(AddSearchAttributeRequest__SearchAttributeEntry) *entry =
        message_new(call->arena, ADMIN_TYPE(add_search_attribute_request__search_attribute_entry));
    const struct request_context context = {.arena = call->arena};
    const char *key, *type;
    struct error *err = cli_need(call, "new_search_key", &key);
    if (err == NULL)
        err = cli_need(call, "new_search_type", &type);
    if (err == NULL)
        err =
            cli_wrong(call, request_set(&context, &entry->base, "value", "search_attr_type", type));
    if (err != NULL)
        return err;
    entry->key = (char *)key;
    add->search_attribute = arena_zalloc(call->arena, 1, sizeof *add->search_attribute);
    add->search_attribute[add->n_search_attribute++] = entry;
    return NULL;
}

struct error *
queue_complete(struct cli_call *call, ProtobufCMessage *request)
{
    ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *update =
        (ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *)request;
    const char *text;
    struct error *err = cli_need(call, "queue_json", &text);
    if (err != NULL)
        return err;
    json_t *json = json_loads(text, 0, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return wrong(call, "queue_json",
                     "give it as {\"Enabled\":true,\"PredefinedQueueName\":\"queue1\"}");
    }
    const char *name = json_string_value(json_object_get(json, "PredefinedQueueName"));
    const char *type = json_string_value(json_object_get(json, "QueueType"));
    json_t *queue = json_object_get(json, "QueueConfig");
    update->configuration = message_new(call->arena, API_TYPE(async_workflow_configuration));
    update->configuration->enabled = json_is_true(json_object_get(json, "Enabled"));
    update->configuration->predefined_queue_name =
        arena_text(call->arena, name != NULL ? name : "");
    update->configuration->queue_type = arena_text(call->arena, type != NULL ? type : "");
    if (queue != NULL)
        update->configuration->queue_config = make_blob(queue, call->arena);
    json_decref(json);
    return NULL;
}

struct error *
partitions_complete(struct cli_call *call, ProtobufCMessage *request)
{
    API(TaskListPartitionConfig) *config =
        message_new(call->arena, API_TYPE(task_list_partition_config));
    int64_t readers, writers;
    struct error *err = cli_number(call, "num_read_partitions", 1, PARTITIONS_MAX, 0, &readers);
    if (err == NULL)
        err = cli_number(call, "num_write_partitions", 1, PARTITIONS_MAX, 0, &writers);
    if (err != NULL)
        return err;
    if (readers == 0 || writers == 0)
        return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                         "give --num_read_partitions N and --num_write_partitions "
                                         "N"));
    config->read_partitions =
        arena_zalloc(call->arena, (size_t)readers, sizeof *config->read_partitions);
    for (int32_t i = 0; i < readers; i++) {
        API(TaskListPartitionConfig__ReadPartitionsEntry) *entry =
            message_new(call->arena, API_TYPE(task_list_partition_config__read_partitions_entry));
        entry->key = i;
        entry->value = message_new(call->arena, API_TYPE(task_list_partition));
        config->read_partitions[config->n_read_partitions++] = entry;
    }
    config->write_partitions =
        arena_zalloc(call->arena, (size_t)writers, sizeof *config->write_partitions);
    for (int32_t i = 0; i < writers; i++) {
        API(TaskListPartitionConfig__WritePartitionsEntry) *entry =
            message_new(call->arena, API_TYPE(task_list_partition_config__write_partitions_entry));
        entry->key = i;
        entry->value = message_new(call->arena, API_TYPE(task_list_partition));
        config->write_partitions[config->n_write_partitions++] = entry;
    }
    ADMIN(UpdateTaskListPartitionConfigRequest) *update =
        (ADMIN(UpdateTaskListPartitionConfigRequest) *)request;
    update->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    update->partition_config = config;
    return NULL;
}
