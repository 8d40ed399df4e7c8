/* map.h - a hash map from bytes, or from 64-bit numbers, to a pointer.
 *
 * Iteration is in order of insertion; replacing a value keeps the place. Hashes depend on content
 * only, so that the same calls give the same order and cost in each replay. Keys are copied into
 * the map; values are the caller's, never NULL, never freed here. Not for sharing between threads.
 *
 * NULL is an empty map for all but a put, so an owner of many maps that stay empty need not make
 * them. */
#ifndef CADENZA_BASE_MAP_H
#define CADENZA_BASE_MAP_H

#include "base/compiler.h"
#include "base/slice.h"

struct map;

/* An empty map, freed by map_free. */
must_use struct map *map_new(void);
/* Frees the map and its keys, not the values. NULL is fine. */
void map_free(struct map *map);
size_t map_count(const struct map *map);

/* Inserts or replaces; returns the value it replaced, or NULL. */
void *map_put(struct map *map, struct slice key, void *value);
/* The value of the key, or NULL. */
void *map_get(const struct map *map, struct slice key);
/* Removes the entry and returns its value; NULL when there was none. */
void *map_remove(struct map *map, struct slice key);
/* Steps through the entries: *cursor begins at 0; false at the end. `key` and `value` may be NULL.
 * The key lives in the map. Entries may be removed while iterating, but not inserted. */
bool map_next(const struct map *map, size_t *cursor, struct slice *key, void **value);

/* The same with numbers as keys. */
struct map64;

must_use struct map64 *map64_new(void);
void map64_free(struct map64 *map);
size_t map64_count(const struct map64 *map);
void *map64_put(struct map64 *map, uint64_t key, void *value);
void *map64_get(const struct map64 *map, uint64_t key);
void *map64_remove(struct map64 *map, uint64_t key);
bool map64_next(const struct map64 *map, size_t *cursor, uint64_t *key, void **value);

/* The hash in use: 64 bits, fixed constants, the same on every machine. Not for secrets. */
uint64_t map_hash(struct slice bytes);

#endif
