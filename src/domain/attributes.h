/* attributes.h - the cluster attributes of a domain, (scope, name) → active cluster and failover
 * version, as a flat list that is easy to walk, compare and merge.
 *
 * A list is sorted by scope, then name, and has each pair once; its texts are those of the message
 * it was read from. */
#ifndef CADENZA_DOMAIN_ATTRIBUTES_H
#define CADENZA_DOMAIN_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "uber/cadence/api/v1/domain.pb-c.h"
#include "wire/names.h"

struct attribute {
    char *scope;
    char *name;
    char *cluster_name; /* where it is active */
    int64_t failover_version;
};

struct attributes {
    struct attribute *all;
    size_t count;
};

/* The attributes of the message; NULL has none. */
struct attributes attributes_read(const API(ActiveClusters) *clusters, struct arena *arena);
/* The other way round; NULL for an empty list. */
API(ActiveClusters) *attributes_write(const struct attributes *attributes, struct arena *arena);
/* NULL: there is none. */
struct attribute *attributes_find(const struct attributes *attributes, const char *scope,
                                  const char *name);
/* Adds one that is not there yet, in its place. */
void attributes_add(struct attributes *attributes, const struct attribute *attribute,
                    struct arena *arena);
/* By scope, then name: like strcmp. */
int attribute_compare(const struct attribute *one, const struct attribute *other);

#endif
