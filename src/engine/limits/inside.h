/* inside.h - what limits.c and domain.c share: the metrics of one domain. */
#ifndef CADENZA_ENGINE_LIMITS_INSIDE_H
#define CADENZA_ENGINE_LIMITS_INSIDE_H

#include "base/list.h"
#include "base/map.h"
#include "engine/limits/limits.h"

/* The metrics of a side, under the names that the feature was announced with and under those that
 * Cadence's code emits. */
#define LIMITS_SPELLINGS 2

struct limits_domain {
    const char *name;
    size_t record_count;
    int64_t observed_second; /* of the newest record that was observed */
    bool is_quiet;
    struct {
        struct counter *limited;
        struct histogram *rates[LIMITS_SPELLINGS];
        struct histogram *counts;
        struct peak *highest[LIMITS_SPELLINGS];
    } sides[LIMITS_SIDES]; /* all NULL without metrics */
    struct gauge *records;
    int64_t records_shown;
};

/* `metrics` may be NULL. */
struct limits_domain *limits_domain_new(struct metrics *metrics, const char *name);
void limits_domain_free(struct limits_domain *domain);
/* One workflow id had so many calls or tasks in this second. */
void limits_domain_observe(struct limits_domain *domain, enum limits_side side, int64_t second,
                           uint32_t count);
void limits_domain_count_limited(struct limits_domain *domain, enum limits_side side);
/* Time has passed: the highest that is shown is that of the last windows. */
void limits_domain_tick(struct limits_domain *domain, int64_t second);
/* May it go? Nothing that it shows would change. */
bool limits_domain_is_quiet(const struct limits_domain *domain);

#endif
