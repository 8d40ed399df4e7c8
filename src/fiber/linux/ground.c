/* ground.c - linux_run: builds the ground, runs it, takes it down in the opposite order.
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
    struct ground *ground = argument;
    ground->function(ground->argument);
    atomic_store(&ground->is_stopping, true);
    for (unsigned i = 0; i < ground->loop_count; i++)
        linux_loop_awake(&ground->loops[i]);
}

static void *
run_thread(void *argument)
{
    struct linux_loop *loop = argument;
    char name[16];
    snprintf(name, sizeof name, "loop-%u", loop->loop.index);
    pthread_setname_np(pthread_self(), name);
    linux_loop_run(loop);
    return NULL;
}

static void
run_loops(struct ground *ground)
{
    for (unsigned i = 1; i < ground->loop_count; i++) {
        struct linux_loop *loop = &ground->loops[i];
        int failed = pthread_create(&loop->thread, NULL, run_thread, loop);
        check_that(failed == 0, "no thread for loop %u", i);
    }
    struct loop *before = core_loop_enter(&ground->loops[0].loop);
    check_that(before == NULL, "linux_run within linux_run");
    fiber_start("main", run_first_fiber, ground);
    core_loop_enter(NULL);
    linux_loop_run(&ground->loops[0]);
    for (unsigned i = 1; i < ground->loop_count; i++)
        pthread_join(ground->loops[i].thread, NULL);
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
ground_open(struct ground *ground, const struct linux_options *options)
{
    ground->loop_count = options->loops != 0 ? options->loops : count_loops();
    ground->loops = memory_zalloc(ground->loop_count, sizeof *ground->loops);
    ground->catches_signals = options->catch_signals;
    limits_open(ground);
    pthread_mutex_init(&ground->stop_lock, NULL);
    for (unsigned i = 0; i < ground->loop_count; i++)
        linux_loop_open(&ground->loops[i], ground, i);
    signals_open(ground);
    pool_open(&ground->pool,
              options->pool_threads != 0 ? options->pool_threads : POOL_THREADS_DEFAULT);
}

static void
ground_close(struct ground *ground)
{
    unsigned workers = atomic_load(&ground->worker_count);
    check_that(workers == 0, "%u workers were not freed", workers);
    pool_close(&ground->pool);
    signals_close(ground);
    for (unsigned i = 0; i < ground->loop_count; i++)
        linux_loop_close(&ground->loops[i]);
    pthread_mutex_destroy(&ground->stop_lock);
    memory_free(ground->loops);
}

void
linux_run(const struct linux_options *options, void (*function)(void *argument), void *argument)
{
    signal(SIGPIPE, SIG_IGN); /* a peer that went away is an error of a write, not the end */
    struct ground ground = {.function = function, .argument = argument};
    ground_open(&ground, options);
    run_loops(&ground);
    ground_close(&ground);
}
