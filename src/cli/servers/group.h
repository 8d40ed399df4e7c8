/* group.h - the plan of a group of clusters on one machine: names, ports, folders, settings. Pure.
 * Inside cli/ only.
 *
 * Cluster number i is called clusterI and owns initial failover version i; cluster0 is the primary.
 * Ports are those of Cadence's samples: gRPC 7833, 8833, 9833, …, HTTP 255 above. */
#ifndef CADENZA_CLI_SERVERS_GROUP_H
#define CADENZA_CLI_SERVERS_GROUP_H

#include "base/arena.h"
#include "base/error.h"

#define GROUP_CLUSTERS_MAX 9

struct group_plan {
    unsigned count;   /* of clusters */
    int base_port;    /* gRPC port of cluster0 */
    const char *data; /* the group's folder */
};

/* From the texts of the flags; NULL: the default. Errors: ERR_BAD_REQUEST. */
must_use struct error *group_make_plan(const char *clusters, const char *base_port,
                                       const char *data, struct arena *arena,
                                       struct group_plan *plan);
int group_grpc_port(const struct group_plan *plan, unsigned cluster);
int group_http_port(const struct group_plan *plan, unsigned cluster);
/* What cluster number `cluster` keeps: its settings, its log and, in data/ below, its store. */
const char *group_folder(const struct group_plan *plan, unsigned cluster, struct arena *arena);
/* The YAML settings of one cluster's server. */
const char *group_settings(const struct group_plan *plan, unsigned cluster, struct arena *arena);

#endif
