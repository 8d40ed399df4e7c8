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
#include "sim/workflow/workflow_load.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"

static const struct probes usual_probes = {
    .usual = {"crash_while_serving",
              "crash_while_starting",
              "clean_stop",
              "cut_inbound",
              "cut_outbound",
              "break",
              "shard_taken",
              "shard_lost",
              "task_offered_again",
              "task_offered_early",
              "task_started_with_its_step",
              "reservation_released",
              "delivery_in_doubt",
              "history_recalled",
              "decision_timed_out",
              "activity_retried",
              "wakeup_rearmed",
              "buffered_flushed",
              "request_repeated",
              "poll_withdrawn",
              "continued_as_new",
              "unhandled_decision",
              "crash_with_lost_writes",
              "crash_with_landed_writes",
              "child_started",
              "child_start_repeated",
              "child_canceled_by_parent",
              "child_terminated_by_parent",
              "parent_notified",
              "external_signaled",
              "external_canceled",
              "cross_task_retried",
              "child_continued_as_new",
              "query_rides_on_decision",
              "query_set_free",
              "strong_query_answered",
              "eventual_query_answered",
              "run_reset",
              "reset_of_a_run",
              "reset_of_a_chain",
              "reset_signal_reapplied",
              "reset_page_written_ahead",
              "cron_fired",
              "run_tried_again",
              "child_by_schedule",
              "child_tried_again",
              "cron_after_reset",
              "accepted_started",
              "accepted_signaled",
              "accepted_repeated",
              "accepted_dropped",
              "accepted_waits_in_queue",
              "accepted_start_found",
              "committed_list_answered",
              "visible_rows_read_back",
              "visible_rows_trimmed",
              "visibility_synced"},
};
/* Storms that aim at commits, with observers and a busy id. */
static const struct probes hard_probes = {
    .usual = {"crash_at_commit",
              "crash_with_lost_writes",
              "crash_with_landed_writes",
              "shard_lost",
              "overtaken_owner_read",
              "history_observed",
              "request_repeated",
              "poller_gone_before_start",
              "task_returned",
              "buffered_flushed",
              "step_tried_again",
              "poll_start_void",
              "stored_task_returned",
              "task_list_lost",
              "notified_that_it_is_over",
              "committed_list_answered",
              "visible_rows_read_back",
              "visible_rows_trimmed",
              "crash_with_lost_visibility",
              "visibility_deleted",
              "visibility_rebuilt"},
};

#define FEW_SEEDS 9                      /* they need not come to everything */
#define RETENTION (24 * 3600 * NS_PER_S) /* of the domain of all workflows */
#define SETTINGS                                                                                   \
    "system.workflowDeletionJitterRange: [{value: 0}]\n"                                           \
    "history.EnableConsistentQueryByDomain: [{value: true}]\n"

#define LIMITS                                                                                     \
    "history.workflowIDExternalRPS: [{value: 3}]\n"                                                \
    "history.workflowIDInternalRPS: [{value: 1}]\n"

/* Storms in which the domain moves. */
static const struct probes moving_probes = {
    .usual = {"domain_moved_and_back", "step_not_active_here", "shard_handled_failover",
              "shard_handled_changes_together", "domain_version_awaited",
              "domain_changes_caught_up", "task_held", "cross_task_held", "wakeup_held",
              "held_row_woken", "stored_task_kept_by_shard", "task_waits_for_its_domain",
              "shard_lost", "crash_at_commit", "crash_with_landed_writes"},
};

/* Storms with lists of several partitions. */
static const struct probes divided_probes = {
    .usual = {"divided_by_hand", "task_list_divided", "task_visits_a_partition",
              "task_visited_in_vain", "task_page_read", "shard_lost", "task_returned",
              "poll_withdrawn", "crash_while_serving"},
};

/* Storms with limits for each workflow id. */
static const struct probes limited_probes = {
    .usual = {"limits_task_delayed", "limits_call_refused", "row_deferred", "throttled_tasks_read",
              "deferred_row_returned", "accepted_started", "shard_lost", "crash_at_commit",
              "task_offered_again", "task_held", "cross_task_held", "wakeups_beyond_memory"},
};

/* Storms of parents that are ended at once. A child that asks for its parent takes a crash in the
 * right moment: thirty seeds may have fifty of them or none. orphan_script_test makes one each
 * time. */
static const struct probes hasty_probes = {
    .usual = {"child_unrecorded", "child_canceled_by_parent", "child_terminated_by_parent",
              "cross_task_retried", "shard_lost"},
    .rare = {"orphan_ended", "parent_asked"},
};

/* Of all storms of a test together, except the trace. */
struct outcome {
    uint64_t trace, steps, workflows, repeats, dropped, queries, queries_answered;
    struct probes probes;
};

struct storm {
    uint64_t seed;
    unsigned hosts, clients, workers, workflows_max;
    int64_t duration, think_max, pause_max;
    int64_t sync_max;          /* of the disk, ns; 0: as usual */
    int64_t patience_max;      /* workflow_load.h */
    int64_t mailbox_delay_max; /* between the loops of a host; 0: as usual */
    bool is_at_commits, is_crowded, is_moving, is_divided, is_hasty, is_signaling;
    bool is_limited;                   /* a workflow id has few calls and tasks a second */
    size_t transfers_max, wakeups_max; /* of each shard, in memory; 0: as usual */
    unsigned observers, busy_signals;  /* workflow_load.h */
    bool has_retention_passed;         /* in the end, and closed runs are gone */
};

/* A day passes quietly; then, while the runs go, harm is done again. */
static const char *
pass_retention(struct nemesis *nemesis, struct workflow_load *load)
{
    world_run_for(nemesis->sim->world, RETENTION - 600 * NS_PER_S);
    nemesis_run(nemesis, 600 * NS_PER_S);
    EXPECT(nemesis_relent(nemesis));
    world_run_for(nemesis->sim->world, 600 * NS_PER_S);
    return workflow_load_verify_gone(load);
}

static void
run_storm(const struct storm *storm, struct outcome *sum)
{
    struct sim sim;
    sim_open_cluster(
        &sim,
        &(struct world_options){.seed = storm->seed, .mailbox_delay_max = storm->mailbox_delay_max},
        storm->hosts, 2);
    sim.dynamic =
        storm->is_crowded ? SETTINGS "matching.maxTasksInMemory: [{value: 1}]\n" : SETTINGS;
    if (storm->is_limited)
        sim.dynamic = SETTINGS LIMITS;
    sim.transfers_max = storm->transfers_max;
    sim.wakeups_max = storm->wakeups_max;
    if (storm->sync_max > 0)
        memory_base_set_delays(sim.hosts[0].base, storm->sync_max, storm->sync_max, NS_PER_MS);
    if (storm->is_moving)
        sim_be_one_of_two(&sim);
    for (unsigned i = 0; i < sim.count; i++)
        sim_host_start(&sim.hosts[i]);
    struct workflow_load *load =
        workflow_load_start(&sim, &(struct workflow_options){.clients = storm->clients,
                                                             .workers = storm->workers,
                                                             .observers = storm->observers,
                                                             .is_divided = storm->is_divided,
                                                             .workflows_max = storm->workflows_max,
                                                             .busy_signals = storm->busy_signals,
                                                             .think_max = storm->think_max,
                                                             .is_moving = storm->is_moving,
                                                             .is_hasty = storm->is_hasty,
                                                             .is_signaling = storm->is_signaling,
                                                             .patience_max = storm->patience_max});
    struct nemesis nemesis = {
        .sim = &sim, .pause_max = storm->pause_max, .is_at_commits = storm->is_at_commits};
    nemesis_run(&nemesis, storm->duration);
    EXPECT(nemesis_relent(&nemesis));
    const char *violation = workflow_load_verify(load);
    if (violation == NULL && storm->has_retention_passed)
        violation = pass_retention(&nemesis, load);
    if (violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, violation);
    sum->trace = world_trace_hash(sim.world);
    sum->steps += world_steps(sim.world);
    sum->workflows += load->entry_count;
    sum->repeats += load->repeats;
    sum->dropped += load->tasks_dropped;
    sum->queries += load->queries;
    sum->queries_answered += load->queries_answered;
    probes_add(&sum->probes, sim.world);
    workflow_load_free(load);
    sim_close(&sim);
}

/* One storm for each `share` seeds. */
static struct outcome
run_storms(struct storm (*make)(uint64_t seed), int share, const struct probes *wanted)
{
    struct outcome sum = {.probes = *wanted};
    for (int i = 0; i < (test_seed_count() + share - 1) / share; i++) {
        struct storm storm = make(test_seed(i));
        run_storm(&storm, &sum);
    }
    return sum;
}

static void
expect_storms(struct storm (*make)(uint64_t seed), const struct probes *wanted)
{
    struct outcome sum = run_storms(make, 1, wanted);
    probes_expect(&sum.probes, FEW_SEEDS);
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

TEST(workflow_sim, every_workflow_ends_with_what_was_acknowledged_whatever_crashes, "J-017")
{
    struct outcome sum = run_storms(usual_storm, 1, &usual_probes);
    printf("    %llu queries, %llu of them answered\n", (unsigned long long)sum.queries,
           (unsigned long long)sum.queries_answered);
    printf("    %llu workflows, %llu repeated calls, %llu tasks dropped by workers\n",
           (unsigned long long)sum.workflows, (unsigned long long)sum.repeats,
           (unsigned long long)sum.dropped);
    EXPECT(sum.workflows > 0 && sum.repeats + sum.dropped > 0);
    probes_expect(&sum.probes, FEW_SEEDS);
}

/* Crashes aim at commits, the disk is slow in half of the storms, so that much is in flight; an id
 * is besieged with signals; observers look at what is not durable yet. Loop messages are
 * slow in some, so that pollers vanish between the match and the start. A host that is alone keeps
 * its shards: nothing that was forgotten is offered again by the next owner. */
static struct storm
hard_storm(uint64_t seed)
{
    struct storm storm = usual_storm(seed);
    storm.duration = 20 * NS_PER_S;
    storm.workflows_max = 30;
    storm.think_max = 300 * NS_PER_MS;
    storm.pause_max = 2 * NS_PER_S;
    storm.sync_max = seed % 2 == 0 ? 200 * NS_PER_MS : 0;
    storm.patience_max = 200 * NS_PER_MS;
    storm.mailbox_delay_max = seed % 3 == 0 || seed % 4 == 1 ? 20 * NS_PER_MS : 0;
    storm.is_at_commits = true;
    storm.is_crowded = seed % 4 < 2; /* task lists store what waits */
    storm.hosts = seed % 4 == 1 ? 1 : 3;
    storm.observers = 2;
    storm.busy_signals = 40;
    return storm;
}

TEST(workflow_sim, every_workflow_ends_with_what_was_acknowledged_when_crashes_aim_at_commits)
{
    expect_storms(hard_storm, &hard_probes);
}

/* A day later the runs go, whatever crashes then. */
static struct storm
retention_storm(uint64_t seed)
{
    struct storm storm = usual_storm(seed);
    storm.duration = 15 * NS_PER_S;
    storm.workflows_max = 20;
    storm.is_at_commits = true;
    storm.has_retention_passed = true;
    return storm;
}

TEST(workflow_sim, nothing_is_left_of_workflows_when_their_retention_has_passed)
{
    struct outcome sum = run_storms(retention_storm, 5, &(struct probes){.usual = {"run_deleted"}});
    probes_expect(&sum.probes, 0);
}

/* The domain moves to another cluster and back all the time, and is changed otherwise, while hosts
 * crash and take shards from each other. */
static struct storm
moving_storm(uint64_t seed)
{
    struct storm storm = hard_storm(seed);
    storm.is_moving = true;
    storm.sync_max = seed % 5 == 0 ? 100 * NS_PER_MS : 0;
    storm.busy_signals = 20;
    return storm;
}

TEST(workflow_sim, shards_follow_the_domains_in_order_and_once_whatever_crashes, "D-045", "D-046")
{
    expect_storms(moving_storm, &moving_probes);
}

/* An operator divides the lists into more and fewer partitions all the time; pollers vanish, most
 * tasks are stored, hosts crash and take each other's shards and lists. A host that is alone keeps
 * its shards: a task that got lost between partitions is never offered again. */
static struct storm
divided_storm(uint64_t seed)
{
    struct storm storm = usual_storm(seed);
    storm.duration = 25 * NS_PER_S;
    storm.workflows_max = 40;
    storm.think_max = 300 * NS_PER_MS;
    storm.patience_max = seed % 2 == 0 ? 300 * NS_PER_MS : 0;
    storm.mailbox_delay_max = seed % 3 != 0 ? 10 * NS_PER_MS : 0;
    storm.is_crowded = seed % 4 < 2;
    storm.hosts = seed % 2 == 1 ? 1 : 3;
    storm.is_divided = true;
    return storm;
}

TEST(workflow_sim, every_task_finds_its_poller_while_lists_are_divided_again, "C-016", "C-019")
{
    expect_storms(divided_storm, &divided_probes);
}

/* Each workflow id has few calls and tasks a second, and the outbox so little memory that what
 * waits is deferred: for its turn, and in half of the storms for the domain, which moves. Nothing
 * is lost of it, and all goes on. */
static struct storm
limited_storm(uint64_t seed)
{
    struct storm storm = hard_storm(seed);
    storm.sync_max = seed % 5 == 0 ? 100 * NS_PER_MS : 0;
    storm.is_moving = seed % 2 == 0;
    storm.is_limited = true;
    storm.transfers_max = 4 + seed % 3 * 6;
    storm.wakeups_max = 4;
    storm.clients = 12; /* few tasks of each id, and many ids: memory is short all the time */
    storm.workflows_max = 60;
    storm.busy_signals = 20;
    return storm;
}

TEST(workflow_sim, every_workflow_ends_though_each_has_its_limits_and_memory_is_short)
{
    expect_storms(limited_storm, &limited_probes);
}

/* Parents are terminated when they have just asked for their children, on a slow disk: an owner
 * that does not know that it was overtaken starts children of a parent that is closed already. Long
 * and crowded, for that comes in about each third storm. */
static struct storm
hasty_storm(uint64_t seed)
{
    struct storm storm = usual_storm(seed);
    storm.clients = 16;
    storm.duration = 90 * NS_PER_S;
    storm.workflows_max = 400;
    storm.think_max = 300 * NS_PER_MS;
    storm.pause_max = 8 * NS_PER_S;
    storm.sync_max = 300 * NS_PER_MS;
    storm.observers = 2;
    storm.is_hasty = true;
    return storm;
}

TEST(workflow_sim, no_child_waits_for_a_parent_that_was_ended_at_once)
{
    expect_storms(hasty_storm, &hasty_probes);
}

/* Parents signal children that go on as other runs, while shards change hands all the time: a
 * signal whose delivery could not be recorded is sent again, and its run has gone on. */
static struct storm
signaling_storm(uint64_t seed)
{
    struct storm storm = usual_storm(seed);
    storm.duration = 20 * NS_PER_S;
    storm.workflows_max = 40;
    storm.clients = 8;
    storm.think_max = 200 * NS_PER_MS;
    storm.pause_max = 2 * NS_PER_S;
    storm.sync_max = 50 * NS_PER_MS;
    storm.observers = 2;
    storm.is_signaling = true;
    return storm;
}

TEST(workflow_sim, no_child_gets_a_signal_of_its_parent_twice)
{
    struct outcome sum =
        run_storms(signaling_storm, 4, &(struct probes){.usual = {"signal_found_in_old_run"}});
    probes_expect(&sum.probes, FEW_SEEDS);
}

/* Seeds that once found something, and still do with its fix taken back: docs/bugs.md. */
TEST(workflow_sim, what_was_found_once_stays_fixed)
{
    struct storm divided = divided_storm(20), limited = limited_storm(14);
    run_storm(&divided, &(struct outcome){0});
    run_storm(&limited, &(struct outcome){0});
}

TEST(workflow_sim, the_same_seed_gives_the_same_trace)
{
    struct storm storm = usual_storm(test_one_seed());
    storm.duration = 15 * NS_PER_S;
    struct outcome first = {0}, second = {0};
    run_storm(&storm, &first);
    run_storm(&storm, &second);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.steps, second.steps);
}
