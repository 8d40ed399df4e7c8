/* domains.h - the owner of all domains: decides changes in order, makes them durable and sends them
 * to every loop.
 *
 * The owner lives on loop 0 (route/). A change is decided on the newest state, adopted in memory
 * and submitted without a yield in between; the answer waits until it is durable and every loop
 * has it. So a call that comes after an answer, on any connection, sees what was answered. The
 * guard of the partition is the cluster's notification version: each change expects n and leaves n
 * + 1.
 *
 * When a commit fails, everything decided after it is void: the owner forgets its state, reads all
 * domains again and goes on. A change that was fenced (another host of the cluster wrote in
 * between) is decided again on the newer state. */
#ifndef CADENZA_DOMAIN_DOMAINS_H
#define CADENZA_DOMAIN_DOMAINS_H

#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/dynamic.h"
#include "domain/archival.h"
#include "domain/entity.h"
#include "route/owner.h"
#include "store/store.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"

struct domains;

struct domains_options {
    struct store *store;
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics; /* NULL: nothing is counted */
    /* What the cluster is configured to archive; the dynamic settings may switch it off. */
    struct archival_rule history_archival, visibility_archival;
    bool is_catching_up;      /* it lost memory, and other clusters of the group may know more */
    int64_t refresh_interval; /* look for changes by other hosts on the same store, ns; 0: this host
                                 is alone */
};

/* Reads all domains and sends them to every loop. On loop 0. Yields. Errors: those of the store,
 * ERR_CORRUPT. */
must_use struct error *domains_open(const struct domains_options *options, struct arena *arena,
                                    struct domains **domains);
/* Whether it was opened with is_catching_up and domains_recover has not ended well since. Until
 * then no global domain is changed here, and what is active here is pending. Any loop. */
bool domains_are_recovering(const struct domains *domains);
/* The same for health checks: "recovering: ", what is not served and what is waited for, in one
 * line. NULL: it is not recovering. Any loop; no yield. */
const char *domains_recovery_text(const struct domains *domains);
/* A cluster that lost memory has read again all that the others know: whatever is active here takes
 * a version that nobody has seen, and goes on (design/031). `heard` gives the versions of this
 * cluster that the others have in the histories of a domain; without a yield. Durable and known to
 * every loop when it returns. Where the domains live. Yields. Errors: as the changers below; what
 * is done stays done, and may be done again. */
must_use struct error *domains_recover(struct domains *domains,
                                       struct heard_versions (*heard)(void *context,
                                                                      const char *domain_id),
                                       void *context, struct arena *arena);
/* On loop 0, once, when there are no more calls. Yields. */
void domains_close(struct domains *domains);
/* For questions of other folders that are served where the domains live: their context is the
 * domains. */
struct route_service *domains_service(struct domains *domains);

/* --- reading: the calling loop's newest durable state; no yield
 * ----------------------------------- */

/* NULL: none. Lives until the next yield; domain_take to keep it. */
struct domain *domains_find_name(const struct domains *domains, const char *name);
struct domain *domains_find_id(const struct domains *domains, const char *id);
/* Up to `count_max` domains in order of name, after `after` ("" from the start). */
size_t domains_list(const struct domains *domains, const char *after, struct domain **found,
                    size_t count_max);
size_t domains_count(const struct domains *domains);
/* The notification version that this loop has reached. */
uint64_t domains_notification_version(const struct domains *domains);

/* --- following on one loop: a listener is notified of every change there, in order of the
 * notification version, right after the loop's newest state has it ------------------------------
 */

/* A durable change, as listeners see it. */
struct domain_notification {
    uint64_t version;            /* notification version that it left */
    const struct domain *domain; /* as it is since then; NULL: none changed */
    bool is_failover;            /* the domain moved: its failover notification version is of this
                                  * change; or entities changed, and any of them may have moved */
    struct entity *const *entities; /* rows that changed; then there is no domain */
    size_t entity_count;
};
struct domain_listener {
    struct list node;
    void (*on_change)(struct domain_listener *listener,
                      const struct domain_notification *notification); /* no yield */
};
/* On the calling loop, until domains_unlisten there. It is not notified of earlier changes. */
void domains_listen(struct domains *domains, struct domain_listener *listener);
void domains_unlisten(struct domain_listener *listener);
/* Waits until the calling loop knows everything up to `version`, for a second at most; looks at the
 * store if another host must have written it. Any loop; yields. Errors: ERR_UNAVAILABLE (not yet),
 * ERR_CORRUPT (the store has no such version), ERR_DEADLINE, ERR_CANCELLED, the store's. */
must_use struct error *domains_reach(struct domains *domains, uint64_t version,
                                     struct arena *arena);
/* What a listener that has handled `after` has missed, up to what the calling loop knows when this
 * returns: each record that a change left and in which something drains, the number of failovers,
 * and *reached. Read from the log; where that was trimmed, each domain's newest record counts. Any
 * loop; yields. Errors: the store's. */
struct missed_domain_visitor {
    void (*on_domain)(void *context, const struct domain *domain); /* no yield; gone afterwards */
    void *context;
};
must_use struct error *domains_read_missed(struct domains *domains, uint64_t after,
                                           const struct missed_domain_visitor *visitor,
                                           struct arena *arena, uint64_t *reached,
                                           uint64_t *failovers);

/* --- changing: from any loop; yields. ------------------------------------------------------- */

/* Each answers with the domain as it is afterwards (deleted: as it was), one reference for the
 * caller, unless `changed` is NULL. Errors: as domain_decide_*; ERR_SERVICE_BUSY (too many changes
 * wait); ERR_UNAVAILABLE, ERR_OUTCOME_UNKNOWN (the store), ERR_DEADLINE and ERR_CANCELLED (it may
 * have been done). */
#define DOMAINS_CHANGER(verb, Request)                                                             \
    must_use struct error *domains_##verb(struct domains *domains, const API(Request) *request,    \
                                          struct arena *arena, struct domain **changed)
must_use struct error *
domains_async(struct domains *domains,
              const ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *request,
              struct arena *arena, struct domain **changed);
DOMAINS_CHANGER(register, RegisterDomainRequest);
DOMAINS_CHANGER(update, UpdateDomainRequest);
DOMAINS_CHANGER(failover, FailoverDomainRequest);
DOMAINS_CHANGER(deprecate, DeprecateDomainRequest);
DOMAINS_CHANGER(delete, DeleteDomainRequest);
#undef DOMAINS_CHANGER

/* --- isolation groups: a group is drained for one domain, or for the whole cluster
 * ------------------- */

/* Sets those of a domain. From any loop; yields. Errors: as above. */
must_use struct error *
domains_set_isolation(struct domains *domains,
                      const ADMIN(UpdateDomainIsolationGroupsRequest) *request,
                      struct arena *arena);
/* Sets those of the cluster; durable and known to all loops when it returns. Yields. */
must_use struct error *domains_set_cluster_isolation(struct domains *domains,
                                                     const API(IsolationGroupConfiguration) *groups,
                                                     struct arena *arena);
/* Those of the cluster; NULL: none were set. Lives until the next yield. */
const API(IsolationGroupConfiguration) *domains_cluster_isolation(const struct domains *domains);
/* Is the group drained, for all or for this domain? No yield. */
bool domains_is_group_isolated(const struct domains *domains, const char *domain_id,
                               const char *group);

/* --- entities (entity.h): rows that domains' regions give a meaning to
 * ------------------------------- */

/* Rows that came from the store or from another cluster. */
struct entity_records {
    STORED(EntityRecord) **records;
    size_t count;
};

/* The row as the calling loop knows it; NULL: none. Deleted ones are found. Lives until the next
 * yield. */
const struct entity *domains_find_entity(const struct domains *domains, const char *type,
                                         const char *key);
/* Rows, deleted ones too, as the calling loop knows them. */
size_t domains_entity_count(const struct domains *domains);
/* How many more there may be. */
size_t domains_entity_room(const struct domains *domains);
/* The one question (domain_active_run of active.h), answered from what the calling loop knows:
 * attributes of the domain, and entities. No yield. */
struct active_cluster domains_active_run(const struct domains *domains, const struct domain *domain,
                                         const struct cluster_attribute *attribute,
                                         int64_t last_version);
/* May clients start new runs that belong to the attribute? Not if it is an entity that was deleted;
 * the runs that it has go on, and so do their children. No yield. */
bool domains_takes_runs(const struct domains *domains, const struct domain *domain,
                        const struct cluster_attribute *attribute);
/* The refusal of a new run that belongs to an entity whose region the domain does not have
 * (active_cluster.is_unresolved). No yield. */
struct error *domains_refuse_unresolved(const struct domains *domains, const struct domain *domain,
                                        const struct cluster_attribute *attribute,
                                        struct arena *arena);
/* Writes rows, in the order given, each named once; 500 of them become durable together. From any
 * loop; yields. Errors: as entity_decide; the store's. */
must_use struct error *domains_set_entities(struct domains *domains,
                                            const struct entity_change *changes, size_t count,
                                            struct arena *arena);
/* Takes rows of another cluster over where they are newer. From any loop; yields. Errors: the
 * store's. */
must_use struct error *domains_apply_entities(struct domains *domains, const char *source,
                                              const struct entity_records *records,
                                              struct arena *arena);
/* Stored rows by type and key, of one type or, "", of all, at most `count_max` behind `token`;
 * *next is the token of the next page, empty: this was the last. Any loop; yields. Errors:
 * ERR_BAD_REQUEST (not one of these tokens), the store's. */
must_use struct error *domains_list_entities(struct domains *domains, const char *type,
                                             struct slice token, size_t count_max,
                                             struct arena *arena, struct entity_records *records,
                                             struct slice *next);

/* --- the log: every change in order of the notification version; loop 0 only; yields
 * ------------------ */

struct domain_changes {
    uint64_t *version; /* notification version that each change left */
    const STORED(DomainChange) **change;
    size_t count;
    uint64_t newest; /* the log is known up to here: durable, nothing below is missing */
    bool is_cut;     /* changes after `after` were trimmed: these are the newest records of all
                      * domains instead, in order of their versions */
};
/* Changes after notification version `after`, at most `count_max`, durable ones only. If there are
 * none, waits until there is one or `deadline` comes (then count is 0). Errors: the store's,
 * ERR_CANCELLED. */
must_use struct error *domains_read_log(struct domains *domains, uint64_t after, size_t count_max,
                                        int64_t deadline, struct arena *arena,
                                        struct domain_changes *changes);
/* Calls that wait in domains_read_log return at once, and later ones do not wait: for draining. */
void domains_end_waits(struct domains *domains);
/* A follower of the log says how far it got, by name ("cluster:east", "shard:7"); changes up to the
 * lowest of all may be trimmed, all but the newest hundred. Durable when it returns. Enabled
 * clusters of the group are waited for from the start, other clusters never, any other follower
 * from when it first said something. */
must_use struct error *domains_set_follower_position(struct domains *domains, const char *follower,
                                                     uint64_t handled, struct arena *arena);

/* The same, if it is at least `distance` further than what it said before. From any loop. */
must_use struct error *domains_note_follower(struct domains *domains, const char *follower,
                                             uint64_t handled, uint64_t distance,
                                             struct arena *arena);

/* How far it said to have got; -1: it never said anything. No yield. */
int64_t domains_follower_position(const struct domains *domains, const char *follower);
/* A cluster that lost memory counts its changes from an older number on: a follower that is at
 * `retrieved` may mean others than those that have these numbers now. Has it to be told everything?
 * Until it asks from where it was told last in this process (domains_note_given). Where memory was
 * not lost: never. And did it ask so, whether memory was lost or not? Where the domains live; no
 * yield. */
bool domains_follower_begins(struct domains *domains, const char *follower, int64_t retrieved);
void domains_note_given(struct domains *domains, const char *follower, uint64_t given);
bool domains_follower_has_begun(const struct domains *domains, const char *follower);

/* --- what comes from other clusters: loop 0 only; yields
 * ---------------------------------------------- */

/* Applies a message of `source`'s domain replication, or keeps it as a dead letter when it can
 * never be applied. Durable when it returns NULL: then it may be acknowledged. Errors: the store's
 * (try again). */
must_use struct error *domains_apply(struct domains *domains, const char *source,
                                     const ADMIN(ReplicationTask) *task, struct arena *arena);
/* How far the log of `source` was followed, durably; -1: not at all. */
must_use struct error *domains_position(struct domains *domains, const char *source,
                                        struct arena *arena, int64_t *handled);
/* May be lower than before: the source was restored and starts again. Nothing is stored as long as
 * this cluster has never had a domain, since that write would count as a change of one. */
must_use struct error *domains_set_position(struct domains *domains, const char *source,
                                            int64_t handled, struct arena *arena);

/* Dead letters, oldest first; an id counts up. The newest one there ever was, 0: none; no yield. */
uint64_t domains_newest_dead_letter(const struct domains *domains);
struct domain_dead_letters {
    uint64_t *id;
    const STORED(DomainDeadLetter) **letter;
    size_t count;
    bool has_more;
};
must_use struct error *domains_read_dead_letters(struct domains *domains, uint64_t after_id,
                                                 uint64_t to_id, size_t count_max,
                                                 struct arena *arena,
                                                 struct domain_dead_letters *letters);
must_use struct error *domains_count_dead_letters(struct domains *domains, struct arena *arena,
                                                  uint64_t *count);
/* Deletes dead letters up to an id. */
must_use struct error *domains_purge_dead_letters(struct domains *domains, uint64_t to_id,
                                                  struct arena *arena);
/* What became of dead letters that were tried again. */
struct domain_merged {
    uint64_t applied, left;
    const char *reasons; /* of the first ones that stay, for operators; "": none stays */
};
/* Tries dead letters up to an id again: those that can be applied now are applied and deleted, the
 * others stay. */
must_use struct error *domains_merge_dead_letters(struct domains *domains, uint64_t to_id,
                                                  struct arena *arena,
                                                  struct domain_merged *merged);

/* --- failover history: any loop; yields
 * --------------------------------------------------------------- */

struct domain_failovers {
    const STORED(FailoverRecord) **failover; /* newest first */
    size_t count;
    struct slice token; /* of the next page; empty: this was the last */
};
/* Errors: ERR_BAD_REQUEST (not one of these tokens), the store's. */
must_use struct error *domains_list_failovers(struct domains *domains, const char *domain_id,
                                              struct slice token, size_t count_max,
                                              struct arena *arena,
                                              struct domain_failovers *failovers);

#endif
