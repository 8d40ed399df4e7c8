/* backup.c - a base that goes back in time: a copy of what is durable, and the way back to it.
 *
 * As a folder that was restored from a backup (store/rocks): the rows are those of the copy, the
 * guards of shards are above all that were ever left there, and the base says of itself that it
 * lost memory until somebody tells it that it has all again. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/fiber.h"
#include "store/key.h"
#include "store/memory/inside.h"

#define RESTORE_LEAP (UINT64_C(1) << 20) /* as ROCKS_RESTORE_LEAP */

static void
heap_back(struct heap **host)
{
    heap_select(*host);
}

struct memory_base *
memory_base_copy(const struct memory_base *base)
{
    struct memory_base *copy = memory_base_new(0);
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    memory_rows_copy(&copy->durable, &base->durable);
    atomic_store(&copy->past, atomic_load(&base->past));
    return copy;
}

static bool
is_of_shard(struct slice partition_bytes, struct arena *arena)
{
    struct partition partition;
    bool is_read = partition_take(&partition_bytes, arena, &partition);
    check(is_read);
    return partition.kind == PARTITION_SHARD;
}

/* Above what the copy has and above what was there: a base may be set back to one copy twice. */
static void
raise_guards(struct memory_rows *rows, const struct memory_rows *before)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (struct tree_row *row = tree_first(rows->guards); row != NULL; row = tree_next(row)) {
        uint64_t *guard = row->value, old = memory_rows_guard(before, row->key);
        if (is_of_shard(row->key, arena))
            *guard = (*guard > old ? *guard : old) + RESTORE_LEAP;
    }
}

void
memory_base_restore(struct memory_base *base, const struct memory_base *copy)
{
    check_that(list_is_empty(&base->handles), "a base goes back while a store is open on it");
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    struct memory_rows rows;
    memory_rows_init(&rows);
    memory_rows_copy(&rows, &copy->durable);
    raise_guards(&rows, &base->durable);
    memory_rows_free(&base->durable);
    base->durable = rows;
#ifdef CADENZA_FAULT_skip_fsync
    memory_rows_copy(&base->written, &base->durable);
#endif
    atomic_store(&base->past, STORE_RESTORED);
}

bool
memory_base_is_whole(const struct memory_base *base)
{
    return atomic_load(&base->past) == STORE_WHOLE;
}

/* ---- what operators can do with it (admin.h) ---- */

static enum store_memory
memory_past(const struct store *store)
{
    return atomic_load(&memory_store_of(store)->base->past);
}

/* Takes as long as a sync: who crashes meanwhile has lost memory still. */
static struct error *
memory_set_whole(struct store *store, struct arena *arena)
{
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    struct memory_base *base = memory_store_of(store)->base;
    int64_t delay = memory_base_delay(base, base->sync_max);
    if (delay > 0)
        err = fiber_sleep(delay, arena);
    if (err == NULL && base->is_broken)
        err = error_new(arena, ERR_IO, "the disk of the memory store is broken");
    if (err == NULL)
        atomic_store(&base->past, STORE_WHOLE);
    store_leave(store);
    return err;
}

const struct store_admin memory_admin = {.memory = memory_past, .set_whole = memory_set_whole};
