/* fixture.h - for the tests of matching: a host's matching on a memory store, and callers that
 * poll. */
#ifndef CADENZA_MATCHING_TEST_FIXTURE_H
#define CADENZA_MATCHING_TEST_FIXTURE_H

#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/sim/world.h"
#include "matching/matching.h"
#include "store/memory/memory.h"

#define TASKS_NOTED 200000

/* One life of a process. Lives outside of the simulated host. */
struct matching_fixture {
    struct memory_base *base;
    const char *yaml;             /* dynamic settings; NULL: defaults */
    bool is_shared;               /* other hosts use the store, too */
    uint32_t polls_max;           /* of a loop; 0: the default */
    enum world_messages messages; /* by default as bytes */
    void (*body)(struct matching_fixture *matching_fixture);
    struct store *store;
    struct dynamic *dynamic;
    struct matching *matching;
    struct arena *arena;
    double rate;           /* that polls ask for from now on; negative: none */
    const char *identity;  /* of who polls from now on */
    const char *group;     /* isolation group of polls and tasks from now on; NULL: none */
    const char *drained;   /* a group; NULL: none */
    const char *domain_id; /* of polls and tasks from now on; NULL: "domain" */
    int32_t partition;     /* that polls ask for from now on; 0: any */
    size_t done;           /* calls of task_done */
    uint64_t done_range_id;
    int partitions_seen;           /* the highest that a task came from, and one more */
    bool is_row_done[TASKS_NOTED]; /* by row */
    uint64_t handle;               /* of the store */
};

/* Opens all, runs the body, closes all. A fiber function; the argument is the fixture. */
void fixture_life(void *argument);
/* Runs a body in simulation to its end; a leak fails. */
void fixture_run(void (*body)(struct matching_fixture *matching_fixture), const char *yaml,
                 unsigned loops);
/* A test that runs so: MATCHING_TEST(suite, title, fixture_run(body, NULL, 2), "E-001"). */
#define MATCHING_TEST(suite, title, run, ...)                                                      \
    TEST_IN(suite, title, struct matching_fixture *matching_fixture, run, ##__VA_ARGS__)
/* The same on a fixture of the caller's, on its base. */
void fixture_run_on(struct matching_fixture *matching_fixture, unsigned loops);
void fixture_sleep(struct matching_fixture *matching_fixture, int64_t duration);

/* Where test tasks go. */
struct spot {
    enum task_type type;
    enum list_kind kind;
    const char *list, *normal;
};
#define DECISIONS  ((struct spot){TASK_DECISION, LIST_NORMAL, "orders", ""})
#define ACTIVITIES ((struct spot){TASK_ACTIVITY, LIST_NORMAL, "orders", ""})
#define STICKY     ((struct spot){TASK_DECISION, LIST_STICKY, "host:1", "orders"})

/* The task of a row; its schedule id is the row, too. */
struct task fixture_task(struct spot spot, uint64_t row);
/* Adds tasks of rows first .. last; each must be taken. */
void fixture_add(struct matching_fixture *matching_fixture, struct spot spot, uint64_t first,
                 uint64_t last);

/* A caller's poll. */
struct test_poll {
    struct poll poll;
    bool is_back;
    enum poll_end end;
    struct fiber *waiter;
};
void test_poll_start(struct matching_fixture *matching_fixture, struct spot spot,
                     struct test_poll *test_poll, int64_t patience);
/* Waits until it is back. Yields. */
enum poll_end test_poll_wait(struct test_poll *test_poll);
/* Polls and waits: the schedule id of the task, 0: none. Tells matching that it was started. */
int64_t fixture_take(struct matching_fixture *matching_fixture, struct spot spot, int64_t patience);
/* Frees the task of a probe that is back, after telling that it was started. */
void test_poll_finish(struct matching_fixture *matching_fixture, struct test_poll *test_poll);
/* Takes tasks first .. last in this order, one poll after the other. */
void fixture_expect(struct matching_fixture *matching_fixture, struct spot spot, int64_t first,
                    int64_t last);

#endif
