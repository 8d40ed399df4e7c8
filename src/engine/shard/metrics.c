/* metrics.c - what a shard tells at /metrics, under the names that Cadence's dashboards ask for.
 *
 * All shards of a process add to the same series. A series is looked up when the shard is made, or
 * when a domain is met for the first time, and kept: what a step costs is one add each. */
#include "engine/shard/metrics.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/wakeups.h"
#include "fiber/clock.h"

#define CLOSE(name)                                                                                \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

static const char *const operations[METRIC_TASKS] = {
    [METRIC_DECISION] = "TransferActiveTaskDecision",
    [METRIC_ACTIVITY] = "TransferActiveTaskActivity",
    [METRIC_TIMER] = "TimerActiveTask", /* one wake-up timer is for all that is due of a run */
};

static const struct {
    int status;
    const char *name;
} closes[] = {
    {CLOSE(COMPLETED), "workflow_success"},
    {CLOSE(FAILED), "workflow_failed"},
    {CLOSE(CANCELED), "workflow_cancel"},
    {CLOSE(TERMINATED), "workflow_terminate"},
    {CLOSE(CONTINUED_AS_NEW), "workflow_continued_as_new"},
    {CLOSE(TIMED_OUT), "workflow_timeout"},
};

static const char *const incoming_names[METRIC_INCOMING_COUNT][2] = {
    [METRIC_APPLIED] = {"replication_batches_applied", "Batches of other clusters applied."},
    [METRIC_KNOWN] = {"replication_batches_known", "Batches of other clusters that were here."},
    [METRIC_LACKING] = {"replication_batches_early", "Batches that lacked events before them."},
    [METRIC_FORKED] = {"replication_histories_forked", "Histories that parted from another."},
    [METRIC_SWITCHED] = {"replication_histories_switched", "Runs that took another history."},
    [METRIC_ZOMBIES] = {"replication_zombies", "Runs that lost their workflow id while open."},
    [METRIC_LOST] = {"replication_events_lost", "Histories and runs noted as divergences."},
};

struct domain_task_metrics {
    struct counter *closed[array_length(closes)];
    struct task_series tasks[METRIC_TASKS];
};

/* --- series ---- */

#define SERVICE "cadence_service", "cadence_history"

static struct task_series
find_task_series(struct metrics *metrics, enum task_metric task)
{
    const char *labels[] = {SERVICE, "operation", operations[task], NULL};
    return (struct task_series){
        .requests =
            metrics_counter(metrics, "task_requests",
                            "Tasks offered to their lists, and wake-up timers that fired.", labels),
        .latency =
            metrics_histogram(metrics, "task_latency",
                              "From the moment a task was due until it was handed over.", labels),
        .attempts = metrics_histogram_counts(metrics, "task_attempt",
                                             "Attempts until a task was handed over.", labels),
    };
}

static struct task_series
find_domain_task_series(struct metrics *metrics, enum task_metric task, const char *domain)
{
    const char *labels[] = {SERVICE, "operation", operations[task], "domain", domain, NULL};
    return (struct task_series){
        .requests = metrics_counter(metrics, "task_requests_per_domain",
                                    "The same as task_requests, by domain.", labels),
        .latency = metrics_histogram(metrics, "task_latency_per_domain",
                                     "The same as task_latency, by domain.", labels),
    };
}

static void
find_cache_series(struct shard_metrics *shard_metrics, struct metrics *metrics)
{
    const char *labels[] = {
        SERVICE, "cache_type", "mutablestate", "operation", "HistoryCacheGetOrCreate", NULL};
    shard_metrics->cache_requests =
        metrics_counter(metrics, "cache_requests", "Runs that were looked for in memory.", labels);
    shard_metrics->cache_misses =
        metrics_counter(metrics, "cache_miss", "Runs that had to be read from the store.", labels);
    shard_metrics->cache_size = metrics_gauge(metrics, "cache_size_gauge",
                                              "Workflow ids and runs that are in memory.", labels);
    shard_metrics->cache_latency = metrics_histogram(
        metrics, "cache_latency", "Time that a step waited for others of its workflow id.", labels);
}

void
shard_metrics_init(struct shard *shard)
{
    struct shard_metrics *shard_metrics = &shard->shard_metrics;
    struct metrics *metrics = shard_metrics->metrics = shard->options.metrics;
    if (metrics == NULL)
        return;
    shard_metrics->taken =
        metrics_counter(metrics, "sharditem_created_count", "Shards that this host took.", NULL);
    shard_metrics->lost =
        metrics_counter(metrics, "sharditem_removed_count", "Shards that this host lost.", NULL);
    shard_metrics->owned =
        metrics_gauge(metrics, "numshards_gauge", "Shards that this host owns.", NULL);
    find_cache_series(shard_metrics, metrics);
    for (int task = 0; task < METRIC_TASKS; task++)
        shard_metrics->tasks[task] = find_task_series(metrics, (enum task_metric)task);
    for (int i = 0; i < METRIC_INCOMING_COUNT; i++)
        shard_metrics->incoming[i] =
            metrics_counter(metrics, incoming_names[i][0], incoming_names[i][1], NULL);
    shard_metrics->pending = metrics_counter(
        metrics, "task_pending_active",
        "Tasks and wake-up timers that waited for the end of a graceful failover to here.", NULL);
    shard_metrics->homeless =
        metrics_counter(metrics, "active_cluster_unresolved_rows",
                        "Rows whose domain does not say where their run is active: no cluster "
                        "works them off, or, for an entity in a region that the domain does not "
                        "have, the one that wrote the run's last event.",
                        NULL);
    shard_metrics->levels_lowered =
        metrics_counter(metrics, "timer_read_level_lowered",
                        "Times that the wall clock was found behind the timers of a shard.", NULL);
    shard_metrics->markers_failed =
        metrics_counter(metrics, "cadence_failover_marker_insert_failures",
                        "Markers of failovers that were put later.", NULL);
    shard_metrics->domains = map_new();
    shard_metrics->arena = arena_new(0);
}

void
metrics_pending(struct shard *shard)
{
    if (shard->shard_metrics.metrics != NULL)
        counter_add(shard->shard_metrics.pending, 1);
}

void
metrics_homeless(struct shard *shard)
{
    if (shard->shard_metrics.metrics != NULL)
        counter_add(shard->shard_metrics.homeless, 1);
}

void
metrics_level_lowered(struct shard *shard)
{
    if (shard->shard_metrics.metrics != NULL)
        counter_add(shard->shard_metrics.levels_lowered, 1);
}

void
metrics_marker_failed(struct shard *shard)
{
    if (shard->shard_metrics.metrics != NULL)
        counter_add(shard->shard_metrics.markers_failed, 1);
}

void
metrics_incoming(struct shard *shard, enum incoming_metric metric)
{
    if (shard->shard_metrics.metrics != NULL)
        counter_add(shard->shard_metrics.incoming[metric], 1);
}

void
shard_metrics_free(struct shard *shard)
{
    if (shard->shard_metrics.metrics == NULL)
        return;
    map_free(shard->shard_metrics.domains);
    arena_free(shard->shard_metrics.arena);
}

/* NULL: it is not known here. */
static struct domain_task_metrics *
metrics_of_domain(struct shard *shard, const char *domain_id)
{
    struct shard_metrics *shard_metrics = &shard->shard_metrics;
    struct domain_task_metrics *found = map_get(shard_metrics->domains, slice_text(domain_id));
    const struct domain *domain = NULL;
    if (found == NULL)
        domain = domains_find_id(shard->options.domains, domain_id);
    if (domain == NULL)
        return found;
    found = arena_make(shard_metrics->arena, struct domain_task_metrics);
    const char *labels[] = {SERVICE, "operation", "CompletionStats", "domain", domain->name, NULL};
    for (size_t i = 0; i < array_length(closes); i++)
        found->closed[i] =
            metrics_counter(shard_metrics->metrics, closes[i].name, "Runs that ended so.", labels);
    for (int task = 0; task < METRIC_TASKS; task++)
        found->tasks[task] =
            find_domain_task_series(shard_metrics->metrics, (enum task_metric)task, domain->name);
    map_put(shard_metrics->domains, slice_text(domain_id), found);
    return found;
}

/* --- shards and runs in memory ---- */

void
metrics_taken(struct shard *shard)
{
    if (shard->shard_metrics.metrics == NULL)
        return;
    counter_add(shard->shard_metrics.taken, 1);
    gauge_add(shard->shard_metrics.owned, 1);
}

void
metrics_ended(struct shard *shard)
{
    if (shard->shard_metrics.metrics != NULL)
        gauge_add(shard->shard_metrics.owned, -1);
}

void
metrics_cache_asked(struct shard *shard, bool was_there)
{
    if (shard->shard_metrics.metrics == NULL)
        return;
    counter_add(shard->shard_metrics.cache_requests, 1);
    if (!was_there)
        counter_add(shard->shard_metrics.cache_misses, 1);
}

void
metrics_cache_grew(struct shard *shard, int64_t by)
{
    if (shard->shard_metrics.metrics != NULL)
        gauge_add(shard->shard_metrics.cache_size, by);
}

void
metrics_cache_waited(struct shard *shard, int64_t began)
{
    if (shard->shard_metrics.metrics != NULL)
        histogram_observe(shard->shard_metrics.cache_latency, clock_monotonic() - began);
}

/* --- tasks ---- */

static void
observe(struct shard *shard, enum task_metric task, const char *domain_id, int64_t due)
{
    const struct task_series *of_all = &shard->shard_metrics.tasks[task];
    int64_t late = clock_wall() - due;
    late = late < 0 ? 0 : late; /* the wall clock was set */
    counter_add(of_all->requests, 1);
    histogram_observe(of_all->latency, late);
    const struct domain_task_metrics *domain = metrics_of_domain(shard, domain_id);
    if (domain == NULL)
        return;
    counter_add(domain->tasks[task].requests, 1);
    histogram_observe(domain->tasks[task].latency, late);
}

void
metrics_task(struct shard *shard, const struct task *task, unsigned attempts)
{
    if (shard->shard_metrics.metrics == NULL)
        return;
    check(attempts > 0);
    enum task_metric metric = task->type == TASK_ACTIVITY ? METRIC_ACTIVITY : METRIC_DECISION;
    histogram_observe(shard->shard_metrics.tasks[metric].attempts, attempts);
    observe(shard, metric, task->run_domain_id, task->created_time);
}

void
metrics_wakeup(struct shard *shard, const struct wakeup *wakeup)
{
    if (shard->shard_metrics.metrics == NULL)
        return;
    histogram_observe(shard->shard_metrics.tasks[METRIC_TIMER].attempts, wakeup->attempts + 1);
    observe(shard, METRIC_TIMER, wakeup->key.domain_id, wakeup->time);
}

/* --- runs that end ---- */

void
metrics_closed(struct shard *shard, const struct run *run)
{
    if (shard->shard_metrics.metrics == NULL)
        return;
    const struct domain_task_metrics *domain = metrics_of_domain(shard, run->core->domain_id);
    for (size_t i = 0; domain != NULL && i < array_length(closes); i++)
        if (closes[i].status == (int)run->core->close_status)
            counter_add(domain->closed[i], 1);
}
