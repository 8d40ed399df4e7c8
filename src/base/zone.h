/* zone.h - what time it is elsewhere: time zones by the rules they have now. Pure.
 *
 * A zone is its offset, perhaps with a summer time that comes and goes by a yearly rule. The rules
 * of all zones are compiled in, so that no call reads a file and every host answers the same. For
 * the past it is right only as far back as the rule goes: good for asking when something is next,
 * not for reading old clocks. Zones that follow the moon (Morocco) have their usual offset all
 * year. */
#ifndef CADENZA_BASE_ZONE_H
#define CADENZA_BASE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

/* A day and time of each year: the `week`th `weekday` (0: Sunday) of a month, 5: the last. */
struct zone_change {
    int month, week, weekday;
    int64_t time; /* seconds from that day's midnight, by the clock before the change */
};

struct zone {
    int64_t offset; /* seconds east of UTC */
    bool has_summer;
    int64_t summer_offset;
    struct zone_change begins, ends; /* of summer time */
};

/* UTC: never any offset. */
#define ZONE_UTC ((struct zone){0})

/* A zone by its name, "Europe/Paris"; "", "UTC" and "Local" are UTC. False: there is none. */
must_use bool zone_find(struct slice name, struct zone *zone);

/* A date of the Gregorian calendar, and a time of the day. */
struct civil {
    int64_t year;
    int month, day;           /* from 1 */
    int hour, minute, second; /* of the clock there */
    int weekday;              /* 0: Sunday */
};
/* What clocks there show. */
struct civil zone_civil(const struct zone *zone, int64_t moment);
/* The first moment of this day there: midnight, or what clocks show instead if they jump over it,
 * or one of the two if it comes twice. Month and day may be one too many. */
int64_t zone_midnight(const struct zone *zone, int64_t year, int month, int day);

#endif
