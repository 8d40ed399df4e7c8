/* inside.h - what the RPCs for other clusters share. Only files of replication/ include it. */
#ifndef CADENZA_REPLICATION_INSIDE_H
#define CADENZA_REPLICATION_INSIDE_H

#include <stdatomic.h>

#include "replication/replication.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

struct replication {
    struct replication_options options;
    atomic_bool is_shutting_down;   /* calls that wait return */
    _Atomic(struct runs_in *) runs; /* NULL: no cluster is followed yet */
    struct arena *arena;
    struct slice settings; /* the group settings that followers get (peer_settings.h), in `arena` */
};

static inline struct replication *
replication_of(const struct rpc_call *call)
{
    return call->door;
}

/* `name` must be another cluster of the group. Errors: ERR_BAD_REQUEST. */
must_use struct error *replication_check_peer(const struct cluster_group *group, const char *name,
                                              struct arena *arena);

/* What a cluster that lost memory had sent before may be waiting here, and nobody else has it: only
 * when it is applied are the runs here all that this cluster knows of it. Yields. Errors:
 * ERR_UNAVAILABLE (it is not yet). */
must_use struct error *replication_check_applied(struct replication *replication,
                                                 const struct cluster *cluster, bool is_all,
                                                 struct arena *arena);

/* Until when a call for rows may wait for the first of them. */
int64_t replication_wait_until(int64_t call_deadline);

/* The RPCs; see rpc/service.h. */
struct error *replication_get_domain_messages(struct rpc_call *call);
struct error *replication_get_messages(struct rpc_call *call);
struct error *replication_get_raw_history(struct rpc_call *call);
struct error *replication_get_dlq_messages(struct rpc_call *call);
struct error *replication_resend(struct rpc_call *call);
struct error *replication_reapply_events(struct rpc_call *call);
struct error *replication_run_cross_task(struct rpc_call *call);
struct error *replication_count_dlq(struct rpc_call *call);
struct error *replication_read_dlq(struct rpc_call *call);
struct error *replication_purge_dlq(struct rpc_call *call);
struct error *replication_merge_dlq(struct rpc_call *call);
struct error *replication_describe_peers(struct rpc_call *call);
struct error *replication_list_runs(struct rpc_call *call);

/* The same calls for messages about runs (runs_dlq.c); the count adds its entries. */
struct error *runs_dlq_count(struct rpc_call *call);
struct error *runs_dlq_read(struct rpc_call *call);
struct error *runs_dlq_purge(struct rpc_call *call);
struct error *runs_dlq_merge(struct rpc_call *call);

#endif
