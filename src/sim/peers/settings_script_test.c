/* settings_script_test.c - clusters of a group whose files do not agree.
 *
 * What is at stake: a failover version names a cluster by the group's numbers. A cluster that has
 * other numbers must not be followed, nor follow, and everybody says so with both values; and a
 * group that is changed file by file, as it must be, goes on meanwhile. Method: a cluster stops,
 * its file changes, it starts again. */
#include "cadenza/admin/v1/service.pb-c.h"
#include "sim/scripts/script.h"

#define SECTION       "failoverVersionIncrement: 10\n"
#define OTHER         "failoverVersionIncrement: 70\n"
#define MEMBERS       "  clusterGroup:\n"
#define NEWCOMER      "  clusterGroup:\n    newcomer: {enabled: false, initialFailoverVersion: 9}\n"
#define CONFLICT_HERE "failoverVersionIncrement is 10 here and 70 in cluster1"
#define CONFLICT_BACK "failoverVersionIncrement is 70 here and 10 in cluster0"

_Static_assert(SIM_GROUP_INCREMENT == 10, "SECTION has the number");

/* The cluster starts again with a part of its file replaced. */
static void
change_file(struct script *script, unsigned cluster, const char *from, const char *to)
{
    struct sim_host *host = &script->sim->hosts[cluster];
    const char *at = strstr(host->config, from);
    EXPECT(at != NULL);
    script_crash(script, cluster);
    host->config = arena_format(script->sim->arena, "%.*s%s%s", (int)(at - host->config),
                                host->config, to, at + strlen(from));
    script_restart(script, cluster);
}

/* What a cluster says of another one; NULL: it does not answer. */
static const STORE_API(Peer) *
peer_of(struct script *script, unsigned cluster, const char *name)
{
    ProtobufCMessage *answer = NULL;
    struct error *err =
        script_call(script, cluster, STORE_API_NEW(script->arena, describe_peers_request), &answer);
    if (err != NULL)
        return NULL;
    const STORE_API(DescribePeersResponse) *peers =
        (const STORE_API(DescribePeersResponse) *)answer;
    for (size_t i = 0; i < peers->n_peers; i++) {
        if (strcmp(peers->peers[i]->name, name) == 0)
            return peers->peers[i];
    }
    return NULL;
}

static void
await_conflict(struct script *script, unsigned cluster, const char *name, const char *says)
{
    int64_t limit = clock_monotonic() + 4 * WITHIN;
    const STORE_API(Peer) *peer = NULL;
    do {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 100 * NS_PER_MS);
        peer = peer_of(script, cluster, name);
    } while (peer == NULL || !peer->has_other_settings);
    if (strstr(peer->failure, says) == NULL)
        TEST_FAIL("cluster%u says of %s: %s", cluster, name, peer->failure);
}

static size_t
events_in(struct script *script, unsigned cluster)
{
    const API(History) *history = script_history(script, cluster, "w", "");
    return history == NULL ? 0 : history->n_events;
}

SCRIPT_TEST(settings_script, clusters_with_other_numbers_do_not_follow_each_other_and_say_why,
            script_play(3, 0, body))
{
    script_start(script, 0, "w");
    script_expect_same(script, "w");
    size_t before = events_in(script, 1);
    change_file(script, 1, SECTION, OTHER);
    await_conflict(script, 0, "cluster1", CONFLICT_HERE);
    await_conflict(script, 2, "cluster1", CONFLICT_HERE);
    await_conflict(script, 1, "cluster0", CONFLICT_BACK);
    EXPECT_OK(script_signal(script, 0, "w", "unheard"));
    script_await(script, 2, "w", before + 1); /* the others go on */
    script_sleep(script, 2 * WITHIN);
    EXPECT_EQ(events_in(script, 1), before);
    EXPECT(!peer_of(script, 0, "cluster2")->has_other_settings);

    change_file(script, 1, OTHER, SECTION);
    script_expect_same(script, "w");
    EXPECT_EQ(events_in(script, 1), before + 1);
    EXPECT(!peer_of(script, 1, "cluster0")->has_other_settings);
}

/* One file after the other: nobody waits for the last one. */
SCRIPT_TEST(settings_script, a_cluster_that_one_file_names_first_stops_nothing,
            script_play(3, 0, body))
{
    script_start(script, 0, "w");
    for (unsigned i = 0; i < 3; i++) {
        change_file(script, i, MEMBERS, NEWCOMER);
        script_expect_same(script, "w");
        struct error *err = script_signal(script, 0, "w", "s");
        while (err != NULL) { /* it takes its shards */
            script_sleep(script, 100 * NS_PER_MS);
            err = script_signal(script, 0, "w", "s");
        }
        script_expect_same(script, "w");
        EXPECT_EQ(events_in(script, 2), 3 + i); /* started, decision scheduled, signals */
    }
    EXPECT_EQ(world_probe_count(script->sim->world, "group_settings_differ"), 0);
}
