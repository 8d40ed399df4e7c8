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
    struct stat facts;
    return stat(path, &facts) == 0 ? facts.st_size : -1;
}

static void
wal_read(struct place *place, struct wal_copy *log)
{
    *log = (struct wal_copy){.path = place_find_file(place->arena, place->data, ".log")};
    place_drop_runway(log->path);
    log->size = (size_t)wal_size(log->path);
    log->bytes = arena_alloc(place->arena, log->size);
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
wal_make(struct place *place, size_t last_bytes, struct wal_copy *log)
{
    struct store *store = place_open(place);
    for (uint64_t i = 0; i < WAL_ROWS; i++)
        place_put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    struct batch *batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
    uint8_t *bytes = arena_zalloc(place->arena, 1, last_bytes);
    memset(bytes, 'x', last_bytes);
    batch_put(batch, ROW_RUN, place_key(place, WAL_ROWS), slice_of(bytes, last_bytes));
    if (last_bytes > 0)
        EXPECT_OK(store_commit(store, batch, 1, place->arena));
    char *copy = arena_format(place->arena, "%s/copy", place->folder);
    place_shell(arena_format(place->arena, "cp -a '%s' '%s'", place->data, copy));
    store_close(store);
    place->data = copy;
    wal_read(place, log);
}
