/* record.c - one run in the tables: found, inserted, changed, removed.
 *
 * What a run never changes (domain, workflow id, type, start time) is in no UPDATE, so the indexes
 * on it are left alone; if it has changed all the same, the row is created again.
 *
 * Beginning and ending a statement costs as much as what it does with a row. So runs that are not
 * known wait for each other; several are looked for by one statement, and inserted by one. A run
 * has one change at a time, so nothing asks for one that waits. */
#include "visibility/sqlite/record.h"

#include "base/check.h"

/* After the six that identify it: everything that may change, in this order. */
#define CHANGING                                                                                   \
    "shard, close, status, custom, execution, length, task_list, is_cron, clusters, updated, "     \
    "cron, execution_status, scheduled, scope, scope_name, info"

/* The writer rolls back the whole group after an error, so SQLite need not remember the statement's
 * part of it. */
#define INSERT_RUN                                                                                 \
    "INSERT OR ROLLBACK INTO runs(id, domain, workflow, run, type, start, " CHANGING ") VALUES "
#define ROW_OF_RUN "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
#define INSERT_KEY "INSERT OR IGNORE INTO key_recent(hash, owner) VALUES "
#define ROW_OF_KEY "(?,?)"
#define HASHES     "(VALUES (?1),(?2),(?3),(?4),(?5),(?6),(?7),(?8))" /* NULL is nobody's */
static_assert(RUN_ROWS_MAX == 8, "one for each run that waits");

/* A statement that inserts says `row` as often as it inserts rows. */
static const struct {
    const char *text, *row;
    int rows;
} texts[RECORD_STATEMENT_COUNT] = {
    [RECORD_OWNERS] = {"SELECT hash, owner FROM " HASHES " CROSS JOIN key_recent ON hash = column1 "
                       "UNION ALL "
                       "SELECT hash, owner FROM " HASHES " CROSS JOIN key ON hash = column1"},
    [RECORD_READ] = {"SELECT type, start, custom, workflow FROM runs "
                     "WHERE id = ?1 AND domain = ?2 AND run = ?3"},
    [RECORD_INSERT] = {INSERT_RUN, ROW_OF_RUN, 1},
    [RECORD_INSERT_MANY] = {INSERT_RUN, ROW_OF_RUN, RUN_ROWS_MAX},
    [RECORD_UPDATE] = {"UPDATE runs SET (" CHANGING
                       ") = (?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22) "
                       "WHERE id = ?1"},
    [RECORD_OF_SHARD] = {"SELECT id, domain, custom, workflow, run FROM runs "
                         "WHERE id > ? AND id <= ? AND shard = ?"},
    [RECORD_DELETE] = {"DELETE FROM runs WHERE id = ?"},
    [RECORD_KEY_INSERT] = {INSERT_KEY, ROW_OF_KEY, 2},
    [RECORD_KEY_INSERT_MANY] = {INSERT_KEY, ROW_OF_KEY, 2 * RUN_ROWS_MAX},
    [RECORD_KEY_DELETE_RECENT] = {"DELETE FROM key_recent WHERE hash = ? AND owner = ?"},
    [RECORD_KEY_DELETE] = {"DELETE FROM key WHERE hash = ? AND owner = ?"},
    [RECORD_KEY_MERGE] = {"INSERT OR IGNORE INTO key SELECT hash, owner FROM key_recent "
                          "WHERE hash BETWEEN ? AND ?"},
    [RECORD_KEY_MERGED] = {"DELETE FROM key_recent WHERE hash BETWEEN ? AND ?"},
    [RECORD_VALUE_INSERT] =
        {"INSERT OR IGNORE INTO value(owner, attribute, value) VALUES (?, ?, ?)"},
    [RECORD_VALUE_LIST] = {"SELECT attribute, value, kind FROM value JOIN names ON id = attribute "
                           "WHERE owner = ?"},
    [RECORD_VALUE_DELETE] = {"DELETE FROM value WHERE owner = ?"},
    [RECORD_SEARCH_INSERT] =
        {"INSERT OR IGNORE INTO search(attribute, value, owner) VALUES (?,?,?)"},
    [RECORD_SEARCH_DELETE] = {"DELETE FROM search WHERE attribute = ? AND value = ? AND owner = ?"},
};

/* ---- opening ---- */

static int
read_number(sqlite3 *database, const char *text, int64_t *number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    if (sqlite3_step(statement) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    return sqlite3_finalize(statement);
}

int
record_reload(struct record_writer *writer)
{
    writer->waiting = 0;
    names_forget(&writer->names);
    known_forget(&writer->known);
    int64_t last = 0;
    int code = read_number(writer->database, "SELECT max(id) FROM runs", &last);
    writer->next_id = last + 1;
    if (code != SQLITE_OK)
        return code;
    return read_number(writer->database, "SELECT count(*) FROM key_recent", &writer->recent);
}

static int
prepare(struct record_writer *writer, int number)
{
    struct buffer text = {0};
    buffer_append_text(&text, texts[number].text);
    for (int i = 0; i < texts[number].rows; i++) {
        buffer_append_text(&text, i == 0 ? "" : ",");
        buffer_append_text(&text, texts[number].row);
    }
    struct slice whole = buffer_slice(&text);
    int code = sqlite3_prepare_v3(writer->database, (const char *)whole.data, (int)whole.length,
                                  SQLITE_PREPARE_PERSISTENT, &writer->statements[number], NULL);
    buffer_free(&text);
    return code;
}

int
record_open(struct record_writer *writer, sqlite3 *database)
{
    *writer = (struct record_writer){.database = database};
    writer->statements = memory_zalloc(RECORD_STATEMENT_COUNT, sizeof *writer->statements);
    writer->run_row = memory_zalloc(RUN_ROWS_MAX, sizeof writer->run_row[0]);
    known_open(&writer->known);
    int code = names_open(&writer->names, database);
    for (int i = 0; i < RECORD_STATEMENT_COUNT && code == SQLITE_OK; i++)
        code = prepare(writer, i);
    return code != SQLITE_OK ? code : record_reload(writer);
}

void
record_close(struct record_writer *writer)
{
    for (int i = 0; i < RECORD_STATEMENT_COUNT; i++)
        sqlite3_finalize(writer->statements[i]);
    memory_free(writer->statements);
    memory_free(writer->run_row);
    names_close(&writer->names);
    known_close(&writer->known);
}

/* ---- finding ---- */

static struct slice
column_slice(sqlite3_stmt *statement, int column)
{
    const void *bytes = sqlite3_column_text(statement, column);
    return slice_of(bytes, (size_t)sqlite3_column_bytes(statement, column));
}

/* Is the row with this id the run's? Then it is found. */
static int
read_row(struct record_writer *writer, int64_t id, struct run_row *run_row)
{
    sqlite3_stmt *statement = writer->statements[RECORD_READ];
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, run_row->run.domain);
    text_bind(statement, 3, run_row->run_id);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        struct slice workflow = column_slice(statement, 3);
        run_row->found = (struct known_run){
            .id = id,
            .domain = run_row->run.domain,
            .type = sqlite3_column_int64(statement, 0),
            .start = sqlite3_column_int64(statement, 1),
            .custom = sqlite3_column_int64(statement, 2),
            .workflow = key_hash(run_row->run.domain, COLUMN_WORKFLOW_ID, workflow)};
    }
    return statement_end(statement);
}

/* Looks for the rows of runs that are not known. Most are new: nobody has their hash, and `runs` is
 * not looked at. */
static int
find_runs(struct record_writer *writer, struct run_row *run_row, size_t count)
{
    sqlite3_stmt *statement = writer->statements[RECORD_OWNERS];
    int code = SQLITE_OK;
    for (size_t i = 0; i < count; i++)
        sqlite3_bind_int64(statement, (int)i + 1, run_row[i].hash);
    while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        int64_t hash = sqlite3_column_int64(statement, 0), id = sqlite3_column_int64(statement, 1);
        for (size_t i = 0; i < count && code == SQLITE_OK; i++)
            if (run_row[i].hash == hash && run_row[i].found.id == 0)
                code = read_row(writer, id, &run_row[i]);
    }
    int end = statement_end(statement);
    return code != SQLITE_OK ? code : end;
}

/* ---- removing ---- */

static int
delete_found(struct record_writer *writer, const struct known_run *found, int64_t hash,
             struct arena *arena)
{
    int64_t hashes[2] = {found->workflow, hash};
    int code = keys_delete(writer, found->id, hashes);
    if (code == SQLITE_OK && found->custom != 0)
        code = values_delete(writer, found->id, arena);
    sqlite3_bind_int64(writer->statements[RECORD_DELETE], 1, found->id);
    return code != SQLITE_OK ? code : statement_run(writer->statements[RECORD_DELETE]);
}

static int
delete_run(struct record_writer *writer, int64_t domain, struct slice run_id, struct arena *arena)
{
    struct run_row gone = {
        .run.domain = domain, .run_id = run_id, .hash = key_hash(domain, COLUMN_RUN_ID, run_id)};
    int code = SQLITE_OK;
    if (!known_take(&writer->known, domain, run_id, &gone.found))
        code = find_runs(writer, &gone, 1);
    return code != SQLITE_OK || gone.found.id == 0
               ? code
               : delete_found(writer, &gone.found, gone.hash, arena);
}

/* A run of a shard that goes. */
struct leaving {
    struct known_run run;
    struct slice run_id;
};

/* The runs of a shard with numbers above the first up to the second of the range. */
static int
list_leaving(struct record_writer *writer, const int64_t range[2], uint32_t shard,
             struct arena *arena, struct leaving *leaving, size_t *count)
{
    sqlite3_stmt *statement = writer->statements[RECORD_OF_SHARD];
    sqlite3_bind_int64(statement, 1, range[0]);
    sqlite3_bind_int64(statement, 2, range[1]);
    sqlite3_bind_int64(statement, 3, shard);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        check(*count < FORGET_STEP); /* ids of the range */
        struct leaving *one = &leaving[(*count)++];
        int64_t domain = sqlite3_column_int64(statement, 1);
        one->run = (struct known_run){
            .id = sqlite3_column_int64(statement, 0),
            .domain = domain,
            .custom = sqlite3_column_int64(statement, 2),
            .workflow = key_hash(domain, COLUMN_WORKFLOW_ID, column_slice(statement, 3))};
        one->run_id = arena_slice(arena, column_slice(statement, 4));
    }
    return sqlite3_reset(statement);
}

int
record_forget(struct record_writer *writer, uint32_t shard, int64_t *after, struct arena *arena)
{
    int64_t range[2] = {*after, *after + FORGET_STEP};
    struct leaving *leaving = arena_zalloc(arena, FORGET_STEP, sizeof leaving[0]);
    size_t count = 0;
    int code = list_leaving(writer, range, shard, arena, leaving, &count);
    for (size_t i = 0; i < count && code == SQLITE_OK; i++) {
        const struct known_run *run = &leaving[i].run;
        struct known_run known;
        known_take(&writer->known, run->domain, leaving[i].run_id, &known);
        int64_t hash = key_hash(run->domain, COLUMN_RUN_ID, leaving[i].run_id);
        code = delete_found(writer, run, hash, arena);
    }
    *after = range[1] >= writer->next_id - 1 ? FORGET_DONE : range[1];
    return code;
}

/* ---- writing ---- */

/* Is it the same in what an UPDATE leaves alone? */
static bool
is_same(const struct known_run *one, const struct known_run *other)
{
    return one->type == other->type && one->start == other->start &&
           one->workflow == other->workflow;
}

static void
remember(struct record_writer *writer, const struct run_row *run_row)
{
    if (!run_row->row.has[COLUMN_CLOSE_STATUS])
        known_put(&writer->known, run_row->run_id, &run_row->run);
}

static int
update_run(struct record_writer *writer, struct run_row *run_row, struct arena *arena)
{
    const struct known_run *found = &run_row->found;
    int code = SQLITE_OK;
    check(found->id > 0 && is_same(found, &run_row->run));
    bool has_changed = found->custom != run_row->run.custom;
    if (has_changed && found->custom != 0)
        code = values_delete(writer, found->id, arena);
    if (code == SQLITE_OK && has_changed && run_row->run.custom != 0)
        code = values_insert(writer, found->id, found->domain, &run_row->row, arena);
    if (code != SQLITE_OK)
        return code;
    sqlite3_stmt *statement = writer->statements[RECORD_UPDATE];
    sqlite3_bind_int64(statement, 1, found->id);
    run_row_bind_changing(statement, 0, run_row);
    run_row->run.id = found->id;
    remember(writer, run_row);
    return statement_run(statement);
}

/* All that a new run has but its row and its keys; a row that cannot be changed goes before. */
static int
begin_run(struct record_writer *writer, struct run_row *run_row, struct arena *arena)
{
    int code = SQLITE_OK;
    if (run_row->found.id != 0)
        code = delete_found(writer, &run_row->found, run_row->hash, arena);
    check(writer->next_id > 0);
    run_row->run.id = writer->next_id++;
    if (code == SQLITE_OK && run_row->run.custom != 0)
        code = values_insert(writer, run_row->run.id, run_row->run.domain, &run_row->row, arena);
    remember(writer, run_row);
    return code;
}

/* Inserts new runs; the statements have rows for all, or for one. */
static int
insert_runs(struct record_writer *writer, size_t count, enum record_statement runs,
            enum record_statement keys)
{
    sqlite3_stmt **statements = writer->statements;
    size_t rows = (size_t)texts[runs].rows;
    int code = SQLITE_OK;
    for (size_t i = 0; i < count && code == SQLITE_OK; i++) {
        run_row_bind(statements[runs], (int)(i % rows), &writer->run_row[i]);
        run_row_bind_keys(statements[keys], (int)(i % rows), &writer->run_row[i]);
        if (i % rows < rows - 1)
            continue;
        code = statement_run(statements[runs]);
        if (code == SQLITE_OK)
            code = statement_run(statements[keys]);
    }
    writer->recent += 2 * (int64_t)count;
    return code;
}

int
record_flush(struct record_writer *writer, struct arena *arena)
{
    size_t count = 0; /* new runs: they come to the front */
    if (writer->waiting == 0)
        return SQLITE_OK;
    int code = find_runs(writer, writer->run_row, writer->waiting);
    for (size_t i = 0; i < writer->waiting && code == SQLITE_OK; i++) {
        struct run_row *run_row = &writer->run_row[i];
        if (run_row->found.id != 0 && is_same(&run_row->found, &run_row->run)) {
            code = update_run(writer, run_row, arena);
            continue;
        }
        code = begin_run(writer, run_row, arena);
        if (i != count)
            writer->run_row[count] = *run_row;
        count++;
    }
    check(count <= writer->waiting && writer->waiting <= RUN_ROWS_MAX);
    writer->waiting = 0;
    if (code != SQLITE_OK)
        return code;
    return count == RUN_ROWS_MAX
               ? insert_runs(writer, count, RECORD_INSERT_MANY, RECORD_KEY_INSERT_MANY)
               : insert_runs(writer, count, RECORD_INSERT, RECORD_KEY_INSERT);
}

int
record_write(struct record_writer *writer, const struct visibility_change *change,
             const struct attribute_set *attributes, struct arena *arena)
{
    int64_t domain;
    int code = names_number(&writer->names, 0, NAME_DOMAIN, slice_text(change->domain_id), &domain);
    if (code != SQLITE_OK)
        return code;
    if (change->info.length == 0)
        return delete_run(writer, domain, slice_text(change->run_id), arena);
    check(writer->waiting < RUN_ROWS_MAX);
    struct run_row *run_row = &writer->run_row[writer->waiting];
    code = run_row_read(&writer->names, change, domain, attributes, arena, run_row);
    if (code != SQLITE_OK)
        return code;
    if (known_take(&writer->known, domain, run_row->run_id, &run_row->found) &&
        is_same(&run_row->found, &run_row->run))
        return update_run(writer, run_row, arena);
    return ++writer->waiting < RUN_ROWS_MAX ? SQLITE_OK : record_flush(writer, arena);
}
