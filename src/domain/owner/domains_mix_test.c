/* domains_mix_test.c - two clusters that change the same domains at random, while messages are
 * carried late, twice, and from far behind, and either owner is closed and read again. When
 * everything was carried, both hold the same. */
#include "base/random.h"
#include "base/test.h"
#include "domain/test/cluster_pair.h"

#define STEPS    120
#define NAMES    4
#define BACK_MAX 90 /* the log keeps the newest 100 in any case */

struct mix {
    struct cluster_pair *cluster_pair;
    struct random random;
    uint64_t seed;
};

static int
pick(struct mix *mix, int count)
{
    return (int)random_below(&mix->random, (uint64_t)count);
}

static bool
exists(struct mix *mix, int side, const char *name)
{
    return domains_find_name(cluster_pair_domains(mix->cluster_pair, side), name) != NULL;
}

static void
change(struct mix *mix)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d"};
    const char *name = names[pick(mix, NAMES)];
    int side = pick(mix, 2), what = pick(mix, 10);
    if (what < 2 && !exists(mix, EAST, name)) {
        cluster_pair_register(mix->cluster_pair, EAST, name, true);
    } else if (what < 7 && exists(mix, side, name)) {
        cluster_pair_failover(mix->cluster_pair, side, name, pick(mix, CLUSTER_PAIR_GROUP_SIZE));
    } else if (what < 9 && exists(mix, EAST, name)) {
        cluster_pair_describe(mix->cluster_pair, EAST, name,
                              arena_format(mix->cluster_pair->arena, "%d", pick(mix, 1000)));
    } else if (exists(mix, EAST, name) && pick(mix, 4) == 0) {
        cluster_pair_delete(mix->cluster_pair, EAST, name);
    }
}

/* As a follower does: then the log is trimmed behind it. */
static void
acknowledge(struct mix *mix, int from)
{
    struct arena *arena = mix->cluster_pair->arena;
    const char *follower = arena_format(arena, "cluster:%s", cluster_pair_group[!from].name);
    EXPECT_OK(domains_set_follower_position(cluster_pair_domains(mix->cluster_pair, from), follower,
                                            mix->cluster_pair->side[from].replicated, arena));
}

static void
carry(struct mix *mix)
{
    int from = pick(mix, 2);
    struct side *side = &mix->cluster_pair->side[from];
    uint64_t back = random_below(&mix->random, BACK_MAX);
    if (pick(mix, 4) == 0)
        side->replicated = side->replicated > back ? side->replicated - back : 0;
    cluster_pair_replicate(mix->cluster_pair, from);
    acknowledge(mix, from);
}

/* --- afterwards ---------------------------------------------------------------------------------
 */

static void
compare_domain(struct mix *mix, const struct domain *east)
{
    const struct domain *west =
        domains_find_name(cluster_pair_domains(mix->cluster_pair, WEST), east->name);
    EXPECT(west != NULL);
    const API(Domain) *one = east->record->domain, *other = west->record->domain;
    EXPECT_TEXT(other->id, one->id);
    EXPECT_TEXT(other->description, one->description);
    EXPECT_TEXT(other->active_cluster_name, one->active_cluster_name);
    EXPECT_EQ(other->failover_version, one->failover_version);
    EXPECT_EQ(west->record->config_version, east->record->config_version);
    EXPECT_EQ(one->failover_version % 10,
              cluster_group_find(&mix->cluster_pair->side[EAST].group, one->active_cluster_name)
                  ->initial_failover_version);
}

/* Is every failover of one site in the history of the other? */
static void
compare_history(struct mix *mix, int side, const char *id)
{
    struct domain_failovers here, there;
    struct arena *arena = mix->cluster_pair->arena;
    EXPECT_OK(domains_list_failovers(cluster_pair_domains(mix->cluster_pair, side), id,
                                     (struct slice){0}, 1000, arena, &here));
    EXPECT_OK(domains_list_failovers(cluster_pair_domains(mix->cluster_pair, !side), id,
                                     (struct slice){0}, 1000, arena, &there));
    for (size_t i = 0; i < here.count; i++) {
        bool is_found = false;
        for (size_t j = 0; j < there.count; j++)
            is_found |= there.failover[j]->failover_version == here.failover[i]->failover_version;
        if (!is_found)
            TEST_FAIL("seed %llu: %s knows failover version %lld of %s, the other does not",
                      (unsigned long long)mix->seed, cluster_pair_group[side].name,
                      (long long)here.failover[i]->failover_version, id);
    }
}

/* One row of the log for each version, unless its beginning was cut. */
static void
check_log(struct mix *mix, int side)
{
    uint64_t newest = domains_notification_version(cluster_pair_domains(mix->cluster_pair, side));
    struct domain_changes log = cluster_pair_read_log(mix->cluster_pair, side, 0, 1000);
    if (log.is_cut)
        return;
    uint64_t rows = log.count;
    while (log.count == 1000) {
        log = cluster_pair_read_log(mix->cluster_pair, side, log.version[log.count - 1], 1000);
        rows += log.count;
    }
    EXPECT_EQ(rows, newest);
}

static void
compare(struct mix *mix)
{
    struct domain *all[NAMES + 1];
    size_t count = domains_list(cluster_pair_domains(mix->cluster_pair, EAST), "", all, NAMES + 1);
    EXPECT_EQ(domains_count(cluster_pair_domains(mix->cluster_pair, WEST)), count);
    for (size_t i = 0; i < count; i++)
        domain_take(all[i]);
    for (size_t i = 0; i < count; i++) {
        compare_domain(mix, all[i]);
        compare_history(mix, EAST, all[i]->id);
        compare_history(mix, WEST, all[i]->id);
        domain_drop(all[i]);
    }
    for (int side = 0; side < 2; side++) {
        check_log(mix, side);
        uint64_t dead = 1;
        EXPECT_OK(domains_count_dead_letters(cluster_pair_domains(mix->cluster_pair, side),
                                             mix->cluster_pair->arena, &dead));
    }
}

PAIR_TEST(domain_mix, clusters_that_change_the_same_domains_at_random_come_to_the_same_end,
          cluster_pair_run(1, body))
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct mix mix = {.cluster_pair = cluster_pair, .seed = test_seed(i)};
        random_seed(&mix.random, mix.seed);
        for (int step = 0; step < STEPS; step++) {
            if (pick(&mix, 3) == 0)
                carry(&mix);
            else
                change(&mix);
            if (pick(&mix, 40) == 0)
                cluster_pair_reopen(cluster_pair, pick(&mix, 2));
        }
        for (int round = 0; round < 4; round++)
            cluster_pair_replicate(cluster_pair, round % 2);
        compare(&mix);
    }
}
