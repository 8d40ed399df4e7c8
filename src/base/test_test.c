/* test_test.c - the harness itself: does a failure show, count, and fail the program?
 *
 * Method: run the program test_sample, whose tests are known to pass, fail and skip, and read its
 * output. */
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char output[65536];

/* Runs the sample with environment and arguments; returns its exit code. */
static int
run_sample(const char *environment, const char *arguments)
{
    char command[4096];
    snprintf(command, sizeof command, "env -u CADENZA_SEED %s %s %s 2>&1", environment, TEST_SAMPLE,
             arguments);
    FILE *pipe = popen(command, "r");
    EXPECT(pipe != NULL);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    int status = pclose(pipe);
    EXPECT(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool
says(const char *text)
{
    return strstr(output, text) != NULL;
}

TEST(test, a_passing_test_is_ok_and_the_program_succeeds)
{
    EXPECT_EQ(run_sample("", "good"), 0);
    EXPECT_TEXT(output, "ok good: one and one is two\n1 passed, 0 failed, 0 skipped\n");
}

TEST(test, the_lines_that_a_test_proves_stand_behind_its_title)
{
    EXPECT_EQ(run_sample("", "proves_two"), 0);
    EXPECT(says("ok named: one and one proves two lines [X-001 X-002]\n"));
}

TEST(test, a_failing_test_ends_there_shows_why_and_fails_the_program)
{
    EXPECT_EQ(run_sample("", "one_is_three"), 1);
    EXPECT(says("base/test_sample.c:"));
    EXPECT(says(": 1 + 1 is 2, not 3\n"));
    EXPECT(says("FAILED bad: one and one is three\n"));
    EXPECT(says("0 passed, 1 failed, 0 skipped\n"));
    EXPECT(!says("unreachable"));
}

TEST(test, the_tests_after_a_failing_one_still_run)
{
    EXPECT_EQ(run_sample("", "bad:"), 1);
    EXPECT(says(": \"left\" is \"left\", not \"right\"\n"));
    EXPECT(says("message: no room"));
    EXPECT(says("NULL gave no error, not busy\n"));
    EXPECT(says("0 passed, 4 failed, 0 skipped\n"));
}

TEST(test, a_failure_names_its_seed)
{
    EXPECT_EQ(run_sample("", "seed_is_named"), 1);
    EXPECT(says("test_seed(i) < 2 (--seed=2)\n"));
    EXPECT_EQ(run_sample("", "--seed=0 seed_is_named"), 0);
}

TEST(test, a_skip_is_counted_and_is_no_failure)
{
    EXPECT_EQ(run_sample("", "later"), 0);
    EXPECT(says("skipped: no such machine\n"));
    EXPECT(says("0 passed, 0 failed, 1 skipped\n"));
}

TEST(test, a_filter_that_chooses_nothing_fails)
{
    EXPECT_EQ(run_sample("", "no_such_test"), 1);
    EXPECT(says("0 passed, 0 failed, 0 skipped\n"));
}

TEST(test, a_failure_on_another_stack_ends_the_program_and_is_seen)
{
    EXPECT_EQ(run_sample("", "elsewhere"), 1);
    EXPECT(says(": 1 > 2\n"));
    EXPECT(says("FAILED elsewhere: another stack fails\n"));
}

TEST(test, seeds_are_half_fixed_and_half_from_the_environment)
{
    EXPECT_EQ(run_sample("", "seeds:"), 0);
    EXPECT(says("seed 1\nseed 2\nseed 3\nseed 4\nok"));
    EXPECT_EQ(run_sample("", "seeds: --seed=77"), 0);
    EXPECT(strncmp(output, "seed 77\nok", 10) == 0);
    EXPECT_EQ(run_sample("", "seeds: --seed=77 --seeds=3"), 0);
    EXPECT(strncmp(output, "seed 77\nseed 78\nseed 79\nok", 26) == 0);
    EXPECT_EQ(run_sample("", "seeds: --seeds=6"), 0);
    EXPECT(says("seed 1\nseed 2\nseed 3\nseed 4\nseed 5\nseed 6\nok"));
    EXPECT_EQ(run_sample("CADENZA_SEED=a", "seeds:"), 0);
    EXPECT(strncmp(output, "more than 3\nseed 1\nseed 2\nseed ", 31) == 0);
    EXPECT(!says("seed 3\n"));
    char first[sizeof output];
    memcpy(first, output, sizeof output);
    EXPECT_EQ(run_sample("CADENZA_SEED=b", "seeds:"), 0);
    EXPECT(strcmp(first, output) != 0);
}

/* Else a portion of seeds would be one seed, for all tests that do not count. */
TEST(test, a_scenario_of_one_seed_is_repeated_for_each_that_was_asked_for)
{
    EXPECT_EQ(run_sample("", "of_one_seed"), 0);
    EXPECT_TEXT(output, "scenario of 1\nok scenario: of one seed\n"
                        "1 passed, 0 failed, 0 skipped\n");
    EXPECT_EQ(run_sample("", "of_one_seed --seed=7"), 0);
    EXPECT(strncmp(output, "scenario of 7\nok", 16) == 0);
    EXPECT_EQ(run_sample("", "of_one_seed --seed=7 --seeds=3"), 0);
    EXPECT(strncmp(output, "scenario of 7\nscenario of 8\nscenario of 9\nok", 44) == 0);
    EXPECT_EQ(run_sample("", "of_one_seed --seeds=2"), 0);
    EXPECT(strncmp(output, "scenario of 1\nscenario of 2\nok", 30) == 0);
    EXPECT_EQ(run_sample("", "of_one_seed --seed=77 --seeds=9"), 1);
    EXPECT(says("(--seed=79)\n") && !says("scenario of 80"));
    EXPECT_EQ(run_sample("", "played_once --seed=7 --seeds=3"), 0);
    EXPECT(strncmp(output, "once by 7\nok", 12) == 0);
}

TEST(test, arguments_that_are_wrong_are_told_with_how_they_should_be)
{
    EXPECT_EQ(run_sample("", "--help"), 0);
    EXPECT(says("usage: ") && says("--seeds=M") && !says("passed"));
    EXPECT_EQ(run_sample("", "--sed=7"), 2);
    EXPECT(strncmp(output, "--sed=7: unknown option\nusage: ", 31) == 0);
    EXPECT_EQ(run_sample("", "--seed=x"), 2);
    EXPECT(strncmp(output, "--seed=x: not a number\n", 23) == 0);
    EXPECT_EQ(run_sample("", "--seed=-1"), 2);
    EXPECT_EQ(run_sample("", "--seed=99999999999999999999"), 2);
    EXPECT_EQ(run_sample("", "--seeds=0"), 2);
    EXPECT(strncmp(output, "--seeds=0: not between 1 and", 28) == 0);
}

/* Else any few seeds that somebody chose would have to come to everything. */
TEST(test, seeds_that_were_chosen_are_never_enough_to_expect_what_is_usual)
{
    EXPECT_EQ(run_sample("", "seeds:"), 0);
    EXPECT(says("more than 3\n"));
    EXPECT_EQ(run_sample("", "seeds: --seeds=3"), 0);
    EXPECT(!says("more than 3\n"));
    EXPECT_EQ(run_sample("", "seeds: --seed=5 --seeds=30"), 0);
    EXPECT(!says("more than 3\n"));
}
