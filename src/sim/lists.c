/* lists.c - see lists.h.
 *
 * An engine around the one in memory. It keeps what was written, in order, with a mark up to where
 * it was synced: after a crash the lists are made again from what is before the mark. */
#include "sim/lists.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/vector.h"
#include "visibility/engine.h"
#include "wire/message.h"

/* One write: a change, or the beginning of a shard anew. In the arena. */
struct written {
    bool is_beginning;
    struct visibility_change change; /* of a beginning: shard and row */
};

struct sim_lists {
    struct visibility door;
    struct visibility *inner;
    struct arena *arena; /* of what was written */
    vector_of(struct written) written;
    size_t synced; /* so many of them stay */
    const struct attribute_set *attributes;
};

static struct sim_lists *
lists_of(struct visibility *visibility)
{
    return container_of(visibility, struct sim_lists, door);
}

/* Memory of no host: none takes it along. */
static void
heap_return(struct heap **heap)
{
    (void)heap_select(*heap);
}

static void
note_change(struct sim_lists *lists, const struct visibility_change *change)
{
    struct arena *arena = lists->arena;
    struct written written = {.change = *change};
    written.change.domain_id = arena_text(arena, change->domain_id);
    written.change.workflow_id = arena_text(arena, change->workflow_id);
    written.change.run_id = arena_text(arena, change->run_id);
    written.change.info = arena_slice(arena, change->info);
    vector_push(&lists->written, written);
}

static struct error *
lists_feed(struct visibility *visibility, const struct visibility_change *changes, size_t count,
           const struct attribute_set *attributes, struct arena *arena)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    struct sim_lists *lists = lists_of(visibility);
    for (size_t i = 0; i < count; i++)
        note_change(lists, &changes[i]);
    return visibility_feed(lists->inner, changes, count, lists->attributes, arena);
}

static struct error *
lists_forget(struct visibility *visibility, uint32_t shard, uint64_t level, struct arena *arena)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    struct sim_lists *lists = lists_of(visibility);
    struct written written = {.is_beginning = true, .change = {.shard = shard, .row = level}};
    vector_push(&lists->written, written);
    return visibility_forget(lists->inner, shard, level, arena);
}

static struct error *
lists_level(struct visibility *visibility, uint32_t shard, struct arena *arena, uint64_t *row)
{
    return visibility_level(lists_of(visibility)->inner, shard, arena, row);
}

static struct error *
lists_sync(struct visibility *visibility, struct arena *arena)
{
    struct sim_lists *lists = lists_of(visibility);
    lists->synced = lists->written.count;
    return NULL;
}

static struct error *
lists_list(struct visibility *visibility, const struct visibility_question *question,
           struct arena *arena, struct visibility_page *page)
{
    return visibility_list(lists_of(visibility)->inner, question, arena, page);
}

static struct error *
lists_count(struct visibility *visibility, const char *domain_id, const struct query *query,
            struct arena *arena, int64_t *count)
{
    return visibility_count(lists_of(visibility)->inner, domain_id, query, arena, count);
}

static void
lists_close(struct visibility *visibility)
{
    unreachable("the lists belong to the simulation");
}

static const struct visibility_engine engine = {
    .name = "sim",
    .close = lists_close,
    .feed = lists_feed,
    .level = lists_level,
    .sync = lists_sync,
    .forget = lists_forget,
    .list = lists_list,
    .count = lists_count,
};

struct sim_lists *
sim_lists_new(void)
{
    struct sim_lists *lists = memory_zalloc(1, sizeof *lists);
    lists->door.engine = &engine;
    lists->inner = visibility_open_memory();
    lists->arena = arena_new(0);
    lists->attributes = attribute_set_new(lists->arena);
    return lists;
}

void
sim_lists_free(struct sim_lists *lists)
{
    visibility_close(lists->inner);
    vector_free(&lists->written);
    arena_free(lists->arena);
    memory_free(lists);
}

struct visibility *
sim_lists_door(struct sim_lists *lists)
{
    return &lists->door;
}

static void
replay(struct sim_lists *lists)
{
    visibility_close(lists->inner);
    lists->inner = visibility_open_memory();
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < lists->written.count; i++) {
        const struct written *written = &lists->written.items[i];
        const struct visibility_change *change = &written->change;
        struct error *err =
            written->is_beginning
                ? visibility_forget(lists->inner, change->shard, change->row, arena)
                : visibility_feed(lists->inner, change, 1, lists->attributes, arena);
        check(err == NULL);
    }
}

size_t
sim_lists_crash(struct sim_lists *lists)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    size_t lost = lists->written.count - lists->synced;
    if (lost == 0)
        return 0;
    lists->written.count = lists->synced;
    replay(lists);
    return lost;
}

void
sim_lists_lose(struct sim_lists *lists)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    lists->written.count = lists->synced = 0;
    replay(lists);
}
