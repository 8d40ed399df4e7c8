/* clients.c - what clients ask for, each one step of a workflow id. See engine.h. */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"

static const char *
workflow_of(const API(WorkflowExecution) *execution)
{
    return execution == NULL ? "" : execution->workflow_id;
}

static const char *
run_of(const API(WorkflowExecution) *execution)
{
    return execution == NULL ? "" : execution->run_id;
}

static struct run_key
key_of(const char *domain_id, const API(WorkflowExecution) *execution)
{
    return (struct run_key){domain_id, workflow_of(execution), run_of(execution)};
}

/* --- starts ---- */

static struct error *
decide_start(void *context, struct step *step)
{
    struct start_request_step *wanted = context;
    struct error *err = (wanted->command->signal == NULL
                             ? command_start
                             : command_signal_with_start)(step, wanted->command, wanted->answer);
    struct mutation *changed = step->begun != NULL ? step->begun : step->mutation;
    bool is_step = err == NULL && changed != NULL && !mutation_is_empty(changed);
    if (is_step)
        mutation_drop_transfer(changed, wanted->dropped);
    return err;
}

static bool
duration_is_set(const Google__Protobuf__Duration *duration)
{
    return duration != NULL && (duration->seconds != 0 || duration->nanos != 0);
}

/* The first decision, unless it waits for something: or for the signalled run its next one. */
static size_t
foresee_start(void *context, const struct run *run, const STORED(CurrentRecord) *current,
              struct foreseen *tasks)
{
    const struct start_command *command = ((const struct start_request_step *)context)->command;
    const API(StartWorkflowExecutionRequest) *request = command->request;
    bool is_open =
        current != NULL &&
        current->close_status ==
            API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_INVALID);
    if (is_open)
        return command->signal == NULL ? 0 : shard_foresee_decision(run, tasks);
    if (command->parent != NULL || request->task_list == NULL ||
        duration_is_set(request->delay_start) || request->first_run_at != NULL ||
        request->cron_schedule[0] != '\0')
        return 0;
    tasks[0] = (struct foreseen){
        .type = TASK_DECISION, .kind = LIST_NORMAL, .list = request->task_list->name};
    return 1;
}

struct error *
engine_step_start(struct shard *shard, const char *domain_id, struct start_request_step *wanted,
                  struct arena *arena)
{
    const API(StartWorkflowExecutionRequest) *request = wanted->command->request;
    check((wanted->range_id == 0) == (wanted->dropped == 0)); /* a row is one of a shard */
    check(!wanted->is_call || wanted->dropped == 0);
    bool may_terminate =
        request->workflow_id_reuse_policy ==
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    struct shard_step step = {.key = {domain_id, request->workflow_id, ""},
                              .needs_run = may_terminate || wanted->command->signal != NULL,
                              .may_be_missing = true,
                              .policy = request->active_cluster_selection_policy,
                              .parent_version = wanted->parent_version,
                              .may_terminate = may_terminate,
                              .may_signal = wanted->command->signal != NULL,
                              .range_id = wanted->range_id,
                              .is_call = wanted->is_call,
                              .foresee = foresee_start,
                              .decide = decide_start,
                              .context = wanted};
    return shard_step(shard, &step, arena);
}

static struct error *
serve_start(void *engine, struct owner owner, const void *request, struct arena *arena,
            void *answer)
{
    const INTERNAL(StartRun) *asked = request;
    INTERNAL(RunStarted) *told = answer;
    const API(SignalWithStartWorkflowExecutionRequest) *signal = asked->signal_with_start;
    struct start_command command = {
        .request = signal == NULL ? asked->request : signal->start_request,
        .signal = signal,
        .partition_keys = (const char *const *)asked->partition_keys,
        .partition_values = (const char *const *)asked->partition_values,
        .partition_count = asked->n_partition_keys,
        .parent = asked->parent};
    struct start_answer started = {0};
    struct start_request_step wanted = {.command = &command, .answer = &started, .is_call = true};
    check(command.request != NULL && asked->n_partition_keys == asked->n_partition_values);
    struct error *err =
        engine_step_start(engine_served_shard(engine, owner), asked->domain_id, &wanted, arena);
    told->run_id = presence_make_text(started.run_id);
    told->is_new = started.is_new;
    return err;
}

/* No answer: the client starts it again with the same request id, and has the same run. A signal
 * that comes with a start is known by that id, too. */
static const struct route_question start_question = {
    .name = "shard.start",
    .request = INTERNAL_TYPE(start_run),
    .answer = INTERNAL_TYPE(run_started),
    .serve = serve_start,
};

struct error *
engine_start(struct engine *engine, const char *domain_id, const struct start_command *command,
             struct arena *arena, struct start_answer *answer)
{
    INTERNAL(StartRun) request = INTERNAL_VALUE(START_RUN__INIT);
    INTERNAL(RunStarted) told = INTERNAL_VALUE(RUN_STARTED__INIT);
    check(command->signal == NULL || command->signal->start_request == command->request);
    request.domain_id = (char *)domain_id;
    if (command->signal != NULL)
        request.signal_with_start = (API(SignalWithStartWorkflowExecutionRequest) *)command->signal;
    else
        request.request = (API(StartWorkflowExecutionRequest) *)command->request;
    request.partition_keys = (char **)command->partition_keys;
    request.partition_values = (char **)command->partition_values;
    request.n_partition_keys = request.n_partition_values = command->partition_count;
    request.parent = (API(ParentExecutionInfo) *)command->parent;
    struct error *err =
        engine_ask(engine, command->request->workflow_id, &start_question, &request, arena, &told);
    *answer = (struct start_answer){told.run_id, told.is_new};
    return err;
}

/* --- calls of runs that are there ---- */

size_t
engine_foresee_decision(void *context, const struct run *run, const STORED(CurrentRecord) *current,
                        struct foreseen *tasks)
{
    return shard_foresee_decision(run, tasks);
}

static struct error *
decide_signal(void *context, struct step *step)
{
    return command_signal(step, context);
}

static struct error *
serve_signal(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    const INTERNAL(SignalRun) *asked = request;
    struct shard_step step = {.key = key_of(asked->domain_id, asked->request->workflow_execution),
                              .needs_run = true,
                              .is_call = true,
                              .foresee = engine_foresee_decision,
                              .decide = decide_signal,
                              .context = asked->request};
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

/* No answer: the client signals again, and is known by its request id. One without an id may be
 * there twice, as when a host crashes. */
static const struct route_question signal_question = {
    .name = "shard.signal",
    .request = INTERNAL_TYPE(signal_run),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_signal,
};

struct error *
engine_signal(struct engine *engine, const char *domain_id,
              const API(SignalWorkflowExecutionRequest) *request, struct arena *arena)
{
    INTERNAL(SignalRun) asked = INTERNAL_VALUE(SIGNAL_RUN__INIT);
    asked.domain_id = (char *)domain_id;
    asked.request = (API(SignalWorkflowExecutionRequest) *)request;
    return engine_ask_done(engine, workflow_of(request->workflow_execution), &signal_question,
                           &asked, arena);
}

static struct error *
decide_request_cancel(void *context, struct step *step)
{
    return command_request_cancel(step, context);
}

static struct error *
serve_request_cancel(void *engine, struct owner owner, const void *request, struct arena *arena,
                     void *answer)
{
    const INTERNAL(CancelRun) *asked = request;
    struct shard_step step = {.key = key_of(asked->domain_id, asked->request->workflow_execution),
                              .needs_run = true,
                              .is_call = true,
                              .foresee = engine_foresee_decision,
                              .decide = decide_request_cancel,
                              .context = asked->request};
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

/* No answer: the client asks again, and is known by its request id, or hears that it was asked for
 * already. */
static const struct route_question request_cancel_question = {
    .name = "shard.request_cancel",
    .request = INTERNAL_TYPE(cancel_run),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_request_cancel,
};

struct error *
engine_request_cancel(struct engine *engine, const char *domain_id,
                      const API(RequestCancelWorkflowExecutionRequest) *request,
                      struct arena *arena)
{
    INTERNAL(CancelRun) asked = INTERNAL_VALUE(CANCEL_RUN__INIT);
    asked.domain_id = (char *)domain_id;
    asked.request = (API(RequestCancelWorkflowExecutionRequest) *)request;
    return engine_ask_done(engine, workflow_of(request->workflow_execution),
                           &request_cancel_question, &asked, arena);
}

static struct error *
decide_terminate(void *context, struct step *step)
{
    return command_terminate(step, context);
}

static struct error *
serve_terminate(void *engine, struct owner owner, const void *request, struct arena *arena,
                void *answer)
{
    const INTERNAL(TerminateRun) *asked = request;
    struct shard_step step = {.key = key_of(asked->domain_id, asked->request->workflow_execution),
                              .needs_run = true,
                              .decide = decide_terminate,
                              .context = asked->request};
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

/* No answer: who asks again hears that the run has ended. */
static const struct route_question terminate_question = {
    .name = "shard.terminate",
    .request = INTERNAL_TYPE(terminate_run),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_terminate,
};

struct error *
engine_terminate(struct engine *engine, const char *domain_id,
                 const API(TerminateWorkflowExecutionRequest) *request, struct arena *arena)
{
    INTERNAL(TerminateRun) asked = INTERNAL_VALUE(TERMINATE_RUN__INIT);
    asked.domain_id = (char *)domain_id;
    asked.request = (API(TerminateWorkflowExecutionRequest) *)request;
    return engine_ask_done(engine, workflow_of(request->workflow_execution), &terminate_question,
                           &asked, arena);
}

/* --- runs that are put right by hand ---- */

static struct error *
serve_reset(void *engine, struct owner owner, const void *request, struct arena *arena,
            void *answer)
{
    const INTERNAL(ResetRun) *asked = request;
    struct shard *shard = engine_served_shard(engine, owner);
    struct shard_reset wanted = {.domain_id = asked->domain_id, .request = asked->request};
    struct run_key key = {asked->domain_id, workflow_of(asked->request->workflow_execution), ""};
    const char *run_id = NULL;
    struct error *err = shard_admit(shard, &key, arena);
    if (err == NULL)
        err = shard_reset(shard, &wanted, arena, &run_id);
    ((INTERNAL(RunReset) *)answer)->run_id = presence_make_text(run_id);
    return err;
}

/* No answer: the client resets again with the same request id, and has the same run. */
static const struct route_question reset_question = {
    .name = "shard.reset",
    .request = INTERNAL_TYPE(reset_run),
    .answer = INTERNAL_TYPE(run_reset),
    .serve = serve_reset,
};

struct error *
engine_reset(struct engine *engine, const char *domain_id,
             const API(ResetWorkflowExecutionRequest) *request, struct arena *arena,
             const char **run_id)
{
    INTERNAL(ResetRun) asked = INTERNAL_VALUE(RESET_RUN__INIT);
    INTERNAL(RunReset) told = INTERNAL_VALUE(RUN_RESET__INIT);
    asked.domain_id = (char *)domain_id;
    asked.request = (API(ResetWorkflowExecutionRequest) *)request;
    struct error *err = engine_ask(engine, workflow_of(request->workflow_execution),
                                   &reset_question, &asked, arena, &told);
    *run_id = told.run_id;
    return err;
}

static struct error *
decide_refresh(void *context, struct step *step)
{
    (void)context;
    return command_refresh(step);
}

static struct error *
serve_refresh(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    struct shard_step step = {
        .key = run_key_from_message(request), .needs_run = true, .decide = decide_refresh};
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

/* No answer: who asks again sends the tasks once more; those that are not needed are void. */
static const struct route_question refresh_question = {
    .name = "shard.refresh",
    .request = INTERNAL_TYPE(run_key),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_refresh,
};

struct error *
engine_refresh(struct engine *engine, const struct run_key *key, struct arena *arena)
{
    INTERNAL(RunKey) request = run_key_to_message(key);
    return engine_ask_done(engine, key->workflow_id, &refresh_question, &request, arena);
}
