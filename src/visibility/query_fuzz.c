/* query_fuzz.c - any bytes as a query, and as the value of an attribute.
 *
 * What is taken must have the shape that query.h promises and be answerable; what is refused must
 * be the client's fault. The first byte chooses between a query and the values of the six types. */
#include "base/arena.h"
#include "base/check.h"
#include "visibility/evaluate.h"
#include "visibility/test/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_node(const struct query_node *node, size_t depth)
{
    check(depth <= 4 * QUERY_DEPTH_MAX); /* AND in OR in NOT, per level */
    if (node->kind == QUERY_ACTIVE_IN)
        return;
    if (node->kind == QUERY_COMPARE) {
        check(node->attribute != NULL && node->value.type == node->attribute->type);
        return;
    }
    check(node->kind == QUERY_NOT ? node->child_count == 1 : node->child_count >= 2);
    for (size_t i = 0; i < node->child_count; i++)
        check_node(node->child[i], depth + 1);
}

static const char *
find_cluster(const void *context, struct slice scope, struct slice name)
{
    return name.length % 2 == 0 ? "even" : "odd";
}

static void
fuzz_query(struct arena *arena, const char *text)
{
    static const struct sample_run run = {
        .run_id = "run",
        .cron_schedule = "* * * * *",
        .fields = {{"CustomStringField", "\"some words\""},
                   {"CustomKeywordField", "[\"one\", \"two\"]"},
                   {"CustomIntField", "7"}},
    };
    struct attribute_set *attributes = attribute_set_new(arena);
    struct query query;
    struct query_clusters clusters = {.cluster_name = "home", .find = find_cluster};
    struct error *err = query_parse_active(text, attributes, &clusters, arena, &query);
    if (err != NULL) {
        check(err->kind == ERR_BAD_REQUEST);
        return;
    }
    check(query.order == NULL || query.order->type != ATTRIBUTE_STRING);
    if (query.where != NULL)
        check_node(query.where, 0);
    struct visibility_change change = sample_change(arena, &run);
    struct visibility_row row;
    visibility_read_row(&change, attributes, arena, &row);
    (void)query_matches(query.where, &row);
    (void)query_order_value(&query, &row);
}

static void
fuzz_value(struct arena *arena, enum attribute_type type, struct slice json)
{
    struct search_attribute attribute = {"Name", type, COLUMN_NONE};
    struct attribute_value *values;
    size_t count;
    struct error *err = attribute_read(&attribute, json, arena, &values, &count);
    check(err == NULL || err->kind == ERR_BAD_REQUEST);
    for (size_t i = 0; err == NULL && i < count; i++)
        check(values[i].type == type);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice rest = slice_of(data + 1, size - 1);
    if (data[0] >= '0' && data[0] < '0' + ATTRIBUTE_TYPE_COUNT)
        fuzz_value(arena, (enum attribute_type)(data[0] - '0'), rest);
    else
        fuzz_query(arena, arena_text_of(arena, rest));
    return 0;
}
