/* grpc_fuzz.c - the pure readers of gRPC's texts and frames, fed with anything.
 *
 * The first byte chooses the reader, so that one corpus serves all. What was read must survive
 * being written and read again. */
#include <stdint.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/inbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_timeout(struct slice input, struct arena *arena)
{
    int64_t before, after;
    if (!grpc_timeout_parse(input, &before))
        return;
    bool is_read = grpc_timeout_parse(slice_text(grpc_timeout_format(before, arena)), &after);
    check(is_read && after >= before);
}

static void
fuzz_frame(struct slice input, struct arena *arena)
{
    uint8_t again[GRPC_PREFIX_SIZE];
    size_t length;
    if (input.length < GRPC_PREFIX_SIZE ||
        grpc_prefix_parse(input.data, 1000, &length) != GRPC_FRAME_OK)
        return;
    grpc_prefix_write(again, length);
    check(length <= 1000 && memcmp(again, input.data, sizeof again) == 0);
}

/* In one piece and in many, an inbox says the same. */
static void
fuzz_inbox(struct slice input, struct arena *arena)
{
    struct inbox whole = {0}, pieces = {0};
    enum inbox_verdict one = inbox_add(&whole, input, 100000, 16, arena), many = INBOX_OK;
    for (size_t at = 0; at < input.length && many == INBOX_OK; at++)
        many = inbox_add(&pieces, slice_of(input.data + at, 1), 100000, 16, arena);
    check(one == many);
    check(one != INBOX_OK || inbox_end(&whole) == inbox_end(&pieces));
    inbox_clear(&whole);
    inbox_clear(&pieces);
}

static void
fuzz_details(struct slice input, struct arena *arena)
{
    struct slice message, type_name, detail;
    int code;
    if (!grpc_status_details_decode(input, arena, &code, &message, &type_name, &detail))
        return;
    (void)grpc_status_kind(code, type_name);
    char *text = arena_text_of(arena, message), *name = arena_text_of(arena, type_name);
    if (code < 0 || strlen(text) != message.length)
        return;
    struct slice again = grpc_status_details_encode(code, text, name, detail, arena);
    struct slice message_again, name_again, detail_again;
    int code_again;
    bool is_read = grpc_status_details_decode(again, arena, &code_again, &message_again,
                                              &name_again, &detail_again);
    check(is_read && code_again == code && slice_equal(detail_again, detail));
}

static void
fuzz_percent(struct slice input, struct arena *arena)
{
    struct slice encoded = text_percent_encode(arena, input);
    check(slice_equal(text_percent_decode(arena, encoded), input));
    (void)text_percent_decode(arena, input);
}

static void
fuzz_message(struct slice input, struct arena *arena)
{
    struct slice clean = grpc_message_clean(arena_text_of(arena, input), arena);
    check(text_is_utf8(clean, NULL));
}

struct reader {
    void (*run)(struct slice input, struct arena *arena);
};

static const struct reader readers[] = {
    {fuzz_timeout}, {fuzz_frame}, {fuzz_inbox}, {fuzz_details}, {fuzz_percent}, {fuzz_message},
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct arena *arena = arena_new(0);
    /* An exact copy, so that reading past its end is seen. */
    uint8_t *copy = memory_alloc(size - 1);
    memcpy(copy, data + 1, size - 1);
    readers[data[0] % array_length(readers)].run(slice_of(copy, size - 1), arena);
    memory_free(copy);
    arena_free(arena);
    return 0;
}
