/* compile.c - a tree becomes the condition of a SELECT. Values are bound, never part of the text.
 *
 * The language has two truth values, SQL three. What is NULL here counts as false: AND and OR keep
 * to that by themselves, and NOT is written `IS NOT TRUE`, which turns NULL into true. Comparisons
 * that are true of a missing value (!=, NOT LIKE) are the NOT of their contrary.
 *
 * A comparison of a custom attribute asks whether a value of the run fits. Equality is asked of
 * `search`, whose key has all three, the rest of `value`. */
#include "base/check.h"
#include "visibility/sqlite/inside.h"

/* ---- text and values ---- */

void
sql_init(struct sql *sql, sqlite3 *database, int64_t domain)
{
    *sql = (struct sql){.database = database, .domain = domain};
}

void
sql_free(struct sql *sql)
{
    buffer_free(&sql->text);
    vector_free(&sql->values);
}

void
sql_append(struct sql *sql, const char *text)
{
    buffer_append_text(&sql->text, text);
}

static void
append_parameter(struct sql *sql, struct sql_value value)
{
    sql_append(sql, "?");
    vector_push(&sql->values, value);
}

void
sql_append_integer(struct sql *sql, int64_t integer)
{
    append_parameter(sql, (struct sql_value){.type = SQL_INTEGER, .integer = integer});
}

void
sql_append_text(struct sql *sql, struct slice text)
{
    append_parameter(sql, (struct sql_value){.type = SQL_TEXT, .text = text});
}

void
sql_append_stored(struct sql *sql, const struct sql_value *value)
{
    append_parameter(sql, *value);
}

void
sql_append_value(struct sql *sql, const struct attribute_value *value)
{
    switch (value->type) {
    case ATTRIBUTE_STRING:
    case ATTRIBUTE_KEYWORD:
        sql_append_text(sql, value->text);
        return;
    case ATTRIBUTE_INT:
    case ATTRIBUTE_BOOL:
    case ATTRIBUTE_DATETIME:
        sql_append_integer(sql, value->integer);
        return;
    case ATTRIBUTE_DOUBLE:
        append_parameter(sql, (struct sql_value){.type = SQL_NUMBER, .number = value->number});
        return;
    case ATTRIBUTE_TYPE_COUNT:
        break;
    }
    unreachable("attribute type %d", (int)value->type);
}

static int
bind_parameter(sqlite3_stmt *statement, int index, const struct sql_value *value)
{
    switch (value->type) {
    case SQL_INTEGER:
        return sqlite3_bind_int64(statement, index, value->integer);
    case SQL_NUMBER:
        return sqlite3_bind_double(statement, index, value->number);
    case SQL_TEXT:
        return text_bind(statement, index, value->text);
    case SQL_NODE:
        return sqlite3_bind_pointer(statement, index, (void *)value->node, NODE_POINTER, NULL);
    }
    unreachable("value type %d", value->type);
}

int
sql_prepare(struct sql *sql, sqlite3_stmt **statement)
{
    *statement = NULL;
    if (sql->code != SQLITE_OK)
        return sql->code;
    struct slice text = buffer_slice(&sql->text);
    int code = sqlite3_prepare_v2(sql->database, (const char *)text.data, (int)text.length,
                                  statement, NULL);
    for (size_t i = 0; i < sql->values.count && code == SQLITE_OK; i++)
        code = bind_parameter(*statement, (int)i + 1, &vector_at(&sql->values, i));
    return code;
}

/* ---- names ---- */

/* The number of a text in `names`; -1, which no row has, if there is none. */
static int64_t
number_of(struct sql *sql, enum name_kind kind, struct slice text)
{
    int64_t number = 0;
    int code = names_find(sql->database, sql->domain, kind, text, &number);
    if (sql->code == SQLITE_OK)
        sql->code = code;
    return number == 0 ? -1 : number;
}

int64_t
compile_attribute(struct sql *sql, const struct search_attribute *attribute)
{
    return number_of(sql, NAME_ATTRIBUTE + attribute->type, slice_text(attribute->name));
}

static const char *const column_names[COLUMN_COUNT] = {
    [COLUMN_DOMAIN_ID] = "(SELECT text FROM names WHERE id = runs.domain)",
    [COLUMN_WORKFLOW_ID] = "runs.workflow",
    [COLUMN_RUN_ID] = "runs.run",
    [COLUMN_WORKFLOW_TYPE] = "(SELECT text FROM names WHERE id = runs.type)",
    [COLUMN_START_TIME] = "runs.start",
    [COLUMN_EXECUTION_TIME] = "runs.execution",
    [COLUMN_CLOSE_TIME] = "runs.close",
    [COLUMN_CLOSE_STATUS] = "runs.status",
    [COLUMN_HISTORY_LENGTH] = "runs.length",
    [COLUMN_TASK_LIST] = "(SELECT text FROM names WHERE id = runs.task_list)",
    [COLUMN_IS_CRON] = "runs.is_cron",
    [COLUMN_NUM_CLUSTERS] = "runs.clusters",
    [COLUMN_UPDATE_TIME] = "runs.updated",
    [COLUMN_CRON_SCHEDULE] = "runs.cron",
    [COLUMN_EXECUTION_STATUS] = "runs.execution_status",
    [COLUMN_SCHEDULED_EXECUTION_TIME] = "runs.scheduled",
    [COLUMN_CLUSTER_ATTRIBUTE_SCOPE] = "runs.scope",
    [COLUMN_CLUSTER_ATTRIBUTE_NAME] = "runs.scope_name",
};

const char *
compile_column(enum attribute_column column)
{
    check(column > COLUMN_NONE && column < COLUMN_COUNT);
    return column_names[column];
}

/* ---- comparisons ---- */

static const char *operator_text(enum query_operator operator)
{
    switch (operator) {
    case QUERY_EQUAL:
        return " = ";
    case QUERY_LESS:
        return " < ";
    case QUERY_LESS_OR_EQUAL:
        return " <= ";
    case QUERY_GREATER:
        return " > ";
    case QUERY_GREATER_OR_EQUAL:
        return " >= ";
    default:
        unreachable("operator %d", operator);
    }
}

/* `left` against the value, where left is there. */
static void
append_test(struct sql *sql, const char *left, enum query_operator operator,
            const struct attribute_value * value)
{
    bool is_words = value->type == ATTRIBUTE_STRING && operator== QUERY_EQUAL;
    if (is_words || operator== QUERY_LIKE) {
        sql_append(sql, is_words ? "text_matches(" : "text_like(");
        sql_append(sql, left);
        sql_append(sql, ", ");
        sql_append_value(sql, value);
        sql_append(sql, ")");
        return;
    }
    sql_append(sql, left);
    sql_append(sql, operator_text(operator));
    sql_append_value(sql, value);
}

/* Types and task lists are compared by number, or among the few names of the domain. */
static void
append_name_test(struct sql *sql, const char *column, enum name_kind kind,
                 enum query_operator operator, const struct attribute_value * value)
{
    sql_append(sql, column);
    if (operator== QUERY_EQUAL) {
        sql_append(sql, " = ");
        sql_append_integer(sql, number_of(sql, kind, value->text));
        return;
    }
    sql_append(sql, " IN (SELECT id FROM names WHERE domain = ");
    sql_append_integer(sql, sql->domain);
    sql_append(sql, " AND kind = ");
    sql_append_integer(sql, kind);
    sql_append(sql, " AND ");
    append_test(sql, "text", operator, value);
    sql_append(sql, ")");
}

static void
append_column_test(struct sql *sql, enum attribute_column column, enum query_operator operator,
                   const struct attribute_value * value)
{
    if (column == COLUMN_WORKFLOW_TYPE)
        append_name_test(sql, "runs.type", NAME_TYPE, operator, value);
    else if (column == COLUMN_TASK_LIST)
        append_name_test(sql, "runs.task_list", NAME_TASK_LIST, operator, value);
    else
        append_test(sql, compile_column(column), operator, value);
}

static void
append_custom_test(struct sql *sql, const struct search_attribute *attribute,
                   enum query_operator operator, const struct attribute_value * value)
{
    bool is_search = operator== QUERY_EQUAL && attribute->type != ATTRIBUTE_STRING;
    sql_append(sql, is_search ? "EXISTS (SELECT 1 FROM search WHERE attribute = "
                              : "EXISTS (SELECT 1 FROM value WHERE attribute = ");
    sql_append_integer(sql, compile_attribute(sql, attribute));
    sql_append(sql, " AND owner = runs.id");
    if (operator!= QUERY_NOT_MISSING) {
        sql_append(sql, " AND ");
        append_test(sql, "value", operator, value);
    }
    sql_append(sql, ")");
}

/* The contrary of what is true of missing values; QUERY_OPERATOR_NONE if it is none of them. */
#define QUERY_OPERATOR_NONE ((enum query_operator) - 1)

static enum query_operator contrary_of(enum query_operator operator)
{
    switch (operator) {
    case QUERY_NOT_EQUAL:
        return QUERY_EQUAL;
    case QUERY_NOT_LIKE:
        return QUERY_LIKE;
    case QUERY_MISSING:
        return QUERY_NOT_MISSING;
    default:
        return QUERY_OPERATOR_NONE;
    }
}

static void
append_positive(struct sql *sql, const struct query_node *node, enum query_operator operator)
{
    const struct search_attribute *attribute = node->attribute;
    if (attribute->column == COLUMN_NONE) {
        append_custom_test(sql, attribute, operator, & node->value);
    } else if (operator== QUERY_NOT_MISSING) {
        sql_append(sql, compile_column(attribute->column));
        sql_append(sql, " IS NOT NULL");
    } else {
        append_column_test(sql, attribute->column, operator, & node->value);
    }
}

static void
append_compare(struct sql *sql, const struct query_node *node)
{
    enum query_operator contrary = contrary_of(node->operator);
    if (node->operator== QUERY_MISSING && node->attribute->column != COLUMN_NONE) {
        sql_append(sql, compile_column(node->attribute->column)); /* so that indexes see it */
        sql_append(sql, " IS NULL");
        return;
    }
    sql_append(sql, "(");
    append_positive(sql, node, contrary == QUERY_OPERATOR_NONE ? node->operator : contrary);
    sql_append(sql, contrary == QUERY_OPERATOR_NONE ? ")" : ") IS NOT TRUE");
}

/* ---- the tree ---- */

/* Halves of halves: a thousand children in a row would be a tree too deep for SQLite. */
static void
append_children(struct sql *sql, struct query_node *const *children, size_t count,
                const char *between)
{
    if (count == 1) {
        compile_where(sql, children[0]);
        return;
    }
    sql_append(sql, "(");
    append_children(sql, children, count / 2, between);
    sql_append(sql, between);
    append_children(sql, children + count / 2, count - count / 2, between);
    sql_append(sql, ")");
}

void
compile_where(struct sql *sql, const struct query_node *node)
{
    switch (node->kind) {
    case QUERY_AND:
        append_children(sql, node->child, node->child_count, " AND ");
        return;
    case QUERY_OR:
        append_children(sql, node->child, node->child_count, " OR ");
        return;
    case QUERY_NOT:
        sql_append(sql, "((");
        compile_where(sql, node->child[0]);
        sql_append(sql, ") IS NOT TRUE)");
        return;
    case QUERY_COMPARE:
        sql_append(sql, "(");
        append_compare(sql, node);
        sql_append(sql, ")");
        return;
    case QUERY_ACTIVE_IN:
        sql_append(sql, "is_at_place(runs.scope, runs.scope_name, ");
        append_parameter(sql, (struct sql_value){.type = SQL_NODE, .node = node});
        sql_append(sql, ")");
        return;
    }
    unreachable("node kind %d", node->kind);
}
