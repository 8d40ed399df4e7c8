/* attributes.c - see attributes.h. Maps of decoded messages are sorted already, so that adding one
 * after the other at the end is the usual case. */
#include "domain/attributes.h"

#include <string.h>

#include "base/check.h"
#include "wire/message.h"

#define SCOPE_ENTRY      API(ActiveClusters__ActiveClustersByClusterAttributeEntry)
#define SCOPE_ENTRY_TYPE API_TYPE(active_clusters__active_clusters_by_cluster_attribute_entry)
#define NAME_ENTRY       API(ClusterAttributeScope__ClusterAttributesEntry)
#define NAME_ENTRY_TYPE  API_TYPE(cluster_attribute_scope__cluster_attributes_entry)

int
attribute_compare(const struct attribute *one, const struct attribute *other)
{
    int order = strcmp(one->scope, other->scope);
    return order != 0 ? order : strcmp(one->name, other->name);
}

/* Where it stands, or would stand. */
static size_t
place_of(const struct attributes *attributes, const struct attribute *attribute)
{
    size_t low = 0, high = attributes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (attribute_compare(&attributes->all[middle], attribute) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct attribute *
attributes_find(const struct attributes *attributes, const char *scope, const char *name)
{
    check(scope != NULL && name != NULL);
    struct attribute wanted = {.scope = (char *)scope, .name = (char *)name};
    size_t place = place_of(attributes, &wanted);
    if (place == attributes->count || attribute_compare(&attributes->all[place], &wanted) != 0)
        return NULL;
    return &attributes->all[place];
}

/* Puts it where it belongs; there is room. */
static void
insert(struct attributes *attributes, const struct attribute *attribute)
{
    size_t place = place_of(attributes, attribute);
    check(place == attributes->count || attribute_compare(&attributes->all[place], attribute) != 0);
    memmove(&attributes->all[place + 1], &attributes->all[place],
            (attributes->count - place) * sizeof *attributes->all);
    attributes->all[place] = *attribute;
    attributes->count++;
}

void
attributes_add(struct attributes *attributes, const struct attribute *attribute,
               struct arena *arena)
{
    struct attribute *wider = arena_zalloc(arena, attributes->count + 1, sizeof *wider);
    if (attributes->count > 0)
        memcpy(wider, attributes->all, attributes->count * sizeof *wider);
    attributes->all = wider;
    insert(attributes, attribute);
}

struct attributes
attributes_read(const API(ActiveClusters) *clusters, struct arena *arena)
{
    struct attributes read = {0};
    size_t scope_count = clusters == NULL ? 0 : clusters->n_active_clusters_by_cluster_attribute;
    size_t count = 0;
    for (size_t i = 0; i < scope_count; i++) {
        const API(ClusterAttributeScope) *scope =
            clusters->active_clusters_by_cluster_attribute[i]->value;
        count += scope == NULL ? 0 : scope->n_cluster_attributes;
    }
    read.all = arena_zalloc(arena, count, sizeof *read.all);
    for (size_t i = 0; i < scope_count; i++) {
        const SCOPE_ENTRY *entry = clusters->active_clusters_by_cluster_attribute[i];
        for (size_t j = 0; entry->value != NULL && j < entry->value->n_cluster_attributes; j++) {
            const NAME_ENTRY *name = entry->value->cluster_attributes[j];
            struct attribute attribute = {.scope = entry->key, .name = name->key};
            attribute.cluster_name = name->value == NULL ? "" : name->value->active_cluster_name;
            attribute.failover_version = name->value == NULL ? 0 : name->value->failover_version;
            insert(&read, &attribute);
        }
    }
    check(read.count == count);
    return read;
}

static NAME_ENTRY *
write_name(const struct attribute *attribute, struct arena *arena)
{
    NAME_ENTRY *entry = message_new(arena, NAME_ENTRY_TYPE);
    entry->key = attribute->name;
    entry->value = message_new(arena, API_TYPE(active_cluster_info));
    entry->value->active_cluster_name = attribute->cluster_name;
    entry->value->failover_version = attribute->failover_version;
    return entry;
}

/* The scope that begins at `first`; *next is where the following one does. */
static SCOPE_ENTRY *
write_scope(const struct attributes *attributes, size_t first, struct arena *arena, size_t *next)
{
    size_t end = first;
    while (end < attributes->count &&
           strcmp(attributes->all[end].scope, attributes->all[first].scope) == 0)
        end++;
    check(end > first);
    SCOPE_ENTRY *entry = message_new(arena, SCOPE_ENTRY_TYPE);
    entry->key = attributes->all[first].scope;
    entry->value = message_new(arena, API_TYPE(cluster_attribute_scope));
    entry->value->n_cluster_attributes = end - first;
    entry->value->cluster_attributes = arena_zalloc(arena, end - first, sizeof(NAME_ENTRY *));
    for (size_t i = first; i < end; i++)
        entry->value->cluster_attributes[i - first] = write_name(&attributes->all[i], arena);
    *next = end;
    return entry;
}

API(ActiveClusters) *
attributes_write(const struct attributes *attributes, struct arena *arena)
{
    if (attributes->count == 0)
        return NULL;
    API(ActiveClusters) *clusters = message_new(arena, API_TYPE(active_clusters));
    clusters->active_clusters_by_cluster_attribute =
        arena_zalloc(arena, attributes->count, sizeof(SCOPE_ENTRY *)); /* at least one per scope */
    for (size_t i = 0; i < attributes->count;)
        clusters->active_clusters_by_cluster_attribute
            [clusters->n_active_clusters_by_cluster_attribute++] =
            write_scope(attributes, i, arena, &i);
    return clusters;
}
