/* guards.c - the guards that the committer has seen, so that checking one costs a hash lookup and
 * no read.
 *
 * Only the committer changes guards, so what it remembers is the truth, a little ahead of the disk:
 * a guard is raised here when its batch joins a group. If that group then fails the store is
 * finished and nobody asks again. Because it is ahead, it may be forgotten between groups only: in
 * the middle of one the database would answer with the guard before, and an owner that was just
 * fenced would pass. */
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "store/rocks/inside.h"

static void
guards_forget(struct rocks *rocks)
{
    size_t cursor = 0;
    void *guard;
    while (map_next(rocks->committer.guards, &cursor, NULL, &guard)) {
        sweep_forget(guard);
        memory_free(guard);
    }
    map_free(rocks->committer.guards);
    rocks->committer.guards = map_new();
}

void
guards_free(struct rocks *rocks)
{
    guards_forget(rocks);
    map_free(rocks->committer.guards);
}

/* Task lists come and go; forgetting all is rare and costs one read each. */
void
guards_trim(struct rocks *rocks)
{
    check(rocks->committer.record.length == 0);
    if (map_count(rocks->committer.guards) >= rocks->committer.guards_max)
        guards_forget(rocks);
}

/* What RocksDB might say, and freed as if it had. No heap is selected on this thread, so it is a
 * plain block. */
static char *
guard_failure(size_t length)
{
    static const size_t room = 64;
    char *text = memory_alloc(room);
    snprintf(text, room, "Corruption: a guard has %zu bytes, not 8", length);
    return text;
}

/* Reads the row into `guard`; false and *failure if it cannot be read. */
static bool
guard_read(struct rocks *rocks, struct slice partition_key, struct guard *guard, char **failure)
{
    struct buffer *key = &rocks->committer.key;
    buffer_clear(key);
    layout_append(key, LAYOUT_GUARD, partition_key, slice_of(NULL, 0));
    struct slice bytes = buffer_slice(key);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice value;
    bool found;
    *guard = (struct guard){.number = 0};
    if (!fresh_get(rocks->fresh, bytes, bytes.length, arena, &found, &value)) {
        size_t length;
        char *stored =
            rocksdb_get_cf(rocks->tables.db, rocks->read_any, rocks->tables.family[FAMILY_ORDERED],
                           (const char *)bytes.data, bytes.length, &length, failure);
        found = stored != NULL;
        value = arena_slice(arena, slice_of(stored, found ? length : 0));
        rocksdb_free(stored);
    }
    if (!found)
        return *failure == NULL;
    guard->is_stored = layout_guard_read(value, &guard->number);
    if (!guard->is_stored)
        *failure = guard_failure(value.length);
    return guard->is_stored;
}

struct guard *
guards_find(struct rocks *rocks, struct slice partition_key, char **failure)
{
    check(partition_key.length > 0 && *failure == NULL);
    struct guard *known = map_get(rocks->committer.guards, partition_key);
    if (known != NULL)
        return known;
    struct guard read;
    if (!guard_read(rocks, partition_key, &read, failure))
        return NULL;
    known = memory_alloc(sizeof *known);
    *known = read;
    map_put(rocks->committer.guards, partition_key, known);
    return known;
}
