/* keys.h - every key that the server reads, static and dynamic. docs/settings.md is made from it.
 *
 * The tables are static_keys.h and dynamic_keys.h; a new key is one row there. Here are the words
 * that the rows are written in, and the tables as data. */
#ifndef CADENZA_CONFIG_KEYS_H
#define CADENZA_CONFIG_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "config/dynamic_keys.h"
#include "config/static_keys.h"

enum key_type {
    KEY_TEXT,
    KEY_INTEGER,
    KEY_NUMBER,
    KEY_FLAG,
    KEY_DURATION,
    KEY_LIST,
    KEY_MAP,     /* names and texts; dynamic keys only */
    KEY_IGNORED, /* of Cadence, without a meaning here: its use is logged, its value never read */
};

/* What a value must be. */
struct key_rule {
    enum key_type type;
    int64_t low, high; /* integers; durations in ns; a flag with high 0 must be false */
    const char *words; /* texts: the words to choose from, separated by spaces; NULL: any text */
};

struct static_key {
    const char *path;
    struct key_rule rule;
    const char *default_value;
    const char *sentence;
};

/* An old name of Cadence's, with everything below it, and what it is called now. */
struct static_alias {
    const char *from;
    const char *to;
};

struct dynamic_row {
    const char *name;
    struct key_rule rule;
    const char *default_value;
    const char *filters; /* what its askers carry, separated by spaces */
    const char *sentence;
};

enum dynamic_key {
#define X(key, name, type, default_value, filters, sentence) key,
    DYNAMIC_KEYS(X)
#undef X
        DYNAMIC_KEY_COUNT
};

extern const struct static_key static_keys[];
extern const size_t static_key_count;
extern const struct static_alias static_aliases[];
extern const size_t static_alias_count;
extern const struct dynamic_row dynamic_rows[DYNAMIC_KEY_COUNT];

#endif
