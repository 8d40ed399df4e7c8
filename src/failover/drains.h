/* drains.h - the coordinator of graceful failovers to this cluster: for which shards each one
 * waits, and when it is over.
 *
 * It follows the domains: a drain begins and ends with their records. It is told which shards of
 * the other clusters are ready (drains_note_ready). When all are, or when its time is up, what
 * drains to here becomes active, by one change of the domain. It lives with the domains (route/),
 * and is asked from any loop. */
#ifndef CADENZA_FAILOVER_DRAINS_H
#define CADENZA_FAILOVER_DRAINS_H

#include "base/log.h"
#include "base/metrics.h"
#include "domain/domains.h"

struct drains;

struct drains_options {
    struct domains *domains;
    struct store *store; /* that of the domains */
    const struct cluster_group *group;
    const struct log *log;
    struct metrics *metrics; /* NULL: nothing is counted */
    bool is_alone;           /* no other host works on the same store */
};

/* Goes on with the drains that the domains have, and follows them. No yield. */
struct drains *drains_open(const struct drains_options *options);
/* Once, when nobody calls any more, before the domains are closed. Yields. */
void drains_close(struct drains *drains);

/* A shard of a cluster that a drain waits for has written its marker. */
struct drain_ready {
    const char *domain_id;
    const char *scope, *name; /* both "": the domain itself */
    int64_t failover_version; /* of the marker */
    const char *source_cluster;
    uint32_t source_shard, shard_count; /* of the source */
    int64_t marker_time;                /* when it was made, wall clock of the source, ns */
};
/* Is the marker waited for, or will it be once this cluster learns of the failover? No yield. */
bool drains_await(const struct drains *drains, const struct drain_ready *ready);
/* Every row before the marker of that source shard is applied. Durable when it returns; a
 * repetition changes nothing; one that no drain waits for (any longer) is dropped. When it was the
 * last one, the drain ends. From any loop. Yields. Errors: ERR_UNAVAILABLE (the version is not
 * known here yet, or no answer came: try again), the store's. */
must_use struct error *drains_note_ready(struct drains *drains, const struct drain_ready *ready,
                                         struct arena *arena);
/* The marker came, but something before it is a dead letter: `reason` says what, for people. Not
 * counted, until drains_note_ready says otherwise. As above. */
must_use struct error *drains_note_blocked(struct drains *drains, const struct drain_ready *ready,
                                           const char *reason, struct arena *arena);
/* A cluster that a drain waits for. */
struct drain_cluster {
    const char *name;
    uint32_t shard_count; /* 0: nothing has come from it, so the number is not known */
    uint32_t ready_count;
};
/* How far a drain to this cluster is. */
struct drain_progress {
    bool is_found;            /* else it does not drain to here, and the rest is not set */
    const char *scope, *name; /* both "": the domain itself */
    int64_t failover_version, start_time, end_time;
    struct drain_cluster *clusters; /* those that it waits for */
    size_t cluster_count;
    /* By the number of a shard, as Cadence counts: it is ready when it is in every cluster. */
    uint32_t shard_count; /* of the cluster that has the most; 0: no marker came yet */
    uint32_t ready_count;
    uint32_t *pending; /* those that are not */
    size_t pending_count;
    const char **missing; /* all that it lacks, for people: "east shard 3: a dead letter" */
    size_t missing_count;
};
/* From any loop. Yields. */
must_use struct error *drains_read(struct drains *drains, const char *domain_id, const char *scope,
                                   const char *name, struct arena *arena,
                                   struct drain_progress *progress);
/* All drains of a domain to this cluster, without what they lack; in the order of the record. From
 * any loop. Yields. */
must_use struct error *drains_list(struct drains *drains, const char *domain_id,
                                   struct arena *arena, struct drain_progress **all, size_t *count);

#endif
