/* buffer.h - bytes that grow at the end.
 *
 * All zero is an empty buffer. Its memory comes from base/memory.h; buffer_free gives it back.
 * Slices of it are good until it is next changed. Numbers are big-endian, as on the wire. */
#ifndef CADENZA_BASE_BUFFER_H
#define CADENZA_BASE_BUFFER_H

#include <stdarg.h>

#include "base/compiler.h"
#include "base/slice.h"

struct buffer {
    uint8_t *data;
    size_t length;   /* of what is there */
    size_t capacity; /* of data */
};

/* Gives the memory back; the buffer is empty and may be used again. */
void buffer_free(struct buffer *buffer);
/* Forgets the bytes, keeps the room. */
void buffer_clear(struct buffer *buffer);

/* `size` bytes of room behind the end, not initialised; buffer_commit makes the first of them part
 * of it. */
must_use uint8_t *buffer_reserve(struct buffer *buffer, size_t size);
void buffer_commit(struct buffer *buffer, size_t size);

void buffer_append(struct buffer *buffer, struct slice bytes);
void buffer_append_u8(struct buffer *buffer, uint8_t number);
void buffer_append_u16be(struct buffer *buffer, uint16_t number);
void buffer_append_u32be(struct buffer *buffer, uint32_t number);
void buffer_append_u64be(struct buffer *buffer, uint64_t number);
/* Without the NUL. */
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_format(struct buffer *buffer, const char *format, ...) printf_like(2, 3);

/* All that is there. */
static inline struct slice
buffer_slice(const struct buffer *buffer)
{
    return slice_of(buffer->length == 0 ? NULL : buffer->data, buffer->length);
}

#endif
