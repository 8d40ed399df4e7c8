/* method.h - what is decided about a method: one row says all of it.
 *
 * Each door has a table of such rows (api/api.c, replication/replication.c), and what needs to know
 * something of a call's method reads its row: access/ the permission, audit/ whether it leaves a
 * record, api/ the quota and where the call goes on. Zero is "not decided" in every column, so that
 * a forgotten one is found: by a test, for every method of wire/. */
#ifndef CADENZA_RPC_METHOD_H
#define CADENZA_RPC_METHOD_H

#include <stdbool.h>

struct error;
struct rpc_call;

/* What a caller has to show (access/). */
enum permission {
    PERMISSION_UNDECIDED,
    PERMISSION_NONE,  /* nothing: everybody may */
    PERMISSION_NAMES, /* a good token, unless names of domains are shown to everybody */
    PERMISSION_KNOWN, /* a good token */
    PERMISSION_READ,  /* of the domain */
    PERMISSION_WRITE, /* of the domain */
    PERMISSION_POLL,  /* of the domain */
    PERMISSION_ADMIN,
};

/* Which calls are counted together (api/call/quota.c). */
enum quota_class {
    QUOTA_UNDECIDED,
    QUOTA_NONE, /* never refused */
    QUOTA_USER,
    QUOTA_WORKER,
    QUOTA_VISIBILITY,
    QUOTA_ASYNC,
};
#define QUOTA_CLASSES (QUOTA_ASYNC + 1)

/* Does the task list that the call names have a rate, too? */
enum list_quota { LIST_QUOTA_UNDECIDED, LIST_UNRATED, LIST_RATED };

/* From which forwarding policy on are calls answered in the cluster in which what they are about is
 * active (api/forward/)? */
enum forward_reach {
    REACH_UNDECIDED,
    REACH_NEVER,    /* always answered here */
    REACH_ALL,      /* with all APIs, or if the caller asks for it */
    REACH_SELECTED, /* with every policy but noop */
    REACH_SELECTED_V2,
};

/* Do calls wait while their workflow is on its way to another cluster (api/forward/hold.h)? */
enum holding { HOLDING_UNDECIDED, UNHELD, HELD };

/* Do calls leave a record (audit/)? */
enum auditing { AUDITING_UNDECIDED, UNAUDITED, AUDITED };

/* What in the request names who can answer. */
enum call_owner {
    OWNER_UNDECIDED,
    OWNER_NONE,      /* nothing: every host can */
    OWNER_DOMAIN,    /* a domain, by name or id; or any of them */
    OWNER_WORKFLOW,  /* a workflow id, a task token, or a schedule */
    OWNER_TASK_LIST, /* a task list of a domain */
    OWNER_SHARD,     /* the number of a shard */
};

struct rpc_method {
    const char *path; /* "/uber.cadence.api.v1.MetaAPI/Health"; NULL ends a table */
    /* Fills the response, or says why not. Runs in the call's fiber; may yield. NULL: the method is
     * of the interface and not served. */
    struct error *(*handle)(struct rpc_call *call);
    enum permission permission;
    enum quota_class quota;
    enum list_quota list_quota;
    enum forward_reach reach;
    enum holding holding;
    enum auditing auditing;
    enum call_owner owner;
};

/* A row of a table, each column without the beginning of its name. */
#define RPC_METHOD(path_, handle_, permission_, quota_, list_, reach_, holding_, auditing_,        \
                   owner_)                                                                         \
    {                                                                                              \
        .path = (path_), .handle = (handle_), .permission = PERMISSION_##permission_,              \
        .quota = QUOTA_##quota_, .list_quota = LIST_##list_, .reach = REACH_##reach_,              \
        .holding = (holding_), .auditing = (auditing_), .owner = OWNER_##owner_                    \
    }

/* Is every column decided? */
bool rpc_method_is_decided(const struct rpc_method *method);

#endif
