/* check_test.c - a failed check is seen and ends the process. */
#include "base/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

static void
fail_plainly(void)
{
    check(1 + 1 == 3);
}

static void
fail_with_a_sentence(void)
{
    check_that(1 + 1 == 3, "it was %d", 2);
}

/* Runs `body` in a child; what it wrote to standard error is in `output`. Returns the wait status.
 */
static int
run_apart(void (*body)(void), char *output, size_t size)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length<size - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], output + length, size - 1 - length);
    output[length] = '\0';
    close(ends[0]);
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

TEST(check, a_condition_that_holds_costs_nothing_and_ends_nothing)
{
    check(1 + 1 == 2);
    check_that(1 + 1 == 2, "never %s", "shown");
}

TEST(check, a_failed_check_names_file_line_and_condition_and_aborts)
{
    char output[4096];
    int status = run_apart(fail_plainly, output, sizeof output);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    EXPECT(strncmp(output, "base/check_test.c:", strlen("base/check_test.c:")) == 0);
    EXPECT(strstr(output, ": check failed: 1 + 1 == 3\n") != NULL);
}

TEST(check, a_failed_check_shows_its_sentence)
{
    char output[4096];
    int status = run_apart(fail_with_a_sentence, output, sizeof output);
    EXPECT(WIFSIGNALED(status));
    EXPECT(strstr(output, "1 + 1 == 3: it was 2\n") != NULL);
}

TEST(check, a_path_is_shown_from_below_src)
{
    EXPECT_TEXT(check_source_path("/home/me/src/cadenza/src/base/check.c"), "base/check.c");
    EXPECT_TEXT(check_source_path("src/base/check.c"), "base/check.c");
    EXPECT_TEXT(check_source_path("/tmp/mysrc/check.c"), "/tmp/mysrc/check.c");
}
