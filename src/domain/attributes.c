/* attributes.c - see attributes.h. Maps of decoded messages are sorted already, so that adding one
 * after the other at the end is the usual case. */
#include "domain/attributes.h"

#include <string.h>

#include "base/check.h"
#include "domain/active.h"
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
index_of(const struct attributes *attributes, const struct attribute *attribute)
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
    size_t index = index_of(attributes, &wanted);
    if (index == attributes->count || attribute_compare(&attributes->all[index], &wanted) != 0)
        return NULL;
    return &attributes->all[index];
}

bool
attribute_is_newer(const struct attribute *attribute, const struct attribute *than)
{
    check(attribute_compare(attribute, than) == 0);
#ifdef CADENZA_FAULT_failover_version_ge
    return attribute->failover_version >= than->failover_version; /* fault: applied again */
#else
    if (attribute->failover_version != than->failover_version)
        return attribute->failover_version > than->failover_version;
    return attribute->is_removed && !than->is_removed;
#endif
}

/* There is room for all of them, and they are in order, each pair of scope and name once. */
static void
attributes_check(const struct attributes *attributes)
{
    check(attributes->count <= attributes->capacity);
    for (size_t i = 1; CHECK_DEEPLY && i < attributes->count; i++)
        check(attribute_compare(&attributes->all[i - 1], &attributes->all[i]) < 0);
}

/* Puts it where it belongs; there is room. */
static void
insert(struct attributes *attributes, const struct attribute *attribute)
{
    check(attributes->count < attributes->capacity);
    size_t index = index_of(attributes, attribute);
    check(index == attributes->count || attribute_compare(&attributes->all[index], attribute) != 0);
    memmove(&attributes->all[index + 1], &attributes->all[index],
            (attributes->count - index) * sizeof *attributes->all);
    attributes->all[index] = *attribute;
    attributes->count++;
}

static void
make_room(struct attributes *attributes, size_t count, struct arena *arena)
{
    check(attributes->count <= attributes->capacity);
    if (attributes->capacity - attributes->count >= count)
        return;
    attributes->capacity = 2 * attributes->capacity + count;
    struct attribute *wider = arena_zalloc(arena, attributes->capacity, sizeof *wider);
    if (attributes->count > 0)
        memcpy(wider, attributes->all, attributes->count * sizeof *wider);
    attributes->all = wider;
}

void
attributes_add(struct attributes *attributes, const struct attribute *attribute,
               struct arena *arena)
{
    make_room(attributes, 1, arena);
    insert(attributes, attribute);
}

/* --- messages ----------------------------------------------------------------------------------
 */

bool
attributes_are_named(const API(ActiveClusters) *clusters)
{
    return clusters != NULL && (clusters->n_active_clusters_by_cluster_attribute > 0 ||
                                clusters->n_region_to_cluster > 0);
}

static size_t
count_of(const API(ActiveClusters) *clusters)
{
    size_t count = clusters->n_region_to_cluster;
    for (size_t i = 0; i < clusters->n_active_clusters_by_cluster_attribute; i++) {
        const API(ClusterAttributeScope) *scope =
            clusters->active_clusters_by_cluster_attribute[i]->value;
        count += scope == NULL ? 0 : scope->n_cluster_attributes;
    }
    return count;
}

static struct attribute
attribute_of(char *scope, char *name, const API(ActiveClusterInfo) *info)
{
    return (struct attribute){.scope = scope,
                              .name = name,
                              .cluster_name = info == NULL ? "" : info->active_cluster_name,
                              .failover_version = info == NULL ? 0 : info->failover_version};
}

static void
read_scope(struct attributes *read, const SCOPE_ENTRY *scope)
{
    for (size_t i = 0; scope->value != NULL && i < scope->value->n_cluster_attributes; i++) {
        const NAME_ENTRY *name = scope->value->cluster_attributes[i];
        struct attribute attribute = attribute_of(scope->key, name->key, name->value);
        struct attribute *known = attributes_find(read, attribute.scope, attribute.name);
        if (known != NULL) /* a sender may name one twice */
            *known = attribute;
        else
            insert(read, &attribute);
    }
}

struct attributes
attributes_read(const API(ActiveClusters) *clusters, struct arena *arena)
{
    struct attributes read = {0};
    if (clusters == NULL)
        return read;
    make_room(&read, count_of(clusters), arena);
    for (size_t i = 0; i < clusters->n_active_clusters_by_cluster_attribute; i++)
        read_scope(&read, clusters->active_clusters_by_cluster_attribute[i]);
    for (size_t i = 0; i < clusters->n_region_to_cluster; i++) {
        const API(ActiveClusters__RegionToClusterEntry) *region = clusters->region_to_cluster[i];
        struct attribute attribute = attribute_of(REGION_SCOPE, region->key, region->value);
        if (attributes_find(&read, attribute.scope, attribute.name) == NULL)
            insert(&read, &attribute);
    }
    return read;
}

struct attributes
attributes_read_all(const API(ActiveClusters) *clusters, const API(ActiveClusters) *removed,
                    struct arena *arena)
{
    struct attributes all = attributes_read(clusters, arena);
    struct attributes gone = attributes_read(removed, arena);
    make_room(&all, gone.count, arena);
    for (size_t i = 0; i < gone.count; i++) {
        gone.all[i].is_removed = true;
        if (attributes_find(&all, gone.all[i].scope, gone.all[i].name) == NULL)
            insert(&all, &gone.all[i]);
    }
    attributes_check(&all);
    return all;
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
    check(first < attributes->count);
    size_t end = first;
    while (end < attributes->count &&
           strcmp(attributes->all[end].scope, attributes->all[first].scope) == 0)
        end++;
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

/* Those that are there, or those that were. */
static struct attributes
pick(const struct attributes *attributes, bool is_removed, struct arena *arena)
{
    struct attributes picked = {0};
    make_room(&picked, attributes->count, arena);
    for (size_t i = 0; i < attributes->count; i++) {
        if (attributes->all[i].is_removed == is_removed)
            picked.all[picked.count++] = attributes->all[i];
    }
    return picked;
}

static API(ActiveClusters) *
write_all(const struct attributes *attributes, struct arena *arena)
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

API(ActiveClusters) *
attributes_write(const struct attributes *attributes, struct arena *arena)
{
    attributes_check(attributes);
    struct attributes present = pick(attributes, false, arena);
    return write_all(&present, arena);
}

API(ActiveClusters) *
attributes_write_removed(const struct attributes *attributes, struct arena *arena)
{
    attributes_check(attributes);
    struct attributes removed = pick(attributes, true, arena);
    return write_all(&removed, arena);
}
