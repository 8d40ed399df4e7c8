/* limit.c - see limit.h. */
#include "base/limit.h"

#include <math.h>

#include "base/check.h"

#define NS_PER_S INT64_C(1000000000)

static double
size_of(const struct limit *limit)
{
    if (limit->rate <= 0)
        return 0;
    return limit->rate < 1 ? 1 : ceil(limit->rate);
}

static void
fill(struct limit *limit, int64_t now)
{
    check(now >= limit->filled);
    double size = size_of(limit);
    double tokens = limit->tokens + limit->rate * (double)(now - limit->filled) / (double)NS_PER_S;
    limit->tokens = tokens < size ? tokens : size;
    limit->filled = now;
}

void
limit_init(struct limit *limit, double rate, int64_t now)
{
    *limit = (struct limit){.rate = rate > 0 ? rate : 0, .filled = now};
    limit->tokens = size_of(limit);
}

void
limit_set_rate(struct limit *limit, double rate, int64_t now)
{
    fill(limit, now);
    limit->rate = rate > 0 ? rate : 0; /* also of what is not a number */
    fill(limit, now);
}

int64_t
limit_take(struct limit *limit, int64_t now)
{
    fill(limit, now);
    if (limit->tokens >= 1) {
        limit->tokens -= 1;
        return 0;
    }
    if (limit->rate <= 0)
        return LIMIT_NEVER;
    double wait = ceil((1 - limit->tokens) / limit->rate * (double)NS_PER_S);
    return wait < 1e18 ? (int64_t)wait + 1 : LIMIT_NEVER;
}

void
limit_return(struct limit *limit)
{
    limit->tokens += 1;
    if (limit->tokens > size_of(limit))
        limit->tokens = size_of(limit);
}

double
limit_missing(const struct limit *limit, int64_t now)
{
    struct limit then = *limit;
    fill(&then, now);
    return size_of(&then) - then.tokens;
}

bool
limit_has(struct limit *limit, int64_t now)
{
    fill(limit, now);
    return limit->tokens >= 1;
}
