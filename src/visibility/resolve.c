/* resolve.c - names become attributes, words become values of their type. See language.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"
#include "visibility/language.h"

#define MILLISECOND INT64_C(1000000)
#define NUMBER_MAX  ((size_t)64) /* bytes of a number */

const struct search_attribute query_active_cluster = {"ActiveCluster", ATTRIBUTE_KEYWORD,
                                                      COLUMN_NONE};

const struct search_attribute *
query_resolve_name(struct query_reader *reader, const struct word *name)
{
    const char *text = arena_text_of(reader->arena, name->value);
    const struct search_attribute *attribute = attribute_find(reader->attributes, text);
    if (attribute == NULL && reader->clusters != NULL &&
        strcmp(text, query_active_cluster.name) == 0)
        return &query_active_cluster;
    if (attribute == NULL) /* Cadence's whole message (B-015): the name is the place */
        reader->err =
            error_new(reader->arena, ERR_BAD_REQUEST, "invalid search attribute \"%s\"", text);
    return attribute;
}

/* --- values --------------------------------------------------------------------------------- */

static bool
read_number(struct slice text, double *number)
{
    char digits[NUMBER_MAX + 1], *end;
    if (text.length == 0 || text.length > NUMBER_MAX)
        return false;
    memcpy(digits, text.data, text.length);
    digits[text.length] = '\0';
    if (strspn(digits, "0123456789+-.eE") != text.length)
        return false; /* neither hexadecimal nor nan */
    *number = strtod(digits, &end);
    return *end == '\0' && isfinite(*number);
}

static bool
read_integer(struct slice text, int64_t *integer)
{
    if (text.length > 1 && text.data[0] == '+')
        text = slice_skip(text, 1);
    return text_parse_int64(text, INT64_MIN, INT64_MAX, integer);
}

static bool
text_is(struct slice text, const char *word)
{
    return text.length == strlen(word) &&
           strncasecmp((const char *)text.data, word, text.length) == 0;
}

static bool
read_bool(struct slice text, int64_t *integer)
{
    *integer = text_is(text, "true");
    return *integer || text_is(text, "false");
}

/* Names of a status, in the order of their numbers (B-018). */
static bool
read_status(const struct search_attribute *attribute, struct slice text, int64_t *integer)
{
    static const char *const names[] = {"pending",  "started",    "completed",        "failed",
                                        "canceled", "terminated", "continued_as_new", "timed_out"};
    size_t first = attribute->column == COLUMN_CLOSE_STATUS ? 2 : 0; /* these have not closed */
    for (size_t i = first; i < array_length(names); i++) {
        if (!text_is(text, names[i]))
            continue;
        *integer = (int64_t)(i - first);
        return true;
    }
    return false;
}

static bool
read_value(const struct search_attribute *attribute, struct slice text,
           struct attribute_value *value)
{
    *value = (struct attribute_value){.type = attribute->type};
    bool is_status =
        attribute->column == COLUMN_CLOSE_STATUS || attribute->column == COLUMN_EXECUTION_STATUS;
    switch (attribute->type) {
    case ATTRIBUTE_STRING:
    case ATTRIBUTE_KEYWORD:
        value->text = text;
        return true;
    case ATTRIBUTE_INT:
        return read_integer(text, &value->integer) ||
               (is_status && read_status(attribute, text, &value->integer));
    case ATTRIBUTE_DOUBLE:
        return read_number(text, &value->number);
    case ATTRIBUTE_BOOL:
        return read_bool(text, &value->integer);
    case ATTRIBUTE_DATETIME:
        return read_integer(text, &value->integer) || text_parse_moment(text, &value->integer);
    case ATTRIBUTE_TYPE_COUNT:
        break;
    }
    unreachable("attribute type %d", (int)attribute->type);
}

/* Says what it should have been; Cadence's words where it has some. */
static void
fail_value(struct query_reader *reader, const struct search_attribute *attribute,
           const struct word *value)
{
    static const char *const expected[ATTRIBUTE_TYPE_COUNT] = {
        [ATTRIBUTE_INT] = "a whole number",
        [ATTRIBUTE_DOUBLE] = "a number",
        [ATTRIBUTE_BOOL] = "true or false",
        [ATTRIBUTE_DATETIME] = "a time (RFC 3339 or nanoseconds)",
    };
    if (attribute->column == COLUMN_CLOSE_STATUS || attribute->column == COLUMN_EXECUTION_STATUS)
        query_fail(reader, value, "Error when parse query: unknown enum value for \"Workflow%s\"",
                   attribute->column == COLUMN_CLOSE_STATUS ? "ExecutionCloseStatus"
                                                            : "ExecutionStatus");
    else
        query_fail(reader, value, "Error when parse query: %s is compared with %s", attribute->name,
                   expected[attribute->type]);
}

/* --- nodes ---------------------------------------------------------------------------------- */

struct query_node *
query_join(struct arena *arena, enum query_node_kind kind, struct query_node **children,
           size_t count)
{
    check(count > 0 && (kind == QUERY_AND || kind == QUERY_OR));
    if (count == 1)
        return children[0];
    struct query_node *node = arena_make(arena, struct query_node);
    node->kind = kind;
    node->child = arena_alloc(arena, count * sizeof(struct query_node *));
    memcpy(node->child, children, count * sizeof(struct query_node *));
    node->child_count = count;
    return node;
}

struct query_node *
query_negate(struct arena *arena, struct query_node *child)
{
    struct query_node *node = arena_make(arena, struct query_node);
    node->kind = QUERY_NOT;
    node->child = arena_alloc(arena, sizeof(struct query_node *));
    node->child[0] = child;
    node->child_count = 1;
    return node;
}

static struct query_node *
compare_plainly(struct arena *arena, const struct search_attribute *attribute,
                enum query_operator comparison, struct attribute_value value)
{
    check(value.type == attribute->type);
    struct query_node *node = arena_make(arena, struct query_node);
    node->kind = QUERY_COMPARE;
    node->attribute = attribute;
    node->operator= comparison;
    node->value = value;
    return node;
}

/* A column of times holds ns, and is compared by the ms that they are in: the ms of the value is
 * from `low` on and before `high`. */
static struct query_node *
compare_times(struct arena *arena, const struct search_attribute *attribute,
              enum query_operator comparison, struct attribute_value low)
{
    check(low.integer % MILLISECOND == 0);
    struct attribute_value high = low;
    if (__builtin_add_overflow(low.integer, MILLISECOND, &high.integer))
        high.integer = INT64_MAX;
    switch (comparison) {
    case QUERY_LESS:
    case QUERY_GREATER_OR_EQUAL:
        return compare_plainly(arena, attribute, comparison, low);
    case QUERY_LESS_OR_EQUAL:
        return compare_plainly(arena, attribute, QUERY_LESS, high);
    case QUERY_GREATER:
        return compare_plainly(arena, attribute, QUERY_GREATER_OR_EQUAL, high);
    default:
        break;
    }
    check(comparison == QUERY_EQUAL || comparison == QUERY_NOT_EQUAL);
    struct query_node *ends[] = {
        compare_plainly(arena, attribute, QUERY_GREATER_OR_EQUAL, low),
        compare_plainly(arena, attribute, QUERY_LESS, high),
    };
    struct query_node *same = query_join(arena, QUERY_AND, ends, 2);
    return comparison == QUERY_EQUAL ? same : query_negate(arena, same);
}

struct query_node *
query_compare(struct arena *arena, const struct search_attribute *attribute,
              enum query_operator comparison, struct attribute_value value)
{
    bool is_missing = comparison == QUERY_MISSING || comparison == QUERY_NOT_MISSING;
    if (attribute->type != ATTRIBUTE_DATETIME || is_missing || attribute->column == COLUMN_NONE)
        return compare_plainly(arena, attribute, comparison, value);
    value.integer = attribute_floor_time(value.integer);
    return compare_times(arena, attribute, comparison, value);
}

/* --- a comparison --------------------------------------------------------------------------- */

static struct query_node *
resolve_missing(struct query_reader *reader, const struct search_attribute *attribute,
                enum query_operator comparison, const struct word *value)
{
    struct attribute_value none = {.type = attribute->type};
    if (comparison == QUERY_EQUAL)
        return query_compare(reader->arena, attribute, QUERY_MISSING, none);
    if (comparison == QUERY_NOT_EQUAL)
        return query_compare(reader->arena, attribute, QUERY_NOT_MISSING, none);
    query_fail(reader, value, "Invalid query. Only = and != go with missing");
    return NULL;
}

/* A pattern finds what begins with it, as in Cadence: `%` is put behind it. A backslash at its end
 * has nothing to take literally and would take that one. */
static struct slice
prefix_of(struct slice pattern, struct arena *arena)
{
    uint8_t *prefix = arena_alloc(arena, pattern.length + 2);
    size_t length = 0;
    bool is_escaped = false;
    for (size_t i = 0; i < pattern.length; i++) {
        is_escaped = !is_escaped && pattern.data[i] == '\\';
        prefix[length++] = pattern.data[i];
    }
    if (is_escaped)
        prefix[length++] = '\\';
    prefix[length++] = '%';
    check(length <= pattern.length + 2);
    return slice_of(prefix, length);
}

static struct query_node *
resolve_like(struct query_reader *reader, const struct search_attribute *attribute,
             enum query_operator comparison, const struct word *value)
{
    if (attribute->type != ATTRIBUTE_KEYWORD && attribute->type != ATTRIBUTE_STRING) {
        query_fail(reader, value, "Invalid query. %s is not a text, LIKE is for texts",
                   attribute->name);
        return NULL;
    }
    struct attribute_value prefix = {.type = attribute->type,
                                     .text = prefix_of(value->value, reader->arena)};
    return query_compare(reader->arena, attribute, comparison, prefix);
}

struct query_node *
query_resolve(struct query_reader *reader, const struct search_attribute *attribute,
              enum query_operator comparison, const struct word *value)
{
    if (++reader->comparisons > QUERY_COMPARISONS_MAX) {
        query_fail(reader, value, "Invalid query. It has more than %d comparisons",
                   QUERY_COMPARISONS_MAX);
        return NULL;
    }
    if (attribute == &query_active_cluster)
        return query_resolve_active_cluster(reader, comparison, value);
    if (word_is(value, "missing"))
        return resolve_missing(reader, attribute, comparison, value);
    if (comparison == QUERY_LIKE || comparison == QUERY_NOT_LIKE)
        return resolve_like(reader, attribute, comparison, value);
    struct attribute_value typed;
    if (!read_value(attribute, value->value, &typed)) {
        fail_value(reader, attribute, value);
        return NULL;
    }
    return query_compare(reader->arena, attribute, comparison, typed);
}
