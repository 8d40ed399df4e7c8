/* writer.c - the one thread that writes. All that waits for it becomes one transaction.
 *
 * Of several changes of one run in a group only the last is written: most workflows that start and
 * end within a moment cost one insertion.
 *
 * Durability. Commits are appended to the log without a sync (synchronous = NORMAL): they survive
 * the process, not the machine. A commit with synchronous = FULL syncs the log, and with it all
 * frames before it in the log. Those that are not in the log any more went into the file by a
 * checkpoint, which syncs the log before it begins to copy and the file before the log may be used
 * again. So visibility_sync is: one row changed and committed in FULL mode, with whatever else
 * waits.
 *
 * Levels are kept in memory and written with the group. After a rollback they are read again. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

/* A change that waits for being written, unless a later one of its run comes. */
struct pending {
    const struct visibility_change *change;
    const struct attribute_set *attributes;
};

struct writer {
    struct worker *worker;
    sqlite3 *database;
    struct record_writer record;
    sqlite3_stmt *begin, *commit, *sync_put;
    struct levels levels;
    struct map64 *pending; /* hash of (domain, run id) → index in `changes`, plus 1 */
    vector_of(struct pending) changes;
    struct arena *arena; /* of a group */
    int memory_code;     /* not SQLITE_OK: what is kept in memory could not be read again */
    struct counter *fed, *written, *groups, *syncs;
};

/* ---- changes ---- */

static int
flush_changes(struct writer *writer)
{
    int code = SQLITE_OK;
    vector_each(pending, &writer->changes) {
        if (code == SQLITE_OK)
            code =
                record_write(&writer->record, pending->change, pending->attributes, writer->arena);
    }
    if (code == SQLITE_OK)
        code = record_flush(&writer->record, writer->arena);
    counter_add(writer->written, writer->changes.count);
    vector_clear(&writer->changes);
    map64_free(writer->pending);
    writer->pending = map64_new();
    return code;
}

static bool
is_same_run(const struct visibility_change *one, const struct visibility_change *other)
{
    return strcmp(one->run_id, other->run_id) == 0 && strcmp(one->domain_id, other->domain_id) == 0;
}

static int
add_change(struct writer *writer, const struct visibility_change *change,
           const struct attribute_set *attributes)
{
    uint64_t hash = map_hash(slice_text(change->run_id));
    struct pending pending = {.change = change, .attributes = attributes};
    size_t place = (size_t)map64_get(writer->pending, hash);
    int code = SQLITE_OK;
    if (place != 0 && is_same_run(vector_at(&writer->changes, place - 1).change, change)) {
        vector_at(&writer->changes, place - 1) = pending;
        return SQLITE_OK;
    }
    if (place != 0) /* two runs with one hash: the order of both is kept by writing the first */
        code = flush_changes(writer);
    vector_push(&writer->changes, pending);
    map64_put(writer->pending, hash, (void *)writer->changes.count);
    return code;
}

static int
apply_feed(struct writer *writer, const struct writing_job *job)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < job->count && code == SQLITE_OK; i++) {
        const struct visibility_change *change = &job->changes[i];
        if (change->row <= levels_get(&writer->levels, change->shard))
            continue; /* fed before, or from an owner that was overtaken */
        levels_set(&writer->levels, change->shard, change->row);
        code = add_change(writer, change, job->attributes);
    }
    counter_add(writer->fed, job->count);
    return code;
}

static int
apply_forget(struct writer *writer, struct writing_job *job)
{
    int code = flush_changes(writer);
    levels_set(&writer->levels, job->shard, job->level);
    if (code == SQLITE_OK)
        code = record_forget(&writer->record, job->shard, &job->after, writer->arena);
    return code;
}

static int
apply_job(struct writer *writer, struct writing_job *job)
{
    switch (job->what) {
    case WRITING_FEED:
        return apply_feed(writer, job);
    case WRITING_FORGET:
        return apply_forget(writer, job);
    case WRITING_SYNC:
        counter_add(writer->syncs, 1);
        return statement_run(writer->sync_put);
    case WRITING_LEVEL:
        return SQLITE_OK;
    }
    unreachable("job %d", job->what);
}

/* ---- a group ---- */

struct group {
    vector_of(struct writing_job *) jobs;
    bool has_writes, has_sync;
};

static struct group
group_take(struct list *letters)
{
    struct group group = {0};
    for (struct list *node; (node = list_pop_front(letters)) != NULL;) {
        struct writing_job *job =
            container_of(list_entry(node, struct letter, node), struct writing_job, letter);
        group.has_writes |= job->what != WRITING_LEVEL;
        group.has_sync |= job->what == WRITING_SYNC;
        vector_push(&group.jobs, job);
    }
    return group;
}

static int
write_group(struct writer *writer, struct group *group)
{
    int code = statement_run(writer->begin);
    if (code == SQLITE_OK)
        code = keys_settle(&writer->record);
    vector_each(job, &group->jobs) {
        if (code == SQLITE_OK)
            code = apply_job(writer, *job);
    }
    if (code == SQLITE_OK)
        code = flush_changes(writer);
    if (code == SQLITE_OK)
        code = levels_save(&writer->levels);
    return code != SQLITE_OK ? code : statement_run(writer->commit);
}

/* Reads what is kept in memory from the file. */
static void
reload(struct writer *writer)
{
    writer->memory_code = levels_load(&writer->levels);
    if (writer->memory_code == SQLITE_OK)
        writer->memory_code = record_reload(&writer->record);
}

/* Back to what the file says. */
static void
roll_back(struct writer *writer)
{
    if (sqlite3_get_autocommit(writer->database) == 0)
        database_execute(writer->database, "ROLLBACK");
    vector_clear(&writer->changes);
    map64_free(writer->pending);
    writer->pending = map64_new();
    reload(writer);
}

static int
run_group(struct writer *writer, struct group *group)
{
    if (writer->memory_code != SQLITE_OK)
        reload(writer);
    if (writer->memory_code != SQLITE_OK || !group->has_writes)
        return writer->memory_code;
    int code = SQLITE_OK;
    if (group->has_sync)
        code = database_execute(writer->database, "PRAGMA synchronous = FULL");
    if (code == SQLITE_OK)
        code = write_group(writer, group);
    if (group->has_sync) {
        int back = database_execute(writer->database, "PRAGMA synchronous = NORMAL");
        code = code != SQLITE_OK ? code : back;
    }
    counter_add(writer->groups, 1);
    return code;
}

static void
answer_job(struct writer *writer, struct writing_job *job, int code, const char *why)
{
    if (code != SQLITE_OK && (job->what != WRITING_LEVEL || writer->memory_code != SQLITE_OK))
        job->err = database_error(NULL, code, why, job->arena);
    else if (job->what == WRITING_LEVEL)
        job->level = levels_get(&writer->levels, job->shard);
    loop_post_answer(job->loop, &job->letter);
}

/* The thread's function. */
static void
writer_drain(void *context, struct list *letters)
{
    struct writer *writer = context;
    struct group group = group_take(letters);
    int code = run_group(writer, &group);
    char why[200] = "";
    if (code != SQLITE_OK) {
        sqlite3_snprintf(sizeof why, why, "writing (%s)", sqlite3_errmsg(writer->database));
        roll_back(writer);
    }
    arena_reset(writer->arena);
    vector_each(job, &group.jobs)
        answer_job(writer, *job, code, why);
    vector_free(&group.jobs);
}

static void
job_done(struct letter *letter)
{
    struct writing_job *job = container_of(letter, struct writing_job, letter);
    job->is_done = true;
    fiber_wake(job->fiber);
}

struct error *
writer_do(struct writer *writer, struct writing_job *job)
{
    job->loop = loop_self();
    job->fiber = fiber_self();
    job->letter.deliver = job_done;
    check(job->fiber != NULL && job->arena != NULL);
    worker_post(writer->worker, &job->letter);
    while (!job->is_done)
        fiber_wait_uncancellable();
    return job->err;
}

/* ---- opening and closing ---- */

static int
prepare_all(struct writer *writer)
{
    const struct {
        sqlite3_stmt **statement;
        const char *text;
    } all[] = {{&writer->begin, "BEGIN IMMEDIATE"},
               {&writer->commit, "COMMIT"},
               {&writer->sync_put, "INSERT INTO syncs(id, count) VALUES (1, 1) "
                                   "ON CONFLICT(id) DO UPDATE SET count = count + 1"}};
    int code = SQLITE_OK;
    for (size_t i = 0; i < array_length(all) && code == SQLITE_OK; i++)
        code = sqlite3_prepare_v3(writer->database, all[i].text, -1, SQLITE_PREPARE_PERSISTENT,
                                  all[i].statement, NULL);
    if (code == SQLITE_OK)
        code = levels_open(&writer->levels, writer->database);
    return code;
}

static void
count_into(struct writer *writer, struct metrics *metrics)
{
    writer->fed = metrics_counter(metrics, "cadenza_visibility_changes_total",
                                  "Changes of runs that shards fed to visibility.", NULL);
    writer->written = metrics_counter(metrics, "cadenza_visibility_writes_total",
                                      "Changes that visibility wrote: the last of each run.", NULL);
    writer->groups = metrics_counter(metrics, "cadenza_visibility_transactions_total",
                                     "Transactions of visibility's writer.", NULL);
    writer->syncs = metrics_counter(metrics, "cadenza_visibility_syncs_total",
                                    "Times that visibility was made safe on disk.", NULL);
}

struct preparing {
    struct writer *writer;
    int code;
};

static void
prepare_on_pool(void *argument)
{
    struct preparing *preparing = argument;
    struct writer *writer = preparing->writer;
    preparing->code = record_open(&writer->record, writer->database);
    if (preparing->code == SQLITE_OK)
        preparing->code = prepare_all(writer);
}

static void
writer_free(struct writer *writer)
{
    record_close(&writer->record);
    sqlite3_finalize(writer->begin);
    sqlite3_finalize(writer->commit);
    sqlite3_finalize(writer->sync_put);
    levels_close(&writer->levels);
    map64_free(writer->pending);
    vector_free(&writer->changes);
    arena_free(writer->arena);
    int code = sqlite3_close(writer->database);
    check_that(code == SQLITE_OK, "a statement of the writer was left behind");
    memory_free(writer);
}

struct error *
database_writer_open(sqlite3 *database, struct metrics *metrics, struct arena *arena,
                     struct writer **writer)
{
    struct writer *opened = memory_zalloc(1, sizeof *opened);
    opened->database = database;
    opened->pending = map64_new();
    opened->arena = arena_new(64 * 1024);
    count_into(opened, metrics);
    struct preparing preparing = {.writer = opened};
    struct error *err = pool_run(prepare_on_pool, &preparing, arena);
    check_that(err == NULL, "no room in the pool while starting");
    err = database_error(database, preparing.code, "preparing", arena);
    if (err != NULL) {
        writer_free(opened);
        return err;
    }
    opened->worker = worker_new("visibility", writer_drain, opened);
    *writer = opened;
    return NULL;
}

static void
free_on_pool(void *argument)
{
    writer_free(argument);
}

void
database_writer_close(struct writer *writer)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    worker_free(writer->worker);
    struct error *err = pool_run(free_on_pool, writer, arena); /* the last one checkpoints */
    if (err != NULL)
        writer_free(writer);
}
