/* token.c - see token.h. A token is
 *
 *   type + 1 of the value, 0: no value · 8 bytes of a number · 4 bytes length of a text, the text ·
 *   the run id
 *
 * where of number and text only the one that the type has is there; numbers are big-endian. */
#include "visibility/memory/token.h"

#include "base/buffer.h"
#include "base/check.h"

struct memory_position
memory_position_of(const struct query *query, const struct visibility_row *row)
{
    check(row->has[COLUMN_RUN_ID]);
    const struct attribute_value *value = query_order_value(query, row);
    struct memory_position position = {.has_value = value != NULL,
                                       .run_id = row->column[COLUMN_RUN_ID].text};
    if (value != NULL)
        position.value = *value;
    return position;
}

int
memory_position_compare(const struct query *query, const struct memory_position *one,
                        const struct memory_position *other)
{
    return query_compare_positions(query, one->has_value ? &one->value : NULL, one->run_id,
                                   other->has_value ? &other->value : NULL, other->run_id);
}

/* --- tokens --------------------------------------------------------------------------------- */

static bool
is_text(enum attribute_type type)
{
    return type == ATTRIBUTE_STRING || type == ATTRIBUTE_KEYWORD;
}

static uint64_t
bits_of(const struct attribute_value *value)
{
    uint64_t bits = (uint64_t)value->integer;
    if (value->type == ATTRIBUTE_DOUBLE)
        memcpy(&bits, &value->number, sizeof bits);
    return bits;
}

struct slice
memory_token_write(const struct memory_position *position, struct arena *arena)
{
    check(position->run_id.length > 0);
    scoped(buffer_free) struct buffer token = {0};
    buffer_append_u8(&token, position->has_value ? (uint8_t)(position->value.type + 1) : 0);
    if (position->has_value && is_text(position->value.type)) {
        buffer_append_u32be(&token, (uint32_t)position->value.text.length);
        buffer_append(&token, position->value.text);
    } else if (position->has_value) {
        buffer_append_u64be(&token, bits_of(&position->value));
    }
    buffer_append(&token, position->run_id);
    return arena_slice(arena, buffer_slice(&token));
}

static bool
take_u64(struct slice *token, size_t bytes, uint64_t *number)
{
    *number = 0;
    if (token->length < bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        *number = *number << 8 | token->data[i];
    *token = slice_skip(*token, bytes);
    return true;
}

static bool
take_value(struct slice *token, struct attribute_value *value)
{
    uint64_t number;
    if (!take_u64(token, is_text(value->type) ? 4 : 8, &number))
        return false;
    value->integer = (int64_t)number;
    if (value->type == ATTRIBUTE_DOUBLE)
        memcpy(&value->number, &number, sizeof number);
    if (!is_text(value->type))
        return true;
    if (token->length < number)
        return false;
    value->text = slice_of(token->data, number);
    *token = slice_skip(*token, number);
    return true;
}

struct error *
memory_token_read(const struct query *query, struct slice token, struct arena *arena,
                  struct memory_position *position)
{
    check(token.length > 0);
    enum attribute_type type = query->order != NULL ? query->order->type : ATTRIBUTE_DATETIME;
    uint8_t kind = token.data[0];
    *position = (struct memory_position){.has_value = kind != 0, .value.type = type};
    token = slice_skip(token, 1);
    bool is_good = kind == 0 || (kind == (uint8_t)type + 1 && take_value(&token, &position->value));
    position->run_id = token;
    if (!is_good || token.length == 0)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    return NULL;
}
