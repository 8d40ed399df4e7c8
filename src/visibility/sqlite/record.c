/* record.c - one run in the tables: found, inserted, changed, removed.
 *
 * What a run never changes (domain, workflow id, type, start time) is in no UPDATE, so the indexes
 * on it are left alone; should it have changed all the same, the row is made anew. */
#include "visibility/sqlite/record.h"

#include "base/check.h"
#include "visibility/sqlite/inside.h"
#include "wire/message.h"

#include "uber/cadence/api/v1/workflow.pb-c.h"

/* After the six that identify it: everything that may change, in this order. */
#define CHANGING                                                                                   \
    "shard, close, status, custom, execution, length, task_list, is_cron, clusters, updated, "     \
    "cron, execution_status, scheduled, scope, scope_name, info"

static const char *const statement_text[RECORD_STATEMENT_COUNT] = {
    [RECORD_FIND] =
        "SELECT id, type, start, custom, workflow FROM runs WHERE id = coalesce("
        "(SELECT id FROM key_recent JOIN runs ON id = owner WHERE hash = ?1 AND domain = ?2"
        "  AND run = ?3),"
        "(SELECT id FROM key JOIN runs ON id = owner WHERE hash = ?1 AND domain = ?2"
        "  AND run = ?3))",
    [RECORD_INSERT] = "INSERT INTO runs(id, domain, workflow, run, type, start, " CHANGING
                      ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [RECORD_UPDATE] = "UPDATE runs SET (" CHANGING
                      ") = (?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22) "
                      "WHERE id = ?1",
    [RECORD_OF_SHARD] = "SELECT id, domain, custom, workflow, run FROM runs "
                        "WHERE id > ? AND id <= ? AND shard = ?",
    [RECORD_DELETE] = "DELETE FROM runs WHERE id = ?",
    [RECORD_KEY_INSERT] = "INSERT OR IGNORE INTO key_recent(hash, owner) "
                          "VALUES (?1, ?3), (?2, ?3)",
    [RECORD_KEY_DELETE_RECENT] = "DELETE FROM key_recent WHERE hash = ? AND owner = ?",
    [RECORD_KEY_DELETE] = "DELETE FROM key WHERE hash = ? AND owner = ?",
    [RECORD_KEY_SETTLE] = "INSERT OR IGNORE INTO key SELECT hash, owner FROM key_recent "
                          "WHERE hash BETWEEN ? AND ?",
    [RECORD_KEY_SETTLED] = "DELETE FROM key_recent WHERE hash BETWEEN ? AND ?",
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
    known_forget(&writer->known);
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
    known_open(&writer->known);
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
    known_close(&writer->known);
}

/* ---- finding ---- */

static int
find_bound(sqlite3_stmt *statement, int64_t domain, struct known_run *found)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const void *workflow = sqlite3_column_text(statement, 4);
        struct slice text = slice_of(workflow, (size_t)sqlite3_column_bytes(statement, 4));
        *found = (struct known_run){.id = sqlite3_column_int64(statement, 0),
                                    .domain = domain,
                                    .type = sqlite3_column_int64(statement, 1),
                                    .start = sqlite3_column_int64(statement, 2),
                                    .custom = sqlite3_column_int64(statement, 3),
                                    .workflow = key_hash(domain, COLUMN_WORKFLOW_ID, text)};
    }
    int end = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code == SQLITE_ROW ? SQLITE_OK : end;
}

static int
find_run(struct record_writer *writer, int64_t domain, struct slice run_id, struct known_run *found)
{
    if (known_take(&writer->known, domain, run_id, found))
        return SQLITE_OK;
    sqlite3_stmt *statement = writer->statements[RECORD_FIND];
    sqlite3_bind_int64(statement, 1, key_hash(domain, COLUMN_RUN_ID, run_id));
    sqlite3_bind_int64(statement, 2, domain);
    text_bind(statement, 3, run_id);
    return find_bound(statement, domain, found);
}

/* ---- removing ---- */

static int
delete_found(struct record_writer *writer, const struct known_run *found, struct slice run_id,
             struct arena *arena)
{
    int64_t hashes[2] = {found->workflow, key_hash(found->domain, COLUMN_RUN_ID, run_id)};
    int code = keys_delete(writer, found->id, hashes);
    if (code == SQLITE_OK && found->custom != 0)
        code = values_delete(writer, found->id, arena);
    sqlite3_bind_int64(writer->statements[RECORD_DELETE], 1, found->id);
    return code != SQLITE_OK ? code : statement_run(writer->statements[RECORD_DELETE]);
}

static int
delete_run(struct record_writer *writer, int64_t domain, struct slice run_id, struct arena *arena)
{
    struct known_run found = {0};
    int code = find_run(writer, domain, run_id, &found);
    return code != SQLITE_OK || found.id == 0 ? code : delete_found(writer, &found, run_id, arena);
}

/* A run of a shard that goes. */
struct leaving {
    struct known_run run;
    struct slice run_id;
};

static struct slice
column_slice(sqlite3_stmt *statement, int column)
{
    const void *bytes = sqlite3_column_text(statement, column);
    return slice_of(bytes, (size_t)sqlite3_column_bytes(statement, column));
}

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
        struct known_run known;
        known_take(&writer->known, leaving[i].run.domain, leaving[i].run_id, &known);
        code = delete_found(writer, &leaving[i].run, leaving[i].run_id, arena);
    }
    *after = range[1] >= writer->next_id - 1 ? FORGET_DONE : range[1];
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
    fresh->info = change->info;
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
insert_run(struct record_writer *writer, const struct fresh *fresh, const struct known_run *next,
           uint32_t shard, struct arena *arena)
{
    sqlite3_stmt *statement = writer->statements[RECORD_INSERT];
    sqlite3_bind_int64(statement, 1, next->id);
    sqlite3_bind_int64(statement, 2, fresh->domain);
    text_bind(statement, 3, fresh->workflow);
    text_bind(statement, 4, fresh->run_id);
    bind_number(statement, 5, fresh->type);
    if (fresh->row.has[COLUMN_START_TIME])
        value_bind(statement, 6, &fresh->row.column[COLUMN_START_TIME]);
    bind_changing(statement, fresh, shard);
    int code = statement_run(statement);
    int64_t hashes[2] = {next->workflow, key_hash(fresh->domain, COLUMN_RUN_ID, fresh->run_id)};
    if (code == SQLITE_OK)
        code = keys_insert(writer, next->id, hashes);
    if (code == SQLITE_OK && fresh->custom != 0)
        code = values_insert(writer, next->id, fresh->domain, &fresh->row, arena);
    return code;
}

static int
update_run(struct record_writer *writer, const struct known_run *found, const struct fresh *fresh,
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

/* The row as it will be, without its id. */
static struct known_run
known_of(const struct fresh *fresh)
{
    bool has_start = fresh->row.has[COLUMN_START_TIME];
    return (struct known_run){.domain = fresh->domain,
                              .type = fresh->type,
                              .start = has_start ? fresh->row.column[COLUMN_START_TIME].integer : 0,
                              .custom = fresh->custom,
                              .workflow =
                                  key_hash(fresh->domain, COLUMN_WORKFLOW_ID, fresh->workflow)};
}

/* Is it the same in what an UPDATE leaves alone? */
static bool
is_same(const struct known_run *one, const struct known_run *other)
{
    return one->type == other->type && one->start == other->start &&
           one->workflow == other->workflow;
}

static int
put_fresh(struct record_writer *writer, const struct fresh *fresh, uint32_t shard,
          struct arena *arena)
{
    struct known_run found = {0}, next = known_of(fresh);
    int code = find_run(writer, fresh->domain, fresh->run_id, &found);
    if (code != SQLITE_OK)
        return code;
    if (found.id != 0 && is_same(&found, &next)) {
        next.id = found.id;
        code = update_run(writer, &found, fresh, shard, arena);
    } else {
        if (found.id != 0)
            code = delete_found(writer, &found, fresh->run_id, arena);
        next.id = writer->next_id++;
        if (code == SQLITE_OK)
            code = insert_run(writer, fresh, &next, shard, arena);
    }
    if (!fresh->row.has[COLUMN_CLOSE_STATUS])
        known_put(&writer->known, fresh->run_id, &next);
    return code;
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
    struct fresh fresh = {0};
    code = fresh_read(writer, change, domain, attributes, arena, &fresh);
    return code != SQLITE_OK ? code : put_fresh(writer, &fresh, change->shard, arena);
}
