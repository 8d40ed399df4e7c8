/* large.c - large values lie in files of their own (RocksDB's blob files), and their room comes
 * back.
 *
 * A table keeps the key and where the value is, so compaction, which rewrites a table each time
 * that others are merged with it, no longer writes the value again: with payloads of 16 KB that
 * was half of the CPU of a workflow, and rose with what was stored. It is written to the log and,
 * by the flush, once more.
 *
 * Room. A file goes by itself when compaction has dropped the last key that leads into it. One run
 * that stays open for months would keep all that was flushed with it. RocksDB can move values out
 * of its oldest files while it compacts, but wants to be told how many of the files, as a fraction:
 * 25 % of a terabyte with each compaction would be far more work than compaction was. So the
 * fraction is set as the store goes: none while less than a quarter of the bytes is dead, else
 * MOVED_FILES of them. What is moved is then in proportion to what is written, and frees more than
 * comes: the oldest files are the deadest. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/check.h"
#include "store/rocks/inside.h"

#define MOVED_FILES                                                                                \
    16 /* of a memtable each, while a compaction takes eight of level 0 (setup.c)                  \
        */
#define LISTS_MAX 100

void
large_set_up(struct setup *setup, rocksdb_options_t *options)
{
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_min_blob_size(options, LARGE_BYTES);
    rocksdb_options_set_blob_file_size(options, setup->memtable_bytes);
    /* Once, at the flush. Of what cannot be made smaller that is 3 % of a workflow's CPU. */
    rocksdb_options_set_blob_compression_type(options, rocksdb_lz4_compression);
    rocksdb_options_set_blob_cache(options, setup->cache);
    rocksdb_options_set_blob_compaction_readahead_size(options, 2 << 20);
}

struct large_stats
large_count(const struct tables *tables)
{
    unsigned family = FAMILY_ORDERED;
    return (struct large_stats){
        .files = tables_property(tables, family, "rocksdb.num-blob-files"),
        .bytes = tables_property(tables, family, "rocksdb.live-blob-file-size"),
        .dead = tables_property(tables, family, "rocksdb.live-blob-file-garbage-size"),
    };
}

/* ---- are they all there? ---- */

static bool
is_large_file(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, ".blob") == 0;
}

/* False: see errno. */
static bool
list_files(const char *database, struct large_stats *found)
{
    *found = (struct large_stats){0};
    DIR *folder = opendir(database);
    if (folder == NULL)
        return false;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat stats;
        if (!is_large_file(entry->d_name) || fstatat(dirfd(folder), entry->d_name, &stats, 0) != 0)
            continue; /* or it went just now */
        found->files++;
        found->bytes += (uint64_t)stats.st_size;
    }
    closedir(folder);
    return true;
}

struct error *
large_judge(const struct tables *tables, const char *database, struct arena *arena)
{
    struct large_stats known, found;
    for (int i = 0; i < LISTS_MAX; i++) {
        known = large_count(tables);
        if (!list_files(database, &found))
            return wal_io_error(arena, "look into", database);
        if (found.files >= known.files && found.bytes >= known.bytes)
            return NULL;
        struct large_stats again = large_count(tables); /* did a compaction end meanwhile? */
        if (again.files == known.files && again.bytes == known.bytes)
            break;
    }
    return error_new(arena, ERR_CORRUPT,
                     "%s should have %" PRIu64 " files with large values (.blob) of %" PRIu64
                     " bytes, and has %" PRIu64 " of %" PRIu64,
                     database, known.files, known.bytes, found.files, found.bytes);
}

/* ---- room ---- */

static bool
is_move_wanted(const struct rocks *rocks, const struct large_stats *stats)
{
#ifdef CADENZA_FAULT_dead_values_stay
    return false;
#endif
    return stats->dead > stats->bytes / (rocks->committer.is_moving ? 8 : 4);
}

/* Each time is a file that RocksDB writes. */
static void
set_move(struct rocks *rocks, bool is_moving, uint64_t files)
{
    static const char *const names[] = {"enable_blob_garbage_collection",
                                        "blob_garbage_collection_age_cutoff"};
    uint64_t millionths = files <= MOVED_FILES ? 1000000 : (MOVED_FILES * 1000000 + 500000) / files;
    char fraction[32];
    snprintf(fraction, sizeof fraction, "%" PRIu64 ".%06" PRIu64, millionths / 1000000,
             millionths % 1000000);
    const char *const values[] = {is_moving ? "true" : "false", fraction};
    char *failure = NULL;
    rocksdb_set_options_cf(rocks->tables.db, rocks->tables.family[FAMILY_ORDERED],
                           array_length(names), names, values, &failure);
    if (failure != NULL) {
        log_warn(rocks->log, "could not tell compaction which files to empty; will retry",
                 log_text("error", failure));
        rocksdb_free(failure);
        return;
    }
    rocks->committer.is_moving = is_moving;
    rocks->committer.files_then = files;
}

void
large_tidy(struct rocks *rocks)
{
    if (rocks->committer.unlooked < rocks->setup.memtable_bytes)
        return;
    rocks->committer.unlooked = 0;
    struct large_stats stats = large_count(&rocks->tables);
    uint64_t then = rocks->committer.files_then;
    bool is_wanted = is_move_wanted(rocks, &stats);
    bool is_off = stats.files > then + then / 4 || stats.files < then - then / 4;
    if (is_wanted != rocks->committer.is_moving || (is_wanted && is_off))
        set_move(rocks, is_wanted, stats.files);
}
