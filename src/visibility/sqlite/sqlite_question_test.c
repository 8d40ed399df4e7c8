/* sqlite_question_test.c - tokens that are forged, questions that nobody waits for, many at once,
 * and keys that have settled. */
#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "visibility/sqlite/test_fixture.h"

/* ---- tokens ---- */

static struct error *
ask_with(struct visibility_fixture *visibility_fixture, struct visibility *visibility,
         const char *text, struct slice token, struct visibility_page *page)
{
    struct query query;
    EXPECT_OK(query_parse(text, visibility_fixture->attributes, visibility_fixture->arena, &query));
    struct visibility_question question = {
        .domain_id = TEST_DOMAIN, .query = &query, .page_size = 3, .token = token};
    return visibility_list(visibility, &question, visibility_fixture->arena, page);
}

static void
run_tokens(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 20);
    struct visibility_page page, next;
    EXPECT_OK(ask_with(visibility_fixture, visibility, "", (struct slice){0}, &page));
    EXPECT_OK(ask_with(visibility_fixture, visibility, "", page.token, &next));
    EXPECT_EQ(next.count, 3);
    for (size_t i = 0; i < page.token.length * 8; i++) {
        uint8_t *forged = arena_alloc(visibility_fixture->arena, page.token.length);
        memcpy(forged, page.token.data, page.token.length);
        forged[i / 8] ^= (uint8_t)(1 << i % 8);
        EXPECT_KIND(ask_with(visibility_fixture, visibility, "",
                             slice_of(forged, page.token.length), &next),
                    ERR_BAD_REQUEST);
    }
    for (size_t i = 1; i < page.token.length; i++)
        EXPECT_KIND(
            ask_with(visibility_fixture, visibility, "", slice_of(page.token.data, i), &next),
            ERR_BAD_REQUEST);
    EXPECT_KIND(ask_with(visibility_fixture, visibility, "ORDER BY CloseTime", page.token, &next),
                ERR_BAD_REQUEST);
    EXPECT_KIND(
        ask_with(visibility_fixture, visibility, "ORDER BY StartTime ASC", page.token, &next),
        ERR_BAD_REQUEST);
    EXPECT_OK(ask_with(visibility_fixture, visibility, "StartTime > 5", page.token,
                       &next)); /* the place fits */
    visibility_close(visibility);
}

TEST(visibility_token, one_with_a_changed_bit_or_of_another_order_is_refused)
{
    visibility_fixture_run(run_tokens, NULL);
}

/* ---- deadlines ---- */

#define SLOW_RUNS  20000
#define SLOW_QUERY "WorkflowID LIKE '%o%r%d%e%r%-%9%9%9%9%9%9%'"

struct slow {
    struct visibility_fixture *visibility_fixture;
    struct visibility *visibility;
    struct arena *arena;
    struct fiber *fiber;
    int64_t deadline; /* from now; NEVER: none */
    struct error *err;
    struct latch done;
};

static void
ask_slowly(void *argument)
{
    struct slow *slow = argument;
    struct query query;
    int64_t count;
    if (slow->deadline != NEVER)
        fiber_set_deadline(clock_monotonic() + slow->deadline);
    struct error *err =
        query_parse(SLOW_QUERY, slow->visibility_fixture->attributes, slow->arena, &query);
    check(err == NULL);
    slow->err = visibility_count(slow->visibility, TEST_DOMAIN, &query, slow->arena, &count);
    latch_done(&slow->done);
}

static void
run_deadline(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    for (uint64_t i = 0; i < SLOW_RUNS; i += 1000)
        visibility_fixture_feed(visibility_fixture, visibility, i, i + 1000);
    struct slow slow = {.visibility_fixture = visibility_fixture,
                        .visibility = visibility,
                        .arena = visibility_fixture->arena,
                        .deadline = 0};
    latch_init(&slow.done, 1);
    fiber_start("slow", ask_slowly, &slow);
    latch_wait(&slow.done);
    EXPECT_KIND(slow.err, ERR_DEADLINE);

    slow.deadline = NEVER;
    latch_init(&slow.done, 1);
    slow.fiber = fiber_start("slow", ask_slowly, &slow);
    fiber_yield();
    fiber_cancel(slow.fiber);
    latch_wait(&slow.done);
    EXPECT_KIND(slow.err, ERR_CANCELLED);

    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, "CloseStatus = 'failed'"),
              SLOW_RUNS / 100);
    visibility_close(visibility);
}

TEST(visibility_deadline, a_question_that_nobody_waits_for_is_stopped_and_the_next_is_not)
{
    visibility_fixture_run(run_deadline, NULL);
}

/* ---- many at once ---- */

enum { ASKERS = 40 };

struct asker {
    struct visibility_fixture *visibility_fixture;
    struct visibility *visibility;
    uint64_t counts[ASKERS];
    unsigned next;
    struct latch done;
};

static void
ask_beside_others(void *argument)
{
    struct asker *asker = argument;
    unsigned number = asker->next++;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct query query;
    int64_t count = -1;
    char *text = arena_format(arena, "WorkflowType = 'type-%u'", number % 10);
    struct error *err = query_parse(text, asker->visibility_fixture->attributes, arena, &query);
    if (err == NULL)
        err = visibility_count(asker->visibility, TEST_DOMAIN, &query, arena, &count);
    asker->counts[number] = err == NULL ? (uint64_t)count : 0;
    latch_done(&asker->done);
}

static void
ask_many(void *argument)
{
    struct asker *asker = argument;
    latch_init(&asker->done, ASKERS);
    for (int i = 0; i < ASKERS; i++)
        fiber_start("asker", ask_beside_others, asker);
    latch_wait(&asker->done);
}

/* Ten times as many questions as readers, from a loop that is not the readers' home, while runs are
 * fed: all are answered, rightly. */
static void
run_many(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 3000);
    struct asker here = {.visibility_fixture = visibility_fixture, .visibility = visibility};
    struct asker there = here;
    EXPECT_OK(loop_call(loop_at(1), ask_many, &there, visibility_fixture->arena));
    ask_many(&here);
    for (int i = 0; i < ASKERS; i++) {
        EXPECT_EQ(here.counts[i], 300);
        EXPECT_EQ(there.counts[i], 300);
    }
    visibility_close(visibility);
}

TEST(visibility_readers, more_questions_than_readers_from_two_loops_are_all_answered)
{
    visibility_fixture_run(run_many, NULL);
}

/* ---- keys ---- */

static void
feed_gone(struct visibility_fixture *visibility_fixture, struct visibility *visibility,
          uint64_t number, uint64_t row)
{
    struct test_run run = test_run_of(number);
    struct visibility_change change = test_run_change(&run, visibility_fixture->arena);
    change.info = (struct slice){0};
    change.shard = 1;
    change.row = row;
    EXPECT_OK(visibility_feed(visibility, &change, 1, visibility_fixture->attributes,
                              visibility_fixture->arena));
}

/* Enough runs that the keys of the first have gone from the small tree to the large one. */
static void
run_settled(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    for (uint64_t i = 0; i < SLOW_RUNS; i += 1000)
        visibility_fixture_feed(visibility_fixture, visibility, i, i + 1000);
    for (uint64_t i = 0; i < SLOW_RUNS; i += 1999) {
        char *by_id = arena_format(visibility_fixture->arena, "WorkflowID = 'order-%d'", (int)i);
        char *by_run = arena_format(visibility_fixture->arena, "RunID = '%s'",
                                    test_run_id(i, visibility_fixture->arena));
        EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, by_id), 1);
        EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, by_run), 1);
        feed_gone(visibility_fixture, visibility, i, SLOW_RUNS + i + 1);
        EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, by_id), 0);
        EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, by_run), 0);
    }
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), SLOW_RUNS - 11);
    visibility_close(visibility);
}

TEST(visibility_keys, settled_or_not_they_find_their_run_until_it_is_gone)
{
    visibility_fixture_run(run_settled, NULL);
}

/* ---- a shard that begins again ---- */

enum { MANY = 5000, OTHERS = 300 };

/* Runs behind the many, of shard 2. */
static void
feed_others(struct visibility_fixture *visibility_fixture, struct visibility *visibility)
{
    struct visibility_change *changes =
        arena_zalloc(visibility_fixture->arena, OTHERS, sizeof changes[0]);
    for (uint64_t i = 0; i < OTHERS; i++) {
        struct test_run run = test_run_of(MANY + i);
        changes[i] = test_run_change(&run, visibility_fixture->arena);
        changes[i].shard = 2;
        changes[i].row = i + 1;
    }
    EXPECT_OK(visibility_feed(visibility, changes, OTHERS, visibility_fixture->attributes,
                              visibility_fixture->arena));
}

static void
forget_many(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, MANY);
    feed_others(visibility_fixture, visibility);
    int64_t attributed =
        visibility_fixture_count(visibility_fixture, visibility, "CustomIntField >= 0");
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), MANY + OTHERS);
    EXPECT_OK(visibility_forget(visibility, 1, 0, visibility_fixture->arena));
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), OTHERS);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, "CustomIntField >= 0"),
              OTHERS / 10);
    const char *by_id = arena_format(visibility_fixture->arena, "RunID = '%s'",
                                     test_run_id(7, visibility_fixture->arena));
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, by_id), 0);
    visibility_fixture_feed(visibility_fixture, visibility, 0,
                            MANY); /* as if they had never been there */
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), MANY + OTHERS);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, "CustomIntField >= 0"),
              attributed);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, by_id), 1);
    visibility_close(visibility);
}

TEST(visibility_forget, a_shard_of_many_runs_goes_whole_and_can_come_again)
{
    visibility_fixture_run(forget_many, NULL);
}
