/* quota.c - see quota.h. */
#include "base/quota.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/map.h"
#include "base/memory.h"

#define SECOND   1e9
#define NO_LIMIT 2147483647.0

struct quota {
    _Atomic int64_t used_until; /* moment, ns */
};

struct quotas {
    pthread_mutex_t lock;
    struct map *by_name; /* guarded by it */
};

struct quotas *
quotas_new(void)
{
    struct quotas *quotas = memory_zalloc(1, sizeof *quotas);
    pthread_mutex_init(&quotas->lock, NULL);
    quotas->by_name = map_new();
    return quotas;
}

void
quotas_free(struct quotas *quotas)
{
    size_t cursor = 0;
    void *quota;
    while (map_next(quotas->by_name, &cursor, NULL, &quota))
        memory_free(quota);
    map_free(quotas->by_name);
    pthread_mutex_destroy(&quotas->lock);
    memory_free(quotas);
}

struct quota *
quotas_find(struct quotas *quotas, struct slice name)
{
    pthread_mutex_lock(&quotas->lock);
    struct quota *quota = map_get(quotas->by_name, name);
    if (quota == NULL) {
        quota = memory_zalloc(1, sizeof *quota);
        atomic_init(&quota->used_until, INT64_MIN);
        map_put(quotas->by_name, name, quota);
    }
    pthread_mutex_unlock(&quotas->lock);
    return quota;
}

bool
quota_take(struct quota *quota, double rate, int64_t now)
{
    check(now >= 0);
    if (rate >= NO_LIMIT)
        return true;
    if (!(rate > 0))
        return false;
    int64_t price = (int64_t)(SECOND / rate < 1e18 ? ceil(SECOND / rate) : 1e18);
    int64_t saved = rate < 1 ? price : (int64_t)(ceil(rate) * (double)price);
    int64_t before = atomic_load_explicit(&quota->used_until, memory_order_relaxed);
    for (;;) {
        int64_t until = (before > now ? before : now) + price;
        if (until - now > saved)
            return false;
        if (atomic_compare_exchange_weak_explicit(&quota->used_until, &before, until,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
}
