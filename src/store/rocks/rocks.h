/* rocks.h - the embedded engine: RocksDB in a local data folder, one log, group commit.
 *
 * What it keeps beyond store.h:
 *   1. A data folder belongs to one process at a time, and to the cluster name and shard count it
 * was made with.
 *   2. An acknowledged commit is in the log and the log is synced. A last group that the machine
 * cut short is dropped and reported when the folder is opened; damage anywhere else in the log
 * refuses to open.
 *   3. After the first failed write or sync no commit is written until the store is opened again.
 * RocksDB may still move rows that were durable before into table files (it tries by itself when a
 * full disk has room again); the log that failed gets nothing more.
 *   4. A folder that came from a backup, or does not lie where it was written (a copy), says so
 * until somebody says that it caught up; its shards got higher guards. */
#ifndef CADENZA_STORE_ROCKS_H
#define CADENZA_STORE_ROCKS_H

#include "base/log.h"
#include "base/metrics.h"
#include "store/admin.h"

#define ROCKS_NAME "embedded"

struct rocks_options {
    const char *path;            /* folder; made if missing */
    const char *cluster_name;    /* must equal what the folder was made with */
    uint32_t shard_count;        /* likewise */
    uint64_t memtable_bytes_max; /* all column families together; 0: default */
    uint64_t cache_bytes_max;    /* block cache; 0: default */
    uint64_t queue_bytes_max;    /* commits that wait; 0: default */
    uint64_t fresh_bytes_max; /* of rows that are not in the tables yet, about half; 0: default */
    size_t guards_max;        /* partitions whose guard is kept in memory; 0: default */
    int64_t scrub_interval;   /* everything is read once in it, to find damage; 0: never */
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
};

/* Opens or makes the data folder. Yields. Errors, each one clear sentence with what was found and
 * expected: ERR_BUSY (another process has it open), ERR_BAD_REQUEST (other cluster name, shard
 * count, a newer format, or a folder that is not ours), ERR_CORRUPT, ERR_IO. */
must_use struct error *rocks_open(const struct rocks_options *options, struct arena *arena,
                                  struct store **store);

/* What the committer has done since the store was opened. */
struct rocks_stats {
    uint64_t commits;        /* durable ones */
    uint64_t groups;         /* log writes, each with one sync */
    uint64_t gathered;       /* times that it waited for those who had just been answered */
    uint64_t fenced;         /* commits refused for their guard */
    uint64_t bytes;          /* of keys and values in durable commits */
    uint64_t cold_reads;     /* reads that had to go to a thread */
    uint64_t queue_bytes;    /* of commits that wait now */
    int64_t group_ns_max;    /* the longest write and sync of a group: the worst pause */
    uint64_t disk_bytes;     /* of live files with tables and large values */
    uint64_t memtable_bytes; /* in memory now */
};
/* Never yields; any loop. */
void rocks_stats(const struct store *store, struct rocks_stats *stats);

/* What is known to be damaged and cannot be read, in one sentence: files, places, and about how
 * many rows; NULL: nothing. Reads note what they meet, and the pass over everything
 * (scrub_interval). Never yields; any thread. */
const char *rocks_damage(const struct store *store, struct arena *arena);

/* Writes all memtables to table files and waits for it. For tests and benches. Yields. Errors:
 * ERR_UNAVAILABLE, ERR_IO. */
must_use struct error *rocks_flush(struct store *store, struct arena *arena);

/* --- backup ---------------------------------------------------------------------------------- */

/* Makes `folder`, which must not exist, a backup of this moment, while the store works on. Table
 * files are linked where the file system can, else copied. Then all of it is read; a copy of damage
 * is none. A backup that fails leaves no folder. Yields, for as long as reading everything takes.
 * Errors: ERR_BAD_REQUEST (it exists), ERR_CORRUPT (the first damage), ERR_UNAVAILABLE, ERR_IO. */
must_use struct error *rocks_backup(struct store *store, const char *folder, struct arena *arena);
/* Makes `path`, which must be missing or empty, a data folder from a backup. Until it is whole the
 * folder does not open and says so, whatever ends this. At its first opening
 * the guard of every shard is raised by ROCKS_RESTORE_LEAP, and to the clock's seconds at the
 * least: above whatever was given out in the time that is lost, if that were fewer owners than the
 * leap; also after a second restore of the same backup, if the clock was not set back and no shard
 * got more owners than seconds went by since the first. Yields. Errors: ERR_BAD_REQUEST (not a
 * backup, or something is in the target), ERR_BUSY (a process has it), ERR_IO. */
must_use struct error *rocks_restore(const char *backup, const char *path, struct arena *arena);
#define ROCKS_RESTORE_LEAP (UINT64_C(1) << 20)
/* store_memory, store_set_whole. */
enum store_memory rocks_memory(const struct store *store);
must_use struct error *rocks_set_whole(struct store *store, struct arena *arena);

/* --- looking into a stopped folder ------------------------------------------------------------ */

/* Reads a folder that no process has open; changes nothing in it. Yields. Errors: as rocks_open. */
must_use struct error *rocks_info(const char *path, struct arena *arena, struct store_info *info);

/* Walks everything: every block's checksum, every log record, every key (its kind, its partition,
 * the partition's guard). Problems are results, not errors. Yields; takes as long as reading all
 * files. Errors: as rocks_info. */
must_use struct error *rocks_check(const char *path, struct arena *arena,
                                   struct store_check *check);

#endif
