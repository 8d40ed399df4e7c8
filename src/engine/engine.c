/* engine.c - all shards of this process: taken, closed, and asked by workflow id. See engine.h.
 *
 * A call of the engine is a question to the shard (route/ask.h). Who serves it, where the shard is,
 * makes the step of it: the command is one of command/, given to the shard as the decision. */
#include "engine/engine.h"

#include "base/check.h"
#include "base/memory.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "engine/inside.h"
#include "fiber/clock.h"
#include "fiber/sync.h"
#include "route/life.h"

#define RUNS_MAX   16384 /* in memory, of all shards */
#define OPENERS    32    /* shards that are taken at a time */
#define POLL_DELAY NS_PER_MS

uint32_t
engine_shard_of(const struct engine *engine, const char *workflow_id)
{
    return route_shard_of(slice_text(workflow_id), engine->options.shard_count);
}

/* --- life ---- */

/* One shard, on its loop. */
struct shard_call {
    struct engine *engine;
    uint32_t number;
    struct arena *arena;
    struct error *err;
};

/* Goes through all shards with a few fibers; the first failure ends it. */
struct sweep {
    struct engine *engine;
    void (*visit)(void *shard_call);
    bool may_end_early; /* with its caller's deadline, or when that is cancelled */
    uint32_t next;
    int64_t deadline;
    struct fiber *fibers[OPENERS]; /* NULL: has ended */
    struct latch latch;
    struct arena *arena;
    struct error *err;
};

/* What a shard waits for may not come before another one has failed. */
static void
sweep_cancel(struct sweep *sweep)
{
    for (unsigned i = 0; i < OPENERS; i++)
        if (sweep->fibers[i] != NULL && sweep->fibers[i] != fiber_self())
            fiber_cancel(sweep->fibers[i]);
}

static void
sweep_fiber(void *argument)
{
    struct sweep *sweep = argument;
    struct arena *arena = arena_new(0);
    fiber_set_deadline(sweep->deadline);
    while (sweep->next < sweep->engine->options.shard_count && sweep->err == NULL) {
        uint32_t number = sweep->next++;
        struct shard_call call = {.engine = sweep->engine, .number = number, .arena = arena};
        route_within_process(owner_of_shard(number), sweep->visit, &call);
        if (call.err != NULL && sweep->err == NULL) {
            sweep->err = error_wrap(error_copy(sweep->arena, call.err), "take shard %u", number);
            sweep_cancel(sweep);
        }
        arena_reset(arena);
    }
    arena_free(arena);
    for (unsigned i = 0; i < OPENERS; i++)
        if (sweep->fibers[i] == fiber_self())
            sweep->fibers[i] = NULL;
    latch_done(&sweep->latch);
}

static void
sweep_run(struct sweep *sweep)
{
    uint32_t count = sweep->engine->options.shard_count;
    check(sweep->next == 0 && sweep->err == NULL);
    unsigned fibers = count < OPENERS ? count : OPENERS;
    latch_init(&sweep->latch, fibers);
    sweep->deadline = sweep->may_end_early ? fiber_deadline() : NEVER;
    for (unsigned i = 0; i < fibers; i++)
        sweep->fibers[i] = fiber_start("engine sweep", sweep_fiber, sweep);
    if (sweep->may_end_early && !latch_wait_until(&sweep->latch, NEVER) && fiber_is_cancelled())
        sweep_cancel(sweep); /* its deadline they have themselves */
    latch_wait(&sweep->latch);
    check(sweep->err != NULL || sweep->next == count);
}

static void
open_on_loop(void *argument)
{
    struct shard_call *call = argument;
    const struct engine_options *options = &call->engine->options;
    size_t runs_max = (options->runs_max == 0 ? RUNS_MAX : options->runs_max);
    if (fiber_is_cancelled()) { /* what is taken quickly would not notice */
        call->err = wake_error(WAKE_CANCELLED, call->arena, "taking the shards");
        return;
    }
    struct shard *shard = shard_new(&(struct shard_options){
        .number = call->number,
        .store = options->store,
        .domains = options->domains,
        .group = options->group,
        .dynamic = options->dynamic,
        .log = options->log,
        .metrics = options->metrics,
        .tasks = options->tasks,
        .reservations = options->reservations,
        .visibility = options->visibility,
        .search = options->search,
        .archive = options->archive,
        .cross_tasks = {.run = engine_run_cross_task, .context = call->engine},
        .host = options->host,
        .is_alone = options->is_alone,
        .runs_max = runs_max / options->shard_count + 1,
        .transfers_max = options->transfers_max,
        .wakeups_max = options->wakeups_max,
    });
    check(call->engine->shards[call->number] == NULL);
    call->engine->shards[call->number] = shard;
    call->err = shard_open(shard, call->arena);
}

/* Cross-workflow tasks go from shard to shard: not before all are there. */
static void
run_cross_tasks_on_loop(void *argument)
{
    struct shard_call *call = argument;
    shard_run_cross_tasks(call->engine->shards[call->number]);
}

/* If the opening failed, some shards are not there. */
static void
stop_cross_tasks_on_loop(void *argument)
{
    struct shard_call *call = argument;
    struct shard *shard = call->engine->shards[call->number];
    if (shard != NULL)
        shard_stop_cross_tasks(shard);
}

static void
close_on_loop(void *argument)
{
    struct shard_call *call = argument;
    struct shard **shard = &call->engine->shards[call->number];
    if (*shard != NULL)
        shard_close(*shard);
    *shard = NULL;
}

struct error *
engine_open(const struct engine_options *options, struct arena *arena, struct engine **opened)
{
    check(route_is_here(owner_of_domains()) && options->shard_count > 0);
    struct engine *engine = memory_zalloc(1, sizeof *engine);
    engine->options = *options;
    engine->service.context = engine;
    waits_init(engine);
    if (options->metrics != NULL)
        engine->reapplied = metrics_counter(
            options->metrics, "replication_reapplied",
            "Messages with what clients did to events that lost, done again.", NULL);
    engine->shards = memory_zalloc(options->shard_count, sizeof engine->shards[0]);
    struct sweep sweep = {
        .engine = engine, .visit = open_on_loop, .may_end_early = true, .arena = arena};
    sweep_run(&sweep);
    if (sweep.err != NULL) {
        engine_close(engine);
        return sweep.err;
    }
    struct sweep cross_tasks = {.engine = engine, .visit = run_cross_tasks_on_loop};
    sweep_run(&cross_tasks);
    *opened = engine;
    return NULL;
}

/* Waits until nothing is on its way that names the engine, or a shard of it. Yields. */
static void
wait_for_values(struct engine *engine)
{
    while (atomic_load(&engine->service.on_the_way) > 0) {
        struct arena *arena = arena_new(0);
        struct error *err = fiber_sleep(POLL_DELAY, arena);
        if (err != NULL)
            fiber_yield();
        arena_free(arena);
    }
}

void
engine_close(struct engine *engine)
{
    wait_for_values(engine);
    struct sweep cross_tasks = {.engine = engine, .visit = stop_cross_tasks_on_loop};
    sweep_run(&cross_tasks);
    struct sweep sweep = {.engine = engine, .visit = close_on_loop};
    sweep_run(&sweep);
    wait_for_values(engine); /* ends of waits that were lost with their shards */
    waits_free(engine);
    memory_free(engine->shards);
    memory_free(engine);
}

/* --- calls ---- */

struct error *
engine_ask_shard(struct engine *engine, uint32_t number, const struct route_question *question,
                 const void *request, struct arena *arena, void *answer)
{
    check(number < engine->options.shard_count);
    return route_ask(owner_of_shard(number), &engine->service, question, request, arena, answer);
}

struct error *
engine_ask(struct engine *engine, const char *workflow_id, const struct route_question *question,
           const void *request, struct arena *arena, void *answer)
{
    return engine_ask_shard(engine, engine_shard_of(engine, workflow_id), question, request, arena,
                            answer);
}

struct error *
engine_ask_done(struct engine *engine, const char *workflow_id,
                const struct route_question *question, const void *request, struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return engine_ask(engine, workflow_id, question, request, arena, &answer);
}

struct shard *
engine_own_shard(struct engine *engine, const char *workflow_id)
{
    return engine_served_shard(engine, owner_of_shard(engine_shard_of(engine, workflow_id)));
}

struct shard *
engine_served_shard(void *context, struct owner owner)
{
    struct engine *engine = context;
    check(owner.kind == OWNER_OF_SHARD && owner.number < engine->options.shard_count);
    check(route_is_here(owner));
    return engine->shards[owner.number];
}
