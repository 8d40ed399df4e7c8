/* model_world.c - random things, each done to a run and to its model. See model_world.h. */
#include "engine/command/test/model_world.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"

uint64_t
world_below(struct world *world, uint64_t bound)
{
    return random_below(&world->random, bound);
}

bool
world_one_in(struct world *world, uint64_t count)
{
    return world_below(world, count) == 0;
}

const char *
world_request(struct world *world)
{
    int number = ++world->count;
    if (world_one_in(world, 4)) {
        number = 1 + (int)world_below(world, (uint64_t)number);
        world->repeats++;
    }
    return arena_format(world->fixture->arena, "r%d", number);
}

void
world_say(struct world *world, const char *what)
{
    world->last = arena_format(world->fixture->arena, "%d: %s", world->count, what);
}

/* ---- clients ---- */

void
world_follow(struct world *world, int64_t delay, const char *signal)
{
    const STORED(RunRecord) *core = fixture_run(world->fixture)->core;
    world->model = model_start(world->fixture->arena, world->fixture->context.now,
                               core->execution_timeout, core->decision_timeout, delay, signal);
    world->run_id = arena_text(world->fixture->arena, core->run_id);
    world->token_count = 0;
}

static API(StartWorkflowExecutionRequest) *
random_start(struct world *world, int64_t *delay)
{
    struct fixture *fixture = world->fixture;
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    *delay = world_one_in(world, 4) ? 1 + (int64_t)world_below(world, 20) : 0;
    request->execution_start_to_close_timeout =
        fixture_duration(fixture, 30 + (int64_t)world_below(world, 400));
    request->delay_start = *delay == 0 ? NULL : fixture_duration(fixture, *delay);
    return request;
}

/* A start was taken. */
static void
begin_chain(struct world *world, const char *request, int64_t delay, const char *signal)
{
    world_follow(world, delay, signal);
    world->start_request = world->chain_request = request;
    world->chain_run_id = world->run_id;
}

static bool
is_world_full(const struct world *world)
{
    return world->fixture->run_count + 1 >= FIXTURE_RUNS_MAX;
}

static void
act_start(struct world *world)
{
    int64_t delay;
    struct fixture *fixture = world->fixture;
    bool is_repeat = world->start_request != NULL && world_one_in(world, 3);
    bool is_open = world->model != NULL && world->model->is_open;
    if (is_world_full(world) && !is_repeat && !is_open)
        return;
    world_say(world, is_repeat ? "start again" : "start");
    API(StartWorkflowExecutionRequest) *request = random_start(world, &delay);
    bool is_chain = world_one_in(world, 2);
    if (is_repeat)
        request->request_id = (char *)(is_chain ? world->chain_request : world->start_request);
    struct error *refusal = fixture_start(fixture, request);
    if (is_repeat) {
        EXPECT_OK(refusal);
        EXPECT_TEXT(fixture->started.run_id, is_chain ? world->chain_run_id : world->run_id);
    } else if (is_open) {
        EXPECT_KIND(refusal, ERR_ALREADY_STARTED);
    } else {
        EXPECT_OK(refusal);
        begin_chain(world, request->request_id, delay, NULL);
    }
}

static void
act_signal_with_start(struct world *world)
{
    int64_t delay;
    if (is_world_full(world))
        return;
    world_say(world, "signal with start");
    API(StartWorkflowExecutionRequest) *request = random_start(world, &delay);
    const char *name = arena_format(world->fixture->arena, "s%d", ++world->count);
    EXPECT_OK(fixture_signal_with_start(world->fixture, request, name));
    if (!world->model->is_open) {
        begin_chain(world, request->request_id, delay, name);
        return;
    }
    EXPECT_TEXT(world->fixture->started.run_id, world->run_id);
    world_expect_answer(world, NULL, model_signal(world->model, name, name));
}

static void
act_signal(struct world *world)
{
    const char *request = world_request(world);
    const char *name = arena_format(world->fixture->arena, "s%d", world->count);
    world_say(world, "signal");
    world_expect_answer(world, fixture_signal(world->fixture, name, request),
                        model_signal(world->model, name, request));
}

static void
act_request_cancel(struct world *world)
{
    const char *request = world_request(world);
    world_say(world, "request cancel");
    world_expect_answer(world, fixture_request_cancel(world->fixture, request),
                        model_request_cancel(world->model, request));
}

static void
act_terminate(struct world *world)
{
    world_say(world, "terminate");
    world_expect_answer(world, fixture_terminate(world->fixture), model_terminate(world->model));
}

/* ---- time ---- */

/* Each wake-up timer fires at its time. */
static void
act_wait(struct world *world)
{
    int64_t seconds = (int64_t)world_below(world, world_one_in(world, 8) ? 60 : 6);
    int64_t end = world->fixture->context.now + seconds * MODEL_SECOND;
    world_say(world, "wait");
    fixture_advance(world->fixture, seconds);
    for (int64_t next = model_next_deadline(world->model); next != 0 && next <= end;
         next = model_next_deadline(world->model))
        model_wake(world->model, next);
    world->model->now = end;
}

/* The machine was away for a while: everything fires at once. */
static void
act_wait_late(struct world *world)
{
    int64_t nanoseconds = (int64_t)world_below(world, (uint64_t)(20 * MODEL_SECOND));
    world_say(world, "wake late");
    calls_wake_late(world->fixture, nanoseconds);
    model_wake(world->model, world->model->now + nanoseconds);
    world->late++;
}

/* ---- all ---- */

static const struct {
    uint64_t weight;
    void (*act)(struct world *world);
} acts[] = {
    {2, act_start},
    {2, act_signal_with_start},
    {2, world_reset_sticky},
    {8, act_signal},
    {2, act_request_cancel},
    {1, act_terminate},
    {20, world_start_decision},
    {20, world_complete_decision},
    {3, world_fail_decision},
    {20, world_start_activity},
    {20, world_report},
    {12, act_wait},
    {6, act_wait_late},
};

void
world_act(struct world *world)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        sum += acts[i].weight;
    uint64_t chance = world_below(world, sum);
    size_t i = 0;
    while (chance >= acts[i].weight)
        chance -= acts[i++].weight;
    bool was_open = world->model->is_open;
    acts[i].act(world);
    world->closes += was_open && !world->model->is_open;
    world_compare(world);
    if (!world->model->is_open && world_one_in(world, 3)) {
        act_start(world);
        world_compare(world);
    }
}

struct world *
world_new(uint64_t seed)
{
    struct world *world = memory_zalloc(1, sizeof(struct world));
    world->seed = seed;
    random_seed(&world->random, seed);
    world->fixture = fixture_new();
    act_start(world);
    world_compare(world);
    return world;
}

void
world_free(struct world *world)
{
    fixture_drop(&world->fixture);
    memory_free(world);
}
