/* rocks_gather_test.c - whom the committer waits for, and for how long; and a store on a disk that
 * is so slow that it does. */
#include <sys/syscall.h>
#include <unistd.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "store/rocks/inside.h"
#include "store/rocks/test_fixture.h"

#define SYNC (4 * NS_PER_MS)

/* RocksDB's syncs, in this program. */
int
fdatasync(int descriptor)
{
    usleep(SYNC / 1000);
    return (int)syscall(SYS_fdatasync, descriptor);
}

/* A disk whose groups have long taken SYNC. */
static struct group_wait
slow_disk(void)
{
    return (struct group_wait){.usual = SYNC};
}

/* The time that it waits in all, if so many come with each step of it. */
static int64_t
wait_for(struct group_wait *group_wait, size_t answered, const size_t *came, size_t steps)
{
    int64_t waited = 0;
    size_t all = 0;
    if (!gather_begin(group_wait, answered, SYNC))
        return 0;
    for (size_t i = 0;; i++) {
        int64_t step = gather_next(group_wait, all);
        if (step == 0)
            return waited;
        waited += step;
        all += i < steps ? came[i] : 0;
    }
}

TEST(rocks_gather, it_waits_until_those_who_were_answered_are_back)
{
    struct group_wait group_wait = slow_disk();
    static const size_t at_once[] = {3, 5}, late[] = {0, 0, 1, 1, 2, 1, 1, 1, 1};
    EXPECT_EQ(wait_for(&group_wait, 8, at_once, 2), SYNC / 8);
    EXPECT_EQ(wait_for(&group_wait, 8, late, array_length(late)), SYNC / 16 * 9);
    EXPECT_EQ(wait_for(&group_wait, 8, at_once, 2), SYNC / 8); /* it still does */
}

TEST(rocks_gather, it_waits_on_only_while_they_come)
{
    struct group_wait group_wait = slow_disk();
    static const size_t most[] = {6}, one_by_one[] = {16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    EXPECT_EQ(wait_for(&group_wait, 8, most, 1), SYNC / 16 * 5);
    EXPECT_EQ(wait_for(&group_wait, 32, one_by_one, array_length(one_by_one)), SYNC / 16 * 12);
}

/* As many as come in any time of that length: a third of those that came during a sync. */
TEST(rocks_gather, callers_that_come_by_chance_are_not_waited_for_again_soon)
{
    struct group_wait group_wait = slow_disk();
    static const size_t by_chance[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    int64_t waited = 0;
    for (int i = 0; i < 160; i++)
        waited += wait_for(&group_wait, 16, by_chance, array_length(by_chance));
    EXPECT_EQ(waited, 10 * (SYNC / 16 * 5));
}

TEST(rocks_gather, nobody_is_waited_for_on_a_fast_disk_or_by_one_alone)
{
    struct group_wait fast = {.usual = NS_PER_MS / 2};
    struct group_wait slow = slow_disk();
    EXPECT(!gather_begin(&fast, 16, NS_PER_MS / 2));
    EXPECT(!gather_begin(&fast, 16, 100 * NS_PER_MS)); /* once, it stood still */
    EXPECT(!gather_begin(&slow, 1, SYNC));
    EXPECT(!gather_begin(&slow, 0, SYNC));
    EXPECT(!gather_begin(&slow, 16, NS_PER_MS / 2)); /* this one was quick */
    EXPECT(gather_begin(&slow, 16, SYNC));
}

/* A load as in rocks_test: nothing is lost, and nobody waits for ever. */
ROCKS_TEST(rocks_gather, a_load_on_a_slow_disk_leaves_exactly_its_rows)
{
    struct load load = {.store = rocks_fixture_open(rocks_fixture), .shards = 8, .steps = 100};
    load_run(&load);
    EXPECT(!load.has_failed);
    struct rocks_stats stats;
    rocks_stats(load.store, &stats);
    EXPECT(stats.gathered > 0);
    EXPECT_EQ(stats.commits, 8 * 100 + 8);
    store_close(load.store);
    load.store = rocks_fixture_open(rocks_fixture);
    EXPECT_TEXT(load_verify(load.store, 8, load.acked, rocks_fixture->arena), NULL);
    store_close(load.store);
}
