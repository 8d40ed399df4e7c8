/* bench_service.c - a server of three methods that do nothing but what is measured. */
#include "net/bench_service.h"

#include "base/check.h"
#include "base/text.h"
#include "fiber/clock.h"

enum method { METHOD_ECHO, METHOD_PARK, METHOD_COUNT };

static const struct {
    const char *path;
    enum method method;
} methods[] = {
    {"/bench/echo", METHOD_ECHO},
    {"/bench/park", METHOD_PARK},
    {"/bench/count", METHOD_COUNT},
};

static const void *
find(void *context, struct slice path)
{
    for (size_t i = 0; i < array_length(methods); i++)
        if (slice_equal(path, slice_text(methods[i].path)))
            return &methods[i].method;
    return NULL;
}

static void
gone(void *context)
{
    struct bench_service *bench = context;
    atomic_fetch_sub(&bench->parked, 1);
}

static void
handle(void *context, const void *method, struct grpc_call *call)
{
    struct bench_service *bench = context;
    switch (*(const enum method *)method) {
    case METHOD_ECHO:
        grpc_reply_kept(call, grpc_call_request(call));
        break;
    case METHOD_PARK:
        atomic_fetch_add(&bench->parked, 1);
        grpc_park(call, gone, bench);
        break;
    case METHOD_COUNT: {
        char *count = arena_format(grpc_call_arena(call), "%d", atomic_load(&bench->parked));
        grpc_reply_kept(call, slice_text(count));
        break;
    }
    }
}

void
bench_service_open(struct bench_service *service, const char *address, struct arena *arena)
{
    *service = (struct bench_service){0};
    struct error *err = grpc_server_open(
        &(struct grpc_server_options){
            .address = address,
            .default_timeout = 3600 * NS_PER_S,
            .service = {.find = find, .handle = handle, .context = service},
        },
        arena, &service->server);
    check_that(err == NULL, "%s", err->message);
}

void
bench_service_close(struct bench_service *service)
{
    grpc_server_close(service->server, clock_monotonic() + NS_PER_S);
}

unsigned
bench_number(int count, char **words, int index, unsigned otherwise)
{
    uint64_t number = otherwise;
    bool is_good =
        index >= count || text_parse_uint64(slice_text(words[index]), 0, UINT32_MAX, &number);
    check_that(is_good, "%s is not a number", words[index]);
    return (unsigned)number;
}
