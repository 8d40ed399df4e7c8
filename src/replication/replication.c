/* replication.c - the table of RPCs for other clusters. See replication.h. */
#include "replication/replication.h"

#include "base/check.h"
#include "base/memory.h"
#include "replication/inside.h"
#include "replication/peer_settings.h"

#define ADMIN_PATH(name) "/uber.cadence.admin.v1.AdminAPI/" name
#define OWN_PATH(name)   "/cadenza.admin.v1." name

/* Cross-cluster queues, which Cadence has given up: they are always empty (E-078). */
static struct error *
answer_nothing(struct rpc_call *call)
{
    return NULL;
}

/* The columns are those of rpc/method.h: path, handler, permission, quota and whether the task list
 * has one, forwarding, holding, auditing, owner. */
static const struct rpc_method methods[] = {
    RPC_METHOD(ADMIN_PATH("GetDomainReplicationMessages"), replication_get_domain_messages, ADMIN,
               NONE, UNRATED, NEVER, UNHELD, UNAUDITED, NONE),
    RPC_METHOD(ADMIN_PATH("GetReplicationMessages"), replication_get_messages, ADMIN, NONE, UNRATED,
               NEVER, UNHELD, UNAUDITED, NONE),
    RPC_METHOD(ADMIN_PATH("GetWorkflowExecutionRawHistoryV2"), replication_get_raw_history, ADMIN,
               NONE, UNRATED, NEVER, UNHELD, UNAUDITED, WORKFLOW),
    RPC_METHOD(ADMIN_PATH("GetDLQReplicationMessages"), replication_get_dlq_messages, ADMIN, NONE,
               UNRATED, NEVER, UNHELD, UNAUDITED, NONE),
    RPC_METHOD(ADMIN_PATH("ResendReplicationTasks"), replication_resend, ADMIN, NONE, UNRATED,
               NEVER, UNHELD, AUDITED, WORKFLOW),
    RPC_METHOD(ADMIN_PATH("ReapplyEvents"), replication_reapply_events, ADMIN, NONE, UNRATED, NEVER,
               UNHELD, UNAUDITED, WORKFLOW),
    RPC_METHOD(ADMIN_PATH("GetCrossClusterTasks"), answer_nothing, ADMIN, NONE, UNRATED, NEVER,
               UNHELD, UNAUDITED, NONE),
    RPC_METHOD(ADMIN_PATH("RespondCrossClusterTasksCompleted"), answer_nothing, ADMIN, NONE,
               UNRATED, NEVER, UNHELD, UNAUDITED, SHARD),
    RPC_METHOD(ADMIN_PATH("CountDLQMessages"), replication_count_dlq, ADMIN, NONE, UNRATED, NEVER,
               UNHELD, UNAUDITED, NONE),
    RPC_METHOD(ADMIN_PATH("ReadDLQMessages"), replication_read_dlq, ADMIN, NONE, UNRATED, NEVER,
               UNHELD, UNAUDITED, SHARD),
    RPC_METHOD(ADMIN_PATH("PurgeDLQMessages"), replication_purge_dlq, ADMIN, NONE, UNRATED, NEVER,
               UNHELD, AUDITED, SHARD),
    RPC_METHOD(ADMIN_PATH("MergeDLQMessages"), replication_merge_dlq, ADMIN, NONE, UNRATED, NEVER,
               UNHELD, AUDITED, SHARD),
    RPC_METHOD(OWN_PATH("ReplicationAPI/DescribePeers"), replication_describe_peers, ADMIN, NONE,
               UNRATED, NEVER, UNHELD, UNAUDITED, NONE),
    RPC_METHOD(OWN_PATH("ReplicationAPI/RunErrand"), replication_run_cross_task, ADMIN, NONE,
               UNRATED, NEVER, UNHELD, UNAUDITED, WORKFLOW),
    RPC_METHOD(OWN_PATH("ReplicationAPI/ListRuns"), replication_list_runs, ADMIN, NONE, UNRATED,
               NEVER, UNHELD, UNAUDITED, SHARD),
    {NULL},
};

struct replication *
replication_new(const struct replication_options *options)
{
    check(options->domains != NULL && options->group != NULL);
    struct replication *replication = memory_zalloc(1, sizeof *replication);
    replication->options = *options;
    replication->arena = arena_new(0);
    replication->settings = group_settings_encode(options->group, replication->arena);
    return replication;
}

void
replication_set_runs(struct replication *replication, struct runs_in *runs)
{
    check(atomic_load(&replication->runs) == NULL);
    atomic_store(&replication->runs, runs);
}

void
replication_shutdown(struct replication *replication)
{
    check(!atomic_load(&replication->is_shutting_down));
    atomic_store(&replication->is_shutting_down, true);
    domains_end_waits(replication->options.domains);
}

void
replication_free(struct replication *replication)
{
    arena_free(replication->arena);
    memory_free(replication);
}

struct rpc_table
replication_table(struct replication *replication)
{
    return (struct rpc_table){.methods = methods, .door = replication};
}
