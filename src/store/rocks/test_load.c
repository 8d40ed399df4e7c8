/* test_load.c - see test_load.h. */
#include "store/rocks/test_load.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/sync.h"
#include "store/key.h"

#define TRANSFERS_LIVE                                                                             \
    8 /* the newest so many outbox rows are there, older ones deleted one by one */
#define HISTORY_STEP                                                                               \
    32 /* every so many steps all older history rows but the last so many are deleted */

struct rocks_options
load_options(const char *path)
{
    return (struct rocks_options){.path = path,
                                  .cluster_name = "cluster0",
                                  .shard_count = LOAD_SHARDS_MAX,
                                  .memtable_bytes_max = 1, /* the least there is */
                                  .cache_bytes_max = 1 << 20,
                                  .fresh_bytes_max = 4096};
}

static struct slice
number_key(uint64_t number, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, number);
    return key_end(&key);
}

/* Bytes that only this step of this shard has. */
static struct slice
step_value(uint32_t shard, uint64_t step, struct arena *arena)
{
    size_t length = 50 + (step * 37 + shard) % 900;
    if (step % 9 == 4)
        length += 2500; /* large enough for the tables at once */
    uint8_t *bytes = arena_alloc(arena, length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(step * 131 + shard * 17 + i * (step % 7 + 1));
    return slice_of(bytes, length);
}

/* ---- running ---- */

struct runner {
    struct load *load;
    uint32_t shard;
    struct latch *latch;
    struct arena *arena;
};

static struct error *
read_count(struct store *store, uint32_t shard, struct arena *arena, uint64_t *count)
{
    bool found;
    struct slice value;
    struct error *err = store_get(store, PARTITION_OF_SHARD(shard), ROW_SHARD, slice_text("count"),
                                  arena, &found, &value);
    *count = 0;
    if (err == NULL && found && !key_take_u64(&value, count))
        err = error_new(arena, ERR_CORRUPT, "the count of shard %" PRIu32 " is invalid", shard);
    return err;
}

static struct batch *
step_batch(uint32_t shard, uint64_t step, uint64_t guard, struct arena *arena)
{
    struct batch *batch = batch_new(arena, PARTITION_OF_SHARD(shard), guard);
    struct slice key = number_key(step, arena), value = step_value(shard, step, arena);
    batch_put(batch, ROW_RUN, key, value);
    batch_put(batch, ROW_TRANSFER, key, slice_text("do"));
    batch_put(batch, ROW_HISTORY, key, value);
    if (step > TRANSFERS_LIVE)
        batch_delete(batch, ROW_TRANSFER, number_key(step - TRANSFERS_LIVE, arena));
    if (step % HISTORY_STEP == 0)
        batch_delete_range(batch, ROW_HISTORY, number_key(0, arena),
                           number_key(step - HISTORY_STEP + 1, arena));
    batch_put(batch, ROW_SHARD, slice_text("count"), key);
    return batch;
}

/* Rows that only fill memtables, one in each column family. */
static void
pad_batch(struct batch *batch, size_t length, struct arena *arena)
{
    if (length == 0)
        return;
    uint8_t *room = arena_alloc(arena, length);
    memset(room, 'p', length); /* no zeros: those would look as if they never came to the disk */
    struct slice bytes = slice_of(room, length);
    batch_put(batch, ROW_CURRENT, slice_text("padding"), bytes);
    batch_put(batch, ROW_DEAD_LETTER, slice_text("padding"), bytes);
}

static void
note_failure(struct load *load, const struct error *err, struct arena *arena)
{
    load->has_failed = true;
    bool is_allowed = err->kind == ERR_OUTCOME_UNKNOWN || err->kind == ERR_UNAVAILABLE ||
                      err->kind == ERR_IO || err->kind == ERR_CORRUPT;
    if (!is_allowed || store_failure(load->store) == NULL)
        load->complaint =
            arena_format(arena, "%s: %s; the store says %s", error_kind_name(err->kind),
                         err->message, store_failure(load->store));
}

static void
note_acked(struct load *load, uint32_t shard, uint64_t step)
{
    if (load->acked[shard] < step)
        load->acked[shard] = step;
    if (load->report != NULL)
        load->report(shard, step);
}

/* Gives the ticket that says that the step is durable: its own, or that of a confirmation behind
 * it. */
static ticket_t
submit_step(struct runner *runner, struct writer *writer, uint64_t step)
{
    struct batch *batch = step_batch(runner->shard, step, writer_guard(writer), runner->arena);
    pad_batch(batch, runner->load->padding, runner->arena);
    ticket_t ticket = writer_submit(writer, batch);
    return step % 2 == 0 ? ticket : writer_confirm(writer);
}

/* Submits all steps, a few ahead of the one it waits for. */
static struct error *
run_steps(struct runner *runner, struct writer *writer, uint64_t first)
{
    struct load *load = runner->load;
    uint64_t ahead = first;
    ticket_t tickets[LOAD_IN_FLIGHT];
    for (uint64_t step = first; step <= load->steps && !load->has_failed; step++) {
        arena_reset(runner->arena);
        for (; ahead <= load->steps && ahead < step + LOAD_IN_FLIGHT; ahead++)
            tickets[ahead % LOAD_IN_FLIGHT] = submit_step(runner, writer, ahead);
        struct error *err = writer_wait(writer, tickets[step % LOAD_IN_FLIGHT], runner->arena);
        if (err != NULL)
            return err;
        note_acked(load, runner->shard, step);
    }
    return NULL;
}

static struct error *
run_shard(struct runner *runner)
{
    struct store *store = runner->load->store;
    struct partition partition = PARTITION_OF_SHARD(runner->shard);
    uint64_t guard, count;
    struct error *err = store_guard(store, partition, runner->arena, &guard);
    if (err == NULL)
        err = store_commit(store, batch_new(runner->arena, partition, guard + 1), guard,
                           runner->arena);
    if (err == NULL)
        err = read_count(store, runner->shard, runner->arena, &count);
    if (err != NULL)
        return err;
    struct writer *writer = writer_open(store, partition, guard + 1, LOAD_IN_FLIGHT);
    err = run_steps(runner, writer, count + 1);
    writer_close(writer);
    return err;
}

static void
runner_fiber(void *argument)
{
    struct runner *runner = argument;
    struct error *err = run_shard(runner);
    if (err != NULL)
        note_failure(runner->load, err, runner->arena);
    latch_done(runner->latch);
}

void
load_run(struct load *load)
{
    struct runner runners[LOAD_SHARDS_MAX];
    struct latch latch;
    check(load->shards <= LOAD_SHARDS_MAX);
    latch_init(&latch, load->shards);
    for (uint32_t shard = 0; shard < load->shards; shard++) {
        runners[shard] =
            (struct runner){.load = load, .shard = shard, .latch = &latch, .arena = arena_new(0)};
        fiber_start("load", runner_fiber, &runners[shard]);
    }
    latch_wait(&latch);
    static char kept[512]; /* outlives the arenas */
    if (load->complaint != NULL) {
        snprintf(kept, sizeof kept, "%s", load->complaint);
        load->complaint = kept;
    }
    for (uint32_t shard = 0; shard < load->shards; shard++)
        arena_free(runners[shard].arena);
}

/* ---- judging ---- */

struct expected {
    enum row_kind kind;
    uint64_t first, last; /* keys that must be there, no others */
    bool has_value;       /* of its step */
};

/* NULL if exactly these rows are there. */
static const char *
verify_kind(struct store *store, uint32_t shard, const struct expected *expected,
            struct arena *arena)
{
    struct scan scan = {.partition = PARTITION_OF_SHARD(shard), .kind = expected->kind};
    const char *name = row_traits(expected->kind)->name;
    uint64_t next = expected->first;
    struct rows rows = {.has_more = true};
    scan.rows_max = 1000;
    while (rows.has_more) {
        struct error *err = store_scan(store, &scan, arena, &rows);
        if (err != NULL)
            return arena_format(arena, "scan of %s rows: %s", name, err->message);
        for (size_t i = 0; i < rows.count; i++, next++) {
            struct slice key = rows.row[i].key;
            uint64_t number = 0;
            bool is_number = key_take_u64(&key, &number);
            if (!is_number || number != next || next > expected->last)
                return arena_format(arena,
                                    "shard %" PRIu32 " has %s row %" PRIu64 " where %" PRIu64
                                    " of %" PRIu64 " was to come",
                                    shard, name, number, next, expected->last);
            if (expected->has_value &&
                !slice_equal(rows.row[i].value, step_value(shard, number, arena)))
                return arena_format(arena, "shard %" PRIu32 ": another value in %s row %" PRIu64,
                                    shard, name, number);
            scan.from = number_key(number + 1, arena);
        }
    }
    if (next != expected->last + 1)
        return arena_format(arena,
                            "shard %" PRIu32 ": %s rows %" PRIu64 " .. %" PRIu64 " are missing",
                            shard, name, next, expected->last);
    return NULL;
}

static const char *
verify_shard(struct store *store, uint32_t shard, uint64_t acked, struct arena *arena)
{
    uint64_t count;
    struct error *err = read_count(store, shard, arena, &count);
    if (err != NULL)
        return err->message;
    if (count < acked)
        return arena_format(
            arena, "shard %" PRIu32 " is at step %" PRIu64 ", but %" PRIu64 " was acknowledged",
            shard, count, acked);
    uint64_t cleaned = count / HISTORY_STEP; /* times that history was deleted */
    const struct expected all[] = {
        {ROW_RUN, 1, count, true},
        {ROW_TRANSFER, count > TRANSFERS_LIVE ? count - TRANSFERS_LIVE + 1 : 1, count, false},
        {ROW_HISTORY, cleaned > 0 ? (cleaned - 1) * HISTORY_STEP + 1 : 1, count, true},
    };
    for (size_t i = 0; i < array_length(all); i++) {
        const char *complaint = verify_kind(store, shard, &all[i], arena);
        if (complaint != NULL)
            return complaint;
    }
    return NULL;
}

const char *
load_verify(struct store *store, uint32_t shards, const uint64_t *acked, struct arena *arena)
{
    for (uint32_t shard = 0; shard < shards; shard++) {
        const char *complaint = verify_shard(store, shard, acked[shard], arena);
        if (complaint != NULL)
            return complaint;
    }
    return NULL;
}

/* ---- sanitizers ---- */

/* Asked by the thread sanitizer, if the program has one: RocksDB is not built with it, so its own
 * locks are not seen. */
const char *__tsan_default_suppressions(void);
const char *
__tsan_default_suppressions(void)
{
    return "called_from_lib:librocksdb.so\ncalled_from_lib:libstdc++.so\nrace:librocksdb.so\n";
}

/* ---- folders ---- */

char *
folder_make_temporary(struct arena *arena)
{
    const char *location = getenv("TMPDIR");
    char *name =
        arena_format(arena, "%s/cadenza-rocks-XXXXXX", location == NULL ? "/tmp" : location);
    char *made = mkdtemp(name);
    check_that(made != NULL, "no temporary folder %s", name);
    char real[4096];
    made = realpath(name, real);
    check(made != NULL);
    return arena_text(arena, real);
}

static int
remove_one(const char *path, const struct stat *traits, int type, struct FTW *walk)
{
    return remove(path);
}

void
folder_remove(const char *path)
{
    int failed = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    check_that(failed == 0, "cannot remove %s", path);
}
