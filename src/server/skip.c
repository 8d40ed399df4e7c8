/* skip.c - see skip.h. */
#include "server/skip.h"

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "fiber/sync.h"

#define CHECK_INTERVAL (5 * NS_PER_MS)

struct skipper {
    struct engine *engine;
    const struct log *log;
    struct skip skip;
    bool is_stopping;
    struct fiber *fiber;
    struct latch done;
};

int64_t
skip_decide(struct skip *skip, const struct shard_idle *idle, int64_t wall, int64_t monotonic)
{
    bool is_quiet = !idle->is_busy && idle->is_timed && idle->next != INT64_MAX;
    check(monotonic >= skip->quiet_since && skip->quiet_since >= 0);
    if (!is_quiet || idle->changes != skip->changes) {
        skip->changes = idle->changes;
        skip->quiet_since = is_quiet ? monotonic : 0;
        return 0;
    }
    if (skip->quiet_since == 0)
        skip->quiet_since = monotonic;
    if (monotonic - skip->quiet_since < SKIP_QUIET || idle->next <= wall)
        return 0;
    skip->quiet_since = 0;
    return idle->next - wall;
}

static void
look(struct skipper *skipper, struct arena *arena)
{
    struct shard_idle idle;
    engine_look_idle(skipper->engine, &idle, arena);
    int64_t ahead = skip_decide(&skipper->skip, &idle, clock_wall(), clock_monotonic());
    check(ahead >= 0); /* the wall clock is never set back */
    if (ahead == 0)
        return;
    clock_skip(ahead);
    engine_clock_jumped(skipper->engine);
    probe("time_skipped");
    log_debug(skipper->log, "time was skipped", log_number("seconds", ahead / NS_PER_S));
}

static void
skip_for_ever(void *argument)
{
    struct skipper *skipper = argument;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!skipper->is_stopping && wake != WAKE_CANCELLED) {
        look(skipper, arena);
        arena_reset(arena);
        if (!skipper->is_stopping)
            wake = fiber_wait(clock_monotonic() + CHECK_INTERVAL);
    }
    arena_free(arena);
    skipper->fiber = NULL;
    latch_done(&skipper->done);
}

struct skipper *
skipper_start(struct engine *engine, const struct log *log)
{
    check(loop_count() == 1); /* no other loop may be busy unseen */
    struct skipper *skipper = memory_zalloc(1, sizeof *skipper);
    skipper->engine = engine;
    skipper->log = log;
    latch_init(&skipper->done, 1);
    skipper->fiber = fiber_start("skip time", skip_for_ever, skipper);
    return skipper;
}

void
skipper_stop(struct skipper *skipper)
{
    if (skipper == NULL)
        return;
    check(!skipper->is_stopping);
    skipper->is_stopping = true;
    if (skipper->fiber != NULL)
        fiber_wake(skipper->fiber);
    latch_wait(&skipper->done);
    memory_free(skipper);
}
