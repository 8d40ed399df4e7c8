/* replication.h - the RPCs by which the clusters of a group follow each other. */
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
/* Follows the runs of the other clusters; the RPCs for dead letters need it. Set once. */
struct runs_in;
void replication_set_runs(struct replication *replication, struct runs_in *runs);
/* Lets another cluster read a whole run from here (runs_in_push). Yields. */
must_use struct error *replication_push(struct replication *replication, const char *target,
                                        const struct run_key *key, struct arena *arena);
/* Wakes long polls, which then answer empty; for draining. */
void replication_shutdown(struct replication *replication);
void replication_free(struct replication *replication);
/* Its methods; see replication.c. */
struct rpc_table replication_table(struct replication *replication);

#endif
