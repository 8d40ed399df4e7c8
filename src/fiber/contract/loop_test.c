/* loop_test.c - several loops: messages in order and bounded, and loop_call. */
#include "fiber/loop.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/probe.h"
#include "fiber/sync.h"

CONTRACT(loop, each_knows_its_place, 3)
{
    EXPECT_EQ(loop_count(), 3);
    EXPECT_EQ(loop_index(loop_self()), 0);
    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQ(loop_index(loop_at(i)), i);
    EXPECT(loop_is_here());
    probe("loop_test");
}

/* ---- messages ---- */

struct numbered {
    struct loop_message message;
    struct receiver *receiver;
    unsigned sender;
    unsigned number;
};

/* Lives on loop 0. */
struct receiver {
    struct loop *loop;
    unsigned next[4];
    unsigned received;
    unsigned awaited;
    bool is_out_of_order;
    struct fiber *waiter;
};

static void
receive(struct loop_message *message)
{
    struct numbered *numbered = container_of(message, struct numbered, message);
    struct receiver *receiver = numbered->receiver;
    check(loop_self() == receiver->loop && fiber_self() == NULL);
    receiver->is_out_of_order |= receiver->next[numbered->sender] != numbered->number;
    receiver->next[numbered->sender] = numbered->number + 1;
    memory_free(numbered);
    if (++receiver->received == receiver->awaited)
        fiber_wake(receiver->waiter);
}

static void
receiver_wait(struct receiver *receiver)
{
    receiver->waiter = fiber_self();
    while (receiver->received < receiver->awaited)
        fiber_wait_uncancellable();
}

#define MESSAGES 20000

static void
send_many(void *argument)
{
    struct receiver *receiver = argument;
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct numbered *numbered = memory_zalloc(1, sizeof *numbered);
        *numbered = (struct numbered){{.deliver = receive}, receiver, loop_index(loop_self()), i};
        while (!loop_post(receiver->loop, &numbered->message))
            fiber_yield();
        if (i % 64 == 0)
            fiber_yield();
    }
}

struct call_site {
    struct latch *latch;
    void (*function)(void *argument);
    void *argument;
    struct loop *to;
    enum error_kind failed;
};

static void
call_from_here(void *argument)
{
    struct call_site *site = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = loop_call(site->to, site->function, site->argument, arena);
    site->failed = err == NULL ? ERROR_KIND_COUNT : err->kind;
    latch_done(site->latch);
}

/* All loops, the receiver's too, send at once; each must arrive completely and in order. */
CONTRACT(mailbox, letters_of_one_sender_arrive_in_order, 4)
{
    struct receiver receiver = {.loop = loop_self(), .awaited = 4 * MESSAGES};
    struct latch latch;
    struct call_site sites[4];
    latch_init(&latch, 4);
    for (unsigned i = 0; i < 4; i++) {
        sites[i] = (struct call_site){&latch, send_many, &receiver, loop_at(i), 0};
        fiber_start("sender", call_from_here, &sites[i]);
    }
    receiver_wait(&receiver);
    latch_wait(&latch);
    EXPECT(!receiver.is_out_of_order);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQ(receiver.next[i], MESSAGES);
}

/* The receiver does not tick while this fiber posts to its own loop, so the mailbox fills up. */
CONTRACT(mailbox, it_is_bounded_and_takes_letters_again_when_they_were_delivered, 1)
{
    struct receiver receiver = {.loop = loop_self(), .awaited = LOOP_MAILBOX_MAX};
    unsigned posted = 0;
    for (unsigned i = 0; i < LOOP_MAILBOX_MAX + 10; i++) {
        struct numbered *numbered = memory_zalloc(1, sizeof *numbered);
        *numbered = (struct numbered){{.deliver = receive}, &receiver, 0, i};
        if (loop_post(loop_self(), &numbered->message))
            posted++;
        else
            memory_free(numbered);
    }
    EXPECT_EQ(posted, LOOP_MAILBOX_MAX);
    receiver_wait(&receiver);
    EXPECT(!receiver.is_out_of_order);

    receiver = (struct receiver){.loop = loop_self(), .awaited = 1};
    struct numbered *numbered = memory_zalloc(1, sizeof *numbered);
    *numbered = (struct numbered){{.deliver = receive}, &receiver, 0, 0};
    EXPECT(loop_post(loop_self(), &numbered->message));
    receiver_wait(&receiver);
}

/* ---- loop_call ---- */

struct question {
    unsigned loop;
    int64_t deadline;
    bool was_cancelled;
    struct fiber *fiber;
    enum wake wake;
    atomic_bool is_running;
    unsigned depth;
};

static void
answer_where(void *argument)
{
    struct question *question = argument;
    question->loop = loop_index(loop_self());
    question->deadline = fiber_deadline();
    question->fiber = fiber_self();
}

CONTRACT(loop_call, runs_there_with_the_callers_deadline, 2)
{
    struct question question = {.loop = 99};
    int64_t deadline = clock_monotonic() + 3600 * NS_PER_S;
    fiber_set_deadline(deadline);
    EXPECT_OK(loop_call(loop_at(1), answer_where, &question, arena));
    EXPECT_EQ(question.loop, 1);
    EXPECT_EQ(question.deadline, deadline);
    EXPECT(question.fiber != fiber_self());
    EXPECT_OK(loop_call(loop_at(0), answer_where, &question, arena));
    EXPECT_EQ(question.loop, 0);
    EXPECT(question.fiber == fiber_self()); /* simply called */
}

static void
wait_there(void *argument)
{
    struct question *question = argument;
    atomic_store(&question->is_running, true);
    question->wake = fiber_wait(NEVER);
    question->was_cancelled = fiber_is_cancelled();
}

CONTRACT(loop_call, the_deadline_ends_a_wait_on_the_other_side, 2)
{
    struct question question = {.wake = WAKE_READY};
    int64_t deadline = clock_monotonic() + 5 * NS_PER_MS;
    fiber_set_deadline(deadline);
    EXPECT_OK(loop_call(loop_at(1), wait_there, &question, arena));
    EXPECT_EQ(question.wake, WAKE_DEADLINE);
    EXPECT(!question.was_cancelled);
    fiber_set_deadline(NEVER);
}

CONTRACT(loop_call, cancelling_the_caller_cancels_the_callee_and_waits_for_it, 2)
{
    struct question question = {.wake = WAKE_READY};
    struct latch latch;
    latch_init(&latch, 1);
    struct call_site site = {&latch, wait_there, &question, loop_at(1), 0};
    struct fiber *caller = fiber_start("caller", call_from_here, &site);
    while (!atomic_load(&question.is_running))
        EXPECT_OK(fiber_sleep(100 * NS_PER_US, arena));
    fiber_cancel(caller);
    latch_wait(&latch);
    EXPECT_EQ(site.failed, ERROR_KIND_COUNT);
    EXPECT_EQ(question.wake, WAKE_CANCELLED);
    EXPECT(question.was_cancelled);
}

CONTRACT(loop_call, a_caller_that_is_cancelled_already_still_gets_its_call, 2)
{
    struct question question = {.wake = WAKE_READY};
    struct latch latch;
    latch_init(&latch, 1);
    struct call_site site = {&latch, wait_there, &question, loop_at(1), 0};
    fiber_cancel(fiber_start("caller", call_from_here, &site));
    latch_wait(&latch);
    EXPECT_EQ(question.wake, WAKE_CANCELLED);
}

/* The cancel message crosses the answer; both must have arrived before the caller's stack goes. */
CONTRACT(loop_call, a_cancel_may_cross_the_answer, 2)
{
    for (int i = 0; i < 300; i++) {
        struct question question = {.loop = 99};
        struct latch latch;
        latch_init(&latch, 1);
        struct call_site site = {&latch, answer_where, &question, loop_at(1), 0};
        struct fiber *caller = fiber_start("caller", call_from_here, &site);
        for (int yields = i % 4; yields >= 0 && latch.open > 0; yields--)
            fiber_yield();
        if (latch.open > 0)
            fiber_cancel(caller);
        latch_wait(&latch);
        EXPECT_EQ(question.loop, 1);
    }
}

static void
call_back_and_forth(void *argument)
{
    struct question *question = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (question->depth++ < 50)
        EXPECT_OK(loop_call(loop_at(question->depth % loop_count()), call_back_and_forth, question,
                            arena));
}

CONTRACT(loop_call, calls_nest, 3)
{
    struct question question = {.depth = 0};
    call_back_and_forth(&question);
    EXPECT_EQ(question.depth, 51);
}

static void
count_call(void *argument)
{
    unsigned *calls = argument;
    calls[loop_index(loop_self())]++;
}

CONTRACT(loop_call, every_loop_is_called_once, 3)
{
    unsigned calls[3] = {0};
    loop_call_every(count_call, calls);
    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQ(calls[i], 1);
}

/* On linux the other loop may be so quick that its mailbox is never full. */
CONTRACT(loop_call, a_full_mailbox_is_waited_for, 2)
{
    struct receiver receiver = {.loop = loop_at(1)};
    struct question question = {.loop = 99};
    bool is_taken = true;
    unsigned posted = 0;
    for (unsigned i = 0; is_taken && i < 2 * LOOP_MAILBOX_MAX; i++) {
        struct numbered *numbered = memory_zalloc(1, sizeof *numbered);
        *numbered = (struct numbered){{.deliver = receive}, &receiver, 0, i};
        is_taken = loop_post(loop_at(1), &numbered->message);
        posted += is_taken;
        if (!is_taken)
            memory_free(numbered);
    }
    loop_call_surely(loop_at(1), answer_where, &question);
    EXPECT_EQ(question.loop, 1);
    EXPECT_EQ(receiver.received, posted);
    EXPECT(!receiver.is_out_of_order);
}

static void
start_there(void *argument)
{
    fiber_start("left", wait_there, argument);
}

static void
start_elsewhere_and_leave(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    ((struct question *)argument)->wake = WAKE_READY;
    EXPECT_OK(loop_call(loop_at(1), start_there, argument, arena));
}

/* The first fiber returns while another loop still has one that waits: it is cancelled there. */
TEST(loop, the_end_reaches_fibers_of_other_loops)
{
    struct question question = {.depth = 0};
    contract_run(2, start_elsewhere_and_leave, &question);
    EXPECT_EQ(question.wake, WAKE_CANCELLED);
}
