/* evaluate.c - see evaluate.h. */
#include "visibility/evaluate.h"

#include "base/check.h"

/* <0, 0, >0; both are of one type. */
static int
attribute_compare_values(const struct attribute_value *one, const struct attribute_value *other)
{
    check(one->type == other->type);
    switch (one->type) {
    case ATTRIBUTE_STRING:
    case ATTRIBUTE_KEYWORD:
        return slice_compare(one->text, other->text);
    case ATTRIBUTE_DOUBLE:
        return (one->number > other->number) - (one->number < other->number);
    case ATTRIBUTE_INT:
    case ATTRIBUTE_BOOL:
    case ATTRIBUTE_DATETIME:
        return (one->integer > other->integer) - (one->integer < other->integer);
    case ATTRIBUTE_TYPE_COUNT:
        break;
    }
    unreachable("attribute type %d", (int)one->type);
}

/* What the row has under the attribute. A row may be older than the set that the query's attribute
 * is of, so the name counts, not the pointer. */
static size_t
values_of(const struct search_attribute *attribute, const struct visibility_row *row,
          const struct attribute_value **values)
{
    if (attribute->column != COLUMN_NONE) {
        *values = &row->column[attribute->column];
        return row->has[attribute->column];
    }
    for (size_t i = 0; i < row->custom_count; i++) {
        const struct visibility_custom *custom = &row->custom[i];
        if (strcmp(custom->attribute->name, attribute->name) != 0 ||
            custom->attribute->type != attribute->type)
            continue;
        *values = custom->values;
        return custom->count;
    }
    return 0;
}

/* One value of the row against the query's; negated operators are asked the other way round. */
static bool
value_fits(const struct query_node *node, const struct attribute_value *value)
{
    int order = attribute_compare_values(value, &node->value);
    switch (node->operator) {
    case QUERY_EQUAL:
    case QUERY_NOT_EQUAL:
        return value->type == ATTRIBUTE_STRING
                   ? visibility_text_matches(value->text, node->value.text)
                   : order == 0;
    case QUERY_LESS:
        return order < 0;
    case QUERY_LESS_OR_EQUAL:
        return order <= 0;
    case QUERY_GREATER:
        return order > 0;
    case QUERY_GREATER_OR_EQUAL:
        return order >= 0;
    case QUERY_LIKE:
    case QUERY_NOT_LIKE:
        return visibility_text_like(value->text, node->value.text);
    case QUERY_MISSING:
    case QUERY_NOT_MISSING:
        return true;
    }
    unreachable("query operator %d", (int)node->operator);
}

static bool
compares(const struct query_node *node, const struct visibility_row *row)
{
    const struct attribute_value *values = NULL;
    size_t count = values_of(node->attribute, row, &values);
    enum query_operator comparison = node->operator;
    bool is_denial = comparison == QUERY_NOT_EQUAL || comparison == QUERY_NOT_LIKE ||
                     comparison == QUERY_MISSING;
    for (size_t i = 0; i < count; i++) {
        if (value_fits(node, &values[i]))
            return !is_denial;
    }
    return is_denial;
}

/* What the row has in a column of texts; empty: nothing. */
static struct slice
text_of(const struct visibility_row *row, enum attribute_column column)
{
    return row->has[column] ? row->column[column].text : (struct slice){0};
}

bool
query_matches(const struct query_node *where, const struct visibility_row *row)
{
    if (where == NULL)
        return true;
    if (where->kind == QUERY_COMPARE)
        return compares(where, row);
    if (where->kind == QUERY_ACTIVE_IN)
        return query_is_active_in(where, text_of(row, COLUMN_CLUSTER_ATTRIBUTE_SCOPE),
                                  text_of(row, COLUMN_CLUSTER_ATTRIBUTE_NAME));
    check(where->child_count >= 1);
    if (where->kind == QUERY_NOT)
        return !query_matches(where->child[0], row);
    check(where->child_count >= 2);
    bool ends_it = where->kind == QUERY_OR; /* what one child must say to decide it */
    for (size_t i = 0; i < where->child_count; i++) {
        if (query_matches(where->child[i], row) == ends_it)
            return ends_it;
    }
    return !ends_it;
}

/* --- order ---------------------------------------------------------------------------------- */

const struct attribute_value *
query_order_value(const struct query *query, const struct visibility_row *row)
{
    static const struct search_attribute start_time = {"StartTime", ATTRIBUTE_DATETIME,
                                                       COLUMN_START_TIME};
    const struct attribute_value *values = NULL, *first = NULL;
    size_t count = values_of(query->order != NULL ? query->order : &start_time, row, &values);
    for (size_t i = 0; i < count; i++) {
        int order = first == NULL ? 0 : attribute_compare_values(&values[i], first);
        if (first == NULL || (query->is_ascending ? order < 0 : order > 0))
            first = &values[i];
    }
    return first;
}

int
query_compare_positions(const struct query *query, const struct attribute_value *one,
                        struct slice one_run, const struct attribute_value *other,
                        struct slice other_run)
{
    if ((one == NULL) != (other == NULL))
        return one == NULL ? 1 : -1;
    int order = one == NULL ? 0 : attribute_compare_values(one, other);
    if (order == 0)
        order = slice_compare(one_run, other_run);
    return query->is_ascending ? order : -order;
}
