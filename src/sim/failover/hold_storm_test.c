/* hold_storm_test.c - signals that are sent one after the other while everything moves that
 * decides where their workflow is.
 *
 * Each workflow belongs to an entity and has one sender, which sends numbered signals to one
 * cluster, the next one whether the last is answered or not. Regions drain from cluster to cluster,
 * which takes seconds here since no shard hands over, and entities go from region to region. No
 * call fails, and in the end every history has the signals in the order in which they were sent.
 * (An entity's move is one by force: where a signal was taken that the next cluster had not heard
 * of, it is applied again behind later ones. Histories say so, and such a storm proves nothing.) */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "fiber/fiber.h"
#include "sim/entity/entity_script.h"
#include "sim/failover/hold_script.h"

#define CLUSTERS  3
#define WORKFLOWS 4
#define SIGNALS   40
#define MOVES     24

struct storm {
    struct script *script;
    struct random random;
    struct latch latch; /* senders */
    unsigned drains, entity_moves, refused;
};

struct sender {
    struct storm *storm;
    unsigned number;
    const char *id;
    struct callers callers;
};

struct outcome {
    unsigned storms, forked, held, behind, away;
};

static const struct load_attribute regions[] = {{"region", "region0", "cluster0"},
                                                {"region", "region1", "cluster1"},
                                                {"region", "region2", "cluster2"}};
static const char *const users[] = {"ann", "bob"};

static unsigned
chance(struct storm *storm, unsigned below)
{
    return (unsigned)random_below(&storm->random, below);
}

/* --- who sends ---- */

static void
send_signals(void *argument)
{
    struct sender *sender = argument;
    struct storm *storm = sender->storm;
    unsigned cluster = chance(storm, CLUSTERS);
    for (unsigned i = 0; i < SIGNALS; i++) {
        signal_later(&sender->callers, storm->script, cluster, sender->id,
                     arena_format(storm->script->arena, "%u", i));
        script_sleep(storm->script, (int64_t)(100 + chance(storm, 900)) * NS_PER_MS);
    }
    latch_done(&storm->latch);
}

/* --- who moves ---- */

/* It may be under way already, or there: then nothing happens. */
static void
drain_region(struct storm *storm)
{
    struct script *script = storm->script;
    unsigned to = chance(storm, CLUSTERS);
    struct load_call call = {.clients = script->clients, .host = to, .arena = script->arena};
    struct load_attribute attribute = regions[chance(storm, CLUSTERS)];
    attribute.cluster = arena_format(script->arena, "cluster%u", to);
    struct load_failover failover = {
        .name = SCRIPT_DOMAIN, .attribute = &attribute, .timeout = 1 + chance(storm, 4)};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    bool is_begun = load_failover(&call, &failover, &domain) == NULL;
    fiber_set_deadline(NEVER);
    storm->drains += is_begun;
    storm->refused += !is_begun;
}

static void
move_all(struct storm *storm)
{
    for (unsigned i = 0; i < MOVES; i++) {
        script_sleep(storm->script, (int64_t)(300 + chance(storm, 1200)) * NS_PER_MS);
        if (chance(storm, 2) == 0) {
            drain_region(storm);
            continue;
        }
        entity_place(storm->script, chance(storm, CLUSTERS), "user", users[chance(storm, 2)],
                     regions[chance(storm, CLUSTERS)].name);
        storm->entity_moves++;
    }
}

/* --- what is expected ---- */

static const char *
all_signals(struct script *script)
{
    const char *names = "0";
    for (unsigned i = 1; i < SIGNALS; i++)
        names = arena_format(script->arena, "%s %u", names, i);
    return names;
}

static void
expect_order(struct storm *storm, struct sender *sender, bool is_forked)
{
    callers_expect_ok(&sender->callers, 0);
    script_expect_same(storm->script, sender->id);
    if (!is_forked)
        EXPECT_TEXT(signals_of(storm->script, 0, sender->id), all_signals(storm->script));
}

static void
play_storm(struct script *script)
{
    struct outcome *sum = (struct outcome *)script->fixture->test;
    struct storm storm = {.script = script};
    struct sender *senders = arena_zalloc(script->arena, WORKFLOWS, sizeof *senders);
    uint64_t seed;
    entropy_bytes(&seed, sizeof seed);
    random_seed(&storm.random, seed);
    latch_init(&storm.latch, WORKFLOWS);
    for (unsigned i = 0; i < 2; i++)
        entity_place(script, 0, "user", users[i], regions[i].name);
    for (unsigned i = 0; i < WORKFLOWS; i++) {
        senders[i] = (struct sender){
            .storm = &storm, .number = i, .id = arena_format(script->arena, "w%u", i)};
        callers_init(&senders[i].callers);
        entity_start(script, 0, senders[i].id, users[i % 2]);
        script_expect_same(script, senders[i].id);
        fiber_start("sender", send_signals, &senders[i]);
    }
    move_all(&storm);
    latch_wait(&storm.latch);
    bool is_forked = world_probe_count(script->sim->world, "history_forked") > 0;
    for (unsigned i = 0; i < WORKFLOWS; i++)
        expect_order(&storm, &senders[i], is_forked);
    sum->storms++;
    sum->forked += is_forked;
    sum->held += (unsigned)world_probe_count(script->sim->world, "call_held");
    sum->behind += (unsigned)world_probe_count(script->sim->world, "call_held_behind");
    sum->away += (unsigned)world_probe_count(script->sim->world, "call_before_its_cluster");
}

TEST(hold_storm, signals_keep_their_order_wherever_regions_and_entities_go, "F-042")
{
    struct outcome sum = {0};
    for (int i = 0; i < test_seed_count(); i++) {
        struct script_attributes attributes = {.all = regions,
                                               .count = array_length(regions),
                                               .has_regions = true,
                                               .is_forwarded = true,
                                               .seed_index = i};
        script_play_on(&(struct script_fixture){.clusters = CLUSTERS,
                                                .dynamic = NO_MARKERS,
                                                .attributes = &attributes,
                                                .run = play_storm,
                                                .test = &sum});
    }
    printf("    %u storms, %u of them without a fork; %u calls waited, %u behind others; %u times "
           "a cluster had not heard of a move\n",
           sum.storms, sum.storms - sum.forked, sum.held, sum.behind, sum.away);
    if (test_seed_count() > 4)
        EXPECT(sum.forked < sum.storms && sum.held > 0 && sum.behind > 0);
}
