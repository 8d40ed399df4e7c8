/* store.h - the only way to durable state: an ordered map of partitions, each fenced by a guard.
 *
 * Promises, kept by every engine and proven on each by contract.c:
 *   1. A commit is atomic within one partition: the whole batch is durable, or none of it.
 *   2. A batch names the guard it expects and the one it leaves, which is never lower and never 0.
 * Once a newer owner raised the guard, an older writer gets ERR_FENCED for ever: this number, not a
 * clock, keeps two owners apart. A partition that was never written has guard 0.
 *   3. Prefix order: the batches of one writer become durable in the order they were submitted. If
 * one fails, all later ones of that writer fail too (even if the guard is what they expect), and
 * the writer is finished.
 *   4. Readers see what is durable, all of each batch or nothing, and nothing that a crash could
 * take back. Who waited for a commit reads it.
 *   5. ERR_OUTCOME_UNKNOWN means it may have landed: forget what you cached, take the partition
 * again, and read again.
 *   6. A failed write or sync of a local log fails everything that waits (ERR_OUTCOME_UNKNOWN) and
 * everything after it (ERR_UNAVAILABLE, reads too) until the store is opened again; only what
 * replay shows is true.
 *   7. A batch is copied when it is submitted; what comes out of a read lives in the caller's
 * arena. The steps of a batch take effect in their order.
 *   8. A confirmation (writer_confirm) has its place among the batches of its writer. When it is
 * durable, so are they, and at a moment after it was asked for the guard was its writer's. A read
 * that is asked for the guard gives the one of the moment that it shows. Neither writes anything.
 *
 * Rows have a kind (rows.h) and a key (key.h). Values are opaque bytes here. All calls that read or
 * wait yield. A store may be used from every loop of the process; a writer belongs to the loop that
 * opened it. */
#ifndef CADENZA_STORE_STORE_H
#define CADENZA_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/uuid.h"
#include "store/rows.h"

struct store; /* each engine has its own */

/* --- batches: a value in an arena ------------------------------------------------------------- */

enum batch_verb { BATCH_PUT, BATCH_DELETE, BATCH_DELETE_RANGE };
struct batch_step {
    struct batch_step *next;
    enum batch_verb verb;
    enum row_kind kind;
    struct slice key;   /* put, delete: the row; range: first row that goes */
    struct slice head;  /* put: bytes before the value, so that a large one need not be copied */
    struct slice value; /* put: the bytes; range: the key where it ends, itself kept */
};

struct batch {
    struct partition partition;
    uint64_t guard_next; /* what the partition's guard is afterwards */
    struct arena *arena;
    struct batch_step *first, **last;
    size_t count;
    size_t bytes; /* of keys, heads and values */
};

/* An empty batch. Keys and values given later are not copied before submission: keep them until
 * then. */
struct batch *batch_new(struct arena *arena, struct partition partition, uint64_t guard_next);
void batch_put(struct batch *batch, enum row_kind kind, struct slice key, struct slice value);
/* The same with a value in two parts. */
void batch_put_headed(struct batch *batch, enum row_kind kind, struct slice key, struct slice head,
                      struct slice value);
void batch_delete(struct batch *batch, enum row_kind kind, struct slice key);
/* All rows of the kind with from <= key < to; empty `to`: to the end of the kind. */
void batch_delete_range(struct batch *batch, enum row_kind kind, struct slice from,
                        struct slice to);

/* --- writing ---------------------------------------------------------------------------------- */

/* Makes one batch durable, if the guard is `guard_expected`. Yields; ignores cancellation while the
 * outcome is open. Errors: ERR_FENCED (nothing was written; the message tells both guards),
 * ERR_OUTCOME_UNKNOWN, ERR_BUSY (nothing was written, retry later), ERR_UNAVAILABLE (the store has
 * failed or is closing). */
must_use struct error *store_commit(struct store *store, const struct batch *batch,
                                    uint64_t guard_expected, struct arena *arena);

/* A writer is the ownership of one partition: a stream of batches, each expecting the guard the one
 * before left. */
struct writer;
/* Names a batch of a writer; they count up from 1. 0: nothing, durable already. */
typedef uint64_t ticket_t;

/* Opens a stream that begins at `guard`. Writes nothing. At most `batches_max` batches wait at a
 * time. */
struct writer *writer_open(struct store *store, struct partition partition, uint64_t guard,
                           unsigned batches_max);
/* Is there room for one more batch, by the writer's count and by the bytes that wait in the whole
 * store? Ask before deciding; without a yield in between the answer stays true (several loops may
 * together pass the bytes by a batch each). */
bool writer_has_room(const struct writer *writer);
/* Queues a batch; never yields. Needs room by count (a check). The batch must be for the writer's
 * partition and expects writer_guard. On a writer that has failed the ticket fails too, with what
 * the writer failed of. */
ticket_t writer_submit(struct writer *writer, const struct batch *batch);
/* Is this writer still the owner? An empty batch in its stream, which the engine answers with the
 * group that it comes into: it compares the guard (writer_guard, which may be 0 here) where it
 * compares those of batches, writes no row and no guard, and needs no sync of its own. Once the
 * ticket is durable the answer is yes, see promise 8; if the guard is another the writer fails with
 * ERR_FENCED. Needs no room, never yields. Where a store is alone (store_is_alone) nobody can have
 * overtaken an owner, so its owner need not ask. */
ticket_t writer_confirm(struct writer *writer);
/* The newest ticket given out, the newest durable one. */
ticket_t writer_newest(const struct writer *writer);
ticket_t writer_durable(const struct writer *writer);
/* Waits until that batch is durable. Yields, unless it is known already. Many may wait for the same
 * or different tickets, on the writer's loop. Errors: as store_commit; also ERR_DEADLINE and
 * ERR_CANCELLED, when this fiber gave up waiting: the batch goes on. A writer that failed tells
 * every ticket above writer_durable the same error. */
must_use struct error *writer_wait(struct writer *writer, ticket_t ticket, struct arena *arena);
/* NULL while all is well; else why the writer is finished (lives as long as the writer). */
const struct error *writer_failure(const struct writer *writer);
/* The guard that the newest submitted batch leaves. */
uint64_t writer_guard(const struct writer *writer);
/* Asks for a call on the writer's loop for each batch that became durable, in order and before
 * those who wait for its ticket go on: tickets up to `durable` are durable; and for one last call
 * when the writer fails: `failure` is set. The callback must not yield; it may submit. */
void writer_on_durable(struct writer *writer,
                       void (*on_durable)(void *context, ticket_t durable,
                                          const struct error *failure),
                       void *context);
/* Waits until nothing is in flight, then frees it. Yields; ignores cancellation. Nobody may submit
 * or begin to wait meanwhile. */
void writer_close(struct writer *writer);

/* --- reading: all yield, cannot be cancelled; ERR_UNAVAILABLE, ERR_CORRUPT, ERR_IO ------------ */

/* The guard of a partition; 0 if it was never written. */
must_use struct error *store_guard(struct store *store, struct partition partition,
                                   struct arena *arena, uint64_t *guard);
/* One row. ERR_NOT_FOUND is not used: *found says it. */
must_use struct error *store_get(struct store *store, struct partition partition,
                                 enum row_kind kind, struct slice key, struct arena *arena,
                                 bool *found, struct slice *value);
/* The same, with the guard of that moment; `guard` NULL: it is not wanted. */
must_use struct error *store_get_guarded(struct store *store, struct partition partition,
                                         enum row_kind kind, struct slice key, struct arena *arena,
                                         bool *found, struct slice *value, uint64_t *guard);

struct row {
    struct slice key;
    struct slice value;
};
struct rows {
    struct row *row;
    size_t count;
    bool has_more;  /* a limit ended it, rows follow; go on at key_after(last key), backwards: with
                       it as `to` */
    uint64_t guard; /* of the partition at that moment, if the scan wants it; else 0 */
};
struct scan {
    struct partition partition;
    enum row_kind kind;
    struct slice from, to; /* from <= key < to; empty `to`: to the end of the kind */
    size_t rows_max;       /* 0: no limit */
    /* Of keys and values together, 0: no limit. One row comes even if it alone is larger. */
    size_t bytes_max;
    bool is_backward; /* ROW_ORDERED kinds only: from the last row below `to` down to `from` */
    bool wants_guard; /* those who read page by page see whether the owner changed between them */
};
/* Rows of one kind in one partition, in order, of one moment. */
must_use struct error *store_scan(struct store *store, const struct scan *scan, struct arena *arena,
                                  struct rows *rows);

/* Rows of one ROW_ORDERED kind over all partitions: for admin walks. Begins after (partition, key)
 * of `after`, or at the start if NULL. Not of one moment: partitions may change between pages. */
struct walk_row {
    struct partition partition;
    struct slice key, value;
};
struct walk_rows {
    struct walk_row *row;
    size_t count;
    bool has_more;
};
must_use struct error *store_walk(struct store *store, enum row_kind kind,
                                  const struct walk_row *after, size_t rows_max,
                                  struct arena *arena, struct walk_rows *rows);

/* --- life ------------------------------------------------------------------------------------- */

/* NULL while the store works; else the failure that stopped it. */
const char *store_failure(const struct store *store);
/* Waits for what is in flight, on all loops, then closes and frees. No writer may be open; what
 * begins meanwhile gets ERR_UNAVAILABLE. No loop may begin a call once this may have returned: the
 * store is memory that is gone. Yields; ignores cancellation. */
void store_close(struct store *store);

#endif
