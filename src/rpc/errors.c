/* errors.c - errors as the public door shows them.
 *
 * Cadence's frontend never shows INTERNAL, DATA_LOSS or errors that were meant for inside: they
 * become UNKNOWN with a prefix that its clients and users know. AdminAPI keeps INTERNAL. What
 * failed because of the store, a full queue or an owner that moved is UNAVAILABLE: every client
 * tries again (in Cadence the frontend itself tries again when an owner moved). */
#include <string.h>

#include "rpc/service.h"

#define INTERNAL_PREFIX      "cadence internal error, msg: "
#define UNCATEGORISED_PREFIX "cadence internal uncategorized error, msg: "

enum door { AS_IS, INTERNAL_TO_UNKNOWN, TO_UNKNOWN, TO_UNAVAILABLE };

static const enum door at_door[ERROR_KIND_COUNT] = {
    [ERR_INTERNAL] = INTERNAL_TO_UNKNOWN,
    [ERR_UNCATEGORISED] = TO_UNKNOWN,
    [ERR_SHARD_OWNERSHIP_LOST] = TO_UNAVAILABLE,
    [ERR_TASK_LIST_NOT_OWNED] = TO_UNAVAILABLE,
    [ERR_CURRENT_BRANCH_CHANGED] = TO_UNKNOWN,
    [ERR_RETRY_TASK] = TO_UNKNOWN,
    [ERR_READ_ONLY_PARTITION] = TO_UNKNOWN,
    [ERR_EVENT_ALREADY_STARTED] = TO_UNKNOWN,
    [ERR_DATA_INCONSISTENCY] = TO_UNKNOWN,
    [ERR_REMOTE_SYNC_MATCHED] = TO_UNKNOWN,
    [ERR_STICKY_WORKER_UNAVAILABLE] = TO_UNKNOWN,
    [ERR_NOT_FOUND] = TO_UNKNOWN,
    [ERR_CORRUPT] = TO_UNKNOWN,
};

struct error *
rpc_error_at_door(const struct error *err, const char *path, struct arena *arena)
{
    bool is_admin = strncmp(path, "/uber.cadence.admin.", strlen("/uber.cadence.admin.")) == 0;
    switch (is_admin ? AS_IS : at_door[err->kind]) {
    case INTERNAL_TO_UNKNOWN:
        return error_new(arena, ERR_UNCATEGORISED, INTERNAL_PREFIX "%s", err->message);
    case TO_UNKNOWN:
        return error_new(arena, ERR_UNCATEGORISED, UNCATEGORISED_PREFIX "%s", err->message);
    case TO_UNAVAILABLE:
        return error_new(arena, ERR_UNAVAILABLE, "%s", err->message);
    case AS_IS:
        break;
    }
    return error_copy(arena, err);
}
