/* test.c - main() of every test program: runs the tests that registered themselves.
 *
 * A failed EXPECT longjmps back here. That works only on the stack the test began on; a test that
 * runs fibers fails on a fiber's stack, where the only honest end is to say so and end the process.
 *
 * State is static: a test program is one harness. Nothing outside a test program links this file.
 */
#include "base/test.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "base/test_seeds.h"

#define SEEDS_DEFAULT 4
#define EXIT_USAGE    2

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED, OUTCOME_COUNT };

static struct {
    struct test *first;
    struct test **last; /* where the next one goes */
    const struct test *current;
    jmp_buf back;
    uintptr_t stack_low, stack_high; /* of the thread that runs the tests */
    int counts[OUTCOME_COUNT];
    const char *filter;   /* substring of "suite: title", or NULL */
    bool has_asked_seeds; /* --seeds=N was given */
} harness;

struct test_seeds test_seeds;

void
test_register(struct test *test)
{
    if (harness.last == NULL)
        harness.last = &harness.first;
    *harness.last = test;
    harness.last = &test->next;
}

/* ---- seeds ---- */

/* FNV-1a, cut to 32 bits: short enough to be typed after --seed=. */
static uint64_t
hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash & UINT32_MAX;
}

static void
seeds_prepare(void)
{
    const char *changing = getenv("CADENZA_SEED");
    if (changing != NULL && changing[0] != '\0')
        test_seeds.base = hash_text(changing);
    else
        test_seeds.base = (uint64_t)(test_seeds.count + 1) / 2 + 1;
}

/* ---- failing ---- */

static bool
is_on_test_stack(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return here >= harness.stack_low && here < harness.stack_high;
}

static void
print_line(const char *outcome)
{
    printf("%s %s: ", outcome, harness.current->suite);
    for (const char *at = harness.current->title; *at != '\0'; at++)
        putchar(*at == '_' ? ' ' : *at);
    for (const char *const *id = harness.current->ids; *id != NULL; id++)
        printf("%s%s", id == harness.current->ids ? " [" : " ", *id);
    puts(harness.current->ids[0] == NULL ? "" : "]");
}

/* Ends the current test. */
no_return static void
leave(enum outcome outcome)
{
    if (is_on_test_stack())
        longjmp(harness.back, (int)outcome + 1);
    print_line("FAILED");
    fflush(stdout);
    _exit(1);
}

no_return static void
fail(const char *file, int line, const char *format, va_list arguments)
{
    printf("  %s:%d: ", check_source_path(file), line);
    vprintf(format, arguments);
    if (test_seeds.has_drawn)
        printf(" (--seed=%" PRIu64 ")", test_seeds.drawn);
    putchar('\n');
    leave(OUTCOME_FAILED);
}

void
test_fail(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(file, line, format, arguments);
}

void
test_skip(const char *why)
{
    check(is_on_test_stack());
    printf("  skipped: %s\n", why);
    leave(OUTCOME_SKIPPED);
}

void
test_expect_equal(const char *file, int line, const char *what, int64_t actual, int64_t wanted)
{
    if (actual != wanted)
        test_fail(file, line, "%s is %" PRId64 ", not %" PRId64, what, actual, wanted);
}

void
test_expect_text(const char *file, int line, const char *what, const char *actual,
                 const char *wanted)
{
    if (actual == NULL || wanted == NULL) {
        if (actual != wanted)
            test_fail(file, line, "%s is %s, not %s", what, actual == NULL ? "NULL" : actual,
                      wanted == NULL ? "NULL" : wanted);
    } else if (strcmp(actual, wanted) != 0) {
        test_fail(file, line, "%s is \"%s\", not \"%s\"", what, actual, wanted);
    }
}

void
test_expect_ok(const char *file, int line, const char *what, const struct error *err)
{
    if (err != NULL)
        test_fail(file, line, "%s gave %s: %s (made at %s:%d)", what, error_kind_name(err->kind),
                  err->message, check_source_path(err->file), err->line);
}

void
test_expect_kind(const char *file, int line, const char *what, const struct error *err, int kind)
{
    const char *wanted = error_kind_name((enum error_kind)kind);
    if (err == NULL)
        test_fail(file, line, "%s gave no error, not %s", what, wanted);
    else if ((int)err->kind != kind)
        test_fail(file, line, "%s gave %s, not %s: %s", what, error_kind_name(err->kind), wanted,
                  err->message);
}

/* ---- running ---- */

static void
stack_measure(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    int failed = pthread_getattr_np(pthread_self(), &attributes);
    check(failed == 0);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    harness.stack_low = (uintptr_t)low;
    harness.stack_high = (uintptr_t)low + size;
    check(is_on_test_stack());
}

static enum outcome
run_once(const struct test *test)
{
    test_seeds.has_drawn = false;
    int jumped = setjmp(harness.back);
    if (jumped == 0)
        test->run();
    return jumped == 0 ? OUTCOME_PASSED : (enum outcome)(jumped - 1);
}

/* A test that took its first seed and did not ask how many there are plays one scenario: it is
 * repeated for each of the seeds that --seeds=N asked for. */
static bool
has_next_round(void)
{
    return harness.has_asked_seeds && test_seeds.has_drawn && !test_seeds.is_counted &&
           test_seeds.round + 1 < test_seeds.count;
}

static void
run(const struct test *test)
{
    static const char *const words[OUTCOME_COUNT] = {"ok", "FAILED", "skipped"};
    harness.current = test;
    test_seeds.is_counted = false;
    test_seeds.round = 0;
    enum outcome outcome = run_once(test);
    for (; outcome == OUTCOME_PASSED && has_next_round(); outcome = run_once(test))
        test_seeds.round++;
    harness.counts[outcome]++;
    print_line(words[outcome]);
}

static bool
is_chosen(const struct test *test)
{
    if (harness.filter == NULL)
        return true;
    char name[512];
    snprintf(name, sizeof name, "%s: %s", test->suite, test->title);
    if (strstr(name, harness.filter) != NULL)
        return true;
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '_' ? ' ' : *at;
    return strstr(name, harness.filter) != NULL;
}

/* ---- arguments ---- */

static void
print_usage(FILE *to, const char *program)
{
    fprintf(
        to,
        "usage: %s [--seed=N] [--seeds=M] [TITLE]\n"
        "  TITLE      runs only the tests that have it in \"suite: title\"\n"
        "  --seed=N   the seed of tests that sample; with --seeds=M the M from N on\n"
        "  --seeds=M  so many seeds; without --seed half of them are the same in each run, half\n"
        "             change with the environment's CADENZA_SEED\n",
        program);
}

no_return static void
refuse(const char *program, const char *argument, const char *why)
{
    fprintf(stderr, "%s: %s\n", argument, why);
    print_usage(stderr, program);
    exit(EXIT_USAGE);
}

/* The number after `name` in an argument such as --seed=7; false when it is another argument. */
static bool
read_number(const char *program, const char *argument, const char *name, uint64_t *number)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0)
        return false;
    char *end;
    errno = 0;
    *number = strtoull(argument + length, &end, 0);
    if (end == argument + length || *end != '\0' || errno != 0 || argument[length] == '-')
        refuse(program, argument, "not a number");
    return true;
}

static void
read_argument(const char *program, const char *argument)
{
    uint64_t number;
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
        print_usage(stdout, program);
        exit(0);
    } else if (read_number(program, argument, "--seed=", &number)) {
        test_seeds.has_first = true;
        test_seeds.first = number;
    } else if (read_number(program, argument, "--seeds=", &number)) {
        if (number == 0 || number > INT32_MAX)
            refuse(program, argument, "not between 1 and 2147483647");
        test_seeds.count = (int)number;
        harness.has_asked_seeds = true;
    } else if (argument[0] == '-') {
        refuse(program, argument, "unknown option");
    } else {
        harness.filter = argument;
    }
}

static void
read_arguments(int count, char **arguments)
{
    for (int i = 1; i < count; i++)
        read_argument(arguments[0], arguments[i]);
    if (test_seeds.count == 0)
        test_seeds.count = test_seeds.has_first ? 1 : SEEDS_DEFAULT;
}

int
main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_arguments(count, arguments);
    seeds_prepare();
    stack_measure();
    for (const struct test *test = harness.first; test != NULL; test = test->next)
        if (is_chosen(test))
            run(test);
    printf("%d passed, %d failed, %d skipped\n", harness.counts[OUTCOME_PASSED],
           harness.counts[OUTCOME_FAILED], harness.counts[OUTCOME_SKIPPED]);
    int ran = harness.counts[OUTCOME_PASSED] + harness.counts[OUTCOME_SKIPPED];
    return harness.counts[OUTCOME_FAILED] == 0 && ran > 0 ? 0 : 1;
}
