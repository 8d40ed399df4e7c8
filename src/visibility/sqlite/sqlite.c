/* sqlite.c - the engine: the file, its writer and its readers put together. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

struct sqlite_visibility {
    struct visibility visibility; /* first: a visibility is one of these */
    char *path;
    const struct log *log;
    struct metrics *own_metrics; /* where the caller has none */
    struct run_writer *run_writer;
    struct readers *readers;
    atomic_bool is_damaged; /* found damaged once: logged and remembered beside the file */
};

static struct sqlite_visibility *
sqlite_of(struct visibility *visibility)
{
    return container_of(visibility, struct sqlite_visibility, visibility);
}

/* Damage is logged once and remembered beside the file for the next start. Yields. */
static struct error *
notice(struct sqlite_visibility *sqlite, struct error *err)
{
    if (err == NULL || err->kind != ERR_CORRUPT || atomic_exchange(&sqlite->is_damaged, true))
        return err;
    log_fail(sqlite->log, "visibility is damaged; the next start rebuilds it", log_error(err),
             log_text("path", sqlite->path));
    database_condemn(sqlite->path);
    return err;
}

/* ---- feeding ---- */

static struct error *
sqlite_feed(struct visibility *visibility, const struct visibility_change *changes, size_t count,
            const struct attribute_set *attributes, struct arena *arena)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    struct writing_job job = {.what = WRITING_FEED,
                              .changes = changes,
                              .count = count,
                              .attributes = attributes,
                              .arena = arena};
    return count == 0 ? NULL : notice(sqlite, run_writer_do(sqlite->run_writer, &job));
}

static struct error *
sqlite_level(struct visibility *visibility, uint32_t shard, struct arena *arena, uint64_t *row)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    struct writing_job job = {.what = WRITING_LEVEL, .shard = shard, .arena = arena};
    struct error *err = run_writer_do(sqlite->run_writer, &job);
    *row = job.level;
    return notice(sqlite, err);
}

static struct error *
sqlite_sync(struct visibility *visibility, struct arena *arena)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    struct writing_job job = {.what = WRITING_SYNC, .arena = arena};
    return notice(sqlite, run_writer_do(sqlite->run_writer, &job));
}

/* In portions: what the engine feeds meanwhile must not wait for all of them. */
static struct error *
sqlite_forget(struct visibility *visibility, uint32_t shard, uint64_t level, struct arena *arena)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    struct error *err = NULL;
    for (int64_t after = 0; err == NULL && after != FORGET_DONE;) {
        struct writing_job job = {
            .what = WRITING_FORGET, .shard = shard, .level = level, .after = after, .arena = arena};
        err = notice(sqlite, run_writer_do(sqlite->run_writer, &job));
        after = job.after;
    }
    return err;
}

/* ---- asking ---- */

struct sqlite_list_call {
    const struct visibility_question *question;
    const struct token *from;
    struct arena *arena;
    struct visibility_page *page;
};

static int
ask_list(sqlite3 *database, void *argument)
{
    struct sqlite_list_call *call = argument;
    return question_list(database, call->question, call->from, call->arena, call->page);
}

static struct error *
sqlite_list(struct visibility *visibility, const struct visibility_question *question,
            struct arena *arena, struct visibility_page *page)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    struct token token;
    bool has_token = question->token.length > 0;
    struct sqlite_list_call call = {
        .question = question, .from = has_token ? &token : NULL, .arena = arena, .page = page};
    struct error *err = NULL;
    if (has_token)
        err = token_read(question->token, token_fingerprint(question), arena, &token);
    return err != NULL ? err : notice(sqlite, readers_ask(sqlite->readers, ask_list, &call, arena));
}

struct sqlite_count_call {
    const char *domain_id;
    const struct query *query;
    struct arena *arena;
    int64_t *count;
};

static int
ask_count(sqlite3 *database, void *argument)
{
    struct sqlite_count_call *call = argument;
    return question_count(database, call->domain_id, call->query, call->arena, call->count);
}

static struct error *
sqlite_count(struct visibility *visibility, const char *domain_id, const struct query *query,
             struct arena *arena, int64_t *count)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    struct sqlite_count_call call = {
        .domain_id = domain_id, .query = query, .arena = arena, .count = count};
    return notice(sqlite, readers_ask(sqlite->readers, ask_count, &call, arena));
}

/* ---- opening and closing ---- */

static void
sqlite_free(struct sqlite_visibility *sqlite)
{
    metrics_free(sqlite->own_metrics);
    memory_free(sqlite->path);
    memory_free(sqlite);
}

static void
sqlite_close(struct visibility *visibility)
{
    struct sqlite_visibility *sqlite = sqlite_of(visibility);
    readers_close(sqlite->readers);
    run_writer_close(sqlite->run_writer);
    sqlite_free(sqlite);
}

static const struct visibility_engine sqlite_engine = {
    .name = "sqlite",
    .close = sqlite_close,
    .feed = sqlite_feed,
    .level = sqlite_level,
    .sync = sqlite_sync,
    .forget = sqlite_forget,
    .list = sqlite_list,
    .count = sqlite_count,
};

static struct error *
open_writer(struct sqlite_visibility *sqlite, struct metrics *metrics, struct arena *arena)
{
    sqlite3 *database;
    const char *moved;
    struct error *err = database_open(sqlite->path, arena, &database, &moved);
    if (moved != NULL)
        log_warn(sqlite->log, "visibility was unusable and is being rebuilt",
                 log_text("path", sqlite->path), log_text("moved-to", moved));
    return err != NULL ? err : run_writer_open(database, metrics, arena, &sqlite->run_writer);
}

static struct error *
open_parts(struct sqlite_visibility *sqlite, struct metrics *metrics, struct arena *arena)
{
    struct error *err = open_writer(sqlite, metrics, arena);
    if (err != NULL &&
        err->kind == ERR_CORRUPT) { /* deeper than opening looked: try once more with a new file */
        database_condemn(sqlite->path);
        err = open_writer(sqlite, metrics, arena);
    }
    if (err != NULL)
        return err;
    err = readers_open(sqlite->path, metrics, arena, &sqlite->readers);
    if (err != NULL)
        run_writer_close(sqlite->run_writer);
    return err;
}

struct error *
visibility_open_sqlite(const struct visibility_options *options, struct arena *arena,
                       struct visibility **visibility)
{
    check(sqlite3_threadsafe() != 0 && options->path != NULL);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* a lock at each malloc; refused after the first */
    struct sqlite_visibility *sqlite = memory_zalloc(1, sizeof *sqlite);
    size_t length = strlen(options->path) + 1;
    sqlite->visibility.engine = &sqlite_engine;
    sqlite->log = options->log;
    sqlite->path = memory_alloc(length);
    memcpy(sqlite->path, options->path, length);
    struct metrics *metrics = options->metrics;
    if (metrics == NULL)
        metrics = sqlite->own_metrics = metrics_new();
    struct error *err = open_parts(sqlite, metrics, arena);
    if (err != NULL) {
        sqlite_free(sqlite);
        return err;
    }
    *visibility = &sqlite->visibility;
    return NULL;
}
