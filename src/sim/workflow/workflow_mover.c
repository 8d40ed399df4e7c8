/* workflow_mover.c - who moves the domain of the workflows away and back while all goes on. See
 * workflow_load.h.
 *
 * The other cluster exists in the config only: what happens there does not matter here, only that
 * nothing is decided here meanwhile, and that all goes on when the domain is back. */
#include "base/check.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"

#define CALL_TIMEOUT    (5 * NS_PER_S)
#define AWAY_MAX        (1500 * NS_PER_MS)
#define HOME_MAX        (3 * NS_PER_S)
#define TOUCH_PAUSE_MAX (300 * NS_PER_MS)
#define LEVEL_ROUNDS    120 /* of half a second, until all shards have handled everything */
#define TOUCHED_IDS     64  /* so many that each shard has some */

static void
doze(int64_t longest)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = fiber_sleep((int64_t)entropy_below((uint64_t)longest), arena);
    check(err == NULL);
}

/* At any host, until one says that it is done. */
static void
move(struct workflow_load *load, struct load_clients *clients, const char *cluster)
{
    struct error *err = NULL;
    do {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = workflow_any_host(load), .arena = arena};
        struct load_failover failover = {
            .name = WORKFLOW_DOMAIN, .cluster = cluster, .by_update = entropy_below(2) == 0};
        API(Domain) *domain = NULL;
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = load_failover(&call, &failover, &domain);
        fiber_set_deadline(NEVER);
        if (err != NULL)
            doze(200 * NS_PER_MS);
    } while (err != NULL && load->verdict.violation == NULL);
}

/* Changes that move nothing, a few in a row. */
static void
touch(struct workflow_load *load, struct load_clients *clients)
{
    for (uint64_t i = entropy_below(6); i > 0; i--) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = workflow_any_host(load), .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        if (load_describe_as(&call, WORKFLOW_DOMAIN, (uint32_t)entropy_below(1000)) == NULL)
            world_probe(load->sim->world, "domain_touched");
        fiber_set_deadline(NEVER);
    }
}

void
workflow_mover_main(void *argument)
{
    struct workflow_part *part = argument;
    struct workflow_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        doze(HOME_MAX);
        move(load, clients, WORKFLOW_AWAY);
        if (entropy_below(3) != 0)
            doze(AWAY_MAX);
        move(load, clients, WORKFLOW_HOME);
        world_probe(load->sim->world, "domain_moved_and_back");
    }
    load_clients_free(clients);
    load->movers_running--;
}

void
workflow_toucher_main(void *argument)
{
    struct workflow_part *part = argument;
    struct workflow_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        doze(TOUCH_PAUSE_MAX);
        touch(load, clients);
    }
    load_clients_free(clients);
    load->movers_running--;
}

/* Somebody takes each shard, if nobody has it. */
static void
touch_shards(struct workflow_load *load, struct load_clients *clients)
{
    for (int i = 0; i < TOUCHED_IDS; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = workflow_any_host(load), .arena = arena};
        API(DescribeWorkflowExecutionRequest) *request =
            API_NEW(arena, describe_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
                    .workflow_execution =
                        workflow_execution(arena, arena_format(arena, "nobody-%d", i), ""));
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = workflow_call(load, &call, request, NULL);
        fiber_set_deadline(NEVER);
        if (err == NULL)
            verdict_violate(&load->verdict, "a workflow that nobody started is there");
    }
}

void
workflow_check_level(struct workflow_load *load)
{
    struct load_clients *clients = load_clients_new(load->sim);
    for (int i = 0; i < LEVEL_ROUNDS && !shard_log_is_level(load->shard_log); i++) {
        touch_shards(load, clients);
        doze(NS_PER_S);
    }
    load_clients_free(clients);
    for (unsigned i = 0; i < SIM_SHARDS; i++) {
        if (load->shard_log->shards[i].handled != load->shard_log->newest)
            verdict_violate(&load->verdict, "shard %u has handled version %llu only of %llu", i,
                            (unsigned long long)load->shard_log->shards[i].handled,
                            (unsigned long long)load->shard_log->newest);
    }
}
