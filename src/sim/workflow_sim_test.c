/* workflow_sim_test.c - three hosts of one cluster run workflows while hosts crash and lines are
 * cut.
 *
 * What is at stake: a shard is a log with one owner, tasks stand on their outbox rows, an answer
 * leaves only when it is durable, and whatever was lost is covered by a retry or a timeout. Method:
 * clients and unreliable workers at all hosts, the nemesis beside them; hosts steal shards from
 * each other whenever one starts or is asked. Then everything is healed, and every workflow must
 * end with exactly what was acknowledged in its history (workflow_load.h). */
#include <stdio.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "sim/nemesis.h"
#include "sim/workflow_load.h"

/* What the storms must have come to together, or they have proven little. */
static const char *const marks[] = {
    "crash_while_serving", "crash_while_starting", "clean_stop",
    "cut_inbound",         "cut_outbound",         "break",
    "shard_taken",         "shard_lost",           "task_offered_again",
    "decision_timed_out",  "activity_retried",     "alarm_rearmed",
    "buffered_flushed",    "request_repeated",     "poll_withdrawn",
    "continued_as_new",    "unhandled_decision",   "cron_fired",
    "run_tried_again",
};

struct outcome {
    uint64_t trace, steps, workflows, acknowledged, failed, repeats, dropped;
    uint64_t marks[array_length(marks)];
};

struct storm {
    uint64_t seed;
    unsigned hosts, clients, workers, workflows_max;
    int64_t duration, think_max, pause_max;
    int64_t sync_max; /* of the disk, ns; 0: as usual */
};

static struct outcome
run_storm(const struct storm *storm)
{
    struct sim sim;
    sim_open_cluster(&sim, &(struct world_options){.seed = storm->seed}, storm->hosts, 2);
    if (storm->sync_max > 0)
        memory_base_set_delays(sim.hosts[0].base, storm->sync_max, storm->sync_max, NS_PER_MS);
    for (unsigned i = 0; i < sim.count; i++)
        sim_host_start(&sim.hosts[i]);
    struct workflow_load *load = workflow_load_start(&sim, storm->clients, storm->workers,
                                                     storm->workflows_max, storm->think_max);
    struct nemesis nemesis = {.sim = &sim, .pause_max = storm->pause_max};
    nemesis_run(&nemesis, storm->duration);
    EXPECT(nemesis_relent(&nemesis));
    const char *violation = workflow_load_verify(load);
    struct outcome outcome = {
        .trace = world_trace_hash(sim.world),
        .steps = world_steps(sim.world),
        .workflows = load->entry_count,
        .acknowledged = load->acknowledged,
        .failed = load->failed,
        .repeats = load->repeats,
        .dropped = load->tasks_dropped,
    };
    if (violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, violation);
    for (size_t i = 0; i < array_length(marks); i++)
        outcome.marks[i] = world_mark_count(sim.world, marks[i]);
    workflow_load_free(load);
    sim_close(&sim);
    return outcome;
}

static void
expect_marks(const uint64_t counts[array_length(marks)])
{
    for (size_t i = 0; i < array_length(marks); i++)
        printf("    %-24s %llu\n", marks[i], (unsigned long long)counts[i]);
    for (size_t i = 0; i < array_length(marks); i++)
        EXPECT(counts[i] > 0);
}

static struct storm
usual_storm(uint64_t seed)
{
    return (struct storm){
        .seed = seed,
        .hosts = 3,
        .clients = 4,
        .workers = 12,
        .workflows_max = 60,
        .duration = 40 * NS_PER_S,
        .think_max = 600 * NS_PER_MS,
        .pause_max = 4 * NS_PER_S,
        .sync_max = seed % 3 == 0 ? 300 * NS_PER_MS : 0, /* a slow disk now and then */
    };
}

TEST(workflow_sim, every_workflow_ends_with_what_was_acknowledged_whatever_crashes)
{
    uint64_t counts[array_length(marks)] = {0}, workflows = 0, repeats = 0, dropped = 0;
    for (int i = 0; i < test_seed_count(); i++) {
        struct storm storm = usual_storm(test_seed(i));
        struct outcome outcome = run_storm(&storm);
        for (size_t m = 0; m < array_length(marks); m++)
            counts[m] += outcome.marks[m];
        workflows += outcome.workflows;
        repeats += outcome.repeats;
        dropped += outcome.dropped;
    }
    printf("    %llu workflows, %llu repeated calls, %llu tasks dropped by workers\n",
           (unsigned long long)workflows, (unsigned long long)repeats, (unsigned long long)dropped);
    EXPECT(workflows > 0 && repeats + dropped > 0);
    if (test_seed_count() > 3) /* few seeds need not come to everything */
        expect_marks(counts);
}

/* Seeds that once found something: docs/bugs.md. */
TEST(workflow_sim, what_was_found_once_stays_fixed)
{
    static const uint64_t seeds[] = {86, 229};
    for (size_t i = 0; i < array_length(seeds); i++) {
        struct storm storm = usual_storm(seeds[i]);
        run_storm(&storm);
    }
}

TEST(workflow_sim, the_same_seed_gives_the_same_trace)
{
    struct storm storm = usual_storm(test_seed(0));
    storm.duration = 15 * NS_PER_S;
    struct outcome first = run_storm(&storm), second = run_storm(&storm);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.steps, second.steps);
}
