/* names.c - domains, types, task lists and attribute names repeat in every run: each is written
 * once, in the table `names`, and known by its number.
 *
 * A cache of the writer holds what it met, up to a bound: domains and types are few, but a client
 * may give each workflow a type of its own. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

#define CACHE_MAX 20000

#define FIND   "SELECT id FROM names WHERE domain = ? AND kind = ? AND text = ?"
#define INSERT "INSERT INTO names(domain, kind, text) VALUES (?, ?, ?)"

int
names_open(struct names *names, sqlite3 *database)
{
    *names = (struct names){.cache = map_new()};
    int code =
        sqlite3_prepare_v3(database, FIND, -1, SQLITE_PREPARE_PERSISTENT, &names->find, NULL);
    if (code != SQLITE_OK)
        return code;
    return sqlite3_prepare_v3(database, INSERT, -1, SQLITE_PREPARE_PERSISTENT, &names->insert,
                              NULL);
}

void
names_close(struct names *names)
{
    sqlite3_finalize(names->find);
    sqlite3_finalize(names->insert);
    map_free(names->cache);
    buffer_free(&names->key);
}

void
names_forget(struct names *names)
{
    map_free(names->cache);
    names->cache = map_new();
}

static void
bind_name(sqlite3_stmt *statement, int64_t domain, enum name_kind kind, struct slice text)
{
    sqlite3_bind_int64(statement, 1, domain);
    sqlite3_bind_int(statement, 2, (int)kind);
    text_bind(statement, 3, text);
}

static int
find_bound(sqlite3_stmt *statement, int64_t *number)
{
    int code = sqlite3_step(statement);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    int end = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code == SQLITE_ROW ? SQLITE_OK : end;
}

int
names_find(sqlite3 *database, int64_t domain, enum name_kind kind, struct slice text,
           int64_t *number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(database, FIND, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    bind_name(statement, domain, kind, text);
    code = find_bound(statement, number);
    sqlite3_finalize(statement);
    return code;
}

static int
find_or_insert(struct names *names, int64_t domain, enum name_kind kind, struct slice text,
               int64_t *number)
{
    bind_name(names->find, domain, kind, text);
    int code = find_bound(names->find, number);
    if (code != SQLITE_OK || *number != 0)
        return code;
    bind_name(names->insert, domain, kind, text);
    code = statement_run(names->insert);
    *number = sqlite3_last_insert_rowid(sqlite3_db_handle(names->insert));
    return code;
}

/* A cached number is its own pointer: nothing is allocated. */
static int64_t
cache_get(const struct names *names, struct slice key)
{
    return (int64_t)(intptr_t)map_get(names->cache, key);
}

int
names_number(struct names *names, int64_t domain, enum name_kind kind, struct slice text,
             int64_t *number)
{
    int64_t head[2] = {domain, (int64_t)kind};
    buffer_clear(&names->key);
    buffer_append(&names->key, slice_of(head, sizeof head));
    buffer_append(&names->key, text);
    struct slice whole = buffer_slice(&names->key);
    *number = cache_get(names, whole);
    if (*number != 0)
        return SQLITE_OK;
    int code = find_or_insert(names, domain, kind, text, number);
    if (code != SQLITE_OK)
        return code;
    check(*number > 0);
    if (map_count(names->cache) >= CACHE_MAX)
        names_forget(names);
    else
        map_put(names->cache, whole, (void *)(intptr_t)*number);
    return SQLITE_OK;
}
