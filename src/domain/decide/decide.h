/* decide.h - what becomes of a domain when a client, an operator or another cluster changes it:
 * pure, no I/O, no clock, no yield.
 *
 * (the record now, the request, the rules, the moment) → the record afterwards, or a refusal in
 * Cadence's words. The owner (domains.h) stores it; nothing here knows how. */
#ifndef CADENZA_DOMAIN_DECIDE_DECIDE_H
#define CADENZA_DOMAIN_DECIDE_DECIDE_H

#include <stdbool.h>

#include "base/uuid.h"
#include "cluster/group.h"
#include "domain/archival.h"
#include "domain/drain.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"

/* The settings that deciding depends on, read before. */
struct domain_rules {
    const struct cluster_group *group;
    int64_t retention_days_min;
    int64_t retention_days_max;
    int64_t name_length_max;
    int64_t attributes_max; /* cluster attributes of one domain */
    int64_t bad_binaries_max;
    const char *const *required_data_keys; /* NULL-terminated */
    int64_t cool_down;            /* between two changes of one global domain, ns; 0: none */
    int64_t failover_timeout_max; /* of a graceful failover, seconds */
    bool is_locked_down;          /* no failovers now */
    bool is_catching_up;          /* it lost memory: the group may know newer global domains */
    bool is_admin_protected;
    const char *admin_token;
    struct archival_rule history_archival, visibility_archival;
};

/* What changes from one decision to the next. */
struct domain_moment {
    int64_t now;                   /* wall, ns */
    struct uuid fresh;             /* a new id (version 7) */
    uint64_t notification_version; /* of the cluster, before this change */
};

/* What was decided. The owner sets next->notification_version and stores all of it in one commit.
 */
struct domain_decision {
    enum {
        DOMAIN_UNCHANGED,
        DOMAIN_CREATED,
        DOMAIN_UPDATED,
        DOMAIN_DELETED,
        ENTITIES_CHANGED
    } what;
    STORED(DomainRecord) *next; /* afterwards; deleted: the last record, with status DELETED;
                                 * unchanged: NULL */
    STORED(FailoverRecord)
    *failover;         /* to be entered in the domain's history; NULL: none. Also with unchanged: a
                        * replicated failover that was superseded before it arrived. Points only
                        * into the arena */
    bool is_recovered; /* this cluster knows again what the others know of the domain */
    STORED(EntityRecord) **entities; /* ENTITIES_CHANGED: the rows afterwards, and no domain */
    size_t entity_count;
};

/* Requests of clients. `current` is the domain that has the request's name, NULL: none. Results are
 * in `arena` and may point into `current` and the request. Errors: ERR_BAD_REQUEST,
 * ERR_DOMAIN_ALREADY_EXISTS, ERR_ENTITY_NOT_EXISTS, ERR_SERVICE_BUSY (within the cool-down; or
 * restored and not caught up). */
#define DOMAIN_DECIDER(verb, Request)                                                              \
    must_use struct error *domain_decide_##verb(                                                   \
        const struct domain *current, const API(Request) *request,                                 \
        const struct domain_rules *rules, const struct domain_moment *moment, struct arena *arena, \
        struct domain_decision *decision)
DOMAIN_DECIDER(register, RegisterDomainRequest);
DOMAIN_DECIDER(update, UpdateDomainRequest);
DOMAIN_DECIDER(failover, FailoverDomainRequest);
DOMAIN_DECIDER(deprecate, DeprecateDomainRequest);
DOMAIN_DECIDER(delete, DeleteDomainRequest);
#undef DOMAIN_DECIDER
/* Of operators: whether the domain takes asynchronous requests, and where they are queued; a
 * request without a configuration removes the one that the domain has. */
must_use struct error *
domain_decide_async(const struct domain *current,
                    const ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *request,
                    const struct domain_rules *rules, const struct domain_moment *moment,
                    struct arena *arena, struct domain_decision *decision);
/* Of operators: replaces the domain's isolation groups. */
must_use struct error *
domain_decide_isolation(const struct domain *current,
                        const ADMIN(UpdateDomainIsolationGroupsRequest) *request,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, struct domain_decision *decision);

/* A graceful failover to this cluster is over: all shards of its source are ready, or it is time.
 * What was pending is active; nothing changes if it is no longer pending, or with another version.
 */
must_use struct error *domain_decide_drained(const struct domain *current,
                                             const struct drain_end *end,
                                             const struct domain_rules *rules,
                                             const struct domain_moment *moment,
                                             struct arena *arena, struct domain_decision *decision);

/* This cluster lost memory and knows again what all others know (design/031). What is active here,
 * the domain itself or attributes of it, takes a version above all that this cluster had and that
 * was heard. Nothing moves: a failover that is made elsewhere at the same time wins over the
 * domain's. Errors: ERR_BAD_REQUEST (no version is left). */
must_use struct error *
domain_decide_recovered(const struct domain *current, const struct heard_versions *heard,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, struct domain_decision *decision);

/* Something else ended a drain: its entry in the history says how, and nothing else changes. */
void domain_decide_report(const struct domain *current, STORED(FailoverRecord) *failover,
                          const struct domain_moment *moment, struct arena *arena,
                          struct domain_decision *decision);

/* A message of another cluster's domain replication. It may come twice, late, or out of order, and
 * the result is the same: the config part counts if its config version is newer, the
 * active cluster if the failover version is newer, each attribute if that attribute's version is
 * newer; a failover that is older than the record is entered in the history as superseded. A
 * message about a domain that does not list this cluster is applied like any other: the record is
 * everywhere, only runs are not. `by_name` and `by_id` are what this cluster has (NULL: none). If
 * `by_id` is the last record of a deleted domain (status DELETED), nothing brings it back; an owner
 * that keeps no such records makes a new domain of a failover that comes after the delete. The
 * delete of an id that is not known leaves such a record too; the name may be another domain's and
 * is left alone. Errors:
 * ERR_BAD_REQUEST when it can never be applied (the name belongs to another id, a version belongs
 * to another cluster, fields are missing): it becomes a dead letter and is not retried. */
must_use struct error *
domain_decide_replicated(const struct domain *by_name, const struct domain *by_id,
                         const ADMIN(DomainTaskAttributes) *task, const char *source,
                         const struct domain_rules *rules, const struct domain_moment *moment,
                         struct arena *arena, struct domain_decision *decision);

/* Archival of history or visibility: whether it is on, and where to. Once there is a URI it stays.
 */
struct archival {
    int status; /* ARCHIVAL_STATUS_*; 0 in a request: not given */
    const char *uri;
};
/* The state after a request. Errors: ERR_BAD_REQUEST (another URI than the one it has; enabled
 * without any). */
must_use struct error *archival_next(struct archival now, struct archival request,
                                     struct arena *arena, struct archival *next);

#endif
