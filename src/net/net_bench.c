/* net_bench.c - what a small call costs: an echo server in one process, a load generator in
 * another.
 *
 *   net_bench serve ADDRESS [loops]
 *   net_bench load ADDRESS [connections] [in flight] [seconds] [server pid] [message bytes] */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/platform.h"
#include "net/bench_service.h"
#include "net/load.h"

struct arguments {
    int count;
    char **words;
    struct fiber *fiber; /* that serves */
};

static unsigned
number(const struct arguments *arguments, int index, unsigned otherwise)
{
    return bench_number(arguments->count, arguments->words, index, otherwise);
}

static void
stop(void *context)
{
    struct arguments *arguments = context;
    fiber_wake(arguments->fiber);
}

static void
serve(void *argument)
{
    struct arguments *arguments = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct bench_service service;
    bench_service_open(&service, arguments->words[2], arena);
    printf("%s\n", grpc_server_address(service.server));
    fflush(stdout);
    arguments->fiber = fiber_self();
    platform_on_stop(stop, arguments);
    enum wake wake = fiber_wait(NEVER);
    check(wake != WAKE_DEADLINE);
    platform_on_stop(NULL, NULL);
    bench_service_close(&service);
}

static void
fill_request(void *context, uint64_t count, struct arena *arena, struct grpc_request *request)
{
    struct slice *message = context;
    request->path = "/bench/echo";
    request->message = *message;
}

static void
load(void *argument)
{
    struct arguments *arguments = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    size_t size = number(arguments, 7, 100);
    struct slice message = slice_of(arena_zalloc(arena, size, 1), size);
    const struct call_header headers[] = {
        {slice_text("rpc-caller"), slice_text("bench")},
        {slice_text("rpc-service"), slice_text("cadence-frontend")},
        {slice_text("rpc-encoding"), slice_text("proto")},
    };
    struct load_result result;
    struct error *err = load_run(
        &(struct load_options){
            .address = arguments->words[2],
            .connections = number(arguments, 3, 1),
            .in_flight = number(arguments, 4, 64),
            .warm_up = NS_PER_S / 2,
            .duration = number(arguments, 5, 5) * NS_PER_S,
            .server_pid = (int)number(arguments, 6, 0),
            .headers = headers,
            .header_count = array_length(headers),
            .request = fill_request,
            .context = &message,
        },
        arena, &result);
    check_that(err == NULL, "%s", err->message);
    double seconds = (double)result.elapsed / NS_PER_S;
    double calls = result.calls == 0 ? 1 : (double)result.calls;
    printf(
        "%.0f calls/s, %llu errors %s, p50 %.0f us, p99 %.0f us, max %.0f us, server %.2f us CPU "
        "per call\n",
        (double)result.calls / seconds, (unsigned long long)result.errors, result.first_error,
        (double)result.p50 / NS_PER_US, (double)result.p99 / NS_PER_US,
        (double)result.max / NS_PER_US, (double)result.server_cpu / NS_PER_US / calls);
}

int
main(int count, char **words)
{
    struct arguments arguments = {.count = count, .words = words};
    bool is_server = count >= 3 && strcmp(words[1], "serve") == 0;
    if (count < 3 || (!is_server && strcmp(words[1], "load") != 0)) {
        fprintf(stderr, "usage: net_bench serve ADDRESS [loops]\n"
                        "       net_bench load ADDRESS [connections] [in flight] [seconds] "
                        "[server pid] [message bytes]\n");
        return 2;
    }
    unsigned loops = is_server ? number(&arguments, 3, 1) : 1;
    linux_run(&(struct linux_options){.loops = loops, .catch_signals = is_server},
              is_server ? serve : load, &arguments);
    return 0;
}
