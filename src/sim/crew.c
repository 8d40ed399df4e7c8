/* crew.c - see crew.h. */
#include "sim/crew.h"

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"

static void
worker_main(void *argument)
{
    struct crew *crew = argument;
    unsigned worker = crew->begun++;
    struct load_clients *clients = load_clients_new(crew->sim);
    while (!crew->is_over && crew->verdict->violation == NULL) {
        crew->step(crew->load, worker, clients);
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep((int64_t)entropy_below((uint64_t)crew->think_max), arena) != NULL)
            break;
    }
    load_clients_free(clients);
    check(crew->running > 0);
    crew->running--;
}

static void
client_main(void *argument)
{
    struct crew *crew = argument;
    for (unsigned i = 0; i < crew->count; i++)
        fiber_start("load-worker", worker_main, crew);
    while (crew->running > 0) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(10 * NS_PER_MS, arena) != NULL)
            break;
    }
}

void
crew_start(struct crew *crew, struct sim *sim)
{
    check(crew->count > 0 && crew->step != NULL && crew->verdict != NULL);
    crew->sim = sim;
    crew->running = crew->count;
    host_start(sim->client, client_main, crew);
}
