/* meeting_test.c - tasks and polls meet in memory: order, going away, bounds. In simulation, on
 * several loops, so that lists and doors are often on different ones. */
#include "base/memory.h"
#include "base/test.h"
#include "matching/fixture.h"

#define SHORT (100 * NS_PER_MS)

static void
meet_both_ways(struct bench *bench)
{
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    bench_sleep(bench, SHORT);
    EXPECT(!probe.is_back);
    bench_add(bench, DECISIONS, 1, 1);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_EQ(probe.poll.task->schedule_id, 1);
    EXPECT(probe.poll.waited >= SHORT - NS_PER_MS); /* the way to the list is not counted */
    EXPECT_EQ(probe.poll.backlog, 0);
    probe_finish(bench, &probe);

    bench_add(bench, DECISIONS, 2, 5);
    bench_expect(bench, DECISIONS, 2, 5);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    EXPECT_EQ(memory_base_commits(bench->base), 0); /* nothing of it was stored */
    EXPECT_EQ(bench->done, 0);                      /* starting drops the rows, not matching */
}

TEST(meeting, a_task_goes_to_a_waiting_poll_or_waits_for_one_and_is_not_stored, "C-001")
{
    bench_run(meet_both_ways, NULL, 1);
    bench_run(meet_both_ways, NULL, 3);
}

static void
wait_a_little(struct bench *bench)
{
    bench_add(bench, ACTIVITIES, 1, 3);
    bench_sleep(bench, 45 * NS_PER_MS);
    bench_expect(bench, ACTIVITIES, 1, 3);
    EXPECT_EQ(memory_base_commits(bench->base), 0);
}

TEST(meeting, an_activity_task_waits_a_while_for_a_poll_before_it_is_stored, "C-005")
{
    bench_run(wait_a_little, NULL, 2);
}

static void
lists_are_apart(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 1);
    bench_add(bench, ACTIVITIES, 2, 2);
    struct spot other = DECISIONS;
    other.list = "payments";
    EXPECT_EQ(bench_take(bench, other, SHORT), 0);
    EXPECT_EQ(bench_take(bench, ACTIVITIES, SHORT), 2);
    EXPECT_EQ(bench_take(bench, ACTIVITIES, SHORT), 0);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 1);
}

TEST(meeting, names_and_types_are_lists_of_their_own)
{
    bench_run(lists_are_apart, NULL, 3);
}

static void
come_back_empty(struct bench *bench)
{
    int64_t began = clock_monotonic();
    struct probe one, two;
    probe_start(bench, DECISIONS, &one, 5 * NS_PER_S);
    probe_start(bench, DECISIONS, &two, 3600 * NS_PER_S);
    EXPECT_EQ(probe_wait(&one), POLL_EMPTY);
    EXPECT_EQ((clock_monotonic() - began) / NS_PER_S, 5);
    EXPECT(!two.is_back);
    EXPECT_EQ(probe_wait(&two), POLL_EMPTY); /* the door was too patient */
    EXPECT_EQ((clock_monotonic() - began) / NS_PER_S, 60);
}

TEST(meeting, a_poll_comes_back_empty_at_its_expiry_or_after_the_longest_wait, "A-053")
{
    bench_run(come_back_empty, NULL, 2);
}

static void
first_come_first_served(struct bench *bench)
{
    struct probe probes[4];
    for (int i = 0; i < 4; i++) {
        probe_start(bench, DECISIONS, &probes[i], 10 * NS_PER_S);
        bench_sleep(bench, SHORT);
    }
    matching_withdraw(bench->matching, &probes[1].poll);
    EXPECT_EQ(probe_wait(&probes[1]), POLL_WITHDRAWN);
    bench_add(bench, DECISIONS, 1, 2);
    EXPECT_EQ(probe_wait(&probes[0]), POLL_MATCHED);
    EXPECT_EQ(probe_wait(&probes[2]), POLL_MATCHED);
    EXPECT_EQ(probes[0].poll.task->schedule_id, 1);
    EXPECT_EQ(probes[2].poll.task->schedule_id, 2);
    EXPECT(!probes[3].is_back);
    probe_finish(bench, &probes[0]);
    probe_finish(bench, &probes[2]);
    matching_withdraw(bench->matching, &probes[3].poll);
    EXPECT_EQ(probe_wait(&probes[3]), POLL_WITHDRAWN);
}

TEST(meeting, the_poll_that_waits_longest_is_served_first_and_a_withdrawn_one_never, "C-003")
{
    bench_run(first_come_first_served, NULL, 1);
    bench_run(first_come_first_served, NULL, 3);
}

static void
withdraw_too_late(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 1);
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, NS_PER_S); /* its letter is on the way */
    matching_withdraw(bench->matching, &probe.poll);
    matching_withdraw(bench->matching, &probe.poll);
    enum poll_end end = probe_wait(&probe);
    EXPECT(end == POLL_MATCHED || end == POLL_WITHDRAWN);
    if (end == POLL_MATCHED) {
        matching_return(bench->matching, probe.poll.task);
        arena_free(probe.poll.task_arena);
    }
    EXPECT_EQ(bench_take(bench, DECISIONS, NS_PER_S), 1);
}

TEST(meeting, a_poll_that_is_withdrawn_on_its_way_comes_back_once_and_its_task_is_not_lost)
{
    for (unsigned loops = 1; loops <= 4; loops++)
        bench_run(withdraw_too_late, NULL, loops);
}

static void
return_to_the_front(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 3);
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_EQ(probe.poll.backlog, 2);
    matching_return(bench->matching, probe.poll.task);
    arena_free(probe.poll.task_arena);
    bench_expect(bench, DECISIONS, 1, 3);
}

TEST(meeting, a_task_whose_poller_had_gone_is_given_to_the_next_before_all_others, "C-002")
{
    bench_run(return_to_the_front, NULL, 1);
    bench_run(return_to_the_front, NULL, 3);
}

static void
offered_again(struct bench *bench)
{
    bench_add(bench, DECISIONS, 1, 2);
    for (uint64_t range_id = 2; range_id < 10; range_id++) {
        struct task task = bench_task(DECISIONS, 1);
        task.range_id = range_id;
        EXPECT(matching_add(bench->matching, &task));
    }
    struct task other = bench_task(DECISIONS, 1);
    other.shard = 4; /* the same number in another shard is another task */
    EXPECT(matching_add(bench->matching, &other));
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_EQ(probe.poll.task->range_id, 9);
    EXPECT_EQ(probe.poll.backlog, 2);
    probe_finish(bench, &probe);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 2);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 1);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
}

TEST(meeting, a_task_that_is_offered_again_waits_once_for_its_newest_owner)
{
    bench_run(offered_again, NULL, 2);
}

static void
expire(struct bench *bench)
{
    for (uint64_t row = 1; row <= 4; row++) {
        struct task task = bench_task(ACTIVITIES, row);
        task.expiry_time = row == 3 ? 0 : clock_wall() + (int64_t)row * NS_PER_S;
        EXPECT(matching_add(bench->matching, &task));
    }
    bench_sleep(bench, 2 * NS_PER_S + SHORT);
    bench_expect(bench, ACTIVITIES, 3, 4);
    EXPECT(bench->done == 2 && bench->is_row_done[1] && bench->is_row_done[2]);
    struct task late = bench_task(ACTIVITIES, 5);
    late.expiry_time = clock_wall() + NS_PER_S;
    EXPECT(matching_add(bench->matching, &late));
    bench_sleep(bench, 30 * NS_PER_S); /* nobody polls: it goes all the same */
    EXPECT(bench->done == 3 && bench->is_row_done[5]);
}

TEST(meeting, a_task_that_waited_too_long_is_dropped_and_its_row_is_told_done, "C-006")
{
    bench_run(expire, NULL, 2);
}

static void
drain(struct bench *bench)
{
    struct probe parked, late;
    probe_start(bench, DECISIONS, &parked, 3600 * NS_PER_S);
    bench_sleep(bench, SHORT);
    matching_drain(bench->matching);
    EXPECT_EQ(probe_wait(&parked), POLL_EMPTY);
    probe_start(bench, DECISIONS, &late, 3600 * NS_PER_S);
    EXPECT_EQ(probe_wait(&late), POLL_EMPTY);
    struct task task = bench_task(DECISIONS, 1);
    EXPECT(!matching_add(bench->matching, &task));
}

TEST(meeting, after_a_drain_every_poll_ends_empty_and_no_task_is_taken)
{
    bench_run(drain, NULL, 3);
}

#define MANY 100000

static void
many_polls(struct bench *bench)
{
    struct probe *probes = memory_zalloc(MANY, sizeof *probes);
    for (int i = 0; i < MANY; i++) {
        probe_start(bench, DECISIONS, &probes[i], 50 * NS_PER_S);
        if (i % 10000 == 0)
            bench_sleep(bench, NS_PER_MS); /* a mailbox is bounded */
    }
    bench_sleep(bench, 30 * NS_PER_S);
    for (int i = 0; i < MANY; i += 2) {
        matching_withdraw(bench->matching, &probes[i].poll);
        if (i % 10000 == 0)
            bench_sleep(bench, NS_PER_MS);
    }
    for (int i = 1; i < MANY; i += 2)
        bench_add(bench, DECISIONS, (uint64_t)i, (uint64_t)i);
    for (int i = 0; i < MANY; i++) {
        EXPECT_EQ(probe_wait(&probes[i]), i % 2 == 0 ? POLL_WITHDRAWN : POLL_MATCHED);
        if (i % 2 == 0)
            continue;
        EXPECT_EQ(probes[i].poll.task->schedule_id, i);
        probe_finish(bench, &probes[i]);
    }
    memory_free(probes);
}

TEST(meeting, a_hundred_thousand_polls_wait_and_each_gets_its_task_or_goes_away)
{
    bench_run(many_polls, NULL, 1);
    bench_run(many_polls, NULL, 2);
}

/* Letters to another loop are bounded: what does not go is refused, and nothing of it is lost. */
static void
overrun(struct bench *bench)
{
    enum { COUNT = 70000 };
    struct probe *probes = memory_zalloc(COUNT, sizeof *probes);
    for (int i = 0; i < COUNT; i++)
        probe_start(bench, DECISIONS, &probes[i], 10 * NS_PER_S);
    uint64_t refused = 0, failed = 0, matched = 0, taken = 0;
    for (uint64_t row = 1; row <= 10; row++) {
        struct task task = bench_task(DECISIONS, row);
        bool is_taken = matching_add(bench->matching, &task);
        taken += is_taken;
        refused += !is_taken;
    }
    for (int i = 0; i < COUNT; i++) {
        enum poll_end end = probe_wait(&probes[i]);
        failed += end == POLL_FAILED;
        matched += end == POLL_MATCHED;
        EXPECT((end == POLL_FAILED) == (probes[i].poll.failure != NULL));
        if (end == POLL_MATCHED)
            probe_finish(bench, &probes[i]);
    }
    EXPECT_EQ(matched, taken);
    EXPECT_EQ(failed > 0, refused > 0);
    bench->done = failed; /* for the caller */
    memory_free(probes);
}

TEST(meeting, what_a_full_mailbox_refuses_is_told_and_the_rest_is_served)
{
    struct bench *bench = memory_zalloc(1, sizeof *bench);
    bench->base = memory_base_new(1);
    bench->body = overrun;
    size_t failed = 0;
    for (unsigned loops = 1; loops <= 4; loops++) { /* the list is on loop 0 in some, not in all */
        bench_run_on(bench, loops);
        EXPECT(loops > 1 || bench->done == 0);
        failed += bench->done;
    }
    EXPECT(failed > 0);
    memory_base_free(bench->base);
    memory_free(bench);
}

/* --- domains -------------------------------------------------------------------------------------
 */

/* Adds tasks of a domain until no more are taken. */
static uint64_t
fill(struct bench *bench, const char *domain_id, uint64_t most)
{
    struct task task = bench_task(DECISIONS, 1);
    task.domain_id = domain_id;
    for (uint64_t row = 0; row < most; row++) {
        task.row = 0;
        if (!matching_add(bench->matching, &task))
            return row;
    }
    return most;
}

static void
shares(struct bench *bench)
{
    uint64_t first = fill(bench, "domain", 300000);
    EXPECT(first > 190000 && first < 200000);
    EXPECT_EQ(fill(bench, "another", 1000), 1000);
}

TEST(meeting, a_domain_whose_tasks_fill_the_memory_leaves_room_for_others)
{
    bench_run(shares, NULL, 1);
}
