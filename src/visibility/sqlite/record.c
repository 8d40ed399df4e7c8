/* record.c - one run in the tables: found, inserted, changed, removed.
 *
 * A run that is there is found by its start time first: those of recent runs lie together at the
 * end of an index, while the place of a run id is random. What a run never changes (domain,
 * workflow id, type, start time) is in no UPDATE, so the indexes on it are left alone; should it
 * have changed all the same, the row is made anew. */
#include "visibility/sqlite/record.h"
#include "base/check.h"
#include "visibility/sqlite/inside.h"
#include "wire/message.h"

#include "uber/cadence/api/v1/workflow.pb-c.h"

#define KEY_RECENT_MAX 16384 /* entries, two of a run */

/* After the six that identify it: everything that may change, in this order. */
#define CHANGING                                                                                   \
    "shard, close, status, custom, execution, length, task_list, is_cron, clusters, updated, "     \
    "cron, execution_status, scheduled, scope, scope_name, info"

static const char *const statement_text[RECORD_STATEMENT_COUNT] = {
    [RECORD_FIND_BY_START] = "SELECT id, type, start, custom, workflow FROM runs "
                             "INDEXED BY run_by_start WHERE domain = ? AND start = ? AND run = ?",
    [RECORD_FIND_RECENT] = "SELECT id, type, start, custom, workflow FROM key_recent JOIN runs "
                           "ON id = owner WHERE hash = ? AND domain = ? AND run = ?",
    [RECORD_FIND] = "SELECT id, type, start, custom, workflow FROM key JOIN runs "
                    "ON id = owner WHERE hash = ? AND domain = ? AND run = ?",
    [RECORD_INSERT] = "INSERT INTO runs(id, domain, workflow, run, type, start, " CHANGING
                      ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [RECORD_UPDATE] = "UPDATE runs SET (" CHANGING
                      ") = (?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22) "
                      "WHERE id = ?1",
    [RECORD_DELETE] = "DELETE FROM runs WHERE id = ?",
    [RECORD_KEY_INSERT] = "INSERT OR IGNORE INTO key_recent(hash, owner) VALUES (?, ?)",
    [RECORD_KEY_DELETE_RECENT] = "DELETE FROM key_recent WHERE hash = ? AND owner = ?",
    [RECORD_KEY_DELETE] = "DELETE FROM key WHERE hash = ? AND owner = ?",
    [RECORD_VALUE_INSERT] = "INSERT OR IGNORE INTO value(owner, attribute, value) VALUES (?, ?, ?)",
    [RECORD_VALUE_LIST] = "SELECT attribute, value, kind FROM value JOIN names ON id = attribute "
                          "WHERE owner = ?",
    [RECORD_VALUE_DELETE] = "DELETE FROM value WHERE owner = ?",
    [RECORD_SEARCH_INSERT] = "INSERT OR IGNORE INTO search(attribute, value, owner) VALUES (?,?,?)",
    [RECORD_SEARCH_DELETE] = "DELETE FROM search WHERE attribute = ? AND value = ? AND owner = ?",
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
    names_forget(&writer->names);
    int64_t last = 0;
    int code = read_number(writer->database, "SELECT max(id) FROM runs", &last);
    writer->next_id = last + 1;
    if (code != SQLITE_OK)
        return code;
    return read_number(writer->database, "SELECT count(*) FROM key_recent", &writer->recent);
}

int
record_open(struct record_writer *writer, sqlite3 *database)
{
    *writer = (struct record_writer){.database = database};
    writer->statements = memory_zalloc(RECORD_STATEMENT_COUNT, sizeof *writer->statements);
    int code = names_open(&writer->names, database);
    for (int i = 0; i < RECORD_STATEMENT_COUNT && code == SQLITE_OK; i++)
        code = sqlite3_prepare_v3(database, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                                  &writer->statements[i], NULL);
    return code != SQLITE_OK ? code : record_reload(writer);
}

void
record_close(struct record_writer *writer)
{
    for (int i = 0; i < RECORD_STATEMENT_COUNT; i++)
        sqlite3_finalize(writer->statements[i]);
    memory_free(writer->statements);
    names_close(&writer->names);
}

/* ---- finding ---- */

struct found {
    int64_t id; /* 0: not there */
    int64_t type, start, custom;
    bool has_type, has_start;
    struct slice workflow; /* in the arena */
};

static int
find_bound(sqlite3_stmt *statement, struct arena *arena, struct found *found)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *found = (struct found){.id = sqlite3_column_int64(statement, 0),
                                .type = sqlite3_column_int64(statement, 1),
                                .has_type = sqlite3_column_type(statement, 1) != SQLITE_NULL,
                                .start = sqlite3_column_int64(statement, 2),
                                .has_start = sqlite3_column_type(statement, 2) != SQLITE_NULL,
                                .custom = sqlite3_column_int64(statement, 3)};
        const void *workflow = sqlite3_column_text(statement, 4);
        found->workflow =
            arena_slice(arena, slice_of(workflow, (size_t)sqlite3_column_bytes(statement, 4)));
    }
    int end = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code == SQLITE_ROW ? SQLITE_OK : end;
}

static int
find_by_start(struct record_writer *writer, int64_t domain, int64_t start, struct slice run_id,
              struct arena *arena, struct found *found)
{
    sqlite3_stmt *statement = writer->statements[RECORD_FIND_BY_START];
    sqlite3_bind_int64(statement, 1, domain);
    sqlite3_bind_int64(statement, 2, start);
    text_bind(statement, 3, run_id);
    return find_bound(statement, arena, found);
}

static int
find_by_key(struct record_writer *writer, int64_t domain, struct slice run_id, struct arena *arena,
            struct found *found)
{
    static const int both[] = {RECORD_FIND_RECENT, RECORD_FIND};
    int code = SQLITE_OK;
    for (int i = 0; i < 2 && code == SQLITE_OK && found->id == 0; i++) {
        sqlite3_stmt *statement = writer->statements[both[i]];
        sqlite3_bind_int64(statement, 1, key_hash(domain, COLUMN_RUN_ID, run_id));
        sqlite3_bind_int64(statement, 2, domain);
        text_bind(statement, 3, run_id);
        code = find_bound(statement, arena, found);
    }
    return code;
}

/* ---- keys ---- */

static int
keys_do(struct record_writer *writer, int statement_number, int64_t id, const int64_t hashes[2])
{
    int code = SQLITE_OK;
    for (int i = 0; i < 2 && code == SQLITE_OK; i++) {
        sqlite3_stmt *statement = writer->statements[statement_number];
        sqlite3_bind_int64(statement, 1, hashes[i]);
        sqlite3_bind_int64(statement, 2, id);
        code = statement_run(statement);
    }
    return code;
}

int
record_settle(struct record_writer *writer)
{
    if (writer->recent < KEY_RECENT_MAX)
        return SQLITE_OK;
    writer->recent = 0;
    return database_execute(writer->database,
                            "INSERT OR IGNORE INTO key SELECT hash, owner FROM key_recent;"
                            "DELETE FROM key_recent;");
}

/* ---- removing ---- */

static int
delete_found(struct record_writer *writer, int64_t domain, const struct found *found,
             struct slice run_id, struct arena *arena)
{
    int64_t hashes[2] = {key_hash(domain, COLUMN_WORKFLOW_ID, found->workflow),
                         key_hash(domain, COLUMN_RUN_ID, run_id)};
    int code = keys_do(writer, RECORD_KEY_DELETE_RECENT, found->id, hashes);
    if (code == SQLITE_OK)
        code = keys_do(writer, RECORD_KEY_DELETE, found->id, hashes);
    if (code == SQLITE_OK && found->custom != 0)
        code = values_delete(writer, found->id, arena);
    sqlite3_bind_int64(writer->statements[RECORD_DELETE], 1, found->id);
    return code != SQLITE_OK ? code : statement_run(writer->statements[RECORD_DELETE]);
}

static int
delete_run(struct record_writer *writer, int64_t domain, struct slice run_id, struct arena *arena)
{
    struct found found = {0};
    int code = find_by_key(writer, domain, run_id, arena, &found);
    return code != SQLITE_OK || found.id == 0 ? code
                                              : delete_found(writer, domain, &found, run_id, arena);
}

int
record_forget(struct record_writer *writer, uint32_t shard)
{
    char *text = sqlite3_mprintf("CREATE TEMP TABLE gone(id INTEGER PRIMARY KEY);"
                                 "INSERT INTO gone SELECT id FROM runs WHERE shard = %u;"
                                 "DELETE FROM key WHERE owner IN gone;"
                                 "DELETE FROM key_recent WHERE owner IN gone;"
                                 "DELETE FROM search WHERE owner IN gone;"
                                 "DELETE FROM value WHERE owner IN gone;"
                                 "DELETE FROM runs WHERE id IN gone;"
                                 "DROP TABLE gone;",
                                 shard);
    check(text != NULL);
    int code = database_execute(writer->database, text);
    sqlite3_free(text);
    return code;
}

/* ---- writing ---- */

struct fresh {
    struct visibility_row row;
    int64_t domain, type, task_list, custom; /* type, task list: 0 for none */
    struct slice workflow, run_id, info;
};

static int
fresh_read(struct record_writer *writer, const struct visibility_change *change, int64_t domain,
           const struct attribute_set *attributes, struct arena *arena, struct fresh *fresh)
{
    visibility_read_row(change, attributes, arena, &fresh->row);
    fresh->domain = domain;
    fresh->workflow = slice_text(change->workflow_id);
    fresh->run_id = slice_text(change->run_id);
    fresh->info = message_encode(arena, &change->info->base);
    fresh->custom = values_fingerprint(&fresh->row);
    int code = SQLITE_OK;
    if (fresh->row.has[COLUMN_WORKFLOW_TYPE])
        code = names_number(&writer->names, domain, NAME_TYPE,
                            fresh->row.column[COLUMN_WORKFLOW_TYPE].text, &fresh->type);
    if (code == SQLITE_OK && fresh->row.has[COLUMN_TASK_LIST])
        code = names_number(&writer->names, domain, NAME_TASK_LIST,
                            fresh->row.column[COLUMN_TASK_LIST].text, &fresh->task_list);
    return code;
}

static void
bind_number(sqlite3_stmt *statement, int index, int64_t number)
{
    if (number != 0)
        sqlite3_bind_int64(statement, index, number);
}

/* What is not bound is NULL. */
static void
bind_changing(sqlite3_stmt *statement, const struct fresh *fresh, uint32_t shard)
{
    static const struct {
        int index;
        enum attribute_column column;
    } plain[] = {{8, COLUMN_CLOSE_TIME},
                 {9, COLUMN_CLOSE_STATUS},
                 {11, COLUMN_EXECUTION_TIME},
                 {12, COLUMN_HISTORY_LENGTH},
                 {14, COLUMN_IS_CRON},
                 {15, COLUMN_NUM_CLUSTERS},
                 {16, COLUMN_UPDATE_TIME},
                 {17, COLUMN_CRON_SCHEDULE},
                 {18, COLUMN_EXECUTION_STATUS},
                 {19, COLUMN_SCHEDULED_EXECUTION_TIME},
                 {20, COLUMN_CLUSTER_ATTRIBUTE_SCOPE},
                 {21, COLUMN_CLUSTER_ATTRIBUTE_NAME}};
    sqlite3_bind_int64(statement, 7, shard);
    bind_number(statement, 10, fresh->custom);
    bind_number(statement, 13, fresh->task_list);
    for (size_t i = 0; i < array_length(plain); i++)
        if (fresh->row.has[plain[i].column])
            value_bind(statement, plain[i].index, &fresh->row.column[plain[i].column]);
    sqlite3_bind_blob64(statement, 22, fresh->info.data, fresh->info.length, SQLITE_STATIC);
}

static int
insert_run(struct record_writer *writer, const struct fresh *fresh, uint32_t shard,
           struct arena *arena)
{
    sqlite3_stmt *statement = writer->statements[RECORD_INSERT];
    int64_t id = writer->next_id++;
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int64(statement, 2, fresh->domain);
    text_bind(statement, 3, fresh->workflow);
    text_bind(statement, 4, fresh->run_id);
    bind_number(statement, 5, fresh->type);
    if (fresh->row.has[COLUMN_START_TIME])
        value_bind(statement, 6, &fresh->row.column[COLUMN_START_TIME]);
    bind_changing(statement, fresh, shard);
    int code = statement_run(statement);
    int64_t hashes[2] = {key_hash(fresh->domain, COLUMN_WORKFLOW_ID, fresh->workflow),
                         key_hash(fresh->domain, COLUMN_RUN_ID, fresh->run_id)};
    writer->recent += 2;
    if (code == SQLITE_OK)
        code = keys_do(writer, RECORD_KEY_INSERT, id, hashes);
    if (code == SQLITE_OK && fresh->custom != 0)
        code = values_insert(writer, id, fresh->domain, &fresh->row, arena);
    return code;
}

static int
update_run(struct record_writer *writer, const struct found *found, const struct fresh *fresh,
           uint32_t shard, struct arena *arena)
{
    int code = SQLITE_OK;
    bool has_changed = found->custom != fresh->custom;
    if (has_changed && found->custom != 0)
        code = values_delete(writer, found->id, arena);
    if (code == SQLITE_OK && has_changed && fresh->custom != 0)
        code = values_insert(writer, found->id, fresh->domain, &fresh->row, arena);
    if (code != SQLITE_OK)
        return code;
    sqlite3_stmt *statement = writer->statements[RECORD_UPDATE];
    sqlite3_bind_int64(statement, 1, found->id);
    bind_changing(statement, fresh, shard);
    return statement_run(statement);
}

/* Is it the same in what an UPDATE leaves alone? */
static bool
is_same(const struct found *found, const struct fresh *fresh, int64_t start)
{
    return found->type == fresh->type && found->has_type == (fresh->type != 0) &&
           found->has_start == fresh->row.has[COLUMN_START_TIME] && found->start == start &&
           slice_equal(found->workflow, fresh->workflow);
}

static int
put_run(struct record_writer *writer, const struct visibility_change *change, int64_t domain,
        const struct attribute_set *attributes, struct arena *arena)
{
    struct fresh fresh = {0};
    struct found found = {0};
    int code = fresh_read(writer, change, domain, attributes, arena, &fresh);
    int64_t start = 0;
    if (fresh.row.has[COLUMN_START_TIME])
        start = fresh.row.column[COLUMN_START_TIME].integer;
    if (code == SQLITE_OK)
        code = find_by_start(writer, domain, start, fresh.run_id, arena, &found);
    if (code == SQLITE_OK && found.id == 0)
        code = find_by_key(writer, domain, fresh.run_id, arena, &found);
    if (code != SQLITE_OK)
        return code;
    if (found.id != 0 && is_same(&found, &fresh, start))
        return update_run(writer, &found, &fresh, change->shard, arena);
    if (found.id != 0)
        code = delete_found(writer, domain, &found, fresh.run_id, arena);
    return code != SQLITE_OK ? code : insert_run(writer, &fresh, change->shard, arena);
}

int
record_write(struct record_writer *writer, const struct visibility_change *change,
             const struct attribute_set *attributes, struct arena *arena)
{
    int64_t domain;
    int code = names_number(&writer->names, 0, NAME_DOMAIN, slice_text(change->domain_id), &domain);
    if (code != SQLITE_OK)
        return code;
    if (change->info == NULL)
        return delete_run(writer, domain, slice_text(change->run_id), arena);
    return put_run(writer, change, domain, attributes, arena);
}
