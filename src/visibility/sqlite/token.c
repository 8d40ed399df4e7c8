/* token.c - where a page ended: the order value and the run id of its last run.
 *
 *     version 1 | fingerprint 8 | kind 1 | value 8, or nothing | length 4, text | length 4, run id
 * | crc 4
 *
 * The fingerprint binds it to the domain and the order; a token of another question is refused. Not
 * to the condition: clients that ask for "until now" ask for a little more with each page, and the
 * position is as good for that. It is not a secret and protects nothing: a forged one can only
 * begin a page at another place of the same answer, since domain and condition are never taken from
 * it. */
#include "base/check.h"
#include "base/crc.h"
#include "visibility/sqlite/inside.h"

#define TOKEN_VERSION 1

enum token_kind { KIND_NULL, KIND_INTEGER, KIND_NUMBER, KIND_TEXT, KIND_COUNT };

/* ---- fingerprint ---- */

static uint64_t
mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

uint64_t
token_fingerprint(const struct visibility_question *question)
{
    const struct query *query = question->query;
    bool is_ordered = !question->is_unordered && query->order != NULL;
    uint64_t hash = mix(map_hash(slice_text(question->domain_id)), question->is_unordered);
    if (is_ordered)
        hash = mix(mix(hash, query->order->type), map_hash(slice_text(query->order->name)));
    return mix(hash, !question->is_unordered && query->is_ascending);
}

/* ---- writing ---- */

static void
append_bytes(struct buffer *buffer, struct slice bytes)
{
    buffer_append_u32be(buffer, (uint32_t)bytes.length);
    buffer_append(buffer, bytes);
}

static void
append_value(struct buffer *buffer, const struct token *token)
{
    uint64_t number = 0;
    if (token->is_null) {
        buffer_append_u8(buffer, KIND_NULL);
    } else if (token->value.type == SQL_TEXT) {
        buffer_append_u8(buffer, KIND_TEXT);
        append_bytes(buffer, token->value.text);
    } else {
        bool is_integer = token->value.type == SQL_INTEGER;
        memcpy(&number, is_integer ? (const void *)&token->value.integer : &token->value.number,
               sizeof number);
        buffer_append_u8(buffer, is_integer ? KIND_INTEGER : KIND_NUMBER);
        buffer_append_u64be(buffer, number);
    }
}

struct slice
token_write(const struct token *token, uint64_t fingerprint, struct arena *arena)
{
    scoped(buffer_free) struct buffer buffer = {0};
    buffer_append_u8(&buffer, TOKEN_VERSION);
    buffer_append_u64be(&buffer, fingerprint);
    append_value(&buffer, token);
    append_bytes(&buffer, token->run_id);
    buffer_append_u32be(&buffer, crc32c(0, buffer_slice(&buffer)));
    return arena_slice(arena, buffer_slice(&buffer));
}

/* ---- reading ---- */

static bool
take(struct slice *bytes, size_t count, struct slice *taken)
{
    if (bytes->length < count)
        return false;
    *taken = slice_of(bytes->data, count);
    *bytes = slice_skip(*bytes, count);
    return true;
}

static bool
take_number(struct slice *bytes, size_t count, uint64_t *number)
{
    struct slice taken;
    if (!take(bytes, count, &taken))
        return false;
    *number = 0;
    for (size_t i = 0; i < count; i++)
        *number = *number << 8 | taken.data[i];
    return true;
}

static bool
take_bytes(struct slice *bytes, struct slice *taken)
{
    uint64_t length;
    return take_number(bytes, 4, &length) && take(bytes, length, taken);
}

static bool
take_value(struct slice *bytes, struct token *token)
{
    uint64_t kind, number;
    if (!take_number(bytes, 1, &kind) || kind >= KIND_COUNT)
        return false;
    token->is_null = kind == KIND_NULL;
    if (token->is_null)
        return true;
    if (kind == KIND_TEXT) {
        token->value.type = SQL_TEXT;
        return take_bytes(bytes, &token->value.text);
    }
    if (!take_number(bytes, 8, &number))
        return false;
    token->value.type = kind == KIND_INTEGER ? SQL_INTEGER : SQL_NUMBER;
    memcpy(kind == KIND_INTEGER ? (void *)&token->value.integer : &token->value.number, &number,
           sizeof number);
    return true;
}

/* All of it, nothing behind it, and the sum is right. */
static bool
read_whole(struct slice bytes, uint64_t *fingerprint, struct token *token)
{
    uint64_t version, crc;
    struct slice body = bytes;
    return take_number(&bytes, 1, &version) && version == TOKEN_VERSION &&
           take_number(&bytes, 8, fingerprint) && take_value(&bytes, token) &&
           take_bytes(&bytes, &token->run_id) && take_number(&bytes, 4, &crc) &&
           bytes.length == 0 && crc == crc32c(0, slice_of(body.data, body.length - 4));
}

struct error *
token_read(struct slice bytes, uint64_t fingerprint, struct arena *arena, struct token *token)
{
    uint64_t written;
    *token = (struct token){0};
    if (!read_whole(bytes, &written, token))
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    if (written != fingerprint)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Invalid NextPageToken: it belongs to another list.");
    return NULL;
}
