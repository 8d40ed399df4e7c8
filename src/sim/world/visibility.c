/* visibility.c - see visibility.h.
 *
 * An engine around the one in memory. It keeps what was written, in order, and remembers up to
 * where it was synced: after a crash visibility is rebuilt from what was synced. */
#include "sim/world/visibility.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/vector.h"
#include "visibility/engine.h"
#include "wire/message.h"

/* One write: a change, or that a shard begins again. In the arena. */
struct written {
    bool is_beginning;
    struct visibility_change change; /* of a beginning: shard and row */
};

struct sim_visibility {
    struct visibility door;
    struct visibility *inner;
    struct arena *arena; /* of what was written */
    vector_of(struct written) written;
    size_t synced; /* so many of them stay */
    const struct attribute_set *attributes;
};

static struct sim_visibility *
sim_visibility_of(struct visibility *visibility)
{
    return container_of(visibility, struct sim_visibility, door);
}

/* Memory of no host: none takes it along. */
static void
heap_return(struct heap **heap)
{
    (void)heap_select(*heap);
}

static void
note_change(struct sim_visibility *sim_visibility, const struct visibility_change *change)
{
    struct arena *arena = sim_visibility->arena;
    struct written written = {.change = *change};
    written.change.domain_id = arena_text(arena, change->domain_id);
    written.change.workflow_id = arena_text(arena, change->workflow_id);
    written.change.run_id = arena_text(arena, change->run_id);
    written.change.info = arena_slice(arena, change->info);
    vector_push(&sim_visibility->written, written);
}

static struct error *
engine_feed(struct visibility *visibility, const struct visibility_change *changes, size_t count,
            const struct attribute_set *attributes, struct arena *arena)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    struct sim_visibility *sim_visibility = sim_visibility_of(visibility);
    for (size_t i = 0; i < count; i++)
        note_change(sim_visibility, &changes[i]);
    return visibility_feed(sim_visibility->inner, changes, count, sim_visibility->attributes,
                           arena);
}

static struct error *
engine_forget(struct visibility *visibility, uint32_t shard, uint64_t level, struct arena *arena)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    struct sim_visibility *sim_visibility = sim_visibility_of(visibility);
    struct written written = {.is_beginning = true, .change = {.shard = shard, .row = level}};
    vector_push(&sim_visibility->written, written);
    return visibility_forget(sim_visibility->inner, shard, level, arena);
}

static struct error *
engine_level(struct visibility *visibility, uint32_t shard, struct arena *arena, uint64_t *row)
{
    return visibility_level(sim_visibility_of(visibility)->inner, shard, arena, row);
}

static struct error *
engine_sync(struct visibility *visibility, struct arena *arena)
{
    struct sim_visibility *sim_visibility = sim_visibility_of(visibility);
    sim_visibility->synced = sim_visibility->written.count;
    return NULL;
}

static struct error *
engine_list(struct visibility *visibility, const struct visibility_question *question,
            struct arena *arena, struct visibility_page *page)
{
    return visibility_list(sim_visibility_of(visibility)->inner, question, arena, page);
}

static struct error *
engine_count(struct visibility *visibility, const char *domain_id, const struct query *query,
             struct arena *arena, int64_t *count)
{
    return visibility_count(sim_visibility_of(visibility)->inner, domain_id, query, arena, count);
}

static void
engine_close(struct visibility *visibility)
{
    unreachable("visibility belongs to the simulation");
}

static const struct visibility_engine engine = {
    .name = "sim",
    .close = engine_close,
    .feed = engine_feed,
    .level = engine_level,
    .sync = engine_sync,
    .forget = engine_forget,
    .list = engine_list,
    .count = engine_count,
};

struct sim_visibility *
sim_visibility_new(void)
{
    struct sim_visibility *sim_visibility = memory_zalloc(1, sizeof *sim_visibility);
    sim_visibility->door.engine = &engine;
    sim_visibility->inner = visibility_open_memory();
    sim_visibility->arena = arena_new(0);
    sim_visibility->attributes = attribute_set_new(sim_visibility->arena);
    return sim_visibility;
}

void
sim_visibility_free(struct sim_visibility *sim_visibility)
{
    visibility_close(sim_visibility->inner);
    vector_free(&sim_visibility->written);
    arena_free(sim_visibility->arena);
    memory_free(sim_visibility);
}

struct visibility *
sim_visibility_door(struct sim_visibility *sim_visibility)
{
    return &sim_visibility->door;
}

static void
replay(struct sim_visibility *sim_visibility)
{
    visibility_close(sim_visibility->inner);
    sim_visibility->inner = visibility_open_memory();
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < sim_visibility->written.count; i++) {
        const struct written *written = &sim_visibility->written.items[i];
        const struct visibility_change *change = &written->change;
        struct error *err =
            written->is_beginning
                ? visibility_forget(sim_visibility->inner, change->shard, change->row, arena)
                : visibility_feed(sim_visibility->inner, change, 1, sim_visibility->attributes,
                                  arena);
        check(err == NULL);
    }
}

size_t
sim_visibility_crash(struct sim_visibility *sim_visibility)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    size_t lost = sim_visibility->written.count - sim_visibility->synced;
    if (lost == 0)
        return 0;
    sim_visibility->written.count = sim_visibility->synced;
    replay(sim_visibility);
    return lost;
}

void
sim_visibility_lose(struct sim_visibility *sim_visibility)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    sim_visibility->written.count = sim_visibility->synced = 0;
    replay(sim_visibility);
}
