/* pages.c - see pages.h. */
#include "api/call/pages.h"

#include "base/check.h"
#include "wire/message.h"

#define EVENTS_TAG      0x0a /* field 1 of History, length-delimited */
#define VARINT_MAX      10
#define PLACES_IN_FRONT 2

/* --- records -------------------------------------------------------------------------------------
 */

static size_t
put_varint(uint8_t *to, uint64_t number)
{
    size_t count = 0;
    for (; number >= 0x80; number >>= 7)
        to[count++] = (uint8_t)(number | 0x80);
    to[count++] = (uint8_t)number;
    return count;
}

struct slice
pages_field_header(struct arena *arena, uint32_t number, size_t length)
{
    check(number >= 1 && number < 1u << 29); /* what a tag can hold */
    uint8_t *bytes = arena_alloc(arena, (size_t)2 * VARINT_MAX);
    size_t count = put_varint(bytes, (uint64_t)number << 3 | 2);
    count += put_varint(bytes + count, length);
    return slice_of(bytes, count);
}

/* Length of the record that `bytes` begins with; 0: none does. */
static size_t
record_length(struct slice bytes)
{
    uint64_t length = 0;
    size_t at = 1;
    if (bytes.length < 2 || bytes.data[0] != EVENTS_TAG)
        return 0;
    for (unsigned shift = 0; at < bytes.length && shift < 63; shift += 7) {
        uint8_t byte = bytes.data[at++];
        length |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return length <= bytes.length - at ? at + length : 0;
    }
    return 0;
}

/* Splits `bytes` behind `count` records. False: there are not so many. */
static bool
split_records(struct slice bytes, int64_t count, struct slice *before, struct slice *after)
{
    size_t at = 0;
    if (count <= 0)
        return false; /* the node lies outside of the range */
    for (int64_t i = 0; i < count; i++) {
        size_t length = record_length(slice_skip(bytes, at));
        if (length == 0)
            return false;
        at += length;
    }
    *before = slice_of(bytes.data, at);
    *after = slice_skip(bytes, at);
    return true;
}

/* --- pieces --------------------------------------------------------------------------------------
 */

/* The free places are in front, and `length` is that of all others. */
static void
pieces_check(const struct pieces *pieces)
{
    size_t length = 0;
    check(pieces->list.count >= PLACES_IN_FRONT);
    if (!CHECK_DEEPLY)
        return;
    for (size_t i = PLACES_IN_FRONT; i < pieces->list.count; i++)
        length += pieces->list.items[i].length;
    check(length == pieces->length);
}

struct pieces
pieces_begin(struct arena *arena)
{
    struct pieces pieces = {.arena = arena};
    for (int i = 0; i < PLACES_IN_FRONT; i++)
        vector_push_in(&pieces.list, arena, (struct slice){0});
    return pieces;
}

void
pieces_add(struct pieces *pieces, struct slice bytes)
{
    vector_push_in(&pieces->list, pieces->arena, bytes);
    pieces->length += bytes.length;
}

static struct error *
corrupt(struct arena *arena, const struct history_node *node)
{
    return error_new(arena, ERR_CORRUPT, "the batch of events %lld to %lld has other events",
                     (long long)node->first_event_id, (long long)node->next_event_id - 1);
}

static struct error *
add_node(struct pieces *pieces, const struct history_node *node, int64_t from, int64_t to)
{
    struct slice left_out, events = node->events;
    bool is_good = true;
    if (node->next_event_id > to)
        is_good = split_records(events, to - node->first_event_id, &events, &left_out);
    if (is_good && node->first_event_id < from)
        is_good = split_records(events, from - node->first_event_id, &left_out, &events);
    if (!is_good)
        return corrupt(pieces->arena, node);
    pieces_add(pieces, events);
    return NULL;
}

struct error *
pieces_add_page(struct pieces *pieces, const struct history_page *page, int64_t from, int64_t to)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct history_node *node = &page->node[i];
        if (node->next_event_id <= from || node->first_event_id >= to)
            continue;
        struct error *err = add_node(pieces, node, from, to);
        if (err != NULL)
            return err;
    }
    return NULL;
}

struct error *
pieces_add_last(struct pieces *pieces, const struct history_page *page)
{
    if (page->count == 0)
        return error_new(pieces->arena, ERR_CORRUPT, "there is no last batch of events");
    const struct history_node *node = &page->node[page->count - 1];
    return add_node(pieces, node, node->next_event_id - 1, node->next_event_id);
}

void
pieces_add_event(struct pieces *pieces, const API(HistoryEvent) *event)
{
    struct slice bytes = message_encode(pieces->arena, &event->base);
    pieces_add(pieces, pages_field_header(pieces->arena, 1, bytes.length));
    pieces_add(pieces, bytes);
}

void
pieces_wrap(struct pieces *pieces, uint32_t number)
{
    pieces_check(pieces);
    check(pieces->list.items[0].length == 0 && pieces->list.items[1].length == 0);
    pieces->list.items[1] = pages_field_header(pieces->arena, number, pieces->length);
}

void
pieces_nest(struct pieces *pieces, uint32_t number, struct slice head)
{
    pieces_check(pieces);
    struct slice inner = pieces->list.items[1];
    check(inner.length > 0 && pieces->list.items[0].length == 0);
    struct slice outer =
        pages_field_header(pieces->arena, number, head.length + inner.length + pieces->length);
    uint8_t *bytes = arena_alloc(pieces->arena, outer.length + head.length), *end = bytes;
    end = mempcpy(end, outer.data, outer.length);
    if (head.length > 0)
        end = mempcpy(end, head.data, head.length);
    pieces->list.items[0] = slice_of(bytes, (size_t)(end - bytes));
}

struct slice
pieces_join(const struct pieces *pieces)
{
    pieces_check(pieces);
    size_t length = pieces->length;
    for (int i = 0; i < PLACES_IN_FRONT; i++)
        length += pieces->list.items[i].length;
    uint8_t *bytes = arena_alloc(pieces->arena, length), *end = bytes;
    for (size_t i = 0; i < pieces->list.count; i++) {
        struct slice piece = pieces->list.items[i];
        if (piece.length > 0)
            end = mempcpy(end, piece.data, piece.length);
    }
    check(end == bytes + length);
    return slice_of(bytes, length);
}
