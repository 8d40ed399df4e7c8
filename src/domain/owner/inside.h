/* inside.h - the owner of the domains from inside. Only files of this folder include it.
 *
 * domains.c opens, closes and reads; write.c decides, adopts, submits and waits, for change.c
 * (requests of clients), apply.c (messages of other clusters) and for writes that change no domain;
 * rows.c knows the form of rows; publish.c sends changes to the loops and listen.c notifies
 * listeners there; log.c, follow.c, dead_letters.c and failovers.c keep what goes with the domains;
 * reload.c reads the store and starts over after a failure. All fields belong to where the domains
 * live, loop 0, except that loop i owns domain_caches[i], listeners_by_loop[i] and groups[i].
 *
 * Invariants:
 *   1. domain_caches[0] holds exactly what is durable at notification version `durable`.
 *   2. `newest` is domain_caches[0] with the changes of `undurable` on top.
 *   3. The rows of the log are those of (log_floor, guard], one for each notification version;
 *      other hosts on the same store may have trimmed more. */
#ifndef CADENZA_DOMAIN_OWNER_INSIDE_H
#define CADENZA_DOMAIN_OWNER_INSIDE_H

#include "base/list.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "domain/decide/decide.h"
#include "domain/domain_cache.h"
#include "domain/domains.h"
#include "domain/drain_end.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "route/ask.h"

#define DOMAINS_CHANGES_MAX 4096 /* that wait to become durable */

/* The listeners on one loop. */
struct loop_listeners {
    struct list listeners;  /* struct domain_listener */
    struct fiber_cond grew; /* the loop's cache has more */
};

/* Isolation groups of the cluster, as one loop knows them. */
struct cluster_isolation {
    struct arena *arena; /* NULL: none were set */
    const API(IsolationGroupConfiguration) *groups;
    struct slice bytes; /* of the row */
};

struct domains {
    struct domains_options options;
    struct route_service service; /* by which the owner is asked */
    struct writer *writer;        /* NULL while the state is read again */
    struct domain_cache newest;   /* with what is decided but perhaps not durable */
    struct list undurable;        /* struct change, in order of ticket */
    struct latch writer_users; /* fibers that wait on the writer: it must not go away under them */
    struct fiber_cond ready;   /* the writer is there (again) */
    uint64_t durable;          /* notification version up to which everything is known, durably */
    struct fiber_cond grew;    /* `durable` rose, or waiting for it has ended */
    uint64_t log_floor;        /* the log was trimmed up to here */
    struct map *followers;     /* name → struct follower */
    uint64_t dead_newest;      /* the highest id that a dead letter ever had */
    bool is_loaded;            /* `durable` and domain_caches[0] have been read */
    bool is_reloading;
    bool has_ended_waits; /* calls no longer wait for the log to grow */
    bool is_closing;
    atomic_bool is_recovering;        /* domains_are_recovering */
    struct latch loop_messages;       /* on their way to or from other loops */
    struct latch fibers;              /* reload and refresh */
    struct fiber *refresher;          /* NULL: none */
    struct cluster_isolation *groups; /* one per loop, which owns it */
    struct fiber_mutex regrouping;    /* held to change them */
    struct gauge *version_gauge; /* the notification version; NULL: no metrics, or not read yet */
    unsigned loops;
    struct loop_listeners *listeners_by_loop; /* one per loop, beside its cache */
    struct domain_cache domain_caches[];      /* one per loop: what is durable */
};

/* Aborts unless the invariants above hold, as far as constant time allows. On loop 0. */
void domains_check(const struct domains *domains);

/* --- publish.c: a decided change on its way, to the disk, then to every loop -------------------
 */

struct change_message {
    struct loop_message message;
    struct change *change;
    unsigned index; /* of the loop */
};
struct change {
    struct list node; /* in undurable */
    struct domains *domains;
    struct domain *domain;    /* as it is afterwards, or its last record; one reference; NULL: no
                               * domain changes, only the version is reached */
    struct entity **entities; /* rows as they are afterwards; one reference each */
    size_t entity_count;
    uint64_t version; /* the notification version that it leaves */
    ticket_t ticket;
    unsigned loops_left;                /* loops that have not got it yet */
    struct fiber_cond known_everywhere; /* loops_left became 0 */
    unsigned references;                /* the fiber that asked, and the way to the loops */
    struct change_message change_messages[];
};

struct change *change_new(struct domains *domains, struct domain *domain, uint64_t version);
/* A change of entities, copied from the records; they get the version. */
struct change *change_new_entities(struct domains *domains, STORED(EntityRecord) *const *records,
                                   size_t count, uint64_t version);
void change_drop(struct change *change);
/* Enters the change in a cache. */
void change_enter(const struct change *change, struct domain_cache *domain_cache);
/* Sends it to every loop; takes over one reference, given back when all loops have it. */
void change_publish(struct change *change);

/* --- listen.c -----------------------------------------------------------------------------------
 */

struct loop_listeners *loop_listeners_new(unsigned count);
/* Enters the change in the cache of loop `index` and notifies the listeners there. On that loop. */
void loop_listeners_notify(struct domains *domains, unsigned index, const struct change *change);

/* --- write.c ------------------------------------------------------------------------------------
 */

/* A request to change a domain, of a client or of another cluster. */
struct change_request {
    struct domains *domains;
    const char *name; /* of the domain */
    const void *request;
    /* Pure; no yield. */
    struct error *(*decide)(const struct change_request *change_request,
                            const struct domain_rules *rules, const struct domain_moment *moment,
                            struct domain_decision *decision);
    const char *source;   /* the cluster whose message it is; NULL: a client's request */
    uint64_t dead_letter; /* the dead letter that is deleted when it succeeds; 0: none */
    /* What else goes with its commit, if it changes something; NULL: nothing. No yield. */
    void (*add)(const struct change_request *change_request, struct batch *batch);
    bool reports_end; /* it ends a drain, and enters the outcome itself */
    struct arena *arena;
    struct domain *changed; /* the answer, one reference; NULL: nothing to show */
    struct error *err;
};
/* Decides, and decides again when another host was faster; the answer is in the request. Where the
 * domains live. Yields. */
void change_request_run(struct change_request *change_request);

/* --- recover.c: a cluster that lost memory -------------------------------------------------------
 */

/* Marks a domain that is to be entered, before anybody else sees it: is it one of which this
 * cluster has lost what it knew? `is_recovered`: not any more. */
void domain_mark(const struct domains *domains, struct domain *domain, bool is_recovered);
/* Others may have moved something to here with a version that this cluster lost: it takes a later
 * one. Yields. Errors: as the changers. */
must_use struct error *domain_leave_lost(struct domains *domains, const char *domain_id,
                                         struct arena *arena);
/* Sets the gauge that says whether it is recovering. */
void domains_show_recovery(const struct domains *domains);

/* --- change.c: questions to the owner
 * -----------------------------------------------------------
 */

/* For those who serve a question: runs the request; its answer has the record. Yields. */
must_use struct error *change_request_serve(struct change_request *change_request,
                                            INTERNAL(ChangedDomain) * answer);
/* Asks the owner of the domains. From any loop; yields. Errors: those of route_ask. */
must_use struct error *domains_ask(struct domains *domains, const struct route_question *question,
                                   const void *request, struct arena *arena, void *answer);
/* The same for a change: *changed gets the domain as it is afterwards, with a reference, or NULL.
 * `changed` may be NULL. */
must_use struct error *domains_ask_for_change(struct domains *domains,
                                              const struct route_question *question,
                                              const void *request, struct arena *arena,
                                              struct domain **changed);

/* --- isolation.c
 * ------------------------------------------------------------------------------------
 */

/* Reads the cluster's. On loop 0. Yields. */
must_use struct error *domain_isolation_load(struct domains *domains, struct arena *arena);
void domain_isolation_free(struct domains *domains);
/* Looks whether another host changed the cluster's. On loop 0. Yields. */
must_use struct error *domain_isolation_refresh(struct domains *domains, struct arena *arena);

/* --- drain_end.c ---------------------------------------------------------------------------------
 */

/* Leaves a row for each drain to here that the next record no longer has: its outcome is entered
 * in the history later, even if this host crashes. `before` NULL: there was no such domain. */
void batch_add_left(struct batch *batch, const struct domain *before, const struct domain *next,
                    const struct cluster_group *group, int64_t now);

/* --- entities.c ----------------------------------------------------------------------------------
 */

/* Entities of a cache that are newer than `after`, and not as new in `known` (NULL: nothing is
 * known), in order of their versions. */
size_t entities_after(const struct domain_cache *domain_cache, const struct domain_cache *known,
                      uint64_t after, struct arena *arena, struct entity ***found);

/* --- rows.c: keys and values --------------------------------------------------------------------
 */

#define DOMAIN_CHANGE_FORMAT   1
#define FAILOVER_RECORD_FORMAT 1
#define DEAD_LETTER_FORMAT     1
#define POSITION_FORMAT        1
#define ENTITIES_PER_CHANGE    500 /* rows in one commit, and so in one row of the log */

/* The domain's rows, its log row, and its failover's row. */
void batch_add_change(struct batch *batch, const struct change *change,
                      const struct domain_decision *decision, bool is_replicated);
void batch_add_failover(struct batch *batch, const STORED(FailoverRecord) *failover);
void batch_add_position(struct batch *batch, const char *name, int64_t handled);
/* Rows of entities, and their log row. */
void batch_add_entities(struct batch *batch, const struct change *change, bool is_replicated);
/* The key of a failover in the history. */
struct slice failover_key(const STORED(FailoverRecord) *failover, struct arena *arena);

/* --- log.c, follow.c, dead_letters.c, failovers.c
 * -------------------------------------------------------
 */

/* Rows of the log in (after, to], at most `count_max`. is_cut: some are missing; then count is 0.
 */
must_use struct error *log_scan(struct domains *domains, uint64_t after, uint64_t to,
                                size_t count_max, struct arena *arena,
                                struct domain_changes *changes);
/* Where the log begins, with guard `guard`. */
must_use struct error *log_read_floor(struct domains *domains, uint64_t guard, struct arena *arena);

struct log_follower {
    uint64_t handled;
    /* Of a process that began without all of its memory; see domains_follower_begins. */
    bool is_given, has_begun;
    uint64_t given; /* up to where it was told, if it was */
};
/* Followers and counters as the store has them. */
must_use struct error *follow_read(struct domains *domains, struct arena *arena);
void follow_free(struct domains *domains);
/* Adds what may be trimmed from the log to a batch. */
void follow_trim(struct domains *domains, struct batch *batch);

/* Keeps a message as a dead letter, once. Yields. */
must_use struct error *dead_letter_add(struct domains *domains, const char *source,
                                       const ADMIN(ReplicationTask) *task, const char *reason,
                                       struct arena *arena);
#define POSITION_DEAD "dead-letters" /* the name of the row that counts their ids */

/* Enters a failover that came too late, unless the history has it. Yields. */
must_use struct error *failovers_enter_late(struct domains *domains,
                                            const STORED(FailoverRecord) *failover,
                                            struct arena *arena);

/* --- apply.c ------------------------------------------------------------------------------------
 */

/* Applies a message; `dead_letter` is the id of the dead letter that it is, or 0. *reason is set
 * when it can never be applied as things are. Yields. */
must_use struct error *apply_try(struct domains *domains, const char *source,
                                 const ADMIN(ReplicationTask) *task, uint64_t dead_letter,
                                 struct arena *arena, const char **reason);

/* --- reload.c -----------------------------------------------------------------------------------
 */

/* Reads again, in a fiber of its own, unless that is under way. */
void domains_start_reload(struct domains *domains);
/* Reads what is not known yet and opens the writer. Yields. */
must_use struct error *domains_load(struct domains *domains, struct arena *arena);
/* Looks for changes by other hosts from time to time; a fiber. */
void domains_refresh(void *argument);

#endif
