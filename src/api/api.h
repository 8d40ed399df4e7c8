/* api.h - the public door: every RPC of clients, workers and operators, from bytes to an owner and
 * back.
 *
 * A call is decoded into its arena, checked, handed to the owner of what it is about, and answered;
 * errors leave in the form that Cadence's clients expect. One table (api.c) says which RPCs
 * there are. */
#ifndef CADENZA_API_API_H
#define CADENZA_API_API_H

#include <stdatomic.h>

#include "base/log.h"
#include "base/metrics.h"
#include "cluster/group.h"
#include "config/dynamic.h"
#include "domain/domains.h"
#include "rpc/service.h"
#include "uber/cadence/api/v1/common.pb-c.h"
#include "uber/cadence/api/v1/query.pb-c.h"
#include "wire/names.h"

/* Where the server is in its life: what health checks answer. Written by server/, read
 * everywhere. */
enum server_phase { SERVER_STARTING, SERVER_READY, SERVER_DRAINING };

/* Which calls go on to the cluster that is active for them (G-042). */
enum forward_policy {
    FORWARD_NOOP, /* none */
    FORWARD_SELECTED_APIS,
    FORWARD_SELECTED_APIS_V2,
    FORWARD_ALL_APIS,
    FORWARD_ALL_APIS_V2,
};
struct forward_options {
    enum forward_policy policy;
    const char *target; /* all APIs: only while this cluster is active; NULL or "": always */
    /* Towards each cluster of the group, in its order; NULL: plain to all. */
    struct tls *const *tls;
    /* What this cluster shows when it calls on its own behalf, in the same order; NULL: nothing. */
    const struct grpc_live_header *const *tokens;
};
/* By its name in the config; false: there is no such policy. */
must_use bool forward_policy_find(const char *name, enum forward_policy *policy);

struct access;
struct archive;
struct drains;
struct audit;
struct engine;
struct entity_types;
struct watchers;
struct matching;
struct settings;
struct visibility;
struct registry;

struct api_options {
    struct domains *domains;
    struct drains *drains; /* NULL: no progress of graceful failovers is shown */
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    struct engine *engine;
    struct matching *matching;
    struct access *access;                   /* who may do what; NULL: every call is allowed */
    struct audit *audit;                     /* what operators did; NULL: it is not kept */
    struct settings *settings;               /* NULL: dynamic settings are not changed by calls */
    struct visibility *visibility;           /* list, scan and count */
    struct registry *registry;               /* search attributes */
    struct archive *archive;                 /* NULL: there is none */
    const struct entity_types *entity_types; /* NULL: none */
    _Atomic(struct watchers *) *watchers;    /* what is in it may be NULL: they do not run yet */
    const _Atomic(enum server_phase) *phase;
    const struct log *log;   /* may be NULL */
    struct metrics *metrics; /* may be NULL */
    struct store *store;     /* for operators; NULL: they can do nothing with it */
    struct forward_options forward;
};

struct api;

/* Whether a run may be found by these: keys that exist and are not reserved, values
 * of their types, not too many, not too large. NULL: none are given. Any loop, no yield. Error:
 * ERR_BAD_REQUEST. */
struct search_rules {
    const struct registry *registry;
    const struct dynamic *dynamic;
};
must_use struct error *api_check_search_attributes(const struct search_rules *rules,
                                                   const API(SearchAttributes) *attributes,
                                                   const char *domain_name, struct arena *arena);

/* Answers a query that this process's own worker got, if its caller still waits. Yields. Errors:
 * ERR_ENTITY_NOT_EXISTS (nobody waits any more), ERR_BUSY. */
struct task;
must_use struct error *api_answer_query(struct api *api, const struct task *query,
                                        const API(WorkflowQueryResult) *result,
                                        struct arena *arena);

/* Calls another cluster of the group, which must answer itself; until the fiber's deadline.
 * *response is a message of `type` in the arena. Yields. Errors: ERR_UNAVAILABLE (also when it
 * cannot be called from here), the other side's. */
must_use struct error *api_call_cluster(struct api *api, const char *cluster_name, const char *path,
                                        const ProtobufCMessage *request, struct arena *arena,
                                        const ProtobufCMessageDescriptor *type,
                                        ProtobufCMessage **response);
/* Before a graceful failover to this cluster: does every enabled cluster of the domain answer, know
 * the same failover versions, and have no failover under way? Yields. Errors: ERR_BAD_REQUEST,
 * ERR_INTERNAL (one does not answer). */
must_use struct error *api_check_graceful(struct api *api, const char *domain_name,
                                          struct arena *arena);

/* An api with no calls yet. Called on a loop; `options` is copied, what it points to must outlive
 * the api. */
struct api *api_new(const struct api_options *options);
/* Who may see which domains in lists; NULL: everybody sees all. Before the first call. */
void api_set_access(struct api *api, struct access *access);
/* Where ListAuditRecords reads from; NULL: nowhere. Before the first call. */
void api_set_audit(struct api *api, struct audit *audit);
/* From now on calls are refused, and those that wait (polls, readers of history) end empty. Calls
 * about the server's health go on. Yields. */
void api_drain(struct api *api);
/* When the doors are closed: waits for what is still in progress, then frees everything. Yields,
 * and ignores cancel. */
void api_free(struct api *api);
/* Its methods, for rpc_service_new. */
struct rpc_table api_table(struct api *api);

#endif
