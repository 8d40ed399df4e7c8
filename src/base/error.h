/* error.h - an expected failure, as a value. NULL means that all is well.
 *
 * A bug is a check (check.h), lack of memory aborts; everything else that can go wrong is a struct
 * error of a kind from one closed list. Kinds that clients can see map one to one to the errors of
 * the wire (gRPC status + detail message); the others are internal and reach a client as UNKNOWN or
 * UNAVAILABLE.
 *
 * An error lives in the arena it was made in. Wrap it with what you were doing; log it once, where
 * the call came in. */
#ifndef CADENZA_BASE_ERROR_H
#define CADENZA_BASE_ERROR_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

/* X(kind, gRPC status, detail message of the wire or NULL, name in logs and metrics) */
#define ERROR_KINDS(X)                                                                             \
    X(ERR_BAD_REQUEST, 3, NULL, "bad_request")                                                     \
    X(ERR_QUERY_FAILED, 3, "uber.cadence.api.v1.QueryFailedError", "query_failed")                 \
    X(ERR_ACCESS_DENIED, 7, NULL, "access_denied")                                                 \
    X(ERR_INTERNAL, 13, NULL, "internal")                                                          \
    X(ERR_UNCATEGORISED, 2, NULL, "uncategorised")                                                 \
    X(ERR_ENTITY_NOT_EXISTS, 5, "uber.cadence.api.v1.EntityNotExistsError", "entity_not_exists")   \
    X(ERR_ALREADY_COMPLETED, 5, "uber.cadence.api.v1.WorkflowExecutionAlreadyCompletedError",      \
      "execution_already_completed")                                                               \
    X(ERR_SHARD_OWNERSHIP_LOST, 10, "uber.cadence.shared.v1.ShardOwnershipLostError",              \
      "shard_ownership_lost")                                                                      \
    X(ERR_TASK_LIST_NOT_OWNED, 10, "uber.cadence.shared.v1.TaskListNotOwnedByHostError",           \
      "task_list_not_owned")                                                                       \
    X(ERR_CURRENT_BRANCH_CHANGED, 10, "uber.cadence.shared.v1.CurrentBranchChangedError",          \
      "current_branch_changed")                                                                    \
    X(ERR_RETRY_TASK, 10, "uber.cadence.shared.v1.RetryTaskV2Error", "retry_task")                 \
    X(ERR_READ_ONLY_PARTITION, 10, "uber.cadence.api.v1.ReadOnlyPartitionError",                   \
      "read_only_partition")                                                                       \
    X(ERR_CANCELLATION_ALREADY_REQUESTED, 6,                                                       \
      "uber.cadence.api.v1.CancellationAlreadyRequestedError", "cancellation_already_requested")   \
    X(ERR_DOMAIN_ALREADY_EXISTS, 6, "uber.cadence.api.v1.DomainAlreadyExistsError",                \
      "domain_already_exists")                                                                     \
    X(ERR_EVENT_ALREADY_STARTED, 6, "uber.cadence.shared.v1.EventAlreadyStartedError",             \
      "event_already_started")                                                                     \
    X(ERR_ALREADY_STARTED, 6, "uber.cadence.api.v1.WorkflowExecutionAlreadyStartedError",          \
      "execution_already_started")                                                                 \
    X(ERR_DATA_INCONSISTENCY, 15, "uber.cadence.shared.v1.InternalDataInconsistencyError",         \
      "data_inconsistency")                                                                        \
    X(ERR_CLIENT_VERSION_NOT_SUPPORTED, 9, "uber.cadence.api.v1.ClientVersionNotSupportedError",   \
      "client_version_not_supported")                                                              \
    X(ERR_FEATURE_NOT_ENABLED, 9, "uber.cadence.api.v1.FeatureNotEnabledError",                    \
      "feature_not_enabled")                                                                       \
    X(ERR_DOMAIN_NOT_ACTIVE, 9, "uber.cadence.api.v1.DomainNotActiveError", "domain_not_active")   \
    X(ERR_LIMIT_EXCEEDED, 8, "uber.cadence.api.v1.LimitExceededError", "limit_exceeded")           \
    X(ERR_SERVICE_BUSY, 8, "uber.cadence.api.v1.ServiceBusyError", "service_busy")                 \
    X(ERR_REMOTE_SYNC_MATCHED, 14, "uber.cadence.shared.v1.RemoteSyncMatchedError",                \
      "remote_sync_matched")                                                                       \
    X(ERR_STICKY_WORKER_UNAVAILABLE, 14, "uber.cadence.api.v1.StickyWorkerUnavailableError",       \
      "sticky_worker_unavailable")                                                                 \
    X(ERR_DEADLINE, 4, NULL, "context_timeout")                                                    \
    X(ERR_UNIMPLEMENTED, 12, NULL, "unimplemented")                                                \
    /* From here on: internal kinds. */                                                            \
    X(ERR_CANCELLED, 1, NULL, "cancelled")      /* the caller has gone, or we are stopping */      \
    X(ERR_UNAVAILABLE, 14, NULL, "unavailable") /* no connection; stopping; try again */           \
    X(ERR_FENCED, 14, NULL, "fenced")           /* store: the guard was not as expected */         \
    X(ERR_OUTCOME_UNKNOWN, 14, NULL, "outcome_unknown") /* store: it may have landed */            \
    X(ERR_BUSY, 14, NULL, "busy")                       /* no room now; nothing was done */        \
    X(ERR_NOT_FOUND, 2, NULL, "not_found")              /* file, key */                            \
    X(ERR_CORRUPT, 15, NULL, "corrupt")                 /* bytes are not what they were */         \
    X(ERR_IO, 14, NULL, "io")                           /* disk or socket */

enum error_kind {
#define X(kind, status, detail, name) kind,
    ERROR_KINDS(X)
#undef X
        ERROR_KIND_COUNT
};

struct error {
    enum error_kind kind;
    const char *message; /* for people; also what the client sees */
    struct slice detail; /* serialized detail message of the kind, see wire/errors.h; often empty */
    struct arena *arena; /* where it lives */
    const char *file;    /* where it was made */
    int line;
    struct error *cause; /* what it wraps, or NULL */
};

/* A new error in `arena`. */
#define error_new(arena, kind, ...) error_new_at((arena), (kind), __FILE__, __LINE__, __VA_ARGS__)
/* The same kind and detail with "what we were doing: " before the message; `err` must not be NULL.
 */
#define error_wrap(err, ...) error_wrap_at((err), __FILE__, __LINE__, __VA_ARGS__)

must_use struct error *error_new_at(struct arena *arena, enum error_kind kind, const char *file,
                                    int line, const char *format, ...) printf_like(5, 6);
must_use struct error *error_wrap_at(struct error *err, const char *file, int line,
                                     const char *format, ...) printf_like(4, 5);
/* A deep copy into another arena, for errors that outlive theirs. NULL gives NULL. */
struct error *error_copy(struct arena *arena, const struct error *err);

/* What the table says of a kind. */
int error_kind_status(enum error_kind kind);
const char *error_kind_detail(enum error_kind kind); /* full message name, NULL: none */
const char *error_kind_name(enum error_kind kind);

#endif
