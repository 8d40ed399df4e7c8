/* json.h - just enough JSON for tokens, headers and archives: one pass, no tree.
 *
 * A reader goes through one object member by member; the caller says which type a member must have,
 * and skips those that it does not know. The first thing that is wrong makes the reader bad, and it
 * stays so: one check at the end suffices. Texts are UTF-8 without NUL bytes and live in the arena.
 * A writer writes an object the way that Go does, so that tokens of either side look alike.
 *
 * The functions are not called json_*: those names are jansson's, which the command line in the
 * same binary uses, and a linker does not complain. */
#ifndef CADENZA_BASE_JSON_H
#define CADENZA_BASE_JSON_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"

#define JSON_DEPTH_MAX 32

struct json_reader {
    struct arena *arena;
    struct slice left; /* what was not read yet */
    bool is_bad;
    bool has_members; /* of the object: one was read */
};

/* A reader at the beginning of an object. */
struct json_reader object_begin(struct slice bytes, struct arena *arena);
/* The name of the next member, whose value must then be read or skipped; false: the object has
 * ended or is bad. */
bool object_next(struct json_reader *reader, const char **name);
/* The same, faster if the member is `likely` (a plain name): then *name is that pointer. */
bool object_next_likely(struct json_reader *reader, const char *likely, const char **name);
/* Values. null leaves *value as it is, as in Go. */
void object_text(struct json_reader *reader, const char **value);
void object_integer(struct json_reader *reader, int64_t *value);
void object_flag(struct json_reader *reader, bool *value);
/* Base64 in a text. */
void object_bytes(struct json_reader *reader, struct slice *value);
/* A list of texts. */
void object_texts(struct json_reader *reader, const char ***values, size_t *count);
/* Any value as it stands, for a reader of its own; null: empty. */
void object_raw(struct json_reader *reader, struct slice *value);
void object_skip(struct json_reader *reader);
void object_number(struct json_reader *reader, double *value);
/* Takes null, if that comes next. */
bool object_null(struct json_reader *reader);
/* What comes next: the first byte of the value, or -1 at the end or when it is bad. */
int object_peek(struct json_reader *reader);

/* An object as a value: its members are read with object_next until that says no, then it is left
 * with what entering gave. */
must_use bool object_enter(struct json_reader *reader);
void object_leave(struct json_reader *reader, bool outer);
/* An array as a value. *count is 0 at first and counts what was begun; true: a value comes next. */
void array_enter(struct json_reader *reader);
bool array_next(struct json_reader *reader, size_t *count);
/* Was all of it one good object, with nothing behind it? */
bool object_end(struct json_reader *reader);
/* The length of the object or array at the start of `bytes`, by its brackets alone; 0: it does not
 * end within them, or it is nested too deep. */
size_t object_measure(struct slice bytes);

struct json_writer {
    uint8_t *bytes, *end;
    size_t room;
};

/* A writer of an object whose texts and bytes have `payload` bytes in all, in `members` members. */
struct json_writer object_write_begin(struct arena *arena, size_t members, size_t payload);
/* `name` is plain: nothing in it needs to be escaped. */
void object_write_text(struct json_writer *writer, const char *name, const char *value);
void object_write_integer(struct json_writer *writer, const char *name, int64_t value);
void object_write_flag(struct json_writer *writer, const char *name, bool value);
/* Base64; empty: null. */
void object_write_bytes(struct json_writer *writer, const char *name, struct slice value,
                        struct arena *arena);
/* A list; each text counts as a member. */
void object_write_texts(struct json_writer *writer, const char *name, const char *const *values,
                        size_t count);
/* A value that is JSON already; empty: null. */
void object_write_raw(struct json_writer *writer, const char *name, struct slice value);
struct slice object_write_end(struct json_writer *writer);

/* A text in quotes, and base64 in quotes, at the end of a buffer. */
void object_append_text(struct buffer *out, const char *text);
void object_append_bytes(struct buffer *out, struct slice bytes);

#endif
