/* away_script_test.c - a cluster that was away for longer than changes are kept for it.
 *
 * What is at stake: the others do not fill their stores for it, and when it is back it has what
 * they have, though nobody can tell it step by step. A cluster that cannot read runs, as Cadence's,
 * finds everything that was kept. */
#include <stdlib.h>

#include "sim/script.h"

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
marked(struct script *script, const char *mark)
{
    return world_mark_count(script->sim->world, mark);
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

static void
away_and_back(struct script *script)
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

TEST(away, a_cluster_that_was_away_for_too_long_reads_the_runs)
{
    script_play(2, 0, away_and_back);
}

/* It crashes again and again while it reads; so does the one that it reads from. */
static void
crash_while_reading(struct script *script)
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

TEST(away, a_crash_while_it_reads_them_begins_it_anew)
{
    script_play(2, 0, crash_while_reading);
}

/* Cluster 2 asks once as Cadence's would, and is away then. */
static void
kept_for_cadence(struct script *script)
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

TEST(away, changes_for_a_cluster_that_cannot_read_runs_are_kept)
{
    script_play(3, 0, kept_for_cadence);
}
