/* inside.h - what the files of limits/ share: the metrics of one domain, and what the log named. */
#ifndef CADENZA_ENGINE_LIMITS_INSIDE_H
#define CADENZA_ENGINE_LIMITS_INSIDE_H

#include "base/buffer.h"
#include "base/limit.h"
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

/* The workflow ids that the log has named lately. */
struct limits_named {
    struct log log;     /* says it is Cadence's history service, where operators look for this */
    bool is_silent;     /* there is no log */
    struct map *ids;    /* the side, domain id, NUL, workflow id → struct named_id */
    struct list oldest; /* struct named_id, by time */
    struct limit lines;
    uint64_t left_out; /* since the last line */
    struct buffer key; /* of the id that is looked for */
};

/* `log` may be NULL: then nothing is ever named. */
void limits_named_init(struct limits_named *named, const struct log *log);
void limits_named_free(struct limits_named *named);
/* This id is above its limit: a line says so, unless one did less than a minute ago or a storm of
 * other ids has taken the lines of this second. `is_counted`: then it counts as left out. */
void limits_named_say(struct limits_named *named, enum limits_side side,
                      const struct limits_key *key, bool is_counted, int64_t now);
/* Time has passed: names that are old enough are forgotten. */
void limits_named_tick(struct limits_named *named, int64_t now);

#endif
