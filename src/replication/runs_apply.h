/* runs_apply.h - applies what one peer sent: in order for each workflow id, many ids at a time.
 *
 * What cannot be applied now holds its workflow id alone, and is tried again: soon at first, then
 * every few seconds, for some minutes (E-065); then, or at once if it can never be applied, it is
 * parked, and the id goes on. While the peer cannot be asked for what is missing nothing is parked.
 * On loop 0. Only files of replication/ include it. */
#ifndef CADENZA_REPLICATION_RUNS_APPLY_H
#define CADENZA_REPLICATION_RUNS_APPLY_H

#include "net/client.h"
#include "replication/runs_in.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

struct applier;

struct applier_options {
    struct runs_in_options world;
    const struct cluster *source;
    struct grpc_client *client; /* to it */
};

struct applier *applier_new(const struct applier_options *options);
/* Ends what is under way, forgets the rest, frees. Yields; deaf to cancel. */
void applier_free(struct applier *applier);

/* An answer of the source, which lives in the arena; that belongs to the applier now, and goes when
 * the last message is done. *count: messages that it brought. No yield. */
void applier_add(struct applier *applier, const ADMIN(GetReplicationMessagesResponse) *response,
                 struct arena *arena, size_t *count, bool *has_more);
/* Shards of the source that are to be asked for. */
uint32_t applier_shard_count(const struct applier *applier);

/* Where to go on, and what needs not come again; -1 and PROCESSED_NOTHING at first. */
int64_t applier_retrieved(const struct applier *applier, uint32_t shard);
int64_t applier_processed(const struct applier *applier, uint32_t shard);
/* Messages that are here and not applied, and when the oldest of them happened, by the clock of the
 * source; 0: it does not say, or there is none. No yield. */
size_t applier_waiting(const struct applier *applier, struct arena *arena, int64_t *oldest);
/* Messages of the shard were dropped before they were read: its runs are to be read, then it goes
 * on behind this one. 0: none were. */
int64_t applier_resync_to(const struct applier *applier, uint32_t shard);
/* They were read. */
void applier_note_resynced(struct applier *applier, uint32_t shard);
/* Waits until there is room for more. Yields; returns early when the fiber is cancelled. */
void applier_wait_room(struct applier *applier);

/* --- also for operators (runs_apply_task.c) ---- */

/* How applying one message ended. */
enum applied {
    APPLIED,       /* it is part of what is here, or needs not be */
    APPLY_AGAIN,   /* not now */
    APPLY_LACKS,   /* events are missing, and the peer cannot be asked for them just now */
    APPLY_NEVER,   /* it is wrong */
    APPLY_BLOCKED, /* a marker: something before it is parked */
};
/* Who is asked, who is told. */
struct apply_world {
    struct engine *engine;
    struct domains *domains;
    const struct cluster_group *group;
    struct grpc_client *client; /* to the source */
};
/* Yields. *cause: why it was not applied, in the arena. `is_forced`: though the domain does not
 * have this cluster (E-062). */
enum applied apply_task(const struct apply_world *world, const ADMIN(ReplicationTask) *task,
                        bool is_forced, struct arena *arena, struct error **cause);
/* The domain that a message is about; NULL: none. And the workflow id; "": none. */
const char *task_domain(const ADMIN(ReplicationTask) *task);
const char *task_workflow_id(const ADMIN(ReplicationTask) *task);

/* A message that cannot be applied, from a shard of its source. */
struct parked_task {
    const char *source;
    uint32_t source_shard;
    const ADMIN(ReplicationTask) *task;
    const struct error *cause;
};
/* Keeps it in the shard of its workflow id here (runs_park.c). Durable when it returns. Yields.
 * Errors: try again. */
must_use struct error *park_task(const struct apply_world *world, const struct parked_task *parked,
                                 struct arena *arena);

/* Where a marker comes from. */
struct marker_place {
    const char *source;
    uint32_t source_shard, shard_count; /* of the source */
};
/* The domain hears that all before the marker is applied (runs_marker.c). Yields. */
enum applied apply_marker(const struct apply_world *world, const struct marker_place *place,
                          const ADMIN(ReplicationTask) *task, struct arena *arena,
                          struct error **cause);
/* Reads a range of events from the source and applies them. *is_away: the source could not be
 * asked. Yields. Errors: ERR_ENTITY_NOT_EXISTS, the source has no such run; as
 * engine_apply_foreign; as the source says. */
must_use struct error *apply_range(const struct apply_world *world, const struct foreign_gap *range,
                                   struct arena *arena, bool *is_away);
/* A shard of which messages were dropped while this cluster was away. */
struct dropped {
    const char *source;
    uint32_t shard;
    int64_t to; /* up to this number */
};
/* Reads the runs of such a shard and applies what is not here (runs_resync.c). From the beginning,
 * if it was begun before. Runs that can never be applied are parked. Yields. Errors: as the source
 * says, as engine_apply_foreign. */
must_use struct error *apply_all_runs(const struct apply_world *world,
                                      const struct dropped *dropped, const struct log *log,
                                      struct arena *arena);

#endif
