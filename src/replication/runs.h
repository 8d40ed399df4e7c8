/* runs.h - what both ends of the replication of runs agree on beyond Cadence's messages. Only files
 * of replication/ include it. */
#ifndef CADENZA_REPLICATION_RUNS_H
#define CADENZA_REPLICATION_RUNS_H

/* ReplicationToken.last_processed_message_id of a cluster that reads on while it applies, and has
 * not applied anything yet. (A real one sends -1 or the same as last_retrieved_message_id.) */
#define PROCESSED_NOTHING (-2)

#endif
