/* failover_markers.h - a marker of a failover, and what outgoing/ itself asks of
 * failover_markers.c. */
#ifndef CADENZA_ENGINE_OUTGOING_FAILOVER_MARKERS_H
#define CADENZA_ENGINE_OUTGOING_FAILOVER_MARKERS_H

#include "engine/shard/outgoing_state.h"

struct tenure;

/* One that the rows for other clusters do not have yet. */
struct marker {
    struct list node;
    const char *domain_id, *scope, *name; /* lie behind it; the last two "": the domain itself */
    int64_t failover_version;
    int64_t creation_time;
    uint64_t order; /* in which they were heard of */
};

/* Those that a cluster waits for are put once more. No yield. Errors: as of a step, nothing was
 * done. */
must_use struct error *markers_repeat(struct tenure *tenure, const struct cluster *target,
                                      struct arena *arena);

#endif
