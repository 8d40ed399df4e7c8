/* reapply.h - signals and cancel requests among events that lost are sent to the cluster where the
 * run is active. They arrive there as AdminAPI.ReapplyEvents, one of the methods of replication.h.
 */
#ifndef CADENZA_REPLICATION_REAPPLY_H
#define CADENZA_REPLICATION_REAPPLY_H

#include "cluster/group.h"
#include "engine/engine.h"
#include "replication/peer.h"

struct reapply_sender {
    const struct cluster_group *group;
    struct peer_clients *clients; /* outlive the sender */
};
/* The port of the engine; the sender outlives it. */
struct reapply_port reapply_port_of(struct reapply_sender *sender);

#endif
