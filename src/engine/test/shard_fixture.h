/* shard_fixture.h - a shard on a store in memory, with one domain and a task port that a test looks
 * at. For the tests of this folder, on either platform; everything on one loop. */
#ifndef CADENZA_ENGINE_TEST_SHARD_FIXTURE_H
#define CADENZA_ENGINE_TEST_SHARD_FIXTURE_H

#include "base/test.h"
#include "engine/shard/shard.h"
#include "fiber/clock.h"
#include "fiber/sync.h"
#include "store/memory/memory.h"

struct shard_fixture {
    struct arena *arena;
    struct memory_base *base; /* outlives the fixture */
    struct store *store;
    struct config *config;
    const struct cluster_group *group;
    struct dynamic *dynamic;
    struct domains *domains;
    const char *domain_id;
    const char *isolation_group; /* of runs that are started; NULL: none */
    /* What runs belong to that are started, or begin in a feed; NULL: nothing. */
    API(ActiveClusterSelectionPolicy) *policy;
    struct shard_options options; /* of the shard; may be changed before shard_fixture_take */
    struct shard *shard;
    struct latch latch;  /* of shard_fixture_spawn */
    unsigned runs_named; /* by source_history.c, so that their ids differ */
    /* The port. */
    vector_of(struct task *) tasks; /* offered and taken, in order; in the arena */
    bool is_refusing;
    size_t refused;
    bool was_durable_at_offer; /* all that was submitted when something was last offered */
};

/* Opens a store on the base, the domain "orders" (registered if it is not there), no shard. */
void shard_fixture_open(struct shard_fixture *fixture, struct memory_base *base);
/* The domain wants histories and records of its runs in the archive, at "file:///archive". */
void shard_fixture_archive(struct shard_fixture *fixture);
/* Makes the shard and takes it. */
void shard_fixture_take(struct shard_fixture *fixture);
/* Closes the shard, and makes and takes another: as a restart. */
void shard_fixture_restart(struct shard_fixture *fixture);
void shard_fixture_close(struct shard_fixture *fixture);
/* What is done with a fixture on this disk; the main function of a fiber that opens and closes it.
 */
struct shard_fixture_body {
    void (*run)(struct shard_fixture *fixture);
    struct memory_base *base;
};
void shard_fixture_main(void *argument);

/* Runs function(argument) in a fiber; shard_fixture_join waits for all. */
void shard_fixture_spawn(struct shard_fixture *fixture, void (*function)(void *argument),
                         void *argument);
void shard_fixture_join(struct shard_fixture *fixture);
void shard_fixture_sleep(int64_t nanoseconds);
/* Waits until the condition holds, a minute at most. */
#define shard_fixture_wait(condition)                                                              \
    do {                                                                                           \
        int64_t shard_fixture_deadline = clock_monotonic() + 60 * NS_PER_S;                        \
        while (!(condition) && clock_monotonic() < shard_fixture_deadline)                         \
            shard_fixture_sleep(NS_PER_MS);                                                        \
        EXPECT(condition);                                                                         \
    } while (0)

/* --- calls ---- */

/* A run of `seconds`; *run_id may be NULL. The same request id is the same request. */
must_use struct error *shard_fixture_start(struct shard_fixture *fixture, const char *workflow_id,
                                           const char *request_id, int64_t seconds,
                                           struct arena *arena, const char **run_id);
must_use struct error *shard_fixture_signal(struct shard_fixture *fixture, const char *workflow_id,
                                            struct arena *arena);
must_use struct error *shard_fixture_terminate(struct shard_fixture *fixture,
                                               const char *workflow_id, struct arena *arena);
/* Records that somebody got the task. */
must_use struct error *shard_fixture_start_decision(struct shard_fixture *fixture,
                                                    const struct task *task, const char *request_id,
                                                    struct arena *arena);
/* Completes the started decision: the run is closed, or sets a timer (seconds > 0). */
must_use struct error *shard_fixture_complete(struct shard_fixture *fixture,
                                              const struct task *task, int64_t seconds,
                                              struct arena *arena);
/* Completes the started decision: the run has so many activities more. */
must_use struct error *shard_fixture_schedule(struct shard_fixture *fixture,
                                              const struct task *task, int activities,
                                              struct arena *arena);

/* What the shard says of the current run. */
struct shard_fixture_run {
    const char *run_id; /* in the arena */
    int64_t next_event_id;
    bool is_open;
    int64_t close_time, timeout_time, alarm_time;
    size_t timers;
};
must_use struct error *shard_fixture_look(struct shard_fixture *fixture, const char *workflow_id,
                                          struct arena *arena, struct shard_fixture_run *run);
/* What the store says: next event id of the current run, 0: there is none. */
int64_t shard_fixture_stored_next_event_id(struct shard_fixture *fixture, const char *workflow_id);
/* Rows of a kind in the shard. */
size_t shard_fixture_rows(struct shard_fixture *fixture, enum row_kind kind);

#endif
