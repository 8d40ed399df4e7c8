/* text_number.c - numbers and durations as text. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/text.h"

bool
text_parse_uint64(struct slice text, uint64_t low, uint64_t high, uint64_t *number)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
            return false;
    }
    if (text.length == 0 || value < low || value > high)
        return false;
    *number = value;
    return true;
}

/* Puts a sign before a magnitude; false when it does not fit. */
static bool
apply_sign(uint64_t magnitude, bool is_negative, int64_t *number)
{
    if (magnitude > (uint64_t)INT64_MAX + is_negative)
        return false;
    *number = is_negative ? (int64_t)-magnitude : (int64_t)magnitude;
    return true;
}

bool
text_parse_int64(struct slice text, int64_t low, int64_t high, int64_t *number)
{
    bool is_negative = text.length > 0 && text.data[0] == '-';
    uint64_t magnitude;
    int64_t value;
    if (!text_parse_uint64(slice_skip(text, is_negative), 0, UINT64_MAX, &magnitude))
        return false;
    if (!apply_sign(magnitude, is_negative, &value) || value < low || value > high)
        return false;
    *number = value;
    return true;
}

/* ---- durations ---- */

static const struct {
    const char *name;
    uint64_t nanoseconds;
} units[] = {
    /* "ms" before "m": the first that fits is taken. */
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* micro sign */
    {"\xce\xbcs", 1000}, /* Greek mu */
    {"ms", 1000000},
    {"s", UINT64_C(1000000000)},
    {"m", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
};

static size_t
count_digits(struct slice text)
{
    size_t count = 0;
    while (count < text.length && text.data[count] >= '0' && text.data[count] <= '9')
        count++;
    return count;
}

static bool
take_unit(struct slice *rest, uint64_t *unit)
{
    for (size_t i = 0; i < array_length(units); i++) {
        struct slice name = slice_text(units[i].name);
        if (slice_starts_with(*rest, name)) {
            *unit = units[i].nanoseconds;
            *rest = slice_skip(*rest, name.length);
            return true;
        }
    }
    return false;
}

/* What digits behind the point are worth. In floating point, as Go does it, so that the last
 * nanosecond is the same; digits that no longer fit are worth nothing. */
static uint64_t
fraction_of(struct slice digits, uint64_t unit)
{
    uint64_t value = 0;
    double scale = 1;
    for (size_t i = 0; i < digits.length && value <= (INT64_MAX - 9) / 10; i++) {
        value = value * 10 + (uint64_t)(digits.data[i] - '0');
        scale *= 10;
    }
    return (uint64_t)((double)value * ((double)unit / scale));
}

/* One term such as "1.5h" off the front, added to *total. */
static bool
take_term(struct slice *rest, uint64_t *total)
{
    struct slice whole = slice_of(rest->data, count_digits(*rest));
    struct slice fraction = {0};
    *rest = slice_skip(*rest, whole.length);
    if (rest->length > 0 && rest->data[0] == '.') {
        *rest = slice_skip(*rest, 1);
        fraction = slice_of(rest->data, count_digits(*rest));
        *rest = slice_skip(*rest, fraction.length);
    }
    uint64_t value = 0, unit;
    if (whole.length + fraction.length == 0 || !take_unit(rest, &unit))
        return false;
    if (whole.length > 0 && !text_parse_uint64(whole, 0, UINT64_MAX, &value))
        return false;
    return !__builtin_mul_overflow(value, unit, &value) &&
           !__builtin_add_overflow(value, fraction_of(fraction, unit), &value) &&
           !__builtin_add_overflow(*total, value, total);
}

bool
text_parse_duration(struct slice text, int64_t *nanoseconds)
{
    struct slice rest = text;
    bool is_negative = rest.length > 0 && rest.data[0] == '-';
    bool is_signed = is_negative || (rest.length > 0 && rest.data[0] == '+');
    rest = slice_skip(rest, is_signed);
    if (rest.length == 0)
        return false;
    uint64_t total = 0;
    bool is_bare_zero = rest.length == 1 && rest.data[0] == '0'; /* needs no unit */
    while (rest.length > 0 && !is_bare_zero)
        if (!take_term(&rest, &total))
            return false;
    return apply_sign(total, is_negative, nanoseconds);
}

/* `value` / `scale` with as many digits behind the point as it has, then the unit. */
static char *
format_decimal(char *end, uint64_t value, uint64_t scale)
{
    bool has_digit = false;
    for (; scale > 1; scale /= 10, value /= 10) {
        unsigned digit = (unsigned)(value % 10);
        has_digit = has_digit || digit != 0;
        if (has_digit)
            *--end = (char)('0' + digit);
    }
    if (has_digit)
        *--end = '.';
    do
        *--end = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    return end;
}

/* Written from the back: the last unit first. */
char *
text_format_duration(struct arena *arena, int64_t nanoseconds)
{
    char text[48];
    char *at = text + sizeof text;
    uint64_t left = nanoseconds < 0 ? -(uint64_t)nanoseconds : (uint64_t)nanoseconds;
    const uint64_t second = UINT64_C(1000000000);
    *--at = '\0';
    *--at = 's';
    if (left == 0) {
        *--at = '0';
    } else if (left < second) {
        uint64_t scale = left < 1000 ? 1 : left < 1000000 ? 1000 : 1000000;
        const char *unit = scale == 1 ? "n" : scale == 1000 ? "\xc2\xb5" : "m";
        at -= strlen(unit);
        memcpy(at, unit, strlen(unit));
        at = format_decimal(at, left, scale);
    } else {
        uint64_t minutes = left / (60 * second);
        at = format_decimal(at, left % (60 * second), second);
        if (minutes > 0) {
            *--at = 'm';
            at = format_decimal(at, minutes % 60, 1);
        }
        if (minutes >= 60) {
            *--at = 'h';
            at = format_decimal(at, minutes / 60, 1);
        }
    }
    if (nanoseconds < 0)
        *--at = '-';
    check(at > text);
    return arena_text(arena, at);
}
