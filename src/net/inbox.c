/* inbox.c - collects one length-prefixed message.
 *
 * Small messages go into the arena in one exact piece: one copy, no growth. Larger ones go into a
 * block that doubles as bytes arrive, never beyond the announced length. Once half of it is here it
 * gets all its room: a message of little more than one frame is not copied for its rest. */
#include "net/inbox.h"

#include "base/check.h"
#include "base/memory.h"

#define ROOM_FIRST 16384

static const struct {
    enum grpc_status status;
    const char *sentence;
} verdicts[] = {
    [INBOX_OK] = {GRPC_OK, "fine"},
    [INBOX_TOO_LARGE] = {GRPC_RESOURCE_EXHAUSTED, "the message is larger than the limit"},
    [INBOX_COMPRESSED] = {GRPC_UNIMPLEMENTED, "compressed messages are not supported"},
    [INBOX_BAD_FLAG] = {GRPC_INTERNAL, "the message frame begins with an unknown flag"},
    [INBOX_SURPLUS] = {GRPC_INVALID_ARGUMENT, "bytes follow the only message of a unary call"},
    [INBOX_SHORT] = {GRPC_INVALID_ARGUMENT, "the body ends inside its message"},
    [INBOX_EMPTY] = {GRPC_INVALID_ARGUMENT, "the body has no message"},
};

static enum inbox_verdict
take_prefix(struct inbox *inbox, struct slice *piece, size_t message_max)
{
    size_t missing = (size_t)(GRPC_PREFIX_SIZE - inbox->prefix_length);
    size_t count = piece->length < missing ? piece->length : missing;
    memcpy(inbox->prefix + inbox->prefix_length, piece->data, count);
    inbox->prefix_length = (uint8_t)(inbox->prefix_length + count);
    *piece = slice_skip(*piece, count);
    if (inbox->prefix_length < GRPC_PREFIX_SIZE)
        return INBOX_OK;
    switch (grpc_prefix_parse(inbox->prefix, message_max, &inbox->length)) {
    case GRPC_FRAME_TOO_LARGE:
        return INBOX_TOO_LARGE;
    case GRPC_FRAME_COMPRESSED:
        return INBOX_COMPRESSED;
    case GRPC_FRAME_BAD_FLAG:
        return INBOX_BAD_FLAG;
    default:
        return INBOX_OK;
    }
}

static size_t
next_room(const struct inbox *inbox, size_t wanted)
{
    size_t room = inbox->room == 0 ? ROOM_FIRST : inbox->room * 2;
    if (room < wanted)
        room = wanted;
    if (inbox->length <= wanted * 2)
        room = inbox->length;
    return room < inbox->length ? room : inbox->length;
}

/* Into a block of its own. */
static void
move(struct inbox *inbox, size_t room)
{
    uint8_t *bytes = memory_take(room);
    if (inbox->received > 0)
        memcpy(bytes, inbox->bytes, inbox->received);
    if (inbox->is_owned)
        memory_give(inbox->bytes, inbox->room);
    inbox->bytes = bytes;
    inbox->room = room;
    inbox->is_owned = true;
}

static void
reserve(struct inbox *inbox, size_t wanted, size_t arena_max, struct arena *arena)
{
    check(wanted <= inbox->length);
    if (wanted <= inbox->room)
        return;
    if (inbox->length <= arena_max) {
        check(inbox->bytes == NULL);
        inbox->room = inbox->length;
        inbox->bytes = arena_alloc(arena, inbox->room);
        return;
    }
    move(inbox, next_room(inbox, wanted));
}

enum inbox_verdict
inbox_add(struct inbox *inbox, struct slice piece, size_t message_max, size_t arena_max,
          struct arena *arena)
{
    if (piece.length == 0)
        return INBOX_OK;
    if (inbox->prefix_length < GRPC_PREFIX_SIZE) {
        enum inbox_verdict verdict = take_prefix(inbox, &piece, message_max);
        if (verdict != INBOX_OK)
            return verdict;
    }
    if (piece.length == 0)
        return INBOX_OK;
    check(inbox->received <= inbox->length && inbox->received <= inbox->room);
    if (piece.length > inbox->length - inbox->received)
        return INBOX_SURPLUS;
    reserve(inbox, inbox->received + piece.length, arena_max, arena);
    memcpy(inbox->bytes + inbox->received, piece.data, piece.length);
    inbox->received += piece.length;
    return INBOX_OK;
}

enum inbox_verdict
inbox_end(const struct inbox *inbox)
{
    if (inbox->prefix_length == 0)
        return INBOX_EMPTY;
    bool is_whole = inbox->prefix_length == GRPC_PREFIX_SIZE && inbox->received == inbox->length;
    return is_whole ? INBOX_OK : INBOX_SHORT;
}

const char *
inbox_sentence(enum inbox_verdict verdict)
{
    check((size_t)verdict < array_length(verdicts));
    return verdicts[verdict].sentence;
}

enum grpc_status
inbox_status(enum inbox_verdict verdict)
{
    check((size_t)verdict < array_length(verdicts));
    return verdicts[verdict].status;
}

void
inbox_clear(struct inbox *inbox)
{
    if (inbox->is_owned)
        memory_give(inbox->bytes, inbox->room);
    *inbox = (struct inbox){0};
}
