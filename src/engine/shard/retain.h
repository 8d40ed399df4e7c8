/* retain.h - a closed run goes: into the archive if its domain wants that, then for good. */
#ifndef CADENZA_ENGINE_SHARD_RETAIN_H
#define CADENZA_ENGINE_SHARD_RETAIN_H

#include "engine/shard/shard.h"

struct tenure;

/* --- archive.c ---- */

/* What the archive has of a run that is about to be deleted. */
struct archived {
    bool is_needed;  /* the domain wants it there */
    bool is_put_off; /* it failed, and the run has a later wake-up timer */
    int64_t next_event_id, event_version;
};
/* Archives the closed run whose wake-up timer fires, if its domain wants that and it is to be
 * deleted now. Yields. Errors: as tenure_delete_closed. */
must_use struct error *tenure_archive(struct tenure *tenure, const struct run_key *key,
                                      uint64_t row, struct arena *arena, struct archived *archived);
/* May the run go? */
bool archived_is_all(const struct archived *archived, const struct run *run);

/* --- retain.c ---- */

/* Deletes a closed run whose wake-up timer fires, in portions. *is_closed: it is one, and is gone
 * now, or has another wake-up timer; else nothing was done. Yields. Errors: as shard_step; ERR_BUSY
 * (not now). */
must_use struct error *tenure_delete_closed(struct tenure *tenure, const struct run_key *key,
                                            uint64_t row, struct arena *arena, bool *is_closed);
/* The same now, whatever its wake-up timer says; it may be gone already. */
must_use struct error *tenure_delete_now(struct tenure *tenure, const struct run_key *key,
                                         struct arena *arena);

#endif
