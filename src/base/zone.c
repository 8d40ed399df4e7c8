/* zone.c - time zones: the table of rules, and arithmetic with the calendar.
 *
 * Days are counted by putting the leap day at the end: years begin in March, so the length of a
 * month does not depend on the year, and 400 years are always the same number of days. */
#include "base/zone.h"

#include <string.h>

#include "base/check.h"

#define HOUR ((int64_t)3600)
#define DAY  (24 * HOUR)

static const struct {
    const char *name, *rule;
} zones[] = {
#include "base/zone_table.inc"
};

/* ---- the calendar ---- */

static int64_t
floor_divide(int64_t number, int64_t by)
{
    int64_t quotient = number / by;
    return number % by < 0 ? quotient - 1 : quotient;
}

/* Days from 1970-01-01 to this one; the month may be 13. */
static int64_t
days_of(int64_t year, int month, int day)
{
    check(month >= 1 && month <= 13);
    if (month == 13) {
        year++;
        month = 1;
    }
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t era = floor_divide(march_year, 400), year_of_era = march_year - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void
set_date(struct civil *civil, int64_t days)
{
    int64_t shifted = days + 719468, era = floor_divide(shifted, 146097);
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;
    civil->day = (int)(day_of_year - (153 * march_month + 2) / 5 + 1);
    civil->month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    civil->year = year_of_era + era * 400 + (civil->month <= 2);
    civil->weekday = (int)((days % 7 + 11) % 7); /* 1970 began on a Thursday */
}

/* ---- rules ---- */

/* Takes a number without a sign off the text. */
static bool
take_number(const char **text, int64_t *number)
{
    if (**text < '0' || **text > '9')
        return false;
    for (*number = 0; **text >= '0' && **text <= '9'; (*text)++)
        *number = *number * 10 + (**text - '0');
    return true;
}

/* "-3:30": hours and minutes, as seconds. */
static bool
take_time(const char **text, int64_t *seconds)
{
    int64_t hours, minutes = 0;
    bool is_negative = **text == '-';
    *text += is_negative || **text == '+';
    if (!take_number(text, &hours))
        return false;
    if (**text == ':') {
        (*text)++;
        if (!take_number(text, &minutes))
            return false;
    }
    *seconds = (hours * HOUR + minutes * 60) * (is_negative ? -1 : 1);
    return true;
}

/* The short name of a clock, "EST" or "<+03>", which nobody needs. */
static void
skip_name(const char **text)
{
    const char *end = **text == '<' ? strchr(*text, '>') : NULL;
    if (end != NULL)
        *text = end + 1;
    else
        *text += strcspn(*text, "+-0123456789,");
}

/* ",M3.2.0/2" */
static bool
take_change(const char **text, struct zone_change *change)
{
    int64_t parts[3];
    static const char before[] = "M..";
    if (*(*text)++ != ',')
        return false;
    for (size_t i = 0; i < 3; i++)
        if (*(*text)++ != before[i] || !take_number(text, &parts[i]))
            return false;
    *change = (struct zone_change){(int)parts[0], (int)parts[1], (int)parts[2], 2 * HOUR};
    if (**text != '/')
        return true;
    (*text)++;
    return take_time(text, &change->time);
}

static bool
parse_rule(const char *text, struct zone *zone)
{
    *zone = ZONE_UTC;
    skip_name(&text);
    if (!take_time(&text, &zone->offset))
        return false;
    zone->offset = -zone->offset; /* the form counts to the west */
    if (*text == '\0')
        return true;
    zone->has_summer = true;
    skip_name(&text);
    zone->summer_offset = zone->offset + HOUR;
    if (*text != ',') {
        if (!take_time(&text, &zone->summer_offset))
            return false;
        zone->summer_offset = -zone->summer_offset;
    }
    return take_change(&text, &zone->begins) && take_change(&text, &zone->ends) && *text == '\0';
}

bool
zone_find(struct slice name, struct zone *zone)
{
    static const char *const utc[] = {"", "UTC", "Local"};
    for (size_t i = 0; i < array_length(utc); i++) {
        if (slice_equal(name, slice_text(utc[i]))) {
            *zone = ZONE_UTC;
            return true;
        }
    }
    size_t low = 0, high = array_length(zones);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(slice_text(zones[middle].name), name);
        if (order == 0) {
            bool is_good = parse_rule(zones[middle].rule, zone);
            check_that(is_good, "the rule of %s", zones[middle].name);
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* ---- moments ---- */

/* When the rule's day and time come in this year, by the clock before the change. */
static int64_t
change_moment(const struct zone_change *change, int64_t year)
{
    int64_t first = days_of(year, change->month, 1);
    int weekday = (int)((first % 7 + 11) % 7);
    int64_t day = first + (change->weekday - weekday + 7) % 7 + 7 * (change->week - 1);
    if (day >= days_of(year, change->month + 1, 1))
        day -= 7; /* the last one */
    return day * DAY + change->time;
}

/* Seconds east of UTC at a moment (seconds since 1970). */
static int64_t
zone_offset_at(const struct zone *zone, int64_t moment)
{
    if (!zone->has_summer)
        return zone->offset;
    struct civil civil;
    set_date(&civil, floor_divide(moment + zone->offset, DAY));
    int64_t begins = change_moment(&zone->begins, civil.year) - zone->offset;
    int64_t ends = change_moment(&zone->ends, civil.year) - zone->summer_offset;
    bool is_summer = begins < ends ? moment >= begins && moment < ends
                                   : moment >= begins || moment < ends; /* over the new year */
    return is_summer ? zone->summer_offset : zone->offset;
}

struct civil
zone_civil(const struct zone *zone, int64_t moment)
{
    int64_t local = moment + zone_offset_at(zone, moment);
    int64_t days = floor_divide(local, DAY), second = local - days * DAY;
    struct civil civil = {.hour = (int)(second / HOUR),
                          .minute = (int)(second % HOUR / 60),
                          .second = (int)(second % 60)};
    set_date(&civil, days);
    return civil;
}

int64_t
zone_midnight(const struct zone *zone, int64_t year, int month, int day)
{
    int64_t local = days_of(year, month, day) * DAY;
    int64_t guess = local - zone_offset_at(zone, local);
    int64_t moment = local - zone_offset_at(zone, guess);
    int hour = zone_civil(zone, moment).hour;
    return hour > 12 ? moment + (24 - hour) * HOUR : moment; /* it is still the day before */
}
