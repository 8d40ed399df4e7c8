/* levels.c - the newest row that each shard fed: in memory to be compared with, in the table to
 * stay.
 *
 * What is set is written by the transaction that also has its changes. After a rollback all are
 * read again. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

struct level {
    uint64_t row;
    bool is_dirty; /* not in the table of this transaction yet */
};

static struct level *
level_of(struct levels *levels, uint32_t shard)
{
    struct level *level = map64_get(levels->map, shard);
    if (level == NULL) {
        level = memory_zalloc(1, sizeof *level);
        map64_put(levels->map, shard, level);
    }
    return level;
}

uint64_t
levels_get(struct levels *levels, uint32_t shard)
{
    return level_of(levels, shard)->row;
}

void
levels_set(struct levels *levels, uint32_t shard, uint64_t row)
{
    *level_of(levels, shard) = (struct level){.row = row, .is_dirty = true};
}

int
levels_load(struct levels *levels)
{
    void *level;
    for (size_t cursor = 0; map64_next(levels->map, &cursor, NULL, &level);)
        *(struct level *)level = (struct level){0};
    while (sqlite3_step(levels->list) == SQLITE_ROW) {
        uint32_t shard = (uint32_t)sqlite3_column_int64(levels->list, 0);
        level_of(levels, shard)->row = (uint64_t)sqlite3_column_int64(levels->list, 1);
    }
    return sqlite3_reset(levels->list);
}

int
levels_save(struct levels *levels)
{
    uint64_t shard;
    void *next;
    int code = SQLITE_OK;
    for (size_t cursor = 0; code == SQLITE_OK && map64_next(levels->map, &cursor, &shard, &next);) {
        struct level *level = next;
        if (!level->is_dirty)
            continue;
        level->is_dirty = false;
        sqlite3_bind_int64(levels->put, 1, (int64_t)shard);
        sqlite3_bind_int64(levels->put, 2, (int64_t)level->row);
        code = statement_run(levels->put);
    }
    return code;
}

int
levels_open(struct levels *levels, sqlite3 *database)
{
    levels->map = map64_new();
    int code = sqlite3_prepare_v3(database, "SELECT shard, row FROM levels", -1,
                                  SQLITE_PREPARE_PERSISTENT, &levels->list, NULL);
    if (code == SQLITE_OK)
        code =
            sqlite3_prepare_v3(database, "INSERT OR REPLACE INTO levels(shard, row) VALUES (?, ?)",
                               -1, SQLITE_PREPARE_PERSISTENT, &levels->put, NULL);
    return code != SQLITE_OK ? code : levels_load(levels);
}

void
levels_close(struct levels *levels)
{
    sqlite3_finalize(levels->list);
    sqlite3_finalize(levels->put);
    if (levels->map == NULL)
        return; /* it was never opened */
    void *level;
    for (size_t cursor = 0; map64_next(levels->map, &cursor, NULL, &level);)
        memory_free(level);
    map64_free(levels->map);
}
