/* writer.c - the one thread that writes. Everything that waits for it becomes one transaction.
 *
 * Of several changes of one run in a group only the last is written: most workflows that start and
 * end within a moment cost one insertion.
 *
 * Durability. Commits are appended to the log without a sync (synchronous = NORMAL): they survive
 * the process, not the machine. A commit with synchronous = FULL syncs the log, and with it all
 * frames before it in the log. Those that are no longer in the log went into the file by a
 * checkpoint, which syncs the log before it begins to copy and the file before the log may be used
 * again. So visibility_sync is: one row changed and committed in FULL mode, with whatever else
 * waits.
 *
 * Levels are kept in memory and written with the group. After a rollback they are read again. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

/* A change that waits for being written, unless a later one of its run comes. */
struct pending_feed {
    const struct visibility_change *change;
    const struct attribute_set *attributes;
};

struct run_writer {
    struct worker *worker;
    sqlite3 *database;
    struct record_writer record;
    sqlite3_stmt *begin, *commit, *sync_put;
    struct levels levels;
    struct map64 *pending_feed; /* hash of (domain, run id) → index in `changes`, plus 1 */
    vector_of(struct pending_feed) changes;
    struct arena *arena; /* of a group */
    int memory_code;     /* not SQLITE_OK: what is kept in memory could not be read again */
    struct counter *fed, *written, *groups, *syncs;
};

/* ---- changes ---- */

static int
flush_changes(struct run_writer *run_writer)
{
    int code = SQLITE_OK;
    vector_each(pending_feed, &run_writer->changes) {
        if (code == SQLITE_OK)
            code = record_write(&run_writer->record, pending_feed->change, pending_feed->attributes,
                                run_writer->arena);
    }
    if (code == SQLITE_OK)
        code = record_flush(&run_writer->record, run_writer->arena);
    counter_add(run_writer->written, run_writer->changes.count);
    vector_clear(&run_writer->changes);
    map64_free(run_writer->pending_feed);
    run_writer->pending_feed = map64_new();
    return code;
}

static bool
is_same_run(const struct visibility_change *one, const struct visibility_change *other)
{
    return strcmp(one->run_id, other->run_id) == 0 && strcmp(one->domain_id, other->domain_id) == 0;
}

static int
add_change(struct run_writer *run_writer, const struct visibility_change *change,
           const struct attribute_set *attributes)
{
    uint64_t hash = map_hash(slice_text(change->run_id));
    struct pending_feed pending_feed = {.change = change, .attributes = attributes};
    size_t position = (size_t)map64_get(run_writer->pending_feed, hash);
    int code = SQLITE_OK;
    if (position != 0 &&
        is_same_run(vector_at(&run_writer->changes, position - 1).change, change)) {
        vector_at(&run_writer->changes, position - 1) = pending_feed;
        return SQLITE_OK;
    }
    if (position != 0) /* two runs with one hash: the order of both is kept by writing the first */
        code = flush_changes(run_writer);
    vector_push(&run_writer->changes, pending_feed);
    map64_put(run_writer->pending_feed, hash, (void *)run_writer->changes.count);
    check(map64_count(run_writer->pending_feed) == run_writer->changes.count);
    return code;
}

static int
apply_feed(struct run_writer *run_writer, const struct writing_job *job)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < job->count && code == SQLITE_OK; i++) {
        const struct visibility_change *change = &job->changes[i];
        if (change->row <= levels_get(&run_writer->levels, change->shard))
            continue; /* fed before, or from an owner that was overtaken */
        levels_set(&run_writer->levels, change->shard, change->row);
        code = add_change(run_writer, change, job->attributes);
    }
    counter_add(run_writer->fed, job->count);
    return code;
}

static int
apply_forget(struct run_writer *run_writer, struct writing_job *job)
{
    int code = flush_changes(run_writer);
    levels_set(&run_writer->levels, job->shard, job->level);
    if (code == SQLITE_OK)
        code = record_forget(&run_writer->record, job->shard, &job->after, run_writer->arena);
    return code;
}

static int
apply_job(struct run_writer *run_writer, struct writing_job *job)
{
    switch (job->what) {
    case WRITING_FEED:
        return apply_feed(run_writer, job);
    case WRITING_FORGET:
        return apply_forget(run_writer, job);
    case WRITING_SYNC:
        counter_add(run_writer->syncs, 1);
        return statement_run(run_writer->sync_put);
    case WRITING_LEVEL:
        return SQLITE_OK;
    }
    unreachable("job %d", job->what);
}

/* ---- a group ---- */

struct feed_group {
    vector_of(struct writing_job *) jobs;
    bool has_writes, has_sync;
};

static struct feed_group
group_take(struct list *messages)
{
    struct feed_group feed_group = {0};
    for (struct list *node; (node = list_pop_front(messages)) != NULL;) {
        struct writing_job *job =
            container_of(list_entry(node, struct loop_message, node), struct writing_job, message);
        feed_group.has_writes |= job->what != WRITING_LEVEL;
        feed_group.has_sync |= job->what == WRITING_SYNC;
        vector_push(&feed_group.jobs, job);
    }
    return feed_group;
}

static int
write_group(struct run_writer *run_writer, struct feed_group *feed_group)
{
    check(run_writer->changes.count == 0 && map64_count(run_writer->pending_feed) == 0);
    int code = statement_run(run_writer->begin);
    if (code == SQLITE_OK)
        code = keys_merge(&run_writer->record);
    vector_each(job, &feed_group->jobs) {
        if (code == SQLITE_OK)
            code = apply_job(run_writer, *job);
    }
    if (code == SQLITE_OK)
        code = flush_changes(run_writer);
    if (code == SQLITE_OK)
        code = levels_save(&run_writer->levels);
    return code != SQLITE_OK ? code : statement_run(run_writer->commit);
}

/* Reads what is kept in memory from the file. */
static void
reload(struct run_writer *run_writer)
{
    run_writer->memory_code = levels_load(&run_writer->levels);
    if (run_writer->memory_code == SQLITE_OK)
        run_writer->memory_code = record_reload(&run_writer->record);
}

/* Back to what the file says. */
static void
roll_back(struct run_writer *run_writer)
{
    if (sqlite3_get_autocommit(run_writer->database) == 0)
        database_execute(run_writer->database, "ROLLBACK");
    vector_clear(&run_writer->changes);
    map64_free(run_writer->pending_feed);
    run_writer->pending_feed = map64_new();
    reload(run_writer);
}

static int
run_group(struct run_writer *run_writer, struct feed_group *feed_group)
{
    if (run_writer->memory_code != SQLITE_OK)
        reload(run_writer);
    if (run_writer->memory_code != SQLITE_OK || !feed_group->has_writes)
        return run_writer->memory_code;
    int code = SQLITE_OK;
    if (feed_group->has_sync)
        code = database_execute(run_writer->database, "PRAGMA synchronous = FULL");
    if (code == SQLITE_OK)
        code = write_group(run_writer, feed_group);
    if (feed_group->has_sync) {
        int back = database_execute(run_writer->database, "PRAGMA synchronous = NORMAL");
        code = code != SQLITE_OK ? code : back;
    }
    counter_add(run_writer->groups, 1);
    return code;
}

static void
answer_job(struct run_writer *run_writer, struct writing_job *job, int code, const char *why)
{
    if (code != SQLITE_OK && (job->what != WRITING_LEVEL || run_writer->memory_code != SQLITE_OK))
        job->err = database_error(NULL, code, why, job->arena);
    else if (job->what == WRITING_LEVEL)
        job->level = levels_get(&run_writer->levels, job->shard);
    loop_post_answer(job->loop, &job->message);
}

/* The thread's function. */
static void
run_writer_deliver(void *context, struct list *messages)
{
    struct run_writer *run_writer = context;
    struct feed_group feed_group = group_take(messages);
    int code = run_group(run_writer, &feed_group);
    char why[200] = "";
    if (code != SQLITE_OK) {
        sqlite3_snprintf(sizeof why, why, "writing (%s)", sqlite3_errmsg(run_writer->database));
        roll_back(run_writer);
    }
    arena_reset(run_writer->arena);
    vector_each(job, &feed_group.jobs)
        answer_job(run_writer, *job, code, why);
    vector_free(&feed_group.jobs);
}

static void
job_done(struct loop_message *message)
{
    struct writing_job *job = container_of(message, struct writing_job, message);
    job->is_done = true;
    fiber_wake(job->fiber);
}

struct error *
run_writer_do(struct run_writer *run_writer, struct writing_job *job)
{
    job->loop = loop_self();
    job->fiber = fiber_self();
    job->message.deliver = job_done;
    check(job->fiber != NULL && job->arena != NULL && !job->is_done);
    worker_post(run_writer->worker, &job->message);
    while (!job->is_done)
        fiber_wait_uncancellable();
    return job->err;
}

/* ---- opening and closing ---- */

static int
prepare_all(struct run_writer *run_writer)
{
    const struct {
        sqlite3_stmt **statement;
        const char *text;
    } all[] = {{&run_writer->begin, "BEGIN IMMEDIATE"},
               {&run_writer->commit, "COMMIT"},
               {&run_writer->sync_put, "INSERT INTO syncs(id, count) VALUES (1, 1) "
                                       "ON CONFLICT(id) DO UPDATE SET count = count + 1"}};
    int code = SQLITE_OK;
    for (size_t i = 0; i < array_length(all) && code == SQLITE_OK; i++)
        code = sqlite3_prepare_v3(run_writer->database, all[i].text, -1, SQLITE_PREPARE_PERSISTENT,
                                  all[i].statement, NULL);
    if (code == SQLITE_OK)
        code = levels_open(&run_writer->levels, run_writer->database);
    return code;
}

static void
count_into(struct run_writer *run_writer, struct metrics *metrics)
{
    run_writer->fed = metrics_counter(metrics, "cadenza_visibility_changes_total",
                                      "Changes of runs that shards fed to visibility.", NULL);
    run_writer->written =
        metrics_counter(metrics, "cadenza_visibility_writes_total",
                        "Changes that visibility wrote: the last of each run.", NULL);
    run_writer->groups = metrics_counter(metrics, "cadenza_visibility_transactions_total",
                                         "Transactions of visibility's writer.", NULL);
    run_writer->syncs = metrics_counter(metrics, "cadenza_visibility_syncs_total",
                                        "Syncs of visibility to disk.", NULL);
}

struct preparing {
    struct run_writer *run_writer;
    int code;
};

static void
prepare_on_pool(void *argument)
{
    struct preparing *preparing = argument;
    struct run_writer *run_writer = preparing->run_writer;
    preparing->code = record_open(&run_writer->record, run_writer->database);
    if (preparing->code == SQLITE_OK)
        preparing->code = prepare_all(run_writer);
}

static void
writer_free(struct run_writer *run_writer)
{
    record_close(&run_writer->record);
    sqlite3_finalize(run_writer->begin);
    sqlite3_finalize(run_writer->commit);
    sqlite3_finalize(run_writer->sync_put);
    levels_close(&run_writer->levels);
    map64_free(run_writer->pending_feed);
    vector_free(&run_writer->changes);
    arena_free(run_writer->arena);
    int code = sqlite3_close(run_writer->database);
    check_that(code == SQLITE_OK, "a statement of the writer was left behind");
    memory_free(run_writer);
}

struct error *
run_writer_open(sqlite3 *database, struct metrics *metrics, struct arena *arena,
                struct run_writer **run_writer)
{
    struct run_writer *opened = memory_zalloc(1, sizeof *opened);
    opened->database = database;
    opened->pending_feed = map64_new();
    opened->arena = arena_new(64 * 1024);
    count_into(opened, metrics);
    struct preparing preparing = {.run_writer = opened};
    struct error *err = pool_run(prepare_on_pool, &preparing, arena);
    check_that(err == NULL, "no room in the pool while starting");
    err = database_error(database, preparing.code, "preparing", arena);
    if (err != NULL) {
        writer_free(opened);
        return err;
    }
    opened->worker = worker_new("visibility", run_writer_deliver, opened);
    *run_writer = opened;
    return NULL;
}

static void
free_on_pool(void *argument)
{
    writer_free(argument);
}

void
run_writer_close(struct run_writer *run_writer)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    worker_free(run_writer->worker);
    struct error *err = pool_run(free_on_pool, run_writer, arena); /* the last one checkpoints */
    if (err != NULL)
        writer_free(run_writer);
}
