/* places.c - where runs are active, as part of a query. See query.h.
 *
 * ActiveCluster is no column: it moves with the domain, not with the run. So a comparison with it
 * becomes comparisons with what a run belongs to, which never changes: of the places that the
 * caller knows, those of the cluster. In a domain that has one place for all, every run is there.
 */
#include "base/check.h"
#include "visibility/language.h"

static const struct attribute *
column(struct query_reader *reader, const char *name)
{
    const struct attribute *attribute = attribute_find(reader->attributes, name);
    check(attribute != NULL && attribute->column != COLUMN_NONE);
    return attribute;
}

static struct query_node *
compare_text(struct query_reader *reader, const char *name, const char *text)
{
    struct attribute_value value = {.type = ATTRIBUTE_KEYWORD, .text = slice_text(text)};
    return query_compare(reader->arena, column(reader, name), QUERY_EQUAL, value);
}

/* Every run has a run id. */
static struct query_node *
every_run(struct query_reader *reader, bool is_true)
{
    struct attribute_value none = {.type = ATTRIBUTE_KEYWORD};
    return query_compare(reader->arena, column(reader, "RunID"),
                         is_true ? QUERY_NOT_MISSING : QUERY_MISSING, none);
}

/* The runs that belong to one place. */
static struct query_node *
at_place(struct query_reader *reader, const struct query_place *place)
{
    struct attribute_value none = {.type = ATTRIBUTE_KEYWORD};
    if (place->scope == NULL)
        return query_compare(reader->arena, column(reader, "ClusterAttributeScope"), QUERY_MISSING,
                             none);
    struct query_node *both[] = {
        compare_text(reader, "ClusterAttributeScope", place->scope),
        compare_text(reader, "ClusterAttributeName", place->name),
    };
    return query_join(reader->arena, QUERY_AND, both, 2);
}

/* Those of the cluster; an empty name: of any. NULL: too many. */
static struct query_node *
at_cluster(struct query_reader *reader, struct slice cluster, const struct word *value)
{
    const struct query_places *places = reader->places;
    struct query_node **nodes = arena_zalloc(reader->arena, places->count, sizeof *nodes);
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct query_place *place = &places->all[i];
        if (cluster.length > 0 && !slice_equal(slice_text(place->cluster_name), cluster))
            continue;
        if (places->is_one)
            return every_run(reader, true);
        nodes[count++] = at_place(reader, place);
    }
    reader->comparisons += 2 * count;
    if (reader->comparisons > QUERY_COMPARISONS_MAX) {
        query_fail(reader, value,
                   "Invalid query. %zu cluster attributes are active there, more "
                   "than a query can name; ask by ClusterAttributeScope",
                   count);
        return NULL;
    }
    return count == 0 ? every_run(reader, false)
                      : query_join(reader->arena, QUERY_OR, nodes, count);
}

struct query_node *
query_resolve_place(struct query_reader *reader, enum query_operator comparison,
                    const struct word *value)
{
    if (comparison != QUERY_EQUAL && comparison != QUERY_NOT_EQUAL) {
        query_fail(reader, value, "Invalid query. Only =, != and IN go with ActiveCluster");
        return NULL;
    }
    bool is_missing = word_is(value, "missing");
    struct query_node *node =
        at_cluster(reader, is_missing ? (struct slice){0} : value->value, value);
    if (node == NULL)
        return NULL;
    bool is_negated = (comparison == QUERY_NOT_EQUAL) != is_missing;
    return is_negated ? query_negate(reader->arena, node) : node;
}
