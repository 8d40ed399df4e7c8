/* wal_fragment.c - how RocksDB's logs are made: blocks of fragments, each a checksum, a length, a
 * type and bytes. */
#include "base/crc.h"
#include "store/rocks/inside.h"

static uint32_t
unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8U; /* RocksDB stores no plain checksum of a checksum */
    return rotated >> 17 | rotated << 15;
}

uint64_t
wal_fixed(const uint8_t *bytes, size_t size)
{
    uint64_t number = 0;
    for (size_t i = size; i > 0; i--)
        number = number << 8 | bytes[i - 1];
    return number;
}

size_t
wal_fragment(struct slice left, unsigned *type)
{
    *type = 0;
    if (left.length < WAL_HEADER_SIZE)
        return 0;
    const uint8_t *head = left.data;
    size_t length = (size_t)wal_fixed(head + 4, 2);
    size_t size = WAL_HEADER_SIZE + length;
    if (size <= left.length && head[6] >= FRAGMENT_FULL && head[6] <= FRAGMENT_LAST &&
        crc32c(0, slice_of(head + 6, 1 + length)) == unmask((uint32_t)wal_fixed(head, 4)))
        *type = head[6];
    return size;
}

bool
wal_is_of_other_length(struct slice left)
{
    if (left.length < WAL_HEADER_SIZE || left.data[6] < FRAGMENT_FULL ||
        left.data[6] > FRAGMENT_LAST)
        return false;
    uint32_t stored = unmask((uint32_t)wal_fixed(left.data, 4));
    uint32_t sum = crc32c(0, slice_of(left.data + 6, 1));
    for (size_t at = WAL_HEADER_SIZE; at < left.length && sum != stored; at++)
        sum = crc32c(sum, slice_of(left.data + at, 1));
    return sum == stored;
}
