/* lost_sim_test.c - polls, tasks and reservations while messages between owners are lost and come
 * twice, as their rows allow.
 *
 * Method: callers poll random lists for a moment and withdraw a part of their polls, a shard adds
 * tasks and reserves polls. By seed messages go as they are, as bytes, or are lost and repeated
 * (CADENZA_MESSAGES). Each poll has to come back, exactly once, not long after its time; each task
 * has to be started, and is once: the test decides that as a shard would. In the end nothing is
 * left of either. */
#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "matching/test/fixture.h"

#define CALLERS  40
#define ROUNDS   60 /* polls of each */
#define TASKS    600
#define PATIENCE (200 * NS_PER_MS)
#define LATE_MAX (60 * NS_PER_S) /* after its time, of a poll whose end was lost */

struct storm;

struct caller {
    struct storm *storm;
    struct test_poll test_poll;
};

struct storm {
    struct matching_fixture matching_fixture;
    struct random random;
    struct caller callers[CALLERS];
    bool is_started[TASKS + 1];
    unsigned started, again, withdrawn, matched, out;
};

static struct spot
any_spot(struct storm *storm)
{
    static const char *const lists[] = {"one", "two", "three", "four"};
    return (struct spot){TASK_DECISION, LIST_NORMAL, lists[random_below(&storm->random, 4)], ""};
}

/* As the shard of the task does: it is started once, and void after that. */
static void
judge(struct storm *storm, const struct task *task)
{
    uint64_t row = (uint64_t)task->schedule_id;
    check(row >= 1 && row <= TASKS);
    storm->again += storm->is_started[row];
    storm->started += !storm->is_started[row];
    storm->is_started[row] = true;
}

static void
take_home(struct storm *storm, struct test_poll *test_poll)
{
    struct matching *matching = storm->matching_fixture.matching;
    const struct task *task = test_poll->poll.task;
    storm->matched++;
    if (test_poll->poll.start != NULL) {
        EXPECT_TEXT(test_poll->poll.start, "told");
        EXPECT_TEXT(test_poll->poll.request_id, "start");
    }
    if (test_poll->poll.start == NULL && random_below(&storm->random, 8) == 0) {
        matching_return(matching, task);
    } else {
        judge(storm, task);
        matching_finish(matching, task);
    }
    arena_free(test_poll->poll.task_arena);
}

static void
caller_fiber(void *argument)
{
    struct caller *caller = argument;
    struct storm *storm = caller->storm;
    struct matching_fixture *matching_fixture = &storm->matching_fixture;
    struct test_poll *test_poll = &caller->test_poll;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t began = clock_monotonic();
        test_poll_start(matching_fixture, any_spot(storm), test_poll, PATIENCE);
        bool is_withdrawn = random_below(&storm->random, 2) == 0;
        fixture_sleep(matching_fixture, (int64_t)random_below(&storm->random, PATIENCE));
        if (is_withdrawn && !test_poll->is_back) {
            storm->withdrawn++;
            matching_withdraw(matching_fixture->matching, &test_poll->poll);
        }
        enum poll_end end = test_poll_wait(test_poll);
        EXPECT(end != POLL_WITHDRAWN || is_withdrawn);
        EXPECT(clock_monotonic() - began < PATIENCE + LATE_MAX);
        if (end == POLL_MATCHED)
            take_home(storm, test_poll);
    }
    storm->out--;
}

/* --- a shard ---- */

static void
answered(struct reservation *reservation)
{
    fiber_wake(reservation->context);
}

/* Reserves a poll for a task. False: there is none, it has to be offered. */
static bool
give_to_reserved(struct storm *storm, struct task *task)
{
    struct matching *matching = storm->matching_fixture.matching;
    struct reservation *reservation = memory_zalloc(1, sizeof *reservation);
    reservation->type = task->type;
    reservation->domain_id = "domain";
    reservation->list = task->list;
    reservation->answered = answered;
    reservation->context = fiber_self();
    if (matching_reserve(matching, reservation) == RESERVATION_REQUESTED)
        fiber_wait_uncancellable();
    if (reservation->identity == NULL) {
        memory_free(reservation);
        return false;
    }
    EXPECT_TEXT(reservation->identity, "worker");
    bool is_given = random_below(&storm->random, 2) == 0;
    if (is_given) {
        judge(storm, task); /* with its step */
        task->row = 0;
        reservation->arena = arena_new(0);
        reservation->task = task_copy(task, reservation->arena);
        reservation->request_id = arena_text(reservation->arena, "start");
        reservation->start = arena_text(reservation->arena, "told");
    }
    matching_end_reservation(matching, reservation);
    return is_given;
}

static void
add_tasks(struct storm *storm)
{
    struct matching_fixture *matching_fixture = &storm->matching_fixture;
    for (uint64_t row = 1; row <= TASKS; row++) {
        struct task task = fixture_task(any_spot(storm), row);
        if (random_below(&storm->random, 2) == 0 && give_to_reserved(storm, &task))
            continue;
        while (!matching_add(matching_fixture->matching, &task))
            fixture_sleep(matching_fixture, NS_PER_MS);
        fixture_sleep(matching_fixture, (int64_t)random_below(&storm->random, 20 * NS_PER_MS));
    }
}

/* What a caller of a storm left is taken by one that waits. */
static void
take_the_rest(struct storm *storm)
{
    struct matching_fixture *matching_fixture = &storm->matching_fixture;
    struct test_poll *test_poll = &storm->callers[0].test_poll;
    static const char *const lists[] = {"one", "two", "three", "four"};
    for (int i = 0; i < 4 && storm->started < TASKS; i++) {
        struct spot spot = {TASK_DECISION, LIST_NORMAL, lists[i], ""};
        for (int empty = 0; empty < 2;) {
            test_poll_start(matching_fixture, spot, test_poll, NS_PER_S);
            if (test_poll_wait(test_poll) == POLL_MATCHED)
                take_home(storm, test_poll);
            else
                empty++;
        }
    }
}

static void
run_storm(struct matching_fixture *matching_fixture)
{
    struct storm *storm = container_of(matching_fixture, struct storm, matching_fixture);
    storm->out = CALLERS;
    for (unsigned i = 0; i < CALLERS; i++) {
        storm->callers[i].storm = storm;
        fiber_start("caller", caller_fiber, &storm->callers[i]);
    }
    add_tasks(storm);
    while (storm->out > 0)
        fixture_sleep(matching_fixture, NS_PER_S);
    take_the_rest(storm);
}

static void
weather(uint64_t seed)
{
    struct storm *storm = memory_zalloc(1, sizeof *storm);
    struct matching_fixture *matching_fixture = &storm->matching_fixture;
    random_seed(&storm->random, seed);
    matching_fixture->base = memory_base_new(1);
    matching_fixture->body = run_storm;
    struct world *world = world_new(.seed = seed);
    struct host *host = world_add_host(world, "matching", 3);
    host_start(host, fixture_life, matching_fixture);
    EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    EXPECT_EQ(storm->started, TASKS);
    EXPECT(storm->withdrawn > 0 && storm->matched > 0);
    memory_base_free(matching_fixture->base);
    memory_free(storm);
}

TEST(matching_lost, every_poll_comes_back_and_every_task_is_started_once, "C-002", "C-003")
{
    for (int i = 0; i < test_seed_count(); i++)
        weather(test_seed(i));
}
