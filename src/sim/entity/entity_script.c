/* entity_script.c - see entity_script.h. */
#include "sim/entity/entity_script.h"

#include <string.h>

#define PATIENCE (120 * NS_PER_S)

void
entity_place(struct script *script, unsigned cluster, const char *type, const char *key,
             const char *region)
{
    EXPECT_OK(
        script_call(script, cluster, entity_set_request(script->arena, type, key, region), NULL));
}

void
entity_delete(struct script *script, unsigned cluster, const char *type, const char *key)
{
    EXPECT_OK(script_call(script, cluster, entity_delete_request(script->arena, type, key), NULL));
}

STORE_API(GetEntityResponse) *
entity_get(struct script *script, unsigned cluster, const char *type, const char *key)
{
    STORE_API(GetEntityRequest) *request =
        STORE_API_NEW(script->arena, get_entity_request, .type = (char *)type, .key = (char *)key);
    ProtobufCMessage *response = NULL;
    struct error *err = script_call(script, cluster, request, &response);
    return err == NULL ? (STORE_API(GetEntityResponse) *)response : NULL;
}

void
entity_await(struct script *script, unsigned cluster, const char *type, const char *key,
             bool is_deleted)
{
    int64_t limit = clock_monotonic() + PATIENCE;
    STORE_API(GetEntityResponse) *found = entity_get(script, cluster, type, key);
    while (found == NULL || found->entity->is_deleted != is_deleted) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 10 * NS_PER_MS);
        found = entity_get(script, cluster, type, key);
    }
}

static void
add_field(struct script *script, API(Header) *header, const char *name, const char *text)
{
    API(Header__FieldsEntry) *entry = message_new(script->arena, API_TYPE(header__fields_entry));
    entry->key = (char *)name;
    entry->value = API_NEW(script->arena, payload);
    entry->value->data.data = (uint8_t *)text;
    entry->value->data.len = strlen(text);
    header->fields[header->n_fields++] = entry;
}

API(Header) *
entity_header(struct script *script, const char *source, const char *key)
{
    API(Header) *header = API_NEW(script->arena, header);
    header->fields = arena_zalloc(script->arena, 2, sizeof *header->fields);
    if (key != NULL)
        add_field(script, header, "active-region.lookup-key", key);
    if (source != NULL)
        add_field(script, header, "active-region.lookup-source", source);
    return header;
}

API(StartWorkflowExecutionRequest) *
entity_request(struct script *script, const char *id, const char *source, const char *key)
{
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, id);
    request->header = entity_header(script, source, key);
    return request;
}

void
entity_start(struct script *script, unsigned cluster, const char *id, const char *key)
{
    const char *run_id;
    EXPECT_OK(script_try_start(script, cluster, entity_request(script, id, SOURCE, key), &run_id));
}

const API(ClusterAttribute) *
entity_of(struct script *script, unsigned cluster, const char *id)
{
    const API(ActiveClusterSelectionPolicy) *policy =
        script_history(script, cluster, id, "")
            ->events[0]
            ->workflow_execution_started_event_attributes->active_cluster_selection_policy;
    return policy == NULL ? NULL : policy->cluster_attribute;
}
