/* key.h - keys are tuples whose bytes sort as the tuples do.
 *
 * A number is 8 bytes big-endian, its sign bit flipped when signed. A text is its bytes with 00
 * written as 00 FF, ended by 00 01: so "a" sorts before "ab", and no text is the prefix of
 * another's encoding. A uuid is its 16 bytes. */
#ifndef CADENZA_STORE_KEY_H
#define CADENZA_STORE_KEY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/uuid.h"
#include "store/rows.h"

struct key_writer {
    struct arena *arena;
    uint8_t *bytes;
    size_t length;
    size_t room;
};
void key_begin(struct key_writer *key, struct arena *arena);
void key_u64(struct key_writer *key, uint64_t number);
void key_u64_descending(struct key_writer *key, uint64_t number); /* higher numbers sort first */
void key_i64(struct key_writer *key, int64_t number);
void key_text(struct key_writer *key, struct slice text);
void key_uuid(struct key_writer *key, struct uuid uuid);
struct slice key_end(const struct key_writer *key);
/* Keys of one part. */
struct slice key_of_number(uint64_t number, struct arena *arena);
struct slice key_of_text(const char *text, struct arena *arena);
/* The smallest key that is greater than all that begin with `prefix`; empty: there is none (only FF
 * bytes). */
struct slice key_after_prefix(struct slice prefix, struct arena *arena);

/* The smallest key that is greater than `key`: where a forward scan goes on. */
struct slice key_after(struct slice key, struct arena *arena);

/* Reading back. Each takes its part from the front of *key; false: the bytes are not of that form.
 */
must_use bool key_take_u64(struct slice *key, uint64_t *number);
must_use bool key_take_u64_descending(struct slice *key, uint64_t *number);
must_use bool key_take_i64(struct slice *key, int64_t *number);
must_use bool key_take_text(struct slice *key, struct arena *arena, struct slice *text);
must_use bool key_take_uuid(struct slice *key, struct uuid *uuid);

/* The partition as the bytes that begin all its rows: kind, then number (4 bytes) or name as a
 * text. */
struct slice partition_key(struct partition partition, struct arena *arena);
must_use bool partition_take(struct slice *key, struct arena *arena, struct partition *partition);
must_use bool partition_equal(struct partition one, struct partition other);
/* "shard 7", "domains", "task list x": for people. */
const char *partition_name(struct partition partition, struct arena *arena);

#endif
