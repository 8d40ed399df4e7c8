/* contract_writer.c - a stream of batches: durable in order, seen whole, and still there later. */
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/key.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

static struct batch *
counter_batch(struct contract *contract, uint64_t guard_next, uint64_t count)
{
    const char *value = arena_format(contract->arena, "%llu", (unsigned long long)count);
    struct batch *batch = batch_new(contract->arena, SHARD(1), guard_next);
    batch_put(batch, ROW_RUN, TEXT("counter"), slice_text(value));
    return batch;
}

/* ---- tickets ---- */

#define TICKETS 60

struct tickets {
    struct contract *contract;
    struct writer *writer;
    ticket_t notified; /* the newest that the callback spoke of */
    ticket_t next;     /* to be waited for by the next fiber */
    ticket_t returned; /* the newest whose wait returned */
    struct latch latch;
};

static void
note_durable(void *context, ticket_t durable, const struct error *failure)
{
    struct tickets *tickets = context;
    EXPECT(failure == NULL);
    EXPECT(durable > tickets->notified && durable == writer_durable(tickets->writer));
    tickets->notified = durable;
}

static void
wait_for_ticket(void *argument)
{
    struct tickets *tickets = argument;
    ticket_t ticket = tickets->next--; /* the last ticket is waited for first */
    EXPECT_OK(writer_wait(tickets->writer, ticket, tickets->contract->arena));
    EXPECT(writer_durable(tickets->writer) >= ticket && tickets->notified >= ticket);
    EXPECT_EQ(ticket, tickets->returned + 1); /* yet the first returns first */
    tickets->returned = ticket;
    latch_done(&tickets->latch);
}

void
contract_tickets_become_durable_in_order(struct contract *contract)
{
    struct tickets tickets = {.contract = contract, .next = TICKETS};
    tickets.writer = writer_open(contract->store, SHARD(1), 0, TICKETS);
    writer_on_durable(tickets.writer, note_durable, &tickets);
    latch_init(&tickets.latch, TICKETS);
    EXPECT_OK(writer_wait(tickets.writer, 0, contract->arena));
    for (uint64_t i = 1; i <= TICKETS; i++) {
        EXPECT_EQ(writer_submit(tickets.writer, counter_batch(contract, i / 2 + 1, i)), i);
        EXPECT_EQ(writer_guard(tickets.writer), i / 2 + 1);
        EXPECT_EQ(writer_newest(tickets.writer), i);
    }
    EXPECT_EQ(writer_durable(tickets.writer), 0); /* nothing can happen without a yield */
    for (int i = 0; i < TICKETS; i++)
        fiber_start("ticket", wait_for_ticket, &tickets);
    latch_wait(&tickets.latch);
    EXPECT_EQ(tickets.notified, TICKETS);
    EXPECT(writer_failure(tickets.writer) == NULL);
    writer_close(tickets.writer);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), TICKETS / 2 + 1);
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("counter")), "60");
}

struct canceled {
    struct contract *contract;
    struct writer *writer;
    struct latch latch;
};

static void
submit_and_be_cancelled(void *argument)
{
    struct canceled *canceled = argument;
    struct contract *contract = canceled->contract;
    ticket_t ticket = writer_submit(canceled->writer, counter_batch(contract, 1, 1));
    EXPECT_KIND(writer_wait(canceled->writer, ticket, contract->arena), ERR_CANCELLED);
    latch_done(&canceled->latch);
}

void
contract_a_wait_that_is_cancelled_leaves_the_batch_alone(struct contract *contract)
{
    struct canceled canceled = {.contract = contract};
    canceled.writer = writer_open(contract->store, SHARD(1), 0, 10);
    latch_init(&canceled.latch, 1);
    fiber_cancel(fiber_start("cancelled", submit_and_be_cancelled, &canceled));
    latch_wait(&canceled.latch);
    ticket_t ticket = writer_submit(canceled.writer, counter_batch(contract, 2, 2));
    fiber_set_deadline(clock_monotonic());
    EXPECT_KIND(writer_wait(canceled.writer, ticket, contract->arena), ERR_DEADLINE);
    fiber_set_deadline(NEVER);
    EXPECT_OK(writer_wait(canceled.writer, ticket, contract->arena));
    ticket = writer_submit(canceled.writer, counter_batch(contract, 3, 3));
    writer_close(canceled.writer); /* waits for what is in flight */
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 3);
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("counter")), "3");
}

void
contract_a_writer_has_room_for_as_many_as_it_was_told(struct contract *contract)
{
    struct writer *writer = writer_open(contract->store, SHARD(1), 0, 3);
    for (uint64_t round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < 3; i++) {
            EXPECT(writer_has_room(writer));
            writer_submit(writer, counter_batch(contract, 1, round * 3 + i));
        }
        EXPECT(!writer_has_room(writer));
        EXPECT_OK(writer_wait(writer, writer_newest(writer), contract->arena));
    }
    EXPECT_EQ(writer_durable(writer), 15);
    writer_close(writer);
}

/* ---- readers ---- */

struct outside_read {
    struct contract contract; /* with an arena of its own */
    const char *wanted;
};

static void
read_on_loop(void *argument)
{
    struct outside_read *outside_read = argument;
    outside_read->contract.arena = arena_new(0);
    const char *seen = contract_get(&outside_read->contract, SHARD(1), ROW_RUN, TEXT("counter"));
    EXPECT_TEXT(seen, outside_read->wanted);
    arena_free(outside_read->contract.arena);
}

void
contract_who_waited_for_a_commit_reads_it_on_every_loop(struct contract *contract)
{
    struct writer *writer = writer_open(contract->store, SHARD(1), 0, 10);
    for (uint64_t i = 0; i < 50; i++) {
        ticket_t ticket = writer_submit(writer, counter_batch(contract, 1, i));
        EXPECT_OK(writer_wait(writer, ticket, contract->arena));
        struct outside_read outside_read = {.contract = *contract};
        outside_read.wanted = arena_format(contract->arena, "%llu", (unsigned long long)i);
        struct loop *other = loop_at((unsigned)i % loop_count());
        EXPECT_OK(loop_call(other, read_on_loop, &outside_read, contract->arena));
    }
    writer_close(writer);
}

#define HALVES       40  /* rows of a batch */
#define HALF_BATCHES 200 /* batches, while readers look */
#define HALF_DIGITS  8   /* the number of the batch, in each value */
#define LARGE_HALF   4000

struct halves {
    struct contract contract;
    enum row_kind kind;
    struct latch *latch;
    const bool *is_over; /* set on loop 0, read by fibers of it */
    unsigned looks;
};

/* All rows of the kind are of the same batch, as every batch writes all of them. */
static void
look_for_halves(void *argument)
{
    struct halves *halves = argument;
    struct arena *arena = arena_new(0);
    struct scan scan = {.partition = SHARD(1), .kind = halves->kind};
    struct rows rows;
    EXPECT_OK(store_scan(halves->contract.store, &scan, arena, &rows));
    EXPECT(rows.count == 0 || rows.count == HALVES);
    for (size_t i = 1; i < rows.count; i++)
        EXPECT(memcmp(rows.row[i].value.data, rows.row[0].value.data, HALF_DIGITS) == 0);
    halves->looks++;
    arena_free(arena);
}

static void
halves_fiber(void *argument)
{
    struct halves *halves = argument;
    struct arena *arena = arena_new(0);
    struct loop *other = loop_at(halves->kind == ROW_DEAD_LETTER ? 0 : 1 % loop_count());
    while (!*halves->is_over) {
        EXPECT_OK(loop_call(other, look_for_halves, halves, arena));
        arena_reset(arena);
    }
    arena_free(arena);
    latch_done(halves->latch);
}

static void
write_halves(struct contract *contract)
{
    struct writer *writer = writer_open(contract->store, SHARD(1), 0, 8);
    for (uint64_t i = 0; i < HALF_BATCHES; i++) {
        char *value = arena_format(contract->arena, "%0*llu%*s", HALF_DIGITS, (unsigned long long)i,
                                   LARGE_HALF, "");
        struct slice small = slice_of(value, HALF_DIGITS), large = slice_text(value);
        struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
        batch_delete_range(batch, ROW_VISIBLE, TEXT(""), TEXT(""));
        for (uint64_t row = 0; row < HALVES; row++) {
            batch_put(batch, ROW_RUN, contract_key(contract, row), small);
            batch_put(batch, ROW_DEAD_LETTER, contract_key(contract, row), small);
            batch_put(batch, ROW_VISIBLE, contract_key(contract, i * HALVES + row),
                      row % 2 == 0 ? small : large); /* an engine may treat them differently */
        }
        while (!writer_has_room(writer))
            EXPECT_OK(writer_wait(writer, writer_durable(writer) + 1, contract->arena));
        writer_submit(writer, batch);
        if (i == HALF_BATCHES / 2)
            contract_flush(contract);
    }
    writer_close(writer);
}

void
contract_readers_never_see_half_a_batch(struct contract *contract)
{
    bool is_over = false;
    struct latch latch;
    static const enum row_kind kinds[] = {ROW_RUN, ROW_DEAD_LETTER, ROW_VISIBLE};
    struct halves halves[array_length(kinds)];
    latch_init(&latch, array_length(kinds));
    for (size_t i = 0; i < array_length(kinds); i++) {
        halves[i] = (struct halves){
            .contract = *contract, .kind = kinds[i], .latch = &latch, .is_over = &is_over};
        fiber_start("halves", halves_fiber, &halves[i]);
    }
    write_halves(contract);
    is_over = true;
    latch_wait(&latch);
    for (size_t i = 0; i < array_length(kinds); i++)
        EXPECT(halves[i].looks > 0);
}

/* ---- later ---- */

void
contract_what_was_written_is_there_after_opening_again(struct contract *contract)
{
    for (uint64_t round = 1; round <= 4; round++) {
        struct batch *batch = batch_new(contract->arena, SHARD(1), round);
        for (enum row_kind kind = ROW_SHARD; kind <= ROW_DEAD_LETTER; kind++)
            batch_put(batch, kind, contract_key(contract, round), TEXT("v"));
        contract_commit(contract, batch, round - 1);
        if (round % 2 == 0)
            contract_flush(contract);
        contract_reopen(contract);
        EXPECT_EQ(contract_guard(contract, SHARD(1)), round);
        for (enum row_kind kind = ROW_SHARD; kind <= ROW_DEAD_LETTER; kind++) {
            struct scan scan = {.partition = SHARD(1), .kind = kind};
            struct rows rows;
            EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
            EXPECT_EQ(rows.count, round);
        }
    }
}
