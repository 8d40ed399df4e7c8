/* query_calls.h - queries in the tests of api/: asked in a fiber of their own, answered by the
 * test. */
#ifndef CADENZA_API_TEST_QUERY_CALLS_H
#define CADENZA_API_TEST_QUERY_CALLS_H

#include "api/test/fixture.h"
#include "fiber/sync.h"
#include "wire/names.h"

/* One call of QueryWorkflow. */
struct query_call {
    struct fixture *fixture;
    API(QueryWorkflowRequest) *request;
    API(QueryWorkflowResponse) *response;
    struct error *err;
    int64_t took; /* ns */
    struct latch open;
    struct fiber *fiber;
};

/* A question of type "state" about the current run. */
API(QueryWorkflowRequest) *query_call_request(struct fixture *fixture, const char *workflow_id);
/* Asks; the fixture's timeout and headers of this moment count. Gives it a moment to arrive. */
void query_call_begin(struct query_call *query_call, struct fixture *fixture,
                      API(QueryWorkflowRequest) *request);
/* Waits for the end. */
void query_call_wait(struct query_call *query_call);
bool query_call_is_over(const struct query_call *query_call);
/* It must end with this answer, or with this failure. */
void query_call_expect(struct query_call *query_call, const char *answer);
void query_call_expect_error(struct query_call *query_call, enum error_kind kind,
                             const char *message);
/* Polls, and expects a query of "state" alone; answers it. */
API(PollForDecisionTaskResponse) *poll_query(struct fixture *fixture, const char *list);
must_use struct error *respond_query(struct fixture *fixture, ProtobufCBinaryData token,
                                     API(WorkflowQueryResult) *result);
API(WorkflowQueryResult) *query_call_result(struct fixture *fixture, const char *answer);
/* A completion that carries a result for each query of the task. */
API(RespondDecisionTaskCompletedRequest) *
query_call_complete(struct fixture *fixture, const API(PollForDecisionTaskResponse) *task,
                    API(Decision) *decision, const char *answer);
/* Starts a run and completes its first decision. */
void query_call_start_run(struct fixture *fixture, const char *workflow_id);
/* Polls a sticky list that stands beside "work". */
API(PollForDecisionTaskResponse) *poll_sticky(struct fixture *fixture, const char *list,
                                              int64_t timeout);
void query_call_make_sticky(struct fixture *fixture,
                            API(RespondDecisionTaskCompletedRequest) *request, const char *list);
/* The calls that follow come from such a client. */
void query_call_as(struct fixture *fixture, const char *name, const char *feature_version);
void query_call_sleep(struct fixture *fixture, int64_t nanoseconds);

#endif
