/* inside.h - what the files of memory/ share: the rows, the base they live in, commits in flight.
 *
 * Two lifetimes meet here. A base and all it holds (rows, handles, flights) is outside of hosts; it
 * never points into one. A memory_store (engine.c) is a host's, and is gone with it. Memory of the
 * base is allocated with no heap selected. */
#ifndef CADENZA_STORE_MEMORY_INSIDE_H
#define CADENZA_STORE_MEMORY_INSIDE_H

#include "base/list.h"
#include "base/random.h"
#include "base/tree.h"
#include "fiber/timer.h"
#include "store/engine.h"
#include "store/memory/memory.h"

/* --- rows.c: rows and guards, and reading them ------------------------------------------------ */

struct memory_rows {
    struct tree *rows;   /* kind (1 byte), partition key, key → struct memory_value */
    struct tree *guards; /* partition key → uint64_t */
};
void memory_rows_init(struct memory_rows *rows);
void memory_rows_free(struct memory_rows *rows);
/* Replaces all of `to` by a copy of `from`. */
void memory_rows_copy(struct memory_rows *to, const struct memory_rows *from);
uint64_t memory_rows_guard(const struct memory_rows *rows, struct slice partition_key);
size_t memory_rows_count(const struct memory_rows *rows, enum row_kind kind);
/* Performs steps and sets the guard. */
void memory_rows_apply(struct memory_rows *rows, struct slice partition_key, uint64_t guard_next,
                       struct slice steps);
bool memory_rows_get(const struct memory_rows *rows, struct slice partition_key, enum row_kind kind,
                     struct slice key, struct arena *arena, struct slice *value);
void memory_rows_scan(const struct memory_rows *rows, const struct scan *scan, struct arena *arena,
                      struct rows *found);
void memory_rows_walk(const struct memory_rows *rows, enum row_kind kind,
                      const struct walk_row *after, size_t rows_max, struct arena *arena,
                      struct walk_rows *found);

/* --- base.c: the disk, as it survives hosts --------------------------------------------------- */

/* The base's copy of a commit on its way. */
struct flight {
    struct list node;
    uint64_t stream;  /* of its writer, 0: none */
    bool is_doomed;   /* an earlier one of its stream failed */
    bool is_answered; /* by a fault: answered too early */
    bool is_confirmation;
    uint64_t guard_expected;
    uint64_t guard_next;
    struct slice partition_key; /* in the same block */
    struct slice steps;
};

/* One open store, as the base sees it. */
struct memory_handle {
    struct list node;
    uint64_t number;
    struct list waiting; /* flights that came while the disk was busy */
    struct list group;   /* flights that are being written or synced */
};

struct memory_base {
    struct memory_rows durable;
#ifdef CADENZA_FAULT_skip_fsync
    struct memory_rows written; /* what readers see: a crash falls back to `durable` */
#endif
    struct random random;
    int64_t write_max, sync_max, read_max; /* ns */
    struct list handles;
    uint64_t handle_newest;
    uint64_t commits;
    uint64_t points;
    uint64_t landed, lost; /* in crashes */
    bool is_shared;        /* by several hosts */
    bool is_broken;
    _Atomic(enum store_memory) past;
    struct memory_watch watch;
};
/* What readers see. */
const struct memory_rows *memory_base_visible(const struct memory_base *base);
/* A delay in 0 .. max. */
int64_t memory_base_delay(struct memory_base *base, int64_t max);

struct memory_handle *memory_handle_new(struct memory_base *base);
void memory_handle_free(struct memory_handle *handle);
/* Copies a commit to the end of the handle's waiting flights. */
struct flight *memory_flight_add(struct memory_base *base, struct memory_handle *handle,
                                 const struct commit *commit);
/* Makes a flight's rows durable, if its guard and stream allow; then the flight is gone either way.
 * False: it was refused, *guard_found says over what guard. */
must_use bool memory_flight_land(struct memory_base *base, struct memory_handle *handle,
                                 struct flight *flight, uint64_t *guard_found);
/* What a broken disk or a crash does: a seeded prefix of the group lands, the rest is dropped. */
void memory_handle_lose(struct memory_base *base, struct memory_handle *handle);
#ifdef CADENZA_FAULT_skip_fsync
/* Shows a flight's rows to readers before they are durable. */
bool memory_flight_show(struct memory_base *base, struct memory_handle *handle,
                        struct flight *flight, uint64_t *guard_found);
#endif

/* --- engine.c, read.c, backup.c: a host's side
 * ---------------------------------------------------------- */

enum phase { PHASE_IDLE, PHASE_WRITING, PHASE_SYNCING };

struct memory_store {
    struct store store; /* first */
    struct memory_base *base;
    struct memory_handle *handle;
    struct loop *owner_loop;
    enum phase phase;
    struct timer timer;                 /* the end of the phase */
    struct deferred tick_end;           /* the same, if there is no delay */
    struct list commits;                /* of the flights, by their messages' nodes */
    _Atomic(const char *) failure_text; /* NULL: works */
};

static inline struct memory_store *
memory_store_of(const struct store *store)
{
    return container_of(store, struct memory_store, store);
}

extern const struct store_admin memory_admin;
/* The reads of the engine's table (engine.h). */
struct error *memory_guard(struct store *store, struct partition partition, struct arena *arena,
                           uint64_t *guard);
struct error *memory_get(struct store *store, struct partition partition, enum row_kind kind,
                         struct slice key, struct arena *arena, bool *found, struct slice *value,
                         uint64_t *guard);
struct error *memory_scan(struct store *store, const struct scan *scan, struct arena *arena,
                          struct rows *rows);
struct error *memory_walk(struct store *store, enum row_kind kind, const struct walk_row *after,
                          size_t rows_max, struct arena *arena, struct walk_rows *rows);

#endif
