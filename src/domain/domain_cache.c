/* domain_cache.c - see domain_cache.h. */
#include "domain/domain_cache.h"

#include "base/check.h"

void
domain_cache_init(struct domain_cache *domain_cache)
{
    *domain_cache =
        (struct domain_cache){.names = tree_new(), .ids = map_new(), .entities = map_new()};
}

void
domain_cache_free(struct domain_cache *domain_cache)
{
    void *domain = NULL;
    size_t cursor = 0;
    while (map_next(domain_cache->ids, &cursor, NULL, &domain))
        domain_drop(domain);
    void *entity = NULL;
    cursor = 0;
    while (map_next(domain_cache->entities, &cursor, NULL, &entity))
        entity_drop(entity);
    entity_table_drop(domain_cache->table);
    tree_free(domain_cache->names);
    map_free(domain_cache->ids);
    map_free(domain_cache->entities);
}

#define WALK_MAX 200 /* more domains are not walked over at each change */

/* Every record that exists is found by its name, and nothing is newer than the version reached. */
void
domain_cache_check(const struct domain_cache *domain_cache)
{
    check(tree_count(domain_cache->names) <= map_count(domain_cache->ids));
    check(domain_cache->table == NULL || map_count(domain_cache->entities) > 0);
    if (!CHECK_DEEPLY || map_count(domain_cache->ids) > WALK_MAX)
        return;
    size_t cursor = 0, existing = 0;
    struct slice key;
    void *value = NULL;
    while (map_next(domain_cache->ids, &cursor, &key, &value)) {
        const struct domain *domain = value;
        bool exists = !domain_cache_is_deleted(domain);
        check(slice_equal(key, slice_text(domain->id)));
        check((uint64_t)domain->record->notification_version <= domain_cache->notification_version);
        check(!exists || domain_cache_find_name(domain_cache, domain->name) == domain);
        existing += exists;
    }
    check(tree_count(domain_cache->names) == existing);
    cursor = 0;
    while (map_next(domain_cache->entities, &cursor, NULL, &value)) {
        const struct entity *entity = value;
        check(entity->notification_version <= domain_cache->notification_version);
    }
}

bool
domain_cache_is_deleted(const struct domain *domain)
{
    return domain->record->domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
}

struct domain *
domain_cache_find_name(const struct domain_cache *domain_cache, const char *name)
{
    return tree_get(domain_cache->names, slice_text(name));
}

struct domain *
domain_cache_find_record(const struct domain_cache *domain_cache, const char *id)
{
    return map_get(domain_cache->ids, slice_text(id));
}

struct domain *
domain_cache_find_id(const struct domain_cache *domain_cache, const char *id)
{
    struct domain *domain = domain_cache_find_record(domain_cache, id);
    return domain == NULL || domain_cache_is_deleted(domain) ? NULL : domain;
}

void
domain_cache_reach(struct domain_cache *domain_cache, uint64_t notification_version)
{
    if (notification_version > domain_cache->notification_version)
        domain_cache->notification_version = notification_version;
}

static bool
is_newer(const struct domain *domain, const struct domain *other)
{
    return domain->record->notification_version > other->record->notification_version;
}

static void
take_out(struct domain_cache *domain_cache, struct domain *domain)
{
    if (domain_cache_find_name(domain_cache, domain->name) == domain)
        tree_remove(domain_cache->names, slice_text(domain->name));
    void *known = map_remove(domain_cache->ids, slice_text(domain->id));
    check(known == domain);
    domain_drop(domain);
}

void
domain_cache_enter(struct domain_cache *domain_cache, struct domain *domain)
{
    check(domain->record->notification_version > 0); /* it was stored, or is about to be */
    domain_cache_reach(domain_cache, (uint64_t)domain->record->notification_version);
    bool has_name = !domain_cache_is_deleted(domain);
    struct domain *old = domain_cache_find_record(domain_cache, domain->id);
    struct domain *namesake = has_name ? domain_cache_find_name(domain_cache, domain->name) : NULL;
    if (namesake == old)
        namesake = NULL;
    if ((old != NULL && is_newer(old, domain)) || (namesake != NULL && is_newer(namesake, domain)))
        return;
    domain_take(domain); /* it may be the one that is there */
    if (old != NULL)
        take_out(domain_cache, old);
    if (namesake != NULL)
        take_out(domain_cache, namesake);
    map_put(domain_cache->ids, slice_text(domain->id), domain);
    if (has_name)
        tree_put(domain_cache->names, slice_text(domain->name), domain);
    check(domain_cache->notification_version >= (uint64_t)domain->record->notification_version);
}

void
domain_cache_restore(struct domain_cache *domain_cache, const struct domain_cache *truth,
                     const char *id)
{
    check(domain_cache != truth);
    struct domain *wrong = domain_cache_find_record(domain_cache, id);
    struct domain *right = domain_cache_find_record(truth, id);
    if (wrong != NULL)
        take_out(domain_cache, wrong);
    if (right != NULL)
        domain_cache_enter(domain_cache, right);
}

/* --- entities --------------------------------------------------------------------------------- */

static void
forget_table(struct domain_cache *domain_cache)
{
#ifdef CADENZA_FAULT_entity_table_kept
    if (map_count(domain_cache->entities) > 0)
        return; /* fault: who asks about many entities gets the rows of an earlier moment */
#endif
    entity_table_drop(domain_cache->table);
    domain_cache->table = NULL;
}

struct entity *
domain_cache_find_entity(const struct domain_cache *domain_cache, const char *type, const char *key)
{
    char room[ENTITY_NAME_MAX];
    struct slice name = entity_name_into(type, key, room, sizeof room);
    return name.length == 0 ? NULL : map_get(domain_cache->entities, name);
}

void
domain_cache_enter_entity(struct domain_cache *domain_cache, struct entity *entity)
{
    char room[ENTITY_NAME_MAX];
    struct slice name = entity_name_into(entity->type, entity->key, room, sizeof room);
    check(name.length > 0 && entity->notification_version > 0);
    domain_cache_reach(domain_cache, entity->notification_version);
    struct entity *old = map_get(domain_cache->entities, name);
    if (old != NULL && old->notification_version > entity->notification_version)
        return;
    entity_take(entity);
    forget_table(domain_cache);
    map_put(domain_cache->entities, name, entity);
    entity_drop(old);
}

void
domain_cache_restore_entity(struct domain_cache *domain_cache, const struct domain_cache *truth,
                            const struct entity *entity)
{
    char room[ENTITY_NAME_MAX];
    struct slice name = entity_name_into(entity->type, entity->key, room, sizeof room);
    check(domain_cache != truth && name.length > 0);
    struct entity *right = map_get(truth->entities, name);
    forget_table(domain_cache);
    entity_drop(map_remove(domain_cache->entities, name));
    if (right != NULL)
        domain_cache_enter_entity(domain_cache, right);
    check(map_get(domain_cache->entities, name) == right);
}
