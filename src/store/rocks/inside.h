/* inside.h - what the files of rocks/ share. Only they include it. */
#ifndef CADENZA_STORE_ROCKS_INSIDE_H
#define CADENZA_STORE_ROCKS_INSIDE_H

#include <rocksdb/c.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/vector.h"
#include "fiber/pool.h"
#include "fiber/sync.h"
#include "store/engine.h"
#include "store/key.h"
#include "store/rocks/fresh.h"
#include "store/rocks/rocks.h"

/* --- layout.c: where a row lies --------------------------------------------------------------- */

enum { FAMILY_ORDERED, FAMILY_FORWARD, FAMILY_COUNT };
#define LAYOUT_GUARD  0   /* the kind byte of a guard; row kinds begin at 1 */
#define LAYOUT_LEDGER 254 /* and of the ledger, which is in FAMILY_FORWARD */

/* The name of a column family. */
const char *layout_family_name(unsigned family);
/* Which family keeps rows of that kind. */
unsigned layout_family(enum row_kind kind);
/* Which one keeps a row or guard under that (whole) key. */
unsigned layout_family_of(struct slice key);
/* kind, partition, key: the bytes under which a row (or, with LAYOUT_GUARD and no key, a guard) is
 * kept. */
void layout_append(struct buffer *buffer, unsigned kind, struct slice partition_key,
                   struct slice key);
struct slice layout_key(struct arena *arena, unsigned kind, struct slice partition_key,
                        struct slice key);
/* The first key behind all of (kind, partition). */
struct slice layout_end(struct arena *arena, unsigned kind, struct slice partition_key);
/* The reverse; what remains of *bytes is the row's key. NULL, or what is wrong with it. */
const char *layout_take(struct slice *bytes, struct arena *arena, unsigned *kind,
                        struct partition *partition);
/* Guards are 8 bytes, big-endian. */
void layout_guard_write(uint8_t bytes[8], uint64_t guard);
must_use bool layout_guard_read(struct slice bytes, uint64_t *guard);

/* --- folder.c, identity.c: lock and identity of a data folder --------------------------------- */

#define FOLDER_FORMAT   3 /* of what this program writes, and the newest it reads */
#define FOLDER_IDENTITY "CADENZA"

/* Of the lock file, which is made once: a copy of it has another. */
struct folder_place {
    uint64_t inode; /* 0: not known */
    int64_t born;   /* wall ns; 0: not known */
};

struct folder_identity {
    unsigned format; /* that it was read with; it is written with FOLDER_FORMAT */
    char *cluster_name;
    uint32_t shard_count;
    bool is_made;      /* the database was created: if it is missing now, it was lost */
    bool is_restoring; /* the database is being copied from a backup: the folder does not open */
    bool was_closed;   /* nobody wrote since the last clean close */
    bool
        raise_guards; /* restored or copied: shard guards have to be raised before anybody writes */
    enum store_memory memory;
    struct folder_place place; /* that it was written at */
};

struct folder {
    struct arena *arena; /* of the folder itself and its texts */
    char *path;
    char *database; /* the folder of RocksDB inside it */
    struct file *lock;
    struct folder_place place;       /* where it is */
    struct folder_identity identity; /* as it is on disk */
};

/* Takes the lock and reads the identity. `wanted` (NULL: any) has a cluster name and a shard count:
 * a missing or empty folder is made with them, another must have the same. Yields. Errors: as
 * rocks_open. */
must_use struct error *folder_open(const char *path, const struct folder_identity *wanted,
                                   struct arena *arena, struct folder **folder);
/* Writes the identity as it stands in the struct. Yields. */
must_use struct error *folder_save(struct folder *folder, struct arena *arena);
void folder_close(struct folder *folder);
/* The identity file of any folder, without a lock. ERR_NOT_FOUND: there is none. Yields. */
must_use struct error *folder_read_identity(const char *path, struct arena *arena,
                                            struct folder_identity *identity);
/* Writes the identity file of a folder that is being made. Yields. */
must_use struct error *folder_write_identity(const char *path,
                                             const struct folder_identity *identity,
                                             struct arena *arena);
/* Takes the lock of a folder that must be missing or empty and makes it one that is being restored;
 * `identity` is the backup's. Yields. Errors: as rocks_restore. */
must_use struct error *folder_open_for_restore(const char *path,
                                               const struct folder_identity *identity,
                                               struct arena *arena, struct folder **folder);
char *folder_join(struct arena *arena, const char *path, const char *name);
/* It is not where it was written. */
bool folder_is_copy(const struct folder *folder);
/* What it has of its past: as noted, and a copy is not whole. */
enum store_memory folder_memory(const struct folder *folder);
/* Takes the place where it is for its own, and a copy for one whose guards have to be raised: in
 * the struct, folder_save comes after it. */
void folder_take_place(struct folder *folder);
/* As in the identity file: "INODE.BORN", "INODE", "-". */
const char *folder_show_place(const struct folder_place *place, struct arena *arena);

/* Reads all of a backup that is being made, as rocks_check does. Yields. Errors: ERR_CORRUPT, the
 * first problem; as rocks_check. */
must_use struct error *inspect_backup(const char *path, const struct folder_identity *identity,
                                      struct arena *arena);

/* --- wal.c: the log, read before RocksDB does ------------------------------------------------- */

struct wal_report {
    uint64_t files, bytes, records;
    const char
        *torn_file;       /* name of the log that ends in a write that never finished; NULL: none */
    uint64_t torn_offset; /* where that write begins */
    uint64_t torn_bytes;
    const char
        *gap_file; /* the last log that does not go on where those before it end; NULL: none */
    uint64_t gap_behind; /* the number of the log before it */
    uint64_t row_end;    /* number behind the last row of the last whole record; 0: there is none */
};
/* Looks at all logs of a database folder. Blocks: for the pool. Errors: ERR_CORRUPT names file and
 * offset of damage to what may have been acknowledged; ERR_IO. */
must_use struct error *wal_inspect(const char *database, struct arena *arena,
                                   struct wal_report *report);
/* The same for the folder of a database that was made: ERR_CORRUPT also if there is no log and
 * there has to be one. Blocks. */
must_use struct error *wal_judge(const struct folder *folder, struct arena *arena,
                                 struct wal_report *report);
/* "DOING NAME: " and what errno says. */
struct error *wal_io_error(struct arena *arena, const char *doing, const char *name);

/* wal_watermark.c: how far the log was synced, noted beside it. */
#define WATERMARK_BYTES (64U << 10) /* of log between two notes */
struct wal_watermark {
    uint64_t log; /* number of the newest log then, or of one before it; 0: there is no note */
    uint64_t row; /* number of the last row that was synced */
};
/* Writes it, if that can be done. Blocks, but for no disk. */
void wal_watermark_write(const struct folder *folder, const struct wal_watermark *watermark);
/* Do the logs reach what was noted? Blocks. Errors: ERR_CORRUPT, ERR_IO. */
must_use struct error *wal_watermark_judge(const struct folder *folder,
                                           const struct wal_report *report, struct arena *arena);

/* wal_fragment.c: fragments of a log. */
#define WAL_BLOCK_SIZE  32768
#define WAL_HEADER_SIZE 7 /* of a fragment: checksum 4, length 2, type 1 */
enum fragment_type { FRAGMENT_FULL = 1, FRAGMENT_FIRST, FRAGMENT_MIDDLE, FRAGMENT_LAST };
/* A number of `size` bytes, little-endian. */
uint64_t wal_fixed(const uint8_t *bytes, size_t size);
/* The size of the fragment at the front of what is left of a block. *type is set if it is whole and
 * its checksum right, else 0. */
size_t wal_fragment(struct slice left, unsigned *type);
/* Would the fragment at the front of what is left of a block be whole with another length? A record
 * that was written whole and damaged later would look unfinished if its length leads into the zeros
 * behind it. */
bool wal_is_of_other_length(struct slice left);

/* wal_torn.c: the end of a log whose last record is not whole. */
struct wal_end {
    uint64_t begin;   /* of the record */
    uint64_t claimed; /* it says that it continues at least up to here */
    uint64_t size;    /* of the log */
    uint64_t last;    /* result: behind the last byte that is not zero */
};
/* Could a power cut have left it so? Blocks. False: see errno. */
must_use bool wal_is_torn(int descriptor, struct wal_end *end, bool *is_torn);
bool wal_is_zero(struct slice bytes);
/* Sets the unfinished write aside, as a file in the folder `torn`, and cuts it off the log. Blocks.
 * Errors: ERR_IO. */
must_use struct error *wal_cut(const char *database, const char *torn,
                               const struct wal_report *report, struct arena *arena);

/* --- setup.c: RocksDB's options --------------------------------------------------------------- */

struct setup {
    rocksdb_options_t *database;
    rocksdb_options_t *family[FAMILY_COUNT];
    rocksdb_cache_t *cache;
    uint64_t memtable_bytes; /* of one family: at about this size RocksDB flushes it */
};
/* All options, each with its reason in the file. */
void setup_init(struct setup *setup, const struct rocks_options *options);
/* To be called on a thread before it works with RocksDB: no counting of every comparison, a fifth
 * of all CPU. Costs nothing to repeat. */
void setup_thread(void);
void setup_free(struct setup *setup);
/* Opens the database with these options, or for reading only: then nothing in it changes. Blocks.
 * NULL and *failure (rocksdb_free) if it does not go. */
rocksdb_t *setup_open(const struct setup *setup, const char *database, bool is_inspection,
                      rocksdb_column_family_handle_t *family[FAMILY_COUNT], char **failure);
/* The number of the oldest log that the database in this folder needs. Changes nothing; takes as
 * long as an opening. Blocks. */
must_use struct error *setup_oldest_log(const char *database, struct arena *arena,
                                        uint64_t *number);
/* The log ends in a write that never finished, as wal.c has judged, and is opened for reading only,
 * so it is not cut: replay is to stop there. */
void setup_stop_at_torn_end(struct setup *setup);
/* RocksDB's words as an error: ERR_CORRUPT, ERR_IO or ERR_UNAVAILABLE. Frees them. */
must_use struct error *setup_error(struct arena *arena, char *failure, const char *doing);

/* --- the store -------------------------------------------------------------------------------- */

#define ROCKS_QUEUE_BYTES    (64ULL << 20)
#define ROCKS_MEMTABLE_BYTES (384ULL << 20)
#define ROCKS_CACHE_BYTES    (128ULL << 20)
#define ROCKS_GUARDS         65536
#define ROCKS_FRESH_BYTES    (8ULL << 20)

struct rocks_metrics {
    struct counter *commits, *groups, *gathered, *fenced, *bytes, *cold_reads;
    struct gauge *group_ns_max;
    struct histogram *group_seconds;
    struct counter *damaged_reads, *scrubs, *scrubbed_bytes;
    struct gauge *damaged_places, *damaged_rows, *damaged_runs, *scrub_age;
};

/* damage.c: what cannot be read */
#define ROCKS_DAMAGES_MAX 64
#define DAMAGE_KEY_ROOM   96
/* Keys between which nothing can be read, cut or filled with zeros. */
struct damage_range {
    uint8_t low[DAMAGE_KEY_ROOM], high[DAMAGE_KEY_ROOM];
};
struct damage {
    char file[32];
    bool has_range;
    struct damage_range range;
    char rows_of[64]; /* kind and partition of rows that are there; "": not known */
    uint64_t offset, bytes;
    uint64_t rows; /* about */
    uint64_t pass; /* that met it last */
};
struct damages {
    struct lock lock;
    struct damage location[ROCKS_DAMAGES_MAX];
    size_t count;
    _Atomic uint64_t pass;
    bool has_runs; /* they were counted since everything was read */
    uint64_t runs; /* that have rows there, at the most */
};

/* scrub.c: everything is read once in a while */
struct scrub {
    int64_t interval;     /* between the beginnings of two passes; 0: there are none */
    unsigned family;      /* that is read */
    struct buffer cursor; /* from this key on */
    int64_t passed_time;  /* monotonic: the last pass ended; or the first one began */
    bool is_ending;
    struct fiber *fiber;
    struct latch done;
};

/* gather.c: those who were answered may be back in a moment. */
struct group_wait {
    int64_t usual; /* what a group takes, about */
    unsigned rest; /* so many groups do not wait */
    /* Of the present wait. */
    size_t awaited, came;
    int64_t step;
    unsigned steps;
};
/* A group of so many was answered, it took so long. True: wait for them, as gather_next says. */
must_use bool gather_begin(struct group_wait *group_wait, size_t answered, int64_t taken);
/* So many have come since: how long to wait on. 0: begin the next group. */
must_use int64_t gather_next(struct group_wait *group_wait, size_t came);

struct ledger_numbers { /* a vector */
    uint64_t *items;
    size_t count, capacity;
};

/* The open database. */
struct tables {
    rocksdb_t *db;
    rocksdb_column_family_handle_t *family[FAMILY_COUNT];
};
/* A number that RocksDB reports of a column family (setup.c); it must know the name. */
uint64_t tables_property(const struct tables *tables, unsigned family, const char *name);

struct rocks {
    struct store store; /* first: a store is one of these */
    struct folder *folder;
    const struct log *log;
    struct setup setup;
    struct tables tables;
    struct fresh *fresh; /* rows that are not in the tables yet */
    rocksdb_readoptions_t
        *read_cached; /* from memory only; says "incomplete" where it would wait */
    rocksdb_readoptions_t *read_any;
    struct metrics *own_metrics; /* NULL: the caller brought some */
    struct rocks_metrics metrics;
    _Atomic(char *) failure; /* why it stopped; set once, by the committer */
    struct worker *worker;   /* the committer's thread */
    _Atomic unsigned copies; /* backups that copy the log now */
    struct damages damages;
    struct scrub scrub;     /* its fiber's, and of the thread that works for it */
    _Atomic bool is_laying; /* a runway is laid and the group behind it not written; see runway.c */

    struct {                /* the committer's: nobody else touches it */
        struct map *guards; /* partition key → struct guard */
        size_t guards_max;  /* so many are remembered from one group to the next */
        rocksdb_writebatch_t *batch;
        rocksdb_writeoptions_t *durable;
        struct buffer record; /* of the group: see ledger.c */
        struct buffer key;    /* room for one */
        size_t fresh_max;     /* so many bytes are a generation */
        struct ledger_numbers
            ledger_numbers; /* of the ledger's rows that the new generation came from */
        struct ledger_numbers old_numbers; /* likewise the old one */
        size_t fresh_before; /* what the new generation had when the last group ended */
        bool has_settled;    /* the batch has the rest of the old generation */
        bool has_filled_all; /* the last write left no family a memtable with room */
        size_t runway;       /* see runway.c: zeros that lie ahead in the log, about */
        uint64_t log;        /* number of the log when the last were laid; 0: not known */
        size_t unmarked;     /* bytes written since the last note; see wal_watermark.c */
        size_t unlooked;     /* bytes written since large.c looked at its files */
        bool is_moving;      /* compaction moves values out of the oldest of them */
        uint64_t files_then; /* how many there were when it was told so */
        struct group_wait group_wait;
        int64_t taken; /* by the last group */
    } committer;
};

static inline struct rocks *
rocks_of(const struct store *store)
{
    return container_of(store, struct rocks, store);
}

/* committer.c */
/* Writes and syncs the batch. Blocks. False: see *failure. */
must_use bool committer_write(struct rocks *rocks, char **failure);
void committer_init(struct rocks *rocks);
/* Ends the thread. Yields. */
void committer_stop(struct rocks *rocks);
/* Frees what it had. */
void committer_free(struct rocks *rocks);
/* The engine's submit and failure. */
void committer_submit(struct store *store, struct commit *commit);
const char *committer_failure(const struct store *store);
/* Raises the guards of shards 0 .. shard_count - 1 by ROCKS_RESTORE_LEAP, and to `least` at the
 * least. Durable on return; only before the store is given to anybody. Blocks. */
must_use struct error *committer_raise_guards(struct rocks *rocks, uint32_t shard_count,
                                              uint64_t least, struct arena *arena);

/* large.c: values in files of their own */
#define LARGE_BYTES 2048 /* of a value that is large */
struct large_stats {
    uint64_t files, bytes;
    uint64_t dead; /* bytes that nothing leads to */
};
/* Sets what a family needs for it. */
void large_set_up(struct setup *setup, rocksdb_options_t *options);
struct large_stats large_count(const struct tables *tables);
/* Are the files in the folder? RocksDB would say so when one is read. Blocks. Errors: ERR_CORRUPT,
 * ERR_IO. */
must_use struct error *large_judge(const struct tables *tables, const char *database,
                                   struct arena *arena);
/* Room of dead values may be wanted back. Only on the committer's thread. Blocks, rarely. */
void large_tidy(struct rocks *rocks);

/* runway.c: zeros ahead of the log. A group of so many bytes is going to be written, and was. Only
 * on the committer's thread. The first blocks. */
void runway_begin(struct rocks *rocks, size_t bytes);
void runway_end(struct rocks *rocks);
/* From now on, until it is resumed, no log gets a runway, and one that has one has a record.
 * Yields.
 */
void runway_pause(struct rocks *rocks);
void runway_resume(struct rocks *rocks);

/* RocksDB failed with these words. If they mean damage it is noted; `before`: the key of the
 * last row that could be read, `range`: that cannot be, both if they are known; `place`: what tells
 * it from others if the words name no file, 0: then it is not noted. Any thread. */
void damage_note(struct rocks *rocks, const char *words, struct slice before,
                 const struct damage_range *range, uint64_t location);
/* The same of a call that met it. */
void damage_read_failed(struct rocks *rocks, const char *words);
/* Everything was read: what was not met is not there any more. */
void damage_pass_over(struct rocks *rocks);
/* damage_runs.c: counts the runs that have rows in damaged places. Blocks. */
void damage_count_runs(struct rocks *rocks);

/* Begins to read everything once per interval (0: not at all), and ends that. The second yields. */
void scrub_begin(struct rocks *rocks, int64_t interval);
void scrub_end(struct rocks *rocks);

/* guards.c: what the committer knows of partitions */
struct swept { /* keys of a range that holds no row */
    size_t from_length, to_length;
    uint8_t bytes[];
};
struct guard {
    uint64_t number;
    bool is_stored;      /* there is a row for it */
    struct swept *swept; /* see sweep.c; NULL: none */
};
/* The guard of a partition, from memory or from the database. Blocks. NULL: it cannot be read, see
 * *failure. */
struct guard *guards_find(struct rocks *rocks, struct slice partition_key, char **failure);
/* Forgets all if there are too many. Only between groups: the record is empty. */
void guards_trim(struct rocks *rocks);
void guards_free(struct rocks *rocks);

/* sweep.c: range deletes */
/* Adds one to the record of the group. Blocks. False: rows cannot be read, see *failure. */
must_use bool sweep_range(struct rocks *rocks, struct slice partition_key,
                          const struct commit_step *range, struct guard *guard, char **failure);
/* A row was put there. */
void sweep_note_put(struct guard *guard, const struct fresh_location *location);
void sweep_forget(struct guard *guard);

/* ledger.c: groups of commits, and what becomes of them */
/* Begins the record and the batch of a group. */
void ledger_begin(struct rocks *rocks);
/* Adds a commit to them. `number`: what the partition's guard becomes, 0: as it was. Blocks if it
 * deletes a range. False: rows cannot be read, see *failure. */
must_use bool ledger_append(struct rocks *rocks, const struct commit *commit, struct guard *guard,
                            uint64_t number, char **failure);
/* Puts the record into the batch, and with it some rows that are to come to the tables. */
void ledger_end(struct rocks *rocks);
/* The batch is durable: its rows can be read from now on. */
void ledger_written(struct rocks *rocks);
/* Frees what is in the tables now: when nobody waits for an answer. */
void ledger_tidy(struct rocks *rocks);
/* Brings all rows to the tables, durably. On the committer's thread, or when there is none. Blocks.
 */
must_use bool ledger_settle_all(struct rocks *rocks, char **failure);
/* Applies what the ledger has; reports the number of each of its rows. Blocks. */
must_use bool ledger_replay(const struct tables *tables, struct fresh *fresh,
                            void (*on_number)(void *context, uint64_t number), void *context,
                            char **failure);

/* merge.c: rows of the tables and fresh ones, in one order */
struct row_merge {
    rocksdb_iterator_t *tables; /* stands at its first row */
    const struct fresh_scan *fresh;
    size_t at;     /* in the fresh ones */
    bool is_taken; /* the iterator's row was given or overruled */
    bool is_ended; /* the iterator */
    char *failure; /* of the tables, rocksdb_free */
};
/* The next row; good until the next call. False: there is none, the fresh ones were cut, or see
 * `failure`. */
must_use bool row_merge_next(struct row_merge *row_merge, struct slice *key, struct slice *value);

/* read.c */
/* Did RocksDB refuse because it would have had to wait for the disk? */
bool read_is_cold(const char *failure);
struct error *read_guard(struct store *store, struct partition partition, struct arena *arena,
                         uint64_t *guard);
struct error *read_row(struct store *store, struct partition partition, enum row_kind kind,
                       struct slice key, struct arena *arena, bool *found, struct slice *value,
                       uint64_t *guard);
struct error *read_scan(struct store *store, const struct scan *scan, struct arena *arena,
                        struct rows *rows);
/* walk.c */
struct error *walk_rows(struct store *store, enum row_kind kind, const struct walk_row *after,
                        size_t rows_max, struct arena *arena, struct walk_rows *rows);

/* range.c: one pass of an iterator, first over memory, then on a thread */
struct range {
    unsigned family;
    struct slice from, to; /* whole keys; from <= key < to */
    size_t prefix;         /* so many bytes of `from` are kind and partition; 1: all partitions */
    size_t rows_max;       /* so many are wanted at the most, 0: no limit */
    bool is_backward;
    /* Is given each row; false ends the pass. Runs on the loop or on a thread. */
    bool (*take)(void *context, struct slice key, struct slice value);
    void (*restart)(
        void *context); /* forget all that was taken: the pass begins again on a thread */
    void *context;
};
must_use struct error *range_read(struct rocks *rocks, const struct range *range,
                                  struct arena *arena);

#endif
