/* visible.h - a visibility update: how a run looks, on its way from its shard to visibility.
 *
 * The engine hands it over once the step that made it so is durable; visibility keeps it. Owners
 * know this value, not each other. */
#ifndef CADENZA_ROUTE_VISIBLE_H
#define CADENZA_ROUTE_VISIBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"

/* What visibility is to know of a run, identified by (shard, row): rows of a shard rise. */
struct visible_change {
    uint32_t shard;
    uint64_t row;
    /* Everything that visibility has of the shard goes: it comes again, with rows above this one.
     * Nothing else is set. */
    bool is_beginning;
    const char *domain_id, *workflow_id, *run_id;
    struct slice info;    /* an encoded WorkflowExecutionInfo; empty: the run is gone */
    int32_t num_clusters; /* of its domain */
};
/* A change on its way. One block with all that it points to, which belongs to who has it. */
struct visibility_update {
    struct list node;
    struct visible_change change;
    uint64_t after;  /* row of the shard's update before it: what lies between is nothing */
    size_t size;     /* of the block */
    uint64_t ticket; /* with the shard: of its step */
    int64_t time;    /* with visibility: when it was taken, monotonic */
};
/* Copies the change; memory_free. */
struct visibility_update *visibility_update_new(const struct visible_change *change);

/* What visibility has of a shard. */
struct visible_level {
    uint64_t newest;    /* row that it has, or that waits there; 0: none */
    uint64_t fed, safe; /* rows that it shows, and would whatever crashes, as far as it knows */
};

/* Visibility; filled by server/ or a test. */
struct visible_port {
    /* On the shard's loop. Yields. Errors: the visibility store's, those of route_ask. */
    struct error *(*level)(void *context, uint32_t shard, struct arena *arena,
                           struct visible_level *level);
    /* Hands over a change that is durable. On the shard's loop, no yield. False: no room now, it
     * stays the shard's; it is read from the store later. It may get lost on its way, and then so
     * does what comes after it, since `after` is missing there; a shard that hears nothing asks for
     * the level, and goes on behind that. */
    bool (*give)(void *context, struct visibility_update *update);
    void *context;
};

#endif
