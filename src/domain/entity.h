/* entity.h - an entity: something outside that workflows of any domain may belong to (a user, a
 * city), and the region that it is in just now. Immutable, shared by counting references; the
 * functions here are pure.
 *
 * The row has a failover version of its region, which says only which of two rows is newer. Which
 * cluster may write events follows from the domain: in a domain with attributes of scope "region"
 * the entity (type, key) is the attribute of that scope and name, active where the domain's
 * attribute of the entity's region is. That attribute is never stored, since there may be 100,000
 * entities in every domain: it follows from the row and from the record of the domain, and so does
 * its failover version (docs/design/022-entities.md):
 *
 *     row version * (increment << 24) + version of the domain's region
 *
 * The remainder by the increment is that of the region's cluster, so no two clusters ever have the
 * same one; and since both versions only grow, and a region's stays below the factor, it rises
 * strictly with each change of the row and with each move of the region, in whichever order they
 * reach a cluster. */
#ifndef CADENZA_DOMAIN_ENTITY_H
#define CADENZA_DOMAIN_ENTITY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "domain/active.h"

#define ENTITY_RECORD_FORMAT 1
#define SCOPE_REGION         "region" /* of the attributes that say where a domain's regions are */
#define ENTITY_TYPE_DOMAIN   "domain" /* of the rows {domain}.{region}, made of domains' records */

struct entity {
    atomic_uint references;
    int64_t failover_version;
    int64_t last_updated_time;     /* wall clock of the primary, ns */
    uint64_t notification_version; /* of this cluster: what its newest write left */
    bool is_deleted; /* takes no new workflows; those that it has stay where they are */
    const char *type, *key, *region, *writer; /* lie behind it */
};

/* A copy of a stored row; the caller has one reference. */
struct entity *entity_from_record(const STORED(EntityRecord) *record);
/* Decodes one; the caller has one reference. Errors: ERR_CORRUPT. */
must_use struct error *entity_decode(struct slice bytes, struct arena *arena,
                                     struct entity **entity);
struct entity *entity_take(struct entity *entity);
/* Gives a reference back; the last one frees. NULL is fine. */
void entity_drop(struct entity *entity);
/* The other way round; texts are the entity's. */
STORED(EntityRecord) *entity_record(const struct entity *entity, struct arena *arena);
/* Its name, which is its key in domain caches: type and key with a NUL between them, in a place of
 * the caller's; too long a name gives an empty one. */
struct slice entity_name_into(const char *type, const char *key, char *room, size_t size);

/* Is it the version of an event of a run that belongs to an entity? And the version of the region
 * that is in it, or in any other version of a cluster. */
bool entity_is_version(int64_t version, const struct cluster_group *group);
int64_t entity_region_version(int64_t version, const struct cluster_group *group);
/* Which cluster is active for workflows of `domain` that belong to the entity; unknown if the
 * domain has no such region. */
struct active_cluster entity_active(const struct entity *entity, const struct domain *domain,
                                    const struct cluster_group *group);
/* The same for a run whose last event has the version `last_version`, -1: it has none. Where the
 * domain has no such region the run stays with the cluster that wrote that event, with the version
 * of that event: no source of entities can stop a workflow (docs/design/022-entities.md). */
struct active_cluster entity_active_run(const struct entity *entity, const struct domain *domain,
                                        int64_t last_version, const struct cluster_group *group);
/* Do runs of the domain that belong to entities of a type go where these are? It has, and had, no
 * attributes of its own with the type as their scope; and it has regions, or lost all of them: then
 * the domain itself stands in for its regions (active.h), with a version that is above theirs. */
bool domain_resolves_entities(const struct domain *domain, const char *type);
/* May new runs belong to them? It has regions now. */
bool domain_uses_entities(const struct domain *domain, const char *type);

/* --- deciding: what becomes of a row --------------------------------------------------------- */

enum entity_verb {
    ENTITY_SET,    /* it is in that region */
    ENTITY_ADD,    /* the same, if there is none; else it stays as it is */
    ENTITY_DELETE, /* of one that is not there: nothing */
};
struct entity_change {
    enum entity_verb verb;
    const char *type, *key;
    const char *region; /* of a delete: not looked at */
    const char *writer; /* "operator", "start", "watcher" */
};
struct entity_rules {
    const struct cluster_group *group;
    int64_t name_length_max;
    int64_t count, count_max; /* rows that there are, and that there may be */
    bool is_catching_up;      /* as of domains */
};
/* The row after the change, *next is NULL if it stays as it is. `current` NULL: none. Errors:
 * ERR_BAD_REQUEST (not the primary cluster, an unknown region, a bad name, no versions left),
 * ERR_SERVICE_BUSY (restored and not caught up), ERR_LIMIT_EXCEEDED (too many rows). */
must_use struct error *entity_decide(const struct entity *current,
                                     const struct entity_change *change,
                                     const struct entity_rules *rules, int64_t now,
                                     struct arena *arena, STORED(EntityRecord) **next);
/* Is a row of another cluster the newer one? Errors: ERR_BAD_REQUEST (never applicable: the version
 * is not of its region). */
must_use struct error *entity_decide_replicated(const struct entity *current,
                                                const STORED(EntityRecord) *row,
                                                const struct cluster_group *group,
                                                struct arena *arena, bool *is_newer);
/* The rows {domain}.{region} of a domain, in order of region: shown, never stored. */
size_t entity_rows_of_domain(const struct domain *domain, const struct cluster_group *group,
                             struct arena *arena, STORED(EntityRecord) ***rows);

#endif
