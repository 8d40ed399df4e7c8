/* figures.c - what a shard tells at /metrics, under the names that Cadence's dashboards ask for.
 *
 * All shards of a process add to the same series. A series is looked up when the shard is made, or
 * when a domain is met for the first time, and kept: what a step costs is one add each. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"

#define CLOSE(name)                                                                                \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

static const char *const operations[FIGURE_TASKS] = {
    [FIGURE_DECISION] = "TransferActiveTaskDecision",
    [FIGURE_ACTIVITY] = "TransferActiveTaskActivity",
    [FIGURE_TIMER] = "TimerActiveTask", /* one alarm is for all that is due of a run */
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

static const char *const foreign_names[FIGURE_FOREIGN_COUNT][2] = {
    [FIGURE_APPLIED] = {"replication_batches_applied", "Batches of other clusters applied."},
    [FIGURE_KNOWN] = {"replication_batches_known", "Batches of other clusters that were here."},
    [FIGURE_LACKING] = {"replication_batches_early", "Batches that lacked events before them."},
    [FIGURE_FORKED] = {"replication_histories_forked", "Histories that parted from another."},
    [FIGURE_SWITCHED] = {"replication_histories_switched", "Runs that took another history."},
    [FIGURE_ZOMBIES] = {"replication_zombies", "Runs that lost their workflow id while open."},
    [FIGURE_LOST] = {"replication_events_lost", "Histories and runs noted as divergences."},
};

struct domain_figures {
    struct counter *closed[array_length(closes)];
    struct task_series tasks[FIGURE_TASKS];
};

/* --- series ---- */

#define SERVICE "cadence_service", "cadence_history"

static struct task_series
find_task_series(struct metrics *metrics, enum task_figure task)
{
    const char *labels[] = {SERVICE, "operation", operations[task], NULL};
    return (struct task_series){
        .requests = metrics_counter(metrics, "task_requests",
                                    "Tasks offered to their lists, and alarms that rang.", labels),
        .latency =
            metrics_histogram(metrics, "task_latency",
                              "From the moment a task was due until it was handed over.", labels),
        .attempts = metrics_histogram_counts(metrics, "task_attempt",
                                             "Attempts until a task was handed over.", labels),
    };
}

static struct task_series
find_domain_task_series(struct metrics *metrics, enum task_figure task, const char *domain)
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
find_cache_series(struct figures *figures, struct metrics *metrics)
{
    const char *labels[] = {
        SERVICE, "cache_type", "mutablestate", "operation", "HistoryCacheGetOrCreate", NULL};
    figures->cache_requests =
        metrics_counter(metrics, "cache_requests", "Runs that were looked for in memory.", labels);
    figures->cache_misses =
        metrics_counter(metrics, "cache_miss", "Runs that had to be read from the store.", labels);
    figures->cache_size = metrics_gauge(metrics, "cache_size_gauge",
                                        "Workflow ids and runs that are in memory.", labels);
    figures->cache_latency = metrics_histogram(
        metrics, "cache_latency", "Time that a step waited for others of its workflow id.", labels);
}

void
figures_init(struct shard *shard)
{
    struct figures *figures = &shard->figures;
    struct metrics *metrics = figures->metrics = shard->options.metrics;
    if (metrics == NULL)
        return;
    figures->taken =
        metrics_counter(metrics, "sharditem_created_count", "Shards that this host took.", NULL);
    figures->lost =
        metrics_counter(metrics, "sharditem_removed_count", "Shards that this host lost.", NULL);
    figures->owned = metrics_gauge(metrics, "numshards_gauge", "Shards that this host owns.", NULL);
    find_cache_series(figures, metrics);
    for (int task = 0; task < FIGURE_TASKS; task++)
        figures->tasks[task] = find_task_series(metrics, (enum task_figure)task);
    for (int i = 0; i < FIGURE_FOREIGN_COUNT; i++)
        figures->foreign[i] =
            metrics_counter(metrics, foreign_names[i][0], foreign_names[i][1], NULL);
    figures->pending = metrics_counter(
        metrics, "task_pending_active",
        "Tasks and alarms that waited for the end of a graceful failover to here.", NULL);
    figures->homeless =
        metrics_counter(metrics, "active_cluster_unresolved_rows",
                        "Rows whose domain does not say where their run is active: no cluster "
                        "works them off, or, for an entity in a region that the domain does not "
                        "have, the one that wrote the run's last event.",
                        NULL);
    figures->levels_lowered =
        metrics_counter(metrics, "timer_read_level_lowered",
                        "Times that the wall clock was found behind the timers of a shard.", NULL);
    figures->markers_failed = metrics_counter(metrics, "cadence_failover_marker_insert_failures",
                                              "Markers of failovers that were put later.", NULL);
    figures->domains = map_new();
    figures->arena = arena_new(0);
}

void
figures_pending(struct shard *shard)
{
    if (shard->figures.metrics != NULL)
        counter_add(shard->figures.pending, 1);
}

void
figures_homeless(struct shard *shard)
{
    if (shard->figures.metrics != NULL)
        counter_add(shard->figures.homeless, 1);
}

void
figures_level_lowered(struct shard *shard)
{
    if (shard->figures.metrics != NULL)
        counter_add(shard->figures.levels_lowered, 1);
}

void
figures_marker_failed(struct shard *shard)
{
    if (shard->figures.metrics != NULL)
        counter_add(shard->figures.markers_failed, 1);
}

void
figures_foreign(struct shard *shard, enum foreign_figure figure)
{
    if (shard->figures.metrics != NULL)
        counter_add(shard->figures.foreign[figure], 1);
}

void
figures_free(struct shard *shard)
{
    if (shard->figures.metrics == NULL)
        return;
    map_free(shard->figures.domains);
    arena_free(shard->figures.arena);
}

/* NULL: it is not known here. */
static struct domain_figures *
figures_of_domain(struct shard *shard, const char *domain_id)
{
    struct figures *figures = &shard->figures;
    struct domain_figures *found = map_get(figures->domains, slice_text(domain_id));
    const struct domain *domain = NULL;
    if (found == NULL)
        domain = domains_find_id(shard->options.domains, domain_id);
    if (domain == NULL)
        return found;
    found = arena_make(figures->arena, struct domain_figures);
    const char *labels[] = {SERVICE, "operation", "CompletionStats", "domain", domain->name, NULL};
    for (size_t i = 0; i < array_length(closes); i++)
        found->closed[i] =
            metrics_counter(figures->metrics, closes[i].name, "Runs that ended so.", labels);
    for (int task = 0; task < FIGURE_TASKS; task++)
        found->tasks[task] =
            find_domain_task_series(figures->metrics, (enum task_figure)task, domain->name);
    map_put(figures->domains, slice_text(domain_id), found);
    return found;
}

/* --- shards and runs in memory ---- */

void
figures_taken(struct shard *shard)
{
    if (shard->figures.metrics == NULL)
        return;
    counter_add(shard->figures.taken, 1);
    gauge_add(shard->figures.owned, 1);
}

void
figures_ended(struct shard *shard)
{
    if (shard->figures.metrics != NULL)
        gauge_add(shard->figures.owned, -1);
}

void
figures_cache_asked(struct shard *shard, bool was_there)
{
    if (shard->figures.metrics == NULL)
        return;
    counter_add(shard->figures.cache_requests, 1);
    if (!was_there)
        counter_add(shard->figures.cache_misses, 1);
}

void
figures_cache_grew(struct shard *shard, int64_t by)
{
    if (shard->figures.metrics != NULL)
        gauge_add(shard->figures.cache_size, by);
}

void
figures_cache_waited(struct shard *shard, int64_t began)
{
    if (shard->figures.metrics != NULL)
        histogram_observe(shard->figures.cache_latency, clock_monotonic() - began);
}

/* --- tasks ---- */

static void
observe(struct shard *shard, enum task_figure task, const char *domain_id, int64_t due)
{
    const struct task_series *of_all = &shard->figures.tasks[task];
    int64_t late = clock_wall() - due;
    late = late < 0 ? 0 : late; /* the wall clock was set */
    counter_add(of_all->requests, 1);
    histogram_observe(of_all->latency, late);
    const struct domain_figures *domain = figures_of_domain(shard, domain_id);
    if (domain == NULL)
        return;
    counter_add(domain->tasks[task].requests, 1);
    histogram_observe(domain->tasks[task].latency, late);
}

void
figures_task(struct shard *shard, const struct task *task, unsigned attempts)
{
    if (shard->figures.metrics == NULL)
        return;
    enum task_figure figure = task->type == TASK_ACTIVITY ? FIGURE_ACTIVITY : FIGURE_DECISION;
    histogram_observe(shard->figures.tasks[figure].attempts, attempts);
    observe(shard, figure, task->run_domain_id, task->created_time);
}

void
figures_alarm(struct shard *shard, const struct alarm *alarm)
{
    if (shard->figures.metrics == NULL)
        return;
    histogram_observe(shard->figures.tasks[FIGURE_TIMER].attempts, alarm->attempts + 1);
    observe(shard, FIGURE_TIMER, alarm->key.domain_id, alarm->time);
}

/* --- runs that end ---- */

void
figures_closed(struct shard *shard, const struct run *run)
{
    if (shard->figures.metrics == NULL)
        return;
    const struct domain_figures *domain = figures_of_domain(shard, run->core->domain_id);
    for (size_t i = 0; domain != NULL && i < array_length(closes); i++)
        if (closes[i].status == (int)run->core->close_status)
            counter_add(domain->closed[i], 1);
}
