/* key.c - tuples as bytes that sort alike, and the same for partitions.
 *
 * Only the text needs thought. Its bytes are kept readable, so it cannot begin with its length; it
 * must end in a way that sorts before every continuation. 00 01 does: what continues the text
 * is either a byte >= 01, or a 00 of the text, written 00 FF. */
#include "store/key.h"

#include <endian.h>

#include "base/check.h"

#define TEXT_ZERO 0xff /* after 00: the text has a 00 here */
#define TEXT_END  0x01 /* after 00: the text ends here */
#define SIGN_BIT  (UINT64_C(1) << 63)
#define ROOM_MIN  ((size_t)64)

void
key_begin(struct key_writer *key, struct arena *arena)
{
    *key = (struct key_writer){.arena = arena};
}

/* Room for `count` more bytes; what is written there counts as part of the key. */
static uint8_t *
key_extend(struct key_writer *key, size_t count)
{
    if (key->room - key->length < count) {
        size_t room = (key->length + count) * 2;
        room = room < ROOM_MIN ? ROOM_MIN : room;
        uint8_t *bytes = arena_alloc(key->arena, room);
        if (key->length > 0)
            memcpy(bytes, key->bytes, key->length);
        key->bytes = bytes;
        key->room = room;
    }
    uint8_t *place = key->bytes + key->length;
    key->length += count;
    return place;
}

static void
put_number(uint8_t *place, uint64_t number, size_t size)
{
    uint64_t bytes = htobe64(number << 8 * (8 - size));
    memcpy(place, &bytes, size);
}

static uint64_t
get_number(const uint8_t *place, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | place[i];
    return number;
}

void
key_u64(struct key_writer *key, uint64_t number)
{
    put_number(key_extend(key, 8), number, 8);
}

void
key_u64_descending(struct key_writer *key, uint64_t number)
{
    key_u64(key, ~number);
}

void
key_i64(struct key_writer *key, int64_t number)
{
    key_u64(key, (uint64_t)number ^ SIGN_BIT);
}

void
key_text(struct key_writer *key, struct slice text)
{
    const uint8_t *zero;
    while (text.length > 0 && (zero = memchr(text.data, 0, text.length)) != NULL) {
        size_t count = (size_t)(zero - text.data) + 1;
        uint8_t *place = key_extend(key, count + 1);
        memcpy(place, text.data, count);
        place[count] = TEXT_ZERO;
        text = slice_skip(text, count);
    }
    uint8_t *place = key_extend(key, text.length + 2);
    if (text.length > 0)
        memcpy(place, text.data, text.length);
    place[text.length] = 0;
    place[text.length + 1] = TEXT_END;
}

void
key_uuid(struct key_writer *key, struct uuid uuid)
{
    memcpy(key_extend(key, sizeof uuid.bytes), uuid.bytes, sizeof uuid.bytes);
}

struct slice
key_end(const struct key_writer *key)
{
    return slice_of(key->bytes, key->length);
}

struct slice
key_of_number(uint64_t number, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, number);
    return key_end(&key);
}

struct slice
key_of_text(const char *text, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(text));
    return key_end(&key);
}

struct slice
key_after_prefix(struct slice prefix, struct arena *arena)
{
    size_t length = prefix.length;
    while (length > 0 && prefix.data[length - 1] == 0xff)
        length--;
    if (length == 0)
        return slice_of(NULL, 0);
    uint8_t *bytes = arena_alloc(arena, length);
    memcpy(bytes, prefix.data, length);
    bytes[length - 1]++;
    return slice_of(bytes, length);
}

struct slice
key_after(struct slice key, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, key.length + 1);
    if (key.length > 0)
        memcpy(bytes, key.data, key.length);
    bytes[key.length] = 0;
    return slice_of(bytes, key.length + 1);
}

/* ---- reading back ---- */

static bool
take_number(struct slice *key, size_t size, uint64_t *number)
{
    if (key->length < size)
        return false;
    *number = get_number(key->data, size);
    *key = slice_skip(*key, size);
    return true;
}

bool
key_take_u64(struct slice *key, uint64_t *number)
{
    return take_number(key, 8, number);
}

bool
key_take_u64_descending(struct slice *key, uint64_t *number)
{
    uint64_t turned;
    if (!take_number(key, 8, &turned))
        return false;
    *number = ~turned;
    return true;
}

bool
key_take_i64(struct slice *key, int64_t *number)
{
    uint64_t shifted;
    if (!take_number(key, 8, &shifted))
        return false;
    *number = (int64_t)(shifted ^ SIGN_BIT);
    return true;
}

/* How long the text is without its end, escapes included; false: it has no end, or a 00 is
 * followed by what may not follow it. */
static bool
text_measure(struct slice key, size_t *encoded, size_t *zeros)
{
    *zeros = 0;
    for (size_t i = 0; i + 1 < key.length; i++) {
        if (key.data[i] != 0)
            continue;
        if (key.data[i + 1] == TEXT_END) {
            *encoded = i;
            return true;
        }
        if (key.data[i + 1] != TEXT_ZERO)
            return false;
        ++*zeros;
        i++;
    }
    return false;
}

bool
key_take_text(struct slice *key, struct arena *arena, struct slice *text)
{
    size_t encoded, zeros;
    if (!text_measure(*key, &encoded, &zeros))
        return false;
    uint8_t *bytes = arena_alloc(arena, encoded - zeros);
    size_t length = 0;
    for (size_t i = 0; i < encoded; i++) {
        bytes[length++] = key->data[i];
        i += key->data[i] == 0;
    }
    check(length == encoded - zeros);
    *text = slice_of(bytes, length);
    *key = slice_skip(*key, encoded + 2);
    return true;
}

bool
key_take_uuid(struct slice *key, struct uuid *uuid)
{
    if (key->length < sizeof uuid->bytes)
        return false;
    memcpy(uuid->bytes, key->data, sizeof uuid->bytes);
    *key = slice_skip(*key, sizeof uuid->bytes);
    return true;
}

/* ---- partitions ---- */

struct slice
partition_key(struct partition partition, struct arena *arena)
{
    check(partition.kind > 0 && partition.kind < PARTITION_KIND_END);
    struct key_writer key;
    key_begin(&key, arena);
    *key_extend(&key, 1) = (uint8_t)partition.kind;
    if (partition.kind == PARTITION_SHARD)
        put_number(key_extend(&key, 4), partition.number, 4);
    if (partition.kind == PARTITION_TASK_LIST)
        key_text(&key, partition.name);
    return key_end(&key);
}

bool
partition_take(struct slice *key, struct arena *arena, struct partition *partition)
{
    struct slice rest = *key;
    uint64_t kind, number = 0;
    struct slice name = slice_of(NULL, 0);
    if (!take_number(&rest, 1, &kind) || kind == 0 || kind >= PARTITION_KIND_END)
        return false;
    if (kind == PARTITION_SHARD && !take_number(&rest, 4, &number))
        return false;
    if (kind == PARTITION_TASK_LIST && !key_take_text(&rest, arena, &name))
        return false;
    *partition = (struct partition){
        .kind = (enum partition_kind)kind, .number = (uint32_t)number, .name = name};
    *key = rest;
    return true;
}

bool
partition_equal(struct partition one, struct partition other)
{
    return one.kind == other.kind && one.number == other.number &&
           slice_equal(one.name, other.name);
}

const char *
partition_name(struct partition partition, struct arena *arena)
{
    switch (partition.kind) {
    case PARTITION_SYSTEM:
        return "system";
    case PARTITION_DOMAINS:
        return "domains";
    case PARTITION_SETTINGS:
        return "settings";
    case PARTITION_SHARD:
        return arena_format(arena, "shard %u", partition.number);
    case PARTITION_TASK_LIST:
        return arena_format(arena, "task list %.*s", SLICE_ARG(partition.name));
    case PARTITION_ATTRIBUTES:
        return "search attributes";
    case PARTITION_AUDIT:
        return "audit";
    case PARTITION_KIND_END:
        break;
    }
    unreachable("partition kind %d", (int)partition.kind);
}
