/* random_test.c - the same seed gives the same numbers, spread evenly. */
#include "base/random.h"

#include "base/test.h"

TEST(random, known_numbers_follow_a_known_state)
{
    /* From the state 1, 2, 3, 4 the generator's reference gives these. */
    struct random random = {{1, 2, 3, 4}};
    EXPECT_EQ(random_next(&random), 11520);
    EXPECT_EQ(random_next(&random), 0);
    EXPECT_EQ(random_next(&random), 1509978240);
    EXPECT_EQ(random_next(&random), 1215971899390074240);
}

TEST(random, a_seed_gives_the_same_numbers_each_time_and_another_seed_others)
{
    struct random one, again, other;
    random_seed(&one, 0);
    random_seed(&again, 0);
    random_seed(&other, 1);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t number = random_next(&one);
        EXPECT(number == random_next(&again));
        same += number == random_next(&other);
    }
    EXPECT_EQ(same, 0);
}

TEST(random, numbers_below_a_bound_are_even)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        int seen[10] = {0};
        for (int i = 0; i < 100000; i++)
            seen[random_below(&random, 10)]++;
        for (int i = 0; i < 10; i++)
            EXPECT(seen[i] > 9400 && seen[i] < 10600); /* six standard deviations */
        EXPECT_EQ(random_below(&random, 1), 0);
        EXPECT(random_below(&random, UINT64_MAX) < UINT64_MAX);
    }
}
