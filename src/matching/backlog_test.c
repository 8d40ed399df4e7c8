/* backlog_test.c - what does not fit into memory: stored in order, read back in order, deleted when
 * done; lists that leave memory; hosts that fight for a list. In simulation. */
#include "base/memory.h"
#include "base/test.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "matching/test/fixture.h"
#include "store/key.h"
#include "wire/message.h"

#define SMALL "matching.maxTasksInMemory: [{value: 10}]\nmatching.getTasksBatchSize: [{value: 7}]\n"
#define SHORT (100 * NS_PER_MS)

static size_t
stored_rows(struct matching_fixture *matching_fixture, enum row_kind kind)
{
    struct walk_rows rows;
    EXPECT_OK(
        store_walk(matching_fixture->store, kind, NULL, 100000, matching_fixture->arena, &rows));
    return rows.count;
}

static void
overflow(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 1000);
    fixture_sleep(matching_fixture, NS_PER_S);
    EXPECT_EQ(matching_fixture->done, 990);
    EXPECT(!matching_fixture->is_row_done[10] && matching_fixture->is_row_done[11]);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 990);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK_LIST), 1);
    fixture_expect(matching_fixture, DECISIONS, 1, 500);
    fixture_add(matching_fixture, DECISIONS, 1001,
                1200); /* behind the backlog, though there is room */
    fixture_expect(matching_fixture, DECISIONS, 501, 1200);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 0);
    uint64_t commits = memory_base_commits(matching_fixture->base);
    fixture_add(matching_fixture, DECISIONS, 1201, 1210);
    fixture_expect(matching_fixture, DECISIONS, 1201, 1210);
    EXPECT_EQ(memory_base_commits(matching_fixture->base), commits); /* in memory again */
}

TEST(backlog, what_does_not_fit_into_memory_is_stored_and_handed_out_in_order, "C-001")
{
    fixture_run(overflow, SMALL, 1);
    fixture_run(overflow, SMALL, 3);
}

MATCHING_TEST(backlog, a_poll_is_told_how_many_tasks_wait_in_memory_and_store,
              fixture_run(body, SMALL, 2), "C-007")
{
    fixture_add(matching_fixture, DECISIONS, 1, 100);
    fixture_sleep(matching_fixture, NS_PER_S);
    for (int64_t left = 99; left >= 0; left--) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        EXPECT_EQ(test_poll.poll.backlog, left);
        test_poll_finish(matching_fixture, &test_poll);
    }
}

MATCHING_TEST(backlog, done_tasks_are_deleted_in_portions, fixture_run(body, SMALL, 2))
{
    fixture_add(matching_fixture, DECISIONS, 1, 310);
    fixture_sleep(matching_fixture, NS_PER_S);
    fixture_expect(matching_fixture, DECISIONS, 1, 99);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 300); /* none yet */
    fixture_expect(matching_fixture, DECISIONS, 100, 110);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 200);
    fixture_expect(matching_fixture, DECISIONS, 111, 120);
    fixture_sleep(matching_fixture, 11 * NS_PER_S); /* now and then also smaller portions */
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 190);
}

/* Tasks handed out of the store whose start is not known to be recorded must survive. */
static void
hold_some(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 30);
    fixture_sleep(matching_fixture, NS_PER_S);
    fixture_expect(matching_fixture, DECISIONS, 1, 14);
    struct test_poll lost; /* 15: the process ends before its start is recorded */
    test_poll_start(matching_fixture, DECISIONS, &lost, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&lost), POLL_MATCHED);
    EXPECT_EQ(lost.poll.task->schedule_id, 15);
    EXPECT_EQ(lost.poll.task->row, 0);
    EXPECT_EQ(lost.poll.task->shard, 3);
    EXPECT_TEXT(lost.poll.task->workflow_id, "workflow");
    arena_free(lost.poll.task_arena);
    struct test_poll returned;
    test_poll_start(matching_fixture, DECISIONS, &returned, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&returned), POLL_MATCHED);
    matching_return(matching_fixture->matching, returned.poll.task);
    arena_free(returned.poll.task_arena);
    fixture_expect(matching_fixture, DECISIONS, 16, 20);
}

static void
find_the_rest(struct matching_fixture *matching_fixture)
{
    fixture_expect(matching_fixture, DECISIONS, 15, 30);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 0);
}

TEST(backlog, a_stored_task_stays_until_its_start_is_recorded, "C-002")
{
    struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
    matching_fixture->base = memory_base_new(1);
    matching_fixture->yaml = SMALL;
    matching_fixture->body = hold_some;
    fixture_run_on(matching_fixture, 2);
    matching_fixture->body = find_the_rest;
    fixture_run_on(matching_fixture, 3); /* another number of loops */
    memory_base_free(matching_fixture->base);
    memory_free(matching_fixture);
}

MATCHING_TEST(backlog, a_stored_task_that_its_caller_neither_finishes_nor_returns_is_offered_again,
              fixture_run(body, SMALL, 2))
{
    fixture_add(matching_fixture, DECISIONS, 1, 30);
    fixture_sleep(matching_fixture, NS_PER_S);
    fixture_expect(matching_fixture, DECISIONS, 1, 10);
    struct test_poll lost;
    test_poll_start(matching_fixture, DECISIONS, &lost, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&lost), POLL_MATCHED);
    arena_free(lost.poll.task_arena);
    fixture_expect(matching_fixture, DECISIONS, 12, 20);
    fixture_sleep(matching_fixture, 75 * NS_PER_S);
    fixture_expect(matching_fixture, DECISIONS, 11, 30); /* some once more: starting knows them */
    fixture_sleep(matching_fixture, SHORT);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 0);
}

MATCHING_TEST(backlog, stored_tasks_that_waited_too_long_are_dropped, fixture_run(body, SMALL, 2),
              "C-006")
{
    for (uint64_t row = 1; row <= 100; row++) {
        struct task task = fixture_task(ACTIVITIES, row);
        task.expiry_time = row % 10 == 0 ? 0 : clock_wall() + 20 * NS_PER_S;
        EXPECT(matching_add(matching_fixture->matching, &task));
    }
    fixture_sleep(matching_fixture, 60 * NS_PER_S);
    EXPECT_EQ(matching_fixture->done, 99); /* all but the one in memory that does not expire */
    for (int64_t wanted = 10; wanted <= 100; wanted += 10)
        EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, NS_PER_S), wanted);
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, SHORT), 0);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 0);
}

#define LISTS 1000

/* More lists than workers, all new at the same moment. */
MATCHING_TEST(backlog, a_thousand_lists_at_once_are_all_served, fixture_run(body, NULL, 2))
{
    struct spot spot = DECISIONS;
    for (uint64_t i = 1; i <= LISTS; i++) {
        spot.list = arena_format(matching_fixture->arena, "list %llu", (unsigned long long)i);
        fixture_add(matching_fixture, spot, i, i);
    }
    for (int64_t i = 1; i <= LISTS; i++) {
        spot.list = arena_format(matching_fixture->arena, "list %lld", (long long)i);
        EXPECT_EQ(fixture_take(matching_fixture, spot, NS_PER_S), i);
    }
}

/* --- idle lists ------------------------------------------------------------------------------- */

static void
idle(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 5);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 1);
    fixture_sleep(matching_fixture, 400 * NS_PER_S);
    EXPECT_EQ(matching_fixture->done, 4); /* put away: the store has them */
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 4);
    fixture_add(matching_fixture, DECISIONS, 6, 7);
    fixture_expect(matching_fixture, DECISIONS, 2, 7);

    fixture_add(matching_fixture, DECISIONS, 8,
                60); /* in memory and in the store, and idle again */
    fixture_sleep(matching_fixture, 400 * NS_PER_S);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 53);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 8);
    fixture_sleep(matching_fixture, 400 * NS_PER_S); /* some were read and forgotten again */
    fixture_expect(matching_fixture, DECISIONS, 9, 60);
    fixture_sleep(matching_fixture, 400 * NS_PER_S);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    EXPECT_EQ(stored_rows(matching_fixture, ROW_TASK), 0);
}

TEST(backlog, an_idle_list_leaves_memory_and_comes_back_with_all_its_tasks_in_order, "C-004")
{
    fixture_run(idle, SMALL, 1);
    fixture_run(idle, SMALL, 3);
}

static void
wanted_after_all(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 15);
    fixture_sleep(matching_fixture, 305 * NS_PER_S);
    EXPECT_EQ(matching_fixture->done, 15); /* all are stored, the list is still there */
    fixture_add(matching_fixture, DECISIONS, 16, 16);
    fixture_expect(matching_fixture, DECISIONS, 1, 16);
}

TEST(backlog, a_list_that_is_polled_while_it_is_put_away_gives_out_everything_in_order, "C-004")
{
    fixture_run(wanted_after_all, SMALL, 1);
    fixture_run(wanted_after_all, SMALL, 2);
}

/* A task that was returned late has a number that was deleted long ago. */
MATCHING_TEST(backlog, a_task_that_is_returned_late_survives_that_its_list_leaves_memory,
              fixture_run(body, SMALL, 2), "C-004")
{
    fixture_add(matching_fixture, DECISIONS, 1, 30);
    struct test_poll late;
    test_poll_start(matching_fixture, DECISIONS, &late, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&late), POLL_MATCHED);
    fixture_expect(matching_fixture, DECISIONS, 2, 30);
    fixture_sleep(matching_fixture, 11 * NS_PER_S);
    matching_return(matching_fixture->matching, late.poll.task);
    arena_free(late.poll.task_arena);
    fixture_sleep(matching_fixture, 400 * NS_PER_S);
    EXPECT(matching_fixture->is_row_done[1]);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, NS_PER_S), 1);
}

MATCHING_TEST(backlog, without_sync_match_a_task_is_stored_before_it_is_handed_out,
              fixture_run(body, "matching.enableSyncMatch: [{value: false}]", 2), "C-001")
{
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, 10 * NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, DECISIONS, 1, 3);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_EQ(matching_fixture->done, 3); /* stored first */
    test_poll_finish(matching_fixture, &test_poll);
    fixture_expect(matching_fixture, DECISIONS, 2, 3);
}

/* --- describe --------------------------------------------------------------------------------- */

static API(DescribeTaskListResponse) *
describe(struct matching_fixture *matching_fixture, struct spot spot)
{
    struct list_spot asked = {spot.type, "domain", {spot.list, 0}};
    API(DescribeTaskListResponse) *response =
        API_NEW(matching_fixture->arena, describe_task_list_response);
    EXPECT_OK(matching_describe(matching_fixture->matching, &asked, true, matching_fixture->arena,
                                response));
    return response;
}

static void
expect_status(struct matching_fixture *matching_fixture, int64_t backlog, int64_t read, int64_t ack)
{
    API(DescribeTaskListResponse) *response = describe(matching_fixture, DECISIONS);
    EXPECT_EQ(response->task_list_status->backlog_count_hint, backlog);
    EXPECT_EQ(response->task_list_status->read_level, read);
    EXPECT_EQ(response->task_list_status->ack_level, ack);
    EXPECT_EQ(response->task_list_status->empty, backlog == 0);
    EXPECT_EQ((int64_t)response->task_list_status->rate_per_second, 100000);
    EXPECT_EQ(response->task_list_status->task_id_block->start_id, 1);
    EXPECT_EQ(response->task_list_status->task_id_block->end_id, 100000);
}

MATCHING_TEST(backlog, the_status_of_a_list_is_what_cadence_shows, fixture_run(body, SMALL, 2),
              "C-012")
{
    expect_status(matching_fixture, 0, 0, 0);
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    fixture_sleep(matching_fixture, SHORT);
    expect_status(matching_fixture, 1, 1, 0);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 1);
    expect_status(matching_fixture, 0, 1, 1);
    fixture_add(matching_fixture, DECISIONS, 2, 40);
    fixture_sleep(matching_fixture, SHORT);
    expect_status(matching_fixture, 39, 11, 1);
    fixture_expect(matching_fixture, DECISIONS, 2, 40);
    fixture_sleep(matching_fixture, SHORT);
    expect_status(matching_fixture, 0, 40, 40);
}

static void
pollers(struct matching_fixture *matching_fixture)
{
    API(DescribeTaskListResponse) *response = describe(matching_fixture, DECISIONS);
    EXPECT_EQ(response->n_pollers, 0);
    matching_fixture->identity = "one";
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, SHORT), 0);
    fixture_sleep(matching_fixture, 200 * NS_PER_S);
    matching_fixture->identity = "two";
    matching_fixture->rate = 12.5;
    int64_t polled = clock_wall();
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, SHORT), 0);
    EXPECT_EQ(describe(matching_fixture, DECISIONS)->n_pollers, 0);
    response = describe(matching_fixture, ACTIVITIES);
    EXPECT_EQ(response->n_pollers, 2);
    EXPECT_TEXT(response->pollers[0]->identity, "one");
    EXPECT(response->pollers[0]->rate_per_second == 100000);
    EXPECT_TEXT(response->pollers[1]->identity, "two");
    EXPECT(response->pollers[1]->rate_per_second == 12.5);
    EXPECT(response->pollers[1]->last_access_time->seconds - polled / NS_PER_S <= 1);
    fixture_sleep(matching_fixture, 150 * NS_PER_S);
    response = describe(matching_fixture, ACTIVITIES);
    EXPECT_EQ(response->n_pollers, 1);
    EXPECT_TEXT(response->pollers[0]->identity, "two");
}

TEST(backlog, pollers_of_the_last_five_minutes_are_shown_with_their_rates, "C-009", "C-011")
{
    fixture_run(pollers, NULL, 2);
}
