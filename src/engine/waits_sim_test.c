/* waits_sim_test.c - waits for runs when their values are lost, or come twice: each ends when there
 * is news, and what nobody waits for any more is forgotten. */
#include "engine/waits.h"

#include "base/memory.h"
#include "base/test.h"
#include "engine/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/sim/world.h"
#include "route/life.h"
#include "store/memory/memory.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SHARDS    4
#define WORKFLOWS 8
#define ROUNDS    60

struct scene {
    struct arena *arena;
    struct engine *engine;
    const char *domain_id;
};

struct waiting {
    struct run_waiter waiter;
    unsigned ended;
};

/* --- an engine with some open runs ---- */

static bool
offer_nothing(void *context, const struct task *task)
{
    (void)context;
    (void)task;
    return true;
}

/* What may have been done is asked for again: with the same request id it is done once. */
static void
start_run(struct scene *scene, const char *workflow_id)
{
    struct arena *arena = scene->arena;
    API(StartWorkflowExecutionRequest) *request =
        API_NEW(arena, start_workflow_execution_request, .domain = "orders",
                .workflow_id = (char *)workflow_id, .request_id = (char *)workflow_id,
                .workflow_type = API_NEW(arena, workflow_type, .name = "type"),
                .task_list = API_NEW(arena, task_list, .name = "list"),
                .execution_start_to_close_timeout = presence_make_duration(arena, 1000000),
                .task_start_to_close_timeout = presence_make_duration(arena, 10));
    struct start_command command = {.request = request};
    struct start_answer answer = {0};
    struct error *err;
    do
        err = engine_start(scene->engine, scene->domain_id, &command, arena, &answer);
    while (err != NULL && err->kind == ERR_UNAVAILABLE);
    EXPECT_OK(err);
}

static void
signal_run(struct scene *scene, const char *workflow_id)
{
    struct arena *arena = scene->arena;
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(arena, signal_workflow_execution_request,
                .workflow_execution =
                    API_NEW(arena, workflow_execution, .workflow_id = (char *)workflow_id),
                .signal_name = "signal", .request_id = uuid_new_text(arena));
    struct error *err;
    do
        err = engine_signal(scene->engine, scene->domain_id, request, arena);
    while (err != NULL && err->kind == ERR_UNAVAILABLE);
    EXPECT_OK(err);
}

/* What is waited for: the events behind those that there are. */
static struct run_wait_for
next_of(struct scene *scene, const char *workflow_id)
{
    struct run_key key = {scene->domain_id, workflow_id, ""};
    struct history_state state;
    struct error *err;
    do
        err = engine_history_state(scene->engine, &key, scene->arena, &state);
    while (err != NULL && err->kind == ERR_UNAVAILABLE);
    EXPECT_OK(err);
    key.run_id = state.run_id;
    return (struct run_wait_for){.key = key, .next_event_id = state.next_event_id};
}

static void
run_scene(void (*body)(struct scene *scene))
{
    struct arena *arena = arena_new(0);
    struct memory_base *base = memory_base_new(0);
    struct store *store = memory_open(base);
    struct config *config = config_default();
    struct dynamic *dynamic = dynamic_new(NULL);
    const struct cluster_group *group;
    struct domains *domains;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    struct domains_options options = {.store = store, .group = group, .dynamic = dynamic};
    EXPECT_OK(domains_open(&options, arena, &domains));
    API(RegisterDomainRequest) *request =
        API_NEW(arena, register_domain_request, .name = "orders",
                .workflow_execution_retention_period = presence_make_duration(arena, 86400));
    EXPECT_OK(domains_register(domains, request, arena, NULL));
    struct scene scene = {.arena = arena,
                          .domain_id = arena_text(arena, domains_find_name(domains, "orders")->id)};
    struct engine_options engine_options = {.store = store,
                                            .shard_count = SHARDS,
                                            .domains = domains,
                                            .group = group,
                                            .dynamic = dynamic,
                                            .tasks = {.offer = offer_nothing},
                                            .host = "host",
                                            .is_alone = true};
    EXPECT_OK(engine_open(&engine_options, arena, &scene.engine));
    body(&scene);
    engine_close(scene.engine);
    domains_close(domains);
    dynamic_free(dynamic);
    config_free(config);
    store_close(store);
    memory_base_free(base);
    arena_free(arena);
}

/* --- waiting ---- */

static void
ended(struct run_waiter *waiter, enum query_end end, struct slice result)
{
    struct waiting *waiting = container_of(waiter, struct waiting, waiter);
    EXPECT(end == QUERY_FREE && result.length == 0 && waiter->number == 0);
    waiting->ended++;
}

static void
wait_for_news(struct scene *scene)
{
    struct waiting waiting[WORKFLOWS];
    const char *ids[WORKFLOWS];
    for (int i = 0; i < WORKFLOWS; i++) {
        ids[i] = arena_format(scene->arena, "wf-%d", i);
        start_run(scene, ids[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORKFLOWS; i++) {
            struct run_wait_for what = next_of(scene, ids[i]);
            waiting[i] = (struct waiting){0};
            engine_wait_init(&waiting[i].waiter, scene->engine, ended);
            EXPECT(engine_wait_begin(&waiting[i].waiter, &what));
            EXPECT_EQ(waiting[i].ended, 0);
        }
        for (int i = 0; i < WORKFLOWS; i++)
            signal_run(scene, ids[i]);
        int64_t limit = clock_monotonic() + 60 * NS_PER_S;
        for (int i = 0; i < WORKFLOWS; i++) {
            while (waiting[i].ended == 0 && clock_monotonic() < limit)
                EXPECT_OK(fiber_sleep(NS_PER_MS, scene->arena));
            EXPECT_EQ(waiting[i].ended, 1);
        }
    }
}

/* Nobody is called who has stopped, also not when the run has news. */
static void
stop_waiting(struct scene *scene)
{
    struct waiting waiting = {0};
    start_run(scene, "wf");
    engine_wait_init(&waiting.waiter, scene->engine, ended);
    for (int round = 0; round < 20 * ROUNDS; round++) {
        struct run_wait_for what = next_of(scene, "wf");
        EXPECT(engine_wait_begin(&waiting.waiter, &what));
        if (round % 2 == 0)
            EXPECT_OK(fiber_sleep(NS_PER_MS, scene->arena));
        engine_wait_stop(&waiting.waiter);
        engine_wait_stop(&waiting.waiter);
    }
    EXPECT_OK(fiber_sleep(60 * NS_PER_S, scene->arena));
    signal_run(scene, "wf");
    EXPECT_OK(fiber_sleep(NS_PER_S, scene->arena));
    EXPECT_EQ(waiting.ended, 0);
}

/* Ends of shards are ends of waits. */
static void
lose_shards(struct scene *scene)
{
    struct waiting waiting = {0};
    start_run(scene, "wf");
    struct run_wait_for what = next_of(scene, "wf");
    engine_wait_init(&waiting.waiter, scene->engine, ended);
    EXPECT(engine_wait_begin(&waiting.waiter, &what));
    EXPECT_OK(fiber_sleep(NS_PER_S, scene->arena));
    struct error *err;
    do
        err = engine_close_shard(scene->engine, engine_shard_of(scene->engine, "wf"), scene->arena);
    while (err != NULL && err->kind == ERR_UNAVAILABLE);
    EXPECT_OK(err);
    EXPECT_OK(fiber_sleep(60 * NS_PER_S, scene->arena));
    EXPECT_EQ(waiting.ended, 1);
}

/* --- a renewal that crosses the end ---- */

struct late_renewal {
    struct scene *scene;
    struct run_waiter waiter;
    struct run_wait_for what;
    int64_t time; /* when the query is answered */
    unsigned answered;
    size_t kept; /* queries of nobody, at the shard */
};

static void
query_answered(struct run_waiter *waiter, enum query_end end, struct slice result)
{
    struct late_renewal *late = container_of(waiter, struct late_renewal, waiter);
    EXPECT_EQ(end, QUERY_REFUSED);
    late->answered++;
}

static struct owner
owner_of(const struct late_renewal *late)
{
    return owner_of_shard(engine_shard_of(late->scene->engine, late->what.key.workflow_id));
}

/* At the shard: as a worker that has the query. */
static void
answer_query(void *argument)
{
    struct late_renewal *late = argument;
    struct shard *shard = engine_served_shard(late->scene->engine, owner_of(late));
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(late->time - clock_monotonic(), arena));
    struct run_query *query = shard_take_query(shard, late->what.key.run_id, "query");
    EXPECT(query != NULL);
    query->fire(query, QUERY_REFUSED, NULL);
}

static void
count_kept(void *argument)
{
    struct late_renewal *late = argument;
    struct shard *shard = engine_served_shard(late->scene->engine, owner_of(late));
    struct run_query *query = shard_take_query(shard, late->what.key.run_id, NULL);
    late->kept = query != NULL;
    if (query != NULL)
        query->fire(query, QUERY_REFUSED, NULL);
}

/* The first renewal comes after ten seconds; values take up to a tenth of a second. */
static void
renew_across_the_end(struct scene *scene)
{
    const char *id = "wf-0";
    for (int i = 1; route_is_here(owner_of_shard(engine_shard_of(scene->engine, id))); i++)
        id = arena_format(scene->arena, "wf-%d", i);
    start_run(scene, id);
    struct late_renewal late = {.scene = scene, .what = next_of(scene, id)};
    late.what.query_id = "query";
    late.what.question = slice_text("?");
    engine_wait_init(&late.waiter, scene->engine, query_answered);
    for (unsigned round = 0; round < ROUNDS; round++) {
        late.time = clock_monotonic() + 10 * NS_PER_S - 50 * NS_PER_MS;
        EXPECT(engine_wait_begin(&late.waiter, &late.what));
        route_within_process(owner_of(&late), answer_query, &late);
        EXPECT_OK(fiber_sleep(NS_PER_S, scene->arena));
        EXPECT_EQ(late.answered, round + 1);
        route_within_process(owner_of(&late), count_kept, &late);
        EXPECT_EQ(late.kept, 0);
    }
}

static void
scene_main(void *argument)
{
    void (**body)(struct scene * scene) = argument;
    run_scene(*body);
}

static uint64_t
simulate(void (*body)(struct scene *scene), enum world_messages messages, int64_t delay_max)
{
    struct world *world =
        world_new(.seed = test_seed(0), .messages = messages, .mailbox_delay_max = delay_max);
    struct host *host = world_add_host(world, "host", 2);
    host_start(host, scene_main, &body);
    EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    uint64_t forgotten = world_probe_count(world, "wait_forgotten");
    world_free(world);
    return forgotten;
}

TEST(waits, each_ends_when_there_is_news)
{
    EXPECT_EQ(simulate(wait_for_news, MESSAGES_WHOLE, 0), 0);
    EXPECT_EQ(simulate(wait_for_news, MESSAGES_BYTES, 0), 0);
    simulate(wait_for_news, MESSAGES_FAIL, 0);
}

TEST(waits, a_shard_forgets_those_that_are_not_asked_for_again)
{
    EXPECT_EQ(simulate(stop_waiting, MESSAGES_WHOLE, 0), 0);
    EXPECT(simulate(stop_waiting, MESSAGES_FAIL, 0) > 0);
}

TEST(waits, a_shard_that_is_given_up_ends_those_of_its_runs)
{
    simulate(lose_shards, MESSAGES_WHOLE, 0);
    simulate(lose_shards, MESSAGES_FAIL, 0);
}

TEST(waits, a_renewal_that_crosses_the_end_leaves_no_query_of_nobody)
{
    simulate(renew_across_the_end, MESSAGES_WHOLE, 100 * NS_PER_MS);
    simulate(renew_across_the_end, MESSAGES_BYTES, 100 * NS_PER_MS);
}
