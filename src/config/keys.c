/* keys.c - the tables of keys as data. See keys.h. */
#include "config/keys.h"

#include "base/compiler.h"

#define TEXT               KEY_TEXT, 0, 0, NULL
#define ONE_OF(words)      KEY_TEXT, 0, 0, words
#define INTEGER(low, high) KEY_INTEGER, low, high, NULL
#define FLAG               KEY_FLAG, 0, 1, NULL
#define ONLY_FALSE         KEY_FLAG, 0, 0, NULL
#define DURATION           KEY_DURATION, 0, INT64_MAX, NULL
#define LIST               KEY_LIST, 0, 0, NULL
#define IGNORED            KEY_IGNORED, 0, 0, NULL

const struct static_key static_keys[] = {
#define X(path, rule, default_value, sentence) {path, {rule}, default_value, sentence},
    STATIC_KEYS(X)
#undef X
};
const size_t static_key_count = array_length(static_keys);

const struct static_alias static_aliases[] = {
#define X(from, to) {from, to},
    STATIC_ALIASES(X)
#undef X
};
const size_t static_alias_count = array_length(static_aliases);

const struct dynamic_row dynamic_rows[DYNAMIC_KEY_COUNT] = {
#define X(key, name, type, default_value, filters, sentence)                                       \
    [key] = {name, {type, INT64_MIN, INT64_MAX, NULL}, default_value, filters, sentence},
    DYNAMIC_KEYS(X)
#undef X
};
