/* cron.c - when a cron schedule fires next.
 *
 * The search walks from the second after the moment asked about: the first part of the time that
 * does not fit (month, day, hour, minute, second) is moved to its next value, with all smaller
 * parts at their beginning, and everything is checked again. Months and days move by the calendar
 * of the zone; hours and less by the clock that never jumps, so that an hour that is skipped or
 * comes twice ends the search as well. */
#include "base/cron.h"

#include "base/check.h"

#define YEARS_AHEAD 5

static bool
has_bit(uint64_t bits, int bit)
{
    return bits >> bit & 1;
}

/* Both days must fit if either is free; if both are restricted one is enough. */
static bool
day_fits(const struct cron *cron, const struct civil *civil)
{
    bool day = has_bit(cron->days, civil->day), weekday = has_bit(cron->weekdays, civil->weekday);
    return cron->is_any_day || cron->is_any_weekday ? day && weekday : day || weekday;
}

/* Moves on behind the first part that does not fit; false: all fits. */
static bool
move_on(const struct cron *cron, const struct civil *civil, int64_t *moment)
{
    if (!has_bit(cron->months, civil->month))
        *moment = zone_midnight(&cron->zone, civil->year, civil->month + 1, 1);
    else if (!day_fits(cron, civil))
        *moment = zone_midnight(&cron->zone, civil->year, civil->month, civil->day + 1);
    else if (!has_bit(cron->hours, civil->hour))
        *moment += 3600 - civil->minute * 60 - civil->second;
    else if (!has_bit(cron->minutes, civil->minute) || civil->second != 0)
        *moment += 60 - civil->second;
    else
        return false;
    return true;
}

int64_t
cron_next(const struct cron *cron, int64_t after)
{
    if (cron->every > 0)
        return after + cron->every;
    if (cron->minutes == 0 || cron->hours == 0)
        return CRON_NEVER; /* no need to walk for it */
    int64_t moment = after + 1;
    struct civil civil = zone_civil(&cron->zone, moment);
    int64_t year_max = civil.year + YEARS_AHEAD;
    while (civil.year <= year_max) {
        int64_t before = moment;
        if (!move_on(cron, &civil, &moment))
            return moment;
        check_that(moment > before, "time stands still");
        civil = zone_civil(&cron->zone, moment);
    }
    return CRON_NEVER;
}

int64_t
cron_next_from(const struct cron *cron, int64_t after, int64_t not_before)
{
    int64_t next = cron_next(cron, after);
    if (next == CRON_NEVER || next >= not_before)
        return next;
    if (cron->every == 0)
        return cron_next(cron, not_before - 1);
    int64_t behind = not_before - next;
    return next + (behind + cron->every - 1) / cron->every * cron->every;
}

/* Fires of a day on which the clock does not jump. */
static int64_t
count_of_day(const struct cron *cron, const struct civil *civil)
{
    bool fits = has_bit(cron->months, civil->month) && day_fits(cron, civil);
    return fits ? (int64_t)__builtin_popcountll(cron->minutes) * __builtin_popcountll(cron->hours)
                : 0;
}

/* The rest of the day, or all of it; *after moves on. False: none is left up to `until`.
 */
static bool
count_on(const struct cron *cron, int64_t until, int64_t *after, int64_t *count)
{
    struct civil civil = zone_civil(&cron->zone, *after + 1);
    int64_t begins = zone_midnight(&cron->zone, civil.year, civil.month, civil.day);
    int64_t ends = zone_midnight(&cron->zone, civil.year, civil.month, civil.day + 1);
    if (*after + 1 == begins && ends - 1 <= until && ends - begins == 24 * 3600) {
        *count += count_of_day(cron, &civil);
        *after = ends - 1;
        return true;
    }
    int64_t next = cron_next(cron, *after);
    if (next == CRON_NEVER || next > until)
        return false;
    bool is_today = next < ends;
    *count += is_today;
    *after = is_today ? next : ends - 1;
    return true;
}

int64_t
cron_count(const struct cron *cron, int64_t after, int64_t until, int64_t max)
{
    int64_t count = 0;
    if (cron->every > 0)
        count = until < after ? 0 : (until - after) / cron->every;
    else if (cron->minutes != 0 && cron->hours != 0)
        while (after < until && count < max && count_on(cron, until, &after, &count))
            ;
    return count < max ? count : max;
}
