/* port.c - what the core asks of its platform (core.h), and the small public functions of a
 * simulated one. */
#include <limits.h>
#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/platform.h"
#include "fiber/sim/inside.h"
#include "fiber/socket.h"
#include "fiber/tls.h"

/* 2026-01-01T00:00:00Z: every world begins then. */
#define WALL_START (1767225600 * NS_PER_S)

/* The host whose blocking work runs now, on no loop (pool.c). Thread-local as the current loop is,
 * and for the same reason: such code is called without any context, yet has a clock, probes and
 * chance. */
static _Thread_local struct host *host_at_work;

void
port_set_host_at_work(struct host *host)
{
    check_that(host == NULL || host_at_work == NULL, "blocking work within blocking work");
    host_at_work = host;
}

bool
port_is_at_work(void)
{
    return host_at_work != NULL;
}

static struct host *
port_host(struct loop *loop)
{
    return loop == NULL ? host_at_work : loop->platform->host;
}

int64_t
platform_clock_wall(struct loop *loop)
{
    struct host *host = port_host(loop);
    check_that(host != NULL, "there is no clock outside of all hosts");
    return WALL_START + host->world->now + host->skew;
}

void
platform_clock_skip(struct loop *loop, int64_t nanoseconds)
{
    struct host *host = port_host(loop);
    check(host != NULL);
    host->skew += nanoseconds;
}

void
platform_entropy(struct loop *loop, void *bytes, size_t count)
{
    struct host *host = port_host(loop);
    check_that(host != NULL, "there is no chance outside of all hosts, but world_random");
    for (uint8_t *next = bytes; count > 0;) {
        uint64_t word = random_next(&host->entropy);
        size_t part = count < sizeof word ? count : sizeof word;
        memcpy(next, &word, part);
        next += part;
        count -= part;
    }
}

struct loop *
platform_loop_at(struct platform *platform, unsigned index)
{
    check(index < platform->host->loop_count);
    return &platform->host->loops[index].loop;
}

unsigned
platform_loop_count(const struct platform *platform)
{
    return platform->host->loop_count;
}

void
platform_kick(struct loop *loop)
{
    sim_loop_plan(container_of(loop, struct sim_loop, loop));
}

void
platform_trace(struct loop *loop, const char *what, uint64_t number)
{
    struct host *host = loop->platform->host;
    world_trace(host->world, host, loop->head.index, STEP_NOTE, what, number);
}

void
platform_probe(struct loop *loop, const char *name)
{
    struct host *host = port_host(loop);
    if (host != NULL)
        world_probe(host->world, name);
}

bool
platform_is_plain(const struct platform *platform)
{
    return platform->host->world->options.messages == MESSAGES_WHOLE;
}

/* One value in 256 is lost, one in 64 comes twice. */
enum crossing
platform_crossing(struct loop *loop, bool may_be_lost, bool may_come_twice)
{
    struct world *world = loop->platform->host->world;
    uint64_t drawn = random_below(&world->crossings, 256);
    if (world->options.messages == MESSAGES_FAIL && may_be_lost && drawn == 0) {
        platform_probe(loop, "message_lost");
        return CROSSING_LOST;
    }
    if (world->options.messages == MESSAGES_FAIL && may_come_twice && drawn >= 1 && drawn <= 4) {
        platform_probe(loop, "message_repeated");
        return CROSSING_TWICE;
    }
    return CROSSING_BYTES;
}

void
platform_on_stop(void (*stop)(void *context), void *context)
{
    struct host *host = sim_host_self();
    host->stop = stop;
    host->stop_context = context;
    if (stop != NULL && host->is_stop_asked) /* it was asked before anybody listened */
        event_schedule(host->world, &host->signal, host, host->world->now);
}

unsigned
platform_descriptors(void)
{
    return UINT_MAX;
}

unsigned
platform_fibers(void)
{
    return UINT_MAX;
}

/* --- what a simulated platform does not have ---- */

struct watch *
watch_new(int descriptor, void (*ready)(void *context), void *context)
{
    unreachable("descriptor %d: there are no file descriptors in a simulation", descriptor);
}

void
watch_free(struct watch *watch)
{
    check_that(watch == NULL, "there are no file descriptors in a simulation");
}

struct error *
tls_new(const struct tls_options *options, struct arena *arena, struct tls **tls)
{
    *tls = NULL;
    return error_new(arena, ERR_UNIMPLEMENTED, "simulated networks are plain: no TLS");
}

void
tls_free(struct tls *tls)
{
    check(tls == NULL);
}

struct error *
tls_renew(struct tls *tls, struct arena *arena, bool *is_renewed)
{
    check_that(tls == NULL, "there is no TLS in a simulation");
    *is_renewed = false;
    return NULL;
}

struct error *
socket_start_tls(struct socket *socket, struct tls *tls, const char *server_name, int64_t deadline,
                 struct arena *arena)
{
    return error_new(arena, ERR_UNIMPLEMENTED, "simulated networks are plain: no TLS");
}
