/* runs.h - what both ends of the replication of runs agree on beyond Cadence's messages. Only files
 * of replication/ include it. */
#ifndef CADENZA_REPLICATION_RUNS_H
#define CADENZA_REPLICATION_RUNS_H

#include "engine/shard/shard.h"
#include "replication/inside.h"

/* ReplicationToken.last_processed_message_id of a cluster that reads on while it applies, and has
 * not applied anything yet. (A real one sends -1 or the same as last_retrieved_message_id.) */
#define PROCESSED_NOTHING (-2)

/* The page for shards that this cluster does not have, for a peer that asks for them: markers of
 * draining domains that changed after notification version `after`. Does not yield. */
void markers_read(const struct replication *replication, const struct cluster *cluster,
                  int64_t after, struct arena *arena, struct replication_page *page);

#endif
