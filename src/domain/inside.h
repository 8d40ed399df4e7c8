/* inside.h - the owner of the domains from inside. Only files of domain/ include it.
 *
 * domains.c opens, closes and reads; write.c decides, adopts, submits and waits, for change.c
 * (wishes of clients), apply.c (facts of other clusters) and for writes that change no domain;
 * rows.c knows how rows look; publish.c tells the loops and listen.c who listens there; log.c,
 * follow.c, dead.c and failovers.c keep what goes with the domains; reload.c reads the store and
 * starts over after a failure. All fields belong to loop 0 but `books`, where loop i owns books[i].
 *
 * Invariants:
 *   1. books[0] holds exactly what is durable at notification version `durable`.
 *   2. `newest` is books[0] with the changes of `undurable` on top.
 *   3. The rows of the log are those of (log_floor, guard], one for each notification version;
 *      other hosts on the same store may have trimmed more. */
#ifndef CADENZA_DOMAIN_INSIDE_H
#define CADENZA_DOMAIN_INSIDE_H

#include "base/list.h"
#include "domain/book.h"
#include "domain/domains.h"
#include "fiber/loop.h"
#include "fiber/sync.h"

#define DOMAINS_CHANGES_MAX 4096 /* that wait to become durable */

/* Who follows the domains on one loop. */
struct audience {
    struct list listeners;  /* struct domain_listener */
    struct fiber_cond grew; /* the loop's book has more */
};

/* Isolation groups of the cluster, as one loop knows them. */
struct cluster_groups {
    struct arena *arena; /* NULL: none were set */
    const API(IsolationGroupConfiguration) *groups;
    struct slice bytes; /* of the row */
};

struct domains {
    struct domains_options options;
    struct writer *writer;     /* NULL while the state is read again */
    struct book newest;        /* with what is decided but perhaps not durable */
    struct list undurable;     /* struct change, in order of ticket */
    struct latch writer_users; /* fibers that wait on the writer: it must not go away under them */
    struct fiber_cond ready;   /* the writer is there (again) */
    uint64_t durable;          /* notification version up to which everything is known, durably */
    struct fiber_cond grew;    /* `durable` rose, or nobody shall wait for it any more */
    uint64_t log_floor;        /* the log was trimmed up to here */
    struct map *followers;     /* name → struct follower */
    uint64_t dead_newest;      /* the highest id that a dead letter ever had */
    bool is_loaded;            /* `durable` and books[0] mean something */
    bool is_reloading;
    bool is_silent; /* nobody waits for the log to grow any more */
    bool is_closing;
    struct latch letters;          /* on their way to or from other loops */
    struct latch fibers;           /* reload and refresh */
    struct fiber *refresher;       /* NULL: none */
    struct cluster_groups *groups; /* one per loop, which owns it */
    struct fiber_mutex regrouping; /* who changes them */
    struct gauge *version_shown;   /* the notification version; NULL: no metrics, or not read yet */
    struct drains *drains;         /* graceful failovers to here; NULL before they are read */
    unsigned loops;
    struct audience *audiences; /* one per loop, beside its book */
    struct book books[];        /* one per loop: what is durable */
};

/* --- publish.c: a decided change on its way, to the disk, then to every loop -------------------
 */

struct telling {
    struct letter letter;
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
    unsigned untold;        /* loops that have not got it yet */
    struct fiber_cond told; /* untold became 0 */
    unsigned references;    /* who still looks at it: the fiber that asked, the way to the loops */
    struct telling tellings[];
};

struct change *change_new(struct domains *domains, struct domain *domain, uint64_t version);
/* A change of entities, copied from the records; they get the version. */
struct change *change_new_entities(struct domains *domains, STORED(EntityRecord) *const *records,
                                   size_t count, uint64_t version);
void change_drop(struct change *change);
/* Makes the change in a book. */
void change_enter(const struct change *change, struct book *book);
/* Tells every loop; takes over one reference of the change, given back when all have it. */
void change_publish(struct change *change);

/* --- listen.c -----------------------------------------------------------------------------------
 */

struct audience *audiences_new(unsigned count);
/* Enters the change in the book of loop `index`, and tells who listens there. On that loop. */
void audience_tell(struct domains *domains, unsigned index, const struct change *change);

/* --- write.c ------------------------------------------------------------------------------------
 */

/* Somebody wants a domain to change. */
struct wish {
    struct domains *domains;
    const char *name; /* of the domain */
    const void *request;
    /* Pure; no yield. */
    struct error *(*decide)(const struct wish *wish, const struct domain_rules *rules,
                            const struct domain_moment *moment, struct domain_decision *decision);
    const char *source; /* the cluster that a fact came from; NULL: a client's wish */
    uint64_t letter;    /* the dead letter that goes when it is granted; 0: none */
    /* What else goes with its commit, if it changes something; NULL: nothing. No yield. */
    void (*add)(const struct wish *wish, struct batch *batch);
    bool reports_end; /* of a drain: it enters that itself */
    struct arena *arena;
    struct domain *changed; /* the answer, one reference; NULL: nothing to show */
    struct error *err;
};
/* Decides until other hosts leave it alone; the answer is in the wish. On loop 0. Yields. */
void wish_run(struct wish *wish);

/* Makes a batch durable that changes no domain and leaves the guard as it is; `fill` writes its
 * steps, without a yield, and may run again when another host was faster. On loop 0. Yields.
 * Errors: as the changers of domains.h. */
must_use struct error *domains_write(struct domains *domains,
                                     void (*fill)(void *context, struct batch *batch),
                                     void *context, struct arena *arena);
/* Waits until all that was decided so far is durable. Yields. */
must_use struct error *domains_wait_newest(struct domains *domains, struct arena *arena);

/* --- groups.c ------------------------------------------------------------------------------------
 */

/* Reads the cluster's. On loop 0. Yields. */
must_use struct error *groups_load(struct domains *domains, struct arena *arena);
void groups_free(struct domains *domains);
/* Looks whether another host has changed the cluster's. On loop 0. Yields. */
must_use struct error *groups_refresh(struct domains *domains, struct arena *arena);

/* --- drains.c ------------------------------------------------------------------------------------
 */

/* Follows the graceful failovers to here, when the domains were read. On loop 0. */
void drains_open(struct domains *domains);
/* Nothing begins any more; the fiber ends soon (latch `fibers`). */
void drains_stop(struct domains *domains);
void drains_free(struct domains *domains);
/* Leaves a row for each drain to here that the next record has no more: how it ended is entered in
 * the history later, whatever crashes. `before` NULL: there was no such domain. */
void batch_add_left(struct batch *batch, const struct domain *before, const struct domain *next,
                    const struct cluster_group *group, int64_t now);
/* Does the entry say how a drain of it ended? Adds that. */
bool failover_has_outcome(const STORED(FailoverRecord) *failover, const char *scope,
                          const char *name);
void failover_add_outcome(STORED(FailoverRecord) *failover, STORED(DrainOutcome) *outcome,
                          struct arena *arena);
/* --- entities.c ----------------------------------------------------------------------------------
 */

/* Entities of a book that are newer than `after`, and not as new in `known` (NULL: nothing is
 * known), in order of their versions. */
size_t entities_after(const struct book *book, const struct book *known, uint64_t after,
                      struct arena *arena, struct entity ***found);

/* --- rows.c: keys and values --------------------------------------------------------------------
 */

#define DOMAIN_CHANGE_FORMAT   1
#define FAILOVER_RECORD_FORMAT 1
#define DEAD_LETTER_FORMAT     1
#define POSITION_FORMAT        1
#define ENTITIES_PER_CHANGE    500 /* rows in one commit, and so in one row of the log */

struct slice key_of_text(const char *text, struct arena *arena);
struct slice key_of_number(uint64_t number, struct arena *arena);
/* The domain's rows, its log row, and its failover's row. */
void batch_add_change(struct batch *batch, const struct change *change,
                      const struct domain_decision *decision, bool is_replicated);
void batch_add_failover(struct batch *batch, const STORED(FailoverRecord) *failover);
void batch_add_position(struct batch *batch, const char *name, int64_t handled);
/* Rows of entities, and their log row. */
void batch_add_entities(struct batch *batch, const struct change *change, bool is_replicated);
/* The key of a failover in the history. */
struct slice failover_key(const STORED(FailoverRecord) *failover, struct arena *arena);

/* --- log.c, follow.c, dead.c, failovers.c -------------------------------------------------------
 */

/* Rows of the log in (after, to], at most `count_max`. is_cut: some are missing; then count is 0.
 */
must_use struct error *log_scan(struct domains *domains, uint64_t after, uint64_t to,
                                size_t count_max, struct arena *arena,
                                struct domain_changes *changes);
/* Where the log begins, with guard `guard`. */
must_use struct error *log_read_floor(struct domains *domains, uint64_t guard, struct arena *arena);

struct follower {
    uint64_t handled;
};
/* Followers and counters as the store has them. */
must_use struct error *follow_read(struct domains *domains, struct arena *arena);
void follow_free(struct domains *domains);
/* Adds what may be trimmed from the log to a batch. */
void follow_trim(struct domains *domains, struct batch *batch);

/* Parks a message, once. Yields. */
must_use struct error *dead_park(struct domains *domains, const char *source,
                                 const ADMIN(ReplicationTask) *task, const char *reason,
                                 struct arena *arena);
#define POSITION_DEAD "dead-letters" /* the name of the row that counts their ids */

/* Enters a failover that came too late, unless the history has it. Yields. */
must_use struct error *failovers_enter_late(struct domains *domains,
                                            const STORED(FailoverRecord) *failover,
                                            struct arena *arena);

/* --- apply.c ------------------------------------------------------------------------------------
 */

/* Applies a message; `letter` is the dead letter that it was parked as, or 0. *reason is set when
 * it can never be applied as things are. Yields. */
must_use struct error *apply_try(struct domains *domains, const char *source,
                                 const ADMIN(ReplicationTask) *task, uint64_t letter,
                                 struct arena *arena, const char **reason);

/* --- reload.c -----------------------------------------------------------------------------------
 */

/* Reads again, in a fiber of its own, unless that is under way. */
void domains_start_reload(struct domains *domains);
/* Reads what is not known yet and opens the writer. Yields. */
must_use struct error *domains_load(struct domains *domains, struct arena *arena);
/* Reads what other hosts wrote, if they did; *guard is the store's. Yields. */
must_use struct error *domains_look_for_others(struct domains *domains, struct arena *arena,
                                               uint64_t *guard);
/* Looks for changes by other hosts from time to time; a fiber. */
void domains_refresh(void *argument);

#endif
