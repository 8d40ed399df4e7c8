/* rig.h - a shard on a store in memory, with one domain and a task port that a test looks at. For
 * the tests of this folder, on either ground; everything on one loop. */
#ifndef CADENZA_ENGINE_SHARD_RIG_H
#define CADENZA_ENGINE_SHARD_RIG_H

#include "base/test.h"
#include "engine/shard/shard.h"
#include "fiber/clock.h"
#include "fiber/sync.h"
#include "store/memory/memory.h"

struct rig {
    struct arena *arena;
    struct memory_base *base; /* outlives the rig */
    struct store *store;
    struct config *config;
    const struct cluster_group *group;
    struct dynamic *dynamic;
    struct domains *domains;
    const char *domain_id;
    const char *isolation_group; /* of runs that are started; NULL: none */
    /* What runs belong to that are started, or begin in a feed; NULL: nothing. */
    API(ActiveClusterSelectionPolicy) *policy;
    struct shard_options options; /* of the shard; may be changed before rig_take */
    struct shard *shard;
    struct latch latch;  /* of rig_spawn */
    unsigned runs_named; /* by feed.c, so that their ids differ */
    /* The port. */
    vector_of(struct task *) tasks; /* offered and taken, in order; in the arena */
    bool is_refusing;
    size_t refused;
    bool was_durable_at_offer; /* all that was submitted when something was last offered */
};

/* Opens a store on the base, the domain "orders" (registered if it is not there), no shard. */
void rig_open(struct rig *rig, struct memory_base *base);
/* The domain wants histories and records of its runs in the archive, at "file:///archive". */
void rig_archive(struct rig *rig);
/* Makes the shard and takes it. */
void rig_take(struct rig *rig);
/* Closes the shard, and makes and takes another: as a restart. */
void rig_restart(struct rig *rig);
void rig_close(struct rig *rig);
/* What is done with a rig on this disk; the main function of a fiber that opens and closes it. */
struct rig_trial {
    void (*run)(struct rig *rig);
    struct memory_base *base;
};
void rig_trial_main(void *argument);

/* Runs function(argument) in a fiber; rig_join waits for all. */
void rig_spawn(struct rig *rig, void (*function)(void *argument), void *argument);
void rig_join(struct rig *rig);
void rig_sleep(int64_t nanoseconds);
/* Waits until the condition holds, a minute at most. */
#define rig_wait(condition)                                                                        \
    do {                                                                                           \
        int64_t rig_deadline = clock_monotonic() + 60 * NS_PER_S;                                  \
        while (!(condition) && clock_monotonic() < rig_deadline)                                   \
            rig_sleep(NS_PER_MS);                                                                  \
        EXPECT(condition);                                                                         \
    } while (0)

/* --- calls ---- */

/* A run of `seconds`; *run_id may be NULL. The same request id is the same request. */
must_use struct error *rig_start(struct rig *rig, const char *workflow_id, const char *request_id,
                                 int64_t seconds, struct arena *arena, const char **run_id);
must_use struct error *rig_signal(struct rig *rig, const char *workflow_id, struct arena *arena);
must_use struct error *rig_terminate(struct rig *rig, const char *workflow_id, struct arena *arena);
/* Records that somebody got the task. */
must_use struct error *rig_start_decision(struct rig *rig, const struct task *task,
                                          const char *request_id, struct arena *arena);
/* Completes the started decision: the run is closed, or sets a timer (seconds > 0). */
must_use struct error *rig_complete(struct rig *rig, const struct task *task, int64_t seconds,
                                    struct arena *arena);
/* Completes the started decision: the run has so many activities more. */
must_use struct error *rig_schedule(struct rig *rig, const struct task *task, int activities,
                                    struct arena *arena);

/* What the shard says of the current run. */
struct rig_run {
    const char *run_id; /* in the arena */
    int64_t next_event_id;
    bool is_open;
    int64_t close_time, timeout_time, alarm_time;
    size_t timers;
};
must_use struct error *rig_look(struct rig *rig, const char *workflow_id, struct arena *arena,
                                struct rig_run *run);
/* What the store says: next event id of the current run, 0: there is none. */
int64_t rig_stored_next_event_id(struct rig *rig, const char *workflow_id);
/* Rows of a kind in the shard. */
size_t rig_rows(struct rig *rig, enum row_kind kind);

#endif
