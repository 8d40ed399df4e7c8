/* common.h - what the verbs of decide.h share: checks of requests, and parts of records.
 * For the files decide_*.c only.
 *
 * A record is built as a shallow copy of the one before: what a request does not touch points into
 * the old record, which its reference keeps alive until the new one is encoded. Maps are kept
 * sorted by key and without duplicates, so that equal domains have equal bytes. */
#ifndef CADENZA_DOMAIN_DECIDE_COMMON_H
#define CADENZA_DOMAIN_DECIDE_COMMON_H

#include "domain/attributes.h"
#include "domain/decide/decide.h"

#define REFUSE_LOCAL "Local domains cannot perform failovers or change replication configuration"
#define REFUSE_NOTHING_MOVES                                                                       \
    "Cannot start graceful failover without updating active cluster or in local domain."

/* --- checks: NULL, or the refusal ------------------------------------------------------------- */

/* ERR_BAD_REQUEST: empty or too long. */
must_use struct error *decide_check_name(const char *name, const struct domain_rules *rules,
                                         struct arena *arena);
/* ERR_BAD_REQUEST: the server is protected and the token is another one. */
must_use struct error *decide_check_permission(const char *token, const struct domain_rules *rules,
                                               struct arena *arena);
/* ERR_BAD_REQUEST: no failovers now. */
must_use struct error *decide_check_lockdown(const struct domain_rules *rules, struct arena *arena);
/* ERR_SERVICE_BUSY: others may know global domains better than this restored cluster. */
must_use struct error *decide_check_caught_up(const struct domain_rules *rules,
                                              struct arena *arena);
/* May settings of the domain be changed here? A global one only in the primary cluster
 * (ERR_BAD_REQUEST), and once it has caught up. */
must_use struct error *decide_check_may_change(bool is_global, const struct domain_rules *rules,
                                               struct arena *arena);
/* ERR_SERVICE_BUSY: the global domain was changed too short a time ago. */
must_use struct error *decide_check_cool_down(const struct domain *current,
                                              const struct domain_rules *rules,
                                              const struct domain_moment *moment,
                                              struct arena *arena);
/* Do the clusters of the domain, its active one and those of its attributes fit together and into
 * the group? ERR_BAD_REQUEST. */
must_use struct error *decide_check_clusters(const API(Domain) *domain,
                                             const struct cluster_group *group,
                                             struct arena *arena);

/* --- parts of records ------------------------------------------------------------------------- */

/* A record that differs from `current` in nothing but the time of its write; its domain may be
 * changed. */
STORED(DomainRecord) *decide_copy(const struct domain *current, const struct domain_moment *moment,
                                  struct arena *arena);
/* The same as a change of its settings by an operator; `name` is what the operator asked for.
 * Errors: there is no such domain, it was changed just now, it may not be changed here. */
must_use struct error *decide_copy_settings(const struct domain *current, const char *name,
                                            const struct domain_rules *rules,
                                            const struct domain_moment *moment, struct arena *arena,
                                            STORED(DomainRecord) **record);
/* Sets domain_record_moved_version(). */
void decide_set_moved_version(STORED(DomainRecord) *record, int64_t moved_version,
                              struct arena *arena);
/* Whole days of the duration; parts do not count; absent: 0. */
must_use struct error *decide_read_retention(const GOOGLE(Duration) *duration, struct arena *arena,
                                             int64_t *days);
must_use struct error *decide_set_retention(API(Domain) *domain, const GOOGLE(Duration) *duration,
                                            const struct domain_rules *rules, struct arena *arena);
/* What a request says of archival, where the cluster archives at all. */
must_use struct error *decide_set_archival(API(Domain) *domain, struct archival history,
                                           struct archival visibility,
                                           const struct domain_rules *rules, struct arena *arena);

/* Aborts unless the decision is sound: the record's invariants hold, and compared with `current`
 * (NULL: there was none) the id is the same and no version has fallen. Walks over lists only where
 * CHECK_DEEPLY says so. Each verb calls it last. */
void decide_check(const struct domain *current, const struct domain_decision *decision);

/* --- moving (move.c) ------------------------------------------------------------------- */

/* Where a global domain, or some of its attributes, are to be active. */
struct move {
    const char *active_cluster_name;          /* NULL: not asked for */
    const API(ActiveClusters) *attributes;    /* NULL: not asked for; versions in it mean nothing */
    const GOOGLE(Duration) *failover_timeout; /* NULL: at once */
    const char *reason;                       /* for people; may be empty */
    API(ClusterAttribute) *const *removed;    /* taken away before anything moves */
    size_t n_removed;
    bool removes_all;
};
/* Does it take attributes away? */
static inline bool
move_removes(const struct move *move)
{
    return move->n_removed > 0 || move->removes_all;
}
/* Moves `record`, a copy of `current`, and fills the decision with it and the failover. `current`
 * is global. Errors: ERR_BAD_REQUEST, ERR_SERVICE_BUSY. */
must_use struct error *decide_move(const struct domain *current, const struct move *move,
                                   const struct domain_rules *rules,
                                   const struct domain_moment *moment, struct arena *arena,
                                   STORED(DomainRecord) *record, struct domain_decision *decision);
/* The attributes of a new domain, each with the first version of its cluster. */
must_use struct error *decide_first_attributes(const API(ActiveClusters) *requested,
                                               const struct domain_rules *rules,
                                               struct arena *arena, API(ActiveClusters) **first);

/* --- attributes together (attributes.c) -------------------------------------------------
 */

/* ERR_BAD_REQUEST: there are too many; those that were taken away count, since they are kept. */
must_use struct error *decide_check_attribute_count(const struct attributes *attributes,
                                                    const struct domain_rules *rules,
                                                    struct arena *arena);
/* ERR_BAD_REQUEST: attributes of scope "region" name two clusters of one region. */
must_use struct error *decide_check_regions(const struct attributes *attributes,
                                            const struct cluster_group *group, struct arena *arena);
/* Takes away what the move names. ERR_BAD_REQUEST: the domain has no such attribute. */
must_use struct error *decide_remove_attributes(STORED(DomainRecord) *record,
                                                const struct move *move,
                                                const struct domain_rules *rules,
                                                struct arena *arena);
/* The highest failover version of the domain and of what was taken away from it. */
int64_t decide_version_above_removed(const STORED(DomainRecord) *record, struct arena *arena);
/* --- graceful failovers (drain.c) --------------------------------------------------------
 */

/* How long a move waits for the old side at most, ns; 0: it is by force. ERR_BAD_REQUEST. */
must_use struct error *decide_read_timeout(const struct move *move,
                                           const struct domain_rules *rules, struct arena *arena,
                                           int64_t *timeout);
/* May the move begin gracefully, here and now? ERR_BAD_REQUEST (F-002 to F-005). */
must_use struct error *decide_check_graceful(const struct domain *current, const struct move *move,
                                             const struct domain_rules *rules, struct arena *arena);
/* After the versions were raised: what was named drains from now on (timeout > 0), or drains no
 * more. */
void decide_begin_drains(const struct domain *current, const struct move *move, int64_t timeout,
                         const struct cluster_group *group, const struct domain_moment *moment,
                         struct arena *arena, STORED(DomainRecord) *record);
/* Does it name something that drains? */
bool decide_ends_drain(const struct domain *current, const struct move *move, struct arena *arena);
/* What becomes of the drain of one thing. */
struct drain_change {
    const char *scope, *name;
    STORED(Drain) *drain; /* replaces the one that was there; NULL: there is none now */
};
/* Changes the list of the record, in one walk; `changes` are in order of scope and name, each once.
 * The fields that Cadence has for the domain's own follow. How many were taken out or replaced. */
size_t decide_change_drains(STORED(DomainRecord) *record, const struct drain_change *changes,
                            size_t count, struct arena *arena);
/* What a message says of drains. */
struct replicated_drains {
    const API(Domain) *domain; /* as the sender has it, with its versions */
    int64_t moved_version;     /* likewise */
    STORED(Drain) **drains;    /* in order of scope and name, each once */
    size_t count;
    bool is_complete; /* what is not in it is over; otherwise the sender may not know */
};
/* Merges them into `record`, into which the versions are merged already; `before` is what was known
 * (NULL: nothing). With a newer version comes its drain; with the same one a drain can only end.
 * Two that begin at once, in two clusters, both drain the same version: where the first one came
 * from here, the second one gets no markers, and has to wait for its time. True: something changed.
 */
bool decide_merge_drains(const STORED(DomainRecord) *before,
                         const struct replicated_drains *replicated, struct arena *arena,
                         STORED(DomainRecord) *record);

/* --- history (history.c) --------------------------------------------------------------- */

/* What differs between the two in where the domain and its attributes are active, as an entry of
 * the history; NULL: nothing. `before` NULL: the domain was not known. */
STORED(FailoverRecord) *decide_failover_record(const API(Domain) *before, const API(Domain) *after,
                                               int64_t failover_version, const char *origin,
                                               const struct domain_moment *moment,
                                               struct arena *arena);
/* Is there something that the failover moved and that nothing has moved since? */
bool decide_is_in_effect(const STORED(FailoverRecord) *failover, const STORED(DomainRecord) *record,
                         struct arena *arena);
/* Puts a failover of an active-passive domain in front of the recent ones of the record. */
void decide_add_recent(STORED(DomainRecord) *record, const char *from, const char *to,
                       const char *reason, API(FailoverType) type,
                       const struct domain_moment *moment, struct arena *arena);

#endif
