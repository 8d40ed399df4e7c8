/* read.c - the reads of the engine's table: a message to the owner loop, a delay there, the look at
 * one moment of the base, a message back. The result is copied into the asker's arena, which goes
 * with the message. */
#include "base/check.h"
#include "fiber/clock.h"
#include "store/key.h"
#include "store/memory/inside.h"

struct read {
    struct loop_message message;
    struct timer timer;
    struct memory_store *store;
    struct loop *asker;
    struct fiber *fiber;
    bool is_done;
    void (*perform)(struct read *read, const struct memory_rows *rows);
};

static void
deliver_back(struct loop_message *message)
{
    struct read *read = container_of(message, struct read, message);
    read->is_done = true;
    fiber_wake(read->fiber);
}

static void
read_perform(struct timer *timer)
{
    struct read *read = container_of(timer, struct read, timer);
    read->perform(read, memory_base_visible(read->store->base));
    read->message.deliver = deliver_back;
    loop_post_answer(read->asker, &read->message);
}

static void
deliver_read(struct loop_message *message)
{
    struct read *read = container_of(message, struct read, message);
    struct memory_base *base = read->store->base;
    int64_t delay = memory_base_delay(base, base->read_max);
    timer_init(&read->timer, read_perform);
    if (delay == 0)
        read_perform(&read->timer);
    else
        timer_start(&read->timer, clock_monotonic() + delay);
}

/* Yields; ignores cancellation, since `read` and what it points to is on the stack. */
static void
read_run(struct store *store, struct read *read,
         void (*perform)(struct read *read, const struct memory_rows *rows))
{
    *read = (struct read){.store = memory_store_of(store), .perform = perform};
    read->asker = loop_self();
    read->fiber = fiber_self();
    check(read->fiber != NULL);
    list_init(&read->message.node);
    read->message.deliver = deliver_read;
    loop_post_answer(read->store->owner_loop, &read->message); /* bounded by the fibers that ask */
    while (!read->is_done)
        fiber_wait_uncancellable();
}

struct guard_read {
    struct read read;
    struct slice partition_key;
    uint64_t guard;
};

static void
perform_guard(struct read *read, const struct memory_rows *rows)
{
    struct guard_read *ask = container_of(read, struct guard_read, read);
    ask->guard = memory_rows_guard(rows, ask->partition_key);
}

struct error *
memory_guard(struct store *store, struct partition partition, struct arena *arena, uint64_t *guard)
{
    struct guard_read ask = {.partition_key = partition_key(partition, arena)};
    read_run(store, &ask.read, perform_guard);
    *guard = ask.guard;
    return NULL;
}

struct get_read {
    struct read read;
    struct slice partition_key, key;
    enum row_kind kind;
    struct arena *arena;
    bool found;
    struct slice value;
    uint64_t guard;
};

static void
perform_get(struct read *read, const struct memory_rows *rows)
{
    struct get_read *ask = container_of(read, struct get_read, read);
    ask->found =
        memory_rows_get(rows, ask->partition_key, ask->kind, ask->key, ask->arena, &ask->value);
    ask->guard = memory_rows_guard(rows, ask->partition_key);
}

struct error *
memory_get(struct store *store, struct partition partition, enum row_kind kind, struct slice key,
           struct arena *arena, bool *found, struct slice *value, uint64_t *guard)
{
    struct get_read ask = {.key = key, .kind = kind, .arena = arena};
    ask.partition_key = partition_key(partition, arena);
    read_run(store, &ask.read, perform_get);
    *found = ask.found;
    *value = ask.value;
    if (guard != NULL)
        *guard = ask.guard;
    return NULL;
}

struct scan_read {
    struct read read;
    const struct scan *scan;
    struct arena *arena;
    struct rows *rows;
};

static void
perform_scan(struct read *read, const struct memory_rows *rows)
{
    struct scan_read *ask = container_of(read, struct scan_read, read);
    memory_rows_scan(rows, ask->scan, ask->arena, ask->rows);
    if (ask->scan->wants_guard)
        ask->rows->guard = memory_rows_guard(rows, partition_key(ask->scan->partition, ask->arena));
}

struct error *
memory_scan(struct store *store, const struct scan *scan, struct arena *arena, struct rows *rows)
{
    struct scan_read ask = {.scan = scan, .arena = arena, .rows = rows};
    read_run(store, &ask.read, perform_scan);
    return NULL;
}

struct walk_read {
    struct read read;
    enum row_kind kind;
    const struct walk_row *after;
    size_t rows_max;
    struct arena *arena;
    struct walk_rows *rows;
};

static void
perform_walk(struct read *read, const struct memory_rows *rows)
{
    struct walk_read *ask = container_of(read, struct walk_read, read);
    memory_rows_walk(rows, ask->kind, ask->after, ask->rows_max, ask->arena, ask->rows);
}

struct error *
memory_walk(struct store *store, enum row_kind kind, const struct walk_row *after, size_t rows_max,
            struct arena *arena, struct walk_rows *rows)
{
    struct walk_read ask = {.kind = kind, .after = after, .rows_max = rows_max};
    ask.arena = arena;
    ask.rows = rows;
    read_run(store, &ask.read, perform_walk);
    return NULL;
}
