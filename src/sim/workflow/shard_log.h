/* shard_log.h - looks at every commit of a cluster as it becomes durable, and checks that shards
 * follow the domains.
 *
 *   1. The notification version of the domains grows by one.
 *   2. What a shard has handled only grows, and is never ahead of the domains.
 *   3. With each version that a shard has handled stands the number of failovers up to there:
 *      each was handled once, none was left out.
 *   4. An event has the failover version that its domain had at the version that its shard had
 *      handled last, and was active here then: none was decided on an older one. But what was
 *      taken before and is handed over has the version that it was taken under.
 *
 * All workflows are in one domain, and none is reset (a reset copies events). */
#ifndef CADENZA_SIM_WORKFLOW_SHARD_LOG_H
#define CADENZA_SIM_WORKFLOW_SHARD_LOG_H

#include "sim/world/sim.h"
#include "sim/world/verdict.h"

#define SHARD_LOG_VERSIONS 2048

struct shard_log {
    struct verdict *verdict;
    const char *domain_name, *cluster_name; /* of the workflows; where they run */
    uint64_t newest;                        /* notification version of the domains */
    struct shard_log_state {                /* after each version */
        int64_t failover_version;
        bool is_here;
        uint64_t failovers; /* of all domains so far */
    } states[SHARD_LOG_VERSIONS];
    struct {
        uint64_t handled;
        uint64_t events;
    } shards[SIM_SHARDS];
};

/* Watches the store. `log` is zero but for its names and verdict, and outlives the base. */
void shard_log_watch(struct shard_log *log, struct memory_base *base);
/* Has every shard handled everything? */
bool shard_log_is_level(const struct shard_log *log);

#endif
