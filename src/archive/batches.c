/* batches.c - an archived history is an array of batches; some of them become wire bytes again.
 *
 * A batch is found by its brackets before it is read: so the end of the bytes is distinguished from
 * damage. */
#include "archive/inside.h"
#include "base/check.h"
#include "base/json.h"
#include "base/vector.h"
#include "wire/event_json.h"
#include "wire/message.h"

static struct error *
corrupt(struct arena *arena)
{
    return error_new(arena, ERR_CORRUPT, "an archived history cannot be read");
}

/* Passes blanks, and what stands between batches; the byte that comes then, -1: none. */
static int
next_byte(const struct batches *batches, size_t *at)
{
    for (; *at < batches->bytes.length; (*at)++) {
        uint8_t byte = batches->bytes.data[*at];
        if (byte == '\0' || strchr(" \t\r\n,[", byte) == NULL)
            return byte;
    }
    return -1;
}

static struct error *
take_batch(struct batches *batches, size_t at, size_t length, struct buffer *out,
           struct arena *arena)
{
    scoped(arena_drop) struct arena *room = arena_new(length * 2);
    API(History) *batch;
    struct error *err =
        event_json_read_batch(slice_of(batches->bytes.data + at, length), room, &batch);
    if (err != NULL)
        return error_copy(arena, err);
    buffer_append(out, message_encode(room, &batch->base));
    batches->event_count += batch->n_events;
    batches->used = at + length;
    check(batches->used <= batches->bytes.length);
    return NULL;
}

struct error *
batches_read(struct batches *batches, struct arena *arena)
{
    scoped(buffer_free) struct buffer out = {0};
    check(batches->used == 0 && batches->events_max > 0 && batches->bytes_max > 0);
    while (batches->event_count < batches->events_max && out.length < batches->bytes_max) {
        size_t at = batches->used;
        int byte = next_byte(batches, &at);
        batches->is_last = byte == ']';
        if (batches->is_last)
            break;
        size_t length = byte < 0 ? 0 : object_measure(slice_skip(batches->bytes, at));
        if ((byte >= 0 && byte != '{') || (length == 0 && batches->is_end))
            return corrupt(arena);
        if (length == 0)
            break;
        struct error *err = take_batch(batches, at, length, &out, arena);
        if (err != NULL)
            return err;
    }
    size_t at = batches->used; /* a page that ends with the history says so */
    batches->is_last = batches->is_last || next_byte(batches, &at) == ']';
    batches->events = arena_slice(arena, buffer_slice(&out));
    return NULL;
}
