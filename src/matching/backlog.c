/* backlog.c - the tasks of a list that are not in memory: writing them, and deleting them when
 * done. See inside.h.
 *
 * Offers to be stored gather until the end of the tick and go to the store in batches; each is
 * told to the owner of its outbox row once it is durable. Rows are deleted in ranges, up to the
 * first that is not done: each batch that deletes, and no other, moves the acknowledged level in
 * the store, where the next owner begins. A row that was handed out and whose outcome is not known
 * is still in the store: a crash cannot lose it, it can only be offered twice. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/probe.h"
#include "matching/inside.h"

static void
flush_deferred(struct deferred *deferred)
{
    struct backlog *backlog = container_of(deferred, struct backlog, flush);
    backlog_flush(container_of(backlog, struct task_list, backlog), false);
}

static void
retry_over(struct timer *timer)
{
    struct backlog *backlog = container_of(timer, struct backlog, retry);
    backlog_flush(container_of(backlog, struct task_list, backlog), false);
}

void
backlog_init(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    list_init(&backlog->pending);
    list_init(&backlog->in_flight);
    list_init(&backlog->outstanding);
    list_init(&backlog->work);
    backlog->by_number = map64_new();
    backlog->range = 1;
    backlog->number_next = backlog->own_from = 1;
    backlog->flush = (struct deferred)DEFERRED_INIT(backlog->flush, flush_deferred);
    timer_init(&backlog->retry, retry_over);
    fiber_cond_init(&backlog->loaded);
}

void
backlog_free(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    check(backlog->writer == NULL && !backlog->is_worked);
    check(list_is_empty(&backlog->pending) && list_is_empty(&backlog->in_flight));
    work_forget(list);
    loop_undefer(&backlog->flush);
    timer_stop(&backlog->retry);
    struct list *node;
    while ((node = list_pop_front(&backlog->outstanding)) != NULL)
        memory_free(list_entry(node, struct outstanding, node));
    map64_free(backlog->by_number);
}

bool
backlog_is_behind(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return !backlog->is_loaded || backlog->read < backlog->written ||
           !list_is_empty(&backlog->pending) || !list_is_empty(&backlog->in_flight);
}

int64_t
backlog_count(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    int64_t unread = backlog->rows > backlog->open ? backlog->rows - backlog->open : 0;
    return (int64_t)(list->waiting_count + backlog->pending_count) + unread;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static int64_t
next_number(struct backlog *backlog)
{
    int64_t number = backlog->number_next++;
    if (number > (int64_t)backlog->range * TASK_BLOCK)
        backlog->range++;
    return number;
}

void
backlog_number(struct task_list *list, struct offer *offer)
{
    struct backlog *backlog = &list->backlog;
    if (offer->task->number == 0)
        offer->task->number = next_number(backlog);
    if (offer->task->number > backlog->number_in_memory)
        backlog->number_in_memory = offer->task->number;
}

/* --- writing ---------------------------------------------------------------------------------- */

void
backlog_push(struct task_list *list, struct offer *offer)
{
    struct backlog *backlog = &list->backlog;
    check(!list_is_sticky(list) && list_is_empty(&offer->node));
    list_push_back(&backlog->pending, &offer->node);
    backlog->pending_count++;
    loop_defer(&backlog->flush);
    backlog_kick(list);
}

void
backlog_recall(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    if (!backlog->is_loaded || backlog->read < backlog->written ||
        !list_is_empty(&backlog->in_flight) || list_is_empty(&backlog->pending) ||
        !dynamic_flag(dynamic, DYNAMIC_SYNC_MATCH, &filter))
        return;
    size_t bound = list_bound(list);
    while (list->waiting_count < bound && !list_is_empty(&backlog->pending)) {
        struct list *node = list_pop_front(&backlog->pending);
        backlog->pending_count--;
        list_add_waiting(list, list_entry(node, struct offer, node));
    }
    if (list_is_empty(&backlog->pending))
        backlog->is_putting_away = false;
}

/* A number under which nothing was stored yet, that no deletion covers. */
static void
make_storable(struct backlog *backlog, struct task *task)
{
    if (task->number < backlog->own_from || task->number <= backlog->acked)
        task->number = next_number(backlog);
}

static void
submit(struct task_list *list, struct batch *batch)
{
    struct backlog *backlog = &list->backlog;
    check(backlog->range >= writer_guard(backlog->writer));
    batch->guard_next = backlog->range;
    batch_put(batch, ROW_TASK_LIST, record_list_key(batch->arena), record_list(list, batch->arena));
    writer_submit(backlog->writer, batch);
}

static void
submit_pending(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct batch *batch = batch_new(arena, record_partition(list), backlog->range);
    for (int i = 0; i < SPILL_BATCH_TASKS && !list_is_empty(&backlog->pending); i++) {
        struct offer *offer = list_entry(list_pop_front(&backlog->pending), struct offer, node);
        backlog->pending_count--;
        make_storable(backlog, offer->task);
        batch_put(batch, ROW_TASK, record_task_key(offer->task->number, arena),
                  record_task(offer->task, arena));
        offer->ticket = writer_newest(backlog->writer) + 1;
        list_push_back(&backlog->in_flight, &offer->node);
        backlog->rows++;
    }
    submit(list, batch);
}

static void
submit_deletion(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    check(backlog->deleted < backlog->acked);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct batch *batch = batch_new(arena, record_partition(list), backlog->range);
    batch_delete_range(batch, ROW_TASK, record_task_key(backlog->deleted + 1, arena),
                       record_task_key(backlog->acked + 1, arena));
    backlog->deleted = backlog->acked;
    backlog->deletable = 0;
    submit(list, batch);
    probe("tasks_deleted");
}

static bool
is_deletion_due(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    if (backlog->acked <= backlog->deleted)
        return false;
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    int64_t portion = dynamic_integer(dynamic, DYNAMIC_TASK_DELETE_BATCH, &filter);
    bool is_drained = backlog->acked >= backlog->written;
    return is_drained || (int64_t)backlog->deletable >= portion;
}

static bool
can_submit(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    if (backlog->writer == NULL || list->is_unloading || list->loop_lists->is_closing)
        return false;
    return backlog->is_loaded && !backlog->is_failed && writer_has_room(backlog->writer);
}

void
backlog_delete_done(struct task_list *list)
{
    if (list->backlog.acked > list->backlog.deleted && can_submit(list))
        submit_deletion(list);
}

void
backlog_flush(struct task_list *list, bool is_last)
{
    struct backlog *backlog = &list->backlog;
    while (!list_is_empty(&backlog->pending) && can_submit(list))
        submit_pending(list);
    if (is_last || is_deletion_due(list))
        backlog_delete_done(list);
    backlog_check(list);
    backlog_kick(list);
}

/* The offer's row is durable: its list no longer needs it in memory. */
static void
offer_stored(struct task_list *list, struct offer *offer)
{
    struct backlog *backlog = &list->backlog;
    list_remove(&offer->node);
    list_forget(list, offer);
    if (offer->task->number > backlog->written)
        backlog->written = offer->task->number;
    matching_count(list->loop_lists->matching->counters.stored, 1);
    offer_row_done(offer);
    offer_free(offer);
}

void
backlog_on_durable(void *context, ticket_t durable, const struct error *failure)
{
    struct task_list *list = context;
    struct backlog *backlog = &list->backlog;
    if (failure != NULL) {
        backlog->is_failed = true;
        backlog_kick(list);
        return;
    }
    list_each_safe(node, &backlog->in_flight) {
        struct offer *offer = list_entry(node, struct offer, node);
        if (offer->ticket > durable)
            break;
        offer_stored(list, offer);
    }
    if (list_is_empty(&backlog->in_flight) && list_is_empty(&backlog->pending))
        backlog->is_putting_away = false;
    backlog_flush(list, false);
    member_changed(list); /* they wait in the store now, perhaps for polls of other partitions */
    task_list_check(list);
}
