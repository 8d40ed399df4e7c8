/* ndc_load.c - the client host of the load of several clusters. See ndc_load.h. */
#include "sim/clusters/ndc_load.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "sim/world/calls.h"

#define CALL_TIMEOUT (5 * NS_PER_S)
#define AUDIT_LIMIT  (3 * 3600 * NS_PER_S)
#define PAUSE_LIMIT  (600 * NS_PER_S)

struct error *
ndc_call_at(struct ndc_load *load, struct load_call *call, const ProtobufCMessage *request,
            ProtobufCMessage **response)
{
    struct error *err = load_send_at(call, request, response);
    load->calls++;
    load->acknowledged += err == NULL;
    load->failed += err != NULL;
    bool is_late = err != NULL && strstr(err->message, "Context timeout is too short.") != NULL;
    /* Of a new workflow alone: nothing else that a client asks for may end so. */
    bool is_refused = err != NULL && strstr(request->descriptor->short_name, "Start") != NULL &&
                      strstr(err->message, "it is in region '" SIM_REGION_OF_NONE "'") != NULL;
    bool is_expected = err == NULL || is_late || is_refused || verdict_is_expected(err) ||
                       err->kind == ERR_SHARD_OWNERSHIP_LOST ||
                       err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_ALREADY_STARTED ||
                       err->kind == ERR_CANCELLATION_ALREADY_REQUESTED ||
                       err->kind == ERR_DOMAIN_NOT_ACTIVE || err->kind == ERR_ENTITY_NOT_EXISTS;
    if (!is_expected)
        verdict_violate(&load->verdict, "%s failed with %s: %s", request->descriptor->short_name,
                        error_kind_name(err->kind), err->message);
    return err;
}

static void
pass_time(int64_t time)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(NEVER);
    struct error *err = fiber_sleep(time, arena);
    check(err == NULL);
}

void
ndc_rest(struct ndc_load *load)
{
    if (!load->is_paused)
        return;
    load->paused++;
    while (load->is_paused)
        pass_time(20 * NS_PER_MS);
    load->paused--;
}

static bool
is_known_everywhere(struct ndc_load *load, struct load_clients *clients)
{
    for (unsigned i = 0; i < load->sim->count; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients, .host = i, .arena = arena};
        API(Domain) *domain = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        if (load_describe(&call, NDC_DOMAIN, &domain) != NULL)
            return false;
        snprintf(load->domain_id, sizeof load->domain_id, "%s", domain->id);
    }
    return true;
}

/* At the primary cluster, then until all know it. */
static void
register_domain(struct ndc_load *load)
{
    struct load_clients *clients = load_clients_new(load->sim);
    struct error *err = NULL;
    size_t attributes = load->homes == NULL ? 0 : NDC_ATTRIBUTES;
    do {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients, .host = 0, .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = load_register(&call, &(struct load_registration){.name = NDC_DOMAIN,
                                                               .is_global = true,
                                                               .cluster_count = load->sim->count,
                                                               .active_cluster = "cluster0",
                                                               .attributes = ndc_attributes,
                                                               .attribute_count = attributes});
        if (err != NULL && err->kind == ERR_DOMAIN_ALREADY_EXISTS)
            err = NULL;
        pass_time(100 * NS_PER_MS);
    } while (err != NULL);
    while (!is_known_everywhere(load, clients))
        pass_time(100 * NS_PER_MS);
    load_clients_free(clients);
}

static void
wait_for(const unsigned *running)
{
    while (*running > 0)
        pass_time(10 * NS_PER_MS);
}

/* The number of a decider is that of its sticky list, too. */
static unsigned
start_workers(struct ndc_load *load, struct ndc_part *parts)
{
    unsigned clusters = load->sim->count, each = load->options.workers * clusters, next = 0;
    for (unsigned i = 0; i < 2 * each; i++) {
        parts[next] = (struct ndc_part){.load = load, .number = i, .cluster = i % clusters};
        fiber_start("worker", i < each ? ndc_decider_main : ndc_activity_main, &parts[next++]);
    }
    for (unsigned i = 0; load->options.has_sticky && i < each; i++) {
        parts[next] = (struct ndc_part){.load = load, .number = i, .cluster = i % clusters};
        fiber_start("sticky worker", ndc_sticky_main, &parts[next++]);
    }
    return next;
}

static void
client_main(void *argument)
{
    struct ndc_load *load = argument;
    const struct ndc_options *options = &load->options;
    unsigned workers = load->workers_running;
    struct ndc_part *parts =
        memory_zalloc(options->clients + options->witnesses + workers + 2, sizeof *parts);
    register_domain(load);
    unsigned next = start_workers(load, parts);
    for (unsigned i = 0; i < options->clients; i++) {
        parts[next] = (struct ndc_part){.load = load, .number = i};
        fiber_start("client", ndc_client_main, &parts[next++]);
    }
    for (unsigned i = 0; i < options->witnesses; i++) {
        parts[next] = (struct ndc_part){.load = load, .number = i};
        fiber_start("witness", ndc_witness_main, &parts[next++]);
    }
    bool has_homes = load->homes != NULL, has_grace = options->grace_seconds_max > 0;
    parts[next].load = load;
    if (load->movers_running > 0)
        fiber_start("mover",
                    has_homes   ? ndc_home_mover_main
                    : has_grace ? ndc_grace_mover_main
                                : ndc_mover_main,
                    &parts[next]);
    if (has_homes)
        fiber_start("watcher", ndc_home_watcher_main, &parts[next]);
    wait_for(&load->clients_running);
    wait_for(&load->witnesses_running);
    wait_for(&load->movers_running);
    load->calm_time = clock_wall();
    ndc_audit(load);
    load->is_audited = true;
    wait_for(&load->workers_running);
    memory_free(parts);
}

bool
ndc_load_harm(struct ndc_load *load, struct nemesis *nemesis, int64_t duration)
{
    bool are_up = true;
    for (bool has_begun = false; are_up && !has_begun;) {
        nemesis_run(nemesis, duration);
        are_up = nemesis_relent(nemesis);
        has_begun = load->decisions > 0;
        if (!has_begun)
            world_probe(load->sim->world, "storm_begun_again");
    }
    return are_up;
}

struct ndc_load *
ndc_load_start(struct sim *sim, const struct ndc_options *options)
{
    struct ndc_load *load = memory_zalloc(1, sizeof *load);
    load->sim = sim;
    load->options = *options;
    load->entries = memory_zalloc(options->workflows_max, sizeof *load->entries);
    load->clients_running = options->clients;
    load->workers_running = (2 + options->has_sticky) * options->workers * sim->count;
    load->movers_running = (options->move_pause_max > 0) + options->has_homes;
    load->witnesses_running = options->witnesses;
    if (options->has_homes)
        load->homes = memory_zalloc(options->workflows_max, sizeof *load->homes);
    host_start(sim->client, client_main, load);
    return load;
}

void
ndc_load_free(struct ndc_load *load)
{
    memory_free(load->entries);
    memory_free(load->homes);
    memory_free(load);
}

static bool
is_resting(void *context)
{
    const struct ndc_load *load = context;
    unsigned movers = load->options.move_pause_max > 0; /* who only watches goes on */
    return load->verdict.violation != NULL ||
           load->paused >= load->clients_running + load->workers_running + movers;
}

bool
ndc_load_pause(struct ndc_load *load)
{
    load->is_paused = true;
    return world_run_until(load->sim->world, is_resting, load, PAUSE_LIMIT);
}

void
ndc_load_go_on(struct ndc_load *load)
{
    load->is_paused = false;
}

void
ndc_load_forget(struct ndc_load *load, unsigned cluster)
{
    memset(load->versions_seen[cluster], 0, sizeof load->versions_seen[cluster]);
    load->forgotten[cluster]++;
}

static bool
has_ended(void *context)
{
    const struct ndc_load *load = context;
    return load->is_audited && load->workers_running == 0;
}

const char *
ndc_load_verify(struct ndc_load *load)
{
    load->is_over = true;
    load->is_paused = false;
    world_relent(load->sim->world);
    if (!world_run_until(load->sim->world, has_ended, load, AUDIT_LIMIT))
        verdict_violate(&load->verdict, "the audit does not end");
    return load->verdict.violation;
}
