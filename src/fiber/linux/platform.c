/* platform.c - linux_run: builds the platform, runs it, takes it down in the opposite order.
 *
 * Threads end before anything that they could post to is closed: the other loops first (they are
 * over together), then the pool. Workers ended with those who made them. */
#include <signal.h>
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/linux/inside.h"
#include "fiber/linux/linux.h"

#define POOL_THREADS_DEFAULT 4

static void
run_first_fiber(void *argument)
{
    struct platform *platform = argument;
    platform->function(platform->argument);
    atomic_store(&platform->is_stopping, true);
    for (unsigned i = 0; i < platform->loop_count; i++)
        linux_loop_awake(&platform->loops[i]);
}

static void *
run_thread(void *argument)
{
    struct linux_loop *loop = argument;
    char name[16];
    snprintf(name, sizeof name, "loop-%u", loop->loop.head.index);
    pthread_setname_np(pthread_self(), name);
    linux_loop_run(loop);
    return NULL;
}

static void
run_loops(struct platform *platform)
{
    for (unsigned i = 1; i < platform->loop_count; i++) {
        struct linux_loop *loop = &platform->loops[i];
        int failed = pthread_create(&loop->thread, NULL, run_thread, loop);
        check_that(failed == 0, "no thread for loop %u", i);
    }
    struct loop *before = core_loop_enter(&platform->loops[0].loop);
    check_that(before == NULL, "linux_run within linux_run");
    fiber_start("main", run_first_fiber, platform);
    core_loop_enter(NULL);
    linux_loop_run(&platform->loops[0]);
    for (unsigned i = 1; i < platform->loop_count; i++)
        pthread_join(platform->loops[i].thread, NULL);
}

/* A core is left to the threads beside the loops: the store's committer has half as much to do as
 * a loop. With a loop on every core they take turns with each other, and a workflow on two cores
 * costs a quarter more. */
static unsigned
count_loops(void)
{
    unsigned cores = uv_available_parallelism();
    return cores > 1 ? cores - 1 : 1;
}

static void
platform_open(struct platform *platform, const struct linux_options *options)
{
    platform->loop_count = options->loops != 0 ? options->loops : count_loops();
    platform->loops = memory_zalloc(platform->loop_count, sizeof *platform->loops);
    platform->catches_signals = options->catch_signals;
    limits_open(platform);
    pthread_mutex_init(&platform->stop_lock, NULL);
    for (unsigned i = 0; i < platform->loop_count; i++)
        linux_loop_open(&platform->loops[i], platform, i);
    signals_open(platform);
    pool_open(&platform->pool,
              options->pool_threads != 0 ? options->pool_threads : POOL_THREADS_DEFAULT);
}

static void
platform_close(struct platform *platform)
{
    unsigned workers = atomic_load(&platform->worker_count);
    check_that(workers == 0, "%u workers were not freed", workers);
    pool_close(&platform->pool);
    signals_close(platform);
    for (unsigned i = 0; i < platform->loop_count; i++)
        linux_loop_close(&platform->loops[i]);
    pthread_mutex_destroy(&platform->stop_lock);
    memory_free(platform->loops);
}

void
linux_run(const struct linux_options *options, void (*function)(void *argument), void *argument)
{
    signal(SIGPIPE, SIG_IGN); /* a peer that went away is an error of a write, not the end */
    struct platform platform = {.function = function, .argument = argument};
    platform_open(&platform, options);
    run_loops(&platform);
    platform_close(&platform);
}
