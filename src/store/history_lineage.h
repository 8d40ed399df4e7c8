/* history_lineage.h - lineages: histories that share the branches that they have in common.
 *
 * The branches of a tree (history.h) hold nodes; a lineage says which of them make one history: the
 * events up to some id are in one branch, the next ones in another, the newest in the lineage's
 * own. A fork copies nothing: the new lineage names the spans of the old one up to the fork and
 * goes on in a branch of its own.
 *
 *   lineage A     A: 1 2 3 4 5 6
 *   lineage B     A: 1 2 3        B: 4 5
 *   lineage C     A: 1 2 3        B: 4       C: 5 6 7
 *
 * A lineage is kept in the record of the run whose history it is: the store does not know lineages,
 * so a fork and its first node are durable together, in one batch of the run.
 *
 *   1. The spans of a lineage rise: each ends behind the one before it, the last one is open.
 *   2. Nodes are added to the own branch only, so what others share never changes.
 *   3. A fork is where a node ends. A node that reaches over it is corruption. */
#ifndef CADENZA_STORE_HISTORY_LINEAGE_H
#define CADENZA_STORE_HISTORY_LINEAGE_H

#include "store/history.h"

#define HISTORY_OPEN INT64_MAX /* where the last span of a lineage ends */

struct history_span {
    struct uuid branch;
    int64_t next_event_id; /* the first event id that is not in the span */
};

/* A value; its spans live where its maker says. */
struct history_lineage {
    struct uuid tree;
    const struct history_span *spans; /* the oldest events first */
    size_t count;                     /* at least one */
};

/* The lineage of a branch that shares nothing with others. */
struct history_lineage history_lineage_root(const struct history_branch *branch,
                                            struct arena *arena);
/* A lineage that has all events of `line` before `next_event_id` (more than 1) and goes on in
 * `branch`, a new one. */
struct history_lineage history_lineage_fork(const struct history_lineage *lineage,
                                            int64_t next_event_id, struct uuid branch,
                                            struct arena *arena);
/* The lineage's own branch: where its new nodes go. */
struct history_branch history_lineage_own(const struct history_lineage *lineage);
/* The branch that holds an event id of the lineage. */
struct history_branch history_lineage_holder(const struct history_lineage *lineage,
                                             int64_t event_id);
/* Asserts rule 1, and that no branch comes twice. */
void history_lineage_check(const struct history_lineage *lineage);

/* As store_read_history and store_read_history_on, along a lineage. */
must_use struct error *store_read_lineage(struct store *store, struct partition shard,
                                          const struct history_lineage *lineage,
                                          int64_t from_event_id, int64_t to_event_id,
                                          size_t bytes_max, struct arena *arena,
                                          struct history_page *page);
must_use struct error *store_read_lineage_on(struct store *store, struct partition shard,
                                             const struct history_lineage *lineage,
                                             int64_t from_event_id, int64_t to_event_id,
                                             size_t bytes_max, struct arena *arena,
                                             struct history_page *page);

#endif
