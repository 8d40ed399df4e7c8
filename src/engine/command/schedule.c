/* schedule.c - the cron schedule of a run.
 *
 * A fire is a whole second; backoffs are rounded up, so that nothing begins before its fire. */
#include "engine/command/schedule.h"

#include "base/check.h"
#include "base/cron.h"

#define SECOND     ((int64_t)1000000000)
#define YEAR_ONE   (-62135596800LL) /* its first second */
#define BUFFER_ONE API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE)

static int64_t
round_up(int64_t nanoseconds)
{
    return nanoseconds / SECOND + (nanoseconds % SECOND > 0);
}

const char *
schedule_fault(const char *schedule, int64_t now, struct arena *arena)
{
    struct cron cron;
    if (schedule[0] == '\0')
        return NULL;
    const char *fault = cron_parse(schedule, arena, &cron);
    if (fault != NULL)
        return arena_format(arena, "Invalid CronSchedule, failed to parse: \"%s\", err: %s",
                            schedule, fault);
    if (cron_next(&cron, now / SECOND) == CRON_NEVER)
        return arena_format(arena,
                            "Invalid CronSchedule, no next firing time found, maybe impossible "
                            "date: \"%s\"",
                            schedule);
    return NULL;
}

/* False: it cannot be parsed. That was checked when it came in. */
static bool
read_schedule(const char *schedule, struct cron *cron)
{
    struct arena *arena = arena_new(256);
    bool is_good = cron_parse(schedule, arena, cron) == NULL;
    arena_free(arena);
    return is_good;
}

int64_t
schedule_backoff(const char *schedule, API(CronOverlapPolicy) policy, int64_t start, int64_t end)
{
    struct cron cron;
    check(start >= 0);
    if (!read_schedule(schedule, &cron))
        return SCHEDULE_NEVER;
    int64_t next = cron_next(&cron, start / SECOND);
    if (next != CRON_NEVER && next < round_up(end)) {
        if (policy == BUFFER_ONE)
            return 0;
        next = cron_next_from(&cron, start / SECOND, round_up(end));
    }
    if (next == CRON_NEVER)
        return SCHEDULE_NEVER;
    int64_t wait;
    if (__builtin_mul_overflow(next, SECOND, &wait) || __builtin_sub_overflow(wait, end, &wait))
        return INT32_MAX;
    check(wait >= 0);
    return round_up(wait) < INT32_MAX ? round_up(wait) : INT32_MAX;
}

int64_t
schedule_period(const char *schedule)
{
    struct cron cron;
    int64_t next = CRON_NEVER;
    if (read_schedule(schedule, &cron))
        next = cron_next(&cron, YEAR_ONE);
    return next == CRON_NEVER ? INT64_MAX : next - YEAR_ONE;
}
