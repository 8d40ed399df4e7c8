/* quota_test.c - rates that threads share. */
#include "base/quota.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/test.h"

#define SECOND 1000000000LL

TEST(quota, a_second_brings_the_rate_and_what_was_saved_is_not_more)
{
    struct quotas *quotas = quotas_new();
    struct quota *quota = quotas_find(quotas, slice_text("orders"));
    EXPECT(quotas_find(quotas, slice_text("orders")) == quota);
    EXPECT(quotas_find(quotas, slice_text("others")) != quota);
    int passed = 0;
    for (int i = 0; i < 100; i++)
        passed += quota_take(quota, 7, 100 * SECOND);
    EXPECT_EQ(passed, 7);
    for (int i = 0; i < 100; i++)
        passed += quota_take(quota, 7, 101 * SECOND);
    EXPECT(passed >= 13 && passed <= 14);
    for (int i = 0; i < 100; i++)
        passed += quota_take(quota, 7, 200 * SECOND);
    EXPECT(passed >= 20 && passed <= 21);
    quotas_free(quotas);
}

TEST(quota, nothing_and_no_limit_are_rates_too_and_a_new_rate_holds_at_once)
{
    struct quotas *quotas = quotas_new();
    struct quota *quota = quotas_find(quotas, slice_text("orders"));
    EXPECT(!quota_take(quota, 0, SECOND));
    EXPECT(!quota_take(quota, -1, SECOND));
    for (int i = 0; i < 100000; i++)
        EXPECT(quota_take(quota, 2147483647, SECOND));
    EXPECT(quota_take(quota, 0.5, 2 * SECOND));
    EXPECT(!quota_take(quota, 0.5, 3 * SECOND));
    EXPECT(quota_take(quota, 0.5, 4 * SECOND));
    EXPECT(!quota_take(quota, 10, 4 * SECOND + 1)); /* what 0.5 has used up is paid back first */
    EXPECT(quota_take(quota, 10, 6 * SECOND));
    quotas_free(quotas);
}

struct takers {
    struct quota *quota;
    atomic_int passed;
};

static void *
take_many(void *argument)
{
    struct takers *takers = argument;
    for (int i = 0; i < 20000; i++)
        takers->passed += quota_take(takers->quota, 1000, 50 * SECOND);
    return NULL;
}

TEST(quota, threads_together_get_no_more_than_one)
{
    struct quotas *quotas = quotas_new();
    struct takers takers = {.quota = quotas_find(quotas, slice_text("orders"))};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, take_many, &takers) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(takers.passed, 1000);
    quotas_free(quotas);
}
