/* layout.c - where a row lies in RocksDB: its column family and its bytes.
 *
 * Two families, by way of access. FORWARD rows (runs, outbox) are rewritten and deleted all the
 * time; ORDERED rows (history, domains, task lists, guards) mostly stay. Each family has its own
 * memtable and its own levels, so the churn of one never rewrites the other.
 *
 * A key is kind, partition, row key, in this order, in both families. Kind first, because
 *   - a scan is always of one kind in one partition: one contiguous range, whose first 6 bytes
 * (kind and shard) never change: setup.c has the place of the last insert remembered by them;
 *   - a walk of one ORDERED kind over all partitions is one contiguous pass;
 *   - rows of one kind live about equally long: outbox rows, which die young, share table files
 * with each other and not with runs that stay, so compaction drops pairs of put and delete early.
 * Guards are kind 0 of the ORDERED family, which is RocksDB's default family. The ledger is kind
 * 254 of the FORWARD family and has numbers for keys. */
#include "base/check.h"
#include "store/rocks/inside.h"

_Static_assert(ROW_KIND_END < LAYOUT_LEDGER,
               "a kind is one byte, and the one above it ends a walk");

const char *
layout_family_name(unsigned family)
{
    static const char *const names[FAMILY_COUNT] = {"default", "forward"};
    check(family < FAMILY_COUNT);
    return names[family];
}

unsigned
layout_family(enum row_kind kind)
{
    const struct row_traits *traits = row_traits(kind);
    check(traits != NULL);
    check(traits->access == ROW_ORDERED || traits->partition == PARTITION_SHARD);
    return traits->access == ROW_ORDERED ? FAMILY_ORDERED : FAMILY_FORWARD;
}

unsigned
layout_family_of(struct slice key)
{
    check(key.length > 0);
    return key.data[0] == LAYOUT_GUARD ? FAMILY_ORDERED : layout_family(key.data[0]);
}

void
layout_append(struct buffer *buffer, unsigned kind, struct slice partition_key, struct slice key)
{
    check(kind < ROW_KIND_END && partition_key.length > 0);
    size_t length = 1 + partition_key.length + key.length;
    uint8_t *location = buffer_reserve(buffer, length);
    location[0] = (uint8_t)kind;
    memcpy(location + 1, partition_key.data, partition_key.length);
    if (key.length > 0)
        memcpy(location + 1 + partition_key.length, key.data, key.length);
    buffer_commit(buffer, length);
}

struct slice
layout_key(struct arena *arena, unsigned kind, struct slice partition_key, struct slice key)
{
    size_t length = 1 + partition_key.length + key.length;
    uint8_t *location = arena_alloc(arena, length);
    location[0] = (uint8_t)kind;
    if (partition_key.length > 0)
        memcpy(location + 1, partition_key.data, partition_key.length);
    if (key.length > 0)
        memcpy(location + 1 + partition_key.length, key.data, key.length);
    return slice_of(location, length);
}

struct slice
layout_end(struct arena *arena, unsigned kind, struct slice partition_key)
{
    struct slice prefix = layout_key(arena, kind, partition_key, slice_of(NULL, 0));
    struct slice end = key_after_prefix(prefix, arena);
    check(end.length > 0); /* the kind byte is not FF */
    return end;
}

const char *
layout_take(struct slice *bytes, struct arena *arena, unsigned *kind, struct partition *partition)
{
    if (bytes->length == 0)
        return "an empty key";
    *kind = bytes->data[0];
    const struct row_traits *traits = *kind == LAYOUT_GUARD ? NULL : row_traits(*kind);
    if (*kind != LAYOUT_GUARD && traits == NULL)
        return "a kind of row that does not exist";
    *bytes = slice_skip(*bytes, 1);
    if (!partition_take(bytes, arena, partition))
        return "no partition in its key";
    if (traits != NULL && traits->partition != partition->kind)
        return "a kind of row that its partition does not have";
    if (traits == NULL && bytes->length > 0)
        return "more behind the partition of a guard";
    return NULL;
}

void
layout_guard_write(uint8_t bytes[8], uint64_t guard)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(guard >> (56 - 8 * i));
}

bool
layout_guard_read(struct slice bytes, uint64_t *guard)
{
    if (bytes.length != 8)
        return false;
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | bytes.data[i];
    *guard = number;
    return true;
}
