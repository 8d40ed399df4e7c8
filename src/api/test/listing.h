/* listing.h - asking a fixture's server for lists of runs. For tests of api/. */
#ifndef CADENZA_API_TEST_LISTING_H
#define CADENZA_API_TEST_LISTING_H

#include "api/test/fixture.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

#define CLOSED(name)                                                                               \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

/* Lists from now on show all that was committed before them; or they do not wait. */
void listing_wait(struct fixture *fixture);
void listing_do_not_wait(struct fixture *fixture);

/* Requests for everything of "orders", ready to be changed and sent. */
API(ListWorkflowExecutionsRequest) *listing_by_query(struct fixture *fixture, const char *query);
API(ListOpenWorkflowExecutionsRequest) *listing_of_open(struct fixture *fixture);
API(ListClosedWorkflowExecutionsRequest) *listing_of_closed(struct fixture *fixture);
API(StartTimeFilter) *listing_times(struct fixture *fixture, int64_t earliest, int64_t latest);

must_use struct error *list_send_count(struct fixture *fixture, const char *query, int64_t *count);

/* Each must succeed. Workflow ids in order of the list, joined by commas, in the arena. */
const char *list_ids(struct fixture *fixture, const char *query);
const char *list_open_ids(struct fixture *fixture);
const char *list_closed_ids(struct fixture *fixture);
/* The one run of a workflow id that there is. */
const API(WorkflowExecutionInfo) *list_one(struct fixture *fixture, const char *workflow_id);

/* Ends the run of "work" whose decision is next. */
void listing_end(struct fixture *fixture);
/* Search attributes {key: json}. */
API(SearchAttributes) *listing_attributes(struct fixture *fixture, const char *key,
                                          const char *json);

/* Refused as a bad request, with this in its words. */
#define EXPECT_BAD_REQUEST(err, text)                                                              \
    do {                                                                                           \
        struct error *refusal = (err);                                                             \
        EXPECT_KIND(refusal, ERR_BAD_REQUEST);                                                     \
        EXPECT(strstr(refusal->message, text) != NULL);                                            \
    } while (0)

#endif
