/* history_line.h - lines of events that share what they have in common.
 *
 * The branches of a tree (history.h) hold nodes; a line says which of them make one history: the
 * events up to some id are in one branch, the next ones in another, the newest in the line's own. A
 * fork copies nothing: the new line names the spans of the old one up to the fork and goes on in a
 * branch of its own.
 *
 *   line A     A: 1 2 3 4 5 6
 *   line B     A: 1 2 3        B: 4 5
 *   line C     A: 1 2 3        B: 4       C: 5 6 7
 *
 * Who has a line keeps it, in the record of the run whose history it is: the store does not know
 * lines, so a fork and its first node are durable together, in one batch of the run.
 *
 *   1. The spans of a line rise: each ends behind the one before it, the last one is open.
 *   2. Nodes are added to the own branch alone, so what others stand on never changes.
 *   3. A fork is where a node ends. A node that reaches over it is corruption. */
#ifndef CADENZA_STORE_HISTORY_LINE_H
#define CADENZA_STORE_HISTORY_LINE_H

#include "store/history.h"

#define HISTORY_OPEN INT64_MAX /* where the last span of a line ends */

struct history_span {
    struct uuid branch;
    int64_t next_event_id; /* the first event id that is not in the span */
};

/* A value; its spans live where whoever made it says. */
struct history_line {
    struct uuid tree;
    const struct history_span *spans; /* the oldest events first */
    size_t count;                     /* at least one */
};

/* The line of a branch that stands on no other. */
struct history_line history_line_root(const struct history_branch *branch, struct arena *arena);
/* A line that has all events of `line` before `next_event_id` (more than 1) and goes on in
 * `branch`, a new one. */
struct history_line history_line_fork(const struct history_line *line, int64_t next_event_id,
                                      struct uuid branch, struct arena *arena);
/* The line's own branch: where its new nodes go. */
struct history_branch history_line_own(const struct history_line *line);
/* The branch that holds an event id of the line. */
struct history_branch history_line_holder(const struct history_line *line, int64_t event_id);
/* Asserts rule 1, and that no branch comes twice. */
void history_line_check(const struct history_line *line);

/* As store_read_history and store_read_history_on, along a line. */
must_use struct error *store_read_line(struct store *store, struct partition shard,
                                       const struct history_line *line, int64_t from_event_id,
                                       int64_t to_event_id, size_t bytes_max, struct arena *arena,
                                       struct history_page *page);
must_use struct error *store_read_line_on(struct store *store, struct partition shard,
                                          const struct history_line *line, int64_t from_event_id,
                                          int64_t to_event_id, size_t bytes_max,
                                          struct arena *arena, struct history_page *page);

/* Deletes all nodes of a line but those that the lines in `kept` need. Lines of one tree may go one
 * by one, in any order, or (no line kept) with all that they stand on. */
void batch_delete_line(struct batch *batch, const struct history_line *line,
                       const struct history_line *kept, size_t kept_count);

#endif
