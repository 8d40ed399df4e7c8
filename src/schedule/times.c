/* times.c - nominal times of a schedule, and when they are due. See schedule.h.
 *
 * "@every" counts from a moment, so its times hang together: each is known by the one before. All
 * functions therefore go from a moment that is one of the times, or where they began. */
#include "schedule/inside.h"

#include "base/map.h"

#define MILLISECOND INT64_C(1000000)
#define SECONDS_MAX INT64_C(8000000000) /* the year 2223: far enough */
#define JITTER_MAX  (INT64_C(366) * 86400 * NANOSECONDS)

void *
array_grown(struct arena *arena, const void *array, size_t count)
{
    void **grown = arena_alloc(arena, (count + 1) * sizeof *grown);
    if (count > 0)
        memcpy(grown, array, count * sizeof *grown);
    return grown;
}

int64_t
seconds_down(int64_t nanoseconds)
{
    return nanoseconds / NANOSECONDS - (nanoseconds % NANOSECONDS < 0);
}

int64_t
seconds_up(int64_t nanoseconds)
{
    return nanoseconds / NANOSECONDS + (nanoseconds % NANOSECONDS > 0);
}

/* What does not fit becomes the farthest time that does. */
static int64_t
nanoseconds_of(int64_t seconds, int64_t nanoseconds)
{
    int64_t time;
    if (__builtin_mul_overflow(seconds, NANOSECONDS, &time) ||
        __builtin_add_overflow(time, nanoseconds, &time))
        return seconds < 0 ? INT64_MIN / 2 : INT64_MAX / 2;
    return time;
}

int64_t
timestamp_of(const GOOGLE(Timestamp) *timestamp)
{
    return timestamp == NULL ? 0 : nanoseconds_of(timestamp->seconds, timestamp->nanos);
}

int64_t
duration_of(const GOOGLE(Duration) *duration)
{
    return duration == NULL ? 0 : nanoseconds_of(duration->seconds, duration->nanos);
}

int64_t
seconds_clamped(int64_t seconds)
{
    return seconds < 0 ? 0 : seconds > SECONDS_MAX ? SECONDS_MAX : seconds;
}

/* Where times begin to count. */
static int64_t
from(const struct schedule *schedule, int64_t after)
{
    int64_t start = timestamp_of(schedule->definition->spec->start_time);
    int64_t first = seconds_up(start) - 1;
    return start != 0 && after < first ? first : after;
}

/* Up to where. */
static int64_t
to(const struct schedule *schedule, int64_t until)
{
    int64_t end = timestamp_of(schedule->definition->spec->end_time);
    int64_t last = seconds_down(end);
    return end != 0 && until > last ? last : until;
}

int64_t
schedule_next(const struct schedule *schedule, int64_t after)
{
    if (!schedule->has_cron)
        return CRON_NEVER;
    int64_t next = cron_next(&schedule->cron, from(schedule, after));
    return next != CRON_NEVER && next > to(schedule, SECONDS_MAX) ? CRON_NEVER : next;
}

int64_t
schedule_jitter(const struct schedule *schedule)
{
    int64_t jitter = duration_of(schedule->definition->spec->jitter);
    return jitter < 0 ? 0 : jitter > JITTER_MAX ? JITTER_MAX : jitter;
}

int64_t
schedule_due(const struct schedule *schedule, int64_t nominal)
{
    int64_t jitter = schedule_jitter(schedule);
    check(nominal <= SECONDS_MAX);
    int64_t due = nominal * NANOSECONDS;
    if (jitter == 0)
        return due;
    uint64_t seed[] = {map_hash(slice_text(schedule->definition->schedule_id)), (uint64_t)nominal};
    uint64_t share = map_hash(slice_of(seed, sizeof seed)) % (uint64_t)(jitter / MILLISECOND + 1);
    return due + (int64_t)share * MILLISECOND;
}

int64_t
schedule_count(const struct schedule *schedule, int64_t after, int64_t until, int64_t max)
{
    if (!schedule->has_cron)
        return 0;
    return cron_count(&schedule->cron, from(schedule, after), to(schedule, until), max);
}

/* Cron times have no past to go by, so it is looked for in longer and longer spans before `until`.
 */
static int64_t
last_by_fields(const struct schedule *schedule, int64_t after, int64_t until)
{
    static const int64_t spans[] = {3600, 86400, 32 * 86400L, 366 * 86400L, INT64_MAX};
    int64_t last = CRON_NEVER;
    for (size_t i = 0; last == CRON_NEVER; i++) {
        bool is_all = spans[i] >= until - after;
        int64_t next = is_all ? after : until - spans[i];
        while ((next = cron_next(&schedule->cron, next)) != CRON_NEVER && next <= until)
            last = next;
        if (is_all)
            break;
    }
    return last;
}

int64_t
schedule_last(const struct schedule *schedule, int64_t after, int64_t until)
{
    int64_t every = schedule->cron.every;
    if (!schedule->has_cron)
        return CRON_NEVER;
    after = from(schedule, after);
    until = to(schedule, until);
    if (until <= after)
        return CRON_NEVER;
    if (every == 0)
        return last_by_fields(schedule, after, until);
    if (until - after < every)
        return CRON_NEVER;
    int64_t last = after + (until - after) / every * every;
    check(last > after && last <= until);
    return last;
}

int64_t
schedule_seek(const struct schedule *schedule, int64_t after, int64_t not_before)
{
    after = from(schedule, after);
    if (!schedule->has_cron || not_before <= after)
        return after;
    if (schedule->cron.every == 0)
        return not_before - 1;
    return cron_next_from(&schedule->cron, after, not_before) - schedule->cron.every;
}

char *
schedule_time_text(int64_t seconds, struct arena *arena)
{
    struct zone utc = ZONE_UTC;
    struct civil civil = zone_civil(&utc, seconds);
    return arena_format(arena, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)civil.year, civil.month,
                        civil.day, civil.hour, civil.minute, civil.second);
}
