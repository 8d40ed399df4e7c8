/* forward_sim_test.c - calls that come to a cluster where the workflow is not active.
 *
 * Two or three whole clusters on the simulated ground and a client that calls any of them. The
 * clusters say where a run was written by the version of its first event. */
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "sim/calls.h"
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

#define WORKFLOW_API   "/uber.cadence.api.v1.WorkflowAPI/"
#define WORKER_API     "/uber.cadence.api.v1.WorkerAPI/"
#define VISIBILITY_API "/uber.cadence.api.v1.VisibilityAPI/"
#define META_API       "/uber.cadence.api.v1.MetaAPI/"

struct scene {
    struct sim sim;
    void (*body)(struct scene *scene);
    const char *policy;  /* added to the configs; NULL: none */
    const char *dynamic; /* settings; NULL: none */
    bool is_over;
    void (*harm)(struct sim *sim); /* to be done from outside; NULL: nothing */
    /* In the client's fiber. */
    struct arena *arena;
    struct load_call call;
};

#define SEND(scene, path, request, type, response)                                                 \
    load_send(&(scene)->call, (path), &(request)->base, API_TYPE(type),                            \
              (ProtobufCMessage **)(response))

static void
scene_sleep(struct scene *scene, int64_t nanoseconds)
{
    EXPECT_OK(fiber_sleep(nanoseconds, scene->arena));
}

/* The domain is there in all clusters, and active in cluster0. */
static void
register_domain(struct scene *scene, const struct load_attribute *attributes, size_t count)
{
    struct load_registration registration = {.name = DOMAIN,
                                             .is_global = true,
                                             .cluster_count = scene->sim.count,
                                             .active_cluster = "cluster0",
                                             .attributes = attributes,
                                             .attribute_count = count};
    struct error *err;
    while ((err = load_register(&scene->call, &registration)) != NULL &&
           err->kind != ERR_DOMAIN_ALREADY_EXISTS)
        scene_sleep(scene, 100 * NS_PER_MS);
    for (scene->call.host = 0; scene->call.host < scene->sim.count; scene->call.host++) {
        API(Domain) *domain;
        while (load_describe(&scene->call, DOMAIN, &domain) != NULL)
            scene_sleep(scene, 100 * NS_PER_MS);
    }
    scene->call.host = 1;
}

static void
client_main(void *argument)
{
    struct scene *scene = argument;
    scene->arena = arena_new(0);
    scene->call =
        (struct load_call){.clients = load_clients_new(&scene->sim), .arena = scene->arena};
    scene->body(scene);
    load_clients_free(scene->call.clients);
    arena_free(scene->arena);
    scene->is_over = true;
}

static bool
is_over_or_waits(void *context)
{
    const struct scene *scene = context;
    return scene->is_over || scene->harm != NULL;
}

/* In the client's fiber: has it done. */
static void
scene_harm(struct scene *scene, void (*harm)(struct sim *sim))
{
    scene->harm = harm;
    while (scene->harm != NULL)
        scene_sleep(scene, NS_PER_MS);
}

static void
run_scene(struct scene *scene, unsigned clusters, void (*body)(struct scene *scene))
{
    scene->body = body;
    sim_open_group(&scene->sim, &(struct world_options){.seed = test_seed(0)}, clusters, 2);
    scene->sim.dynamic = scene->dynamic;
    for (unsigned i = 0; i < clusters; i++) {
        struct sim_host *host = &scene->sim.hosts[i];
        if (scene->policy != NULL)
            host->config =
                arena_format(scene->sim.arena, "%s  clusterRedirectionPolicy: {policy: %s}\n",
                             host->config, scene->policy);
        sim_host_start(host);
    }
    host_start(scene->sim.client, client_main, scene);
    while (!scene->is_over) {
        EXPECT(world_run_until(scene->sim.world, is_over_or_waits, scene, LIMIT));
        if (scene->harm != NULL)
            scene->harm(&scene->sim);
        scene->harm = NULL;
    }
    sim_close(&scene->sim);
}

/* --- calls ---- */

static API(WorkflowExecution) *
execution(struct scene *scene, const char *workflow_id)
{
    API(WorkflowExecution) *execution = message_new(scene->arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)workflow_id;
    return execution;
}

static API(StartWorkflowExecutionRequest) *
make_start(struct scene *scene, const char *workflow_id, const char *request_id)
{
    API(StartWorkflowExecutionRequest) *request =
        message_new(scene->arena, API_TYPE(start_workflow_execution_request));
    request->domain = DOMAIN;
    request->workflow_id = (char *)workflow_id;
    request->request_id = (char *)request_id;
    request->workflow_type = message_new(scene->arena, API_TYPE(workflow_type));
    request->workflow_type->name = "order";
    request->task_list = message_new(scene->arena, API_TYPE(task_list));
    request->task_list->name = "list";
    request->execution_start_to_close_timeout = presence_make_duration(scene->arena, 600);
    request->task_start_to_close_timeout = presence_make_duration(scene->arena, 10);
    return request;
}

#define FIRST_ID  "00000000-0000-4000-8000-000000000001"
#define SECOND_ID "00000000-0000-4000-8000-000000000002"

static struct error *
try_start(struct scene *scene, const char *workflow_id)
{
    API(StartWorkflowExecutionRequest) *request = make_start(scene, workflow_id, FIRST_ID);
    API(StartWorkflowExecutionResponse) *response;
    struct error *err = SEND(scene, WORKFLOW_API "StartWorkflowExecution", request,
                             start_workflow_execution_response, &response);
    EXPECT(err != NULL || response->run_id[0] != '\0');
    return err;
}

static struct error *
try_signal(struct scene *scene, const char *workflow_id)
{
    API(SignalWorkflowExecutionRequest) *request =
        message_new(scene->arena, API_TYPE(signal_workflow_execution_request));
    API(SignalWorkflowExecutionResponse) *response;
    request->domain = DOMAIN;
    request->workflow_execution = execution(scene, workflow_id);
    request->signal_name = "go";
    return SEND(scene, WORKFLOW_API "SignalWorkflowExecution", request,
                signal_workflow_execution_response, &response);
}

static struct error *
try_history(struct scene *scene, const char *workflow_id, bool is_strong, API(History) **history)
{
    API(GetWorkflowExecutionHistoryRequest) *request =
        message_new(scene->arena, API_TYPE(get_workflow_execution_history_request));
    API(GetWorkflowExecutionHistoryResponse) *response;
    request->domain = DOMAIN;
    request->workflow_execution = execution(scene, workflow_id);
    if (is_strong)
        request->query_consistency_level = STRONG;
    struct error *err = SEND(scene, WORKFLOW_API "GetWorkflowExecutionHistory", request,
                             get_workflow_execution_history_response, &response);
    if (err == NULL)
        *history = response->history;
    return err;
}

/* The cluster that wrote the newest event, as cluster `host` shows it. */
static int
writer_at(struct scene *scene, unsigned host, const char *workflow_id, size_t *events)
{
    unsigned before = scene->call.host;
    API(History) *history = NULL;
    scene->call.host = host;
    EXPECT_OK(try_history(scene, workflow_id, false, &history));
    scene->call.host = before;
    *events = history->n_events;
    return sim_group_of_version(history->events[history->n_events - 1]->version);
}

static void
poll(struct scene *scene, API(PollForDecisionTaskResponse) **task)
{
    API(PollForDecisionTaskRequest) *request =
        message_new(scene->arena, API_TYPE(poll_for_decision_task_request));
    request->domain = DOMAIN;
    request->task_list = message_new(scene->arena, API_TYPE(task_list));
    request->task_list->name = "list";
    fiber_set_deadline(clock_monotonic() + 5 * NS_PER_S);
    EXPECT_OK(SEND(scene, WORKER_API "PollForDecisionTask", request,
                   poll_for_decision_task_response, task));
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

static void
selected_calls(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    size_t events;
    EXPECT_EQ(writer_at(scene, 0, "wf", &events), 0);
    EXPECT_EQ(events, 2);
    EXPECT_OK(try_signal(scene, "wf"));
    EXPECT_EQ(writer_at(scene, 0, "wf", &events), 0);
    EXPECT_EQ(events, 3);

    API(StartWorkflowExecutionRequest) *again = make_start(scene, "wf", SECOND_ID);
    API(StartWorkflowExecutionResponse) *started;
    struct error *err = SEND(scene, WORKFLOW_API "StartWorkflowExecution", again,
                             start_workflow_execution_response, &started);
    API(WorkflowExecutionAlreadyStartedError) *detail;
    EXPECT_KIND(err, ERR_ALREADY_STARTED);
    EXPECT_OK(errors_read(scene->arena, err, &detail));
    EXPECT_TEXT(detail->start_request_id, FIRST_ID); /* what the other cluster said */

    API(RequestCancelWorkflowExecutionRequest) *cancel =
        message_new(scene->arena, API_TYPE(request_cancel_workflow_execution_request));
    API(RequestCancelWorkflowExecutionResponse) *cancelled;
    cancel->domain = DOMAIN;
    cancel->workflow_execution = execution(scene, "wf");
    cancel->request_id = SECOND_ID;
    EXPECT_OK(SEND(scene, WORKFLOW_API "RequestCancelWorkflowExecution", cancel,
                   request_cancel_workflow_execution_response, &cancelled));
    API(TerminateWorkflowExecutionRequest) *terminate =
        message_new(scene->arena, API_TYPE(terminate_workflow_execution_request));
    API(TerminateWorkflowExecutionResponse) *terminated;
    terminate->domain = DOMAIN;
    terminate->workflow_execution = execution(scene, "wf");
    EXPECT_OK(SEND(scene, WORKFLOW_API "TerminateWorkflowExecution", terminate,
                   terminate_workflow_execution_response, &terminated));
    EXPECT_EQ(writer_at(scene, 0, "wf", &events), 0);
    EXPECT_EQ(events, 5);
}

TEST(forward, clients_calls_are_carried_out_where_the_domain_is_active, "G-043", "D-026")
{
    run_scene(&(struct scene){0}, 2, selected_calls);
}

/* A worker of the other cluster has the task; its answers come to this one. */
static void
activity_answers(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    API(PollForDecisionTaskResponse) *task;
    scene->call.host = 0;
    poll(scene, &task);
    EXPECT(task->task_token.len > 0);
    scene->call.host = 1;

    /* A token of no activity: the answer says so, and it is the active cluster's. */
    API(RecordActivityTaskHeartbeatRequest) *beat =
        message_new(scene->arena, API_TYPE(record_activity_task_heartbeat_request));
    API(RecordActivityTaskHeartbeatResponse) *beaten;
    beat->task_token = task->task_token;
    struct error *err = SEND(scene, WORKER_API "RecordActivityTaskHeartbeat", beat,
                             record_activity_task_heartbeat_response, &beaten);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);

    /* Decisions are answered where they were taken. */
    API(RespondDecisionTaskCompletedRequest) *complete =
        message_new(scene->arena, API_TYPE(respond_decision_task_completed_request));
    API(RespondDecisionTaskCompletedResponse) *completed;
    complete->task_token = task->task_token;
    err = SEND(scene, WORKER_API "RespondDecisionTaskCompleted", complete,
               respond_decision_task_completed_response, &completed);
    EXPECT(err != NULL);
}

TEST(forward, answers_of_activities_go_on_and_answers_of_decisions_do_not, "G-044")
{
    run_scene(&(struct scene){0}, 2, activity_answers);
}

static void
activity_answers_stay(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf")); /* selected in both versions */
    API(PollForDecisionTaskResponse) *task;
    scene->call.host = 0;
    poll(scene, &task);
    scene->call.host = 1;
    API(RecordActivityTaskHeartbeatRequest) *beat =
        message_new(scene->arena, API_TYPE(record_activity_task_heartbeat_request));
    API(RecordActivityTaskHeartbeatResponse) *beaten;
    beat->task_token = task->task_token;
    struct error *err = SEND(scene, WORKER_API "RecordActivityTaskHeartbeat", beat,
                             record_activity_task_heartbeat_response, &beaten);
    EXPECT(err->kind == ERR_DOMAIN_NOT_ACTIVE || err->kind == ERR_ENTITY_NOT_EXISTS);
}

TEST(forward, the_first_list_of_selected_calls_is_without_workers)
{
    run_scene(&(struct scene){.policy = "selected-apis-forwarding"}, 2, activity_answers_stay);
}

/* --- what stays here ---- */

static void
local_calls(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    scene_harm(scene, lose_active); /* nobody else can answer */
    API(PollForDecisionTaskResponse) *task;
    poll(scene, &task);
    EXPECT_EQ(task->task_token.len, 0);
    API(Domain) *domain;
    EXPECT_OK(load_describe(&scene->call, DOMAIN, &domain));
    API(ListWorkflowExecutionsRequest) *list =
        message_new(scene->arena, API_TYPE(list_workflow_executions_request));
    API(ListWorkflowExecutionsResponse) *listed;
    list->domain = DOMAIN;
    list->page_size = 10;
    EXPECT_OK(SEND(scene, VISIBILITY_API "ListWorkflowExecutions", list,
                   list_workflow_executions_response, &listed));
    API(HealthRequest) *health = message_new(scene->arena, API_TYPE(health_request));
    API(HealthResponse) *healthy;
    EXPECT_OK(SEND(scene, META_API "Health", health, health_response, &healthy));
    EXPECT(healthy->ok);
    API(GetClusterInfoRequest) *info =
        message_new(scene->arena, API_TYPE(get_cluster_info_request));
    API(GetClusterInfoResponse) *answer;
    EXPECT_OK(SEND(scene, WORKFLOW_API "GetClusterInfo", info, get_cluster_info_response, &answer));
}

TEST(forward, polls_lists_domains_and_health_are_answered_here, "G-045", "G-046", "E-040")
{
    run_scene(&(struct scene){0}, 2, local_calls);
}

/* --- strong reads ---- */

static void
strong_reads(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    scene->call.host = 0;
    EXPECT_OK(try_signal(scene, "wf"));
    scene->call.host = 1;
    API(History) *history;
    EXPECT_OK(try_history(scene, "wf", true, &history)); /* at once */
    EXPECT_EQ(history->n_events, 3);
    API(DescribeWorkflowExecutionRequest) *request =
        message_new(scene->arena, API_TYPE(describe_workflow_execution_request));
    API(DescribeWorkflowExecutionResponse) *response;
    request->domain = DOMAIN;
    request->workflow_execution = execution(scene, "wf");
    request->query_consistency_level = STRONG;
    EXPECT_OK(SEND(scene, WORKFLOW_API "DescribeWorkflowExecution", request,
                   describe_workflow_execution_response, &response));
    EXPECT_EQ(response->workflow_execution_info->history_length, 3);

    /* Without the field, by the flag of the client. */
    const struct grpc_header flags = {SLICE_LITERAL("cadence-client-feature-flags"),
                                      SLICE_LITERAL("{\"autoforwardingEnabled\":true}")};
    scene->call.headers = &flags;
    scene->call.header_count = 1;
    scene->call.host = 0;
    EXPECT_OK(try_signal(scene, "wf"));
    scene->call.host = 1;
    EXPECT_OK(try_history(scene, "wf", false, &history));
    EXPECT_EQ(history->n_events, 4);
}

TEST(forward, strong_reads_are_answered_where_the_domain_is_active, "G-047", "A-236")
{
    run_scene(&(struct scene){0}, 2, strong_reads);
}

/* --- who answers queries ---- */

/* A worker of one cluster: completes decisions with nothing, answers queries with its name. */
struct query_worker {
    struct scene *scene;
    unsigned cluster;
    bool is_stopping, is_over;
};

static void
serve_task(const struct query_worker *worker, struct load_call *call,
           const API(PollForDecisionTaskResponse) *task)
{
    struct arena *arena = call->arena;
    ProtobufCMessage *response;
    if (task->query == NULL) {
        API(RespondDecisionTaskCompletedRequest) *complete =
            message_new(arena, API_TYPE(respond_decision_task_completed_request));
        complete->task_token = task->task_token;
        EXPECT_OK(load_send(call, WORKER_API "RespondDecisionTaskCompleted", &complete->base,
                            API_TYPE(respond_decision_task_completed_response), &response));
        return;
    }
    API(RespondQueryTaskCompletedRequest) *answer =
        message_new(arena, API_TYPE(respond_query_task_completed_request));
    answer->task_token = task->task_token;
    answer->result = message_new(arena, API_TYPE(workflow_query_result));
    answer->result->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED);
    answer->result->answer = message_new(arena, API_TYPE(payload));
    answer->result->answer->data =
        presence_make_bytes(slice_text(worker->cluster == 0 ? "cluster0" : "cluster1"));
    EXPECT_OK(load_send(call, WORKER_API "RespondQueryTaskCompleted", &answer->base,
                        API_TYPE(respond_query_task_completed_response), &response));
}

static void
query_worker_main(void *argument)
{
    struct query_worker *worker = argument;
    struct load_clients *clients = load_clients_new(&worker->scene->sim);
    while (!worker->is_stopping) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = worker->cluster, .arena = arena, .is_worker = true};
        API(PollForDecisionTaskRequest) *request =
            message_new(arena, API_TYPE(poll_for_decision_task_request));
        API(PollForDecisionTaskResponse) *task = NULL;
        request->domain = DOMAIN;
        request->task_list = message_new(arena, API_TYPE(task_list));
        request->task_list->name = "list";
        fiber_set_deadline(clock_monotonic() + 5 * NS_PER_S);
        EXPECT_OK(load_send(&call, WORKER_API "PollForDecisionTask", &request->base,
                            API_TYPE(poll_for_decision_task_response), (ProtobufCMessage **)&task));
        if (task->task_token.len > 0)
            serve_task(worker, &call, task);
    }
    load_clients_free(clients);
    worker->is_over = true;
}

static const char *
who_answers(struct scene *scene, bool is_strong)
{
    API(QueryWorkflowRequest) *request =
        message_new(scene->arena, API_TYPE(query_workflow_request));
    API(QueryWorkflowResponse) *response;
    request->domain = DOMAIN;
    request->workflow_execution = execution(scene, "wf");
    request->query = message_new(scene->arena, API_TYPE(workflow_query));
    request->query->query_type = "who";
    if (is_strong)
        request->query_consistency_level = STRONG;
    fiber_set_deadline(clock_monotonic() + 10 * NS_PER_S);
    EXPECT_OK(
        SEND(scene, WORKFLOW_API "QueryWorkflow", request, query_workflow_response, &response));
    fiber_set_deadline(NEVER);
    return arena_text_of(scene->arena, presence_read_bytes(response->query_result->data));
}

static void
signal_with_start(struct scene *scene, const char *request_id)
{
    API(SignalWithStartWorkflowExecutionRequest) *request =
        message_new(scene->arena, API_TYPE(signal_with_start_workflow_execution_request));
    API(SignalWithStartWorkflowExecutionResponse) *response;
    request->start_request = make_start(scene, "counted", request_id);
    request->signal_name = "go";
    EXPECT_OK(SEND(scene, WORKFLOW_API "SignalWithStartWorkflowExecution", request,
                   signal_with_start_workflow_execution_response, &response));
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
static void
redirected(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    struct query_worker workers[2] = {{.scene = scene, .cluster = 0},
                                      {.scene = scene, .cluster = 1}};
    for (int i = 0; i < 2; i++)
        fiber_start("worker", query_worker_main, &workers[i]);
    EXPECT_OK(try_start(scene, "wf"));
    scene_sleep(scene, 3 * NS_PER_S); /* decided, and told to the other cluster */
    size_t events;
    EXPECT_EQ(writer_at(scene, 1, "wf", &events), 0);
    EXPECT_EQ(events, 4);
    EXPECT_TEXT(who_answers(scene, false), "cluster1");
    EXPECT_TEXT(who_answers(scene, true), "cluster0");
    signal_with_start(scene, FIRST_ID);
    signal_with_start(scene, SECOND_ID);
    API(History) *history;
    EXPECT_OK(try_history(scene, "counted", true, &history));
    EXPECT_EQ(count_signals(history), 2);
    for (int i = 0; i < 2; i++) {
        workers[i].is_stopping = true;
        while (!workers[i].is_over)
            scene_sleep(scene, 100 * NS_PER_MS);
    }
}

TEST(forward, a_passive_cluster_passes_starts_on_and_its_worker_answers_queries, "E-027")
{
    run_scene(&(struct scene){0}, 2, redirected);
}

/* A query comes to cluster1, where the domain is passive and nobody polls. */
static void
worker_elsewhere(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    struct query_worker worker = {.scene = scene, .cluster = 0};
    fiber_start("worker", query_worker_main, &worker);
    EXPECT_OK(try_start(scene, "wf"));
    scene_sleep(scene, 3 * NS_PER_S);
    int64_t began = clock_monotonic();
    EXPECT_TEXT(who_answers(scene, false), "cluster0");
    EXPECT(clock_monotonic() - began < NS_PER_S);
    worker.is_stopping = true;
    while (!worker.is_over)
        scene_sleep(scene, 100 * NS_PER_MS);
}

TEST(forward, a_query_is_answered_where_its_workers_are)
{
    run_scene(&(struct scene){0}, 2, worker_elsewhere);
}

/* --- no circles, no hanging ---- */

static void
no_circles(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    const struct grpc_header from = {SLICE_LITERAL("cadence-forwarding-cluster"),
                                     SLICE_LITERAL("cluster0")};
    scene->call.headers = &from;
    scene->call.header_count = 1;
    struct error *err = try_start(scene, "wf");
    API(DomainNotActiveError) *detail;
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_TEXT(err->message,
                "Domain: moving is active in cluster: cluster0, while current cluster "
                "cluster1 is a standby cluster.");
    EXPECT_OK(errors_read(scene->arena, err, &detail));
    EXPECT_TEXT(detail->active_cluster, "cluster0");
    EXPECT_TEXT(detail->current_cluster, "cluster1");
}

TEST(forward, a_call_that_was_forwarded_is_not_forwarded_again, "E-039")
{
    run_scene(&(struct scene){0}, 2, no_circles);
}

static void
no_hanging(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    scene_harm(scene, lose_active);
    int64_t began = clock_monotonic();
    fiber_set_deadline(began + 60 * NS_PER_S);
    struct error *err = try_signal(scene, "wf");
    fiber_set_deadline(NEVER);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    EXPECT(strstr(err->message, "cluster0") != NULL);
    EXPECT(clock_monotonic() - began < 5 * NS_PER_S);
}

TEST(forward, a_cluster_that_is_away_is_an_error_that_may_be_tried_again)
{
    run_scene(&(struct scene){0}, 2, no_hanging);
}

/* --- a cluster that knows better ---- */

/* Cluster 1 does not hear that the domain moves to cluster 2. */
static void
deafen(struct sim *sim)
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

static void
told_elsewhere(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    scene_harm(scene, deafen);
    scene->call.host = 0;
    API(Domain) *domain;
    struct load_failover failover = {.name = DOMAIN, .cluster = "cluster2"};
    EXPECT_OK(load_failover(&scene->call, &failover, &domain));
    scene_sleep(scene, 5 * NS_PER_S);
    scene_harm(scene, heal);
    scene->call.host = 1;
    EXPECT_OK(load_describe(&scene->call, DOMAIN, &domain));
    EXPECT_TEXT(domain->active_cluster_name, "cluster0"); /* it was just healed */
    EXPECT_OK(try_start(scene, "wf"));
    size_t events;
    EXPECT_EQ(writer_at(scene, 2, "wf", &events), 2);
}

TEST(forward, what_the_other_cluster_says_is_followed_once, "G-048")
{
    run_scene(&(struct scene){0}, 3, told_elsewhere);
}

/* --- policies and switches ---- */

static void
start_is_refused(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_KIND(try_start(scene, "wf"), ERR_DOMAIN_NOT_ACTIVE);
}

TEST(forward, nothing_goes_on_with_noop)
{
    run_scene(&(struct scene){.policy = "noop"}, 2, start_is_refused);
}

TEST(forward, nothing_goes_on_of_a_domain_for_which_it_is_off, "G-049")
{
    run_scene(&(struct scene){.dynamic = "system.enableDomainNotActiveAutoForwarding:\n"
                                         "- value: false\n"
                                         "  constraints: {domainName: moving}\n"},
              2, start_is_refused);
}

static void
polls_go_on(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    API(PollForDecisionTaskResponse) *task;
    poll(scene, &task);
    EXPECT(task->task_token.len > 0);
}

TEST(forward, with_all_apis_polls_go_on_too, "G-051")
{
    run_scene(&(struct scene){.policy = "all-domain-apis-forwarding-v2"}, 2, polls_go_on);
}

static void
polls_stay(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    EXPECT_OK(try_start(scene, "wf"));
    API(PollForDecisionTaskResponse) *task;
    poll(scene, &task);
    EXPECT_EQ(task->task_token.len, 0);
}

TEST(forward, with_all_apis_towards_another_cluster_only_the_selected_go_on)
{
    run_scene(&(struct scene){.policy = "all-domain-apis-forwarding-v2, "
                                        "allDomainApisForwardingTargetCluster: cluster1"},
              2, polls_stay);
}

/* --- attributes ---- */

static void
by_attribute(struct scene *scene)
{
    static const struct load_attribute attributes[] = {{"city", "oslo", "cluster1"},
                                                       {"city", "rome", "cluster2"}};
    register_domain(scene, attributes, array_length(attributes));
    scene->call.host = 0;
    for (size_t i = 0; i < array_length(attributes); i++) {
        API(StartWorkflowExecutionRequest) *request =
            make_start(scene, attributes[i].name, FIRST_ID);
        API(StartWorkflowExecutionResponse) *response;
        request->active_cluster_selection_policy =
            message_new(scene->arena, API_TYPE(active_cluster_selection_policy));
        request->active_cluster_selection_policy->cluster_attribute =
            message_new(scene->arena, API_TYPE(cluster_attribute));
        request->active_cluster_selection_policy->cluster_attribute->scope = "city";
        request->active_cluster_selection_policy->cluster_attribute->name =
            (char *)attributes[i].name;
        EXPECT_OK(SEND(scene, WORKFLOW_API "StartWorkflowExecution", request,
                       start_workflow_execution_response, &response));
        size_t events;
        EXPECT_EQ(writer_at(scene, 1 + (unsigned)i, attributes[i].name, &events), 1 + (int)i);
        EXPECT_EQ(events, 2);
    }
}

TEST(forward, a_start_goes_where_the_attribute_that_it_names_is_active)
{
    run_scene(&(struct scene){0}, 3, by_attribute);
}

/* --- headers ---- */

static void
headers_go_along(struct scene *scene)
{
    register_domain(scene, NULL, 0);
    const struct grpc_header group = {SLICE_LITERAL("cadence-client-isolation-group"),
                                      SLICE_LITERAL("zone-7")};
    scene->call.headers = &group;
    scene->call.header_count = 1;
    EXPECT_OK(try_start(scene, "wf"));
    API(History) *history;
    EXPECT_OK(try_history(scene, "wf", true, &history));
    const API(WorkflowExecutionStartedEventAttributes) *started =
        history->events[0]->workflow_execution_started_event_attributes;
    EXPECT_EQ(started->n_partition_config, 1);
    EXPECT_TEXT(started->partition_config[0]->value, "zone-7");
}

TEST(forward, a_call_goes_on_with_its_headers, "G-052")
{
    run_scene(&(struct scene){0}, 2, headers_go_along);
}
