/* linux_test.c - what only the real platform can show: half-closed and reset connections, names,
 * descriptors that run out, signals, descriptors of others, threads of their own. The other end is
 * a plain descriptor of the kernel. */
#include "fiber/linux/linux.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/platform.h"
#include "fiber/pool.h"
#include "fiber/socket.h"
#include "fiber/sync.h"

#define PATIENCE (30 * NS_PER_S)

static void
on_linux(void (*function)(void *argument))
{
    linux_run(&(struct linux_options){.loops = 1, .catch_signals = true}, function, NULL);
}

/* A listener, one of our sockets connected to it, and the kernel's descriptor of the other end. */
struct pair {
    struct listener *listener;
    struct socket *near;
    int far;
};

static int
connect_plainly(const char *address)
{
    struct sockaddr_in target = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    target.sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10));
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(descriptor, (struct sockaddr *)&target, sizeof target) == 0);
    return descriptor;
}

static struct pair
pair_open(struct arena *arena)
{
    struct pair pair;
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &pair.listener));
    pair.far = connect_plainly(listener_address(pair.listener));
    EXPECT_OK(listener_accept(pair.listener, arena, &pair.near));
    socket_adopt(pair.near);
    return pair;
}

static void
pair_close(struct pair *pair)
{
    socket_close(pair->near);
    listener_free(pair->listener);
    if (pair->far >= 0)
        close(pair->far);
}

static int64_t
read_some(struct socket *socket, void *bytes, size_t room)
{
    int64_t count;
    while ((count = socket_read(socket, bytes, room)) == 0)
        EXPECT(socket_wait(socket, SOCKET_READABLE, clock_monotonic() + PATIENCE) != 0);
    return count;
}

TEST_IN(socket, a_half_closed_connection_can_still_be_written, void *argument, on_linux(body))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct pair pair = pair_open(arena);
    char bytes[16] = "";
    EXPECT_EQ(send(pair.far, "last words", 10, 0), 10);
    EXPECT_EQ(shutdown(pair.far, SHUT_WR), 0);
    EXPECT_EQ(read_some(pair.near, bytes, sizeof bytes), 10);
    EXPECT_EQ(read_some(pair.near, bytes, sizeof bytes), SOCKET_END);
    EXPECT_EQ(socket_write(pair.near, "answer", 6), 6); /* our half is still open */
    EXPECT_EQ(recv(pair.far, bytes, sizeof bytes, 0), 6);
    pair_close(&pair);
}

static void
reset(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct pair pair = pair_open(arena);
    char byte;
    EXPECT_EQ(socket_read(pair.near, &byte, 1), 0);
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(setsockopt(pair.far, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    close(pair.far);
    pair.far = -1;
    EXPECT_EQ(read_some(pair.near, &byte, 1), SOCKET_BROKEN);
    EXPECT_EQ(socket_write(pair.near, "x", 1), SOCKET_BROKEN);
    EXPECT(socket_wait(pair.near, SOCKET_WRITABLE, NEVER) != 0);
    pair_close(&pair);
}

TEST(socket, a_reset_breaks_it)
{
    on_linux(reset);
}

TEST_IN(socket, closing_with_unread_bytes_does_not_lose_the_last_answer, void *argument,
        on_linux(body))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct pair pair = pair_open(arena);
    char bytes[16] = "";
    EXPECT_EQ(send(pair.far, "never read", 10, 0), 10);
    EXPECT(socket_wait(pair.near, SOCKET_READABLE, clock_monotonic() + PATIENCE) != 0);
    EXPECT_EQ(socket_write(pair.near, "refused", 7), 7);
    socket_close(pair.near);
    EXPECT_EQ(recv(pair.far, bytes, sizeof bytes, 0), 7);
    EXPECT_EQ(recv(pair.far, bytes, sizeof bytes, 0), 0); /* the end, not a reset */
    listener_free(pair.listener);
    close(pair.far);
}

TEST_IN(address, names_are_looked_up, void *argument, on_linux(body))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct listener *listener;
    struct socket *near, *far;
    EXPECT_OK(listener_open("localhost:0", arena, &listener));
    const char *port = strrchr(listener_address(listener), ':');
    EXPECT_OK(socket_connect(arena_format(arena, "localhost%s", port), clock_monotonic() + PATIENCE,
                             arena, &near));
    EXPECT_OK(listener_accept(listener, arena, &far));
    EXPECT(strrchr(socket_peer(near), ':') != NULL);
    socket_close(near);
    socket_close(far);
    listener_free(listener);
    EXPECT_KIND(socket_connect("no-such-name.invalid:1", NEVER, arena, &near), ERR_UNAVAILABLE);
    EXPECT_KIND(socket_connect("no-such-name.invalid:1", 0, arena, &near), ERR_DEADLINE);
    EXPECT_KIND(socket_connect("127.0.0.1:65537", NEVER, arena, &near), ERR_UNAVAILABLE);
    struct error *err = listener_open("127.0.0.1:99999", arena, &listener);
    EXPECT_KIND(err, ERR_IO);
    EXPECT_TEXT(err->message, "listen on '127.0.0.1:99999' is not an address: port '99999' is not "
                              "a number from 0 to 65535");
}

/* ---- descriptors run out ---- */

struct acceptance {
    struct listener *listener;
    struct socket *socket;
    struct latch latch;
};

static void
accept_one(void *argument)
{
    struct acceptance *acceptance = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(listener_accept(acceptance->listener, arena, &acceptance->socket));
    latch_done(&acceptance->latch);
}

TEST_IN(listener, running_out_of_descriptors_is_waited_out, void *argument, on_linux(body))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct acceptance acceptance = {.socket = NULL};
    latch_init(&acceptance.latch, 1);
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &acceptance.listener));
    int client = connect_plainly(listener_address(acceptance.listener));
    struct rlimit before, tight;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = (struct rlimit){.rlim_cur = (rlim_t)client + 1, .rlim_max = before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    fiber_start("accept", accept_one, &acceptance);
    EXPECT(!latch_wait_until(&acceptance.latch, clock_monotonic() + 20 * NS_PER_MS));
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT(latch_wait_until(&acceptance.latch, clock_monotonic() + PATIENCE));
    socket_close(acceptance.socket);
    listener_free(acceptance.listener);
    close(client);
}

/* ---- limits of the process ---- */

static void
look_at_limits(void *argument)
{
    const struct rlimit *before = argument;
    struct rlimit limit;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, before->rlim_max);
    EXPECT(platform_descriptors() == limit.rlim_cur || platform_descriptors() == INT_MAX);
    unsigned long mappings = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    EXPECT(file != NULL && fscanf(file, "%lu", &mappings) == 1);
    fclose(file);
    EXPECT(platform_fibers() >= 64);
    EXPECT(2ul * platform_fibers() < mappings); /* a stack and its guard page each */
}

TEST(platform, takes_all_descriptors_it_may_and_tells_how_many_fibers_fit)
{
    struct rlimit before, low;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){.rlim_cur = before.rlim_max / 2, .rlim_max = before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    linux_run(&(struct linux_options){.loops = 1}, look_at_limits, &before);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- signals and other people's descriptors ---- */

static void
on_notice(void *context)
{
    fiber_wake(context);
}

TEST_IN(platform, signals_ask_for_the_end_also_those_that_came_early, void *argument,
        on_linux(body))
{
    platform_on_stop(on_notice, fiber_self());
    kill(getpid(), SIGTERM);
    EXPECT_EQ(fiber_wait(clock_monotonic() + PATIENCE), WAKE_READY);
    kill(getpid(), SIGINT);
    EXPECT_EQ(fiber_wait(clock_monotonic() + PATIENCE), WAKE_READY);
    platform_on_stop(NULL, NULL);
    kill(getpid(), SIGTERM); /* nobody listens now; it is kept for who comes */
    EXPECT_EQ(fiber_wait(clock_monotonic() + 50 * NS_PER_MS), WAKE_DEADLINE);
    platform_on_stop(on_notice, fiber_self());
    EXPECT_EQ(fiber_wait(clock_monotonic() + PATIENCE), WAKE_READY);
    platform_on_stop(NULL, NULL);
}

TEST_IN(platform, a_hangup_is_heard_each_time, void *argument, on_linux(body))
{
    linux_on_hangup(on_notice, fiber_self());
    for (int i = 0; i < 2; i++) {
        kill(getpid(), SIGHUP);
        EXPECT_EQ(fiber_wait(clock_monotonic() + PATIENCE), WAKE_READY);
    }
    linux_on_hangup(NULL, NULL);
}

struct watching {
    int descriptor;
    unsigned count;
    struct fiber *fiber;
};

static void
read_event(void *context)
{
    struct watching *watching = context;
    eventfd_t value;
    check(eventfd_read(watching->descriptor, &value) == 0);
    watching->count += (unsigned)value;
    fiber_wake(watching->fiber);
}

TEST_IN(watch, it_is_called_whenever_the_descriptor_is_readable, void *argument, on_linux(body))
{
    struct watching watching = {.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    watching.fiber = fiber_self();
    struct watch *watch = watch_new(watching.descriptor, read_event, &watching);
    for (unsigned i = 1; i <= 3; i++) {
        check(eventfd_write(watching.descriptor, 1) == 0);
        EXPECT_EQ(fiber_wait(clock_monotonic() + PATIENCE), WAKE_READY);
        EXPECT_EQ(watching.count, i);
    }
    watch_free(watch);
    close(watching.descriptor);
}

/* ---- idle ---- */

static int64_t
cpu_used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

/* A connection with unread bytes, at which nobody looks, must not keep the loop awake. */
static void
idle(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct pair pair = pair_open(arena);
    char byte;
    EXPECT_EQ(socket_read(pair.near, &byte, 1), 0);
    EXPECT_EQ(socket_wait(pair.near, SOCKET_READABLE, clock_monotonic() + NS_PER_MS), 0);
    EXPECT_EQ(send(pair.far, "x", 1, 0), 1);
    int64_t before = cpu_used();
    EXPECT_OK(fiber_sleep(400 * NS_PER_MS, arena));
    EXPECT(cpu_used() - before < 200 * NS_PER_MS);
    EXPECT_EQ(read_some(pair.near, &byte, 1), 1);
    pair_close(&pair);
}

TEST(loop, waiting_costs_no_cpu_though_bytes_lie_unread)
{
    on_linux(idle);
}

/* ---- threads of their own ---- */

struct look {
    struct loop_message message;
    struct loop *from;
    struct fiber *fiber;
    int nice;
    bool is_done;
};

static void
look_returned(struct loop_message *message)
{
    struct look *look = container_of(message, struct look, message);
    look->is_done = true;
    fiber_wake(look->fiber);
}

static void
look_at_nice(void *context, struct list *messages)
{
    for (struct list *node; (node = list_pop_front(messages)) != NULL;) {
        struct look *look =
            container_of(list_entry(node, struct loop_message, node), struct look, message);
        look->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
        loop_post_answer(look->from, &look->message);
    }
}

static int
nice_of(struct worker *worker)
{
    struct look look = {
        .message.deliver = look_returned, .from = loop_self(), .fiber = fiber_self()};
    worker_post(worker, &look.message);
    while (!look.is_done)
        fiber_wait_uncancellable();
    worker_free(worker);
    return look.nice;
}

TEST_IN(worker, a_patient_one_leaves_the_cpu_to_others, void *argument, on_linux(body))
{
    int usual = getpriority(PRIO_PROCESS, 0);
    EXPECT_EQ(nice_of(worker_new("usual", look_at_nice, NULL)), usual);
    int patient = nice_of(worker_new_patient("patient", look_at_nice, NULL));
    EXPECT(patient >= 10 && patient >= usual);      /* the test may already run with a low
                                                     * priority */
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), usual); /* the thread alone steps back */
}

/* What a worker was given at once. */
struct groups {
    unsigned count, messages;
    pid_t thread;
};

static void
count_group(void *context, struct list *messages)
{
    struct groups *groups = context;
    groups->count++;
    groups->thread = gettid();
    for (struct list *node; (node = list_pop_front(messages)) != NULL;) {
        struct look *look =
            container_of(list_entry(node, struct loop_message, node), struct look, message);
        groups->messages++;
        loop_post_answer(look->from, &look->message);
    }
}

/* Whether a thread of this process is asleep, by the kernel. */
static bool
is_asleep(pid_t thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    check(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    return strstr(text, ") S ") != NULL;
}

/* Posts some messages in one turn, and waits for all. The loop stands still between them: a worker
 * that was woken by one would take it. */
static void
post_in_one_turn(struct worker *worker, struct look *looks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        looks[i] = (struct look){
            .message.deliver = look_returned, .from = loop_self(), .fiber = fiber_self()};
        worker_post(worker, &looks[i].message);
        usleep(20 * 1000);
    }
    for (unsigned i = 0; i < count; i++)
        while (!looks[i].is_done)
            fiber_wait_uncancellable();
}

/* A store syncs once for what a turn has for it. */
TEST_IN(worker, letters_of_one_turn_come_to_a_sleeping_one_at_once, void *argument, on_linux(body))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct groups groups = {0};
    struct look looks[3];
    struct worker *worker = worker_new("groups", count_group, &groups);
    post_in_one_turn(worker, looks, 1);
    for (int64_t limit = clock_monotonic() + PATIENCE; !is_asleep(groups.thread);) {
        EXPECT(clock_monotonic() < limit);
        EXPECT_OK(fiber_sleep(NS_PER_MS, arena));
    }
    post_in_one_turn(worker, looks, 3);
    worker_free(worker);
    EXPECT_EQ(groups.messages, 4);
    EXPECT_EQ(groups.count, 2);
}
