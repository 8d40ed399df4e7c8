/* maps.h - maps, which protobuf-c knows only as arrays of entry messages {key = 1, value = 2}.
 *
 * A map is *good* when its keys rise strictly (strings bytewise, numbers by value) and every entry
 * has its value. Decoding leaves good maps; code that builds one calls wire_map_sort before it is
 * searched or sent. `entries` is the array of a map field, for example domain->data, of
 * domain->n_data entries. */
#ifndef CADENZA_WIRE_MAPS_H
#define CADENZA_WIRE_MAPS_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/compiler.h"

/* Is it the type of a map's entries? Recognized by its shape: the descriptor does not say. */
bool wire_map_is_entry(const ProtobufCMessageDescriptor *type);

/* Makes the map good: sorts, keeps the last of equal keys, gives an empty message to an entry whose
 * value is one and is absent. *count becomes the number left. The array is changed in place;
 * `arena` holds new values and the room to sort in. */
#define wire_map_sort(arena, entries, count)                                                       \
    wire_map_sort_messages(                                                                        \
        (arena), (ProtobufCMessage **)(entries) + 0 * sizeof(&(*(entries))->base), (count))
void wire_map_sort_messages(struct arena *arena, ProtobufCMessage **entries, size_t *count);

/* The entry with this key in a good map with string keys, as a pointer to its struct, or NULL. */
#define wire_map_find(entries, count, key)                                                         \
    ((__typeof__(*(entries)))wire_map_find_message((ProtobufCMessage *const *)(entries), (count),  \
                                                   (key)))
ProtobufCMessage *wire_map_find_message(ProtobufCMessage *const *entries, size_t count,
                                        const char *key);

#endif
