/* arena.c - a chain of chunks, filled from the front, and from the back by what is written
 * backwards.
 *
 * A chunk is one block of memory; the arena itself lives at the start of the first. Chunks double
 * up to a bound, so that a large arena has few of them. What is larger than a usual chunk gets a
 * chunk of its own behind the current one, which stays in use.
 *
 * Under AddressSanitizer the free part of a chunk is poisoned and a poisoned gap follows each
 * piece, so that writing past one is found although it comes from the same block. */
#include "base/arena.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"

#if IS_ADDRESS_SANITIZED
#include <sanitizer/asan_interface.h>
#define ARENA_GAP ((size_t)16)
#else
#define ASAN_POISON_MEMORY_REGION(start, size)   ((void)(start), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#define ARENA_GAP                                ((size_t)0)
#endif

#define ARENA_ALIGN      ((size_t)16)
#define ARENA_FIRST_SIZE ((size_t)4096 - 128)
#define ARENA_CHUNK_MAX  ((size_t)1 << 20)

struct chunk {
    struct chunk *next; /* the one taken before it, or NULL for the first */
    size_t size;        /* of bytes */
    size_t used;        /* from the front */
    size_t end;         /* what is behind it is used, too */
    _Alignas(16) char bytes[];
};

struct arena {
    struct chunk *current; /* the chain begins here and ends with the first chunk */
    size_t first_used;     /* of the first chunk: the arena itself */
    size_t footprint;
};

static size_t
round_up(size_t size)
{
    return (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
}

static struct chunk *
chunk_new(size_t size)
{
    struct chunk *chunk = memory_take(sizeof *chunk + size);
    *chunk = (struct chunk){.size = size, .end = size};
    ASAN_POISON_MEMORY_REGION(chunk->bytes, size);
    return chunk;
}

static void
chunk_free(struct chunk *chunk)
{
    ASAN_UNPOISON_MEMORY_REGION(chunk->bytes, chunk->size);
    memory_give(chunk, sizeof *chunk + chunk->size);
}

/* Does a piece of `size` bytes fit? */
static bool
chunk_fits(const struct chunk *chunk, size_t size)
{
    check(chunk->used <= chunk->end);
    return size + ARENA_GAP <= chunk->end - chunk->used;
}

/* `size` is already rounded up; NULL when it does not fit. */
static void *
chunk_take(struct chunk *chunk, size_t size)
{
    if (!chunk_fits(chunk, size))
        return NULL;
    char *bytes = chunk->bytes + chunk->used;
    chunk->used += size + ARENA_GAP;
    ASAN_UNPOISON_MEMORY_REGION(bytes, size);
    return bytes;
}

struct arena *
arena_new(size_t first_size)
{
    size_t own = round_up(sizeof(struct arena));
    check(first_size < SIZE_MAX / 2);
    size_t size = first_size == 0 ? ARENA_FIRST_SIZE : round_up(first_size);
    struct chunk *chunk = chunk_new(own + ARENA_GAP + size);
    struct arena *arena = chunk_take(chunk, own);
    *arena = (struct arena){
        .current = chunk,
        .first_used = chunk->used,
        .footprint = sizeof *chunk + chunk->size,
    };
    return arena;
}

void
arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    struct chunk *next;
    for (struct chunk *chunk = arena->current; chunk != NULL; chunk = next) {
        next = chunk->next; /* the last one holds the arena itself */
        chunk_free(chunk);
    }
}

void
arena_drop(struct arena **arena)
{
    arena_free(*arena);
    *arena = NULL;
}

void
arena_reset(struct arena *arena)
{
    while (arena->current->next != NULL) {
        struct chunk *chunk = arena->current;
        arena->current = chunk->next;
        chunk_free(chunk);
    }
    struct chunk *first = arena->current;
    check(first->used >= arena->first_used);
    ASAN_POISON_MEMORY_REGION(first->bytes + arena->first_used, first->size - arena->first_used);
    first->used = arena->first_used;
    first->end = first->size;
    arena->footprint = sizeof *first + first->size;
}

size_t
arena_footprint(const struct arena *arena)
{
    return arena->footprint;
}

/* The current chunk is full: a new one with room for `size` bytes. */
static seldom struct chunk *
arena_grow(struct arena *arena, size_t size)
{
    struct chunk *current = arena->current;
    size_t usual = current->size * 2 < ARENA_CHUNK_MAX ? current->size * 2 : ARENA_CHUNK_MAX;
    bool is_large = size + ARENA_GAP > usual / 2;
    struct chunk *chunk = chunk_new(is_large ? size + ARENA_GAP : usual);
    arena->footprint += sizeof *chunk + chunk->size;
    if (is_large && current->next != NULL) {
        chunk->next = current->next;
        current->next = chunk;
    } else {
        chunk->next = current; /* the first chunk stays last, it holds the arena */
        arena->current = chunk;
    }
    return chunk;
}

static seldom void *
arena_alloc_new(struct arena *arena, size_t size)
{
    void *bytes = chunk_take(arena_grow(arena, size), size);
    check(bytes != NULL);
    return bytes;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
    check_that(size < SIZE_MAX / 2, "%zu bytes wanted", size);
    size_t rounded = round_up(size == 0 ? 1 : size);
    void *bytes = chunk_take(arena->current, rounded);
    if (bytes == NULL)
        bytes = arena_alloc_new(arena, rounded);
    /* The tail that only rounds up is not the caller's. */
    ASAN_POISON_MEMORY_REGION((char *)bytes + size, rounded - size);
    return bytes;
}

void *
arena_zalloc(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    bool is_too_much = __builtin_mul_overflow(count, size, &total);
    check_that(!is_too_much, "%zu pieces of %zu bytes wanted", count, size);
    void *bytes = arena_alloc(arena, total);
    return memset(bytes, 0, total);
}

struct arena_room
arena_open_room(struct arena *arena, size_t size)
{
    check_that(size < SIZE_MAX / 2, "%zu bytes wanted", size);
    struct chunk *chunk = arena->current;
    if (!chunk_fits(chunk, size))
        chunk = arena_grow(arena, size);
    struct arena_room room = {
        .start = (uint8_t *)chunk->bytes + chunk->used + ARENA_GAP,
        .end = (uint8_t *)chunk->bytes + chunk->end,
        .chunk = chunk,
    };
    ASAN_UNPOISON_MEMORY_REGION(room.start, (size_t)(room.end - room.start));
    return room;
}

void
arena_close_room(struct arena_room room, const uint8_t *piece)
{
    check(piece >= room.start && piece <= room.end);
    check(room.end == (uint8_t *)room.chunk->bytes + room.chunk->end);
    ASAN_POISON_MEMORY_REGION(room.start, (size_t)(piece - room.start));
    if (piece < room.end) /* the gap before it is not free either */
        room.chunk->end = (size_t)(piece - (uint8_t *)room.chunk->bytes) - ARENA_GAP;
}

char *
arena_text(struct arena *arena, const char *text)
{
    check(text != NULL);
    return arena_text_of(arena, slice_text(text));
}

char *
arena_text_of(struct arena *arena, struct slice bytes)
{
    char *text = arena_alloc(arena, bytes.length + 1);
    if (bytes.length > 0)
        memcpy(text, bytes.data, bytes.length);
    text[bytes.length] = '\0';
    return text;
}

struct slice
arena_slice(struct arena *arena, struct slice bytes)
{
    if (bytes.length == 0)
        return (struct slice){0};
    uint8_t *copy = arena_alloc(arena, bytes.length);
    memcpy(copy, bytes.data, bytes.length);
    return slice_of(copy, bytes.length);
}

char *
arena_format(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = arena_vformat(arena, format, arguments);
    va_end(arguments);
    return text;
}

char *
arena_vformat(struct arena *arena, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    check_that(length >= 0, "bad format %s", format);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
