/* test.h - the tree's own small test harness. One program per module, many tests in it.
 *
 *   TEST(arena, what_was_handed_out_is_aligned_for_any_type) { ... EXPECT(p != NULL); ... }
 *
 * The title is a sentence that can be false. A failed EXPECT ends its test (by longjmp) and the
 * next one runs. The program prints one line per test and "N passed, N failed, N skipped" at the
 * end; exit code 1 when one failed. Arguments: a substring chooses tests, --seed=N sets the seed,
 * --seeds=N asks for more.
 *
 * A test that proves lines of the catalogue of behaviours (tests/catalogue.txt) names them:
 *
 *   TEST(start, the_same_request_twice_starts_one_run, "A-020", "A-027") { ... }
 *
 * They are printed behind its title when it passed; tools/catalogue collects them. */
#ifndef CADENZA_BASE_TEST_H
#define CADENZA_BASE_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct test {
    const char *suite;
    const char *title;
    void (*run)(void);
    struct test *next;
    const char *const *ids; /* of the catalogue; ends with NULL */
};

#define TEST(suite_, title_, ...)                                                                  \
    static void test_##suite_##_##title_(void);                                                    \
    __attribute__((constructor)) static void test_register_##suite_##_##title_(void)               \
    {                                                                                              \
        static const char *const ids[] = {"", ##__VA_ARGS__, NULL};                                \
        static struct test test = {#suite_, #title_, test_##suite_##_##title_, NULL, ids + 1};     \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void test_##suite_##_##title_(void)

/* A test whose body runs inside of something, a server or a fiber, that hands it `parameter`; `run`
 * calls it by the name `body`:
 *
 *   TEST_IN(pair, both_clusters_know_it, struct pair *pair, pair_run(2, body), "D-045") { ... }
 *
 * Fixtures have a short form of it (SERVER_TEST, SCRIPT_TEST ...). */
#define TEST_IN(suite_, title_, parameter, run, ...)                                               \
    static void inside_##suite_##_##title_(parameter);                                             \
    TEST(suite_, title_, ##__VA_ARGS__)                                                            \
    {                                                                                              \
        void (*body)(parameter) = inside_##suite_##_##title_;                                      \
        run;                                                                                       \
    }                                                                                              \
    static void inside_##suite_##_##title_(parameter)

/* A test with an arena of its own, `arena` (base/arena.h). */
#define ARENA_TEST(suite, title, ...)                                                              \
    TEST_IN(suite, title, struct arena *arena,                                                     \
            scoped(arena_drop) struct arena *arena = arena_new(0);                                 \
            body(arena), ##__VA_ARGS__)

#define EXPECT(condition) ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #condition))
#define EXPECT_EQ(actual, wanted)                                                                  \
    test_expect_equal(__FILE__, __LINE__, #actual, (int64_t)(actual), (int64_t)(wanted))
#define EXPECT_TEXT(actual, wanted)                                                                \
    test_expect_text(__FILE__, __LINE__, #actual, (actual), (wanted))
/* NULL error, or its message is shown. */
#define EXPECT_OK(err)         test_expect_ok(__FILE__, __LINE__, #err, (err))
#define EXPECT_KIND(err, kind) test_expect_kind(__FILE__, __LINE__, #err, (err), (kind))
#define TEST_FAIL(...)         test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define TEST_SKIP(why)         test_skip(why)

struct error;
void test_register(struct test *test);
no_return void test_fail(const char *file, int line, const char *format, ...) printf_like(3, 4);
no_return void test_skip(const char *why);
void test_expect_equal(const char *file, int line, const char *what, int64_t actual,
                       int64_t wanted);
void test_expect_text(const char *file, int line, const char *what, const char *actual,
                      const char *wanted);
void test_expect_ok(const char *file, int line, const char *what, const struct error *err);
void test_expect_kind(const char *file, int line, const char *what, const struct error *err,
                      int kind);

/* The seeds of this run, for tests that sample: half fixed, half from the commit id (environment
 * CADENZA_SEED, set by `make test`); --seed=N gives just that one, with --seeds=M the M from it on.
 * A test goes through all of them, or takes test_seed(0) alone and does not ask for the count: then
 * --seeds=M repeats it for each. */
int test_seed_count(void);
uint64_t test_seed(int index);
/* Are there more than `few` seeds, none of them chosen by --seed? Then what usually happens must
 * have happened with some of them. That cannot be demanded of seeds that --seed chose: tools/soak
 * adds those up. Always true for 0: it must happen with each seed. */
bool test_seeds_suffice(int few);
/* The first, for a test that is not worth repeating: that a seed gives the same trace twice. */
uint64_t test_one_seed(void);

#endif
