/* wal_watermark.c - a note beside the log of how far it was synced, so that a log that lost its end
 * later is not taken for one that a power cut ended there.
 *
 * A log that ends inside a record, or behind one, looks the same whether the machine stopped while
 * it was written or somebody cut the file afterwards; and the second loses what was acknowledged.
 * So the committer writes down now and then, in a file of its own, the newest log and the number of
 * the last row that it knows to be synced. Whatever the log shows at the next opening, it has to
 * reach that row.
 *
 * The note is never synced: an older one is as true as a newer one, and it only has to be there
 * when something other than a power cut befell the log. What was synced since the last note (about
 * WATERMARK_BYTES of log) is not covered. It is not part of a backup, which has no log to speak of.
 * A note that is not whole counts as none. */
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/crc.h"
#include "store/rocks/inside.h"

#define WATERMARK_NAME "log.mark"
#define WATERMARK_SIZE 20 /* checksum 4, number of the log 8, of the row 8; within one sector */

static void
put_fixed(uint8_t *bytes, size_t size, uint64_t number)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
}

void
wal_watermark_write(const struct folder *folder, const struct wal_watermark *mark)
{
    uint8_t bytes[WATERMARK_SIZE];
    scoped(arena_drop) struct arena *arena = arena_new(0);
    put_fixed(bytes + 4, 8, mark->log);
    put_fixed(bytes + 12, 8, mark->row);
    put_fixed(bytes, 4, crc32c(0, slice_of(bytes + 4, WATERMARK_SIZE - 4)));
    int file = open(folder_join(arena, folder->path, WATERMARK_NAME),
                    O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return; /* the note is old then */
    ssize_t written = pwrite(file, bytes, sizeof bytes, 0);
    (void)written;
    close(file);
}

static struct wal_watermark
wal_watermark_read(const struct folder *folder)
{
    uint8_t bytes[WATERMARK_SIZE];
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int file = open(folder_join(arena, folder->path, WATERMARK_NAME), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return (struct wal_watermark){0};
    ssize_t count = pread(file, bytes, sizeof bytes, 0);
    close(file);
    if (count != WATERMARK_SIZE ||
        crc32c(0, slice_of(bytes + 4, WATERMARK_SIZE - 4)) != (uint32_t)wal_fixed(bytes, 4))
        return (struct wal_watermark){0};
    return (struct wal_watermark){.log = wal_fixed(bytes + 4, 8), .row = wal_fixed(bytes + 12, 8)};
}

/* RocksDB may have put all of those logs into tables, and a kill left some of them: then nothing
 * of them counts. */
struct error *
wal_watermark_judge(const struct folder *folder, const struct wal_report *report,
                    struct arena *arena)
{
    struct wal_watermark mark = wal_watermark_read(folder);
    char *log = arena_format(arena, "%s/%06" PRIu64 ".log", folder->database, mark.log);
    if (mark.log == 0 || report->row_end > mark.row || access(log, F_OK) != 0)
        return NULL;
    uint64_t oldest = 0;
    struct error *err = setup_oldest_log(folder->database, arena, &oldest);
    if (err != NULL || mark.log < oldest)
        return err;
    return error_new(arena, ERR_CORRUPT,
                     "log %06" PRIu64 ".log was cut: it ends before row %" PRIu64
                     ", and writes up to row %" PRIu64 " were acknowledged. Restore a backup",
                     mark.log, report->row_end, mark.row);
}
