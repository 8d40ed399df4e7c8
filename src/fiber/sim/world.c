/* world.c - the world as a whole: its clock, its steps, its faults, its seed.
 *
 * A step is either a tick of one loop, drawn from those that can run now, or the next event of the
 * queue. The clock moves only when no loop can run, and then jumps. A loop that has ticked is busy
 * for a moment (run.c), so a fiber that never stops yielding cannot stop the clock.
 *
 * Two generators come from the seed: one for the test's choices, one for everything that happens in
 * the world. So a test may draw more or less without changing how the world behaves in between. */
#include "fiber/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fiber/sim/disk.h"
#include "fiber/sim/inside.h"
#include "fiber/sim/network.h"

static void
set_default(int64_t *low, int64_t *high, int64_t low_default, int64_t high_default)
{
    check_that(0 <= *low && *low <= *high, "%lld … %lld is not a range", (long long)*low,
               (long long)*high);
    if (*high == 0) {
        *low = low_default;
        *high = high_default;
    }
}

static enum world_messages
choose_messages(uint64_t seed)
{
    static const struct {
        const char *name;
        enum world_messages messages;
    } names[] = {{"whole", MESSAGES_WHOLE}, {"bytes", MESSAGES_BYTES}, {"fail", MESSAGES_FAIL}};
    const char *wanted = getenv("CADENZA_MESSAGES");
    for (size_t i = 0; wanted != NULL && i < array_length(names); i++) {
        if (strcmp(names[i].name, wanted) == 0)
            return names[i].messages;
    }
    check_that(wanted == NULL || wanted[0] == '\0', "CADENZA_MESSAGES=%s is no way to send",
               wanted);
    return names[seed % array_length(names)].messages;
}

struct world *
world_create(const struct world_options *options)
{
    struct heap *heap = heap_new();
    struct heap *before = heap_select(heap);
    struct world *world = memory_zalloc(1, sizeof *world);
    heap_select(before);
    world->heap = heap;
    world->options = *options;
    struct world_options *filled = &world->options;
    set_default(&filled->latency_min, &filled->latency_max, 100000, 2000000);
    set_default(&filled->disk_latency_min, &filled->disk_latency_max, 50000, 3000000);
    if (filled->mailbox_delay_max == 0)
        filled->mailbox_delay_max = 20000;
    if (filled->messages == MESSAGES_BY_SEED)
        filled->messages = choose_messages(options->seed);
    random_seed(&world->choices, options->seed);
    random_seed(&world->crossings,
                options->seed ^ 0x6d657373616765); /* the others stay as they are */
    random_seed(&world->chance, ~options->seed);
    list_init(&world->links);
    world->hash = options->seed;
    return world;
}

void
world_relent(struct world *world)
{
    if (world->options.messages == MESSAGES_FAIL)
        world->options.messages = MESSAGES_BYTES;
}

void
world_free(struct world *world)
{
    check(!world->is_stepping);
    for (unsigned i = 0; i < world->host_count; i++)
        world->hosts[i]->crashed = NULL; /* the end of a world is not an event in it */
    for (unsigned i = 0; i < world->host_count; i++)
        host_crash(world->hosts[i]);
    network_free(world);
    for (unsigned i = 0; i < world->host_count; i++)
        host_destroy(world->hosts[i]);
    check_that(event_next_time(world) == NEVER, "an event outlived the hosts");
    probes_free(world);
    priority_free(&world->events);
    memory_free(world->hosts);
    memory_free(world->delays);
    memory_free(world->cuts);
    memory_free(world->ready);
    struct heap *heap = world->heap;
    memory_free(world);
    check_that(heap_blocks(heap) == 0, "the world leaks %zu blocks", heap_blocks(heap));
    heap_free(heap);
}

struct host *
world_add_host(struct world *world, const char *name, unsigned loops)
{
    check_that(world_find_host(world, name, strlen(name)) == NULL, "there is a host %s", name);
    unsigned count = world->host_count + 1;
    world->hosts = world_memory_resize(world, world->hosts, count * sizeof *world->hosts);
    world->hosts[count - 1] = host_create(world, name, loops);
    bool *cuts = world_memory(world, (size_t)count * count, sizeof *cuts);
    int64_t *delays = world_memory(world, (size_t)count * count, sizeof *delays);
    for (unsigned from = 0; from < count - 1; from++)
        for (unsigned to = 0; to < count - 1; to++) {
            cuts[from * count + to] = world->cuts[from * (count - 1) + to];
            delays[from * count + to] = world->delays[from * (count - 1) + to];
        }
    memory_free(world->cuts);
    memory_free(world->delays);
    world->cuts = cuts;
    world->delays = delays;
    world->host_count = count;
    return world->hosts[count - 1];
}

struct host *
world_find_host(struct world *world, const char *name, size_t length)
{
    for (unsigned i = 0; i < world->host_count; i++) {
        const char *candidate = world->hosts[i]->name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0)
            return world->hosts[i];
    }
    return NULL;
}

/* --- steps ----------------------------------------------------------------------------------- */

static void
fire_next_event(struct world *world)
{
    struct event *event = event_take(world);
    check(event->node.key >= world->now);
    world->now = event->node.key;
    world_trace(world, event->host, event->loop, event->kind, NULL, event->number);
    event->fire(world, event);
}

static void
tick_some_loop(struct world *world)
{
    size_t chosen = 0;
    if (world->ready_count > 1)
        chosen = random_below(&world->chance, world->ready_count);
    sim_loop_step(world->ready[chosen]);
}

bool
world_step(struct world *world)
{
    check_that(!world->is_stepping, "a world is stepped from outside its hosts");
    if (world->ready_count == 0 && event_next_time(world) == NEVER)
        return false;
    world->is_stepping = true;
    struct heap *before = heap_select(world->heap);
    world->steps++;
    if (world->ready_count > 0)
        tick_some_loop(world);
    else
        fire_next_event(world);
    heap_select(before);
    world->is_stepping = false;
    return true;
}

static bool
never_done(void *context)
{
    return false;
}

void
world_run_for(struct world *world, int64_t nanoseconds)
{
    bool is_done = world_run_until(world, never_done, NULL, nanoseconds);
    check(!is_done);
}

bool
world_run_until(struct world *world, bool (*done)(void *context), void *context,
                int64_t nanoseconds)
{
    check(nanoseconds >= 0);
    int64_t end = world->now + nanoseconds;
    while (!done(context)) {
        if (world->ready_count == 0 && event_next_time(world) > end) {
            world->now = end;
            return done(context);
        }
        world_step(world);
    }
    return true;
}

/* --- faults of the network ------------------------------------------------------------------- */

bool
world_is_cut(const struct world *world, const struct host *from, const struct host *to)
{
    return world->cuts[from->index * world->host_count + to->index];
}

static void
world_set_cut(struct world *world, struct host *from, struct host *to, bool is_cut)
{
    check_that(!world->is_stepping, "faults come from outside");
    check(from->world == world && to->world == world && from != to);
    world->cuts[from->index * world->host_count + to->index] = is_cut;
    world_trace(world, from, 0, STEP_FAULT, is_cut ? "cut" : "heal", to->index);
}

void
world_cut(struct world *world, struct host *from, struct host *to)
{
    world_set_cut(world, from, to, true);
}

void
world_heal(struct world *world, struct host *from, struct host *to)
{
    if (!world_is_cut(world, from, to))
        return;
    world_set_cut(world, from, to, false);
    network_heal(world, from, to);
}

void
world_slow(struct world *world, struct host *from, struct host *to, int64_t delay_max)
{
    check_that(!world->is_stepping, "faults come from outside");
    check(from->world == world && to->world == world && from != to && delay_max >= 0);
    if (world_delay(world, from, to) == delay_max)
        return;
    world->delays[from->index * world->host_count + to->index] = delay_max;
    world_trace(world, from, 0, STEP_FAULT, "slow", to->index);
}

int64_t
world_delay(const struct world *world, const struct host *from, const struct host *to)
{
    if (to == NULL) /* an address that nobody has */
        return 0;
    return world->delays[from->index * world->host_count + to->index];
}

void
world_break(struct world *world, struct host *one, struct host *other)
{
    check_that(!world->is_stepping, "faults come from outside");
    world_trace(world, one, 0, STEP_FAULT, "break", other->index);
    network_break(world, one, other);
}

/* --- small things ---------------------------------------------------------------------------- */

int64_t
world_now(const struct world *world)
{
    return world->now;
}

struct random *
world_random(struct world *world)
{
    return &world->choices;
}

uint64_t
world_steps(const struct world *world)
{
    return world->steps;
}

void *
world_memory(struct world *world, size_t count, size_t size)
{
    struct heap *before = heap_select(world->heap);
    void *block = memory_zalloc(count, size);
    heap_select(before);
    return block;
}

void *
world_memory_resize(struct world *world, void *block, size_t size)
{
    struct heap *before = heap_select(world->heap);
    void *resized = memory_realloc(block, size);
    heap_select(before);
    return resized;
}

char *
world_text(struct world *world, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(world_memory(world, size, 1), text, size);
}

int64_t
world_between(struct world *world, int64_t low, int64_t high)
{
    check(low <= high);
    return low + (int64_t)random_below(&world->chance, (uint64_t)(high - low) + 1);
}

bool
world_once_in(struct world *world, uint64_t times)
{
    return random_below(&world->chance, times) == 0;
}
