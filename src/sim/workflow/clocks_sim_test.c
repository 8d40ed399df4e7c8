/* clocks_sim_test.c - the wall clocks of three hosts of one cluster are set ahead and back by up to
 * hours while hosts crash and take shards from each other.
 *
 * What is at stake: a shard remembers before which time it has no timers, and that time may lie
 * ahead of a clock that was set back. Method: runs without a worker end by their timeout, which is
 * a wake-up timer like any other. After each storm the clocks stay as they are: a run that is begun
 * then ends as long after its start as its timeout says, and a bound. Then the clocks are set ahead
 * of all that they ever showed, and every run that is still open has to end. No time is measured by
 * a clock that was set, but by the world's own. */
#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "sim/world/calls.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"
#include "sim/world/verdict.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define DOMAIN         "clocks"
#define HOUR           (3600 * NS_PER_S)
#define STEP_MAX       (2 * HOUR)
#define CALL_TIMEOUT   (5 * NS_PER_S)
#define STORM          (60 * NS_PER_S)
#define ROUNDS         4
#define FRESH_RUNS     8
#define TIMED_RUNS_MAX 512
#define LATE_MAX       40 /* seconds after its time, once all hosts serve */

enum phase {
    PHASE_STORM, /* hosts are harmed and clocks are set; runs begin */
    PHASE_FRESH, /* all is calm: the runs that begin now end in time */
    PHASE_OLD,   /* the clocks are ahead: all runs end */
    PHASE_DONE
};

struct timed_run {
    int64_t seconds; /* of its timeout */
    bool is_over;
};

struct clocks_fixture {
    struct sim sim;
    struct nemesis nemesis;
    struct verdict verdict;
    enum phase phase;
    struct timed_run timed_runs[TIMED_RUNS_MAX];
    unsigned count;
    struct load_call call; /* of the client's fiber */
};

/* --- calls ---- */

static struct error *
ask(struct clocks_fixture *clocks_fixture, const ProtobufCMessage *request,
    ProtobufCMessage **response)
{
    clocks_fixture->call.host = (unsigned)entropy_below(clocks_fixture->sim.count);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = load_send_at(&clocks_fixture->call, request, response);
    fiber_set_deadline(NEVER);
    return err;
}

static const char *
timed_run_id(const struct clocks_fixture *clocks_fixture, const struct timed_run *timed_run)
{
    return arena_format(clocks_fixture->call.arena, "probe-%zu",
                        (size_t)(timed_run - clocks_fixture->timed_runs));
}

static bool
start_once(struct clocks_fixture *clocks_fixture, struct timed_run *timed_run)
{
    struct arena *arena = clocks_fixture->call.arena;
    API(StartWorkflowExecutionRequest) *request = API_NEW(
        arena, start_workflow_execution_request, .domain = DOMAIN,
        .workflow_id = (char *)timed_run_id(clocks_fixture, timed_run),
        .request_id = arena_format(arena, "00000000-0000-4000-8000-%012zu",
                                   (size_t)(timed_run - clocks_fixture->timed_runs)),
        .workflow_type = API_NEW(arena, workflow_type, .name = "probe"),
        .task_list = API_NEW(arena, task_list, .name = "nobody polls"),
        .execution_start_to_close_timeout = presence_make_duration(arena, timed_run->seconds),
        .task_start_to_close_timeout = presence_make_duration(arena, timed_run->seconds));
    return ask(clocks_fixture, &request->base, NULL) == NULL;
}

/* Did it end? False also if nobody says so. */
static bool
read_closed(struct clocks_fixture *clocks_fixture, const struct timed_run *timed_run)
{
    struct arena *arena = clocks_fixture->call.arena;
    API(DescribeWorkflowExecutionRequest) *request =
        API_NEW(arena, describe_workflow_execution_request, .domain = DOMAIN,
                .workflow_execution =
                    API_NEW(arena, workflow_execution,
                            .workflow_id = (char *)timed_run_id(clocks_fixture, timed_run)));
    ProtobufCMessage *response = NULL;
    if (ask(clocks_fixture, &request->base, &response) != NULL)
        return false;
    return ((API(DescribeWorkflowExecutionResponse) *)response)
               ->workflow_execution_info->close_status !=
           API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_INVALID);
}

/* --- probes ---- */

static void
rest(struct clocks_fixture *clocks_fixture, int64_t nanoseconds)
{
    (void)!fiber_sleep(nanoseconds, clocks_fixture->call.arena);
    arena_reset(clocks_fixture->call.arena);
}

static void
start_timed_run(struct clocks_fixture *clocks_fixture)
{
    check(clocks_fixture->count < TIMED_RUNS_MAX);
    struct timed_run *timed_run = &clocks_fixture->timed_runs[clocks_fixture->count++];
    timed_run->seconds = 1 + (int64_t)entropy_below(30);
    while (!start_once(clocks_fixture, timed_run))
        rest(clocks_fixture, 100 * NS_PER_MS);
}

/* It has to be over when `limit` seconds have passed. */
static void
await_timed_run(struct clocks_fixture *clocks_fixture, struct timed_run *timed_run, int64_t limit)
{
    int64_t begun = clock_monotonic();
    while (!timed_run->is_over && clocks_fixture->verdict.violation == NULL) {
        int64_t waited = (clock_monotonic() - begun) / NS_PER_S;
        timed_run->is_over = read_closed(clocks_fixture, timed_run);
        if (!timed_run->is_over && waited > limit)
            verdict_violate(&clocks_fixture->verdict,
                            "probe %zu with a timeout of %lld s is open after %lld s%s",
                            (size_t)(timed_run - clocks_fixture->timed_runs),
                            (long long)timed_run->seconds, (long long)waited,
                            clocks_fixture->phase == PHASE_OLD ? " with the clock ahead" : "");
        if (!timed_run->is_over)
            rest(clocks_fixture, NS_PER_S);
    }
}

static void
register_domain(struct clocks_fixture *clocks_fixture)
{
    struct load_registration registration = {.name = DOMAIN};
    struct error *err;
    while ((err = load_register(&clocks_fixture->call, &registration)) != NULL &&
           err->kind != ERR_DOMAIN_ALREADY_EXISTS)
        rest(clocks_fixture, 100 * NS_PER_MS);
}

static void
run_client_round(struct clocks_fixture *clocks_fixture)
{
    while (clocks_fixture->phase == PHASE_STORM) {
        start_timed_run(clocks_fixture);
        rest(clocks_fixture, (int64_t)entropy_below(2 * NS_PER_S));
    }
    unsigned first = clocks_fixture->count;
    for (unsigned i = 0; i < FRESH_RUNS; i++)
        start_timed_run(clocks_fixture);
    for (unsigned i = first; i < clocks_fixture->count; i++)
        await_timed_run(clocks_fixture, &clocks_fixture->timed_runs[i],
                        clocks_fixture->timed_runs[i].seconds + LATE_MAX);
    clocks_fixture->phase = PHASE_OLD;
    rest(clocks_fixture, NS_PER_S); /* the clocks are set ahead */
    for (unsigned i = 0; i < clocks_fixture->count; i++)
        await_timed_run(clocks_fixture, &clocks_fixture->timed_runs[i], LATE_MAX);
    clocks_fixture->phase = PHASE_DONE;
}

static void
client_main(void *argument)
{
    struct clocks_fixture *clocks_fixture = argument;
    struct arena *arena = arena_new(0);
    clocks_fixture->call =
        (struct load_call){.clients = load_clients_new(&clocks_fixture->sim), .arena = arena};
    register_domain(clocks_fixture);
    for (int round = 0; round < ROUNDS; round++) {
        run_client_round(clocks_fixture);
        while (clocks_fixture->phase == PHASE_DONE && round + 1 < ROUNDS)
            rest(clocks_fixture, NS_PER_S);
    }
    load_clients_free(clocks_fixture->call.clients);
    arena_free(arena);
}

/* --- storms ---- */

static bool
is_fresh_over(void *context)
{
    return ((struct clocks_fixture *)context)->phase > PHASE_FRESH;
}

static bool
is_done(void *context)
{
    return ((struct clocks_fixture *)context)->phase == PHASE_DONE;
}

static void
run_round(struct clocks_fixture *clocks_fixture)
{
    clocks_fixture->phase = PHASE_STORM;
    if (!host_is_running(clocks_fixture->sim.client))
        host_start(clocks_fixture->sim.client, client_main, clocks_fixture);
    nemesis_run(&clocks_fixture->nemesis, STORM);
    EXPECT(nemesis_relent(&clocks_fixture->nemesis));
    clocks_fixture->phase = PHASE_FRESH;
    EXPECT(world_run_until(clocks_fixture->sim.world, is_fresh_over, clocks_fixture, HOUR));
    nemesis_set_clocks(&clocks_fixture->nemesis, clocks_fixture->nemesis.clock_ahead_max);
    EXPECT(world_run_until(clocks_fixture->sim.world, is_done, clocks_fixture, HOUR));
}

static void
run_storm(uint64_t seed, struct probes *probes)
{
    struct clocks_fixture *clocks_fixture = memory_zalloc(1, sizeof *clocks_fixture);
    sim_open_cluster(&clocks_fixture->sim, &(struct world_options){.seed = seed}, 3, 2);
    clocks_fixture->nemesis = (struct nemesis){.sim = &clocks_fixture->sim,
                                               .pause_max = 3 * NS_PER_S,
                                               .is_at_commits = seed % 2 == 0,
                                               .clock_step_max = STEP_MAX};
    for (unsigned i = 0; i < clocks_fixture->sim.count; i++)
        sim_host_start(&clocks_fixture->sim.hosts[i]);
    for (int round = 0; round < ROUNDS && clocks_fixture->verdict.violation == NULL; round++)
        run_round(clocks_fixture);
    if (clocks_fixture->verdict.violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)seed, clocks_fixture->verdict.violation);
    probes_add(probes, clocks_fixture->sim.world);
    sim_close(&clocks_fixture->sim);
    memory_free(clocks_fixture);
}

TEST(clocks_sim, a_timer_fires_in_time_whatever_the_wall_clocks_were_set_to)
{
    struct probes probes = {.usual = {"clock_set_back", "clock_set_ahead", "wakeup_level_lowered",
                                      "shard_lost", "crash_while_serving"}};
    for (int i = 0; i < test_seed_count(); i++)
        run_storm(test_seed(i), &probes);
    probes_expect(&probes, 3);
}
