/* key_fuzz.c - arbitrary bytes as keys: nothing is read past the end, and what is accepted is
 * exactly what the writing side makes of it. */
#include "base/check.h"
#include "store/key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes that were taken: those before `rest`. */
static struct slice
taken(struct slice whole, struct slice rest)
{
    check(rest.length <= whole.length && rest.data == whole.data + (whole.length - rest.length));
    return slice_of(whole.data, whole.length - rest.length);
}

static void
fuzz_text(struct slice bytes, struct arena *arena)
{
    struct slice rest = bytes, text;
    if (key_take_text(&rest, arena, &text)) {
        struct key_writer key;
        key_begin(&key, arena);
        key_text(&key, text);
        check(slice_equal(key_end(&key), taken(bytes, rest)));
    } else {
        check(rest.data == bytes.data && rest.length == bytes.length);
    }
    /* Any bytes are a text too, and come back. */
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, bytes);
    key_u64(&key, bytes.length);
    struct slice again = key_end(&key);
    uint64_t length;
    bool is_back = key_take_text(&again, arena, &text) && key_take_u64(&again, &length);
    check(is_back && slice_equal(text, bytes) && length == bytes.length && again.length == 0);
}

static void
fuzz_numbers(struct slice bytes, struct arena *arena)
{
    struct slice rest = bytes;
    uint64_t number, falling;
    int64_t signed_number;
    struct uuid uuid;
    if (!key_take_u64(&rest, &number) || !key_take_i64(&rest, &signed_number) ||
        !key_take_u64_descending(&rest, &falling) || !key_take_uuid(&rest, &uuid))
        return;
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, number);
    key_i64(&key, signed_number);
    key_u64_descending(&key, falling);
    key_uuid(&key, uuid);
    check(slice_equal(key_end(&key), taken(bytes, rest)));
}

static void
fuzz_partition(struct slice bytes, struct arena *arena)
{
    struct slice rest = bytes;
    struct partition partition;
    if (!partition_take(&rest, arena, &partition))
        return;
    check(slice_equal(partition_key(partition, arena), taken(bytes, rest)));
    check(partition_name(partition, arena)[0] != '\0');
}

/* The first half as a prefix of the whole: its end is above the whole, and the next key is next. */
static void
fuzz_order(struct slice bytes, struct arena *arena)
{
    struct slice prefix = slice_of(bytes.data, bytes.length / 2);
    struct slice end = key_after_prefix(prefix, arena);
    check(end.length == 0 || slice_compare(bytes, end) < 0);
    check(end.length == 0 || slice_compare(prefix, end) < 0);
    check(slice_compare(bytes, key_after(bytes, arena)) < 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(0);
    struct slice bytes = slice_of(data, size);
    fuzz_text(bytes, arena);
    fuzz_numbers(bytes, arena);
    fuzz_partition(bytes, arena);
    fuzz_order(bytes, arena);
    arena_free(arena);
    return 0;
}
