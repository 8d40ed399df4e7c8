/* meter.c - how often the store is called, how long calls take, how often they fail: for /metrics.
 *
 * Operators know these series from Cadence, whose store has a call for everything. Here a call is
 * named after the one there that is nearest: reading a row of a run is GetWorkflowExecution, a
 * commit of a shard is UpdateWorkflowExecution. The time of a commit begins when it is given to the
 * engine and ends when its loop gets the answer, so waiting for a group is part of it. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "store/engine.h"

struct meter_series {
    struct counter *requests, *errors;
    struct histogram *latency;
};

struct store_meter {
    struct meter_series reads[ROW_KIND_END];
    struct meter_series commits[PARTITION_KIND_END];
};

#define HISTORY  "cadence_history"
#define MATCHING "cadence_matching"
#define FRONTEND "cadence_frontend"

static const char *const services[PARTITION_KIND_END] = {
    [PARTITION_SYSTEM] = FRONTEND,   [PARTITION_DOMAINS] = FRONTEND,
    [PARTITION_SHARD] = HISTORY,     [PARTITION_TASK_LIST] = MATCHING,
    [PARTITION_SETTINGS] = FRONTEND, [PARTITION_ATTRIBUTES] = FRONTEND,
    [PARTITION_AUDIT] = FRONTEND,
};

static const char *const commits[PARTITION_KIND_END] = {
    [PARTITION_SYSTEM] = "UpdateSystem",
    [PARTITION_DOMAINS] = "UpdateDomain",
    [PARTITION_SHARD] = "UpdateWorkflowExecution",
    [PARTITION_TASK_LIST] = "CreateTask",
    [PARTITION_SETTINGS] = "UpdateDynamicConfig",
    [PARTITION_ATTRIBUTES] = "UpdateSearchAttributes",
    [PARTITION_AUDIT] = "CreateAuditRecord",
};

static const char *const reads[ROW_KIND_END] = {
    [ROW_META] = "GetSystem",
    [ROW_DOMAIN] = "GetDomain",
    [ROW_DOMAIN_NAME] = "GetDomain",
    [ROW_DOMAIN_LOG] = "GetDomain",
    [ROW_SHARD] = "GetShard",
    [ROW_CURRENT] = "GetCurrentExecution",
    [ROW_RUN] = "GetWorkflowExecution",
    [ROW_PENDING] = "GetWorkflowExecution",
    [ROW_HISTORY] = "ReadHistoryBranch",
    [ROW_TRANSFER] = "GetHistoryTasks",
    [ROW_TIMER] = "GetHistoryTasks",
    [ROW_REPLICATION] = "GetHistoryTasks",
    [ROW_DEAD_LETTER] = "GetReplicationTasksFromDLQ",
    [ROW_TASK_LIST] = "GetTaskList",
    [ROW_TASK] = "GetTasks",
    [ROW_DOMAIN_FAILOVER] = "GetDomain",
    [ROW_DOMAIN_DEAD_LETTER] = "GetDomain",
    [ROW_DOMAIN_POSITION] = "GetDomain",
    [ROW_SETTING] = "FetchDynamicConfig",
    [ROW_VISIBLE] = "GetHistoryTasks",
    [ROW_SEARCH_ATTRIBUTE] = "GetSearchAttributes",
    [ROW_ISOLATION_GROUPS] = "GetDomain",
    [ROW_AUDIT] = "GetAuditRecords",
    [ROW_DIVERGENCE] = "GetWorkflowExecution",
    [ROW_DOMAIN_DRAIN] = "GetDomain",
    [ROW_ENTITY] = "GetDomain",
};

static struct meter_series
find_series(struct metrics *metrics, const char *operation, enum partition_kind partition)
{
    check(services[partition] != NULL);
    const char *labels[] = {"cadence_service", services[partition], "operation", operation, NULL};
    return (struct meter_series){
        .requests = metrics_counter(metrics, "persistence_requests", "Calls of the store.", labels),
        .errors = metrics_counter(metrics, "persistence_errors",
                                  "Calls of the store that failed; a fenced commit too.", labels),
        .latency = metrics_histogram(metrics, "persistence_latency",
                                     "Time that a call of the store took.", labels),
    };
}

void
store_measure(struct store *store, struct metrics *metrics)
{
    check(store->meter == NULL);
    struct store_meter *meter = memory_zalloc(1, sizeof *meter);
    for (int kind = 1; kind < ROW_KIND_END; kind++) {
        const struct row_traits *traits = row_traits((enum row_kind)kind);
        if (traits == NULL)
            continue;
        check_that(reads[kind] != NULL, "%s rows have no name for operators", traits->name);
        meter->reads[kind] = find_series(metrics, reads[kind], traits->partition);
    }
    for (int kind = 1; kind < PARTITION_KIND_END; kind++) {
        check(commits[kind] != NULL);
        meter->commits[kind] = find_series(metrics, commits[kind], (enum partition_kind)kind);
    }
    store->meter = meter;
}

int64_t
meter_begin(const struct store *store)
{
    return store->meter == NULL ? 0 : clock_monotonic();
}

static void
observe(const struct meter_series *series, int64_t began, bool failed)
{
    counter_add(series->requests, 1);
    if (failed)
        counter_add(series->errors, 1);
    histogram_observe(series->latency, clock_monotonic() - began);
}

void
meter_read(const struct store *store, enum row_kind kind, int64_t began, bool failed)
{
    if (store->meter != NULL)
        observe(&store->meter->reads[kind], began, failed);
}

void
meter_commit(const struct store *store, const struct commit *commit)
{
    if (store->meter != NULL && !commit->is_confirmation)
        observe(&store->meter->commits[commit->partition.kind], commit->began, commit->failed);
}
