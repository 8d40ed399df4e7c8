/* setup.c - RocksDB's options, each with the reason why it is not left alone, or why it is.
 *
 * The load: one thread writes groups, each a row of the ledger and some rows that settle
 * (ledger.c), and waits for a sync each; loops read single rows and short ranges. The numbers are
 * from the bench beside this file, taken when each row of a commit was one of RocksDB's.
 *
 * Left alone on purpose: pipelined and unordered writes (one writer gains nothing, and unordered
 * would show rows before they are durable), WAL recycling (a reused file has old records behind the
 * new ones, which takes the difference between "torn" and "damaged" away), manual WAL flush,
 * avoid_flush_during_recovery (what replay showed must become durable in table files: after a
 * failed sync the page cache may show bytes that the disk never got), bytes_per_sync of the log
 * (each group is synced anyway). fdatasync is what sync means: use_fsync stays off, since the size
 * of the file is part of what fdatasync keeps. That it need not change with every group, runway.c
 * cares for: RocksDB reserves blocks ahead, but not size, and reused logs would be the other way.
 */
#include "base/check.h"
#include "store/rocks/inside.h"

#define MEMTABLE_BYTES_BEST                                                                        \
    (64ULL << 20) /* larger saves nothing, smaller writes more table files */
#define MEMTABLES_MAX                                                                              \
    3 /* per family: one fills, one is written out, one more before commits must wait */
#define MEMTABLE_BYTES_LEAST (1ULL << 20)
#define INFO_LOG_FATAL       4 /* nothing that RocksDB says has this level */
#define FILTER_BITS          10

static size_t
memtable_bytes(const struct rocks_options *options)
{
    uint64_t all =
        options->memtable_bytes_max == 0 ? ROCKS_MEMTABLE_BYTES : options->memtable_bytes_max;
    uint64_t each = all / (FAMILY_COUNT * MEMTABLES_MAX);
    if (each > MEMTABLE_BYTES_BEST)
        return MEMTABLE_BYTES_BEST;
    return each < MEMTABLE_BYTES_LEAST ? MEMTABLE_BYTES_LEAST : each;
}

/* Some options have no function in the C interface, only a name. */
static void
set_by_name(rocksdb_options_t **options, const char *text)
{
    char *failure = NULL;
    rocksdb_options_t *changed = rocksdb_options_create();
    rocksdb_get_options_from_string(*options, text, changed, &failure);
    check_that(failure == NULL, "%s: %s", text, failure);
    rocksdb_options_destroy(*options);
    *options = changed;
}

static void
set_durability(rocksdb_options_t *options)
{
    /* A record that the file ends in is dropped; a bad checksum refuses to open. The other modes
     * are worse: "point in time" silently drops everything behind a damaged record, acknowledged or
     * not, and "absolute" does not open after a power cut. What "tolerate" cannot tell apart, wal.c
     * has judged before. */
    rocksdb_options_set_wal_recovery_mode(options,
                                          rocksdb_tolerate_corrupted_tail_records_recovery);
    rocksdb_options_set_recycle_log_file_num(options, 0);
    /* Sizes of table files are compared with the manifest at opening, and reads check every block.
     */
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(options, 0);
}

static void
set_work(rocksdb_options_t *options)
{
    /* One thread writes: a memtable that several may write at once costs and brings nothing. */
    rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    rocksdb_options_set_enable_write_thread_adaptive_yield(options, 0);
    /* A flush and compactions beside each other; more would take the two cores away from the loops.
     */
    rocksdb_options_set_max_background_jobs(options, 3);
    /* Hand table files to the disk while they are written: a sync of the log must not queue behind
     * 64 MB of them. */
    rocksdb_options_set_bytes_per_sync(options, 1 << 20);
    rocksdb_options_compaction_readahead_size(options, 2 << 20);
}

static void
set_files(rocksdb_options_t *options)
{
    /* Every table file is opened at the start, so that a missing one is found then. */
    rocksdb_options_set_max_open_files(options, -1);
    rocksdb_options_set_max_file_opening_threads(options, 4);
    /* The kernel may read ahead: RocksDB does so by itself for tables, but not for large values. 25
     * cold ranges of 40 values of 16 KB took 90 ms without, 23 with it. It does so once it sees an
     * order, so not for single rows at random. */
    rocksdb_options_set_advise_random_on_open(options, 0);
    /* Logs held back by a family that gets few writes: at this size it is flushed. Bounds replay
     * time too. */
    rocksdb_options_set_max_total_wal_size(options, 256ULL << 20);
    rocksdb_options_set_max_manifest_file_size(options, 16 << 20);
    /* No diary of RocksDB's own. Debian builds it with its asserts on, and one of them ends the
     * process when a line cannot be written: a full disk would then kill where it should be
     * reported. What matters is in our log. */
    rocksdb_options_set_info_log_level(options, INFO_LOG_FATAL);
    rocksdb_options_set_max_log_file_size(options, 0);
    rocksdb_options_set_keep_log_file_num(options, 1);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
}

static void
set_tables(struct setup *setup, rocksdb_options_t *options)
{
    rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(tables, setup->cache);
    /* Indexes and filters count in the cache: memory stays what was configured, however large the
     * store is. Level 0 is pinned, it is read by every miss. */
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(tables, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(tables, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(tables, 1);
    /* A row that is not there (a start asks for its workflow id) costs no disk read. */
    rocksdb_block_based_options_set_filter_policy(
        tables, rocksdb_filterpolicy_create_bloom_full(FILTER_BITS));
    rocksdb_block_based_options_set_whole_key_filtering(tables, 1);
    rocksdb_block_based_options_set_block_size(tables, 8 << 10);
    rocksdb_block_based_options_set_format_version(tables, 5);
    rocksdb_options_set_block_based_table_factory(options, tables);
    rocksdb_block_based_options_destroy(tables);
}

/* LZ4 halves history at almost no CPU; the two youngest levels are rewritten soon and stay plain.
 */
static void
set_levels(rocksdb_options_t *options)
{
    static const int compression[] = {
        rocksdb_no_compression,  rocksdb_no_compression,  rocksdb_lz4_compression,
        rocksdb_lz4_compression, rocksdb_lz4_compression, rocksdb_lz4_compression,
        rocksdb_lz4_compression,
    };
    rocksdb_options_set_compression_per_level(options, compression, array_length(compression));
    rocksdb_options_set_num_levels(options, array_length(compression));
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_max_bytes_for_level_base(options, 4 * MEMTABLE_BYTES_BEST);
    rocksdb_options_set_target_file_size_base(options, MEMTABLE_BYTES_BEST);
    /* Every table of level 0 overlaps all of the level below, which is rewritten with them: half
     * as often with 8 of them as with 4, a fifth less CPU for compaction (16 KB payloads, 1.4 GB).
     * A row that is not there costs a filter more per table, not to be seen in a workflow's CPU. */
    rocksdb_options_set_level0_file_num_compaction_trigger(options, 8);
    /* Commits slow down late and stop very late: level 0 may hold what minutes of load flush. */
    rocksdb_options_set_level0_slowdown_writes_trigger(options, 24);
    rocksdb_options_set_level0_stop_writes_trigger(options, 48);
}

/* The memtable is a skiplist that remembers, for each beginning of a key, where it inserted last:
 * most rows come in order, so most inserts search little. CPU per commit at 256 in flight: hash of
 * lists 36 us, plain skiplist 31, this 25. And it has none of the hash's traps: backward, across
 * prefixes, and in total order a pass is right.
 *
 * How much of a key is its beginning: 6 bytes are kind and shard. Histories have random places in a
 * shard and grow where they are: with a byte of the tree's id, runs that are under way mostly have
 * a place each. Wake-up timers lie at their time: with its first 3 bytes (of 18 minutes each) a
 * time-out of seconds and one of hours are not looked for from each other's place; rows with a
 * number or a domain's id there stay together. Comparisons per row, workflows at 64 in flight: 63
 * with 6 bytes, 50 with these. More bytes bring nothing (a run's first row has to search) and take
 * memory, a quarter of a kilobyte for each beginning. */
static const char *const hints[FAMILY_COUNT] = {
    [FAMILY_ORDERED] = "memtable_insert_with_hint_prefix_extractor=fixed:7",
    [FAMILY_FORWARD] = "memtable_insert_with_hint_prefix_extractor=fixed:9",
};

static rocksdb_options_t *
new_family(struct setup *setup, unsigned family)
{
    check(family < FAMILY_COUNT);
    rocksdb_options_t *made = rocksdb_options_create();
    rocksdb_options_set_write_buffer_size(made, setup->memtable_bytes);
    rocksdb_options_set_max_write_buffer_number(made, MEMTABLES_MAX);
    set_tables(setup, made);
    set_levels(made);
    if (family == FAMILY_ORDERED) /* rows of the other are overwritten before they are flushed */
        large_set_up(setup, made);
    set_by_name(&made, hints[family]);
    return made;
}

void
setup_init(struct setup *setup, const struct rocks_options *options)
{
    rocksdb_options_t *database = rocksdb_options_create();
    /* After a failed write RocksDB would try to resume by itself; here only a new opening makes it
     * good again. (When the disk was full it still flushes once there is room: rows that were
     * durable before, so nothing that replay would not show.) And the one who releases the last
     * view of an old table would unlink the file there and then, on a loop: a thread of RocksDB
     * does. */
    set_by_name(&database, "max_bgerror_resume_count=0;avoid_unnecessary_blocking_io=true");
    set_durability(database);
    set_work(database);
    set_files(database);
    setup->database = database;
    uint64_t cache = options->cache_bytes_max == 0 ? ROCKS_CACHE_BYTES : options->cache_bytes_max;
    setup->cache = rocksdb_cache_create_lru(cache);
    setup->memtable_bytes = memtable_bytes(options);
    for (unsigned family = 0; family < FAMILY_COUNT; family++)
        setup->family[family] = new_family(setup, family);
}

void
setup_free(struct setup *setup)
{
    for (unsigned family = 0; family < FAMILY_COUNT; family++)
        rocksdb_options_destroy(setup->family[family]);
    rocksdb_options_destroy(setup->database);
    rocksdb_cache_destroy(setup->cache);
}

void
setup_stop_at_torn_end(struct setup *setup)
{
    /* Everything behind a bad record is dropped, and wal.c knows that there is nothing. */
    rocksdb_options_set_wal_recovery_mode(setup->database, rocksdb_point_in_time_recovery);
}

rocksdb_t *
setup_open(const struct setup *setup, const char *database, bool is_inspection,
           rocksdb_column_family_handle_t *family[FAMILY_COUNT], char **failure)
{
    const char *names[FAMILY_COUNT];
    const rocksdb_options_t *options[FAMILY_COUNT];
    for (unsigned i = 0; i < FAMILY_COUNT; i++) {
        names[i] = layout_family_name(i);
        options[i] = setup->family[i];
    }
    if (is_inspection)
        return rocksdb_open_for_read_only_column_families(setup->database, database, FAMILY_COUNT,
                                                          names, options, family, 0, failure);
    return rocksdb_open_column_families(setup->database, database, FAMILY_COUNT, names, options,
                                        family, failure);
}

uint64_t
tables_property(const struct tables *tables, unsigned family, const char *name)
{
    uint64_t number = 0;
    int failed = rocksdb_property_int_cf(tables->db, tables->family[family], name, &number);
    check_that(failed == 0, "no property %s", name);
    return number;
}

struct error *
setup_oldest_log(const char *database, struct arena *arena, uint64_t *number)
{
    struct setup setup;
    setup_init(&setup, &(struct rocks_options){0});
    setup_stop_at_torn_end(&setup);
    rocksdb_column_family_handle_t *family[FAMILY_COUNT];
    char *failure = NULL;
    rocksdb_t *db = setup_open(&setup, database, true, family, &failure);
    if (failure == NULL) {
        int failed = rocksdb_property_int(db, "rocksdb.min-log-number-to-keep", number);
        check(failed == 0);
        for (unsigned i = 0; i < FAMILY_COUNT; i++)
            rocksdb_column_family_handle_destroy(family[i]);
        rocksdb_close(db);
    }
    setup_free(&setup);
    return failure == NULL ? NULL : setup_error(arena, failure, "look for the oldest log");
}

void
setup_thread(void)
{
    rocksdb_set_perf_level(rocksdb_disable);
}

struct error *
setup_error(struct arena *arena, char *failure, const char *doing)
{
    check(failure != NULL);
    enum error_kind kind = ERR_UNAVAILABLE;
    if (strncmp(failure, "Corruption", 10) == 0)
        kind = ERR_CORRUPT;
    else if (strncmp(failure, "IO error", 8) == 0)
        kind = ERR_IO;
    struct error *err = error_new(arena, kind, "%s: %s", doing, failure);
    rocksdb_free(failure);
    return err;
}
