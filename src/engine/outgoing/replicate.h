/* replicate.h - rows for other clusters: what the files of outgoing/ share. */
#ifndef CADENZA_ENGINE_OUTGOING_REPLICATE_H
#define CADENZA_ENGINE_OUTGOING_REPLICATE_H

#include "engine/shard/outgoing_state.h"

struct tenure;

/* A row in memory, and what is sent of it. */
struct replica {
    struct list node;
    uint64_t row;
    ticket_t ticket;
    uint64_t clusters; /* a bit for each cluster of the group that it goes to */
    struct slice task; /* a ReplicationTask as it goes out; of an activity: the row itself */
    bool is_activity;
};

/* Another cluster of the group, in its order. */
struct replication_peer {
    uint64_t ack;    /* it needs no row up to this */
    uint64_t lost;   /* rows up to this were dropped, though it may need them */
    bool can_resync; /* then it reads the runs instead */
    bool has_asked;  /* for rows, in this tenure: it has said whether it can */
    bool is_far;     /* it is further behind than rows are kept for, which was logged */
    uint64_t handed; /* it was given all up to this, in this tenure */
};

/* A row for all other clusters of the domain: it has moved. */
void replicate_put_marker(struct tenure *tenure, const struct domain *domain,
                          STORED(FailoverMarker) *marker, struct batch *batch);
/* Names an activity among those that have rows in memory. */
struct slice replicate_activity_key(const struct run_key *key, int64_t schedule_id,
                                    struct arena *arena);
/* A cluster needs no row up to this any more. */
void replicate_ack(struct tenure *tenure, size_t cluster, uint64_t row);
/* It gets none up to the newest durable one: it will have to read the runs. */
void replicate_drop(struct tenure *tenure, size_t cluster);
/* From now on all that was ever sent is below the newest durable row, which is a number of no row:
 * who is told that rows up to there were dropped has not read that far. False: a row is on its way
 * to the disk; try again. No yield. */
bool replicate_leap(struct tenure *tenure);
/* The row up to which the cluster is not waited for. */
uint64_t replicate_level(const struct tenure *tenure, size_t cluster);
/* Fills it from a pending activity; false: there is nothing to tell. In the arena. */
ADMIN(SyncActivityTaskAttributes) *replicate_make_activity(const struct run *run,
                                                           const STORED(PendingActivity) *activity,
                                                           struct arena *arena);
/* A ReplicationTask about a node, in the arena. */
struct slice replicate_encode(const STORED(ReplicationRow) *row, uint64_t number,
                              API(HistoryEvent) *const *events, size_t count,
                              API(HistoryEvent) *const *begun, size_t begun_count,
                              struct arena *arena);
/* The same about a marker, of cluster `source`. */
struct slice replicate_encode_marker(const STORED(ReplicationRow) *row, uint64_t number,
                                     const char *source, struct arena *arena);

#endif
