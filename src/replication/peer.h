/* peer.h - clients for the other clusters of the group. */
#ifndef CADENZA_REPLICATION_PEER_H
#define CADENZA_REPLICATION_PEER_H

#include "cluster/group.h"
#include "net/client.h"

/* What is needed beside the address; the lists are in the order of the group. */
struct peer_ways {
    const struct cluster_group *group;
    struct tls *const *tls;                       /* NULL: plain to all */
    const struct grpc_live_header *const *tokens; /* NULL: none to all */
};

/* A client for the cluster's AdminAPI. Does not connect yet. */
struct grpc_client *peer_client_new(const struct peer_ways *ways, const struct cluster *cluster);

/* Clients that are kept, for messages that any loop may have to send at any time: one per loop and
 * cluster, made when the first message is sent. A peer that vanished without closing the connection
 * is noticed within some seconds; the next message connects again. */
struct peer_clients;
/* Call it before any message is sent. The arrays in `ways` must outlive the clients. */
struct peer_clients *peer_clients_new(const struct peer_ways *ways);
/* The client of this loop for another cluster; it lives as long as `clients`. */
struct grpc_client *peer_clients_find(struct peer_clients *clients, const struct cluster *cluster);
/* Call it when nothing is sent any more. Yields; cannot be cancelled. NULL is fine. */
void peer_clients_free(struct peer_clients *clients);

/* For the log: what to do about a peer that says ERR_ACCESS_DENIED. */
#define PEER_REFUSES                                                                               \
    "A cluster refuses the calls of this one: it wants a token signed with a key that it knows; "  \
    "see clusterGroup.<cluster>.authorizationProvider. Trying again."

#endif
