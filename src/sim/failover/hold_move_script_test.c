/* hold_move_script_test.c - calls that wait for a draining region when the workflow moves: its
 * entity goes to another region.
 *
 * What is at stake: calls about one workflow are carried out in the order in which they came, also
 * when the first of them waits in one cluster and the workflow goes on in another meanwhile. The
 * domain has region0 in cluster0, region1 and region2 in cluster1; region1 drains to cluster0, and
 * no shard hands over, so that takes its time. Cluster2 only passes calls on. */
#include "sim/entity/entity_script.h"
#include "sim/failover/hold_script.h"

#define CLUSTERS     3
#define MOVED_WITHIN (500 * NS_PER_MS) /* all clusters have heard of an entity's move */

/* Where the two signals are sent to, and the region that the entity goes to. */
struct overtaking_case {
    unsigned first, second;
    const char *region;
};

static void
drain_region(struct script *script, const char *region, unsigned to)
{
    struct load_call call = {.clients = script->clients, .host = to, .arena = script->arena};
    struct load_attribute attribute = {"region", region,
                                       arena_format(script->arena, "cluster%u", to)};
    struct load_failover failover = {
        .name = SCRIPT_DOMAIN, .attribute = &attribute, .timeout = DRAIN / NS_PER_S};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    EXPECT_OK(load_failover(&call, &failover, &domain));
    fiber_set_deadline(NEVER);
    script_sleep(script, NS_PER_S); /* both have heard of it */
}

static void
play_overtaking(struct script *script)
{
    const struct overtaking_case *overtaking_case = script->fixture->test;
    struct callers callers;
    callers_init(&callers);
    entity_place(script, 0, "user", "ann", "region1");
    entity_start(script, 0, "w", "ann");
    script_expect_same(script, "w");
    int64_t end = clock_monotonic() + DRAIN;
    drain_region(script, "region1", 0);
    signal_later(&callers, script, overtaking_case->first, "w", "first");
    EXPECT_EQ(world_probe_count(script->sim->world, "call_held"), 1);
    entity_place(script, 0, "user", "ann", overtaking_case->region);
    script_sleep(script, MOVED_WITHIN);
    signal_later(&callers, script, overtaking_case->second, "w", "second");
    callers_expect_ok(&callers, 0);
    EXPECT(clock_monotonic() < end - NS_PER_S); /* the drain is of no more interest */
    script_expect_same(script, "w");
    EXPECT_TEXT(signals_of(script, 0, "w"), "first second");
}

/* The entity moves in a cluster that does not hear the other: the first signal waits for as long as
 * it may, and the second one behind it. */
static void
play_unheard(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    entity_place(script, 0, "user", "ann", "region1");
    entity_start(script, 0, "w", "ann");
    script_expect_same(script, "w");
    drain_region(script, "region1", 0);
    signal_later(&callers, script, 1, "w", "first"); /* it is sent to cluster0, and waits there */
    entity_place(script, 0, "user", "ann", "region2");
    signal_later(&callers, script, 1, "w", "second"); /* cluster1 may have heard, or not yet */
    signal_later(&callers, script, 0, "w", "third");
    callers_expect_ok(&callers, 0);
    script_expect_same(script, "w");
    EXPECT_TEXT(signals_of(script, 0, "w"), "first second third");
}

static const struct load_attribute regions[] = {{"region", "region0", "cluster0"},
                                                {"region", "region1", "cluster1"},
                                                {"region", "region2", "cluster1"}};

static void
play_on(void (*run)(struct script *script), void *test)
{
    static const struct script_attributes attributes = {
        .all = regions, .count = array_length(regions), .has_regions = true, .is_forwarded = true};
    script_play_on(&(struct script_fixture){.clusters = CLUSTERS,
                                            .dynamic = NO_MARKERS,
                                            .attributes = &attributes,
                                            .run = run,
                                            .test = test});
}

TEST(hold_move, a_signal_that_waits_is_not_overtaken_when_the_entity_of_its_workflow_moves, "F-042")
{
    static const char *const to[] = {"region0", "region2"};
    for (unsigned i = 0; i < 18; i++) {
        struct overtaking_case overtaking_case = {
            .first = i % 3, .second = i / 3 % 3, .region = to[i / 9]};
        play_on(play_overtaking, &overtaking_case);
    }
}

TEST(hold_move, signals_right_behind_the_move_keep_their_order)
{
    play_on(play_unheard, NULL);
}
