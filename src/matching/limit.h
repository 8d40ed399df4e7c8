/* limit.h - how many tasks per second a list gives out: a bucket of tokens. Pure, but for what it
 * holds. */
#ifndef CADENZA_MATCHING_LIMIT_H
#define CADENZA_MATCHING_LIMIT_H

#include <stdint.h>

#define LIMIT_RATE_DEFAULT 100000.0 /* per second; as Cadence shows it */
#define LIMIT_NEVER        INT64_MAX

struct limit {
    double rate;   /* tokens per second; 0: none ever */
    double tokens; /* there were at `filled` */
    int64_t filled;
};

/* A full bucket. The bucket holds what one second brings, at least one token. */
void limit_init(struct limit *limit, double rate, int64_t now);
/* What was saved stays, up to the new size. */
void limit_set_rate(struct limit *limit, double rate, int64_t now);
/* Takes a token: 0. Else nothing is taken, and the answer is how long until there is one, in ns;
 * LIMIT_NEVER: at this rate there will be none. */
int64_t limit_take(struct limit *limit, int64_t now);

#endif
