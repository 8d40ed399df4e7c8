/* writer.c - one owner's stream of batches: tickets, waiting, and one failure that ends it all.
 *
 * Batches go to the engine, here the one that stores (engine.h: memory/ or rocks/), as they come;
 * it performs those of one loop and partition in order, and breaks the stream when one fails. So
 * answers come in order too, and two numbers are enough: tickets up to `durable` are durable,
 * tickets up to `newest` were given out. The first answer that is a failure becomes the writer's
 * failure: every ticket above `durable` has it.
 *
 * A waiter is a struct on its fiber's stack, in a list ordered by ticket. It is resolved by
 * writing the answer into it, so a fiber that wakes up no longer needs the writer: the writer may
 * be closed as soon as nothing is in flight.
 *
 * A confirmation is a ticket like any other, but `batches_max` does not count it: the fibers that
 * ask for one bound it, as they do reads.
 *
 * Invariants:
 *   1. durable + in_flight + confirmations == newest, unless the writer has failed.
 *   2. Every waiter's ticket is above durable; no waiter is left once the writer has failed. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/probe.h"
#include "store/engine.h"
#include "store/key.h"

struct writer {
    struct store *store;
    struct loop *loop;
    struct arena *arena; /* the partition's name, the failure */
    struct partition partition;
    struct commit_stream stream; /* the engine's */
    uint64_t guard;              /* after the newest batch */
    unsigned batches_max;
    unsigned in_flight;     /* submitted, not answered */
    unsigned confirmations; /* the same */
    ticket_t newest;
    ticket_t durable;
    struct error *failure;
    struct list waiters; /* struct waiter, lowest ticket first */
    struct fiber *closer;
    void (*on_durable)(void *context, ticket_t durable, const struct error *failure);
    void *on_durable_context;
};

struct ticket_waiter {
    struct list node;
    ticket_t ticket;
    struct fiber *fiber;
    struct arena *arena; /* where the answer goes */
    bool is_resolved;
    struct error *failure; /* the answer */
};

/* 2 */
static void
waiters_check(const struct writer *writer)
{
    ticket_t before = writer->durable + 1;
    list_each(node, &writer->waiters) {
        const struct ticket_waiter *ticket_waiter = list_entry(node, struct ticket_waiter, node);
        check(ticket_waiter->ticket >= before && ticket_waiter->ticket <= writer->newest);
        check(!ticket_waiter->is_resolved && ticket_waiter->failure == NULL);
        before = ticket_waiter->ticket;
    }
}

static void
writer_check(const struct writer *writer)
{
    check(writer->loop == loop_self());
    check(writer->durable <= writer->newest && writer->in_flight <= writer->batches_max);
    if (writer->failure == NULL) /* 1 */
        check(writer->durable + writer->in_flight + writer->confirmations == writer->newest);
    else
        check(list_is_empty(&writer->waiters)); /* 2 */
    if (CHECK_DEEPLY)
        waiters_check(writer);
}

struct writer *
writer_open(struct store *store, struct partition partition, uint64_t guard, unsigned batches_max)
{
    store_check_partition(partition);
    check(batches_max > 0);
    struct writer *writer = memory_zalloc(1, sizeof *writer);
    writer->store = store;
    writer->loop = loop_self();
    writer->arena = arena_new(512);
    writer->partition = partition;
    writer->partition.name = arena_slice(writer->arena, partition.name);
    writer->stream.number = atomic_fetch_add(&store->stream_newest, 1) + 1;
    writer->guard = guard;
    writer->batches_max = batches_max;
    list_init(&writer->waiters);
    return writer;
}

bool
writer_has_room(const struct writer *writer)
{
    return writer->in_flight < writer->batches_max && store_has_room(writer->store);
}

ticket_t
writer_newest(const struct writer *writer)
{
    return writer->newest;
}

ticket_t
writer_durable(const struct writer *writer)
{
    return writer->durable;
}

const struct error *
writer_failure(const struct writer *writer)
{
    return writer->failure;
}

uint64_t
writer_guard(const struct writer *writer)
{
    return writer->guard;
}

void
writer_on_durable(struct writer *writer,
                  void (*on_durable)(void *context, ticket_t durable, const struct error *failure),
                  void *context)
{
    writer->on_durable = on_durable;
    writer->on_durable_context = context;
}

/* ---- answers ---- */

/* Gives every waiter up to `ticket` its answer. */
static void
writer_resolve(struct writer *writer, ticket_t ticket)
{
    list_each_safe(node, &writer->waiters) {
        struct ticket_waiter *ticket_waiter = list_entry(node, struct ticket_waiter, node);
        if (ticket_waiter->ticket > ticket)
            break;
        list_remove(node);
        ticket_waiter->is_resolved = true;
        if (ticket_waiter->ticket > writer->durable)
            ticket_waiter->failure = error_copy(ticket_waiter->arena, writer->failure);
        fiber_wake(ticket_waiter->fiber);
    }
}

static void
writer_fail(struct writer *writer, struct error *failure)
{
    check(writer->failure == NULL);
    writer->failure = failure;
    if (failure->kind == ERR_FENCED)
        probe("store_fenced");
    if (failure->kind == ERR_OUTCOME_UNKNOWN)
        probe("store_outcome_unknown");
    ticket_t newest =
        writer->newest; /* the callback may submit: those tickets fail by themselves */
    if (writer->on_durable != NULL)
        writer->on_durable(writer->on_durable_context, writer->durable, failure);
    writer_resolve(writer, newest);
}

static void
writer_take_answer(struct writer *writer, const struct commit *commit)
{
    if (commit->failed && writer->failure == NULL)
        writer_fail(writer, commit_error(writer->partition, commit->outcome, commit->guard_expected,
                                         commit->guard_found, writer->arena));
    check_that(commit->failed || writer->failure == NULL, "a batch landed behind a failed one");
    if (commit->failed)
        return;
    writer->durable++;
    if (writer->on_durable != NULL) /* for confirmations too: what waits for any ticket goes on */
        writer->on_durable(writer->on_durable_context, writer->durable, NULL);
    writer_resolve(writer, writer->durable);
}

static void
writer_done(struct commit *commit)
{
    struct writer *writer = commit->context;
    unsigned *count = commit->is_confirmation ? &writer->confirmations : &writer->in_flight;
    check(*count > 0 && commit->stream == &writer->stream);
    --*count;
    writer_take_answer(writer, commit);
    commit_complete(commit);
    writer_check(writer);
    if (writer->in_flight + writer->confirmations == 0 && writer->closer != NULL)
        fiber_wake(writer->closer);
}

/* ---- submitting and waiting ---- */

static void
submit_commit(struct writer *writer, struct commit *commit)
{
    commit->stream = &writer->stream;
    commit->done = writer_done;
    commit->context = writer;
    commit_submit(commit);
}

ticket_t
writer_submit(struct writer *writer, const struct batch *batch)
{
    check(partition_equal(batch->partition, writer->partition) && writer->closer == NULL);
    check(writer->loop == loop_self());
    store_check_batch(batch, writer->guard);
    uint64_t guard_expected = writer->guard;
    writer->guard = batch->guard_next;
    writer->newest++;
    if (writer->failure != NULL)
        return writer->newest;
    check_that(writer->in_flight < writer->batches_max, "no room: %u batches wait",
               writer->in_flight);
    writer->in_flight++;
    submit_commit(writer, commit_new(writer->store, batch, guard_expected));
    return writer->newest;
}

ticket_t
writer_confirm(struct writer *writer)
{
    check(writer->loop == loop_self() && writer->closer == NULL);
    writer->newest++;
    if (writer->failure != NULL)
        return writer->newest;
    writer->confirmations++;
    submit_commit(writer, commit_new_confirmation(writer->store, writer->partition, writer->guard));
    return writer->newest;
}

/* Behind the last one that does not wait for more; mostly that is the end. */
static void
writer_add_waiter(struct writer *writer, struct ticket_waiter *ticket_waiter)
{
    struct list *position = &writer->waiters;
    while (position->prev != &writer->waiters &&
           list_entry(position->prev, struct ticket_waiter, node)->ticket > ticket_waiter->ticket)
        position = position->prev;
    list_insert_before(position, &ticket_waiter->node);
}

struct error *
writer_wait(struct writer *writer, ticket_t ticket, struct arena *arena)
{
    writer_check(writer);
    check_that(ticket <= writer->newest, "ticket %llu was not given out",
               (unsigned long long)ticket);
    if (ticket <= writer->durable)
        return NULL;
    if (writer->failure != NULL)
        return error_copy(arena, writer->failure);

    struct ticket_waiter ticket_waiter = {.ticket = ticket, .fiber = fiber_self(), .arena = arena};
    check(ticket_waiter.fiber != NULL);
    writer_add_waiter(writer, &ticket_waiter);
    enum wake wake = WAKE_READY;
    while (!ticket_waiter.is_resolved && wake == WAKE_READY)
        wake = fiber_wait(NEVER);
    if (ticket_waiter.is_resolved) /* the writer may be gone */
        return ticket_waiter.failure;
    list_remove(&ticket_waiter.node);
    return wake_error(wake, arena, "waiting for a commit");
}

void
writer_close(struct writer *writer)
{
    check(writer->loop == loop_self() && writer->closer == NULL);
    writer->closer = fiber_self();
    while (writer->in_flight + writer->confirmations > 0) {
        check(writer->closer != NULL);
        fiber_wait_uncancellable();
    }
    check(list_is_empty(&writer->waiters));
    arena_free(writer->arena);
    memory_free(writer);
}
