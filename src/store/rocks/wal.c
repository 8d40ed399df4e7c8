/* wal.c - reads RocksDB's logs before RocksDB does, to distinguish an unfinished write from damage.
 *
 * The problem: after a power cut the last group may be there in part, in any pattern of sectors,
 * since its sync never returned. It was never acknowledged, so it must go and the store must open.
 * Damage anywhere else has hit something acknowledged, so the store must not open as if nothing
 * were. RocksDB has modes that accept both or (if more is wrong than a short last record) neither.
 *
 * The idea: one thread writes, a group is one record of the log, and the next is written only when
 * the one before is synced. So only the last record can be unfinished. A record is a chain of
 * fragments, FULL or FIRST MIDDLE* LAST, in blocks of 32 KB, each fragment with a checksum. If
 * something is not whole and a FULL or FIRST fragment stands anywhere behind it, in this log or a
 * later one, it is damage: refused. What is damaged may be a length, so behind damage fragments are
 * looked for at every byte of the block. With none behind it, it is the last record, and what its
 * bytes look like decides (wal_torn.c): sectors that never came are zeros, or the file ends.
 *
 * Zeros up to the end of a log are the runway that runway.c laid, and no damage. They could hide a
 * record that was lost, so the records are counted too: each says the number of its first row and
 * how many it has, and the next one must go on there, in the same log or in the next. A log that is
 * missing between two others is found by that. RocksDB removes logs that it no longer needs newest
 * first, so a kill can leave such a gap before logs that count: then RocksDB is asked
 * (setup_oldest_log).
 *
 * A log that was cut, in a record or between two, looks like one whose last record was torn: how
 * far it was synced is noted beside it (wal_watermark.c).
 *
 * What cannot be distinguished: a last record that was acknowledged and zeroed later looks like one
 * that never came; one that holds a sector of zeros and was damaged elsewhere looks like one that
 * never finished. That one is kept aside and reported, so that it is not lost silently. And an
 * unfinished record whose values hold a whole log fragment, checksum and all, looks like damage:
 * refused, which loses nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

#define BATCH_SIZE 12 /* how a record begins: number of its first row 8, rows 4 */

/* The state of one reading of all logs in order. */
struct wal_reader {
    struct arena *arena;
    struct wal_report *report;
    const char *file;          /* name of the log being read */
    const char *last_file;     /* of the log with the last whole record */
    bool is_damaged;           /* from here on no record may begin */
    bool is_open;              /* a FIRST was read, its LAST not yet */
    bool is_zero;              /* from `zeros` on there was nothing else in this log */
    bool has_record;           /* this log has one that is whole */
    uint64_t zeros;            /* where the runway begins */
    uint64_t begin;            /* of the newest record: where to cut if it is not whole */
    uint64_t claimed;          /* where the fragment that is not whole says that it ends */
    uint64_t next;             /* the number of the next row; 0: not known */
    struct error *err;         /* set: stop */
    uint8_t batch[BATCH_SIZE]; /* how the newest record begins */
    size_t batch_length;
};

struct error *
wal_io_error(struct arena *arena, const char *doing, const char *name)
{
    return error_new(arena, ERR_IO, "%s %s: %s", doing, name, strerror(errno));
}

/* --- fragments -------------------------------------------------------------------------------- */

/* From `offset` of this log on, something is not whole, which says that it ends at `claimed`. */
static void
note_damage(struct wal_reader *reader, uint64_t offset, uint64_t claimed)
{
    if (reader->is_damaged)
        return;
    reader->is_damaged = true;
    reader->report->torn_file = reader->file;
    reader->report->torn_offset = reader->is_open ? reader->begin : offset;
    reader->claimed = claimed;
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

static void
refuse_last(struct wal_reader *reader, uint64_t offset)
{
    check(reader->err == NULL);
    reader->err = error_new(reader->arena, ERR_CORRUPT,
                            "log %s is damaged at byte %" PRIu64 ", and no power cut leaves it so: "
                            "writes that were acknowledged are lost",
                            reader->file, offset);
}

/* This log does not go on where `last_file` ended. */
static void
note_gap(struct wal_reader *reader)
{
    reader->report->gap_file = reader->file;
    reader->report->gap_behind = strtoull(reader->last_file, NULL, 10);
}

/* A record is whole: do its rows go on where those before it ended? */
static void
count_rows(struct wal_reader *reader)
{
    bool is_batch = reader->batch_length == BATCH_SIZE;
    uint64_t number = is_batch ? wal_fixed(reader->batch, 8) : 0;
    uint64_t rows = is_batch ? wal_fixed(reader->batch + 8, 4) : 0;
    if (is_batch && reader->next != 0 && number != reader->next && !reader->has_record)
        note_gap(reader);
    else if (!is_batch || (reader->next != 0 && number != reader->next))
        reader->err = error_new(reader->arena, ERR_CORRUPT,
                                "log %s is damaged at byte %" PRIu64
                                ": it goes on with row %" PRIu64 " where row %" PRIu64 " has to be",
                                reader->file, reader->begin, number, reader->next);
    reader->next = reader->report->row_end = number + rows;
    reader->has_record = true;
    reader->last_file = reader->file;
    reader->report->records++;
}

static void
keep_beginning(struct wal_reader *reader, struct slice bytes)
{
    size_t room = BATCH_SIZE - reader->batch_length;
    size_t length = bytes.length < room ? bytes.length : room;
    if (length > 0)
        memcpy(reader->batch + reader->batch_length, bytes.data, length);
    reader->batch_length += length;
}

/* A whole fragment at `offset`, with these bytes. */
static void
accept_fragment(struct wal_reader *reader, unsigned type, struct slice bytes, uint64_t offset)
{
    check(type >= FRAGMENT_FULL && type <= FRAGMENT_LAST);
    bool is_begin = type == FRAGMENT_FULL || type == FRAGMENT_FIRST;
    if (is_begin == reader->is_open && !reader->is_damaged)
        note_damage(reader, offset, offset); /* a record without its end, or an end without its
                                                beginning */
    if (is_begin && reader->is_damaged) {
        refuse(reader, offset);
        return;
    }
    if (reader->is_damaged)
        return; /* a later part of the record that is not whole */
    if (is_begin) {
        reader->begin = offset;
        reader->batch_length = 0;
    }
    keep_beginning(reader, bytes);
    reader->is_open = type == FRAGMENT_FIRST || type == FRAGMENT_MIDDLE;
    if (!reader->is_open)
        count_rows(reader);
}

/* Behind damage at `at`: does a record begin anywhere in the rest of the block? A bad fragment may
 * lie about its length, so every byte may be where the next one begins. A checksum fits by chance
 * once in 2^32. */
static void
search_block(struct wal_reader *reader, struct slice block, size_t at, uint64_t offset)
{
    check(reader->is_damaged);
    for (at++; at + WAL_HEADER_SIZE <= block.length; at++) {
        unsigned type = block.data[at + 6];
        if (type == FRAGMENT_FULL || type == FRAGMENT_FIRST)
            wal_fragment(slice_skip(block, at), &type);
        if (type == FRAGMENT_FULL || type == FRAGMENT_FIRST) {
            refuse(reader, offset + at);
            return;
        }
    }
}

/* At `at` of a block the fragment is not whole. */
static void
read_bad_fragment(struct wal_reader *reader, struct slice block, size_t at, size_t size,
                  uint64_t offset)
{
    struct slice left = slice_skip(block, at);
    if (!reader->is_damaged && !reader->is_open && wal_is_zero(left)) {
        if (!reader->is_zero)
            reader->zeros = offset + at;
        reader->is_zero = true;
        return;
    }
    if (!reader->is_damaged && wal_is_of_other_length(left)) {
        refuse_last(reader, offset + at);
        return;
    }
    /* No fragment leaves its block: one that says so does not show where it ends. */
    size_t end = at + size <= WAL_BLOCK_SIZE ? at + size : at + 1;
    if (reader->is_zero)
        note_damage(reader, reader->zeros, reader->zeros + 1);
    else
        note_damage(reader, offset + at,
                    offset + (left.length < WAL_HEADER_SIZE ? WAL_BLOCK_SIZE : end));
    search_block(reader, block, at, offset);
}

/* All fragments of one block, up to the first bad one. */
static void
read_block(struct wal_reader *reader, struct slice block, uint64_t offset)
{
    size_t at = 0;
    check(offset % WAL_BLOCK_SIZE == 0 && block.length <= WAL_BLOCK_SIZE);
    while (at + WAL_HEADER_SIZE <= WAL_BLOCK_SIZE && at < block.length && reader->err == NULL) {
        unsigned type;
        struct slice left = slice_skip(block, at);
        size_t size = wal_fragment(left, &type);
        if (type == 0) {
            read_bad_fragment(reader, block, at, size, offset);
            return;
        }
        if (reader->is_zero)
            note_damage(reader, reader->zeros, reader->zeros + 1);
        accept_fragment(reader, type, slice_of(left.data + WAL_HEADER_SIZE, size - WAL_HEADER_SIZE),
                        offset + at);
        at += size;
    }
}

/* --- files ------------------------------------------------------------------------------------ */

/* All of a log was read, and it is `size` bytes long. */
static void
end_file(struct wal_reader *reader, int descriptor, uint64_t size)
{
    struct wal_report *report = reader->report;
    if (reader->is_open)
        note_damage(reader, reader->begin, size + 1);
    report->bytes += size;
    if (report->torn_file != reader->file || reader->err != NULL)
        return;
    struct wal_end end = {.begin = report->torn_offset, .claimed = reader->claimed, .size = size};
    bool is_torn;
    if (!wal_is_torn(descriptor, &end, &is_torn))
        reader->err = wal_io_error(reader->arena, "read log", reader->file);
    else if (!is_torn)
        refuse_last(reader, report->torn_offset);
    report->torn_bytes = end.last - report->torn_offset;
}

static void
read_file(struct wal_reader *reader, int descriptor, const char *name)
{
    uint8_t *block = arena_alloc(reader->arena, WAL_BLOCK_SIZE);
    uint64_t offset = 0;
    reader->file = name;
    reader->is_zero = reader->has_record = false;
    for (;;) {
        ssize_t count = pread(descriptor, block, WAL_BLOCK_SIZE, (off_t)offset);
        if (count < 0) {
            reader->err = wal_io_error(reader->arena, "read log", name);
            return;
        }
        if (count > 0)
            read_block(reader, slice_of(block, (size_t)count), offset);
        offset += (uint64_t)count;
        if (count < WAL_BLOCK_SIZE || reader->err != NULL)
            break;
    }
    end_file(reader, descriptor, offset);
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
        return wal_io_error(arena, "list", database);
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
            return wal_io_error(arena, "open log", path);
        read_file(&reader, descriptor, names[i]);
        close(descriptor);
        report->files++;
    }
    return reader.err;
}

/* A gap is none if RocksDB needs nothing of what lies before it. */
static struct error *
judge_gap(const struct folder *folder, struct arena *arena, const struct wal_report *report)
{
    uint64_t oldest = 0;
    struct error *err = setup_oldest_log(folder->database, arena, &oldest);
    if (err != NULL || report->gap_behind < oldest)
        return err;
    return error_new(arena, ERR_CORRUPT, "writes before log %s are missing: they were acknowledged",
                     report->gap_file);
}

struct error *
wal_judge(const struct folder *folder, struct arena *arena, struct wal_report *report)
{
    struct error *err = wal_inspect(folder->database, arena, report);
    if (err == NULL && report->gap_file != NULL)
        err = judge_gap(folder, arena, report);
    if (err == NULL)
        err = wal_watermark_judge(folder, report, arena);
    if (err != NULL || report->files > 0 || folder->identity.was_closed)
        return err;
    return error_new(arena, ERR_CORRUPT, "the log in %s is missing: it held acknowledged writes",
                     folder->database);
}
