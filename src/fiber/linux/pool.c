/* pool.c - threads that do what blocks, one queue for all of them. Here, and in worker.c, threads
 * wait for each other; nowhere else. */
#include "fiber/pool.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/linux/inside.h"

/* The next job; NULL: the pool ends. */
static struct pool_job *
pool_take(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (list_is_empty(&pool->jobs) && !pool->is_ending)
        pthread_cond_wait(&pool->has_work, &pool->lock);
    struct list *node = list_pop_front(&pool->jobs);
    if (node != NULL)
        pool->job_count--;
    pthread_mutex_unlock(&pool->lock);
    return node == NULL ? NULL : list_entry(node, struct pool_job, node);
}

static void *
pool_thread(void *argument)
{
    struct pool *pool = argument;
    pthread_setname_np(pthread_self(), "pool");
    for (struct pool_job *job; (job = pool_take(pool)) != NULL;) {
        job->work(job->argument);
        loop_post_answer(&job->loop->loop, &job->message);
    }
    return NULL;
}

void
pool_open(struct pool *pool, unsigned threads)
{
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_work, NULL);
    list_init(&pool->jobs);
    pool->thread_count = threads;
    pool->threads = memory_zalloc(threads, sizeof *pool->threads);
    for (unsigned i = 0; i < threads; i++) {
        int failed = pthread_create(&pool->threads[i], NULL, pool_thread, pool);
        check_that(failed == 0, "no thread for the pool");
    }
}

void
pool_close(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    check(list_is_empty(&pool->jobs));
    pthread_cond_destroy(&pool->has_work);
    pthread_mutex_destroy(&pool->lock);
    memory_free(pool->threads);
}

static void
job_deliver(struct loop_message *message)
{
    struct pool_job *job = container_of(message, struct pool_job, message);
    check(job->loop->pool_jobs > 0);
    job->loop->pool_jobs--;
    job->done(job);
}

bool
pool_submit(struct pool_job *job, bool is_bounded)
{
    job->loop = linux_loop_self();
    job->message.deliver = job_deliver;
    struct pool *pool = &job->loop->platform->pool;
    pthread_mutex_lock(&pool->lock);
    bool has_room = !is_bounded || pool->job_count < POOL_QUEUE_MAX;
    if (has_room) {
        list_push_back(&pool->jobs, &job->node);
        pool->job_count++;
        pthread_cond_signal(&pool->has_work);
    }
    pthread_mutex_unlock(&pool->lock);
    job->loop->pool_jobs += has_room;
    return has_room;
}

/* --- a fiber that waits for its job ---- */

struct waited_job {
    struct pool_job job;
    struct fiber *fiber;
    bool is_done;
};

static void
waited_job_done(struct pool_job *job)
{
    struct waited_job *waited = container_of(job, struct waited_job, job);
    waited->is_done = true;
    fiber_wake(waited->fiber);
}

/* False: the queue is full. */
static bool
run_and_wait(void (*work)(void *argument), void *argument, bool is_bounded)
{
    struct waited_job waited = {
        .job = {.work = work, .argument = argument, .done = waited_job_done},
        .fiber = fiber_self()};
    check_that(waited.fiber != NULL, "only a fiber may wait for the pool");
    if (!pool_submit(&waited.job, is_bounded))
        return false;
    while (!waited.is_done)
        fiber_wait_uncancellable();
    return true;
}

struct error *
pool_run(void (*work)(void *argument), void *argument, struct arena *arena)
{
    if (run_and_wait(work, argument, true))
        return NULL;
    return error_new(arena, ERR_BUSY, "%d pieces of blocking work wait already", POOL_QUEUE_MAX);
}

void
pool_run_unbounded(void (*work)(void *argument), void *argument)
{
    bool is_done = run_and_wait(work, argument, false);
    check(is_done);
}
