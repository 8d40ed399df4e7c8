/* entity_load.c - see entity_load.h. */
#include "sim/entity/entity_load.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "sim/entity/entity_calls.h"
#include "wire/message.h"

#define CALL_TIMEOUT   (4 * NS_PER_S)
#define CONVERGE_TIME  (30 * NS_PER_S)
#define CONVERGE_LIMIT (300 * NS_PER_S)
#define USER           "user"

static const char *const regions[ENTITY_REGIONS] = {"region0", "region1", "region2"};
static const char *const domains[ENTITY_DOMAINS] = {"orders", "mails"};

struct step {
    struct entity_load *load;
    struct load_call call;
};

static unsigned
chance(unsigned bound)
{
    return (unsigned)entropy_below(bound);
}

/* --- what a cluster shows --------------------------------------------------------------------- */

static int
cluster_number(const char *name)
{
    unsigned number = 0;
    return sscanf(name, "cluster%u", &number) == 1 && number < SIM_GROUP_MAX ? (int)number : -1;
}

static int
domain_number(const char *name)
{
    for (int i = 0; i < ENTITY_DOMAINS; i++) {
        if (strcmp(domains[i], name) == 0)
            return i;
    }
    return -1;
}

/* No version of a home has two clusters, wherever it was seen. */
static void
note_seen(struct entity_load *load, struct entity_ledger *entity, int domain, int64_t version,
          int cluster)
{
    for (unsigned i = 0; i < entity->seen_count[domain]; i++) {
        const struct entity_home_seen *seen = &entity->seen[domain][i];
        if (seen->version == version && seen->cluster != cluster)
            verdict_violate(
                &load->verdict, "version %lld of %s in %s is cluster%d's and cluster%d's",
                (long long)version, entity->key, domains[domain], seen->cluster, cluster);
        if (seen->version == version)
            return;
    }
    if (entity->seen_count[domain] < ENTITY_SEEN_MAX)
        entity->seen[domain][entity->seen_count[domain]++] =
            (struct entity_home_seen){version, cluster};
}

static void
note_home(struct step *step, struct entity_ledger *entity, const struct entity_observation *before,
          const STORE_API(EntityHome) *home)
{
    struct entity_load *load = step->load;
    int domain = domain_number(home->domain), cluster = cluster_number(home->cluster);
    if (domain < 0)
        return;
    if (domain == ENTITY_GAINING && home->cluster[0] == '\0') { /* its runs stay where they are */
        probe("entity_in_unknown_region");
        return;
    }
    if (cluster < 0 || sim_group_of_version(home->failover_version) != cluster) {
        verdict_violate(&load->verdict, "%s in %s is active in '%s' with version %lld", entity->key,
                        home->domain, home->cluster, (long long)home->failover_version);
        return;
    }
    bool has_moved = before->home[domain] >= 0 && before->home[domain] != cluster;
    if (home->failover_version < before->home_version[domain] ||
        (has_moved && home->failover_version == before->home_version[domain]))
        verdict_violate(&load->verdict,
                        "cluster%u: the home of %s in %s went from cluster%d, %lld, to cluster%d, "
                        "%lld",
                        step->call.host, entity->key, home->domain, before->home[domain],
                        (long long)before->home_version[domain], cluster,
                        (long long)home->failover_version);
    load->home_changes += has_moved;
    note_seen(load, entity, domain, home->failover_version, cluster);
    struct entity_observation *observed = &entity->observed[step->call.host];
    if (home->failover_version > observed->home_version[domain] || observed->home[domain] < 0) {
        observed->home_version[domain] = home->failover_version;
        observed->home[domain] = cluster;
    }
}

static void
note_row(struct step *step, struct entity_ledger *entity, const struct entity_observation *before,
         const STORE_API(Entity) *row)
{
    struct entity_observation *observed = &entity->observed[step->call.host];
    if (row->failover_version < before->row_version)
        verdict_violate(&step->load->verdict, "cluster%u: the row of %s went from %lld to %lld",
                        step->call.host, entity->key, (long long)before->row_version,
                        (long long)row->failover_version);
    if (row->failover_version > observed->row_version)
        observed->row_version = row->failover_version;
}

/* --- steps ------------------------------------------------------------------------------------ */

static void
count_answer(struct step *step, const struct error *err)
{
    step->load->calls++;
    if (err == NULL) {
        step->load->acknowledged++;
        return;
    }
    step->load->failed++;
    bool is_expected = verdict_is_expected(err) || err->kind == ERR_BAD_REQUEST ||
                       err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_SERVICE_BUSY;
    if (!is_expected)
        verdict_violate(&step->load->verdict, "a call ended with: %s", err->message);
}

static struct error *
get(struct step *step, const char *key, STORE_API(GetEntityResponse) **response)
{
    STORE_API(GetEntityRequest) *request =
        STORE_API_NEW(step->call.arena, get_entity_request, .type = USER, .key = (char *)key);
    return load_send(&step->call, request, response);
}

static void
step_get(struct step *step)
{
    struct entity_ledger *entity = &step->load->entities[chance(ENTITY_KEYS)];
    const struct entity_observation before = entity->observed[step->call.host];
    STORE_API(GetEntityResponse) *response = NULL;
    struct error *err = get(step, entity->key, &response);
    count_answer(step, err);
    if (err != NULL)
        return;
    note_row(step, entity, &before, response->entity);
    for (size_t i = 0; i < response->n_homes; i++)
        note_home(step, entity, &before, response->homes[i]);
}

/* A caller that a cluster has answered sees its row there. */
static void
note_acknowledged(struct step *step, struct entity_ledger *entity,
                  const struct entity_observation *before, STORE_API(Entity) *const *rows,
                  size_t count)
{
    step->load->moves++;
    if (count != 1) {
        verdict_violate(&step->load->verdict, "%zu rows were answered for one", count);
        return;
    }
    note_row(step, entity, before, rows[0]);
    if (rows[0]->failover_version > entity->acknowledged)
        entity->acknowledged = rows[0]->failover_version;
}

static void
step_set(struct step *step)
{
    struct entity_ledger *entity = &step->load->entities[chance(ENTITY_KEYS)];
    const struct entity_observation before = entity->observed[step->call.host];
    STORE_API(SetEntitiesRequest) *request =
        entity_set_request(step->call.arena, USER, entity->key, regions[chance(ENTITY_REGIONS)]);
    request->only_new = chance(8) == 0;
    STORE_API(SetEntitiesResponse) *response = NULL;
    struct error *err = load_send(&step->call, request, &response);
    count_answer(step, err);
    if (err == NULL)
        note_acknowledged(step, entity, &before, response->entities, response->n_entities);
}

static void
step_delete(struct step *step)
{
    struct entity_ledger *entity = &step->load->entities[chance(ENTITY_KEYS)];
    const struct entity_observation before = entity->observed[step->call.host];
    STORE_API(DeleteEntitiesResponse) *response = NULL;
    struct error *err = load_send(
        &step->call, entity_delete_request(step->call.arena, USER, entity->key), &response);
    count_answer(step, err);
    if (err == NULL && response->n_entities > 0)
        note_acknowledged(step, entity, &before, response->entities, response->n_entities);
}

static void
step_move_region(struct step *step)
{
    struct load_attribute attribute = {
        "region", regions[chance(ENTITY_REGIONS)],
        arena_format(step->call.arena, "cluster%u", chance(step->load->sim->count))};
    struct load_failover failover = {
        .name = domains[chance(ENTITY_DOMAINS)], .attribute = &attribute, .by_update = chance(2)};
    API(Domain) *shown = NULL;
    struct error *err = load_failover(&step->call, &failover, &shown);
    step->load->region_moves += err == NULL;
    count_answer(step, err);
}

static const struct {
    unsigned weight;
    void (*take)(struct step *step);
} steps[] = {{40, step_get}, {30, step_set}, {5, step_delete}, {25, step_move_region}};
#define WEIGHTS 100

/* --- workers ---------------------------------------------------------------------------------- */

static bool
register_domain(struct step *step, const char *name)
{
    const struct load_attribute attributes[] = {{"region", regions[0], "cluster0"},
                                                {"region", regions[1], "cluster1"},
                                                {"region", regions[2], "cluster2"}};
    struct load_registration registration = {.name = name,
                                             .is_global = true,
                                             .cluster_count = step->load->sim->count,
                                             .active_cluster = "cluster0",
                                             .attributes = attributes,
                                             .attribute_count = array_length(attributes)};
    if (strcmp(name, domains[ENTITY_GAINING]) == 0)
        registration.attribute_count--;
    step->call.host = 0;
    struct error *err = load_register(&step->call, &registration);
    return err == NULL || err->kind == ERR_DOMAIN_ALREADY_EXISTS;
}

static void
worker_step(void *context, unsigned worker, struct load_clients *clients)
{
    struct entity_load *load = context;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct step step = {.load = load};
    step.call =
        (struct load_call){.clients = clients, .host = chance(load->sim->count), .arena = arena};
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    unsigned what = chance(WEIGHTS), i = 0;
    if (load->is_ready) {
        while (what >= steps[i].weight)
            what -= steps[i++].weight;
        steps[i].take(&step);
    } else if (worker == 0) {
        bool is_there = true;
        for (unsigned j = 0; j < ENTITY_DOMAINS; j++)
            is_there = register_domain(&step, domains[j]) && is_there;
        load->is_ready = is_there;
    }
    fiber_set_deadline(NEVER);
}

struct entity_load *
entity_load_start(struct sim *sim, unsigned workers, int64_t think_max)
{
    struct entity_load *load = memory_zalloc(1, sizeof *load);
    load->sim = sim;
    load->client_pool = (struct client_pool){.count = workers,
                                             .think_max = think_max,
                                             .step = worker_step,
                                             .load = load,
                                             .verdict = &load->verdict};
    for (unsigned i = 0; i < ENTITY_KEYS; i++) {
        struct entity_ledger *entity = &load->entities[i];
        snprintf(entity->key, sizeof entity->key, "user-%u", i);
        for (unsigned j = 0; j < SIM_GROUP_MAX; j++)
            entity->observed[j] = (struct entity_observation){-1, {-1, -1}, {-1, -1}};
        entity->acknowledged = -1;
    }
    client_pool_start(&load->client_pool, sim);
    return load;
}

/* --- afterwards ------------------------------------------------------------------------------- */

/* Everything that a cluster shows of an entity, as a text; NULL: it has no row. */
static const char *
describe(struct step *step, struct entity_ledger *entity, unsigned cluster)
{
    STORE_API(GetEntityResponse) *response = NULL;
    step->call.host = cluster;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = get(step, entity->key, &response);
    fiber_set_deadline(NEVER);
    if (err != NULL && err->kind != ERR_ENTITY_NOT_EXISTS)
        verdict_violate(&step->load->verdict, "cluster%u, after the storm: %s", cluster,
                        err->message);
    if (err != NULL)
        return NULL;
    const STORE_API(Entity) *row = response->entity;
    struct arena *arena = step->call.arena;
    const char *text = arena_format(arena, "%s %lld%s", row->region,
                                    (long long)row->failover_version, row->is_deleted ? " x" : "");
    for (size_t i = 0; i < response->n_homes; i++)
        text = arena_format(arena, "%s %s:%s=%lld", text, response->homes[i]->domain,
                            response->homes[i]->cluster,
                            (long long)response->homes[i]->failover_version);
    if (row->failover_version < entity->acknowledged)
        verdict_violate(&step->load->verdict, "cluster%u has %s at %lld, and %lld was acknowledged",
                        cluster, entity->key, (long long)row->failover_version,
                        (long long)entity->acknowledged);
    return text;
}

static void
audit_main(void *argument)
{
    struct entity_load *load = argument;
    struct load_clients *clients = load_clients_new(load->sim);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct step step = {.load = load, .call = {.clients = clients, .arena = arena}};
    for (unsigned i = 0; i < ENTITY_KEYS; i++) {
        struct entity_ledger *entity = &load->entities[i];
        const char *first = describe(&step, entity, 0);
        if (first == NULL && entity->acknowledged >= 0)
            verdict_violate(&load->verdict, "%s is lost", entity->key);
        for (unsigned j = 1; j < load->sim->count; j++) {
            const char *other = describe(&step, entity, j);
            if ((first == NULL) != (other == NULL) || (first != NULL && strcmp(first, other) != 0))
                verdict_violate(&load->verdict, "%s is '%s' in cluster0 and '%s' in cluster%u",
                                entity->key, first == NULL ? "-" : first,
                                other == NULL ? "-" : other, j);
        }
    }
    for (unsigned i = 0; i < load->sim->count; i++) {
        struct error *err = sim_host_check_log(&load->sim->hosts[i], arena);
        if (err != NULL)
            verdict_violate(&load->verdict, "the store of cluster%u: %s", i, err->message);
    }
    load_clients_free(clients);
}

static bool
client_has_ended(void *context)
{
    struct sim *sim = context;
    return !host_is_running(sim->client);
}

void
entity_load_verify(struct entity_load *load)
{
    struct sim *sim = load->sim;
    load->client_pool.is_over = true;
    if (!world_run_until(sim->world, client_has_ended, sim, CONVERGE_LIMIT))
        verdict_violate(&load->verdict, "a worker hangs: its call had a deadline and did not end");
    if (load->verdict.violation != NULL)
        return;
    world_run_for(sim->world, CONVERGE_TIME);
    host_start(sim->client, audit_main, load);
    if (!world_run_until(sim->world, client_has_ended, sim, CONVERGE_LIMIT))
        verdict_violate(&load->verdict, "the audit hangs");
}
