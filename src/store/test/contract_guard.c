/* contract_guard.c - one number keeps two owners apart.
 *
 * What is at stake is everything: an old owner whose commit lands after a new one took the
 * partition decides on state that is no longer true. */
#include "base/test.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/key.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

static struct batch *
put_batch(struct contract *contract, uint64_t guard_next, struct slice key, struct slice value)
{
    struct batch *batch = batch_new(contract->arena, SHARD(1), guard_next);
    batch_put(batch, ROW_RUN, key, value);
    return batch;
}

static void
expect_fenced(struct contract *contract, const struct batch *batch, uint64_t guard_expected)
{
    struct error *err = store_commit(contract->store, batch, guard_expected, contract->arena);
    EXPECT_KIND(err, ERR_FENCED);
}

void
contract_a_commit_with_another_guard_writes_nothing(struct contract *contract)
{
    expect_fenced(contract, put_batch(contract, 1, TEXT("a"), TEXT("1")), 1);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 0);
    contract_commit(contract, put_batch(contract, 5, TEXT("a"), TEXT("5")), 0);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 5);
    contract_flush(contract);
    expect_fenced(contract, put_batch(contract, 5, TEXT("a"), TEXT("x")), 0);
    expect_fenced(contract, put_batch(contract, 9, TEXT("b"), TEXT("x")), 4);
    expect_fenced(contract, put_batch(contract, 9, TEXT("b"), TEXT("x")), 6);
    contract_reopen(contract);
    expect_fenced(contract, put_batch(contract, 9, TEXT("b"), TEXT("x")), 4);
    expect_fenced(contract, put_batch(contract, UINT64_MAX, TEXT("b"), TEXT("x")), 6);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 5);
    EXPECT_EQ(contract_guard(contract, SHARD(2)), 0);
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("a")), "5");
    EXPECT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("b")) == NULL);
    struct error *err = store_commit(contract->store, put_batch(contract, 7, TEXT("a"), TEXT("x")),
                                     6, contract->arena);
    EXPECT(strstr(err->message, "guard is 5, not 6") != NULL); /* tells both */
    contract_commit(contract, put_batch(contract, UINT64_MAX, TEXT("a"), TEXT("max")), 5);
    EXPECT(contract_guard(contract, SHARD(1)) == UINT64_MAX);
}

void
contract_an_older_owner_is_fenced_for_ever(struct contract *contract)
{
    struct writer *older = writer_open(contract->store, SHARD(1), 0, 100);
    ticket_t ticket = writer_submit(older, put_batch(contract, 1, TEXT("a"), TEXT("older")));
    EXPECT_OK(writer_wait(older, ticket, contract->arena));
    struct writer *newer = writer_open(contract->store, SHARD(1), 1, 100);
    ticket = writer_submit(newer, put_batch(contract, 2, TEXT("b"), TEXT("newer")));
    EXPECT_OK(writer_wait(newer, ticket, contract->arena));
    for (int i = 0; i < 5; i++) {
        ticket = writer_submit(older, put_batch(contract, 1, TEXT("a"), TEXT("late")));
        EXPECT_KIND(writer_wait(older, ticket, contract->arena), ERR_FENCED);
        EXPECT(writer_failure(older)->kind == ERR_FENCED);
        EXPECT_OK(writer_wait(older, 1, contract->arena)); /* what was durable is */
    }
    writer_close(older);
    older = writer_open(contract->store, SHARD(1), 1, 100); /* the same owner, stubborn */
    ticket = writer_submit(older, put_batch(contract, 7, TEXT("a"), TEXT("stubborn")));
    EXPECT_KIND(writer_wait(older, ticket, contract->arena), ERR_FENCED);
    writer_close(older);
    ticket = writer_submit(newer, put_batch(contract, 2, TEXT("c"), TEXT("newer")));
    EXPECT_OK(writer_wait(newer, ticket, contract->arena));
    writer_close(newer);
    contract_flush(contract);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN};
    EXPECT_TEXT(contract_list(contract, &scan), "a=older b=newer c=newer");
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 2);
}

/* Two owners want to raise 0 to 1; the first batch of the loser is refused. Its second batch
 * expects guard 1, and 1 it is: but it was decided on what the first one wrote. */
void
contract_a_fenced_raise_takes_what_is_behind_it_down(struct contract *contract)
{
    contract_commit(contract, put_batch(contract, 1, TEXT("a"), TEXT("winner")), 0);
    struct writer *loser = writer_open(contract->store, SHARD(1), 0, 100);
    writer_submit(loser, put_batch(contract, 1, TEXT("a"), TEXT("loser")));
    for (int i = 0; i < 10; i++)
        writer_submit(loser, put_batch(contract, 1, TEXT("b"), TEXT("behind")));
    EXPECT_KIND(writer_wait(loser, 11, contract->arena), ERR_FENCED);
    EXPECT_KIND(writer_wait(loser, 1, contract->arena), ERR_FENCED);
    EXPECT_EQ(writer_durable(loser), 0);
    writer_submit(loser, put_batch(contract, 1, TEXT("b"), TEXT("later")));
    EXPECT_KIND(writer_wait(loser, 12, contract->arena), ERR_FENCED);
    writer_close(loser);
    contract_flush(contract);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN};
    EXPECT_TEXT(contract_list(contract, &scan), "a=winner");
}

/* ---- racing owners ---- */

#define RACERS      4
#define RACE_ROUNDS 25
#define RACE_BEHIND 3

struct racer {
    struct contract contract; /* with an arena of its own: it runs on another loop */
    unsigned number;
    unsigned wins;
    struct latch *latch;
};

static struct slice
race_key(struct racer *racer, uint64_t guard, uint64_t step)
{
    struct key_writer key;
    key_begin(&key, racer->contract.arena);
    key_u64(&key, guard);
    key_u64(&key, step);
    return key_end(&key);
}

/* Takes the partition, writes a few rows without waiting, and looks what became of it. */
static void
race_round(struct racer *racer)
{
    struct contract *contract = &racer->contract;
    uint64_t guard = contract_guard(contract, SHARD(1));
    struct writer *writer = writer_open(contract->store, SHARD(1), guard, 1 + RACE_BEHIND);
    const char *name = arena_format(contract->arena, "%u", racer->number);
    for (uint64_t step = 0; step <= RACE_BEHIND; step++) {
        struct batch *batch = batch_new(contract->arena, SHARD(1), guard + 1);
        batch_put(batch, ROW_DEAD_LETTER, race_key(racer, guard + 1, step), slice_text(name));
        writer_submit(writer, batch);
    }
    struct error *err = writer_wait(writer, 1, contract->arena);
    racer->wins += err == NULL;
    if (err != NULL)
        EXPECT_KIND(err, ERR_FENCED);
    err = writer_wait(writer, writer_newest(writer), contract->arena);
    if (err != NULL)
        EXPECT_KIND(err, ERR_FENCED);
    writer_close(writer);
}

static void
race_on_loop(void *argument)
{
    struct racer *racer = argument;
    racer->contract.arena = arena_new(0);
    for (int i = 0; i < RACE_ROUNDS; i++)
        race_round(racer);
    arena_free(racer->contract.arena);
}

static void
race_fiber(void *argument)
{
    struct racer *racer = argument;
    struct arena *arena = arena_new(0);
    EXPECT_OK(loop_call(loop_at(racer->number % loop_count()), race_on_loop, racer, arena));
    arena_free(arena);
    latch_done(racer->latch);
}

/* Every guard has one owner, whose rows are a prefix of what it wrote. */
static void
expect_one_owner_per_guard(struct contract *contract, uint64_t guard_last)
{
    struct scan scan = {.partition = SHARD(1), .kind = ROW_DEAD_LETTER};
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    uint64_t guard = 0, step = 0;
    struct slice owner = TEXT("");
    for (size_t i = 0; i < rows.count; i++) {
        struct slice key = rows.row[i].key;
        uint64_t row_guard, row_step;
        EXPECT(key_take_u64(&key, &row_guard) && key_take_u64(&key, &row_step));
        bool is_next_owner = row_guard == guard + 1 && row_step == 0;
        bool is_next_step = row_guard == guard && row_step == step + 1;
        EXPECT(is_next_owner || (is_next_step && slice_equal(rows.row[i].value, owner)));
        guard = row_guard;
        step = row_step;
        owner = rows.row[i].value;
    }
    EXPECT_EQ(guard, guard_last);
}

void
contract_of_owners_that_race_one_wins_each_round(struct contract *contract)
{
    struct racer racers[RACERS];
    struct latch latch;
    latch_init(&latch, RACERS);
    for (unsigned i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.contract = *contract, .number = i, .latch = &latch};
        fiber_start("racer", race_fiber, &racers[i]);
    }
    latch_wait(&latch);
    uint64_t wins = 0;
    for (unsigned i = 0; i < RACERS; i++)
        wins += racers[i].wins;
    contract_flush(contract);
    EXPECT_EQ(contract_guard(contract, SHARD(1)), wins);
    expect_one_owner_per_guard(contract, wins);
}
