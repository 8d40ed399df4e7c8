/* fiber_bench.c - what the basic moves cost, in nanoseconds: for choosing, not for passing. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/pool.h"
#include "fiber/socket.h"
#include "fiber/sync.h"
#include "fiber/timer.h"

static int64_t
read_clock(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return time.tv_sec * NS_PER_S + time.tv_nsec;
}

struct stopwatch {
    int64_t wall, cpu;
};

static struct stopwatch
begin(void)
{
    return (struct stopwatch){read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

static void
end(struct stopwatch begun, const char *what, int64_t count)
{
    int64_t wall = read_clock(CLOCK_MONOTONIC) - begun.wall;
    int64_t cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - begun.cpu;
    printf("%-44s %9.1f ns wall %9.1f ns CPU\n", what, (double)wall / (double)count,
           (double)cpu / (double)count);
}

/* ---- switching ---- */

#define SWITCHES 5000000

struct game {
    struct fiber *players[2];
    int64_t left;
    struct latch latch;
};

static void
play(void *argument)
{
    struct game *game = argument;
    int me = game->players[0] == fiber_self() ? 0 : 1;
    while (game->left-- > 0) {
        fiber_wake(game->players[1 - me]);
        fiber_wait_uncancellable();
    }
    game->players[me] = NULL;
    if (game->players[1 - me] != NULL)
        fiber_wake(game->players[1 - me]);
    latch_done(&game->latch);
}

static void
bench_switches(void)
{
    struct game game = {.left = SWITCHES};
    latch_init(&game.latch, 2);
    game.players[0] = fiber_start("one", play, &game);
    game.players[1] = fiber_start("two", play, &game);
    struct stopwatch begun = begin();
    latch_wait(&game.latch);
    end(begun, "switch (wake another, wait)", SWITCHES);
}

static void
do_nothing(void *argument)
{
    latch_done(argument);
}

static void
bench_starts(void)
{
    enum { ROUNDS = 10000, FIBERS = 100 };
    struct latch latch;
    struct stopwatch begun = begin();
    for (int round = 0; round < ROUNDS; round++) {
        latch_init(&latch, FIBERS);
        for (int i = 0; i < FIBERS; i++)
            fiber_start("nothing", do_nothing, &latch);
        latch_wait(&latch);
    }
    end(begun, "fiber start and end", ROUNDS * FIBERS);
}

/* ---- timers ---- */

static void
fire_nothing(struct timer *timer)
{
}

static void
bench_timers(unsigned pending)
{
    enum { MOVES = 2000000 };
    struct timer *timers = memory_zalloc(pending, sizeof *timers);
    struct random random;
    random_seed(&random, 1);
    int64_t base = clock_monotonic() + 3600 * NS_PER_S;
    for (unsigned i = 0; i < pending; i++) {
        timer_init(&timers[i], fire_nothing);
        timer_start(&timers[i], base + (int64_t)random_below(&random, NS_PER_S));
    }
    struct stopwatch begun = begin();
    for (int i = 0; i < MOVES; i++) {
        struct timer *timer = &timers[random_below(&random, pending)];
        timer_stop(timer);
        timer_start(timer, base + (int64_t)random_below(&random, NS_PER_S));
    }
    char what[64];
    snprintf(what, sizeof what, "timer stop and start, %u pending", pending);
    end(begun, what, MOVES);
    for (unsigned i = 0; i < pending; i++)
        timer_stop(&timers[i]);
    memory_free(timers);
}

/* ---- between loops ---- */

static void
return_at_once(void *argument)
{
}

static void
bench_calls(struct arena *arena)
{
    enum { CALLS = 100000 };
    struct stopwatch begun = begin();
    for (int i = 0; i < CALLS; i++) {
        struct error *err = loop_call(loop_at(1), return_at_once, NULL, arena);
        check(err == NULL);
    }
    end(begun, "loop_call to another loop and back, alone", CALLS);
}

static void
call_often(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (int i = 0; i < 2000; i++) {
        struct error *err = loop_call(loop_at(1), return_at_once, NULL, arena);
        check(err == NULL);
    }
    latch_done(argument);
}

static void
bench_calls_many(void)
{
    struct latch latch;
    latch_init(&latch, 64);
    struct stopwatch begun = begin();
    for (int i = 0; i < 64; i++)
        fiber_start("call", call_often, &latch);
    latch_wait(&latch);
    end(begun, "loop_call to another loop, 64 at once", 64 * 2000);
}

static void
bench_pool(struct arena *arena)
{
    enum { JOBS = 50000 };
    struct stopwatch begun = begin();
    for (int i = 0; i < JOBS; i++) {
        struct error *err = pool_run(return_at_once, NULL, arena);
        check(err == NULL);
    }
    end(begun, "pool_run and back, alone", JOBS);
}

/* ---- sockets ---- */

struct echo {
    struct listener *listener;
    unsigned connections;
    unsigned rounds;
    struct latch latch;
};

static int64_t
read_some(struct socket *socket, void *bytes, size_t room)
{
    int64_t count;
    while ((count = socket_read(socket, bytes, room)) == 0)
        socket_wait(socket, SOCKET_READABLE, NEVER);
    return count;
}

static void
echo_serve(void *argument)
{
    struct socket *socket = argument;
    char bytes[4096];
    int64_t count;
    socket_adopt(socket);
    while ((count = read_some(socket, bytes, sizeof bytes)) > 0)
        if (socket_write(socket, bytes, (size_t)count) != count)
            break;
    socket_close(socket);
}

static void
echo_accept(void *argument)
{
    struct echo *echo = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    for (unsigned i = 0; i < echo->connections; i++) {
        struct error *err = listener_accept(echo->listener, arena, &socket);
        check(err == NULL);
        fiber_start("serve", echo_serve, socket);
    }
    latch_done(&echo->latch);
}

static void
echo_client(void *argument)
{
    struct echo *echo = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    struct error *err = socket_connect(listener_address(echo->listener), NEVER, arena, &socket);
    check(err == NULL);
    char bytes[100] = "";
    for (unsigned i = 0; i < echo->rounds; i++) {
        int64_t taken = socket_write(socket, bytes, sizeof bytes);
        check(taken == sizeof bytes);
        int64_t count = read_some(socket, bytes, sizeof bytes);
        check(count == sizeof bytes);
    }
    socket_close(socket);
    latch_done(&echo->latch);
}

static void
bench_echo(unsigned connections, struct arena *arena)
{
    struct echo echo = {.connections = connections, .rounds = 200000 / connections};
    struct error *err = listener_open("127.0.0.1:0", arena, &echo.listener);
    check(err == NULL);
    latch_init(&echo.latch, connections + 1);
    struct stopwatch begun = begin();
    fiber_start("accept", echo_accept, &echo);
    for (unsigned i = 0; i < connections; i++)
        fiber_start("client", echo_client, &echo);
    latch_wait(&echo.latch);
    char what[64];
    snprintf(what, sizeof what, "echo of 100 bytes, both ends, %u connections", connections);
    end(begun, what, (int64_t)connections * echo.rounds);
    listener_free(echo.listener);
}

static void
bench(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bench_switches();
    bench_starts();
    bench_timers(1000);
    bench_timers(1000000);
    bench_calls(arena);
    bench_calls_many();
    bench_pool(arena);
    bench_echo(1, arena);
    bench_echo(64, arena);
}

int
main(void)
{
    linux_run(&(struct linux_options){.loops = 2}, bench, NULL);
    return 0;
}
