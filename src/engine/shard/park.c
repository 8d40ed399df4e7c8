/* park.c - rows of the outbox that wait for long leave memory to the others.
 *
 * A row may wait for its domain to come back, for the turn of its workflow id, for a target that
 * answers: for days perhaps, and there may be any number of them. If they filled the memory of the
 * outbox no other row would be read any more, and one bad workflow id or one domain that is active
 * elsewhere would stop all the others of the shard. So only so many rest in memory. Of the rest the
 * shard knows the number, which says that the row is there and ours to delete, and what it waits
 * for.
 *
 * When a domain has changed, or some time after an errand failed, the rows from the lowest on are
 * read once more, page by page as there is room, and those that may go on are known again. A task
 * that waits for its turn is read by its queue (pace.c).
 *
 * Only rows that are durable and in no list are parked, and none that stands in a line (accept.c).
 */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"

#define PART_OF_OUTBOX 8  /* resting rows have at most one part in so many of its room */
#define ROWS_PER_KNOWN 16 /* parked rows for each that may be known; a number is small */
#define RETRY_DELAY    (10 * NS_PER_S)
#define READ_DELAY     (500 * NS_PER_MS)
#define READ_BYTES_MAX ((size_t)8 * 1024 * 1024) /* of one page */

void
parking_init(struct outbox *outbox)
{
    outbox->parking = (struct parking){
        .rows = map64_new(), .rows_max = outbox->known_max * ROWS_PER_KNOWN, .retry_time = NEVER};
}

void
parking_free(struct outbox *outbox)
{
    map64_free(outbox->parking.rows);
}

/* --- in ---- */

void
transfer_park(struct outbox *outbox, struct transfer *transfer, enum parked_for why)
{
    struct parking *parking = &outbox->parking;
    uint64_t row = transfer->task.row;
    check(transfer->line.length == 0 && list_is_empty(&transfer->node));
    check(map64_remove(outbox->known, row) == transfer);
    check(map64_put(parking->rows, row, (void *)(uintptr_t)why) == NULL);
    parking->low = parking->low == 0 || row < parking->low ? row : parking->low;
    parking->returned -= transfer->was_parked;
    if (why == PARKED_FOR_RETRY && parking->retry_time == NEVER)
        parking->retry_time = clock_monotonic() + RETRY_DELAY;
    mark("row_parked");
    memory_free(transfer);
    outbox_room_came(outbox);
}

bool
transfer_rest(struct outbox *outbox, struct transfer *transfer, enum parked_for why)
{
    struct parking *parking = &outbox->parking;
    check(!transfer->is_resting);
    bool is_full = parking->resting >= outbox->known_max / PART_OF_OUTBOX;
#ifdef CADENZA_PLANT_resting_rows_fill_memory
    is_full = false;
#endif
    if (is_full && map64_count(parking->rows) < parking->rows_max) {
        transfer_park(outbox, transfer, why);
        return false;
    }
    transfer->is_resting = true;
    parking->resting++;
    return true;
}

void
transfer_stir(struct outbox *outbox, struct transfer *transfer)
{
    if (!transfer->is_resting)
        return;
    check(outbox->parking.resting > 0);
    transfer->is_resting = false;
    outbox->parking.resting--;
}

/* --- out ---- */

bool
parking_has(const struct outbox *outbox, uint64_t row, enum parked_for why)
{
    return map64_get(outbox->parking.rows, row) == (void *)(uintptr_t)why;
}

bool
parking_take(struct outbox *outbox, uint64_t row)
{
    return map64_remove(outbox->parking.rows, row) != NULL;
}

void
parking_forget(struct outbox *outbox)
{
    struct parking *parking = &outbox->parking;
    if (map64_count(parking->rows) == 0 && parking->returned == 0)
        parking->low = 0;
}

void
parking_domain_changed(struct outbox *outbox)
{
    struct parking *parking = &outbox->parking;
    if (map64_count(parking->rows) == 0)
        return;
    if (parking->cursor == 0)
        parking->cursor = parking->low;
    else
        parking->is_changed = true;
}

/* One that may go on is known again. */
static struct error *
look_at(struct tenure *tenure, uint64_t number, struct slice value, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    bool is_retry = parking_has(outbox, number, PARKED_FOR_RETRY);
    if (!is_retry && !parking_has(outbox, number, PARKED_FOR_DOMAIN))
        return NULL; /* known, gone, or it waits for its turn */
    struct transfer *transfer;
    struct error *err = transfer_read(tenure, number, value, arena, &transfer);
    if (err != NULL)
        return err;
    if (!is_retry && !transfer_is_active(tenure, transfer)) {
        memory_free(transfer);
        return NULL;
    }
    mark("parked_row_returned");
    parking_take(outbox, number);
    outbox_return(tenure, transfer, TRANSFER_WAITING);
    list_push_back(&outbox->waiting, &transfer->node);
    return NULL;
}

/* What was looked at in vain before the last change is looked at again. */
static void
move_on(struct parking *parking, uint64_t to)
{
    parking->cursor = to;
    if (to != 0 || !parking->is_changed)
        return;
    parking->cursor = parking->low;
    parking->is_changed = false;
}

/* One page. Yields. */
static struct error *
read_page(struct tenure *tenure, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    uint64_t number = 0;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_TRANSFER,
                        .from = transfer_key(outbox->parking.cursor, arena),
                        .rows_max = outbox->known_max - outbox->known_max / 2,
                        .bytes_max = READ_BYTES_MAX};
    struct rows rows = {0};
    struct error *err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && !tenure->is_over && i < rows.count; i++) {
        struct slice key = rows.row[i].key;
        if (!key_take_u64(&key, &number))
            err = error_new(arena, ERR_CORRUPT, "the key of a row of the outbox cannot be read");
        else
            err = look_at(tenure, number, rows.row[i].value, arena);
    }
    if (err == NULL && !tenure->is_over)
        move_on(&outbox->parking, rows.has_more ? number + 1 : 0);
    return err;
}

void
parking_work(struct tenure *tenure)
{
    struct outbox *outbox = &tenure->outbox;
    struct parking *parking = &outbox->parking;
    int64_t now = clock_monotonic();
    if (parking->retry_time <= now) {
        parking->retry_time = NEVER;
        parking_domain_changed(outbox);
    }
    bool may_read = parking->cursor != 0 && parking->read_time <= now && outbox_has_room(outbox);
    if (tenure->is_over || !may_read)
        return;
    scoped(arena_drop) struct arena *page = arena_new(0);
    struct error *err = read_page(tenure, page);
    if (err != NULL && !tenure->is_over)
        log_warn(tenure->shard->options.log, "rows that wait could not be read", log_error(err));
    parking->read_time = clock_monotonic() + (err == NULL ? 0 : READ_DELAY);
}

int64_t
parking_next_time(const struct outbox *outbox)
{
    const struct parking *parking = &outbox->parking;
    bool may_read = parking->cursor != 0 && outbox_has_room(outbox);
    bool is_read_first = may_read && parking->read_time < parking->retry_time;
    return is_read_first ? parking->read_time : parking->retry_time;
}
