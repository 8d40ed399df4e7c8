/* text_moment.c - times as RFC 3339 writes them. See text.h. */
#include <stdio.h>

#include "base/text.h"
#include "base/zone.h"

#define SECOND INT64_C(1000000000)

/* Takes exactly `digits` digits from the front. */
static bool
take_number(struct slice *text, size_t digits, int *number)
{
    if (text->length < digits)
        return false;
    *number = 0;
    for (size_t i = 0; i < digits; i++) {
        uint8_t digit = text->data[i];
        if (digit < '0' || digit > '9')
            return false;
        *number = *number * 10 + (digit - '0');
    }
    *text = slice_skip(*text, digits);
    return true;
}

static bool
take_letter(struct slice *text, char letter)
{
    if (text->length == 0 || text->data[0] != (uint8_t)letter)
        return false;
    *text = slice_skip(*text, 1);
    return true;
}

/* "YYYY<letter>MM<letter>DD" or, with 2 digits first, a time of day. */
static bool
take_three(struct slice *text, size_t digits, char letter, int parts[3])
{
    return take_number(text, digits, &parts[0]) && take_letter(text, letter) &&
           take_number(text, 2, &parts[1]) && take_letter(text, letter) &&
           take_number(text, 2, &parts[2]);
}

/* The part of a second behind a point, if there is one; digits below the nanosecond are dropped. */
static bool
take_fraction(struct slice *text, int *nanoseconds)
{
    *nanoseconds = 0;
    if (!take_letter(text, '.'))
        return true;
    int digit, unit = (int)SECOND;
    if (!take_number(text, 1, &digit))
        return false;
    do {
        unit /= 10;
        *nanoseconds += digit * unit;
    } while (take_number(text, 1, &digit));
    return true;
}

/* Z, or hours and minutes east of it; in seconds. */
static bool
take_offset(struct slice *text, int *seconds)
{
    *seconds = 0;
    if (take_letter(text, 'Z'))
        return true;
    bool is_west = take_letter(text, '-');
    int hours, minutes;
    if ((!is_west && !take_letter(text, '+')) || !take_number(text, 2, &hours) ||
        !take_letter(text, ':') || !take_number(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *seconds = (hours * 60 + minutes) * 60 * (is_west ? -1 : 1);
    return true;
}

static int
days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

/* Days from 1970-01-01. Years begin in March here, so that the leap day is the last of its year. */
static int64_t
days_since_epoch(const int date[3])
{
    int64_t year = date[1] > 2 ? date[0] : date[0] - 1;
    int64_t month = date[1] > 2 ? date[1] - 3 : date[1] + 9;
    int64_t era =
        year >= 0 ? year / 400 : -1; /* the year 0 is the smallest: -1 is of its January */
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * month + 2) / 5 + date[2] - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

/* Cut to what fits. */
static int64_t
nanoseconds_of(int64_t seconds, int64_t fraction)
{
    int64_t nanoseconds;
    if (__builtin_mul_overflow(seconds, SECOND, &nanoseconds) ||
        __builtin_add_overflow(nanoseconds, fraction, &nanoseconds))
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    return nanoseconds;
}

bool
text_parse_moment(struct slice text, int64_t *nanoseconds)
{
    int date[3], clock[3], fraction, offset;
    if (!take_three(&text, 4, '-', date) || !take_letter(&text, 'T') ||
        !take_three(&text, 2, ':', clock) || !take_fraction(&text, &fraction) ||
        !take_offset(&text, &offset) || text.length > 0)
        return false;
    if (date[1] < 1 || date[1] > 12 || date[2] < 1 || date[2] > days_of_month(date[0], date[1]) ||
        clock[0] > 23 || clock[1] > 59 || clock[2] > 59)
        return false;
    int64_t seconds =
        days_since_epoch(date) * 86400 + clock[0] * 3600 + clock[1] * 60 + clock[2] - offset;
    *nanoseconds = nanoseconds_of(seconds, fraction);
    return true;
}

char *
text_format_moment(struct arena *arena, int64_t nanoseconds)
{
    int64_t fraction = (nanoseconds % SECOND + SECOND) % SECOND;
    int64_t seconds = nanoseconds / SECOND - (nanoseconds % SECOND < 0);
    struct civil civil = zone_civil(&ZONE_UTC, seconds);
    char digits[16] = "";
    if (fraction != 0) {
        snprintf(digits, sizeof digits, ".%09lld", (long long)fraction);
        for (size_t end = strlen(digits) - 1; digits[end] == '0'; end--)
            digits[end] = '\0';
    }
    return arena_format(arena, "%04lld-%02d-%02dT%02d:%02d:%02d%sZ", (long long)civil.year,
                        civil.month, civil.day, civil.hour, civil.minute, civil.second, digits);
}
