/* outbox.c - rows that say what has to happen elsewhere: offered, deleted once done.
 *
 * A row that a step put is known from then on. A task is offered to the owner of its list, at once
 * if nothing keeps it, and given out when it is durable; work on other workflows is begun when its
 * row is durable. A row is deleted when a step or the list says that it is not needed any more,
 * with the next batch that is written anyway or, after a short time, with one of its own.
 *
 * Memory is bounded. Rows that find no room stay in the store only until there is (read.c). Rows
 * that wait for something other than room (their domain, their turn, another try) must not keep
 * that room from the rest: beyond a share of it they are deferred (deferred.c).
 *
 * Invariants:
 *   1. A row is in `known`, or deferred, exactly as long as it is in the store, or on its way
 * there, and below unread_from: deleting by both deletes each row once.
 *   2. Rows enter `known` in rising order: the first one is the lowest, but for those that were
 *      deferred. */
#include "engine/outbox/outbox.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/outbox/cross_task_fibers.h"
#include "engine/outbox/deferred.h"
#include "engine/outbox/throttle.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"

#define FLUSH_DELAY (50 * NS_PER_MS) /* deletes wait so long for a batch that goes anyway */
#define DELETES_MAX 512              /* then they go at once; also in one batch */

void
outbox_init(struct tenure *tenure, size_t known_max)
{
    struct outbox *outbox = &tenure->outbox;
    check(known_max >= 2); /* a half of it is read at a time */
    outbox->known = map64_new();
    outbox->known_max = known_max;
    outbox->flush_time = outbox->retry_time = NEVER;
    list_init(&outbox->undurable);
    list_init(&outbox->waiting);
    list_init(&outbox->refused);
    list_init(&outbox->held);
    cross_tasks_init(tenure);
    throttle_init(tenure);
    deferred_init(outbox);
    fiber_cond_init(&outbox->changed);
}

void
outbox_free(struct tenure *tenure)
{
    struct outbox *outbox = &tenure->outbox;
    cross_tasks_free(tenure);
    size_t cursor = 0;
    void *value;
    throttle_free(tenure);
    while (map64_next(outbox->known, &cursor, NULL, &value))
        memory_free(value);
    map64_free(outbox->known);
    deferred_free(outbox);
    vector_free(&outbox->deletes);
}

/* --- invariants ---- */

static bool
is_known(const struct outbox *outbox, const struct transfer *transfer)
{
    return map64_get(outbox->known, transfer->task.row) == transfer &&
           map64_get(outbox->deferred_rows.rows, transfer->task.row) == NULL; /* 1 */
}

/* Rows of one list have one state; returns how many there are. */
static size_t
transfer_list_check(const struct outbox *outbox, const struct list *list, enum transfer_state state)
{
    size_t count = 0;
    list_each(node, list) {
        const struct transfer *transfer = list_entry(node, struct transfer, node);
        check(transfer->state == state && is_known(outbox, transfer));
        count++;
    }
    return count;
}

/* What rows say of themselves, summed up. */
struct transfer_sums {
    size_t undurable, held, waiting_long, returned;
    uint64_t newest; /* that a step of this tenure put */
};

static void
transfer_check(const struct outbox *outbox, const struct transfer *transfer,
               struct transfer_sums *sums)
{
    bool is_task = !transfer->is_cross_task;
    check(transfer->state != TRANSFER_OFFERED || list_is_empty(&transfer->node));
    check(transfer->state != TRANSFER_DELAYED || is_task);
    check(transfer->state != TRANSFER_HELD || transfer->is_waiting_long);
    check(is_task || transfer->request_queue.length == 0 || !transfer->is_waiting_long);
    check(!is_task || !priority_is_queued(&transfer->retry));
    sums->undurable += transfer->state == TRANSFER_UNDURABLE;
    sums->held += transfer->state == TRANSFER_HELD;
    sums->waiting_long += transfer->is_waiting_long;
    sums->returned += transfer->was_deferred;
    if (transfer->ticket == 0)
        return; /* it was read */
    check(transfer->task.row > sums->newest && transfer->task.row < outbox->entered_to); /* 2 */
    sums->newest = transfer->task.row;
}

/* Walks over all rows that are known. */
static void
known_rows_check(const struct outbox *outbox)
{
    struct transfer_sums sums = {0};
    size_t cursor = 0;
    uint64_t row;
    void *value;
    while (map64_next(outbox->known, &cursor, &row, &value)) {
        const struct transfer *transfer = value;
        check(transfer->task.row == row);
        transfer_check(outbox, transfer, &sums);
    }
    check(sums.waiting_long == outbox->deferred_rows.waiting_long);
    check(sums.returned == outbox->deferred_rows.returned);
    check(transfer_list_check(outbox, &outbox->undurable, TRANSFER_UNDURABLE) == sums.undurable);
    check(transfer_list_check(outbox, &outbox->held, TRANSFER_HELD) == sums.held);
    (void)transfer_list_check(outbox, &outbox->waiting, TRANSFER_WAITING);
    (void)transfer_list_check(outbox, &outbox->refused, TRANSFER_REFUSED);
}

void
outbox_check(const struct outbox *outbox)
{
    check((outbox->flush_time == NEVER) == (outbox->deletes.count == 0));
    deferred_rows_check(outbox);
    cross_tasks_check(&outbox->cross_tasks);
    throttle_check(&outbox->throttle);
    if (CHECK_DEEPLY && map64_count(outbox->known) <= CHECK_ROWS_MAX)
        known_rows_check(outbox);
}

/* --- rows that are known ---- */

void
outbox_know(struct outbox *outbox, struct transfer *transfer, enum transfer_state state)
{
    check(state == TRANSFER_UNDURABLE || state == TRANSFER_WAITING);
    check(list_is_empty(&transfer->node) && !transfer->is_waiting_long);
    struct transfer *before = map64_put(outbox->known, transfer->task.row, transfer);
    check(before == NULL); /* 1 */
    transfer->state = state;
    list_push_back(state == TRANSFER_UNDURABLE ? &outbox->undurable : &outbox->waiting,
                   &transfer->node);
}

bool
outbox_has_room(const struct outbox *outbox)
{
    return map64_count(outbox->known) <= outbox->known_max / 2;
}

void
outbox_room_came(struct outbox *outbox)
{
    bool is_waited_for = outbox->unread_from != 0 || outbox->deferred_rows.cursor != 0;
    if (is_waited_for && outbox_has_room(outbox))
        fiber_cond_signal(&outbox->changed);
}

bool
outbox_may_have(const struct outbox *outbox, uint64_t row)
{
    bool is_unread = outbox->unread_from != 0 && row >= outbox->unread_from;
    return is_unread || map64_get(outbox->known, row) != NULL ||
           map64_get(outbox->deferred_rows.rows, row) != NULL;
}

void
outbox_return(struct tenure *tenure, struct transfer *transfer, enum transfer_state state)
{
    struct outbox *outbox = &tenure->outbox;
    check(transfer->ticket == 0 && !transfer->was_deferred && list_is_empty(&transfer->node));
    struct transfer *before = map64_put(outbox->known, transfer->task.row, transfer);
    check(before == NULL); /* 1 */
    transfer->state = state;
    transfer->was_deferred = true;
    outbox->deferred_rows.returned++;
}

/* False: it is not known, so it is not ours to delete. */
static bool
outbox_forget(struct outbox *outbox, uint64_t row)
{
    if (deferred_take(outbox, row)) {
        check(map64_get(outbox->known, row) == NULL); /* 1 */
        deferred_forget(outbox);
        return true;
    }
    struct transfer *transfer = map64_remove(outbox->known, row);
    if (transfer == NULL)
        return false;
    check(transfer->task.row == row);
    list_remove(&transfer->node);
    cross_task_forget(&outbox->cross_tasks, transfer);
    transfer_end_long_wait(outbox, transfer);
    outbox->deferred_rows.returned -= transfer->was_deferred;
    deferred_forget(outbox);
    memory_free(transfer);
    outbox_room_came(outbox);
    return true;
}

/* The lowest row that is known; 0: none. */
static uint64_t
lowest_known(const struct outbox *outbox)
{
    size_t cursor = 0;
    uint64_t row = 0;
    (void)map64_next(outbox->known, &cursor, &row, NULL); /* 2 */
    bool is_deferred_lower =
        outbox->deferred_rows.low != 0 && (row == 0 || outbox->deferred_rows.low < row);
    return is_deferred_lower ? outbox->deferred_rows.low : row;
}

uint64_t
outbox_level(const struct tenure *tenure)
{
    const struct outbox *outbox = &tenure->outbox;
    uint64_t lowest = lowest_known(outbox);
    if (lowest != 0)
        return lowest;
#ifdef CADENZA_FAULT_outbox_level_high
    return outbox->unread_from != 0 ? outbox->unread_from : tenure->ids.next;
#endif
    return outbox->unread_from != 0 ? outbox->unread_from : outbox->entered_to;
}

/* --- rows that a step put ---- */

void
outbox_enter(struct tenure *tenure, const struct effects *effects, ticket_t ticket)
{
    struct outbox *outbox = &tenure->outbox;
    check(ticket <= writer_newest(tenure->writer));
    for (size_t i = 0; i < effects->added_count; i++) {
        const struct transfer_effect *added = &effects->added[i];
        check(added->row != 0 && added->row < tenure->ids.next);
        if (outbox->unread_from == 0 && map64_count(outbox->known) >= outbox->known_max) {
            probe("outbox_beyond_memory");
            outbox->unread_from = added->row;
        }
        if (outbox->unread_from != 0) {
            check(added->row >= outbox->unread_from);
            outbox->unread_ticket = ticket;
            continue;
        }
        check(added->row >= outbox->entered_to); /* 2 */
        struct transfer *transfer = transfer_new(tenure, added->row, added->transfer);
        transfer->ticket = ticket;
        outbox_know(outbox, transfer, TRANSFER_UNDURABLE);
        outbox->entered_to = added->row + 1;
        outbox_offer_early(tenure, transfer);
    }
}

void
outbox_release(struct tenure *tenure, ticket_t durable)
{
    struct outbox *outbox = &tenure->outbox;
    while (!list_is_empty(&outbox->undurable)) {
        struct transfer *transfer = list_entry(outbox->undurable.next, struct transfer, node);
        if (transfer->ticket > durable)
            break;
        check(transfer->state == TRANSFER_UNDURABLE);
        list_remove(&transfer->node);
        transfer->state = TRANSFER_WAITING;
        list_push_back(&outbox->waiting, &transfer->node);
    }
    outbox_offer(tenure);
}

/* --- deleting ---- */

void
outbox_drop(struct tenure *tenure, uint64_t row, struct batch *batch)
{
    if (outbox_forget(&tenure->outbox, row))
        batch_delete(batch, ROW_TRANSFER, transfer_key(row, batch->arena));
}

void
outbox_fill(struct tenure *tenure, struct batch *batch)
{
    struct outbox *outbox = &tenure->outbox;
    vector_each(row, &outbox->deletes)
        batch_delete(batch, ROW_TRANSFER, transfer_key(*row, batch->arena));
    vector_clear(&outbox->deletes);
    outbox->flush_time = NEVER;
}

void
shard_task_done(struct shard *shard, uint64_t range_id, uint64_t row)
{
    struct tenure *tenure = shard->tenure;
    shard_check(shard);
    bool is_ours =
        tenure != NULL && range_id >= tenure->range_first && range_id <= tenure->range_id;
    if (is_ours)
        outbox_done(tenure, row);
}

void
outbox_done(struct tenure *tenure, uint64_t row)
{
    struct outbox *outbox = &tenure->outbox;
#ifdef CADENZA_FAULT_done_row_stays
    outbox_forget(outbox, row);
    return;
#endif
    if (!outbox_forget(outbox, row))
        return;
    vector_push(&outbox->deletes, row);
    bool is_first = outbox->flush_time == NEVER;
    if (is_first)
        outbox->flush_time = clock_monotonic() + FLUSH_DELAY;
    if (outbox->deletes.count >= DELETES_MAX)
        outbox->flush_time = clock_monotonic();
    if (is_first || outbox->deletes.count == DELETES_MAX)
        fiber_cond_signal(&outbox->changed);
}

/* The deletes found no batch to go with. */
static void
outbox_flush(struct tenure *tenure, struct arena *arena)
{
    if (!writer_has_room(tenure->writer)) {
        tenure->outbox.flush_time = clock_monotonic() + FLUSH_DELAY;
        return;
    }
    tenure_submit(tenure, tenure_batch(tenure, arena));
    check(tenure->outbox.deletes.count == 0);
}

/* --- the fiber ---- */

/* All that may be done now. Yields. */
static void
outbox_work(struct tenure *tenure, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    int64_t now = clock_monotonic();
    if (outbox->retry_time <= now)
        outbox_offer_refused(tenure);
    if (outbox->flush_time <= now)
        outbox_flush(tenure, arena);
    outbox_read_on(tenure, arena);
    deferred_work(tenure, arena);
    throttle_read_next(tenure, arena);
    throttle_wake(tenure);
    outbox_offer(tenure);
    cross_tasks_wake(tenure);
}

/* When it has something to do, as it stands at this moment. What comes about while the fiber works
 * signals in vain, so this is asked right before it waits, and looks at the state only. */
static int64_t
outbox_next_time(const struct outbox *outbox)
{
    bool is_offering = !list_is_empty(&outbox->waiting) && outbox->retry_time == NEVER;
    const int64_t times[] = {
        is_offering ? 0 : outbox->retry_time,
        outbox_may_read(outbox) ? outbox->read_time : NEVER,
        deferred_next_time(outbox),
#ifndef CADENZA_FAULT_turn_missed
        throttle_next_time(&outbox->throttle),
#endif
        cross_tasks_next_time(&outbox->cross_tasks),
        outbox->flush_time,
    };
    int64_t next = NEVER;
    for (size_t i = 0; i < array_length(times); i++)
        next = times[i] < next ? times[i] : next;
    return next;
}

void
outbox_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!tenure->is_over && wake != WAKE_CANCELLED) {
        outbox_work(tenure, arena);
        arena_reset(arena);
        int64_t next = outbox_next_time(&tenure->outbox);
        if (!tenure->is_over && next > clock_monotonic())
            wake = fiber_cond_wait(&tenure->outbox.changed, next);
    }
    arena_free(arena);
    tenure_leave(tenure);
}
