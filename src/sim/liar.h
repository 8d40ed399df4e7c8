/* liar.h - a peer of which nothing that it tells is true: it answers at the address of cluster 0,
 * with messages made by hand. And what cluster 1 has parked of them. */
#ifndef CADENZA_SIM_LIAR_H
#define CADENZA_SIM_LIAR_H

#include "base/memory.h"
#include "net/server.h"
#include "rpc/service.h"
#include "sim/script.h"

#define UNKNOWN_RUN "11111111-2222-4333-8444-555555555555"

#define MARKER_ROW 1000 /* of the marker that the liar has */
#define LIES_MAX   8

struct liar {
    struct rpc_service *service;
    struct grpc_server *server;
    struct metrics *metrics;
    struct arena *arena;
    uint32_t shard;
    ADMIN(ReplicationTask) *tasks[LIES_MAX];
    size_t count;
    int64_t acknowledged; /* of the shard, as the cluster says */
    unsigned raw_calls;
    /* Messages of the shard up to this were dropped, and it has so many runs; 0: none. */
    int64_t resync_to;
    unsigned run_count;
    /* What is told of any run's history; NULL: there is none. */
    API(HistoryEvent) **history;
    size_t history_count;
    bool is_away;        /* cannot be asked for histories */
    bool refuses;        /* says that such a request makes no sense */
    unsigned errands;    /* how often it was asked for something: all that is asked for has ended */
    bool is_cadence;     /* knows none of the methods that only cadenza has */
    char request_id[64]; /* of the last start */
    unsigned starts, signals; /* that were asked for; signals: of those, with one */
    /* Every shard that is asked for has the marker of this failover, behind all else; 0: none. */
    int64_t marker_version;
    const char *domain_id;
    struct slice domain; /* as it is described; empty: not at all */
};

/* The shard of a workflow id, in either cluster. */
uint32_t liar_shard_of(const char *id);
/* Somebody else answers at the address of cluster 0 from now on. */
void liar_begin(struct script *script, struct liar *liar);
/* Waits until the cluster has acknowledged a row of the liar's shard. */
void liar_await(struct script *script, const struct liar *liar, int64_t row, int64_t time);

/* Events of the run UNKNOWN_RUN of workflow "w", and a message with some. */
API(HistoryEvent) *lie_start(struct script *script, int64_t event_version);
API(HistoryEvent) *lie_signal(struct script *script, int64_t event_id, int64_t event_version);
ADMIN(ReplicationTask) *lie(struct script *script, int64_t row, API(HistoryEvent) **events,
                            size_t count);

/* What cluster 1 has parked, all of it in the shard of "w". */
size_t letters_count(struct script *script, const char *source);
ADMIN(ReadDLQMessagesResponse) *letters_read(struct script *script, int32_t page_size,
                                             ProtobufCBinaryData token);
must_use struct error *letters_merge(struct script *script);
void letters_purge(struct script *script, int64_t to);

#endif
