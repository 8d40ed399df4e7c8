/* clusters.c - where runs are active, as a part of queries. See query.h.
 *
 * ActiveCluster is not a column: it moves with the domain and with entities, not with the run. So a
 * comparison with it becomes a question about what the run belongs to, which never changes. It is
 * asked for each run that an engine looks at, and not written out as a list of attributes: a
 * hundred thousand entities may be active in a cluster. In a domain with one active cluster for
 * all, every run is there. */
#include "base/check.h"
#include "visibility/language.h"

static const struct search_attribute *
column(struct query_reader *reader, const char *name)
{
    const struct search_attribute *attribute = attribute_find(reader->attributes, name);
    check(attribute != NULL && attribute->column != COLUMN_NONE);
    return attribute;
}

/* Every run has a run id. */
static struct query_node *
every_run(struct query_reader *reader, bool is_true)
{
    struct attribute_value none = {.type = ATTRIBUTE_KEYWORD};
    return query_compare(reader->arena, column(reader, "RunID"),
                         is_true ? QUERY_NOT_MISSING : QUERY_MISSING, none);
}

/* Those of the cluster; an empty name: of any. */
static struct query_node *
at_cluster(struct query_reader *reader, struct slice cluster)
{
    const struct query_clusters *clusters = reader->clusters;
    if (clusters->is_one)
        return every_run(reader, cluster.length == 0 ||
                                     slice_equal(slice_text(clusters->cluster_name), cluster));
    struct query_node *node = arena_make(reader->arena, struct query_node);
    reader->asks_active_cluster = true;
    *node = (struct query_node){
        .kind = QUERY_ACTIVE_IN,
        .value = {.type = ATTRIBUTE_KEYWORD, .text = cluster},
        .clusters = clusters,
    };
    return node;
}

bool
query_is_active_in(const struct query_node *node, struct slice scope, struct slice name)
{
    check(node->kind == QUERY_ACTIVE_IN);
    const struct query_clusters *clusters = node->clusters;
    const char *cluster = clusters->cluster_name;
    if (scope.length > 0)
        cluster = clusters->find == NULL ? "" : clusters->find(clusters->context, scope, name);
    if (cluster[0] == '\0')
        return false;
    return node->value.text.length == 0 || slice_equal(slice_text(cluster), node->value.text);
}

struct query_node *
query_resolve_active_cluster(struct query_reader *reader, enum query_operator comparison,
                             const struct word *value)
{
    if (comparison != QUERY_EQUAL && comparison != QUERY_NOT_EQUAL) {
        query_fail(reader, value, "Invalid query. Only =, != and IN go with ActiveCluster");
        return NULL;
    }
    bool is_missing = word_is(value, "missing");
    struct query_node *node = at_cluster(reader, is_missing ? (struct slice){0} : value->value);
    bool is_negated = (comparison == QUERY_NOT_EQUAL) != is_missing;
    return is_negated ? query_negate(reader->arena, node) : node;
}
