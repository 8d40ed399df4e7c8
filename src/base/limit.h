/* limit.h - how often something may happen: a bucket of tokens that time fills. Pure, but for what
 * it holds. */
#ifndef CADENZA_BASE_LIMIT_H
#define CADENZA_BASE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMIT_NEVER INT64_MAX

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
/* The token that was taken last was not needed. */
void limit_return(struct limit *limit);

/* How many tokens are missing until the bucket is full. */
double limit_missing(const struct limit *limit, int64_t now);
/* Is there a token? Takes none. */
bool limit_has(struct limit *limit, int64_t now);

#endif
