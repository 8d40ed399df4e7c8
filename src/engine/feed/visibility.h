/* visibility.h - changes on their way to visibility, and its rebuilding: what the files of feed/
 * share. */
#ifndef CADENZA_ENGINE_FEED_VISIBILITY_H
#define CADENZA_ENGINE_FEED_VISIBILITY_H

#include "engine/shard/feed_state.h"

struct tenure;

/* --- visibility.c ---- */

/* Hands over a change. False: no room now, it stays the caller's. */
bool visibility_hand_over(struct tenure *tenure, struct visibility_update *update);
/* Hands over a run as its record says, or that it is gone (NULL). False: no room now. */
bool visibility_give(struct tenure *tenure, const struct run_key *key,
                     const STORED(RunRecord) *core, uint64_t row, struct arena *arena);
/* All rows are left to the store from here on. */
void visibility_leave_from(struct tenure *tenure, uint64_t row);

/* --- rebuild.c ---- */

/* Rebuilds visibility from the runs. Yields. Errors: the store's, ERR_CANCELLED. */
must_use struct error *visibility_rebuild(struct tenure *tenure, struct arena *arena);

#endif
