/* entity_start.c - see entity.h. */
#include "api/call/subject.h"
#include "api/entity/entity.h"
#include "api/inside.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/command/command.h"
#include "entity/types.h"
#include "fiber/probe.h"
#include "wire/maps.h"
#include "wire/message.h"

#define CHILD_DECISION                                                                             \
    API_VALUE(DECISION__ATTRIBUTES_START_CHILD_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES)

static struct error *
refuse_field(const char *name, const char *what, struct arena *arena)
{
    return error_new(arena, ERR_BAD_REQUEST,
                     "Header %s %s; it has to be UTF-8 without NUL, plain or as a JSON text.", name,
                     what);
}

/* A text as the data converters of clients encode it: JSON. */
static struct error *
read_json(const char *name, const char *text, struct arena *arena, const char **value)
{
    const char *object = arena_format(arena, "{\"text\":%s}", text), *member = NULL;
    struct json_reader reader = object_begin(slice_text(object), arena);
    while (object_next(&reader, &member))
        object_text(&reader, value);
    if (!object_end(&reader) || *value == NULL)
        return refuse_field(name, "is quoted but is not a valid JSON string", arena);
    return NULL;
}

/* The text of a field, plain or as JSON, as long as it is; *text is NULL if there is none. One that
 * only begins with a quote is plain. Error: ERR_BAD_REQUEST (it cannot be a key). */
static struct error *
read_field(const API(Header) *header, const char *name, struct arena *arena, const char **text)
{
    API(Header__FieldsEntry) *entry =
        header == NULL ? NULL : wire_map_find(header->fields, header->n_fields, name);
    struct slice bytes = entry == NULL || entry->value == NULL
                             ? slice_of("", 0)
                             : slice_of(entry->value->data.data, entry->value->data.len);
    *text = NULL;
    if (bytes.length == 0)
        return NULL;
#ifndef CADENZA_FAULT_entity_key_cut /* fault: a key ends at its first NUL byte */
    if (memchr(bytes.data, '\0', bytes.length) != NULL)
        return refuse_field(name, "holds a NUL byte", arena);
#endif
    if (!text_is_utf8(bytes, NULL))
        return refuse_field(name, "is not UTF-8", arena);
    const char *plain = arena_format(arena, "%.*s", (int)bytes.length, (const char *)bytes.data);
    bool is_quoted = bytes.length > 1 && plain[0] == '"' && bytes.data[bytes.length - 1] == '"';
    struct error *err = NULL;
    if (is_quoted)
        err = read_json(name, plain, arena, text);
    else
        *text = plain;
    if (err == NULL && (*text)[0] == '\0')
        *text = NULL;
    return err;
}

static API(ActiveClusterSelectionPolicy) *
make_policy(const char *type, const char *key, struct arena *arena)
{
    API(ActiveClusterSelectionPolicy) *policy =
        message_new(arena, API_TYPE(active_cluster_selection_policy));
    policy->cluster_attribute = message_new(arena, API_TYPE(cluster_attribute));
    policy->cluster_attribute->scope = arena_text(arena, type);
    policy->cluster_attribute->name = arena_text(arena, key);
    return policy;
}

/* Is there a row already? A deleted one counts where unknown keys are refused: a run that it still
 * has may be signalled, and if there is none the start is refused later. */
static bool
is_known(const struct api *api, const struct entity_type *type, const char *key)
{
    const struct entity *entity = domains_find_entity(api->options.domains, type->name, key);
    return entity != NULL && (!entity->is_deleted || !type->creates);
}

static struct error *
refuse_key(const struct entity_type *type, const char *key, struct arena *arena)
{
    return error_new(
        arena, ERR_BAD_REQUEST,
        "'%s' is not known to the source '%s'; entities.types.%s.unknownKeys says that "
        "such starts are refused.",
        key, type->source, type->name);
}

/* Makes sure that there is a row, here too. */
static struct error *
need_row(struct rpc_call *call, const struct entity_type *type, const char *key)
{
    struct api *api = api_of(call);
    const char *region = api->options.group->current->region;
    check(key[0] != '\0');
    if (is_known(api, type, key))
        return NULL;
    struct error *err = entity_learn(api, type->name, key, call->arena);
    if (err != NULL || is_known(api, type, key))
        return err;
    if (!type->creates)
        return refuse_key(type, key, call->arena);
    if (region == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "'%s' is not known to the source '%s', and cluster %s has no region to "
                         "put it in.",
                         key, type->source, api->options.group->current->name);
    probe("entity_made_by_start");
    return entity_create(api, type->name, key, region, call->arena);
}

/* Does a run of the domain follow entities? No yield after finding it. */
static bool
uses_entities(const struct api *api, const char *domain_name, const char *type)
{
    const struct domain *domain = domains_find_name(api->options.domains, domain_name);
    return domain != NULL && domain_uses_entities(domain, type);
}

/* For a policy that names an entity. From a client: makes sure of a row, as with a header. As
 * another cluster wrote it: there the row exists, and it may not have been replicated to here yet.
 */
static struct error *
learn_policy(struct rpc_call *call, const char *domain_name,
             const API(ActiveClusterSelectionPolicy) *policy)
{
    const API(ClusterAttribute) *attribute = policy->cluster_attribute;
    struct api *api = api_of(call);
    const struct entity_type *type =
        attribute == NULL ? NULL : entity_types_find(api->options.entity_types, attribute->scope);
    if (type == NULL || attribute->name[0] == '\0' ||
        !uses_entities(api, domain_name, attribute->scope))
        return NULL;
    if (!api_is_forwarded(call))
        return need_row(call, type, attribute->name);
    if (domains_find_entity(api->options.domains, attribute->scope, attribute->name) != NULL)
        return NULL;
    return entity_learn(api, attribute->scope, attribute->name, call->arena);
}

/* The policy that a header stands for; *policy is not touched if it names no entity. */
static struct error *
read_header(struct rpc_call *call, const char *domain_name, const API(Header) *header,
            API(ActiveClusterSelectionPolicy) **policy)
{
    struct api *api = api_of(call);
    const char *source = NULL, *key = NULL;
    if (!uses_entities(api, domain_name, ""))
        return NULL;
    struct error *err = read_field(header, HEADER_LOOKUP_SOURCE, call->arena, &source);
    if (err == NULL)
        err = read_field(header, HEADER_LOOKUP_KEY, call->arena, &key);
    if (err != NULL || source == NULL || key == NULL)
        return err;
    const struct entity_type *type = entity_types_find_source(api->options.entity_types, source);
    if (type == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "The source '%s' of header " HEADER_LOOKUP_SOURCE
                         " is not one of entities.types.",
                         source);
    if (uses_entities(api, domain_name, type->name)) /* else it has such attributes of its own */
        err = need_row(call, type, key);
    if (err == NULL)
        *policy = make_policy(type->name, key, call->arena);
    return err;
}

struct error *
entity_policy(struct rpc_call *call, bool *is_changed)
{
    *is_changed = false;
    if (api_of(call)->options.entity_types == NULL)
        return NULL;
    API(StartWorkflowExecutionRequest) *start = subject_start(call);
    if (start == NULL)
        return NULL;
    if (start->active_cluster_selection_policy != NULL)
        return learn_policy(call, start->domain, start->active_cluster_selection_policy);
    struct error *err =
        read_header(call, start->domain, start->header, &start->active_cluster_selection_policy);
    *is_changed = start->active_cluster_selection_policy != NULL;
    if (*is_changed)
        probe("entity_chosen");
    return err;
}

static struct error *
choose_for_child(struct rpc_call *call, const char *domain_name,
                 API(StartChildWorkflowExecutionDecisionAttributes) *child)
{
    const char *target = child->domain[0] == '\0' ? domain_name : child->domain;
    bool has_policy = child->active_cluster_selection_policy != NULL;
    struct error *err =
        has_policy
            ? learn_policy(call, target, child->active_cluster_selection_policy)
            : read_header(call, target, child->header, &child->active_cluster_selection_policy);
    if (err != NULL || child->active_cluster_selection_policy == NULL)
        return err;
    if (!has_policy)
        probe("entity_chosen_for_child");
    struct domains *domains = api_of(call)->options.domains;
    const struct domain *domain = domains_find_name(domains, target);
    struct cluster_attribute attribute =
        cluster_attribute_of(child->active_cluster_selection_policy);
    if (domain == NULL || domains_takes_runs(domains, domain, &attribute))
        return NULL;
    return error_new(call->arena, ERR_BAD_REQUEST, DELETED_ENTITY_FAULT, attribute.name,
                     attribute.scope);
}

struct error *
entity_children(struct rpc_call *call, const char *domain_name,
                const API(RespondDecisionTaskCompletedRequest) *request, const char *const **faults)
{
    const char **found = NULL;
    *faults = NULL;
    for (size_t i = 0; api_of(call)->options.entity_types != NULL && i < request->n_decisions;
         i++) {
        const API(Decision) *decision = request->decisions[i];
        if (decision->attributes_case != CHILD_DECISION)
            continue;
        struct error *err = choose_for_child(
            call, domain_name, decision->start_child_workflow_execution_decision_attributes);
        if (err != NULL && err->kind != ERR_BAD_REQUEST && err->kind != ERR_LIMIT_EXCEEDED)
            return err; /* the worker tries again */
        if (err != NULL && found == NULL)
            *faults = found = arena_zalloc(call->arena, request->n_decisions, sizeof *found);
        if (err != NULL)
            found[i] = err->message;
    }
    return NULL;
}

struct error *
entity_check_scopes(struct rpc_call *call, const char *domain_name,
                    const API(ActiveClusters) *asked)
{
    const struct api *api = api_of(call);
    const struct domain *domain = domains_find_name(api->options.domains, domain_name);
    size_t count =
        asked == NULL || domain == NULL ? 0 : asked->n_active_clusters_by_cluster_attribute;
    for (size_t i = 0; i < count; i++) {
        const char *scope = asked->active_clusters_by_cluster_attribute[i]->key;
        if (entity_types_find(api->options.entity_types, scope) != NULL &&
            domain_uses_entities(domain, scope))
            return error_new(call->arena, ERR_BAD_REQUEST,
                             "Domain %s follows the entities of type '%s'; use 'cadenza admin "
                             "entity set' to say where one is.",
                             domain_name, scope);
    }
    return NULL;
}
