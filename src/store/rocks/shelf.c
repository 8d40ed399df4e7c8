/* shelf.c - an array of rows in order of keys, searched by halving.
 *
 * A slot has the first eight bytes of the row's key in it, as a number: most comparisons need not
 * look at the row. Rows that come in order (outbox, history of a run) go to the end; for others
 * half of the slots behind them are moved, which is little as long as a generation is.
 *
 * All memory of a generation is one arena: rows, keys, slots, and the records that values lie in.
 * It goes as a whole. */
#include "store/rocks/shelf.h"

#include "base/check.h"

#define SLOTS_FIRST 8
#define ARENA_FIRST (256U << 10)
#define ROW_BYTES   64 /* to find a row: its entry, its slot, what is left over */

struct generation *
generation_new(void)
{
    struct arena *arena = arena_new(ARENA_FIRST);
    struct generation *made = arena_make(arena, struct generation);
    *made = (struct generation){.arena = arena, .shelves = map_new(), .pins = 1};
    return made;
}

void
generation_free(struct generation *generation)
{
    map_free(generation->shelves);
    arena_free(generation->arena);
}

struct shelf *
shelf_of(const struct generation *generation, struct slice prefix)
{
    return generation == NULL ? NULL : map_get(generation->shelves, prefix);
}

struct shelf *
shelf_make(struct generation *generation, struct slice prefix)
{
    struct shelf *shelf = map_get(generation->shelves, prefix);
    if (shelf != NULL)
        return shelf;
    shelf = arena_make(generation->arena, struct shelf);
    shelf->prefix = arena_slice(generation->arena, prefix);
    map_put(generation->shelves, shelf->prefix, shelf);
    return shelf;
}

/* --- slots ------------------------------------------------------------------------------------ */

static uint64_t
head_of(struct slice key)
{
    uint64_t head = 0;
    if (key.length >= sizeof head) {
        memcpy(&head, key.data, sizeof head);
        return __builtin_bswap64(head);
    }
    for (size_t i = 0; i < key.length; i++)
        head |= (uint64_t)key.data[i] << (56 - 8 * i);
    return head;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "head_of turns bytes around");

/* The first slot whose key, behind the prefix, is not below `key`. */
static size_t
shelf_at_least(const struct shelf *shelf, struct slice key)
{
    uint64_t head = head_of(key);
    size_t low = 0, high = shelf->count;
    if (high > 0 && shelf->slots[high - 1].head < head)
        return high;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct slot *slot = &shelf->slots[middle];
        bool is_below = slot->head < head;
        if (slot->head == head)
            is_below =
                slice_compare(slice_skip(entry_key(slot->entry), shelf->prefix.length), key) < 0;
        if (is_below)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct fresh_entry *
shelf_find(const struct shelf *shelf, struct slice key, size_t *index)
{
    *index = shelf == NULL ? 0 : shelf_at_least(shelf, key);
    if (shelf == NULL || *index == shelf->count)
        return NULL;
    struct fresh_entry *entry = shelf->slots[*index].entry;
    bool is_same = slice_equal(slice_skip(entry_key(entry), shelf->prefix.length), key);
    return is_same ? entry : NULL;
}

static struct fresh_entry *
entry_new(struct generation *generation, struct slice prefix, struct slice key)
{
    size_t length = prefix.length + key.length;
    struct fresh_entry *entry = arena_alloc(generation->arena, sizeof *entry + length);
    *entry = (struct fresh_entry){.key_length = (uint32_t)length};
    memcpy(entry->key, prefix.data, prefix.length);
    if (key.length > 0)
        memcpy(entry->key + prefix.length, key.data, key.length);
    return entry;
}

/* Keys rise, and each slot has the head of its row's key. */
static void
slot_check(const struct shelf *shelf, size_t index)
{
    struct slice key = entry_key(shelf->slots[index].entry);
    check(slice_starts_with(key, shelf->prefix));
    check(shelf->slots[index].head == head_of(slice_skip(key, shelf->prefix.length)));
    check(index == 0 || slice_compare(entry_key(shelf->slots[index - 1].entry), key) < 0);
}

static void
shelf_check(const struct shelf *shelf)
{
    check(shelf->count <= shelf->capacity);
    for (size_t i = 0; i < shelf->count; i++)
        slot_check(shelf, i);
}

void
generation_check(const struct generation *generation)
{
    size_t cursor = 0;
    void *shelf;
    check(generation->shelf == NULL || generation->slot <= generation->shelf->count);
    while (CHECK_DEEPLY && map_next(generation->shelves, &cursor, NULL, &shelf))
        shelf_check(shelf);
}

struct fresh_entry *
shelf_insert(struct generation *generation, struct shelf *shelf, size_t index, struct slice key)
{
    check(index <= shelf->count);
    if (shelf->count == shelf->capacity) {
        size_t capacity = shelf->capacity == 0 ? SLOTS_FIRST : 2 * shelf->capacity;
        struct slot *slots = arena_alloc(generation->arena, capacity * sizeof *slots);
        if (shelf->count > 0)
            memcpy(slots, shelf->slots, shelf->count * sizeof *slots);
        shelf->slots = slots;
        shelf->capacity = capacity;
    }
    struct slot *location = &shelf->slots[index];
    memmove(location + 1, location, (shelf->count - index) * sizeof *location);
    *location = (struct slot){head_of(key), entry_new(generation, shelf->prefix, key)};
    shelf->count++;
    generation->bytes += location->entry->key_length + ROW_BYTES;
    if (CHECK_DEEPLY) {
        slot_check(shelf, index);
        if (index + 1 < shelf->count)
            slot_check(shelf, index + 1);
    }
    return location->entry;
}

void
shelf_remove(struct shelf *shelf, size_t index, size_t count)
{
    check(index + count <= shelf->count);
    shelf->count -= count;
    memmove(&shelf->slots[index], &shelf->slots[index + count],
            (shelf->count - index) * sizeof *shelf->slots);
}

void
shelf_range(const struct shelf *shelf, struct slice from, struct slice end, size_t *first,
            size_t *last)
{
    *first = *last = 0;
    if (shelf == NULL)
        return;
    *first = shelf_at_least(shelf, from);
    *last = end.length == 0 ? shelf->count : shelf_at_least(shelf, end);
    if (*last < *first)
        *last = *first;
}

/* Where a bound that is a whole key stands. */
static size_t
bound_of(const struct shelf *shelf, struct slice key)
{
    if (slice_starts_with(key, shelf->prefix))
        return shelf_at_least(shelf, slice_skip(key, shelf->prefix.length));
    return slice_compare(key, shelf->prefix) > 0 ? shelf->count : 0;
}

void
shelf_range_of(const struct shelf *shelf, struct slice from, struct slice end, size_t *first,
               size_t *last)
{
    *first = bound_of(shelf, from);
    *last = bound_of(shelf, end);
    if (*last < *first)
        *last = *first;
}
