/* test_sample.c - tests that fail on purpose; test_test.c runs this program and looks at what it
 * says. */
#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/test.h"

TEST(good, one_and_one_is_two)
{
    EXPECT_EQ(1 + 1, 2);
    EXPECT_TEXT("a", "a");
}

TEST(named, one_and_one_proves_two_lines, "X-001", "X-002")
{
    EXPECT_EQ(1 + 1, 2);
}

TEST(bad, one_and_one_is_three)
{
    EXPECT_EQ(1 + 1, 3);
    printf("unreachable\n");
}

TEST(bad, a_seed_is_named)
{
    for (int i = 0; i < test_seed_count(); i++)
        EXPECT(test_seed(i) < 2);
}

TEST(bad, texts_differ)
{
    EXPECT_TEXT("left", "right");
}

TEST(bad, an_error_is_shown)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = error_new(arena, ERR_BUSY, "no room");
    EXPECT_KIND(err, ERR_BUSY);
    printf("  message: %s\n", err->message);
    arena_drop(&arena); /* longjmp skips the cleanup */
    EXPECT_KIND(NULL, ERR_BUSY);
}

TEST(skipped, later)
{
    TEST_SKIP("no such machine");
}

TEST(seeds, are_listed)
{
    printf("%s", test_seeds_suffice(3) ? "more than 3\n" : "");
    for (int i = 0; i < test_seed_count(); i++)
        printf("seed %llu\n", (unsigned long long)test_seed(i));
}

/* Plays one scenario, by the first seed. */
TEST(scenario, of_one_seed)
{
    printf("scenario of %llu\n", (unsigned long long)test_seed(0));
    EXPECT(test_seed(0) != 79);
}

TEST(scenario, that_is_played_once)
{
    printf("once by %llu\n", (unsigned long long)test_one_seed());
}

static void *
fail_elsewhere(void *context)
{
    EXPECT(1 > 2);
    return context;
}

/* A thread has another stack, as a fiber does. */
TEST(elsewhere, another_stack_fails)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, NULL);
}
