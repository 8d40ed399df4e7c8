/* errands.h - what workflows ask of workflows that are active in another cluster: the way there.
 * The way in is ReplicationAPI.RunErrand, one of the methods of replication.h. */
#ifndef CADENZA_REPLICATION_ERRANDS_H
#define CADENZA_REPLICATION_ERRANDS_H

#include "replication/reapply.h"

/* The port of the engine; the sender outlives it. */
struct abroad_port abroad_port_of(struct reapply_sender *sender);

#endif
