/* cross_tasks.h - sends cross-workflow tasks to workflows that are active in another cluster. They
 * arrive there as ReplicationAPI.RunErrand, one of the methods of replication.h. */
#ifndef CADENZA_REPLICATION_CROSS_TASKS_H
#define CADENZA_REPLICATION_CROSS_TASKS_H

#include "replication/reapply.h"

/* The port of the engine; the sender outlives it. */
struct remote_port remote_port_of(struct reapply_sender *sender);

#endif
