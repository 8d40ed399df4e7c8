/* store_test.c - lists when the store fails, the process dies at any moment, and other hosts want
 * the same list. In simulation. */
#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "fiber/sync.h"
#include "matching/test/fixture.h"

#define SMALL "matching.maxTasksInMemory: [{value: 10}]\nmatching.getTasksBatchSize: [{value: 7}]\n"
#define TASKS 200

/* What the shards know: which rows are there, which tasks were started. Outlives every host. */
struct ledger {
    struct matching_fixture matching_fixture;
    bool is_started[TASKS + 1];
    size_t started, again; /* again: found started when it was handed out once more */
    size_t out_of_order;
    int64_t newest;
    uint64_t range_id;
    uint64_t crash_point;
    bool is_over;
    unsigned lives;
};

static struct ledger *
ledger_of(struct matching_fixture *matching_fixture)
{
    return container_of(matching_fixture, struct ledger, matching_fixture);
}

/* As a shard does after it was taken: every row that is still there is offered. */
static void
offer_rows(struct matching_fixture *matching_fixture)
{
    struct ledger *ledger = ledger_of(matching_fixture);
    ledger->range_id++;
    for (uint64_t row = 1; row <= TASKS; row++) {
        if (matching_fixture->is_row_done[row] || ledger->is_started[row])
            continue;
        struct task task = fixture_task(DECISIONS, row);
        task.range_id = ledger->range_id;
        EXPECT(matching_add(matching_fixture->matching, &task));
        if (entropy_below(10) == 0)
            fixture_sleep(matching_fixture, (int64_t)entropy_below(10 * NS_PER_MS));
    }
}

/* Starting decides: the first wins, and its row goes with it. */
static void
start_task(struct ledger *ledger, const struct task *task)
{
    int64_t row = task->schedule_id;
    if (ledger->is_started[row]) {
        ledger->again++;
        return;
    }
    ledger->is_started[row] = true;
    ledger->started++;
    ledger->out_of_order += row < ledger->newest;
    if (row > ledger->newest)
        ledger->newest = row;
}

static bool
take_one(struct matching_fixture *matching_fixture, int64_t patience)
{
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, patience);
    if (test_poll_wait(&test_poll) != POLL_MATCHED)
        return false;
    if (entropy_below(8) == 0) { /* the poller had gone */
        matching_return(matching_fixture->matching, test_poll.poll.task);
        arena_free(test_poll.poll.task_arena);
        return true;
    }
    start_task(ledger_of(matching_fixture), test_poll.poll.task);
    test_poll_finish(matching_fixture, &test_poll);
    return true;
}

static struct ledger *
ledger_new(uint64_t seed)
{
    struct ledger *ledger = memory_zalloc(1, sizeof *ledger);
    ledger->matching_fixture.base = memory_base_new(seed);
    ledger->matching_fixture.yaml = SMALL;
    return ledger;
}

static void
ledger_free(struct ledger *ledger)
{
    memory_base_free(ledger->matching_fixture.base);
    memory_free(ledger);
}

/* --- crashes ---------------------------------------------------------------------------------- */

static void
mortal_body(struct matching_fixture *matching_fixture)
{
    struct ledger *ledger = ledger_of(matching_fixture);
    offer_rows(matching_fixture);
    if (ledger->lives++ == 0)
        fixture_sleep(matching_fixture, 20 * NS_PER_MS);
    while (ledger->started < TASKS && take_one(matching_fixture, 10 * NS_PER_S))
        continue;
    ledger->is_over = true;
}

static void
note_crash(void *context)
{
    struct ledger *ledger = context;
    memory_crash(ledger->matching_fixture.base, ledger->matching_fixture.handle);
}

static bool
is_at_crash_point(void *context)
{
    struct ledger *ledger = context;
    return ledger->is_over ||
           memory_base_points(ledger->matching_fixture.base) >= ledger->crash_point;
}

static bool
has_ended(void *host)
{
    return !host_is_running(host);
}

/* False: it was over before that point. */
static bool
crash_at(uint64_t seed, uint64_t point)
{
    struct world *world = world_new(.seed = seed);
    world_relent(world); /* an empty poll means that nothing waits */
    struct host *host = world_add_host(world, "mortal", 2);
    struct ledger *ledger = ledger_new(seed);
    ledger->matching_fixture.body = mortal_body;
    ledger->crash_point = point;
    host_on_crash(host, note_crash, ledger);
    host_start(host, fixture_life, &ledger->matching_fixture);
    EXPECT(world_run_until(world, is_at_crash_point, ledger, 600 * NS_PER_S));
    bool is_crashed = !ledger->is_over;
    if (is_crashed) {
        host_crash(host);
        host_start(host, fixture_life, &ledger->matching_fixture);
    }
    EXPECT(world_run_until(world, has_ended, host, 600 * NS_PER_S));
    EXPECT_EQ(ledger->started, TASKS);
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    ledger_free(ledger);
    return is_crashed;
}

/* A task is in its shard's outbox or in the list's store at any moment. Method: two hundred tasks,
 * most of them stored; crash at the first point that makes a difference, the second, … ; after each
 * the shard offers the rows it still has, and everything must be started in the end. */
TEST(matching_store, a_crash_at_any_point_loses_no_task)
{
    for (int i = 0; i < test_seed_count(); i++) {
        uint64_t point = 1;
        while (crash_at(test_seed(i), point))
            point++;
        EXPECT(point > 10);
    }
}

static void
spill_and_end(struct matching_fixture *matching_fixture)
{
    offer_rows(matching_fixture);
    fixture_sleep(matching_fixture, NS_PER_S);
    EXPECT_EQ(matching_fixture->done, TASKS - 10);
}

static void
read_in_order(struct matching_fixture *matching_fixture)
{
    for (int64_t wanted = 11; wanted <= TASKS; wanted++)
        EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, NS_PER_S), wanted);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, NS_PER_S), 0);
}

TEST(matching_store, stored_tasks_keep_their_order_over_a_restart, "C-001")
{
    struct ledger *ledger = ledger_new(5);
    ledger->matching_fixture.body = spill_and_end;
    fixture_run_on(&ledger->matching_fixture, 2);
    ledger->matching_fixture.body = read_in_order;
    fixture_run_on(&ledger->matching_fixture, 1);
    ledger_free(ledger);
}

/* Some that were stored are done and not deleted yet when others are stored, with the record. */
static void
done_in_part(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 30);
    fixture_sleep(matching_fixture, NS_PER_S);
    fixture_expect(matching_fixture, DECISIONS, 1, 20);
    fixture_add(matching_fixture, DECISIONS, 31, 40);
    fixture_sleep(matching_fixture, NS_PER_S);
    ledger_of(matching_fixture)->is_over = true;
    fixture_sleep(matching_fixture, NS_PER_S);
}

static void
done_with_the_rest(struct matching_fixture *matching_fixture)
{
    struct walk_rows rows;
    while (fixture_take(matching_fixture, DECISIONS, NS_PER_S) != 0)
        continue;
    EXPECT_OK(
        store_walk(matching_fixture->store, ROW_TASK, NULL, TASKS, matching_fixture->arena, &rows));
    EXPECT_EQ(rows.count, 0);
}

TEST(matching_store, after_a_crash_tasks_that_were_done_are_deleted_too)
{
    struct world *world = world_new(.seed = 7);
    struct host *host = world_add_host(world, "mortal", 2);
    struct ledger *ledger = ledger_new(7);
    ledger->matching_fixture.body = done_in_part;
    ledger->crash_point = UINT64_MAX;
    host_on_crash(host, note_crash, ledger);
    host_start(host, fixture_life, &ledger->matching_fixture);
    EXPECT(world_run_until(world, is_at_crash_point, ledger, 600 * NS_PER_S));
    host_crash(host);
    ledger->matching_fixture.body = done_with_the_rest;
    host_start(host, fixture_life, &ledger->matching_fixture);
    EXPECT(world_run_until(world, has_ended, host, 600 * NS_PER_S));
    world_free(world);
    ledger_free(ledger);
}

/* --- several hosts ---------------------------------------------------------------------------- */

#define HOSTS   3
#define MOMENTS 40

struct candidate {
    struct matching_fixture matching_fixture; /* first */
    struct ledger *ledger;
    unsigned number;
};

/* Adds a third of the tasks, takes what comes, until all were started somewhere. */
static void
candidate_body(struct matching_fixture *matching_fixture)
{
    struct candidate *candidate =
        container_of(matching_fixture, struct candidate, matching_fixture);
    struct ledger *ledger = candidate->ledger;
    for (uint64_t row = 1 + candidate->number; row <= TASKS; row += HOSTS) {
        struct task task = fixture_task(DECISIONS, row);
        EXPECT(matching_add(matching_fixture->matching, &task));
        if (entropy_below(10) == 0)
            fixture_sleep(matching_fixture, (int64_t)entropy_below(50 * NS_PER_MS));
    }
    while (ledger->started < TASKS) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
        if (test_poll_wait(&test_poll) != POLL_MATCHED)
            continue;
        start_task(ledger, test_poll.poll.task);
        test_poll_finish(matching_fixture, &test_poll);
    }
}

static bool
have_all_ended(void *context)
{
    struct host **hosts = context;
    for (int i = 0; i < HOSTS; i++)
        if (host_is_running(hosts[i]))
            return false;
    return true;
}

static uint64_t
contend(uint64_t seed)
{
    static const char *const names[HOSTS] = {"a", "b", "c"};
    struct world *world = world_new(.seed = seed);
    struct ledger *ledger = ledger_new(seed);
    struct candidate *candidates = memory_zalloc(HOSTS, sizeof *candidates);
    struct host *hosts[HOSTS];
    for (unsigned i = 0; i < HOSTS; i++) {
        candidates[i] = (struct candidate){.ledger = ledger, .number = i};
        candidates[i].matching_fixture =
            (struct matching_fixture){.base = ledger->matching_fixture.base,
                                      .yaml = SMALL,
                                      .is_shared = true,
                                      .body = candidate_body};
        hosts[i] = world_add_host(world, names[i], 2);
        host_start(hosts[i], fixture_life, &candidates[i].matching_fixture);
    }
    EXPECT(world_run_until(world, have_all_ended, hosts, 3600 * NS_PER_S));
    EXPECT_EQ(ledger->started, TASKS);
    uint64_t lost = world_probe_count(world, "task_list_lost");
    world_free(world);
    memory_free(candidates);
    ledger_free(ledger);
    return lost;
}

/* A host that was overtaken notices it at the store, gives its tasks up or takes the list again:
 * its pollers are served. */
TEST(matching_store, hosts_that_fight_for_a_list_lose_no_task, "C-033")
{
    uint64_t lost = 0;
    for (int i = 0; i < test_seed_count(); i++)
        lost += contend(test_seed(i));
    EXPECT(!test_seeds_suffice(1) || lost > 0); /* they did fight */
}

static void
ignore_done(void *context, const struct task *task)
{
}

/* One host looks at a list in the store while another takes the list and stores tasks, earlier and
 * later within that look. A list for each moment, which a third one made. */
static void
torn_looks(struct matching_fixture *matching_fixture)
{
    struct matching_options options = {.store = matching_fixture->store,
                                       .dynamic = matching_fixture->dynamic,
                                       .task_done = ignore_done};
    struct matching *one = matching_fixture->matching;
    struct matching *other = matching_new(&options), *third = matching_new(&options);
    memory_base_set_delays(matching_fixture->base, NS_PER_MS, NS_PER_MS, 20 * NS_PER_MS);
    for (int i = 0; i < MOMENTS; i++) {
        struct spot spot = DECISIONS;
        spot.list = arena_format(matching_fixture->arena, "list-%d", i);
        matching_fixture->matching = third;
        fixture_add(matching_fixture, spot, 1, 20);
        fixture_sleep(matching_fixture, NS_PER_S);
        matching_fixture->matching = other;
        fixture_add(matching_fixture, spot, 21, 40);
        fixture_sleep(matching_fixture, i * NS_PER_MS);
        matching_fixture->matching = one;
        struct test_poll test_poll;
        test_poll_start(matching_fixture, spot, &test_poll, 10 * NS_PER_S);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        test_poll_finish(matching_fixture, &test_poll);
    }
    matching_free(other);
    matching_free(third);
}

TEST(matching_store, a_look_at_a_list_that_another_host_takes_meanwhile_is_not_torn)
{
    struct ledger *ledger = ledger_new(11);
    ledger->matching_fixture.body = torn_looks;
    ledger->matching_fixture.is_shared = true;
    fixture_run_on(&ledger->matching_fixture, 1);
    ledger_free(ledger);
}

/* Two owners give out the same numbers in memory; in the store they must differ. Method: one host
 * is kept busy with polls that may take nothing while the other puts its tasks away; then the first
 * one does. */
static void
same_numbers(struct matching_fixture *matching_fixture)
{
    struct matching *one = matching_fixture->matching;
    struct matching_options options = {.store = matching_fixture->store,
                                       .dynamic = matching_fixture->dynamic,
                                       .task_done = ignore_done};
    struct matching *other = matching_new(&options);
    matching_fixture->rate = 0;
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, NS_PER_MS), 0);
    fixture_add(matching_fixture, ACTIVITIES, 1, 5);
    matching_fixture->matching = other;
    fixture_add(matching_fixture, ACTIVITIES, 11, 15);
    matching_fixture->matching = one;
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, 50 * NS_PER_S), 0);
    fixture_sleep(matching_fixture, 400 * NS_PER_S);
    matching_fixture->rate = -1;
    bool seen[16] = {false};
    for (int i = 0; i < 10; i++)
        seen[fixture_take(matching_fixture, ACTIVITIES, NS_PER_S)] = true;
    for (int i = 1; i <= 5; i++)
        EXPECT(seen[i] && seen[10 + i]);
    matching_free(other);
}

TEST(matching_store, hosts_that_put_the_same_numbers_away_overwrite_nothing, "C-004")
{
    struct ledger *ledger = ledger_new(3);
    ledger->matching_fixture.body = same_numbers;
    ledger->matching_fixture.is_shared = true;
    fixture_run_on(&ledger->matching_fixture, 2);
    ledger_free(ledger);
}

/* --- a store that fails ----------------------------------------------------------------------- */

MATCHING_TEST(matching_store, while_the_store_fails_tasks_keep_their_rows_and_memory_is_handed_out,
              fixture_run(body, SMALL, 2))
{
    fixture_add(matching_fixture, DECISIONS, 1, 10);
    fixture_sleep(matching_fixture, NS_PER_S);
    memory_base_break(matching_fixture->base);
    fixture_add(matching_fixture, DECISIONS, 11, 100);
    fixture_sleep(matching_fixture, 60 * NS_PER_S);
    EXPECT_EQ(matching_fixture->done, 0); /* every row is still there */
    fixture_expect(matching_fixture, DECISIONS, 1, 10);
    EXPECT_EQ(matching_fixture->done, 0);
    memory_base_repair(matching_fixture->base);
}
