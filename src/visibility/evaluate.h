/* evaluate.h - the meaning of a query, said as plainly as possible: one row after the other.
 *
 * The memory engine answers with it, and every other engine is compared with it. Pure. */
#ifndef CADENZA_VISIBILITY_EVALUATE_H
#define CADENZA_VISIBILITY_EVALUATE_H

#include "visibility/engine.h"

/* Is the row meant? NULL: every row is. */
bool query_matches(const struct query_node *where, const struct visibility_row *row);

/* The value that the row is sorted by, see engine.h; NULL: it has none and comes last. */
const struct attribute_value *query_order_value(const struct query *query,
                                                const struct visibility_row *row);
/* Which of two places comes first in the order of the query: <0, 0, >0. A place is an order value
 * (NULL: none) and a run id. */
int query_compare_positions(const struct query *query, const struct attribute_value *one,
                            struct slice one_run, const struct attribute_value *other,
                            struct slice other_run);

#endif
