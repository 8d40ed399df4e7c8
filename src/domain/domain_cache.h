/* domain_cache.h - what one loop knows of the domains: by name and by id. Only files of domain/
 * include it.
 *
 * Each loop reads and writes its own cache only, so there is no lock. The domains in it are shared
 * by all loops. The last record of a deleted domain stays, by its id alone: it says that
 * messages which come late for this id have nothing left to change. */
#ifndef CADENZA_DOMAIN_DOMAIN_CACHE_H
#define CADENZA_DOMAIN_DOMAIN_CACHE_H

#include "base/map.h"
#include "base/tree.h"
#include "domain/domain.h"
#include "domain/entity.h"

/* Two names of the greatest length that a setting may allow, nearly. */
#define ENTITY_NAME_MAX 2200

struct entity_table; /* homes.c */

struct domain_cache {
    struct tree *names;   /* name → struct domain, those that exist */
    struct map *ids;      /* id → struct domain, deleted ones too; one reference each */
    struct map *entities; /* its name → struct entity, deleted ones too; one reference each */
    struct entity_table *table; /* all of them, for callers that ask about many; NULL: none did
                                 * since a row changed */
    uint64_t notification_version;
};

void domain_cache_init(struct domain_cache *domain_cache);
void domain_cache_free(struct domain_cache *domain_cache);
/* Aborts unless the invariants hold; walks over everything only where CHECK_DEEPLY says so. */
void domain_cache_check(const struct domain_cache *domain_cache);
/* Enters a record, over an older one of the same id; takes a reference. An older record than the
 * one there is left out: what arrives late changes nothing. A name that an older record of another
 * id has is taken from it: that domain was deleted, and the delete is not known here yet. */
void domain_cache_enter(struct domain_cache *domain_cache, struct domain *domain);
/* Puts the record of one id back to what `truth` has, older or none. For decisions that did not
 * become durable, the newest first. */
void domain_cache_restore(struct domain_cache *domain_cache, const struct domain_cache *truth,
                          const char *id);
/* The same two for rows of the entity table. */
void domain_cache_enter_entity(struct domain_cache *domain_cache, struct entity *entity);
void domain_cache_restore_entity(struct domain_cache *domain_cache,
                                 const struct domain_cache *truth, const struct entity *entity);
/* NULL: none; deleted ones are found. */
struct entity *domain_cache_find_entity(const struct domain_cache *domain_cache, const char *type,
                                        const char *key);
/* Gives a reference back; NULL is fine. */
void entity_table_drop(struct entity_table *table);
/* Aborts unless a cache with these entities may have that table: it has the same ones. Walks over
 * them only where CHECK_DEEPLY says so. */
void entity_table_check(const struct entity_table *table, const struct map *entities);
/* The cache knows everything up to there. */
void domain_cache_reach(struct domain_cache *domain_cache, uint64_t notification_version);
/* NULL: none that exists. */
struct domain *domain_cache_find_name(const struct domain_cache *domain_cache, const char *name);
struct domain *domain_cache_find_id(const struct domain_cache *domain_cache, const char *id);
/* The same, deleted ones too. */
struct domain *domain_cache_find_record(const struct domain_cache *domain_cache, const char *id);
/* Is it the last record of a deleted domain? */
bool domain_cache_is_deleted(const struct domain *domain);

#endif
