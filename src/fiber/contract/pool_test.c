/* pool_test.c - blocking work, and workers with a queue. */
#include "fiber/pool.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/sync.h"

static void
add_one(void *argument)
{
    atomic_fetch_add((atomic_uint *)argument, 1);
}

CONTRACT(pool, the_work_is_done_when_the_call_returns, 1)
{
    atomic_uint count = 0;
    for (unsigned i = 1; i <= 50; i++) {
        EXPECT_OK(pool_run(add_one, &count, arena));
        EXPECT_EQ(atomic_load(&count), i);
    }
}

struct crowd {
    struct latch latch;
    atomic_uint done;
    unsigned refused;
};

static void
run_one(void *argument)
{
    struct crowd *crowd = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = pool_run(add_one, &crowd->done, arena);
    if (err != NULL) {
        EXPECT_KIND(err, ERR_BUSY);
        crowd->refused++;
    }
    latch_done(&crowd->latch);
}

CONTRACT(pool, many_fibers_wait_at_once_and_each_is_done_or_refused, 1)
{
    enum { FIBERS = POOL_QUEUE_MAX + 500 };
    struct crowd crowd = {.refused = 0};
    latch_init(&crowd.latch, FIBERS);
    for (int i = 0; i < FIBERS; i++)
        fiber_start("run", run_one, &crowd);
    latch_wait(&crowd.latch);
    EXPECT_EQ(atomic_load(&crowd.done) + crowd.refused, FIBERS);
    EXPECT(crowd.refused <= 500);
}

static void
run_cancelled(void *argument)
{
    struct crowd *crowd = argument;
    run_one(crowd);
    EXPECT(fiber_is_cancelled());
}

CONTRACT(pool, waiting_for_it_cannot_be_cancelled, 1)
{
    struct crowd crowd = {.refused = 0};
    latch_init(&crowd.latch, 1);
    fiber_cancel(fiber_start("run", run_cancelled, &crowd));
    latch_wait(&crowd.latch);
    EXPECT_EQ(atomic_load(&crowd.done), 1);
}

static void
work_elsewhere(void *argument)
{
    struct crowd *crowd = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(pool_run(add_one, &crowd->done, arena));
}

CONTRACT(pool, every_loop_may_use_it, 2)
{
    struct crowd crowd = {.refused = 0};
    EXPECT_OK(loop_call(loop_at(1), work_elsewhere, &crowd, arena));
    work_elsewhere(&crowd);
    EXPECT_EQ(atomic_load(&crowd.done), 40);
}

/* ---- workers ---- */

/* Counts what it is given; the sum of a group is the answer to each of the group. */
struct adder {
    unsigned total; /* of the worker alone */
    unsigned groups;
};

struct addition {
    struct loop_message message; /* to the worker and back */
    struct loop *from;
    struct fiber *fiber;
    unsigned amount;
    unsigned total; /* answered */
    bool is_answered;
};

static void
deliver_total(struct loop_message *message)
{
    struct addition *addition = container_of(message, struct addition, message);
    addition->is_answered = true;
    fiber_wake(addition->fiber);
}

static void
process_additions(void *context, struct list *messages)
{
    struct adder *adder = context;
    adder->groups++;
    for (struct list *node; (node = list_pop_front(messages)) != NULL;) {
        struct loop_message *message = list_entry(node, struct loop_message, node);
        struct addition *addition = container_of(message, struct addition, message);
        adder->total += addition->amount;
        addition->total = adder->total;
        loop_post_answer(addition->from, message);
    }
}

struct adding {
    struct worker *worker;
    struct latch latch;
    unsigned highest;
};

static void
add_many(void *argument)
{
    struct adding *adding = argument;
    unsigned last = 0;
    for (int i = 0; i < 100; i++) {
        struct addition addition = {.message.deliver = deliver_total,
                                    .from = loop_self(),
                                    .fiber = fiber_self(),
                                    .amount = 1};
        worker_post(adding->worker, &addition.message);
        while (!addition.is_answered)
            fiber_wait_uncancellable();
        EXPECT(addition.total > last);
        last = addition.total;
    }
    if (last > adding->highest)
        adding->highest = last;
    latch_done(&adding->latch);
}

static void
add_from_crowd(void *argument)
{
    struct adding *adding = argument;
    struct adding mine = {.worker = adding->worker};
    latch_init(&mine.latch, 20);
    for (int i = 0; i < 20; i++)
        fiber_start("add", add_many, &mine);
    latch_wait(&mine.latch);
}

CONTRACT(worker, it_gets_every_letter_once_from_all_loops, 2)
{
    struct adder adder = {0};
    struct adding adding = {.worker = worker_new("adder", process_additions, &adder)};
    EXPECT_OK(loop_call(loop_at(1), add_from_crowd, &adding, arena));
    add_from_crowd(&adding);
    worker_free(adding.worker);
    EXPECT_EQ(adder.total, 4000);
    EXPECT(adder.groups <= 4000 && adder.groups > 0);
}

/* What was posted before the end is drained before the end. */
CONTRACT(worker, freeing_it_drains_its_queue, 1)
{
    struct adder adder = {0};
    struct worker *worker = worker_new("adder", process_additions, &adder);
    struct addition additions[50];
    for (int i = 0; i < 50; i++) {
        additions[i] = (struct addition){.message.deliver = deliver_total,
                                         .from = loop_self(),
                                         .fiber = fiber_self(),
                                         .amount = 1};
        worker_post(worker, &additions[i].message);
    }
    worker_free(worker);
    EXPECT_EQ(adder.total, 50);
    for (int i = 0; i < 50; i++)
        while (!additions[i].is_answered)
            fiber_wait_uncancellable();
}

/* Waits for more behind the first messages that it gets. */
struct patience {
    struct worker *worker;
    unsigned wanted;
    int64_t time;
    bool has_waited;
    size_t found;
};

static void
process_patiently(void *context, struct list *messages)
{
    struct patience *patience = context;
    struct adder unused = {0};
    process_additions(&unused, messages);
    if (patience->has_waited)
        return;
    patience->has_waited = true;
    patience->found = worker_await(patience->worker, patience->wanted, patience->time);
}

/* One message, and three more when it is answered; then the end. */
static size_t
await_messages(unsigned wanted, int64_t time)
{
    struct addition additions[4];
    struct patience patience = {.wanted = wanted, .time = time};
    patience.worker = worker_new("patient", process_patiently, &patience);
    for (int i = 0; i < 4; i++) {
        additions[i] = (struct addition){
            .message.deliver = deliver_total, .from = loop_self(), .fiber = fiber_self()};
        worker_post(patience.worker, &additions[i].message);
        while (i == 0 && !additions[i].is_answered)
            fiber_wait_uncancellable();
    }
    worker_free(patience.worker);
    for (int i = 0; i < 4; i++)
        while (!additions[i].is_answered)
            fiber_wait_uncancellable();
    return patience.found;
}

CONTRACT(worker, it_may_wait_for_more_until_there_are_enough_or_its_end, 1)
{
    EXPECT_EQ(await_messages(3, 3600 * NS_PER_S), contract_is_simulated ? 0 : 3);
    EXPECT_EQ(await_messages(1000, 3600 * NS_PER_S), contract_is_simulated ? 0 : 3);
}

CONTRACT(worker, it_waits_for_more_no_longer_than_it_said, 1)
{
    struct addition addition = {
        .message.deliver = deliver_total, .from = loop_self(), .fiber = fiber_self()};
    struct patience patience = {.wanted = 1000, .time = NS_PER_MS};
    patience.worker = worker_new("patient", process_patiently, &patience);
    worker_post(patience.worker, &addition.message);
    while (!addition.is_answered)
        fiber_wait_uncancellable();
    addition.is_answered = false; /* the next one is drained after the wait */
    worker_post(patience.worker, &addition.message);
    while (!addition.is_answered)
        fiber_wait_uncancellable();
    EXPECT(patience.found <= 1);
    worker_free(patience.worker);
}
