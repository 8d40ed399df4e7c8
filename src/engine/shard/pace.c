/* pace.c - the limits of workflow ids: calls that are refused, tasks that wait for their turn.
 *
 * Tasks of an id that had too many stand in a queue of their own, in the order of their rows, and
 * go one by one as the bucket of the id fills; those that come meanwhile stand behind them. Other
 * ids pass by. Nothing is written, and nothing can be lost: a task that waits is a row of the
 * outbox like one that nobody took. Of a long queue only the head is in memory, the others are
 * parked (park.c) and read when it is their turn soon. */
#include "base/buffer.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"

#define FEED_MAX   32 /* tasks that are read at a time for one queue */
#define READ_DELAY (500 * NS_PER_MS)

struct pace_queue {
    struct priority_node turn;
    struct list hungry; /* in pace.hungry, and then not among the turns */
    struct list tasks;  /* struct transfer; may be empty: all of them were dropped */
    /* Rows behind them that are parked, from `behind_from` on; some may be gone. */
    vector_of(uint64_t) behind;
    size_t behind_from;
    char key[]; /* domain id, NUL, workflow id, NUL */
};

void
pace_init(struct tenure *tenure)
{
    struct pace *pace = &tenure->outbox.pace;
    pace->queues = map_new();
    list_init(&pace->hungry);
    pace->tick_time = NEVER;
}

static void
queue_free(struct pace_queue *queue)
{
    vector_free(&queue->behind);
    memory_free(queue);
}

/* The tasks are the outbox's. */
void
pace_free(struct tenure *tenure)
{
    struct pace *pace = &tenure->outbox.pace;
    size_t cursor = 0;
    void *value;
    priority_free(&pace->turns); /* before: it lets go of them */
    while (map_next(pace->queues, &cursor, NULL, &value))
        queue_free(value);
    map_free(pace->queues);
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
    if (outbox->pace.tick_time != NEVER)
        return;
    outbox->pace.tick_time = clock_monotonic() + NS_PER_S;
    fiber_cond_signal(&outbox->changed);
}

/* --- calls ---- */

struct error *
shard_admit(struct shard *shard, const struct run_key *key, struct arena *arena)
{
    struct limits_key limited;
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
    return limits_hottest(shard->limits, domain_id, clock_monotonic(), count_max, arena, rates);
}

/* --- tasks ---- */

static struct slice
queue_key(const struct pace_queue *queue)
{
    size_t domain = strlen(queue->key) + 1;
    return slice_of(queue->key, domain + strlen(queue->key + domain));
}

/* The queue of an id; NULL: its tasks do not wait. Mostly nobody's do. */
static struct pace_queue *
queue_find(const struct pace *pace, const char *domain_id, const char *workflow_id)
{
    if (map_count(pace->queues) == 0)
        return NULL;
    struct buffer key = {0};
    buffer_append(&key, slice_of(domain_id, strlen(domain_id) + 1));
    buffer_append_text(&key, workflow_id);
    struct pace_queue *queue = map_get(pace->queues, buffer_slice(&key));
    buffer_free(&key);
    return queue;
}

static void
queue_wait(struct pace *pace, struct pace_queue *queue, int64_t time)
{
    queue->turn.key = time;
    queue->turn.sequence = ++pace->sequence;
    priority_push(&pace->turns, &queue->turn);
}

static bool
queue_has_behind(const struct pace_queue *queue)
{
    return queue->behind_from < queue->behind.count;
}

/* Behind one that is parked it is parked too, so that it does not overtake. */
static void
queue_push(struct outbox *outbox, struct pace_queue *queue, struct transfer *transfer)
{
    uint64_t row = transfer->task.row;
    if (queue_has_behind(queue)) {
        transfer_park(outbox, transfer, PARKED_FOR_TURN);
    } else if (transfer_rest(outbox, transfer, PARKED_FOR_TURN)) {
        transfer->state = TRANSFER_DELAYED;
        list_push_back(&queue->tasks, &transfer->node);
        return;
    }
    vector_push(&queue->behind, row);
}

static void
queue_open(struct tenure *tenure, struct transfer *transfer, int64_t time)
{
    struct pace *pace = &tenure->outbox.pace;
    const struct task *task = &transfer->task;
    size_t domain_size = strlen(task->run_domain_id) + 1, id_size = strlen(task->workflow_id) + 1;
    struct pace_queue *queue = memory_zalloc(1, sizeof *queue + domain_size + id_size);
    memcpy(queue->key, task->run_domain_id, domain_size);
    memcpy(queue->key + domain_size, task->workflow_id, id_size);
    list_init(&queue->tasks);
    list_init(&queue->hungry);
    map_put(pace->queues, queue_key(queue), queue);
    queue_push(&tenure->outbox, queue, transfer);
    queue_wait(pace, queue, time);
    fiber_cond_signal(&tenure->outbox.changed);
}

bool
pace_holds(struct tenure *tenure, struct transfer *transfer)
{
    struct pace *pace = &tenure->outbox.pace;
    struct id_limits *limits = tenure->shard->limits;
    const struct task *task = &transfer->task;
    struct limits_key limited;
    if (!limits_key_of(tenure->shard, task->run_domain_id, task->workflow_id, &limited))
        return false;
    start_ticking(tenure);
    int64_t now = clock_monotonic(), wait = 0;
    struct pace_queue *queue = queue_find(pace, task->run_domain_id, task->workflow_id);
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
pace_take(void *context, const char *domain_id, const char *workflow_id)
{
    struct tenure *tenure = context;
    struct limits_key limited;
    if (!limits_key_of(tenure->shard, domain_id, workflow_id, &limited))
        return true;
    start_ticking(tenure);
    bool is_free =
        queue_find(&tenure->outbox.pace, domain_id, workflow_id) == NULL &&
        limits_take_free(tenure->shard->limits, LIMITS_INTERNAL, &limited, clock_monotonic());
    if (!is_free)
        mark("pace_no_turn");
    return is_free;
}

/* Lets as many go as there are tokens; returns when the next one may, 0: none is left in memory. */
static int64_t
queue_let_go(struct tenure *tenure, struct pace_queue *queue, int64_t now)
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
        transfer_stir(&tenure->outbox, transfer);
        transfer->state = TRANSFER_WAITING;
        transfer->is_paced = true;
        list_push_back(&tenure->outbox.waiting, node);
    }
    return 0;
}

static void
tick(struct tenure *tenure, int64_t now)
{
    struct pace *pace = &tenure->outbox.pace;
    struct id_limits *limits = tenure->shard->limits;
    limits_tick(limits, now);
    pace->tick_time = limits_is_idle(limits) ? NEVER : now + NS_PER_S;
}

void
pace_wake(struct tenure *tenure)
{
    struct pace *pace = &tenure->outbox.pace;
    int64_t now = clock_monotonic();
    struct priority_node *first;
    while ((first = priority_first(&pace->turns)) != NULL && first->key <= now) {
        struct pace_queue *queue =
            container_of(priority_pop(&pace->turns), struct pace_queue, turn);
        int64_t next = queue_let_go(tenure, queue, now);
        if (next > 0) {
            queue_wait(pace, queue, next);
            continue;
        }
        if (queue_has_behind(queue)) {
            list_push_back(&pace->hungry, &queue->hungry);
            continue;
        }
        check(map_remove(pace->queues, queue_key(queue)) == queue);
        queue_free(queue);
    }
    if (pace->tick_time <= now)
        tick(tenure, now);
}

int64_t
pace_next_time(const struct pace *pace)
{
    if (!list_is_empty(&pace->hungry))
        return 0;
    const struct priority_node *first = priority_first(&pace->turns);
    return first != NULL && first->key < pace->tick_time ? first->key : pace->tick_time;
}

/* --- tasks in the store only ---- */

static void
queue_skip(struct pace_queue *queue)
{
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
queue_read(struct tenure *tenure, struct pace_queue *queue, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    const struct shard *shard = tenure->shard;
    uint64_t row = queue->behind.items[queue->behind_from];
    bool found = false;
    struct slice value;
    struct error *err = NULL;
    struct transfer *transfer;
    if (parking_has(outbox, row, PARKED_FOR_TURN))
        err = store_get(shard->options.store, shard->partition, ROW_TRANSFER,
                        transfer_key(row, arena), arena, &found, &value);
    if (err == NULL && found && parking_has(outbox, row, PARKED_FOR_TURN)) {
        err = transfer_read(tenure, row, value, arena, &transfer);
        if (err == NULL) {
            parking_take(outbox, row);
            outbox_return(tenure, transfer, TRANSFER_DELAYED);
            list_push_back(&queue->tasks, &transfer->node);
        }
    }
    if (err == NULL)
        queue_skip(queue); /* not before: who comes meanwhile must not overtake it */
    return err;
}

void
pace_feed(struct tenure *tenure, struct arena *arena)
{
    struct pace *pace = &tenure->outbox.pace;
    while (!list_is_empty(&pace->hungry) && !tenure->is_over) {
        struct pace_queue *queue = list_entry(pace->hungry.next, struct pace_queue, hungry);
        struct error *err = NULL;
        for (int i = 0; i < FEED_MAX && err == NULL && queue_has_behind(queue); i++)
            err = queue_read(tenure, queue, arena);
        mark("paced_tasks_read");
        if (err != NULL && !tenure->is_over)
            log_warn(tenure->shard->options.log, "tasks that wait could not be read",
                     log_error(err));
        list_remove(&queue->hungry);
        queue_wait(pace, queue, clock_monotonic() + (err == NULL ? 0 : READ_DELAY));
    }
}
