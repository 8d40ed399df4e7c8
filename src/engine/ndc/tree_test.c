/* tree_test.c - random trees of events: clusters write, fail over, hear of each other late and in
 * any order, and end with the same histories.
 *
 * The truth is kept as a tree of batches, each with the one before it. Whatever is decided from
 * version histories alone is compared with what the tree says. */
#include "base/random.h"
#include "base/test.h"
#include "engine/ndc/decide.h"
#include "engine/test/history_sample.h"

#define CLUSTERS    3
#define OBSERVERS   2 /* they only listen */
#define INCREMENT   10
#define BATCHES_MAX 60
#define ACTS        250

struct written {
    int64_t first_event_id, next_event_id, event_version;
    size_t parent;        /* the batch before it; itself: it begins the run */
    struct versions path; /* of the history up to its last event */
};

struct cluster {
    int64_t domain_version; /* as far as it has heard */
    struct run_branches local;
    bool has[BATCHES_MAX];
    uint8_t names; /* of branches, given out */
};

struct world {
    struct arena *arena;
    struct random random;
    int64_t domain_version;
    struct written batch[BATCHES_MAX];
    size_t count;
    struct cluster cluster[CLUSTERS + OBSERVERS]; /* cluster i has initial version i + 1 */
};

/* What happened, over all seeds: a test in which nothing does proves nothing. */
struct tally {
    int forks, switches, gaps, duplicates, extended_aside;
};

static size_t
below(struct world *world, size_t bound)
{
    return (size_t)random_below(&world->random, bound);
}

/* ---- the truth ---- */

static bool
is_ancestor(const struct world *world, size_t ancestor, size_t batch)
{
    while (batch != ancestor && world->batch[batch].parent != batch)
        batch = world->batch[batch].parent;
    return batch == ancestor;
}

/* No batch that the cluster has stands on it. */
static bool
is_leaf(const struct world *world, const struct cluster *cluster, size_t batch)
{
    for (size_t i = 0; i < world->count; i++)
        if (i != batch && cluster->has[i] && world->batch[i].parent == batch)
            return false;
    return cluster->has[batch];
}

static size_t
find_last(const struct world *world, struct version_item last)
{
    size_t i = 0;
    while (!version_item_equal(versions_last(world->batch[i].path), last))
        i++;
    return i;
}

/* The cluster's histories are the paths to its leaves, and the highest version is current. */
static void
expect_truth(const struct world *world, const struct cluster *cluster)
{
    size_t leaves = 0;
    int64_t highest = INT64_MIN;
    for (size_t i = 0; i < world->count; i++) {
        if (!is_leaf(world, cluster, i))
            continue;
        leaves++;
        highest = world->batch[i].event_version > highest ? world->batch[i].event_version : highest;
        struct version_item last = versions_last(world->batch[i].path);
        size_t index = branches_find_event(&cluster->local, last);
        EXPECT(index < cluster->local.count);
        EXPECT(versions_equal(cluster->local.branch[index].versions, world->batch[i].path));
    }
    EXPECT_EQ(cluster->local.count, leaves);
    EXPECT_EQ(versions_last(cluster->local.branch[0].versions).event_version, highest);
}

/* ---- events come ---- */

/* The newest ancestor that is here; its last event, or (0, 0). */
static struct version_item
expected_base(const struct world *world, const struct cluster *cluster, size_t batch)
{
    while (!cluster->has[batch]) {
        if (world->batch[batch].parent == batch)
            return (struct version_item){0};
        batch = world->batch[batch].parent;
    }
    return versions_last(world->batch[batch].path);
}

static void
accept(struct world *world, struct cluster *cluster, size_t index,
       const struct replicated_batch *batch, const struct batch_verdict *verdict,
       struct tally *tally)
{
    const struct written *written = &world->batch[index];
    bool is_first = written->parent == index;
    bool is_leaf_before = !is_first && is_leaf(world, cluster, written->parent);
    EXPECT_EQ(verdict->place, is_first         ? BATCH_BEGINS
                              : is_leaf_before ? BATCH_EXTENDS
                                               : BATCH_FORKS);
    EXPECT(is_first || cluster->has[written->parent]);
    struct history_branch fresh = sample_branch(++cluster->names);
    size_t current =
        is_first ? 0 : find_last(world, versions_last(cluster->local.branch[0].versions));
    cluster->local = batch_accept(&cluster->local, batch, verdict, &fresh, world->arena);
    cluster->has[index] = true;
    bool is_switch = !is_first && verdict->is_current && written->parent != current;
    EXPECT_EQ(verdict->is_switch, is_switch);
    tally->forks += verdict->place == BATCH_FORKS;
    tally->switches += verdict->is_switch;
    tally->extended_aside += verdict->place == BATCH_EXTENDS && !verdict->is_current;
    expect_truth(world, cluster);
}

/* The source may know more than it sends: its version history is that of any batch behind. */
static struct versions
random_claim(struct world *world, size_t batch)
{
    size_t other = below(world, world->count);
    return world->batch[is_ancestor(world, batch, other) ? other : batch].path;
}

static struct batch_verdict
deliver(struct world *world, struct cluster *cluster, size_t index, struct tally *tally)
{
    const struct written *written = &world->batch[index];
    struct replicated_batch batch = {.versions = random_claim(world, index),
                                     .first_event_id = written->first_event_id,
                                     .next_event_id = written->next_event_id,
                                     .event_version = written->event_version};
    struct batch_verdict verdict = batch_decide(&cluster->local, &batch);
    EXPECT(verdict.place != BATCH_IS_WRONG && verdict.place != BATCH_BEGINS_AT_RESET);
    EXPECT_EQ(verdict.place == BATCH_IS_KNOWN, cluster->has[index]);
    if (verdict.place == BATCH_IS_KNOWN)
        tally->duplicates++;
    else if (verdict.place != BATCH_LACKS_EVENTS)
        accept(world, cluster, index, &batch, &verdict, tally);
    return verdict;
}

/* Fetches what is missing, from the base on, then delivers it. */
static void
receive(struct world *world, struct cluster *cluster, size_t index, struct tally *tally)
{
    struct batch_verdict verdict = deliver(world, cluster, index, tally);
    if (verdict.place != BATCH_LACKS_EVENTS)
        return;
    tally->gaps++;
    EXPECT(version_item_equal(verdict.base, expected_base(world, cluster, index)));
    struct version_item end = {world->batch[index].first_event_id,
                               world->batch[index].event_version};
    EXPECT(version_item_equal(verdict.end, end));
    size_t missing = world->batch[index].parent;
    if (!cluster->has[missing])
        receive(world, cluster, missing, tally);
    verdict = deliver(world, cluster, index, tally);
    EXPECT(verdict.place == BATCH_EXTENDS || verdict.place == BATCH_FORKS);
}

/* ---- acts ---- */

/* The seed's rule: the smallest version of the cluster that is not lower. */
static void
act_fail_over(struct world *world)
{
    int64_t initial = (int64_t)below(world, CLUSTERS) + 1;
    while (world->domain_version % INCREMENT != initial)
        world->domain_version++;
    world->cluster[initial - 1].domain_version = world->domain_version;
}

static void
act_write(struct world *world, size_t who)
{
    struct cluster *cluster = &world->cluster[who];
    if (world->count == BATCHES_MAX || cluster->local.count == 0)
        return;
    struct version_item last = versions_last(cluster->local.branch[0].versions);
    int64_t version = cluster->domain_version;
    if (version % INCREMENT != (int64_t)who + 1 || last.event_version > version)
        return; /* not ours to change */
    struct version_item end = {last.event_id + 1 + (int64_t)below(world, 3), version};
    world->batch[world->count] = (struct written){
        .first_event_id = last.event_id + 1,
        .next_event_id = end.event_id + 1,
        .event_version = version,
        .parent = find_last(world, last),
        .path = versions_append(cluster->local.branch[0].versions, end, world->arena),
    };
    cluster->has[world->count++] = true;
    cluster->local = branches_append(&cluster->local, 0, end, world->arena);
    expect_truth(world, cluster);
}

static void
act(struct world *world, struct tally *tally)
{
    struct cluster *cluster = &world->cluster[below(world, CLUSTERS)];
    size_t what = below(world, 20);
    if (what < 2)
        act_fail_over(world);
    else if (what < 5)
        cluster->domain_version = world->domain_version;
    else if (what < 12)
        act_write(world, below(world, CLUSTERS));
    else
        receive(world, cluster, below(world, world->count), tally);
}

static void
begin_world(struct world *world, uint64_t seed, struct arena *arena)
{
    *world = (struct world){.arena = arena, .domain_version = 1, .count = 1};
    random_seed(&world->random, seed);
    for (size_t i = 0; i < CLUSTERS; i++)
        world->cluster[i].domain_version = 1;
    struct version_item last = {2, 1};
    world->batch[0] = (struct written){.first_event_id = 1, .next_event_id = 3, .event_version = 1};
    world->batch[0].path = versions_append((struct versions){0}, last, arena);
    struct history_branch root = sample_branch(0);
    world->cluster[0].local = branches_begin(&root, world->batch[0].path, arena);
    world->cluster[0].has[0] = true;
}

/* Everybody hears everything, each in an order of its own. */
static void
deliver_all(struct world *world, struct tally *tally)
{
    for (size_t i = 0; i < CLUSTERS + OBSERVERS; i++) {
        for (size_t j = 0; j < 2 * world->count; j++)
            receive(world, &world->cluster[i], below(world, world->count), tally);
        for (size_t j = world->count; j > 0; j--)
            receive(world, &world->cluster[i], j - 1, tally);
    }
}

/* The newest common event of any two histories is where the tree says that they part. */
static void
expect_common(const struct world *world, size_t one, size_t other)
{
    size_t shared = one;
    while (!is_ancestor(world, shared, other))
        shared = world->batch[shared].parent;
    struct version_item there, back;
    EXPECT(versions_find_common(world->batch[one].path, world->batch[other].path, &there));
    EXPECT(versions_find_common(world->batch[other].path, world->batch[one].path, &back));
    EXPECT(version_item_equal(there, versions_last(world->batch[shared].path)));
    EXPECT(version_item_equal(there, back));
}

TEST(ndc_tree, clusters_that_hear_all_in_any_order_have_the_same_histories)
{
    struct tally tally = {0};
    for (int i = 0; i < test_seed_count() || i < 40; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct world world;
        begin_world(&world, test_seed(0) + (uint64_t)i, arena);
        for (int j = 0; j < ACTS; j++)
            act(&world, &tally);
        deliver_all(&world, &tally);
        for (size_t j = 0; j < CLUSTERS + OBSERVERS; j++) {
            const struct run_branches *local = &world.cluster[j].local;
            EXPECT_EQ(local->count, world.cluster[0].local.count);
            EXPECT_TEXT(sample_text(local->branch[0].versions, arena),
                        sample_text(world.cluster[0].local.branch[0].versions, arena));
            expect_truth(&world, &world.cluster[j]);
        }
        for (size_t one = 0; one < world.count; one++)
            for (size_t other = 0; other < world.count; other++)
                expect_common(&world, one, other);
    }
    EXPECT(tally.forks > 0 && tally.switches > 0 && tally.gaps > 0);
    EXPECT(tally.duplicates > 0 && tally.extended_aside > 0);
}
