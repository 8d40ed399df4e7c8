/* race_test.c - a call whose handler works on another loop while its deadline passes or its client
 * leaves. For ThreadSanitizer.
 *
 * At stake: the call's arena. It is the handler's until the handler returns, wherever that works;
 * a server that formats its own refusal there corrupts it. Two loops; every handler fills the arena
 * on loop 0, in many small steps, and looks at the end whether all is as it was written. */
#include "base/check.h"
#include "fiber/contract/contract.h"
#include "fiber/loop.h"
#include "net/test_raw.h"

#define ROUNDS          6
#define CALLS_PER_ROUND 40
#define BLOCKS          300

static void
fill_arena(void *argument)
{
    struct grpc_call *call = argument;
    struct arena *arena = grpc_call_arena(call);
    struct slice request = grpc_call_request(call);
    uint8_t *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = 16 + i % 48;
        blocks[i] = arena_alloc(arena, size);
        memset(blocks[i], (int)(i % 251), size);
        check(request.length == 5000 && request.data[i] == 'r');
        if (i % 8 == 0)
            fiber_yield();
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < 16 + i % 48; at++)
            check(blocks[i][at] == i % 251);
}

static const void *
find(void *context, struct slice path)
{
    return context;
}

static void
handle(void *context, const void *method, struct grpc_call *call)
{
    atomic_uint *handled = context;
    struct arena *arena = grpc_call_arena(call);
    struct error *err = loop_call(loop_at(0), fill_arena, call, arena);
    if (err != NULL)
        grpc_fail(call, err);
    else
        grpc_reply(call, slice_text("done"));
    atomic_fetch_add(handled, 1);
}

/* Requests that end by themselves after one to eight milliseconds; every fifth is reset. */
static void
send_hurried(struct raw *raw, int32_t stream, struct slice body, struct arena *arena)
{
    struct raw_field fields[10] = {{0}};
    memcpy(fields, raw_good_fields("/any", arena), 7 * sizeof fields[0]);
    fields[7] = (struct raw_field){"grpc-timeout", arena_format(arena, "%dm", 1 + stream % 8)};
    raw_headers(raw, 0, stream, fields);
    raw_frame(raw, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, body);
    if (stream % 5 == 0)
        raw_frame(raw, NGHTTP2_RST_STREAM, 0, stream, slice_of("\0\0\0\x8", 4));
}

CONTRACT(race, the_arena_of_a_call_is_its_handlers_alone, 2)
{
    atomic_uint handled = 0;
    struct test_service service = {0};
    struct grpc_server_options options = {
        .address = "127.0.0.1:0", .service = {.find = find, .handle = handle, .context = &handled}};
    EXPECT_OK(grpc_server_open(&options, arena, &service.server));
    uint8_t body[GRPC_PREFIX_SIZE + 5000];
    memset(body, 'r', sizeof body);
    grpc_prefix_write(body, 5000);
    struct raw raws[2]; /* one on each loop */
    for (size_t i = 0; i < array_length(raws); i++)
        raw_open(&raws[i], &service);
    for (int32_t call = 0; call < ROUNDS * CALLS_PER_ROUND; call++) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        for (size_t i = 0; i < array_length(raws); i++)
            send_hurried(&raws[i], 2 * call + 1, slice_of(body, sizeof body), scratch);
        if (call % CALLS_PER_ROUND == 0)
            EXPECT_OK(fiber_sleep(10 * NS_PER_MS, scratch));
    }
    for (size_t i = 0; i < array_length(raws); i++) {
        raw_read_for(&raws[i], 50 * NS_PER_MS);
        EXPECT_EQ(raws[i].goaway_code, -1);
        raw_close(&raws[i]);
    }
    grpc_server_close(service.server, clock_monotonic() + 10 * NS_PER_S);
    EXPECT(atomic_load(&handled) > 0);
}
