/* store.c - the front of every engine: checks callers against rows.h, counts what is in flight,
 * asks the engine.
 *
 * Every mistake a caller can make is found here, on every engine and in every build: an engine
 * such as rocks would answer some of them with silence (a backward scan of unflushed forward rows
 * finds nothing), and memory would forgive what rocks does not.
 *
 * Closing: `calls` counts calls in flight, plus one for the open store. store_close gives
 * that one back; the call that brings the count to 0 wakes the fiber that closes, so nothing has to
 * poll. A call is counted first and asks then whether the store is open; the other way round, a
 * close on another loop could come in between. The count never leaves 0 again. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/probe.h"
#include "store/engine.h"
#include "store/key.h"

void
store_init(struct store *store, const struct store_engine *engine, size_t queued_bytes_max)
{
    *store = (struct store){.engine = engine, .queued_bytes_max = queued_bytes_max};
    atomic_init(&store->calls, 1);
}

/* ---- calls in flight ---- */

/* Counts one more. False: the count had reached 0, the store is being freed. So a call of another
 * loop that comes too late is refused as long as there is anything left to ask. */
static bool
store_count_call(struct store *store)
{
    uint64_t calls = atomic_load(&store->calls);
    do {
        if (calls == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&store->calls, &calls, calls + 1));
    return true;
}

/* NULL, or ERR_UNAVAILABLE: it has failed or is closing. */
static struct error *
store_check_open(const struct store *store, struct arena *arena)
{
    const char *failure = store_failure(store);
    if (failure != NULL)
        return error_new(arena, ERR_UNAVAILABLE, "the store has failed: %s", failure);
    if (atomic_load(&store->is_closing))
        return error_new(arena, ERR_UNAVAILABLE, "the store is closing");
    return NULL;
}

struct error *
store_enter(struct store *store, struct arena *arena)
{
    if (!store_count_call(store))
        return error_new(arena, ERR_UNAVAILABLE, "the store is closed");
    struct error *err = store_check_open(store, arena); /* counted first: it cannot go any more */
    if (err != NULL)
        store_leave(store);
    return err;
}

static void
store_idle(struct loop_message *message)
{
    struct store *store = container_of(message, struct store, closed);
    store->is_idle = true;
    fiber_wake(store->closer);
}

void
store_leave(struct store *store)
{
    uint64_t before = atomic_fetch_sub(&store->calls, 1);
    check(before > 0);
    if (before == 1)
        loop_post_answer(store->closer_loop, &store->closed);
}

void
store_close(struct store *store)
{
    check(!atomic_load(&store->is_closing) && fiber_self() != NULL);
    store->closer = fiber_self();
    store->closer_loop = loop_self();
    store->closed.deliver = store_idle;
    atomic_store(&store->is_closing, true);
    store_leave(store);
    while (!store->is_idle)
        fiber_wait_uncancellable();
    check(atomic_load(&store->queued_bytes) == 0);
    store->engine->close(store);
}

const char *
store_failure(const struct store *store)
{
    return store->engine->failure(store);
}

bool
store_has_room(const struct store *store)
{
    return store->queued_bytes_max == 0 ||
           atomic_load(&store->queued_bytes) < store->queued_bytes_max;
}

/* ---- checks ---- */

void
store_check_partition(struct partition partition)
{
    check_that(partition.kind > 0 && partition.kind < PARTITION_KIND_END, "partition kind %d",
               (int)partition.kind);
    check(partition.kind == PARTITION_SHARD || partition.number == 0);
    check(partition.kind == PARTITION_TASK_LIST || partition.name.length == 0);
}

static const struct row_traits *
check_kind(struct partition partition, enum row_kind kind)
{
    store_check_partition(partition);
    const struct row_traits *traits = row_traits(kind);
    check_that(traits != NULL, "row kind %d", (int)kind);
    check_that(traits->partition == partition.kind, "%s rows do not live in partitions of kind %d",
               traits->name, (int)partition.kind);
    return traits;
}

static void
check_step(struct partition partition, const struct batch_step *step)
{
    const struct row_traits *traits = check_kind(partition, step->kind);
    if (step->verb == BATCH_DELETE)
        check_that(traits->life != ROW_ONCE_RANGE, "%s rows are deleted by ranges only",
                   traits->name);
    if (step->verb != BATCH_DELETE_RANGE)
        return;
    check_that(traits->life != ROW_ONCE, "%s rows are deleted one by one only", traits->name);
    check_that(step->value.length == 0 || slice_compare(step->key, step->value) <= 0,
               "a range of %s rows ends before it begins", traits->name);
}

/* What the batch says of its steps. */
static void
batch_check(const struct batch *batch)
{
    check((batch->first == NULL) == (batch->count == 0) && *batch->last == NULL);
    if (!CHECK_DEEPLY)
        return;
    size_t count = 0, bytes = 0;
    for (const struct batch_step *step = batch->first; step != NULL; step = step->next) {
        count++;
        bytes += step->key.length + step->head.length + step->value.length;
    }
    check(count == batch->count && bytes == batch->bytes);
}

void
store_check_batch(const struct batch *batch, uint64_t guard_expected)
{
    store_check_partition(batch->partition);
    batch_check(batch);
    check_that(batch->guard_next > 0, "a written partition has no guard 0");
    check_that(batch->guard_next >= guard_expected, "the guard would fall from %llu to %llu",
               (unsigned long long)guard_expected, (unsigned long long)batch->guard_next);
    for (const struct batch_step *step = batch->first; step != NULL; step = step->next)
        check_step(batch->partition, step);
}

/* ---- writing ---- */

void
commit_submit(struct commit *commit)
{
    struct store *store = commit->store;
    bool is_counted = store_count_call(store);
    check_that(is_counted, "a commit for a store that was closed");
    atomic_fetch_add(&store->queued_bytes, commit->bytes);
    commit->began = meter_begin(store);
    store->engine->submit(store, commit);
}

void
commit_complete(struct commit *commit)
{
    struct store *store = commit->store;
    size_t before = atomic_fetch_sub(&store->queued_bytes, commit->bytes);
    check(before >= commit->bytes);
    meter_commit(store, commit);
    memory_give(commit, commit->bytes);
    store_leave(store);
}

struct error *
commit_error(struct partition partition, enum error_kind outcome, uint64_t guard_expected,
             uint64_t guard_found, struct arena *arena)
{
    const char *name = partition_name(partition, arena);
    if (outcome == ERR_FENCED)
        return error_new(arena, ERR_FENCED, "%s: the guard is %llu, not %llu", name,
                         (unsigned long long)guard_found, (unsigned long long)guard_expected);
    if (outcome == ERR_OUTCOME_UNKNOWN)
        return error_new(arena, ERR_OUTCOME_UNKNOWN, "%s: the commit may have landed or not", name);
    check(outcome == ERR_UNAVAILABLE);
    return error_new(arena, ERR_UNAVAILABLE, "%s: the store has failed, nothing was written", name);
}

/* A fiber in store_commit, on its stack. */
struct single {
    struct fiber *fiber;
    bool is_done;
    bool failed;
    enum error_kind outcome;
    uint64_t guard_found;
};

static void
single_done(struct commit *commit)
{
    struct single *single = commit->context;
    single->failed = commit->failed;
    single->outcome = commit->outcome;
    single->guard_found = commit->guard_found;
    single->is_done = true;
    fiber_wake(single->fiber);
    commit_complete(commit);
}

struct error *
store_commit(struct store *store, const struct batch *batch, uint64_t guard_expected,
             struct arena *arena)
{
    store_check_batch(batch, guard_expected);
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    if (!store_has_room(store)) {
        store_leave(store);
        return error_new(arena, ERR_BUSY, "too many bytes wait to be written");
    }

    struct single single = {.fiber = fiber_self()};
    check(single.fiber != NULL);
    struct commit *commit = commit_new(store, batch, guard_expected);
    commit->done = single_done;
    commit->context = &single;
    commit_submit(commit);
    while (!single.is_done)
        fiber_wait_uncancellable();
    store_leave(store);
    if (!single.failed)
        return NULL;
    if (single.outcome == ERR_FENCED)
        probe("store_fenced");
    return commit_error(batch->partition, single.outcome, guard_expected, single.guard_found,
                        arena);
}

/* ---- reading ---- */

struct error *
store_guard(struct store *store, struct partition partition, struct arena *arena, uint64_t *guard)
{
    store_check_partition(partition);
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    err = store->engine->guard(store, partition, arena, guard);
    store_leave(store);
    return err;
}

struct error *
store_get(struct store *store, struct partition partition, enum row_kind kind, struct slice key,
          struct arena *arena, bool *found, struct slice *value)
{
    return store_get_guarded(store, partition, kind, key, arena, found, value, NULL);
}

struct error *
store_get_guarded(struct store *store, struct partition partition, enum row_kind kind,
                  struct slice key, struct arena *arena, bool *found, struct slice *value,
                  uint64_t *guard)
{
    check_kind(partition, kind);
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    *found = false;
    *value = slice_of(NULL, 0);
    int64_t began = meter_begin(store);
    err = store->engine->get(store, partition, kind, key, arena, found, value, guard);
    meter_read(store, kind, began, err != NULL);
    store_leave(store);
    return err;
}

struct error *
store_scan(struct store *store, const struct scan *scan, struct arena *arena, struct rows *rows)
{
    const struct row_traits *traits = check_kind(scan->partition, scan->kind);
    check_that(!scan->is_backward || traits->access == ROW_ORDERED,
               "%s rows are scanned forward only", traits->name);
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    *rows = (struct rows){0};
    bool is_empty = scan->to.length > 0 && slice_compare(scan->from, scan->to) >= 0;
    int64_t began = meter_begin(store);
    if (is_empty && scan->wants_guard)
        err = store->engine->guard(store, scan->partition, arena, &rows->guard);
    else if (!is_empty)
        err = store->engine->scan(store, scan, arena, rows);
    meter_read(store, scan->kind, began, err != NULL);
    store_leave(store);
    check(err != NULL || scan->rows_max == 0 || rows->count <= scan->rows_max);
    return err;
}

struct error *
store_walk(struct store *store, enum row_kind kind, const struct walk_row *after, size_t rows_max,
           struct arena *arena, struct walk_rows *rows)
{
    const struct row_traits *traits = row_traits(kind);
    check_that(traits != NULL, "row kind %d", (int)kind);
    check_that(traits->access == ROW_ORDERED, "%s rows are not walked", traits->name);
    check(rows_max > 0);
    if (after != NULL)
        check_kind(after->partition, kind);
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    *rows = (struct walk_rows){0};
    err = store->engine->walk(store, kind, after, rows_max, arena, rows);
    store_leave(store);
    return err;
}
