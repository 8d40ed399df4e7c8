/* replication.h - the door for clusters: the RPCs of AdminAPI by which clusters of a group follow
 * each other. */
#ifndef CADENZA_REPLICATION_REPLICATION_H
#define CADENZA_REPLICATION_REPLICATION_H

#include "cluster/group.h"
#include "domain/domains.h"
#include "engine/engine.h"
#include "rpc/service.h"

struct replication;

struct replication_options {
    struct domains *domains;
    const struct cluster_group *group;
    struct engine *engine; /* NULL: domains only */
};

struct replication *replication_new(const struct replication_options *options);
/* Who follows the runs of the others: operators ask it to apply what was parked. */
struct runs_in;
void replication_set_runs(struct replication *replication, struct runs_in *runs);
/* Lets another cluster read a whole run from here (runs_in_push). Yields. */
must_use struct error *replication_push(struct replication *replication, const char *target,
                                        const struct run_key *key, struct arena *arena);
/* Wakes long polls, which then answer empty; for draining. */
void replication_drain(struct replication *replication);
void replication_free(struct replication *replication);
/* Its methods: GetDomainReplicationMessages, and Count, Read, Purge, MergeDLQMessages for domains.
 */
struct rpc_table replication_table(struct replication *replication);

#endif
