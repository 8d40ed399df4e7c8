/* shelf.h - the rows of one kind in one partition, of one generation. Only fresh*.c and shelf.c
 * include it. */
#ifndef CADENZA_STORE_ROCKS_SHELF_H
#define CADENZA_STORE_ROCKS_SHELF_H

#include <stdatomic.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/map.h"
#include "store/rocks/fresh.h"

struct fresh_entry {
    const uint8_t *value;
    uint32_t value_length;
    uint32_t key_length;
    bool is_gone;
    bool is_below;
    bool is_hidden; /* gone only until it is revealed */
    uint8_t key[];  /* the whole */
};

struct slot {
    uint64_t head; /* the first eight bytes behind the prefix */
    struct fresh_entry *entry;
};

struct shelf {
    struct slice prefix; /* kind and partition */
    struct slot *slots;
    size_t count, capacity;
};

struct generation {
    struct arena *arena;
    struct map *shelves; /* prefix → struct shelf */
    size_t bytes;
    unsigned pins;  /* of looks, and one for being in use; under the lock */
    bool is_replay; /* rows may be in the tables though they are put once */
    /* Of an old one: where its settling stands. */
    size_t cursor; /* of shelves */
    struct shelf *shelf;
    size_t slot;
};

/* A generation without rows, used by one; and its end. */
struct generation *generation_new(void);
void generation_free(struct generation *generation);
/* Its invariants; all of its rows where CHECK_DEEPLY says so. */
void generation_check(const struct generation *generation);
/* The shelf of that prefix (kind and partition); NULL if it has none, or if `generation` is NULL.
 */
struct shelf *shelf_of(const struct generation *generation, struct slice prefix);
/* The same, made if it is missing. */
struct shelf *shelf_make(struct generation *generation, struct slice prefix);

/* The row of that key (without prefix), or NULL; and the index where it is or would be. `shelf` may
 * be NULL. */
struct fresh_entry *shelf_find(const struct shelf *shelf, struct slice key, size_t *index);
/* Adds a row there. */
struct fresh_entry *shelf_insert(struct generation *generation, struct shelf *shelf, size_t index,
                                 struct slice key);
/* Takes so many rows away from there. */
void shelf_remove(struct shelf *shelf, size_t index, size_t count);
/* Where the keys from <= key < end (empty: all behind it) begin and end; nowhere if `shelf` is
 * NULL.
 */
void shelf_range(const struct shelf *shelf, struct slice from, struct slice end, size_t *first,
                 size_t *last);
/* The same with whole keys, which may lie outside of the shelf. */
void shelf_range_of(const struct shelf *shelf, struct slice from, struct slice end, size_t *first,
                    size_t *last);

static inline struct slice
entry_key(const struct fresh_entry *entry)
{
    return slice_of(entry->key, entry->key_length);
}

static inline struct slice
entry_value(const struct fresh_entry *entry)
{
    return slice_of(entry->value, entry->value_length);
}

static inline struct fresh_row
entry_row(const struct fresh_entry *entry)
{
    return (struct fresh_row){.key = entry_key(entry),
                              .value = entry_value(entry),
                              .is_gone = entry->is_gone,
                              .is_below = entry->is_below};
}

/* Under the lock. True: it was the last, free it. */
static inline bool
generation_unpin(struct generation *generation)
{
    check(generation->pins > 0);
    return --generation->pins == 0;
}

struct fresh {
    struct lock lock;
    struct generation *new, *old; /* old: NULL if there is none */
    _Atomic uint64_t hidden;
};

#endif
