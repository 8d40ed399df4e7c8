/* history.h - history nodes: batches of events in wire form, in a tree of branches, kept in the
 * shard of their run.
 *
 * A node begins at an event id and says which event id comes next. Nodes are never overwritten: a
 * writer that was fenced in the middle may leave one behind, and the next owner writes another at
 * the same event id with a higher (range id, sequence). So a reader takes, at the event id it
 * expects next, the node with the highest pair, skips nodes that begin below, and never reads past
 * the run's next event id: orphans are garbage, not corruption. */
#ifndef CADENZA_STORE_HISTORY_H
#define CADENZA_STORE_HISTORY_H

#include "store/store.h"

struct history_branch {
    struct uuid tree;   /* the run that the tree began with */
    struct uuid branch; /* one line of events */
};

struct history_node {
    int64_t first_event_id;
    int64_t next_event_id; /* first event id after the node; > first_event_id */
    uint64_t range_id;     /* of the shard's owner when it was written */
    uint64_t sequence;     /* of the writer; (range id, sequence) only grows */
    struct slice events;   /* History.events records: bytes that go out as they are */
};

/* Adds a node to a batch of its shard; its events are not copied (store.h, batch_new). */
void batch_add_node(struct batch *batch, const struct history_branch *branch,
                    const struct history_node *node);
/* Deletes the nodes of a branch that begin at `from_event_id` or later. */
void batch_delete_nodes(struct batch *batch, const struct history_branch *branch,
                        int64_t from_event_id);

struct history_page {
    struct history_node *node;
    size_t count;
    int64_t next_event_id; /* where the next page begins; == `to_event_id` when all was read */
};
/* Of the events of its nodes. */
size_t history_page_bytes(const struct history_page *page);
/* Nodes that cover [from_event_id, to_event_id), the first one being the node that holds
 * from_event_id; about bytes_max bytes (at least one node; 0: no limit). Yields. Errors:
 * ERR_CORRUPT when an expected node is missing: names shard, branch and event id.
 *
 * From any event id: of several nodes that hold it, an orphan may even begin at it, the one with
 * the highest (range id, sequence) is of the run. To find it costs a walk back over all nodes of
 * the branch before the id, so use this for the first event of a branch and for ids of unknown
 * origin. */
must_use struct error *store_read_history(struct store *store, struct partition shard,
                                          const struct history_branch *branch,
                                          int64_t from_event_id, int64_t to_event_id,
                                          size_t bytes_max, struct arena *arena,
                                          struct history_page *page);
/* The same from where a page ended, or from where the caller knows that a node of the run begins:
 * no walk. From anywhere else it may take an orphan. */
must_use struct error *store_read_history_on(struct store *store, struct partition shard,
                                             const struct history_branch *branch,
                                             int64_t from_event_id, int64_t to_event_id,
                                             size_t bytes_max, struct arena *arena,
                                             struct history_page *page);

#endif
