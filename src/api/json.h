/* json.h - just enough JSON for tokens and headers: one pass, no tree.
 *
 * A reader goes through one object member by member; whoever reads says which type a member must
 * have, and skips those that it does not know. The first thing that is wrong makes the reader bad,
 * and it stays so: one look at the end suffices. Texts are UTF-8 without NUL bytes and live in the
 * arena. A writer writes an object the way that Go does, so that tokens of either side look alike.
 *
 * The functions are not called json_*: those names are jansson's, which the command line in the
 * same binary uses, and a linker does not complain. */
#ifndef CADENZA_API_JSON_H
#define CADENZA_API_JSON_H

#include "base/arena.h"
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
/* Was all of it one good object, with nothing behind it? */
bool object_end(struct json_reader *reader);

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

#endif
