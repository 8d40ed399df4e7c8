/* graceful_third_test.c - a domain drains to a cluster that is behind a third one.
 *
 * What is at stake: the target has all of its source, and the source stands on what the third
 * cluster wrote before. Clusters do not pass on what they heard, so the target becomes active when
 * it has everything of the third one as well, and not before. Method: cluster 0 writes while
 * cluster 1 cannot hear it; the domain goes to cluster 2, and from there to cluster 1, which
 * hears cluster 0 just long enough to begin. */
#include "sim/scripts/script_drain.h"

#define THIRD   0
#define TARGET  1
#define SOURCE  2
#define TIMEOUT 300 /* seconds: nothing may come to this */
#define WAITING (30 * NS_PER_S)

static uint64_t
marked(const struct script *script, const char *probe)
{
    return world_probe_count(script->sim->world, probe);
}

static void
await_complete(struct script *script, uint64_t count)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    while (marked(script, "drain_complete") < count) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 100 * NS_PER_MS);
    }
}

/* All of the source has come, nothing of the third one: that is not "all". */
static void
expect_silence_is_reported(const API(FailoverInfo) *info)
{
    EXPECT(info != NULL && info->n_moves == 1);
    const API(FailoverProgress) *move = info->moves[0];
    EXPECT_EQ(move->n_clusters, 2);
    EXPECT_TEXT(move->clusters[0]->cluster, "cluster0");
    EXPECT_EQ(move->clusters[0]->shard_count, 0);
    EXPECT_TEXT(move->clusters[1]->cluster, "cluster2");
    EXPECT(move->clusters[1]->shard_count > 0);
    EXPECT_EQ(move->clusters[1]->ready_count, move->clusters[1]->shard_count);
    EXPECT_EQ(info->completed_shard_count, 0);
    EXPECT_EQ(info->n_pending_shards, (size_t)move->clusters[1]->shard_count);
}

static void
play_third(struct script *script)
{
    script_start(script, THIRD, "w");
    script_expect_same(script, "w");
    script_part(script); /* the third one and the target */
    EXPECT_OK(script_signal(script, THIRD, "w", "unheard"));
    script_begin_drain(script, SOURCE, TIMEOUT);
    await_complete(script, 1);
    script_sleep(script, 5 * NS_PER_S);
    EXPECT_EQ(script_count_signals(script_history(script, TARGET, "w", ""), "unheard"), 0);
    script_heal(script);
    script_begin_drain(script, TARGET, TIMEOUT); /* before it asks again for runs */
    script_part(script);
    script_sleep(script, WAITING);
    EXPECT_EQ(script_count_signals(script_history(script, TARGET, "w", ""), "unheard"), 0);
    EXPECT_EQ(marked(script, "drain_complete"), 1);
    expect_silence_is_reported(script_describe_domain(script, TARGET)->failover_info);
    EXPECT(script_signal(script, TARGET, "w", "too early") != NULL);
    script_heal(script);
    await_complete(script, 2);
    EXPECT_OK(script_signal(script, TARGET, "w", "heard"));
    script_expect_same(script, "w");
    const API(History) *history = script_history(script, TARGET, "w", "");
    EXPECT_EQ(script_count_signals(history, "unheard"), 1);
    EXPECT_EQ(script_count_signals(history, "heard"), 1);
    EXPECT_EQ(marked(script, "history_forked"), 0);
}

/* --- a chain of runs, longer than one fetch is deep ---------------------------------------------
 */

#define CHAIN 12

static void
go_on_as_new(struct script *script, unsigned cluster)
{
    API(Decision) *decision = API_DECISION(script->arena, continue_as_new_workflow_execution);
    script_decide(script, cluster, &decision, 1);
}

/* A cluster that heard of the first run hears of the last one, from the cluster that went on
 * with it: it asks for all between, and nothing gives way or counts as lost. */
static void
play_chain(struct script *script)
{
    script_start(script, THIRD, "w");
    script_expect_same(script, "w");
    script_part(script);
    for (int i = 0; i < CHAIN; i++) {
        EXPECT_OK(script_signal(script, THIRD, "w", "handled"));
        go_on_as_new(script, THIRD);
    }
    script_begin_drain(script, SOURCE, TIMEOUT);
    await_complete(script, 1);
    go_on_as_new(script, SOURCE);
    EXPECT_OK(script_signal(script, SOURCE, "w", "heard"));
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    while (script_count_signals(script_history(script, TARGET, "w", ""), "heard") == 0) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 100 * NS_PER_MS);
    }
    EXPECT(marked(script, "gap_is_deep") > 0);
    EXPECT_EQ(marked(script, "run_becomes_zombie"), 0);
    EXPECT_EQ(marked(script, "zombie_applied"), 0);
    script_heal(script);
    script_expect_same(script, "w");
    EXPECT_EQ(marked(script, "divergence_noted"), 0);
    EXPECT_EQ(script_count_signals(script_history(script, SOURCE, "w", ""), "handled"), 0);
}

TEST(graceful_script, a_chain_of_runs_is_fetched_however_long_it_is)
{
    script_play(3, 0, play_chain);
}

TEST(graceful_script, a_target_waits_for_what_a_third_cluster_wrote_before)
{
    script_play(3, 0, play_third);
}
