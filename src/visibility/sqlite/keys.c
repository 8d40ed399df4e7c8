/* keys.c - what finds a run by its workflow id or its own: two hashes, in a small tree at first, in
 * the large one later. database.c says why. */
#include "base/check.h"
#include "visibility/sqlite/record.h"

#define KEY_RECENT_MAX 16384 /* entries, two of a run */

static int
delete_from(struct record_writer *writer, int statement_number, int64_t id, const int64_t hashes[2])
{
    int code = SQLITE_OK;
    for (int i = 0; i < 2 && code == SQLITE_OK; i++) {
        sqlite3_stmt *statement = writer->statements[statement_number];
        sqlite3_bind_int64(statement, 1, hashes[i]);
        sqlite3_bind_int64(statement, 2, id);
        code = statement_run(statement);
        if (statement_number == RECORD_KEY_DELETE_RECENT)
            writer->recent -= sqlite3_changes(writer->database);
    }
    return code;
}

int
keys_delete(struct record_writer *writer, int64_t id, const int64_t hashes[2])
{
    int code = delete_from(writer, RECORD_KEY_DELETE_RECENT, id, hashes);
    return code != SQLITE_OK ? code : delete_from(writer, RECORD_KEY_DELETE, id, hashes);
}

/* ---- settling ---- */

/* Moves the keys of one slice of all hashes. They lie side by side in both trees, so that each page
 * of the large one takes several. */
static int
merge_slice(struct record_writer *writer, int64_t first, int64_t last)
{
    static const int both[] = {RECORD_KEY_MERGE, RECORD_KEY_MERGED};
    int code = SQLITE_OK;
    for (int i = 0; i < 2 && code == SQLITE_OK; i++) {
        sqlite3_stmt *statement = writer->statements[both[i]];
        sqlite3_bind_int64(statement, 1, first);
        sqlite3_bind_int64(statement, 2, last);
        code = statement_run(statement);
    }
    writer->recent -= sqlite3_changes(writer->database);
    return code;
}

int
keys_merge(struct record_writer *writer)
{
    const uint64_t width = UINT64_C(1) << 58; /* 64 slices: no group has much of it to do */
    int code = SQLITE_OK;
    check(writer->recent >= 0); /* never less than there are */
    for (int i = 0; i < 64 && writer->recent >= KEY_RECENT_MAX && code == SQLITE_OK; i++) {
        uint64_t first = writer->slice++ % 64 * width + (UINT64_C(1) << 63);
        code = merge_slice(writer, (int64_t)first, (int64_t)(first + width - 1));
    }
    return code;
}
