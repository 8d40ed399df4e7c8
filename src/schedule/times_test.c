/* times_test.c - nominal times and their delays. */
#include "base/random.h"
#include "base/test.h"
#include "schedule/inside.h"

#define DAY 86400

static struct schedule
new_schedule(struct arena *arena, const char *cron)
{
    struct schedule schedule = {.arena = arena};
    schedule.definition = STORED_NEW(arena, schedule_definition);
    schedule.definition->schedule_id = "plan";
    schedule.definition->spec = API_NEW(arena, schedule_spec);
    schedule.definition->spec->cron_expression = (char *)cron;
    schedule.progress = STORED_NEW(arena, schedule_progress);
    schedule_read_cron(&schedule);
    EXPECT(schedule.has_cron);
    return schedule;
}

/* Walked one by one. */
struct walk {
    int64_t count, last, first_from;
};

static struct walk
walk(const struct schedule *schedule, int64_t after, int64_t until, int64_t not_before)
{
    struct walk walk = {0, CRON_NEVER, CRON_NEVER};
    int64_t next = after;
    while ((next = schedule_next(schedule, next)) != CRON_NEVER && next <= until) {
        walk.count++;
        walk.last = next;
        if (next >= not_before && walk.first_from == CRON_NEVER)
            walk.first_from = next;
    }
    return walk;
}

/* Counting, the last one and seeking are short cuts of walking: they must come to the same. */
TEST(schedule_times, short_cuts_lead_where_the_long_way_leads)
{
    static const char *const crons[] = {"@every 7m", "*/10 * * * *", "30 2 * * *",
                                        "CRON_TZ=Europe/Berlin 30 2 * * *", "0 0 1 1 *"};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct random random;
    random_seed(&random, test_seed(0));
    for (int i = 0; i < 500; i++) {
        struct schedule schedule = new_schedule(arena, crons[i % 5]);
        int64_t after = 1770000000 + (int64_t)random_below(&random, 400 * DAY);
        int64_t until = after + (int64_t)random_below(&random, 3 * DAY);
        int64_t not_before = after + (int64_t)random_below(&random, 2 * DAY);
        if (i % 3 == 0)
            schedule.definition->spec->start_time = presence_make_timestamp(
                arena, (after + (int64_t)random_below(&random, DAY)) * NANOSECONDS + 5);
        if (i % 4 == 0)
            schedule.definition->spec->end_time = presence_make_timestamp(
                arena, (after + (int64_t)random_below(&random, 2 * DAY)) * NANOSECONDS + 5);
        struct walk wanted = walk(&schedule, after, until, not_before);
        EXPECT_EQ(schedule_count(&schedule, after, until, INT64_MAX), wanted.count);
        EXPECT_EQ(schedule_last(&schedule, after, until), wanted.last);
        int64_t found = schedule_next(&schedule, schedule_seek(&schedule, after, not_before));
        if (wanted.first_from != CRON_NEVER)
            EXPECT_EQ(found, wanted.first_from);
    }
}

ARENA_TEST(schedule_times, the_start_counts_and_so_does_the_end)
{
    struct schedule schedule = new_schedule(arena, "* * * * *");
    schedule.definition->spec->start_time = presence_make_timestamp(arena, 600 * NANOSECONDS);
    schedule.definition->spec->end_time = presence_make_timestamp(arena, 720 * NANOSECONDS);
    EXPECT_EQ(schedule_next(&schedule, 0), 600);
    EXPECT_EQ(schedule_next(&schedule, 660), 720);
    EXPECT_EQ(schedule_next(&schedule, 720), CRON_NEVER);
    EXPECT_EQ(schedule_count(&schedule, 0, 9999, 100), 3);
    EXPECT_EQ(schedule_count(&schedule, 0, 9999, 2), 2);
}

/* The same question gets the same answer, or a repeat would start at another time. */
ARENA_TEST(schedule_times, jitter_is_the_same_for_the_same_time_and_spread_over_others, "A-284")
{
    struct schedule schedule = new_schedule(arena, "* * * * *");
    EXPECT_EQ(schedule_due(&schedule, 60), 60 * NANOSECONDS);
    schedule.definition->spec->jitter = presence_make_duration(arena, 10);
    bool early = false, late = false;
    for (int64_t nominal = 0; nominal < 6000; nominal += 60) {
        int64_t delay = schedule_due(&schedule, nominal) - nominal * NANOSECONDS;
        EXPECT(delay >= 0 && delay <= 10 * NANOSECONDS);
        EXPECT_EQ(schedule_due(&schedule, nominal) - nominal * NANOSECONDS, delay);
        early |= delay < 2 * NANOSECONDS;
        late |= delay > 8 * NANOSECONDS;
    }
    EXPECT(early && late);
}

ARENA_TEST(schedule_times, times_are_written_as_rfc_3339_has_them)
{
    EXPECT_TEXT(schedule_time_text(0, arena), "1970-01-01T00:00:00Z");
    EXPECT_TEXT(schedule_time_text(1774748700, arena), "2026-03-29T01:45:00Z");
}
