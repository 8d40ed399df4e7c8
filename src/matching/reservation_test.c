/* reservation_test.c - polls that are kept for tasks that are about to exist (route/reservation.h).
 * In simulation, with the list on this loop and on another one. */
#include "base/memory.h"
#include "base/test.h"
#include "matching/test/fixture.h"

#define SHORT (100 * NS_PER_MS)

static void
answered(struct reservation *reservation)
{
    fiber_wake(reservation->context);
}

/* NULL: refused. */
static struct reservation *
reserve_poll(struct matching_fixture *matching_fixture, struct spot spot)
{
    struct reservation *reservation = memory_zalloc(1, sizeof *reservation);
    reservation->type = spot.type;
    reservation->kind = spot.kind;
    reservation->domain_id = "domain";
    reservation->list = spot.list;
    reservation->answered = answered;
    reservation->context = fiber_self();
    if (matching_reserve(matching_fixture->matching, reservation) == RESERVATION_REQUESTED)
        fiber_wait_uncancellable();
    if (reservation->identity != NULL)
        return reservation;
    memory_free(reservation);
    return NULL;
}

static void
end_with_task(struct matching_fixture *matching_fixture, struct reservation *reservation,
              struct spot spot, uint64_t row)
{
    struct task task = fixture_task(spot, row);
    reservation->arena = arena_new(0);
    reservation->task = task_copy(&task, reservation->arena);
    reservation->request_id = arena_text(reservation->arena, "start-1");
    reservation->start = arena_text(reservation->arena, "told");
    matching_end_reservation(matching_fixture->matching, reservation);
}

static void
takes_home(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    EXPECT(reserve_poll(matching_fixture, DECISIONS) == NULL);
    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    struct reservation *reservation = reserve_poll(matching_fixture, DECISIONS);
    EXPECT(reservation != NULL && reserve_poll(matching_fixture, DECISIONS) == NULL);
    fixture_sleep(matching_fixture, 3 * NS_PER_S); /* its time is over, but it is promised */
    EXPECT(!test_poll.is_back);
    end_with_task(matching_fixture, reservation, DECISIONS, 7);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_EQ(test_poll.poll.task->schedule_id, 7);
    EXPECT_TEXT(test_poll.poll.request_id, "start-1");
    EXPECT_TEXT(test_poll.poll.start, "told");
    test_poll_finish(matching_fixture, &test_poll);
}

TEST(reservation, a_poll_that_is_reserved_waits_for_its_task_and_takes_it_home)
{
    fixture_run(takes_home, NULL, 1);
    fixture_run(takes_home, NULL, 3);
}

/* The step is on its way to the store for longer than a list keeps a poll whose reservation does
 * not end; but the worker waits, and so does the task. */
static void
slow_commit(struct matching_fixture *matching_fixture)
{
    static const int64_t commits[] = {45, 65, 85}; /* seconds; the poll's time is a minute */
    struct test_poll test_poll;
    for (size_t i = 0; i < array_length(commits); i++) {
        test_poll_start(matching_fixture, DECISIONS, &test_poll, 60 * NS_PER_S);
        fixture_sleep(matching_fixture, SHORT);
        struct reservation *reservation = reserve_poll(matching_fixture, DECISIONS);
        EXPECT(reservation != NULL);
        fixture_sleep(matching_fixture, commits[i] * NS_PER_S);
        EXPECT(!test_poll.is_back);
        end_with_task(matching_fixture, reservation, DECISIONS, i + 1);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        EXPECT_EQ(test_poll.poll.task->schedule_id, (int64_t)i + 1);
        EXPECT_TEXT(test_poll.poll.start, "told");
        test_poll_finish(matching_fixture, &test_poll);
    }
    test_poll_start(matching_fixture, DECISIONS, &test_poll, 60 * NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    struct reservation *reservation = reserve_poll(matching_fixture, DECISIONS);
    EXPECT(reservation != NULL);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_EMPTY); /* nobody would be there any more */
    matching_end_reservation(matching_fixture->matching, reservation);
}

TEST(reservation, a_slow_commit_keeps_its_poll_as_long_as_the_worker_waits)
{
    fixture_run(slow_commit, NULL, 1);
    fixture_run(slow_commit, NULL, 3);
}

static void
waits_on(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    test_poll_start(matching_fixture, DECISIONS, &test_poll, 10 * NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    struct reservation *reservation = reserve_poll(matching_fixture, DECISIONS);
    EXPECT(reservation != NULL);
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT(!test_poll.is_back);
    matching_end_reservation(matching_fixture->matching, reservation);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    EXPECT_EQ(test_poll.poll.task->schedule_id, 1);
    EXPECT(test_poll.poll.start == NULL && test_poll.poll.request_id == NULL);
    test_poll_finish(matching_fixture, &test_poll);

    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    reservation = reserve_poll(matching_fixture, DECISIONS);
    EXPECT(reservation != NULL);
    matching_end_reservation(matching_fixture->matching, reservation);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_EMPTY); /* at its time */
}

TEST(reservation, a_poll_that_is_not_needed_gets_what_came_meanwhile_or_waits_on)
{
    fixture_run(waits_on, NULL, 1);
    fixture_run(waits_on, NULL, 3);
}

static void
others_first(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    EXPECT(reserve_poll(matching_fixture, DECISIONS) == NULL);
    fixture_expect(matching_fixture, DECISIONS, 1, 1);
    matching_fixture->rate = 1;
    test_poll_start(matching_fixture, ACTIVITIES, &test_poll, 10 * NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    struct reservation *reservation = reserve_poll(matching_fixture, ACTIVITIES);
    EXPECT(reservation != NULL);
    matching_end_reservation(matching_fixture->matching, reservation); /* the token comes back */
    reservation = reserve_poll(matching_fixture, ACTIVITIES);
    EXPECT(reservation != NULL);
    end_with_task(matching_fixture, reservation, ACTIVITIES, 2);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    test_poll_finish(matching_fixture, &test_poll);
    test_poll_start(matching_fixture, ACTIVITIES, &test_poll, SHORT);
    fixture_sleep(matching_fixture, SHORT / 2);
    EXPECT(reserve_poll(matching_fixture, ACTIVITIES) == NULL); /* one per second */
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_EMPTY);
}

TEST(reservation, is_refused_where_a_new_task_would_have_to_wait)
{
    fixture_run(others_first, NULL, 1);
    fixture_run(others_first, NULL, 3);
}

static void
withdrawn(struct matching_fixture *matching_fixture)
{
    struct test_poll test_poll;
    for (int is_given = 0; is_given < 2; is_given++) {
        test_poll_start(matching_fixture, DECISIONS, &test_poll, 10 * NS_PER_S);
        fixture_sleep(matching_fixture, SHORT);
        struct reservation *reservation = reserve_poll(matching_fixture, DECISIONS);
        EXPECT(reservation != NULL);
        matching_withdraw(matching_fixture->matching, &test_poll.poll);
        fixture_sleep(matching_fixture, SHORT);
        EXPECT(!test_poll.is_back);
        if (is_given)
            end_with_task(matching_fixture, reservation, DECISIONS, 3);
        else
            matching_end_reservation(matching_fixture->matching, reservation);
        EXPECT_EQ(test_poll_wait(&test_poll), is_given ? POLL_MATCHED : POLL_WITHDRAWN);
        if (is_given)
            test_poll_finish(matching_fixture, &test_poll);
    }
}

TEST(reservation, a_poll_that_is_withdrawn_meanwhile_comes_back_when_the_reservation_ends)
{
    fixture_run(withdrawn, NULL, 1);
    fixture_run(withdrawn, NULL, 3);
}
