/* crash_test.c - a crash drops everything of a host and nothing else, at any moment, a thousand
 * times. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/loop.h"
#include "fiber/pool.h"
#include "fiber/sim/inside.h"
#include "fiber/sim/test_talk.h"
#include "fiber/sim/world.h"
#include "fiber/sync.h"
#include "fiber/timer.h"

/* --- a host that has one of everything under way --------------------------------------------- */

struct ball {
    struct loop_message message;
    struct loop *back;
    uint64_t *bounces;
};

static void
ball_bounce(struct loop_message *message)
{
    struct ball *ball = container_of(message, struct ball, message);
    struct loop *from = loop_self();
    ++*ball->bounces;
    loop_post_answer(ball->back, message);
    ball->back = from;
}

static void
ball_throw(uint64_t *bounces)
{
    struct ball *ball = memory_zalloc(1, sizeof *ball);
    *ball = (struct ball){.message.deliver = ball_bounce, .back = loop_self(), .bounces = bounces};
    loop_post_answer(loop_at(1), &ball->message);
}

/* A committer in small: answers every message to loop 0. */
static void
committer_process(void *context, struct list *messages)
{
    uint64_t *groups = context;
    ++*groups;
    for (struct list *node; (node = list_pop_front(messages)) != NULL;) {
        struct ball *ball =
            container_of(list_entry(node, struct loop_message, node), struct ball, message);
        loop_post_answer(ball->back, &ball->message);
    }
}

struct commit {
    struct ball ball;
    struct fiber *fiber;
    bool is_done;
};

static void
commit_deliver(struct loop_message *message)
{
    struct commit *commit = container_of(message, struct commit, ball.message);
    commit->is_done = true;
    fiber_wake(commit->fiber);
}

struct counts {
    uint64_t bounces, groups, commits, works, writes, echoes, ticks;
};

static void
commit_for_ever(struct counts *counts, struct worker *worker)
{
    while (!fiber_is_cancelled()) {
        struct commit commit = {.ball = {.message.deliver = commit_deliver, .back = loop_self()},
                                .fiber = fiber_self()};
        worker_post(worker, &commit.ball.message);
        while (!commit.is_done)
            fiber_wait_uncancellable();
        counts->commits++;
    }
}

static void
committer_fiber(void *argument)
{
    struct counts *counts = argument;
    struct worker *worker = worker_new("committer", committer_process, &counts->groups);
    commit_for_ever(counts, worker);
    worker_free(worker);
}

static void
count_work(void *argument)
{
    ++*(uint64_t *)argument;
    memory_free(memory_alloc(100));
}

static void
work_for_ever(void *argument)
{
    struct counts *counts = argument;
    while (!fiber_is_cancelled()) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        EXPECT_OK(pool_run(count_work, &counts->works, arena));
    }
}

static void
write_for_ever(void *argument)
{
    struct counts *counts = argument;
    scoped(arena_drop) struct arena *outer = arena_new(0);
    struct file *file;
    EXPECT_OK(file_open("f", FILE_WRITE | FILE_CREATE, outer, &file));
    EXPECT_OK(file_lock(file, outer)); /* a lock must not survive a crash */
    while (!fiber_is_cancelled()) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        EXPECT_OK(file_write(file, entropy_below(1000), "abc", 3, arena));
        if (entropy_below(3) == 0)
            EXPECT_OK(file_sync(file, arena));
        counts->writes++;
    }
    file_close(file);
}

static void
echo_for_ever(void *argument)
{
    struct counts *counts = argument;
    while (!fiber_is_cancelled()) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct socket *socket = talk_connect(entropy_below(2) == 0 ? "one:7" : "two:7");
        uint8_t bytes[100] = {0};
        if (socket == NULL && fiber_sleep(NS_PER_MS, arena) != NULL)
            return;
        if (socket == NULL)
            continue;
        if (talk_send(socket, bytes, sizeof bytes) && talk_receive(socket, bytes, sizeof bytes))
            counts->echoes++;
        socket_close(socket);
    }
}

struct metronome {
    struct timer timer;
    uint64_t *ticks;
};

static void
metronome_tick(struct timer *timer)
{
    struct metronome *metronome = container_of(timer, struct metronome, timer);
    ++*metronome->ticks;
    timer_start(timer, clock_monotonic() + NS_PER_MS);
}

static void
busy_main(void *argument)
{
    struct counts *counts = argument;
    struct metronome *metronome = memory_zalloc(1, sizeof *metronome);
    metronome->ticks = &counts->ticks;
    timer_init(&metronome->timer, metronome_tick);
    metronome_tick(&metronome->timer);
    ball_throw(&counts->bounces);
    fiber_start("committer", committer_fiber, counts);
    fiber_start("work", work_for_ever, counts);
    fiber_start("write", write_for_ever, counts);
    fiber_start("echo", echo_for_ever, counts);
    talk_serve_echo(7);
}

/* --- the thousand ---------------------------------------------------------------------------- */

static void
count_crash(void *context)
{
    ++*(unsigned *)context;
}

/* Two hosts with one of everything under way; one after the other is crashed and started, at drawn
 * moments. The world's own heap shows whether crashes leave something behind; the sanitizers
 * whether somebody still points to it. */
TEST(sim_crash, a_thousand_crashes_leave_no_memory_behind)
{
    struct counts counts = {0};
    unsigned crashes = 0;
    struct world *world = world_new(.seed = test_seed(0));
    struct host *hosts[2] = {world_add_host(world, "one", 2), world_add_host(world, "two", 2)};
    for (unsigned i = 0; i < 2; i++) {
        host_on_crash(hosts[i], count_crash, &crashes);
        host_start(hosts[i], busy_main, &counts);
    }
    size_t bytes_early = 0;
    for (unsigned i = 0; i < 1000; i++) {
        struct host *host = hosts[i % 2];
        world_run_for(world, (int64_t)random_below(world_random(world), 20 * NS_PER_MS));
        host_crash(host);
        EXPECT_EQ(host_heap_blocks(host), 0);
        host_start(host, busy_main, &counts);
        if (i == 100)
            bytes_early = heap_bytes(world->heap);
    }
    EXPECT_EQ(crashes, 1000);
    EXPECT(heap_bytes(world->heap) < 2 * bytes_early + 100000);
    EXPECT(counts.bounces > 1000 && counts.groups > 100 && counts.commits > 100);
    EXPECT(counts.works > 100 && counts.writes > 100 && counts.echoes > 100 && counts.ticks > 100);
    world_free(world);
    EXPECT_EQ(crashes, 1000); /* the end of the world is no crash */
}

/* --- crash points and others ----------------------------------------------------------------- */

TEST(sim_crash, a_crash_point_ends_the_host_in_the_middle_of_its_work)
{
    for (uint64_t point = 1; point < 30; point++) {
        struct counts counts = {0};
        unsigned crashes = 0;
        struct world *world = world_new(.seed = point);
        struct host *host = world_add_host(world, "one", 2);
        host_on_crash(host, count_crash, &crashes);
        host_crash_at_write(host, point);
        host_start(host, busy_main, &counts);
        world_run_for(world, NS_PER_S);
        EXPECT(!host_is_running(host));
        EXPECT_EQ(crashes, 1);
        EXPECT_EQ(host_disk_writes(host), point);
        host_start(host, busy_main, &counts); /* the crash point is spent */
        world_run_for(world, NS_PER_S);
        EXPECT(host_is_running(host));
        world_free(world);
    }
}

/* --- messages --------------------------------------------------------------------------------- */

struct numbered {
    struct loop_message message;
    uint64_t number;
    uint64_t *last; /* of this sender */
    bool *is_in_order;
};

static void
numbered_deliver(struct loop_message *message)
{
    struct numbered *numbered = container_of(message, struct numbered, message);
    *numbered->is_in_order &= numbered->number == *numbered->last + 1;
    *numbered->last = numbered->number;
    memory_free(numbered);
}

struct post_office {
    uint64_t last[3];
    bool is_in_order;
    unsigned refused;
};

static void
post_many(void *argument)
{
    struct post_office *office = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (uint64_t number = 1; number <= 500; number++) {
        struct numbered *numbered = memory_zalloc(1, sizeof *numbered);
        *numbered = (struct numbered){.message.deliver = numbered_deliver,
                                      .number = number,
                                      .last = &office->last[loop_index(loop_self())],
                                      .is_in_order = &office->is_in_order};
        EXPECT(loop_post(loop_at(2), &numbered->message));
        if (entropy_below(10) == 0)
            EXPECT_OK(fiber_sleep((int64_t)entropy_below(50 * NS_PER_US), arena));
    }
}

static void
post_main(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_start("post", post_many, argument);
    EXPECT_OK(loop_call(loop_at(1), post_many, argument, arena));
    EXPECT_OK(fiber_sleep(NS_PER_S, arena));
}

TEST(sim_crash, letters_of_one_sender_arrive_in_order)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct post_office office = {.is_in_order = true};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "h", 3);
        host_start(host, post_main, &office);
        world_run_for(world, 3 * NS_PER_S);
        EXPECT(office.is_in_order);
        EXPECT_EQ(office.last[0], 500);
        EXPECT_EQ(office.last[1], 500);
        EXPECT_EQ(host_heap_blocks(host), 0);
        world_free(world);
    }
}

static void
fill_mailbox(void *argument)
{
    struct post_office *office = argument;
    for (unsigned i = 0; i < LOOP_MAILBOX_MAX + 10; i++) {
        struct numbered *numbered = memory_zalloc(1, sizeof *numbered);
        *numbered = (struct numbered){.message.deliver = numbered_deliver,
                                      .number = i + 1,
                                      .last = &office->last[0],
                                      .is_in_order = &office->is_in_order};
        if (!loop_post(loop_at(1), &numbered->message)) {
            office->refused++;
            memory_free(numbered);
        }
    }
}

TEST(sim_crash, a_full_mailbox_refuses_and_what_it_took_is_delivered_before_the_host_ends)
{
    struct post_office office = {.is_in_order = true};
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "h", 2);
    host_start(host, fill_mailbox, &office);
    world_run_for(world, NS_PER_S);
    EXPECT_EQ(office.refused, 10);
    EXPECT_EQ(office.last[0], LOOP_MAILBOX_MAX);
    EXPECT(!host_is_running(host));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
}
