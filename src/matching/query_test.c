/* query_test.c - queries on lists: before tasks, never stored, worth nothing once nobody waits. In
 * simulation. */
#include "base/test.h"
#include "matching/test/fixture.h"

#define SHORT (100 * NS_PER_MS)

static struct task
query_task(struct spot spot, const char *id)
{
    struct task task = fixture_task(spot, 0);
    task.normal_list = "";
    task.query_id = id;
    task.query = slice_text("question");
    return task;
}

static struct error *
ask(struct matching_fixture *matching_fixture, struct spot spot, const char *id)
{
    struct task task = query_task(spot, id);
    return matching_add_query(matching_fixture->matching, &task, matching_fixture->arena);
}

/* Polls: the id of the query that comes, "task" for a task, "" for nothing. */
static const char *
take(struct matching_fixture *matching_fixture, struct spot spot)
{
    struct test_poll test_poll;
    const char *id = "";
    test_poll_start(matching_fixture, spot, &test_poll, SHORT);
    if (test_poll_wait(&test_poll) == POLL_MATCHED) {
        const struct task *task = test_poll.poll.task;
        id = task_is_query(task) ? arena_text(matching_fixture->arena, task->query_id) : "task";
        if (task_is_query(task))
            EXPECT(slice_equal(task->query, slice_text("question")));
        test_poll_finish(matching_fixture, &test_poll);
    }
    return id;
}

static void
order(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT_OK(ask(matching_fixture, DECISIONS, "zero")); /* somebody waits for it */
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_TEXT(test_poll.poll.task->query_id, "zero");
    arena_free(test_poll.poll.task_arena);

    fixture_add(matching_fixture, DECISIONS, 1, 2);
    EXPECT_OK(ask(matching_fixture, DECISIONS, "one"));
    EXPECT_OK(ask(matching_fixture, DECISIONS, "two"));
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "one");
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "two");
    fixture_expect(matching_fixture, DECISIONS, 1, 2);
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "");
    EXPECT_EQ(memory_base_rows(matching_fixture->base), 0);
}

TEST(query, queries_go_in_their_order_and_before_tasks)
{
    fixture_run(order, NULL, 1);
    fixture_run(order, NULL, 3);
}

static void
ends(struct matching_fixture *matching_fixture)
{
    struct task task = query_task(DECISIONS, "late");
    task.expiry_time = clock_wall() + SHORT;
    EXPECT_OK(matching_add_query(matching_fixture->matching, &task, matching_fixture->arena));
    EXPECT_OK(ask(matching_fixture, DECISIONS, "unasked"));
    EXPECT_OK(ask(matching_fixture, DECISIONS, "kept"));
    task = query_task(DECISIONS, "unasked");
    matching_cancel_query(matching_fixture->matching, &task);
    matching_cancel_query(matching_fixture->matching, &task); /* harmless */
    fixture_sleep(matching_fixture, 2 * SHORT);
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "kept");
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "");
}

TEST(query, a_query_that_nobody_waits_for_reaches_no_poll)
{
    fixture_run(ends, NULL, 1);
    fixture_run(ends, NULL, 3);
}

static void
returned(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    EXPECT_OK(ask(matching_fixture, DECISIONS, "one"));
    EXPECT_OK(ask(matching_fixture, DECISIONS, "two"));
    test_poll_start(matching_fixture, DECISIONS, &test_poll, SHORT);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    matching_return(matching_fixture->matching, test_poll.poll.task);
    arena_free(test_poll.poll.task_arena);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "one");
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "two");
}

TEST(query, a_query_whose_worker_has_gone_is_the_next_again)
{
    fixture_run(returned, NULL, 1);
    fixture_run(returned, NULL, 3);
}

static void
sticky(struct matching_fixture *matching_fixture)
{
    EXPECT_KIND(ask(matching_fixture, STICKY, "one"), ERR_STICKY_WORKER_UNAVAILABLE);
    EXPECT_EQ(fixture_take(matching_fixture, STICKY, SHORT), 0);
    EXPECT_OK(ask(matching_fixture, STICKY, "two"));
    fixture_sleep(matching_fixture, 15 * NS_PER_S);
    EXPECT_TEXT(take(matching_fixture, DECISIONS), ""); /* it is passed on to nobody */
    EXPECT_TEXT(take(matching_fixture, STICKY), "two");
    fixture_sleep(matching_fixture, 11 * NS_PER_S);
    EXPECT_KIND(ask(matching_fixture, STICKY, "three"), ERR_STICKY_WORKER_UNAVAILABLE);
}

TEST(query, a_sticky_list_takes_queries_only_while_its_worker_lives, "A-213")
{
    fixture_run(sticky, NULL, 1);
    fixture_run(sticky, NULL, 3);
}

MATCHING_TEST(query, a_list_holds_only_so_many_and_none_when_the_server_drains,
              fixture_run(body, "matching.maxTasksInMemory: [{value: 2}]", 2))
{
    EXPECT_OK(ask(matching_fixture, DECISIONS, "one"));
    EXPECT_OK(ask(matching_fixture, DECISIONS, "two"));
    EXPECT_KIND(ask(matching_fixture, DECISIONS, "three"), ERR_SERVICE_BUSY);
    EXPECT_TEXT(take(matching_fixture, DECISIONS), "one");
    EXPECT_OK(ask(matching_fixture, DECISIONS, "four"));
    matching_shut_down(matching_fixture->matching);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT_KIND(ask(matching_fixture, DECISIONS, "five"), ERR_UNAVAILABLE);
}
