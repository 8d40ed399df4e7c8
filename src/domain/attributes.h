/* attributes.h - the cluster attributes of a domain, (scope, name) → active cluster and failover
 * version, as a flat list that is easy to walk, compare and merge.
 *
 * A list is sorted by scope, then name, and has each pair once; its texts are those of the message
 * it was read from. One that was taken away stays in the record, apart, with the version that took
 * it away, so that a cluster that does not know of that cannot bring it back; if it is added again,
 * its version goes on from there. */
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
    bool is_removed; /* it was active there, until it was taken away with this version */
};

struct attributes {
    struct attribute *all;
    size_t count, capacity;
};

/* The attributes of the message; NULL has none. What it names as region_to_cluster, the older form,
 * are attributes of scope "region", unless it has them in the newer form too. */
struct attributes attributes_read(const API(ActiveClusters) *clusters, struct arena *arena);
/* The other way round, without those that were removed; NULL: there are none. */
API(ActiveClusters) *attributes_write(const struct attributes *attributes, struct arena *arena);
/* Those of a domain, and those that it had: `removed` has the form of a message too. */
struct attributes attributes_read_all(const API(ActiveClusters) *clusters,
                                      const API(ActiveClusters) *removed, struct arena *arena);
/* The other way round: only those that were removed; NULL: there are none. */
API(ActiveClusters) *attributes_write_removed(const struct attributes *attributes,
                                              struct arena *arena);
/* Does the message name any? */
bool attributes_are_named(const API(ActiveClusters) *clusters);
/* NULL: there is none. */
struct attribute *attributes_find(const struct attributes *attributes, const char *scope,
                                  const char *name);
/* Adds one that is not there yet, in its place. */
void attributes_add(struct attributes *attributes, const struct attribute *attribute,
                    struct arena *arena);
/* Of two states of one attribute, is this one newer? At equal versions the one that was removed
 * is: so all clusters end with the same. */
bool attribute_is_newer(const struct attribute *attribute, const struct attribute *than);
/* By scope, then name: like strcmp. */
int attribute_compare(const struct attribute *one, const struct attribute *other);

#endif
