/* meeting_test.c - tasks and polls meet in memory: order, going away, bounds. In simulation, on
 * several loops, so that lists and callers are often on different ones. */
#include "base/memory.h"
#include "base/test.h"
#include "matching/test/fixture.h"

#define SHORT (100 * NS_PER_MS)

static void
meet_both_ways(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT(!test_poll.is_back);
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_EQ(test_poll.poll.task->schedule_id, 1);
    EXPECT(test_poll.poll.waited >= SHORT - NS_PER_MS); /* the way to the list is not counted */
    EXPECT_EQ(test_poll.poll.backlog, 0);
    test_poll_finish(matching_fixture, &test_poll);

    fixture_add(matching_fixture, DECISIONS, 2, 5);
    fixture_expect(matching_fixture, DECISIONS, 2, 5);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    EXPECT_EQ(memory_base_commits(matching_fixture->base), 0); /* nothing of it was stored */
    EXPECT_EQ(matching_fixture->done, 0); /* starting drops the rows, not matching */
}

TEST(meeting, a_task_goes_to_a_waiting_poll_or_waits_for_one_and_is_not_stored, "C-001")
{
    fixture_run(meet_both_ways, NULL, 1);
    fixture_run(meet_both_ways, NULL, 3);
}

MATCHING_TEST(meeting, an_activity_task_waits_a_while_for_a_poll_before_it_is_stored,
              fixture_run(body, NULL, 2), "C-005")
{
    fixture_add(matching_fixture, ACTIVITIES, 1, 3);
    fixture_sleep(matching_fixture, 45 * NS_PER_MS);
    fixture_expect(matching_fixture, ACTIVITIES, 1, 3);
    EXPECT_EQ(memory_base_commits(matching_fixture->base), 0);
}

MATCHING_TEST(meeting, names_and_types_are_lists_of_their_own, fixture_run(body, NULL, 3))
{
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    fixture_add(matching_fixture, ACTIVITIES, 2, 2);
    struct spot other = DECISIONS;
    other.list = "payments";
    EXPECT_EQ(fixture_take(matching_fixture, other, SHORT), 0);
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, SHORT), 2);
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, SHORT), 0);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 1);
}

MATCHING_TEST(meeting, a_poll_comes_back_empty_at_its_expiry_or_after_the_longest_wait,
              fixture_run(body, NULL, 2), "A-053")
{
    int64_t began = clock_monotonic();
    struct test_poll one, two;
    test_poll_start(matching_fixture, DECISIONS, &one, 5 * NS_PER_S);
    test_poll_start(matching_fixture, DECISIONS, &two, 3600 * NS_PER_S);
    EXPECT_EQ(test_poll_wait(&one), POLL_EMPTY);
    EXPECT_EQ((clock_monotonic() - began) / NS_PER_S, 5);
    EXPECT(!two.is_back);
    EXPECT_EQ(test_poll_wait(&two), POLL_EMPTY); /* the caller was too patient */
    EXPECT_EQ((clock_monotonic() - began) / NS_PER_S, 60);
}

static void
first_come_first_served(struct matching_fixture *matching_fixture)
{
    struct test_poll probes[4];
    for (int i = 0; i < 4; i++) {
        test_poll_start(matching_fixture, DECISIONS, &probes[i], 10 * NS_PER_S);
        fixture_sleep(matching_fixture, SHORT);
    }
    matching_withdraw(matching_fixture->matching, &probes[1].poll);
    EXPECT_EQ(test_poll_wait(&probes[1]), POLL_WITHDRAWN);
    fixture_add(matching_fixture, DECISIONS, 1, 2);
    EXPECT_EQ(test_poll_wait(&probes[0]), POLL_MATCHED);
    EXPECT_EQ(test_poll_wait(&probes[2]), POLL_MATCHED);
    EXPECT_EQ(probes[0].poll.task->schedule_id, 1);
    EXPECT_EQ(probes[2].poll.task->schedule_id, 2);
    EXPECT(!probes[3].is_back);
    test_poll_finish(matching_fixture, &probes[0]);
    test_poll_finish(matching_fixture, &probes[2]);
    matching_withdraw(matching_fixture->matching, &probes[3].poll);
    EXPECT_EQ(test_poll_wait(&probes[3]), POLL_WITHDRAWN);
}

TEST(meeting, the_poll_that_waits_longest_is_served_first_and_a_withdrawn_one_never, "C-003")
{
    fixture_run(first_come_first_served, NULL, 1);
    fixture_run(first_come_first_served, NULL, 3);
}

static void
withdraw_too_late(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll,
                    NS_PER_S); /* its message is on the way */
    matching_withdraw(matching_fixture->matching, &test_poll.poll);
    matching_withdraw(matching_fixture->matching, &test_poll.poll);
    enum poll_end end = test_poll_wait(&test_poll);
    EXPECT(end == POLL_MATCHED || end == POLL_WITHDRAWN);
    if (end == POLL_MATCHED) {
        matching_return(matching_fixture->matching, test_poll.poll.task);
        arena_free(test_poll.poll.task_arena);
    }
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, NS_PER_S), 1);
}

TEST(meeting, a_poll_that_is_withdrawn_on_its_way_comes_back_once_and_its_task_is_not_lost)
{
    for (unsigned loops = 1; loops <= 4; loops++)
        fixture_run(withdraw_too_late, NULL, loops);
}

static void
return_to_the_front(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, DECISIONS, 1, 3);
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_EQ(test_poll.poll.backlog, 2);
    matching_return(matching_fixture->matching, test_poll.poll.task);
    arena_free(test_poll.poll.task_arena);
    fixture_expect(matching_fixture, DECISIONS, 1, 3);
}

TEST(meeting, a_task_whose_poller_had_gone_is_given_to_the_next_before_all_others, "C-002")
{
    fixture_run(return_to_the_front, NULL, 1);
    fixture_run(return_to_the_front, NULL, 3);
}

MATCHING_TEST(meeting, a_task_that_is_offered_again_waits_once_for_its_newest_owner,
              fixture_run(body, NULL, 2))
{
    fixture_add(matching_fixture, DECISIONS, 1, 2);
    for (uint64_t range_id = 2; range_id < 10; range_id++) {
        struct task task = fixture_task(DECISIONS, 1);
        task.range_id = range_id;
        EXPECT(matching_add(matching_fixture->matching, &task));
    }
    struct task other = fixture_task(DECISIONS, 1);
    other.shard = 4; /* the same number in another shard is another task */
    EXPECT(matching_add(matching_fixture->matching, &other));
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_EQ(test_poll.poll.task->range_id, 9);
    EXPECT_EQ(test_poll.poll.backlog, 2);
    test_poll_finish(matching_fixture, &test_poll);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 2);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 1);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
}

MATCHING_TEST(meeting, a_task_that_waited_too_long_is_dropped_and_its_row_is_told_done,
              fixture_run(body, NULL, 2), "C-006")
{
    for (uint64_t row = 1; row <= 4; row++) {
        struct task task = fixture_task(ACTIVITIES, row);
        task.expiry_time = row == 3 ? 0 : clock_wall() + (int64_t)row * NS_PER_S;
        EXPECT(matching_add(matching_fixture->matching, &task));
    }
    fixture_sleep(matching_fixture, 2 * NS_PER_S + SHORT);
    fixture_expect(matching_fixture, ACTIVITIES, 3, 4);
    EXPECT(matching_fixture->done == 2 && matching_fixture->is_row_done[1] &&
           matching_fixture->is_row_done[2]);
    struct task late = fixture_task(ACTIVITIES, 5);
    late.expiry_time = clock_wall() + NS_PER_S;
    EXPECT(matching_add(matching_fixture->matching, &late));
    fixture_sleep(matching_fixture, 30 * NS_PER_S); /* nobody polls: it goes all the same */
    EXPECT(matching_fixture->done == 3 && matching_fixture->is_row_done[5]);
}

MATCHING_TEST(meeting, after_a_drain_every_poll_ends_empty_and_no_task_is_taken,
              fixture_run(body, NULL, 3))
{
    struct test_poll parked, late;
    test_poll_start(matching_fixture, DECISIONS, &parked, 3600 * NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    matching_shut_down(matching_fixture->matching);
    EXPECT_EQ(test_poll_wait(&parked), POLL_EMPTY);
    test_poll_start(matching_fixture, DECISIONS, &late, 3600 * NS_PER_S);
    EXPECT_EQ(test_poll_wait(&late), POLL_EMPTY);
    struct task task = fixture_task(DECISIONS, 1);
    EXPECT(!matching_add(matching_fixture->matching, &task));
}

#define MANY 100000

static void
many_polls(struct matching_fixture *matching_fixture)
{
    struct test_poll *probes = memory_zalloc(MANY, sizeof *probes);
    for (int i = 0; i < MANY; i++) {
        test_poll_start(matching_fixture, DECISIONS, &probes[i], 50 * NS_PER_S);
        if (i % 10000 == 0)
            fixture_sleep(matching_fixture, NS_PER_MS); /* a mailbox is bounded */
    }
    fixture_sleep(matching_fixture, 30 * NS_PER_S);
    for (int i = 0; i < MANY; i += 2) {
        matching_withdraw(matching_fixture->matching, &probes[i].poll);
        if (i % 10000 == 0)
            fixture_sleep(matching_fixture, NS_PER_MS);
    }
    for (int i = 1; i < MANY; i += 2)
        fixture_add(matching_fixture, DECISIONS, (uint64_t)i, (uint64_t)i);
    for (int i = 0; i < MANY; i++) {
        EXPECT_EQ(test_poll_wait(&probes[i]), i % 2 == 0 ? POLL_WITHDRAWN : POLL_MATCHED);
        if (i % 2 == 0)
            continue;
        EXPECT_EQ(probes[i].poll.task->schedule_id, i);
        test_poll_finish(matching_fixture, &probes[i]);
    }
    memory_free(probes);
}

TEST(meeting, a_hundred_thousand_polls_wait_and_each_gets_its_task_or_goes_away)
{
    fixture_run(many_polls, NULL, 1);
    fixture_run(many_polls, NULL, 2);
}

/* Messages to another loop are bounded: what does not go is refused, and nothing of it is lost. */
static void
overrun(struct matching_fixture *matching_fixture)
{
    enum { COUNT = 70000 };
    struct test_poll *probes = memory_zalloc(COUNT, sizeof *probes);
    for (int i = 0; i < COUNT; i++)
        test_poll_start(matching_fixture, DECISIONS, &probes[i], 10 * NS_PER_S);
    uint64_t refused = 0, failed = 0, matched = 0, taken = 0;
    for (uint64_t row = 1; row <= 10; row++) {
        struct task task = fixture_task(DECISIONS, row);
        bool is_taken = matching_add(matching_fixture->matching, &task);
        taken += is_taken;
        refused += !is_taken;
    }
    for (int i = 0; i < COUNT; i++) {
        enum poll_end end = test_poll_wait(&probes[i]);
        failed += end == POLL_FAILED;
        matched += end == POLL_MATCHED;
        EXPECT((end == POLL_FAILED) == (probes[i].poll.failure != NULL));
        if (end == POLL_MATCHED)
            test_poll_finish(matching_fixture, &probes[i]);
    }
    EXPECT_EQ(matched, taken);
    EXPECT_EQ(failed > 0, refused > 0);
    matching_fixture->done = failed; /* for the caller */
    memory_free(probes);
}

TEST(meeting, what_a_full_mailbox_refuses_is_told_and_the_rest_is_served)
{
    struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
    matching_fixture->base = memory_base_new(1);
    matching_fixture->body = overrun;
    size_t failed = 0;
    for (unsigned loops = 1; loops <= 4; loops++) { /* the list is on loop 0 in some, not in all */
        fixture_run_on(matching_fixture, loops);
        EXPECT(loops > 1 || matching_fixture->done == 0);
        failed += matching_fixture->done;
    }
    EXPECT(failed > 0);
    memory_base_free(matching_fixture->base);
    memory_free(matching_fixture);
}

/* --- too many polls ---- */

#define POLLS_MAX 20 /* more than the table of a place begins with */

static void
poll_too_much(struct matching_fixture *matching_fixture)
{
    struct test_poll polls[POLLS_MAX], more[5];
    for (int i = 0; i < POLLS_MAX; i++)
        test_poll_start(matching_fixture, DECISIONS, &polls[i], NS_PER_S);
    for (int i = 0; i < 5; i++) {
        test_poll_start(matching_fixture, DECISIONS, &more[i], NS_PER_S);
        if (i == 0)
            matching_withdraw(matching_fixture->matching, &more[i].poll);
    }
    int64_t began = clock_monotonic();
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(test_poll_wait(&more[i]), POLL_FAILED);
        EXPECT_TEXT(more[i].poll.failure, "Too many polls wait here, try again.");
    }
    EXPECT(clock_monotonic() - began < NS_PER_MS);
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    EXPECT_EQ(test_poll_wait(&polls[0]), POLL_MATCHED);
    test_poll_finish(matching_fixture, &polls[0]);
    test_poll_start(matching_fixture, DECISIONS, &more[0], NS_PER_S); /* there is room again */
    for (int i = 1; i < POLLS_MAX; i++)
        EXPECT_EQ(test_poll_wait(&polls[i]), POLL_EMPTY);
    EXPECT_EQ(test_poll_wait(&more[0]), POLL_EMPTY);
}

TEST(meeting, a_poll_too_many_fails_at_once_and_the_others_wait_on)
{
    struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
    matching_fixture->base = memory_base_new(1);
    matching_fixture->body = poll_too_much;
    matching_fixture->polls_max = POLLS_MAX;
    for (unsigned loops = 1; loops <= 3; loops++)
        fixture_run_on(matching_fixture, loops);
    memory_base_free(matching_fixture->base);
    memory_free(matching_fixture);
}

/* --- domains ---------------------------------------------------------------------------------- */

/* Adds tasks of a domain until no more are taken. */
static uint64_t
fill(struct matching_fixture *matching_fixture, const char *domain_id, uint64_t most)
{
    struct task task = fixture_task(DECISIONS, 1);
    task.domain_id = domain_id;
    for (uint64_t row = 0; row < most; row++) {
        task.row = 0;
        if (!matching_add(matching_fixture->matching, &task))
            return row;
    }
    return most;
}

MATCHING_TEST(meeting, a_domain_whose_tasks_fill_the_memory_leaves_room_for_others,
              fixture_run(body, NULL, 1))
{
    uint64_t first = fill(matching_fixture, "domain", 300000);
    EXPECT(first > 190000 && first < 200000);
    EXPECT_EQ(fill(matching_fixture, "another", 1000), 1000);
}
