/* group.h - the cluster group: its clusters, and which failover versions belong to which one.
 *
 * Read from clusterGroupMetadata at start and never changed afterwards. A failover version belongs
 * to the cluster whose initial version is its remainder by the increment; so versions of two
 * clusters are never equal, and a greater version is a later failover. All functions but
 * cluster_group_load are pure. */
#ifndef CADENZA_CLUSTER_GROUP_H
#define CADENZA_CLUSTER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"

#define FAILOVER_VERSION_LOCAL                                                                     \
    (-24) /* of domains that live in one cluster only, and of their events */

/* How to speak TLS to a cluster. */
struct cluster_tls {
    bool is_enabled;
    const char *certificate_file, *key_file; /* what is shown to it; "": nothing */
    const char *const *authority_files;      /* NULL-terminated; none: the system's */
    const char *server_name;                 /* its certificate's; "": the host of its address */
    bool verifies_host;
};

struct cluster {
    const char *name;
    bool is_enabled;
    int64_t initial_failover_version;
    int64_t new_initial_failover_version; /* a second remainder while migrating; -1: none */
    const char *region;                   /* NULL: none */
    const char *rpc_name;
    const char *rpc_address;
    struct cluster_tls tls;
    const char *signing_key_file; /* signs the tokens of our calls to it; "": they have none */
};

struct region {
    const char *name;
    int64_t initial_failover_version; /* versions of the region itself have this remainder */
};

struct cluster_group {
    int64_t failover_version_increment;
    const struct cluster *current; /* this one */
    const struct cluster *primary; /* registers and updates global domains */
    const struct cluster *clusters;
    size_t count;
    const struct region *regions; /* those listed with a version of their own */
    size_t region_count;
};

/* Reads and checks the group; without a clusterGroup section the current cluster is alone. All
 * faults are listed together, one per line. Lives in `arena`. Errors: ERR_BAD_REQUEST. */
must_use struct error *cluster_group_load(const struct config *config, struct arena *arena,
                                          const struct cluster_group **group);
/* NULL if no cluster has that name. */
const struct cluster *cluster_group_find(const struct cluster_group *group, const char *name);
/* Whose version it is; NULL for a version without an owner (FAILOVER_VERSION_LOCAL, an unknown
 * remainder). */
const struct cluster *cluster_group_of_version(const struct cluster_group *group,
                                               int64_t failover_version);
/* Whose region version it is; NULL for a version of no region. */
const struct region *cluster_group_region_of_version(const struct cluster_group *group,
                                                     int64_t failover_version);
/* NULL if no region of that name is listed. */
const struct region *cluster_group_find_region(const struct cluster_group *group, const char *name);
/* The smallest version >= `failover_version` that belongs to `cluster` (for a strictly greater one,
 * give the version + 1). False: past the end of the numbers. */
must_use bool cluster_group_next_version(const struct cluster_group *group,
                                         const struct cluster *cluster, int64_t failover_version,
                                         int64_t *next);
/* The same group after its clusters took their new initial versions; versions of either remainder
 * still belong to them. */
const struct cluster_group *cluster_group_migrate(const struct cluster_group *group,
                                                  struct arena *arena);
/* Why two clusters cannot follow each other: what both of their files say, and differently, with
 * both values; NULL: they agree. `theirs` is the group as the cluster `peer` is configured, with
 * `current` as the cluster that it says it is; addresses are ignored. What only one of them names
 * is not a conflict: the files of a group change one after the other. */
const char *cluster_group_conflict(const struct cluster_group *ours,
                                   const struct cluster_group *theirs, const struct cluster *peer,
                                   struct arena *arena);
/* Is there another enabled cluster? */
bool cluster_group_has_peers(const struct cluster_group *group);
/* May this cluster register and update global domains? */
bool cluster_group_is_primary(const struct cluster_group *group);

#endif
