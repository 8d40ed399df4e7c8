/* slice.h - bytes that belong to somebody else: a pointer and a length, passed by value.
 *
 * A slice never owns and is not NUL-terminated. A function that returns one says where the bytes
 * live. */
#ifndef CADENZA_BASE_SLICE_H
#define CADENZA_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *data; /* may be NULL when length is 0 */
    size_t length;
};

/* For printf: printf("%.*s", SLICE_ARG(slice)). */
#define SLICE_ARG(slice) (int)(slice).length, (const char *)(slice).data

/* A slice of a string literal, as a constant expression. */
#define SLICE_LITERAL(text)                                                                        \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

/* `length` bytes at `data`. */
static inline struct slice
slice_of(const void *data, size_t length)
{
    return (struct slice){.data = data, .length = length};
}

/* The bytes of a C string without its NUL; NULL gives the empty slice. */
static inline struct slice
slice_text(const char *text)
{
    return slice_of(text, text == NULL ? 0 : strlen(text));
}

static inline bool
slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* Bytewise order, a prefix before what it begins: <0, 0, >0. */
static inline int
slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter == 0 ? 0 : memcmp(a.data, b.data, shorter);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static inline bool
slice_starts_with(struct slice slice, struct slice prefix)
{
    return slice.length >= prefix.length &&
           (prefix.length == 0 || memcmp(slice.data, prefix.data, prefix.length) == 0);
}

/* What is left after the first `count` bytes; `count` must not exceed the length. */
static inline struct slice
slice_skip(struct slice slice, size_t count)
{
    return count == 0 ? slice : slice_of(slice.data + count, slice.length - count);
}

#endif
