/* decision.h - a started decision as a worker gets it: by a poll, or with the answer to the
 * decision before it. */
#ifndef CADENZA_API_WORKER_DECISION_H
#define CADENZA_API_WORKER_DECISION_H

#include "api/call/pages.h"
#include "api/inside.h"

/* A decision that was started, and where it belongs. */
struct started_decision {
    const char *domain_id, *domain_name;
    const char *workflow_id;
    const struct decision_start *start;
};

/* Fills the response but for its history, of which the first page goes to `history` (already as
 * field of the response). Yields. Errors: the store's. */
must_use struct error *decision_show(struct api *api, const struct started_decision *decision,
                                     struct arena *arena,
                                     API(PollForDecisionTaskResponse) *response,
                                     struct pieces *history);

/* A query that a worker gets alone. */
struct started_query {
    const char *domain_name;
    const char *workflow_id;
    const struct query_view *view;
    bool is_sticky; /* the worker has the run in its memory: no history */
};
/* The same for a query: all that follows from the run; the token and the question are left to the
 * caller. */
must_use struct error *decision_show_query(struct api *api, const struct started_query *query,
                                           struct arena *arena,
                                           API(PollForDecisionTaskResponse) *response,
                                           struct pieces *history);

/* The branch that a lineage ends with, as page tokens name it. */
struct slice lineage_bytes(const struct history_lineage *lineage, struct arena *arena);

#endif
