/* throttle.c - the limits of workflow ids: calls that are refused, tasks that wait for their turn.
 *
 * Tasks of an id that had too many stand in a queue of their own, in the order of their rows, and
 * go one by one as the bucket of the id fills; those that come meanwhile stand behind them. Other
 * ids pass by. Nothing is written, and nothing can be lost: a task that waits is a row of the
 * outbox like one that nobody took. Of a long queue only the head is in memory, the others are
 * parked (deferred.c) and read when it is their turn soon. */
#include "engine/outbox/throttle.h"
#include "base/buffer.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/outbox/deferred.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define READ_MAX   32 /* tasks that are read at a time for one queue */
#define READ_DELAY (500 * NS_PER_MS)

struct throttle_queue {
    struct priority_node turn;
    struct list unread; /* in throttle.unread, and then not among the turns */
    struct list tasks;  /* struct transfer; may be empty: all of them were dropped */
    /* Rows behind them that are deferred, from `behind_from` on; some may be gone. */
    vector_of(uint64_t) behind;
    size_t behind_from;
    char key[]; /* domain id, NUL, workflow id, NUL */
};

void
throttle_init(struct tenure *tenure)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    throttle->queues = map_new();
    list_init(&throttle->unread);
    throttle->tick_time = NEVER;
}

void
throttle_check(const struct throttle *throttle)
{
    size_t cursor = 0;
    void *value;
    check(throttle->turns.count <= map_count(throttle->queues));
    if (!CHECK_DEEPLY || map_count(throttle->queues) > CHECK_ROWS_MAX / 8)
        return;
    while (map_next(throttle->queues, &cursor, NULL, &value)) {
        const struct throttle_queue *queue = value;
        check(queue->behind_from <= queue->behind.count);
        /* It waits for its turn, or for its next tasks to be read. */
        check(priority_is_queued(&queue->turn) == list_is_empty(&queue->unread));
        list_each(node, &queue->tasks)
            check(list_entry(node, struct transfer, node)->state == TRANSFER_DELAYED);
    }
}

static void
queue_free(struct throttle_queue *queue)
{
    vector_free(&queue->behind);
    memory_free(queue);
}

/* The tasks are the outbox's. */
void
throttle_free(struct tenure *tenure)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    size_t cursor = 0;
    void *value;
    priority_free(&throttle->turns); /* before: it lets go of them */
    while (map_next(throttle->queues, &cursor, NULL, &value))
        queue_free(value);
    map_free(throttle->queues);
}

/* False: the domain is gone, or not known here yet; then nobody is held off. */
static bool
limits_key_of(const struct shard *shard, const char *domain_id, const char *workflow_id,
              struct limits_key *key)
{
    const struct domain *domain = domains_find_id(shard->options.domains, domain_id);
    if (domain == NULL)
        return false;
    *key = (struct limits_key){domain_id, domain->name, workflow_id};
    return true;
}

/* Something was counted: the limits want to know when time has passed. */
static void
start_ticking(struct tenure *tenure)
{
    struct outbox *outbox = &tenure->outbox;
    if (outbox->throttle.tick_time != NEVER)
        return;
    outbox->throttle.tick_time = clock_monotonic() + NS_PER_S;
    fiber_cond_signal(&outbox->changed);
}

/* --- calls ---- */

struct error *
shard_admit(struct shard *shard, const struct run_key *key, struct arena *arena)
{
    struct limits_key limited;
    shard_check(shard);
    if (!limits_key_of(shard, key->domain_id, key->workflow_id, &limited))
        return NULL;
    int64_t wait = limits_take(shard->limits, LIMITS_EXTERNAL, &limited, clock_monotonic());
    if (shard->tenure != NULL)
        start_ticking(shard->tenure);
    if (wait == 0)
        return NULL;
    return errors_service_busy(arena, ERRORS_BUSY_WORKFLOW_ID,
                               "Too many requests for the workflow ID");
}

size_t
shard_hottest(const struct shard *shard, const char *domain_id, size_t count_max,
              struct arena *arena, struct limits_rate **rates)
{
    shard_check(shard);
    return limits_hottest(shard->limits, domain_id, clock_monotonic(), count_max, arena, rates);
}

/* --- tasks ---- */

static struct slice
queue_key(const struct throttle_queue *queue)
{
    size_t domain = strlen(queue->key) + 1;
    return slice_of(queue->key, domain + strlen(queue->key + domain));
}

/* The queue of an id; NULL: its tasks do not wait, as is usual. */
static struct throttle_queue *
queue_find(const struct throttle *throttle, const char *domain_id, const char *workflow_id)
{
    if (map_count(throttle->queues) == 0)
        return NULL;
    struct buffer key = {0};
    buffer_append(&key, slice_of(domain_id, strlen(domain_id) + 1));
    buffer_append_text(&key, workflow_id);
    struct throttle_queue *queue = map_get(throttle->queues, buffer_slice(&key));
    buffer_free(&key);
    return queue;
}

static void
queue_wait(struct throttle *throttle, struct throttle_queue *queue, int64_t time)
{
    check(!priority_is_queued(&queue->turn) && list_is_empty(&queue->unread));
    queue->turn.key = time;
    queue->turn.sequence = ++throttle->sequence;
    priority_push(&throttle->turns, &queue->turn);
}

static bool
queue_has_behind(const struct throttle_queue *queue)
{
    return queue->behind_from < queue->behind.count;
}

/* Behind one that is deferred it is deferred too, so that it does not overtake. */
static void
queue_push(struct outbox *outbox, struct throttle_queue *queue, struct transfer *transfer)
{
    uint64_t row = transfer->task.row;
    check(!transfer->is_cross_task && list_is_empty(&transfer->node));
    if (queue_has_behind(queue)) {
        transfer_defer(outbox, transfer, DEFERRED_FOR_TURN);
    } else if (transfer_begin_long_wait(outbox, transfer, DEFERRED_FOR_TURN)) {
        transfer->state = TRANSFER_DELAYED;
        list_push_back(&queue->tasks, &transfer->node);
        return;
    }
    vector_push(&queue->behind, row);
}

static void
queue_open(struct tenure *tenure, struct transfer *transfer, int64_t time)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    const struct task *task = &transfer->task;
    size_t domain_size = strlen(task->run_domain_id) + 1, id_size = strlen(task->workflow_id) + 1;
    struct throttle_queue *queue = memory_zalloc(1, sizeof *queue + domain_size + id_size);
    memcpy(queue->key, task->run_domain_id, domain_size);
    memcpy(queue->key + domain_size, task->workflow_id, id_size);
    list_init(&queue->tasks);
    list_init(&queue->unread);
    struct throttle_queue *before = map_put(throttle->queues, queue_key(queue), queue);
    check(before == NULL);
    queue_push(&tenure->outbox, queue, transfer);
    queue_wait(throttle, queue, time);
    fiber_cond_signal(&tenure->outbox.changed);
}

bool
throttle_holds(struct tenure *tenure, struct transfer *transfer)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    struct id_limits *limits = tenure->shard->limits;
    const struct task *task = &transfer->task;
    check(!transfer->is_cross_task && !transfer->had_turn);
    struct limits_key limited;
    if (!limits_key_of(tenure->shard, task->run_domain_id, task->workflow_id, &limited))
        return false;
    start_ticking(tenure);
    int64_t now = clock_monotonic(), wait = 0;
    struct throttle_queue *queue = queue_find(throttle, task->run_domain_id, task->workflow_id);
    if (queue != NULL) {
        limits_count(limits, LIMITS_INTERNAL, &limited, now);
        queue_push(&tenure->outbox, queue, transfer);
    } else {
        wait = limits_take(limits, LIMITS_INTERNAL, &limited, now);
        if (wait > 0)
            queue_open(tenure, transfer, now + wait);
    }
    return queue != NULL || wait > 0;
}

bool
throttle_take(void *context, const char *domain_id, const char *workflow_id)
{
    struct tenure *tenure = context;
    struct limits_key limited;
    if (!limits_key_of(tenure->shard, domain_id, workflow_id, &limited))
        return true;
    start_ticking(tenure);
    bool is_free =
        queue_find(&tenure->outbox.throttle, domain_id, workflow_id) == NULL &&
        limits_take_free(tenure->shard->limits, LIMITS_INTERNAL, &limited, clock_monotonic());
    if (!is_free)
        probe("throttle_no_turn");
    return is_free;
}

/* Lets as many go as there are tokens; returns when the next one may, 0: none is left in memory. */
static int64_t
queue_let_go(struct tenure *tenure, struct throttle_queue *queue, int64_t now)
{
    const char *workflow_id = queue->key + strlen(queue->key) + 1;
    while (!list_is_empty(&queue->tasks)) {
        struct limits_key limited;
        int64_t wait = 0;
        if (limits_key_of(tenure->shard, queue->key, workflow_id, &limited))
            wait = limits_take_again(tenure->shard->limits, LIMITS_INTERNAL, &limited, now);
        if (wait > 0)
            return now + wait;
        struct list *node = list_pop_front(&queue->tasks);
        struct transfer *transfer = list_entry(node, struct transfer, node);
        check(transfer->state == TRANSFER_DELAYED);
        transfer_end_long_wait(&tenure->outbox, transfer);
        transfer->state = TRANSFER_WAITING;
        transfer->had_turn = true;
        list_push_back(&tenure->outbox.waiting, node);
    }
    return 0;
}

static void
tick(struct tenure *tenure, int64_t now)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    struct id_limits *limits = tenure->shard->limits;
    limits_tick(limits, now);
    throttle->tick_time = limits_is_idle(limits) ? NEVER : now + NS_PER_S;
}

void
throttle_wake(struct tenure *tenure)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    int64_t now = clock_monotonic();
    struct priority_node *first;
    while ((first = priority_first(&throttle->turns)) != NULL && first->key <= now) {
        struct throttle_queue *queue =
            container_of(priority_pop(&throttle->turns), struct throttle_queue, turn);
        check(list_is_empty(&queue->unread));
        int64_t next = queue_let_go(tenure, queue, now);
        if (next > 0) {
            queue_wait(throttle, queue, next);
            continue;
        }
        if (queue_has_behind(queue)) {
            list_push_back(&throttle->unread, &queue->unread);
            continue;
        }
        check(map_remove(throttle->queues, queue_key(queue)) == queue);
        queue_free(queue);
    }
    if (throttle->tick_time <= now)
        tick(tenure, now);
}

int64_t
throttle_next_time(const struct throttle *throttle)
{
    if (!list_is_empty(&throttle->unread))
        return 0;
    const struct priority_node *first = priority_first(&throttle->turns);
    return first != NULL && first->key < throttle->tick_time ? first->key : throttle->tick_time;
}

/* --- tasks in the store only ---- */

static void
queue_skip(struct throttle_queue *queue)
{
    check(queue_has_behind(queue));
    queue->behind_from++;
    if (queue->behind_from < queue->behind.count / 2)
        return;
    size_t left = queue->behind.count - queue->behind_from;
    memmove(queue->behind.items, queue->behind.items + queue->behind_from,
            left * sizeof queue->behind.items[0]);
    queue->behind.count = left;
    queue->behind_from = 0;
}

/* The first one that is behind comes into memory, if it is still there. Yields. */
static struct error *
queue_read(struct tenure *tenure, struct throttle_queue *queue, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    const struct shard *shard = tenure->shard;
    check(queue_has_behind(queue) && !priority_is_queued(&queue->turn));
    uint64_t row = queue->behind.items[queue->behind_from];
    bool found = false;
    struct slice value;
    struct error *err = NULL;
    struct transfer *transfer;
    if (deferred_has(outbox, row, DEFERRED_FOR_TURN))
        err = store_get(shard->options.store, shard->partition, ROW_TRANSFER,
                        transfer_key(row, arena), arena, &found, &value);
    if (err == NULL && found && deferred_has(outbox, row, DEFERRED_FOR_TURN)) {
        err = transfer_read(tenure, row, value, arena, &transfer);
        if (err == NULL) {
            deferred_take(outbox, row);
            outbox_return(tenure, transfer, TRANSFER_DELAYED);
            list_push_back(&queue->tasks, &transfer->node);
        }
    }
    if (err == NULL)
        queue_skip(queue); /* not before: who comes meanwhile must not overtake it */
    return err;
}

void
throttle_read_next(struct tenure *tenure, struct arena *arena)
{
    struct throttle *throttle = &tenure->outbox.throttle;
    while (!list_is_empty(&throttle->unread) && !tenure->is_over) {
        struct throttle_queue *queue =
            list_entry(throttle->unread.next, struct throttle_queue, unread);
        struct error *err = NULL;
        for (int i = 0; i < READ_MAX && err == NULL && queue_has_behind(queue); i++)
            err = queue_read(tenure, queue, arena);
        probe("throttled_tasks_read");
        if (err != NULL && !tenure->is_over)
            log_warn(tenure->shard->options.log, "tasks that wait could not be read",
                     log_error(err));
        list_remove(&queue->unread);
        queue_wait(throttle, queue, clock_monotonic() + (err == NULL ? 0 : READ_DELAY));
    }
}
