/* backlog_test.c - what does not fit into memory: stored in order, read back in order, deleted when
 * done; lists that leave memory; hosts that fight for a list. In simulation. */
#include "base/memory.h"
#include "base/test.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "matching/fixture.h"
#include "store/key.h"
#include "wire/message.h"

#define SMALL "matching.maxTasksInMemory: [{value: 10}]\nmatching.getTasksBatchSize: [{value: 7}]\n"
#define SHORT (100 * NS_PER_MS)

static size_t
stored_rows(struct bench *bench, enum row_kind kind)
{
    struct walk_rows rows;
    EXPECT_OK(store_walk(bench->store, kind, NULL, 100000, bench->arena, &rows));
    return rows.count;
}

static void
overflow(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 1000);
    bench_sleep(bench, NS_PER_S);
    EXPECT_EQ(bench->done, 990);
    EXPECT(!bench->is_row_done[10] && bench->is_row_done[11]);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 990);
    EXPECT_EQ(stored_rows(bench, ROW_TASK_LIST), 1);
    bench_expect(bench, DECISIONS, 1, 500);
    bench_add(bench, DECISIONS, 1001, 1200); /* behind the backlog, though there is room */
    bench_expect(bench, DECISIONS, 501, 1200);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 0);
    uint64_t commits = memory_base_commits(bench->base);
    bench_add(bench, DECISIONS, 1201, 1210);
    bench_expect(bench, DECISIONS, 1201, 1210);
    EXPECT_EQ(memory_base_commits(bench->base), commits); /* in memory again */
}

TEST(backlog, what_does_not_fit_into_memory_is_stored_and_handed_out_in_order, "C-001")
{
    bench_run(overflow, SMALL, 1);
    bench_run(overflow, SMALL, 3);
}

static void
hint(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 100);
    bench_sleep(bench, NS_PER_S);
    for (int64_t left = 99; left >= 0; left--) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, NS_PER_S);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        EXPECT_EQ(probe.poll.backlog, left);
        probe_finish(bench, &probe);
    }
}

TEST(backlog, a_poll_is_told_how_many_tasks_wait_in_memory_and_store, "C-007")
{
    bench_run(hint, SMALL, 2);
}

static void
deletions(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 310);
    bench_sleep(bench, NS_PER_S);
    bench_expect(bench, DECISIONS, 1, 99);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 300); /* none yet */
    bench_expect(bench, DECISIONS, 100, 110);
    bench_sleep(bench, SHORT);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 200);
    bench_expect(bench, DECISIONS, 111, 120);
    bench_sleep(bench, 11 * NS_PER_S); /* now and then also smaller portions */
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 190);
}

TEST(backlog, done_tasks_are_deleted_in_portions)
{
    bench_run(deletions, SMALL, 2);
}

/* Tasks handed out of the store whose start is not known to be recorded must survive. */
static void
hold_some(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 30);
    bench_sleep(bench, NS_PER_S);
    bench_expect(bench, DECISIONS, 1, 14);
    struct probe lost; /* 15: the process ends before its start is recorded */
    probe_start(bench, DECISIONS, &lost, NS_PER_S);
    EXPECT_EQ(probe_wait(&lost), POLL_MATCHED);
    EXPECT_EQ(lost.poll.task->schedule_id, 15);
    EXPECT_EQ(lost.poll.task->row, 0);
    EXPECT_EQ(lost.poll.task->shard, 3);
    EXPECT_TEXT(lost.poll.task->workflow_id, "workflow");
    arena_free(lost.poll.task_arena);
    struct probe returned;
    probe_start(bench, DECISIONS, &returned, NS_PER_S);
    EXPECT_EQ(probe_wait(&returned), POLL_MATCHED);
    matching_return(bench->matching, returned.poll.task);
    arena_free(returned.poll.task_arena);
    bench_expect(bench, DECISIONS, 16, 20);
}

static void
find_the_rest(struct bench *bench)
{
    bench_expect(bench, DECISIONS, 15, 30);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 0);
}

TEST(backlog, a_stored_task_stays_until_its_start_is_recorded, "C-002")
{
    struct bench *bench = memory_zalloc(1, sizeof *bench);
    bench->base = memory_base_new(1);
    bench->yaml = SMALL;
    bench->body = hold_some;
    bench_run_on(bench, 2);
    bench->body = find_the_rest;
    bench_run_on(bench, 3); /* another number of loops */
    memory_base_free(bench->base);
    memory_free(bench);
}

static void
forget_one(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 30);
    bench_sleep(bench, NS_PER_S);
    bench_expect(bench, DECISIONS, 1, 10);
    struct probe lost;
    probe_start(bench, DECISIONS, &lost, NS_PER_S);
    EXPECT_EQ(probe_wait(&lost), POLL_MATCHED);
    arena_free(lost.poll.task_arena);
    bench_expect(bench, DECISIONS, 12, 20);
    bench_sleep(bench, 75 * NS_PER_S);
    bench_expect(bench, DECISIONS, 11, 30); /* some once more: starting knows them */
    bench_sleep(bench, SHORT);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 0);
}

TEST(backlog, a_stored_task_of_which_a_door_tells_nothing_is_offered_again)
{
    bench_run(forget_one, SMALL, 2);
}

static void
expire_stored(struct bench *bench)
{
    for (uint64_t row = 1; row <= 100; row++) {
        struct task task = bench_task(ACTIVITIES, row);
        task.expiry_time = row % 10 == 0 ? 0 : clock_wall() + 20 * NS_PER_S;
        EXPECT(matching_add(bench->matching, &task));
    }
    bench_sleep(bench, 60 * NS_PER_S);
    EXPECT_EQ(bench->done, 99); /* all but the one in memory that does not expire */
    for (int64_t wanted = 10; wanted <= 100; wanted += 10)
        EXPECT_EQ(bench_take(bench, ACTIVITIES, NS_PER_S), wanted);
    EXPECT_EQ(bench_take(bench, ACTIVITIES, SHORT), 0);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 0);
}

TEST(backlog, stored_tasks_that_waited_too_long_are_dropped, "C-006")
{
    bench_run(expire_stored, SMALL, 2);
}

#define LISTS 1000

/* More lists than workers, all new at the same moment. */
static void
many_lists(struct bench *bench)
{
    struct spot spot = DECISIONS;
    for (uint64_t i = 1; i <= LISTS; i++) {
        spot.list = arena_format(bench->arena, "list %llu", (unsigned long long)i);
        bench_add(bench, spot, i, i);
    }
    for (int64_t i = 1; i <= LISTS; i++) {
        spot.list = arena_format(bench->arena, "list %lld", (long long)i);
        EXPECT_EQ(bench_take(bench, spot, NS_PER_S), i);
    }
}

TEST(backlog, a_thousand_lists_at_once_are_all_served)
{
    bench_run(many_lists, NULL, 2);
}

/* --- idle lists
 * ----------------------------------------------------------------------------------- */

static void
idle(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 5);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 1);
    bench_sleep(bench, 400 * NS_PER_S);
    EXPECT_EQ(bench->done, 4); /* put away: the store has them */
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 4);
    bench_add(bench, DECISIONS, 6, 7);
    bench_expect(bench, DECISIONS, 2, 7);

    bench_add(bench, DECISIONS, 8, 60); /* in memory and in the store, and idle again */
    bench_sleep(bench, 400 * NS_PER_S);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 53);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 8);
    bench_sleep(bench, 400 * NS_PER_S); /* some were read and forgotten again */
    bench_expect(bench, DECISIONS, 9, 60);
    bench_sleep(bench, 400 * NS_PER_S);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    EXPECT_EQ(stored_rows(bench, ROW_TASK), 0);
}

TEST(backlog, an_idle_list_leaves_memory_and_comes_back_with_all_its_tasks_in_order, "C-004")
{
    bench_run(idle, SMALL, 1);
    bench_run(idle, SMALL, 3);
}

static void
wanted_after_all(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 15);
    bench_sleep(bench, 305 * NS_PER_S);
    EXPECT_EQ(bench->done, 15); /* all are stored, the list is still there */
    bench_add(bench, DECISIONS, 16, 16);
    bench_expect(bench, DECISIONS, 1, 16);
}

TEST(backlog, a_list_that_is_polled_while_it_is_put_away_gives_out_everything_in_order, "C-004")
{
    bench_run(wanted_after_all, SMALL, 1);
    bench_run(wanted_after_all, SMALL, 2);
}

/* A task that was returned late has a number that was deleted long ago. */
static void
late_return(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 30);
    struct probe late;
    probe_start(bench, DECISIONS, &late, NS_PER_S);
    EXPECT_EQ(probe_wait(&late), POLL_MATCHED);
    bench_expect(bench, DECISIONS, 2, 30);
    bench_sleep(bench, 11 * NS_PER_S);
    matching_return(bench->matching, late.poll.task);
    arena_free(late.poll.task_arena);
    bench_sleep(bench, 400 * NS_PER_S);
    EXPECT(bench->is_row_done[1]);
    EXPECT_EQ(bench_take(bench, DECISIONS, NS_PER_S), 1);
}

TEST(backlog, a_task_that_is_returned_late_survives_that_its_list_leaves_memory, "C-004")
{
    bench_run(late_return, SMALL, 2);
}

static void
without_sync_match(struct bench *bench)
{
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, 10 * NS_PER_S);
    bench_sleep(bench, SHORT);
    bench_add(bench, DECISIONS, 1, 3);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_EQ(bench->done, 3); /* stored first */
    probe_finish(bench, &probe);
    bench_expect(bench, DECISIONS, 2, 3);
}

TEST(backlog, without_sync_match_a_task_is_stored_before_it_is_handed_out, "C-001")
{
    bench_run(without_sync_match, "matching.enableSyncMatch: [{value: false}]", 2);
}

/* --- describe
 * ------------------------------------------------------------------------------------- */

static API(DescribeTaskListResponse) *
describe(struct bench *bench, struct spot spot)
{
    struct list_spot asked = {spot.type, "domain", {spot.list, 0}};
    API(DescribeTaskListResponse) *told =
        message_new(bench->arena, API_TYPE(describe_task_list_response));
    EXPECT_OK(matching_describe(bench->matching, &asked, true, bench->arena, told));
    return told;
}

static void
expect_status(struct bench *bench, int64_t backlog, int64_t read, int64_t ack)
{
    API(DescribeTaskListResponse) *told = describe(bench, DECISIONS);
    EXPECT_EQ(told->task_list_status->backlog_count_hint, backlog);
    EXPECT_EQ(told->task_list_status->read_level, read);
    EXPECT_EQ(told->task_list_status->ack_level, ack);
    EXPECT_EQ(told->task_list_status->empty, backlog == 0);
    EXPECT_EQ((int64_t)told->task_list_status->rate_per_second, 100000);
    EXPECT_EQ(told->task_list_status->task_id_block->start_id, 1);
    EXPECT_EQ(told->task_list_status->task_id_block->end_id, 100000);
}

static void
status(struct bench *bench)
{
    expect_status(bench, 0, 0, 0);
    bench_add(bench, DECISIONS, 1, 1);
    bench_sleep(bench, SHORT);
    expect_status(bench, 1, 1, 0);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 1);
    expect_status(bench, 0, 1, 1);
    bench_add(bench, DECISIONS, 2, 40);
    bench_sleep(bench, SHORT);
    expect_status(bench, 39, 11, 1);
    bench_expect(bench, DECISIONS, 2, 40);
    bench_sleep(bench, SHORT);
    expect_status(bench, 0, 40, 40);
}

TEST(backlog, the_figures_of_a_list_are_those_that_cadence_shows, "C-012")
{
    bench_run(status, SMALL, 2);
}

static void
pollers(struct bench *bench)
{
    API(DescribeTaskListResponse) *told = describe(bench, DECISIONS);
    EXPECT_EQ(told->n_pollers, 0);
    bench->identity = "one";
    EXPECT_EQ(bench_take(bench, ACTIVITIES, SHORT), 0);
    bench_sleep(bench, 200 * NS_PER_S);
    bench->identity = "two";
    bench->rate = 12.5;
    int64_t polled = clock_wall();
    EXPECT_EQ(bench_take(bench, ACTIVITIES, SHORT), 0);
    EXPECT_EQ(describe(bench, DECISIONS)->n_pollers, 0);
    told = describe(bench, ACTIVITIES);
    EXPECT_EQ(told->n_pollers, 2);
    EXPECT_TEXT(told->pollers[0]->identity, "one");
    EXPECT(told->pollers[0]->rate_per_second == 100000);
    EXPECT_TEXT(told->pollers[1]->identity, "two");
    EXPECT(told->pollers[1]->rate_per_second == 12.5);
    EXPECT(told->pollers[1]->last_access_time->seconds - polled / NS_PER_S <= 1);
    bench_sleep(bench, 150 * NS_PER_S);
    told = describe(bench, ACTIVITIES);
    EXPECT_EQ(told->n_pollers, 1);
    EXPECT_TEXT(told->pollers[0]->identity, "two");
}

TEST(backlog, pollers_of_the_last_five_minutes_are_shown_with_their_rates, "C-009", "C-011")
{
    bench_run(pollers, NULL, 2);
}
