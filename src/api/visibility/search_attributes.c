/* search_attributes.c - which keys a run may be found by, what kind of value each has, and whether
 * those that a request gives a run are valid.
 *
 * Clients need the first to show what they got: the cadence CLI asks before it prints a run. */
#include "api/inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "visibility/feed/registry.h"
#include "wire/message.h"
#include "wire/names.h"

#define KIND(name) API_VALUE(INDEXED_VALUE_TYPE__INDEXED_VALUE_TYPE_##name)

struct error *
api_get_search_attributes(struct rpc_call *call)
{
    API(GetSearchAttributesResponse) *response = (API(GetSearchAttributesResponse) *)call->response;
    const struct attribute_set *set = registry_set(api_of(call)->options.registry);
    size_t count = attribute_count(set);
    response->keys = arena_zalloc(call->arena, count, sizeof response->keys[0]);
    for (size_t i = 0; i < count; i++) {
        const struct search_attribute *attribute = attribute_at(set, i);
        API(GetSearchAttributesResponse__KeysEntry) *entry =
            message_new(call->arena, API_TYPE(get_search_attributes_response__keys_entry));
        entry->key = arena_text(call->arena, attribute->name);
        entry->value = (API(IndexedValueType))attribute_wire_type(attribute);
        response->keys[response->n_keys++] = entry;
    }
    return NULL;
}

/* --- adding ---- */

/* Where administration is protected, only operators that have the token may do it. */
static struct error *
check_permission(struct rpc_call *call, const char *token)
{
    const struct dynamic *dynamic = api_of(call)->options.dynamic;
    if (!dynamic_flag(dynamic, DYNAMIC_ADMIN_PROTECTION, NULL) ||
        strcmp(token, dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, NULL)) == 0)
        return NULL;
    return error_new(call->arena, ERR_BAD_REQUEST, "No permission to do this operation.");
}

/* B-032 */
struct error *
api_add_search_attribute(struct rpc_call *call)
{
    const ADMIN(AddSearchAttributeRequest) *request =
        (const ADMIN(AddSearchAttributeRequest) *)call->request;
    struct error *err = check_permission(call, request->security_token);
    if (err != NULL)
        return err;
    size_t count = request->n_search_attribute;
    if (count == 0)
        return error_new(call->arena, ERR_BAD_REQUEST, "SearchAttributes are not provided");
    struct registry_key *keys = arena_zalloc(call->arena, count, sizeof keys[0]);
    for (size_t i = 0; i < count; i++) {
        int kind = (int)request->search_attribute[i]->value;
        if (kind < (int)KIND(STRING) || kind > (int)KIND(DATETIME))
            return error_new(call->arena, ERR_BAD_REQUEST, "Unknown value type, %d", kind);
        keys[i] = (struct registry_key){.name = request->search_attribute[i]->key,
                                        .type = (enum attribute_type)(kind - 1)};
    }
    return registry_add(api_of(call)->options.registry, keys, count, call->arena);
}

/* --- what a start or a worker brings ---- */

static struct error *
bad(struct arena *arena, const char *key, const char *sentence)
{
    return error_new(arena, ERR_BAD_REQUEST, "%s %s", key, sentence);
}

static struct error *
check_field(const struct attribute_set *set, const char *key, struct slice value, size_t size_max,
            struct arena *arena)
{
    const struct search_attribute *attribute = attribute_find(set, key);
    /* The exact name: the prefix that queries may use is not allowed here. */
    if (attribute == NULL || strcmp(attribute->name, key) != 0)
        return bad(arena, key, "is not a valid search attribute key");
    if (attribute->column != COLUMN_NONE)
        return bad(arena, key, "is read-only Cadence reserved attribute");
    struct attribute_value *values;
    size_t count;
    if (attribute_read(attribute, value, arena, &values, &count) != NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "%.*s is not a valid search attribute value for key %s", SLICE_ARG(value),
                         key);
    if (value.length > size_max)
        return error_new(arena, ERR_BAD_REQUEST, "size limit exceed for key %s", key);
    return NULL;
}

struct error *
api_check_search_attributes(const struct search_rules *rules,
                            const API(SearchAttributes) *attributes, const char *domain_name,
                            struct arena *arena)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name;
    const struct dynamic *dynamic = rules->dynamic;
    size_t count = attributes == NULL ? 0 : attributes->n_indexed_fields, total = 0;
    if (count > (size_t)dynamic_integer(dynamic, DYNAMIC_SEARCH_KEYS, &filter))
        return error_new(arena, ERR_BAD_REQUEST, "number of keys %zu exceed limit", count);
    size_t size_max = (size_t)dynamic_integer(dynamic, DYNAMIC_SEARCH_VALUE_SIZE, &filter);
    for (size_t i = 0; i < count; i++) {
        const char *key = attributes->indexed_fields[i]->key;
        const API(Payload) *payload = attributes->indexed_fields[i]->value;
        struct slice value =
            payload == NULL ? slice_of(NULL, 0) : slice_of(payload->data.data, payload->data.len);
        struct error *err = check_field(registry_set(rules->registry), key, value, size_max, arena);
        if (err != NULL)
            return err;
        total += strlen(key) + value.length;
    }
    if (total > (size_t)dynamic_integer(dynamic, DYNAMIC_SEARCH_TOTAL_SIZE, &filter))
        return error_new(arena, ERR_BAD_REQUEST, "total size %zu exceed limit", total);
    return NULL;
}
