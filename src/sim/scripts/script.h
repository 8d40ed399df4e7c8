/* script.h - scenarios of a group of clusters, written by hand: one fiber of the client host calls,
 * decides and looks, step by step; nothing else happens. Only tests include it.
 *
 * An expectation that fails ends the program, with its line. */
#ifndef CADENZA_SIM_SCRIPTS_SCRIPT_H
#define CADENZA_SIM_SCRIPTS_SCRIPT_H

#include "base/test.h"
#include "fiber/clock.h"
#include "sim/world/calls.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SCRIPT_DOMAIN "flows"
#define SCRIPT_LIST   "list"
#define WITHIN        (15 * NS_PER_S) /* what is replicated is there by then */

#define EVENT(name)    API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define DECISION(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)

struct script {
    struct sim *sim;
    struct load_clients *clients;
    struct arena *arena;
    const char *domain_id;
    void (*run)(struct script *script);
    unsigned domain_clusters;                /* that the domain has; 0: all */
    const struct load_attribute *attributes; /* of the domain */
    size_t attribute_count;
    bool is_over;
    void (*order)(struct script *script, void *context); /* to be done; NULL: nothing */
    void *context;
    const struct script_fixture *fixture;
};
/* What a script is played on, if not on the usual. */
struct script_fixture {
    unsigned clusters;
    bool is_one_cluster; /* they are hosts of one, on one store: each takes what it is asked for */
    const uint32_t *shards; /* of each cluster; NULL: the usual */
    const char *dynamic;    /* settings of all clusters; NULL: the usual */
    bool has_system_domains;
    const struct script_attributes *attributes; /* of the domain; NULL: none */
    void (*run)(struct script *script);
    /* Outside of all hosts, when everything is there and before anything runs; NULL: nothing. */
    void (*begin)(struct script *script);
    /* Asked between the steps of the world, and done when it says so. NULL: never. */
    bool (*is_due)(const struct script *script);
    void (*act)(struct script *script);
    void *test; /* the test's own */
};
void script_play_on(const struct script_fixture *fixture);
/* Runs it in a group of `clusters`; the domain is there, active in cluster 0, everywhere known. */
void script_play(unsigned clusters, unsigned domain_clusters, void (*run)(struct script *script));
/* The same, in a group whose clusters have the domains of system workflows. */
void script_play_with_system(unsigned clusters, unsigned domain_clusters,
                             void (*run)(struct script *script));
/* The same, in a group of two whose second cluster has another number of shards. */
void script_play_uneven(uint32_t shards, void (*run)(struct script *script));
/* The same, and the domain has attributes. has_regions: sim_give_regions. */
struct script_attributes {
    const struct load_attribute *all;
    size_t count;
    bool has_regions;
    bool is_forwarded; /* clusters pass calls on */
    int seed_index;    /* of test_seed */
};
void script_play_attributes(unsigned clusters, const struct script_attributes *attributes,
                            void (*run)(struct script *script));
/* The same, in a group whose clusters pass no calls on. */
void script_play_unforwarded(unsigned clusters, void (*run)(struct script *script));
/* The same in a group of two, with dynamic settings of both. */
void script_play_set(const char *dynamic, bool is_forwarded, void (*run)(struct script *script));

/* A test that plays its body: SCRIPT_TEST(suite, title, script_play(2, 0, body), "D-045"). */
#define SCRIPT_TEST(suite, title, play, ...)                                                       \
    TEST_IN(suite, title, struct script *script, play, ##__VA_ARGS__)

/* Calls; must go well unless they return the error. */
#define script_call(script, cluster, request, response)                                            \
    script_call_at((script), (cluster), &(request)->base, (ProtobufCMessage **)(response))
must_use struct error *script_call_at(struct script *script, unsigned cluster,
                                      const ProtobufCMessage *request, ProtobufCMessage **response);
/* The same, which must succeed: its response, as void *. */
#define script_ok(script, cluster, request)                                                        \
    ({                                                                                             \
        ProtobufCMessage *response_ = NULL;                                                        \
        EXPECT_OK(script_call_at((script), (cluster), &(request)->base, &response_));              \
        (void *)response_;                                                                         \
    })
/* Both with a request of these fields: SCRIPT_OK(script, 1, describe_domain, .name = "orders"). */
#define SCRIPT_CALL(script, cluster, response, method, ...)                                        \
    script_call((script), (cluster), API_NEW((script)->arena, method##_request, __VA_ARGS__),      \
                (response))
#define SCRIPT_ADMIN(script, cluster, response, method, ...)                                       \
    script_call((script), (cluster), ADMIN_NEW((script)->arena, method##_request, __VA_ARGS__),    \
                (response))
#define SCRIPT_OK(script, cluster, method, ...)                                                    \
    script_ok((script), (cluster), API_NEW((script)->arena, method##_request, __VA_ARGS__))
#define SCRIPT_ADMIN_OK(script, cluster, method, ...)                                              \
    script_ok((script), (cluster), ADMIN_NEW((script)->arena, method##_request, __VA_ARGS__))
/* Does what only the world outside of all hosts can do: crash one, start one. Yields. */
void script_outside(struct script *script, void (*order)(struct script *script, void *context),
                    void *context);
void script_crash(struct script *script, unsigned cluster);
void script_restart(struct script *script, unsigned cluster);
/* Cluster 0 and 1 do not hear each other, or do again. */
void script_part(struct script *script);
void script_heal(struct script *script);
void script_sleep(struct script *script, int64_t time);
/* run_id "": the current run. */
API(WorkflowExecution) *script_execution(struct script *script, const char *id, const char *run_id);
API(StartWorkflowExecutionRequest) *script_start_request(struct script *script, const char *id);
must_use struct error *script_try_start(struct script *script, unsigned cluster,
                                        API(StartWorkflowExecutionRequest) *request,
                                        const char **run_id);
const char *script_start(struct script *script, unsigned cluster, const char *id);
must_use struct error *script_signal(struct script *script, unsigned cluster, const char *id,
                                     const char *name);
/* The domain moves, by force; waits until that cluster has it. */
void script_failover(struct script *script, unsigned to);

/* The next decision task of a cluster; NULL: none came within the time. */
API(PollForDecisionTaskResponse) *script_poll(struct script *script, unsigned cluster,
                                              int64_t time);
/* Completes it with these decisions. */
must_use struct error *script_complete(struct script *script, unsigned cluster,
                                       const API(PollForDecisionTaskResponse) *task,
                                       API(Decision) **decisions, size_t count);
/* Polls and completes; there must be one. */
void script_decide(struct script *script, unsigned cluster, API(Decision) **decisions,
                   size_t count);
API(PollForActivityTaskResponse) *script_poll_activity(struct script *script, unsigned cluster,
                                                       int64_t time);

/* Decisions (script_decisions.c). */
API(Decision) *script_complete_workflow(struct script *script);
/* With id "t". */
API(Decision) *script_start_timer(struct script *script, int64_t seconds);
API(Decision) *script_schedule_activity(struct script *script, bool is_retried);
/* A signal for another workflow, its cancelling, a child. */
API(Decision) *script_ask_other(struct script *script, const char *id, const char *signal_name);
API(Decision) *script_cancel_other(struct script *script, const char *id);
API(Decision) *script_start_child(struct script *script, const char *id);

/* The history of a run; run_id "": the current one. NULL: the cluster has no such run. */
API(History) *script_history(struct script *script, unsigned cluster, const char *id,
                             const char *run_id);
/* Its events of a kind. No history has none. */
unsigned script_count_events(const API(History) *history, int kind);
API(DescribeWorkflowExecutionResponse) *script_describe(struct script *script, unsigned cluster,
                                                        const char *id);
/* Waits until the cluster's current run has so many events; returns its history. */
API(History) *script_await(struct script *script, unsigned cluster, const char *id, size_t events);
/* The current run has the same history in all clusters, soon. */
void script_expect_same(struct script *script, const char *id);

/* GetReplicationMessages of one shard, as a Cadence cluster asks. */
ADMIN(ReplicationMessages) *script_messages(struct script *script, unsigned source,
                                            const char *cluster, uint32_t shard, int64_t retrieved);

#endif
