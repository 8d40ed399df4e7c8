/* meta.c - questions about the server itself: is it well, what does it support, copy the store. */
#include "api/inside.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define GO_SDK_NEWEST   "1.7.0" /* newest feature versions that the protocol here covers */
#define JAVA_SDK_NEWEST "1.5.0"

static enum server_phase
phase_of(const struct api *api)
{
    return atomic_load_explicit(api->options.phase, memory_order_acquire);
}

struct error *
api_health(struct rpc_call *call)
{
    API(HealthResponse) *response = (API(HealthResponse) *)call->response;
    response->ok = phase_of(api_of(call)) == SERVER_READY;
    response->message = response->ok ? "OK" : "ShuttingDown";
    return NULL;
}

struct error *
api_grpc_health_check(struct rpc_call *call)
{
    const HEALTH(HealthCheckRequest) *request = (const HEALTH(HealthCheckRequest) *)call->request;
    HEALTH(HealthCheckResponse) *response = (HEALTH(HealthCheckResponse) *)call->response;
    if (request->service[0] != '\0' &&
        strncmp(request->service, "uber.cadence.", strlen("uber.cadence.")) != 0)
        return error_new(call->arena, ERR_ENTITY_NOT_EXISTS, "unknown service %s",
                         request->service);
    response->status = phase_of(api_of(call)) == SERVER_READY
                           ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                           : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
    return NULL;
}

struct error *
api_get_cluster_info(struct rpc_call *call)
{
    API(GetClusterInfoResponse) *response = (API(GetClusterInfoResponse) *)call->response;
    API(SupportedClientVersions) *versions =
        message_new(call->arena, API_TYPE(supported_client_versions));
    versions->go_sdk = GO_SDK_NEWEST;
    versions->java_sdk = JAVA_SDK_NEWEST;
    response->supported_client_versions = versions;
    return NULL;
}

struct error *
api_backup(struct rpc_call *call)
{
    const struct api_store_port *store = &api_of(call)->options.store;
    const STORE_API(BackupRequest) *request = (const STORE_API(BackupRequest) *)call->request;
    if (store->backup == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST, "This server's store cannot make backups.");
    if (request->folder[0] != '/')
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "folder: '%s' is not an absolute path on the server's machine.",
                         request->folder);
    return store->backup(store->context, request->folder, call->arena);
}
