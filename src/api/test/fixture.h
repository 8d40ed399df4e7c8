/* fixture.h - a whole server on a store in memory, and a client that calls it over a connection:
 * what the tests of api/ share. The same on the real platform and in a simulated world, where time
 * is virtual. */
#ifndef CADENZA_API_TEST_FIXTURE_H
#define CADENZA_API_TEST_FIXTURE_H

#include "api/api.h"
#include "archive/archive.h"
#include "base/test.h"
#include "engine/engine.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "matching/matching.h"
#include "net/client.h"
#include "store/memory/memory.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "visibility/feed/feeder.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/services.h"

#define FIXTURE_SHARDS 4

/* The server's own workers, where a test has some: set at the beginning of its body. */
struct fixture_system {
    void *context;
    bool (*is_served)(void *context, const char *domain_id, const char *list);
    void (*wanted)(void *context, const char *domain_id, const char *list, enum task_type type);
    void (*stop)(void *context); /* when polls have ended */
    void (*free)(void *context); /* when matching is gone */
};

struct fixture {
    struct arena *arena;
    struct memory_base *base;
    struct config *config;
    const struct cluster_group *group;
    struct dynamic *dynamic;
    struct metrics *metrics;
    struct store *store;
    struct domains *domains;
    struct drains *drains;
    struct settings *settings;
    struct matching *matching;
    struct visibility *visibility;
    struct registry *registry;
    struct feeder *feeder;
    struct archive *archive;
    _Atomic(struct engine *) engine;
    struct api *api;
    struct rpc_service *service;
    struct grpc_server *server;
    struct grpc_client *client;
    _Atomic(enum server_phase) phase;
    struct log log;
    char logged[1024]; /* the newest line */
    struct fixture_system system;
    /* Of the next calls. */
    int64_t timeout; /* ns; 0: sends none */
    const struct call_header *headers;
    size_t header_count;
};

/* In a fiber of loop 0. The domain "orders" is there. */
void fixture_open(struct fixture *fixture, const char *address);
/* The same in a cluster of that group; NULL: alone. */
void fixture_open_in(struct fixture *fixture, const struct cluster_group *group,
                     const char *address);
/* The same as cluster0 of a group of two, and "orders" is a domain of both, active here. */
void fixture_open_in_group(struct fixture *fixture, const char *address);
void fixture_close(struct fixture *fixture);

/* One call, of the method that takes this request; *response is in the fixture's arena. NULL: the
 * test does not look at it. */
#define fixture_call(fixture, request, response)                                                   \
    fixture_call_at((fixture), &(request)->base, (ProtobufCMessage **)(response))
must_use struct error *fixture_call_at(struct fixture *fixture, const ProtobufCMessage *request,
                                       ProtobufCMessage **response);
/* The same of a method that is not the only one to take its request: Health's Watch. */
must_use struct error *fixture_call_method(struct fixture *fixture,
                                           const struct wire_method *method,
                                           const ProtobufCMessage *request,
                                           ProtobufCMessage **response);
/* The same, which must succeed: its response, as void *. */
#define fixture_ok(fixture, request)                                                               \
    ({                                                                                             \
        ProtobufCMessage *response_ = NULL;                                                        \
        EXPECT_OK(fixture_call_at((fixture), &(request)->base, &response_));                       \
        (void *)response_;                                                                         \
    })
/* Both with a request of these fields:
 *   struct error *err = API_CALL(fixture, &response, signal_workflow_execution, .domain = "none");
 *   API(ListDomainsResponse) *response = API_OK(fixture, list_domains, .page_size = 2); */
#define API_CALL(fixture, response, method, ...)                                                   \
    fixture_call((fixture), API_NEW((fixture)->arena, method##_request, __VA_ARGS__), (response))
#define ADMIN_CALL(fixture, response, method, ...)                                                 \
    fixture_call((fixture), ADMIN_NEW((fixture)->arena, method##_request, __VA_ARGS__), (response))
#define API_OK(fixture, method, ...)                                                               \
    fixture_ok((fixture), API_NEW((fixture)->arena, method##_request, __VA_ARGS__))
#define ADMIN_OK(fixture, method, ...)                                                             \
    fixture_ok((fixture), ADMIN_NEW((fixture)->arena, method##_request, __VA_ARGS__))

/* Sets dynamic settings, in Cadence's file format. */
void fixture_set(struct fixture *fixture, const char *yaml);

/* Runs body(fixture) on a server in a simulated world with a virtual clock; nothing may be left of
 * it afterwards. */
void fixture_run(void (*body)(struct fixture *fixture));
void fixture_run_in(const struct cluster_group *group, void (*body)(struct fixture *fixture));
void fixture_run_in_group(void (*body)(struct fixture *fixture));
/* Tests on such a server; `run` is one of the calls above. */
#define SERVER_TEST_IN(suite, title, run, ...)                                                     \
    TEST_IN(suite, title, struct fixture *fixture, run, ##__VA_ARGS__)
#define SERVER_TEST(suite, title, ...)                                                             \
    SERVER_TEST_IN(suite, title, fixture_run(body), ##__VA_ARGS__)

/* Parts of opening and closing (fixture_visibility.c). */
void fixture_open_visibility(struct fixture *fixture);
void fixture_close_visibility(struct fixture *fixture);
struct error *fixture_check_search(const void *fixture, const API(SearchAttributes) *attributes,
                                   const char *domain_name, struct arena *arena);

/* --- requests, ready to be changed and sent
 * ------------------------------------------------------- */

char *fixture_uuid(struct fixture *fixture);
API(Payload) *fixture_payload(struct fixture *fixture, const char *text);
API(WorkflowExecution) *fixture_execution(struct fixture *fixture, const char *workflow_id);
API(WorkflowExecution) *fixture_execution_of(struct fixture *fixture, const char *workflow_id,
                                             const char *run_id);
API(TaskList) *fixture_list(struct fixture *fixture, const char *name);
/* Starts a run of type "order" on list "work", ten minutes, decisions ten seconds. */
API(StartWorkflowExecutionRequest) *fixture_start(struct fixture *fixture, const char *workflow_id);
/* Of "orders", as the next two; run_id "": the current run. */
API(DescribeWorkflowExecutionRequest) *
fixture_describe(struct fixture *fixture, const char *workflow_id, const char *run_id);
API(PollForDecisionTaskRequest) *fixture_poll(struct fixture *fixture, const char *list);
/* The same, only whether it can be described. */
must_use struct error *run_try_describe(struct fixture *fixture, const char *workflow_id,
                                        const char *run_id);

/* --- steps of a run, each of which must succeed -------------------------------------------------
 */

const char *run_start(struct fixture *fixture, const char *workflow_id);
const char *run_start_by(struct fixture *fixture,
                         const API(StartWorkflowExecutionRequest) *request);
void run_signal(struct fixture *fixture, const char *workflow_id, const char *name);
void terminate_run(struct fixture *fixture, const char *workflow_id);
API(DescribeWorkflowExecutionResponse) *run_describe(struct fixture *fixture,
                                                     const char *workflow_id, const char *run_id);
API(PollForDecisionTaskResponse) *poll_decision(struct fixture *fixture, const char *list);
API(PollForActivityTaskResponse) *poll_activity(struct fixture *fixture, const char *list);
/* Answers a decision with the decisions given. */
API(RespondDecisionTaskCompletedRequest) *
fixture_complete(struct fixture *fixture, ProtobufCBinaryData token, API(Decision) *decision);
/* Its worker could not decide. */
void run_fail_decision(struct fixture *fixture, ProtobufCBinaryData token);
API(RespondDecisionTaskCompletedResponse) *
run_complete(struct fixture *fixture, const API(RespondDecisionTaskCompletedRequest) *request);
API(Decision) *decide_activity(struct fixture *fixture, const char *activity_id);
API(Decision) *decide_end(struct fixture *fixture);
API(Decision) *decide_marker(struct fixture *fixture);
API(GetWorkflowExecutionHistoryRequest) *fixture_history(struct fixture *fixture,
                                                         const char *workflow_id);
API(GetWorkflowExecutionHistoryResponse) *
read_history(struct fixture *fixture, const API(GetWorkflowExecutionHistoryRequest) *request);

#endif
