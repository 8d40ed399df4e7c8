/* skip_test.c - when the clock may jump, and how far. */
#include "server/skip.h"

#include "base/test.h"

#define WALL (1000 * NS_PER_S)
#define DUE  (WALL + 3600 * NS_PER_S)

static const struct shard_idle waiting = {.is_timed = true, .next = DUE, .changes = 7};

/* The first look at something new only begins the quiet. */
static int64_t
look_twice(const struct shard_idle *idle, int64_t pause)
{
    struct skip skip = {0};
    EXPECT_EQ(skip_decide(&skip, idle, WALL, NS_PER_S), 0);
    return skip_decide(&skip, idle, WALL, NS_PER_S + pause);
}

TEST(skip, the_clock_jumps_to_what_is_due_first_once_it_was_quiet_for_long_enough)
{
    EXPECT_EQ(look_twice(&waiting, SKIP_QUIET), DUE - WALL);
    EXPECT_EQ(look_twice(&waiting, SKIP_QUIET - 1), 0);
}

TEST(skip, a_worker_that_has_a_task_keeps_the_clock)
{
    struct shard_idle idle = waiting;
    idle.is_busy = true;
    EXPECT_EQ(look_twice(&idle, 100 * NS_PER_S), 0);
}

TEST(skip, a_run_that_waits_for_a_signal_is_no_reason_to_jump_to_its_timeout)
{
    struct shard_idle idle = waiting;
    idle.is_timed = false;
    EXPECT_EQ(look_twice(&idle, 100 * NS_PER_S), 0);
}

TEST(skip, whatever_happens_begins_the_quiet_again)
{
    struct skip skip = {0};
    struct shard_idle idle = waiting;
    EXPECT_EQ(skip_decide(&skip, &idle, WALL, NS_PER_S), 0);
    idle.changes++;
    EXPECT_EQ(skip_decide(&skip, &idle, WALL, NS_PER_S + SKIP_QUIET), 0);
    EXPECT_EQ(skip_decide(&skip, &idle, WALL, NS_PER_S + 2 * SKIP_QUIET), DUE - WALL);
}

TEST(skip, what_is_due_already_needs_no_jump)
{
    struct shard_idle idle = waiting;
    idle.next = WALL;
    EXPECT_EQ(look_twice(&idle, SKIP_QUIET), 0);
}
