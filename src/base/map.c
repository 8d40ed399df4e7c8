/* map.c - entries in an array in order of insertion, and a table of their numbers to find them.
 *
 * The table is open addressing with linear probing; a slot holds the number of an entry plus one, 0
 * is empty, and half of its hash: entries of other keys are passed without reading them, which
 * would be a cache miss each. Removing leaves a dead entry (value NULL) in the array and closes the
 * gap in the table. Dead entries go when the array is full: it is packed if half of it is dead,
 * else it grows.
 *
 * A number is hashed by a function that never maps two numbers to one hash; so for map64 equal
 * hashes are equal keys, its keys as bytes are empty, and everything else is shared.
 *
 * Invariants:
 *   1. Each live entry has exactly one slot; slots name live entries only.
 *   2. At most half of the slots are taken, so probing ends.
 *   3. All entries before `first` are dead. */
#include "base/map.h"

#include <endian.h>

#include "base/check.h"
#include "base/memory.h"

#define MAP_FIRST_CAPACITY 8u

struct map_entry {
    uint64_t hash;
    uint64_t number;  /* the key of a map64 */
    struct slice key; /* ours; empty in a map64 */
    void *value;      /* NULL: dead */
};

struct map_slot {
    uint32_t hash;   /* the low half: more than the table ever uses of it */
    uint32_t number; /* of the entry, plus one; 0: empty */
};

struct map {
    struct map_entry *entries; /* and the slots: one block */
    struct map_slot *slots;    /* 2 * capacity of them */
    uint32_t capacity;         /* of entries: 0 or a power of two */
    uint32_t used;             /* entries in use, dead ones included */
    uint32_t first;            /* no live entry before it */
    uint32_t live;
};

struct map64 {
    struct map map; /* alone, so that a pointer to it is one to the map, NULL too */
};

/* ---- hashes ---- */

static uint64_t
fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t
load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

/* The bytes behind the last whole word, as the low end of one. If there is a word before them, they
 * are the high end of the last eight bytes: one load, not one for each. */
static uint64_t
load_tail(struct slice bytes)
{
    size_t count = bytes.length % 8;
    if (count == 0)
        return 0;
    if (bytes.length > 8)
        return load_word(bytes.data + bytes.length - 8) >> 8 * (8 - count);
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)bytes.data[i] << 8 * i;
    return word;
}

/* Words of eight bytes, each folded into the state by a 128-bit product. */
uint64_t
map_hash(struct slice bytes)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15), other = UINT64_C(0xe7037ed1a0b428db);
    uint64_t state = bytes.length ^ other;
    for (size_t i = 0; i + 8 <= bytes.length; i += 8)
        state = fold(state ^ load_word(bytes.data + i), odd);
    state = fold(state ^ load_tail(bytes), odd);
    return fold(state ^ other, odd);
}

/* A bijection: xor-shifts and odd factors can all be undone. */
static uint64_t
number_hash(uint64_t number)
{
    number = (number ^ number >> 32) * UINT64_C(0xd6e8feb86659fd93);
    number = (number ^ number >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return number ^ number >> 32;
}

/* ---- the table ---- */

static uint32_t
slot_mask(const struct map *map)
{
    return map->capacity * 2 - 1;
}

/* The slot of the key, or the empty one where it would go. */
static uint32_t
find_slot(const struct map *map, uint64_t hash, struct slice key)
{
    const uint32_t low = (uint32_t)hash, mask = slot_mask(map);
    uint32_t slot = low & mask;
    for (; map->slots[slot].number != 0; slot = (slot + 1) & mask) {
        if (map->slots[slot].hash != low)
            continue;
        const struct map_entry *entry = &map->entries[map->slots[slot].number - 1];
        if (entry->hash == hash && slice_equal(entry->key, key))
            break;
    }
    return slot;
}

static struct map_entry *
find(const struct map *map, uint64_t hash, struct slice key)
{
    if (map == NULL || map->capacity == 0)
        return NULL;
    uint32_t slot = find_slot(map, hash, key);
    return map->slots[slot].number == 0 ? NULL : &map->entries[map->slots[slot].number - 1];
}

static void
fill_slot(struct map *map, uint32_t slot, uint32_t entry)
{
    map->slots[slot] = (struct map_slot){(uint32_t)map->entries[entry].hash, entry + 1};
}

/* Empties a slot; what was pushed past it by probing moves back. */
static void
close_slot(struct map *map, uint32_t hole)
{
    uint32_t mask = slot_mask(map);
    for (uint32_t next = (hole + 1) & mask; map->slots[next].number != 0;
         next = (next + 1) & mask) {
        uint32_t first_slot = map->slots[next].hash & mask;
        if (((next - first_slot) & mask) < ((next - hole) & mask))
            continue; /* it would land before its home */
        map->slots[hole] = map->slots[next];
        hole = next;
    }
    map->slots[hole] = (struct map_slot){0};
}

/* Of the block with the entries and behind them the slots. */
static size_t
block_size(uint32_t capacity)
{
    return capacity * (sizeof(struct map_entry) + 2 * sizeof(struct map_slot));
}

static void
free_block(const struct map *map)
{
    if (map->capacity > 0)
        memory_give(map->entries, block_size(map->capacity));
}

/* Drops dead entries and gives the array room again. */
static void
make_room(struct map *map)
{
    const struct map old = *map;
    if (map->live >= map->capacity / 2 || map->capacity == 0) {
        check(map->capacity < UINT32_C(1) << 30);
        map->capacity = map->capacity == 0 ? MAP_FIRST_CAPACITY : map->capacity * 2;
        map->entries = memory_take(block_size(map->capacity));
        map->slots = (struct map_slot *)(map->entries + map->capacity);
    }
    uint32_t kept = 0;
    for (uint32_t i = old.first; i < old.used; i++)
        if (old.entries[i].value != NULL)
            map->entries[kept++] = old.entries[i];
    check(kept == map->live);
    if (map->entries != old.entries)
        free_block(&old);
    memset(map->slots, 0, (size_t)map->capacity * 2 * sizeof *map->slots);
    map->first = 0;
    map->used = kept;
    for (uint32_t i = 0; i < kept; i++)
        fill_slot(map, find_slot(map, map->entries[i].hash, map->entries[i].key), i);
}

/* ---- what both kinds share ---- */

static struct slice
key_copy(struct slice key)
{
    if (key.length == 0)
        return (struct slice){0};
    return slice_of(memcpy(memory_alloc(key.length), key.data, key.length), key.length);
}

static void *
put(struct map *map, uint64_t hash, uint64_t number, struct slice key, void *value)
{
    check(value != NULL);
    if (map->capacity == 0)
        make_room(map);
    uint32_t slot = find_slot(map, hash, key);
    if (map->slots[slot].number != 0) {
        struct map_entry *found = &map->entries[map->slots[slot].number - 1];
        void *before = found->value;
        found->value = value;
        return before;
    }
    if (map->used == map->capacity) {
        make_room(map);
        slot = find_slot(map, hash, key);
    }
    check(map->slots[slot].number == 0 && map->used < map->capacity);
    map->entries[map->used] =
        (struct map_entry){.hash = hash, .number = number, .key = key_copy(key), .value = value};
    fill_slot(map, slot, map->used++);
    map->live++;
    return NULL;
}

static void *
take(struct map *map, uint64_t hash, struct slice key)
{
    if (map == NULL || map->capacity == 0)
        return NULL;
    uint32_t slot = find_slot(map, hash, key);
    if (map->slots[slot].number == 0)
        return NULL;
    struct map_entry *entry = &map->entries[map->slots[slot].number - 1];
    close_slot(map, slot);
    void *value = entry->value;
    memory_free((void *)entry->key.data);
    *entry = (struct map_entry){0};
    check(map->live > 0);
    map->live--;
    while (map->first < map->used && map->entries[map->first].value == NULL)
        map->first++;
    return value;
}

static const struct map_entry *
next(const struct map *map, size_t *cursor)
{
    if (map == NULL)
        return NULL;
    if (*cursor < map->first)
        *cursor = map->first;
    for (; *cursor < map->used; (*cursor)++)
        if (map->entries[*cursor].value != NULL)
            return &map->entries[(*cursor)++];
    return NULL;
}

static void
release(struct map *map)
{
    for (uint32_t i = 0; i < map->used; i++)
        memory_free((void *)map->entries[i].key.data);
    free_block(map);
}

/* ---- keys are bytes ---- */

struct map *
map_new(void)
{
    struct map *map = memory_take(sizeof *map);
    *map = (struct map){0};
    return map;
}

void
map_free(struct map *map)
{
    if (map == NULL)
        return;
    release(map);
    memory_give(map, sizeof *map);
}

size_t
map_count(const struct map *map)
{
    return map == NULL ? 0 : map->live;
}

void *
map_put(struct map *map, struct slice key, void *value)
{
    check(map != NULL);
    return put(map, map_hash(key), 0, key, value);
}

void *
map_get(const struct map *map, struct slice key)
{
    const struct map_entry *entry = find(map, map_hash(key), key);
    return entry == NULL ? NULL : entry->value;
}

void *
map_remove(struct map *map, struct slice key)
{
    return take(map, map_hash(key), key);
}

bool
map_next(const struct map *map, size_t *cursor, struct slice *key, void **value)
{
    const struct map_entry *entry = next(map, cursor);
    if (entry == NULL)
        return false;
    if (key != NULL)
        *key = entry->key;
    if (value != NULL)
        *value = entry->value;
    return true;
}

/* ---- keys are numbers ---- */

struct map64 *
map64_new(void)
{
    struct map64 *map = memory_take(sizeof *map);
    *map = (struct map64){0};
    return map;
}

void
map64_free(struct map64 *map)
{
    if (map == NULL)
        return;
    release(&map->map);
    memory_give(map, sizeof *map);
}

size_t
map64_count(const struct map64 *map)
{
    return map_count((const struct map *)map);
}

void *
map64_put(struct map64 *map, uint64_t key, void *value)
{
    check(map != NULL);
    return put(&map->map, number_hash(key), key, (struct slice){0}, value);
}

void *
map64_get(const struct map64 *map, uint64_t key)
{
    const struct map_entry *entry =
        find((const struct map *)map, number_hash(key), (struct slice){0});
    return entry == NULL ? NULL : entry->value;
}

void *
map64_remove(struct map64 *map, uint64_t key)
{
    return take((struct map *)map, number_hash(key), (struct slice){0});
}

bool
map64_next(const struct map64 *map, size_t *cursor, uint64_t *key, void **value)
{
    const struct map_entry *entry = next((const struct map *)map, cursor);
    if (entry == NULL)
        return false;
    if (key != NULL)
        *key = entry->number;
    if (value != NULL)
        *value = entry->value;
    return true;
}
