/* server_headers_test.c - header blocks that resemble each other: each handler sees its own. */
#include "fiber/clock.h"
#include "fiber/contract/contract.h"
#include "fiber/fiber.h"
#include "net/test_service.h"

#define NAMES 6
#define CALLS 1500

/* Some of the names in some order, each with one of few values; long ones, so that fields leave the
 * table of the compression and come back. */
static size_t
choose_headers(struct call_header *headers, struct arena *arena)
{
    size_t count = 0;
    for (uint64_t left = entropy_below(1 << NAMES); left != 0; left &= left - 1) {
        size_t place = (size_t)entropy_below(count + 1);
        headers[count++] = headers[place];
        uint64_t value = entropy_below(3);
        headers[place] = (struct call_header){
            slice_text(arena_format(arena, "x-%d", __builtin_ctzll(left))),
            slice_text(arena_format(arena, "%0*d", (int)value * 150 + 1, (int)value)),
        };
    }
    return count;
}

static struct slice
value_of(const struct call_header *headers, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(headers[i].name, name))
            return headers[i].value;
    return (struct slice){0};
}

static void
call_once(struct grpc_client *client)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct call_header headers[NAMES];
    size_t count = choose_headers(headers, arena);
    bool is_echo = entropy_below(4) == 0;
    struct slice name = slice_text(arena_format(arena, "x-%d", (int)entropy_below(NAMES)));
    struct grpc_request request = {.path = is_echo ? "/test/echo" : "/test/header",
                                   .message = name,
                                   .headers = headers,
                                   .header_count = count};
    struct slice response;
    bool has_deadline = entropy_below(2) == 0;
    fiber_set_deadline(has_deadline ? clock_monotonic() + 60 * NS_PER_S : NEVER);
    EXPECT_OK(grpc_client_call(client, &request, arena, &response));
    fiber_set_deadline(NEVER);
    EXPECT(slice_equal(response, is_echo ? name : value_of(headers, count, name)));
}

CONTRACT(server, each_handler_sees_the_headers_of_its_call_and_no_others, 1)
{
    struct test_service service;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    for (int i = 0; i < CALLS; i++)
        call_once(client);
    grpc_client_free(client);
    test_service_close(&service);
}
