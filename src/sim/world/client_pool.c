/* client_pool.c - see client_pool.h. */
#include "sim/world/client_pool.h"

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"

static void
worker_main(void *argument)
{
    struct client_pool *client_pool = argument;
    unsigned worker = client_pool->begun++;
    struct load_clients *clients = load_clients_new(client_pool->sim);
    while (!client_pool->is_over && client_pool->verdict->violation == NULL) {
        client_pool->step(client_pool->load, worker, clients);
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep((int64_t)entropy_below((uint64_t)client_pool->think_max), arena) != NULL)
            break;
    }
    load_clients_free(clients);
    check(client_pool->running > 0);
    client_pool->running--;
}

static void
client_main(void *argument)
{
    struct client_pool *client_pool = argument;
    for (unsigned i = 0; i < client_pool->count; i++)
        fiber_start("load-worker", worker_main, client_pool);
    while (client_pool->running > 0) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(10 * NS_PER_MS, arena) != NULL)
            break;
    }
}

void
client_pool_start(struct client_pool *client_pool, struct sim *sim)
{
    check(client_pool->count > 0 && client_pool->step != NULL && client_pool->verdict != NULL);
    client_pool->sim = sim;
    client_pool->running = client_pool->count;
    host_start(sim->client, client_main, client_pool);
}
