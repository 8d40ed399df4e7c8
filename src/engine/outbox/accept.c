/* accept.c - requests that are made durable now and done later, one after the other for each
 * workflow id.
 *
 * A request that was accepted is a row of the outbox that no run has made. It is a cross-workflow
 * task like others, but must not overtake: those of one workflow id form a queue, and only the
 * first one is worked on. Rows come into memory in the order of their numbers, which is the order
 * in which they were accepted, no matter who owned the shard then; so the queues have that order.
 *
 * What cannot be done for now (its domain is active elsewhere) stays, and must not crowd out the
 * tasks of runs: only so many are accepted at a time, and only a part of them of one workflow id.
 */
#include "base/check.h"
#include "base/memory.h"
#include "engine/outbox/cross_task_fibers.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define PART_OF_OUTBOX 4 /* requests have at most one part in so many of its room */
#define PART_OF_THEM   4 /* those of one workflow id at most one part in so many of that */

/* --- queues ---- */

void
request_queue_join(struct cross_tasks *cross_tasks, const struct transfer *transfer)
{
    struct request_queue *request_queue = map_get(cross_tasks->lines, transfer->request_queue);
    if (request_queue == NULL) {
        request_queue = memory_zalloc(1, sizeof *request_queue);
        list_init(&request_queue->waiting);
        map_put(cross_tasks->lines, transfer->request_queue, request_queue);
    }
    check(!transfer->is_waiting_long && transfer->is_cross_task);
    request_queue->count++;
    cross_tasks->accepted_count++;
}

bool
request_queue_enter(struct cross_tasks *cross_tasks, struct transfer *transfer)
{
    if (transfer->request_queue.length == 0)
        return true;
    struct request_queue *request_queue = map_get(cross_tasks->lines, transfer->request_queue);
    check(request_queue->count > 0 && list_is_empty(&transfer->node));
    if (request_queue->first == NULL)
        request_queue->first = transfer;
    if (request_queue->first == transfer)
        return true;
#ifdef CADENZA_FAULT_accepted_overtakes
    return true;
#endif
    probe("accepted_waits_in_queue");
    list_push_back(&request_queue->waiting, &transfer->node);
    return false;
}

void
request_queue_leave(struct cross_tasks *cross_tasks, const struct transfer *transfer)
{
    if (transfer->request_queue.length == 0)
        return;
    struct request_queue *request_queue = map_get(cross_tasks->lines, transfer->request_queue);
    check(cross_tasks->accepted_count > 0 && request_queue->count > 0);
    cross_tasks->accepted_count--;
    if (--request_queue->count == 0) {
        check(list_is_empty(&request_queue->waiting));
        map_remove(cross_tasks->lines, transfer->request_queue);
        memory_free(request_queue);
        return;
    }
    if (request_queue->first != transfer)
        return;
    struct list *next = list_pop_front(&request_queue->waiting);
    request_queue->first = next == NULL ? NULL : list_entry(next, struct transfer, node);
    if (next != NULL)
        list_push_back(&cross_tasks->ready, next);
}

void
request_queues_free(struct cross_tasks *cross_tasks)
{
    size_t cursor = 0;
    void *request_queue;
    while (map_next(cross_tasks->lines, &cursor, NULL, &request_queue))
        memory_free(request_queue);
    map_free(cross_tasks->lines);
}

/* --- accepting ---- */

/* How many of the id wait. */
static size_t
count_queued(const struct cross_tasks *cross_tasks, const STORED(TransferRow) *row,
             struct arena *arena)
{
    size_t domain = strlen(row->domain_id) + 1, id = strlen(row->workflow_id) + 1;
    char *name = arena_alloc(arena, domain + id);
    memcpy(name, row->domain_id, domain);
    memcpy(name + domain, row->workflow_id, id);
    const struct request_queue *request_queue =
        map_get(cross_tasks->lines, slice_of(name, domain + id));
    return request_queue == NULL ? 0 : request_queue->count;
}

static struct error *
check_room(struct tenure *tenure, const STORED(TransferRow) *row, struct arena *arena)
{
    const struct outbox *outbox = &tenure->outbox;
    size_t most = outbox->known_max / PART_OF_OUTBOX + 1;
    if (count_queued(&outbox->cross_tasks, row, arena) >= most / PART_OF_THEM + 1) {
        probe("not_accepted_of_busy_id");
        return errors_service_busy(arena, ERRORS_BUSY_WORKFLOW_ID,
                                   "Too many requests for the workflow ID");
    }
    bool has_room = outbox->unread_from == 0 && outbox->cross_tasks.accepted_count < most;
    if (has_room && writer_has_room(tenure->writer))
        return NULL;
    probe("not_accepted");
    return errors_service_busy(arena, "", "Too many requests of shard %u are waiting.",
                               tenure->shard->options.number);
}

/* One batch with the row. No yield. */
static ticket_t
submit_request(struct tenure *tenure, STORED(TransferRow) *row, struct arena *arena)
{
    check(tenure->outbox.unread_from == 0);
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
    const struct domain *domain = domains_find_id(shard->options.domains, row->domain_id);
    if (domain != NULL && domain->is_recovering)
        return errors_service_busy(arena, "", DOMAIN_IS_RECOVERING, domain->name);
    struct error *err = shard_admit(shard, &key, arena);
    if (err == NULL)
        err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    check(row->type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REQUEST);
    err = check_room(tenure, row, arena);
    if (err == NULL) {
        ticket_t ticket;
        NO_YIELD
        {
            ticket = submit_request(tenure, row, arena);
        }
#ifdef CADENZA_FAULT_accepted_before_durable
        ticket = 0;
#endif
        err = tenure_wait(tenure, ticket, arena);
    }
    tenure_leave(tenure);
    return err;
}
