/* grpc_status.c - errors on the wire: google.rpc.Status in grpc-status-details-bin, and back to
 * kinds.
 *
 * The message is three fields deep and never grows, so it is written and read by hand: this folder
 * does not link the messages of the IDL.
 *
 *   Status { 1: int32 code, 2: string message, 3: repeated Any { 1: string type_url, 2: bytes value
 * } } */
#include "base/check.h"
#include "base/text.h"
#include "net/grpc.h"

static const struct slice type_prefix = SLICE_LITERAL("type.googleapis.com/");

/* Java's clients take 8 KiB of headers by default; the message travels twice, so it is cut here. */
#define MESSAGE_SIZE_MAX 1024

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* ---- writing ---- */

static size_t
varint_size(uint64_t number)
{
    size_t size = 1;
    for (; number >= 0x80; number >>= 7)
        size++;
    return size;
}

static uint8_t *
varint_write(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

/* Size of a bytes field with a tag of one byte. */
static size_t
field_size(size_t length)
{
    return 1 + varint_size(length) + length;
}

static uint8_t *
bytes_write(uint8_t *at, struct slice bytes)
{
    if (bytes.length > 0)
        memcpy(at, bytes.data, bytes.length);
    return at + bytes.length;
}

static uint8_t *
tag_write(uint8_t *at, unsigned field, size_t length)
{
    *at++ = (uint8_t)(field << 3 | WIRE_BYTES);
    return varint_write(at, length);
}

static struct slice
without_padding(struct slice text)
{
    while (text.length > 0 && text.data[text.length - 1] == '=')
        text.length--;
    return text;
}

struct slice
grpc_status_details_encode(int code, const char *message, const char *type_name,
                           struct slice detail, struct arena *arena)
{
    check(code >= 0);
    struct slice text = slice_text(message), name = slice_text(type_name);
    size_t type_length = type_prefix.length + name.length;
    size_t any_length =
        field_size(type_length) + (detail.length > 0 ? field_size(detail.length) : 0);
    size_t size =
        1 + varint_size((uint64_t)code) + field_size(text.length) + field_size(any_length);

    uint8_t *bytes = arena_alloc(arena, size), *at = bytes;
    *at++ = 1 << 3 | WIRE_VARINT;
    at = varint_write(at, (uint64_t)code);
    at = bytes_write(tag_write(at, 2, text.length), text);
    at = tag_write(at, 3, any_length);
    at = bytes_write(tag_write(at, 1, type_length), type_prefix);
    at = bytes_write(at, name);
    if (detail.length > 0)
        at = bytes_write(tag_write(at, 2, detail.length), detail);
    check(at == bytes + size);
    return without_padding(text_base64_encode(arena, slice_of(bytes, size), TEXT_BASE64_STANDARD));
}

/* ---- reading ---- */

struct field {
    unsigned number;
    unsigned type;
    uint64_t varint;
    struct slice bytes;
};

static bool
varint_take(struct slice *from, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; shift < 64 && from->length > 0; shift += 7) {
        uint8_t byte = from->data[0];
        *from = slice_skip(*from, 1);
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool
bytes_take(struct slice *from, uint64_t length, struct slice *bytes)
{
    if (length > from->length)
        return false;
    *bytes = slice_of(from->data, (size_t)length);
    *from = slice_skip(*from, (size_t)length);
    return true;
}

static bool
field_take(struct slice *from, struct field *field)
{
    uint64_t tag, length;
    if (!varint_take(from, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    *field = (struct field){.number = (unsigned)(tag >> 3), .type = tag & 7};
    switch (field->type) {
    case WIRE_VARINT:
        return varint_take(from, &field->varint);
    case WIRE_BYTES:
        return varint_take(from, &length) && bytes_take(from, length, &field->bytes);
    case WIRE_FIXED64:
        return bytes_take(from, 8, &field->bytes);
    case WIRE_FIXED32:
        return bytes_take(from, 4, &field->bytes);
    default:
        return false;
    }
}

static struct slice
after_last_slash(struct slice type)
{
    for (size_t i = type.length; i > 0; i--)
        if (type.data[i - 1] == '/')
            return slice_skip(type, i);
    return type;
}

static bool
any_parse(struct slice bytes, struct slice *type_name, struct slice *detail)
{
    struct field field;
    while (bytes.length > 0) {
        if (!field_take(&bytes, &field))
            return false;
        if (field.number == 1 && field.type == WIRE_BYTES)
            *type_name = after_last_slash(field.bytes);
        else if (field.number == 2 && field.type == WIRE_BYTES)
            *detail = field.bytes;
    }
    return true;
}

bool
grpc_status_details_decode(struct slice header, struct arena *arena, int *code,
                           struct slice *message, struct slice *type_name, struct slice *detail)
{
    struct slice bytes, any = {0};
    if (!text_base64_decode(arena, header, TEXT_BASE64_STANDARD, &bytes))
        return false;
    *code = 0;
    *message = *type_name = *detail = (struct slice){0};
    bool has_any = false;
    struct field field;
    while (bytes.length > 0) {
        if (!field_take(&bytes, &field))
            return false;
        if (field.number == 1 && field.type == WIRE_VARINT) {
            *code = (int)(int32_t)field.varint;
        } else if (field.number == 2 && field.type == WIRE_BYTES) {
            *message = field.bytes;
        } else if (field.number == 3 && field.type == WIRE_BYTES && !has_any) {
            any = field.bytes;
            has_any = true;
        }
    }
    return any_parse(any, type_name, detail);
}

/* ---- meaning ---- */

/* Kinds that a status alone stands for; all other kinds need their detail. */
static const struct {
    int status;
    enum error_kind kind;
} plain_kinds[] = {
    {1, ERR_CANCELLED},     {2, ERR_UNCATEGORISED},  {3, ERR_BAD_REQUEST}, {4, ERR_DEADLINE},
    {7, ERR_ACCESS_DENIED}, {12, ERR_UNIMPLEMENTED}, {13, ERR_INTERNAL},   {14, ERR_UNAVAILABLE},
};

enum error_kind
grpc_status_kind(int status, struct slice type_name)
{
    for (int kind = 0; kind < ERROR_KIND_COUNT && type_name.length > 0; kind++) {
        const char *detail = error_kind_detail((enum error_kind)kind);
        bool is_it = detail != NULL && slice_equal(slice_text(detail), type_name) &&
                     error_kind_status((enum error_kind)kind) == status;
        if (is_it)
            return (enum error_kind)kind;
    }
    for (size_t i = 0; i < array_length(plain_kinds); i++)
        if (plain_kinds[i].status == status)
            return plain_kinds[i].kind;
    return ERR_UNCATEGORISED;
}

struct slice
grpc_message_clean(const char *text, struct arena *arena)
{
    struct slice rest = slice_text(text);
    size_t room = rest.length < MESSAGE_SIZE_MAX ? rest.length : MESSAGE_SIZE_MAX;
    uint8_t *bytes = arena_alloc(arena, room + 1);
    size_t length = 0;
    while (rest.length > 0) {
        size_t size = text_utf8_sequence(rest);
        size_t taken = size == 0 ? 1 : size;
        if (length + taken > room)
            break;
        if (size == 0)
            bytes[length] = '?';
        else
            memcpy(bytes + length, rest.data, size);
        length += taken;
        rest = slice_skip(rest, taken);
    }
    bytes[length] = '\0'; /* beyond the slice: it is also a C string */
    return slice_of(bytes, length);
}
