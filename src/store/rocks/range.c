/* range.c - one pass over a range of keys, of fresh rows and an iterator of the tables.
 *
 * A pass first runs on the loop, over what is in memory: memtables and cached blocks. Where it
 * would have to wait for the disk, or to climb over thousands of dead rows, RocksDB says
 * "incomplete"; and a pass that finds too much for a loop ends itself. Then the pass runs again,
 * whole, on a thread of the pool, while the fiber waits. An iterator sees the moment it was made,
 * and fresh rows are found under the lock it is made under: each pass is of one moment.
 *
 * Every row is checked to lie inside the bounds: a pass that left its partition would hand one
 * shard's rows to another. */
#include "base/check.h"
#include "store/rocks/inside.h"

/* Dead rows that a pass on the loop may climb over: about a millisecond. */
#define DEAD_ROWS_MAX 4096
/* Living rows, and bytes of them, likewise. */
#define LOOP_ROWS_MAX  1024
#define LOOP_BYTES_MAX (1U << 20)

enum read_tier { READ_ALL_TIER = 0, READ_BLOCK_CACHE_TIER = 1 }; /* RocksDB's numbers */

struct pass {
    struct rocks *rocks;
    const struct range *range;
    bool is_in_memory; /* on the loop */
    bool is_too_long;  /* for a loop */
    struct arena *arena;
    char *failure; /* of RocksDB */
};

static rocksdb_readoptions_t *
pass_options(const struct range *range, bool is_in_memory)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_lower_bound(options, (const char *)range->from.data,
                                                range->from.length);
    rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)range->to.data,
                                                range->to.length);
    if (is_in_memory) {
        rocksdb_readoptions_set_read_tier(options, READ_BLOCK_CACHE_TIER);
        rocksdb_readoptions_set_max_skippable_internal_keys(options, DEAD_ROWS_MAX);
    }
    return options;
}

/* Fresh rows that a pass wants. One more than the limit shows that rows follow. On a loop no more
 * than it may give. */
static size_t
fresh_rows_max(const struct pass *pass)
{
    size_t wanted = pass->range->rows_max == 0 ? 0 : pass->range->rows_max + 1;
    if (pass->is_in_memory && (wanted == 0 || wanted > LOOP_ROWS_MAX))
        wanted = LOOP_ROWS_MAX + 1;
    return wanted;
}

static void
pass_rows(struct pass *pass, rocksdb_iterator_t *iterator, const struct fresh_scan *fresh)
{
    const struct range *range = pass->range;
    struct row_merge row_merge = {.tables = iterator, .fresh = fresh};
    size_t rows = 0, bytes = 0;
    struct slice key, value;
    if (range->is_backward)
        rocksdb_iter_seek_to_last(iterator); /* below the upper bound */
    else
        rocksdb_iter_seek(iterator, (const char *)range->from.data, range->from.length);
    while (row_merge_next(&row_merge, &key, &value)) {
        check(slice_compare(key, range->from) >= 0 && slice_compare(key, range->to) < 0);
        pass->is_too_long =
            pass->is_in_memory && (rows >= LOOP_ROWS_MAX || bytes >= LOOP_BYTES_MAX);
        if (pass->is_too_long || !range->take(range->context, key, value))
            return;
        rows++;
        bytes += key.length + value.length;
    }
    pass->failure = row_merge.failure;
    pass->is_too_long = fresh->is_cut && pass->failure == NULL;
    check(pass->is_in_memory || !pass->is_too_long); /* or `take` would have ended it */
}

static void
pass_run(struct pass *pass)
{
    struct rocks *rocks = pass->rocks;
    const struct range *range = pass->range;
    struct fresh_scan fresh = {.from = range->from,
                               .to = range->to,
                               .prefix = range->prefix,
                               .rows_max = fresh_rows_max(pass),
                               .gone_max = pass->is_in_memory ? DEAD_ROWS_MAX : 0,
                               .is_backward = range->is_backward};
    setup_thread();
    rocksdb_readoptions_t *options = pass_options(range, pass->is_in_memory);
    fresh_scan_begin(rocks->fresh, &fresh, pass->arena);
    rocksdb_iterator_t *iterator =
        rocksdb_create_iterator_cf(rocks->tables.db, options, rocks->tables.family[range->family]);
    fresh_scan_made(rocks->fresh);
    range->restart(range->context);
    pass_rows(pass, iterator, &fresh);
    fresh_scan_end(rocks->fresh, &fresh);
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(options);
}

static void
pass_run_cold(void *argument)
{
    struct pass *pass = argument;
    pass->is_in_memory = false;
    pass_run(pass);
}

struct error *
range_read(struct rocks *rocks, const struct range *range, struct arena *arena)
{
    check(slice_compare(range->from, range->to) <= 0);
    check(range->take != NULL && range->restart != NULL && fiber_self() != NULL);
    struct pass pass = {.rocks = rocks, .range = range, .is_in_memory = true, .arena = arena};
    pass_run(&pass);
    fiber_yield(); /* a reader of page after page from memory must not keep the loop for itself */
    if (pass.is_too_long || read_is_cold(pass.failure)) {
        rocksdb_free(pass.failure);
        pass.failure = NULL;
        counter_add(rocks->metrics.cold_reads, 1);
        struct error *err = pool_run(pass_run_cold, &pass, arena);
        if (err != NULL)
            return error_new(arena, ERR_UNAVAILABLE, "cold read: %s", err->message);
    }
    if (pass.failure != NULL)
        damage_read_failed(rocks, pass.failure);
    return pass.failure == NULL ? NULL : setup_error(arena, pass.failure, "read a range");
}
