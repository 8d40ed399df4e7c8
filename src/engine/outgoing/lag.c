/* lag.c - how far the other clusters are behind, seen from who has the rows.
 *
 * A fiber of the shard looks now and then: the first row that a cluster has not acknowledged says
 * how many wait for it, and since when. A cluster that is away for long fills the store. If it has
 * said that it can read the runs themselves, its rows are dropped when they are more than was
 * configured, and it is told so when it is back (read.c). The rows of any other are kept
 * whatever it costs, and people are warned. */
#include <stdio.h>

#include "base/check.h"
#include "engine/outgoing/replicate.h"
#include "engine/shard/inside.h"
#include "engine/shard/outgoing_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define LOOK_INTERVAL     (5 * NS_PER_S)
#define DEAD_LETTERS_PAGE 1000

/* How far a cluster is behind. */
struct behind {
    uint64_t rows;
    int64_t time; /* since the first of them was written, ns */
};

/* --- what people see ---- */

static struct gauge *
gauge_of(const struct tenure *tenure, const char *name, const char *help, const char *cluster)
{
    char number[16];
    snprintf(number, sizeof number, "%u", tenure->shard->options.number);
    const char *labels[] = {"target_cluster", cluster, "shard", number, NULL};
    return metrics_gauge(tenure->shard->shard_metrics.metrics, name, help, labels);
}

static void
show(const struct tenure *tenure, const struct cluster *cluster, const struct behind *behind)
{
    if (tenure->shard->shard_metrics.metrics == NULL)
        return;
    gauge_set(gauge_of(tenure, "replication_tasks_lag_gauge",
                       "Changes of a shard that a cluster has not acknowledged.", cluster->name),
              (int64_t)behind->rows);
    gauge_set(gauge_of(tenure, "replication_latency",
                       "How long the first of them has been waiting, in milliseconds.",
                       cluster->name),
              behind->time / NS_PER_MS);
}

/* --- one cluster ---- */

/* Yields. */
static struct error *
measure(struct tenure *tenure, size_t index, struct arena *arena, struct behind *behind)
{
    const struct replicating *replicating = &tenure->replicating;
    check(index < tenure->shard->options.group->count);
    uint64_t level = replicate_level(tenure, index);
    struct rows rows;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_REPLICATION,
                        .from = replication_key(level + 1, arena),
                        .rows_max = 1};
    STORED(ReplicationRow) *row = NULL;
    *behind = (struct behind){0};
    if (level >= replicating->durable)
        return NULL;
    struct error *err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
    if (err != NULL || rows.count == 0)
        return err;
    err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(replication_row), rows.row[0].value,
                            &row);
    if (err != NULL)
        return err;
    if (row->index >= replicating->index_next)
        return NULL; /* somebody has overtaken us, and wrote it */
    int64_t time = clock_wall() - row->created_time;
    behind->rows = replicating->index_next - row->index;
    behind->time = time > 0 ? time : 0;
    return NULL;
}

static void
warn(const struct tenure *tenure, const struct cluster *cluster, const struct behind *behind)
{
    probe("replication_rows_kept");
    log_warn(tenure->shard->options.log,
             "A cluster is far behind. Its changes are kept, for it cannot read runs instead.",
             log_text("target-cluster", cluster->name),
             log_number("shard-id", (int64_t)tenure->shard->options.number),
             log_number("changes", (int64_t)behind->rows));
}

/* Too much for one that is away. */
static void
bound(struct tenure *tenure, size_t index, const struct behind *behind)
{
    const struct shard *shard = tenure->shard;
    const struct cluster *cluster = &shard->options.group->clusters[index];
    struct replication_peer *peer = &tenure->replicating.peers[index];
    check(cluster != shard->options.group->current);
    int64_t most = dynamic_integer(shard->options.dynamic, DYNAMIC_REPLICATION_ROWS_MAX, NULL);
    bool is_far = most > 0 && behind->rows > (uint64_t)most;
    if (is_far && peer->can_resync) {
        log_warn(shard->options.log, "A cluster is far behind. It will read runs when it is back.",
                 log_text("target-cluster", cluster->name),
                 log_number("shard-id", (int64_t)shard->options.number),
                 log_number("dropped", (int64_t)behind->rows));
        replicate_drop(tenure, index);
    } else if (is_far && !peer->is_far) {
        warn(tenure, cluster, behind);
    }
    peer->is_far = is_far && !peer->can_resync;
}

/* --- dead letters ---- */

/* Yields. */
static struct error *
count_dead_letters(struct tenure *tenure, struct arena *arena)
{
    struct replicating *replicating = &tenure->replicating;
    int64_t count = 0;
    struct rows rows = {.has_more = true};
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_DEAD_LETTER,
                        .rows_max = DEAD_LETTERS_PAGE};
    if (replicating->are_dead_letters_counted || tenure->shard->shard_metrics.metrics == NULL)
        return NULL;
    replicating->are_dead_letters_counted = true;
    struct error *err = NULL;
    while (err == NULL && rows.has_more) {
        err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
        check(err != NULL || rows.count > 0 || !rows.has_more); /* each page comes further */
        if (err == NULL && rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        count += err == NULL ? (int64_t)rows.count : 0;
    }
    if (err != NULL)
        return err;
    char number[16];
    snprintf(number, sizeof number, "%u", tenure->shard->options.number);
    const char *labels[] = {"shard", number, NULL};
    gauge_set(metrics_gauge(tenure->shard->shard_metrics.metrics, "replication_dlq_size",
                            "Messages of other clusters that are kept as dead letters.", labels),
              count);
    return NULL;
}

/* --- the fiber ---- */

static struct error *
look(struct tenure *tenure, struct arena *arena)
{
    const struct cluster_group *group = tenure->shard->options.group;
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && !tenure->is_over && i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        struct behind behind;
        if (cluster == group->current || !cluster->is_enabled)
            continue;
        err = measure(tenure, i, arena, &behind);
        if (err != NULL || tenure->is_over)
            continue;
        show(tenure, cluster, &behind);
        bound(tenure, i, &behind);
    }
    if (err == NULL && !tenure->is_over)
        err = count_dead_letters(tenure, arena);
    if (err == NULL && !tenure->is_over && tenure->is_record_due &&
        writer_has_room(tenure->writer)) /* also where nobody writes */
        tenure_submit(tenure, tenure_batch(tenure, arena));
    return err;
}

static void
wait_over(struct tenure *tenure)
{
    enum wake wake = WAKE_READY;
    if (!tenure->is_over)
        wake = fiber_cond_wait(&tenure->replicating.over, clock_monotonic() + LOOK_INTERVAL);
    check(wake != WAKE_CANCELLED); /* nobody does */
}

void
replicate_watch_fiber(void *argument)
{
    struct tenure *tenure = argument;
    fiber_set_deadline(NEVER);
    while (!tenure->is_over) {
        struct arena *arena = arena_new(0);
        struct error *err = look(tenure, arena);
        if (err != NULL)
            probe("replication_watch_failed"); /* the next look may succeed */
        arena_free(arena);
        wait_over(tenure);
    }
    tenure_leave(tenure);
}
