/* pool.c - blocking work without threads: it runs in one go at a seeded later time, on no loop.
 *
 * A job is an event together with the fiber that waits for it. It lives on that fiber's stack, and
 * the fiber cannot be cancelled meanwhile, so the job outlives its use; a crash takes the event out
 * of the queue before it drops the stack. A worker lives in the host's heap; the same holds for its
 * event. */
#include "fiber/pool.h"

#include "base/check.h"
#include "fiber/sim/inside.h"

/* --- jobs ------------------------------------------------------------------------------------ */

void
job_wait(struct job *job, enum step_kind kind, uint64_t number, int64_t delay,
         void (*fire)(struct world *world, struct event *event))
{
    struct sim_loop *loop = sim_loop_self();
    struct world *world = loop->host->world;
    event_init(&job->event, kind, loop->host, fire);
    job->event.loop = loop->loop.head.index;
    job->event.number = number;
    job->loop = loop;
    job->fiber = fiber_self();
    job->is_done = false;
    check_that(job->fiber != NULL, "only a fiber can wait");
    event_schedule(world, &job->event, loop->host, world->now + delay);
    while (!job->is_done)
        fiber_wait_uncancellable();
}

void
job_done(struct job *job)
{
    check(!job->is_done);
    job->is_done = true;
    sim_loop_wake(job->loop, job->fiber);
}

static void
pause_fire(struct world *world, struct event *event)
{
    job_done(container_of(event, struct job, event));
}

void
job_pause(enum step_kind kind, int64_t delay)
{
    struct job job;
    if (fiber_self() != NULL)
        job_wait(&job, kind, 0, delay, pause_fire);
}

/* --- surroundings of blocking work: the host's heap, but none of its loops ------------------- */

static struct surroundings
work_begin(struct host *host)
{
    check(core_loop_current() == NULL);
    port_set_host_at_work(host);
    return (struct surroundings){.heap = heap_select(host->heap)};
}

static void
work_end(struct surroundings before)
{
    port_set_host_at_work(NULL);
    sim_leave(before);
}

static int64_t
work_delay(struct world *world)
{
    return world_between(world, world->options.disk_latency_min, world->options.disk_latency_max);
}

/* --- pool ------------------------------------------------------------------------------------ */

struct sim_pool_job {
    struct job job;
    void (*work)(void *argument);
    void *argument;
};

static void
pool_fire(struct world *world, struct event *event)
{
    struct sim_pool_job *job = container_of(event, struct sim_pool_job, job.event);
    struct surroundings before = work_begin(event->host);
    job->work(job->argument);
    work_end(before);
    event->host->pool_count--;
    job_done(&job->job);
}

struct error *
pool_run(void (*work)(void *argument), void *argument, struct arena *arena)
{
    struct host *host = sim_host_self();
    if (host->pool_count >= POOL_QUEUE_MAX)
        return error_new(arena, ERR_BUSY, "the pool for blocking work is full");
    host->pool_count++;
    struct sim_pool_job job = {.work = work, .argument = argument};
    job_wait(&job.job, STEP_POOL, host->pool_count, work_delay(host->world), pool_fire);
    return NULL;
}

/* --- workers --------------------------------------------------------------------------------- */

struct worker {
    struct host *host;
    const char *name;
    void (*process)(void *context, struct list *messages);
    void *context;
    struct list messages;
    uint64_t posted; /* messages so far */
    struct event event;
    struct sim_loop *freeing_loop; /* where somebody waits in worker_free */
    struct fiber *freeing;
};

static void
worker_fire(struct world *world, struct event *event)
{
    struct worker *worker = container_of(event, struct worker, event);
    struct surroundings before = work_begin(worker->host);
    worker->process(worker->context, &worker->messages);
    work_end(before);
    check_that(list_is_empty(&worker->messages), "worker %s left messages behind", worker->name);
    if (worker->freeing != NULL)
        sim_loop_wake(worker->freeing_loop, worker->freeing);
}

struct worker *
worker_new(const char *name, void (*process)(void *context, struct list *messages), void *context)
{
    struct worker *worker = memory_zalloc(1, sizeof *worker);
    *worker = (struct worker){
        .host = sim_host_self(), .name = name, .process = process, .context = context};
    list_init(&worker->messages);
    event_init(&worker->event, STEP_WORKER, worker->host, worker_fire);
    return worker;
}

struct worker *
worker_new_patient(const char *name, void (*process)(void *context, struct list *messages),
                   void *context)
{
    return worker_new(name, process, context);
}

void
worker_post(struct worker *worker, struct loop_message *message)
{
    struct world *world = worker->host->world;
    check_that(worker->freeing == NULL, "worker %s is being freed", worker->name);
    list_push_back(&worker->messages, &message->node);
    worker->event.number = ++worker->posted;
    if (!event_is_pending(&worker->event))
        event_schedule(world, &worker->event, worker->host, world->now + work_delay(world));
}

size_t
worker_await(struct worker *worker, size_t count, int64_t time)
{
    return 0; /* nobody posts while it drains */
}

void
worker_free(struct worker *worker)
{
    worker->freeing_loop = sim_loop_self();
    worker->freeing = fiber_self();
    check_that(worker->freeing != NULL, "only a fiber can wait for worker %s", worker->name);
    while (!list_is_empty(&worker->messages))
        fiber_wait_uncancellable();
    job_pause(STEP_WORKER, 1000); /* the thread ends */
    memory_free(worker);
}
