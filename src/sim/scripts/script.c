/* script.c - see script.h. */
#include "sim/scripts/script.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "fiber/fiber.h"

#define CALL_TIMEOUT (20 * NS_PER_S)
#define LIMIT        (3600 * NS_PER_S)
#define UNFORWARDED  "dcRedirectionPolicy: {policy: noop}\n"

struct error *
script_call_at(struct script *script, unsigned cluster, const ProtobufCMessage *request,
               ProtobufCMessage **response)
{
    struct load_call call = {
        .clients = script->clients, .host = cluster, .arena = script->arena, .is_worker = true};
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = load_send_at(&call, request, response);
    fiber_set_deadline(NEVER);
    return err;
}

void
script_sleep(struct script *script, int64_t time)
{
    EXPECT_OK(fiber_sleep(time, script->arena));
}

/* --- life ---- */

static void
begin_domain(struct script *script)
{
    struct load_call call = {.clients = script->clients, .arena = script->arena};
    struct error *err = NULL;
    do {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = load_register(
            &call, &(struct load_registration){.name = SCRIPT_DOMAIN,
                                               .is_global = script->sim->is_group,
                                               .cluster_count = script->domain_clusters,
                                               .active_cluster = "cluster0",
                                               .attributes = script->attributes,
                                               .attribute_count = script->attribute_count});
        fiber_set_deadline(NEVER);
        script_sleep(script, NS_PER_S);
    } while (err != NULL);
    for (unsigned i = 0; i < script->sim->count; i++) {
        API(Domain) *domain = NULL;
        for (int try = 0; domain == NULL && try < 60; try++) {
            call.host = i;
            fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
            if (load_describe(&call, SCRIPT_DOMAIN, &domain) != NULL)
                domain = NULL;
            fiber_set_deadline(NEVER);
            script_sleep(script, 100 * NS_PER_MS);
        }
        EXPECT(domain != NULL);
        script->domain_id = domain->id;
    }
}

static void
script_main(void *argument)
{
    struct script *script = argument;
    script->arena = arena_new(0);
    script->clients = load_clients_new(script->sim);
    begin_domain(script);
    script->run(script);
    load_clients_free(script->clients);
    arena_free(script->arena);
    script->is_over = true;
}

void
script_outside(struct script *script, void (*order)(struct script *script, void *context),
               void *context)
{
    script->context = context;
    script->order = order;
    while (script->order != NULL)
        script_sleep(script, NS_PER_MS);
}

static void
crash(struct script *script, void *context)
{
    sim_host_crash(&script->sim->hosts[*(unsigned *)context]);
}

static void
start(struct script *script, void *context)
{
    sim_host_start(&script->sim->hosts[*(unsigned *)context]);
}

static void
part(struct script *script, void *context)
{
    struct sim *sim = script->sim;
    world_cut(sim->world, sim->hosts[0].host, sim->hosts[1].host);
    world_cut(sim->world, sim->hosts[1].host, sim->hosts[0].host);
}

static void
heal(struct script *script, void *context)
{
    struct sim *sim = script->sim;
    world_heal(sim->world, sim->hosts[0].host, sim->hosts[1].host);
    world_heal(sim->world, sim->hosts[1].host, sim->hosts[0].host);
}

void
script_crash(struct script *script, unsigned cluster)
{
    script_outside(script, crash, &cluster);
}

void
script_restart(struct script *script, unsigned cluster)
{
    script_outside(script, start, &cluster);
}

void
script_part(struct script *script)
{
    script_outside(script, part, NULL);
}

void
script_heal(struct script *script)
{
    script_outside(script, heal, NULL);
}

static bool
is_outside_wanted(void *context)
{
    const struct script *script = context;
    bool is_due = script->fixture->is_due != NULL && script->fixture->is_due(script);
    return script->is_over || script->order != NULL || is_due;
}

static const struct script_attributes no_attributes = {.is_forwarded = true};

static void
do_outside(struct script *script)
{
    if (script->order != NULL)
        script->order(script, script->context);
    script->order = NULL;
    if (!script->is_over && script->fixture->is_due != NULL && script->fixture->is_due(script))
        script->fixture->act(script);
}

static void
open_sim(struct sim *sim, const struct script_fixture *fixture, uint64_t seed)
{
    const struct world_options options = {.seed = seed};
    if (fixture->is_one_cluster)
        sim_open_cluster(sim, &options, fixture->clusters, 2);
    else
        sim_open_group(sim, &options, fixture->clusters, 2);
    world_relent(sim->world); /* what each call is answered is looked at */
}

static void
play(const struct script_fixture *fixture, unsigned domain_clusters, const char *config)
{
    struct sim sim;
    unsigned clusters = fixture->clusters;
    const struct script_attributes *attributes =
        fixture->attributes == NULL ? &no_attributes : fixture->attributes;
    open_sim(&sim, fixture, test_seed(attributes->seed_index));
    struct script script = {.sim = &sim,
                            .run = fixture->run,
                            .fixture = fixture,
                            .attributes = attributes->all,
                            .attribute_count = attributes->count,
                            .domain_clusters = domain_clusters == 0 ? clusters : domain_clusters};
    sim.dynamic = fixture->dynamic;
    sim.has_system_domains = fixture->has_system_domains;
    if (attributes->has_regions)
        sim_give_regions(&sim);
    if (fixture->begin != NULL)
        fixture->begin(&script);
    for (unsigned i = 0; i < sim.count; i++) {
        if (sim.is_group)
            sim.hosts[i].config = arena_format(sim.arena, "%s%s", sim.hosts[i].config, config);
        sim.hosts[i].shards = fixture->shards == NULL ? 0 : fixture->shards[i];
        sim_host_start(&sim.hosts[i]);
    }
    host_start(sim.client, script_main, &script);
    bool has_ended = true;
    while (has_ended && !script.is_over) {
        has_ended = world_run_until(sim.world, is_outside_wanted, &script, LIMIT);
        do_outside(&script);
    }
    sim_close(&sim);
    EXPECT(has_ended);
}

void
script_play_on(const struct script_fixture *fixture)
{
    play(fixture, 0, "");
}

void
script_play_set(const char *dynamic, bool is_forwarded, void (*run)(struct script *script))
{
    play(&(struct script_fixture){.clusters = 2, .dynamic = dynamic, .run = run}, 0,
         is_forwarded ? "" : UNFORWARDED);
}

void
script_play(unsigned clusters, unsigned domain_clusters, void (*run)(struct script *script))
{
    play(&(struct script_fixture){.clusters = clusters, .run = run}, domain_clusters, "");
}

void
script_play_with_system(unsigned clusters, unsigned domain_clusters,
                        void (*run)(struct script *script))
{
    play(&(struct script_fixture){.clusters = clusters, .has_system_domains = true, .run = run},
         domain_clusters, "");
}

void
script_play_uneven(uint32_t shards, void (*run)(struct script *script))
{
    uint32_t all[] = {0, shards};
    script_play_on(&(struct script_fixture){.clusters = 2, .shards = all, .run = run});
}

void
script_play_unforwarded(unsigned clusters, void (*run)(struct script *script))
{
    play(&(struct script_fixture){.clusters = clusters, .run = run}, 0, UNFORWARDED);
}

void
script_play_attributes(unsigned clusters, const struct script_attributes *attributes,
                       void (*run)(struct script *script))
{
    play(&(struct script_fixture){.clusters = clusters, .attributes = attributes, .run = run}, 0,
         attributes->is_forwarded ? "" : UNFORWARDED);
}

/* --- clients ---- */

API(WorkflowExecution) *
script_execution(struct script *script, const char *id, const char *run_id)
{
    return API_NEW(script->arena, workflow_execution, .workflow_id = (char *)id,
                   .run_id = (char *)run_id);
}

API(StartWorkflowExecutionRequest) *
script_start_request(struct script *script, const char *id)
{
    struct arena *arena = script->arena;
    API(StartWorkflowExecutionRequest) *request =
        API_NEW(arena, start_workflow_execution_request, .domain = SCRIPT_DOMAIN,
                .workflow_id = arena_text(arena, id),
                .workflow_type = API_NEW(arena, workflow_type, .name = "scripted"),
                .task_list = API_NEW(arena, task_list, .name = SCRIPT_LIST),
                .execution_start_to_close_timeout = presence_make_duration(arena, 3600),
                .task_start_to_close_timeout = presence_make_duration(arena, 10));
    uint8_t bytes[16];
    entropy_bytes(bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    request->request_id = arena_alloc(arena, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, request->request_id);
    return request;
}

struct error *
script_try_start(struct script *script, unsigned cluster,
                 API(StartWorkflowExecutionRequest) *request, const char **run_id)
{
    API(StartWorkflowExecutionResponse) *response = NULL;
    struct error *err = script_call(script, cluster, request, &response);
    *run_id = err == NULL ? response->run_id : "";
    return err;
}

const char *
script_start(struct script *script, unsigned cluster, const char *id)
{
    const char *run_id;
    EXPECT_OK(script_try_start(script, cluster, script_start_request(script, id), &run_id));
    return run_id;
}

struct error *
script_signal(struct script *script, unsigned cluster, const char *id, const char *name)
{
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        script->arena, signal_workflow_execution_request, .domain = SCRIPT_DOMAIN,
        .workflow_execution = script_execution(script, id, ""), .signal_name = (char *)name);
    return script_call(script, cluster, request, NULL);
}

void
script_failover(struct script *script, unsigned to)
{
    struct load_call call = {.clients = script->clients, .host = to, .arena = script->arena};
    struct load_failover failover = {.name = SCRIPT_DOMAIN,
                                     .cluster = arena_format(script->arena, "cluster%u", to)};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    EXPECT_OK(load_failover(&call, &failover, &domain));
    fiber_set_deadline(NEVER);
}

/* --- workers ---- */

API(PollForDecisionTaskResponse) *
script_poll(struct script *script, unsigned cluster, int64_t time)
{
    struct load_call call = {
        .clients = script->clients, .host = cluster, .arena = script->arena, .is_worker = true};
    API(PollForDecisionTaskRequest) *request =
        API_NEW(script->arena, poll_for_decision_task_request, .domain = SCRIPT_DOMAIN,
                .task_list = API_NEW(script->arena, task_list, .name = SCRIPT_LIST),
                .identity = arena_format(script->arena, "decider%u", cluster));
    API(PollForDecisionTaskResponse) *task = NULL;
    fiber_set_deadline(clock_monotonic() + time + 2 * NS_PER_S);
    struct error *err = load_send(&call, request, &task);
    fiber_set_deadline(NEVER);
    return err == NULL && task->task_token.len > 0 ? task : NULL;
}

struct error *
script_complete(struct script *script, unsigned cluster,
                const API(PollForDecisionTaskResponse) *task, API(Decision) **decisions,
                size_t count)
{
    return SCRIPT_CALL(script, cluster, NULL, respond_decision_task_completed,
                       .task_token = task->task_token, .decisions = decisions, .n_decisions = count,
                       .identity = arena_format(script->arena, "decider%u", cluster));
}

void
script_decide(struct script *script, unsigned cluster, API(Decision) **decisions, size_t count)
{
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
    EXPECT(task != NULL);
    EXPECT_OK(script_complete(script, cluster, task, decisions, count));
}

API(PollForActivityTaskResponse) *
script_poll_activity(struct script *script, unsigned cluster, int64_t time)
{
    struct load_call call = {
        .clients = script->clients, .host = cluster, .arena = script->arena, .is_worker = true};
    API(PollForActivityTaskRequest) *request =
        API_NEW(script->arena, poll_for_activity_task_request, .domain = SCRIPT_DOMAIN,
                .task_list = API_NEW(script->arena, task_list, .name = SCRIPT_LIST),
                .identity = arena_format(script->arena, "worker%u", cluster));
    API(PollForActivityTaskResponse) *task = NULL;
    fiber_set_deadline(clock_monotonic() + time + 2 * NS_PER_S);
    struct error *err = load_send(&call, request, &task);
    fiber_set_deadline(NEVER);
    return err == NULL && task->task_token.len > 0 ? task : NULL;
}

/* --- looking ---- */

API(History) *
script_history(struct script *script, unsigned cluster, const char *id, const char *run_id)
{
    API(GetWorkflowExecutionHistoryResponse) *response = NULL;
    struct error *err = SCRIPT_CALL(script, cluster, &response, get_workflow_execution_history,
                                    .domain = SCRIPT_DOMAIN, .page_size = 1000,
                                    .workflow_execution = script_execution(script, id, run_id));
    return err == NULL ? response->history : NULL;
}

unsigned
script_count_events(const API(History) *history, int kind)
{
    unsigned count = 0;
    for (size_t i = 0; history != NULL && i < history->n_events; i++)
        count += (int)history->events[i]->attributes_case == kind;
    return count;
}

API(DescribeWorkflowExecutionResponse) *
script_describe(struct script *script, unsigned cluster, const char *id)
{
    API(DescribeWorkflowExecutionResponse) *response = NULL;
    struct error *err = SCRIPT_CALL(script, cluster, &response, describe_workflow_execution,
                                    .domain = SCRIPT_DOMAIN,
                                    .workflow_execution = script_execution(script, id, ""));
    return err == NULL ? response : NULL;
}

API(History) *
script_await(struct script *script, unsigned cluster, const char *id, size_t events)
{
    int64_t limit = clock_monotonic() + WITHIN;
    for (;;) {
        API(History) *history = script_history(script, cluster, id, "");
        if (history != NULL && history->n_events >= events)
            return history;
        if (clock_monotonic() > limit)
            TEST_FAIL("cluster%u has %zu events of %s, not %zu", cluster,
                      history == NULL ? 0 : history->n_events, id, events);
        script_sleep(script, 50 * NS_PER_MS);
    }
}

static bool
is_same(struct script *script, const char *id)
{
    struct slice first = {0};
    for (unsigned i = 0; i < script->domain_clusters; i++) {
        API(History) *history = script_history(script, i, id, "");
        if (history == NULL)
            return false;
        struct slice bytes = message_encode(script->arena, &history->base);
        if (i > 0 && !slice_equal(first, bytes))
            return false;
        first = bytes;
    }
    return true;
}

void
script_expect_same(struct script *script, const char *id)
{
    int64_t limit = clock_monotonic() + WITHIN;
    while (!is_same(script, id)) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 50 * NS_PER_MS);
    }
}

ADMIN(ReplicationMessages) *
script_messages(struct script *script, unsigned source, const char *cluster, uint32_t shard,
                int64_t retrieved)
{
    ADMIN(GetReplicationMessagesRequest) *request =
        ADMIN_NEW(script->arena, get_replication_messages_request);
    ADMIN(ReplicationToken) *token =
        ADMIN_NEW(script->arena, replication_token, .shard_id = (int32_t)shard,
                  .last_retrieved_message_id = retrieved, .last_processed_message_id = retrieved);
    request->tokens = arena_alloc(script->arena, sizeof *request->tokens);
    request->tokens[0] = token;
    request->n_tokens = 1;
    request->cluster_name = (char *)cluster;
    ADMIN(GetReplicationMessagesResponse) *response = script_ok(script, source, request);
    EXPECT_EQ(response->n_shard_messages, 1);
    EXPECT_EQ(response->shard_messages[0]->key, shard);
    return response->shard_messages[0]->value;
}
