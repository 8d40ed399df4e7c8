/* homes.c - see homes.h.
 *
 * The rows are found by an open table of pointers, twice as large as there are rows. It is made
 * at the first request and kept in the loop's cache, which drops it with the next row that changes;
 * each asker has a reference. */
#include "domain/homes.h"

#include "base/check.h"
#include "base/memory.h"
#include "domain/owner/inside.h"
#include "route/owner.h"

#define WALK_MAX 4096 /* larger tables are not walked over */

/* --- the rows of a cache at one moment ---- */

struct entity_table {
    atomic_uint references;
    size_t mask; /* slots are a power of two */
    struct entity *slots[];
};

static size_t
slot_of(const struct entity_table *table, struct slice name)
{
    return (size_t)map_hash(name) & table->mask;
}

void
entity_table_check(const struct entity_table *table, const struct map *entities)
{
    size_t cursor = 0;
    struct slice name;
    void *entity = NULL;
    check(table->references > 0);
    check((table->mask & (table->mask + 1)) == 0); /* slots are a power of two */
    check(map_count(entities) <= table->mask);     /* a slot is free: searches end */
    bool may_walk = CHECK_DEEPLY && map_count(entities) <= WALK_MAX;
    while (may_walk && map_next(entities, &cursor, &name, &entity)) {
        size_t slot = slot_of(table, name);
        while (table->slots[slot] != entity && table->slots[slot] != NULL)
            slot = (slot + 1) & table->mask;
        check(table->slots[slot] == entity);
    }
}

static struct entity_table *
table_new(const struct domain_cache *domain_cache)
{
    size_t size = 2, cursor = 0;
    while (size < 2 * map_count(domain_cache->entities))
        size *= 2;
    struct entity_table *table = memory_zalloc(1, sizeof *table + size * sizeof(struct entity *));
    atomic_init(&table->references, 1);
    table->mask = size - 1;
    struct slice name;
    void *entity = NULL;
    while (map_next(domain_cache->entities, &cursor, &name, &entity)) {
        size_t slot = slot_of(table, name);
        while (table->slots[slot] != NULL)
            slot = (slot + 1) & table->mask;
        table->slots[slot] = entity_take(entity);
    }
    entity_table_check(table, domain_cache->entities);
    return table;
}

void
entity_table_drop(struct entity_table *table)
{
    if (table == NULL)
        return;
    unsigned before = atomic_fetch_sub(&table->references, 1);
    check(before > 0);
    if (before > 1)
        return;
    for (size_t i = 0; i <= table->mask; i++)
        entity_drop(table->slots[i]);
    memory_free(table);
}

static struct entity_table *
table_take(struct domain_cache *domain_cache)
{
    if (map_count(domain_cache->entities) == 0)
        return NULL;
    if (domain_cache->table == NULL)
        domain_cache->table = table_new(domain_cache);
    entity_table_check(domain_cache->table, domain_cache->entities);
    atomic_fetch_add(&domain_cache->table->references, 1);
    return domain_cache->table;
}

/* `name` is the entity's name of both. */
static const struct entity *
table_find(const struct entity_table *table, struct slice name, const char *type, const char *key)
{
    if (table == NULL || name.length == 0)
        return NULL;
    for (size_t slot = slot_of(table, name); table->slots[slot] != NULL;
         slot = (slot + 1) & table->mask) {
        const struct entity *entity = table->slots[slot];
        if (strcmp(entity->key, key) == 0 && strcmp(entity->type, type) == 0)
            return entity;
    }
    return NULL;
}

/* --- homes ---- */

struct homes {
    struct domain *domain;
    const struct cluster_group *group;
    struct entity_table *table; /* NULL: there are no rows */
};

struct homes *
homes_new(struct domains *domains, struct domain *domain)
{
    struct homes *homes = memory_zalloc(1, sizeof *homes);
    *homes = (struct homes){.domain = domain_take(domain),
                            .group = domains->options.group,
                            .table = table_take(&domains->domain_caches[route_place_here()])};
    return homes;
}

void
homes_drop(struct homes *homes)
{
    if (homes == NULL)
        return;
    entity_table_drop(homes->table);
    domain_drop(homes->domain);
    memory_free(homes);
}

/* An attribute as texts, in a place of the caller's. */
struct named {
    char room[ENTITY_NAME_MAX + 2];
    struct cluster_attribute attribute;
    struct slice name; /* the entity's */
};

/* False: longer than any that there may be. */
static bool
read_names(struct slice scope, struct slice name, struct named *named)
{
    if (scope.length == 0 || scope.length + 1 + name.length > ENTITY_NAME_MAX)
        return false;
    char *second = named->room + scope.length + 1;
    memcpy(named->room, scope.data, scope.length);
    second[-1] = '\0';
    if (name.length > 0)
        memcpy(second, name.data, name.length);
    second[name.length] = '\0';
    named->attribute = (struct cluster_attribute){named->room, second};
    named->name = slice_of(named->room, scope.length + 1 + name.length);
    return true;
}

static bool
is_followed(const struct homes *homes, const struct named *named)
{
    return strcmp(named->attribute.scope, SCOPE_REGION) != 0 &&
           domain_resolves_entities(homes->domain, named->attribute.scope);
}

static const struct entity *
find_entity(const struct homes *homes, const struct named *named)
{
    return table_find(homes->table, named->name, named->attribute.scope, named->attribute.name);
}

const char *
homes_find(const struct homes *homes, struct slice scope, struct slice name)
{
    struct named named;
    if (!read_names(scope, name, &named))
        return "";
    if (!is_followed(homes, &named))
        return domain_active(homes->domain, &named.attribute, homes->group).cluster_name;
    const struct entity *entity = find_entity(homes, &named);
    return entity == NULL ? "" : entity_active(entity, homes->domain, homes->group).cluster_name;
}

const char *
homes_find_region(const struct homes *homes, struct slice scope, struct slice name)
{
    struct named named;
    bool is_entity = read_names(scope, name, &named) && is_followed(homes, &named);
    const struct entity *entity = is_entity ? find_entity(homes, &named) : NULL;
    return entity == NULL ? NULL : entity->region;
}

bool
homes_is_unknown(const struct homes *homes, struct slice scope, struct slice name)
{
    struct named named;
    if (!read_names(scope, name, &named) || !is_followed(homes, &named))
        return false;
    const struct entity *entity = find_entity(homes, &named);
    return entity == NULL ||
           entity_active(entity, homes->domain, homes->group).status == ACTIVE_UNKNOWN_ATTRIBUTE;
}
