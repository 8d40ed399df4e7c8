/* entity.c - see entity.h. */
#include "domain/entity.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "domain/attributes.h"
#include "domain/domain_cache.h"
#include "wire/maps.h"
#include "wire/message.h"

#define REGION_BITS 24 /* moves of a region that have room below those of an entity */

/* --- one row ---------------------------------------------------------------------------------- */

static char *
put_text(char **room, const char *text)
{
    size_t size = strlen(text) + 1;
    char *put = memcpy(*room, text, size);
    *room += size;
    return put;
}

/* Rows have one of a few writers, so all entities share these texts. */
static const char *
writer_of(const char *writer)
{
    static const char *const known[] = {"operator", "start", "watcher"};
    for (size_t i = 0; i < array_length(known); i++) {
        if (strcmp(known[i], writer) == 0)
            return known[i];
    }
    return "";
}

struct entity *
entity_from_record(const STORED(EntityRecord) *record)
{
    size_t size = strlen(record->type) + strlen(record->key) + strlen(record->region) + 3;
    struct entity *entity = memory_zalloc(1, sizeof *entity + size);
    char *room = (char *)(entity + 1);
    atomic_init(&entity->references, 1);
    entity->failover_version = record->failover_version;
    entity->last_updated_time = record->last_updated_time;
    entity->notification_version = (uint64_t)record->notification_version;
    entity->is_deleted = record->is_deleted;
    entity->type = put_text(&room, record->type);
    entity->key = put_text(&room, record->key);
    entity->region = put_text(&room, record->region);
    entity->writer = writer_of(record->writer);
    check(room == (char *)(entity + 1) + size);
    return entity;
}

struct error *
entity_decode(struct slice bytes, struct arena *arena, struct entity **entity)
{
    STORED(EntityRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(entity_record), bytes, &record);
    if (err != NULL)
        return error_wrap(err, "reading an entity");
    if (record->format != ENTITY_RECORD_FORMAT || record->type[0] == '\0' || record->key[0] == '\0')
        return error_new(arena, ERR_CORRUPT, "a row of the entities has a form that is not known");
    *entity = entity_from_record(record);
    return NULL;
}

struct entity *
entity_take(struct entity *entity)
{
    unsigned before = atomic_fetch_add_explicit(&entity->references, 1, memory_order_relaxed);
    check(before > 0);
    return entity;
}

void
entity_drop(struct entity *entity)
{
    if (entity == NULL)
        return;
    unsigned before = atomic_fetch_sub_explicit(&entity->references, 1, memory_order_acq_rel);
    check(before > 0);
    if (before == 1)
        memory_free(entity);
}

STORED(EntityRecord) *
entity_record(const struct entity *entity, struct arena *arena)
{
    STORED(EntityRecord) *record = message_new(arena, STORED_TYPE(entity_record));
    record->format = ENTITY_RECORD_FORMAT;
    record->type = (char *)entity->type;
    record->key = (char *)entity->key;
    record->region = (char *)entity->region;
    record->failover_version = entity->failover_version;
    record->last_updated_time = entity->last_updated_time;
    record->is_deleted = entity->is_deleted;
    record->writer = (char *)entity->writer;
    record->notification_version = (int64_t)entity->notification_version;
    return record;
}

struct slice
entity_name_into(const char *type, const char *key, char *room, size_t size)
{
    size_t first = strlen(type) + 1, second = strlen(key);
    if (first + second > size)
        return slice_of("", 0);
    memcpy(room, type, first);
    memcpy(room + first, key, second);
    return slice_of(room, first + second);
}

/* --- where it is active ----------------------------------------------------------------------- */

static const API(ClusterAttributeScope) *
find_scope_in(const API(ActiveClusters) *clusters, const char *scope)
{
    if (clusters == NULL)
        return NULL;
    API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *entry =
        wire_map_find(clusters->active_clusters_by_cluster_attribute,
                      clusters->n_active_clusters_by_cluster_attribute, scope);
    return entry == NULL || entry->value == NULL || entry->value->n_cluster_attributes == 0
               ? NULL
               : entry->value;
}

static const API(ClusterAttributeScope) *
find_scope(const struct domain *domain, const char *scope)
{
    return find_scope_in(domain->record->domain->active_clusters, scope);
}

/* Attributes of that scope, also ones that were taken away: runs that belonged to them still do. */
static bool
has_own_scope(const struct domain *domain, const char *scope)
{
    return find_scope(domain, scope) != NULL ||
           find_scope_in(domain->record->removed_attributes, scope) != NULL;
}

bool
domain_resolves_entities(const struct domain *domain, const char *type)
{
    bool has_places = find_scope(domain, SCOPE_REGION) != NULL || !domain_is_active_active(domain);
    return has_places && !has_own_scope(domain, type);
}

bool
domain_uses_entities(const struct domain *domain, const char *type)
{
    return find_scope(domain, SCOPE_REGION) != NULL && !has_own_scope(domain, type);
}

/* False: past the end of the numbers. */
static bool
event_version(int64_t row_version, int64_t region_version, int64_t increment, int64_t *version)
{
    int64_t factor = 0;
    return !__builtin_mul_overflow(increment, (int64_t)1 << REGION_BITS, &factor) &&
           region_version < factor && !__builtin_mul_overflow(row_version, factor, version) &&
           !__builtin_add_overflow(*version, region_version, version);
}

bool
entity_is_version(int64_t version, const struct cluster_group *group)
{
    return version >= group->failover_version_increment << REGION_BITS;
}

int64_t
entity_region_version(int64_t version, const struct cluster_group *group)
{
    return version % (group->failover_version_increment << REGION_BITS);
}

struct active_cluster
entity_active(const struct entity *entity, const struct domain *domain,
              const struct cluster_group *group)
{
    const struct cluster_attribute region = {SCOPE_REGION, entity->region};
    struct active_cluster active = domain_active(domain, &region, group);
    int64_t version = -1;
    if (active.status == ACTIVE_PENDING && active.failover_version < 0)
        return active; /* after memory was lost it is not known yet */
    bool is_known = active.status != ACTIVE_UNKNOWN_ATTRIBUTE &&
                    event_version(entity->failover_version, active.failover_version,
                                  group->failover_version_increment, &version);
    if (!is_known)
        return (struct active_cluster){
            .status = ACTIVE_UNKNOWN_ATTRIBUTE, .cluster_name = "", .failover_version = -1};
    check(version % group->failover_version_increment ==
          active.failover_version % group->failover_version_increment);
#ifdef CADENZA_FAULT_entity_version_of_region
    version = active.failover_version; /* fault: the entity's own moves do not count */
#endif
    active.failover_version = version;
    return active;
}

struct active_cluster
entity_active_run(const struct entity *entity, const struct domain *domain, int64_t last_version,
                  const struct cluster_group *group)
{
    struct active_cluster active = entity_active(entity, domain, group);
    if (active.status != ACTIVE_UNKNOWN_ATTRIBUTE)
        return active;
#ifndef CADENZA_FAULT_entity_region_stops_runs /* fault: a source can stop workflows */
    const struct cluster *writer =
        last_version < 0 ? NULL : cluster_group_of_version(group, last_version);
    enum active_status here = domain->is_recovering ? ACTIVE_PENDING : ACTIVE_HERE;
    if (writer != NULL)
        active =
            (struct active_cluster){.status = writer == group->current ? here : ACTIVE_ELSEWHERE,
                                    .cluster_name = writer->name,
                                    .failover_version = last_version};
#endif
    active.is_unresolved = true;
    return active;
}

/* --- deciding --------------------------------------------------------------------------------- */

static struct error *
check_name(const char *what, const char *text, const struct entity_rules *rules,
           struct arena *arena)
{
    if (text[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "The %s of an entity may not be empty.", what);
    if ((int64_t)strlen(text) > rules->name_length_max)
        return error_new(arena, ERR_BAD_REQUEST, "The %s of an entity exceeds %lld bytes.", what,
                         (long long)rules->name_length_max);
    return NULL;
}

/* The caches have no room for longer ones. */
static bool
is_name_too_long(const char *type, const char *key)
{
    return strlen(type) + 1 + strlen(key) > ENTITY_NAME_MAX;
}

static struct error *
check_names(const struct entity_change *change, const struct entity_rules *rules,
            struct arena *arena)
{
    struct error *err = check_name("type", change->type, rules, arena);
    if (err == NULL)
        err = check_name("key", change->key, rules, arena);
    if (err == NULL && is_name_too_long(change->type, change->key))
        err = error_new(arena, ERR_BAD_REQUEST,
                        "The type and the key of an entity exceed %d bytes together.",
                        ENTITY_NAME_MAX - 1);
    if (err != NULL)
        return err;
    if (strcmp(change->type, SCOPE_REGION) == 0 || strcmp(change->type, ENTITY_TYPE_DOMAIN) == 0)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Entities of type '%s' follow from domains; use 'cadenza domain failover' "
                         "to move a region of a domain.",
                         change->type);
    return NULL;
}

static const char *
list_regions(const struct cluster_group *group, struct arena *arena)
{
    const char *list = "";
    for (size_t i = 0; i < group->region_count; i++)
        list = arena_format(arena, "%s%s%s", list, i == 0 ? "" : ", ", group->regions[i].name);
    return group->region_count == 0 ? "none" : list;
}

static struct error *
check_writer(const struct entity_rules *rules, struct arena *arena)
{
    if (!cluster_group_is_primary(rules->group))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Entities are written in the primary cluster, %s; use 'cadenza --address "
                         "%s admin entity ...'.",
                         rules->group->primary->name,
                         rules->group->primary->rpc_address == NULL
                             ? "<its address>"
                             : rules->group->primary->rpc_address);
    if (rules->is_catching_up)
        return error_new(arena, ERR_SERVICE_BUSY,
                         "This cluster lost memory (its store was restored or copied) and does not "
                         "know yet what the others know of entities, try again.");
    return NULL;
}

/* The smallest version of the region that is above `old`. */
static bool
next_version(const struct cluster_group *group, const struct region *region, int64_t old,
             int64_t *next)
{
    int64_t increment = group->failover_version_increment, unused = 0;
    int64_t candidate = old < 0 ? 0 : old - old % increment;
    if (__builtin_add_overflow(candidate, region->initial_failover_version, &candidate))
        return false;
    if (candidate <= old && __builtin_add_overflow(candidate, increment, &candidate))
        return false;
    check(candidate > old && candidate % increment == region->initial_failover_version);
    *next = candidate;
    return event_version(candidate, (increment << REGION_BITS) - 1, increment, &unused);
}

static struct error *
make_row(const struct entity *current, const struct entity_change *change, const char *region_name,
         const struct entity_rules *rules, int64_t now, struct arena *arena,
         STORED(EntityRecord) **next)
{
    const struct region *region = cluster_group_find_region(rules->group, region_name);
    if (region == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Region '%s' is not one of clusterGroupMetadata.regions: %s.", region_name,
                         list_regions(rules->group, arena));
    STORED(EntityRecord) *row = message_new(arena, STORED_TYPE(entity_record));
    row->format = ENTITY_RECORD_FORMAT;
    row->type = (char *)change->type;
    row->key = (char *)change->key;
    row->region = (char *)region->name;
    row->writer = (char *)change->writer;
    row->is_deleted = change->verb == ENTITY_DELETE;
    row->last_updated_time = now;
    int64_t old = current == NULL ? -1 : current->failover_version;
    if (!next_version(rules->group, region, old, &row->failover_version))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Entity %s of type %s has no failover version left.", change->key,
                         change->type);
    check(row->failover_version > old);
    *next = row;
    return NULL;
}

struct error *
entity_decide(const struct entity *current, const struct entity_change *change,
              const struct entity_rules *rules, int64_t now, struct arena *arena,
              STORED(EntityRecord) **next)
{
    check(rules->count >= 0);
    *next = NULL;
    struct error *err = check_writer(rules, arena);
    if (err == NULL)
        err = check_names(change, rules, arena);
    if (err != NULL)
        return err;
    bool is_there = current != NULL && !current->is_deleted;
    if (change->verb == ENTITY_DELETE)
        return is_there ? make_row(current, change, current->region, rules, now, arena, next)
                        : NULL;
    if (is_there && (change->verb == ENTITY_ADD || strcmp(current->region, change->region) == 0))
        return NULL;
    if (current == NULL && rules->count >= rules->count_max)
        return error_new(arena, ERR_LIMIT_EXCEEDED,
                         "There are %lld entities, deleted ones included, and no more than %lld "
                         "are allowed; system.entitiesMax raises that.",
                         (long long)rules->count, (long long)rules->count_max);
    return make_row(current, change, change->region, rules, now, arena, next);
}

struct error *
entity_decide_replicated(const struct entity *current, const STORED(EntityRecord) *row,
                         const struct cluster_group *group, struct arena *arena, bool *is_newer)
{
    *is_newer = false;
    if (is_name_too_long(row->type, row->key))
        return error_new(arena, ERR_BAD_REQUEST,
                         "The type and the key of an entity exceed %d bytes together.",
                         ENTITY_NAME_MAX - 1);
    const struct region *region = cluster_group_region_of_version(group, row->failover_version);
    if (row->type[0] == '\0' || row->key[0] == '\0' || region == NULL ||
        strcmp(region->name, row->region) != 0)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Entity %s of type %s: version %lld does not belong to region '%s'; do "
                         "all clusters of the group have the same clusterGroupMetadata?",
                         row->key, row->type, (long long)row->failover_version, row->region);
    *is_newer = current == NULL || row->failover_version > current->failover_version;
#ifdef CADENZA_FAULT_entity_row_last_wins
    *is_newer = true; /* fault: what comes last counts, however old it is */
#endif
    return NULL;
}

/* --- rows that domains make ------------------------------------------------------------------- */

/* Its mapping as the seed's table shows it: the region of the cluster, in the round of the
 * attribute's version. */
static STORED(EntityRecord) *
row_of_region(const struct domain *domain, const char *name, const API(ActiveClusterInfo) *info,
              const struct cluster_group *group, struct arena *arena)
{
    const struct cluster *cluster = cluster_group_find(group, info->active_cluster_name);
    const char *region_name = cluster == NULL || cluster->region == NULL ? "" : cluster->region;
    const struct region *region = cluster_group_find_region(group, region_name);
    int64_t increment = group->failover_version_increment;
    STORED(EntityRecord) *row = message_new(arena, STORED_TYPE(entity_record));
    row->format = ENTITY_RECORD_FORMAT;
    row->type = ENTITY_TYPE_DOMAIN;
    row->key = arena_format(arena, "%s.%s", domain->name, name);
    row->region = (char *)region_name;
    row->failover_version = info->failover_version - info->failover_version % increment;
    row->failover_version += region == NULL ? 0 : region->initial_failover_version;
    row->last_updated_time = domain->record->last_updated_time;
    row->writer = "domain";
    return row;
}

size_t
entity_rows_of_domain(const struct domain *domain, const struct cluster_group *group,
                      struct arena *arena, STORED(EntityRecord) ***rows)
{
    const API(ClusterAttributeScope) *scope = find_scope(domain, SCOPE_REGION);
    size_t count = scope == NULL ? 0 : scope->n_cluster_attributes;
    *rows = arena_zalloc(arena, count, sizeof(STORED(EntityRecord) *));
    for (size_t i = 0; i < count; i++) {
        const API(ClusterAttributeScope__ClusterAttributesEntry) *entry =
            scope->cluster_attributes[i];
        (*rows)[i] = row_of_region(domain, entry->key, entry->value, group, arena);
    }
    return count;
}
