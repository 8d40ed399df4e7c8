/* metrics.h - what a shard reports at /metrics (metrics.c). */
#ifndef CADENZA_ENGINE_SHARD_METRICS_H
#define CADENZA_ENGINE_SHARD_METRICS_H

#include "base/map.h"
#include "engine/shard/shard.h"

struct wakeup;

enum task_metric { METRIC_DECISION, METRIC_ACTIVITY, METRIC_TIMER };
#define METRIC_TASKS 3

struct task_series {
    struct counter *requests;
    struct histogram *latency;
    struct histogram *attempts; /* NULL: of a domain */
};

/* What came of events of other clusters. */
enum incoming_metric {
    METRIC_APPLIED,
    METRIC_KNOWN,
    METRIC_LACKING,
    METRIC_FORKED,
    METRIC_SWITCHED,
    METRIC_ZOMBIES,
    METRIC_LOST,
    METRIC_INCOMING_COUNT
};

/* All NULL without metrics. The series are the same for all shards. */
struct shard_metrics {
    struct metrics *metrics;
    struct counter *taken, *lost;
    struct gauge *owned;
    struct counter *cache_requests, *cache_misses;
    struct gauge *cache_size;
    struct histogram *cache_latency;
    struct task_series tasks[METRIC_TASKS];
    struct counter *incoming[METRIC_INCOMING_COUNT];
    struct counter *homeless, *pending;
    struct counter *markers_failed;
    struct counter *levels_lowered;
    struct map *domains; /* id → struct domain_task_metrics */
    struct arena *arena; /* of those */
};

void shard_metrics_init(struct shard *shard);
void shard_metrics_free(struct shard *shard);
/* The shard was taken, or is not ours any more. */
void metrics_taken(struct shard *shard);
void metrics_ended(struct shard *shard);
/* A run was looked for in memory. */
void metrics_cache_asked(struct shard *shard, bool was_there);
/* So many more ids and runs in memory. */
void metrics_cache_grew(struct shard *shard, int64_t by);
/* Somebody has waited for a workflow id since then (monotonic). */
void metrics_cache_waited(struct shard *shard, int64_t began);
/* A task was handed over; a wake-up timer has fired. */
void metrics_task(struct shard *shard, const struct task *task, unsigned attempts);
void metrics_wakeup(struct shard *shard, const struct wakeup *wakeup);
/* Events of another cluster came. */
void metrics_incoming(struct shard *shard, enum incoming_metric metric);
/* A row or wake-up timer waits for the end of a graceful failover to here. */
void metrics_pending(struct shard *shard);
/* A row is held that no cluster works off. */
void metrics_homeless(struct shard *shard);
/* A marker that is due could not be put. */
void metrics_marker_failed(struct shard *shard);
/* The wall clock was found behind the shard's timer read level. */
void metrics_level_lowered(struct shard *shard);
/* A run is durably closed. */
void metrics_closed(struct shard *shard, const struct run *run);

#endif
