/* dynamic_set.h - the values of one dynamic file, immutable once read. For dynamic.c only. */
#ifndef CADENZA_CONFIG_DYNAMIC_SET_H
#define CADENZA_CONFIG_DYNAMIC_SET_H

#include "config/config_errors.h"
#include "config/dynamic.h"
#include "config/value.h"

struct dynamic_set;

/* Reads a file's text. NULL: `faults` says why. What is odd but no reason to refuse the file
 * (unknown keys, constraints that the key does not have) goes to the log. */
struct dynamic_set *dynamic_set_read(struct slice yaml, struct config_errors *errors,
                                     const struct log *log);
/* NULL is fine. */
void dynamic_set_free(struct dynamic_set *set);
/* Does it say anything of the key? `set` may be NULL: an empty one. */
bool dynamic_set_has(const struct dynamic_set *set, enum dynamic_key key);
/* The value that holds for an asker; NULL: the default does. `set` may be NULL: an empty one. */
const struct value *dynamic_set_choose(const struct dynamic_set *set, enum dynamic_key key,
                                       const struct dynamic_filter *filter);
/* How many keys of the table have entries. */
size_t dynamic_set_count(const struct dynamic_set *set);

#endif
