/* Random things happen to a run and to its model, and the two never differ.
 *
 * What is at stake: commands, events and time meet in every order; the tests that tell one story
 * each cannot tell them all. Method: the same random thing is done to both, thousands of times, and
 * after each everything is compared: every event with what it points to, what is pending, the
 * outbox, when something is due next, and what the caller was told. */
#include <stdio.h>

#include "engine/command/test/model_world.h"

#define ACTS_PER_WORLD 150

/* A plain build can afford thousands. */
#if defined(__SANITIZE_ADDRESS__)
#define WORLDS_PER_SEED 75
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WORLDS_PER_SEED 75
#endif
#endif
#ifndef WORLDS_PER_SEED
#define WORLDS_PER_SEED 1000
#endif

/* How often what is worth testing happened. */
struct tally {
    uint64_t worlds, closes, retries, buffered, transients, late, repeats, paused;
};

static void
live(uint64_t seed, struct tally *tally)
{
    struct world *world = world_new(seed);
    for (int i = 0; i < ACTS_PER_WORLD; i++)
        world_act(world);
    tally->worlds++;
    tally->closes += world->closes;
    tally->retries += world->retries;
    tally->buffered += world->buffered;
    tally->transients += world->transients;
    tally->late += world->late;
    tally->repeats += world->repeats;
    tally->paused += world->paused;
    world_free(world);
}

TEST(model, a_run_is_what_its_model_says_whatever_happens)
{
    struct tally tally = {0};
    for (int i = 0; i < test_seed_count(); i++) {
        uint64_t seed = test_seed(i) * 1000;
        for (uint64_t world = 0; world < WORLDS_PER_SEED; world++)
            live(seed + world, &tally);
    }
    printf("  %llu worlds: %llu closes, %llu retries, %llu decisions with events behind them, "
           "%llu transient ones, %llu late wake-ups, %llu repeats, %llu pauses after failures\n",
           (unsigned long long)tally.worlds, (unsigned long long)tally.closes,
           (unsigned long long)tally.retries, (unsigned long long)tally.buffered,
           (unsigned long long)tally.transients, (unsigned long long)tally.late,
           (unsigned long long)tally.repeats, (unsigned long long)tally.paused);
    if (tally.worlds < 200)
        return; /* one seed that is looked at again */
    EXPECT(tally.closes > 0 && tally.retries > 0 && tally.buffered > 0 && tally.transients > 0);
    EXPECT(tally.late > 0 && tally.repeats > 0 && tally.paused > 0);
}
