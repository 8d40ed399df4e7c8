/* cron.h - cron schedules: read from text, and asked when they fire next. Pure.
 *
 * Five fields (minute, hour, day of month, month, day of week: numbers, names, lists, ranges,
 * steps), a descriptor (@yearly, @monthly, @weekly, @daily, @hourly and their second names), or
 * "@every" with a duration. "CRON_TZ=Europe/Paris " or "TZ=..." before it is the clock that it goes
 * by; without it that is UTC. If both days are restricted, either will do.
 *
 * All times are whole seconds since 1970. */
#ifndef CADENZA_BASE_CRON_H
#define CADENZA_BASE_CRON_H

#include "base/arena.h"
#include "base/zone.h"

#define CRON_NEVER INT64_MIN

struct cron {
    int64_t every; /* seconds between fires; 0: by the fields below */
    /* One bit for each number that fits. */
    uint64_t minutes, hours, days, months, weekdays;
    bool is_any_day, is_any_weekday; /* not restricted */
    struct zone zone;
};

/* Reads a schedule. Returns what is wrong with it, in the arena, or NULL. Impossible dates
 * ("0 0 30 2 *") are read; cron_next finds that they never come. */
must_use const char *cron_parse(const char *text, struct arena *arena, struct cron *cron);
/* The first fire after a moment. CRON_NEVER: none within five years. "@every" fires one interval
 * after that very moment. */
int64_t cron_next(const struct cron *cron, int64_t after);
/* The first of the fires that follow `after` which is not before `not_before`. */
int64_t cron_next_from(const struct cron *cron, int64_t after, int64_t not_before);
/* How many fires there are after a moment up to another, `max` at most. Takes as long as there are
 * days between them. */
int64_t cron_count(const struct cron *cron, int64_t after, int64_t until, int64_t max);

#endif
