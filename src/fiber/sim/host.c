/* host.c - a process on a machine: start, orderly end, crash.
 *
 * What a crash has to get right is order. Everything of the world that points into the host goes
 * first (events, ends of connections, open files), then the fibers with their stacks, then the heap
 * in one go, then the disk decides what it kept. No code of the host runs in between.
 *
 * An orderly end is the same as on linux: when the first fiber has returned all others are
 * cancelled; the host is done when no fiber lives and no message is under way. A fiber that ignores
 * being cancelled is a bug that a check names after a minute of virtual time. */
#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/sim/disk.h"
#include "fiber/sim/inside.h"
#include "fiber/sim/network.h"

#define END_PATIENCE   (60 * NS_PER_S)
#define SIGNAL_LATENCY NS_PER_MS
#define PORT_FIRST     32768

static void signal_fire(struct world *world, struct event *event);
static void patience_fire(struct world *world, struct event *event);

struct host *
host_create(struct world *world, const char *name, unsigned loops)
{
    check(loops > 0);
    struct host *host = world_memory(world, 1, sizeof *host);
    host->platform.host = host;
    host->world = world;
    host->name = world_text(world, name);
    host->index = world->host_count;
    host->loop_count = loops;
    host->port_next = PORT_FIRST;
    random_seed(&host->entropy, random_next(&world->chance));
    int64_t skew_max = world->options.clock_skew_max;
    host->skew = skew_max == 0 ? 0 : world_between(world, -skew_max, skew_max);
    list_init(&host->events);
    list_init(&host->ends);
    list_init(&host->listeners);
    list_init(&host->files);
    event_init(&host->signal, STEP_SIGNAL, host, signal_fire);
    event_init(&host->patience, STEP_SIGNAL, host, patience_fire);
    host->disk = disk_new(world);
    host->loops = world_memory(world, loops, sizeof *host->loops);
    for (unsigned i = 0; i < loops; i++)
        sim_loop_init(&host->loops[i], host, i);
    return host;
}

void
host_set_clock(struct host *host, int64_t nanoseconds)
{
    host->skew += nanoseconds;
}

void
host_destroy(struct host *host)
{
    check(!host->is_running && list_is_empty(&host->ends));
    for (unsigned i = 0; i < host->loop_count; i++)
        sim_loop_free(&host->loops[i]);
    disk_free(host->disk);
    memory_free(host->loops);
    memory_free(host->name);
    memory_free(host);
}

const char *
host_name(const struct host *host)
{
    return host->name;
}

bool
host_is_running(const struct host *host)
{
    return host->is_running;
}

bool
host_has_ended(void *host)
{
    return !host_is_running(host);
}

size_t
host_heap_blocks(const struct host *host)
{
    return host->heap == NULL ? 0 : heap_blocks(host->heap);
}

void
host_on_crash(struct host *host, void (*crashed)(void *context), void *context)
{
    host->crashed = crashed;
    host->crashed_context = context;
}

/* --- start ----------------------------------------------------------------------------------- */

static void
run_first_fiber(void *argument)
{
    struct host *host = argument;
    host->function(host->argument);
    host->is_ending = true;
}

/* The heap of the last run is kept until here, so that a test can see what was left in it. */
static void
drop_heap(struct host *host)
{
    if (host->heap != NULL)
        heap_free(host->heap);
    host->heap = NULL;
}

void
host_start(struct host *host, void (*function)(void *argument), void *argument)
{
    check_that(!host->world->is_stepping, "hosts are started from outside");
    check_that(!host->is_running, "%s is running", host->name);
    world_trace(host->world, host, 0, STEP_FAULT, "start", 0);
    drop_heap(host);
    host->heap = heap_new();
    host->function = function;
    host->argument = argument;
    host->is_running = true;
    host->is_ending = false;
    host->is_stop_asked = false;
    for (unsigned i = 0; i < host->loop_count; i++)
        sim_loop_clear(&host->loops[i]);
    struct surroundings before = sim_enter(&host->loops[0]);
    fiber_start("main", run_first_fiber, host);
    sim_leave(before);
    sim_loop_plan(&host->loops[0]);
}

/* --- orderly end ----------------------------------------------------------------------------- */

void
host_stop(struct host *host)
{
    struct world *world = host->world;
    check_that(!world->is_stepping, "hosts are stopped from outside");
    world_trace(world, host, 0, STEP_FAULT, "stop", 0);
    if (!host->is_running)
        return;
    host->is_stop_asked = true;
    event_schedule(world, &host->signal, host,
                   world->now + world_between(world, 0, SIGNAL_LATENCY));
}

static void
signal_fire(struct world *world, struct event *event)
{
    struct host *host = event->host;
    if (host->stop == NULL || host->is_ending)
        return; /* platform_on_stop may still come, and is called then */
    host->is_stop_asked = false;
    struct surroundings before = sim_enter(&host->loops[0]);
    host->stop(host->stop_context);
    sim_leave(before);
    sim_loop_plan(&host->loops[0]);
}

static void
patience_fire(struct world *world, struct event *event)
{
    struct host *host = event->host;
    size_t messages = 0;
    for (unsigned i = 0; i < host->loop_count; i++) {
        core_loop_dump(&host->loops[i].loop);
        messages += host->loops[i].message_count;
    }
    unreachable("%s cannot end: see the fibers above; %zu messages wait", host->name, messages);
}

/* Takes away what only the process held. The disk keeps all, synced or not: the machine lives. */
static void
drop_process(struct host *host)
{
    struct world *world = host->world;
    host->stop = NULL;
    host->is_running = false;
    host->is_ending = false;
    host->pool_count = 0;
    while (!list_is_empty(&host->events))
        event_cancel(world, list_entry(host->events.next, struct event, owned));
    disk_drop_handles(host);
}

static void
finish_end(struct host *host)
{
    world_trace(host->world, host, 0, STEP_FAULT, "end", 0);
    network_drop_host(host, false);
    drop_process(host);
    for (unsigned i = 0; i < host->loop_count; i++) {
        struct surroundings before = sim_enter(&host->loops[i]);
        core_loop_free(&host->loops[i].loop);
        sim_leave(before);
        sim_loop_clear(&host->loops[i]);
    }
}

static bool
has_work_left(const struct sim_loop *loop)
{
    return loop->loop.fiber_count > 0 || loop->message_count > 0 || core_loop_due(&loop->loop) == 0;
}

/* Again after each step: what is being cancelled may start more. */
void
host_advance_end(struct host *host)
{
    struct world *world = host->world;
    bool is_over = true;
    for (unsigned i = 0; i < host->loop_count; i++) {
        struct sim_loop *loop = &host->loops[i];
        struct surroundings before = sim_enter(loop);
        core_loop_cancel_all(&loop->loop);
        sim_leave(before);
        sim_loop_plan(loop);
        is_over = is_over && !has_work_left(loop);
    }
    if (is_over)
        finish_end(host);
    else if (!event_is_pending(&host->patience))
        event_schedule(world, &host->patience, host, world->now + END_PATIENCE);
}

/* --- crash ----------------------------------------------------------------------------------- */

void
host_crash_inside(struct host *host)
{
    struct world *world = host->world;
    check(core_loop_current() == NULL && !port_is_at_work()); /* code of the host would free its own
                                                               * stack */
    world_trace(world, host, 0, STEP_FAULT, "crash", host->disk_writes);
    network_drop_host(host, true);
    drop_process(host);
    for (unsigned i = 0; i < host->loop_count; i++) {
        core_loop_discard(&host->loops[i].loop);
        sim_loop_clear(&host->loops[i]);
    }
    drop_heap(host);
    host->crash_at = 0;
    disk_crash(host->disk);
    struct heap *before = heap_select(NULL);
    if (host->crashed != NULL)
        host->crashed(host->crashed_context);
    heap_select(before);
}

void
host_crash(struct host *host)
{
    check_that(!host->world->is_stepping, "the plug is pulled from outside");
    struct heap *before = heap_select(host->world->heap);
    host_crash_inside(host);
    heap_select(before);
}
