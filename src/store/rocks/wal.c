/* wal.c - reads RocksDB's logs before RocksDB does, to tell an unfinished write from damage.
 *
 * The problem: after a power cut the last group may be there in part, in any pattern of pages,
 * since its sync never returned. Nobody was told that it is durable, so it must go and the store
 * must open. Damage anywhere else has hit something acknowledged, so the store must not open as if
 * nothing were. RocksDB has modes that accept both or (if more is wrong than a short last record)
 * neither.
 *
 * The idea: one thread writes, a group is one record of the log, and the next is written only when
 * the one before is synced. So only the last record can be unfinished. A record is a chain of
 * fragments, FULL or FIRST MIDDLE* LAST, in blocks of 32 KB, each fragment with a checksum. Damage
 * with no FULL or FIRST fragment anywhere behind it, in this log or a later one, is the unfinished
 * last record: it is cut off and kept aside. With one, it is damage: refused. What is damaged may
 * be a length, so behind damage fragments are looked for at every byte of the block.
 *
 * What cannot be told: a last record that was acknowledged and damaged later looks like one that
 * never finished. It is kept aside and reported, so that it is not lost without a word. And an
 * unfinished record whose values hold a whole log fragment, checksum and all, looks like damage:
 * refused, which loses nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/crc.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

#define BLOCK_SIZE    32768
#define HEADER_SIZE   7 /* checksum 4, length 2, type 1 */
#define SET_ASIDE_MAX (64 << 20)

enum fragment_type { FRAGMENT_FULL = 1, FRAGMENT_FIRST, FRAGMENT_MIDDLE, FRAGMENT_LAST };

/* The state of one reading of all logs in order. */
struct wal_reader {
    struct arena *arena;
    struct wal_report *report;
    const char *file;  /* name of the log being read */
    bool is_damaged;   /* from here on no record may begin */
    bool is_open;      /* a FIRST was read, its LAST not yet */
    uint64_t begin;    /* of the newest record: where to cut if it is not whole */
    struct error *err; /* set: stop */
};

static struct error *
io_error(struct arena *arena, const char *doing, const char *name)
{
    return error_new(arena, ERR_IO, "%s %s: %s", doing, name, strerror(errno));
}

/* --- fragments ----------------------------------------------------------------------------------
 */

static uint32_t
unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8U; /* RocksDB stores no plain checksum of a checksum */
    return rotated >> 17 | rotated << 15;
}

/* The size of the fragment at the front of what is left of a block. *type is set if it is whole and
 * its checksum right, else 0. */
static size_t
fragment_at(struct slice left, unsigned *type)
{
    *type = 0;
    if (left.length < HEADER_SIZE)
        return 0;
    const uint8_t *head = left.data;
    size_t length = (size_t)head[4] | (size_t)head[5] << 8;
    uint32_t stored = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
                      (uint32_t)head[3] << 24;
    size_t size = HEADER_SIZE + length;
    if (size <= left.length && head[6] >= FRAGMENT_FULL && head[6] <= FRAGMENT_LAST &&
        crc32c(0, slice_of(head + 6, 1 + length)) == unmask(stored))
        *type = head[6];
    return size;
}

/* From `offset` of this log on, something is not whole. */
static void
note_damage(struct wal_reader *reader, uint64_t offset)
{
    if (reader->is_damaged)
        return;
    reader->is_damaged = true;
    reader->report->torn_file = reader->file;
    reader->report->torn_offset = reader->is_open ? reader->begin : offset;
    reader->is_open = false;
}

static void
refuse(struct wal_reader *reader, uint64_t offset)
{
    const struct wal_report *report = reader->report;
    check(reader->is_damaged && report->torn_file != NULL && reader->err == NULL);
    reader->err = error_new(reader->arena, ERR_CORRUPT,
                            "log %s is damaged at byte %" PRIu64 ", and log %s goes on at byte "
                            "%" PRIu64 ": writes that were acknowledged are lost",
                            report->torn_file, report->torn_offset, reader->file, offset);
}

/* A whole fragment at `offset`. */
static void
accept_fragment(struct wal_reader *reader, unsigned type, uint64_t offset)
{
    check(type >= FRAGMENT_FULL && type <= FRAGMENT_LAST);
    bool is_begin = type == FRAGMENT_FULL || type == FRAGMENT_FIRST;
    if (is_begin == reader->is_open && !reader->is_damaged)
        note_damage(reader, offset); /* a record without its end, or an end without its beginning */
    if (is_begin && reader->is_damaged) {
        refuse(reader, offset);
        return;
    }
    if (reader->is_damaged)
        return; /* a later part of the record that is not whole */
    if (is_begin)
        reader->begin = offset;
    reader->is_open = type == FRAGMENT_FIRST || type == FRAGMENT_MIDDLE;
    reader->report->records += !reader->is_open;
}

/* Behind damage at `at`: does a record begin anywhere in the rest of the block? A bad fragment may
 * lie about its length, so every byte may be where the next one begins. A checksum fits by chance
 * once in 2^32. */
static void
search_block(struct wal_reader *reader, struct slice block, size_t at, uint64_t offset)
{
    check(reader->is_damaged);
    for (at++; at + HEADER_SIZE <= block.length; at++) {
        unsigned type = block.data[at + 6];
        if (type == FRAGMENT_FULL || type == FRAGMENT_FIRST)
            fragment_at(slice_skip(block, at), &type);
        if (type == FRAGMENT_FULL || type == FRAGMENT_FIRST) {
            refuse(reader, offset + at);
            return;
        }
    }
}

/* All fragments of one block, up to the first bad one. */
static void
read_block(struct wal_reader *reader, struct slice block, uint64_t offset)
{
    size_t at = 0;
    check(offset % BLOCK_SIZE == 0 && block.length <= BLOCK_SIZE);
    while (at + HEADER_SIZE <= BLOCK_SIZE && at < block.length && reader->err == NULL) {
        unsigned type;
        size_t size = fragment_at(slice_skip(block, at), &type);
        if (type == 0) {
            note_damage(reader, offset + at);
            search_block(reader, block, at, offset);
            return;
        }
        accept_fragment(reader, type, offset + at);
        at += size;
    }
}

/* --- files ------------------------------------------------------------------------------------ */

static void
read_file(struct wal_reader *reader, int descriptor, const char *name)
{
    uint8_t *block = arena_alloc(reader->arena, BLOCK_SIZE);
    uint64_t offset = 0;
    reader->file = name;
    for (;;) {
        ssize_t count = pread(descriptor, block, BLOCK_SIZE, (off_t)offset);
        if (count < 0) {
            reader->err = io_error(reader->arena, "read log", name);
            return;
        }
        if (count > 0)
            read_block(reader, slice_of(block, (size_t)count), offset);
        offset += (uint64_t)count;
        if (count < BLOCK_SIZE || reader->err != NULL)
            break;
    }
    if (reader->is_open)
        note_damage(reader, reader->begin);
    if (reader->report->torn_file == name)
        reader->report->torn_bytes = offset - reader->report->torn_offset;
    reader->report->bytes += offset;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the logs, oldest first: numbers of six digits or more, so shorter names first. */
static struct error *
list_logs(const char *database, struct arena *arena, char ***names, size_t *count)
{
    vector_of(char *) found = {0};
    DIR *folder = opendir(database);
    if (folder == NULL)
        return io_error(arena, "list", database);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t digits = strspn(entry->d_name, "0123456789");
        if (digits > 0 && strcmp(entry->d_name + digits, ".log") == 0)
            vector_push_in(&found, arena, arena_format(arena, "%20s", entry->d_name));
    }
    closedir(folder);
    if (found.count > 0)
        qsort(found.items, found.count, sizeof *found.items, compare_names);
    for (size_t i = 0; i < found.count; i++)
        found.items[i] += strspn(found.items[i], " ");
    *names = found.items;
    *count = found.count;
    return NULL;
}

struct error *
wal_inspect(const char *database, struct arena *arena, struct wal_report *report)
{
    char **names = NULL;
    size_t count = 0;
    *report = (struct wal_report){0};
    struct error *err = list_logs(database, arena, &names, &count);
    if (err != NULL)
        return err;
    struct wal_reader reader = {.arena = arena, .report = report};
    for (size_t i = 0; i < count && reader.err == NULL; i++) {
        char *path = folder_join(arena, database, names[i]);
        int descriptor = open(path, O_RDONLY | O_CLOEXEC);
        if (descriptor < 0)
            return io_error(arena, "open log", path);
        read_file(&reader, descriptor, names[i]);
        close(descriptor);
        report->files++;
    }
    return reader.err;
}

struct error *
wal_judge(const struct folder *folder, struct arena *arena, struct wal_report *report)
{
    struct error *err = wal_inspect(folder->database, arena, report);
    if (err != NULL || report->files > 0 || folder->identity.was_closed)
        return err;
    return error_new(arena, ERR_CORRUPT, "the log in %s is missing: it held acknowledged writes",
                     folder->database);
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
        return io_error(arena, "make", torn);
    int log = open(path, O_RDWR | O_CLOEXEC);
    if (log < 0)
        return io_error(arena, "open log", path);
    struct error *err = NULL;
    if (!set_aside(log, aside, report->torn_offset, report->torn_bytes, arena) ||
        !sync_folder(torn) || !sync_folder(folder_join(arena, torn, "..")))
        err = io_error(arena, "set an unfinished write aside in", aside);
    else if (ftruncate(log, (off_t)report->torn_offset) != 0 || fsync(log) != 0)
        err = io_error(arena, "cut an unfinished write off", path);
    close(log);
    return err;
}
