/* schedule_load.h - a client that makes schedules and changes them through a year, and knows what
 * they must have started.
 *
 * Nobody works on what is started: runs end by their timeouts, so how long each takes is known. The
 * client tries each call until it is acknowledged; repeats change nothing, which is part of what is
 * shown. */
#ifndef CADENZA_SIM_SCHEDULE_SCHEDULE_LOAD_H
#define CADENZA_SIM_SCHEDULE_SCHEDULE_LOAD_H

#include "sim/schedule/schedule_model.h"
#include "sim/world/sim.h"
#include "sim/world/verdict.h"

#define SCHEDULE_CASES 6

struct schedule_load {
    struct sim *sim;
    struct arena *arena;
    int64_t until;       /* world time at which it stops to steer */
    int64_t wall_offset; /* of the hosts' wall clock from the world's, once the client runs */
    int64_t pause_max;   /* seconds between two requests */
    struct model models[SCHEDULE_CASES];
    struct verdict verdict;
    unsigned tries, calls, failed, pauses, updates, backfills, runs;
    bool is_steered; /* all was told; the world may rest until it is verified */
    bool is_over;
};

/* Starts the client; it steers every few days (seconds, at most) until so much world time has
 * passed. */
struct schedule_load *schedule_load_start(struct sim *sim, int64_t duration, int64_t pause_max);
/* What each schedule has started, compared with the model; NULL: all is right. Drives the world. */
const char *schedule_load_verify(struct schedule_load *load);
void schedule_load_free(struct schedule_load *load);
/* The first moment after one, seconds since 1970, at which one of the schedules fires. */
int64_t schedule_load_next(const struct schedule_load *load, int64_t after);

#endif
