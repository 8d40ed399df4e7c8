/* limit_test.c - the bucket of tokens by itself, and in lists. */
#include "base/limit.h"
#include "base/test.h"
#include "matching/test/fixture.h"

TEST(limit, a_second_brings_the_rate_and_more_is_not_saved)
{
    struct limit limit;
    limit_init(&limit, 5, 0);
    int64_t now = 3600 * NS_PER_S;
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(limit_take(&limit, now), 0);
    int64_t wait = limit_take(&limit, now);
    EXPECT(wait > 0 && wait <= NS_PER_S / 5 + 1);
    EXPECT(limit_take(&limit, now + wait - 10) > 0);
    EXPECT_EQ(limit_take(&limit, now + wait), 0);
}

/* The moment that it names is never too early, or the list would wait for ever or spin. Method:
 * odd rates; take when told to, a thousand times, and compare the time with the rate. */
TEST(limit, the_moment_that_it_names_has_a_token)
{
    static const double rates[] = {0.001, 0.3, 1, 1.7, 3, 7.77, 1000.0 / 3, 99999.9};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct limit limit;
        limit_init(&limit, rates[i], 0);
        int64_t now = 0, wait;
        while (limit_take(&limit, now) == 0)
            continue;
        for (int k = 0; k < 1000; k++) {
            while ((wait = limit_take(&limit, now)) > 0)
                now += wait;
        }
        double seconds = (double)now / (double)NS_PER_S;
        EXPECT(seconds * rates[i] >= 999 && seconds * rates[i] <= 1002);
    }
}

TEST(limit, a_rate_of_nothing_gives_nothing_until_it_is_raised)
{
    struct limit limit;
    limit_init(&limit, 0, 0);
    EXPECT(limit_take(&limit, NS_PER_S) == LIMIT_NEVER);
    limit_set_rate(&limit, -3, 2 * NS_PER_S);
    EXPECT(limit_take(&limit, 3 * NS_PER_S) == LIMIT_NEVER);
    limit_set_rate(&limit, 0.0 / 0.0, 3 * NS_PER_S);
    EXPECT(limit_take(&limit, 4 * NS_PER_S) == LIMIT_NEVER);
    limit_set_rate(&limit, 1, 4 * NS_PER_S);
    EXPECT_EQ(limit_take(&limit, 5 * NS_PER_S), 0);
}

TEST(limit, a_lower_rate_takes_away_what_was_saved)
{
    struct limit limit;
    limit_init(&limit, 1000, 0);
    limit_set_rate(&limit, 2, 0);
    EXPECT_EQ(limit_take(&limit, 0), 0);
    EXPECT_EQ(limit_take(&limit, 0), 0);
    EXPECT(limit_take(&limit, 0) > 0);
}

/* --- lists ---------------------------------------------------------------------------------------
 */

/* Milliseconds until `count` tasks were given out, with a new poll as soon as one is back. */
static int64_t
time_to_take(struct matching_fixture *matching_fixture, int count)
{
    int64_t began = clock_monotonic();
    for (int i = 0; i < count; i++)
        EXPECT(fixture_take(matching_fixture, ACTIVITIES, 60 * NS_PER_S) != 0);
    return (clock_monotonic() - began) / NS_PER_MS;
}

static void
rate_of_pollers(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, ACTIVITIES, 1, 300);
    matching_fixture->rate = 10;
    EXPECT(time_to_take(matching_fixture, 10) < 100); /* what a second brings may go at once */
    int64_t slow = time_to_take(matching_fixture, 20);
    EXPECT(slow >= 1900 && slow < 2300);
    matching_fixture->rate = 100; /* the newest poller's counts */
    EXPECT(time_to_take(matching_fixture, 1) < 150);
    matching_fixture->rate = -1; /* one that asks for nothing changes nothing */
    int64_t faster = time_to_take(matching_fixture, 100);
    EXPECT(faster >= 900 && faster < 1200);
    matching_fixture->rate = 0;
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, 30 * NS_PER_S), 0);
    matching_fixture->rate = 0.5; /* one in two seconds */
    EXPECT(time_to_take(matching_fixture, 1) <= 2100);
    int64_t slowest = time_to_take(matching_fixture, 3);
    EXPECT(slowest >= 5900 && slowest <= 6200);
}

TEST(limit, an_activity_list_gives_out_as_many_tasks_per_second_as_its_newest_poller_asks_for,
     "C-009", "A-122")
{
    fixture_run(rate_of_pollers, NULL, 1);
    fixture_run(rate_of_pollers, NULL, 2);
}

MATCHING_TEST(limit, the_setting_overrides_the_rate_that_pollers_ask_for,
              fixture_run(body, "matching.overrideTaskListRps: [{value: 20}]", 2), "C-010")
{
    fixture_add(matching_fixture, ACTIVITIES, 1, 50);
    matching_fixture->rate = 1;
    EXPECT(time_to_take(matching_fixture, 20) < 100);
    int64_t rest = time_to_take(matching_fixture, 20);
    EXPECT(rest >= 900 && rest < 1200);
}

MATCHING_TEST(limit, decision_lists_have_no_limit, fixture_run(body, NULL, 2))
{
    fixture_add(matching_fixture, DECISIONS, 1, 300);
    matching_fixture->rate = 1;
    fixture_expect(matching_fixture, DECISIONS, 1, 300);
    EXPECT(clock_monotonic() < 2 * NS_PER_S);
}
