/* domain.c - what the metrics say of the workflow ids of one domain. See inside.h.
 *
 * The highest rate of late is shared by all shards that have ids of the domain: each tells what it
 * saw, in windows of time that all agree on (base/metrics.h). */
#include "base/check.h"
#include "base/memory.h"
#include "engine/limits/inside.h"

#define WINDOW_SECONDS 10

static const struct {
    const char *limited;
    const char *rates[LIMITS_SPELLINGS];
    const char *counts;
    const char *highest[LIMITS_SPELLINGS];
} names[LIMITS_SIDES] = {
    [LIMITS_EXTERNAL] = {"workflow_id_external_requests_ratelimited",
                         {"workflow_id_external_requests_max_requests_per_second",
                          "workflow_id_external_requests_max_requests_per_seconds"},
                         "workflow_id_external_requests_max_requests_per_seconds_counts",
                         {"workflow_id_external_requests_max_requests_per_second_upper",
                          "workflow_id_external_requests_max_requests_per_seconds_upper"}},
    [LIMITS_INTERNAL] = {"workflow_id_internal_requests_ratelimited",
                         {"workflow_id_internal_requests_max_requests_per_second",
                          "workflow_id_internal_requests_max_requests_per_seconds"},
                         "workflow_id_internal_requests_max_requests_per_seconds_counts",
                         {"workflow_id_internal_requests_max_requests_per_second_upper",
                          "workflow_id_internal_requests_max_requests_per_seconds_upper"}},
};

static void
find_side(struct limits_domain *domain, struct metrics *metrics, enum limits_side side,
          const char *const *labels)
{
    domain->sides[side].limited =
        metrics_counter(metrics, names[side].limited,
                        "Calls or tasks above the limit of their workflow id.", labels);
    domain->sides[side].counts = metrics_histogram_counts(
        metrics, names[side].counts, "Calls or tasks of one workflow id in a second.", labels);
    for (int i = 0; i < LIMITS_SPELLINGS; i++) {
        domain->sides[side].rates[i] =
            metrics_histogram_counts(metrics, names[side].rates[i],
                                     "Calls or tasks of one workflow id in a second.", labels);
        domain->sides[side].highest[i] = metrics_peak(
            metrics, names[side].highest[i],
            "Most calls or tasks of one workflow id in a second, of the last 10 to 20 s.", labels);
    }
}

struct limits_domain *
limits_domain_new(struct metrics *metrics, const char *name)
{
    size_t size = strlen(name) + 1;
    struct limits_domain *domain = memory_zalloc(1, sizeof *domain + size);
    domain->name = memcpy(domain + 1, name, size);
    if (metrics == NULL)
        return domain;
    const char *labels[] = {"domain", name, NULL};
    for (int side = 0; side < LIMITS_SIDES; side++)
        find_side(domain, metrics, (enum limits_side)side, labels);
    domain->records = metrics_gauge(metrics, "workflow_id_cache_size",
                                    "Workflow ids that are counted now.", labels);
    return domain;
}

static void
show_records(struct limits_domain *domain)
{
    int64_t count = (int64_t)domain->record_count;
    check(domain->records_shown >= 0);
    if (domain->records != NULL)
        gauge_add(domain->records, count - domain->records_shown);
    domain->records_shown = count;
}

void
limits_domain_free(struct limits_domain *domain)
{
    check(domain->record_count == 0);
    show_records(domain);
    memory_free(domain);
}

void
limits_domain_observe(struct limits_domain *domain, enum limits_side side, int64_t second,
                      uint32_t count)
{
    check(domain->record_count > 0 && count > 0);
    domain->is_quiet = false;
    if (second > domain->observed_second)
        domain->observed_second = second;
    if (domain->records == NULL)
        return;
    histogram_observe(domain->sides[side].counts, count);
    for (int i = 0; i < LIMITS_SPELLINGS; i++) {
        histogram_observe(domain->sides[side].rates[i], count);
        peak_raise(domain->sides[side].highest[i], (uint32_t)(second / WINDOW_SECONDS), count);
    }
}

void
limits_domain_count_limited(struct limits_domain *domain, enum limits_side side)
{
    if (domain->sides[side].limited != NULL)
        counter_add(domain->sides[side].limited, 1);
}

void
limits_domain_tick(struct limits_domain *domain, int64_t second)
{
    show_records(domain);
    int64_t window = second / WINDOW_SECONDS;
    for (int side = 0; side < LIMITS_SIDES && domain->records != NULL; side++)
        for (int i = 0; i < LIMITS_SPELLINGS; i++)
            peak_raise(domain->sides[side].highest[i], (uint32_t)window, 0);
    domain->is_quiet = window > domain->observed_second / WINDOW_SECONDS + 1;
}

bool
limits_domain_is_quiet(const struct limits_domain *domain)
{
    return domain->is_quiet;
}
