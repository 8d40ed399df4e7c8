/* server.c - see server.h. */
#include "server/server.h"

#include "access/access.h"
#include "archive/archive.h"
#include "audit/audit.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/shard/starts.h"
#include "entity/watchers.h"
#include "failover/drains.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "matching/matching.h"
#include "replication/cross_tasks.h"
#include "replication/in/domains_in.h"
#include "replication/in/runs_in.h"
#include "replication/reapply.h"
#include "replication/replication.h"
#include "rpc/over_grpc.h"
#include "server/credentials.h"
#include "server/recovery.h"
#include "server/skip.h"
#include "settings/settings.h"
#include "store/admin.h"
#include "system/system.h"
#include "visibility/feed/feeder.h"

#define RPC         "services.frontend.rpc."
#define REDIRECTION "clusterGroupMetadata.clusterRedirectionPolicy."
#define TARGET      "allDomainApisForwardingTargetCluster"

struct server {
    struct server_options options;
    struct arena *arena; /* of the server's life */
    const struct cluster_group *group;
    struct domains *domains;
    struct drains *drains; /* graceful failovers to here */
    struct settings *settings;
    struct system_frame *system; /* the server's own workers */
    struct matching *matching;
    /* Matching calls it from every loop: published when it is open, taken back before it closes. */
    _Atomic(struct engine *) engine;
    struct registry *registry; /* of search attributes */
    struct feeder *feeder;     /* of visibility */
    struct archive *archive;
    struct api *api;
    struct replication *replication;
    struct rpc_service *service; /* all services together */
    struct credentials *credentials;
    struct audit *audit;
    struct access *access;      /* NULL: every caller may do everything */
    struct peer_clients *peers; /* for what the engine sends to other clusters; NULL: not open */
    struct reapply_sender reapply;
    struct grpc_server *grpc;
    struct domains_in *domains_in; /* follows the other clusters */
    struct runs_in *runs_in;       /* and their runs */
    struct recovery recovery;      /* if memory was lost */
    struct skipper *skipper;       /* NULL: time is not skipped */
    struct entity_types entity_types;
    /* Calls ask for it from every loop: set once it runs, and until no calls come any more. */
    _Atomic(struct watchers *) watchers;
};

/* The life of a server by its parts: what is open needs what was opened before it, and goes first.
 */
static void
server_check(const struct server *server)
{
    bool has_engine = atomic_load(&server->engine) != NULL;
    check(server->group != NULL || server->domains == NULL);
    check((server->system == NULL) == (server->matching == NULL));
    check((server->domains == NULL) == (server->drains == NULL));
    check(server->domains != NULL || server->matching == NULL);
    check(server->matching != NULL || !has_engine);
    check(server->feeder == NULL || server->registry != NULL);
    check((server->api == NULL) == (server->service == NULL));
    check((server->api == NULL) == (server->replication == NULL));
    check(server->api != NULL || server->grpc == NULL);
    check(server->grpc != NULL || (server->runs_in == NULL && server->domains_in == NULL));
    check(server->runs_in == NULL || has_engine);
}

static void
set_phase(struct server *server, enum server_phase phase)
{
    atomic_store_explicit(server->options.phase, phase, memory_order_release);
}

static struct archival_rule
archival_rule(const struct archive_settings *settings)
{
    return (struct archival_rule){
        .is_enabled = settings->is_enabled,
        .default_status = settings->is_default_enabled
                              ? API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED)
                              : API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED),
        .default_uri = settings->default_uri,
    };
}

static bool
is_alone(const struct server *server)
{
    return store_is_alone(server->options.store);
}

static struct error *
open_domains(struct server *server, const struct archive_settings settings[2], struct arena *arena)
{
    struct domains_options options = {
        .store = server->options.store,
        .group = server->group,
        .history_archival = archival_rule(&settings[ARCHIVE_HISTORY]),
        .visibility_archival = archival_rule(&settings[ARCHIVE_VISIBILITY]),
        .dynamic = server->options.dynamic,
        .log = server->options.log,
        .metrics = server->options.metrics,
        .is_catching_up = recovery_is_needed(&server->recovery),
        .refresh_interval = server->options.domain_refresh_interval,
    };
    struct error *err = domains_open(&options, arena, &server->domains);
    if (err != NULL)
        return err;
    server->drains = drains_open(&(struct drains_options){.domains = server->domains,
                                                          .store = options.store,
                                                          .group = options.group,
                                                          .log = options.log,
                                                          .metrics = options.metrics,
                                                          .is_alone = is_alone(server)});
    return NULL;
}

/* --- engine and matching, through each other's ports ---- */

static bool
offer_task(void *context, const struct task *task)
{
    struct server *server = context;
    /* Until all shards are owned nobody could record that a task is done: it is offered again. */
    if (atomic_load_explicit(&server->engine, memory_order_acquire) == NULL)
        return false;
    return matching_add(server->matching, task);
}

static enum reservation_end
reserve_poll(void *context, struct reservation *reservation)
{
    struct server *server = context;
    return matching_reserve(server->matching, reservation);
}

static void
end_reservation(void *context, struct reservation *reservation)
{
    struct server *server = context;
    matching_end_reservation(server->matching, reservation);
}

/* Before the engine is open matching gets no task; when it closes, the rows stay and are offered
 * again at the next start. */
static void
task_done(void *context, const struct task *task)
{
    struct server *server = context;
    struct engine *engine = atomic_load_explicit(&server->engine, memory_order_acquire);
    if (engine != NULL)
        engine_task_done(engine, task);
}

static const char *
domain_name(void *context, const char *domain_id)
{
    const struct server *server = context;
    const struct domain *domain = domains_find_id(server->domains, domain_id);
    return domain == NULL ? NULL : domain->name;
}

static bool
is_group_drained(void *context, const char *domain_id, const char *group)
{
    const struct server *server = context;
    return domains_is_group_isolated(server->domains, domain_id, group);
}

static bool
is_served(void *context, const char *domain_id, const char *list)
{
    const struct server *server = context;
    return system_serves(server->system, domain_id, list);
}

static void
worker_wanted(void *context, const char *domain_id, const char *list, enum task_type type)
{
    struct server *server = context;
    system_wanted(server->system, domain_id, list, type);
}

static struct slice
start_encode(void *context, enum task_type type, const void *start, struct arena *arena)
{
    return task_start_encode(type, start, arena);
}

static void *
start_decode(void *context, enum task_type type, struct slice bytes, struct arena *arena)
{
    return task_start_decode(bytes, arena);
}

static const char *
host_name(const struct server *server)
{
    return server->options.host == NULL ? "cadenza" : server->options.host;
}

static void
open_archive(struct server *server, const struct archive_settings settings[2])
{
    server->archive = archive_new(&(struct archive_options){
        .settings = {settings[ARCHIVE_HISTORY], settings[ARCHIVE_VISIBILITY]},
        .dynamic = server->options.dynamic,
        .log = server->options.log,
        .metrics = server->options.metrics,
        .owner =
            arena_format(server->arena, "%s/%s", server->group->current->name, host_name(server)),
    });
}

static void
open_matching(struct server *server)
{
    server->system = system_new(&system_types, server->domains);
    server->matching = matching_new(&(struct matching_options){
        .store = server->options.store,
        .dynamic = server->options.dynamic,
        .log = server->options.log,
        .metrics = server->options.metrics,
        .host = host_name(server),
        .is_alone = is_alone(server),
        .task_done = task_done,
        .domain_name = domain_name,
        .is_isolation_group_drained = is_group_drained,
        .is_served = is_served,
        .wanted = worker_wanted,
        .start_encode = start_encode,
        .start_decode = start_decode,
        .context = server,
    });
}

static uint32_t
shard_count(const struct server *server)
{
    const struct server_options *options = &server->options;
    uint32_t configured = (uint32_t)config_integer(options->config, "persistence.numHistoryShards");
    return options->shard_count == 0 ? configured : options->shard_count;
}

static void
visibility_notified(void *context, uint32_t shard, uint64_t fed, uint64_t safe)
{
    struct server *server = context;
    struct engine *engine = atomic_load_explicit(&server->engine, memory_order_acquire);
    engine_visibility_stored(engine, shard, fed, safe);
}

static struct error *
open_feeder(struct server *server, struct arena *arena)
{
    const struct server_options *options = &server->options;
    struct error *err = registry_open(options->store, arena, &server->registry);
    if (err == NULL)
        err = registry_follow(server->registry, options->dynamic, DYNAMIC_INTERVAL_MAX,
                              options->log, arena);
    if (err != NULL)
        return err;
    server->feeder = feeder_new(&(struct feeder_options){.on_fed = visibility_notified,
                                                         .context = server,
                                                         .visibility = options->visibility,
                                                         .registry = server->registry,
                                                         .shard_count = shard_count(server),
                                                         .log = options->log,
                                                         .metrics = options->metrics});
    return NULL;
}

static struct error *
check_search(const void *context, const API(SearchAttributes) *attributes, const char *domain_name,
             struct arena *arena)
{
    const struct server *server = context;
    struct search_rules rules = {.registry = server->registry, .dynamic = server->options.dynamic};
    return api_check_search_attributes(&rules, attributes, domain_name, arena);
}

static struct error *
open_engine(struct server *server, struct arena *arena)
{
    const struct server_options *options = &server->options;
    server->peers = peer_clients_new(&(struct peer_ways){server->group,
                                                         credentials_peer_tls(server->credentials),
                                                         credentials_tokens(server->credentials)});
    server->reapply = (struct reapply_sender){server->group, server->peers};
    struct engine_options engine = {
        .store = options->store,
        .shard_count = shard_count(server),
        .domains = server->domains,
        .group = server->group,
        .dynamic = options->dynamic,
        .log = options->log,
        .metrics = options->metrics,
        .tasks = {.offer = offer_task, .context = server},
        .reservations = {.ask = reserve_poll, .end = end_reservation, .context = server},
        .visibility = feeder_port(server->feeder),
        .search = {.judge = check_search, .context = server},
        .archive = archive_port(server->archive),
        .reapply = reapply_port_of(&server->reapply),
        .remote = remote_port_of(&server->reapply),
        .host = host_name(server),
        .is_alone = is_alone(server),
        .transfers_max = options->transfers_max,
        .wakeups_max = options->wakeups_max,
    };
    struct engine *opened = NULL;
    struct error *err = engine_open(&engine, arena, &opened);
    atomic_store_explicit(&server->engine, opened, memory_order_release);
    if (err == NULL)
        feeder_start(server->feeder);
    return err;
}

static void
pass(void *argument)
{
}

/* Matching may be calling the engine right now, on any loop; it does so without a yield. So once
 * every loop has run something else, nobody uses the pointer. */
static void
close_engine(struct server *server)
{
    struct engine *engine = atomic_exchange(&server->engine, NULL);
    if (engine == NULL)
        return;
    loop_call_every(pass, NULL);
    engine_close(engine);
}

/* Where there is another cluster, calls are forwarded to the one that is active for them, unless
 * the config says otherwise. */
static struct forward_options
forward_options(const struct server *server)
{
    const struct config *config = server->options.config;
    struct forward_options options = {.target = config_text(config, REDIRECTION TARGET),
                                      .tls = credentials_peer_tls(server->credentials),
                                      .tokens = credentials_tokens(server->credentials)};
    bool is_known = forward_policy_find(config_text(config, REDIRECTION "policy"), &options.policy);
    check(is_known); /* the config knows the names */
    if (!cluster_group_has_peers(server->group))
        options.policy = FORWARD_NOOP;
    return options;
}

static void
open_doors(struct server *server)
{
    server->audit = audit_new(&(struct audit_options){.store = server->options.store,
                                                      .dynamic = server->options.dynamic,
                                                      .access = server->access,
                                                      .log = server->options.log});
    server->api = api_new(&(struct api_options){
        .domains = server->domains,
        .drains = server->drains,
        .group = server->group,
        .dynamic = server->options.dynamic,
        .engine = atomic_load(&server->engine),
        .matching = server->matching,
        .access = server->access,
        .audit = server->audit,
        .settings = server->settings,
        .phase = server->options.phase,
        .log = server->options.log,
        .metrics = server->options.metrics,
        .forward = forward_options(server),
        .store = server->options.store,
        .visibility = server->options.visibility,
        .registry = server->registry,
        .archive = server->archive,
        .entity_types = &server->entity_types,
        .watchers = &server->watchers,
    });
    server->replication =
        replication_new(&(struct replication_options){.domains = server->domains,
                                                      .group = server->group,
                                                      .engine = atomic_load(&server->engine)});
    const struct rpc_table tables[] = {api_table(server->api),
                                       replication_table(server->replication)};
    server->service =
        rpc_service_new(tables, array_length(tables), server->options.log, server->options.metrics);
    if (server->access != NULL)
        rpc_service_guard(server->service, access_check, server->access);
    rpc_service_watch(server->service, audit_note, server->audit);
}

static void
open_system(struct server *server)
{
    const struct server_options *options = &server->options;
    system_open(server->system, &(struct system_parts){
                                    .domains = server->domains,
                                    .group = server->group,
                                    .dynamic = options->dynamic,
                                    .engine = atomic_load(&server->engine),
                                    .matching = server->matching,
                                    .visibility = options->visibility,
                                    .registry = server->registry,
                                    .api = server->api,
                                    .replication = server->replication,
                                    .log = options->log,
                                });
}

/* bindOnIP wins over bindOnLocalHost, which is what an empty config means. */
static const char *
configured_address(const struct config *config, struct arena *arena)
{
    const char *host = config_text(config, RPC "bindOnIP");
    if (!config_is_given(config, RPC "bindOnIP") && !config_flag(config, RPC "bindOnLocalHost"))
        host = "0.0.0.0";
    bool is_v6 = strchr(host, ':') != NULL;
    return arena_format(arena, is_v6 ? "[%s]:%lld" : "%s:%lld", host,
                        (long long)config_integer(config, RPC "grpcPort"));
}

static bool
is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
           strncmp(address, "localhost:", 10) == 0;
}

static struct error *
open_port(struct server *server, struct arena *arena)
{
    const struct server_options *options = &server->options;
    struct grpc_server_options door = {
        .address = options->grpc_address != NULL
                       ? options->grpc_address
                       : configured_address(options->config, server->arena),
        .tls = credentials_tls(server->credentials),
        .message_max = (size_t)config_integer(options->config, RPC "grpcMaxMsgSize"),
        .log = options->log,
        .metrics = options->metrics,
        .service = rpc_over_grpc(server->service),
    };
    struct error *err = grpc_server_open(&door, arena, &server->grpc);
    if (err == NULL && server->access == NULL && !is_loopback(grpc_server_address(server->grpc)))
        log_warn(options->log,
                 "Anybody who reaches this server may do everything: it listens beyond loopback "
                 "and authorization.oauthAuthorizer.enable is false.",
                 log_text("address", grpc_server_address(server->grpc)));
    return err;
}

static struct error *
read_entity_types(struct server *server, struct arena *arena)
{
    struct error *err =
        entity_types_load(server->options.config, server->arena, &server->entity_types);
    return err == NULL ? NULL : error_copy(arena, err);
}

static struct error *
open_parts(struct server *server, struct arena *arena)
{
    struct archive_settings settings[2];
    bool has_file = server->options.config_file != NULL;
    struct error *err = cluster_group_load(server->options.config, server->arena, &server->group);
    if (err != NULL)
        return error_wrap(error_copy(arena, err), "%s%sclusterGroupMetadata",
                          has_file ? server->options.config_file : "", has_file ? ": " : "");
    err = recovery_init(&server->recovery, server->options.store, server->group,
                        server->options.accept_loss, server->options.log, server->arena);
    if (err != NULL)
        return error_copy(arena, err);
    err = credentials_open(server->options.config, server->group, server->options.log, arena,
                           &server->credentials);
    if (err == NULL)
        err =
            settings_open(server->options.store, server->options.dynamic, arena, &server->settings);
    if (err == NULL)
        err = archive_settings_read(server->options.config, arena, settings);
    if (err == NULL)
        err = read_entity_types(server, arena);
    if (err == NULL)
        err = open_domains(server, settings, arena);
    if (err == NULL)
        err = access_open(&(struct access_options){.config = server->options.config,
                                                   .dynamic = server->options.dynamic,
                                                   .domains = server->domains,
                                                   .log = server->options.log},
                          arena, &server->access);
    if (err == NULL && server->options.has_system_domains)
        err = system_register_domains(server->domains, server->options.dynamic, arena);
    if (err != NULL)
        return err;
    open_archive(server, settings);
    open_matching(server);
    err = open_feeder(server, arena);
    if (err == NULL)
        err = open_engine(server, arena);
    if (err != NULL)
        return err;
    open_doors(server);
    return open_port(server, arena);
}

static void
follow_group(struct server *server)
{
    const struct server_options *options = &server->options;
    server->recovery.domains = server->domains;
    server->recovery.engine = atomic_load(&server->engine);
    server->domains_in = domains_in_start(&(struct domains_in_options){
        .domains = server->domains,
        .group = server->group,
        .tls = credentials_peer_tls(server->credentials),
        .tokens = credentials_tokens(server->credentials),
        .log = options->log,
        .metrics = options->metrics,
        .caught_up = recovery_is_needed(&server->recovery) ? recovery_note_domains : NULL,
        .waived = server->recovery.waived,
        .context = &server->recovery,
    });
    server->runs_in = runs_in_start(&(struct runs_in_options){
        .engine = atomic_load(&server->engine),
        .domains = server->domains,
        .drains = server->drains,
        .group = server->group,
        .tls = credentials_peer_tls(server->credentials),
        .tokens = credentials_tokens(server->credentials),
        .log = options->log,
        .metrics = options->metrics,
        .is_recovering = recovery_is_needed(&server->recovery),
        .waived = server->recovery.waived,
        .have_past = recovery_ask_again,
        .recovered = recovery_end,
        .context = &server->recovery,
    });
    replication_set_runs(server->replication, server->runs_in);
    recovery_follow(&server->recovery, server->domains_in, server->runs_in);
    atomic_store(&server->watchers,
                 watchers_start(&(struct watchers_options){.domains = server->domains,
                                                           .group = server->group,
                                                           .types = &server->entity_types,
                                                           .log = options->log,
                                                           .metrics = options->metrics}));
}

struct error *
server_start(const struct server_options *options, struct arena *arena, struct server **server)
{
    check(options->store != NULL && options->visibility != NULL && options->phase != NULL);
    check(store_is_alone(options->store) == (options->domain_refresh_interval == 0));
    check(loop_index(loop_self()) == 0 && (!options->skips_time || loop_count() == 1));
    struct server *started = memory_zalloc(1, sizeof *started);
    started->options = *options;
    started->arena = arena_new(0);
    struct error *err = open_parts(started, arena);
    if (err != NULL) {
        server_stop(started, 0);
        return err;
    }
    check(started->grpc != NULL && atomic_load(&started->engine) != NULL);
    open_system(started);
    follow_group(started);
    server_check(started);
    if (options->skips_time)
        started->skipper = skipper_start(atomic_load(&started->engine), options->log);
    set_phase(started, SERVER_READY);
    *server = started;
    return NULL;
}

const char *
server_grpc_address(const struct server *server)
{
    return grpc_server_address(server->grpc);
}

const char *
server_recovery_text(const struct server *server)
{
    return domains_recovery_text(server->domains);
}

/* Load balancers get time to see the failing health check before calls are refused. */
static void
wait_before_shutdown(struct server *server)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    int64_t pause = dynamic_duration(server->options.dynamic, DYNAMIC_SHUTDOWN_DRAIN, &filter);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (pause > 0 && fiber_sleep(pause, arena) != NULL)
        log_warn(server->options.log, "Draining was cut short.");
}

void
server_stop(struct server *server, int64_t grace)
{
    check(grace >= 0 && loop_index(loop_self()) == 0);
    server_check(server);
    set_phase(server, SERVER_DRAINING);
    skipper_stop(server->skipper);
    if (server->grpc != NULL) {
        wait_before_shutdown(server);
        recovery_leave_domains(&server->recovery);
        if (server->domains_in != NULL)
            domains_in_stop(server->domains_in);
        replication_shutdown(server->replication);
        api_drain(server->api);
        system_stop(server->system);
        grpc_server_close(server->grpc, clock_monotonic() + grace);
    } else if (server->system != NULL) {
        system_stop(server->system);
    }
    watchers_stop(atomic_exchange(&server->watchers, NULL));
    struct runs_in *runs_in = server->runs_in;
    server->runs_in = NULL;
    if (runs_in != NULL)
        runs_in_stop(runs_in);
    if (server->service != NULL)
        rpc_service_free(server->service);
    if (server->replication != NULL)
        replication_free(server->replication);
    if (server->api != NULL)
        api_free(server->api);
    if (server->audit != NULL)
        audit_free(server->audit);
    if (server->access != NULL)
        access_free(server->access);
    if (server->feeder != NULL)
        feeder_stop(server->feeder);
    close_engine(server);
    peer_clients_free(server->peers);
    archive_free(server->archive);
    if (server->feeder != NULL)
        feeder_free(server->feeder);
    if (server->registry != NULL)
        registry_close(server->registry);
    if (server->matching != NULL)
        matching_free(server->matching);
    if (server->system != NULL)
        system_free(server->system);
    if (server->drains != NULL)
        drains_close(server->drains);
    if (server->domains != NULL)
        domains_close(server->domains);
    settings_close(server->settings);
    credentials_close(server->credentials);
    arena_free(server->arena);
    memory_free(server);
}
