/* query_test.c - queries on lists: before tasks, never stored, worth nothing once nobody waits. In
 * simulation. */
#include "base/test.h"
#include "matching/fixture.h"

#define SHORT (100 * NS_PER_MS)

static struct task
query_task(struct spot spot, const char *id)
{
    struct task task = bench_task(spot, 0);
    task.normal_list = "";
    task.query_id = id;
    task.query = slice_text("question");
    return task;
}

static struct error *
ask(struct bench *bench, struct spot spot, const char *id)
{
    struct task task = query_task(spot, id);
    return matching_ask(bench->matching, &task, bench->arena);
}

/* Polls: the id of the query that comes, "task" for a task, "" for nothing. */
static const char *
take(struct bench *bench, struct spot spot)
{
    struct probe probe;
    const char *id = "";
    probe_start(bench, spot, &probe, SHORT);
    if (probe_wait(&probe) == POLL_MATCHED) {
        const struct task *task = probe.poll.task;
        id = task_is_query(task) ? arena_text(bench->arena, task->query_id) : "task";
        if (task_is_query(task))
            EXPECT(slice_equal(task->query, slice_text("question")));
        probe_finish(bench, &probe);
    }
    return id;
}

static void
order(struct bench *bench)
{
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    bench_sleep(bench, SHORT);
    EXPECT_OK(ask(bench, DECISIONS, "zero")); /* somebody waits for it */
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_TEXT(probe.poll.task->query_id, "zero");
    arena_free(probe.poll.task_arena);

    bench_add(bench, DECISIONS, 1, 2);
    EXPECT_OK(ask(bench, DECISIONS, "one"));
    EXPECT_OK(ask(bench, DECISIONS, "two"));
    EXPECT_TEXT(take(bench, DECISIONS), "one");
    EXPECT_TEXT(take(bench, DECISIONS), "two");
    bench_expect(bench, DECISIONS, 1, 2);
    EXPECT_TEXT(take(bench, DECISIONS), "");
    EXPECT_EQ(memory_base_rows(bench->base), 0);
}

TEST(query, queries_go_in_their_order_and_before_tasks)
{
    bench_run(order, NULL, 1);
    bench_run(order, NULL, 3);
}

static void
ends(struct bench *bench)
{
    struct task task = query_task(DECISIONS, "late");
    task.expiry_time = clock_wall() + SHORT;
    EXPECT_OK(matching_ask(bench->matching, &task, bench->arena));
    EXPECT_OK(ask(bench, DECISIONS, "unasked"));
    EXPECT_OK(ask(bench, DECISIONS, "kept"));
    task = query_task(DECISIONS, "unasked");
    matching_unask(bench->matching, &task);
    matching_unask(bench->matching, &task); /* harmless */
    bench_sleep(bench, 2 * SHORT);
    EXPECT_TEXT(take(bench, DECISIONS), "kept");
    EXPECT_TEXT(take(bench, DECISIONS), "");
}

TEST(query, a_query_that_nobody_waits_for_reaches_no_poll)
{
    bench_run(ends, NULL, 1);
    bench_run(ends, NULL, 3);
}

static void
returned(struct bench *bench)
{
    struct probe probe;
    EXPECT_OK(ask(bench, DECISIONS, "one"));
    EXPECT_OK(ask(bench, DECISIONS, "two"));
    probe_start(bench, DECISIONS, &probe, SHORT);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    matching_return(bench->matching, probe.poll.task);
    arena_free(probe.poll.task_arena);
    bench_sleep(bench, SHORT);
    EXPECT_TEXT(take(bench, DECISIONS), "one");
    EXPECT_TEXT(take(bench, DECISIONS), "two");
}

TEST(query, a_query_whose_worker_has_gone_is_the_next_again)
{
    bench_run(returned, NULL, 1);
    bench_run(returned, NULL, 3);
}

static void
sticky(struct bench *bench)
{
    EXPECT_KIND(ask(bench, STICKY, "one"), ERR_STICKY_WORKER_UNAVAILABLE);
    EXPECT_EQ(bench_take(bench, STICKY, SHORT), 0);
    EXPECT_OK(ask(bench, STICKY, "two"));
    bench_sleep(bench, 15 * NS_PER_S);
    EXPECT_TEXT(take(bench, DECISIONS), ""); /* it is passed on to nobody */
    EXPECT_TEXT(take(bench, STICKY), "two");
    bench_sleep(bench, 11 * NS_PER_S);
    EXPECT_KIND(ask(bench, STICKY, "three"), ERR_STICKY_WORKER_UNAVAILABLE);
}

TEST(query, a_sticky_list_takes_queries_only_while_its_worker_lives, "A-213")
{
    bench_run(sticky, NULL, 1);
    bench_run(sticky, NULL, 3);
}

static void
bounded(struct bench *bench)
{
    EXPECT_OK(ask(bench, DECISIONS, "one"));
    EXPECT_OK(ask(bench, DECISIONS, "two"));
    EXPECT_KIND(ask(bench, DECISIONS, "three"), ERR_SERVICE_BUSY);
    EXPECT_TEXT(take(bench, DECISIONS), "one");
    EXPECT_OK(ask(bench, DECISIONS, "four"));
    matching_drain(bench->matching);
    bench_sleep(bench, SHORT);
    EXPECT_KIND(ask(bench, DECISIONS, "five"), ERR_UNAVAILABLE);
}

TEST(query, a_list_holds_only_so_many_and_none_when_the_server_drains)
{
    bench_run(bounded, "matching.maxTasksInMemory: [{value: 2}]", 2);
}
