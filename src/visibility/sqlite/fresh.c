/* fresh.c - a change as a row of `runs`: read, and bound to the statements that write it. */
#include "visibility/sqlite/record.h"

int
fresh_read(struct names *names, const struct visibility_change *change, int64_t domain,
           const struct attribute_set *attributes, struct arena *arena, struct fresh *fresh)
{
    struct visibility_row *row = &fresh->row;
    visibility_read_row(change, attributes, arena, row);
    fresh->shard = change->shard;
    fresh->workflow = slice_text(change->workflow_id);
    fresh->run_id = slice_text(change->run_id);
    fresh->info = change->info;
    fresh->task_list = 0;
    fresh->hash = key_hash(domain, COLUMN_RUN_ID, fresh->run_id);
    fresh->found = (struct known_run){0};
    fresh->run =
        (struct known_run){.domain = domain,
                           .start = row->column[COLUMN_START_TIME].integer,
                           .custom = values_fingerprint(row),
                           .workflow = key_hash(domain, COLUMN_WORKFLOW_ID, fresh->workflow)};
    int code = SQLITE_OK;
    if (row->has[COLUMN_WORKFLOW_TYPE])
        code = names_number(names, domain, NAME_TYPE, row->column[COLUMN_WORKFLOW_TYPE].text,
                            &fresh->run.type);
    if (code == SQLITE_OK && row->has[COLUMN_TASK_LIST])
        code = names_number(names, domain, NAME_TASK_LIST, row->column[COLUMN_TASK_LIST].text,
                            &fresh->task_list);
    return code;
}

/* What is not bound is NULL. */
static void
bind_number(sqlite3_stmt *statement, int index, int64_t number)
{
    if (number != 0)
        sqlite3_bind_int64(statement, index, number);
}

void
fresh_bind_changing(sqlite3_stmt *statement, int place, const struct fresh *fresh)
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
    int base = place * RUN_COLUMNS;
    sqlite3_bind_int64(statement, base + 7, fresh->shard);
    bind_number(statement, base + 10, fresh->run.custom);
    bind_number(statement, base + 13, fresh->task_list);
    for (size_t i = 0; i < array_length(plain); i++)
        if (fresh->row.has[plain[i].column])
            value_bind(statement, base + plain[i].index, &fresh->row.column[plain[i].column]);
    sqlite3_bind_blob64(statement, base + RUN_COLUMNS, fresh->info.data, fresh->info.length,
                        SQLITE_STATIC);
}

void
fresh_bind(sqlite3_stmt *statement, int place, const struct fresh *fresh)
{
    int base = place * RUN_COLUMNS;
    sqlite3_bind_int64(statement, base + 1, fresh->run.id);
    sqlite3_bind_int64(statement, base + 2, fresh->run.domain);
    text_bind(statement, base + 3, fresh->workflow);
    text_bind(statement, base + 4, fresh->run_id);
    bind_number(statement, base + 5, fresh->run.type);
    if (fresh->row.has[COLUMN_START_TIME])
        value_bind(statement, base + 6, &fresh->row.column[COLUMN_START_TIME]);
    fresh_bind_changing(statement, place, fresh);
}

void
fresh_bind_keys(sqlite3_stmt *statement, int place, const struct fresh *fresh)
{
    int64_t hashes[2] = {fresh->run.workflow, fresh->hash};
    for (int i = 0; i < 2; i++) {
        int base = (place * 2 + i) * KEY_COLUMNS;
        sqlite3_bind_int64(statement, base + 1, hashes[i]);
        sqlite3_bind_int64(statement, base + 2, fresh->run.id);
    }
}
