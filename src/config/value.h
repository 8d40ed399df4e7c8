/* value.h - a value of a key, checked against its rule. For static and dynamic keys alike. */
#ifndef CADENZA_CONFIG_VALUE_H
#define CADENZA_CONFIG_VALUE_H

#include <stdbool.h>

#include "config/config_yaml.h"
#include "config/keys.h"

/* A name and what it stands for. */
struct value_pair {
    const char *name, *text;
};

struct value {
    enum key_type type;
    const char *text;             /* KEY_TEXT */
    int64_t integer;              /* KEY_INTEGER; KEY_FLAG: 0 or 1; KEY_DURATION: ns */
    double number;                /* KEY_NUMBER */
    const char *const *list;      /* KEY_LIST, NULL-terminated */
    const struct value_pair *map; /* KEY_MAP, ends with a NULL name; no name twice */
};

/* Reads a value; what it points to is copied into `arena`. NULL: fine. Otherwise a sentence,
 * "expected an integer from 1 to 16384, got 'many'", and *value is untouched. */
must_use const char *value_of_text(const struct key_rule *rule, const char *text,
                                   struct arena *arena, struct value *value);
must_use const char *value_of_part(const struct key_rule *rule, const struct config_part *part,
                                   struct arena *arena, struct value *value);

/* "an integer from 1 to 16384": what a rule asks for, for people. */
const char *value_wanted(const struct key_rule *rule, struct arena *arena);

#endif
