/* error.c - making errors, and the table of their kinds.
 *
 * The one list in error.h gives the enum and this table, so that no kind can lack its row. */
#include "base/error.h"

#include "base/check.h"

static const struct {
    int status;
    const char *detail;
    const char *name;
} kinds[ERROR_KIND_COUNT] = {
#define X(kind, status, detail, name) [kind] = {status, detail, name},
    ERROR_KINDS(X)
#undef X
};

static bool
kind_is_valid(enum error_kind kind)
{
    return (unsigned)kind < ERROR_KIND_COUNT;
}

struct error *
error_new_at(struct arena *arena, enum error_kind kind, const char *file, int line,
             const char *format, ...)
{
    check(kind_is_valid(kind));
    struct error *err = arena_make(arena, struct error);
    va_list arguments;
    va_start(arguments, format);
    err->message = arena_vformat(arena, format, arguments);
    va_end(arguments);
    err->kind = kind;
    err->arena = arena;
    err->file = file;
    err->line = line;
    return err;
}

struct error *
error_wrap_at(struct error *err, const char *file, int line, const char *format, ...)
{
    check(err != NULL);
    va_list arguments;
    va_start(arguments, format);
    char *doing = arena_vformat(err->arena, format, arguments);
    va_end(arguments);
    struct error *outer =
        error_new_at(err->arena, err->kind, file, line, "%s: %s", doing, err->message);
    outer->detail = err->detail;
    outer->cause = err;
    return outer;
}

struct error *
error_copy(struct arena *arena, const struct error *err)
{
    struct error *first = NULL;
    struct error **place = &first;
    for (; err != NULL; err = err->cause, place = &(*place)->cause) {
        *place = arena_make(arena, struct error);
        **place = *err; /* file names are literals */
        (*place)->message = arena_text(arena, err->message);
        (*place)->detail = arena_slice(arena, err->detail);
        (*place)->arena = arena;
        (*place)->cause = NULL;
    }
    return first;
}

int
error_kind_status(enum error_kind kind)
{
    check(kind_is_valid(kind));
    return kinds[kind].status;
}

const char *
error_kind_detail(enum error_kind kind)
{
    check(kind_is_valid(kind));
    return kinds[kind].detail;
}

const char *
error_kind_name(enum error_kind kind)
{
    check(kind_is_valid(kind));
    return kinds[kind].name;
}
