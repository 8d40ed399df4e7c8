/* domain_attributes.c - see domain_attributes.h. */
#include "cli/domain/domain_attributes.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "base/vector.h"
#include "wire/maps.h"
#include "wire/message.h"

/* Cuts `text` at any of the characters of `separators`; empty parts are left out. */
struct parts {
    const char **items;
    size_t count, capacity;
};

static void
split(const char *text, const char *separators, struct parts *parts, struct arena *arena)
{
    for (const char *at = text + strspn(text, separators); *at != '\0';) {
        size_t length = strcspn(at, separators);
        vector_push_in(parts, arena, arena_text_of(arena, slice_of(at, length)));
        at += length;
        at += strspn(at, separators);
    }
}

static struct parts
split_all(const struct flag_list *list, const char *separators, struct arena *arena)
{
    struct parts parts = {0};
    for (size_t i = 0; i < list->count; i++)
        split(list->items[i], separators, &parts, arena);
    return parts;
}

struct error *
domain_read_clusters(const struct flag_list *list, struct arena *arena,
                     API(ClusterReplicationConfiguration) ***clusters, size_t *count)
{
    struct parts parts = split_all(list, ", ", arena);
    if (parts.count == 0)
        return error_new(arena, ERR_BAD_REQUEST, "--clusters names no cluster");
    *clusters = arena_zalloc(arena, parts.count, sizeof **clusters);
    for (size_t i = 0; i < parts.count; i++) {
        for (size_t before = 0; before < i; before++) {
            if (strcmp(parts.items[i], parts.items[before]) == 0)
                return error_new(arena, ERR_BAD_REQUEST, "--clusters names %s twice",
                                 parts.items[i]);
        }
        (*clusters)[i] = message_new(arena, API_TYPE(cluster_replication_configuration));
        (*clusters)[i]->cluster_name = (char *)parts.items[i];
    }
    *count = parts.count;
    return NULL;
}

/* --- data ----------------------------------------------------------------------------------------
 */

static struct error *
read_datum(const char *flag, const char *text, struct arena *arena, struct domain_datum *datum)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return error_new(arena, ERR_BAD_REQUEST, "--%s: '%s' is not of the form key=value", flag,
                         text);
    datum->key = arena_text_of(arena, slice_of(text, (size_t)(equals - text)));
    datum->value = equals + 1;
    return NULL;
}

struct error *
domain_read_data(const struct domain_flags *flags, struct arena *arena, struct domain_datum **data,
                 size_t *count)
{
    struct parts parts = split_all(&flags->data, ",", arena);
    size_t total = parts.count + flags->data_entries.count;
    *data = arena_zalloc(arena, total, sizeof **data);
    for (size_t i = 0; i < total; i++) {
        bool is_part = i < parts.count;
        struct error *err =
            read_datum(is_part ? "domain_data" : "domain_data_entry",
                       is_part ? parts.items[i] : flags->data_entries.items[i - parts.count], arena,
                       &(*data)[i]);
        if (err != NULL)
            return err;
        for (size_t before = 0; before < i; before++) {
            if (strcmp((*data)[i].key, (*data)[before].key) == 0)
                return error_new(arena, ERR_BAD_REQUEST, "domain data: key %s is given twice",
                                 (*data)[i].key);
        }
    }
    *count = total;
    return NULL;
}

/* --- active clusters -----------------------------------------------------------------------------
 */

struct attribute_target {
    const char *scope, *name, *cluster;
};

struct attribute_targets {
    struct attribute_target *items;
    size_t count, capacity;
};

/* "region.lisbon:cluster0": the scope ends at the first dot, the name at the last colon. */
static struct error *
read_attribute(const char *text, struct arena *arena, struct attribute_target *attribute_target)
{
    const char *dot = strchr(text, '.'), *colon = strrchr(text, ':');
    bool is_good =
        dot != NULL && colon != NULL && dot > text && colon > dot + 1 && colon[1] != '\0';
    if (!is_good)
        return error_new(arena, ERR_BAD_REQUEST,
                         "--active_clusters: '%s' is not of the form scope.name:cluster, for "
                         "example region.lisbon:cluster0",
                         text);
    attribute_target->scope = arena_text_of(arena, slice_of(text, (size_t)(dot - text)));
    attribute_target->name = arena_text_of(arena, slice_of(dot + 1, (size_t)(colon - dot - 1)));
    attribute_target->cluster = arena_text(arena, colon + 1);
    return NULL;
}

static struct error *
read_attribute_list(const struct flag_list *list, struct arena *arena,
                    struct attribute_targets *attribute_targets)
{
    struct parts parts = split_all(list, ", ", arena);
    for (size_t i = 0; i < parts.count; i++) {
        struct attribute_target attribute_target;
        struct error *err = read_attribute(parts.items[i], arena, &attribute_target);
        if (err != NULL)
            return err;
        vector_push_in(attribute_targets, arena, attribute_target);
    }
    return NULL;
}

/* "lisbon:cluster0": what was asked for before attributes had scopes. */
static struct error *
read_regions(const struct flag_list *list, struct arena *arena,
             struct attribute_targets *attribute_targets)
{
    struct parts parts = split_all(list, ", ", arena);
    for (size_t i = 0; i < parts.count; i++) {
        const char *text = parts.items[i], *colon = strrchr(text, ':');
        if (colon == NULL || colon == text || colon[1] == '\0')
            return error_new(arena, ERR_BAD_REQUEST,
                             "--active_clusters_by_region: '%s' is not of the form region:cluster, "
                             "for example lisbon:cluster0",
                             text);
        struct attribute_target attribute_target = {
            "region", arena_text_of(arena, slice_of(text, (size_t)(colon - text))), colon + 1};
        vector_push_in(attribute_targets, arena, attribute_target);
    }
    return NULL;
}

static struct error *
bad_json(struct arena *arena, const char *what)
{
    return error_new(arena, ERR_BAD_REQUEST,
                     "--active_clusters_json: %s; the form is {\"attributeScopes\":{\"region\":"
                     "{\"clusterAttributes\":{\"lisbon\":{\"activeClusterName\":\"cluster0\"}}}}}",
                     what);
}

static struct error *
read_json_scope(const char *scope, json_t *names, struct arena *arena,
                struct attribute_targets *attribute_targets)
{
    const char *name;
    json_t *info;
    json_object_foreach(names, name, info)
    {
        const char *cluster = json_string_value(json_object_get(info, "activeClusterName"));
        if (cluster == NULL)
            return bad_json(arena, "an attribute has no activeClusterName");
        struct attribute_target attribute_target = {
            arena_text(arena, scope), arena_text(arena, name), arena_text(arena, cluster)};
        vector_push_in(attribute_targets, arena, attribute_target);
    }
    return NULL;
}

static void
drop_json(json_t **json)
{
    json_decref(*json);
}

static struct error *
read_attribute_json(const char *text, struct arena *arena,
                    struct attribute_targets *attribute_targets)
{
    json_error_t fault;
    scoped(drop_json) json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &fault);
    if (json == NULL)
        return bad_json(arena, arena_text(arena, fault.text));
    json_t *scopes = json_object_get(json, "attributeScopes"), *scope;
    if (!json_is_object(scopes))
        return bad_json(arena, "attributeScopes is missing");
    const char *key;
    json_object_foreach(scopes, key, scope)
    {
        json_t *names = json_object_get(scope, "clusterAttributes");
        if (!json_is_object(names))
            return bad_json(arena, "clusterAttributes is missing in a scope");
        struct error *err = read_json_scope(key, names, arena, attribute_targets);
        if (err != NULL)
            return err;
    }
    return NULL;
}

/* The scope's entry, made if it is not there yet. */
static API(ClusterAttributeScope) *
scope_of(API(ActiveClusters) *active, const char *scope, struct arena *arena)
{
    for (size_t i = 0; i < active->n_active_clusters_by_cluster_attribute; i++) {
        if (strcmp(active->active_clusters_by_cluster_attribute[i]->key, scope) == 0)
            return active->active_clusters_by_cluster_attribute[i]->value;
    }
    API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *entry =
        message_new(arena, API_TYPE(active_clusters__active_clusters_by_cluster_attribute_entry));
    entry->key = (char *)scope;
    entry->value = message_new(arena, API_TYPE(cluster_attribute_scope));
    active->active_clusters_by_cluster_attribute[active->n_active_clusters_by_cluster_attribute++] =
        entry;
    return entry->value;
}

/* Adds one attribute; there is room for `room` of them in any scope. False: it is there already. */
static bool
add_attribute(API(ClusterAttributeScope) *scope, const struct attribute_target *attribute_target,
              size_t room, struct arena *arena)
{
    for (size_t i = 0; i < scope->n_cluster_attributes; i++) {
        if (strcmp(scope->cluster_attributes[i]->key, attribute_target->name) == 0)
            return false;
    }
    if (scope->cluster_attributes == NULL)
        scope->cluster_attributes = arena_zalloc(arena, room, sizeof(void *));
    check(scope->n_cluster_attributes < room);
    API(ClusterAttributeScope__ClusterAttributesEntry) *entry =
        message_new(arena, API_TYPE(cluster_attribute_scope__cluster_attributes_entry));
    entry->key = (char *)attribute_target->name;
    entry->value = message_new(arena, API_TYPE(active_cluster_info));
    entry->value->active_cluster_name = (char *)attribute_target->cluster;
    scope->cluster_attributes[scope->n_cluster_attributes++] = entry;
    return true;
}

static void
sort_attributes(API(ActiveClusters) *active, struct arena *arena)
{
    wire_map_sort(arena, active->active_clusters_by_cluster_attribute,
                  &active->n_active_clusters_by_cluster_attribute);
    for (size_t i = 0; i < active->n_active_clusters_by_cluster_attribute; i++) {
        API(ClusterAttributeScope) *scope = active->active_clusters_by_cluster_attribute[i]->value;
        wire_map_sort(arena, scope->cluster_attributes, &scope->n_cluster_attributes);
    }
}

static struct error *
make_active_clusters(const struct attribute_targets *attribute_targets, struct arena *arena,
                     API(ActiveClusters) **made)
{
    if (attribute_targets->count == 0)
        return error_new(arena, ERR_BAD_REQUEST, "--active_clusters names no cluster attribute");
    API(ActiveClusters) *active = message_new(arena, API_TYPE(active_clusters));
    active->active_clusters_by_cluster_attribute =
        arena_zalloc(arena, attribute_targets->count, sizeof(void *));
    for (size_t i = 0; i < attribute_targets->count; i++) {
        const struct attribute_target *attribute_target = &attribute_targets->items[i];
        API(ClusterAttributeScope) *scope = scope_of(active, attribute_target->scope, arena);
        if (!add_attribute(scope, attribute_target, attribute_targets->count, arena))
            return error_new(arena, ERR_BAD_REQUEST,
                             "--active_clusters names the attribute %s.%s twice",
                             attribute_target->scope, attribute_target->name);
    }
    sort_attributes(active, arena);
    *made = active;
    return NULL;
}

struct error *
domain_read_active_clusters(const struct domain_flags *flags, struct arena *arena,
                            API(ActiveClusters) **active)
{
    bool has_list = flags->active_clusters.count > 0,
         has_json = flags->active_clusters_json != NULL;
    struct attribute_targets attribute_targets = {0};
    *active = NULL;
    if (!has_list && !has_json && flags->regions.count == 0)
        return NULL;
    if (has_list && has_json)
        return error_new(arena, ERR_BAD_REQUEST,
                         "--active_clusters and --active_clusters_json say the same in two forms; "
                         "give one of them");
    struct error *err = read_regions(&flags->regions, arena, &attribute_targets);
    if (err == NULL && has_list)
        err = read_attribute_list(&flags->active_clusters, arena, &attribute_targets);
    if (err == NULL && has_json)
        err = read_attribute_json(flags->active_clusters_json, arena, &attribute_targets);
    return err != NULL ? err : make_active_clusters(&attribute_targets, arena, active);
}

/* --- removing, leaving ---------------------------------------------------------------------------
 */

struct error *
domain_read_attribute(const char *flag, const char *text, struct arena *arena,
                      API(ClusterAttribute) **read)
{
    const char *dot = strchr(text, '.');
    if (dot == NULL || dot == text || dot[1] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "--%s: '%s' is not of the form scope.name, for example city.oslo, or "
                         "scope.* for all of a scope",
                         flag, text);
    *read = message_new(arena, API_TYPE(cluster_attribute));
    (*read)->scope = arena_text_of(arena, slice_of(text, (size_t)(dot - text)));
    if (strcmp(dot + 1, "*") != 0)
        (*read)->name = arena_text(arena, dot + 1);
    return NULL;
}

struct error *
domain_read_removed(const struct domain_flags *flags, struct arena *arena,
                    API(UpdateDomainRequest) *request)
{
    struct parts parts = split_all(&flags->removed_attributes, ", ", arena);
    request->is_forced = flags->is_forced;
    request->removed_attributes = arena_zalloc(arena, parts.count, sizeof(void *));
    for (size_t i = 0; i < parts.count; i++) {
        if (strcmp(parts.items[i], "all") == 0) {
            request->removes_all_attributes = true;
            continue;
        }
        struct error *err =
            domain_read_attribute("remove_attributes", parts.items[i], arena,
                                  &request->removed_attributes[request->n_removed_attributes]);
        if (err != NULL)
            return err;
        request->n_removed_attributes++;
    }
    return NULL;
}

struct error *
domain_leave(const API(Domain) *domain, const char *from, const char *to, struct arena *arena,
             API(FailoverDomainRequest) *request)
{
    const API(ActiveClusters) *active = domain->active_clusters;
    struct attribute_targets moved = {0};
    for (size_t i = 0; active != NULL && i < active->n_active_clusters_by_cluster_attribute; i++) {
        const char *scope = active->active_clusters_by_cluster_attribute[i]->key;
        const API(ClusterAttributeScope) *names =
            active->active_clusters_by_cluster_attribute[i]->value;
        for (size_t n = 0; n < names->n_cluster_attributes; n++) {
            struct attribute_target attribute_target = {scope, names->cluster_attributes[n]->key,
                                                        to};
            if (strcmp(names->cluster_attributes[n]->value->active_cluster_name, from) == 0)
                vector_push_in(&moved, arena, attribute_target);
        }
    }
    if (strcmp(domain->active_cluster_name, from) == 0)
        request->domain_active_cluster_name = (char *)to;
    else if (moved.count == 0)
        return error_new(arena, ERR_BAD_REQUEST, "nothing of domain %s is active in %s",
                         domain->name, from);
    return moved.count == 0 ? NULL : make_active_clusters(&moved, arena, &request->active_clusters);
}
