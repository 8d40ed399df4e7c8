/* errors.h - errors whose detail has fields, made for the wire and read back from it.
 *
 * The kinds of error.h that have a detail message without fields need nothing from here: their
 * detail is empty bytes, error_new is enough. The others are made by the functions below, and a
 * caller of another host or cluster reads the fields back with errors_read.
 *
 * Text that is NULL counts as "". */
#ifndef CADENZA_WIRE_ERRORS_H
#define CADENZA_WIRE_ERRORS_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "uber/cadence/api/v1/error.pb-c.h"
#include "uber/cadence/shared/v1/error.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

/* Where a workflow is and where it is active. All NULL: says nothing about clusters. */
struct error_clusters {
    const char *current;            /* this cluster */
    const char *active;             /* the cluster to ask instead */
    const char *const *active_each; /* active-active domains: all of them */
    size_t active_count;
};

/* ERR_ENTITY_NOT_EXISTS. Fill `clusters` (may be NULL) only where this cluster is passive for the
 * workflow: SDKs then take it for replication lag and ask again. */
#define errors_entity_not_exists(arena, clusters, ...)                                             \
    errors_entity_not_exists_at((arena), (clusters), __FILE__, __LINE__, __VA_ARGS__)
must_use struct error *errors_entity_not_exists_at(struct arena *arena,
                                                   const struct error_clusters *clusters,
                                                   const char *file, int line, const char *format,
                                                   ...) printf_like(5, 6);

/* ERR_DOMAIN_NOT_ACTIVE. The caller's frontend re-sends the call once, to clusters->active. */
must_use struct error *errors_domain_not_active(struct arena *arena, const char *domain,
                                                const struct error_clusters *clusters);

/* ERR_ALREADY_STARTED. SDKs read the run id from the detail. */
#define errors_already_started(arena, start_request_id, run_id, ...)                               \
    errors_already_started_at((arena), (start_request_id), (run_id), __FILE__, __LINE__,           \
                              __VA_ARGS__)
must_use struct error *errors_already_started_at(struct arena *arena, const char *start_request_id,
                                                 const char *run_id, const char *file, int line,
                                                 const char *format, ...) printf_like(6, 7);

/* ERR_SERVICE_BUSY. `reason` is "" or ERRORS_BUSY_WORKFLOW_ID. */
#define ERRORS_BUSY_WORKFLOW_ID "external-workflow-id-rate-limit"
#define errors_service_busy(arena, reason, ...)                                                    \
    errors_service_busy_at((arena), (reason), __FILE__, __LINE__, __VA_ARGS__)
must_use struct error *errors_service_busy_at(struct arena *arena, const char *reason,
                                              const char *file, int line, const char *format, ...)
    printf_like(5, 6);

/* ERR_CLIENT_VERSION_NOT_SUPPORTED; its text is fixed. */
must_use struct error *errors_client_version_not_supported(struct arena *arena,
                                                           const char *feature_version,
                                                           const char *client_name,
                                                           const char *supported_versions);

/* ERR_SHARD_OWNERSHIP_LOST: `owner` is where the shard is now, as far as known. */
must_use struct error *errors_shard_ownership_lost(struct arena *arena, const char *owner);

/* The type of the detail of a kind, NULL: it has none. */
const ProtobufCMessageDescriptor *errors_detail_type(enum error_kind kind);

/* Reads the detail of `err`, whose kind must be one with a detail, into *out, a pointer to the
 * struct of its message, for example API(DomainNotActiveError) *. Empty detail bytes give a message
 * with all unset. Error: ERR_INTERNAL, the peer sent something else. */
#define errors_read(arena, err, out)                                                               \
    errors_read_at((arena), (err), (ProtobufCMessage **)(out) + 0 * sizeof(&(*(out))->base))
must_use struct error *errors_read_at(struct arena *arena, const struct error *err,
                                      ProtobufCMessage **out);

#endif
