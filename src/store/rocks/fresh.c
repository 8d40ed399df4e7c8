/* fresh.c - two generations of rows, and what becomes of them.
 *
 * A row that is put once cannot be in the tables while it is in the new generation, unless a
 * deleted one of the same key is there too: deleting it takes it away, and nothing is left to
 * settle. What may be below is marked as gone.
 *
 * A generation that is dropped is freed when nobody looks at it any more. */
#include "store/rocks/fresh.h"

#include "base/check.h"
#include "base/memory.h"
#include "store/rocks/inside.h"
#include "store/rocks/shelf.h"

#define PREFIX_ROOM 512

struct fresh *
fresh_new(void)
{
    struct fresh *fresh = memory_zalloc(1, sizeof *fresh);
    lock_init(&fresh->lock);
    fresh->new = generation_new();
    return fresh;
}

void
fresh_free(struct fresh *fresh)
{
    check(fresh->new->pins == 1);
    generation_free(fresh->new);
    if (fresh->old != NULL) {
        check(fresh->old->pins == 1);
        generation_free(fresh->old);
    }
    lock_free(&fresh->lock);
    memory_free(fresh);
}

size_t
fresh_bytes(const struct fresh *fresh)
{
    return fresh->new->bytes;
}

bool
fresh_has_old(const struct fresh *fresh)
{
    return fresh->old != NULL;
}

void
fresh_expect_below(struct fresh *fresh)
{
    fresh->new->is_replay = true;
}

/* The prefix of a place, in room that the caller has; names of task lists may be longer. */
static struct slice
location_prefix(const struct fresh_location *location, uint8_t room[PREFIX_ROOM],
                struct arena *arena)
{
    size_t length = 1 + location->partition_key.length;
    uint8_t *bytes = length <= PREFIX_ROOM ? room : arena_alloc(arena, length);
    bytes[0] = (uint8_t)location->kind;
    memcpy(bytes + 1, location->partition_key.data, location->partition_key.length);
    return slice_of(bytes, length);
}

/* --- changes ---------------------------------------------------------------------------------- */

struct slice
fresh_keep(struct fresh *fresh, struct slice record)
{
    fresh->new->bytes += record.length;
    return arena_slice(fresh->new->arena, record);
}

void
fresh_change_begin(struct fresh *fresh)
{
    lock_take(&fresh->lock);
}

void
fresh_change_end(struct fresh *fresh)
{
    lock_leave(&fresh->lock);
}

static bool
is_put_once(unsigned kind)
{
    return kind != LAYOUT_GUARD && row_traits(kind)->life != ROW_MANY;
}

/* The row of that place in the new generation, and where it stands; made if there is none. */
static struct fresh_entry *
find_or_add(struct fresh *fresh, const struct fresh_location *location, bool is_below,
            struct shelf **shelf, size_t *index)
{
    struct generation *generation = fresh->new;
    uint8_t room[PREFIX_ROOM];
    *shelf = shelf_make(generation, location_prefix(location, room, generation->arena));
    struct fresh_entry *entry = shelf_find(*shelf, location->key, index);
    if (entry != NULL)
        return entry;
    entry = shelf_insert(generation, *shelf, *index, location->key);
    entry->is_below = is_below;
    return entry;
}

void
fresh_put(struct fresh *fresh, const struct fresh_location *location, struct slice value)
{
    struct shelf *shelf;
    size_t index;
    bool is_below = fresh->new->is_replay || !is_put_once(location->kind);
    struct fresh_entry *entry = find_or_add(fresh, location, is_below, &shelf, &index);
    entry->value = value.data;
    entry->value_length = (uint32_t)value.length;
    entry->is_gone = false;
}

/* Is the row still on its shelf, gone, or not? */
static bool
entry_delete(struct fresh_entry *entry)
{
    if (entry->is_hidden)
        return true; /* it is put only after what is deleted now */
    entry->is_gone = true;
    entry->value = NULL;
    entry->value_length = 0;
    return entry->is_below;
}

void
fresh_delete(struct fresh *fresh, const struct fresh_location *location)
{
    struct shelf *shelf;
    size_t index;
    struct fresh_entry *entry = find_or_add(fresh, location, true, &shelf, &index);
    if (!entry_delete(entry))
        shelf_remove(shelf, index, 1);
}

bool
fresh_knows(const struct fresh *fresh, const struct fresh_location *location)
{
    uint8_t room[PREFIX_ROOM];
    struct slice prefix = location_prefix(location, room, fresh->new->arena);
    size_t index;
    return shelf_find(shelf_of(fresh->old, prefix), location->key, &index) != NULL ||
           shelf_find(shelf_of(fresh->new, prefix), location->key, &index) != NULL;
}

/* A row that is hidden looks as if it were gone. */
bool
fresh_hide(struct fresh *fresh, const struct fresh_location *location)
{
    struct generation *generation = fresh->new;
    check(is_put_once(location->kind));
    if (fresh_knows(fresh, location))
        return false;
#ifndef CADENZA_FAULT_large_row_early
    uint8_t room[PREFIX_ROOM];
    lock_take(&fresh->lock);
    struct shelf *shelf =
        shelf_make(generation, location_prefix(location, room, generation->arena));
    size_t index;
    struct fresh_entry *known = shelf_find(shelf, location->key, &index);
    check(known == NULL);
    struct fresh_entry *entry = shelf_insert(generation, shelf, index, location->key);
    entry->is_gone = entry->is_hidden = true;
    atomic_fetch_add(&fresh->hidden, 1);
    lock_leave(&fresh->lock);
#endif
    return true;
}

void
fresh_reveal(struct fresh *fresh, const struct fresh_location *location)
{
    struct generation *generation = fresh->new;
    uint8_t room[PREFIX_ROOM];
    struct slice prefix = location_prefix(location, room, generation->arena);
    struct shelf *shelf = shelf_of(generation, prefix);
    size_t index;
    if (shelf_find(shelf, location->key, &index) != NULL) /* a replay hides nothing */
        shelf_remove(shelf, index, 1);
}

uint64_t
fresh_hidden(const struct fresh *fresh)
{
    return atomic_load(&fresh->hidden);
}

void
fresh_delete_range(struct fresh *fresh, const struct fresh_location *location, struct slice end)
{
    uint8_t room[PREFIX_ROOM];
    struct shelf *shelf = shelf_of(fresh->new, location_prefix(location, room, fresh->new->arena));
    size_t first, last;
    shelf_range(shelf, location->key, end, &first, &last);
    size_t kept = first;
    for (size_t i = first; i < last; i++)
        if (entry_delete(shelf->slots[i].entry))
            shelf->slots[kept++] = shelf->slots[i];
    if (kept < last)
        shelf_remove(shelf, kept, last - kept);
}

void
fresh_each_settling(const struct fresh *fresh, const struct fresh_location *location,
                    struct slice end, void (*found)(void *context, struct slice key), void *context)
{
    const struct generation *generations[] = {fresh->old, fresh->new};
    uint8_t room[PREFIX_ROOM];
    struct slice prefix = location_prefix(location, room, fresh->new->arena);
    for (size_t i = 0; i < array_length(generations); i++) {
        const struct shelf *shelf = shelf_of(generations[i], prefix);
        size_t first, last;
        shelf_range(shelf, location->key, end, &first, &last);
        for (; first < last; first++) {
            const struct fresh_entry *entry = shelf->slots[first].entry;
            if (entry->is_hidden || (i == 0 && !entry->is_gone))
                found(context, slice_skip(entry_key(entry), prefix.length));
        }
    }
}

/* --- the old generation ----------------------------------------------------------------------- */

void
fresh_freeze(struct fresh *fresh)
{
    check(fresh->old == NULL && fresh->new->shelf == NULL); /* it does not settle yet */
    generation_check(fresh->new);
    struct generation *frozen = fresh->new, *next = generation_new();
    lock_take(&fresh->lock);
    fresh->old = frozen;
    fresh->new = next;
    lock_leave(&fresh->lock);
}

bool
fresh_next_old(struct fresh *fresh, struct fresh_row *row)
{
    struct generation *old = fresh->old;
    check(old != NULL);
    while (old->shelf == NULL || old->slot == old->shelf->count) {
        void *next;
        if (!map_next(old->shelves, &old->cursor, NULL, &next))
            return false;
        old->shelf = next;
        old->slot = 0;
    }
    const struct fresh_entry *entry = old->shelf->slots[old->slot++].entry;
    check(!entry->is_hidden); /* its group was applied before the generation was frozen */
    *row = entry_row(entry);
    return true;
}

void
fresh_drop_old(struct fresh *fresh)
{
    struct generation *old = fresh->old;
    check(old != NULL && (old->shelf == NULL || old->slot == old->shelf->count));
    lock_take(&fresh->lock);
    fresh->old = NULL;
    bool is_free = generation_unpin(old);
    lock_leave(&fresh->lock);
    if (is_free)
        generation_free(old);
}
