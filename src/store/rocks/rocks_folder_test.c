/* rocks_folder_test.c - what a data folder refuses, what it says then, and what looking into one
 * finds. */
#include <fcntl.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/rocks/test_crash.h"
#include "store/rocks/test_fixture.h"

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    check_that(file != NULL, "%s", path);
    fputs(text, file);
    fclose(file);
}

/* Opens and expects an error of that kind whose sentence has the words in it. */
static void
expect_refused(struct rocks_fixture *rocks_fixture, const struct rocks_options *options, int kind,
               const char *words)
{
    struct store *store;
    struct error *err = rocks_open(options, rocks_fixture->arena, &store);
    EXPECT_KIND(err, kind);
    if (strstr(err->message, words) == NULL)
        TEST_FAIL("\"%s\" does not say \"%s\"", err->message, words);
}

static void
make_and_close(struct rocks_fixture *rocks_fixture)
{
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    EXPECT_OK(rocks_open(&options, rocks_fixture->arena, &store));
    store_close(store);
}

/* ---- identity ---- */

ROCKS_TEST(rocks_folder, another_cluster_name_or_shard_count_is_refused)
{
    make_and_close(rocks_fixture);
    make_and_close(rocks_fixture); /* the same again is fine */
    struct rocks_options options = load_options(rocks_fixture->data);
    options.cluster_name = "other";
    expect_refused(rocks_fixture, &options, ERR_BAD_REQUEST,
                   "belongs to cluster \"cluster0\", not to \"other\"");
    options = load_options(rocks_fixture->data);
    options.shard_count = 8;
    expect_refused(rocks_fixture, &options, ERR_BAD_REQUEST, "was made with 16 shards, not 8");
}

ROCKS_TEST(rocks_folder, a_newer_format_and_a_damaged_identity_are_refused)
{
    make_and_close(rocks_fixture);
    struct rocks_options options = load_options(rocks_fixture->data);
    char *identity = arena_format(rocks_fixture->arena, "%s/CADENZA", rocks_fixture->data);
    write_file(identity, "cadenza data folder, format 4\nshards: many\n");
    expect_refused(rocks_fixture, &options, ERR_BAD_REQUEST, "has format 4");
    static const char *const damaged[] = {
        "",
        "cadenza data folder, format 1",
        "cadenza data folder, format x\n",
        "cadenza data folder, format 1\ncluster: cluster0\nshards: 0\ndatabase: made\n",
        "cadenza data folder, format 1\ncluster: cluster0\nshards: 16\ndatabase: lost\n",
    };
    for (size_t i = 0; i < array_length(damaged); i++) {
        write_file(identity, damaged[i]);
        expect_refused(rocks_fixture, &options, ERR_CORRUPT, "is damaged");
    }
}

/* Nothing is written into a folder of somebody else. A mount's lost+found is nobody. */
ROCKS_TEST(rocks_folder, a_folder_of_somebody_else_is_refused_and_left_alone)
{
    int failed = mkdir(rocks_fixture->data, 0700);
    check(failed == 0);
    struct rocks_options options = load_options(rocks_fixture->data);
    char *letter = arena_format(rocks_fixture->arena, "%s/letter.txt", rocks_fixture->data);
    write_file(letter, "dear");
    expect_refused(rocks_fixture, &options, ERR_BAD_REQUEST, "it holds \"letter.txt\"");
    EXPECT(access(arena_format(rocks_fixture->arena, "%s/cadenza.lock", rocks_fixture->data),
                  F_OK) != 0);
    struct store_info info;
    EXPECT_KIND(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info), ERR_BAD_REQUEST);
    unlink(letter);
    failed = mkdir(arena_format(rocks_fixture->arena, "%s/lost+found", rocks_fixture->data), 0700);
    check(failed == 0);
    make_and_close(rocks_fixture);
    rocks_fixture->data = arena_format(rocks_fixture->arena, "%s/file", rocks_fixture->folder);
    write_file(rocks_fixture->data, "a file");
    options = load_options(rocks_fixture->data);
    struct store *store;
    EXPECT_KIND(rocks_open(&options, rocks_fixture->arena, &store), ERR_IO);
}

ROCKS_TEST(rocks_folder, a_folder_is_open_once_and_names_who_has_it)
{
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    EXPECT_OK(rocks_open(&options, rocks_fixture->arena, &store));
    char *words = arena_format(rocks_fixture->arena, "is in use by process %ld", (long)getpid());
    expect_refused(rocks_fixture, &options, ERR_BUSY, words);
    struct store_info info;
    EXPECT_KIND(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info), ERR_BUSY);
    struct store_check check;
    EXPECT_KIND(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check), ERR_BUSY);
    store_close(store);
    make_and_close(rocks_fixture);
}

/* ---- damage ---- */

/* A folder as a killed process leaves it: acknowledged steps in the log, or in table files too. */
static void
make_victim(struct crash_fixture *crash_fixture, uint64_t acks)
{
    crash_begin(crash_fixture, 4, UINT64_MAX / 2);
    struct crash_run run = {.kill_after = acks};
    EXPECT_EQ(crash_run(crash_fixture, &run), CRASH_KILLED);
    rocks_fixture_drop_runway(
        rocks_fixture_find_file(crash_fixture->arena, crash_fixture->data, ".log"));
}

static char *
find_file(struct crash_fixture *crash_fixture, const char *ending)
{
    return rocks_fixture_find_file(crash_fixture->arena, crash_fixture->data, ending);
}

/* Changes one byte; a negative place counts from the end. */
static void
flip_byte(const char *path, long rocks_fixture)
{
    FILE *file = fopen(path, "r+");
    check(file != NULL);
    fseek(file, rocks_fixture, rocks_fixture < 0 ? SEEK_END : SEEK_SET);
    long at = ftell(file);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x40, file);
    fclose(file);
}

static long
size_of(const char *path)
{
    struct stat traits;
    int failed = stat(path, &traits);
    check(failed == 0);
    return traits.st_size;
}

static void
cut_file(const char *path, long bytes)
{
    int failed = truncate(path, size_of(path) - bytes);
    check(failed == 0);
}

/* The last group may be missing, though it was acknowledged: that is the damage. No more. */
static void
forgive_a_group(struct crash_fixture *crash_fixture)
{
    EXPECT(crash_fixture->acked[0] > LOAD_IN_FLIGHT);
    for (size_t i = 0; i < crash_fixture->shards; i++)
        crash_fixture->acked[i] -=
            crash_fixture->acked[i] < LOAD_IN_FLIGHT ? crash_fixture->acked[i] : LOAD_IN_FLIGHT;
}

/* The log ends inside the last record, at every length of its last bytes: opens, whole up to some
 * step. */
TEST(rocks_damage, a_torn_last_record_is_set_aside_and_the_rest_is_whole)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 60);
    char *log = find_file(&crash_fixture, ".log");
    static const long cuts[] = {1, 2, 6, 7, 40, 200};
    for (size_t i = 0; i < array_length(cuts); i++) {
        char *saved = arena_format(crash_fixture.arena, "cp -a '%s' '%s.saved'", crash_fixture.data,
                                   crash_fixture.data);
        EXPECT_EQ(system(saved), 0);
        cut_file(log, cuts[i]);
        uint64_t acked[LOAD_SHARDS_MAX];
        memcpy(acked, crash_fixture.acked, sizeof acked);
        forgive_a_group(&crash_fixture);
        EXPECT_TEXT(crash_judge(&crash_fixture, NULL), NULL);
        memcpy(crash_fixture.acked, acked, sizeof acked);
        EXPECT(access(arena_format(crash_fixture.arena, "%s/torn", crash_fixture.data), F_OK) == 0);
        char *back = arena_format(crash_fixture.arena, "rm -r '%s' && mv '%s.saved' '%s'",
                                  crash_fixture.data, crash_fixture.data, crash_fixture.data);
        EXPECT_EQ(system(back), 0);
    }
    crash_end(&crash_fixture);
}

/* Expects that the folder does not open, and how. */
static void
expect_closed(struct crash_fixture *crash_fixture, int kind, const char *words)
{
    struct error *err;
    EXPECT_TEXT(crash_judge(crash_fixture, &err), NULL);
    EXPECT_KIND(err, kind);
    if (strstr(err->message, words) == NULL)
        TEST_FAIL("\"%s\" does not say \"%s\"", err->message, words);
    crash_end(crash_fixture);
}

TEST(rocks_damage, a_damaged_last_record_refuses_to_open)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 60);
    flip_byte(find_file(&crash_fixture, ".log"), -3);
    expect_closed(&crash_fixture, ERR_CORRUPT, "no power cut leaves it so");
}

TEST(rocks_damage, damage_inside_the_log_refuses_to_open)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 60);
    char *log = find_file(&crash_fixture, ".log");
    flip_byte(log, size_of(log) / 3);
    expect_closed(&crash_fixture, ERR_CORRUPT, "writes that were acknowledged are lost");
}

TEST(rocks_damage, a_hole_of_zeros_inside_the_log_refuses_to_open)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 60);
    char *log = find_file(&crash_fixture, ".log");
    int file = open(log, O_WRONLY);
    static const char zeros[4096];
    ssize_t written = pwrite(file, zeros, sizeof zeros, 8192);
    EXPECT_EQ(written, sizeof zeros);
    close(file);
    expect_closed(&crash_fixture, ERR_CORRUPT, "is damaged at byte");
}

TEST(rocks_damage, a_missing_log_refuses_to_open)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 60);
    char *remove_logs =
        arena_format(crash_fixture.arena, "rm '%s'/rocks/*.log", crash_fixture.data);
    EXPECT_EQ(system(remove_logs), 0);
    expect_closed(&crash_fixture, ERR_CORRUPT, "is missing");
}

static void
expect_missing_found(const char *ending, const char *words)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 3000);
    unlink(find_file(&crash_fixture, ending));
    expect_closed(&crash_fixture, ERR_CORRUPT, words);
}

static void
expect_cut_found(const char *ending, const char *words)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 3000);
    cut_file(find_file(&crash_fixture, ending), 100);
    expect_closed(&crash_fixture, ERR_CORRUPT, words);
}

TEST(rocks_damage, a_missing_table_refuses_to_open)
{
    expect_missing_found(".sst", "No such file");
}

TEST(rocks_damage, a_cut_table_refuses_to_open)
{
    expect_cut_found(".sst", ".sst");
}

/* RocksDB itself would say so when a row is read whose value was in it. */
TEST(rocks_damage, a_missing_or_cut_file_of_large_values_refuses_to_open)
{
    expect_missing_found(".blob", "files with large values");
    expect_cut_found(".blob", "files with large values");
}

/* A database that was deleted, or whose first file was, does not become an empty store. */
TEST(rocks_damage, a_database_that_is_gone_is_not_replaced)
{
    static const char *const targets[] = {"rocks/CURRENT", "rocks/MANIFEST-*", "rocks"};
    for (size_t i = 0; i < array_length(targets); i++) {
        struct crash_fixture crash_fixture;
        make_victim(&crash_fixture, 20);
        char *command =
            arena_format(crash_fixture.arena, "rm -r '%s'/%s", crash_fixture.data, targets[i]);
        EXPECT_EQ(system(command), 0);
        struct error *err;
        crash_judge(&crash_fixture, &err);
        EXPECT(err != NULL);
        crash_end(&crash_fixture);
    }
}

/* ---- looking ---- */

struct looking {
    struct crash_fixture *crash_fixture;
    struct store_check check;
    struct error *err;
};

static void
fresh_rows(void *argument)
{
    struct looking *looking = argument;
    looking->err =
        rocks_check(looking->crash_fixture->data, looking->crash_fixture->arena, &looking->check);
}

static void
check_folder(struct looking *looking)
{
    linux_run(&(struct linux_options){.loops = 1, .pool_threads = 1}, fresh_rows, looking);
}

/* A killed process left its log behind: it is read, and nothing in the folder changes. */
TEST(rocks_look, a_check_of_a_killed_store_finds_all_good_and_writes_nothing)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 3000);
    char *log = find_file(&crash_fixture, ".log");
    long size = size_of(log);
    struct looking looking = {.crash_fixture = &crash_fixture};
    check_folder(&looking);
    EXPECT_OK(looking.err);
    EXPECT_EQ(looking.check.problems, 0);
    EXPECT_EQ(looking.check.partitions, 4);
    const struct store_info *info = &looking.check.info;
    EXPECT(info->format == 3 && info->shard_count == 16 && !info->was_closed);
    EXPECT(info->memory == STORE_WHOLE);
    EXPECT_TEXT(info->cluster_name, "cluster0");
    EXPECT(info->log_files > 0 && info->log_bytes > 0 && info->table_files > 0);
    EXPECT(info->level_count > 0 && info->sequence > 0);
    EXPECT(info->kinds[ROW_RUN].rows >= crash_fixture.acked[0] && info->kinds[ROW_RUN].bytes > 0);
    EXPECT_EQ(info->kinds[ROW_SHARD].rows, 4);
    EXPECT_EQ(size_of(log), size);
    EXPECT_TEXT(crash_judge(&crash_fixture, NULL), NULL);
    crash_end(&crash_fixture);
}

TEST(rocks_look, a_check_finds_a_flipped_byte_in_a_table)
{
    struct crash_fixture crash_fixture;
    make_victim(&crash_fixture, 3000);
    char *table = find_file(&crash_fixture, ".sst");
    flip_byte(table, size_of(table) / 3);
    struct looking looking = {.crash_fixture = &crash_fixture};
    check_folder(&looking);
    EXPECT_OK(looking.err);
    EXPECT(looking.check.problems > 0);
    EXPECT(strstr(looking.check.sentence[0], "cannot be read to its end") != NULL);
    crash_end(&crash_fixture);
}

/* Puts a row past the engine, into the first or the second family. */
static void
put_raw_row_in(int family, const char *data, const char *key, size_t length, const char *value)
{
    static const char *const names[] = {"default", "forward"};
    rocksdb_options_t *options = rocksdb_options_create();
    const rocksdb_options_t *each[] = {options, options};
    rocksdb_column_family_handle_t *families[2];
    char *failure = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/rocks", data);
    rocksdb_t *db = rocksdb_open_column_families(options, path, 2, names, each, families, &failure);
    check_that(failure == NULL, "%s", failure);
    rocksdb_writeoptions_t *plain = rocksdb_writeoptions_create();
    rocksdb_put_cf(db, plain, families[family], key, length, value, strlen(value), &failure);
    check_that(failure == NULL, "%s", failure);
    rocksdb_writeoptions_destroy(plain);
    rocksdb_column_family_handle_destroy(families[0]);
    rocksdb_column_family_handle_destroy(families[1]);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static void
put_raw_row(const char *data, const char *key, size_t length, const char *value)
{
    put_raw_row_in(0, data, key, length, value);
}

TEST(rocks_look, a_check_names_rows_that_make_no_sense)
{
    static const struct {
        const char *key;
        size_t length;
        const char *value, *words;
    } rows[] = {
        {"\x63junk", 5, "", "a kind of row that does not exist"},
        {"\x05", 1, "", "no partition in its key"},
        {"\x05\x01", 2, "", "a kind of row that its partition does not have"},
        {"\x05\x03\0\0\0\x09", 6, "", "has rows and no guard"},
        {"\0\x03\0\0\0\x0c", 6, "12345", "an invalid guard (5 bytes)"},
        {"\0\x03\0\0\0\x10", 6, "12345678", "there is a shard 16"},
        {"\x07\x03\0\0\0\x01x", 7, "", "is in family default"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct crash_fixture crash_fixture;
        make_victim(&crash_fixture, 20);
        put_raw_row(crash_fixture.data, rows[i].key, rows[i].length, rows[i].value);
        struct looking looking = {.crash_fixture = &crash_fixture};
        check_folder(&looking);
        EXPECT_OK(looking.err);
        EXPECT_EQ(looking.check.problems, 1);
        if (strstr(looking.check.sentence[0], rows[i].words) == NULL)
            TEST_FAIL("\"%s\" does not say \"%s\"", looking.check.sentence[0], rows[i].words);
        crash_end(&crash_fixture);
    }
}

/* The committer meets it first: it stops, and says why. */
ROCKS_TEST(rocks_damage, a_guard_of_the_wrong_size_fails_the_store)
{
    make_and_close(rocks_fixture);
    put_raw_row(rocks_fixture->data, "\0\x03\0\0\0\x02", 6, "12345");
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    EXPECT_OK(rocks_open(&options, rocks_fixture->arena, &store));
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(2), 1);
    EXPECT_KIND(store_commit(store, batch, 0, rocks_fixture->arena), ERR_OUTCOME_UNKNOWN);
    EXPECT(strstr(store_failure(store), "Corruption: a guard has 5 bytes, not 8") != NULL);
    EXPECT_KIND(store_commit(store, batch, 0, rocks_fixture->arena), ERR_UNAVAILABLE);
    store_close(store);
}

/* Checksums are RocksDB's; this is for whatever else could write there. */
ROCKS_TEST(rocks_damage, a_row_of_the_ledger_that_is_none_refuses_to_open)
{
    static const char *const values[] = {"less than a head", "sixteen bytes...",
                                         "\1\1\1\1\0\0\0\0guard..1key that is too short"};
    make_and_close(rocks_fixture);
    for (size_t i = 0; i < array_length(values); i++) {
        put_raw_row_in(1, rocks_fixture->data, "\xfe\0\0\0\0\0\x01\x02", 8, values[i]);
        struct rocks_options options = load_options(rocks_fixture->data);
        struct store *store;
        struct error *err = rocks_open(&options, rocks_fixture->arena, &store);
        EXPECT_KIND(err, ERR_CORRUPT);
        EXPECT(strstr(err->message, "row 258 of the ledger is not a group of commits") != NULL);
        struct store_check check;
        EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check));
        EXPECT_EQ(check.problems, 1);
        EXPECT(strstr(check.sentence[0], "row 258 of the ledger") != NULL);
    }
}

ROCKS_TEST(rocks_damage, a_flipped_byte_in_a_large_value_is_found)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    uint8_t bytes[10000];
    memset(bytes, 'x', sizeof bytes);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    batch_put(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, 1),
              slice_of(bytes, sizeof bytes));
    batch_put(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, 2),
              slice_of(bytes, sizeof bytes));
    EXPECT_OK(store_commit(store, batch, 0, rocks_fixture->arena));
    store_close(store);
    char *file = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".blob");
    flip_byte(file, size_of(file) * 3 / 4);

    struct store_check result;
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &result));
    EXPECT_EQ(result.problems, 1);
    EXPECT(strstr(result.sentence[0], "cannot be read to its end") != NULL);
    EXPECT(result.info.large_files == 1 && (long)result.info.large_bytes == size_of(file));
    store = rocks_fixture_open(rocks_fixture);
    bool found;
    struct slice value;
    EXPECT_OK(store_get(store, PARTITION_OF_SHARD(1), ROW_HISTORY,
                        rocks_fixture_key(rocks_fixture, 1), rocks_fixture->arena, &found, &value));
    EXPECT(slice_equal(value, slice_of(bytes, sizeof bytes)));
    EXPECT_KIND(store_get(store, PARTITION_OF_SHARD(1), ROW_HISTORY,
                          rocks_fixture_key(rocks_fixture, 2), rocks_fixture->arena, &found,
                          &value),
                ERR_CORRUPT);
    store_close(store);
}

/* The rows of a range delete are looked for before it is written: a block that cannot be read fails
 * the store, and the next opening finds nothing of it. */
ROCKS_TEST(rocks_damage, a_range_that_cannot_be_read_is_not_written)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    uint8_t bytes[1000];
    memset(bytes, 'x', sizeof bytes);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    for (uint64_t i = 0; i < 200; i++)
        batch_put(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, i),
                  slice_of(bytes, sizeof bytes));
    EXPECT_OK(store_commit(store, batch, 0, rocks_fixture->arena));
    store_close(store);
    char *table = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".sst");
    flip_byte(table, size_of(table) / 2);

    store = rocks_fixture_open(rocks_fixture);
    batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    batch_delete_range(batch, ROW_HISTORY, slice_of(NULL, 0), slice_of(NULL, 0));
    EXPECT_KIND(store_commit(store, batch, 1, rocks_fixture->arena), ERR_OUTCOME_UNKNOWN);
    EXPECT(strstr(store_failure(store), "Corruption") != NULL);
    store_close(store);
    store = rocks_fixture_open(rocks_fixture);
    EXPECT_EQ(rocks_fixture_guard(rocks_fixture, store, PARTITION_OF_SHARD(1)), 1);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, 1);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), 1);
    store_close(store);
}
