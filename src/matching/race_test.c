/* race_test.c - callers on every loop poll, withdraw and return, shards on every loop add, on real
 * threads.
 *
 * What is at stake: a task that two pollers get, or none; a poll that comes back twice, or after
 * its memory is gone. Method: each probe polls again as soon as it is back, on random lists, and
 * frees and allocates its memory again each time, so that a late touch is seen by a sanitizer; it
 * is withdrawn at random moments. Lists are small, so most tasks go through the store. In the end
 * every task was started exactly once. */
#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "matching/matching.h"
#include "store/memory/memory.h"

#define LOOPS  4
#define PROBES 40 /* per loop */
#define LISTS  6
#define TASKS  4000 /* per loop */

struct race {
    struct matching *matching;
    const char *yaml;
    atomic_bool is_started[LOOPS * TASKS];
    atomic_uint started, stored, withdrawn, returned, empty, passed;
    atomic_bool is_over;
};

/* What one loop does. */
struct corner {
    struct race *race;
    unsigned number;
    struct random random;
    struct test_poll *probes[PROBES];
    unsigned out; /* probes that poll */
    struct fiber *waiter;
};

struct test_poll {
    struct poll poll;
    struct corner *corner;
    unsigned slot;
    bool is_withdrawn;
};

static const char *const lists[LISTS] = {"one", "two", "three", "four", "sticky-a", "sticky-b"};

static bool
is_sticky(unsigned list)
{
    return list >= 4;
}

static void probe_poll(struct corner *corner, unsigned slot);

static void
judge_task(struct corner *corner, const struct task *task)
{
    struct race *race = corner->race;
    if (random_below(&corner->random, 8) == 0) {
        matching_return(race->matching, task);
        atomic_fetch_add(&race->returned, 1);
        return;
    }
    bool before = atomic_exchange(&race->is_started[task->schedule_id], true);
    check_that(!before, "task %lld was handed out twice", (long long)task->schedule_id);
    atomic_fetch_add(&race->started, 1);
    matching_finish(race->matching, task);
}

static void
probe_back(struct poll *poll, enum poll_end end)
{
    struct test_poll *test_poll = container_of(poll, struct test_poll, poll);
    struct corner *corner = test_poll->corner;
    unsigned slot = test_poll->slot;
    check(end != POLL_WITHDRAWN || test_poll->is_withdrawn);
    check((end == POLL_MATCHED) == (poll->task != NULL));
    if (end == POLL_MATCHED) {
        judge_task(corner, poll->task);
        arena_free(poll->task_arena);
    }
    atomic_fetch_add(end == POLL_EMPTY ? &corner->race->empty : &corner->race->passed, 1);
    atomic_fetch_add(&corner->race->withdrawn, end == POLL_WITHDRAWN);
    memory_free(test_poll);
    corner->probes[slot] = NULL;
    corner->out--;
    if (!atomic_load(&corner->race->is_over))
        probe_poll(corner, slot);
    else if (corner->out == 0 && corner->waiter != NULL)
        fiber_wake(corner->waiter);
}

static void
probe_poll(struct corner *corner, unsigned slot)
{
    struct test_poll *test_poll = memory_zalloc(1, sizeof *test_poll);
    unsigned list = (unsigned)random_below(&corner->random, LISTS);
    test_poll->corner = corner;
    test_poll->slot = slot;
    test_poll->poll = (struct poll){
        .type = is_sticky(list) || slot % 2 == 0 ? TASK_DECISION : TASK_ACTIVITY,
        .kind = is_sticky(list) ? LIST_STICKY : LIST_NORMAL,
        .domain_id = "domain",
        .domain_name = "shop",
        .list = lists[list],
        .base_list = is_sticky(list) ? "one" : "",
        .identity = slot % 3 == 0 ? "worker a" : "worker b",
        .rate_per_second = -1,
        .expiry = clock_monotonic() + (int64_t)random_below(&corner->random, 20 * NS_PER_MS),
        .back = probe_back};
    corner->probes[slot] = test_poll;
    corner->out++;
    matching_poll(corner->race->matching, &test_poll->poll);
}

static void
note_stored(void *context, const struct task *task)
{
    struct race *race = context;
    check(task->row != 0);
    atomic_fetch_add(&race->stored, 1);
}

static void
add_some(struct corner *corner, int *next, int count)
{
    for (; count > 0 && *next < TASKS; count--) {
        unsigned list = (unsigned)random_below(&corner->random, LISTS);
        bool is_activity = !is_sticky(list) && *next % 2 == 0;
        struct task task = {.type = is_activity ? TASK_ACTIVITY : TASK_DECISION,
                            .kind = is_sticky(list) ? LIST_STICKY : LIST_NORMAL,
                            .domain_id = "domain",
                            .list = lists[list],
                            .normal_list = is_sticky(list) ? "one" : "",
                            .run_domain_id = "domain",
                            .workflow_id = "workflow",
                            .run_id = "run",
                            .schedule_id = (int64_t)corner->number * TASKS + *next,
                            .shard = corner->number,
                            .range_id = 1,
                            .row = (uint64_t)*next + 1};
        if (!matching_add(corner->race->matching, &task))
            return;
        ++*next;
    }
}

static void
withdraw_some(struct corner *corner)
{
    for (int i = 0; i < 3; i++) {
        struct test_poll *test_poll = corner->probes[random_below(&corner->random, PROBES)];
        if (test_poll == NULL)
            continue;
        test_poll->is_withdrawn = true;
        matching_withdraw(corner->race->matching, &test_poll->poll);
    }
}

static void
run_corner(void *argument)
{
    struct corner *corner = argument;
    struct race *race = corner->race;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int next = 0;
    for (unsigned slot = 0; slot < PROBES; slot++)
        probe_poll(corner, slot);
    while (atomic_load(&race->started) < LOOPS * TASKS) {
        add_some(corner, &next, 200);
        withdraw_some(corner);
        struct error *err = fiber_sleep(NS_PER_MS, arena);
        check(err == NULL);
    }
    atomic_store(&race->is_over, true);
    corner->waiter = fiber_self();
    while (corner->out > 0)
        fiber_wait_uncancellable();
}

struct run {
    struct corner *corner;
    struct latch *latch;
};

static void
corner_fiber(void *argument)
{
    struct run *run = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = loop_call(loop_at(run->corner->number), run_corner, run->corner, arena);
    check(err == NULL);
    latch_done(run->latch);
}

static void
run_race(void *argument)
{
    struct race *race = argument;
    struct memory_base *base = memory_base_new(0);
    struct store *store = memory_open(base);
    struct dynamic *dynamic = dynamic_new(NULL);
    struct arena *arena = arena_new(0);
    EXPECT_OK(dynamic_load(dynamic, slice_text(race->yaml), "test", arena));
    race->matching = matching_new(&(struct matching_options){.store = store,
                                                             .dynamic = dynamic,
                                                             .is_alone = true,
                                                             .task_done = note_stored,
                                                             .context = race});
    struct corner corners[LOOPS];
    struct run runs[LOOPS];
    struct latch latch;
    latch_init(&latch, LOOPS);
    for (unsigned i = 0; i < LOOPS; i++) {
        corners[i] = (struct corner){.race = race, .number = i};
        random_seed(&corners[i].random, test_seed(0) + i);
        runs[i] = (struct run){&corners[i], &latch};
        fiber_start("corner", corner_fiber, &runs[i]);
    }
    latch_wait(&latch);
    matching_free(race->matching);
    dynamic_free(dynamic);
    store_close(store);
    memory_base_free(base);
    arena_free(arena);
}

#define SMALL "matching.maxTasksInMemory: [{value: 20}]\n"

static void
race_with(const char *yaml)
{
    struct race *race = memory_zalloc(1, sizeof *race);
    race->yaml = yaml;
    linux_run(&(struct linux_options){.loops = LOOPS}, run_race, race);
    EXPECT_EQ(race->started, LOOPS * TASKS);
    EXPECT(race->stored > 0 && race->withdrawn > 0 && race->returned > 0 && race->empty > 0);
    memory_free(race);
}

TEST(matching_race, every_task_is_started_once_while_polls_come_and_go_on_all_loops, "C-002",
     "C-003")
{
    race_with(SMALL);
}

TEST(matching_race, the_same_when_lists_have_partitions_on_all_loops, "C-002", "C-016")
{
    race_with(SMALL "matching.numTasklistReadPartitions: [{value: 4}]\n"
                    "matching.numTasklistWritePartitions: [{value: 3}]\n");
}
