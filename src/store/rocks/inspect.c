/* inspect.c - looks into a folder that nobody has open: what is in it, and whether all of it is
 * good.
 *
 * The folder is locked, its log judged as at a start, and opened for reading only: RocksDB replays
 * the log in memory and writes nothing. An unfinished last write is mentioned, and is not a
 * problem. Then one pass over each family counts and, for a check, judges every row. Guards are
 * kind 0 and come first, so the set of partitions that may have rows is known before the first row.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

#define LEVELS_MAX 16

struct inspection {
    struct arena *arena;   /* the caller's: results */
    struct arena *scratch; /* of one row */
    struct folder *folder;
    bool is_check;
    struct store_check *result;
    struct setup setup;
    struct tables tables;
    struct fresh *fresh;    /* what the ledger has */
    struct map *partitions; /* keys of those with a guard */
    vector_of(const char *) sentences;
    struct error *err;
};

static void complain(struct inspection *inspection, const char *format, ...) printf_like(2, 3);

static void
complain(struct inspection *inspection, const char *format, ...)
{
    inspection->result->problems++;
    if (inspection->sentences.count >= STORE_PROBLEMS_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vector_push_in(&inspection->sentences, inspection->arena,
                   arena_vformat(inspection->arena, format, arguments));
    va_end(arguments);
}

/* --- rows ------------------------------------------------------------------------------------- */

#define SHOWN_MAX 40 /* bytes of a key in a sentence */

static const char *
show_key(struct slice key, struct arena *arena)
{
    size_t shown = key.length > SHOWN_MAX ? SHOWN_MAX : key.length;
    char *text = arena_alloc(arena, shown * 2 + 4);
    for (size_t i = 0; i < shown; i++) {
        static const char digits[] = "0123456789abcdef";
        text[2 * i] = digits[key.data[i] >> 4];
        text[2 * i + 1] = digits[key.data[i] & 15];
    }
    memcpy(text + 2 * shown, shown < key.length ? "..." : "", shown < key.length ? 4 : 1);
    return text;
}

static void
judge_guard(struct inspection *inspection, struct slice key, struct partition partition,
            struct slice value)
{
    uint64_t guard;
    if (!layout_guard_read(value, &guard) || guard == 0)
        complain(inspection, "%s has an invalid guard (%zu bytes)",
                 partition_name(partition, inspection->scratch), value.length);
    map_put(inspection->partitions, slice_skip(key, 1), inspection);
    inspection->result->partitions++;
    const struct folder_identity *identity = &inspection->folder->identity;
    if (partition.kind == PARTITION_SHARD && partition.number >= identity->shard_count)
        complain(inspection, "there is a shard %" PRIu32 ", but only %" PRIu32 " were made",
                 partition.number, identity->shard_count);
}

static void
judge_row(struct inspection *inspection, unsigned family, struct slice key, struct slice value)
{
    unsigned kind;
    struct partition partition;
    struct slice rest = key;
    const char *complaint = layout_take(&rest, inspection->scratch, &kind, &partition);
    if (complaint != NULL) {
        complain(inspection, "row %s of family %s has %s", show_key(key, inspection->scratch),
                 layout_family_name(family), complaint);
        return;
    }
    if ((kind == LAYOUT_GUARD ? FAMILY_ORDERED : layout_family(kind)) != family)
        complain(inspection, "row %s of kind %u is in family %s",
                 show_key(key, inspection->scratch), kind, layout_family_name(family));
    if (kind == LAYOUT_GUARD) {
        judge_guard(inspection, key, partition, value);
        return;
    }
    struct slice partition_bytes = slice_of(key.data + 1, key.length - 1 - rest.length);
    if (map_get(inspection->partitions, partition_bytes) == NULL)
        complain(inspection, "row %s: %s has rows and no guard", show_key(key, inspection->scratch),
                 partition_name(partition, inspection->scratch));
}

static void
inspect_row(struct inspection *inspection, unsigned family, struct slice key, struct slice value)
{
    struct store_info *info = &inspection->result->info;
    check(info->kind_count == ROW_KIND_END);
    if (key.length > 0 && key.data[0] < info->kind_count) {
        info->kinds[key.data[0]].rows++;
        info->kinds[key.data[0]].bytes += key.length + value.length;
    }
    inspection->result->rows++;
    if (inspection->is_check)
        judge_row(inspection, family, key, value);
    arena_reset(inspection->scratch);
}

/* What the ledger has for one family, beside its tables. */
static void
read_fresh(struct inspection *inspection, unsigned family, struct fresh_scan *fresh_rows)
{
    static const uint8_t first = LAYOUT_GUARD, end = LAYOUT_LEDGER;
    *fresh_rows =
        (struct fresh_scan){.from = slice_of(&first, 1), .to = slice_of(&end, 1), .prefix = 1};
    fresh_scan_begin(inspection->fresh, fresh_rows, inspection->arena);
    fresh_scan_made(inspection->fresh);
    size_t kept = 0;
    for (size_t i = 0; i < fresh_rows->count; i++)
        if (layout_family_of(fresh_rows->row[i].key) == family)
            fresh_rows->row[kept++] = fresh_rows->row[i];
    fresh_rows->count = kept;
}

static void
inspect_family(struct inspection *inspection, unsigned family)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    rocksdb_iterator_t *rows = rocksdb_create_iterator_cf(inspection->tables.db, options,
                                                          inspection->tables.family[family]);
    struct fresh_scan fresh;
    read_fresh(inspection, family, &fresh);
    struct row_merge row_merge = {.tables = rows, .fresh = &fresh};
    struct slice key, value;
    rocksdb_iter_seek_to_first(rows);
    while (row_merge_next(&row_merge, &key, &value))
        if (family != FAMILY_FORWARD || key.length == 0 || key.data[0] != LAYOUT_LEDGER)
            inspect_row(inspection, family, key, value);
    if (row_merge.failure != NULL)
        complain(inspection, "family %s cannot be read to its end: %s", layout_family_name(family),
                 row_merge.failure);
    rocksdb_free(row_merge.failure);
    fresh_scan_end(inspection->fresh, &fresh);
    rocksdb_iter_destroy(rows);
    rocksdb_readoptions_destroy(options);
}

/* --- files ------------------------------------------------------------------------------------ */

static void
inspect_levels(struct inspection *inspection, unsigned family)
{
    struct store_info *info = &inspection->result->info;
    rocksdb_column_family_metadata_t *traits = rocksdb_get_column_family_metadata_cf(
        inspection->tables.db, inspection->tables.family[family]);
    size_t count = rocksdb_column_family_metadata_get_level_count(traits);
    check(count <= LEVELS_MAX && info->level_count + count <= FAMILY_COUNT * LEVELS_MAX);
    for (size_t i = 0; i < count; i++) {
        rocksdb_level_metadata_t *level =
            rocksdb_column_family_metadata_get_level_metadata(traits, i);
        uint64_t files = rocksdb_level_metadata_get_file_count(level);
        if (files > 0)
            info->levels[info->level_count++] =
                (struct store_level){.family = layout_family_name(family),
                                     .level = rocksdb_level_metadata_get_level(level),
                                     .files = files,
                                     .bytes = rocksdb_level_metadata_get_size(level)};
        info->table_files += files;
        info->table_bytes += rocksdb_level_metadata_get_size(level);
        rocksdb_level_metadata_destroy(level);
    }
    rocksdb_column_family_metadata_destroy(traits);
}

/* Values that lie in files of their own. */
static struct error *
inspect_large(struct inspection *inspection)
{
    struct store_info *info = &inspection->result->info;
    struct large_stats traits = large_count(&inspection->tables);
    info->large_files = traits.files;
    info->large_bytes = traits.bytes;
    info->large_dead_bytes = traits.dead;
    return large_judge(&inspection->tables, inspection->folder->database, inspection->arena);
}

static void
info_init(struct inspection *inspection)
{
    struct store_info *info = &inspection->result->info;
    const struct folder_identity *identity = &inspection->folder->identity;
    struct arena *arena = inspection->arena;
    *info = (struct store_info){.format = identity->format,
                                .cluster_name = arena_text(arena, identity->cluster_name),
                                .shard_count = identity->shard_count,
                                .memory = folder_memory(inspection->folder),
                                .was_closed = identity->was_closed,
                                .kind_count = ROW_KIND_END};
    info->levels = arena_zalloc(arena, FAMILY_COUNT * LEVELS_MAX, sizeof *info->levels);
    info->kinds = arena_zalloc(arena, ROW_KIND_END, sizeof *info->kinds);
    info->kinds[LAYOUT_GUARD].name = "guard";
    for (unsigned kind = 1; kind < ROW_KIND_END; kind++)
        info->kinds[kind].name = row_traits(kind) == NULL ? "?" : row_traits(kind)->name;
}

/* Judges the log as the server would. False: the server would refuse it. */
static bool
inspect_logs(struct inspection *inspection)
{
    struct wal_report logs;
    struct store_info *info = &inspection->result->info;
    struct error *err = wal_judge(inspection->folder, inspection->arena, &logs);
    if (err != NULL && inspection->is_check)
        complain(inspection, "%s", err->message);
    else
        inspection->err = err;
    info->log_files = logs.files;
    info->log_bytes = logs.bytes;
    if (err != NULL || logs.torn_file == NULL)
        return err == NULL;
    info->torn_bytes = logs.torn_bytes;
    info->note = arena_format(inspection->arena,
                              "log %s ends in an unfinished write of %" PRIu64
                              " bytes, which the next start sets aside",
                              logs.torn_file, logs.torn_bytes);
    setup_stop_at_torn_end(&inspection->setup);
    return true;
}

/* The server would not open it either. */
static void
refuse(struct inspection *inspection, struct error *err)
{
    if (inspection->is_check)
        complain(inspection, "%s", err->message);
    else
        inspection->err = err;
}

/* Blocks. */
static void
inspect(void *argument)
{
    struct inspection *inspection = argument;
    info_init(inspection);
    if (!inspection->folder->identity.is_made || !inspect_logs(inspection))
        return;
    char *failure = NULL;
    inspection->tables.db = setup_open(&inspection->setup, inspection->folder->database, true,
                                       inspection->tables.family, &failure);
    if (failure != NULL) {
        refuse(inspection, setup_error(inspection->arena, failure, "open the database"));
        return;
    }
    struct error *err = inspect_large(inspection);
    if (err != NULL)
        refuse(inspection, err);
    bool is_whole = ledger_replay(&inspection->tables, inspection->fresh, NULL, NULL, &failure);
    if (!is_whole)
        refuse(inspection, setup_error(inspection->arena, failure, "read the ledger"));
    inspection->result->info.sequence = rocksdb_get_latest_sequence_number(inspection->tables.db);
    for (unsigned family = 0; family < FAMILY_COUNT; family++) {
        inspect_levels(inspection, family);
        if (is_whole)
            inspect_family(inspection, family);
        rocksdb_column_family_handle_destroy(inspection->tables.family[family]);
    }
    rocksdb_close(inspection->tables.db);
}

static struct error *
inspect_folder(struct folder *folder, bool is_check, struct arena *arena,
               struct store_check *result)
{
    struct inspection inspection = {
        .arena = arena, .folder = folder, .is_check = is_check, .result = result};
    struct rocks_options options = {.path = folder->path};
    inspection.scratch = arena_new(0);
    inspection.partitions = map_new();
    inspection.fresh = fresh_new();
    setup_init(&inspection.setup, &options);
    struct error *err = pool_run(inspect, &inspection, arena);
    setup_free(&inspection.setup);
    map_free(inspection.partitions);
    fresh_free(inspection.fresh);
    arena_free(inspection.scratch);
    result->sentence = inspection.sentences.items;
    return err != NULL ? err : inspection.err;
}

static struct error *
inspection_run(const char *path, bool is_check, struct arena *arena, struct store_check *result)
{
    struct folder *folder;
    *result = (struct store_check){.rows = 0};
    struct error *err = folder_open(path, NULL, arena, &folder);
    if (err != NULL)
        return err;
    err = inspect_folder(folder, is_check, arena, result);
    folder_close(folder);
    return err;
}

struct error *
inspect_backup(const char *path, const struct folder_identity *identity, struct arena *arena)
{
    struct store_check result = {.rows = 0};
    struct folder folder = {.path = arena_text(arena, path),
                            .database = folder_join(arena, path, "rocks"),
                            .identity = *identity};
    struct error *err = inspect_folder(&folder, true, arena, &result);
    if (err != NULL || result.problems == 0)
        return err;
    return error_new(arena, ERR_CORRUPT,
                     "what was copied is damaged, and was not kept (%" PRIu64
                     " problems: %s). Keep "
                     "the last backup that is whole",
                     result.problems, result.sentence[0]);
}

struct error *
rocks_info(const char *path, struct arena *arena, struct store_info *info)
{
    struct store_check result;
    struct error *err = inspection_run(path, false, arena, &result);
    *info = result.info;
    return err;
}

struct error *
rocks_check(const char *path, struct arena *arena, struct store_check *result)
{
    return inspection_run(path, true, arena, result);
}
