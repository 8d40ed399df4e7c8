/* peer.h - how this cluster speaks to the others of its group. */
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

/* Clients that stay, for messages that any loop may have to send at any time: one per loop and
 * cluster, made by the first of them. A peer that has vanished is noticed within some seconds, and
 * the next message finds it again. */
struct peer_clients;
/* Made when no message is sent yet. The lists of the ways outlive it. */
struct peer_clients *peer_clients_new(const struct peer_ways *ways);
/* That of this loop, for a cluster that is another one; stays. */
struct grpc_client *peer_clients_find(struct peer_clients *clients, const struct cluster *cluster);
/* When nobody sends any more. Yields; deaf to cancel. NULL is fine. */
void peer_clients_free(struct peer_clients *clients);

/* For the log: what to do about a peer that says ERR_ACCESS_DENIED. */
#define PEER_REFUSES                                                                               \
    "A cluster refuses the calls of this one: it wants a token that a key signs which it knows; "  \
    "see clusterGroup.<cluster>.authorizationProvider. Trying again."

#endif
