/* inside.h - what the handlers of api/ share. Only files of api/ include it. */
#ifndef CADENZA_API_INSIDE_H
#define CADENZA_API_INSIDE_H

#include "api/api.h"
#include "base/map.h"
#include "fiber/sync.h"
#include "route/owner.h"

#define HOLD_BUCKETS 1024

/* What belongs to one loop of the process; only that loop touches it. */
struct api_loop {
    struct list parked;         /* struct parked: calls that wait here */
    struct latch open;          /* one per parked call, and per fiber that the api must wait for */
    struct map *queriers;       /* query id → struct querier: queries that wait for an answer */
    size_t query_bytes;         /* what they take, about */
    struct grpc_client **peers; /* by cluster of the group, made at first use; NULL: none yet */
    struct map *quotas;         /* kind and domain → struct quota; NULL: none was needed yet */
    struct map *held;           /* domain id → struct hold_domain; NULL: none was held yet */
};

struct api {
    struct api_options options;
    struct route_service service; /* by which its places are asked (query/) */
    atomic_bool is_draining;
    /* How many calls wait for the end of a graceful failover, have just waited, or were sent to
     * another cluster, by hash of their workflow id (forward/hold.h). */
    atomic_uint held[HOLD_BUCKETS];
    struct api_loop *loops; /* by index of the loop */
    unsigned loop_count;
    struct quotas *quotas;
    struct forward_method *forward; /* by index of the method */
};

/* The api that a call came to. */
static inline struct api *
api_of(const struct rpc_call *call)
{
    return call->door;
}

/* --- calls that wait (parked.c) ---- */

/* A call that waits as a record, without a fiber: a poll for tasks, a wait for history. Embedded in
 * a larger record that lives in an arena of its own: the caller may go, and its call with it, while
 * matching or a shard still holds the record. Everything happens on the loop of the call. */
struct parked {
    /* Set before parked_begin. */
    struct api *api;
    struct arena *arena;
    /* The caller has gone (`call` is NULL), or the server drains: end it soon. No yield. */
    void (*hurry)(struct parked *parked);
    /* Set by parked_begin. */
    struct rpc_call *call; /* NULL: the caller has gone, or was answered */
    int64_t deadline;      /* of the call */
    struct list node;      /* in the loop's list */
};

/* Parks the call; the handler returns NULL then. In the call's fiber, which must not be cancelled:
 * that the caller has gone is reported only once. */
void parked_begin(struct parked *parked, struct rpc_call *call);
/* Answers, if the caller still waits: with the call's response, or the error. */
void parked_answer(struct parked *parked, struct error *err);
/* Ends the record, whose caller was answered or has gone. Frees it with its arena. */
void parked_end(struct parked *parked);

/* --- the caller (headers.c) ---- */

/* Who calls, as the headers say; "" where they do not. In the call's arena. */
struct caller {
    const char *name, *feature_version, *library_version;
};
struct caller api_caller(const struct rpc_call *call);
/* How the run that the caller starts is to be partitioned: pairs for start_command. */
struct caller_partition {
    const char *keys[1], *values[1];
    size_t count;
};
void api_caller_partition(const struct rpc_call *call, struct caller_partition *partition);
/* Must lists show all that was committed before the call? (Header cadenza-consistency.) */
bool api_caller_wants_committed(const struct rpc_call *call);
/* The isolation group that a worker says it is in; "": none. In the call's arena. */
const char *api_worker_group(const struct rpc_call *call);
/* Are isolation groups enabled in the domain? */
bool api_isolates(const struct api *api, const char *domain_name);
/* Does the caller understand history that comes in blobs? */
bool api_caller_reads_raw_history(const struct rpc_call *call);
/* Does such a worker answer queries from its memory? */
bool caller_answers_sticky_queries(const char *name, const char *feature_version);
/* Does such a worker answer queries that must see everything? Error:
 * ERR_CLIENT_VERSION_NOT_SUPPORTED. */
must_use struct error *caller_check_strong_queries(const struct caller *caller,
                                                   struct arena *arena);
/* What belongs to this loop (parked.c). */
struct api_loop *api_here(struct api *api);
/* Hooks of the table (rpc/service.h). api_admit: refuses while the server drains, and clients that
 * are too new. */
struct error *api_admit(struct rpc_call *call);
/* Errors that the caller does not know become what it knew before. */
struct error *api_refine(struct rpc_call *call, struct error *err);

/* --- quotas (quota.c) ---- */

/* A part of api_free. */
void quota_free(struct api *api);
/* Counts a call about a domain that exists. A poll may wait for its turn (H-028): yields. Error:
 * ERR_SERVICE_BUSY, too many of its kind came for the domain or the host (H-026). */
must_use struct error *quota_check(struct rpc_call *call, const char *domain);
/* Counts a list, scan or count of a domain; the setting has the most per second. Error:
 * ERR_SERVICE_BUSY (H-032). No yield. */
must_use struct error *quota_check_list(struct rpc_call *call, const char *domain,
                                        enum dynamic_key key);

/* The rows of the door (api.c). */
const struct rpc_method *api_methods(void);

/* --- calls that another cluster answers (forward.c, send.c) ---- */

/* Part of api_new. */
void forward_init(struct api *api);
/* Parts of api_free: the first on each loop, then the second once. */
void forward_close_here(struct api *api);
void forward_free(struct api *api);
/* Part of api_drain, on each loop: wakes the calls that wait here for the end of a graceful
 * failover; they see that the server drains and end with an error. No yield. */
void hold_hurry_here(struct api *api);
/* Part of api_free, on each loop, when no call waits any more. */
void hold_close_here(struct api *api);
/* The hook of the table: answers the call here, or where its workflow is active. Yields. */
struct error *api_serve(struct rpc_call *call, struct error *(*handle)(struct rpc_call *call));
/* May the call, about this domain, be sent on to another cluster? Not one that another cluster
 * sent, nor where the policy or the domain's setting forbids it. No yield. */
bool forward_is_allowed(const struct rpc_call *call, const struct domain *domain);
/* The other cluster's answer becomes that of the call, as it came. Yields. Errors: the other
 * cluster's, ERR_UNAVAILABLE. */
must_use struct error *forward_to(struct rpc_call *call, const char *domain_name,
                                  const char *cluster_name);
/* Does the caller ask by a feature flag that every call is answered where the workflow is active?
 */
bool api_caller_forwards(const struct rpc_call *call);
/* The isolation group of the caller, as the header of a forwarded call has it; empty: none. */
struct slice api_forwarded_partition(const struct rpc_call *call);
/* Did another cluster send the call on? */
bool api_is_forwarded(const struct rpc_call *call);
/* The header that says so, and the one with the caller's isolation group. */
#define HEADER_FORWARDED_BY "cadence-forwarding-cluster"
#define HEADER_PARTITION    "cadence-workflow-partition-config"

/* The same as api_call_cluster (api.h), with the headers of a call: its token, for one. */
must_use struct error *api_call_cluster_as_caller(struct rpc_call *call, const char *cluster_name,
                                                  const char *path, const ProtobufCMessage *request,
                                                  const ProtobufCMessageDescriptor *type,
                                                  ProtobufCMessage **response);

/* --- graceful failovers (graceful.c) ---- */

/* What a call wants to move. */
struct graceful_request {
    const char *domain_name;
    const char *active_cluster_name;       /* "": not given */
    const API(ActiveClusters) *attributes; /* NULL: not given */
    /* NULL: by force; then graceful_check and graceful_count do nothing. */
    const GOOGLE(Duration) *timeout;
};
/* May it begin, as far as the other clusters are concerned? Yields. Errors: ERR_BAD_REQUEST
 * (another cluster has to be called, or has a failover under way), ERR_INTERNAL (one does not
 * answer). */
must_use struct error *graceful_check(struct rpc_call *call,
                                      const struct graceful_request *request);
/* Counts one that began (`failure` NULL), or why it did not. */
void graceful_count(struct rpc_call *call, const struct graceful_request *request,
                    const char *failure);
/* Fills in failover_info if something drains to here. Yields; `domain` must be held. */
must_use struct error *graceful_show(struct rpc_call *call, const struct domain *domain,
                                     API(Domain) *shown);

/* --- the handlers ---- */

/* Each fills the response, or says why not (rpc/service.h). In the call's fiber; may yield. By
 * folder: */

/* workflow/: clients: what is done with runs. */
struct error *api_diagnose_workflow(struct rpc_call *call);
struct error *api_reset_workflow(struct rpc_call *call);
struct error *api_refresh_tasks(struct rpc_call *call);
struct error *api_delete_workflow(struct rpc_call *call);
struct error *api_restart_workflow(struct rpc_call *call);
struct error *api_start_workflow(struct rpc_call *call);
struct error *api_signal_with_start(struct rpc_call *call);
struct error *api_start_workflow_later(struct rpc_call *call);
struct error *api_signal_with_start_later(struct rpc_call *call);
struct error *api_signal_workflow(struct rpc_call *call);
struct error *api_request_cancel_workflow(struct rpc_call *call);
struct error *api_terminate_workflow(struct rpc_call *call);
struct error *api_describe_workflow(struct rpc_call *call);

/* history/: clients: histories. */
struct error *api_get_history(struct rpc_call *call);

/* query/: clients and workers: queries. */
struct error *api_query_workflow(struct rpc_call *call);
struct error *api_complete_query(struct rpc_call *call);

/* visibility/: clients: which runs there are. */
struct error *api_list_archived_workflows(struct rpc_call *call);
struct error *api_list_workflows(struct rpc_call *call);
struct error *api_scan_workflows(struct rpc_call *call);
struct error *api_list_open_workflows(struct rpc_call *call);
struct error *api_list_closed_workflows(struct rpc_call *call);
struct error *api_count_workflows(struct rpc_call *call);
struct error *api_rebuild_visibility(struct rpc_call *call);
struct error *api_get_search_attributes(struct rpc_call *call);
struct error *api_add_search_attribute(struct rpc_call *call);

/* schedule/: clients: schedules. */
struct error *api_create_schedule(struct rpc_call *call);
struct error *api_update_schedule(struct rpc_call *call);
struct error *api_delete_schedule(struct rpc_call *call);
struct error *api_pause_schedule(struct rpc_call *call);
struct error *api_unpause_schedule(struct rpc_call *call);
struct error *api_backfill_schedule(struct rpc_call *call);
struct error *api_describe_schedule(struct rpc_call *call);
struct error *api_list_schedules(struct rpc_call *call);

/* worker/: workers: polls and their answers; task lists. */
struct error *api_complete_activity(struct rpc_call *call);
struct error *api_complete_activity_by_id(struct rpc_call *call);
struct error *api_fail_activity(struct rpc_call *call);
struct error *api_fail_activity_by_id(struct rpc_call *call);
struct error *api_cancel_activity(struct rpc_call *call);
struct error *api_cancel_activity_by_id(struct rpc_call *call);
struct error *api_heartbeat_activity(struct rpc_call *call);
struct error *api_heartbeat_activity_by_id(struct rpc_call *call);
struct error *api_poll_decision(struct rpc_call *call);
struct error *api_poll_activity(struct rpc_call *call);
struct error *api_reset_sticky(struct rpc_call *call);
struct error *api_describe_task_list(struct rpc_call *call);
struct error *api_list_task_list_partitions(struct rpc_call *call);
struct error *api_get_task_lists_by_domain(struct rpc_call *call);
struct error *api_update_task_list_partitions(struct rpc_call *call);
struct error *api_complete_decision(struct rpc_call *call);
struct error *api_fail_decision(struct rpc_call *call);

/* domain/: domains, and isolation groups. */
struct error *api_register_domain(struct rpc_call *call);
struct error *api_describe_domain(struct rpc_call *call);
struct error *api_list_domains(struct rpc_call *call);
struct error *api_update_domain(struct rpc_call *call);
struct error *api_deprecate_domain(struct rpc_call *call);
struct error *api_failover_domain(struct rpc_call *call);
struct error *api_delete_domain(struct rpc_call *call);
struct error *api_list_failover_history(struct rpc_call *call);
struct error *api_get_async_configuration(struct rpc_call *call);
struct error *api_update_async_configuration(struct rpc_call *call);
struct error *api_get_global_groups(struct rpc_call *call);
struct error *api_update_global_groups(struct rpc_call *call);
struct error *api_get_domain_groups(struct rpc_call *call);
struct error *api_update_domain_groups(struct rpc_call *call);

/* entity/: operators and other clusters: the entity table. */
struct error *api_list_entities(struct rpc_call *call);
struct error *api_get_entity(struct rpc_call *call);
struct error *api_set_entities(struct rpc_call *call);
struct error *api_delete_entities(struct rpc_call *call);
struct error *api_list_watchers(struct rpc_call *call);

/* admin/: operators; health. */
struct error *api_admin_describe_workflow(struct rpc_call *call);
struct error *api_admin_describe_host(struct rpc_call *call);
struct error *api_admin_describe_shards(struct rpc_call *call);
struct error *api_admin_close_shard(struct rpc_call *call);
struct error *api_admin_describe_queue(struct rpc_call *call);
struct error *api_admin_maintain_corrupt(struct rpc_call *call);
struct error *api_admin_refresh_tasks(struct rpc_call *call);
struct error *api_admin_remove_task(struct rpc_call *call);
struct error *api_admin_reset_queue(struct rpc_call *call);
struct error *api_list_audit_records(struct rpc_call *call);
struct error *api_list_divergences(struct rpc_call *call);
struct error *api_describe_rebuild(struct rpc_call *call);
struct error *api_rebuild_run(struct rpc_call *call);
struct error *api_list_failing_decisions(struct rpc_call *call);
struct error *api_hot_workflows(struct rpc_call *call);
struct error *api_health(struct rpc_call *call);
struct error *api_grpc_health_check(struct rpc_call *call);
struct error *api_get_cluster_info(struct rpc_call *call);
struct error *api_describe_cluster(struct rpc_call *call);
struct error *api_backup(struct rpc_call *call);
struct error *api_get_dynamic_config(struct rpc_call *call);
struct error *api_update_dynamic_config(struct rpc_call *call);
struct error *api_restore_dynamic_config(struct rpc_call *call);
struct error *api_list_dynamic_config(struct rpc_call *call);

#endif
