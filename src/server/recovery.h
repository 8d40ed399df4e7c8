/* recovery.h - what a server does whose store has lost memory: it asks the other clusters before it
 * decides (design/031). A value of the server; where the domains live. */
#ifndef CADENZA_SERVER_RECOVERY_H
#define CADENZA_SERVER_RECOVERY_H

#include "domain/domains.h"
#include "engine/engine.h"
#include "replication/in/domains_in.h"
#include "replication/in/runs_in.h"
#include "store/admin.h"

struct recovery {
    struct store *store;
    const struct cluster_group *group;
    const struct log *log;
    const char *const *waived; /* clusters that are not waited for, up to NULL; NULL: none */
    struct domains *domains;   /* these two before the group is followed */
    struct engine *engine;
    struct domains_in *domains_in; /* NULL: not followed yet, or not any more */
    struct runs_in *runs_in;
    bool is_needed;
    bool has_domains; /* all others have sent what they know of domains */
};

/* Looks at the store, and says in the log what is missing. `accept_loss`: names of clusters of the
 * group, with commas, or "all"; NULL: none. Errors: ERR_BAD_REQUEST. */
must_use struct error *recovery_init(struct recovery *recovery, struct store *store,
                                     const struct cluster_group *group, const char *accept_loss,
                                     const struct log *log, struct arena *arena);
/* Since the start: does it have to ask for what was lost? */
bool recovery_is_needed(const struct recovery *recovery);
/* The others are followed: asks them, if that is needed. Yields. */
void recovery_follow(struct recovery *recovery, struct domains_in *domains_in,
                     struct runs_in *runs_in);
/* domains_in_options.caught_up */
void recovery_note_domains(void *recovery);
/* The domains of the others are not followed any more: the server stops. */
void recovery_leave_domains(struct recovery *recovery);
/* runs_in_options.have_past, .recovered */
void recovery_ask_again(void *recovery);
must_use struct error *recovery_end(void *recovery, struct arena *arena);

#endif
