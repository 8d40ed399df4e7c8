/* workflow_load.c - the client host of the workflow load. See workflow_load.h. */
#include "sim/workflow/workflow_load.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"

#define CALL_TIMEOUT   (5 * NS_PER_S)
#define PATIENCE_MAX   (3 * NS_PER_S)
#define GONE_LIMIT     (3600 * NS_PER_S)
#define DOMAIN_REFRESH (3 * NS_PER_S) /* hosts look for changes by others each second */

/* The domain that all workflows are in, at any host that answers; then until all hosts know it. */
static void
register_domain(struct workflow_load *load)
{
    struct load_clients *clients = load_clients_new(load->sim);
    struct error *err = NULL;
    do {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = workflow_any_host(load), .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = load_register(&call, &(struct load_registration){.name = WORKFLOW_DOMAIN,
                                                               .is_global = load->shard_log != NULL,
                                                               .cluster_count = 2,
                                                               .active_cluster = WORKFLOW_HOME});
        if (err == NULL || err->kind == ERR_DOMAIN_ALREADY_EXISTS)
            err = workflow_allow_later(&call);
        fiber_set_deadline(NEVER);
        struct error *ended = err == NULL ? NULL : fiber_sleep(100 * NS_PER_MS, arena);
        check(ended == NULL);
    } while (err != NULL);
    load_clients_free(clients);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    err = fiber_sleep(DOMAIN_REFRESH, arena);
    check(err == NULL);
}

static void
wait_for(const unsigned *running)
{
    while (*running > 0) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(10 * NS_PER_MS, arena) != NULL)
            break;
    }
}

/* Works until the clients are done, looks at all workflows while the workers go on, ends. */
static void
client_main(void *argument)
{
    struct workflow_load *load = argument;
    unsigned deciders = (load->worker_count + 1) / 2;
    unsigned workers_and_clients = load->worker_count + load->client_count;
    unsigned all = workers_and_clients + load->observer_count;
    struct workflow_part mover = {.load = load};
    struct workflow_part *parts = memory_zalloc(all, sizeof *parts);
    register_domain(load);
    for (unsigned i = 0; i < all; i++)
        parts[i] = (struct workflow_part){.load = load, .number = i};
    for (unsigned i = 0; i < load->worker_count; i++)
        fiber_start("worker", i < deciders ? workflow_decider_main : workflow_activity_main,
                    &parts[i]);
    for (unsigned i = load->worker_count; i < workers_and_clients; i++)
        fiber_start("client", workflow_client_main, &parts[i]);
    for (unsigned i = workers_and_clients; i < all; i++)
        fiber_start("observer",
                    load->is_divided && i == all - 1 ? workflow_divider_main
                                                     : workflow_observer_main,
                    &parts[i]);
    if (load->movers_running > 0) {
        fiber_start("mover", workflow_mover_main, &mover);
        fiber_start("toucher", workflow_toucher_main, &mover);
    }
    wait_for(&load->clients_running);
    wait_for(&load->movers_running);
    wait_for(&load->observers_running);
    workflow_audit(load);
    if (load->verdict.violation == NULL)
        workflow_check_rows(load);
    if (load->verdict.violation == NULL && load->shard_log != NULL)
        workflow_check_level(load);
    if (load->verdict.violation == NULL)
        workflow_check_visibility(load);
    load->is_audited = true;
    wait_for(&load->workers_running);
    memory_free(parts);
}

struct workflow_load *
workflow_load_start(struct sim *sim, const struct workflow_options *options)
{
    struct workflow_load *load = memory_zalloc(1, sizeof *load);
    check(options->busy_signals <= WORKFLOW_SIGNALS_MAX);
    load->sim = sim;
    load->client_count = load->clients_running = options->clients;
    load->worker_count = load->workers_running = options->workers;
    load->observer_count = load->observers_running = options->observers + options->is_divided;
    load->is_divided = options->is_divided;
    load->is_hasty = options->is_hasty;
    load->is_signaling = options->is_signaling;
    load->entries_max = options->workflows_max;
    load->entries =
        memory_zalloc(options->workflows_max + options->clients + 1, sizeof *load->entries);
    load->busy_signals = options->busy_signals;
    if (options->is_moving) {
        load->movers_running = 2;
        load->shard_log = memory_zalloc(1, sizeof *load->shard_log);
        load->shard_log->verdict = &load->verdict;
        load->shard_log->domain_name = WORKFLOW_DOMAIN;
        load->shard_log->cluster_name = WORKFLOW_HOME;
        shard_log_watch(load->shard_log, sim->hosts[0].base);
    }
    load->reported = map_new();
    load->events = map_new();
    load->handed = map_new();
    load->think_max = options->think_max;
    load->patience_max = options->patience_max != 0 ? options->patience_max : PATIENCE_MAX;
    host_start(sim->client, client_main, load);
    return load;
}

static void
gone_main(void *argument)
{
    struct workflow_load *load = argument;
    workflow_check_gone(load);
    if (load->verdict.violation == NULL)
        workflow_check_visibility(load); /* nor do they show any */
    load->is_audited = true;
}

static bool
is_audited(void *context)
{
    return ((const struct workflow_load *)context)->is_audited;
}

const char *
workflow_load_verify_gone(struct workflow_load *load)
{
    check(load->is_audited && !host_is_running(load->sim->client));
    load->is_audited = false;
    host_start(load->sim->client, gone_main, load);
    if (!world_run_until(load->sim->world, is_audited, load, GONE_LIMIT))
        verdict_violate(&load->verdict, "the rows cannot be looked at");
    return load->verdict.violation;
}

void
workflow_load_free(struct workflow_load *load)
{
    void *reported;
    for (size_t cursor = 0; map_next(load->reported, &cursor, NULL, &reported);)
        memory_free(reported);
    map_free(load->reported);
    map_free(load->events);
    map_free(load->handed);
    memory_base_watch(load->sim->hosts[0].base, (struct memory_watch){0});
    memory_free(load->shard_log);
    memory_free(load->entries);
    memory_free(load);
}
