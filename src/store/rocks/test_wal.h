/* test_wal.h - a log to damage.
 *
 * Method: a store that has written and not closed is copied as it lies on the disk, which is what a
 * killed process leaves; then the copy's log is changed. */
#ifndef CADENZA_STORE_ROCKS_TEST_WAL_H
#define CADENZA_STORE_ROCKS_TEST_WAL_H

#include "store/rocks/test_fixture.h"

#define WAL_ROWS       12
#define WAL_HEAD_BYTES 7 /* of a fragment: checksum 4, length 2, type 1 */

struct wal_copy {
    char *path;
    uint8_t *bytes; /* without the zeros that the log ended in */
    size_t size;
    size_t record[64]; /* where records begin */
    size_t count;
};

/* The size of a file; -1: it is not there. */
long wal_size(const char *path);
/* WAL_ROWS commits of a row each, then one of `last_bytes` if not 0; the place's data folder is
 * then the copy, and its log is without a runway. Yields. */
void wal_make(struct rocks_fixture *rocks_fixture, size_t last_bytes, struct wal_copy *log);
/* Writes the log as it stands in memory, and zeros behind it. */
void wal_write(const struct wal_copy *log, size_t zeros);
/* Where records begin, for a log that ends with its first block or before, but for the last one. */
void wal_find_records(struct wal_copy *log);

#endif
