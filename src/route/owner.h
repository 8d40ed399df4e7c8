/* owner.h - who owns a thing, and where that is.
 *
 * In this stage a cluster is one process, so an owner lives on a loop: shard i on loop i modulo the
 * number of loops, the domains (and what goes with them: settings, the visibility feeder, the
 * coordinator of failovers) on loop 0, a task list where its hash says. When hosts join, this
 * folder learns which host; nobody else asks. */
#ifndef CADENZA_ROUTE_OWNER_H
#define CADENZA_ROUTE_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "fiber/loop.h"

enum owner_kind {
    OWNER_OF_SHARD,   /* number: of the shard */
    OWNER_OF_LIST,    /* number: a hash of the task list and partition */
    OWNER_OF_DOMAINS, /* number: 0 */
    OWNER_PLACE,      /* number: a place (route_here) that waits for an answer */
};
struct owner {
    enum owner_kind kind;
    uint64_t number;
};

static inline struct owner
owner_of_shard(uint32_t shard)
{
    return (struct owner){OWNER_OF_SHARD, shard};
}

static inline struct owner
owner_of_list(uint64_t hash)
{
    return (struct owner){OWNER_OF_LIST, hash};
}

static inline struct owner
owner_of_domains(void)
{
    return (struct owner){OWNER_OF_DOMAINS, 0};
}

/* Does the owner live where this code runs? Then what it owns may be touched. */
bool route_is_here(struct owner owner);
/* Places of this process, and a number below that for each owner: for those who keep something for
 * each place, or ask many owners and go to each place once. */
static inline unsigned
route_place_count(void)
{
    return loop_count();
}
static inline unsigned
route_place_here(void)
{
    return loop_index(loop_self());
}
unsigned route_place_of(struct owner owner);
static inline struct owner
owner_at_place(unsigned place)
{
    return (struct owner){OWNER_PLACE, place};
}
/* The place that this code runs at, for those who answer later. */
static inline struct owner
route_here(void)
{
    return owner_at_place(route_place_here());
}

/* The shard of a workflow id: its FarmHash fingerprint modulo the number of shards, as every
 * Cadence cluster has it. */
uint32_t route_shard_of(struct slice workflow_id, uint32_t shard_count);

/* The number of a task list's partition, for owner_of_list. `type`: 0 decisions, 1 activities.
 * Those of one list are side by side: a hot list uses all places. */
uint64_t route_list_hash(struct slice domain_id, struct slice name, unsigned type,
                         unsigned partition);

/* What owners of one kind in this process are reached by: the engine, matching, the domains. */
struct route_service {
    void *context; /* what serves questions and takes values */
    char apart[64];
    atomic_size_t on_the_way; /* values that were sent and not taken: none may be left at its end */
    char apart_too[64];       /* all write it: what is only read lies on no cache line with it */
};

#endif
