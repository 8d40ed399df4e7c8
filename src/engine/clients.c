/* clients.c - what clients ask for, each one step of a workflow id. See engine.h. */
#include "base/check.h"
#include "engine/inside.h"
#include "route/route.h"

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
engine_step_start(struct engine *engine, const char *domain_id, struct start_request_step *wanted,
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
    return engine_step(engine, &step, arena);
}

struct error *
engine_start(struct engine *engine, const char *domain_id, const struct start_command *command,
             struct arena *arena, struct start_answer *answer)
{
    struct start_request_step wanted = {.command = command, .answer = answer, .is_call = true};
    return engine_step_start(engine, domain_id, &wanted, arena);
}

static struct error *
decide_signal(void *context, struct step *step)
{
    return command_signal(step, context);
}

size_t
engine_foresee_decision(void *context, const struct run *run, const STORED(CurrentRecord) *current,
                        struct foreseen *tasks)
{
    return shard_foresee_decision(run, tasks);
}

struct error *
engine_signal(struct engine *engine, const char *domain_id,
              const API(SignalWorkflowExecutionRequest) *request, struct arena *arena)
{
    struct shard_step step = {.key = {domain_id, workflow_of(request->workflow_execution),
                                      run_of(request->workflow_execution)},
                              .needs_run = true,
                              .is_call = true,
                              .foresee = engine_foresee_decision,
                              .decide = decide_signal,
                              .context = (void *)request};
    return engine_step(engine, &step, arena);
}

static struct error *
decide_request_cancel(void *context, struct step *step)
{
    return command_request_cancel(step, context);
}

struct error *
engine_request_cancel(struct engine *engine, const char *domain_id,
                      const API(RequestCancelWorkflowExecutionRequest) *request,
                      struct arena *arena)
{
    struct shard_step step = {.key = {domain_id, workflow_of(request->workflow_execution),
                                      run_of(request->workflow_execution)},
                              .needs_run = true,
                              .is_call = true,
                              .foresee = engine_foresee_decision,
                              .decide = decide_request_cancel,
                              .context = (void *)request};
    return engine_step(engine, &step, arena);
}

static struct error *
decide_terminate(void *context, struct step *step)
{
    return command_terminate(step, context);
}

struct error *
engine_terminate(struct engine *engine, const char *domain_id,
                 const API(TerminateWorkflowExecutionRequest) *request, struct arena *arena)
{
    struct shard_step step = {.key = {domain_id, workflow_of(request->workflow_execution),
                                      run_of(request->workflow_execution)},
                              .needs_run = true,
                              .decide = decide_terminate,
                              .context = (void *)request};
    return engine_step(engine, &step, arena);
}

/* ---- runs that are put right by hand ---- */

struct reset_call {
    struct shard *shard;
    struct shard_reset wanted;
    struct arena *arena;
    const char *run_id;
    struct error *err;
};

static void
reset_on_loop(void *argument)
{
    struct reset_call *call = argument;
    struct run_key key = {call->wanted.domain_id,
                          workflow_of(call->wanted.request->workflow_execution), ""};
    call->err = shard_admit(call->shard, &key, call->arena);
    if (call->err == NULL)
        call->err = shard_reset(call->shard, &call->wanted, call->arena, &call->run_id);
}

struct error *
engine_reset(struct engine *engine, const char *domain_id,
             const API(ResetWorkflowExecutionRequest) *request, struct arena *arena,
             const char **run_id)
{
    uint32_t number = engine_shard_of(engine, workflow_of(request->workflow_execution));
    struct reset_call call = {.shard = engine->shards[number],
                              .wanted = {.domain_id = domain_id, .request = request},
                              .arena = arena};
    struct error *err = route_to_shard(number, reset_on_loop, &call, arena);
    *run_id = call.run_id;
    return err != NULL ? err : call.err;
}

static struct error *
decide_refresh(void *context, struct step *step)
{
    (void)context;
    return command_refresh(step);
}

struct error *
engine_refresh(struct engine *engine, const struct run_key *key, struct arena *arena)
{
    struct shard_step step = {.key = *key, .needs_run = true, .decide = decide_refresh};
    return engine_step(engine, &step, arena);
}
