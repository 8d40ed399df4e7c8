/* fake_peer.h - a peer that never tells the truth: it answers at the address of cluster 0, with
 * messages made by hand. And which of them are dead letters of cluster 1. */
#ifndef CADENZA_SIM_PEERS_FAKE_PEER_H
#define CADENZA_SIM_PEERS_FAKE_PEER_H

#include "base/memory.h"
#include "net/server.h"
#include "rpc/service.h"
#include "sim/scripts/script.h"

#define UNKNOWN_RUN "11111111-2222-4333-8444-555555555555"

/* Its rows stand behind all that the real cluster may have sent before it crashed. */
#define FAKE_ROW(number) (((int64_t)1 << 30) + (number))
#define MARKER_ROW       FAKE_ROW(1000) /* of the marker that the fake peer has */
#define FAKE_TASKS_MAX   16

struct fake_peer {
    struct rpc_service *service;
    struct grpc_server *server;
    struct metrics *metrics;
    struct arena *arena;
    uint32_t shard;
    ADMIN(ReplicationTask) *tasks[FAKE_TASKS_MAX];
    size_t count;
    int64_t acknowledged; /* of the shard, as the cluster says */
    unsigned raw_calls;
    /* Messages of the shard up to this were dropped, and it has so many runs; 0: none. */
    int64_t resync_to;
    unsigned run_count;
    /* What is told of any run's history; NULL: there is none. */
    API(HistoryEvent) **history;
    size_t history_count;
    bool is_away;              /* cannot be asked for histories */
    bool refuses;              /* says that such a request makes no sense */
    unsigned cross_task_calls; /* how often it was asked for something: all that is asked for has
                                  ended */
    bool is_cadence;           /* knows none of the methods that only cadenza has */
    char request_id[64];       /* of the last start */
    unsigned starts, signals;  /* that were asked for; signals: of those, with one */
    /* Every shard that is asked for has the marker of this failover, behind all else; 0: none. */
    int64_t marker_version;
    const char *domain_id;
    struct slice domain; /* as it is described; empty: not at all */
};

/* The shard of a workflow id, in either cluster. */
uint32_t fake_peer_shard_of(const char *id);
/* Somebody else answers at the address of cluster 0 from now on. */
void fake_peer_begin(struct script *script, struct fake_peer *fake_peer);
/* Waits until the cluster has acknowledged a row of the fake peer's shard. */
void fake_peer_await(struct script *script, const struct fake_peer *fake_peer, int64_t row,
                     int64_t time);

/* Events of the run UNKNOWN_RUN of workflow "w", and a message with some. */
API(HistoryEvent) *fake_start_event(struct script *script, int64_t event_version);
API(HistoryEvent) *fake_signal_event(struct script *script, int64_t event_id,
                                     int64_t event_version);
ADMIN(ReplicationTask) *fake_task(struct script *script, int64_t row, API(HistoryEvent) **events,
                                  size_t count);

/* The dead letters of cluster 1, all of them in the shard of "w". */
size_t dead_letters_count(struct script *script, const char *source);
ADMIN(ReadDLQMessagesResponse) *dead_letters_read(struct script *script, int32_t page_size,
                                                  ProtobufCBinaryData token);
must_use struct error *dead_letters_merge(struct script *script);
void dead_letters_purge(struct script *script, int64_t to);

#endif
