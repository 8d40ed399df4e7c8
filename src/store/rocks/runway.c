/* runway.c - zeros written ahead of the log, so that a sync need not change the size of the file.
 *
 * The problem: RocksDB appends. Each fdatasync of a file that grew has to write its new size too: a
 * commit of the file system's journal beside the bytes, a third of the time of a sync and half of
 * its CPU. Over zeros that are on the disk already only the bytes are written.
 *
 * Why it is safe: only the committer writes records, and it lays the runway between two of them. It
 * writes at the end of the file, never before: all records lie before that. If a log is changed for
 * another meanwhile (a backup or a flush begins new memtables) the old one gets zeros behind its
 * last record, which wal.c and RocksDB read as its end; the new one has its runway once this one
 * would be used up. The zeros are synced with the next group, in the same fdatasync: a power cut
 * before that leaves a shorter file, as it always did. wal.c says how a torn record is
 * distinguished from damage where the file does not end behind it.
 *
 * While a backup copies the newest log none is laid. It copies as many bytes as the file has, and
 * those have to be records that are whole: over a runway it would find groups that are written
 * while it reads, later ones perhaps and earlier ones not. The log it copies is one that was begun
 * after the pause did, for RocksDB flushes first, and a log that has a runway has a record and is
 * changed by that: is_laying holds until the record is written.
 *
 * How much lies ahead is an estimate. If it is wrong a sync makes the file grow, nothing else. For
 * the same reason a runway that cannot be laid (no space) is not a failure: the group's own write
 * says whether there is room for it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/fiber.h"
#include "store/rocks/inside.h"

/* Large enough that the log is looked for seldom, small enough for one sync. */
#define RUNWAY_BYTES (1U << 20)
#define GROUP_BYTES_MAX                                                                            \
    (RUNWAY_BYTES / 4) /* zeros for a larger group cost more than the change of size they save */
#define PIECE_BYTES (64U << 10)
#define NAME_ROOM   32

/* The number of the newest log of the folder; 0: none is seen. */
static uint64_t
find_log(DIR *folder, char name[NAME_ROOM])
{
    uint64_t newest = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t digits = strspn(entry->d_name, "0123456789");
        uint64_t number = strtoull(entry->d_name, NULL, 10);
        if (strcmp(entry->d_name + digits, ".log") != 0 || digits + 5 > NAME_ROOM ||
            number <= newest)
            continue;
        newest = number;
        memcpy(name, entry->d_name, digits + 5);
    }
    return newest;
}

static void
lay_in(int log)
{
    static const uint8_t zeros[PIECE_BYTES];
    struct stat traits;
    if (fstat(log, &traits) != 0)
        return;
    for (off_t at = 0; at < (off_t)RUNWAY_BYTES; at += PIECE_BYTES)
        if (pwrite(log, zeros, PIECE_BYTES, traits.st_size + at) != (ssize_t)PIECE_BYTES)
            return;
}

static void
lay(struct rocks *rocks)
{
    const char *database = rocks->folder->database;
    char name[NAME_ROOM];
    DIR *folder = opendir(database);
    if (folder == NULL)
        return;
    uint64_t number = find_log(folder, name);
    closedir(folder);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int log = number > 0 ? open(folder_join(arena, database, name), O_WRONLY | O_CLOEXEC) : -1;
    if (log < 0)
        return;
    lay_in(log);
    close(log);
    rocks->committer.log = number;
}

/* Everything that RocksDB has is synced: a group is written when the one before it is. The log that
 * is noted has at least one of those groups, or one behind it has. */
static void
watermark_log(struct rocks *rocks, size_t bytes)
{
    size_t *unmarked = &rocks->committer.unmarked;
    if (*unmarked >= WATERMARK_BYTES && rocks->committer.log != 0) {
        struct wal_watermark mark = {.log = rocks->committer.log,
                                     .row = rocksdb_get_latest_sequence_number(rocks->tables.db)};
        wal_watermark_write(rocks->folder, &mark);
        *unmarked = 0;
    }
    *unmarked += bytes;
}

void
runway_begin(struct rocks *rocks, size_t bytes)
{
    size_t *left = &rocks->committer.runway;
    check(bytes > 0 && *left <= RUNWAY_BYTES);
    watermark_log(rocks, bytes);
    if (bytes >= *left && bytes > GROUP_BYTES_MAX) {
        *left = 0; /* it uses what is there and makes the file grow */
        return;
    }
    if (bytes >= *left) {
        atomic_store(&rocks->is_laying, true);
        if (atomic_load(&rocks->copies) == 0)
            lay(rocks);
        *left = RUNWAY_BYTES;
    }
    *left -= bytes < *left ? bytes : *left;
}

void
runway_end(struct rocks *rocks)
{
    atomic_store(&rocks->is_laying, false);
}

void
runway_pause(struct rocks *rocks)
{
    atomic_fetch_add(&rocks->copies, 1);
    while (atomic_load(&rocks->is_laying)) /* for a write and its sync at most */
        fiber_yield();
}

void
runway_resume(struct rocks *rocks)
{
    unsigned before = atomic_fetch_sub(&rocks->copies, 1);
    check(before > 0);
}
