/* errands.c - rows of the outbox that are work on another workflow: done by fibers, a bounded
 * number at a time, tried again until they are done.
 *
 * In memory an errand is little more than the number of its row; the row is read when its turn
 * comes. Whoever does the work (the engine, by a port) takes steps on other workflow ids and on the
 * run that the row belongs to, one after the other, never with two locks. A row may be worked off
 * more than once, and by an owner that was overtaken: so each of these steps is one that adds
 * nothing when it is repeated, and those on the run itself name the range id. The row goes when all
 * is done, by the last step itself or here. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"

#define RUNNING_MAX    64 /* at a time */
#define ERRAND_TIMEOUT (10 * NS_PER_S)
#define DELAY_MIN      (20 * NS_PER_MS)
#define DELAY_MAX      (10 * NS_PER_S)

/* One on its way. */
struct errand_walk {
    struct tenure *tenure;
    struct errand errand;
};

static void errand_fiber(void *argument);

void
errands_init(struct tenure *tenure)
{
    list_init(&tenure->outbox.errands.ready);
    list_init(&tenure->outbox.errands.elsewhere);
    tenure->outbox.errands.lines = map_new();
}

void
errands_free(struct tenure *tenure)
{
    priority_free(&tenure->outbox.errands.delayed);
    lines_free(&tenure->outbox.errands);
}

void
errand_forget(struct errands *errands, struct transfer *transfer)
{
    if (priority_is_queued(&transfer->retry))
        priority_remove(&errands->delayed, &transfer->retry);
    line_leave(errands, transfer);
}

static void
errand_start(struct tenure *tenure, struct transfer *transfer)
{
    struct errand_walk *walk = memory_zalloc(1, sizeof *walk);
    walk->tenure = tenure;
    walk->errand = (struct errand){.range_id = tenure->range_id,
                                   .row = transfer->task.row,
                                   .cursor = transfer->cursor,
                                   .is_repeat = transfer->is_repeat};
    transfer->is_repeat = true;
    transfer->state = TRANSFER_OFFERED;
    tenure->outbox.errands.running++;
    latch_add(&tenure->shard->errands, 1);
    tenure_start_fiber(tenure, "errand", errand_fiber, walk);
}

void
errands_start(struct tenure *tenure)
{
    struct errands *errands = &tenure->outbox.errands;
    while (tenure->shard->runs_errands && !tenure->is_over && errands->running < RUNNING_MAX &&
           !list_is_empty(&errands->ready))
        errand_start(tenure, list_entry(list_pop_front(&errands->ready), struct transfer, node));
}

void
errands_add(struct tenure *tenure, struct transfer *transfer)
{
    check(transfer->is_errand);
    transfer->state = TRANSFER_WAITING;
    if (!line_enter(&tenure->outbox.errands, transfer))
        return;
    list_push_back(&tenure->outbox.errands.ready, &transfer->node);
    errands_start(tenure);
}

static void
errand_wait(struct errands *errands, struct transfer *transfer, int64_t time)
{
    transfer->retry.key = time;
    transfer->retry.sequence = ++errands->sequence;
    priority_push(&errands->delayed, &transfer->retry);
}

static void
errand_hurry(struct errands *errands, struct transfer *transfer)
{
    priority_remove(&errands->delayed, &transfer->retry);
    errand_wait(errands, transfer, 0);
}

void
errands_domain_changed(struct tenure *tenure)
{
    struct errands *errands = &tenure->outbox.errands;
    struct list *node;
    while ((node = list_pop_front(&errands->elsewhere)) != NULL)
        errand_hurry(errands, list_entry(node, struct transfer, node));
}

void
errands_wake(struct tenure *tenure)
{
    struct errands *errands = &tenure->outbox.errands;
    int64_t now = clock_monotonic();
    while (errands_next_time(errands) <= now) {
        struct priority_node *first = priority_pop(&errands->delayed);
        struct transfer *transfer = container_of(first, struct transfer, retry);
        list_remove(&transfer->node);
        transfer_stir(&tenure->outbox, transfer);
        list_push_back(&errands->ready, &transfer->node);
    }
    errands_start(tenure);
}

int64_t
errands_next_time(const struct errands *errands)
{
    const struct priority_node *first = priority_first(&errands->delayed);
    return first == NULL ? NEVER : first->key;
}

/* --- one errand ---- */

static struct error *
errand_read(const struct errand_walk *walk, struct arena *arena, STORED(TransferRow) **transfer)
{
    const struct shard *shard = walk->tenure->shard;
    bool found;
    struct slice value;
    struct error *err = store_get(shard->options.store, shard->partition, ROW_TRANSFER,
                                  transfer_key(walk->errand.row, arena), arena, &found, &value);
    if (err != NULL)
        return err;
    if (!found) /* whoever overtook us has done it */
        return error_new(arena, ERR_SHARD_OWNERSHIP_LOST, "a row of the outbox is gone");
    return message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(transfer_row), value, transfer);
}

static void
errand_delay(struct tenure *tenure, struct transfer *transfer, const struct error *err)
{
    struct errands *errands = &tenure->outbox.errands;
    int64_t delay = DELAY_MIN << (transfer->attempts < 12 ? transfer->attempts : 12);
    fiber_cond_signal(&tenure->outbox.changed);
    mark("errand_retried");
    log_debug(tenure->shard->options.log, "work on another workflow is tried again",
              log_error(err));
    bool is_in_line = transfer->line.length > 0; /* it keeps its place there */
    if (!is_in_line && !transfer_rest(&tenure->outbox, transfer, PARKED_FOR_RETRY))
        return;
    transfer->attempts++;
    transfer->state = TRANSFER_REFUSED;
    errand_wait(errands, transfer, clock_monotonic() + (delay < DELAY_MAX ? delay : DELAY_MAX));
    if (err->kind == ERR_DOMAIN_NOT_ACTIVE)
        list_push_back(&errands->elsewhere, &transfer->node);
}

/* What became of it. The row may have gone with one of its steps. */
static void
errand_ended(const struct errand_walk *walk, const struct error *err)
{
    struct tenure *tenure = walk->tenure;
    tenure->outbox.errands.running--;
    if (tenure->is_over)
        return;
    struct transfer *transfer = map64_get(tenure->outbox.known, walk->errand.row);
    if (transfer != NULL)
        transfer->cursor = walk->errand.cursor; /* what lies behind it is done */
    if (err != NULL && err->kind == ERR_DOMAIN_NOT_ACTIVE)
        mark("errand_not_active"); /* it failed for nobody: whoever comes next does it */
    if (transfer != NULL && err != NULL && !transfer_is_active(tenure, transfer)) {
        transfer_hold(tenure, transfer);
    } else if (transfer != NULL && err != NULL) {
        errand_delay(tenure, transfer, err);
    } else if (transfer != NULL && walk->errand.has_more) {
        transfer->attempts = 0;
        errands_add(tenure, transfer);
    } else if (transfer != NULL) {
        outbox_done(tenure, walk->errand.row);
    }
    errands_start(tenure);
}

static void
errand_fiber(void *argument)
{
    struct errand_walk *walk = argument;
    struct tenure *tenure = walk->tenure;
    const struct errand_port *port = &tenure->shard->options.errands;
    struct arena *arena = arena_new(0);
    STORED(TransferRow) *transfer = NULL;
    fiber_set_deadline(clock_monotonic() + ERRAND_TIMEOUT);
    struct error *err = errand_read(walk, arena, &transfer);
    walk->errand.transfer = transfer;
    if (err == NULL)
        err = port->run(port->context, &walk->errand, arena);
    errand_ended(walk, err);
    arena_free(arena);
    memory_free(walk);
    latch_done(&tenure->shard->errands);
    tenure_leave(tenure);
}

/* --- the shard ---- */

void
shard_run_errands(struct shard *shard)
{
    check(shard->options.errands.run != NULL);
    shard->runs_errands = true;
    if (shard->tenure != NULL)
        errands_start(shard->tenure);
}

void
shard_stop_errands(struct shard *shard)
{
    shard->runs_errands = false;
    latch_wait(&shard->errands);
}
