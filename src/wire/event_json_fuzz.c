/* event_json_fuzz.c - any bytes as an archived batch: refused, or read, written and read again as
 * the same. */
#include "base/check.h"
#include "wire/event_json.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(History) *batch, *again;
    (void)object_measure(slice_of(data, size));
    if (event_json_read_batch(slice_of(data, size), arena, &batch) != NULL)
        return 0;
    scoped(buffer_free) struct buffer out = {0};
    event_json_append_batch(&out, batch);
    struct error *err = event_json_read_batch(buffer_slice(&out), arena, &again);
    check_that(err == NULL, "what was written cannot be read");
    check(slice_equal(message_encode(arena, &batch->base), message_encode(arena, &again->base)));
    return 0;
}
