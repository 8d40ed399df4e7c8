/* registry.h - the search attributes of this cluster: the default keys, those that were added, and
 * those of the setting frontend.validSearchAttributes.
 *
 * Added ones are rows of a partition of their own, whose guard counts the changes. The set is
 * immutable: a change makes a new one, which is published by a pointer; old ones stay until the
 * registry closes, since there are few. */
#ifndef CADENZA_VISIBILITY_FEED_REGISTRY_H
#define CADENZA_VISIBILITY_FEED_REGISTRY_H

#include "base/log.h"
#include "config/dynamic.h"
#include "store/store.h"
#include "visibility/attributes.h"

struct registry;

/* Reads what was added. Where the domains live. Yields. Errors: the store's. */
must_use struct error *registry_open(struct store *store, struct arena *arena,
                                     struct registry **registry);
/* Takes the keys of the setting now, and again when they changed, looking every `interval` ns. A
 * key of another type than it has already, or of none, is logged and ignored; the usual
 * keys need not be in the setting, but may. Where the domains live, once; the settings must live
 * longer than the registry. Yields. Errors: the store's. */
must_use struct error *registry_follow(struct registry *registry, const struct dynamic *dynamic,
                                       int64_t interval, const struct log *log,
                                       struct arena *arena);
/* Nobody uses it or a set of it any more. Where the domains live. Yields if a setting was followed.
 */
void registry_close(struct registry *registry);
/* The set of this moment; stays true until the registry closes. Any loop, no yield. */
const struct attribute_set *registry_set(const struct registry *registry);

struct registry_key {
    const char *name;
    enum attribute_type type;
};
/* Adds keys, all or none, and waits until that is durable. Any loop. Yields. Errors: those of
 * attribute_set_add, the store's. */
must_use struct error *registry_add(struct registry *registry, const struct registry_key *keys,
                                    size_t count, struct arena *arena);

#endif
