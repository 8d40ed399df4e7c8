/* filters.h - the filters of ListOpen and ListClosed requests as queries, without a text between.
 */
#ifndef CADENZA_VISIBILITY_FILTERS_H
#define CADENZA_VISIBILITY_FILTERS_H

#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "visibility/query.h"

/* What both kinds of request ask for; NULL: not asked. */
struct query_filters {
    bool is_closed;            /* of closed runs; else of open ones */
    int64_t earliest, latest;  /* start time, in ns, both included; by whole ms (B-004) */
    const char *workflow_id;   /* and */
    const char *run_id;        /* of it; "" is any */
    const char *workflow_type; /* its name */
    bool has_status;
    int status; /* a WorkflowExecutionCloseStatus of the wire */
};

/* The filters of a request that was validated: it has both ends of the time. */
struct query_filters query_filters_of_open(const API(ListOpenWorkflowExecutionsRequest) *request);
struct query_filters
query_filters_of_closed(const API(ListClosedWorkflowExecutionsRequest) *request);
/* All of them under AND, newest start first. The tree lives in the arena. */
void query_of_filters(const struct query_filters *filters, const struct attribute_set *attributes,
                      struct arena *arena, struct query *query);

#endif
