/* inside.h - the door for clusters from inside. Only files of replication/ include it. */
#ifndef CADENZA_REPLICATION_INSIDE_H
#define CADENZA_REPLICATION_INSIDE_H

#include "replication/replication.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

struct replication {
    struct replication_options options;
};

static inline struct replication *
replication_of(const struct rpc_call *call)
{
    return call->door;
}

/* The RPCs; see rpc/service.h. */
struct error *replication_get_domain_messages(struct rpc_call *call);
struct error *replication_count_dlq(struct rpc_call *call);
struct error *replication_read_dlq(struct rpc_call *call);
struct error *replication_purge_dlq(struct rpc_call *call);
struct error *replication_merge_dlq(struct rpc_call *call);

#endif
