/* accept.c - requests that are made durable now and done later, one after the other for each
 * workflow id.
 *
 * A request that was accepted is a row of the outbox that no run has made. It is an errand like
 * others, but must not overtake: those of one workflow id stand in a line, and only the first one
 * is worked off. Rows come into memory in the order of their numbers, which is the order in which
 * they were accepted, whoever owned the shard then; so the lines have that order too.
 *
 * What cannot be done for now (its domain is active elsewhere) stays, and must not crowd out the
 * tasks of runs: only so many are accepted at a time. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/message.h"

#define PART_OF_OUTBOX 4 /* requests have at most one part in so many of its room */

/* --- lines ---- */

bool
line_enter(struct errands *errands, struct transfer *transfer)
{
    if (transfer->line.length == 0)
        return true;
    struct line *line = map_get(errands->lines, transfer->line);
    if (line == NULL) {
        line = memory_zalloc(1, sizeof *line);
        list_init(&line->waiting);
        line->first = transfer;
        map_put(errands->lines, transfer->line, line);
    }
    if (line->first == transfer)
        return true;
#ifdef CADENZA_PLANT_accepted_overtakes
    return true;
#endif
    mark("accepted_waits_in_line");
    list_push_back(&line->waiting, &transfer->node);
    return false;
}

void
line_leave(struct errands *errands, const struct transfer *transfer)
{
    if (transfer->line.length == 0)
        return;
    check(errands->accepted_count > 0);
    errands->accepted_count--;
    struct line *line = map_get(errands->lines, transfer->line);
    if (line == NULL || line->first != transfer)
        return;
    struct list *next = list_pop_front(&line->waiting);
    if (next == NULL) {
        map_remove(errands->lines, transfer->line);
        memory_free(line);
        return;
    }
    line->first = list_entry(next, struct transfer, node);
    list_push_back(&errands->ready, next);
}

void
lines_free(struct errands *errands)
{
    size_t cursor = 0;
    void *line;
    while (map_next(errands->lines, &cursor, NULL, &line))
        memory_free(line);
    map_free(errands->lines);
}

/* --- accepting ---- */

static struct error *
check_room(struct tenure *tenure, struct arena *arena)
{
    const struct outbox *outbox = &tenure->outbox;
    bool has_room = outbox->unread_from == 0 &&
                    outbox->errands.accepted_count < outbox->known_max / PART_OF_OUTBOX + 1;
    if (has_room && writer_has_room(tenure->writer))
        return NULL;
    mark("not_accepted");
    return errors_service_busy(arena, "", "Too many requests of shard %u are waiting.",
                               tenure->shard->options.number);
}

/* One batch with the row. No yield. */
static ticket_t
submit_request(struct tenure *tenure, STORED(TransferRow) *row, struct arena *arena)
{
    tenure_renew_range(tenure);
    row->format = RUN_RECORD_FORMAT;
    row->created_time = clock_wall();
    struct transfer_effect added = {.row = tenure->ids.next++, .transfer = row};
    struct effects effects = {.added = &added, .added_count = 1};
    struct batch *batch = tenure_batch(tenure, arena);
    batch_put(batch, ROW_TRANSFER, transfer_key(added.row, arena),
              message_encode(arena, &row->base));
    ticket_t ticket = tenure_submit(tenure, batch);
    outbox_enter(tenure, &effects, ticket);
    return ticket;
}

struct error *
shard_accept(struct shard *shard, STORED(TransferRow) *row, struct arena *arena)
{
    struct run_key key = {row->domain_id, row->workflow_id, ""};
    struct tenure *tenure;
    struct error *err = shard_admit(shard, &key, arena);
    if (err == NULL)
        err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    check(row->type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REQUEST);
    err = check_room(tenure, arena);
    if (err == NULL) {
        ticket_t ticket;
        NO_YIELD
        {
            ticket = submit_request(tenure, row, arena);
        }
#ifdef CADENZA_PLANT_accepted_before_durable
        ticket = 0;
#endif
        err = tenure_wait(tenure, ticket, arena);
    }
    tenure_leave(tenure);
    return err;
}
