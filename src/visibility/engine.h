/* engine.h - what an engine of visibility is made of: a table of functions, and a run made
 * searchable.
 *
 * visibility.c checks its callers and asks the engine. Which value a run has under which
 * name is decided once, here, for every engine: an engine that stores rows of a table takes them
 * from struct visibility_row, and what it finds must be what evaluate.h says of the same row.
 *
 * Order: by the order attribute's value; a run without one comes last, whichever the direction; of
 * a list the smallest value counts in rising order and the largest in falling order; equal values
 * go by run id, in the same direction. Texts compare bytewise; false is before true. A full page
 * has a token, even if nothing comes behind it (B-028); any other page has none. */
#ifndef CADENZA_VISIBILITY_ENGINE_H
#define CADENZA_VISIBILITY_ENGINE_H

#include "visibility/visibility.h"

struct visibility_engine {
    const char *name;
    void (*close)(struct visibility *visibility);
    struct error *(*feed)(struct visibility *visibility, const struct visibility_change *changes,
                          size_t count, const struct attribute_set *attributes,
                          struct arena *arena);
    struct error *(*level)(struct visibility *visibility, uint32_t shard, struct arena *arena,
                           uint64_t *row);
    struct error *(*sync)(struct visibility *visibility, struct arena *arena);
    struct error *(*forget)(struct visibility *visibility, uint32_t shard, uint64_t level,
                            struct arena *arena);
    struct error *(*list)(struct visibility *visibility, const struct visibility_question *question,
                          struct arena *arena, struct visibility_page *page);
    struct error *(*count)(struct visibility *visibility, const char *domain_id,
                           const struct query *query, struct arena *arena, int64_t *count);
};

/* The first member of every engine's own struct. */
struct visibility {
    const struct visibility_engine *engine;
};

/* --- a run as engines see it ----------------------------------------------------------------- */

/* What a run has under one custom attribute: one value, or several of a list. */
struct visibility_custom {
    const struct search_attribute *attribute;
    const struct attribute_value *values;
    size_t count; /* 1 or more */
};

struct visibility_row {
    bool has[COLUMN_COUNT];
    struct attribute_value column[COLUMN_COUNT]; /* where has; times in ns, as they are */
    struct visibility_custom *custom;            /* in the order of their names */
    size_t custom_count;
};

/* The row of a change that is not gone; what it points to is in the arena or the change's. Close
 * time, close status and history length are had by closed runs only, the execution time by delayed
 * ones only (B-019), empty texts by none. Values of unknown keys, and values that are not of their
 * key's type, are left out. Pure. */
void visibility_read_row(const struct visibility_change *change,
                         const struct attribute_set *attributes, struct arena *arena,
                         struct visibility_row *row);

/* Does the phrase match the text of a STRING attribute: do its words come in it, in this order and
 * side by side, whatever their case? A word is made of ASCII letters, digits, `_` and all that is
 * not ASCII; a phrase without words matches nothing. Bounded by the lengths, no allocation. */
bool visibility_text_matches(struct slice text, struct slice phrase);
/* Is the whole text like the pattern: `%` any text, `_` one character, `\` takes the next one
 * literally; the case of ASCII letters does not count? Time is bounded by the product of the
 * lengths. (That LIKE finds prefixes, as in Cadence, is the parser's doing: it adds a `%`.) */
bool visibility_text_like(struct slice text, struct slice pattern);

#endif
