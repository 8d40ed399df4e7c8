/* forward_sim_test.c - calls that come to a cluster where the workflow is not active.
 *
 * Two or three whole clusters on the simulated platform and a client that calls any of them. The
 * clusters say where a run was written by the version of its first event. */
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "sim/world/calls.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LIMIT  (3600 * NS_PER_S)
#define DOMAIN "moving"
#define STRONG API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG)

struct forward_fixture {
    struct sim sim;
    void (*body)(struct forward_fixture *forward_fixture);
    const char *policy;  /* added to the configs; NULL: none */
    const char *dynamic; /* settings; NULL: none */
    bool is_over;
    void (*harm)(struct sim *sim); /* to be done from outside; NULL: nothing */
    /* In the client's fiber. */
    struct arena *arena;
    struct load_call call;
};

#define SEND(forward_fixture, request, response)                                                   \
    load_send(&(forward_fixture)->call, request, response)

static void
forward_sleep(struct forward_fixture *forward_fixture, int64_t nanoseconds)
{
    EXPECT_OK(fiber_sleep(nanoseconds, forward_fixture->arena));
}

/* The domain is there in all clusters, and active in cluster0. */
static void
register_domain(struct forward_fixture *forward_fixture, const struct load_attribute *attributes,
                size_t count)
{
    struct load_registration registration = {.name = DOMAIN,
                                             .is_global = true,
                                             .cluster_count = forward_fixture->sim.count,
                                             .active_cluster = "cluster0",
                                             .attributes = attributes,
                                             .attribute_count = count};
    struct error *err;
    while ((err = load_register(&forward_fixture->call, &registration)) != NULL &&
           err->kind != ERR_DOMAIN_ALREADY_EXISTS)
        forward_sleep(forward_fixture, 100 * NS_PER_MS);
    for (forward_fixture->call.host = 0; forward_fixture->call.host < forward_fixture->sim.count;
         forward_fixture->call.host++) {
        API(Domain) *domain;
        while (load_describe(&forward_fixture->call, DOMAIN, &domain) != NULL)
            forward_sleep(forward_fixture, 100 * NS_PER_MS);
    }
    forward_fixture->call.host = 1;
}

static void
client_main(void *argument)
{
    struct forward_fixture *forward_fixture = argument;
    forward_fixture->arena = arena_new(0);
    forward_fixture->call = (struct load_call){.clients = load_clients_new(&forward_fixture->sim),
                                               .arena = forward_fixture->arena};
    forward_fixture->body(forward_fixture);
    load_clients_free(forward_fixture->call.clients);
    arena_free(forward_fixture->arena);
    forward_fixture->is_over = true;
}

static bool
is_over_or_waits(void *context)
{
    const struct forward_fixture *forward_fixture = context;
    return forward_fixture->is_over || forward_fixture->harm != NULL;
}

/* In the client's fiber: has it done. */
static void
forward_harm(struct forward_fixture *forward_fixture, void (*harm)(struct sim *sim))
{
    forward_fixture->harm = harm;
    while (forward_fixture->harm != NULL)
        forward_sleep(forward_fixture, NS_PER_MS);
}

static void
run_forward(struct forward_fixture *forward_fixture, unsigned clusters,
            void (*body)(struct forward_fixture *forward_fixture))
{
    forward_fixture->body = body;
    sim_open_group(&forward_fixture->sim, &(struct world_options){.seed = test_seed(0)}, clusters,
                   2);
    world_relent(forward_fixture->sim.world); /* what each call is answered is looked at */
    forward_fixture->sim.dynamic = forward_fixture->dynamic;
    for (unsigned i = 0; i < clusters; i++) {
        struct sim_host *host = &forward_fixture->sim.hosts[i];
        if (forward_fixture->policy != NULL)
            host->config = arena_format(forward_fixture->sim.arena,
                                        "%s  clusterRedirectionPolicy: {policy: %s}\n",
                                        host->config, forward_fixture->policy);
        sim_host_start(host);
    }
    host_start(forward_fixture->sim.client, client_main, forward_fixture);
    while (!forward_fixture->is_over) {
        EXPECT(
            world_run_until(forward_fixture->sim.world, is_over_or_waits, forward_fixture, LIMIT));
        if (forward_fixture->harm != NULL)
            forward_fixture->harm(&forward_fixture->sim);
        forward_fixture->harm = NULL;
    }
    sim_close(&forward_fixture->sim);
}

#define FORWARD_TEST(suite, title, clusters, ...)                                                  \
    TEST_IN(suite, title, struct forward_fixture *forward_fixture,                                 \
            run_forward(&(struct forward_fixture){0}, clusters, body), ##__VA_ARGS__)

/* --- calls ---- */

static API(WorkflowExecution) *
execution(struct forward_fixture *forward_fixture, const char *workflow_id)
{
    return API_NEW(forward_fixture->arena, workflow_execution, .workflow_id = (char *)workflow_id);
}

static API(StartWorkflowExecutionRequest) *
make_start(struct forward_fixture *forward_fixture, const char *workflow_id, const char *request_id)
{
    return API_NEW(
        forward_fixture->arena, start_workflow_execution_request, .domain = DOMAIN,
        .workflow_id = (char *)workflow_id, .request_id = (char *)request_id,
        .workflow_type = API_NEW(forward_fixture->arena, workflow_type, .name = "order"),
        .task_list = API_NEW(forward_fixture->arena, task_list, .name = "list"),
        .execution_start_to_close_timeout = presence_make_duration(forward_fixture->arena, 600),
        .task_start_to_close_timeout = presence_make_duration(forward_fixture->arena, 10));
}

#define FIRST_ID  "00000000-0000-4000-8000-000000000001"
#define SECOND_ID "00000000-0000-4000-8000-000000000002"

static struct error *
try_start(struct forward_fixture *forward_fixture, const char *workflow_id)
{
    API(StartWorkflowExecutionResponse) *response;
    struct error *err =
        SEND(forward_fixture, make_start(forward_fixture, workflow_id, FIRST_ID), &response);
    EXPECT(err != NULL || response->run_id[0] != '\0');
    return err;
}

static struct error *
try_signal(struct forward_fixture *forward_fixture, const char *workflow_id)
{
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(forward_fixture->arena, signal_workflow_execution_request, .domain = DOMAIN,
                .workflow_execution = execution(forward_fixture, workflow_id), .signal_name = "go");
    return SEND(forward_fixture, request, NULL);
}

static struct error *
try_history(struct forward_fixture *forward_fixture, const char *workflow_id, bool is_strong,
            API(History) **history)
{
    API(GetWorkflowExecutionHistoryRequest) *request =
        API_NEW(forward_fixture->arena, get_workflow_execution_history_request, .domain = DOMAIN,
                .workflow_execution = execution(forward_fixture, workflow_id));
    API(GetWorkflowExecutionHistoryResponse) *response;
    if (is_strong)
        request->query_consistency_level = STRONG;
    struct error *err = SEND(forward_fixture, request, &response);
    if (err == NULL)
        *history = response->history;
    return err;
}

/* The cluster that wrote the newest event, as cluster `host` shows it. */
static int
writer_at(struct forward_fixture *forward_fixture, unsigned host, const char *workflow_id,
          size_t *events)
{
    unsigned before = forward_fixture->call.host;
    API(History) *history = NULL;
    forward_fixture->call.host = host;
    EXPECT_OK(try_history(forward_fixture, workflow_id, false, &history));
    forward_fixture->call.host = before;
    *events = history->n_events;
    return sim_group_of_version(history->events[history->n_events - 1]->version);
}

static void
poll(struct forward_fixture *forward_fixture, API(PollForDecisionTaskResponse) **task)
{
    API(PollForDecisionTaskRequest) *request =
        API_NEW(forward_fixture->arena, poll_for_decision_task_request, .domain = DOMAIN,
                .task_list = API_NEW(forward_fixture->arena, task_list, .name = "list"));
    fiber_set_deadline(clock_monotonic() + 5 * NS_PER_S);
    EXPECT_OK(SEND(forward_fixture, request, task));
    fiber_set_deadline(NEVER);
}

/* Cluster 1 and cluster 0 hear nothing of each other any more. */
static void
lose_active(struct sim *sim)
{
    world_cut(sim->world, sim->hosts[0].host, sim->hosts[1].host);
    world_cut(sim->world, sim->hosts[1].host, sim->hosts[0].host);
}

/* --- selected calls ---- */

FORWARD_TEST(forward, clients_calls_are_carried_out_where_the_domain_is_active, 2, "G-043", "D-026")
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    size_t events;
    EXPECT_EQ(writer_at(forward_fixture, 0, "wf", &events), 0);
    EXPECT_EQ(events, 2);
    EXPECT_OK(try_signal(forward_fixture, "wf"));
    EXPECT_EQ(writer_at(forward_fixture, 0, "wf", &events), 0);
    EXPECT_EQ(events, 3);

    struct error *err = SEND(forward_fixture, make_start(forward_fixture, "wf", SECOND_ID), NULL);
    API(WorkflowExecutionAlreadyStartedError) *detail;
    EXPECT_KIND(err, ERR_ALREADY_STARTED);
    EXPECT_OK(errors_read(forward_fixture->arena, err, &detail));
    EXPECT_TEXT(detail->start_request_id, FIRST_ID); /* what the other cluster said */

    API(RequestCancelWorkflowExecutionRequest) *cancel =
        API_NEW(forward_fixture->arena, request_cancel_workflow_execution_request, .domain = DOMAIN,
                .workflow_execution = execution(forward_fixture, "wf"), .request_id = SECOND_ID);
    EXPECT_OK(SEND(forward_fixture, cancel, NULL));
    EXPECT_OK(
        SEND(forward_fixture,
             API_NEW(forward_fixture->arena, terminate_workflow_execution_request, .domain = DOMAIN,
                     .workflow_execution = execution(forward_fixture, "wf")),
             NULL));
    EXPECT_EQ(writer_at(forward_fixture, 0, "wf", &events), 0);
    EXPECT_EQ(events, 5);
}

/* A worker of the other cluster has the task; its answers come to this one. */
FORWARD_TEST(forward, answers_of_activities_go_on_and_answers_of_decisions_do_not, 2, "G-044")
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    API(PollForDecisionTaskResponse) *task;
    forward_fixture->call.host = 0;
    poll(forward_fixture, &task);
    EXPECT(task->task_token.len > 0);
    forward_fixture->call.host = 1;

    /* A token of no activity: the answer says so, and it is the active cluster's. */
    struct error *err = SEND(forward_fixture,
                             API_NEW(forward_fixture->arena, record_activity_task_heartbeat_request,
                                     .task_token = task->task_token),
                             NULL);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);

    /* Decisions are answered where they were taken. */
    err = SEND(forward_fixture,
               API_NEW(forward_fixture->arena, respond_decision_task_completed_request,
                       .task_token = task->task_token),
               NULL);
    EXPECT(err != NULL);
}

static void
activity_answers_stay(struct forward_fixture *forward_fixture)
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf")); /* selected in both versions */
    API(PollForDecisionTaskResponse) *task;
    forward_fixture->call.host = 0;
    poll(forward_fixture, &task);
    forward_fixture->call.host = 1;
    struct error *err = SEND(forward_fixture,
                             API_NEW(forward_fixture->arena, record_activity_task_heartbeat_request,
                                     .task_token = task->task_token),
                             NULL);
    EXPECT(err->kind == ERR_DOMAIN_NOT_ACTIVE || err->kind == ERR_ENTITY_NOT_EXISTS);
}

TEST(forward, the_first_list_of_selected_calls_is_without_workers)
{
    run_forward(&(struct forward_fixture){.policy = "selected-apis-forwarding"}, 2,
                activity_answers_stay);
}

/* --- what stays here ---- */

FORWARD_TEST(forward, polls_lists_domains_and_health_are_answered_here, 2, "G-045", "G-046",
             "E-040")
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    forward_harm(forward_fixture, lose_active); /* nobody else can answer */
    API(PollForDecisionTaskResponse) *task;
    poll(forward_fixture, &task);
    EXPECT_EQ(task->task_token.len, 0);
    API(Domain) *domain;
    EXPECT_OK(load_describe(&forward_fixture->call, DOMAIN, &domain));
    EXPECT_OK(SEND(forward_fixture,
                   API_NEW(forward_fixture->arena, list_workflow_executions_request,
                           .domain = DOMAIN, .page_size = 10),
                   NULL));
    API(HealthResponse) *healthy;
    EXPECT_OK(SEND(forward_fixture, API_NEW(forward_fixture->arena, health_request), &healthy));
    EXPECT(healthy->ok);
    API(GetClusterInfoResponse) *answer;
    EXPECT_OK(
        SEND(forward_fixture, API_NEW(forward_fixture->arena, get_cluster_info_request), &answer));
}

/* --- strong reads ---- */

FORWARD_TEST(forward, strong_reads_are_answered_where_the_domain_is_active, 2, "G-047", "A-236")
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    forward_fixture->call.host = 0;
    EXPECT_OK(try_signal(forward_fixture, "wf"));
    forward_fixture->call.host = 1;
    API(History) *history;
    EXPECT_OK(try_history(forward_fixture, "wf", true, &history)); /* at once */
    EXPECT_EQ(history->n_events, 3);
    API(DescribeWorkflowExecutionRequest) *request = API_NEW(
        forward_fixture->arena, describe_workflow_execution_request, .domain = DOMAIN,
        .workflow_execution = execution(forward_fixture, "wf"), .query_consistency_level = STRONG);
    API(DescribeWorkflowExecutionResponse) *response;
    EXPECT_OK(SEND(forward_fixture, request, &response));
    EXPECT_EQ(response->workflow_execution_info->history_length, 3);

    /* Without the field, by the flag of the client. */
    const struct call_header flags = {SLICE_LITERAL("cadence-client-feature-flags"),
                                      SLICE_LITERAL("{\"autoforwardingEnabled\":true}")};
    forward_fixture->call.headers = &flags;
    forward_fixture->call.header_count = 1;
    forward_fixture->call.host = 0;
    EXPECT_OK(try_signal(forward_fixture, "wf"));
    forward_fixture->call.host = 1;
    EXPECT_OK(try_history(forward_fixture, "wf", false, &history));
    EXPECT_EQ(history->n_events, 4);
}

/* --- who answers queries ---- */

/* A worker of one cluster: completes decisions with nothing, answers queries with its name. */
struct query_worker {
    struct forward_fixture *forward_fixture;
    unsigned cluster;
    bool is_stopping, is_over;
};

static void
serve_task(const struct query_worker *worker, struct load_call *call,
           const API(PollForDecisionTaskResponse) *task)
{
    struct arena *arena = call->arena;
    if (task->query == NULL) {
        EXPECT_OK(load_send(
            call,
            API_NEW(arena, respond_decision_task_completed_request, .task_token = task->task_token),
            NULL));
        return;
    }
    API(RespondQueryTaskCompletedRequest) *answer = API_NEW(
        arena, respond_query_task_completed_request, .task_token = task->task_token,
        .result = API_NEW(arena, workflow_query_result,
                          .result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED),
                          .answer = API_NEW(arena, payload,
                                            .data = presence_make_bytes(slice_text(
                                                worker->cluster == 0 ? "cluster0" : "cluster1")))));
    EXPECT_OK(load_send(call, answer, NULL));
}

static void
query_worker_main(void *argument)
{
    struct query_worker *worker = argument;
    struct load_clients *clients = load_clients_new(&worker->forward_fixture->sim);
    while (!worker->is_stopping) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = worker->cluster, .arena = arena, .is_worker = true};
        API(PollForDecisionTaskRequest) *request =
            API_NEW(arena, poll_for_decision_task_request, .domain = DOMAIN,
                    .task_list = API_NEW(arena, task_list, .name = "list"));
        API(PollForDecisionTaskResponse) *task = NULL;
        fiber_set_deadline(clock_monotonic() + 5 * NS_PER_S);
        EXPECT_OK(load_send(&call, request, &task));
        if (task->task_token.len > 0)
            serve_task(worker, &call, task);
    }
    load_clients_free(clients);
    worker->is_over = true;
}

static const char *
who_answers(struct forward_fixture *forward_fixture, bool is_strong)
{
    API(QueryWorkflowRequest) *request =
        API_NEW(forward_fixture->arena, query_workflow_request, .domain = DOMAIN,
                .workflow_execution = execution(forward_fixture, "wf"),
                .query = API_NEW(forward_fixture->arena, workflow_query, .query_type = "who"));
    API(QueryWorkflowResponse) *response;
    if (is_strong)
        request->query_consistency_level = STRONG;
    fiber_set_deadline(clock_monotonic() + 10 * NS_PER_S);
    EXPECT_OK(SEND(forward_fixture, request, &response));
    fiber_set_deadline(NEVER);
    return arena_text_of(forward_fixture->arena, presence_read_bytes(response->query_result->data));
}

static void
signal_with_start(struct forward_fixture *forward_fixture, const char *request_id)
{
    API(SignalWithStartWorkflowExecutionRequest) *request = API_NEW(
        forward_fixture->arena, signal_with_start_workflow_execution_request,
        .start_request = make_start(forward_fixture, "counted", request_id), .signal_name = "go");
    EXPECT_OK(SEND(forward_fixture, request, NULL));
}

static size_t
count_signals(const API(History) *history)
{
    size_t count = 0;
    for (size_t i = 0; i < history->n_events; i++)
        count += history->events[i]->attributes_case ==
                 API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES);
    return count;
}

/* All calls come to cluster1, where the domain is passive; each cluster has a worker. */
FORWARD_TEST(forward, a_passive_cluster_passes_starts_on_and_its_worker_answers_queries, 2, "E-027")
{
    register_domain(forward_fixture, NULL, 0);
    struct query_worker workers[2] = {{.forward_fixture = forward_fixture, .cluster = 0},
                                      {.forward_fixture = forward_fixture, .cluster = 1}};
    for (int i = 0; i < 2; i++)
        fiber_start("worker", query_worker_main, &workers[i]);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    forward_sleep(forward_fixture, 3 * NS_PER_S); /* decided, and told to the other cluster */
    size_t events;
    EXPECT_EQ(writer_at(forward_fixture, 1, "wf", &events), 0);
    EXPECT_EQ(events, 4);
    EXPECT_TEXT(who_answers(forward_fixture, false), "cluster1");
    EXPECT_TEXT(who_answers(forward_fixture, true), "cluster0");
    signal_with_start(forward_fixture, FIRST_ID);
    signal_with_start(forward_fixture, SECOND_ID);
    API(History) *history;
    EXPECT_OK(try_history(forward_fixture, "counted", true, &history));
    EXPECT_EQ(count_signals(history), 2);
    for (int i = 0; i < 2; i++) {
        workers[i].is_stopping = true;
        while (!workers[i].is_over)
            forward_sleep(forward_fixture, 100 * NS_PER_MS);
    }
}

/* A query comes to cluster1, where the domain is passive and nobody polls. */
FORWARD_TEST(forward, a_query_is_answered_where_its_workers_are, 2)
{
    register_domain(forward_fixture, NULL, 0);
    struct query_worker worker = {.forward_fixture = forward_fixture, .cluster = 0};
    fiber_start("worker", query_worker_main, &worker);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    forward_sleep(forward_fixture, 3 * NS_PER_S);
    int64_t began = clock_monotonic();
    EXPECT_TEXT(who_answers(forward_fixture, false), "cluster0");
    EXPECT(clock_monotonic() - began < NS_PER_S);
    worker.is_stopping = true;
    while (!worker.is_over)
        forward_sleep(forward_fixture, 100 * NS_PER_MS);
}

/* --- no circles, no hanging ---- */

FORWARD_TEST(forward, a_call_that_was_forwarded_is_not_forwarded_again, 2, "E-039")
{
    register_domain(forward_fixture, NULL, 0);
    const struct call_header from = {SLICE_LITERAL("cadence-forwarding-cluster"),
                                     SLICE_LITERAL("cluster0")};
    forward_fixture->call.headers = &from;
    forward_fixture->call.header_count = 1;
    struct error *err = try_start(forward_fixture, "wf");
    API(DomainNotActiveError) *detail;
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_TEXT(err->message,
                "Domain: moving is active in cluster: cluster0, while current cluster "
                "cluster1 is a standby cluster.");
    EXPECT_OK(errors_read(forward_fixture->arena, err, &detail));
    EXPECT_TEXT(detail->active_cluster, "cluster0");
    EXPECT_TEXT(detail->current_cluster, "cluster1");
}

FORWARD_TEST(forward, a_cluster_that_is_away_is_an_error_that_may_be_tried_again, 2)
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    forward_harm(forward_fixture, lose_active);
    int64_t began = clock_monotonic();
    fiber_set_deadline(began + 60 * NS_PER_S);
    struct error *err = try_signal(forward_fixture, "wf");
    fiber_set_deadline(NEVER);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    EXPECT(strstr(err->message, "cluster0") != NULL);
    EXPECT(clock_monotonic() - began < 5 * NS_PER_S);
}

/* --- a cluster that knows better ---- */

/* Cluster 1 does not hear that the domain moves to cluster 2. */
static void
cut_off_source(struct sim *sim)
{
    world_cut(sim->world, sim->hosts[0].host, sim->hosts[1].host);
    world_cut(sim->world, sim->hosts[2].host, sim->hosts[1].host);
}

static void
heal(struct sim *sim)
{
    world_heal(sim->world, sim->hosts[0].host, sim->hosts[1].host);
    world_heal(sim->world, sim->hosts[2].host, sim->hosts[1].host);
}

FORWARD_TEST(forward, what_the_other_cluster_says_is_followed_once, 3, "G-048")
{
    register_domain(forward_fixture, NULL, 0);
    forward_harm(forward_fixture, cut_off_source);
    forward_fixture->call.host = 0;
    API(Domain) *domain;
    struct load_failover failover = {.name = DOMAIN, .cluster = "cluster2"};
    EXPECT_OK(load_failover(&forward_fixture->call, &failover, &domain));
    forward_sleep(forward_fixture, 5 * NS_PER_S);
    forward_harm(forward_fixture, heal);
    forward_fixture->call.host = 1;
    EXPECT_OK(load_describe(&forward_fixture->call, DOMAIN, &domain));
    EXPECT_TEXT(domain->active_cluster_name, "cluster0"); /* it was just healed */
    EXPECT_OK(try_start(forward_fixture, "wf"));
    size_t events;
    EXPECT_EQ(writer_at(forward_fixture, 2, "wf", &events), 2);
}

/* --- policies and switches ---- */

static void
start_is_refused(struct forward_fixture *forward_fixture)
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_KIND(try_start(forward_fixture, "wf"), ERR_DOMAIN_NOT_ACTIVE);
}

TEST(forward, nothing_goes_on_with_noop)
{
    run_forward(&(struct forward_fixture){.policy = "noop"}, 2, start_is_refused);
}

TEST(forward, nothing_goes_on_of_a_domain_for_which_it_is_off, "G-049")
{
    run_forward(&(struct forward_fixture){.dynamic = "system.enableDomainNotActiveAutoForwarding:\n"
                                                     "- value: false\n"
                                                     "  constraints: {domainName: moving}\n"},
                2, start_is_refused);
}

static void
polls_go_on(struct forward_fixture *forward_fixture)
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    API(PollForDecisionTaskResponse) *task;
    poll(forward_fixture, &task);
    EXPECT(task->task_token.len > 0);
}

TEST(forward, with_all_apis_polls_go_on_too, "G-051")
{
    run_forward(&(struct forward_fixture){.policy = "all-domain-apis-forwarding-v2"}, 2,
                polls_go_on);
}

static void
polls_stay(struct forward_fixture *forward_fixture)
{
    register_domain(forward_fixture, NULL, 0);
    EXPECT_OK(try_start(forward_fixture, "wf"));
    API(PollForDecisionTaskResponse) *task;
    poll(forward_fixture, &task);
    EXPECT_EQ(task->task_token.len, 0);
}

TEST(forward, with_all_apis_towards_another_cluster_only_the_selected_go_on)
{
    run_forward(&(struct forward_fixture){.policy =
                                              "all-domain-apis-forwarding-v2, "
                                              "allDomainApisForwardingTargetCluster: cluster1"},
                2, polls_stay);
}

/* --- attributes ---- */

FORWARD_TEST(forward, a_start_goes_where_the_attribute_that_it_names_is_active, 3)
{
    static const struct load_attribute attributes[] = {{"city", "oslo", "cluster1"},
                                                       {"city", "rome", "cluster2"}};
    register_domain(forward_fixture, attributes, array_length(attributes));
    forward_fixture->call.host = 0;
    for (size_t i = 0; i < array_length(attributes); i++) {
        API(StartWorkflowExecutionRequest) *request =
            make_start(forward_fixture, attributes[i].name, FIRST_ID);
        request->active_cluster_selection_policy = API_NEW(
            forward_fixture->arena, active_cluster_selection_policy,
            .cluster_attribute = API_NEW(forward_fixture->arena, cluster_attribute, .scope = "city",
                                         .name = (char *)attributes[i].name));
        EXPECT_OK(SEND(forward_fixture, request, NULL));
        size_t events;
        EXPECT_EQ(writer_at(forward_fixture, 1 + (unsigned)i, attributes[i].name, &events),
                  1 + (int)i);
        EXPECT_EQ(events, 2);
    }
}

/* --- headers ---- */

FORWARD_TEST(forward, a_call_goes_on_with_its_headers, 2, "G-052")
{
    register_domain(forward_fixture, NULL, 0);
    const struct call_header group = {SLICE_LITERAL("cadence-client-isolation-group"),
                                      SLICE_LITERAL("zone-7")};
    forward_fixture->call.headers = &group;
    forward_fixture->call.header_count = 1;
    EXPECT_OK(try_start(forward_fixture, "wf"));
    API(History) *history;
    EXPECT_OK(try_history(forward_fixture, "wf", true, &history));
    const API(WorkflowExecutionStartedEventAttributes) *started =
        history->events[0]->workflow_execution_started_event_attributes;
    EXPECT_EQ(started->n_partition_config, 1);
    EXPECT_TEXT(started->partition_config[0]->value, "zone-7");
}
