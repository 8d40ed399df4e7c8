/* runs_apply.h - applies what one peer sent: in order for each workflow id, many ids at a time.
 *
 * A message that cannot be applied now holds up its workflow id only, and is tried again: soon at
 * first, then every few seconds, for some minutes (E-065). Then, or at once if it can never be
 * applied, it becomes a dead letter, and the id goes on. While the peer cannot be asked for events
 * that are missing, no message becomes one.
 * On loop 0. Only files of replication/ include it. */
#ifndef CADENZA_REPLICATION_IN_RUNS_APPLY_H
#define CADENZA_REPLICATION_IN_RUNS_APPLY_H

#include "net/client.h"
#include "replication/in/runs_in.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

struct applier;

struct applier_options {
    struct runs_in_options world;
    const struct cluster *source;
    struct grpc_client *client; /* to it */
};

struct applier *applier_new(const struct applier_options *options);
/* Ends what is under way, forgets the rest, frees. Yields; cannot be cancelled. */
void applier_free(struct applier *applier);

/* Takes an answer of the source and the arena in which it lives; the applier frees the arena when
 * the last message is done. *count: messages in the answer. Does not yield. */
void applier_add(struct applier *applier, const ADMIN(GetReplicationMessagesResponse) *response,
                 struct arena *arena, size_t *count, bool *has_more);
/* How many shards of the source to ask for. */
uint32_t applier_shard_count(const struct applier *applier);

/* Up to where a shard was read, and up to where the source may forget its rows; -1 and
 * PROCESSED_NOTHING at first. */
int64_t applier_retrieved(const struct applier *applier, uint32_t shard);
int64_t applier_processed(const struct applier *applier, uint32_t shard);
/* Messages that are here and not applied, and when the oldest of them happened, by the clock of the
 * source; 0: it does not say, or there is none. No yield. */
size_t applier_waiting(const struct applier *applier, struct arena *arena, int64_t *oldest);
/* Messages that are here, but for markers; unless `is_all`, those that could be applied with what
 * this cluster has, and do not lack events which the source cannot be asked for. No yield. */
size_t applier_applicable(const struct applier *applier, bool is_all);
/* The source dropped messages of the shard before they were read: read its runs, then call
 * applier_note_resynced; reading goes on after this row. 0: none were dropped. */
int64_t applier_resync_to(const struct applier *applier, uint32_t shard);
/* The runs of the shard were read; only if applier_resync_to is not 0. */
void applier_note_resynced(struct applier *applier, uint32_t shard);
/* Waits until there is room for more. Yields; returns early when the fiber is cancelled. */
void applier_wait_room(struct applier *applier);

/* --- also for operators (runs_apply_task.c) ---- */

/* How applying one message ended. */
enum applied {
    APPLIED,       /* it is stored here, or need not be */
    APPLY_AGAIN,   /* not now */
    APPLY_LACKS,   /* events are missing, and the peer cannot be asked for them now */
    APPLY_NEVER,   /* it is wrong */
    APPLY_BLOCKED, /* a marker: a dead letter is in its way */
};
/* What applying a message needs. */
struct apply_world {
    struct engine *engine;
    struct domains *domains;
    struct drains *drains;
    const struct cluster_group *group;
    struct grpc_client *client; /* to the source */
};
/* Yields. *cause: why it was not applied, in the arena. `is_forced`: even if the domain does not
 * list this cluster (E-062). */
enum applied apply_task(const struct apply_world *world, const ADMIN(ReplicationTask) *task,
                        bool is_forced, struct arena *arena, struct error **cause);
/* The domain that a message is about; NULL: none. And the workflow id; "": none. */
const char *task_domain(const ADMIN(ReplicationTask) *task);
const char *task_workflow_id(const ADMIN(ReplicationTask) *task);

/* A message that cannot be applied, from a shard of its source. */
struct dead_lettered_task {
    const char *source;
    uint32_t source_shard;
    const ADMIN(ReplicationTask) *task;
    const struct error *cause;
};
/* Keeps it in the shard of its workflow id here (runs_dead_letter.c). Durable when it returns.
 * Yields. Errors: try again. */
must_use struct error *dead_letter_task(const struct apply_world *world,
                                        const struct dead_lettered_task *dead_lettered,
                                        struct arena *arena);

/* Where a marker comes from. */
struct marker_origin {
    const char *source;
    uint32_t source_shard, shard_count; /* of the source */
};
/* Tells the coordinator that all before the marker is applied (runs_marker.c). Yields. */
enum applied apply_marker(const struct apply_world *world, const struct marker_origin *origin,
                          const ADMIN(ReplicationTask) *task, struct arena *arena,
                          struct error **cause);
/* Reads a range of events from the source and applies them. *is_away: the source could not be
 * asked. Yields. Errors: ERR_ENTITY_NOT_EXISTS, the source has no such run; as
 * engine_apply_replicated; as the source says. */
must_use struct error *apply_range(const struct apply_world *world,
                                   const struct replicated_gap *range, struct arena *arena,
                                   bool *is_away);
/* A shard whose messages were dropped while this cluster was unreachable, or that it has to read
 * since it lost memory. */
struct dropped_shard {
    const char *source;
    uint32_t shard;
    int64_t to;      /* up to this number */
    bool looks_back; /* it has recovered, and reads them once more */
    /* Of a cluster that lost memory: sees every run that the source lists; NULL: it was away. */
    void (*on_listed)(void *context, const STORE_API(ListedRun) *run);
    void *context;
};
/* Reads the runs of such a shard and applies what is not here (runs_resync.c). Starts over
 * if it was interrupted. A run that can never be applied becomes a dead letter. Yields. Errors: as
 * the source says, as engine_apply_replicated. */
must_use struct error *apply_all_runs(const struct apply_world *world,
                                      const struct dropped_shard *dropped_shard,
                                      const struct log *log, struct arena *arena);

#endif
