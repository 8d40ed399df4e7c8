/* bulk_work.c - one chunk of a batch job: fibers work on its runs concurrently, while the
 * activity's own fiber watches them and sends heartbeats. See bulk.h.
 *
 * Progress never goes back: while a chunk is repeated, what an earlier attempt has shown stays
 * until this one is as far. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "fiber/sync.h"
#include "system/bulk.h"

#define HEARTBEAT_INTERVAL NS_PER_S
#define PAUSE_FIRST        (50 * NS_PER_MS) /* before a run is tried again; doubled each time */
#define PAUSE_LONGEST      NS_PER_S

struct bulk_chunk {
    struct bulk_job *job;
    size_t next; /* the next target to take */
    int64_t success, error;
    bool is_stopping;
    int64_t deadline; /* of all */
    struct fiber *fibers[BULK_CONCURRENCY_MAX];
    size_t fiber_count;
    struct latch working;
    struct fiber_cond changed; /* one has ended */
};

static bool
is_final(const struct bulk_params *params, const struct error *err)
{
    if (err->kind == ERR_BAD_REQUEST)
        return true;
    for (size_t i = 0; i < params->final_error_count; i++) {
        if (strcmp(params->final_errors[i], err->message) == 0)
            return true;
    }
    return false;
}

/* Tries until it is done, given up, or everything stops. */
static bool
work_on(struct bulk_chunk *chunk, const struct bulk_target *target)
{
    const struct bulk_params *params = chunk->job->params;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int64_t pause = PAUSE_FIRST;
    for (int64_t attempt = 0; attempt <= params->attempts; attempt++) {
        struct error *err = bulk_do(chunk->job, target, arena);
        if (err == NULL)
            return true;
        if (chunk->is_stopping || is_final(params, err))
            return false;
        probe("bulk_target_again");
        if (fiber_sleep(pause, arena) != NULL)
            return false;
        pause = pause * 2 < PAUSE_LONGEST ? pause * 2 : PAUSE_LONGEST;
        arena_reset(arena);
    }
    probe("bulk_target_given_up");
    return false;
}

static void
worker(void *argument)
{
    struct bulk_chunk *chunk = argument;
    const struct bulk_progress *progress = &chunk->job->progress;
    size_t self = chunk->fiber_count++;
    check(self < BULK_CONCURRENCY_MAX);
    chunk->fibers[self] = fiber_self();
    fiber_set_deadline(chunk->deadline);
    while (!chunk->is_stopping && chunk->next < progress->target_count) {
        const struct bulk_target *target = &progress->targets[chunk->next++];
        bool is_done = work_on(chunk, target);
        if (chunk->is_stopping && !is_done)
            break; /* neither done nor failed */
        *(is_done ? &chunk->success : &chunk->error) += 1;
    }
    chunk->fibers[self] = NULL;
    latch_done(&chunk->working);
    fiber_cond_signal(&chunk->changed);
}

/* Counts: of earlier chunks, or as shown so far. */
struct counts {
    int64_t success, error;
};

static int64_t
larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static void
show(struct bulk_chunk *chunk, struct counts before, struct counts shown)
{
    struct bulk_progress *progress = &chunk->job->progress;
    progress->success = larger(shown.success, before.success + chunk->success);
    progress->error = larger(shown.error, before.error + chunk->error);
    progress->chunk_success = progress->success - before.success;
    progress->chunk_error = progress->error - before.error;
}

static void
stop(struct bulk_chunk *chunk)
{
    chunk->is_stopping = true;
    for (size_t i = 0; i < chunk->fiber_count; i++) {
        if (chunk->fibers[i] != NULL)
            fiber_cancel(chunk->fibers[i]);
    }
}

static int64_t
heartbeat_interval(const struct bulk_job *job)
{
    int64_t third = job->task->heartbeat_timeout * NS_PER_S / 3;
    return third > 0 && third < HEARTBEAT_INTERVAL ? third : HEARTBEAT_INTERVAL;
}

/* Waits until all have ended; an error: they must be stopped. */
static struct error *
look_after(struct bulk_chunk *chunk, struct counts before, struct counts shown)
{
    struct bulk_job *job = chunk->job;
    int64_t next = clock_monotonic() + heartbeat_interval(job);
    while (chunk->working.open > 0) {
        enum wake wake = fiber_cond_wait(&chunk->changed, next);
        if (wake == WAKE_READY)
            continue;
        show(chunk, before, shown);
        struct error *err = fiber_is_cancelled()
                                ? wake_error(wake, job->task->arena, "working on a batch")
                                : bulk_heartbeat(job);
        if (err != NULL)
            return err;
        next = clock_monotonic() + heartbeat_interval(job);
    }
    return NULL;
}

struct error *
bulk_work_on_chunk(struct bulk_job *job)
{
    struct bulk_progress *progress = &job->progress;
    struct counts shown = {progress->success, progress->error};
    struct counts before = {progress->success - progress->chunk_success,
                            progress->error - progress->chunk_error};
    struct bulk_chunk chunk = {.job = job, .deadline = fiber_deadline()};
    size_t workers = (size_t)job->params->concurrency;
    if (workers > progress->target_count)
        workers = progress->target_count;
    check(workers > 0 && workers <= BULK_CONCURRENCY_MAX);
    latch_init(&chunk.working, (unsigned)workers);
    fiber_cond_init(&chunk.changed);
    for (size_t i = 0; i < workers; i++)
        fiber_start("batch", worker, &chunk);
    struct error *err = look_after(&chunk, before, shown);
    if (err != NULL)
        stop(&chunk);
    latch_wait(&chunk.working);
    check(chunk.fiber_count == workers && chunk.next <= progress->target_count);
    show(&chunk, before, shown);
    if (err != NULL)
        return err;
    check(chunk.success + chunk.error == (int64_t)progress->target_count);
    progress->success = before.success + chunk.success;
    progress->error = before.error + chunk.error;
    progress->chunk_success = progress->chunk_error = 0;
    return NULL;
}
