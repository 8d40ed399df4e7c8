/* test_service.c - the methods of the test service, and small helpers around them. */
#include "net/test_service.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"

struct parked {
    struct list node;
    struct test_service *service;
    struct grpc_call *call;
};

struct method {
    const char *path;
    void (*handle)(struct test_service *service, struct grpc_call *call);
};

static void
handle_echo(struct test_service *service, struct grpc_call *call)
{
    grpc_reply_kept(call, grpc_call_request(call));
}

static void
handle_fail(struct test_service *service, struct grpc_call *call)
{
    struct slice request = grpc_call_request(call);
    if (request.length < 2 || request.data[0] >= ERROR_KIND_COUNT) {
        grpc_fail(call, error_new(grpc_call_arena(call), ERR_BAD_REQUEST, "no kind, no message"));
        return;
    }
    struct slice rest = slice_skip(request, 1);
    char *message = arena_text_of(grpc_call_arena(call), rest);
    struct error *err =
        error_new(grpc_call_arena(call), (enum error_kind)request.data[0], "%s", message);
    size_t used = strlen(message) + 1;
    if (used < rest.length)
        err->detail = slice_skip(rest, used);
    grpc_fail(call, err);
}

static void
parked_gone(void *context)
{
    struct parked *parked = context;
    list_remove(&parked->node);
    atomic_fetch_sub(&parked->service->parked_count, 1);
    atomic_fetch_add(&parked->service->gone_count, 1);
}

static void
handle_park(struct test_service *service, struct grpc_call *call)
{
    struct parked *parked = arena_make(grpc_call_arena(call), struct parked);
    parked->service = service;
    parked->call = call;
    list_push_back(&service->parked[loop_index(loop_self())], &parked->node);
    atomic_fetch_add(&service->parked_count, 1);
    grpc_park(call, parked_gone, parked);
}

void
test_service_wake(struct test_service *service)
{
    struct list *list = &service->parked[loop_index(loop_self())];
    for (struct list *node; (node = list_pop_front(list)) != NULL;) {
        atomic_fetch_sub(&service->parked_count, 1);
        grpc_reply(list_entry(node, struct parked, node)->call, (struct slice){0});
    }
}

static void
handle_wake(struct test_service *service, struct grpc_call *call)
{
    test_service_wake(service);
    grpc_reply(call, (struct slice){0});
}

static void
handle_hang(struct test_service *service, struct grpc_call *call)
{
    enum wake wake = fiber_wait(NEVER);
    if (wake == WAKE_CANCELLED)
        atomic_fetch_add(&service->cancelled, 1);
    if (wake == WAKE_DEADLINE)
        atomic_fetch_add(&service->past_deadline, 1);
    grpc_fail(call, wake_error(wake == WAKE_READY ? WAKE_CANCELLED : wake, grpc_call_arena(call),
                               "hanging"));
}

/* The number in decimal, at most `high`; 0 if it is not a number. */
static int64_t
number_of(struct grpc_call *call, int64_t high)
{
    int64_t number = 0;
    bool is_good = text_parse_int64(grpc_call_request(call), 0, high, &number);
    return is_good ? number : 0;
}

static void
handle_sleep(struct test_service *service, struct grpc_call *call)
{
    struct error *err = fiber_sleep(number_of(call, 3600 * NS_PER_S), grpc_call_arena(call));
    if (err != NULL)
        grpc_fail(call, err);
    else
        grpc_reply(call, (struct slice){0});
}

static void
handle_size(struct test_service *service, struct grpc_call *call)
{
    size_t size = (size_t)number_of(call, 8 << 20);
    uint8_t *bytes = arena_alloc(grpc_call_arena(call), size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    grpc_reply_kept(call, slice_of(bytes, size));
}

static void
handle_header(struct test_service *service, struct grpc_call *call)
{
    const char *name = arena_text_of(grpc_call_arena(call), grpc_call_request(call));
    grpc_reply(call, grpc_call_header(call, name));
}

static const struct method methods[] = {
    {"/test/echo", handle_echo}, {"/test/fail", handle_fail},     {"/test/park", handle_park},
    {"/test/wake", handle_wake}, {"/test/hang", handle_hang},     {"/test/sleep", handle_sleep},
    {"/test/size", handle_size}, {"/test/header", handle_header},
};

static const void *
find(void *context, struct slice path)
{
    for (size_t i = 0; i < array_length(methods); i++)
        if (slice_equal(slice_text(methods[i].path), path))
            return &methods[i];
    return NULL;
}

static void
handle(void *context, const void *method, struct grpc_call *call)
{
    struct test_service *service = context;
    ((const struct method *)method)->handle(service, call);
    atomic_fetch_add(&service->handled, 1);
}

struct grpc_service
test_service_init(struct test_service *service)
{
    *service = (struct test_service){0};
    for (size_t i = 0; i < TEST_LOOPS_MAX; i++)
        list_init(&service->parked[i]);
    return (struct grpc_service){.find = find, .handle = handle, .context = service};
}

void
test_service_open(struct test_service *service, const struct grpc_server_options *options,
                  struct arena *arena)
{
    struct grpc_server_options filled =
        options == NULL ? (struct grpc_server_options){0} : *options;
    filled.service = test_service_init(service);
    if (filled.address == NULL)
        filled.address = "127.0.0.1:0";
    struct error *err = grpc_server_open(&filled, arena, &service->server);
    check_that(err == NULL, "%s", err->message);
}

void
test_service_close(struct test_service *service)
{
    test_service_wake(service);
    grpc_server_close(service->server, clock_monotonic() + 10 * NS_PER_S);
}

struct grpc_client *
test_client(const struct test_service *service)
{
    return grpc_client_new(
        &(struct grpc_client_options){.address = grpc_server_address(service->server)});
}

struct error *
test_call(struct grpc_client *client, const char *path, struct slice message, struct arena *arena,
          struct slice *response)
{
    struct grpc_request request = {.path = path, .message = message};
    return grpc_client_call(client, &request, arena, response);
}

bool
test_wait_for(atomic_uint *number, unsigned wanted)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (int i = 0; i < 10000 && atomic_load(number) != wanted; i++) {
        struct error *err = fiber_sleep(NS_PER_MS, arena);
        check(err == NULL);
    }
    return atomic_load(number) == wanted;
}
