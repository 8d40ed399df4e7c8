/* deferred.c - rows of the outbox that wait for long leave memory to the others.
 *
 * A row may wait for its domain to come back, for the turn of its workflow id, for a target that
 * answers: for days perhaps, and there may be any number of them. If they filled the memory of the
 * outbox no other row would be read any more, and one bad workflow id or one domain that is active
 * elsewhere would stop all the others of the shard. So only so many of them stay in memory. Of the
 * others the shard knows the number, which says that the row is there and ours to delete, and what
 * it waits for.
 *
 * When a domain has changed, or some time after a cross-workflow task failed, the rows from the
 * lowest on are read once more, page by page as there is room, and those that may go on are known
 * again. A task that waits for its turn is read by its queue (throttle.c).
 *
 * Only rows in no list are deferred, and none of a queue of requests (accept.c). */
#include "engine/outbox/deferred.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/outbox/held.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"

#define PART_OF_OUTBOX 8  /* resting rows have at most one part in so many of its room */
#define ROWS_PER_KNOWN 16 /* deferred rows for each that may be known; a number is small */
#define RETRY_DELAY    (10 * NS_PER_S)
#define READ_DELAY     (500 * NS_PER_MS)

void
deferred_init(struct outbox *outbox)
{
    outbox->deferred_rows = (struct deferred_rows){
        .rows = map64_new(), .rows_max = outbox->known_max * ROWS_PER_KNOWN, .retry_time = NEVER};
}

void
deferred_free(struct outbox *outbox)
{
    map64_free(outbox->deferred_rows.rows);
}

void
deferred_rows_check(const struct outbox *outbox)
{
    const struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    size_t known = map64_count(outbox->known), count = map64_count(deferred_rows->rows);
    check(deferred_rows->waiting_long <= known && deferred_rows->returned <= known);
    check((deferred_rows->low != 0) == (count > 0 || deferred_rows->returned > 0));
    if (!CHECK_DEEPLY || count > CHECK_ROWS_MAX)
        return;
    size_t cursor = 0;
    uint64_t row;
    while (map64_next(deferred_rows->rows, &cursor, &row, NULL)) {
        check(row >= deferred_rows->low);
        check(map64_get(outbox->known, row) == NULL);
    }
}

/* --- in ---- */

void
transfer_defer(struct outbox *outbox, struct transfer *transfer, enum deferred_for why)
{
    struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    uint64_t row = transfer->task.row;
    check(transfer->request_queue.length == 0 && list_is_empty(&transfer->node));
    check(!transfer->is_waiting_long && !priority_is_queued(&transfer->retry));
    check(why != DEFERRED_FOR_TURN || !transfer->is_cross_task);
    check(why != DEFERRED_FOR_RETRY || transfer->is_cross_task);
    check(map64_remove(outbox->known, row) == transfer);
    check(map64_put(deferred_rows->rows, row, (void *)(uintptr_t)why) == NULL);
    deferred_rows->low =
        deferred_rows->low == 0 || row < deferred_rows->low ? row : deferred_rows->low;
    deferred_rows->returned -= transfer->was_deferred;
    if (why == DEFERRED_FOR_RETRY && deferred_rows->retry_time == NEVER)
        deferred_rows->retry_time = clock_monotonic() + RETRY_DELAY;
    probe("row_deferred");
    memory_free(transfer);
    outbox_room_came(outbox);
}

bool
transfer_begin_long_wait(struct outbox *outbox, struct transfer *transfer, enum deferred_for why)
{
    struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    check(!transfer->is_waiting_long && transfer->request_queue.length == 0);
    bool is_full = deferred_rows->waiting_long >= outbox->known_max / PART_OF_OUTBOX;
#ifdef CADENZA_FAULT_resting_rows_fill_memory
    is_full = false;
#endif
    if (is_full && map64_count(deferred_rows->rows) < deferred_rows->rows_max) {
        transfer_defer(outbox, transfer, why);
        return false;
    }
    transfer->is_waiting_long = true;
    deferred_rows->waiting_long++;
    return true;
}

void
transfer_end_long_wait(struct outbox *outbox, struct transfer *transfer)
{
    if (!transfer->is_waiting_long)
        return;
    check(outbox->deferred_rows.waiting_long > 0);
    transfer->is_waiting_long = false;
#ifdef CADENZA_FAULT_long_wait_stays_counted
    return; /* fault: rows that go on still take the room of those that wait */
#endif
    outbox->deferred_rows.waiting_long--;
}

/* --- out ---- */

bool
deferred_has(const struct outbox *outbox, uint64_t row, enum deferred_for why)
{
    return map64_get(outbox->deferred_rows.rows, row) == (void *)(uintptr_t)why;
}

bool
deferred_take(struct outbox *outbox, uint64_t row)
{
    return map64_remove(outbox->deferred_rows.rows, row) != NULL;
}

void
deferred_forget(struct outbox *outbox)
{
    struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    if (map64_count(deferred_rows->rows) == 0 && deferred_rows->returned == 0)
        deferred_rows->low = 0;
}

void
deferred_domain_changed(struct outbox *outbox)
{
    struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    if (map64_count(deferred_rows->rows) == 0)
        return;
    check(deferred_rows->low != 0);
    if (deferred_rows->cursor == 0)
        deferred_rows->cursor = deferred_rows->low;
    else
        deferred_rows->is_changed = true;
}

/* One that may go on is known again. */
static struct error *
judge_row(struct tenure *tenure, uint64_t number, struct slice value, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    bool is_retry = deferred_has(outbox, number, DEFERRED_FOR_RETRY);
    if (!is_retry && !deferred_has(outbox, number, DEFERRED_FOR_DOMAIN))
        return NULL; /* known, gone, or it waits for its turn */
    struct transfer *transfer;
    struct error *err = transfer_read(tenure, number, value, arena, &transfer);
    if (err != NULL)
        return err;
    if (!is_retry && !transfer_is_active(tenure, transfer)) {
        memory_free(transfer);
        return NULL;
    }
    probe("deferred_row_returned");
    deferred_take(outbox, number);
    outbox_return(tenure, transfer, TRANSFER_WAITING);
    list_push_back(&outbox->waiting, &transfer->node);
    return NULL;
}

/* What was looked at in vain before the last change is looked at again. */
static void
move_on(struct deferred_rows *deferred_rows, uint64_t to)
{
    deferred_rows->cursor = to;
    if (to != 0 || !deferred_rows->is_changed)
        return;
    deferred_rows->cursor = deferred_rows->low;
    deferred_rows->is_changed = false;
}

void
deferred_work(struct tenure *tenure, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    int64_t now = clock_monotonic();
    if (deferred_rows->retry_time <= now) {
        deferred_rows->retry_time = NEVER;
        deferred_domain_changed(outbox);
    }
    bool may_read =
        deferred_rows->cursor != 0 && deferred_rows->read_time <= now && outbox_has_room(outbox);
    if (tenure->is_over || !may_read)
        return;
    uint64_t next = 0;
    struct error *err = outbox_read_page(tenure, deferred_rows->cursor, judge_row, arena, &next);
    if (err == NULL && !tenure->is_over)
        move_on(deferred_rows, next);
    if (err != NULL && !tenure->is_over)
        log_warn(tenure->shard->options.log, "rows that wait could not be read", log_error(err));
    deferred_rows->read_time = clock_monotonic() + (err == NULL ? 0 : READ_DELAY);
}

int64_t
deferred_next_time(const struct outbox *outbox)
{
    const struct deferred_rows *deferred_rows = &outbox->deferred_rows;
    bool may_read = deferred_rows->cursor != 0 && outbox_has_room(outbox);
    bool is_read_first = may_read && deferred_rows->read_time < deferred_rows->retry_time;
    return is_read_first ? deferred_rows->read_time : deferred_rows->retry_time;
}
