/* rocks.c - opens and closes the engine; the table of its functions.
 *
 * Order of opening: folder and its lock, the log judged (wal.c), RocksDB (which replays the log and
 * writes what it found to table files), the committer, the identity marked as open, what is left in
 * the ledger (ledger.c), and of a restored or copied folder the guards. Closing goes the other way;
 * a store that works is settled and flushed, so that the next opening has nothing to replay. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "store/rocks/inside.h"

static void rocks_close(struct store *store);

/* The folder is locked. */
static bool
is_alone(const struct store *store)
{
    return true;
}

static const struct store_admin rocks_admin = {
    .backup = rocks_backup,
    .damage = rocks_damage,
    .memory = rocks_memory,
    .set_whole = rocks_set_whole,
};

static const struct store_engine rocks_engine = {
    .name = ROCKS_NAME,
    .is_alone = is_alone,
    .admin = &rocks_admin,
    .submit = committer_submit,
    .guard = read_guard,
    .get = read_row,
    .scan = read_scan,
    .walk = walk_rows,
    .failure = committer_failure,
    .close = rocks_close,
};

static void
scrub_metrics_init(struct rocks_metrics *counts, struct metrics *metrics)
{
    counts->damaged_reads = metrics_counter(metrics, "cadenza_store_damaged_reads_total",
                                            "Reads that met damage and failed.", NULL);
    counts->damaged_places =
        metrics_gauge(metrics, "cadenza_store_damaged_places",
                      "Blocks and large values that are known to be damaged.", NULL);
    counts->damaged_rows =
        metrics_gauge(metrics, "cadenza_store_damaged_rows",
                      "Rows in damaged places, estimated from the size of their blocks.", NULL);
    counts->damaged_runs =
        metrics_gauge(metrics, "cadenza_store_damaged_runs",
                      "Runs that have rows in damaged places, at the most.", NULL);
    counts->scrubs = metrics_counter(metrics, "cadenza_store_scrubs_total",
                                     "Times that everything was read to find damage.", NULL);
    counts->scrubbed_bytes = metrics_counter(metrics, "cadenza_store_scrubbed_bytes_total",
                                             "Bytes of rows that were read for that.", NULL);
    counts->scrub_age =
        metrics_gauge(metrics, "cadenza_store_scrub_age_seconds",
                      "Since everything was read last, or since the start if it never was.", NULL);
}

static void
metrics_init(struct rocks *rocks, struct metrics *metrics)
{
    if (metrics == NULL)
        metrics = rocks->own_metrics = metrics_new();
    rocks->metrics = (struct rocks_metrics){
        .commits = metrics_counter(metrics, "cadenza_store_commits_total",
                                   "Commits that became durable.", NULL),
        .groups = metrics_counter(metrics, "cadenza_store_groups_total",
                                  "Groups of commits, each written with one sync.", NULL),
        .gathered =
            metrics_counter(metrics, "cadenza_store_gathered_total",
                            "Waits for those who had just been answered, on a slow disk.", NULL),
        .fenced = metrics_counter(metrics, "cadenza_store_fenced_total",
                                  "Commits refused because their guard was not as expected.", NULL),
        .bytes = metrics_counter(metrics, "cadenza_store_bytes_total", "Bytes of rows in commits.",
                                 NULL),
        .cold_reads = metrics_counter(metrics, "cadenza_store_cold_reads_total",
                                      "Reads that had to wait for the disk.", NULL),
        .group_ns_max = metrics_gauge(metrics, "cadenza_store_group_nanoseconds_max",
                                      "The longest write and sync of a group so far.", NULL),
        .group_seconds = metrics_histogram(metrics, "cadenza_store_group_seconds",
                                           "Write and sync of a group.", NULL),
    };
    scrub_metrics_init(&rocks->metrics, metrics);
}

/* --- opening: what blocks --------------------------------------------------------------------- */

struct rocks_opening {
    struct rocks *rocks;
    struct arena *arena;
    struct wal_report log;
    uint64_t seconds; /* of the wall clock, for raised guards */
    struct error *err;
};

/* Judges the log of a database that was made before; cuts an unfinished last write off. */
static struct error *
open_log(struct rocks_opening *rocks_opening)
{
    const struct folder *folder = rocks_opening->rocks->folder;
    struct arena *arena = rocks_opening->arena;
    struct error *err = wal_judge(folder, arena, &rocks_opening->log);
    if (err != NULL)
        return err;
    if (rocks_opening->log.torn_file == NULL)
        return NULL;
    return wal_cut(folder->database, folder_join(arena, folder->path, "torn"), &rocks_opening->log,
                   arena);
}

static void
close_database(void *argument)
{
    struct rocks *rocks = argument;
    for (unsigned family = 0; family < FAMILY_COUNT; family++)
        rocksdb_column_family_handle_destroy(rocks->tables.family[family]);
    rocksdb_close(rocks->tables.db);
}

static void
open_database(void *argument)
{
    struct rocks_opening *rocks_opening = argument;
    struct rocks *rocks = rocks_opening->rocks;
    bool is_made = rocks->folder->identity.is_made;
    check(rocks->tables.db == NULL && rocks_opening->err == NULL);
    if (is_made)
        rocks_opening->err = open_log(rocks_opening);
    if (rocks_opening->err != NULL)
        return;
    rocksdb_options_set_create_if_missing(rocks->setup.database, !is_made);
    rocksdb_options_set_create_missing_column_families(rocks->setup.database, !is_made);
    char *failure = NULL;
    rocks->tables.db =
        setup_open(&rocks->setup, rocks->folder->database, false, rocks->tables.family, &failure);
    if (failure != NULL) {
        rocks_opening->err = setup_error(rocks_opening->arena, failure, "open the database");
        return;
    }
    rocks_opening->err = large_judge(&rocks->tables, rocks->folder->database, rocks_opening->arena);
    if (rocks_opening->err != NULL)
        close_database(rocks);
}

static void
note_number(void *context, uint64_t number)
{
    struct rocks *rocks = context;
    vector_push(&rocks->committer.ledger_numbers, number);
}

/* What the last process left in the ledger comes to the tables. */
static void
settle_ledger(void *argument)
{
    struct rocks_opening *rocks_opening = argument;
    struct rocks *rocks = rocks_opening->rocks;
    char *failure = NULL;
    setup_thread();
    if (!ledger_replay(&rocks->tables, rocks->fresh, note_number, rocks, &failure) ||
        !ledger_settle_all(rocks, &failure))
        rocks_opening->err = setup_error(rocks_opening->arena, failure, "settle the ledger");
}

static void
raise_guards(void *argument)
{
    struct rocks_opening *rocks_opening = argument;
    struct rocks *rocks = rocks_opening->rocks;
    rocks_opening->err = committer_raise_guards(rocks, rocks->folder->identity.shard_count,
                                                rocks_opening->seconds, rocks_opening->arena);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void
report_log(const struct rocks *rocks, const struct wal_report *log)
{
    if (log->torn_file == NULL)
        return;
    log_warn(rocks->log, "the last write to the log never finished: it was set aside",
             log_text("file", log->torn_file), log_number("offset", (int64_t)log->torn_offset),
             log_number("bytes", (int64_t)log->torn_bytes));
}

static void
report_copy(const struct rocks *rocks, struct arena *arena)
{
    const struct folder *folder = rocks->folder;
    if (!folder_is_copy(folder))
        return;
    log_warn(rocks->log,
             "the data folder is a copy: it does not lie where it was written, and what was "
             "written there later is not in it",
             log_text("path", folder->path),
             log_text("place", folder_show_place(&folder->place, arena)),
             log_text("writtenAt", folder_show_place(&folder->identity.place, arena)));
}

/* For work that must run: waits until the pool has room. */
static void
pool_insist(void (*work)(void *argument), void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    while (pool_run(work, argument, arena) != NULL)
        fiber_yield();
}

/* Everything between the open database and the first commit. */
static struct error *
open_identity(struct rocks *rocks, struct rocks_opening *rocks_opening)
{
    struct folder_identity *identity = &rocks->folder->identity;
    check(rocks->tables.db != NULL && rocks->worker != NULL);
    report_copy(rocks, rocks_opening->arena);
    folder_take_place(rocks->folder);
    identity->is_made = true;
    identity->was_closed = false;
    struct error *err = folder_save(rocks->folder, rocks_opening->arena);
    if (err != NULL)
        return err;
    pool_insist(settle_ledger, rocks_opening);
    if (rocks_opening->err != NULL || !identity->raise_guards)
        return rocks_opening->err;
    err = pool_run(raise_guards, rocks_opening, rocks_opening->arena);
    if (err == NULL)
        err = rocks_opening->err;
    if (err != NULL)
        return err;
    identity->raise_guards = false;
    return folder_save(rocks->folder, rocks_opening->arena);
}

static struct rocks *
rocks_new(const struct rocks_options *options, struct folder *folder)
{
    struct rocks *rocks = memory_zalloc(1, sizeof *rocks);
    uint64_t queue = options->queue_bytes_max == 0 ? ROCKS_QUEUE_BYTES : options->queue_bytes_max;
    store_init(&rocks->store, &rocks_engine, queue);
    rocks->folder = folder;
    rocks->log = options->log;
    rocks->committer.guards_max = options->guards_max == 0 ? ROCKS_GUARDS : options->guards_max;
    metrics_init(rocks, options->metrics);
    if (options->metrics != NULL)
        store_measure(&rocks->store, options->metrics);
    setup_init(&rocks->setup, options);
    lock_init(&rocks->damages.lock);
    rocks->fresh = fresh_new();
    rocks->committer.fresh_max =
        options->fresh_bytes_max == 0 ? ROCKS_FRESH_BYTES : options->fresh_bytes_max;
    rocks->read_any = rocksdb_readoptions_create();
    rocks->read_cached = rocksdb_readoptions_create();
    /* Every block that comes from the disk is checked. RocksDB does so unless it is told not to;
     * compaction always does. */
    rocksdb_readoptions_set_verify_checksums(rocks->read_any, 1);
    rocksdb_readoptions_set_verify_checksums(rocks->read_cached, 1);
    rocksdb_readoptions_set_read_tier(rocks->read_cached, 1); /* block cache and memtables */
    return rocks;
}

static void
rocks_free(struct rocks *rocks)
{
    rocksdb_readoptions_destroy(rocks->read_any);
    rocksdb_readoptions_destroy(rocks->read_cached);
    fresh_free(rocks->fresh);
    setup_free(&rocks->setup);
    lock_free(&rocks->damages.lock);
    metrics_free(rocks->own_metrics);
    memory_free(rocks->store.meter);
    folder_close(rocks->folder);
    memory_free(rocks);
}

struct error *
rocks_open(const struct rocks_options *options, struct arena *arena, struct store **store)
{
    check(options->shard_count > 0 && options->cluster_name != NULL && options->path != NULL);
    struct folder_identity wanted = {.cluster_name = arena_text(arena, options->cluster_name),
                                     .shard_count = options->shard_count};
    struct folder *folder;
    struct error *err = folder_open(options->path, &wanted, arena, &folder);
    if (err != NULL)
        return err;
    struct rocks *rocks = rocks_new(options, folder);
    struct rocks_opening rocks_opening = {
        .rocks = rocks, .arena = arena, .seconds = (uint64_t)(clock_wall() / NS_PER_S)};
    pool_insist(open_database, &rocks_opening);
    if (rocks_opening.err != NULL) {
        rocks_free(rocks);
        return error_wrap(rocks_opening.err, "data folder %s", options->path);
    }
    report_log(rocks, &rocks_opening.log);
    committer_init(rocks);
    err = open_identity(rocks, &rocks_opening);
    if (err != NULL) {
        committer_stop(rocks);
        committer_free(rocks);
        pool_insist(close_database, rocks);
        rocks_free(rocks);
        return error_wrap(err, "data folder %s", options->path);
    }
    scrub_begin(rocks, options->scrub_interval);
    *store = &rocks->store;
    return NULL;
}

/* --- closing ---------------------------------------------------------------------------------- */

struct flushing {
    struct rocks *rocks;
    char *failure;
};

static void
flush_families(void *argument)
{
    struct flushing *flushing = argument;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    for (unsigned family = 0; family < FAMILY_COUNT && flushing->failure == NULL; family++)
        rocksdb_flush_cf(flushing->rocks->tables.db, options,
                         flushing->rocks->tables.family[family], &flushing->failure);
    rocksdb_flushoptions_destroy(options);
}

static struct error *
flush(struct rocks *rocks, struct arena *arena)
{
    struct flushing flushing = {.rocks = rocks};
    pool_insist(flush_families, &flushing);
    return flushing.failure == NULL ? NULL : setup_error(arena, flushing.failure, "flush");
}

static void
settle_rest(void *argument)
{
    struct flushing *flushing = argument;
    setup_thread();
    bool is_settled = ledger_settle_all(flushing->rocks, &flushing->failure);
    check(is_settled == (flushing->failure == NULL));
}

/* Nobody commits any more. */
static struct error *
settle_and_flush(struct rocks *rocks, struct arena *arena)
{
    struct flushing flushing = {.rocks = rocks};
    pool_insist(settle_rest, &flushing);
    if (flushing.failure != NULL)
        return setup_error(arena, flushing.failure, "settle the ledger");
    return flush(rocks, arena);
}

struct error *
rocks_flush(struct store *store, struct arena *arena)
{
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    err = flush(rocks_of(store), arena);
    store_leave(store);
    return err;
}

static void
rocks_close(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = NULL;
    bool is_good = committer_failure(store) == NULL;
    check(atomic_load(&store->is_closing) && atomic_load(&store->calls) == 0);
    scrub_end(rocks);
    committer_stop(rocks);
    if (is_good)
        err = settle_and_flush(rocks, arena);
    committer_free(rocks);
    pool_insist(close_database, rocks);
    if (is_good && err == NULL) {
        rocks->folder->identity.was_closed = true;
        err = folder_save(rocks->folder, arena);
    }
    if (err != NULL)
        log_warn(rocks->log, "the store was not closed cleanly; its log will be replayed",
                 log_error(err));
    rocks_free(rocks);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static uint64_t
sum_property(const struct rocks *rocks, const char *name)
{
    uint64_t sum = 0;
    for (unsigned family = 0; family < FAMILY_COUNT; family++)
        sum += tables_property(&rocks->tables, family, name);
    return sum;
}

void
rocks_stats(const struct store *store, struct rocks_stats *stats)
{
    const struct rocks *rocks = rocks_of(store);
    *stats = (struct rocks_stats){
        .commits = counter_value(rocks->metrics.commits),
        .groups = counter_value(rocks->metrics.groups),
        .gathered = counter_value(rocks->metrics.gathered),
        .fenced = counter_value(rocks->metrics.fenced),
        .bytes = counter_value(rocks->metrics.bytes),
        .cold_reads = counter_value(rocks->metrics.cold_reads),
        .queue_bytes = atomic_load(&store->queued_bytes),
        .group_ns_max = gauge_value(rocks->metrics.group_ns_max),
        .disk_bytes =
            sum_property(rocks, "rocksdb.live-sst-files-size") + large_count(&rocks->tables).bytes,
        .memtable_bytes = sum_property(rocks, "rocksdb.cur-size-all-mem-tables"),
    };
}

enum store_memory
rocks_memory(const struct store *store)
{
    return rocks_of(store)->folder->identity.memory;
}

struct error *
rocks_set_whole(struct store *store, struct arena *arena)
{
    struct error *err = store_enter(store, arena);
    if (err != NULL)
        return err;
    struct folder *folder = rocks_of(store)->folder;
    struct folder_identity identity = folder->identity;
    identity.memory = STORE_WHOLE;
    err = folder_write_identity(folder->path, &identity, arena);
    if (err == NULL) /* said only once it is on the disk */
        folder->identity.memory = STORE_WHOLE;
    store_leave(store);
    return err;
}
