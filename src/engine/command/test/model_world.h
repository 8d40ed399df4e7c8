/* model_world.h - a run and its model side by side: the same is done to both, then they are
 * compared. */
#ifndef CADENZA_ENGINE_COMMAND_TEST_MODEL_WORLD_H
#define CADENZA_ENGINE_COMMAND_TEST_MODEL_WORLD_H

#include "engine/command/test/activity_calls.h"
#include "engine/command/test/model.h"

#define WORLD_TOKENS_MAX 256

/* A start of an activity that somebody remembers. */
struct world_token {
    struct task_name name;
    char id[8];
    char request[16];
};

struct world {
    uint64_t seed;
    struct random random;
    struct fixture *fixture;
    struct model *model;
    const char *start_request; /* of the newest run */
    char *run_id;
    const char *chain_request; /* of the start that began the row of runs */
    char *chain_run_id;
    int count; /* of all kinds of requests so far */
    struct world_token tokens[WORLD_TOKENS_MAX];
    size_t token_count;
    const char *last; /* what was done last, for people */
    uint64_t closes, retries, buffered, transients, late, repeats,
        paused; /* how often it mattered */
};

/* Chance. */
uint64_t world_below(struct world *world, uint64_t bound);
bool world_one_in(struct world *world, uint64_t count);

/* A request id that is new, or sometimes one from before. */
const char *world_request(struct world *world);
/* Remembers what is done now. */
void world_say(struct world *world, const char *what);
/* A run began just now: its model. `signal`: what it began with, or NULL. */
void world_follow(struct world *world, int64_t delay, const char *signal);

/* A random decision; the same as a worker says it. */
struct model_order world_random_order(struct world *world);
API(Decision) *world_make_decision(struct fixture *fixture, const struct model_order *order);

/* What workers do. */
void world_start_decision(struct world *world);
void world_complete_decision(struct world *world);
void world_fail_decision(struct world *world);
void world_reset_sticky(struct world *world);
void world_start_activity(struct world *world);
void world_report(struct world *world);

/* Fails the test unless the caller was told what the model says. */
void world_expect_answer(struct world *world, struct error *refusal, enum model_answer wanted);
/* Fails the test, with the seed, at the first difference between the run and its model. */
void world_compare(struct world *world);

/* One random thing, done to both. */
void world_act(struct world *world);
/* A world with a run in it. Freed with its fixture. */
struct world *world_new(uint64_t seed);
void world_free(struct world *world);

#endif
