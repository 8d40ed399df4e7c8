/* away_script_test.c - a cluster that was away for longer than changes are kept for it.
 *
 * What is at stake: the others do not fill their stores for it, and when it is back it has what
 * they have, though nobody can tell it step by step. A cluster that cannot read runs, as Cadence's,
 * finds everything that was kept. Markers of a graceful failover that were dropped come again. */
#include <stdlib.h>

#include "sim/scripts/script_drain.h"

#define FLOWS 12

static const char few_rows[] = "history.replicationRowsMax:\n- value: 3\n";

static void
bound_rows(struct script *script)
{
    script->sim->dynamic = few_rows; /* read when a host starts */
    for (unsigned i = 0; i < script->sim->count; i++) {
        script_crash(script, i);
        script_restart(script, i);
    }
    script_sleep(script, 3 * NS_PER_S);
}

static uint64_t
marked(struct script *script, const char *probe)
{
    return world_probe_count(script->sim->world, probe);
}

static const char *
name_of(struct script *script, unsigned number)
{
    return arena_format(script->arena, "w%u", number);
}

/* Some runs end, some go on; one has an activity that was tried before. */
static void
work_alone(struct script *script)
{
    for (unsigned i = 0; i < FLOWS; i++)
        script_start(script, 0, name_of(script, i));
    API(Decision) *activity = script_schedule_activity(script, true);
    API(Decision) *end = script_complete_workflow(script);
    for (unsigned i = 0; i < FLOWS; i++) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, 0, WITHIN);
        EXPECT(task != NULL);
        unsigned number = (unsigned)strtoul(task->workflow_execution->workflow_id + 1, NULL, 10);
        EXPECT_OK(script_complete(script, 0, task, number == 0 ? &activity : &end,
                                  number == 0 || number % 2 == 1));
    }
    for (unsigned i = 0; i < FLOWS; i += 2) /* those are open */
        EXPECT_OK(script_signal(script, 0, name_of(script, i), "late"));
    while (marked(script, "replication_rows_dropped") == 0)
        script_sleep(script, NS_PER_S);
}

SCRIPT_TEST(away, a_cluster_that_was_away_for_too_long_reads_the_runs, script_play(2, 0, body))
{
    bound_rows(script);
    script_start(script, 0, "before");
    script_expect_same(script, "before");
    script_part(script);
    work_alone(script);
    script_heal(script);
    EXPECT_OK(script_signal(script, 0, "before", "behind"));
    for (unsigned i = 0; i < FLOWS; i++)
        script_expect_same(script, name_of(script, i));
    script_expect_same(script, "before");
    EXPECT(marked(script, "replication_resynced") > 0);
    EXPECT(marked(script, "resync_fetched") > 0);
    script_start(script, 0, "afterwards"); /* rows are followed again */
    script_expect_same(script, "afterwards");
    script_failover(script, 1);
    EXPECT_OK(script_signal(script, 1, "before", "on the other side"));
    script_expect_same(script, "before");
}

/* It crashes again and again while it reads; so does the one that it reads from. */
SCRIPT_TEST(away, a_crash_while_it_reads_them_begins_it_again, script_play(2, 0, body))
{
    bound_rows(script);
    script_part(script);
    work_alone(script);
    script_heal(script);
    for (unsigned i = 0; i < 12; i++) {
        script_sleep(script, 20 * NS_PER_MS + i * 30 * NS_PER_MS);
        script_crash(script, i % 3 == 2 ? 0 : 1);
        script_restart(script, i % 3 == 2 ? 0 : 1);
    }
    for (unsigned i = 0; i < FLOWS; i++)
        script_expect_same(script, name_of(script, i));
    EXPECT(marked(script, "replication_resynced") > 0);
}

/* Cluster 2 asks once as Cadence's would, and is away then. */
SCRIPT_TEST(away, changes_for_a_cluster_that_cannot_read_runs_are_kept, script_play(3, 0, body))
{
    bound_rows(script);
    script_start(script, 0, "before");
    script_expect_same(script, "before");
    script_crash(script, 2);
    for (uint32_t shard = 0; shard < SIM_SHARDS; shard++)
        (void)script_messages(script, 0, "cluster2", shard, -1);
    for (unsigned i = 0; i < FLOWS; i++)
        script_start(script, 0, name_of(script, i));
    while (marked(script, "replication_rows_kept") == 0)
        script_sleep(script, NS_PER_S);
    script_sleep(script, 30 * NS_PER_S);
    EXPECT_EQ(marked(script, "replication_rows_dropped"), 0);
    script_restart(script, 2);
    for (unsigned i = 0; i < FLOWS; i++)
        script_expect_same(script, name_of(script, i));
    EXPECT_EQ(marked(script, "replication_resynced"), 0);
}

/* --- a domain drains meanwhile ---- */

#define SOURCE  0
#define TARGET  1
#define TIMEOUT 300 /* seconds: nothing may come to this */

static const char one_row[] = "history.replicationRowsMax:\n- value: 1\n";

/* Every run has a decision that is started, and a signal that waits for its end: these become rows
 * when the domain drains, and there are more of them than are kept. */
static void
keep_busy(struct script *script)
{
    for (unsigned i = 0; i < FLOWS; i++)
        script_start(script, SOURCE, name_of(script, i));
    for (unsigned i = 0; i < FLOWS; i++)
        EXPECT(script_poll(script, SOURCE, WITHIN) != NULL);
    for (unsigned i = 0; i < FLOWS; i++)
        EXPECT_OK(script_signal(script, SOURCE, name_of(script, i), "late"));
    script_sleep(script, 5 * NS_PER_S); /* the others have what there is */
}

/* The target goes away when it knows of the drain and the source cannot: later, and the markers may
 * be on their way already. */
static bool
is_begun(const struct script *script)
{
    const bool *is_away = script->fixture->test;
    return !*is_away && world_probe_count(script->sim->world, "drain_begun") > 0;
}

static void
part_from_target(struct script *script)
{
    bool *is_away = script->fixture->test;
    struct host *source = script->sim->hosts[SOURCE].host;
    struct host *target = script->sim->hosts[TARGET].host;
    world_cut(script->sim->world, source, target);
    world_cut(script->sim->world, target, source);
    *is_away = true;
}

static void
drain_to_one_away(struct script *script)
{
    keep_busy(script);
    uint64_t dropped = marked(script, "replication_rows_dropped");
    int64_t begin = clock_monotonic();
    script_begin_drain(script, TARGET, TIMEOUT); /* the third cluster tells the source of it */
    while (marked(script, "replication_rows_dropped") == dropped)
        script_sleep(script, NS_PER_S);
    EXPECT_EQ(marked(script, "drain_complete"), 0);
    script_heal(script);
    while (marked(script, "drain_complete") + marked(script, "drain_timed_out") == 0)
        script_sleep(script, NS_PER_S);
    EXPECT_EQ(marked(script, "drain_timed_out"), 0);
    EXPECT(clock_monotonic() < begin + TIMEOUT / 2 * NS_PER_S);
    EXPECT(marked(script, "markers_repeated") > 0);
    for (unsigned i = 0; i < FLOWS; i++) { /* what was before the markers is there */
        API(History) *history = script_history(script, TARGET, name_of(script, i), "");
        EXPECT_EQ(script_count_signals(history, "late"), 1);
        EXPECT_OK(script_signal(script, TARGET, name_of(script, i), "after"));
    }
}

TEST(away, a_domain_drains_to_a_cluster_that_has_to_read_the_runs)
{
    bool is_away = false;
    script_play_on(&(struct script_fixture){.clusters = 3,
                                            .dynamic = one_row,
                                            .run = drain_to_one_away,
                                            .is_due = is_begun,
                                            .act = part_from_target,
                                            .test = &is_away});
}
