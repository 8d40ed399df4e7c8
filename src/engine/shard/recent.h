/* recent.h - history batches that were written lately, in memory (recent.c). */
#ifndef CADENZA_ENGINE_SHARD_RECENT_H
#define CADENZA_ENGINE_SHARD_RECENT_H

#include "base/map.h"
#include "engine/shard/shard.h"

struct tenure;

#define RECENT_MAX   ((size_t)2 << 20) /* bytes of history batches in memory */
#define RECENT_SHARE 8                 /* of which one branch may have one part in so many */

struct recent {
    struct map *by_branch; /* struct history_branch → struct recent_branch */
    struct list used;      /* the longest unused first */
    size_t bytes, bytes_max;
};

void recent_init(struct tenure *tenure, size_t bytes_max);
void recent_free(struct tenure *tenure);
/* Keeps a copy of batches that the step with this ticket has written. */
void recent_add(struct tenure *tenure, const struct history_branch *branch,
                const struct history_node *nodes, size_t count, ticket_t ticket);
/* Batches of the branch are deleted, or nobody will ask for them. */
void recent_forget(struct tenure *tenure, const struct history_branch *branch);

#endif
