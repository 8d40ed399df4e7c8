/* read.c - rows that are in the store only come into memory, page by page as there is room.
 *
 * Rows that found no room stay in the store (unread_from), and so do all that come after them,
 * until a scan has caught up: so at any time the rows below unread_from are known or gone, and
 * those above are not known. A scan waits until all rows that were left are durable and then reads
 * them; it is done when none was left meanwhile. Taking a shard is the same case: at first all rows
 * are unread. */
#include "base/check.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"

#define READ_DELAY     (500 * NS_PER_MS)
#define READ_BYTES_MAX ((size_t)8 * 1024 * 1024) /* of one page */

struct error *
outbox_read_page(struct tenure *tenure, uint64_t from, take_row_function *take, struct arena *arena,
                 uint64_t *next)
{
    const struct shard *shard = tenure->shard;
    size_t known_max = tenure->outbox.known_max;
    scoped(arena_drop) struct arena *page = arena_new(0); /* requests in rows may be large */
    struct scan scan = {.partition = shard->partition,
                        .kind = ROW_TRANSFER,
                        .from = transfer_key(from, page),
                        .rows_max = known_max - known_max / 2,
                        .bytes_max = READ_BYTES_MAX};
    struct rows rows = {0};
    uint64_t number = 0;
    struct error *err = store_scan(shard->options.store, &scan, page, &rows);
    for (size_t i = 0; err == NULL && !tenure->is_over && i < rows.count; i++) {
        struct slice key = rows.row[i].key;
        if (!key_take_u64(&key, &number))
            err = error_new(page, ERR_CORRUPT, "shard %u: a row of the outbox cannot be read",
                            shard->options.number);
        else
            err = take(tenure, number, rows.row[i].value, page);
    }
    *next = rows.has_more ? number + 1 : 0;
    return err == NULL ? NULL : error_copy(arena, err);
}

static struct error *
take_unread(struct tenure *tenure, uint64_t number, struct slice value, struct arena *arena)
{
    struct transfer *transfer = NULL;
    check(number >= tenure->outbox.unread_from);
    struct error *err = transfer_read(tenure, number, value, arena, &transfer);
    if (err != NULL)
        return err;
    outbox_know(&tenure->outbox, transfer, TRANSFER_WAITING);
    tenure->outbox.unread_from = number + 1;
    return NULL;
}

/* One page. Yields. */
static struct error *
read_unread(struct tenure *tenure, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    ticket_t ticket = outbox->unread_ticket;
    uint64_t next = 0;
    check(outbox->unread_from != 0);
    struct error *err = tenure_wait(tenure, ticket, arena);
    if (err == NULL)
        err = outbox_read_page(tenure, outbox->unread_from, take_unread, arena, &next);
    if (err == NULL && !tenure->is_over && next == 0 && ticket == outbox->unread_ticket)
        outbox->unread_from = 0; /* none was left meanwhile */
    return err;
}

bool
outbox_may_read(const struct outbox *outbox)
{
    return outbox->unread_from != 0 && outbox_has_room(outbox);
}

struct error *
outbox_begin(struct tenure *tenure, uint64_t level, struct arena *arena)
{
    check(map64_count(tenure->outbox.known) == 0);
    tenure->outbox.unread_from = level == 0 ? 1 : level;
    tenure->outbox.entered_to = tenure->ids.next;
    struct error *err = NULL;
    while (err == NULL && outbox_may_read(&tenure->outbox))
        err = read_unread(tenure, arena);
    if (map64_count(tenure->outbox.known) > 0)
        probe("task_offered_again");
    return err;
}

void
outbox_read_on(struct tenure *tenure, struct arena *arena)
{
    struct outbox *outbox = &tenure->outbox;
    bool is_time = outbox->read_time <= clock_monotonic();
    if (tenure->is_over || !is_time || !outbox_may_read(outbox))
        return;
    struct error *err = read_unread(tenure, arena);
    if (err != NULL && !tenure->is_over)
        log_warn(tenure->shard->options.log, "the outbox could not be read", log_error(err));
    outbox->read_time = clock_monotonic() + (err == NULL ? 0 : READ_DELAY);
}
