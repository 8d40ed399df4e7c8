/* wire_fuzz.c - any bytes as any request or response.
 *
 * The first byte chooses the message. What decodes must encode to bytes that decode again, to the
 * same bytes; libprotobuf-c must write the same bytes, and find the same message in them. */
#include "base/arena.h"
#include "base/check.h"
#include "wire/message.h"
#include "wire/services.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libprotobuf-c's own writer and reader, as a second opinion. */
static void
compare_with_library(struct arena *arena, const ProtobufCMessage *message, struct slice bytes)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    uint8_t *written = arena_alloc(arena, protobuf_c_message_get_packed_size(message));
    check(slice_equal(slice_of(written, protobuf_c_message_pack(message, written)), bytes));
    ProtobufCMessage *other = protobuf_c_message_unpack(type, NULL, bytes.length, bytes.data);
    check_that(other != NULL, "%s: only we can read it", type->name);
    check(slice_equal(message_encode(arena, other), bytes));
    protobuf_c_message_free_unpacked(other, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct wire_method method = wire_method_at(data[0] / 2 % wire_method_count());
    const ProtobufCMessageDescriptor *type = data[0] % 2 == 0 ? method.request : method.response;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    ProtobufCMessage *message = NULL, *again = NULL;
    struct slice bytes = slice_of(data + 1, size - 1);
    struct error *err = message_decode_at(arena, ERR_BAD_REQUEST, type, bytes, &message);
    if (err != NULL) {
        check(err->kind == ERR_BAD_REQUEST && message == NULL);
        return 0;
    }
    struct slice encoded = message_encode(arena, message);
    err = message_decode_at(arena, ERR_BAD_REQUEST, type, encoded, &again);
    check_that(err == NULL, "%s", err->message);
    check(slice_equal(message_encode(arena, again), encoded));
    compare_with_library(arena, message, encoded);
    return 0;
}
