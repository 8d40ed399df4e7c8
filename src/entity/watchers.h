/* watchers.h - keeps rows of the entity table up to date with sources outside.
 *
 * A type of entities that has a watcher is followed by a fiber, in the primary cluster only: the
 * others get the rows by replication. A source says which entity is in which region, all of them or
 * those that changed. What cannot be fetched or read, or names a region that the group does not
 * have, changes nothing: it is counted, logged once and shown, and tried again. An entity that the
 * source no longer names is deleted if a watcher wrote its row; rows of starts and operators stay.
 */
#ifndef CADENZA_ENTITY_WATCHERS_H
#define CADENZA_ENTITY_WATCHERS_H

#include "base/log.h"
#include "base/metrics.h"
#include "domain/domains.h"
#include "entity/types.h"

struct watchers;

struct watchers_options {
    struct domains *domains;
    const struct cluster_group *group;
    const struct entity_types *types; /* outlives the watchers */
    const struct log *log;
    struct metrics *metrics;
};

/* Starts those that are to run here. On loop 0; never fails. */
struct watchers *watchers_start(const struct watchers_options *options);
/* Ends all of them. Yields; cannot be cancelled. */
void watchers_stop(struct watchers *watchers);

/* The state of one, for operators. */
struct watcher_state {
    const struct entity_type *type;
    bool is_running;      /* here: this is the primary, and the type has a watcher */
    const char *failure;  /* of the last look; "": it went well */
    uint64_t failures;    /* since the start */
    uint64_t changes;     /* rows written since the start */
    int64_t success_time; /* wall clock of the last look that went well, ns; 0: none yet */
};
/* One per type, in the arena. From any loop; yields. */
must_use struct error *watchers_list(struct watchers *watchers, struct arena *arena,
                                     struct watcher_state **states, size_t *count);

#endif
