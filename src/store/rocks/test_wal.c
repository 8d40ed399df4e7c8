/* test_wal.c - see test_wal.h. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/test.h"
#include "store/rocks/test_wal.h"

long
wal_size(const char *path)
{
    struct stat traits;
    return stat(path, &traits) == 0 ? traits.st_size : -1;
}

static void
wal_read(struct rocks_fixture *rocks_fixture, struct wal_copy *log)
{
    *log = (struct wal_copy){
        .path = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".log")};
    rocks_fixture_drop_runway(log->path);
    log->size = (size_t)wal_size(log->path);
    log->bytes = arena_alloc(rocks_fixture->arena, log->size);
    FILE *file = fopen(log->path, "r");
    check(file != NULL);
    size_t count = fread(log->bytes, 1, log->size, file);
    fclose(file);
    check(count == log->size);
}

void
wal_write(const struct wal_copy *log, size_t zeros)
{
    FILE *file = fopen(log->path, "w");
    check(file != NULL);
    fwrite(log->bytes, 1, log->size, file);
    for (size_t i = 0; i < zeros; i++)
        putc(0, file);
    fclose(file);
}

void
wal_find_records(struct wal_copy *log)
{
    for (size_t at = 0; at + WAL_HEAD_BYTES < log->size && at < 32768;) {
        check(log->count < array_length(log->record));
        check(log->bytes[at + 6] == 1 || log->bytes[at + 6] == 2);
        log->record[log->count++] = at;
        at += WAL_HEAD_BYTES + log->bytes[at + 4] + ((size_t)log->bytes[at + 5] << 8);
    }
}

void
wal_make(struct rocks_fixture *rocks_fixture, size_t last_bytes, struct wal_copy *log)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    for (uint64_t i = 0; i < WAL_ROWS; i++)
        rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    uint8_t *bytes = arena_zalloc(rocks_fixture->arena, 1, last_bytes);
    memset(bytes, 'x', last_bytes);
    batch_put(batch, ROW_RUN, rocks_fixture_key(rocks_fixture, WAL_ROWS),
              slice_of(bytes, last_bytes));
    if (last_bytes > 0)
        EXPECT_OK(store_commit(store, batch, 1, rocks_fixture->arena));
    char *copy = arena_format(rocks_fixture->arena, "%s/copy", rocks_fixture->folder);
    rocks_fixture_shell(
        arena_format(rocks_fixture->arena, "cp -a '%s' '%s'", rocks_fixture->data, copy));
    store_close(store);
    rocks_fixture->data = copy;
    wal_read(rocks_fixture, log);
}
