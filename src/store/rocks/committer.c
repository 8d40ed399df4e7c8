/* committer.c - one thread that makes commits durable, as many as wait with one sync.
 *
 * A drain gets all commits that gathered while the last group was written. They are taken in order
 * into one RocksDB batch, guards first: a commit whose guard is not as expected adds nothing and is
 * fenced, the others go on. Then one write with sync; then the answers. While it syncs, the next
 * group gathers, and on a slow disk a moment longer (gather.c). RocksDB puts rows into its
 * memtables only after the log was synced, so readers never see what a crash could take back.
 *
 * Invariants:
 *   1. No answer, a fenced one neither, leaves before the group it was decided in is durable: the
 * guard that refused it may have been raised by an earlier commit of the same group.
 *   2. After the first failure nothing is written. Its group and all that waited with it may have
 * landed or not; what comes later was never tried.
 *   3. Guards in memory are those of the batches taken so far, in order; none is forgotten between
 * the first commit of a group and its write.
 *   4. RocksDB never finds two full memtables when a write begins. (There are two families; with
 * more, any two would have to be looked for.) */
#include <time.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "store/rocks/inside.h"

/* A group ends here: a batch is copied into the log whole, and whoever waits first should not wait
 * for megabytes. */
#define GROUP_BYTES_MAX (4U << 20)
#define TRY_AGAIN       "Operation failed. Try again." /* how RocksDB begins that refusal */

_Static_assert(FAMILY_COUNT == 2, "see invariant 4");

static void committer_drain(void *context, struct list *letters);

void
committer_init(struct rocks *rocks)
{
    rocks->committer.guards = map_new();
    rocks->committer.batch = rocksdb_writebatch_create();
    rocks->committer.durable = rocksdb_writeoptions_create();
#ifdef CADENZA_PLANT_skip_fsync
    rocksdb_writeoptions_set_sync(rocks->committer.durable, 0);
#else
    rocksdb_writeoptions_set_sync(rocks->committer.durable, 1);
#endif
    rocks->worker = worker_new("store-committer", committer_drain, rocks);
}

void
committer_free(struct rocks *rocks)
{
    worker_free(rocks->worker);
    check(atomic_load(&rocks->store.queued_bytes) == 0);
    rocksdb_writeoptions_destroy(rocks->committer.durable);
    rocksdb_writebatch_destroy(rocks->committer.batch);
    guards_free(rocks);
    buffer_free(&rocks->committer.key);
    buffer_free(&rocks->committer.end);
    buffer_free(&rocks->committer.row);
    memory_free(atomic_load(&rocks->failure));
}

void
committer_submit(struct store *store, struct commit *commit)
{
    worker_post(rocks_of(store)->worker, &commit->letter);
}

const char *
committer_failure(const struct store *store)
{
    return atomic_load(&rocks_of(store)->failure);
}

/* --- taking a commit into the batch --------------------------------------------------------------
 */

/* A ONCE row was put once and is deleted once: SingleDelete lets RocksDB forget the pair as soon as
 * they meet, where a plain delete would stay until the last level. */
static void
take_delete(struct rocks *rocks, const struct commit_step *step, struct slice key)
{
    rocksdb_writebatch_t *batch = rocks->committer.batch;
    rocksdb_column_family_handle_t *family = rocks->family[layout_family(step->kind)];
    if (row_facts(step->kind)->life == ROW_ONCE)
        rocksdb_writebatch_singledelete_cf(batch, family, (const char *)key.data, key.length);
    else
        rocksdb_writebatch_delete_cf(batch, family, (const char *)key.data, key.length);
}

/* False: see *failure of the taking. */
static bool
take_step(struct rocks *rocks, const struct taking *taking, const struct commit_step *step)
{
    if (step->verb == BATCH_DELETE_RANGE)
        return sweep_range(rocks, taking, step);
    struct buffer *buffer = &rocks->committer.key;
    buffer_clear(buffer);
    layout_append(buffer, step->kind, taking->commit->partition_key, step->key);
    struct slice key = buffer_slice(buffer);
    if (step->verb == BATCH_DELETE) {
        take_delete(rocks, step, key);
        return true;
    }
    check(step->verb == BATCH_PUT);
    sweep_note_put(taking->guard, key);
    rocksdb_writebatch_put_cf(rocks->committer.batch, rocks->family[layout_family(step->kind)],
                              (const char *)key.data, key.length, (const char *)step->value.data,
                              step->value.length);
    return true;
}

static void
take_guard(struct rocks *rocks, struct slice partition_key, struct guard *guard, uint64_t next)
{
    check(next >= guard->number);
    if (guard->is_stored && guard->number == next)
        return;
    struct buffer *buffer = &rocks->committer.key;
    uint8_t value[8];
    layout_guard_write(value, next);
    buffer_clear(buffer);
    layout_append(buffer, LAYOUT_GUARD, partition_key, slice_of(NULL, 0));
    struct slice key = buffer_slice(buffer);
    rocksdb_writebatch_put_cf(rocks->committer.batch, rocks->family[FAMILY_ORDERED],
                              (const char *)key.data, key.length, (const char *)value,
                              sizeof value);
    guard->number = next;
    guard->is_stored = true;
}

static bool
is_expected(const struct guard *guard, const struct commit *commit)
{
#ifdef CADENZA_PLANT_accept_stale_guard
    return commit->guard_next >= guard->number;
#else
    return guard->number == commit->guard_expected;
#endif
}

/* Adds the last commit of the group to the batch, or fences it. False: rows cannot be read, see
 * *failure. */
static bool
take_commit(struct rocks *rocks, struct commit *commit, const struct list *group, char **failure)
{
    if (commit_is_doomed(commit))
        return true;
    struct guard *guard = guards_find(rocks, commit->partition_key, failure);
    if (guard == NULL)
        return false;
    check(commit->guard_next >= commit->guard_expected && commit->guard_next > 0);
    if (!is_expected(guard, commit)) {
        commit_fail(commit, ERR_FENCED, guard->number);
        counter_add(rocks->metrics.fenced, 1);
        return true;
    }
    struct taking taking = {.commit = commit,
                            .group = group,
                            .guard = guard,
                            .rest = commit->steps,
                            .failure = failure};
    struct commit_step step;
    while (commit_next_step(&taking.rest, &step))
        if (!take_step(rocks, &taking, &step))
            return false;
    take_guard(rocks, commit->partition_key, guard, commit->guard_next);
    counter_add(rocks->metrics.bytes, commit->steps.length);
    return true;
}

/* --- a group -------------------------------------------------------------------------------------
 */

/* Moves commits from `letters` to `group` and into the batch until the batch is full. */
static bool
group_take(struct rocks *rocks, struct list *letters, struct list *group, char **failure)
{
    size_t size = 0;
    check(list_is_empty(group) && !list_is_empty(letters));
    rocksdb_writebatch_clear(rocks->committer.batch);
    guards_trim(rocks);
    while (!list_is_empty(letters) && size < GROUP_BYTES_MAX) {
        struct list *node = list_pop_front(letters);
        list_push_back(group, node);
        if (!take_commit(rocks, list_entry(node, struct commit, letter.node), group, failure))
            return false;
        rocksdb_writebatch_data(rocks->committer.batch, &size);
    }
    return true;
}

/* How long a thread that blocks took; no loop, so no loop's clock. */
static int64_t
stopwatch(void)
{
    struct timespec now;
    /* tidy: allow clock_gettime - measures a blocking call on a thread without a loop */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* RocksDB calls a memtable full at 95 % of its size at the earliest. */
static bool
may_all_be_full(const struct rocks *rocks)
{
    for (unsigned family = 0; family < FAMILY_COUNT; family++) {
        uint64_t bytes = 0;
        int failed = rocksdb_property_int_cf(rocks->db, rocks->family[family],
                                             "rocksdb.cur-size-active-mem-table", &bytes);
        check(failed == 0);
        if (bytes < rocks->setup.memtable_bytes / 8 * 7)
            return false;
    }
    return true;
}

/* Begins a new memtable in that family, and the flush of the old one. While writes are stopped
 * RocksDB does so only for those who wait for the flush too. */
static void
switch_memtable(struct rocks *rocks, unsigned family, char **failure)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 0);
    rocksdb_flush_cf(rocks->db, options, rocks->family[family], failure);
    if (*failure != NULL && strncmp(*failure, TRY_AGAIN, strlen(TRY_AGAIN)) == 0) {
        rocksdb_free(*failure);
        *failure = NULL;
        rocksdb_flushoptions_set_wait(options, 1);
        rocksdb_flush_cf(rocks->db, options, rocks->family[family], failure);
    }
    rocksdb_flushoptions_destroy(options);
}

/* Invariant 4. A write begins with switching the memtables that the one before it filled, all in
 * one go: if there are two and no log can be opened for the first, RocksDB 7.8.3 never gives back
 * the reference it holds on the second, and closing the database trips over that (an assert, which
 * Debian's build has on, ends the process). Asked for one by one, a failed switch leaves nothing
 * behind; and a write passes over families whose memtables are empty. False: see *failure. */
static bool
switch_memtables(struct rocks *rocks, char **failure)
{
    check(*failure == NULL);
    for (unsigned family = 0; family < FAMILY_COUNT && *failure == NULL; family++)
        switch_memtable(rocks, family, failure);
    return *failure == NULL;
}

/* Writes and syncs the batch. False: see *failure. */
static bool
group_write(struct rocks *rocks, char **failure)
{
    if (rocksdb_writebatch_count(rocks->committer.batch) == 0)
        return true;
    int64_t start = stopwatch();
    if (rocks->committer.has_filled_all && !switch_memtables(rocks, failure))
        return false;
    size_t size;
    rocksdb_writebatch_data(rocks->committer.batch, &size);
    runway_begin(rocks, size);
    rocksdb_write(rocks->db, rocks->committer.durable, rocks->committer.batch, failure);
    runway_end(rocks);
    int64_t taken = rocks->committer.taken = stopwatch() - start;
    histogram_observe(rocks->metrics.group_seconds, taken);
    if (taken > gauge_value(rocks->metrics.group_ns_max))
        gauge_set(rocks->metrics.group_ns_max, taken);
    /* Noted now, for the next write: a backup may empty one of them in between. */
    rocks->committer.has_filled_all = *failure == NULL && may_all_be_full(rocks);
    return *failure == NULL;
}

/* How many are durable. */
static size_t
count_group(struct rocks *rocks, const struct list *group)
{
    size_t durable = 0;
    list_each(node, group)
        durable += !list_entry(node, struct commit, letter.node)->failed;
    counter_add(rocks->metrics.commits, durable);
    counter_add(rocks->metrics.groups, durable > 0);
    return durable;
}

/* Invariant 2. */
static void
fail_all(struct rocks *rocks, struct list *commits, char *failure)
{
    check(failure != NULL && !list_is_empty(commits));
    size_t length = strlen(failure) + 1;
    char *kept = memory_alloc(length);
    memcpy(kept, failure, length);
    rocksdb_free(failure);
    char *before = atomic_exchange(&rocks->failure, kept);
    check(before == NULL);
    log_fail(rocks->log, "the store has failed: it takes no more writes until it is opened anew",
             log_text("error", kept));
    list_each(node, commits) {
        struct commit *commit = list_entry(node, struct commit, letter.node);
        commit->failed = false; /* a guard that refused it may not have landed either */
        commit_fail(commit, ERR_OUTCOME_UNKNOWN, 0);
    }
    commit_answer_all(commits);
}

static void
refuse_all(struct list *letters)
{
    list_each(node, letters)
        commit_fail(list_entry(node, struct commit, letter.node), ERR_UNAVAILABLE, 0);
    commit_answer_all(letters);
}

/* Before the next group: gather.c. */
static void
await_answered(struct rocks *rocks, size_t answered)
{
    struct gathering *gathering = &rocks->committer.gathering;
    if (!gather_begin(gathering, answered, rocks->committer.taken))
        return;
    counter_add(rocks->metrics.gathered, 1);
    size_t before = worker_await(rocks->worker, 0, 0), came = 0;
    for (int64_t time; (time = gather_next(gathering, came)) > 0;)
        came = worker_await(rocks->worker, before + answered, time) - before;
}

static void
committer_drain(void *context, struct list *letters)
{
    struct rocks *rocks = context;
    size_t answered = 0;
    setup_thread();
    if (atomic_load(&rocks->failure) != NULL)
        refuse_all(letters);
    while (!list_is_empty(letters)) {
        struct list group = LIST_INIT(group);
        char *failure = NULL;
        bool is_taken = group_take(rocks, letters, &group, &failure);
#ifdef CADENZA_PLANT_answer_before_durable
        commit_answer_all(&group);
#endif
        if (!is_taken || !group_write(rocks, &failure)) {
            list_splice_back(&group, letters);
            fail_all(rocks, &group, failure);
            return;
        }
        check(failure == NULL);
        answered = count_group(rocks, &group);
        commit_answer_all(&group);
    }
    await_answered(rocks, answered);
}

/* --- after a restore
 * ------------------------------------------------------------------------------- */

struct error *
committer_raise_guards(struct rocks *rocks, uint32_t shard_count, uint64_t least,
                       struct arena *arena)
{
    char *failure = NULL;
    check(shard_count > 0 && atomic_load(&rocks->store.calls) == 1); /* nobody has it yet */
    rocksdb_writebatch_clear(rocks->committer.batch);
    for (uint32_t shard = 0; shard < shard_count && failure == NULL; shard++) {
        struct slice key = partition_key(PARTITION_OF_SHARD(shard), arena);
        struct guard *guard = guards_find(rocks, key, &failure);
        if (guard == NULL)
            break;
        uint64_t leap = guard->number + ROCKS_RESTORE_LEAP;
        take_guard(rocks, key, guard, leap < least ? least : leap);
    }
    if (failure == NULL)
        rocksdb_write(rocks->db, rocks->committer.durable, rocks->committer.batch, &failure);
    return failure == NULL ? NULL : setup_error(arena, failure, "raise the guards of shards");
}
