/* schedule_model.c - see schedule_model.h. */
#include "sim/schedule/schedule_model.h"

#define MINUTE 60
#define HOUR   3600
#define DAY    86400

/* --- clocks ---- */

/* Days since 1970 of a date. */
static int64_t
days_of(int64_t year, int64_t month, int64_t day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t leap_days = (year - 1969) / 4; /* right from 1901 to 2099 */
    bool is_leap = year % 4 == 0;
    return (year - 1970) * 365 + leap_days + before[month - 1] + (is_leap && month > 2) + day - 1;
}

/* The n-th Sunday on or after a day of the month. */
static int64_t
sunday_from(int64_t year, int64_t month, int64_t day)
{
    int64_t days = days_of(year, month, day);
    return days + (7 - (days + 4) % 7) % 7; /* 1970 began on a Thursday */
}

static int64_t
offset_at(enum model_zone zone, int64_t moment)
{
    int64_t year = 1970 + (int64_t)((double)moment / (365.2425 * DAY));
    if (zone == MODEL_UTC)
        return 0;
    if (zone == MODEL_BERLIN) {
        int64_t begins = sunday_from(year, 3, 25) * DAY + 1 * HOUR;
        int64_t ends = sunday_from(year, 10, 25) * DAY + 1 * HOUR;
        return moment >= begins && moment < ends ? 2 * HOUR : 1 * HOUR;
    }
    int64_t begins = sunday_from(year, 3, 8) * DAY + 7 * HOUR;
    int64_t ends = sunday_from(year, 11, 1) * DAY + 6 * HOUR;
    return moment >= begins && moment < ends ? -4 * HOUR : -5 * HOUR;
}

bool
model_fires_at(const struct model_cron_spec *cron_spec, int64_t minute)
{
    int64_t shown = (minute + offset_at(cron_spec->zone, minute)) % DAY;
    unsigned hour = (unsigned)(shown / HOUR), past = (unsigned)(shown % HOUR / MINUTE);
    bool fits =
        cron_spec->hour_every > 0 ? hour % cron_spec->hour_every == 0 : hour == cron_spec->hour;
    for (size_t i = 0; fits && i < cron_spec->minute_count; i++)
        if (cron_spec->minutes[i] == past)
            return true;
    return false;
}

/* --- what was told ---- */

static void
want(struct model *model, int64_t nominal, const char *backfill)
{
    if (model->skips_second && (unsigned)(nominal % HOUR / MINUTE) == model->cron_spec->minutes[1])
        model->skipped++;
    else
        vector_push_in(&model->fires, model->arena,
                       (struct model_fire){.nominal = nominal, .backfill = backfill});
}

static int64_t
next_minute(int64_t moment)
{
    return (moment / MINUTE + 1) * MINUTE;
}

void
model_pass(struct model *model, int64_t until)
{
    for (int64_t minute = next_minute(model->from); minute <= until; minute += MINUTE)
        if (!model->is_paused && model_fires_at(model->cron_spec, minute))
            want(model, minute, "");
    if (!model->is_paused)
        model->from = until;
}

void
model_pause(struct model *model, int64_t now)
{
    model_pass(model, now);
    model->is_paused = true;
}

void
model_unpause(struct model *model, int64_t now, enum model_catch_up policy)
{
    int64_t last = 0, count = 0;
    for (int64_t minute = next_minute(model->from); minute <= now; minute += MINUTE) {
        if (!model_fires_at(model->cron_spec, minute))
            continue;
        last = minute;
        count++;
        if (policy == MODEL_ALL)
            want(model, minute, "");
    }
    if (policy == MODEL_ONE && count > 0) {
        want(model, last, "");
        count--;
    }
    model->missed += policy == MODEL_ALL ? 0 : count;
    model->from = now;
    model->is_paused = false;
}

void
model_change_cron_spec(struct model *model, int64_t now, const struct model_cron_spec *cron_spec)
{
    model_pass(model, now);
    model->cron_spec = cron_spec;
}

void
model_backfill(struct model *model, const char *id, int64_t from, int64_t to)
{
    for (int64_t minute = next_minute(from - 1); minute <= to; minute += MINUTE)
        if (model_fires_at(model->cron_spec, minute))
            want(model, minute, id);
}
