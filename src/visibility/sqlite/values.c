/* values.c - the custom attributes of a run: one row a value by run, one by what is searched.
 *
 * Of a STRING attribute the words are searched, so these differ; else both are the value. */
#include "base/check.h"
#include "visibility/sqlite/record.h"

static uint64_t
mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t
mix_value(uint64_t hash, const struct attribute_value *value)
{
    uint64_t number = 0;
    if (value->type == ATTRIBUTE_DOUBLE)
        memcpy(&number, &value->number, sizeof number);
    else if (value->type == ATTRIBUTE_STRING || value->type == ATTRIBUTE_KEYWORD)
        number = map_hash(value->text);
    else
        number = (uint64_t)value->integer;
    return mix(mix(hash, (uint64_t)value->type + 1), number);
}

int64_t
values_fingerprint(const struct visibility_row *row)
{
    if (row->custom_count == 0)
        return 0;
    uint64_t hash = 1;
    for (size_t i = 0; i < row->custom_count; i++) {
        const struct visibility_custom *custom = &row->custom[i];
        hash = mix(hash, map_hash(slice_text(custom->attribute->name)));
        for (size_t j = 0; j < custom->count; j++)
            hash = mix_value(hash, &custom->values[j]);
    }
    return (int64_t)(hash | 1); /* 0 is none */
}

/* ---- what is searched ---- */

static int
search_run(sqlite3_stmt *statement, int64_t id, int64_t attribute,
           const struct attribute_value *value)
{
    sqlite3_bind_int64(statement, 1, attribute);
    value_bind(statement, 2, value);
    sqlite3_bind_int64(statement, 3, id);
    return statement_run(statement);
}

/* Inserts or deletes what a value is found by. */
static int
search_do(sqlite3_stmt *statement, int64_t id, int64_t attribute,
          const struct attribute_value *value, struct arena *arena)
{
    if (value->type != ATTRIBUTE_STRING)
        return search_run(statement, id, attribute, value);
    struct slice rest = value->text;
    uint8_t *word = arena_alloc(arena, rest.length);
    int code = SQLITE_OK;
    for (size_t length; code == SQLITE_OK && text_next_word(&rest, word, &length);) {
        struct attribute_value part = {.type = ATTRIBUTE_STRING, .text = slice_of(word, length)};
        code = search_run(statement, id, attribute, &part);
    }
    return code;
}

/* ---- inserting ---- */

static int
insert_value(struct record_writer *writer, int64_t id, int64_t attribute,
             const struct attribute_value *value, struct arena *arena)
{
    sqlite3_stmt *statement = writer->statements[RECORD_VALUE_INSERT];
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, attribute);
    value_bind(statement, 3, value);
    int code = statement_run(statement);
    return code != SQLITE_OK
               ? code
               : search_do(writer->statements[RECORD_SEARCH_INSERT], id, attribute, value, arena);
}

int
values_insert(struct record_writer *writer, int64_t id, int64_t domain,
              const struct visibility_row *row, struct arena *arena)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < row->custom_count && code == SQLITE_OK; i++) {
        const struct visibility_custom *custom = &row->custom[i];
        int64_t attribute;
        code = names_number(&writer->names, domain, NAME_ATTRIBUTE + custom->attribute->type,
                            slice_text(custom->attribute->name), &attribute);
        for (size_t j = 0; j < custom->count && code == SQLITE_OK; j++)
            code = insert_value(writer, id, attribute, &custom->values[j], arena);
    }
    return code;
}

/* ---- deleting ---- */

/* A value as it was inserted; the text is good until the statement goes on. */
static struct attribute_value
stored_value(sqlite3_stmt *statement)
{
    enum attribute_type type =
        (enum attribute_type)(sqlite3_column_int(statement, 2) - NAME_ATTRIBUTE);
    struct attribute_value value = {.type = type,
                                    .integer = sqlite3_column_int64(statement, 1),
                                    .number = sqlite3_column_double(statement, 1)};
    if (type == ATTRIBUTE_STRING || type == ATTRIBUTE_KEYWORD) {
        const void *text = sqlite3_column_text(statement, 1);
        value.text = slice_of(text, (size_t)sqlite3_column_bytes(statement, 1));
    }
    return value;
}

int
values_delete(struct record_writer *writer, int64_t id, struct arena *arena)
{
    sqlite3_stmt *list = writer->statements[RECORD_VALUE_LIST];
    int code = SQLITE_OK;
    sqlite3_bind_int64(list, 1, id);
    while (code == SQLITE_OK && sqlite3_step(list) == SQLITE_ROW) {
        struct attribute_value value = stored_value(list);
        code = search_do(writer->statements[RECORD_SEARCH_DELETE], id,
                         sqlite3_column_int64(list, 0), &value, arena);
    }
    int end = sqlite3_reset(list);
    if (code != SQLITE_OK || end != SQLITE_OK)
        return code != SQLITE_OK ? code : end;
    sqlite3_bind_int64(writer->statements[RECORD_VALUE_DELETE], 1, id);
    return statement_run(writer->statements[RECORD_VALUE_DELETE]);
}
