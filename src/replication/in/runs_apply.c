/* runs_apply.c - see runs_apply.h.
 *
 * Each shard of the source is a stream: its messages in the order of their rows. Each workflow id
 * is a queue through all of them (an id is in one shard): the first one of a queue is under way,
 * waits for a fiber, or for its next try. A message that is done leaves its stream, and the
 * acknowledged row is the one before the first message that is left.
 *
 * The marker of a failover is about what came before it: it is a queue of its own, which waits
 * until no message of its domain is before it in its stream.
 *
 *   1. A message is in its stream until it is applied, known, or durably a dead letter.
 *   2. A queue is in `ready`, waits with its timer, waits for other messages (a marker), or has a
 *      fiber; never two of these.
 *   3. A marker's `before` counts the messages of its domain that are before it in its stream.
 *
 * applier_check() and stream_check() state all this in code. */
#include "replication/in/runs_apply.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "fiber/sync.h"
#include "fiber/timer.h"
#include "replication/runs.h"
#include "route/owner.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIBERS_MAX     64
#define ITEMS_MAX      4000 /* that are not done; may be exceeded by one answer */
#define FAST_TRIES     10
#define FAST_PAUSE     (50 * NS_PER_MS)
#define SLOW_PAUSE     (5 * NS_PER_S)
#define SLOW_MAX       (30 * NS_PER_S)
#define RETRY_TIME_MAX (300 * NS_PER_S)
#define AWAY_PAUSE     NS_PER_S
#define BLOCKED_PAUSE  (250 * NS_PER_MS)
#define APPLY_TIMEOUT  (60 * NS_PER_S)

/* An answer of the source, with the messages that live in its arena. */
struct delivery {
    struct arena *arena;
    size_t items; /* that are not done */
};

struct item {
    struct list node;  /* in its stream */
    struct list queue; /* in its queue */
    struct delivery *delivery;
    const ADMIN(ReplicationTask) *task;
    uint32_t shard;    /* of its stream */
    uint64_t sequence; /* the order in which they came; rises in a stream and in a queue */
    /* Of a marker. */
    struct list marker;  /* in stream.markers; else in no list */
    struct queue *waits; /* its queue, while that waits for the messages before it; else NULL */
    size_t before;
};

struct stream {
    struct list items; /* in the order in which they came */
    struct list markers;
    int64_t retrieved; /* -1: not begun */
    int64_t resync_to; /* 0: nothing was dropped */
};

struct queue {
    struct applier *applier;
    struct list node; /* in `ready` */
    struct slice name;
    struct list items;
    struct timer timer;
    unsigned tries;     /* of the first message, that failed */
    int64_t since;      /* when the first message was first tried, monotonic; 0: not yet */
    int64_t slow_pause; /* the last pause after the fast tries; 0: none yet */
    bool lacks; /* the first message lacks events, and its source cannot be asked for them */
};

/* A fiber that works on queues until none is ready. */
struct apply_worker {
    struct list node;
    struct fiber *fiber;
    struct applier *applier;
};

struct applier {
    struct applier_options options;
    struct apply_world world;
    struct stream *streams;
    uint32_t stream_count;
    uint32_t source_shard_count; /* how many shards the source says it has; 0: it does not say */
    uint64_t sequence;           /* of the newest message */
    struct map *queues;          /* domain id, NUL, workflow id → struct queue */
    struct list ready;
    struct list workers;
    unsigned worker_count;
    struct latch open;
    size_t item_count;
    struct fiber_cond room;
    bool is_stopping;
    struct counter *applied, *failed, *dead_lettered;
    struct counter *markers, *markers_failed;
    struct histogram *lag, *marker_lag;
    struct gauge *waiting;
};

static void queue_due(struct timer *timer);
static bool is_marker(const struct item *item);
static bool is_of_domain(const struct item *item, const struct item *marker);

/* --- invariants ---- */

/* Of a queue that no worker has: 2. */
static void
queue_check(const struct queue *queue)
{
    check(list_is_empty(&queue->node) || !timer_is_pending(&queue->timer));
    check((queue->slow_pause > 0) == (queue->tries > FAST_TRIES));
    check(queue->slow_pause >= 0 && queue->slow_pause <= SLOW_MAX);
}

/* 3, by counting. Takes time in proportion to the length of the stream. */
static void
marker_check(const struct stream *stream, const struct item *marker)
{
    size_t before = 0;
    list_each(node, &stream->items) {
        const struct item *item = list_entry(node, struct item, node);
        if (item->sequence < marker->sequence)
            before += is_of_domain(item, marker);
    }
    check(is_marker(marker) && marker->before == before);
    check(marker->waits == NULL || marker->before > 0);
}

/* Walks over the stream; *count: its messages. */
static void
stream_check(const struct applier *applier, uint32_t shard, size_t *count)
{
    const struct stream *stream = &applier->streams[shard];
    uint64_t last = 0;
    check(stream->resync_to >= 0);
    list_each(node, &stream->items) {
        const struct item *item = list_entry(node, struct item, node);
        check(item->shard == shard && item->delivery->items > 0);
        check(item->sequence > last && item->sequence <= applier->sequence);
        check(!list_is_empty(&item->queue) && is_marker(item) == !list_is_empty(&item->marker));
        last = item->sequence;
        ++*count;
    }
    list_each(node, &stream->markers)
        marker_check(stream, list_entry(node, struct item, marker));
}

/* Everything that is true whenever no fiber of the applier runs. */
static void
applier_check(const struct applier *applier)
{
    check(applier->worker_count <= FIBERS_MAX && applier->worker_count == applier->open.open);
    check(list_is_empty(&applier->workers) == (applier->worker_count == 0));
    check(list_is_empty(&applier->ready) || applier->worker_count > 0 || applier->is_stopping);
    check(applier->item_count >= map_count(applier->queues) || applier->is_stopping);
    if (!CHECK_DEEPLY)
        return;
    size_t in_streams = 0, in_queues = 0, cursor = 0;
    void *value;
    for (uint32_t i = 0; i < applier->stream_count; i++)
        stream_check(applier, i, &in_streams);
    while (map_next(applier->queues, &cursor, NULL, &value)) {
        const struct queue *queue = value;
        queue_check(queue);
        check(!list_is_empty(&queue->items));
        list_each(node, &queue->items)
            in_queues++;
    }
    check(in_streams == applier->item_count && in_queues == applier->item_count);
}

/* --- life ---- */

struct applier *
applier_new(const struct applier_options *options)
{
    check(route_is_here(owner_of_domains()));
    check(options->source != options->world.group->current);
    struct applier *applier = memory_zalloc(1, sizeof *applier);
    struct metrics *metrics = options->world.metrics;
    const char *labels[] = {"source_cluster", options->source->name, "kind", "runs", NULL};
    applier->options = *options;
    applier->world = (struct apply_world){.engine = options->world.engine,
                                          .domains = options->world.domains,
                                          .drains = options->world.drains,
                                          .group = options->world.group,
                                          .client = options->client};
    applier->queues = map_new();
    list_init(&applier->ready);
    list_init(&applier->workers);
    latch_init(&applier->open, 0);
    fiber_cond_init(&applier->room);
    applier->applied =
        metrics_counter(metrics, "cadence_replication_tasks_applied",
                        "Messages that were applied, superseded or kept as dead letters.", labels);
    applier->failed = metrics_counter(metrics, "cadence_replication_tasks_failed",
                                      "Attempts to apply a message that failed.", labels);
    applier->dead_lettered = metrics_counter(metrics, "cadence_replication_dlq_enqueue_requests",
                                             "Messages that became dead letters.", labels);
    applier->lag = metrics_histogram(metrics, "cadence_replication_tasks_lag",
                                     "Time from a change in a peer to its effect here.", labels);
    applier->markers = metrics_counter(metrics, "cadence_failover_marker_callback_count",
                                       "Failover markers that were received.", labels);
    applier->markers_failed =
        metrics_counter(metrics, "cadence_failover_marker_notification_failures",
                        "Failed attempts to record a failover marker.", labels);
    applier->marker_lag =
        metrics_histogram(metrics, "cadence_failover_marker_replication_latency",
                          "Time from a marker in a peer until all before it is here.", labels);
    applier->waiting = metrics_gauge(metrics, "cadence_replication_tasks_pending",
                                     "Messages of a peer that are here and not applied.", labels);
    return applier;
}

/* --- streams ---- */

static void
need_streams(struct applier *applier, uint32_t count)
{
    if (count <= applier->stream_count)
        return; /* it never has fewer: numbers of shards that are gone stay valid */
    struct stream *streams = memory_zalloc(count, sizeof *streams);
    for (uint32_t i = 0; i < count; i++) {
        list_init(&streams[i].items);
        list_init(&streams[i].markers);
        bool is_old = i < applier->stream_count;
        streams[i].retrieved = is_old ? applier->streams[i].retrieved : -1;
        streams[i].resync_to = is_old ? applier->streams[i].resync_to : 0;
        if (!is_old)
            continue;
        list_splice_back(&streams[i].items, &applier->streams[i].items);
        list_splice_back(&streams[i].markers, &applier->streams[i].markers);
    }
    memory_free(applier->streams);
    applier->streams = streams;
    applier->stream_count = count;
}

uint32_t
applier_shard_count(const struct applier *applier)
{
    uint32_t own = engine_shard_count(applier->world.engine);
    return applier->source_shard_count > 0 ? applier->source_shard_count : own;
}

int64_t
applier_retrieved(const struct applier *applier, uint32_t shard)
{
    return shard < applier->stream_count ? applier->streams[shard].retrieved : -1;
}

int64_t
applier_processed(const struct applier *applier, uint32_t shard)
{
    if (shard >= applier->stream_count || applier->streams[shard].retrieved < 0)
        return PROCESSED_NOTHING;
    const struct stream *stream = &applier->streams[shard];
#ifdef CADENZA_FAULT_acknowledged_before_applied
    return stream->retrieved > 0 ? stream->retrieved : PROCESSED_NOTHING;
#endif
    if (list_is_empty(&stream->items))
        return stream->retrieved > 0 ? stream->retrieved : PROCESSED_NOTHING;
    const struct item *first = list_entry(stream->items.next, struct item, node);
    int64_t before = first->task->source_task_id - 1;
    return before > 0 ? before : PROCESSED_NOTHING;
}

size_t
applier_waiting(const struct applier *applier, struct arena *arena, int64_t *oldest)
{
    *oldest = 0;
    for (uint32_t i = 0; i < applier->stream_count; i++) {
        const struct stream *stream = &applier->streams[i];
        if (list_is_empty(&stream->items))
            continue;
        const struct item *first = list_entry(stream->items.next, struct item, node);
        struct maybe_int64 created = {0};
        struct error *err =
            presence_read_timestamp(arena, "creation_time", first->task->creation_time, &created);
        if (err == NULL && created.is_set && (*oldest == 0 || created.value < *oldest))
            *oldest = created.value;
    }
    return applier->item_count;
}

size_t
applier_applicable(const struct applier *applier, bool is_all)
{
    size_t cursor = 0, count = 0;
    void *value;
    while (map_next(applier->queues, &cursor, NULL, &value)) {
        const struct queue *queue = value;
        list_each(node, &queue->items)
            count += (is_all || !queue->lacks) && !is_marker(list_entry(node, struct item, queue));
    }
    return count;
}

int64_t
applier_resync_to(const struct applier *applier, uint32_t shard)
{
    return shard < applier->stream_count ? applier->streams[shard].resync_to : 0;
}

void
applier_note_resynced(struct applier *applier, uint32_t shard)
{
    check(shard < applier->stream_count);
    struct stream *stream = &applier->streams[shard];
    check(stream->resync_to > 0);
    stream->retrieved = stream->resync_to;
    stream->resync_to = 0;
}

void
applier_wait_room(struct applier *applier)
{
    enum wake wake = WAKE_READY;
    while (applier->item_count >= ITEMS_MAX && wake != WAKE_CANCELLED && !applier->is_stopping)
        wake = fiber_cond_wait(&applier->room, NEVER);
}

/* --- queues ---- */

static bool
is_marker(const struct item *item)
{
    return item->task->attributes_case ==
               ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES) &&
           item->task->failover_marker_attributes != NULL;
}

static struct slice
queue_name(const struct item *item, struct arena *arena)
{
    const ADMIN(ReplicationTask) *task = item->task;
    if (is_marker(item))
        return slice_text(arena_format(arena, "marker %llu", (unsigned long long)item->sequence));
    const char *domain_id = task_domain(task);
    return slice_text(
        arena_format(arena, "%s/%s", domain_id == NULL ? "" : domain_id, task_workflow_id(task)));
}

static struct queue *
find_queue(struct applier *applier, struct slice name)
{
    struct queue *queue = map_get(applier->queues, name);
    if (queue != NULL)
        return queue;
    queue = memory_zalloc(1, sizeof *queue + name.length);
    queue->applier = applier;
    queue->name = slice_of(memcpy(queue + 1, name.data, name.length), name.length);
    list_init(&queue->node);
    list_init(&queue->items);
    timer_init(&queue->timer, queue_due);
    map_put(applier->queues, name, queue);
    return queue;
}

static void
free_queue(struct queue *queue)
{
    check(list_is_empty(&queue->items) && list_is_empty(&queue->node));
    check(!timer_is_pending(&queue->timer)); /* it has no first message to try again */
    map_remove(queue->applier->queues, queue->name);
    memory_free(queue);
}

static bool
is_of_domain(const struct item *item, const struct item *marker)
{
    const char *domain_id = task_domain(item->task);
    return domain_id != NULL && strcmp(domain_id, task_domain(marker->task)) == 0;
}

static void start_work(struct applier *applier, struct queue *queue);

/* `gone` has left its stream: markers behind it may have waited for it. */
static void
release_markers(struct applier *applier, const struct item *gone)
{
    list_each(node, &applier->streams[gone->shard].markers) {
        struct item *marker = list_entry(node, struct item, marker);
        if (gone->sequence >= marker->sequence || !is_of_domain(gone, marker))
            continue;
        check(marker->before > 0); /* 3 */
        if (--marker->before > 0 || marker->waits == NULL || applier->is_stopping)
            continue;
        start_work(applier, marker->waits);
        marker->waits = NULL;
    }
}

static void
drop_item(struct applier *applier, struct item *item)
{
    struct delivery *delivery = item->delivery;
    check(applier->item_count > 0 && delivery->items > 0);
    check(item->waits == NULL || applier->is_stopping); /* 2 */
    list_remove(&item->node);
    list_remove(&item->queue);
    list_remove(&item->marker);
    release_markers(applier, item);
#ifndef CADENZA_FAULT_applied_message_stays_counted /* fault: the room for messages shrinks */
    applier->item_count--;
#endif
    if (--delivery->items == 0)
        arena_free(delivery->arena); /* the item and the delivery are in it */
    fiber_cond_broadcast(&applier->room);
    gauge_set(applier->waiting, (int64_t)applier->item_count);
}

/* --- one message ---- */

static struct error *
dead_letter_item(struct applier *applier, const struct item *item, const struct error *cause,
                 struct arena *arena)
{
    struct dead_lettered_task dead_lettered = {.source = applier->options.source->name,
                                               .source_shard = item->shard,
                                               .task = item->task,
                                               .cause = cause};
    check(!is_marker(item)); /* see work_marker */
    struct error *err = dead_letter_task(&applier->world, &dead_lettered, arena);
    if (err != NULL)
        return err;
    counter_add(applier->dead_lettered, 1);
    log_warn(applier->options.world.log,
             "A message of another cluster could not be applied and became a dead letter.",
             log_text("source-cluster", applier->options.source->name),
             log_number("task-id", item->task->source_task_id),
             log_text("wf-id", task_workflow_id(item->task)), log_error(cause));
    return NULL;
}

static void
note_applied(struct applier *applier, const struct item *item, struct arena *arena)
{
    struct maybe_int64 created;
    counter_add(applier->applied, 1);
    if (presence_read_timestamp(arena, "creation_time", item->task->creation_time, &created) !=
            NULL ||
        !created.is_set)
        return;
    int64_t lag = clock_wall() - created.value;
    histogram_observe(is_marker(item) ? applier->marker_lag : applier->lag, lag > 0 ? lag : 0);
}

static bool
gives_up(const struct queue *queue, enum applied applied)
{
    return applied == APPLY_NEVER ||
           (applied == APPLY_AGAIN && clock_monotonic() - queue->since > RETRY_TIME_MAX);
}

static void
try_later(struct queue *queue, enum applied applied, const struct error *cause)
{
    struct applier *applier = queue->applier;
    int64_t pause = FAST_PAUSE;
    check(applied != APPLIED && !timer_is_pending(&queue->timer));
    check(applied == APPLY_BLOCKED || cause != NULL);
    if (applied == APPLY_BLOCKED) {
        timer_start(&queue->timer, clock_monotonic() + BLOCKED_PAUSE);
        return;
    }
    counter_add(applier->failed, 1);
    queue->lacks = applied == APPLY_LACKS;
    if (applied == APPLY_LACKS) {
        queue->since = clock_monotonic();
        pause = AWAY_PAUSE;
    } else if (++queue->tries > FAST_TRIES) {
        pause = queue->slow_pause == 0 ? SLOW_PAUSE : queue->slow_pause * 2;
        pause = pause > SLOW_MAX ? SLOW_MAX : pause;
        queue->slow_pause = pause;
    }
    if (queue->tries == FAST_TRIES)
        log_warn(applier->options.world.log,
                 "A message of another cluster cannot be applied, trying again.",
                 log_text("source-cluster", applier->options.source->name), log_error(cause));
    timer_start(&queue->timer, clock_monotonic() + pause);
}

/* A marker never becomes a dead letter: it is waited for only until the failover times out. */
static enum applied
work_marker(struct applier *applier, const struct item *item, struct arena *arena,
            struct error **cause)
{
    uint32_t own = engine_shard_count(applier->world.engine);
    struct marker_origin origin = {
        .source = applier->options.source->name,
        .source_shard = item->shard,
        .shard_count = applier->source_shard_count > 0 ? applier->source_shard_count : own,
    };
    enum applied applied = apply_marker(&applier->world, &origin, item->task, arena, cause);
    check(applied == APPLIED || applied == APPLY_AGAIN || applied == APPLY_BLOCKED);
    if (applied == APPLY_AGAIN)
        counter_add(applier->markers_failed, 1);
    return applied;
}

/* Works on the first message of a queue. True: it is done. Yields. */
static bool
work(struct queue *queue, struct arena *arena)
{
    struct applier *applier = queue->applier;
    check(!list_is_empty(&queue->items) && list_is_empty(&queue->node));
    check(fiber_deadline() == NEVER); /* that of the message before is over */
    struct item *item = list_entry(queue->items.next, struct item, queue);
    struct error *cause;
#ifndef CADENZA_FAULT_ready_before_applied
    if (item->before > 0) {
        item->waits = queue;
        return false;
    }
#endif
    if (queue->since == 0)
        queue->since = clock_monotonic();
    fiber_set_deadline(clock_monotonic() + APPLY_TIMEOUT);
    enum applied applied = is_marker(item)
                               ? work_marker(applier, item, arena, &cause)
                               : apply_task(&applier->world, item->task, false, arena, &cause);
    if (applied != APPLIED && !is_marker(item) && gives_up(queue, applied)) {
        fiber_set_deadline(clock_monotonic() + APPLY_TIMEOUT);
        struct error *err = dead_letter_item(applier, item, cause, arena);
        applied = err == NULL ? APPLIED : APPLY_AGAIN;
        cause = err;
    }
    fiber_set_deadline(NEVER);
    check(queue->items.next == &item->queue); /* nobody else takes it out meanwhile */
    if (applier->is_stopping)
        return false;
    if (applied != APPLIED) {
        try_later(queue, applied, cause);
        return false;
    }
    note_applied(applier, item, arena);
    drop_item(applier, item);
    queue->tries = 0;
    queue->since = 0;
    queue->slow_pause = 0;
    queue->lacks = false;
    return true;
}

static void
work_fiber(void *argument)
{
    struct apply_worker *apply_worker = argument;
    struct applier *applier = apply_worker->applier;
    struct arena *arena = arena_new(0);
    for (struct list *node;
         !applier->is_stopping && (node = list_pop_front(&applier->ready)) != NULL;) {
        struct queue *queue = list_entry(node, struct queue, node);
        while (!applier->is_stopping && !list_is_empty(&queue->items) && work(queue, arena))
            arena_reset(arena);
        arena_reset(arena);
        if (!applier->is_stopping && list_is_empty(&queue->items))
            free_queue(queue);
        applier_check(applier);
    }
    arena_free(arena);
    check(applier->worker_count > 0);
    list_remove(&apply_worker->node);
    memory_free(apply_worker);
    applier->worker_count--;
    latch_done(&applier->open);
}

static void
start_work(struct applier *applier, struct queue *queue)
{
    check(!applier->is_stopping && !list_is_empty(&queue->items));
    queue_check(queue);
    check(list_is_empty(&queue->node) && !timer_is_pending(&queue->timer));
    list_push_back(&applier->ready, &queue->node);
    if (applier->worker_count == FIBERS_MAX)
        return;
    struct apply_worker *apply_worker = memory_zalloc(1, sizeof *apply_worker);
    apply_worker->applier = applier;
    list_push_back(&applier->workers, &apply_worker->node);
    applier->worker_count++;
    latch_add(&applier->open, 1);
    apply_worker->fiber = fiber_start("replication in", work_fiber, apply_worker);
}

static void
queue_due(struct timer *timer)
{
    struct queue *queue = container_of(timer, struct queue, timer);
    start_work(queue->applier, queue);
}

/* --- what comes in ---- */

static void
add_marker(struct applier *applier, struct stream *stream, struct item *marker)
{
    check(marker->before == 0 && marker->waits == NULL);
    list_each(node, &stream->items)
        marker->before += is_of_domain(list_entry(node, struct item, node), marker);
    list_push_back(&stream->markers, &marker->marker);
    counter_add(applier->markers, 1);
}

static void
add_item(struct applier *applier, uint32_t shard, struct delivery *delivery,
         const ADMIN(ReplicationTask) *task)
{
    struct stream *stream = &applier->streams[shard];
    struct item *item = arena_make(delivery->arena, struct item);
    item->delivery = delivery;
    item->task = task;
    item->shard = shard;
    item->sequence = ++applier->sequence;
    list_init(&item->marker);
    if (is_marker(item))
        add_marker(applier, stream, item);
    delivery->items++;
    applier->item_count++;
    list_push_back(&stream->items, &item->node);
    struct queue *queue = find_queue(applier, queue_name(item, delivery->arena));
    bool is_idle = list_is_empty(&queue->items);
    check(!is_idle || (queue->tries == 0 && queue->since == 0)); /* of a message before */
    list_push_back(&queue->items, &item->queue);
    if (is_idle)
        start_work(applier, queue);
}

static void
add_messages(struct applier *applier, uint32_t shard, const ADMIN(ReplicationMessages) *messages,
             struct delivery *delivery)
{
    struct stream *stream = &applier->streams[shard];
    for (size_t i = 0; i < messages->n_replication_tasks; i++) {
        const ADMIN(ReplicationTask) *task = messages->replication_tasks[i];
        /* A source whose store went back in time sends again what is under way. */
        add_item(applier, shard, delivery, task);
    }
    if (messages->resync_to > 0)
        stream->resync_to = messages->resync_to;
    else
        stream->retrieved = messages->last_retrieved_message_id;
}

void
applier_add(struct applier *applier, const ADMIN(GetReplicationMessagesResponse) *response,
            struct arena *arena, size_t *count, bool *has_more)
{
    check(route_is_here(owner_of_domains()) && !applier->is_stopping);
    struct delivery *delivery = arena_make(arena, struct delivery);
    delivery->arena = arena;
    uint32_t own = engine_shard_count(applier->world.engine);
    applier->source_shard_count = response->shard_count > 0 ? (uint32_t)response->shard_count : 0;
    uint32_t sent_count = applier->source_shard_count > 0 ? applier->source_shard_count : own;
    need_streams(applier, sent_count > own ? sent_count : own);
    check(applier->stream_count >= applier_shard_count(applier));
    *count = 0;
    *has_more = false;
    for (size_t i = 0; i < response->n_shard_messages; i++) {
        int32_t shard = response->shard_messages[i]->key;
        const ADMIN(ReplicationMessages) *messages = response->shard_messages[i]->value;
        if (messages == NULL || shard < 0 || (uint32_t)shard >= applier->stream_count)
            continue;
        add_messages(applier, (uint32_t)shard, messages, delivery);
        *count += messages->n_replication_tasks;
        *has_more = *has_more || messages->has_more;
    }
    check(delivery->items == *count);
    applier_check(applier);
    gauge_set(applier->waiting, (int64_t)applier->item_count);
    if (delivery->items == 0)
        arena_free(arena);
}

/* --- the end ---- */

void
applier_free(struct applier *applier)
{
    check(!applier->is_stopping);
    applier->is_stopping = true;
    fiber_cond_broadcast(&applier->room);
    size_t cursor = 0;
    void *value;
    while (map_next(applier->queues, &cursor, NULL, &value))
        timer_stop(&((struct queue *)value)->timer);
    list_each(node, &applier->workers)
        fiber_cancel(list_entry(node, struct apply_worker, node)->fiber);
    latch_wait(&applier->open);
    applier_check(applier);
    cursor = 0;
    while (map_next(applier->queues, &cursor, NULL, &value)) {
        struct queue *queue = value;
        list_each_safe(node, &queue->items)
            drop_item(applier, list_entry(node, struct item, queue));
        list_remove(&queue->node);
        free_queue(queue);
    }
    check(applier->item_count == 0 && list_is_empty(&applier->ready));
    check(map_count(applier->queues) == 0);
    map_free(applier->queues);
    memory_free(applier->streams);
    memory_free(applier);
}
