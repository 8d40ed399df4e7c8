/* database.c - the file: its schema, who may open it, and what is done with one that is unusable.
 *
 * Nothing in the file is the truth: the runs are. So a file that is damaged, or was written by
 * another version of the schema, is moved aside and an empty one made; its levels are 0, and the
 * shards feed it again. Damage that shows later is answered with ERR_CORRUPT, and remembered by a
 * file beside it, so that the next start does the same.
 *
 * The tables, and why they are so:
 *   runs         one row a run, in the order of arrival: new rows fill the last page. `info` comes
 *                last, it is read for the runs of a page only.
 *   key          finds a run by workflow id or run id. Both are random, so each insertion would
 *                change another page, and a changed page costs more than all else. key_recent is a
 *                small tree of the same form that takes all new keys; they go over into the large
 *                one slice by slice, several to a page.
 *   value        custom attributes by run: to test one of a run, and to remove them.
 *   search       the same by value: to find runs. Of STRING attributes: each word.
 * Columns that are joined have a type: SQLite does not look a number up in a column that has none.
 * All indexes on `runs` but the last begin with what is few and go on by time, so that insertions
 * go to the ends of few ranges. The index by status leaves completed runs (0) out: they are what is
 * most, and found by the others. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "visibility/sqlite/inside.h"

#define SCHEMA_VERSION 1
#define APPLICATION_ID 0x43644e56 /* "CdNV" */

#define TEXT_OF_(number) #number
#define TEXT_OF(number)  TEXT_OF_(number)

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE levels(shard INTEGER PRIMARY KEY, row INTEGER NOT NULL);"
    "CREATE TABLE syncs(id INTEGER PRIMARY KEY, count INTEGER NOT NULL);"
    "CREATE TABLE names(id INTEGER PRIMARY KEY, domain INTEGER, kind INTEGER, text, UNIQUE(domain, "
    "kind, text));"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, domain INTEGER, shard INTEGER,"
    "  start INTEGER, type INTEGER, close INTEGER, status INTEGER,"
    "  workflow, run, custom, execution, length, task_list, is_cron, clusters, updated,"
    "  cron, execution_status, scheduled, scope, scope_name, info);"
    "CREATE INDEX run_by_start ON runs(domain, start);"
    "CREATE INDEX run_by_type ON runs(type, start);"
    "CREATE INDEX run_by_close ON runs(domain, close) WHERE close IS NOT NULL;"
    "CREATE INDEX run_open ON runs(domain, start) WHERE close IS NULL;"
    "CREATE INDEX run_by_status ON runs(domain, status, start) WHERE status <> 0;"
    "CREATE TABLE key(hash INTEGER, owner INTEGER, PRIMARY KEY(hash, owner)) WITHOUT ROWID;"
    "CREATE TABLE key_recent(hash INTEGER, owner INTEGER, PRIMARY KEY(hash, owner)) WITHOUT ROWID;"
    "CREATE TABLE value(owner INTEGER, attribute INTEGER, value,"
    "  PRIMARY KEY(owner, attribute, value)) WITHOUT ROWID;"
    "CREATE TABLE search(attribute INTEGER, value, owner INTEGER,"
    "  PRIMARY KEY(attribute, value, owner)) WITHOUT ROWID;"
    "PRAGMA application_id = " TEXT_OF(APPLICATION_ID) ";"
                                                       "PRAGMA user_version = " TEXT_OF(
                                                           SCHEMA_VERSION) ";"
                                                                           "COMMIT;";

/* NORMAL: a commit does not wait for the disk, see writer.c for what does. */
static const char settings[] = "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = NORMAL;"
                               "PRAGMA wal_autocheckpoint = 4000;"
                               "PRAGMA journal_size_limit = 67108864;"
                               "PRAGMA cache_size = -32768;"
                               "PRAGMA temp_store = MEMORY;";

/* ---- codes ---- */

static enum error_kind
error_kind_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERR_CORRUPT;
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return ERR_IO;
    case SQLITE_INTERRUPT:
        return ERR_DEADLINE;
    default:
        return ERR_UNAVAILABLE;
    }
}

struct error *
database_error(sqlite3 *database, int code, const char *doing, struct arena *arena)
{
    if (code == SQLITE_OK)
        return NULL;
    const char *detail = database == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(database);
    return error_new(arena, error_kind_of(code), "visibility: %s: %s (%d)", doing, detail, code);
}

int
database_execute(sqlite3 *database, const char *text)
{
    return sqlite3_exec(database, text, NULL, NULL, NULL);
}

int
statement_run(sqlite3_stmt *statement)
{
    while (sqlite3_step(statement) == SQLITE_ROW)
        continue;
    return statement_end(statement);
}

int
statement_end(sqlite3_stmt *statement)
{
    int code = sqlite3_reset(statement); /* the step's own failure again */
    sqlite3_clear_bindings(statement);
    return code;
}

/* ---- opening ---- */

static int
read_number(sqlite3 *database, const char *text, int64_t *number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    int end = sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : end;
}

/* SQLITE_NOTADB: not a file of ours, or of another version. An empty file gets the schema. */
static int
adopt_file(sqlite3 *database)
{
    int64_t tables, application = 0, version = 0, levels;
    int code = read_number(database, "SELECT count(*) FROM sqlite_schema", &tables);
    if (code == SQLITE_OK)
        code = database_execute(database, settings);
    if (code == SQLITE_OK && tables == 0)
        return database_execute(database, schema);
    if (code == SQLITE_OK)
        code = read_number(database, "PRAGMA application_id", &application);
    if (code == SQLITE_OK)
        code = read_number(database, "PRAGMA user_version", &version);
    if (code != SQLITE_OK)
        return code;
    if (application != APPLICATION_ID || version != SCHEMA_VERSION)
        return SQLITE_NOTADB;
    return read_number(database, "SELECT count(*) FROM levels", &levels);
}

static int
open_connection(const char *path, int flags, sqlite3 **database)
{
    int code = sqlite3_open_v2(path, database, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return code;
    sqlite3_extended_result_codes(*database, 1);
    sqlite3_busy_timeout(*database, 1000);
    return functions_register(*database);
}

struct database_opening {
    const char *path;
    sqlite3 *database;
    int code;
};

static void
open_writer(void *argument)
{
    struct database_opening *database_opening = argument;
    database_opening->code =
        open_connection(database_opening->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        &database_opening->database);
    if (database_opening->code == SQLITE_OK)
        database_opening->code = adopt_file(database_opening->database);
}

int
database_open_reader(const char *path, sqlite3 **reader)
{
    int code = open_connection(path, SQLITE_OPEN_READONLY, reader);
    return code != SQLITE_OK ? code
                             : database_execute(*reader, "PRAGMA cache_size = -8192;"
                                                         "PRAGMA temp_store = MEMORY;"
                                                         "PRAGMA query_only = 1;");
}

/* ---- unusable files ---- */

static const char *
condemned_path(const char *path, struct arena *arena)
{
    return arena_format(arena, "%s.damaged", path);
}

static bool
file_is_there(const char *path, struct arena *arena)
{
    int64_t modified;
    uint64_t size;
    return file_stat(path, &modified, &size, arena) == NULL;
}

void
database_condemn(const char *path)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = file_save(condemned_path(path, arena), slice_text("damaged\n"), arena);
    (void)err; /* the disk is what is bad: the next opening may see the damage itself */
}

static struct error *
rename_if_there(const char *from, const char *to, struct arena *arena)
{
    struct error *err = file_rename(from, to, arena);
    return err != NULL && err->kind == ERR_NOT_FOUND ? NULL : err;
}

/* The file, and its log: what is in the log belongs to it. The shared memory holds nothing. */
static struct error *
move_aside(const char *path, struct arena *arena, const char **moved)
{
    *moved = arena_format(arena, "%s.unusable-%lld", path, (long long)clock_wall());
    struct error *err = rename_if_there(path, *moved, arena);
    if (err == NULL)
        err = rename_if_there(arena_format(arena, "%s-wal", path),
                              arena_format(arena, "%s-wal", *moved), arena);
    if (err == NULL)
        err = rename_if_there(arena_format(arena, "%s-shm", path),
                              arena_format(arena, "%s-shm", *moved), arena);
    if (err != NULL)
        return err;
    err = file_remove(condemned_path(path, arena), arena);
    return err != NULL && err->kind == ERR_NOT_FOUND ? NULL : err;
}

static struct error *
open_once(const char *path, struct arena *arena, sqlite3 **writer)
{
    struct database_opening database_opening = {.path = path};
    struct error *err = pool_run(open_writer, &database_opening, arena);
    if (err == NULL)
        err = database_error(database_opening.database, database_opening.code, path, arena);
    *writer = database_opening.database;
    if (err != NULL)
        sqlite3_close(database_opening.database);
    return err;
}

struct error *
database_open(const char *path, struct arena *arena, sqlite3 **writer, const char **moved)
{
    *moved = NULL;
    if (!file_is_there(condemned_path(path, arena), arena)) {
        struct error *err = open_once(path, arena, writer);
        if (err == NULL || err->kind != ERR_CORRUPT)
            return err;
    }
    struct error *err = move_aside(path, arena, moved);
    return err != NULL ? error_wrap(err, "%s is unusable", path) : open_once(path, arena, writer);
}
