/* engine_test.c - all shards over several loops: calls from anywhere find their shard, tasks come
 * back as loop messages, and nothing is shared that should not be. */
#include "engine/engine.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "base/test.h"
#include "engine/inside.h"
#include "fiber/clock.h"
#include "fiber/linux/test_loops.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/memory/memory.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LOOPS     3
#define SHARDS    8
#define WORKFLOWS 60

/* Tasks that were offered, of one loop: only that loop touches them. */
struct offered {
    vector_of(struct task *) tasks;
    struct arena *arena;
};

struct engine_fixture {
    struct arena *arena;
    struct memory_base *base;
    struct store *store;
    struct config *config;
    const struct cluster_group *group;
    struct dynamic *dynamic;
    struct metrics *metrics;
    struct domains *domains;
    const char *domain_id;
    struct engine *engine;
    struct offered offered[LOOPS];
    atomic_size_t offers;
};

static bool
engine_fixture_offer(void *context, const struct task *task)
{
    struct engine_fixture *engine_fixture = context;
    struct offered *offered = &engine_fixture->offered[loop_index(loop_self())];
    vector_push(&offered->tasks, task_copy(task, offered->arena));
    atomic_fetch_add(&engine_fixture->offers, 1);
    return true;
}

static void
engine_fixture_open_engine(struct engine_fixture *engine_fixture)
{
    struct engine_options options = {
        .store = engine_fixture->store,
        .shard_count = SHARDS,
        .domains = engine_fixture->domains,
        .group = engine_fixture->group,
        .dynamic = engine_fixture->dynamic,
        .metrics = engine_fixture->metrics,
        .tasks = {.offer = engine_fixture_offer, .context = engine_fixture},
        .host = "bench",
        .is_alone = true};
    EXPECT_OK(engine_open(&options, engine_fixture->arena, &engine_fixture->engine));
}

static void
engine_fixture_open(struct engine_fixture *engine_fixture)
{
    *engine_fixture = (struct engine_fixture){.arena = arena_new(0), .base = memory_base_new(0)};
    for (int i = 0; i < LOOPS; i++)
        engine_fixture->offered[i].arena = arena_new(0);
    engine_fixture->store = memory_open(engine_fixture->base);
    engine_fixture->config = config_default();
    EXPECT_OK(
        cluster_group_load(engine_fixture->config, engine_fixture->arena, &engine_fixture->group));
    engine_fixture->dynamic = dynamic_new(NULL);
    engine_fixture->metrics = metrics_new();
    struct domains_options options = {.store = engine_fixture->store,
                                      .group = engine_fixture->group,
                                      .dynamic = engine_fixture->dynamic};
    EXPECT_OK(domains_open(&options, engine_fixture->arena, &engine_fixture->domains));
    API(RegisterDomainRequest) *request =
        API_NEW(engine_fixture->arena, register_domain_request, .name = "orders",
                .workflow_execution_retention_period =
                    presence_make_duration(engine_fixture->arena, 86400));
    EXPECT_OK(domains_register(engine_fixture->domains, request, engine_fixture->arena, NULL));
    engine_fixture->domain_id =
        arena_text(engine_fixture->arena, domains_find_name(engine_fixture->domains, "orders")->id);
    engine_fixture_open_engine(engine_fixture);
}

static void
engine_fixture_close(struct engine_fixture *engine_fixture)
{
    engine_close(engine_fixture->engine);
    domains_close(engine_fixture->domains);
    dynamic_free(engine_fixture->dynamic);
    metrics_free(engine_fixture->metrics);
    config_free(engine_fixture->config);
    store_close(engine_fixture->store);
    memory_base_free(engine_fixture->base);
    for (int i = 0; i < LOOPS; i++) {
        vector_free(&engine_fixture->offered[i].tasks);
        arena_free(engine_fixture->offered[i].arena);
    }
    arena_free(engine_fixture->arena);
}

/* --- calls ---- */

static struct error *
start(struct engine_fixture *engine_fixture, const char *workflow_id, const char *request_id,
      struct arena *arena, const char **run_id)
{
    API(StartWorkflowExecutionRequest) *request =
        API_NEW(arena, start_workflow_execution_request, .domain = "orders",
                .workflow_id = (char *)workflow_id, .request_id = (char *)request_id,
                .workflow_type = API_NEW(arena, workflow_type, .name = "type"),
                .task_list =
                    API_NEW(arena, task_list, .name = "list",
                            .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID) /* unsaid */),
                .execution_start_to_close_timeout = presence_make_duration(arena, 1000),
                .task_start_to_close_timeout = presence_make_duration(arena, 10));
    struct start_command command = {.request = request};
    struct start_answer answer = {0};
    struct error *err =
        engine_start(engine_fixture->engine, engine_fixture->domain_id, &command, arena, &answer);
    *run_id = answer.run_id;
    return err;
}

static API(WorkflowExecution) *
execution(const char *workflow_id, struct arena *arena)
{
    return API_NEW(arena, workflow_execution, .workflow_id = (char *)workflow_id);
}

static void
signal(struct engine_fixture *engine_fixture, const char *workflow_id, struct arena *arena)
{
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(arena, signal_workflow_execution_request,
                .workflow_execution = execution(workflow_id, arena), .signal_name = "signal");
    EXPECT_OK(engine_signal(engine_fixture->engine, engine_fixture->domain_id, request, arena));
}

/* --- from all loops ---- */

struct caller {
    struct engine_fixture *engine_fixture;
    unsigned loop;
};

/* One loop's callers: start, signal and look at workflows of all shards. */
static void
call_all(void *argument)
{
    struct caller *caller = argument;
    struct engine_fixture *engine_fixture = caller->engine_fixture;
    for (unsigned i = caller->loop; i < WORKFLOWS; i += LOOPS) {
        struct arena *arena = arena_new(0);
        const char *id = arena_format(arena, "wf-%u", i), *run_id, *repeat;
        EXPECT_OK(start(engine_fixture, id, "one", arena, &run_id));
        EXPECT_OK(start(engine_fixture, id, "one", arena, &repeat));
        EXPECT_TEXT(repeat, run_id);
        EXPECT_KIND(start(engine_fixture, id, "other", arena, &repeat), ERR_ALREADY_STARTED);
        signal(engine_fixture, id, arena);
        struct history_state state;
        struct run_key key = {engine_fixture->domain_id, id, ""};
        EXPECT_OK(engine_history_state(engine_fixture->engine, &key, arena, &state));
        EXPECT_EQ(state.next_event_id, 4);
        EXPECT_TEXT(state.run_id, run_id);
        EXPECT(state.is_open);
        EXPECT_TEXT(state.workflow_type->name, "type");
        arena_free(arena);
    }
}

static void
caller_fiber(void *argument)
{
    struct caller *caller = argument;
    struct arena *arena = arena_new(0);
    EXPECT_OK(loop_call(loop_at(caller->loop), call_all, caller, arena));
    arena_free(arena);
}

struct join {
    struct latch latch;
    struct caller caller;
    struct join *shared;
};

static void
join_fiber(void *argument)
{
    struct join *join = argument;
    caller_fiber(&join->caller);
    latch_done(&join->shared->latch);
}

static void
run_callers(struct engine_fixture *engine_fixture)
{
    struct join joins[LOOPS];
    latch_init(&joins[0].latch, LOOPS);
    for (unsigned i = 0; i < LOOPS; i++) {
        joins[i].caller = (struct caller){engine_fixture, i};
        joins[i].shared = &joins[0];
        fiber_start("caller", join_fiber, &joins[i]);
    }
    latch_wait(&joins[0].latch);
}

/* --- tasks, on the loop that has them ---- */

static void
work_off(void *argument)
{
    struct caller *caller = argument;
    struct engine_fixture *engine_fixture = caller->engine_fixture;
    struct offered *offered = &engine_fixture->offered[caller->loop];
    for (size_t i = 0; i < offered->tasks.count; i++) {
        struct arena *arena = arena_new(0);
        const struct task *task = offered->tasks.items[i];
        struct decision_start decision;
        EXPECT_OK(engine_start_decision(engine_fixture->engine, task, "poll", "worker", arena,
                                        &decision));
        EXPECT_EQ(decision.schedule_id, 2);
        EXPECT_TEXT(decision.workflow_type->name, "type");
        EXPECT_KIND(engine_start_decision(engine_fixture->engine, task, "other", "worker", arena,
                                          &decision),
                    ERR_EVENT_ALREADY_STARTED);
        arena_free(arena);
    }
}

static size_t
count_rows(struct engine_fixture *engine_fixture, enum row_kind kind)
{
    size_t count = 0;
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        struct rows rows;
        struct scan scan = {.partition = PARTITION_OF_SHARD(shard), .kind = kind};
        EXPECT_OK(store_scan(engine_fixture->store, &scan, engine_fixture->arena, &rows));
        count += rows.count;
    }
    return count;
}

LOOP_TEST(engine, calls_from_every_loop_find_their_shard, LOOPS)
{
    struct engine_fixture engine_fixture;
    engine_fixture_open(&engine_fixture);
    run_callers(&engine_fixture);
    EXPECT_EQ(atomic_load(&engine_fixture.offers), WORKFLOWS);
    EXPECT_EQ(count_rows(&engine_fixture, ROW_TRANSFER), WORKFLOWS);
    EXPECT_EQ(count_rows(&engine_fixture, ROW_RUN), WORKFLOWS);
    for (unsigned i = 0; i < LOOPS; i++) {
        struct caller caller = {&engine_fixture, i};
        EXPECT_OK(loop_call(loop_at(i), work_off, &caller, engine_fixture.arena));
    }
    EXPECT_EQ(count_rows(&engine_fixture, ROW_TRANSFER), 0);
    EXPECT(counter_value(metrics_counter(engine_fixture.metrics, "sharditem_created_count",
                                         "Shards that this host took.", NULL)) == SHARDS);
    engine_fixture_close(&engine_fixture);
}

/* --- a task that matching stored needs its row no more ---- */

static void
notify_done(void *argument)
{
    struct caller *caller = argument;
    struct engine_fixture *engine_fixture = caller->engine_fixture;
    for (unsigned loop = 0; loop < LOOPS; loop++) {
        if (loop == caller->loop)
            continue;
        /* Nothing is offered meanwhile: the other loop does not touch its list. */
        for (size_t i = 0; i < engine_fixture->offered[loop].tasks.count; i++)
            engine_task_done(engine_fixture->engine, engine_fixture->offered[loop].tasks.items[i]);
    }
    for (size_t i = 0; i < engine_fixture->offered[caller->loop].tasks.count; i++)
        engine_task_done(engine_fixture->engine,
                         engine_fixture->offered[caller->loop].tasks.items[i]);
}

LOOP_TEST(engine, a_row_goes_when_another_loop_says_so, LOOPS)
{
    struct engine_fixture engine_fixture;
    engine_fixture_open(&engine_fixture);
    run_callers(&engine_fixture);
    struct caller caller = {&engine_fixture, 1};
    EXPECT_OK(loop_call(loop_at(1), notify_done, &caller, engine_fixture.arena));
    engine_close(engine_fixture.engine); /* what is on its way arrives before */
    EXPECT_EQ(count_rows(&engine_fixture, ROW_TRANSFER), 0);
    engine_fixture_open_engine(&engine_fixture);
    EXPECT_EQ(atomic_load(&engine_fixture.offers), WORKFLOWS); /* none is offered again */
    engine_fixture_close(&engine_fixture);
}

/* --- describe and history ---- */

LOOP_TEST(engine, a_description_says_what_the_record_knows, LOOPS)
{
    struct engine_fixture engine_fixture;
    engine_fixture_open(&engine_fixture);
    struct arena *arena = engine_fixture.arena;
    const char *run_id;
    EXPECT_OK(start(&engine_fixture, "wf", "one", arena, &run_id));
    struct run_key key = {engine_fixture.domain_id, "wf", run_id};
    API(DescribeWorkflowExecutionResponse) response;
    EXPECT_OK(engine_describe(engine_fixture.engine, &key, arena, &response));
    const API(WorkflowExecutionInfo) *info = response.workflow_execution_info;
    EXPECT_TEXT(info->workflow_execution->workflow_id, "wf");
    EXPECT_TEXT(info->workflow_execution->run_id, run_id);
    EXPECT_TEXT(info->type->name, "type");
    EXPECT_TEXT(info->task_list, "list");
    EXPECT_EQ(info->history_length, 2);
    EXPECT_EQ(info->close_status, 0);
    EXPECT_EQ(info->execution_status,
              API_VALUE(WORKFLOW_EXECUTION_STATUS__WORKFLOW_EXECUTION_STATUS_STARTED));
    EXPECT(info->start_time != NULL && info->execution_time != NULL && info->update_time != NULL);
    EXPECT(info->close_time == NULL && info->memo != NULL && info->search_attributes != NULL);
    EXPECT_EQ(response.execution_configuration->execution_start_to_close_timeout->seconds, 1000);
    EXPECT_EQ(response.execution_configuration->task_start_to_close_timeout->seconds, 10);
    EXPECT_TEXT(response.execution_configuration->task_list->name, "list");
    EXPECT_EQ(response.execution_configuration->task_list->kind,
              API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
    EXPECT_EQ(info->task_list_info->kind, API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
    EXPECT(!info->is_cron);
    EXPECT_EQ(info->cron_overlap_policy,
              API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_SKIPPED));
    EXPECT_EQ(response.pending_decision->state,
              API_VALUE(PENDING_DECISION_STATE__PENDING_DECISION_STATE_SCHEDULED));
    EXPECT_EQ(response.pending_decision->schedule_id, 2);
    EXPECT(response.pending_decision->scheduled_time != NULL);
    EXPECT(response.pending_decision->started_time == NULL);

    API(TerminateWorkflowExecutionRequest) *request = API_NEW(
        arena, terminate_workflow_execution_request, .workflow_execution = execution("wf", arena));
    EXPECT_OK(engine_terminate(engine_fixture.engine, engine_fixture.domain_id, request, arena));
    EXPECT_OK(engine_describe(engine_fixture.engine, &key, arena, &response));
    info = response.workflow_execution_info;
    EXPECT_EQ(
        info->close_status,
        API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_TERMINATED));
    EXPECT_EQ(info->execution_status,
              API_VALUE(WORKFLOW_EXECUTION_STATUS__WORKFLOW_EXECUTION_STATUS_TERMINATED));
    EXPECT(info->close_time != NULL && response.pending_decision == NULL);
    EXPECT_EQ(info->history_length, 3);
    key.run_id = "00000000-0000-4000-8000-000000000000";
    EXPECT_KIND(engine_describe(engine_fixture.engine, &key, arena, &response),
                ERR_ENTITY_NOT_EXISTS);
    engine_fixture_close(&engine_fixture);
}

LOOP_TEST(engine, history_is_read_in_pages, LOOPS)
{
    struct engine_fixture engine_fixture;
    engine_fixture_open(&engine_fixture);
    struct arena *arena = engine_fixture.arena;
    const char *run_id;
    EXPECT_OK(start(&engine_fixture, "wf", "one", arena, &run_id));
    for (int i = 0; i < 5; i++)
        signal(&engine_fixture, "wf", arena);
    struct history_state state;
    struct run_key key = {engine_fixture.domain_id, "wf", ""};
    EXPECT_OK(engine_history_state(engine_fixture.engine, &key, arena, &state));
    EXPECT_EQ(state.next_event_id, 8);
    struct history_range range = {.shard = engine_shard_of(engine_fixture.engine, "wf"),
                                  .lineage = state.lineage,
                                  .from_event_id = 1,
                                  .to_event_id = 8,
                                  .is_first = true};
    struct history_page page;
    EXPECT_OK(engine_read_history(engine_fixture.engine, &range, arena, &page));
    EXPECT_EQ(page.count, 6);
    EXPECT_EQ(page.next_event_id, 8);
    range.nodes_max = 2;
    EXPECT_OK(engine_read_history(engine_fixture.engine, &range, arena, &page));
    EXPECT_EQ(page.count, 2);
    EXPECT_EQ(page.next_event_id, 4);
    range.from_event_id = page.next_event_id; /* on from there */
    range.is_first = false;
    EXPECT_OK(engine_read_history(engine_fixture.engine, &range, arena, &page));
    EXPECT_EQ(page.node[0].first_event_id, 4);
    range.from_event_id = 2; /* inside a batch */
    range.is_first = true;
    EXPECT_OK(engine_read_history(engine_fixture.engine, &range, arena, &page));
    EXPECT_EQ(page.node[0].first_event_id, 1);
    engine_fixture_close(&engine_fixture);
}
