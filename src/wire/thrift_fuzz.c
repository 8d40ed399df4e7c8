/* thrift_fuzz.c - any bytes as a blob of history.
 *
 * What decodes is a batch of canonical events: it encodes to a blob that decodes to the same
 * messages, and making the events canonical changes nothing. */
#include "base/arena.h"
#include "base/check.h"
#include "wire/message.h"
#include "wire/thrift.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
compare(struct arena *arena, API(HistoryEvent) *const *events, API(HistoryEvent) *const *again,
        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct slice bytes = message_encode(arena, &events[i]->base);
        check(slice_equal(message_encode(arena, &again[i]->base), bytes));
        thrift_make_canonical(arena, again[i]);
        check(slice_equal(message_encode(arena, &again[i]->base), bytes));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(HistoryEvent) **events = NULL, **again = NULL;
    size_t count = 0, count_again = 0;
    struct error *err =
        thrift_decode_history(arena, ERR_CORRUPT, slice_of(data, size), &events, &count);
    if (err != NULL) {
        check(err->kind == ERR_CORRUPT && events == NULL && count == 0);
        return 0;
    }
    struct slice blob = thrift_encode_history(arena, events, count);
    err = thrift_decode_history(arena, ERR_CORRUPT, blob, &again, &count_again);
    check_that(err == NULL, "%s", err->message);
    check(count_again == count);
    compare(arena, events, again, count);
    return 0;
}
