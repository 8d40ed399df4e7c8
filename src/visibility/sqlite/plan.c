/* plan.c - where to look for the runs of a question: a few candidates, or a walk along an index.
 *
 * SQLite's own planner guesses by statistics, and a guess that is wrong by a factor of a thousand
 * makes a page take seconds. Here the database is asked: for each part of the condition that an
 * index can answer, how many runs are there, counted up to SOURCE_MAX? Under AND the smallest part
 * will do, under OR all are needed. If that leads to few enough runs they are tested and sorted; if
 * not, answers are frequent, and a walk along the index of the order meets a page of them soon.
 * Either way the whole condition is tested on every run: a plan is never wrong, only slow. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

#ifndef SOURCE_MAX
#define SOURCE_MAX 4000 /* runs; testing and sorting them takes some ms */
#endif
#define PARTS_MAX 100 /* parts of one question that are asked about */

struct source {
    enum { SOURCE_COMPARE, SOURCE_RANGE, SOURCE_UNION } kind;
    const struct query_node *node; /* COMPARE: itself; RANGE: the AND whose bounds of `column` */
    enum attribute_column column;
    struct source **part; /* UNION */
    size_t part_count;
    int64_t runs; /* how many it leads to */
};

struct source_search {
    struct sql *sql; /* for database and domain */
    struct arena *arena;
    unsigned asked;
};

/* ---- what an index can answer ---- */

static bool
is_bound(const struct query_node *node, enum attribute_column column)
{
    return node->kind == QUERY_COMPARE && node->attribute->column == column &&
           (node->operator== QUERY_EQUAL || node->operator== QUERY_LESS ||
            node->
            operator== QUERY_LESS_OR_EQUAL || node->
            operator== QUERY_GREATER || node->
            operator== QUERY_GREATER_OR_EQUAL);
}

/* The longest word that has ASCII letters only: of others the case may fold in ways of its own. */
static struct slice
longest_word(struct slice text, struct arena *arena)
{
    struct slice longest = {0};
    uint8_t *word = arena_alloc(arena, text.length);
    for (size_t length; text_next_word(&text, word, &length);) {
        bool is_ascii = true;
        for (size_t i = 0; i < length; i++)
            is_ascii = is_ascii && word[i] < 0x80;
        if (is_ascii && length > longest.length)
            longest = arena_slice(arena, slice_of(word, length));
    }
    return longest;
}

static bool
is_custom_source(const struct query_node *node)
{
    if (node->attribute->type == ATTRIBUTE_STRING)
        return node->operator== QUERY_EQUAL;
    return node->operator== QUERY_EQUAL || node->operator== QUERY_LESS ||
        node->
        operator== QUERY_LESS_OR_EQUAL || node->
        operator== QUERY_GREATER || node->
        operator== QUERY_GREATER_OR_EQUAL;
}

static bool
is_compare_source(const struct query_node *node, struct arena *arena)
{
    switch (node->attribute->column) {
    case COLUMN_NONE:
        return is_custom_source(node) && (node->attribute->type != ATTRIBUTE_STRING ||
                                          longest_word(node->value.text, arena).length > 0);
    case COLUMN_WORKFLOW_ID:
    case COLUMN_RUN_ID:
    case COLUMN_WORKFLOW_TYPE:
        return node->operator== QUERY_EQUAL;
    case COLUMN_CLOSE_STATUS:
        return node->operator== QUERY_EQUAL && node->value.integer> 0;
    case COLUMN_CLOSE_TIME:
        return node->operator== QUERY_MISSING;
    default:
        return false;
    }
}

/* ---- as SQL ---- */

static void
append_keys(struct sql *sql, const struct query_node *node)
{
    int64_t hash = key_hash(sql->domain, node->attribute->column, node->value.text);
    sql_append(sql, "SELECT owner FROM key WHERE hash = ");
    sql_append_integer(sql, hash);
    sql_append(sql, " UNION ALL SELECT owner FROM key_recent WHERE hash = ");
    sql_append_integer(sql, hash);
}

static const char *bound_text(enum query_operator operator)
{
    static const char *const text[] = {[QUERY_EQUAL] = " = ",
                                       [QUERY_LESS] = " < ",
                                       [QUERY_LESS_OR_EQUAL] = " <= ",
                                       [QUERY_GREATER] = " > ",
                                       [QUERY_GREATER_OR_EQUAL] = " >= "};
    check(operator<array_length(text) && text[operator] != NULL);
    return text[operator];
}

/* A word's bytes are in an arena of their own until the statement is gone: the caller's. */
static void
append_custom(struct sql *sql, const struct query_node *node, struct arena *arena)
{
    sql_append(sql, "SELECT owner FROM search WHERE attribute = ");
    sql_append_integer(sql, compile_attribute(sql, node->attribute));
    sql_append(sql, " AND value");
    sql_append(sql, bound_text(node->operator));
    if (node->attribute->type == ATTRIBUTE_STRING)
        sql_append_text(sql, longest_word(node->value.text, arena));
    else
        sql_append_value(sql, &node->value);
}

static void
append_compare(struct sql *sql, const struct query_node *node, struct arena *arena)
{
    switch (node->attribute->column) {
    case COLUMN_NONE:
        append_custom(sql, node, arena);
        return;
    case COLUMN_WORKFLOW_ID:
    case COLUMN_RUN_ID:
        append_keys(sql, node);
        return;
    case COLUMN_WORKFLOW_TYPE:
        sql_append(sql, "SELECT id FROM runs INDEXED BY run_by_type WHERE ");
        compile_where(sql, node);
        return;
    case COLUMN_CLOSE_TIME:
        sql_append(sql,
                   "SELECT id FROM runs INDEXED BY run_open WHERE close IS NULL AND domain = ");
        sql_append_integer(sql, sql->domain);
        return;
    case COLUMN_CLOSE_STATUS:
        sql_append(sql, "SELECT id FROM runs INDEXED BY run_by_status "
                        "WHERE status <> 0 AND domain = ");
        sql_append_integer(sql, sql->domain);
        sql_append(sql, " AND ");
        compile_where(sql, node);
        return;
    default:
        unreachable("column %d has no index", node->attribute->column);
    }
}

static void
append_range(struct sql *sql, const struct source *source)
{
    bool is_close = source->column == COLUMN_CLOSE_TIME;
    sql_append(sql, is_close ? "SELECT id FROM runs INDEXED BY run_by_close WHERE domain = "
                             : "SELECT id FROM runs INDEXED BY run_by_start WHERE domain = ");
    sql_append_integer(sql, sql->domain);
    for (size_t i = 0; i < source->node->child_count; i++) {
        if (!is_bound(source->node->child[i], source->column))
            continue;
        sql_append(sql, " AND ");
        compile_where(sql, source->node->child[i]);
    }
}

void
source_append(struct sql *sql, const struct source *source, struct arena *arena)
{
    if (source->kind == SOURCE_COMPARE)
        append_compare(sql, source->node, arena);
    else if (source->kind == SOURCE_RANGE)
        append_range(sql, source);
    for (size_t i = 0; source->kind == SOURCE_UNION && i < source->part_count; i++) {
        sql_append(sql, i > 0 ? " UNION ALL " : "");
        source_append(sql, source->part[i], arena);
    }
}

/* ---- the choice ---- */

/* Asks how many; beyond SOURCE_MAX it is too many. */
static struct source *
ask(struct source_search *source_search, struct source source)
{
    if (source_search->asked++ >= PARTS_MAX)
        return NULL;
    scoped(sql_free) struct sql sql;
    sql_init(&sql, source_search->sql->database, source_search->sql->domain);
    sql_append(&sql, "SELECT count(*) FROM (SELECT 1 FROM (");
    source_append(&sql, &source, source_search->arena);
    sql_append(&sql, ") LIMIT ");
    sql_append_integer(&sql, SOURCE_MAX + 1);
    sql_append(&sql, ")");
    sqlite3_stmt *statement;
    int code = sql_prepare(&sql, &statement);
    if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        source.runs = sqlite3_column_int64(statement, 0);
    int end = sqlite3_finalize(statement);
    if (source_search->sql->code == SQLITE_OK)
        source_search->sql->code = code != SQLITE_OK ? code : end;
    if (source_search->sql->code != SQLITE_OK || source.runs > SOURCE_MAX)
        return NULL;
    struct source *kept = arena_make(source_search->arena, struct source);
    *kept = source;
    return kept;
}

static struct source *
smaller(struct source *one, struct source *other)
{
    if (one == NULL || other == NULL)
        return one == NULL ? other : one;
    return other->runs < one->runs ? other : one;
}

static struct source *find_for(struct source_search *source_search, const struct query_node *node);

static struct source *
find_for_range(struct source_search *source_search, const struct query_node *node,
               enum attribute_column column)
{
    bool has_bound = false;
    for (size_t i = 0; i < node->child_count; i++)
        has_bound = has_bound || is_bound(node->child[i], column);
    struct source range = {.kind = SOURCE_RANGE, .node = node, .column = column};
    return has_bound ? ask(source_search, range) : NULL;
}

static struct source *
find_for_and(struct source_search *source_search, const struct query_node *node)
{
    struct source *best = find_for_range(source_search, node, COLUMN_CLOSE_TIME);
    best = smaller(best, find_for_range(source_search, node, COLUMN_START_TIME));
    for (size_t i = 0; i < node->child_count; i++)
        best = smaller(best, find_for(source_search, node->child[i]));
    return best;
}

static struct source *
find_for_or(struct source_search *source_search, const struct query_node *node)
{
    check(node->child_count >= 2);
    struct source *all = arena_make(source_search->arena, struct source);
    *all = (struct source){.kind = SOURCE_UNION, .part_count = node->child_count};
    all->part = arena_zalloc(source_search->arena, node->child_count, sizeof(struct source *));
    for (size_t i = 0; i < node->child_count; i++) {
        all->part[i] = find_for(source_search, node->child[i]);
        if (all->part[i] == NULL)
            return NULL;
        all->runs += all->part[i]->runs;
    }
    return all->runs > SOURCE_MAX ? NULL : all;
}

static struct source *
find_for(struct source_search *source_search, const struct query_node *node)
{
    switch (node->kind) {
    case QUERY_AND:
        return find_for_and(source_search, node);
    case QUERY_OR:
        return find_for_or(source_search, node);
    case QUERY_NOT:
    case QUERY_ACTIVE_IN:
        return NULL;
    case QUERY_COMPARE:
        return is_compare_source(node, source_search->arena)
                   ? ask(source_search, (struct source){.kind = SOURCE_COMPARE, .node = node})
                   : NULL;
    }
    unreachable("node kind %d", node->kind);
}

struct source *
source_find(struct sql *sql, const struct query_node *where, struct arena *arena)
{
    struct source_search source_search = {.sql = sql, .arena = arena};
    return where == NULL ? NULL : find_for(&source_search, where);
}

/* ---- walks ---- */

/* Does an index in the order of StartTime hold the runs of this part alone? The higher, the fewer.
 */
static int
rank_of(const struct query_node *node)
{
    if (node->kind != QUERY_COMPARE || node->attribute->column == COLUMN_NONE ||
        !is_compare_source(node, NULL))
        return 0;
    switch (node->attribute->column) {
    case COLUMN_CLOSE_TIME:
        return 3;
    case COLUMN_CLOSE_STATUS:
        return 2;
    case COLUMN_WORKFLOW_TYPE:
        return 1;
    default:
        return 0;
    }
}

const char *
plan_start_index(const struct query_node *where)
{
    static const char *const indexes[] = {"run_by_start", "run_by_type", "run_by_status",
                                          "run_open"};
    int best = where == NULL ? 0 : rank_of(where);
    for (size_t i = 0; where != NULL && where->kind == QUERY_AND && i < where->child_count; i++) {
        int rank = rank_of(where->child[i]);
        best = rank > best ? rank : best;
    }
    return indexes[best];
}
