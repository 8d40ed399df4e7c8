/* record.h - what the files that write runs share: the statements that are kept prepared, and a run
 * on its way into the tables. */
#ifndef CADENZA_VISIBILITY_SQLITE_RECORD_H
#define CADENZA_VISIBILITY_SQLITE_RECORD_H

#include "visibility/sqlite/inside.h"

enum record_statement {
    RECORD_OWNERS,
    RECORD_READ,
    RECORD_INSERT,
    RECORD_INSERT_MANY,
    RECORD_UPDATE,
    RECORD_OF_SHARD,
    RECORD_DELETE,
    RECORD_KEY_INSERT,
    RECORD_KEY_INSERT_MANY,
    RECORD_KEY_DELETE_RECENT,
    RECORD_KEY_DELETE,
    RECORD_KEY_MERGE,
    RECORD_KEY_MERGED,
    RECORD_VALUE_INSERT,
    RECORD_VALUE_LIST,
    RECORD_VALUE_DELETE,
    RECORD_SEARCH_INSERT,
    RECORD_SEARCH_DELETE,
    RECORD_STATEMENT_COUNT,
};

#define RUN_COLUMNS  22
#define KEY_COLUMNS  2
#define RUN_ROWS_MAX 8 /* runs that one statement finds or inserts: more would save little more */

/* --- fresh.c: a change as a row of `runs` ---- */

struct run_row {
    struct visibility_row row;
    struct known_run run;   /* as it will be; its id is set by who writes it */
    struct known_run found; /* as it is; its id is 0 until it is found */
    int64_t hash;           /* key_hash of the run id */
    uint32_t shard;
    int64_t task_list; /* 0: none */
    struct slice workflow, run_id, info;
};
/* Neither id is set. It points into the arena and the change. Blocks. */
int run_row_read(struct names *names, const struct visibility_change *change, int64_t domain,
                 const struct attribute_set *attributes, struct arena *arena,
                 struct run_row *run_row);
/* Bind it as the row at this place of a statement (from 0): all of it, what may change, both keys.
 */
void run_row_bind(sqlite3_stmt *statement, int position, const struct run_row *run_row);
void run_row_bind_changing(sqlite3_stmt *statement, int position, const struct run_row *run_row);
void run_row_bind_keys(sqlite3_stmt *statement, int position, const struct run_row *run_row);

#endif
