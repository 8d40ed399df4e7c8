/* run_row.c - a change as a row of `runs`: read, and bound to the statements that write it. */
#include "visibility/sqlite/record.h"

int
run_row_read(struct names *names, const struct visibility_change *change, int64_t domain,
             const struct attribute_set *attributes, struct arena *arena, struct run_row *run_row)
{
    struct visibility_row *row = &run_row->row;
    visibility_read_row(change, attributes, arena, row);
    run_row->shard = change->shard;
    run_row->workflow = slice_text(change->workflow_id);
    run_row->run_id = slice_text(change->run_id);
    run_row->info = change->info;
    run_row->task_list = 0;
    run_row->hash = key_hash(domain, COLUMN_RUN_ID, run_row->run_id);
    run_row->found = (struct known_run){0};
    run_row->run =
        (struct known_run){.domain = domain,
                           .start = row->column[COLUMN_START_TIME].integer,
                           .custom = values_fingerprint(row),
                           .workflow = key_hash(domain, COLUMN_WORKFLOW_ID, run_row->workflow)};
    int code = SQLITE_OK;
    if (row->has[COLUMN_WORKFLOW_TYPE])
        code = names_number(names, domain, NAME_TYPE, row->column[COLUMN_WORKFLOW_TYPE].text,
                            &run_row->run.type);
    if (code == SQLITE_OK && row->has[COLUMN_TASK_LIST])
        code = names_number(names, domain, NAME_TASK_LIST, row->column[COLUMN_TASK_LIST].text,
                            &run_row->task_list);
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
run_row_bind_changing(sqlite3_stmt *statement, int position, const struct run_row *run_row)
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
    int base = position * RUN_COLUMNS;
    sqlite3_bind_int64(statement, base + 7, run_row->shard);
    bind_number(statement, base + 10, run_row->run.custom);
    bind_number(statement, base + 13, run_row->task_list);
    for (size_t i = 0; i < array_length(plain); i++)
        if (run_row->row.has[plain[i].column])
            value_bind(statement, base + plain[i].index, &run_row->row.column[plain[i].column]);
    sqlite3_bind_blob64(statement, base + RUN_COLUMNS, run_row->info.data, run_row->info.length,
                        SQLITE_STATIC);
}

void
run_row_bind(sqlite3_stmt *statement, int position, const struct run_row *run_row)
{
    int base = position * RUN_COLUMNS;
    sqlite3_bind_int64(statement, base + 1, run_row->run.id);
    sqlite3_bind_int64(statement, base + 2, run_row->run.domain);
    text_bind(statement, base + 3, run_row->workflow);
    text_bind(statement, base + 4, run_row->run_id);
    bind_number(statement, base + 5, run_row->run.type);
    if (run_row->row.has[COLUMN_START_TIME])
        value_bind(statement, base + 6, &run_row->row.column[COLUMN_START_TIME]);
    run_row_bind_changing(statement, position, run_row);
}

void
run_row_bind_keys(sqlite3_stmt *statement, int position, const struct run_row *run_row)
{
    int64_t hashes[2] = {run_row->run.workflow, run_row->hash};
    for (int i = 0; i < 2; i++) {
        int base = (position * 2 + i) * KEY_COLUMNS;
        sqlite3_bind_int64(statement, base + 1, hashes[i]);
        sqlite3_bind_int64(statement, base + 2, run_row->run.id);
    }
}
