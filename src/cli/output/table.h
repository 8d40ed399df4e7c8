/* table.h - text for people: columns that line up, times, and words that cannot harm a terminal.
 * Pure. Inside cli/ only. */
#ifndef CADENZA_CLI_OUTPUT_TABLE_H
#define CADENZA_CLI_OUTPUT_TABLE_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "wire/names.h"

/* Rows of `columns` cells, the first of them the heading. */
struct table {
    size_t columns;
    const char **items; /* cells, row after row */
    size_t count, capacity;
    struct arena *arena;
};

/* Adds one row; texts are kept, not copied. */
#define table_add(table, ...)                                                                      \
    table_add_row((table), (const char *[]){__VA_ARGS__},                                          \
                  sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *))
void table_add_row(struct table *table, const char *const *cells, size_t count);
/* The lines; every column is as wide as its widest cell. */
const char *table_text(const struct table *table);

/* The text with every control character replaced by '?': what others wrote must not steer the
 * reader's terminal. */
const char *show_text(const char *text, struct arena *arena);
/* "2026-11-15T07:03:44Z"; "-" for NULL. */
const char *show_time(const GOOGLE(Timestamp) *time, struct arena *arena);
/* The name of an enum's value without the name of the enum: DOMAIN_STATUS_DELETED → "DELETED"; the
 * number if it has no name. */
const char *show_enum(const ProtobufCEnumDescriptor *type, const char *prefix, int value,
                      struct arena *arena);
/* "-" for an empty text. */
const char *show_or_dash(const char *text, struct arena *arena);

#endif
