/* query.h - the query language of lists: text becomes a checked tree, once, for every engine.
 *
 *     WorkflowType = 'order' AND (CloseTime = missing OR CustomIntField BETWEEN 3 AND 5)
 *     ORDER BY StartTime DESC
 *
 * The tree says what is meant, in few words: IN is a row of `=` under OR, BETWEEN two comparisons
 * under AND, <> is !=, names are resolved to attributes, values have the attribute's type. Times of
 * columns are compared by whole ms, so `StartTime = t` becomes t <= StartTime < t + 1 ms: a column
 * may hold all of its ns. What is left for an engine is AND, OR, NOT, plain comparisons and, if
 * places were given, the test where a run is active (query_is_active_in); = of a STRING and LIKE
 * are visibility_text_matches and visibility_text_like of engine.h. Logic has two values: a
 * comparison with what a run does not have is false, except != (true), `= missing` (true) and `!=
 * missing` (false); of a list attribute `=` means that one of its values is equal, != that none is.
 * Pure. */
#ifndef CADENZA_VISIBILITY_QUERY_H
#define CADENZA_VISIBILITY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "visibility/attributes.h"

enum query_operator {
    QUERY_EQUAL,
    QUERY_NOT_EQUAL,
    QUERY_LESS,
    QUERY_LESS_OR_EQUAL,
    QUERY_GREATER,
    QUERY_GREATER_OR_EQUAL,
    QUERY_LIKE,     /* % any text, _ one character; keyword and string attributes */
    QUERY_NOT_LIKE, /* as !=: true of runs without the attribute */
    QUERY_MISSING,
    QUERY_NOT_MISSING,
};

struct query_clusters;

enum query_node_kind { QUERY_AND, QUERY_OR, QUERY_NOT, QUERY_COMPARE, QUERY_ACTIVE_IN };
struct query_node {
    enum query_node_kind kind;
    struct query_node **child; /* AND, OR: two or more; NOT: one */
    size_t child_count;
    const struct search_attribute *attribute; /* COMPARE */
    enum query_operator operator;
    struct attribute_value value;          /* AT_PLACE: the cluster; an empty text: any */
    const struct query_clusters *clusters; /* AT_PLACE */
};

#define QUERY_DEPTH_MAX       64   /* parentheses and NOTs in one another */
#define QUERY_COMPARISONS_MAX 1024 /* values of IN count one each */

struct query {
    const struct query_node *where;       /* NULL: every run of the domain */
    const struct search_attribute *order; /* NULL: StartTime */
    bool is_ascending;                    /* the run id breaks ties, in the same direction */
    bool asks_active_cluster; /* it asks where runs are: `find` of its places is called */
};

/* Reads the text of a query; "" is every run. The tree lives in the arena, attributes in the set.
 * Errors: ERR_BAD_REQUEST in Cadence's words where it has some, with the place: what is near, and
 * at which byte. Nothing that is read can make it recurse without a bound. */
must_use struct error *query_parse(const char *text, const struct attribute_set *attributes,
                                   struct arena *arena, struct query *query);

/* Where runs of a domain are active, at one moment. What a run belongs to never changes, where that
 * is active does: so an engine asks for each run that it looks at. */
struct query_clusters {
    const char *cluster_name; /* of runs that belong to no attribute; "": nowhere */
    bool is_one;              /* all runs are there */
    /* Where runs of an attribute are active; "": nowhere, as far as is known. Pure, asked on any
     * thread as long as the query is in use; the answer lives as long. */
    const char *(*find)(const void *context, struct slice scope, struct slice name);
    const void *context;
};
/* Is a run that belongs to the attribute (an empty scope: to none) in the cluster of the node? For
 * engines; pure. */
bool query_is_active_in(const struct query_node *node, struct slice scope, struct slice name);
/* The same as query_parse, and ActiveCluster can be compared with by =, != and IN: it means the
 * runs that are active in that cluster as `places` has it; `= missing`: in none. The places must
 * live as long as the tree. */
must_use struct error *query_parse_active(const char *text, const struct attribute_set *attributes,
                                          const struct query_clusters *clusters,
                                          struct arena *arena, struct query *query);

#endif
