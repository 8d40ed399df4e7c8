/* inside.h - what the files of sqlite/ share. Only they include it.
 *
 * Codes: deep inside a function returns SQLite's own code (0: fine), which is made an error of the
 * caller's arena once, by database_error. */
#ifndef CADENZA_VISIBILITY_SQLITE_INSIDE_H
#define CADENZA_VISIBILITY_SQLITE_INSIDE_H

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/vector.h"
#include "fiber/pool.h"
#include "fiber/sync.h"
#include "visibility/engine.h"

#define READERS     4    /* questions at a time, each on a thread and a connection of its own */
#define WAITERS_MAX 1024 /* questions that wait for one of them */

/* --- database.c: the file, connections, codes ------------------------------------------------- */

/* Opens the file for writing, with its schema; one that is of another version or damaged is moved
 * aside and created again. *moved: where to, or NULL. Yields. */
must_use struct error *database_open(const char *path, struct arena *arena, sqlite3 **run_writer,
                                     const char **moved);
/* A connection that only reads. Blocks. */
int database_open_reader(const char *path, sqlite3 **reader);
/* SQLite's code as an error: ERR_CORRUPT, ERR_IO, ERR_UNAVAILABLE; NULL for SQLITE_OK. */
must_use struct error *database_error(sqlite3 *database, int code, const char *doing,
                                      struct arena *arena);
/* Remembers beside the file that it was found damaged: the next opening moves it aside. Yields. */
void database_condemn(const char *path);
/* Runs statements without results. Blocks. */
int database_execute(sqlite3 *database, const char *text);
/* Runs a statement to its end and resets it, bindings too. Blocks. */
int statement_run(sqlite3_stmt *statement);
/* Resets a statement and its bindings, at its end or before. The code of a step that failed. */
int statement_end(sqlite3_stmt *statement);

/* --- names.c: texts that repeat, as numbers --------------------------------------------------- */

enum name_kind {
    NAME_DOMAIN,
    NAME_TYPE,
    NAME_TASK_LIST,
    NAME_ATTRIBUTE, /* + enum attribute_type: an attribute of another type is another one */
};

struct names {
    sqlite3_stmt *find, *insert;
    struct map *cache;
    struct buffer key; /* of the cache, while one is looked for */
};
int names_open(struct names *names, sqlite3 *database);
void names_close(struct names *names);
/* Forgets what it keeps in memory: after a rollback it may be wrong. */
void names_forget(struct names *names);
/* The number of a text, a new one if it has none. `domain`: the number of its domain, 0 for domains
 * themselves. Blocks. */
int names_number(struct names *names, int64_t domain, enum name_kind kind, struct slice text,
                 int64_t *number);
/* The number of a text, 0: it has none. For readers. Blocks. */
int names_find(sqlite3 *database, int64_t domain, enum name_kind kind, struct slice text,
               int64_t *number);

/* --- functions.c: what SQL lacks -------------------------------------------------------------- */

/* text_matches(text, phrase) and text_like(text, pattern), as engine.h has them. */
int functions_register(sqlite3 *database);
/* Binds bytes that outlive the statement's run. */
int text_bind(sqlite3_stmt *statement, int index, struct slice text);
int value_bind(sqlite3_stmt *statement, int index, const struct attribute_value *value);
/* What a run is found by when its workflow id or its own id is given. */
int64_t key_hash(int64_t domain, enum attribute_column column, struct slice text);
/* The next word of a text, lower case, in `word` (room for as many bytes as the text has). False:
 * none is left. */
bool text_next_word(struct slice *text, uint8_t *word, size_t *length);

/* --- known.c: open runs that were met lately -------------------------------------------------- */

/* What an UPDATE must know of the row: where it is, and what it does not change. */
struct known_run {
    int64_t id; /* 0: not there */
    int64_t domain, type, start, custom;
    int64_t workflow; /* key_hash of the workflow id */
};
struct known_runs {
    struct map64 *young, *old;
};
void known_open(struct known_runs *runs);
void known_close(struct known_runs *runs);
/* All of them: after a rollback they may be wrong. */
void known_forget(struct known_runs *runs);
/* Takes a run out; who leaves it open puts it in again. False: not known here. */
bool known_take(struct known_runs *runs, int64_t domain, struct slice run_id,
                struct known_run *run);
void known_put(struct known_runs *runs, struct slice run_id, const struct known_run *run);

/* --- record.c: one run in the tables ---------------------------------------------------------- */

struct record_writer {
    sqlite3 *database;
    struct names names;
    struct known_runs known;
    sqlite3_stmt **statements;
    struct run_row *run_row; /* runs that wait for being found or inserted, and room for the next */
    size_t waiting;
    int64_t next_id; /* of runs */
    int64_t recent;  /* keys in key_recent */
    uint64_t slice;  /* of all hashes: whose keys go into the large tree next */
};
int record_open(struct record_writer *run_writer, sqlite3 *database);
void record_close(struct record_writer *run_writer);
/* After a rollback: what is kept in memory is read again. */
int record_reload(struct record_writer *run_writer);
/* Brings a change into the tables, at the latest with record_flush: until then no other change of
 * the run may come, and the change and the arena, which has what was read, must stay. Blocks. */
int record_write(struct record_writer *run_writer, const struct visibility_change *change,
                 const struct attribute_set *attributes, struct arena *arena);
/* Writes what waits. Blocks. */
int record_flush(struct record_writer *run_writer, struct arena *arena);
/* Removes the runs of a shard among the next FORGET_STEP that were written after number *after,
 * which then is where to go on, or FORGET_DONE. Blocks. */
#define FORGET_STEP 2000
#define FORGET_DONE (-1)
int record_forget(struct record_writer *run_writer, uint32_t shard, int64_t *after,
                  struct arena *arena);

/* --- keys.c: what finds a run by its ids ------------------------------------------------------ */

/* Removes both keys of a run: of its workflow id and of its own. Blocks. */
int keys_delete(struct record_writer *run_writer, int64_t id, const int64_t hashes[2]);
/* Moves keys from the small tree to the large one if there are many. Blocks. */
int keys_merge(struct record_writer *run_writer);

/* --- values.c: custom attributes of a run in the tables --------------------------------------- */

/* A fingerprint of the attributes, 0: none. Equal ones need not be written again. */
int64_t values_fingerprint(const struct visibility_row *row);
int values_insert(struct record_writer *run_writer, int64_t id, int64_t domain,
                  const struct visibility_row *row, struct arena *arena);
int values_delete(struct record_writer *run_writer, int64_t id, struct arena *arena);

/* --- levels.c: the newest row that each shard fed --------------------------------------------- */

struct levels {
    struct map64 *map; /* shard → its level; none is removed */
    sqlite3_stmt *list, *put;
};
int levels_open(struct levels *levels, sqlite3 *database);
void levels_close(struct levels *levels);
uint64_t levels_get(struct levels *levels, uint32_t shard);
void levels_set(struct levels *levels, uint32_t shard, uint64_t row);
/* Reads all from the table; writes what was set. Block. */
int levels_load(struct levels *levels);
int levels_save(struct levels *levels);

/* --- writer.c: the thread that writes --------------------------------------------------------- */

struct run_writer;
/* Takes the connection over. Yields. */
must_use struct error *run_writer_open(sqlite3 *database, struct metrics *metrics,
                                       struct arena *arena, struct run_writer **run_writer);
void run_writer_close(struct run_writer *run_writer);

enum writing { WRITING_FEED, WRITING_LEVEL, WRITING_SYNC, WRITING_FORGET };
struct writing_job {
    struct loop_message message; /* to the writer, and back as the answer */
    enum writing what;
    const struct visibility_change *changes; /* FEED */
    size_t count;
    const struct attribute_set *attributes;
    uint32_t shard;      /* LEVEL, FORGET */
    uint64_t level;      /* FORGET; LEVEL: the answer */
    int64_t after;       /* FORGET: see record_forget */
    struct arena *arena; /* of the error */
    struct error *err;
    struct loop *loop;
    struct fiber *fiber;
    bool is_done;
};
/* Hands the job to the thread and waits for it, cannot be cancelled. Yields. */
must_use struct error *run_writer_do(struct run_writer *run_writer, struct writing_job *job);

#define NODE_POINTER "query_node" /* the type of bound pointers */

/* --- compile.c: a tree becomes SQL with places for values ------------------------------------- */

struct sql_value {
    enum { SQL_INTEGER, SQL_NUMBER, SQL_TEXT, SQL_NODE } type;
    int64_t integer;
    double number;
    struct slice text;
    const struct query_node *node; /* for a function of ours; the statement ends before the tree */
};
struct sql {
    struct buffer text;
    vector_of(struct sql_value) values; /* one for each ? */
    sqlite3 *database;                  /* names are looked up here */
    int64_t domain;                     /* its number, 0: it has no runs */
    int code;                           /* the first that failed */
};
void sql_init(struct sql *sql, sqlite3 *database, int64_t domain);
void sql_free(struct sql *sql); /* fit for scoped() */
void sql_append(struct sql *sql, const char *text);
/* "?" and its value. */
void sql_append_integer(struct sql *sql, int64_t integer);
void sql_append_text(struct sql *sql, struct slice text);
void sql_append_value(struct sql *sql, const struct attribute_value *value);
void sql_append_stored(struct sql *sql, const struct sql_value *value);
/* The statement, values bound. */
int sql_prepare(struct sql *sql, sqlite3_stmt **statement);
/* The condition: true, or false or NULL, of a row of `runs`. */
void compile_where(struct sql *sql, const struct query_node *node);
/* A system column as an expression of a row of `runs`. */
const char *compile_column(enum attribute_column column);
/* The number of a custom attribute; 0: no run ever had it. */
int64_t compile_attribute(struct sql *sql, const struct search_attribute *attribute);

/* --- plan.c: where to look -------------------------------------------------------------------- */

/* A way to a small number of runs among which all answers are. */
struct source;
/* NULL: there is none, a long index has to be walked. Asks the database. */
struct source *source_find(struct sql *sql, const struct query_node *where, struct arena *arena);
/* A SELECT of their ids; values may be in the arena. */
void source_append(struct sql *sql, const struct source *source, struct arena *arena);
/* The index to walk in the order of StartTime: the one that leaves most runs out. */
const char *plan_start_index(const struct query_node *where);

/* --- token.c: where a page ended -------------------------------------------------------------- */

struct token {
    bool is_null; /* the order value: the run has none */
    struct sql_value value;
    struct slice run_id;
};
/* What a token must come back with: the domain and the order, as a number. */
uint64_t token_fingerprint(const struct visibility_question *question);
struct slice token_write(const struct token *token, uint64_t fingerprint, struct arena *arena);
/* Errors: ERR_BAD_REQUEST. The token points into the bytes. */
must_use struct error *token_read(struct slice bytes, uint64_t fingerprint, struct arena *arena,
                                  struct token *token);

/* --- question.c: lists and counts ------------------------------------------------------------- */

/* On a reader's thread. Block. */
int question_list(sqlite3 *database, const struct visibility_question *question,
                  const struct token *from, struct arena *arena, struct visibility_page *page);
int question_count(sqlite3 *database, const char *domain_id, const struct query *query,
                   struct arena *arena, int64_t *count);

/* --- readers.c: who may ask now --------------------------------------------------------------- */

struct readers;
must_use struct error *readers_open(const char *path, struct metrics *metrics, struct arena *arena,
                                    struct readers **readers);
void readers_close(struct readers *readers);
/* Runs ask(database, argument) on a reader's thread and waits for it; stops it when the fiber's
 * deadline comes or it is cancelled. Any loop. Yields. */
must_use struct error *readers_ask(struct readers *readers,
                                   int (*ask)(sqlite3 *database, void *argument), void *argument,
                                   struct arena *arena);

#endif
