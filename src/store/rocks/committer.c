/* committer.c - one thread that makes commits durable, as many as wait with one sync.
 *
 * A drain gets all commits that gathered while the last group was written. They are taken in order
 * into one record, guards first: a commit whose guard is not as expected adds nothing and is
 * fenced, the others go on. The record is written with one sync (ledger.c); then its rows can be
 * read, so readers never see what a crash could take back; then the answers. While it syncs, the
 * next group gathers, and on a slow disk a moment longer (gather.c).
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

/* A group ends here: a batch is copied into the log as a whole, and the first that waits should not
 * wait for megabytes. */
#define GROUP_BYTES_MAX (4U << 20)
#define TRY_AGAIN       "Operation failed. Try again." /* how RocksDB begins that refusal */

_Static_assert(FAMILY_COUNT == 2, "see invariant 4");

static void committer_drain(void *context, struct list *messages);

void
committer_init(struct rocks *rocks)
{
    rocks->committer.guards = map_new();
    rocks->committer.batch = rocksdb_writebatch_create();
    rocks->committer.durable = rocksdb_writeoptions_create();
#ifdef CADENZA_FAULT_skip_fsync
    rocksdb_writeoptions_set_sync(rocks->committer.durable, 0);
#else
    rocksdb_writeoptions_set_sync(rocks->committer.durable, 1);
#endif
    rocks->worker = worker_new("store-committer", committer_drain, rocks);
}

void
committer_stop(struct rocks *rocks)
{
    worker_free(rocks->worker);
    rocks->worker = NULL;
}

void
committer_free(struct rocks *rocks)
{
    check(rocks->worker == NULL);
    check(atomic_load(&rocks->store.queued_bytes) == 0);
    rocksdb_writeoptions_destroy(rocks->committer.durable);
    rocksdb_writebatch_destroy(rocks->committer.batch);
    guards_free(rocks);
    buffer_free(&rocks->committer.key);
    buffer_free(&rocks->committer.record);
    vector_free(&rocks->committer.ledger_numbers);
    vector_free(&rocks->committer.old_numbers);
    memory_free(atomic_load(&rocks->failure));
}

void
committer_submit(struct store *store, struct commit *commit)
{
    worker_post(rocks_of(store)->worker, &commit->message);
}

const char *
committer_failure(const struct store *store)
{
    return atomic_load(&rocks_of(store)->failure);
}

/* --- taking a commit into the batch ----------------------------------------------------------- */

/* What the record has to say of a guard: 0, it stays as it is. */
static uint64_t
take_guard(struct guard *guard, uint64_t next)
{
    check(next >= guard->number);
    if (guard->is_stored && guard->number == next)
        return 0;
    guard->number = next;
    guard->is_stored = true;
    return next;
}

static bool
is_expected(const struct guard *guard, const struct commit *commit)
{
#ifdef CADENZA_FAULT_accept_stale_guard
    return commit->guard_next >= guard->number;
#else
#ifdef CADENZA_FAULT_confirm_without_guard
    if (commit->is_confirmation)
        return true;
#endif
    return guard->number == commit->guard_expected;
#endif
}

/* Adds a commit to the group's record, or fences it. False: rows cannot be read, see *failure. */
static bool
take_commit(struct rocks *rocks, struct commit *commit, char **failure)
{
    if (commit_is_doomed(commit))
        return true;
    struct guard *guard = guards_find(rocks, commit->partition_key, failure);
    if (guard == NULL)
        return false;
    check(commit->is_confirmation ||
          (commit->guard_next >= commit->guard_expected && commit->guard_next > 0));
    if (!is_expected(guard, commit)) {
        commit_fail(commit, ERR_FENCED, guard->number);
        counter_add(rocks->metrics.fenced, 1);
        return true;
    }
    if (commit->is_confirmation) /* invariant 1 holds for it too */
        return true;
    if (!ledger_append(rocks, commit, guard, take_guard(guard, commit->guard_next), failure))
        return false;
    counter_add(rocks->metrics.bytes, commit->steps.length);
    return true;
}

/* --- a group ---------------------------------------------------------------------------------- */

/* Moves commits from `messages` to `group` and into the record until it is full. */
static bool
group_take(struct rocks *rocks, struct list *messages, struct list *group, char **failure)
{
    check(list_is_empty(group) && !list_is_empty(messages));
    ledger_begin(rocks);
    guards_trim(rocks);
    for (size_t bytes = 0; !list_is_empty(messages) && bytes < GROUP_BYTES_MAX;) {
        struct list *node = list_pop_front(messages);
        struct commit *commit = list_entry(node, struct commit, message.node);
        list_push_back(group, node);
        if (!take_commit(rocks, commit, failure))
            return false;
        bytes += commit->steps.length;
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
        uint64_t bytes =
            tables_property(&rocks->tables, family, "rocksdb.cur-size-active-mem-table");
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
    rocksdb_flush_cf(rocks->tables.db, options, rocks->tables.family[family], failure);
    if (*failure != NULL && strncmp(*failure, TRY_AGAIN, strlen(TRY_AGAIN)) == 0) {
        rocksdb_free(*failure);
        *failure = NULL;
        rocksdb_flushoptions_set_wait(options, 1);
        rocksdb_flush_cf(rocks->tables.db, options, rocks->tables.family[family], failure);
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

bool
committer_write(struct rocks *rocks, char **failure)
{
    if (rocks->committer.has_filled_all && !switch_memtables(rocks, failure))
        return false;
    size_t size;
    rocksdb_writebatch_data(rocks->committer.batch, &size);
    rocks->committer.unlooked += size;
    runway_begin(rocks, size);
    rocksdb_write(rocks->tables.db, rocks->committer.durable, rocks->committer.batch, failure);
    runway_end(rocks);
    /* Noted now, for the next write: a backup may empty one of them in between. */
    rocks->committer.has_filled_all = *failure == NULL && may_all_be_full(rocks);
    return *failure == NULL;
}

/* Makes the group durable; then its rows can be read. False: see *failure. */
static bool
group_write(struct rocks *rocks, char **failure)
{
    if (rocks->committer.record.length == 0)
        return true;
    int64_t start = stopwatch();
    ledger_end(rocks);
    bool is_good = committer_write(rocks, failure);
    int64_t taken = rocks->committer.taken = stopwatch() - start;
    histogram_observe(rocks->metrics.group_seconds, taken);
    if (taken > gauge_value(rocks->metrics.group_ns_max))
        gauge_set(rocks->metrics.group_ns_max, taken);
    if (is_good)
        ledger_written(rocks);
    return is_good;
}

/* How many became durable; confirmations wrote nothing. */
static size_t
count_group(struct rocks *rocks, const struct list *group)
{
    size_t durable = 0;
    list_each(node, group) {
        const struct commit *commit = list_entry(node, struct commit, message.node);
        durable += !commit->failed && !commit->is_confirmation;
    }
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
    log_fail(rocks->log, "the store has failed: it accepts no more writes until it is opened again",
             log_text("error", kept));
    list_each(node, commits) {
        struct commit *commit = list_entry(node, struct commit, message.node);
        commit->failed = false; /* a guard that refused it may not have landed either */
        commit_fail(commit, ERR_OUTCOME_UNKNOWN, 0);
    }
    commit_answer_all(commits);
}

static void
refuse_all(struct list *messages)
{
    list_each(node, messages)
        commit_fail(list_entry(node, struct commit, message.node), ERR_UNAVAILABLE, 0);
    commit_answer_all(messages);
}

/* Before the next group: gather.c. */
static void
await_answered(struct rocks *rocks, size_t answered)
{
    struct group_wait *group_wait = &rocks->committer.group_wait;
    if (!gather_begin(group_wait, answered, rocks->committer.taken))
        return;
    counter_add(rocks->metrics.gathered, 1);
    size_t before = worker_await(rocks->worker, 0, 0), came = 0;
    for (int64_t time; (time = gather_next(group_wait, came)) > 0;)
        came = worker_await(rocks->worker, before + answered, time) - before;
}

static void
committer_drain(void *context, struct list *messages)
{
    struct rocks *rocks = context;
    size_t answered = 0;
    setup_thread();
    if (atomic_load(&rocks->failure) != NULL)
        refuse_all(messages);
    while (!list_is_empty(messages)) {
        struct list group = LIST_INIT(group);
        char *failure = NULL;
        bool is_taken = group_take(rocks, messages, &group, &failure);
#ifdef CADENZA_FAULT_answer_before_durable
        commit_answer_all(&group);
#endif
        if (!is_taken || !group_write(rocks, &failure)) {
            list_splice_back(&group, messages);
            fail_all(rocks, &group, failure);
            return;
        }
        check(failure == NULL);
        answered = count_group(rocks, &group);
        commit_answer_all(&group);
        ledger_tidy(rocks);
        large_tidy(rocks);
    }
    await_answered(rocks, answered);
}

/* --- after a restore -------------------------------------------------------------------------- */

static void
put_guard(struct rocks *rocks, struct slice partition_key, uint64_t number)
{
    struct buffer *key = &rocks->committer.key;
    uint8_t value[8];
    layout_guard_write(value, number);
    buffer_clear(key);
    layout_append(key, LAYOUT_GUARD, partition_key, slice_of(NULL, 0));
    struct slice bytes = buffer_slice(key);
    rocksdb_writebatch_put_cf(rocks->committer.batch, rocks->tables.family[FAMILY_ORDERED],
                              (const char *)bytes.data, bytes.length, (const char *)value,
                              sizeof value);
}

struct error *
committer_raise_guards(struct rocks *rocks, uint32_t shard_count, uint64_t least,
                       struct arena *arena)
{
    char *failure = NULL;
    check(shard_count > 0 && atomic_load(&rocks->store.calls) == 1); /* nobody has it yet */
    check(fresh_bytes(rocks->fresh) == 0); /* the rows in the tables are the guards */
    rocksdb_writebatch_clear(rocks->committer.batch);
    for (uint32_t shard = 0; shard < shard_count && failure == NULL; shard++) {
        struct slice key = partition_key(PARTITION_OF_SHARD(shard), arena);
        struct guard *guard = guards_find(rocks, key, &failure);
        if (guard == NULL)
            break;
        uint64_t leap = guard->number + ROCKS_RESTORE_LEAP;
        put_guard(rocks, key, take_guard(guard, leap < least ? least : leap));
    }
    if (failure == NULL && committer_write(rocks, &failure))
        return NULL;
    return setup_error(arena, failure, "raise the guards of shards");
}
