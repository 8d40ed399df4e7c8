/* rebuild.h - a run rebuilt from its history.
 *
 * The events of a history are applied as they were when they were written (apply.h), so the result
 * is the run that was stored, except for what is in no event:
 *   - of the decision: one that is transient, how often it failed, when a row of heartbeats began;
 *     its outbox row; the sticky list and what the worker said of itself: a sticky decision
 *     is restored to the run's normal task list;
 *   - of an activity: attempts whose events come with its end, heartbeats, its outbox row, and when
 *     it was started, if the event was buffered: the event may be later;
 *   - events that are buffered, and what they have changed already;
 *   - the wake-up timer, a reset because of a bad binary, and when the run was last written;
 *   - how it came about, beyond its first event: chain_request_id, jitter_start, reset_request_id.
 *
 * The caller sends its tasks again; the next step sets the wake-up timer. */
#ifndef CADENZA_ENGINE_RUN_REBUILD_H
#define CADENZA_ENGINE_RUN_REBUILD_H

#include "base/vector.h"
#include "engine/run/mutation.h"

struct rebuild {
    struct run *run;            /* the caller's */
    struct run_context context; /* as given, but for the moment, the version and the numbers */
    struct row_ids ids;         /* of rows that nobody will see */
    /* Activities and timers that have gone, while the events that say so are still to come. */
    vector_of(int64_t) ended;
    struct arena *arena; /* of the list above */
};

/* Begins with a run that has its names and its branch, and nothing else. Of the context the domain,
 * settings and find_domain count. The arena outlives the rebuild. */
void rebuild_begin(struct rebuild *rebuild, struct run *run, const struct run_context *context,
                   struct arena *arena);
/* Why an event cannot be applied as the next one, see fits.h; NULL: it can. For histories of
 * unknown origin: rebuild_add checks it. */
const char *rebuild_find_misfit(const struct rebuild *rebuild, const API(HistoryEvent) *event);
/* Applies a batch of the history, the next one: `events` are all of a node or, where a history is
 * cut, those before the cut; `bytes` is their size. */
void rebuild_add(struct rebuild *rebuild, API(HistoryEvent) *const *events, size_t count,
                 size_t bytes, struct arena *arena);
/* The same for a history of unknown origin: why it does not fit (then the run is of no use any
 * more); NULL: it does. */
must_use const char *rebuild_try(struct rebuild *rebuild, API(HistoryEvent) *const *events,
                                 size_t count, size_t bytes, struct arena *arena);
/* All was applied. */
void rebuild_end(struct rebuild *rebuild);

/* The events of a node. Error: ERR_CORRUPT. */
must_use struct error *rebuild_decode(const struct history_node *node, struct arena *arena,
                                      const API(History) **history);
/* Reads a whole history in pages of about so many bytes and applies it to `run`, which has its
 * names and its branch (or lineage). Yields. Errors: the store's, ERR_CORRUPT (also: an event does
 * not fit, then the run is of no use any more). */
must_use struct error *run_rebuild(struct store *store, struct partition shard,
                                   int64_t next_event_id, size_t page_bytes,
                                   const struct run_context *context, struct run *run,
                                   struct arena *arena);

#endif
