/* shard_fixture.c - see shard_fixture.h. */
#include "engine/test/shard_fixture.h"

#include "base/check.h"
#include "engine/shard/inside.h"
#include "route/test_answers.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- life ---- */

static bool
shard_fixture_offer(void *context, const struct task *task)
{
    struct shard_fixture *fixture = context;
    if (fixture->is_refusing) {
        fixture->refused++;
        return false;
    }
    const struct writer *writer = fixture->shard->tenure->writer;
    fixture->was_durable_at_offer = writer_durable(writer) == writer_newest(writer);
    vector_push(&fixture->tasks, task_copy(task, fixture->arena));
    return true;
}

static void
shard_fixture_register(struct shard_fixture *fixture)
{
    struct domain *domain = domains_find_name(fixture->domains, "orders");
    if (domain == NULL) {
        API(RegisterDomainRequest) *request =
            API_NEW(fixture->arena, register_domain_request, .name = "orders",
                    .workflow_execution_retention_period =
                        presence_make_duration(fixture->arena, 24 * 3600));
        EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
        domain = domains_find_name(fixture->domains, "orders");
    }
    fixture->domain_id = arena_text(fixture->arena, domain->id);
}

void
shard_fixture_open(struct shard_fixture *fixture, struct memory_base *base)
{
    *fixture =
        (struct shard_fixture){.arena = arena_new(0), .base = base, .store = memory_open(base)};
    fixture->config = config_default();
    EXPECT_OK(cluster_group_load(fixture->config, fixture->arena, &fixture->group));
    fixture->dynamic = dynamic_new(NULL);
    const struct archival_rule archival = {
        .is_enabled = true,
        .default_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED),
        .default_uri = "file:///archive",
    };
    struct domains_options options = {.store = fixture->store,
                                      .group = fixture->group,
                                      .dynamic = fixture->dynamic,
                                      .history_archival = archival,
                                      .visibility_archival = archival};
    EXPECT_OK(domains_open(&options, fixture->arena, &fixture->domains));
    shard_fixture_register(fixture);
    latch_init(&fixture->latch, 0);
    fixture->options =
        (struct shard_options){.number = 1,
                               .store = fixture->store,
                               .domains = fixture->domains,
                               .group = fixture->group,
                               .dynamic = fixture->dynamic,
                               .tasks = {.offer = shard_fixture_offer, .context = fixture},
                               .host = "alone"};
}

void
shard_fixture_archive(struct shard_fixture *fixture)
{
    API(UpdateDomainRequest) *request = API_NEW(fixture->arena, update_domain_request);
    char *paths[] = {"history_archival_status", "visibility_archival_status"};
    request->name = "orders";
    request->update_mask =
        GOOGLE_NEW(fixture->arena, field_mask, .paths = paths, .n_paths = array_length(paths));
    request->history_archival_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED);
    request->visibility_archival_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED);
    EXPECT_MADE(domains_update(fixture->domains, request, fixture->arena, NULL));
}

void
shard_fixture_take(struct shard_fixture *fixture)
{
    fixture->shard = shard_new(&fixture->options);
    EXPECT_ANSWER(shard_take(fixture->shard, fixture->arena));
    EXPECT(shard_is_owned(fixture->shard));
}

void
shard_fixture_restart(struct shard_fixture *fixture)
{
    shard_close(fixture->shard);
    vector_clear(&fixture->tasks);
    shard_fixture_take(fixture);
}

void
shard_fixture_close(struct shard_fixture *fixture)
{
    if (fixture->shard != NULL)
        shard_close(fixture->shard);
    domains_close(fixture->domains);
    dynamic_free(fixture->dynamic);
    config_free(fixture->config);
    store_close(fixture->store);
    vector_free(&fixture->tasks);
    arena_free(fixture->arena);
}

void
shard_fixture_main(void *argument)
{
    struct shard_fixture_body *body = argument;
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, body->base);
    body->run(&fixture);
    shard_fixture_close(&fixture);
}

/* --- fibers ---- */

struct spawned {
    struct shard_fixture *fixture;
    void (*function)(void *argument);
    void *argument;
};

static void
spawned_run(void *argument)
{
    struct spawned *spawned = argument;
    spawned->function(spawned->argument);
    latch_done(&spawned->fixture->latch);
}

void
shard_fixture_spawn(struct shard_fixture *fixture, void (*function)(void *argument), void *argument)
{
    struct spawned *spawned = arena_make(fixture->arena, struct spawned);
    *spawned = (struct spawned){fixture, function, argument};
    latch_add(&fixture->latch, 1);
    fiber_start("spawned", spawned_run, spawned);
}

void
shard_fixture_join(struct shard_fixture *fixture)
{
    latch_wait(&fixture->latch);
}

void
shard_fixture_sleep(int64_t nanoseconds)
{
    struct arena *arena = arena_new(256);
    EXPECT_OK(fiber_sleep(nanoseconds, arena));
    arena_free(arena);
}

/* --- clients ---- */

static API(StartWorkflowExecutionRequest) *
start_request(const char *workflow_id, const char *request_id, int64_t seconds, struct arena *arena)
{
    return API_NEW(
        arena, start_workflow_execution_request, .domain = "orders",
        .workflow_id = (char *)workflow_id, .request_id = (char *)request_id, .identity = "client",
        .workflow_type = API_NEW(arena, workflow_type, .name = "type"),
        .task_list = API_NEW(arena, task_list, .name = "list",
                             .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL)),
        .execution_start_to_close_timeout = presence_make_duration(arena, seconds),
        .task_start_to_close_timeout = presence_make_duration(arena, 10),
        .workflow_id_reuse_policy =
            API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE));
}

struct fixture_start_call {
    struct start_command command;
    struct start_answer answer;
};

static struct error *
decide_start(void *context, struct step *step)
{
    struct fixture_start_call *call = context;
    return command_start(step, &call->command, &call->answer);
}

struct error *
shard_fixture_start(struct shard_fixture *fixture, const char *workflow_id, const char *request_id,
                    int64_t seconds, struct arena *arena, const char **run_id)
{
    static const char *const keys[] = {"isolation-group"};
    struct fixture_start_call call = {
        .command = {.request = start_request(workflow_id, request_id, seconds, arena),
                    .partition_keys = keys,
                    .partition_values = &fixture->isolation_group,
                    .partition_count = fixture->isolation_group == NULL ? 0 : 1}};
    ((API(StartWorkflowExecutionRequest) *)call.command.request)->active_cluster_selection_policy =
        fixture->policy;
    struct shard_step step = {.key = {fixture->domain_id, workflow_id, ""},
                              .may_be_missing = true,
                              .policy = fixture->policy,
                              .decide = decide_start,
                              .context = &call};
    struct error *err = shard_step(fixture->shard, &step, arena);
    if (err == NULL && run_id != NULL)
        *run_id = call.answer.run_id;
    return err;
}

static struct error *
decide_signal(void *context, struct step *step)
{
    return command_signal(step, context);
}

struct error *
shard_fixture_signal(struct shard_fixture *fixture, const char *workflow_id, struct arena *arena)
{
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        arena, signal_workflow_execution_request, .signal_name = "signal", .identity = "client");
    struct shard_step step = {.key = {fixture->domain_id, workflow_id, ""},
                              .needs_run = true,
                              .decide = decide_signal,
                              .context = request};
    return shard_step(fixture->shard, &step, arena);
}

static struct error *
decide_terminate(void *context, struct step *step)
{
    return command_terminate(step, context);
}

struct error *
shard_fixture_terminate(struct shard_fixture *fixture, const char *workflow_id, struct arena *arena)
{
    API(TerminateWorkflowExecutionRequest) *request =
        API_NEW(arena, terminate_workflow_execution_request, .reason = "enough");
    struct shard_step step = {.key = {fixture->domain_id, workflow_id, ""},
                              .needs_run = true,
                              .decide = decide_terminate,
                              .context = request};
    return shard_step(fixture->shard, &step, arena);
}

/* --- workers ---- */

struct fixture_task_call {
    struct task_name name;
    const char *request_id;
    struct decision_start start;
    struct complete_command command;
    struct complete_answer answer;
};

static struct error *
decide_start_decision(void *context, struct step *step)
{
    struct fixture_task_call *call = context;
    return command_start_decision(step, &call->name, call->request_id, "worker", &call->start);
}

static struct error *
decide_complete(void *context, struct step *step)
{
    struct fixture_task_call *call = context;
    return command_complete_decision(step, &call->command, &call->answer);
}

struct error *
shard_fixture_start_decision(struct shard_fixture *fixture, const struct task *task,
                             const char *request_id, struct arena *arena)
{
    struct fixture_task_call call = {
        .name = {.schedule_id = task->schedule_id, .attempt = task->attempt, .activity_id = ""},
        .request_id = request_id};
    struct shard_step step = {.key = {task->run_domain_id, task->workflow_id, task->run_id},
                              .needs_run = true,
                              .range_id = task->range_id,
                              .task = task,
                              .decide = decide_start_decision,
                              .context = &call};
    return shard_step(fixture->shard, &step, arena);
}

static API(Decision) *
make_decision(int64_t seconds, struct arena *arena)
{
    if (seconds == 0)
        return API_DECISION(arena, complete_workflow_execution);
    return API_DECISION(arena, start_timer, .timer_id = "timer",
                        .start_to_fire_timeout = presence_make_duration(arena, seconds));
}

static API(Decision) *
make_activity(int number, struct arena *arena)
{
    return API_DECISION(arena, schedule_activity_task,
                        .activity_id = arena_format(arena, "activity-%d", number),
                        .activity_type = API_NEW(arena, activity_type, .name = "type"),
                        .task_list = API_NEW(arena, task_list, .name = "list"),
                        .schedule_to_close_timeout = presence_make_duration(arena, 90),
                        .schedule_to_start_timeout = presence_make_duration(arena, 90),
                        .start_to_close_timeout = presence_make_duration(arena, 90),
                        .heartbeat_timeout = presence_make_duration(arena, 90));
}

static struct error *
complete_with(struct shard_fixture *fixture, const struct task *task, API(Decision) **decisions,
              size_t count, struct arena *arena)
{
    API(RespondDecisionTaskCompletedRequest) *request =
        API_NEW(arena, respond_decision_task_completed_request, .n_decisions = count,
                .decisions = decisions, .identity = "worker");
    struct fixture_task_call call = {
        .command = {
            .request = request,
            .task = {.schedule_id = task->schedule_id, .attempt = task->attempt, .activity_id = ""},
            .client_name = "",
            .client_feature_version = "",
            .client_library_version = ""}};
    struct shard_step step = {.key = {task->run_domain_id, task->workflow_id, task->run_id},
                              .needs_run = true,
                              .decide = decide_complete,
                              .context = &call};
    return shard_step(fixture->shard, &step, arena);
}

struct error *
shard_fixture_complete(struct shard_fixture *fixture, const struct task *task, int64_t seconds,
                       struct arena *arena)
{
    API(Decision) *decision = make_decision(seconds, arena);
    return complete_with(fixture, task, &decision, 1, arena);
}

struct error *
shard_fixture_schedule(struct shard_fixture *fixture, const struct task *task, int activities,
                       struct arena *arena)
{
    API(Decision) **decisions = arena_zalloc(arena, (size_t)activities, sizeof *decisions);
    for (int i = 0; i < activities; i++)
        decisions[i] = make_activity(i, arena);
    return complete_with(fixture, task, decisions, (size_t)activities, arena);
}

/* --- looking ---- */

struct shard_fixture_looking {
    struct shard_fixture_run *run;
    struct arena *arena;
};

static void
look(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct shard_fixture_looking *looking = context;
    EXPECT_TEXT(current->run_id, run->core->run_id);
    *looking->run = (struct shard_fixture_run){
        .run_id = arena_text(looking->arena, run->core->run_id),
        .next_event_id = run->core->next_event_id,
        .is_open = run_is_open(run),
        .close_time = run->core->close_time,
        .timeout_time = run->core->timeout_time,
        .alarm_time = run->core->alarm_time,
        .timers = map_count(run->timers),
    };
}

struct error *
shard_fixture_look(struct shard_fixture *fixture, const char *workflow_id, struct arena *arena,
                   struct shard_fixture_run *run)
{
    struct shard_fixture_looking looking = {run, arena};
    struct run_key key = {fixture->domain_id, workflow_id, ""};
    return shard_look(fixture->shard, &key, look, &looking, arena);
}

int64_t
shard_fixture_stored_next_event_id(struct shard_fixture *fixture, const char *workflow_id)
{
    struct arena *arena = arena_new(0);
    struct partition partition = PARTITION_OF_SHARD(fixture->options.number);
    STORED(CurrentRecord) *current;
    struct run *run = NULL;
    EXPECT_OK(current_load(fixture->store, partition, fixture->domain_id, workflow_id, arena,
                           &current, NULL));
    if (current != NULL) {
        struct run_key key = {fixture->domain_id, workflow_id, current->run_id};
        EXPECT_OK(run_load(fixture->store, partition, &key, arena, &run, NULL));
        EXPECT(run != NULL);
    }
    int64_t next_event_id = run == NULL ? 0 : run->core->next_event_id;
    if (run != NULL)
        run_free(run);
    arena_free(arena);
    return next_event_id;
}

size_t
shard_fixture_rows(struct shard_fixture *fixture, enum row_kind kind)
{
    struct arena *arena = arena_new(0);
    struct rows rows;
    struct scan scan = {.partition = PARTITION_OF_SHARD(fixture->options.number), .kind = kind};
    EXPECT_OK(store_scan(fixture->store, &scan, arena, &rows));
    size_t count = rows.count;
    arena_free(arena);
    return count;
}
