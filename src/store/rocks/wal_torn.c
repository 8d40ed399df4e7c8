/* wal_torn.c - the last record of a log that is not whole: could a power cut have left it so, and
 * how it is cut off.
 *
 * A record goes to the disk over zeros (runway.c) or behind the end of the file, and a power cut
 * leaves of it any part, in sectors. So where a sector never came, the record has a sector of
 * zeros, or it ends in zeros before it says that it does, or the file ends. If none of that is so
 * all of it came to the disk, and something else has damaged it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "store/rocks/inside.h"

#define SECTOR_SIZE   512 /* the least that a disk writes whole */
#define CHUNK_SIZE    (64 * SECTOR_SIZE)
#define SET_ASIDE_MAX (64 << 20)

/* --- judging ------------------------------------------------------------------------------------
 */

bool
wal_is_zero(struct slice bytes)
{
    for (size_t i = 0; i < bytes.length; i++)
        if (bytes.data[i] != 0)
            return false;
    return true;
}

static uint64_t
behind_last_byte(struct slice bytes)
{
    size_t length = bytes.length;
    while (length > 0 && bytes.data[length - 1] == 0)
        length--;
    return length;
}

/* Goes through the sectors of a chunk of the log, which lies at `offset`. */
static void
judge_chunk(struct slice chunk, uint64_t offset, struct wal_end *end, uint64_t *hole)
{
    for (size_t at = 0; at < chunk.length;) {
        size_t length = SECTOR_SIZE - (offset + at) % SECTOR_SIZE;
        if (length > chunk.length - at)
            length = chunk.length - at;
        uint64_t filled = behind_last_byte(slice_of(chunk.data + at, length));
        if (filled > 0)
            end->last = offset + at + filled;
        else if (*hole == UINT64_MAX)
            *hole = offset + at;
        at += length;
    }
}

bool
wal_is_torn(int descriptor, struct wal_end *end, bool *is_torn)
{
    uint8_t chunk[CHUNK_SIZE];
    uint64_t hole = UINT64_MAX; /* the first sector of zeros */
    check(end->begin < end->size);
    end->last = end->begin;
    for (uint64_t offset = end->begin; offset < end->size;) {
        size_t length = CHUNK_SIZE - offset % SECTOR_SIZE;
        ssize_t count = pread(descriptor, chunk, length, (off_t)offset);
        if (count <= 0)
            return false;
        judge_chunk(slice_of(chunk, (size_t)count), offset, end, &hole);
        offset += (uint64_t)count;
    }
    *is_torn = end->last < end->claimed || hole < end->last;
    return true;
}

/* --- cutting ---------------------------------------------------------------------------------- */

/* Copies the end of the log into a new file and syncs it. */
static bool
set_aside(int log, const char *path, uint64_t offset, uint64_t length, struct arena *arena)
{
    size_t room = length > SET_ASIDE_MAX ? SET_ASIDE_MAX : (size_t)length;
    uint8_t *bytes = arena_alloc(arena, room);
    ssize_t count = pread(log, bytes, room, (off_t)offset);
    int copy = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_good =
        count >= 0 && copy >= 0 && write(copy, bytes, (size_t)count) == count && fsync(copy) == 0;
    if (copy >= 0)
        close(copy);
    return is_good;
}

static bool
sync_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_good = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0)
        close(folder);
    return is_good;
}

/* The copy and its name are durable before the log is cut: the bytes are always in one of both. */
struct error *
wal_cut(const char *database, const char *torn, const struct wal_report *report,
        struct arena *arena)
{
    check(report->torn_file != NULL && report->torn_bytes > 0);
    char *path = folder_join(arena, database, report->torn_file);
    char *aside =
        arena_format(arena, "%s/%s-%" PRIu64, torn, report->torn_file, report->torn_offset);
    if (mkdir(torn, 0700) != 0 && errno != EEXIST)
        return wal_io_error(arena, "make", torn);
    int log = open(path, O_RDWR | O_CLOEXEC);
    if (log < 0)
        return wal_io_error(arena, "open log", path);
    struct error *err = NULL;
    if (!set_aside(log, aside, report->torn_offset, report->torn_bytes, arena) ||
        !sync_folder(torn) || !sync_folder(folder_join(arena, torn, "..")))
        err = wal_io_error(arena, "set an unfinished write aside in", aside);
    else if (ftruncate(log, (off_t)report->torn_offset) != 0 || fsync(log) != 0)
        err = wal_io_error(arena, "cut an unfinished write off", path);
    close(log);
    return err;
}
