/* domains_follow_test.c - a follower of the log as a shard will be: it stores how far it got in the
 * same commit as the effect.
 *
 * What is at stake: every change of a domain has its effect in the shard once, in order, whenever
 * the shard is lost. Method: a follower that handles a few changes at a time and forgets what it
 * knows at seeded moments: before its commit, after it, after it told the log. What it left in the
 * store is then compared with the log. */
#include "base/random.h"
#include "base/test.h"
#include "domain/test/cluster_pair.h"
#include "store/key.h"

#define SHARD   PARTITION_OF_SHARD(7)
#define CHANGES 120

struct follower {
    struct cluster_pair *cluster_pair;
    struct random random;
    uint64_t handled; /* what it remembers; the store knows better after a loss */
    unsigned losses;
};

static struct slice
key_of(uint64_t number, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, number);
    return key_end(&key);
}

/* Starts again with what the store has. */
static void
follower_begin(struct follower *follower)
{
    struct arena *arena = follower->cluster_pair->arena;
    bool is_found = false;
    struct slice value;
    EXPECT_OK(store_get(follower->cluster_pair->side[EAST].store, SHARD, ROW_SHARD,
                        key_of(0, arena), arena, &is_found, &value));
    follower->handled = 0;
    if (is_found)
        EXPECT(key_take_u64(&value, &follower->handled));
}

static bool
is_lost(struct follower *follower)
{
    bool is_lost = random_below(&follower->random, 6) == 0;
    follower->losses += is_lost;
    return is_lost;
}

/* The effect and the place, in one commit. An effect that is there already would be a second one.
 */
static void
follower_commit(struct follower *follower, const struct domain_changes *changes)
{
    struct arena *arena = follower->cluster_pair->arena;
    struct store *store = follower->cluster_pair->side[EAST].store;
    uint64_t guard = 0;
    EXPECT_OK(store_guard(store, SHARD, arena, &guard));
    struct batch *batch = batch_new(arena, SHARD, guard + 1);
    for (size_t i = 0; i < changes->count; i++) {
        bool is_there = false;
        struct slice value, key = key_of(changes->version[i], arena);
        EXPECT_OK(store_get(store, SHARD, ROW_RUN, key, arena, &is_there, &value));
        EXPECT(!is_there);
        batch_put(batch, ROW_RUN, key, slice_text(changes->change[i]->record->domain->name));
    }
    uint64_t handled = changes->version[changes->count - 1];
    batch_put(batch, ROW_SHARD, key_of(0, arena), key_of(handled, arena));
    EXPECT_OK(store_commit(store, batch, guard, arena));
    follower->handled = handled;
}

static void
follower_step(struct follower *follower)
{
    struct cluster_pair *cluster_pair = follower->cluster_pair;
    struct domain_changes changes = cluster_pair_read_log(cluster_pair, EAST, follower->handled,
                                                          1 + random_below(&follower->random, 5));
    EXPECT(!changes.is_cut); /* the log waits for us */
    if (changes.count == 0 || is_lost(follower)) {
        follower_begin(follower);
        return;
    }
    follower_commit(follower, &changes);
    if (is_lost(follower)) {
        follower_begin(follower);
        return;
    }
    EXPECT_OK(domains_set_follower_position(cluster_pair_domains(cluster_pair, EAST), "shard:7",
                                            follower->handled, cluster_pair->arena));
    if (is_lost(follower)) {
        cluster_pair_reopen(cluster_pair, EAST); /* the whole process this time */
        follower_begin(follower);
    }
}

PAIR_TEST(domain_follow, a_follower_that_is_lost_at_any_moment_has_each_effect_once_and_in_order,
          cluster_pair_run(1, body), "D-045")
{
    struct follower follower = {.cluster_pair = cluster_pair};
    random_seed(&follower.random, test_seed(test_seed_count() - 1));
    cluster_pair_register(cluster_pair, EAST, "a", true);
    EXPECT_OK(domains_set_follower_position(cluster_pair_domains(cluster_pair, EAST), "shard:7", 0,
                                            cluster_pair->arena));
    for (int i = 2; i <= CHANGES; i++) {
        cluster_pair_failover(cluster_pair, EAST, "a", i % 2 == 0 ? WEST : EAST);
        follower_step(&follower);
    }
    while (follower.handled < CHANGES)
        follower_step(&follower);
    EXPECT(follower.losses > 10);

    struct rows rows;
    struct scan scan = {.partition = SHARD, .kind = ROW_RUN};
    EXPECT_OK(store_scan(cluster_pair->side[EAST].store, &scan, cluster_pair->arena, &rows));
    EXPECT_EQ(rows.count, CHANGES); /* one effect for each change */
    for (size_t i = 0; i < rows.count; i++) {
        uint64_t version = 0;
        EXPECT(key_take_u64(&rows.row[i].key, &version));
        EXPECT_EQ(version, i + 1);
    }
}
