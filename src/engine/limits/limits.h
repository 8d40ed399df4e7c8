/* limits.h - how often one workflow id may be called and given tasks, and which ids come near it.
 *
 * For each (domain, workflow id) that is in use there are two buckets of tokens, *external* for
 * calls of clients and *internal* for tasks that go to workers. A domain's settings say whether its
 * ids are counted, how many tokens a second brings, and whether a call or task that finds none is
 * held off. Where it is not, the domain is in shadow mode: everything is counted and logged as if
 * the limit were enforced.
 *
 * The log names an id that is above its limit about once a minute as long as that lasts: while
 * calls come that find no token, or while tasks wait for one (named.c).
 *
 * Ids that were not used for LIMITS_KEPT are forgotten. When there would be more than records_max,
 * one of the longest unused goes, the one with the fullest bucket: so an id at its limit is the
 * last to go. Belongs to one shard and its loop; what it measures goes to the metrics of the
 * process. Never yields. */
#ifndef CADENZA_ENGINE_LIMITS_LIMITS_H
#define CADENZA_ENGINE_LIMITS_LIMITS_H

#include "base/arena.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/dynamic.h"

/* A bucket is full again after a second: nothing is lost by forgetting. */
#define LIMITS_KEPT 1000000000LL

enum limits_side { LIMITS_EXTERNAL, LIMITS_INTERNAL };
#define LIMITS_SIDES 2

struct limits_options {
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
    size_t records_max;      /* 0: a default */
};

struct id_limits;

struct id_limits *limits_new(const struct limits_options *options);
void limits_free(struct id_limits *limits);

/* Whose call or task it is. */
struct limits_key {
    const char *domain_id, *domain_name;
    const char *workflow_id;
};
/* One more call or task at this moment of the monotonic clock, which never falls. 0: it may go;
 * else it is held off, and this is how long until the next one may go, ns, at most LIMITS_KEPT. */
int64_t limits_take(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
                    int64_t now);
/* The same for one that was held off before: it is not counted once more. */
int64_t limits_take_again(struct id_limits *limits, enum limits_side side,
                          const struct limits_key *key, int64_t now);
/* The same for one that can take another way: true: it may go, and is counted; false: nothing
 * happened. */
bool limits_take_free(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
                      int64_t now);
/* One that has to wait behind others of its id: counted as one that was held off, takes nothing. */
void limits_count(struct id_limits *limits, enum limits_side side, const struct limits_key *key,
                  int64_t now);

/* Forgets what was not used lately and reports to the metrics. To be called about once a second
 * while limits_is_idle is false. */
void limits_tick(struct id_limits *limits, int64_t now);
/* Nothing is counted, and the metrics show that. */
bool limits_is_idle(const struct id_limits *limits);

/* An id and its calls or tasks per second: the higher of this second's count and the last one's. */
struct limits_rate {
    const char *domain_id, *domain_name, *workflow_id;
    uint32_t rate[LIMITS_SIDES];
    bool is_limited[LIMITS_SIDES]; /* one was held off, or would have been, in these two seconds */
};
/* The rate of the busier side. */
uint32_t limits_hotter(const struct limits_rate *rate);
/* The ids with the highest rates (of either side), the highest first, at most `count_max`;
 * domain_id NULL: of all domains. In the arena; returns how many. */
size_t limits_hottest(const struct id_limits *limits, const char *domain_id, int64_t now,
                      size_t count_max, struct arena *arena, struct limits_rate **rates);

#endif
