/* errors.c - details of errors. A maker fills the detail's struct on its stack and attaches its
 * bytes. */
#include "wire/errors.h"

#include <stdarg.h>

#include "base/check.h"
#include "wire/presence.h"

const ProtobufCMessageDescriptor *
errors_detail_type(enum error_kind kind)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        API_TYPE(query_failed_error),
        API_TYPE(entity_not_exists_error),
        API_TYPE(workflow_execution_already_completed_error),
        SHARED_TYPE(shard_ownership_lost_error),
        SHARED_TYPE(task_list_not_owned_by_host_error),
        SHARED_TYPE(current_branch_changed_error),
        SHARED_TYPE(retry_task_v2_error),
        API_TYPE(read_only_partition_error),
        API_TYPE(cancellation_already_requested_error),
        API_TYPE(domain_already_exists_error),
        SHARED_TYPE(event_already_started_error),
        API_TYPE(workflow_execution_already_started_error),
        SHARED_TYPE(internal_data_inconsistency_error),
        API_TYPE(client_version_not_supported_error),
        API_TYPE(feature_not_enabled_error),
        API_TYPE(domain_not_active_error),
        API_TYPE(limit_exceeded_error),
        API_TYPE(service_busy_error),
        SHARED_TYPE(remote_sync_matched_error),
        API_TYPE(sticky_worker_unavailable_error),
    };
    const char *name = error_kind_detail(kind);
    if (name == NULL)
        return NULL;
    for (size_t i = 0; i < array_length(types); i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    unreachable("no message %s for errors of kind %s", name, error_kind_name(kind));
}

/* An error of a kind whose detail is `detail`, which must be the message that error.h names for the
 * kind. The makers are made of it. */
static struct error *
errors_attach(struct error *err, const ProtobufCMessage *detail)
{
    check_that(errors_detail_type(err->kind) == detail->descriptor,
               "%s is not the detail of kind %s", detail->descriptor->name,
               error_kind_name(err->kind));
    err->detail = message_encode(err->arena, detail);
    return err;
}

/* error_new_at for makers that have a va_list. */
static struct error *
error_make(struct arena *arena, enum error_kind kind, const char *file, int line,
           const char *format, va_list arguments)
{
    const char *message = arena_vformat(arena, format, arguments);
    return error_new_at(arena, kind, file, line, "%s", message);
}

static char **
texts_of(const char *const *texts)
{
    return (char **)texts; /* protobuf-c knows no const; encoding only reads */
}

struct error *
errors_entity_not_exists_at(struct arena *arena, const struct error_clusters *clusters,
                            const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct error *err = error_make(arena, ERR_ENTITY_NOT_EXISTS, file, line, format, arguments);
    va_end(arguments);
    API(EntityNotExistsError) detail;
    uber__cadence__api__v1__entity_not_exists_error__init(&detail);
    if (clusters != NULL) {
        detail.current_cluster = presence_make_text(clusters->current);
        detail.active_cluster = presence_make_text(clusters->active);
        detail.active_clusters = texts_of(clusters->active_each);
        detail.n_active_clusters = clusters->active_count;
    }
    return errors_attach(err, &detail.base);
}

/* The sentence for domains that are active in several clusters (G-053). */
static struct error *
not_active_anywhere(struct arena *arena, const struct error_clusters *clusters,
                    const API(DomainNotActiveError) *detail)
{
    const char *names = "";
    for (size_t i = 0; i < clusters->active_count; i++)
        names = arena_format(arena, "%s%s%s", names, i > 0 ? " " : "", clusters->active_each[i]);
    return error_new(arena, ERR_DOMAIN_NOT_ACTIVE,
                     "Domain: %s is active in cluster(s): [%s], while current cluster %s is a "
                     "standby cluster. Operation active cluster: %s",
                     detail->domain, names, detail->current_cluster, detail->active_cluster);
}

struct error *
errors_domain_not_active(struct arena *arena, const char *domain,
                         const struct error_clusters *clusters)
{
    check(domain != NULL && clusters != NULL);
    API(DomainNotActiveError) detail;
    uber__cadence__api__v1__domain_not_active_error__init(&detail);
    detail.domain = presence_make_text(domain);
    detail.current_cluster = presence_make_text(clusters->current);
    detail.active_cluster = presence_make_text(clusters->active);
    detail.active_clusters = texts_of(clusters->active_each);
    detail.n_active_clusters = clusters->active_count;
    if (clusters->active_count > 0)
        return errors_attach(not_active_anywhere(arena, clusters, &detail), &detail.base);
    struct error *err = error_new(
        arena, ERR_DOMAIN_NOT_ACTIVE,
        "Domain: %s is active in cluster: %s, while current cluster %s is a standby cluster.",
        domain, detail.active_cluster, detail.current_cluster);
    return errors_attach(err, &detail.base);
}

struct error *
errors_already_started_at(struct arena *arena, const char *start_request_id, const char *run_id,
                          const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct error *err = error_make(arena, ERR_ALREADY_STARTED, file, line, format, arguments);
    va_end(arguments);
    API(WorkflowExecutionAlreadyStartedError) detail;
    uber__cadence__api__v1__workflow_execution_already_started_error__init(&detail);
    detail.start_request_id = presence_make_text(start_request_id);
    detail.run_id = presence_make_text(run_id);
    return errors_attach(err, &detail.base);
}

struct error *
errors_service_busy_at(struct arena *arena, const char *reason, const char *file, int line,
                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct error *err = error_make(arena, ERR_SERVICE_BUSY, file, line, format, arguments);
    va_end(arguments);
    API(ServiceBusyError) detail;
    uber__cadence__api__v1__service_busy_error__init(&detail);
    detail.reason = presence_make_text(reason);
    return errors_attach(err, &detail.base);
}

struct error *
errors_client_version_not_supported(struct arena *arena, const char *feature_version,
                                    const char *client_name, const char *supported_versions)
{
    API(ClientVersionNotSupportedError) detail;
    uber__cadence__api__v1__client_version_not_supported_error__init(&detail);
    detail.feature_version = presence_make_text(feature_version);
    detail.client_impl = presence_make_text(client_name);
    detail.supported_versions = presence_make_text(supported_versions);
    return errors_attach(
        error_new(arena, ERR_CLIENT_VERSION_NOT_SUPPORTED, "Client version not supported"),
        &detail.base);
}

struct error *
errors_shard_ownership_lost(struct arena *arena, const char *owner)
{
    SHARED(ShardOwnershipLostError) detail;
    uber__cadence__shared__v1__shard_ownership_lost_error__init(&detail);
    detail.owner = presence_make_text(owner);
    return errors_attach(error_new(arena, ERR_SHARD_OWNERSHIP_LOST,
                                   "The shard is not owned here, its owner is '%s'.", detail.owner),
                         &detail.base);
}

struct error *
errors_read_at(struct arena *arena, const struct error *err, ProtobufCMessage **out)
{
    const ProtobufCMessageDescriptor *type = errors_detail_type(err->kind);
    check_that(type != NULL, "errors of kind %s have no detail", error_kind_name(err->kind));
    return message_decode_at(arena, ERR_INTERNAL, type, err->detail, out);
}
