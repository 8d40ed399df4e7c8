/* functions.c - the small things that tables and questions must see alike: values, keys, words. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

static struct slice
argument_text(sqlite3_value *value)
{
    const void *text = sqlite3_value_text(value); /* first: it may convert, and change the length */
    return slice_of(text, (size_t)sqlite3_value_bytes(value));
}

/* What is missing matches nothing. */
static void
call_on_texts(sqlite3_context *context, sqlite3_value **values,
              bool (*function)(struct slice, struct slice))
{
    bool is_text = sqlite3_value_type(values[0]) == SQLITE_TEXT;
    sqlite3_result_int(context,
                       is_text && function(argument_text(values[0]), argument_text(values[1])));
}

static void
text_matches(sqlite3_context *context, int count, sqlite3_value **values)
{
    check(count == 2);
    call_on_texts(context, values, visibility_text_matches);
}

static void
text_like(sqlite3_context *context, int count, sqlite3_value **values)
{
    check(count == 2);
    call_on_texts(context, values, visibility_text_like);
}

/* A NULL is an empty text here: no scope. */
static void
is_active_in(sqlite3_context *context, int count, sqlite3_value **values)
{
    check(count == 3);
    const struct query_node *node = sqlite3_value_pointer(values[2], NODE_POINTER);
    check(node != NULL);
    sqlite3_result_int(
        context, query_is_active_in(node, argument_text(values[0]), argument_text(values[1])));
}

int
functions_register(sqlite3 *database)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int code =
        sqlite3_create_function(database, "text_matches", 2, flags, NULL, text_matches, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    code = sqlite3_create_function(database, "text_like", 2, flags, NULL, text_like, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    return sqlite3_create_function(database, "is_at_place", 3, flags, NULL, is_active_in, NULL,
                                   NULL);
}

int
text_bind(sqlite3_stmt *statement, int index, struct slice text)
{
    const char *bytes = text.length == 0 ? "" : (const char *)text.data; /* empty is not NULL */
    return sqlite3_bind_text64(statement, index, bytes, text.length, SQLITE_STATIC, SQLITE_UTF8);
}

int
value_bind(sqlite3_stmt *statement, int index, const struct attribute_value *value)
{
    switch (value->type) {
    case ATTRIBUTE_STRING:
    case ATTRIBUTE_KEYWORD:
        return text_bind(statement, index, value->text);
    case ATTRIBUTE_INT:
    case ATTRIBUTE_BOOL:
    case ATTRIBUTE_DATETIME:
        return sqlite3_bind_int64(statement, index, value->integer);
    case ATTRIBUTE_DOUBLE:
        return sqlite3_bind_double(statement, index, value->number);
    case ATTRIBUTE_TYPE_COUNT:
        break;
    }
    unreachable("attribute type %d", (int)value->type);
}

int64_t
key_hash(int64_t domain, enum attribute_column column, struct slice text)
{
    uint64_t hash = map_hash(text) ^ ((uint64_t)domain * 2 + (column == COLUMN_RUN_ID));
    hash *= UINT64_C(0x9e3779b97f4a7c15); /* spreads the domain over all bits */
    return (int64_t)(hash ^ hash >> 32);
}

static bool
is_word_byte(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || byte >= 0x80;
}

bool
text_next_word(struct slice *text, uint8_t *word, size_t *length)
{
    while (text->length > 0 && !is_word_byte(text->data[0]))
        *text = slice_skip(*text, 1);
    *length = 0;
    while (*length < text->length && is_word_byte(text->data[*length])) {
        uint8_t byte = text->data[*length];
        word[(*length)++] = byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + 'a' - 'A') : byte;
    }
    *text = slice_skip(*text, *length);
    return *length > 0;
}
