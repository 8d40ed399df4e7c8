/* fixture.c - see fixture.h. */
#include "api/test/fixture.h"

#include <stdio.h>

#include "failover/drains.h"
#include "route/test_answers.h"
#include "rpc/over_grpc.h"
#include "settings/settings.h"
#include "wire/names.h"

/* --- the server ----------------------------------------------------------------------------------
 */

static bool
offer(void *context, const struct task *task)
{
    struct fixture *fixture = context;
    return matching_add(fixture->matching, task);
}

static enum reservation_end
reserve_poll(void *context, struct reservation *reservation)
{
    struct fixture *fixture = context;
    return matching_reserve(fixture->matching, reservation);
}

static void
end_reservation(void *context, struct reservation *reservation)
{
    struct fixture *fixture = context;
    matching_end_reservation(fixture->matching, reservation);
}

static void
task_done(void *context, const struct task *task)
{
    struct fixture *fixture = context;
    struct engine *opened = atomic_load(&fixture->engine);
    if (opened != NULL)
        engine_task_done(opened, task);
}

static const char *
domain_name(void *context, const char *domain_id)
{
    const struct fixture *fixture = context;
    const struct domain *domain = domains_find_id(fixture->domains, domain_id);
    return domain == NULL ? NULL : domain->name;
}

static bool
is_group_drained(void *context, const char *domain_id, const char *group)
{
    const struct fixture *fixture = context;
    return domains_is_group_isolated(fixture->domains, domain_id, group);
}

/* Archives are there for domains that want one. */
static void
open_archive(struct fixture *fixture)
{
    const struct archive_settings on = {.is_enabled = true,
                                        .is_readable = true,
                                        .has_files = true,
                                        .file_mode = 0644,
                                        .dir_mode = 0755};
    fixture->archive = archive_new(&(struct archive_options){.settings = {on, on},
                                                             .dynamic = fixture->dynamic,
                                                             .metrics = fixture->metrics,
                                                             .owner = "fixture"});
}

static bool
is_served(void *context, const char *domain_id, const char *list)
{
    const struct fixture_system *system = &((struct fixture *)context)->system;
    return system->is_served != NULL && system->is_served(system->context, domain_id, list);
}

static void
wanted(void *context, const char *domain_id, const char *list, enum task_type type)
{
    const struct fixture_system *system = &((struct fixture *)context)->system;
    system->wanted(system->context, domain_id, list, type);
}

static void
open_owners(struct fixture *fixture)
{
    const struct archival_rule archival = {
        .is_enabled = true,
        .default_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED),
        .default_uri = "file:///archive",
    };
    struct domains_options domains = {.store = fixture->store,
                                      .group = fixture->group,
                                      .dynamic = fixture->dynamic,
                                      .history_archival = archival,
                                      .visibility_archival = archival};
    open_archive(fixture);
    EXPECT_OK(domains_open(&domains, fixture->arena, &fixture->domains));
    fixture->drains = drains_open(&(struct drains_options){.domains = fixture->domains,
                                                           .store = fixture->store,
                                                           .group = fixture->group,
                                                           .is_alone = true});
    EXPECT_OK(settings_open(fixture->store, fixture->dynamic, fixture->arena, &fixture->settings));
    fixture->matching =
        matching_new(&(struct matching_options){.store = fixture->store,
                                                .dynamic = fixture->dynamic,
                                                .metrics = fixture->metrics,
                                                .host = "fixture",
                                                .is_alone = true,
                                                .task_done = task_done,
                                                .domain_name = domain_name,
                                                .is_isolation_group_drained = is_group_drained,
                                                .is_served = is_served,
                                                .wanted = wanted,
                                                .context = fixture});
    fixture_open_visibility(fixture);
    struct engine_options engine = {
        .store = fixture->store,
        .shard_count = FIXTURE_SHARDS,
        .domains = fixture->domains,
        .group = fixture->group,
        .dynamic = fixture->dynamic,
        .metrics = fixture->metrics,
        .tasks = {.offer = offer, .context = fixture},
        .reservations = {.ask = reserve_poll, .end = end_reservation, .context = fixture},
        .visibility = feeder_port(fixture->feeder),
        .search = {.judge = fixture_check_search, .context = fixture},
        .archive = archive_port(fixture->archive),
        .host = "fixture",
        .is_alone = true,
    };
    struct engine *opened = NULL;
    EXPECT_OK(engine_open(&engine, fixture->arena, &opened));
    atomic_store(&fixture->engine, opened);
    feeder_start(fixture->feeder);
}

static int64_t
log_now(void *context)
{
    return clock_wall();
}

static void
log_keep(void *context, const char *line, size_t length)
{
    struct fixture *fixture = context;
    snprintf(fixture->logged, sizeof fixture->logged, "%.*s", (int)length, line);
}

static void
open_door(struct fixture *fixture, const char *address)
{
    fixture->log = (struct log){.level = LOG_INFO,
                                .service = "cadenza",
                                .now = log_now,
                                .sink = log_keep,
                                .context = fixture};
    fixture->api = api_new(&(struct api_options){.domains = fixture->domains,
                                                 .drains = fixture->drains,
                                                 .group = fixture->group,
                                                 .dynamic = fixture->dynamic,
                                                 .engine = fixture->engine,
                                                 .matching = fixture->matching,
                                                 .visibility = fixture->visibility,
                                                 .registry = fixture->registry,
                                                 .archive = fixture->archive,
                                                 .settings = fixture->settings,
                                                 .metrics = fixture->metrics,
                                                 .phase = &fixture->phase,
                                                 .log = &fixture->log});
    struct rpc_table table = api_table(fixture->api);
    fixture->service = rpc_service_new(&table, 1, NULL, fixture->metrics);
    struct grpc_server_options door = {.address = address,
                                       .metrics = fixture->metrics,
                                       .service = rpc_over_grpc(fixture->service)};
    EXPECT_OK(grpc_server_open(&door, fixture->arena, &fixture->server));
    fixture->client = grpc_client_new(
        &(struct grpc_client_options){.address = grpc_server_address(fixture->server)});
}

#define GROUP                                                                                      \
    "clusterGroupMetadata:\n"                                                                      \
    "  failoverVersionIncrement: 10\n"                                                             \
    "  primaryClusterName: cluster0\n"                                                             \
    "  currentClusterName: cluster0\n"                                                             \
    "  clusterGroup:\n"                                                                            \
    "    cluster0: {enabled: true, initialFailoverVersion: 1, rpcName: cadence-frontend, "         \
    "rpcAddress: 'server:7833', rpcTransport: grpc}\n"                                             \
    "    cluster1: {enabled: true, initialFailoverVersion: 2, rpcName: cadence-frontend, "         \
    "rpcAddress: 'other:7833', rpcTransport: grpc}\n"

static void
make_global(struct fixture *fixture, API(RegisterDomainRequest) *request)
{
    request->is_global_domain = true;
    request->active_cluster_name = "cluster0";
    request->n_clusters = 2;
    request->clusters = arena_zalloc(fixture->arena, 2, sizeof *request->clusters);
    for (int i = 0; i < 2; i++) {
        request->clusters[i] =
            API_NEW(fixture->arena, cluster_replication_configuration,
                    .cluster_name = arena_format(fixture->arena, "cluster%d", i));
    }
}

static void
register_domain(struct fixture *fixture, const char *name, bool is_global)
{
    API(RegisterDomainRequest) *request =
        API_NEW(fixture->arena, register_domain_request, .name = (char *)name);
    if (is_global)
        make_global(fixture, request);
    request->workflow_execution_retention_period =
        presence_make_duration(fixture->arena, 24 * 3600);
    EXPECT_MADE(fixture_call(fixture, request, NULL));
}

/* Alone (no group), in a given group, or in the group of two that the config says. */
static void
open_all(struct fixture *fixture, const char *address, const struct cluster_group *group,
         bool is_in_group)
{
    *fixture = (struct fixture){
        .arena = arena_new(0), .base = memory_base_new(1), .timeout = 10 * NS_PER_S};
    fixture->phase = SERVER_READY;
    if (is_in_group)
        EXPECT_OK(config_parse(slice_text(GROUP), "test", NULL, fixture->arena, &fixture->config));
    else
        fixture->config = config_default();
    fixture->group = group;
    if (group == NULL)
        EXPECT_OK(cluster_group_load(fixture->config, fixture->arena, &fixture->group));
    fixture->dynamic = dynamic_new(NULL);
    fixture->metrics = metrics_new();
    fixture->store = memory_open(fixture->base);
    open_owners(fixture);
    open_door(fixture, address);
    register_domain(fixture, "orders", is_in_group);
}

void
fixture_open_in(struct fixture *fixture, const struct cluster_group *group, const char *address)
{
    open_all(fixture, address, group, false);
}

void
fixture_open(struct fixture *fixture, const char *address)
{
    open_all(fixture, address, NULL, false);
}

void
fixture_open_in_group(struct fixture *fixture, const char *address)
{
    open_all(fixture, address, NULL, true);
}

void
fixture_close(struct fixture *fixture)
{
    grpc_client_free(fixture->client);
    api_drain(fixture->api);
    if (fixture->system.stop != NULL)
        fixture->system.stop(fixture->system.context);
    grpc_server_close(fixture->server, clock_monotonic() + NS_PER_S);
    rpc_service_free(fixture->service);
    api_free(fixture->api);
    feeder_stop(fixture->feeder);
    engine_close(atomic_exchange(&fixture->engine, NULL)); /* nobody has tasks any more */
    fixture_close_visibility(fixture);
    archive_free(fixture->archive);
    matching_free(fixture->matching);
    if (fixture->system.free != NULL)
        fixture->system.free(fixture->system.context);
    drains_close(fixture->drains);
    domains_close(fixture->domains);
    settings_close(fixture->settings);
    store_close(fixture->store);
    metrics_free(fixture->metrics);
    dynamic_free(fixture->dynamic);
    config_free(fixture->config);
    memory_base_free(fixture->base);
    arena_free(fixture->arena);
}

/* --- calls ---------------------------------------------------------------------------------------
 */

struct error *
fixture_call_at(struct fixture *fixture, const ProtobufCMessage *request,
                ProtobufCMessage **response)
{
    struct wire_method method;
    EXPECT(wire_method_find_request(request->descriptor, &method));
    return fixture_call_method(fixture, &method, request, response);
}

struct error *
fixture_call_method(struct fixture *fixture, const struct wire_method *method,
                    const ProtobufCMessage *request, ProtobufCMessage **response)
{
    char path[WIRE_PATH_SIZE];
    wire_method_path(method, path, sizeof path);
    struct grpc_request call = {.path = path,
                                .message = message_encode(fixture->arena, request),
                                .headers = fixture->headers,
                                .header_count = fixture->header_count};
    struct slice bytes;
    ProtobufCMessage *unwanted;
    fiber_set_deadline(fixture->timeout == 0 ? NEVER : clock_monotonic() + fixture->timeout);
    struct error *err = grpc_client_call(fixture->client, &call, fixture->arena, &bytes);
    fiber_set_deadline(NEVER);
    return err != NULL ? err
                       : message_decode_at(fixture->arena, ERR_BAD_REQUEST, method->response, bytes,
                                           response != NULL ? response : &unwanted);
}

void
fixture_set(struct fixture *fixture, const char *yaml)
{
    EXPECT_OK(dynamic_load(fixture->dynamic, slice_text(yaml), "test", fixture->arena));
}
