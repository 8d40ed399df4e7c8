/* buffer.c - one block of memory; when its end has no room it doubles. */
#include "base/buffer.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"

#define BUFFER_FIRST_CAPACITY ((size_t)256)

void
buffer_free(struct buffer *buffer)
{
    memory_free(buffer->data);
    *buffer = (struct buffer){0};
}

void
buffer_clear(struct buffer *buffer)
{
    buffer->length = 0;
}

static void
make_room(struct buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity * 2;
    capacity = capacity < BUFFER_FIRST_CAPACITY ? BUFFER_FIRST_CAPACITY : capacity;
    capacity = capacity < needed ? needed : capacity;
    buffer->data = memory_realloc(buffer->data, capacity);
    buffer->capacity = capacity;
}

uint8_t *
buffer_reserve(struct buffer *buffer, size_t size)
{
    check_that(size < SIZE_MAX / 4, "%zu bytes wanted", size);
    check(buffer->length <= buffer->capacity);
    if (buffer->data == NULL || size > buffer->capacity - buffer->length)
        make_room(buffer, buffer->length + size);
    return buffer->data + buffer->length;
}

void
buffer_commit(struct buffer *buffer, size_t size)
{
    check(size <= buffer->capacity - buffer->length);
    buffer->length += size;
}

void
buffer_append(struct buffer *buffer, struct slice bytes)
{
    if (bytes.length == 0)
        return;
    memcpy(buffer_reserve(buffer, bytes.length), bytes.data, bytes.length);
    buffer_commit(buffer, bytes.length);
}

static void
append_number(struct buffer *buffer, uint64_t number, int size)
{
    uint8_t *bytes = buffer_reserve(buffer, (size_t)size);
    for (int i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> 8 * (size - 1 - i));
    buffer_commit(buffer, (size_t)size);
}

void
buffer_append_u8(struct buffer *buffer, uint8_t number)
{
    append_number(buffer, number, 1);
}

void
buffer_append_u16be(struct buffer *buffer, uint16_t number)
{
    append_number(buffer, number, 2);
}

void
buffer_append_u32be(struct buffer *buffer, uint32_t number)
{
    append_number(buffer, number, 4);
}

void
buffer_append_u64be(struct buffer *buffer, uint64_t number)
{
    append_number(buffer, number, 8);
}

void
buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, slice_text(text));
}

void
buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    check_that(length >= 0, "bad format %s", format);
    char *room = (char *)buffer_reserve(buffer, (size_t)length + 1);
    vsnprintf(room, (size_t)length + 1, format, again);
    va_end(again);
    buffer_commit(buffer, (size_t)length);
}
