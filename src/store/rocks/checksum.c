/* checksum.c - RocksDB's CRC-32C, by the processor's instruction.
 *
 * RocksDB chooses how it computes this sum when it is compiled, and distributions compile it for
 * processors without the instruction: by tables, 1 GB/s instead of 18. Each byte of the log is
 * summed, with payloads of 16 KB a tenth of the server's CPU. So the linker hands calls of its
 * function to this one (CMakeLists.txt), which gives the same sums: files are what they were, and a
 * program whose RocksDB is a shared library, where no call can be handed over, reads them too. */
#include "base/crc.h"
#include "store/rocks/inside.h"

/* The linker's name for what takes the place of rocksdb::crc32c::Extend(). */
uint32_t checksum_extend(uint32_t sum, const uint8_t *bytes,
                         size_t length) __asm__("__wrap__ZN7rocksdb6crc32c6ExtendEjPKcm");

uint32_t
checksum_extend(uint32_t sum, const uint8_t *bytes, size_t length)
{
    return crc32c(sum, slice_of(bytes, length));
}
