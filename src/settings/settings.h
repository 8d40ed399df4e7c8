/* settings.h - dynamic settings that were changed by a call: stored, and above those of the file.
 *
 * A key that was updated has a list of entries here, in the form of the dynamic file (as JSON,
 * which is YAML too). If one of them fits the caller it wins; else the file counts, then the
 * default. A change is durable before it is in force. Restoring a key deletes its entries.
 *
 * Lives on loop 0; calls may come from every loop. All yield. Errors: ERR_BAD_REQUEST naming key
 * and fault, those of the store, ERR_DEADLINE and ERR_CANCELLED (it may have been done). */
#ifndef CADENZA_SETTINGS_SETTINGS_H
#define CADENZA_SETTINGS_SETTINGS_H

#include "config/dynamic.h"
#include "store/store.h"

struct settings;

/* Reads what is stored and puts it in force. On loop 0. */
must_use struct error *settings_open(struct store *store, struct dynamic *dynamic,
                                     struct arena *arena, struct settings **settings);
/* On loop 0, when there are no more calls. */
void settings_close(struct settings *settings);

/* One entry: a value for callers that fit all constraints. */
struct setting_constraint {
    const char *name, *json;
};
struct setting_entry {
    const char *json; /* the value */
    struct setting_constraint *constraints;
    size_t constraint_count;
};
struct setting {
    const char *name;
    struct setting_entry *entries;
    size_t count;
};

/* Replaces all entries of a key; none: restores it. */
must_use struct error *settings_update(struct settings *settings, const struct setting *setting,
                                       struct arena *arena);
/* Deletes the entries of a key whose constraints are exactly these; NULL: all of the key's. */
must_use struct error *settings_restore(struct settings *settings, const char *name,
                                        const struct setting_constraint *constraints, size_t count,
                                        struct arena *arena);
/* What is stored of a key, or of all (name ""), in order of name. In the arena. */
must_use struct error *settings_list(struct settings *settings, const char *name,
                                     struct arena *arena, struct setting **found, size_t *count);
/* The value for such a caller, stored or not, as JSON in the arena; durations are texts.
 * Does not yield. */
must_use struct error *settings_get(const struct settings *settings, const char *name,
                                    const struct setting_constraint *constraints, size_t count,
                                    struct arena *arena, const char **json);

#endif
