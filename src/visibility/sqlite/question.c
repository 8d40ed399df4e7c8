/* question.c - lists and counts, on a reader's thread.
 *
 * A page takes up to two steps: runs that have the order value, by it; then those that have none,
 * by run id. The token says in which of them to go on, behind which run. First only ids are
 * selected, so that a sort carries no infos; then the infos of the page are read. A read
 * transaction holds the moment for all of it. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

struct page_row {
    int64_t id;
    struct token position;
};

struct run_listing {
    sqlite3 *database;
    const struct visibility_question *question;
    const struct token *from; /* NULL: from the start */
    struct arena *arena;
    int64_t domain;
    const struct search_attribute *order; /* NULL: StartTime */
    bool is_ascending;
    struct source *source;           /* NULL: walk */
    vector_of(struct page_row) rows; /* in the arena */
};

/* ---- the statement of a step ---- */

static bool
is_custom_order(const struct run_listing *run_listing)
{
    return run_listing->order != NULL && run_listing->order->column == COLUMN_NONE;
}

static enum attribute_column
order_column(const struct run_listing *run_listing)
{
    return run_listing->order == NULL ? COLUMN_START_TIME : run_listing->order->column;
}

static const char *
order_text(const struct run_listing *run_listing)
{
    return is_custom_order(run_listing) ? "ordering.value"
                                        : compile_column(order_column(run_listing));
}

/* Custom order: the attribute's values lead, in order, and bring their runs. Of a list the first in
 * the direction counts. */
static void
append_custom_from(const struct run_listing *run_listing, struct sql *sql)
{
    int64_t attribute = compile_attribute(sql, run_listing->order);
    sql_append(sql, " FROM search AS ordering CROSS JOIN runs NOT INDEXED "
                    "WHERE ordering.attribute = ");
    sql_append_integer(sql, attribute);
    sql_append(sql, " AND runs.id = ordering.owner AND NOT EXISTS (SELECT 1 FROM value "
                    "WHERE owner = runs.id AND attribute = ");
    sql_append_integer(sql, attribute);
    sql_append(sql, run_listing->is_ascending ? " AND value < ordering.value)"
                                              : " AND value > ordering.value)");
}

static void
append_walk(const struct run_listing *run_listing, struct sql *sql, bool is_null_step)
{
    const struct query_node *where = run_listing->question->query->where;
    sql_append(sql, " FROM runs");
    if (run_listing->source == NULL && order_column(run_listing) == COLUMN_START_TIME) {
        const char *index = plan_start_index(where);
        sql_append(sql, " INDEXED BY ");
        sql_append(sql, index);
        sql_append(sql, strcmp(index, "run_by_status") == 0 ? " WHERE runs.status <> 0 AND "
                                                            : " WHERE ");
    } else if (run_listing->source == NULL && order_column(run_listing) == COLUMN_CLOSE_TIME) {
        sql_append(sql, is_null_step ? " INDEXED BY run_open WHERE "
                                     : " INDEXED BY run_by_close WHERE ");
    } else if (run_listing->source == NULL) {
        sql_append(sql, " INDEXED BY run_by_start WHERE ");
    } else {
        sql_append(sql, " NOT INDEXED WHERE "); /* by id, that is */
    }
    sql_append(sql, "runs.domain = ");
    sql_append_integer(sql, run_listing->domain);
}

static void
append_from(const struct run_listing *run_listing, struct sql *sql, bool is_null_step)
{
    if (is_custom_order(run_listing) && !is_null_step)
        append_custom_from(run_listing, sql);
    else
        append_walk(run_listing, sql, is_null_step);
    if (run_listing->source != NULL) {
        sql_append(sql, " AND runs.id IN (");
        source_append(sql, run_listing->source, run_listing->arena);
        sql_append(sql, ")");
    }
    if (run_listing->question->query->where != NULL) {
        sql_append(sql, " AND ");
        compile_where(sql, run_listing->question->query->where);
    }
}

/* Which runs of the step: those (not) having the value, behind the token's. */
static void
append_step(const struct run_listing *run_listing, struct sql *sql, bool is_null_step)
{
    const char *order = order_text(run_listing);
    if (is_null_step && is_custom_order(run_listing)) {
        sql_append(sql, " AND NOT EXISTS (SELECT 1 FROM value WHERE owner = runs.id "
                        "AND attribute = ");
        sql_append_integer(sql, compile_attribute(sql, run_listing->order));
        sql_append(sql, ")");
    } else {
        sql_append(sql, " AND ");
        sql_append(sql, order);
        sql_append(sql, is_null_step ? " IS NULL" : " IS NOT NULL");
    }
    if (run_listing->from == NULL || run_listing->from->is_null != is_null_step)
        return;
    if (!is_null_step) { /* the first term is for the index, the second for ties */
        sql_append(sql, " AND ");
        sql_append(sql, order);
        sql_append(sql, run_listing->is_ascending ? " >= " : " <= ");
        sql_append_stored(sql, &run_listing->from->value);
        sql_append(sql, " AND (");
        sql_append(sql, order);
        sql_append(sql, " <> ");
        sql_append_stored(sql, &run_listing->from->value);
        sql_append(sql, " OR ");
    } else {
        sql_append(sql, " AND (");
    }
    sql_append(sql, run_listing->is_ascending ? "runs.run > " : "runs.run < ");
    sql_append_text(sql, run_listing->from->run_id);
    sql_append(sql, ")");
}

static void
append_end(const struct run_listing *run_listing, struct sql *sql, bool is_null_step, size_t limit)
{
    const char *direction = run_listing->is_ascending ? " ASC" : " DESC";
    sql_append(sql, " ORDER BY ");
    if (!is_null_step) {
        sql_append(sql, order_text(run_listing));
        sql_append(sql, direction);
        sql_append(sql, ", ");
    }
    sql_append(sql, "runs.run");
    sql_append(sql, direction);
    sql_append(sql, " LIMIT ");
    sql_append_integer(sql, (int64_t)limit);
}

static void
build_step(const struct run_listing *run_listing, struct sql *sql, bool is_null_step, size_t limit)
{
    sql_append(sql, "SELECT runs.id, runs.run, ");
    sql_append(sql, is_null_step ? "NULL" : order_text(run_listing));
    append_from(run_listing, sql, is_null_step);
    append_step(run_listing, sql, is_null_step);
    append_end(run_listing, sql, is_null_step, limit);
}

/* ---- running it ---- */

static struct slice
column_text(sqlite3_stmt *statement, int column, struct arena *arena)
{
    const void *text = sqlite3_column_text(statement, column);
    return arena_slice(arena, slice_of(text, (size_t)sqlite3_column_bytes(statement, column)));
}

static struct page_row
read_row(sqlite3_stmt *statement, struct arena *arena)
{
    struct page_row row = {.id = sqlite3_column_int64(statement, 0),
                           .position = {.run_id = column_text(statement, 1, arena)}};
    switch (sqlite3_column_type(statement, 2)) {
    case SQLITE_NULL:
        row.position.is_null = true;
        break;
    case SQLITE_FLOAT:
        row.position.value =
            (struct sql_value){.type = SQL_NUMBER, .number = sqlite3_column_double(statement, 2)};
        break;
    case SQLITE_INTEGER:
        row.position.value =
            (struct sql_value){.type = SQL_INTEGER, .integer = sqlite3_column_int64(statement, 2)};
        break;
    default:
        row.position.value =
            (struct sql_value){.type = SQL_TEXT, .text = column_text(statement, 2, arena)};
    }
    return row;
}

static int
run_step(struct run_listing *run_listing, bool is_null_step, size_t limit)
{
    check(limit > 0 && run_listing->domain != 0);
    scoped(sql_free) struct sql sql;
    sql_init(&sql, run_listing->database, run_listing->domain);
    build_step(run_listing, &sql, is_null_step, limit);
    sqlite3_stmt *statement;
    int code = sql_prepare(&sql, &statement);
    while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        vector_push_in(&run_listing->rows, run_listing->arena,
                       read_row(statement, run_listing->arena));
    int end = sqlite3_finalize(statement);
    return code != SQLITE_OK ? code : end;
}

static int
read_infos(struct run_listing *run_listing, struct visibility_page *page)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(run_listing->database, "SELECT info FROM runs WHERE id = ?", -1,
                                  &statement, NULL);
    page->info = arena_zalloc(run_listing->arena, page->count, sizeof page->info[0]);
    for (size_t i = 0; i < page->count && code == SQLITE_OK; i++) {
        sqlite3_bind_int64(statement, 1, vector_at(&run_listing->rows, i).id);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            const void *bytes = sqlite3_column_blob(statement, 0);
            page->info[i] = arena_slice(
                run_listing->arena, slice_of(bytes, (size_t)sqlite3_column_bytes(statement, 0)));
        }
        code = sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return code;
}

static int
list_rows(struct run_listing *run_listing)
{
    const struct visibility_question *question = run_listing->question;
    struct sql probe;
    sql_init(&probe, run_listing->database, run_listing->domain);
    run_listing->source = source_find(&probe, question->query->where, run_listing->arena);
    int code = probe.code;
    size_t wanted = question->page_size;
    if (code == SQLITE_OK && (run_listing->from == NULL || !run_listing->from->is_null))
        code = run_step(run_listing, false, wanted);
    if (code == SQLITE_OK && run_listing->rows.count < wanted)
        code = run_step(run_listing, true, wanted - run_listing->rows.count);
    return code;
}

static int
list_inside(struct run_listing *run_listing, struct visibility_page *page)
{
    const struct visibility_question *question = run_listing->question;
    int code = names_find(run_listing->database, 0, NAME_DOMAIN, slice_text(question->domain_id),
                          &run_listing->domain);
    if (code == SQLITE_OK && run_listing->domain != 0)
        code = list_rows(run_listing);
    if (code != SQLITE_OK)
        return code;
    page->count = run_listing->rows.count;
    check(page->count <= question->page_size); /* both steps together */
    if (page->count == question->page_size)    /* a full page: there may be more */
        page->token = token_write(&vector_at(&run_listing->rows, page->count - 1).position,
                                  token_fingerprint(question), run_listing->arena);
    return read_infos(run_listing, page);
}

int
question_list(sqlite3 *database, const struct visibility_question *question,
              const struct token *from, struct arena *arena, struct visibility_page *page)
{
    *page = (struct visibility_page){0};
    struct run_listing run_listing = {
        .database = database,
        .question = question,
        .from = from,
        .arena = arena,
        .order = question->is_unordered ? NULL : question->query->order,
        .is_ascending = !question->is_unordered && question->query->is_ascending};
    int code = database_execute(database, "BEGIN");
    if (code != SQLITE_OK)
        return code;
    code = list_inside(&run_listing, page);
    int end = database_execute(database, "ROLLBACK"); /* nothing was written */
    return code != SQLITE_OK ? code : end;
}

/* ---- counts ---- */

/* A count by one comparison of one attribute needs no run at all. NULL: it is not such a one. */
static const char *
single_comparison(const struct query_node *where)
{
    if (where == NULL || where->kind != QUERY_COMPARE || where->attribute->column != COLUMN_NONE ||
        where->attribute->type == ATTRIBUTE_STRING)
        return NULL;
    switch (where->operator) {
    case QUERY_EQUAL:
        return "SELECT count(*) FROM search WHERE value = ";
    case QUERY_LESS: /* of a list more than one value may fit */
        return "SELECT count(DISTINCT owner) FROM search WHERE value < ";
    case QUERY_LESS_OR_EQUAL:
        return "SELECT count(DISTINCT owner) FROM search WHERE value <= ";
    case QUERY_GREATER:
        return "SELECT count(DISTINCT owner) FROM search WHERE value > ";
    case QUERY_GREATER_OR_EQUAL:
        return "SELECT count(DISTINCT owner) FROM search WHERE value >= ";
    default:
        return NULL;
    }
}

static void
build_count(struct sql *sql, const struct query_node *where, struct arena *arena)
{
    const char *single = single_comparison(where);
    if (single != NULL) {
        sql_append(sql, single);
        sql_append_value(sql, &where->value);
        sql_append(sql, " AND attribute = ");
        sql_append_integer(sql, compile_attribute(sql, where->attribute));
        return;
    }
    struct source *source = source_find(sql, where, arena);
    if (source != NULL) {
        sql_append(sql, "SELECT count(*) FROM runs NOT INDEXED WHERE runs.id IN (");
        source_append(sql, source, arena);
        sql_append(sql, ") AND runs.domain = ");
    } else {
        const char *index = plan_start_index(where);
        sql_append(sql, "SELECT count(*) FROM runs INDEXED BY ");
        sql_append(sql, index);
        sql_append(sql, strcmp(index, "run_by_status") == 0
                            ? " WHERE runs.status <> 0 AND runs.domain = "
                            : " WHERE runs.domain = ");
    }
    sql_append_integer(sql, sql->domain);
    if (where != NULL) {
        sql_append(sql, " AND ");
        compile_where(sql, where);
    }
}

static int
count_inside(sqlite3 *database, int64_t domain, const struct query *query, struct arena *arena,
             int64_t *count)
{
    scoped(sql_free) struct sql sql;
    sql_init(&sql, database, domain);
    build_count(&sql, query->where, arena);
    sqlite3_stmt *statement;
    int code = sql_prepare(&sql, &statement);
    if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        *count = sqlite3_column_int64(statement, 0);
    int end = sqlite3_finalize(statement);
    return code != SQLITE_OK ? code : end;
}

int
question_count(sqlite3 *database, const char *domain_id, const struct query *query,
               struct arena *arena, int64_t *count)
{
    *count = 0;
    int64_t domain = 0;
    int code = database_execute(database, "BEGIN");
    if (code != SQLITE_OK)
        return code;
    code = names_find(database, 0, NAME_DOMAIN, slice_text(domain_id), &domain);
    if (code == SQLITE_OK && domain != 0)
        code = count_inside(database, domain, query, arena, count);
    int end = database_execute(database, "ROLLBACK");
    return code != SQLITE_OK ? code : end;
}
