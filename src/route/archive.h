/* archive.h - a closed run on its way into the archive, before its retention ends.
 *
 * The engine asks for it when the run is about to be deleted, and deletes only what is durable
 * there; the archive knows where that is. Owners know this value, not each other. */
#ifndef CADENZA_ROUTE_ARCHIVE_H
#define CADENZA_ROUTE_ARCHIVE_H

#include "store/history.h"

struct archive_run {
    const char *domain_id, *domain_name, *workflow_id, *run_id;
    /* Where its domain wants it archived; NULL: it does not. */
    const char *history_uri, *visibility_uri;
    int64_t event_version; /* of its last event */
    int64_t next_event_id; /* of its history */
    struct slice info;     /* an encoded WorkflowExecutionInfo */
    /* The owner of the shard that asks: no two owners ever have the same number. */
    uint32_t shard;
    uint64_t range_id;
    /* The batches from an event id on that begins one, some at a time. Yields. */
    struct error *(*read)(void *context, int64_t from_event_id, struct arena *arena,
                          struct history_page *page);
    void *context;
};

/* The archive; filled by server/ or a test. */
struct archive_port {
    /* Returns when all that is wanted of the run is durable there, or nothing is wanted here. Doing
     * it twice is doing it once. On the shard's loop. Yields. Errors: ERR_BUSY (too many at a
     * time), others: it failed, and will be retried. */
    struct error *(*put)(void *context, const struct archive_run *run, struct arena *arena);
    void *context;
};

#endif
