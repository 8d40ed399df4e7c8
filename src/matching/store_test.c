/* store_test.c - lists when the store fails, the process dies at any moment, and other hosts want
 * the same list. In simulation. */
#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "fiber/sync.h"
#include "matching/fixture.h"

#define SMALL "matching.maxTasksInMemory: [{value: 10}]\nmatching.getTasksBatchSize: [{value: 7}]\n"
#define TASKS 200

/* What the shards know: which rows are there, which tasks were started. Outlives every host. */
struct ledger {
    struct bench bench;
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
ledger_of(struct bench *bench)
{
    return container_of(bench, struct ledger, bench);
}

/* As a shard does after it was taken: every row that is still there is offered. */
static void
offer_rows(struct bench *bench)
{
    struct ledger *ledger = ledger_of(bench);
    ledger->range_id++;
    for (uint64_t row = 1; row <= TASKS; row++) {
        if (bench->is_row_done[row] || ledger->is_started[row])
            continue;
        struct task task = bench_task(DECISIONS, row);
        task.range_id = ledger->range_id;
        EXPECT(matching_add(bench->matching, &task));
        if (entropy_below(10) == 0)
            bench_sleep(bench, (int64_t)entropy_below(10 * NS_PER_MS));
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
take_one(struct bench *bench, int64_t patience)
{
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, patience);
    if (probe_wait(&probe) != POLL_MATCHED)
        return false;
    if (entropy_below(8) == 0) { /* the poller had gone */
        matching_return(bench->matching, probe.poll.task);
        arena_free(probe.poll.task_arena);
        return true;
    }
    start_task(ledger_of(bench), probe.poll.task);
    probe_finish(bench, &probe);
    return true;
}

static struct ledger *
ledger_new(uint64_t seed)
{
    struct ledger *ledger = memory_zalloc(1, sizeof *ledger);
    ledger->bench.base = memory_base_new(seed);
    ledger->bench.yaml = SMALL;
    return ledger;
}

static void
ledger_free(struct ledger *ledger)
{
    memory_base_free(ledger->bench.base);
    memory_free(ledger);
}

/* --- crashes
 * ---------------------------------------------------------------------------------------
 */

static void
mortal_body(struct bench *bench)
{
    struct ledger *ledger = ledger_of(bench);
    offer_rows(bench);
    if (ledger->lives++ == 0)
        bench_sleep(bench, 20 * NS_PER_MS);
    while (ledger->started < TASKS && take_one(bench, 10 * NS_PER_S))
        continue;
    ledger->is_over = true;
}

static void
note_crash(void *context)
{
    struct ledger *ledger = context;
    memory_crash(ledger->bench.base, ledger->bench.handle);
}

static bool
is_at_crash_point(void *context)
{
    struct ledger *ledger = context;
    return ledger->is_over || memory_base_points(ledger->bench.base) >= ledger->crash_point;
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
    struct host *host = world_add_host(world, "mortal", 2);
    struct ledger *ledger = ledger_new(seed);
    ledger->bench.body = mortal_body;
    ledger->crash_point = point;
    host_on_crash(host, note_crash, ledger);
    host_start(host, bench_life, &ledger->bench);
    EXPECT(world_run_until(world, is_at_crash_point, ledger, 600 * NS_PER_S));
    bool is_crashed = !ledger->is_over;
    if (is_crashed) {
        host_crash(host);
        host_start(host, bench_life, &ledger->bench);
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
spill_and_end(struct bench *bench)
{
    offer_rows(bench);
    bench_sleep(bench, NS_PER_S);
    EXPECT_EQ(bench->done, TASKS - 10);
}

static void
read_in_order(struct bench *bench)
{
    for (int64_t wanted = 11; wanted <= TASKS; wanted++)
        EXPECT_EQ(bench_take(bench, DECISIONS, NS_PER_S), wanted);
    EXPECT_EQ(bench_take(bench, DECISIONS, NS_PER_S), 0);
}

TEST(matching_store, stored_tasks_keep_their_order_over_a_restart, "C-001")
{
    struct ledger *ledger = ledger_new(5);
    ledger->bench.body = spill_and_end;
    bench_run_on(&ledger->bench, 2);
    ledger->bench.body = read_in_order;
    bench_run_on(&ledger->bench, 1);
    ledger_free(ledger);
}

/* Some that were stored are done and not deleted yet when others are stored, with the record. */
static void
done_in_part(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 30);
    bench_sleep(bench, NS_PER_S);
    bench_expect(bench, DECISIONS, 1, 20);
    bench_add(bench, DECISIONS, 31, 40);
    bench_sleep(bench, NS_PER_S);
    ledger_of(bench)->is_over = true;
    bench_sleep(bench, NS_PER_S);
}

static void
done_with_the_rest(struct bench *bench)
{
    struct walk_rows rows;
    while (bench_take(bench, DECISIONS, NS_PER_S) != 0)
        continue;
    EXPECT_OK(store_walk(bench->store, ROW_TASK, NULL, TASKS, bench->arena, &rows));
    EXPECT_EQ(rows.count, 0);
}

TEST(matching_store, after_a_crash_tasks_that_were_done_are_deleted_too)
{
    struct world *world = world_new(.seed = 7);
    struct host *host = world_add_host(world, "mortal", 2);
    struct ledger *ledger = ledger_new(7);
    ledger->bench.body = done_in_part;
    ledger->crash_point = UINT64_MAX;
    host_on_crash(host, note_crash, ledger);
    host_start(host, bench_life, &ledger->bench);
    EXPECT(world_run_until(world, is_at_crash_point, ledger, 600 * NS_PER_S));
    host_crash(host);
    ledger->bench.body = done_with_the_rest;
    host_start(host, bench_life, &ledger->bench);
    EXPECT(world_run_until(world, has_ended, host, 600 * NS_PER_S));
    world_free(world);
    ledger_free(ledger);
}

/* --- several hosts
 * ----------------------------------------------------------------------------------
 */

#define HOSTS   3
#define MOMENTS 40

struct contender {
    struct bench bench; /* first */
    struct ledger *ledger;
    unsigned number;
};

/* Adds a third of the tasks, takes what comes, until all were started somewhere. */
static void
contender_body(struct bench *bench)
{
    struct contender *contender = container_of(bench, struct contender, bench);
    struct ledger *ledger = contender->ledger;
    for (uint64_t row = 1 + contender->number; row <= TASKS; row += HOSTS) {
        struct task task = bench_task(DECISIONS, row);
        EXPECT(matching_add(bench->matching, &task));
        if (entropy_below(10) == 0)
            bench_sleep(bench, (int64_t)entropy_below(50 * NS_PER_MS));
    }
    while (ledger->started < TASKS) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, NS_PER_S);
        if (probe_wait(&probe) != POLL_MATCHED)
            continue;
        start_task(ledger, probe.poll.task);
        probe_finish(bench, &probe);
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
    struct contender *contenders = memory_zalloc(HOSTS, sizeof *contenders);
    struct host *hosts[HOSTS];
    for (unsigned i = 0; i < HOSTS; i++) {
        contenders[i] = (struct contender){.ledger = ledger, .number = i};
        contenders[i].bench = (struct bench){
            .base = ledger->bench.base, .yaml = SMALL, .is_shared = true, .body = contender_body};
        hosts[i] = world_add_host(world, names[i], 2);
        host_start(hosts[i], bench_life, &contenders[i].bench);
    }
    EXPECT(world_run_until(world, have_all_ended, hosts, 3600 * NS_PER_S));
    EXPECT_EQ(ledger->started, TASKS);
    uint64_t lost = world_mark_count(world, "task_list_lost");
    world_free(world);
    memory_free(contenders);
    ledger_free(ledger);
    return lost;
}

/* A host that was overtaken notices it at the store, gives its tasks up or takes the list again:
 * whoever asks it is served. */
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
torn_looks(struct bench *bench)
{
    struct matching_options options = {
        .store = bench->store, .dynamic = bench->dynamic, .task_done = ignore_done};
    struct matching *one = bench->matching;
    struct matching *other = matching_new(&options), *third = matching_new(&options);
    memory_base_set_delays(bench->base, NS_PER_MS, NS_PER_MS, 20 * NS_PER_MS);
    for (int i = 0; i < MOMENTS; i++) {
        struct spot spot = DECISIONS;
        spot.list = arena_format(bench->arena, "list-%d", i);
        bench->matching = third;
        bench_add(bench, spot, 1, 20);
        bench_sleep(bench, NS_PER_S);
        bench->matching = other;
        bench_add(bench, spot, 21, 40);
        bench_sleep(bench, i * NS_PER_MS);
        bench->matching = one;
        struct probe probe;
        probe_start(bench, spot, &probe, 10 * NS_PER_S);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        probe_finish(bench, &probe);
    }
    matching_free(other);
    matching_free(third);
}

TEST(matching_store, a_look_at_a_list_that_another_host_takes_meanwhile_is_not_torn)
{
    struct ledger *ledger = ledger_new(11);
    ledger->bench.body = torn_looks;
    ledger->bench.is_shared = true;
    bench_run_on(&ledger->bench, 1);
    ledger_free(ledger);
}

/* Two owners give out the same numbers in memory; in the store they must differ. Method: one host
 * is kept busy with polls that may take nothing while the other puts its tasks away; then the first
 * one does. */
static void
same_numbers(struct bench *bench)
{
    struct matching *one = bench->matching;
    struct matching_options options = {
        .store = bench->store, .dynamic = bench->dynamic, .task_done = ignore_done};
    struct matching *other = matching_new(&options);
    bench->rate = 0;
    EXPECT_EQ(bench_take(bench, ACTIVITIES, NS_PER_MS), 0);
    bench_add(bench, ACTIVITIES, 1, 5);
    bench->matching = other;
    bench_add(bench, ACTIVITIES, 11, 15);
    bench->matching = one;
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(bench_take(bench, ACTIVITIES, 50 * NS_PER_S), 0);
    bench_sleep(bench, 400 * NS_PER_S);
    bench->rate = -1;
    bool seen[16] = {false};
    for (int i = 0; i < 10; i++)
        seen[bench_take(bench, ACTIVITIES, NS_PER_S)] = true;
    for (int i = 1; i <= 5; i++)
        EXPECT(seen[i] && seen[10 + i]);
    matching_free(other);
}

TEST(matching_store, hosts_that_put_the_same_numbers_away_overwrite_nothing, "C-004")
{
    struct ledger *ledger = ledger_new(3);
    ledger->bench.body = same_numbers;
    ledger->bench.is_shared = true;
    bench_run_on(&ledger->bench, 2);
    ledger_free(ledger);
}

/* --- a store that fails
 * ------------------------------------------------------------------------------
 */

static void
break_store(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 10);
    bench_sleep(bench, NS_PER_S);
    memory_base_break(bench->base);
    bench_add(bench, DECISIONS, 11, 100);
    bench_sleep(bench, 60 * NS_PER_S);
    EXPECT_EQ(bench->done, 0); /* every row is still there */
    bench_expect(bench, DECISIONS, 1, 10);
    EXPECT_EQ(bench->done, 0);
    memory_base_repair(bench->base);
}

TEST(matching_store, while_the_store_fails_tasks_keep_their_rows_and_memory_is_handed_out)
{
    bench_run(break_store, SMALL, 2);
}
