/* meta.c - calls about the server itself: is it healthy, what does it support, copy the store. */
#include "api/inside.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/engine.h"
#include "grpc/health/v1/health.pb-c.h"
#include "store/admin.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
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

/* What people are told though the server is healthy; NULL: nothing. With a damaged store it still
 * serves what can be read, one that lost memory serves other domains, and a restart would repair
 * neither. */
static const char *
trouble_of(const struct api_options *options, struct arena *arena)
{
    const char *damage = options->store == NULL ? NULL : store_damage(options->store, arena);
    const char *recovery = domains_recovery_text(options->domains);
    if (damage == NULL || recovery == NULL)
        return damage != NULL ? damage : recovery;
    return arena_format(arena, "%s; %s", damage, recovery);
}

struct error *
api_health(struct rpc_call *call)
{
    API(HealthResponse) *response = (API(HealthResponse) *)call->response;
    response->ok = phase_of(api_of(call)) == SERVER_READY;
    response->message = response->ok ? "OK" : "ShuttingDown";
    const char *trouble = response->ok ? trouble_of(&api_of(call)->options, call->arena) : NULL;
    if (trouble != NULL)
        response->message = (char *)trouble;
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

static API(SupportedClientVersions) *
client_versions(struct arena *arena)
{
    API(SupportedClientVersions) *versions =
        message_new(arena, API_TYPE(supported_client_versions));
    versions->go_sdk = GO_SDK_NEWEST;
    versions->java_sdk = JAVA_SDK_NEWEST;
    return versions;
}

struct error *
api_get_cluster_info(struct rpc_call *call)
{
    API(GetClusterInfoResponse) *response = (API(GetClusterInfoResponse) *)call->response;
    response->supported_client_versions = client_versions(call->arena);
    return NULL;
}

/* One store with one feature that it has. */
static ADMIN(DescribeClusterResponse__PersistenceInfoEntry) *
describe_store(struct arena *arena, const char *name, const char *backend, const char *feature)
{
    ADMIN(DescribeClusterResponse__PersistenceInfoEntry) *entry =
        message_new(arena, ADMIN_TYPE(describe_cluster_response__persistence_info_entry));
    entry->key = arena_text(arena, name);
    entry->value = message_new(arena, ADMIN_TYPE(persistence_info));
    entry->value->backend = arena_text(arena, backend);
    if (feature == NULL)
        return entry;
    ADMIN(PersistenceFeature) *has = message_new(arena, ADMIN_TYPE(persistence_feature));
    has->key = arena_text(arena, feature);
    has->enabled = true;
    entry->value->n_features = 1;
    entry->value->features = arena_zalloc(arena, 1, sizeof entry->value->features[0]);
    entry->value->features[0] = has;
    return entry;
}

/* One host has all roles. */
static ADMIN(MembershipInfo) *
describe_members(const struct engine *engine, struct arena *arena)
{
    static const char *const roles[] = {"cadence-frontend", "cadence-history", "cadence-matching",
                                        "cadence-worker"};
    ADMIN(MembershipInfo) *info = message_new(arena, ADMIN_TYPE(membership_info));
    info->current_host = message_new(arena, ADMIN_TYPE(host_info));
    info->current_host->identity =
        arena_text(arena, engine == NULL ? "cadenza" : engine_host(engine));
    info->n_reachable_members = 1;
    info->reachable_members = arena_zalloc(arena, 1, sizeof info->reachable_members[0]);
    info->reachable_members[0] = info->current_host->identity;
    info->n_rings = array_length(roles);
    info->rings = arena_zalloc(arena, array_length(roles), sizeof info->rings[0]);
    for (size_t i = 0; i < array_length(roles); i++) {
        ADMIN(RingInfo) *ring = message_new(arena, ADMIN_TYPE(ring_info));
        ring->role = (char *)roles[i];
        ring->member_count = 1;
        ring->n_members = 1;
        ring->members = arena_zalloc(arena, 1, sizeof ring->members[0]);
        ring->members[0] = info->current_host;
        info->rings[i] = ring;
    }
    return info;
}

/* cadence-web searches by queries where the visibility store says that it can. */
struct error *
api_describe_cluster(struct rpc_call *call)
{
    ADMIN(DescribeClusterResponse) *response = (ADMIN(DescribeClusterResponse) *)call->response;
    struct arena *arena = call->arena;
    response->supported_client_versions = client_versions(arena);
    response->membership_info = describe_members(api_of(call)->options.engine, arena);
    response->n_persistence_info = 2;
    response->persistence_info = arena_zalloc(arena, 2, sizeof response->persistence_info[0]);
    response->persistence_info[0] = describe_store(arena, "historyStore", "embedded", NULL);
    response->persistence_info[1] =
        describe_store(arena, "visibilityStore", "sqlite", "advancedVisibilityEnabled");
    return NULL;
}

struct error *
api_backup(struct rpc_call *call)
{
    struct store *store = api_of(call)->options.store;
    const STORE_API(BackupRequest) *request = (const STORE_API(BackupRequest) *)call->request;
    if (store == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST, "This server's store cannot make backups.");
    if (request->folder[0] != '/')
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "folder: '%s' is not an absolute path on the server's machine.",
                         request->folder);
    return store_backup(store, request->folder, call->arena);
}
