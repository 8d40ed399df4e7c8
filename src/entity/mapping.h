/* mapping.h - what a source of entities says: key → region, as YAML lines or as a JSON object.
 * Pure.
 *
 * Of YAML only what such a file needs is read, one line each: `key: region`, either in quotes or
 * not, comments, empty lines and `---`. Anything nested, listed or anchored is a fault with its
 * line, and so is a key that occurs twice: nothing is guessed. */
#ifndef CADENZA_ENTITY_MAPPING_H
#define CADENZA_ENTITY_MAPPING_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#define MAPPING_SIZE_MAX (64u * 1024 * 1024)

struct mapping_entry {
    const char *key;
    const char *region; /* NULL: the entity is gone (JSON null) */
};

struct mapping {
    struct mapping_entry *entries; /* sorted by key, each once */
    size_t count;
};

/* All of it lives in the arena. A text that begins with a brace is JSON. Errors: ERR_BAD_REQUEST,
 * naming the line or the key. */
must_use struct error *mapping_read(struct slice text, struct arena *arena,
                                    struct mapping *mapping);
/* The same of the value of a member. */
must_use struct error *mapping_read_object(struct slice object, struct arena *arena,
                                           struct mapping *mapping);
/* NULL: there is none. */
const struct mapping_entry *mapping_find(const struct mapping *mapping, const char *key);

#endif
