/* close_test.c - matching ends on all loops while lists of one loop still send to another. In
 * simulation. */
#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "matching/test/fixture.h"

#define LISTS 200
#define LIVES 30
#define APART (50 * NS_PER_US)

/* Sticky lists without a worker, each with a task that it passes on to a normal list, one after the
 * other, when it is looked after; matching ends in the middle of that. */
struct leaving {
    struct matching_fixture matching_fixture;
    struct test_poll polls[LISTS];
    int64_t after; /* the first one passes its task on */
};

static struct spot
sticky_list(struct matching_fixture *matching_fixture, int number)
{
    struct arena *arena = matching_fixture->arena;
    return (struct spot){TASK_DECISION, LIST_STICKY, arena_format(arena, "host:%d", number),
                         arena_format(arena, "orders-%d", number)};
}

static void
leave(struct matching_fixture *matching_fixture)
{
    struct leaving *leaving = container_of(matching_fixture, struct leaving, matching_fixture);
    int64_t began = clock_monotonic();
    for (int i = 0; i < LISTS; i++) {
        test_poll_start(matching_fixture, sticky_list(matching_fixture, i), &leaving->polls[i],
                        NS_PER_MS);
        fixture_sleep(matching_fixture, APART);
    }
    for (int i = 0; i < LISTS; i++) {
        EXPECT_EQ(test_poll_wait(&leaving->polls[i]), POLL_EMPTY);
        fixture_add(matching_fixture, sticky_list(matching_fixture, i), (uint64_t)i + 1,
                    (uint64_t)i + 1);
    }
    /* Looked after for the second time, when nobody has polled for ten seconds. */
    fixture_sleep(matching_fixture, began + 20 * NS_PER_S + leaving->after - clock_monotonic());
}

TEST(matching_close, what_is_sent_when_matching_ends_comes_to_lists_that_are_there)
{
    for (int life = 0; life < LIVES; life++) {
        struct leaving *leaving = memory_zalloc(1, sizeof *leaving);
        leaving->matching_fixture.base = memory_base_new(1);
        leaving->matching_fixture.body = leave;
        leaving->after = NS_PER_MS + life * 50 * NS_PER_US;
        fixture_run_on(&leaving->matching_fixture, 3);
        memory_base_free(leaving->matching_fixture.base);
        memory_free(leaving);
    }
}
