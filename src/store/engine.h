/* engine.h - what an engine provides: one that stores, not engine/, which runs workflows. Only
 * files of store/ include it.
 *
 * store.c, writer.c and history.c are shared: checking callers against rows.h, tickets, waiting,
 * room, closing, history nodes. An engine is a table of functions plus its own struct that begins
 * with a struct store (filled by store_init). When a function of the table is called, its arguments
 * have been checked. */
#ifndef CADENZA_STORE_ENGINE_H
#define CADENZA_STORE_ENGINE_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/metrics.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "store/admin.h"

/* One writer, as the engine sees it. Comparing guards is not enough to keep prefix order: a batch
 * that wants to raise 5 to 6 may be refused because somebody else did just that, and the next of
 * the same writer, expecting 6, would then land. So an engine that fails a commit of a stream
 * breaks the stream (commit_fail does it) and fails all later ones alike (commit_is_doomed).
 * Written and read only where the engine performs commits, so it needs no lock. It lives until the
 * last commit of the stream was answered. */
struct commit_stream {
    uint64_t number; /* unique in its store, from 1 */
    bool is_broken;
    enum error_kind outcome; /* once broken: of the commit that broke it */
    uint64_t guard_found;
};

/* One submitted batch on its way. The engine owns it from submit until it calls done. */
struct commit {
    struct loop_message message; /* the engine's to use: queue of a worker, way back to the loop */
    struct store *store;
    struct loop *owner_loop;      /* where done must be called */
    struct commit_stream *stream; /* of its writer; NULL: a batch alone */
    struct partition partition;   /* its name lives in the commit */
    struct slice partition_key;   /* partition_key(partition), in the commit */
    uint64_t guard_expected;
    uint64_t guard_next;
    struct slice steps; /* the batch's steps, encoded one after another; see commit_next_step */
    size_t step_count;
    bool is_confirmation;    /* only the guard is compared: nothing is written (writer_confirm) */
    size_t bytes;            /* all memory of the commit */
    int64_t began;           /* monotonic; of the meter */
    bool failed;             /* set by the engine, with commit_fail */
    enum error_kind outcome; /* if it failed: ERR_FENCED, ERR_OUTCOME_UNKNOWN, ERR_UNAVAILABLE */
    uint64_t guard_found;    /* with ERR_FENCED: what the guard was */
    /* On its owner loop, from the loop's own stack, never from within submit; frees the commit. */
    void (*done)(struct commit *commit);
    void *context; /* of the submitter */
};

struct commit_step {
    enum batch_verb verb;
    enum row_kind kind;
    struct slice key;
    struct slice value; /* range: the end; empty: to the end of the kind */
};
/* Takes the next step from the front of *steps; false at the end. */
bool commit_next_step(struct slice *steps, struct commit_step *step);
/* For an engine that keeps steps as they are (machines of one byte order read them), perhaps with
 * one verb of its own among them: writing a step; are these bytes steps? */
#define COMMIT_OWN_VERB ((enum batch_verb)(BATCH_DELETE_RANGE + 1))
void commit_append_step(struct buffer *buffer, const struct commit_step *step);
bool commit_are_steps(struct slice steps);

/* Has an earlier commit of its stream failed? Then this one was failed alike: answer it. */
bool commit_is_doomed(struct commit *commit);
/* Notes that the commit failed and breaks its stream. `guard_found` is for ERR_FENCED, else 0. */
void commit_fail(struct commit *commit, enum error_kind outcome, uint64_t guard_found);
/* Sends the commit to its owner loop, where done is called. From any loop or worker. */
void commit_answer(struct commit *commit);
/* All of a list, linked by their messages; empties it. Each loop is woken once. */
void commit_answer_all(struct list *commits);

/* What operators can do with the stores of an engine (admin.h); NULL: it cannot. */
struct store_admin {
    struct error *(*backup)(struct store *store, const char *folder, struct arena *arena);
    const char *(*damage)(const struct store *store, struct arena *arena);
    enum store_memory (*memory)(const struct store *store);
    struct error *(*set_whole)(struct store *store, struct arena *arena);
};

struct store_engine {
    const char *name;
    bool (*is_alone)(const struct store *store); /* admin.h */
    const struct store_admin *admin;             /* NULL: nothing of it */
    /* Queues a commit; never yields, never refuses, never calls done before it has returned.
     * Commits that one loop submits for one partition are performed in that order; a commit that
     * is doomed is not performed. All that wait may share one sync. A confirmation is decided in
     * its turn like any other and writes nothing; alone it needs no sync, but is not answered
     * before what was decided ahead of it is durable. A local log that failed answers
     * every commit with ERR_OUTCOME_UNKNOWN (was in flight) or ERR_UNAVAILABLE (came later). When
     * a commit is answered every loop's readers see it. */
    void (*submit)(struct store *store, struct commit *commit);
    struct error *(*guard)(struct store *store, struct partition partition, struct arena *arena,
                           uint64_t *guard);
    struct error *(*get)(struct store *store, struct partition partition, enum row_kind kind,
                         struct slice key, struct arena *arena, bool *found, struct slice *value,
                         uint64_t *guard); /* NULL: not wanted */
    /* rows->guard only if scan->wants_guard. */
    struct error *(*scan)(struct store *store, const struct scan *scan, struct arena *arena,
                          struct rows *rows);
    struct error *(*walk)(struct store *store, enum row_kind kind, const struct walk_row *after,
                          size_t rows_max, struct arena *arena, struct walk_rows *rows);
    /* Called from any loop; the text lives as long as the store. */
    const char *(*failure)(const struct store *store);
    void (*close)(struct store *store); /* nothing is in flight; frees the store. May yield. */
};

struct store {
    const struct store_engine *engine;
    size_t queued_bytes_max;     /* of commits in flight, 0: no limit; set by the engine */
    _Atomic size_t queued_bytes; /* of commits in flight */
    _Atomic uint64_t calls;      /* in flight, reads too, + 1 until store_close */
    _Atomic bool is_closing;
    _Atomic uint64_t stream_newest; /* numbers given to streams */
    struct loop_message closed;     /* posted when calls reach 0 */
    struct loop *closer_loop;       /* of the fiber in store_close */
    struct fiber *closer;
    bool is_idle;              /* `closed` was delivered */
    struct store_meter *meter; /* one block that the engine frees; NULL: nothing is measured */
};
/* Fills the shared part. `queued_bytes_max` as above. */
void store_init(struct store *store, const struct store_engine *engine, size_t queued_bytes_max);
/* From now on calls are counted and timed (meter.c). Before the first call. */
void store_measure(struct store *store, struct metrics *metrics);
/* Begins a call, which store_close then waits for: store.c does it around every function of the
 * table; an engine does it around what only that engine offers. Error: ERR_UNAVAILABLE, it has
 * failed or is closing, and the call did not begin. */
must_use struct error *store_enter(struct store *store, struct arena *arena);
/* Ends it; the store may be gone afterwards. */
void store_leave(struct store *store);

/* --- between the shared files ----------------------------------------------------------------- */

/* Checks a batch against rows.h and its guards: a mistake is a bug. */
void store_check_batch(const struct batch *batch, uint64_t guard_expected);
void store_check_partition(struct partition partition);
/* Copies a checked batch. */
struct commit *commit_new(struct store *store, const struct batch *batch, uint64_t guard_expected);
/* A confirmation. */
struct commit *commit_new_confirmation(struct store *store, struct partition partition,
                                       uint64_t guard);
/* For the meter: when a call begins, and that one is over. */
int64_t meter_begin(const struct store *store);
void meter_read(const struct store *store, enum row_kind kind, int64_t began, bool failed);
void meter_commit(const struct store *store, const struct commit *commit);
/* Gives it to the engine, counts it. */
void commit_submit(struct commit *commit);
/* For `done`: the opposite of both. */
void commit_complete(struct commit *commit);
/* Is there room for another commit, by bytes? */
bool store_has_room(const struct store *store);
/* The error that a failed commit's caller gets. */
must_use struct error *commit_error(struct partition partition, enum error_kind outcome,
                                    uint64_t guard_expected, uint64_t guard_found,
                                    struct arena *arena);

#endif
