/* memory.c - visibility without a disk: every run, looked at one by one.
 *
 * For simulation, where hosts share it as they would share a server, and as the simplest engine,
 * which the others are compared with. Its memory belongs to no host's heap, so it survives a host
 * that crashes. Nothing yields, so a call is of one moment. A query looks at each run of all
 * domains. */
#include "base/memory.h"
#include "base/check.h"
#include "base/map.h"
#include "base/vector.h"
#include "visibility/evaluate.h"
#include "visibility/memory/token.h"
#include "wire/message.h"

struct memory_run {
    uint32_t shard;
    const char *domain_id;
    struct slice info; /* encoded */
    struct visibility_row row;
    struct arena *arena; /* of all the above, and of this */
};

struct memory_level {
    uint64_t row;
};

struct memory {
    struct visibility visibility;
    struct map *runs;     /* by domain id and run id */
    struct map64 *levels; /* by shard */
};

static struct memory *
memory_of(struct visibility *visibility)
{
    return container_of(visibility, struct memory, visibility);
}

/* scoped(heap_return) struct heap *heap = heap_select(NULL): back to the caller's. */
static void
heap_return(struct heap **heap)
{
    (void)heap_select(*heap);
}

/* --- feeding -------------------------------------------------------------------------------- */

static struct memory_level *
level_of(struct memory *memory, uint32_t shard)
{
    struct memory_level *level = map64_get(memory->levels, shard);
    if (level != NULL)
        return level;
    level = memory_zalloc(1, sizeof *level);
    map64_put(memory->levels, shard, level);
    return level;
}

static struct slice
key_of(const struct visibility_change *change, struct arena *arena)
{
    return slice_text(arena_format(arena, "%s/%s", change->domain_id, change->run_id));
}

/* The row names attributes of a set that may go before the run does: a host's that crashes. */
static void
keep_attributes(struct visibility_row *row, struct arena *arena)
{
    for (size_t i = 0; i < row->custom_count; i++) {
        struct search_attribute *attribute = arena_make(arena, struct search_attribute);
        *attribute = *row->custom[i].attribute;
        attribute->name = arena_text(arena, attribute->name);
        row->custom[i].attribute = attribute;
    }
}

static struct memory_run *
run_new(const struct visibility_change *change, const struct attribute_set *attributes)
{
    struct arena *arena = arena_new(1024);
    struct memory_run *run = arena_make(arena, struct memory_run);
    *run = (struct memory_run){.shard = change->shard,
                               .domain_id = arena_text(arena, change->domain_id),
                               .info = arena_slice(arena, change->info),
                               .arena = arena};
    /* The row points into the change, so it is read of a copy that lives as long. */
    struct visibility_change copy = *change;
    copy.domain_id = run->domain_id;
    copy.workflow_id = arena_text(arena, change->workflow_id);
    copy.run_id = arena_text(arena, change->run_id);
    visibility_read_row(&copy, attributes, arena, &run->row);
    keep_attributes(&run->row, arena);
    return run;
}

static void
run_free(struct memory_run *run)
{
    if (run != NULL)
        arena_free(run->arena);
}

static void
apply(struct memory *memory, const struct visibility_change *change,
      const struct attribute_set *attributes, struct arena *arena)
{
    struct memory_level *level = level_of(memory, change->shard);
    if (change->row <= level->row)
        return;
    level->row = change->row;
    struct slice key = key_of(change, arena);
    if (change->info.length == 0)
        run_free(map_remove(memory->runs, key));
    else
        run_free(map_put(memory->runs, key, run_new(change, attributes)));
}

static struct error *
memory_feed(struct visibility *visibility, const struct visibility_change *changes, size_t count,
            const struct attribute_set *attributes, struct arena *arena)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    for (size_t i = 0; i < count; i++)
        apply(memory_of(visibility), &changes[i], attributes, scratch);
    return NULL;
}

static struct error *
memory_get_level(struct visibility *visibility, uint32_t shard, struct arena *arena, uint64_t *row)
{
    const struct memory_level *level = map64_get(memory_of(visibility)->levels, shard);
    *row = level != NULL ? level->row : 0;
    return NULL;
}

static struct error *
memory_sync(struct visibility *visibility, struct arena *arena)
{
    return NULL; /* no machine to crash */
}

static struct error *
memory_forget(struct visibility *visibility, uint32_t shard, uint64_t level, struct arena *arena)
{
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    struct memory *memory = memory_of(visibility);
    size_t cursor = 0;
    struct slice key;
    void *run;
    while (map_next(memory->runs, &cursor, &key, &run)) {
        if (((struct memory_run *)run)->shard == shard)
            run_free(map_remove(memory->runs, key));
    }
    level_of(memory, shard)->row = level;
    return NULL;
}

/* --- asking --------------------------------------------------------------------------------- */

struct found {
    const struct memory_run *run;
    struct memory_position position;
};

/* Keeps the first `limit` places in order: the new one is put where it belongs, what falls off the
 * end is forgotten. */
static void
keep_first(const struct query *query, struct found *page, size_t *count, size_t limit,
           struct found found)
{
    size_t low = 0, high = *count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory_position_compare(query, &page[middle].position, &found.position) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    check(*count <= limit);
    if (low == limit)
        return;
    *count += *count < limit;
    memmove(page + low + 1, page + low, (*count - 1 - low) * sizeof page[0]);
    page[low] = found;
}

static bool
is_meant(const struct memory_run *run, const char *domain_id, const struct query *query)
{
    return strcmp(run->domain_id, domain_id) == 0 && query_matches(query->where, &run->row);
}

static size_t
find_page(const struct memory *memory, const struct visibility_question *question,
          const struct memory_position *after, struct found *page)
{
    const struct query *query = question->query;
    size_t cursor = 0, count = 0;
    void *value;
    while (map_next(memory->runs, &cursor, NULL, &value)) {
        const struct memory_run *run = value;
        if (!is_meant(run, question->domain_id, query))
            continue;
        struct found found = {run, memory_position_of(query, &run->row)};
        if (after == NULL || memory_position_compare(query, after, &found.position) < 0)
            keep_first(query, page, &count, question->page_size, found);
    }
    return count;
}

static struct error *
memory_list(struct visibility *visibility, const struct visibility_question *question,
            struct arena *arena, struct visibility_page *page)
{
    struct memory *memory = memory_of(visibility);
    struct visibility_question bounded = *question; /* as many as there are is enough room */
    size_t runs = map_count(memory->runs);
    bounded.page_size = question->page_size <= runs ? question->page_size : runs + 1;
    struct memory_position after;
    bool has_token = question->token.length > 0;
    if (has_token) {
        struct error *err = memory_token_read(question->query, question->token, arena, &after);
        if (err != NULL)
            return err;
    }
    struct found *found = arena_zalloc(arena, bounded.page_size, sizeof *found);
    *page = (struct visibility_page){0};
    page->count = find_page(memory, &bounded, has_token ? &after : NULL, found);
    page->info = arena_alloc(arena, page->count * sizeof page->info[0]);
    for (size_t i = 0; i < page->count; i++)
        page->info[i] = arena_slice(arena, found[i].run->info);
    if (page->count == question->page_size)
        page->token = memory_token_write(&found[page->count - 1].position, arena);
    return NULL;
}

static struct error *
memory_count(struct visibility *visibility, const char *domain_id, const struct query *query,
             struct arena *arena, int64_t *count)
{
    size_t cursor = 0;
    void *run;
    *count = 0;
    while (map_next(memory_of(visibility)->runs, &cursor, NULL, &run))
        *count += is_meant(run, domain_id, query);
    return NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

static void
memory_close(struct visibility *visibility)
{
    struct memory *memory = memory_of(visibility);
    size_t cursor = 0;
    void *value;
    while (map_next(memory->runs, &cursor, NULL, &value))
        run_free(value);
    cursor = 0;
    while (map64_next(memory->levels, &cursor, NULL, &value))
        memory_free(value);
    map_free(memory->runs);
    map64_free(memory->levels);
    memory_free(memory);
}

struct visibility *
visibility_open_memory(void)
{
    static const struct visibility_engine engine = {
        .name = "memory",
        .close = memory_close,
        .feed = memory_feed,
        .level = memory_get_level,
        .sync = memory_sync,
        .forget = memory_forget,
        .list = memory_list,
        .count = memory_count,
    };
    scoped(heap_return) maybe_unused struct heap *heap = heap_select(NULL);
    struct memory *memory = memory_zalloc(1, sizeof *memory);
    *memory =
        (struct memory){.visibility.engine = &engine, .runs = map_new(), .levels = map64_new()};
    return &memory->visibility;
}
