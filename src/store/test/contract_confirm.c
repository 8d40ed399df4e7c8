/* contract_confirm.c - is this still the owner? Asked by the owner itself (writer_confirm), and by
 * those who read (the guard of what they saw).
 *
 * At stake is what is told to callers and written nowhere: a refusal, "nothing changes", a strong
 * query. An owner that was overtaken cannot know that it is no longer true. */
#include <stdatomic.h>

#include "base/test.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/key.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

/* A row with the guard that its batch leaves. */
static struct batch *
raise_batch(struct arena *arena, uint64_t guard_next)
{
    struct batch *batch = batch_new(arena, SHARD(1), guard_next);
    const char *text = arena_format(arena, "%llu", (unsigned long long)guard_next);
    batch_put(batch, ROW_RUN, TEXT("guard"), slice_text(text));
    return batch;
}

static struct error *
confirm(struct contract *contract, struct writer *writer)
{
    return writer_wait(writer, writer_confirm(writer), contract->arena);
}

void
contract_an_owner_is_confirmed_until_it_is_overtaken(struct contract *contract)
{
    struct writer *older = writer_open(contract->store, SHARD(1), 0, 10);
    EXPECT_OK(confirm(contract, older)); /* of what was never written, too */
    writer_submit(older, raise_batch(contract->arena, 1));
    EXPECT_OK(confirm(contract, older));
    contract_flush(contract);
    EXPECT_OK(confirm(contract, older));
    struct writer *newer = writer_open(contract->store, SHARD(1), 1, 10);
    EXPECT_OK(confirm(contract, newer)); /* nobody has written since */
    ticket_t ticket = writer_submit(newer, raise_batch(contract->arena, 2));
    EXPECT_OK(writer_wait(newer, ticket, contract->arena));
    EXPECT_KIND(confirm(contract, older), ERR_FENCED);
    EXPECT(writer_failure(older) != NULL && writer_failure(older)->kind == ERR_FENCED);
    EXPECT(strstr(writer_failure(older)->message, "guard is 2, not 1") != NULL);
    EXPECT_KIND(confirm(contract, older), ERR_FENCED);
    ticket = writer_submit(older, raise_batch(contract->arena, 3)); /* it is finished */
    EXPECT_KIND(writer_wait(older, ticket, contract->arena), ERR_FENCED);
    EXPECT_OK(confirm(contract, newer));
    writer_close(newer);
    writer_close(older);
    struct writer *late = writer_open(contract->store, SHARD(1), 0, 10);
    EXPECT_KIND(confirm(contract, late), ERR_FENCED);
    writer_close(late);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 2);
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("guard")), "2");
}

static void
count_durable(void *context, ticket_t durable, const struct error *failure)
{
    unsigned *count = context;
    EXPECT(failure == NULL || failure->kind == ERR_FENCED);
    *count += failure == NULL;
}

void
contract_a_confirmation_has_its_place_among_the_batches(struct contract *contract)
{
    unsigned told = 0;
    struct writer *writer = writer_open(contract->store, SHARD(1), 0, 20);
    writer_on_durable(writer, count_durable, &told);
    for (uint64_t i = 1; i <= 10; i++) {
        EXPECT_EQ(writer_submit(writer, raise_batch(contract->arena, i)), 2 * i - 1);
        EXPECT_EQ(writer_confirm(writer), 2 * i);
        EXPECT_EQ(writer_guard(writer), i);
    }
    EXPECT_OK(writer_wait(writer, 20, contract->arena));
    EXPECT_EQ(told, 20); /* a confirmation's ticket becomes durable as any other does */
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 10);
    writer_close(writer);
    /* Behind a batch that was refused it is refused, though the guard is what it expects. */
    writer = writer_open(contract->store, SHARD(1), 9, 20);
    writer_submit(writer, raise_batch(contract->arena, 10));
    ticket_t ticket = writer_confirm(writer);
    EXPECT_KIND(writer_wait(writer, ticket, contract->arena), ERR_FENCED);
    EXPECT_EQ(writer_durable(writer), 0);
    writer_close(writer);
    /* And a batch behind a confirmation that was. */
    writer = writer_open(contract->store, SHARD(1), 9, 20);
    writer_confirm(writer);
    ticket = writer_submit(writer, raise_batch(contract->arena, 12));
    EXPECT_KIND(writer_wait(writer, ticket, contract->arena), ERR_FENCED);
    writer_confirm(writer);
    writer_close(writer);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 10);
}

void
contract_a_confirmation_writes_nothing_and_needs_no_room(struct contract *contract)
{
    struct writer *writer = writer_open(contract->store, SHARD(1), 0, 1);
    for (int i = 0; i < 20; i++)
        writer_confirm(writer);
    EXPECT(writer_has_room(writer));
    writer_submit(writer, raise_batch(contract->arena, 1));
    EXPECT(!writer_has_room(writer));
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(writer_confirm(writer), 22 + (ticket_t)i);
    EXPECT_OK(writer_wait(writer, 20, contract->arena)); /* before the batch, perhaps */
    writer_confirm(writer);
    writer_close(writer); /* waits for all of them */
    EXPECT_TEXT(contract_list(contract, &(struct scan){.partition = SHARD(1), .kind = ROW_RUN}),
                "guard=1");
    writer = writer_open(contract->store, SHARD(2), 0, 1);
    EXPECT_OK(confirm(contract, writer));
    writer_close(writer);
    contract_reopen(contract);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 1);
    EXPECT_EQ(contract_guard(contract, SHARD(2)), 0);
}

/* ---- racing owners ---- */

#define RACERS 4
#define ROUNDS 60

struct asker {
    struct contract contract; /* with an arena of its own: it runs on another loop */
    _Atomic uint64_t *taken;  /* the highest guard that was acknowledged to anybody */
    unsigned number, confirmed, refused;
    struct latch *latch;
};

static void
note_taken(struct asker *asker, uint64_t guard)
{
    uint64_t before = atomic_load(asker->taken);
    while (before < guard && !atomic_compare_exchange_weak(asker->taken, &before, guard))
        ;
}

/* Takes the partition, and asks until somebody else has it. */
static void
ask_until_overtaken(struct asker *asker)
{
    struct contract *contract = &asker->contract;
    uint64_t guard = contract_guard(contract, SHARD(1)) + 1;
    struct writer *writer = writer_open(contract->store, SHARD(1), guard - 1, 1);
    struct error *err = writer_wait(
        writer, writer_submit(writer, raise_batch(contract->arena, guard)), contract->arena);
    if (err == NULL)
        note_taken(asker, guard);
    for (int i = 0; err == NULL && i < 3; i++) {
        uint64_t taken = atomic_load(asker->taken);
        err = confirm(contract, writer);
        EXPECT(err != NULL || taken <= guard);
        asker->confirmed += err == NULL;
    }
    if (err != NULL)
        EXPECT_KIND(err, ERR_FENCED);
    asker->refused += err != NULL;
    writer_close(writer);
}

static void
ask_on_loop(void *argument)
{
    struct asker *asker = argument;
    asker->contract.arena = arena_new(0);
    for (int i = 0; i < ROUNDS; i++)
        ask_until_overtaken(asker);
    arena_free(asker->contract.arena);
}

static void
asker_fiber(void *argument)
{
    struct asker *asker = argument;
    struct arena *arena = arena_new(0);
    EXPECT_OK(loop_call(loop_at(asker->number % loop_count()), ask_on_loop, asker, arena));
    arena_free(arena);
    latch_done(asker->latch);
}

void
contract_who_was_confirmed_had_not_been_overtaken_before(struct contract *contract)
{
    struct asker askers[RACERS];
    struct latch latch;
    _Atomic uint64_t taken = 0;
    latch_init(&latch, RACERS);
    for (unsigned i = 0; i < RACERS; i++) {
        askers[i] =
            (struct asker){.contract = *contract, .taken = &taken, .number = i, .latch = &latch};
        fiber_start("asker", asker_fiber, &askers[i]);
    }
    latch_wait(&latch);
    unsigned confirmed = 0, refused = 0;
    for (unsigned i = 0; i < RACERS; i++) {
        confirmed += askers[i].confirmed;
        refused += askers[i].refused;
    }
    EXPECT(confirmed > 0 && refused > 0);
}

/* ---- reading ---- */

#define RAISES 200

struct guard_reader {
    struct contract contract; /* with an arena of its own */
    struct latch *latch;
    const bool *is_over;
    unsigned looks;
};

/* The row says the guard of its batch; the one that comes with it must be the same. */
static void
look_at_guard(void *argument)
{
    struct guard_reader *guard_reader = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct store *store = guard_reader->contract.store;
    bool found;
    struct slice value;
    uint64_t guard;
    EXPECT_OK(
        store_get_guarded(store, SHARD(1), ROW_RUN, TEXT("guard"), arena, &found, &value, &guard));
    EXPECT(found == (guard > 0));
    if (found)
        EXPECT_TEXT(arena_text_of(arena, value),
                    arena_format(arena, "%llu", (unsigned long long)guard));
    struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN, .wants_guard = true};
    struct rows rows;
    EXPECT_OK(store_scan(store, &scan, arena, &rows));
    EXPECT(rows.guard >= guard && rows.count == (rows.guard > 0));
    if (rows.count > 0)
        EXPECT_TEXT(arena_text_of(arena, rows.row[0].value),
                    arena_format(arena, "%llu", (unsigned long long)rows.guard));
    guard_reader->looks++;
}

static void
guard_reader_fiber(void *argument)
{
    struct guard_reader *guard_reader = argument;
    struct arena *arena = arena_new(0);
    while (!*guard_reader->is_over) {
        EXPECT_OK(loop_call(loop_at(1 % loop_count()), look_at_guard, guard_reader, arena));
        arena_reset(arena);
    }
    arena_free(arena);
    latch_done(guard_reader->latch);
}

void
contract_a_read_gives_the_guard_of_its_moment(struct contract *contract)
{
    bool is_over = false;
    struct latch latch;
    latch_init(&latch, 1);
    struct guard_reader guard_reader = {
        .contract = *contract, .latch = &latch, .is_over = &is_over};
    fiber_start("guard reader", guard_reader_fiber, &guard_reader);
    struct writer *writer = writer_open(contract->store, SHARD(1), 0, 4);
    for (uint64_t i = 1; i <= RAISES; i++) {
        while (!writer_has_room(writer))
            EXPECT_OK(writer_wait(writer, writer_durable(writer) + 1, contract->arena));
        writer_submit(writer, raise_batch(contract->arena, i));
        if (i == RAISES / 2)
            contract_flush(contract);
    }
    writer_close(writer);
    is_over = true;
    latch_wait(&latch);
    EXPECT(guard_reader.looks > 0);
    struct rows rows;
    struct scan scan = {.partition = SHARD(1),
                        .kind = ROW_RUN,
                        .from = TEXT("b"),
                        .to = TEXT("a"),
                        .wants_guard = true};
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows)); /* of nothing */
    EXPECT(rows.count == 0 && rows.guard == RAISES);
}
