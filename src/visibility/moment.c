/* moment.c - times of runs, as lists compare them. See attributes.h. */
#include "base/text.h"
#include "visibility/attributes.h"

#define SECOND      INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

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

int64_t
attribute_time_of(const GOOGLE(Timestamp) *timestamp)
{
    return nanoseconds_of(timestamp->seconds, timestamp->nanos);
}

bool
attribute_parse_time(struct slice text, int64_t *nanoseconds)
{
    return text_parse_moment(text, nanoseconds);
}

int64_t
attribute_floor_time(int64_t nanoseconds)
{
    int64_t part = nanoseconds % MILLISECOND;
    bool is_below = part < 0 && nanoseconds >= INT64_MIN + MILLISECOND;
    return nanoseconds - part - (is_below ? MILLISECOND : 0);
}
