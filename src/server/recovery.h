/* recovery.h - what a server does whose store has lost memory: it asks the other clusters before it
 * decides (design/031). A value of the server; where the domains live. */
#ifndef CADENZA_SERVER_RECOVERY_H
#define CADENZA_SERVER_RECOVERY_H

#include "domain/domains.h"
#include "engine/engine.h"
#include "replication/in/runs_in.h"
#include "store/admin.h"

struct recovery {
    struct store *store;
    const struct cluster_group *group;
    const struct log *log;
    struct domains *domains; /* these two before the group is followed */
    struct engine *engine;
    struct runs_in *runs_in; /* NULL: not followed yet */
    bool is_needed;
    bool has_domains; /* all others have sent what they know of domains */
};

/* Looks at the store, and says in the log what is missing. */
void recovery_init(struct recovery *recovery, struct store *store,
                   const struct cluster_group *group, const struct log *log);
/* Since the start: is there somebody to ask for what was lost? */
bool recovery_is_needed(const struct recovery *recovery);
/* The runs of the others are followed: asks them, if that is needed; else the store is as whole as
 * it can be. Yields. */
void recovery_follow(struct recovery *recovery, struct runs_in *runs_in);
/* domains_in_options.caught_up */
void recovery_note_domains(void *recovery);
/* runs_in_options.recovered */
must_use struct error *recovery_end(void *recovery, struct arena *arena);

#endif
