/* work.c - the part of a backlog that waits for the store: looking, taking, reading, closing. See
 * inside.h.
 *
 * A list that wants something of the kind is queued for a worker, one of a few fibers per loop. The
 * worker asks the list for its next step until there is none. A partition is taken when there is
 * something to store, or something stored to hand out; a list that never overflows writes nothing.
 * When the store fails a list its writer is closed, what was read is forgotten, and after a pause
 * all begins again with looking: tasks that were not stored have their outbox rows still. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "store/key.h"

#define TURN_STEPS 8 /* of a list, before another has its turn */

/* --- what is to be done --------------------------------------------------------------------------
 */

enum work_step {
    STEP_NONE,
    STEP_CLOSE,
    STEP_READ_STATE,
    STEP_TAKE,
    STEP_RECORD,
    STEP_READ,
    STEP_FLUSH,
};

static int64_t
page_size(const struct task_list *list)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    int64_t size = dynamic_integer(dynamic, DYNAMIC_TASKS_READ_BATCH, &filter);
    return size < 1 ? 1 : size;
}

/* Are stored tasks wanted in memory? */
static bool
wants_rows(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    if (backlog->read >= backlog->written || backlog->is_putting_away)
        return false;
    return list_is_polled(list) && (int64_t)list->waiting_count * 4 < page_size(list);
}

static enum work_step
next_step(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    if (list_is_sticky(list) || timer_is_pending(&backlog->retry) || list->loop_lists->is_closing)
        return STEP_NONE;
    if (backlog->is_failed || list->is_unloading)
        return STEP_CLOSE;
    if (!backlog->is_loaded)
        return STEP_READ_STATE;
    bool has_pending = !list_is_empty(&backlog->pending);
    if (backlog->writer == NULL)
        return has_pending || wants_rows(list) || root_wants_record(list) ? STEP_TAKE : STEP_NONE;
    if (root_wants_record(list))
        return STEP_RECORD;
    if (wants_rows(list))
        return STEP_READ;
    bool is_stuck = has_pending && list_is_empty(&backlog->in_flight);
    return is_stuck && !writer_has_room(backlog->writer) ? STEP_FLUSH : STEP_NONE;
}

/* --- steps: all yield ----------------------------------------------------------------------------
 */

/* The highest number that is stored, `floor` if there is none above it; with the guard of that
 * moment. */
static struct error *
read_highest(struct task_list *list, int64_t floor, struct arena *arena, int64_t *highest,
             uint64_t *guard)
{
    struct scan scan = {.partition = record_partition(list),
                        .kind = ROW_TASK,
                        .from = record_task_key(floor + 1, arena),
                        .rows_max = 1,
                        .is_backward = true,
                        .wants_guard = true};
    struct rows rows;
    struct error *err = store_scan(list->loop_lists->matching->options.store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    uint64_t number = (uint64_t)floor;
    if (rows.count > 0 && !key_take_u64(&rows.row[0].key, &number))
        return error_new(arena, ERR_CORRUPT, "the key of a stored task is not a number");
    *highest = (int64_t)number;
    *guard = rows.guard;
    return NULL;
}

struct stored_state {
    uint64_t guard;
    int64_t acked, rows, written;
    const STORED(TaskListRecord) *record; /* NULL: none */
};

/* One try. *is_torn: another host took the list between the reads. */
static struct error *
read_once(struct task_list *list, struct arena *arena, struct stored_state *stored_state,
          bool *is_torn)
{
    *stored_state = (struct stored_state){0};
    *is_torn = false;
    struct store *store = list->loop_lists->matching->options.store;
    bool found;
    struct slice value;
    struct error *err =
        store_get_guarded(store, record_partition(list), ROW_TASK_LIST, record_list_key(arena),
                          arena, &found, &value, &stored_state->guard);
    if (err != NULL || !found)
        return err;
    STORED(TaskListRecord) *record = NULL;
    err = record_read_list(value, arena, &record);
    if (err != NULL)
        return err;
    stored_state->record = record;
    stored_state->acked = (int64_t)record->ack_level;
    stored_state->rows = record->backlog;
    uint64_t guard = 0;
    err = read_highest(list, stored_state->acked, arena, &stored_state->written, &guard);
    *is_torn = err == NULL && guard != stored_state->guard;
    return err;
}

static struct error *
read_store(struct task_list *list, struct arena *arena, struct stored_state *stored_state)
{
    bool is_torn;
    struct error *err;
    do {
        err = read_once(list, arena, stored_state, &is_torn);
    } while (err == NULL && is_torn);
    return err;
}

/* What the store holds is what this list has from now on. */
static void
adopt(struct task_list *list, const struct stored_state *stored_state)
{
    struct backlog *backlog = &list->backlog;
    int64_t first =
        (int64_t)stored_state->guard * TASK_BLOCK + 1; /* of the range that we would take */
    check(backlog->writer == NULL && list_is_empty(&backlog->outstanding));
    backlog->guard = stored_state->guard;
    if (backlog->range < stored_state->guard + 1) {
        backlog->range = stored_state->guard + 1;
        backlog->number_next = first;
    }
    backlog->own_from = first;
    backlog->acked = backlog->read = backlog->deleted = stored_state->acked;
    backlog->written = stored_state->written;
    backlog->rows = stored_state->written > stored_state->acked ? stored_state->rows : 0;
    backlog->is_loaded = true;
    backlog->retry_delay = 0;
    root_adopt(list, stored_state->record);
    backlog_recall(list);
}

static struct error *
step_read_state(struct task_list *list, struct arena *arena)
{
    struct backlog *backlog = &list->backlog;
    struct stored_state stored_state = {0};
    struct error *err = read_store(list, arena, &stored_state);
    list->looked = clock_monotonic();
    if (err != NULL)
        return err;
    check(stored_state.acked <= stored_state.written);
    if (backlog->writer == NULL)
        adopt(list, &stored_state);
    else if (stored_state.guard > writer_guard(backlog->writer))
        backlog->is_failed = true; /* another host has it */
    else
        backlog->is_loaded = true;
    return NULL;
}

static struct error *
step_take(struct task_list *list, struct arena *arena)
{
    struct backlog *backlog = &list->backlog;
    struct store *store = list->loop_lists->matching->options.store;
    check(backlog->writer == NULL && backlog->range > backlog->guard);
    struct batch *batch = batch_new(arena, record_partition(list), backlog->range);
    batch_put(batch, ROW_TASK_LIST, record_list_key(arena), record_list(list, arena));
    struct writer *writer = writer_open(store, batch->partition, backlog->guard, SPILL_BATCHES_MAX);
    backlog->writer = writer;
    writer_on_durable(writer, backlog_on_durable, list);
    struct record_state written = root_record_state(list);
    ticket_t ticket = writer_submit(writer, batch);
    probe("task_list_taken");
    struct error *err = writer_wait(writer, ticket, arena);
    if (err == NULL)
        root_recorded(list, written);
    return err;
}

/* What the first partition keeps for all of them. */
static struct error *
step_record(struct task_list *list, struct arena *arena)
{
    struct backlog *backlog = &list->backlog;
    if (!writer_has_room(backlog->writer))
        return error_new(arena, ERR_BUSY, "too much waits at the store");
    struct batch *batch = batch_new(arena, record_partition(list), backlog->range);
    batch_put(batch, ROW_TASK_LIST, record_list_key(arena), record_list(list, arena));
    struct record_state written = root_record_state(list);
    struct error *err = writer_wait(backlog->writer, writer_submit(backlog->writer, batch), arena);
    if (err == NULL)
        root_recorded(list, written);
    return err;
}

static void
take_row(struct task_list *list, const struct row *row, struct arena *arena)
{
    struct slice key = row->key;
    uint64_t number = 0;
    struct offer *offer = NULL;
    struct error *err = record_read_task(list, row, arena, &offer);
    if (err != NULL) {
        log_fail(list->loop_lists->matching->options.log, "a stored task is not readable",
                 log_text("task-list", list->name), log_error(err));
        if (key_take_u64(&key, &number) && (int64_t)number > list->backlog.read) {
            backlog_note_read(list, (int64_t)number, NULL);
            backlog_finish(list, (int64_t)number);
        }
        return;
    }
    bool is_expired = offer_is_expired(offer, clock_wall());
    backlog_note_read(list, offer->task->number, is_expired ? NULL : offer);
    if (is_expired)
        list_expire(list, offer);
    else
        list_add_waiting(list, offer);
}

static struct error *
step_read(struct task_list *list, struct arena *arena)
{
    struct backlog *backlog = &list->backlog;
    int64_t written = backlog->written;
    check(backlog->writer != NULL && backlog->read < written);
    struct scan scan = {.partition = record_partition(list),
                        .kind = ROW_TASK,
                        .from = record_task_key(backlog->read + 1, arena),
                        .to = record_task_key(written + 1, arena),
                        .rows_max = (size_t)page_size(list)};
    struct rows rows;
    struct error *err = store_scan(list->loop_lists->matching->options.store, &scan, arena, &rows);
    if (err != NULL || backlog->is_failed)
        return err;
    for (size_t i = 0; i < rows.count; i++)
        take_row(list, &rows.row[i], arena);
    if (!rows.has_more)
        backlog_read_up_to(list, written);
    probe("task_page_read");
    return NULL;
}

static void
close_writer(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    if (backlog->writer != NULL)
        writer_close(backlog->writer);
    backlog->writer = NULL;
}

static struct error *
step_close(struct task_list *list, struct arena *arena)
{
    const struct error *failure =
        list->backlog.writer == NULL ? NULL : writer_failure(list->backlog.writer);
    struct error *err = error_copy(arena, failure);
    bool was_unloading = list->is_unloading && !list->backlog.is_failed;
    close_writer(list);
    backlog_recover(list);
    list->is_unloading = false;
    if (was_unloading && list_is_unused(list))
        list->is_unloading = true; /* the worker frees it */
    return err;
}

/* --- turns: no domain keeps the workers busy alone -----------------------------------------------
 */

void
work_init(struct loop_lists *loop_lists)
{
    list_init(&loop_lists->work);
    loop_lists->turns = map_new();
}

void
work_free(struct loop_lists *loop_lists)
{
    check(list_is_empty(&loop_lists->work) && map_count(loop_lists->turns) == 0);
    map_free(loop_lists->turns);
}

static void
turn_end(struct loop_lists *loop_lists, struct turn *turn)
{
    list_remove(&turn->node);
    void *removed = map_remove(loop_lists->turns, slice_text(turn->domain_id));
    check(removed == turn && list_is_empty(&turn->lists));
    memory_free(turn);
}

static void
work_push(struct task_list *list)
{
    struct loop_lists *loop_lists = list->loop_lists;
    struct slice key = slice_text(list->domain_id);
    struct turn *turn = map_get(loop_lists->turns, key);
    if (turn == NULL) {
        turn = memory_alloc(sizeof *turn + key.length + 1);
        memcpy(turn->domain_id, list->domain_id, key.length + 1);
        list_init(&turn->lists);
        list_push_back(&loop_lists->work, &turn->node);
        map_put(loop_lists->turns, key, turn);
    }
    list_push_back(&turn->lists, &list->backlog.work);
}

void
work_forget(struct task_list *list)
{
    list_remove(&list->backlog.work);
    struct turn *turn = map_get(list->loop_lists->turns, slice_text(list->domain_id));
    if (turn != NULL && list_is_empty(&turn->lists))
        turn_end(list->loop_lists, turn);
}

/* The next list of the next domain; NULL: none. */
static struct task_list *
work_next(struct loop_lists *loop_lists)
{
    if (list_is_empty(&loop_lists->work))
        return NULL;
    struct turn *turn = list_entry(loop_lists->work.next, struct turn, node);
    struct list *node = list_pop_front(&turn->lists);
    check(node != NULL);
    if (list_is_empty(&turn->lists)) {
        turn_end(loop_lists, turn);
    } else {
        list_remove(&turn->node);
        list_push_back(&loop_lists->work, &turn->node);
    }
    return container_of(node, struct task_list, backlog.work);
}

/* --- workers -------------------------------------------------------------------------------------
 */

static void
plan_retry(struct task_list *list, const struct error *err)
{
    struct backlog *backlog = &list->backlog;
    int64_t delay = backlog->retry_delay == 0 ? RETRY_FIRST : 2 * backlog->retry_delay;
    backlog->retry_delay = delay < RETRY_MAX ? delay : RETRY_MAX;
    delay = backlog->retry_delay / 2 + (int64_t)entropy_below((uint64_t)backlog->retry_delay);
    timer_start(&backlog->retry, clock_monotonic() + delay);
    log_warn(list->loop_lists->matching->options.log, "a task list waits for the store",
             log_text("task-list", list->name), log_error(err));
}

static struct error *
do_step(struct task_list *list, enum work_step work_step, struct arena *arena)
{
    switch (work_step) {
    case STEP_CLOSE:
        return step_close(list, arena);
    case STEP_READ_STATE:
        return step_read_state(list, arena);
    case STEP_TAKE:
        return step_take(list, arena);
    case STEP_RECORD:
        return step_record(list, arena);
    case STEP_READ:
        return step_read(list, arena);
    case STEP_FLUSH:
        return error_new(arena, ERR_BUSY, "too much waits at the store");
    case STEP_NONE:
        break;
    }
    unreachable("a step of a task list");
}

/* Works until there is nothing to do, or it is another's turn; true: the list is to be freed. */
static bool
work_on(struct task_list *list, struct arena *arena)
{
    enum work_step work_step;
    for (int i = 0; i < TURN_STEPS && (work_step = next_step(list)) != STEP_NONE; i++) {
        struct error *err = do_step(list, work_step, arena);
        if (list->is_unloading && list->backlog.writer == NULL)
            return true;
        if (err != NULL && !list->backlog.is_failed) /* first it is closed */
            plan_retry(list, err);
        fiber_cond_broadcast(&list->backlog.loaded);
        list_dispatch(list);
        loop_defer(&list->backlog.flush);
        arena_reset(arena);
    }
    return false;
}

static void
worker_fiber(void *argument)
{
    struct loop_lists *loop_lists = argument;
    struct arena *arena = arena_new(0);
    struct task_list *list;
    while ((list = work_next(loop_lists)) != NULL) {
        check(list->backlog.is_queued && !list->backlog.is_worked);
        list->backlog.is_queued = false;
        list->backlog.is_worked = true;
        bool is_free = work_on(list, arena);
        list->backlog.is_worked = false;
        arena_reset(arena);
        if (is_free) {
            probe("task_list_unloaded");
            list_free(list);
        } else {
            backlog_kick(list); /* what came up while it could not be queued */
        }
    }
    arena_free(arena);
    latch_done(&loop_lists->workers);
}

void
backlog_kick(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    struct loop_lists *loop_lists = list->loop_lists;
    if (backlog->is_queued || backlog->is_worked || next_step(list) == STEP_NONE)
        return;
    backlog->is_queued = true;
    work_push(list);
    if (loop_lists->workers.open >= WORKERS_MAX)
        return;
    latch_add(&loop_lists->workers, 1);
    fiber_start("task list", worker_fiber, loop_lists);
}

static struct task_list *
next_list(const struct loop_lists *loop_lists, size_t *cursor)
{
    void *list = NULL;
    return map_next(loop_lists->lists, cursor, NULL, &list) ? list : NULL;
}

void
loop_lists_stop(struct loop_lists *loop_lists)
{
    struct task_list *list;
    size_t cursor = 0;
    while ((list = next_list(loop_lists, &cursor)) != NULL)
        backlog_delete_done(list);
    loop_lists->is_closing = true;
    loop_lists_serve_stop(loop_lists);
    latch_wait(&loop_lists->workers);
    cursor = 0;
    while ((list = next_list(loop_lists, &cursor)) != NULL) {
        loop_undefer(&list->backlog.flush);
        close_writer(list);
    }
}
