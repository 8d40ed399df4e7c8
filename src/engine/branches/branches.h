/* branches.h - all histories of one run, as its record keeps them.
 *
 * One history is the current one: the state of the run is what its events say. The others are kept
 * because some cluster wrote them before it knew of a failover; they can be read, and may still
 * grow. Each has its version history and its lineage in the store.
 *
 *   1. Branch 0 is the current one: its last version is higher than any other's.
 *   2. Any two share their first events, up to the newest one that they have in common, and these
 *      are in the same branches of the store; none is the beginning of another.
 *   3. No two add their new events to the same branch of the store.
 *
 * Values, as versions.h. Pure. */
#ifndef CADENZA_ENGINE_BRANCHES_BRANCHES_H
#define CADENZA_ENGINE_BRANCHES_BRANCHES_H

#include "cadenza/internal/v1/shard_reads.pb-c.h"
#include "engine/branches/versions.h"
#include "store/history_lineage.h"

struct run_branch {
    struct versions versions;
    struct history_lineage lineage;
};
struct run_branches {
    const struct run_branch *branch; /* the current one first */
    size_t count;                    /* 0: there is no such run */
};

/* From the record of a run, into the arena; and back: what the record gets lives in the arena. */
struct run_branches branches_read(const STORED(RunRecord) *core, struct arena *arena);
/* The lineage of the current one alone. */
struct history_lineage branches_read_lineage(const STORED(RunRecord) *core, struct arena *arena);
void branches_store(const struct run_branches *branches, STORED(RunRecord) *core,
                    struct arena *arena);
/* As a message between owners, and back; both live in the arena. */
void branches_to_message(const struct run_branches *branches, struct arena *arena,
                         INTERNAL(BranchesOfRun) * message);
struct run_branches branches_from_message(const INTERNAL(BranchesOfRun) * message,
                                          struct arena *arena);
/* Asserts the rules. */
void branches_check(const struct run_branches *branches);

/* The history whose newest common event with `other` is the newest; of several the first. False:
 * nothing in common. */
must_use bool branches_find_common(const struct run_branches *branches, struct versions other,
                                   size_t *index, struct version_item *common);
/* The first history that has this event; `count`: none. */
size_t branches_find_event(const struct run_branches *branches, struct version_item event);

/* What a reader gets who has a history up to `after` (NULL: nothing) and asks for what comes before
 * `before` (NULL: all of the current history). Neither event is included, and they may be of
 * different histories: then the history of `before` is read, from the newest event that both have.
 * `after` with event id 0 and the first version also means nothing. `before` with the id behind the
 * last event of a history, and its last version, means all of that history. False: there is no such
 * event. */
struct branch_range {
    size_t branch;
    int64_t from_event_id, to_event_id; /* the second one not included; equal: nothing */
};
must_use bool branches_find_range(const struct run_branches *branches,
                                  const struct version_item *after,
                                  const struct version_item *before, struct branch_range *range);

/* A run with one history. */
struct run_branches branches_begin(const struct history_branch *branch, struct versions versions,
                                   struct arena *arena);
/* Events up to `last` were added to a history. If its version is the highest now, the history
 * becomes the first. */
struct run_branches branches_append(const struct run_branches *branches, size_t index,
                                    struct version_item last, struct arena *arena);
/* A history that has the events of another up to `base`, then, in `branch`, those up to `last`. */
struct run_branches branches_fork(const struct run_branches *branches, size_t index,
                                  struct version_item base, struct uuid branch,
                                  struct version_item last, struct arena *arena);

#endif
