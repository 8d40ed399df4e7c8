/* replicated.h - how events that other clusters decided enter the runs here.
 *
 * A batch of events goes to the history that it extends, or forks a new one where it parts from
 * what is here (ndc/decide.h); the history with the highest version is the run's, and the run with
 * the newer history has the workflow id (branches/runs.h). Nothing depends on the order in which
 * batches come, nor on how often: applied twice is applied once. When a call returns without an
 * error, what it says is durable. All yield. Errors: ERR_BAD_REQUEST, no cluster can have meant it
 * and it will not be better next time: it is a dead letter; any other: it may be tried again. */
#ifndef CADENZA_ENGINE_REPLICATED_H
#define CADENZA_ENGINE_REPLICATED_H

#include "cadenza/internal/v1/replication.pb-c.h"
#include "engine/engine.h"
#include "engine/ndc/decide.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"

/* Other runs of the workflow id of which the source was asked for what it knows. */
#define REPLICATED_PRIORS_MAX 4
struct replicated_priors {
    const char *run_id[REPLICATED_PRIORS_MAX];
    size_t count;
};

/* A batch as its source sent it. */
struct replicated_events {
    struct run_key key;
    struct versions versions; /* of its branch at the source, to its last event at least */
    API(HistoryEvent) *const *events;
    size_t count;
    /* If the last event continues the run as a new one: the first batch of that. Count 0: none. */
    API(HistoryEvent) *const *begun_events;
    size_t begun_count;
    /* Those that were asked for; the source can be asked for more of them: a run that this one
     * would take the id from, or that it began from, counts as a gap until the source has been
     * asked about it. NULL: it cannot be asked. */
    const struct replicated_priors *priors;
};

enum replicated_place {
    REPLICATED_APPLIED, /* it is part of the run now, of its current history or of another */
    REPLICATED_KNOWN,   /* it was before */
    REPLICATED_LACKS,   /* events are missing: see gap; nothing was changed */
};
/* Both ends are not included; event id 0: from the first event on, or to the newest one. */
struct replicated_gap {
    struct run_key key;
    struct version_item base, end;
    /* It is another run, of which the source may know the end: what has come is applied without it
     * if the source has none. */
    bool is_prior;
};
struct replicated_outcome {
    enum replicated_place place;
    struct replicated_gap gap; /* texts live in the caller's arena */
};

must_use struct error *engine_apply_replicated(struct engine *engine,
                                               const struct replicated_events *events,
                                               struct arena *arena,
                                               struct replicated_outcome *outcome);

/* The state of an activity that has no events yet (E-059). A run that is not here is
 * REPLICATED_KNOWN: its events will come, and then such a state again. */
must_use struct error *
engine_apply_replicated_activity(struct engine *engine,
                                 const ADMIN(SyncActivityTaskAttributes) *activity,
                                 struct arena *arena, struct replicated_outcome *outcome);

/* Events of a history that lost, or of a run that did, which clients caused: they happen again in
 * the current run of the workflow id, each once (E-048 … E-053). The run is active here. `key`
 * names the run that had them. */
must_use struct error *engine_reapply(struct engine *engine, const struct run_key *key,
                                      API(HistoryEvent) *const *events, size_t count,
                                      struct arena *arena);

/* --- for a cluster that was away ---------------------------------------------------------------
 */

/* The runs of a shard and how far their histories are: shard_list_runs. */
must_use struct error *engine_list_runs(struct engine *engine, uint32_t shard,
                                        const struct cluster *cluster, struct slice from,
                                        size_t count_max, struct arena *arena,
                                        STORE_API(ListRunsResponse) *response);
/* Every other cluster that can reads all runs of all shards: shard_end_zombies, then
 * shard_show_runs_again. Yields. */
must_use struct error *engine_show_runs_again(struct engine *engine, struct arena *arena);
/* What the shards of one place (route_place_of) have for a cluster; each shard of the question
 * lives there. Yields, for as long as the question says if none has anything; cancelled, it answers
 * with what it has. Errors: those of shard_read_replication, if no other shard has anything. */
must_use struct error *engine_poll_replication(struct engine *engine, unsigned place,
                                               const INTERNAL(ReplicationPoll) * poll,
                                               struct arena *arena,
                                               INTERNAL(ReplicationPages) * pages);
/* One row of the shard of its workflow id again, made of what the run has now: shard_hydrate. */
must_use struct error *engine_hydrate(struct engine *engine, const STORED(ReplicationRow) *row,
                                      uint64_t number, struct arena *arena, struct slice *task);

/* --- what cannot be applied ---------------------------------------------------------------------
 */

/* Dead letters of a shard (shard_put_dead_letter), in order of their sources and rows. In the
 * arena. */
struct dead_letters {
    struct dead_letter {
        const char *source;
        uint64_t row;
        const STORED(DeadLetterRow) *letter;
    } * letters;
    size_t count;
    bool has_more;
};
/* Those of `source` (NULL: all) with rows above `after` up to `to`, at most count_max. Yields.
 * Errors: the store's. */
must_use struct error *engine_read_dead_letters(struct engine *engine, uint32_t shard,
                                                const char *source, uint64_t after, uint64_t to,
                                                size_t count_max, struct arena *arena,
                                                struct dead_letters *letters);
/* Keeps a message that cannot be applied in a shard: shard_put_dead_letter. Yields. */
must_use struct error *engine_put_dead_letter(struct engine *engine, uint32_t shard,
                                              const char *source, uint64_t row,
                                              const STORED(DeadLetterRow) *letter,
                                              struct arena *arena);
/* Forgets those of a source from one row to another, both included. Yields. */
must_use struct error *engine_forget_dead_letters(struct engine *engine, uint32_t shard,
                                                  const char *source, uint64_t from, uint64_t to,
                                                  struct arena *arena);

#endif
