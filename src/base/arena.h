/* arena.h - memory that belongs to a lifetime, not to a variable.
 *
 * An arena hands out memory and takes it all back at once. A call has one, a fiber may have one;
 * what a function returns lives in the arena that it was given. Nothing in an arena is freed one by
 * one. Not for sharing between threads at the same time; handing it over with a message is fine. */
#ifndef CADENZA_BASE_ARENA_H
#define CADENZA_BASE_ARENA_H

#include <stdarg.h>

#include "base/compiler.h"
#include "base/slice.h"

struct arena;

/* A new arena; its first chunk has room for about `first_size` bytes (0: a sane default). */
must_use struct arena *arena_new(size_t first_size);
/* Frees the arena and everything in it. NULL is fine. */
void arena_free(struct arena *arena);
/* For scoped(arena_drop) struct arena *arena = arena_new(0). */
void arena_drop(struct arena **arena);
/* Empties the arena but keeps its first chunk, for reuse. */
void arena_reset(struct arena *arena);
/* Bytes taken from the process, chunks included. */
size_t arena_footprint(const struct arena *arena);

/* `size` bytes aligned for any type, not initialised. size 0 gives a valid pointer. */
must_use void *arena_alloc(struct arena *arena, size_t size);
/* `count` * `size` zero bytes; aborts on overflow. */
must_use void *arena_zalloc(struct arena *arena, size_t count, size_t size);
/* One zeroed object of `type`. */
#define arena_make(arena, type) ((type *)arena_zalloc((arena), 1, sizeof(type)))

/* Room for one piece whose size is not known yet and that is written from its end. */
struct arena_room {
    uint8_t *start;
    uint8_t *end;
    struct chunk *chunk; /* the arena's own */
};

/* All that is free at one place, `size` bytes at least. Nothing else may be taken from the arena
 * before the room is closed, but for a larger room that the piece moves to. */
must_use struct arena_room arena_open_room(struct arena *arena, size_t size);
/* What stands from `piece` to the end of the room stays, the rest is free again. */
void arena_close_room(struct arena_room room, const uint8_t *piece);

/* Copies into the arena. A text is NUL-terminated. */
char *arena_text(struct arena *arena, const char *text);
char *arena_text_of(struct arena *arena, struct slice bytes);
struct slice arena_slice(struct arena *arena, struct slice bytes);
char *arena_format(struct arena *arena, const char *format, ...) printf_like(2, 3);
char *arena_vformat(struct arena *arena, const char *format, va_list arguments) printf_like(2, 0);

#endif
