/* limits_test.c - buckets of workflow ids by themselves: what passes, what is told. */
#include "engine/limits/limits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/random.h"
#include "base/test.h"
#include "base/vector.h"

#define SECOND 1000000000LL

struct fixture {
    struct arena *arena;
    struct dynamic *dynamic;
    struct metrics *metrics;
    struct log log;
    struct buffer lines;
    struct id_limits *limits;
};

static void
keep_line(void *context, const char *line, size_t length)
{
    buffer_append(context, slice_of(line, length));
}

static int64_t
no_time(void *context)
{
    (void)context;
    return 0;
}

static void
fixture_set(struct fixture *fixture, const char *yaml)
{
    EXPECT_OK(dynamic_load(fixture->dynamic, slice_text(yaml), "limits.yaml", fixture->arena));
}

static void
fixture_open(struct fixture *fixture, const char *yaml, size_t records_max)
{
    *fixture = (struct fixture){.arena = arena_new(0), .metrics = metrics_new()};
    fixture->log = (struct log){.level = LOG_INFO,
                                .service = "cadenza",
                                .now = no_time,
                                .sink = keep_line,
                                .context = &fixture->lines};
    fixture->dynamic = dynamic_new(NULL);
    fixture_set(fixture, yaml);
    struct limits_options options = {.dynamic = fixture->dynamic,
                                     .log = &fixture->log,
                                     .metrics = fixture->metrics,
                                     .records_max = records_max};
    fixture->limits = limits_new(&options);
}

static void
fixture_close(struct fixture *fixture)
{
    limits_free(fixture->limits);
    dynamic_free(fixture->dynamic);
    metrics_free(fixture->metrics);
    buffer_free(&fixture->lines);
    arena_free(fixture->arena);
}

static int64_t
take(struct fixture *fixture, enum limits_side side, const char *domain, const char *workflow_id,
     int64_t now)
{
    struct limits_key key = {domain, domain, workflow_id};
    return limits_take(fixture->limits, side, &key, now);
}

/* The number of a series on the page; -1: there is none. */
static double
shown(struct fixture *fixture, const char *series)
{
    struct slice page = metrics_render(fixture->metrics, fixture->arena);
    const char *text = arena_text_of(fixture->arena, page);
    char wanted[200];
    snprintf(wanted, sizeof wanted, "\n%s ", series);
    const char *line = strstr(text, wanted);
    return line == NULL ? -1 : atof(line + strlen(wanted));
}

/* The example of the feature's announcement: all domains have a limit of 100, one is in the shadow.
 */
static const char example[] = "history.workflowIDCacheExternalEnabled:\n"
                              "- value: true\n"
                              "  constraints: {}\n"
                              "history.workflowIDExternalRateLimitEnabled:\n"
                              "- value: false\n"
                              "  constraints:\n"
                              "    domainName: samples-domain\n"
                              "- value: true\n"
                              "  constraints: {}\n"
                              "history.workflowIDExternalRPS:\n"
                              "- value: 100\n"
                              "  constraints: {}\n";

TEST(limits, the_hundred_and_first_call_is_held_off_but_not_in_the_shadow, "H-003", "H-004",
     "H-005")
{
    struct fixture fixture;
    fixture_open(&fixture, example, 0);
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND), 0);
        EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "samples-domain", "w", SECOND), 0);
    }
    EXPECT(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND) > 0);
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "samples-domain", "w", SECOND), 0);
    EXPECT_EQ(shown(&fixture, "workflow_id_external_requests_ratelimited{domain=\"orders\"}"), 1);
    EXPECT_EQ(
        shown(&fixture, "workflow_id_external_requests_ratelimited{domain=\"samples-domain\"}"), 1);
    fixture_close(&fixture);
}

TEST(limits, other_ids_other_domains_and_the_other_side_are_not_touched, "H-001", "H-009")
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 1}]\n", 0);
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND), 0);
    EXPECT(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND) > 0);
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "v", SECOND), 0);
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "other", "w", SECOND), 0);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(take(&fixture, LIMITS_INTERNAL, "orders", "w", SECOND), 0);
    fixture_close(&fixture);
}

/* A task that can take another way asks first: without a token it leaves no trace. */
TEST(limits, one_that_can_go_another_way_is_counted_only_if_it_goes, "H-010")
{
    struct fixture fixture;
    struct limits_key key = {"orders", "orders", "w"};
    fixture_open(&fixture, "history.workflowIDInternalRPS: [{value: 2}]\n", 0);
    EXPECT(limits_take_free(fixture.limits, LIMITS_INTERNAL, &key, SECOND));
    EXPECT(limits_take_free(fixture.limits, LIMITS_INTERNAL, &key, SECOND));
    EXPECT(!limits_take_free(fixture.limits, LIMITS_INTERNAL, &key, SECOND));
    struct limits_rate *rates;
    EXPECT_EQ(limits_hottest(fixture.limits, NULL, SECOND, 10, fixture.arena, &rates), 1);
    EXPECT_EQ(rates[0].rate[LIMITS_INTERNAL], 2);
    EXPECT_EQ(shown(&fixture, "workflow_id_internal_requests_ratelimited{domain=\"orders\"}"), 0);
    EXPECT(limits_take_free(fixture.limits, LIMITS_INTERNAL, &key, SECOND + SECOND / 2));
    fixture_set(&fixture, "history.workflowIDInternalRPS: [{value: 2}]\n"
                          "history.workflowIDInternalRateLimitEnabled: [{value: false}]\n");
    for (int i = 0; i < 10; i++)
        EXPECT(limits_take_free(fixture.limits, LIMITS_INTERNAL, &key, 2 * SECOND));
    EXPECT(shown(&fixture, "workflow_id_internal_requests_ratelimited{domain=\"orders\"}") > 0);
    fixture_close(&fixture);
}

TEST(limits, without_a_rate_nothing_is_held_off_and_a_new_rate_counts_at_once, "H-002")
{
    struct fixture fixture;
    fixture_open(&fixture, "{}", 0);
    for (int i = 0; i < 10000; i++)
        EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND), 0);
    fixture_set(&fixture, "history.workflowIDExternalRPS: [{value: 2}]\n");
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND), 0);
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND), 0);
    EXPECT(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND) > 0);
    fixture_set(&fixture, "history.workflowIDExternalRPS: [{value: 2}]\n"
                          "history.workflowIDCacheExternalEnabled: [{value: false}]\n");
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", SECOND), 0);
    fixture_close(&fixture);
}

TEST(limits, five_pass_then_hardly_any_and_after_a_second_one_does_again, "H-008")
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 5}]\n", 0);
    int64_t now = SECOND;
    for (int i = 0; i < 5; i++, now += SECOND / 100)
        EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", now), 0);
    int refused = 0;
    for (int i = 0; i < 5; i++, now += SECOND / 100)
        refused += take(&fixture, LIMITS_EXTERNAL, "orders", "w", now) > 0;
    EXPECT(refused >= 4);
    EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", "w", now + SECOND), 0);
    fixture_close(&fixture);
}

/* Method: calls of one id at random moments, in bursts and trickles; of any two calls that passed
 * the span and the number between them are compared with the rate. In the shadow all pass. */
static void
check_arrivals(uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    struct fixture fixture;
    int64_t rate = 1 + (int64_t)random_below(&random, 40);
    char yaml[200];
    snprintf(yaml, sizeof yaml,
             "history.workflowIDInternalRPS: [{value: %d}]\n"
             "history.workflowIDInternalRateLimitEnabled: [{value: false, constraints: "
             "{domainName: shadow}}]\n",
             (int)rate);
    fixture_open(&fixture, yaml, 0);
    vector_of(int64_t) passed = {0};
    int64_t now = SECOND;
    for (int i = 0; i < 400; i++) {
        now +=
            (int64_t)random_below(&random, random_below(&random, 3) == 0 ? SECOND : SECOND / 100);
        if (take(&fixture, LIMITS_INTERNAL, "orders", "w", now) == 0)
            vector_push(&passed, now);
        EXPECT_EQ(take(&fixture, LIMITS_INTERNAL, "shadow", "w", now), 0);
        if (random_below(&random, 10) == 0)
            limits_tick(fixture.limits, now);
    }
    for (size_t i = 0; i < passed.count; i++)
        for (size_t k = i; k < passed.count; k++) {
            double span = (double)(passed.items[k] - passed.items[i]) / (double)SECOND;
            EXPECT((double)(k - i + 1) <= (double)rate * span + (double)rate + 0.001);
        }
    vector_free(&passed);
    fixture_close(&fixture);
}

TEST(limits, no_span_of_time_has_more_than_the_rate_and_one_bucket, "H-004", "H-008")
{
    for (int i = 0; i < test_seed_count(); i++)
        check_arrivals(test_seed(i));
}

TEST(limits, a_million_ids_do_not_grow_it_and_the_busy_one_stays, "H-013")
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 3}]\n", 100);
    char workflow_id[40];
    int passed = 0;
    for (int i = 0; i < 1000000; i++) {
        int64_t now = SECOND + (int64_t)i * 60000; /* all of them within a minute */
        snprintf(workflow_id, sizeof workflow_id, "w%d", i);
        EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", workflow_id, now), 0);
        if (i % 50 == 0)
            passed += take(&fixture, LIMITS_EXTERNAL, "orders", "busy", now) == 0;
    }
    EXPECT(passed >= 179 && passed <= 184);
    limits_tick(fixture.limits, 61 * SECOND);
    EXPECT_EQ(shown(&fixture, "workflow_id_cache_size{domain=\"orders\"}"), 100);
    limits_tick(fixture.limits, 70 * SECOND);
    EXPECT_EQ(shown(&fixture, "workflow_id_cache_size{domain=\"orders\"}"), 0);
    EXPECT(!limits_is_idle(fixture.limits)); /* the highest is still told */
    limits_tick(fixture.limits, 90 * SECOND);
    EXPECT(limits_is_idle(fixture.limits));
    fixture_close(&fixture);
}

/* Four ids are called less often than it takes to push out all that memory holds. */
TEST(limits, ids_at_their_limit_are_not_pushed_out_by_many_others, "H-013")
{
    enum { BUSY = 4, KEPT = 16, OTHERS = 2 * KEPT, ROUNDS = 200 };
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 3}]\n", KEPT);
    char workflow_id[40];
    int passed[BUSY] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t now = SECOND + round * (SECOND / 20);
        for (int i = 0; i < BUSY * 3; i++) { /* three at a time */
            snprintf(workflow_id, sizeof workflow_id, "busy%d", i / 3);
            passed[i / 3] += take(&fixture, LIMITS_EXTERNAL, "orders", workflow_id, now) == 0;
        }
        now += SECOND / 40;
        for (int i = 0; i < OTHERS; i++) {
            snprintf(workflow_id, sizeof workflow_id, "w%d", round * OTHERS + i);
            EXPECT_EQ(take(&fixture, LIMITS_EXTERNAL, "orders", workflow_id, now), 0);
        }
    }
    for (int i = 0; i < BUSY; i++) /* of 600 calls in ten seconds */
        EXPECT(passed[i] >= 30 && passed[i] <= 34);
    fixture_close(&fixture);
}

TEST(limits, the_metrics_tell_the_highest_rate_of_an_id_in_both_spellings, "H-014", "H-015")
{
    struct fixture fixture;
    fixture_open(&fixture, "{}", 0);
    for (int i = 0; i < 7; i++)
        take(&fixture, LIMITS_EXTERNAL, "orders", "w", 5 * SECOND);
    for (int i = 0; i < 3; i++)
        take(&fixture, LIMITS_EXTERNAL, "orders", "v", 5 * SECOND);
    take(&fixture, LIMITS_EXTERNAL, "orders", "w", 6 * SECOND);
    take(&fixture, LIMITS_EXTERNAL, "orders", "v", 6 * SECOND);
#define UPPER(end) "workflow_id_external_requests_max_requests_per_second" end "{domain=\"orders\"}"
    EXPECT_EQ(shown(&fixture, UPPER("_upper")), 7);
    EXPECT_EQ(shown(&fixture, UPPER("s_upper")), 7);
    EXPECT_EQ(shown(&fixture, UPPER("_count")), 2);
    EXPECT_EQ(shown(&fixture, UPPER("_sum")), 10);
    EXPECT_EQ(shown(&fixture, UPPER("s_counts_sum")), 10);
    limits_tick(fixture.limits, 30 * SECOND);
    EXPECT_EQ(shown(&fixture, UPPER("_upper")), 0);
    fixture_close(&fixture);
}

/* How often the log says it. */
static int
count_lines(struct fixture *fixture, const char *what)
{
    int count = 0;
    const char *rest = arena_text_of(fixture->arena, buffer_slice(&fixture->lines));
    while ((rest = strstr(rest, what)) != NULL) {
        rest += strlen(what);
        count++;
    }
    return count;
}

TEST(limits, the_log_names_the_offender_and_a_storm_does_not_fill_it, "H-016")
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 1}]\n", 0);
    struct limits_key key = {"fc0c7fcb", "samples-domain", "test"};
    for (int i = 0; i < 1000; i++)
        limits_take(fixture.limits, LIMITS_EXTERNAL, &key, SECOND);
    const char *lines = arena_text_of(fixture.arena, buffer_slice(&fixture.lines));
    EXPECT(strstr(lines, "\"msg\":\"Rate limiting workflowID\"") != NULL);
    EXPECT(strstr(lines, "\"request-type\":\"external\"") != NULL);
    EXPECT(strstr(lines, "\"wf-domain-id\":\"fc0c7fcb\"") != NULL);
    EXPECT(strstr(lines, "\"wf-domain-name\":\"samples-domain\"") != NULL);
    EXPECT(strstr(lines, "\"wf-id\":\"test\"") != NULL);
    EXPECT(strstr(lines, "\"service\":\"cadence-history\"") != NULL);
    EXPECT(strstr(lines, "\"service\":\"cadenza\"") == NULL);
    EXPECT_EQ(count_lines(&fixture, "\n"), 1);
    for (int i = 0; i < 1000; i++) { /* a storm of many ids: bounded by the second */
        struct limits_key other = {"fc0c7fcb", "samples-domain",
                                   arena_format(fixture.arena, "w%d", i / 10)};
        limits_take(fixture.limits, LIMITS_EXTERNAL, &other, SECOND);
    }
    EXPECT_EQ(count_lines(&fixture, "\n"), 20);
    fixture_close(&fixture);
}

/* One id that offends all the time must not keep the others out of the log. */
TEST(limits, the_log_names_each_offender_once_a_minute)
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 1}]\n", 0);
    for (int64_t now = SECOND; now < 121 * SECOND; now += SECOND / 10)
        for (int i = 0; i < 60; i++) {
            const char *id = i < 50 ? "loud" : arena_format(fixture.arena, "quiet%d", i - 50);
            struct limits_key key = {"fc0c7fcb", "samples-domain", id};
            limits_take(fixture.limits, LIMITS_EXTERNAL, &key, now);
        }
    EXPECT(count_lines(&fixture, "\"wf-id\":\"loud\"") >= 2);
    for (int i = 0; i < 10; i++) {
        int count = count_lines(&fixture, arena_format(fixture.arena, "\"wf-id\":\"quiet%d\"", i));
        EXPECT(count >= 2 && count <= 3);
    }
    fixture_close(&fixture);
}

/* Tasks wait in a queue of their id: those that come are only counted, the first of them asks again
 * for a token. `busy` has more tasks all the time, `waiting` has none that are new. */
TEST(limits, the_log_names_an_id_each_minute_while_its_tasks_wait)
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDInternalRPS: [{value: 1}]\n", 0);
    struct limits_key busy = {"fc0c7fcb", "samples-domain", "busy"};
    struct limits_key waiting = {"fc0c7fcb", "samples-domain", "waiting"};
    for (int i = 0; i < 2; i++) { /* the second of each finds no token */
        limits_take(fixture.limits, LIMITS_INTERNAL, &busy, SECOND);
        limits_take(fixture.limits, LIMITS_INTERNAL, &waiting, SECOND);
    }
    for (int64_t now = SECOND; now < 600 * SECOND; now += SECOND / 2) {
        limits_count(fixture.limits, LIMITS_INTERNAL, &busy, now);
        limits_take_again(fixture.limits, LIMITS_INTERNAL, &waiting, now);
        limits_tick(fixture.limits, now);
    }
    int count = count_lines(&fixture, "\"wf-id\":\"busy\"");
    EXPECT(count >= 10 && count <= 12);
    count = count_lines(&fixture, "\"wf-id\":\"waiting\"");
    EXPECT(count >= 10 && count <= 12);
    EXPECT_EQ(count_lines(&fixture, "\"request-type\":\"external\""), 0);
    fixture_close(&fixture);
}

/* Its record is forgotten between any two bursts. */
TEST(limits, the_log_names_an_id_that_comes_in_bursts_once_a_minute)
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 1}]\n", 0);
    for (int64_t now = SECOND; now < 600 * SECOND; now += 5 * SECOND) {
        for (int i = 0; i < 10; i++)
            take(&fixture, LIMITS_EXTERNAL, "orders", "w", now);
        limits_tick(fixture.limits, now + 2 * SECOND);
        struct limits_rate *rates;
        EXPECT_EQ(limits_hottest(fixture.limits, NULL, now + 2 * SECOND, 9, fixture.arena, &rates),
                  0);
    }
    int count = count_lines(&fixture, "\"wf-id\":\"w\"");
    EXPECT(count >= 10 && count <= 12);
    fixture_close(&fixture);
}

/* More offenders than a minute has lines for: each second has its lines, and all have their turn.
 */
TEST(limits, a_storm_has_twenty_lines_a_second_and_names_every_id_in_the_end)
{
    enum { OFFENDERS = 1500, SECONDS = 200 };
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDExternalRPS: [{value: 1}]\n", 0);
    char workflow_id[40];
    for (int second = 1; second <= SECONDS; second++)
        for (int i = 0; i < 2 * OFFENDERS; i++) {
            snprintf(workflow_id, sizeof workflow_id, "w%d", (i / 2 + second * 7) % OFFENDERS);
            take(&fixture, LIMITS_EXTERNAL, "orders", workflow_id, second * SECOND);
        }
    int count = count_lines(&fixture, "\n");
    EXPECT(count >= 19 * SECONDS && count <= 20 * SECONDS + 20);
    const char *lines = arena_text_of(fixture.arena, buffer_slice(&fixture.lines));
    for (int i = 0; i < OFFENDERS; i++)
        EXPECT(strstr(lines, arena_format(fixture.arena, "\"wf-id\":\"w%d\"", i)) != NULL);
    fixture_close(&fixture);
}

TEST(limits, the_hottest_ids_come_first)
{
    struct fixture fixture;
    fixture_open(&fixture, "history.workflowIDInternalRPS: [{value: 3}]\n", 0);
    char workflow_id[40];
    for (int i = 1; i <= 20; i++)
        for (int k = 0; k < i; k++) {
            snprintf(workflow_id, sizeof workflow_id, "w%d", i);
            take(&fixture, i % 2 == 0 ? LIMITS_EXTERNAL : LIMITS_INTERNAL,
                 i % 5 == 0 ? "other" : "orders", workflow_id, 3 * SECOND);
        }
    struct limits_rate *rates;
    EXPECT_EQ(limits_hottest(fixture.limits, NULL, 3 * SECOND, 3, fixture.arena, &rates), 3);
    EXPECT_TEXT(rates[0].workflow_id, "w20");
    EXPECT_EQ(rates[0].rate[LIMITS_EXTERNAL], 20);
    EXPECT(!rates[0].is_limited[LIMITS_EXTERNAL]);
    EXPECT_TEXT(rates[1].workflow_id, "w19");
    EXPECT_EQ(rates[1].rate[LIMITS_INTERNAL], 19);
    EXPECT(rates[1].is_limited[LIMITS_INTERNAL]);
    EXPECT_EQ(limits_hottest(fixture.limits, "other", 4 * SECOND, 9, fixture.arena, &rates), 4);
    EXPECT_TEXT(rates[3].workflow_id, "w5");
    EXPECT_EQ(limits_hottest(fixture.limits, NULL, 6 * SECOND, 9, fixture.arena, &rates), 0);
    fixture_close(&fixture);
}
