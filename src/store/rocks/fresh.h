/* fresh.h - rows that are durable in the ledger and not in the tables yet, in memory.
 *
 * Of each such row the newest state, put or gone, in order of keys. What is found here counts, and
 * the tables are asked only for what is not. Rows are in one of two generations: the new one takes
 * what is committed; when it is large it becomes the old one, which no longer changes, settles into
 * the tables row by row and is dropped. So most of what is put and soon overwritten or deleted
 * never reaches the tables.
 *
 * Only the committer changes it. Others read, on any thread, under its lock; what they look at for
 * longer they pin. */
#ifndef CADENZA_STORE_ROCKS_FRESH_H
#define CADENZA_STORE_ROCKS_FRESH_H

#include "base/arena.h"
#include "base/lock.h"
#include "store/rows.h"

struct fresh;
struct fresh *fresh_new(void);
/* Nobody may look at it any more. */
void fresh_free(struct fresh *fresh);

/* --- the committer's, and nobody else's ------------------------------------------------------- */

/* Where a row lies: all keys are whole ones, as layout.c makes them, in two parts. */
struct fresh_location {
    unsigned kind;
    struct slice partition_key;
    struct slice key; /* of the row */
};
/* Bytes that live as long as rows which are put before the next freeze: values lie in them. */
struct slice fresh_keep(struct fresh *fresh, struct slice record);
/* Between the two, all that others see changes at once. */
void fresh_change_begin(struct fresh *fresh);
void fresh_change_end(struct fresh *fresh);
/* Puts a row; the value is one of fresh_keep. Within a change, as all that follow. */
void fresh_put(struct fresh *fresh, const struct fresh_location *location, struct slice value);
void fresh_delete(struct fresh *fresh, const struct fresh_location *location);
/* All rows of the new generation from `place` on to the key `end` (empty: of the kind). */
void fresh_delete_range(struct fresh *fresh, const struct fresh_location *location,
                        struct slice end);
/* Not within a change, keys of the rest of such a range: rows of the old generation, and hidden
 * ones. */
void fresh_each_settling(const struct fresh *fresh, const struct fresh_location *location,
                         struct slice end, void (*found)(void *context, struct slice key),
                         void *context);
/* Is anything known of the row here, that it is gone perhaps? */
bool fresh_knows(const struct fresh *fresh, const struct fresh_location *location);
/* Not within a change: a row is put into the tables and not here; until it is revealed nobody sees
 * it there. Of a
 * row that is known here already, in whatever state, this is refused: settling would overrule it.
 */
must_use bool fresh_hide(struct fresh *fresh, const struct fresh_location *location);
/* Within a change. */
void fresh_reveal(struct fresh *fresh, const struct fresh_location *location);
/* Whatever was put before may be in the tables as well, unlike in the life of a store, where a row
 * that is put once is in one place only. For replay, until the next freeze. */
void fresh_expect_below(struct fresh *fresh);

/* What the new generation has, with what it takes to find it: bytes, about. Is there an old one? */
size_t fresh_bytes(const struct fresh *fresh);
bool fresh_has_old(const struct fresh *fresh);
/* The new generation becomes the old one, of which there must be none. */
void fresh_freeze(struct fresh *fresh);
struct fresh_row {
    struct slice key; /* the whole */
    struct slice value;
    bool is_gone;
    bool is_below; /* may be in the tables, as it was before */
};
/* Rows of the old generation, each once; those of one kind and partition in order of keys. False:
 * that was all. */
bool fresh_next_old(struct fresh *fresh, struct fresh_row *row);
/* All its rows are in the tables. */
void fresh_drop_old(struct fresh *fresh);

/* --- for everybody ---------------------------------------------------------------------------- */

/* Is the row known here? Then *found says whether it is there, and its value is copied.
 * `prefix` bytes of the key are kind and partition. */
must_use bool fresh_get(struct fresh *fresh, struct slice key, size_t prefix, struct arena *arena,
                        bool *found, struct slice *value);

/* Counts rows that were hidden. Who does not find a row here, reads it from the tables, and finds
 * that this has changed, may have read one that is hidden: look again. */
uint64_t fresh_hidden(const struct fresh *fresh);

struct fresh_scan {
    /* What is looked for. */
    struct slice from, to; /* whole keys; from <= key < to */
    size_t prefix;         /* so many bytes of `from` are kind and partition; 1: all partitions */
    size_t rows_max;       /* of those that are there; 0: no limit */
    size_t gone_max;       /* of those that are gone; 0: no limit */
    bool is_backward;
    /* What was found, in the order that was asked for, rows that are gone, too. */
    struct fresh_row *row;
    size_t count;
    bool is_cut; /* by a limit: rows may follow */
    void *pinned[2];
};
/* Takes the lock, finds the rows, and pins what they lie in. A caller that takes a view of the
 * tables before fresh_scan_made has both of the same moment. */
void fresh_scan_begin(struct fresh *fresh, struct fresh_scan *fresh_rows, struct arena *arena);
/* Lets go of the lock. */
void fresh_scan_made(struct fresh *fresh);
/* Lets go of the rows. */
void fresh_scan_end(struct fresh *fresh, struct fresh_scan *fresh_rows);

#endif
