/* workers.c - what matching and workers ask for: starts of tasks, and how they end. See engine.h.
 */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "engine/shard/starts.h"
#include "fiber/probe.h"
#include "wire/errors.h"

INTERNAL(TaskName)
task_name_to_message(const struct task_name *name)
{
    INTERNAL(TaskName) message = INTERNAL_VALUE(TASK_NAME__INIT);
    message.schedule_id = name->schedule_id;
    message.attempt = name->attempt;
    message.activity_id = presence_make_text(name->activity_id);
    return message;
}

struct task_name
task_name_from_message(const INTERNAL(TaskName) * message)
{
    return (struct task_name){.schedule_id = message->schedule_id,
                              .attempt = message->attempt,
                              .activity_id = message->activity_id};
}

/* --- starts ---- */

/* One of the two is set. */
struct start_task_request {
    struct shard *shard;
    const struct task *task;
    struct task_name name;
    const char *request_id, *identity;
    struct decision_start *decision;
    struct activity_start *activity;
};

static struct error *
decide_start_decision(void *context, struct step *step)
{
    struct start_task_request *wanted = context;
    struct error *err = command_start_decision(step, &wanted->name, wanted->request_id,
                                               wanted->identity, wanted->decision);
    if (err == NULL)
        shard_ride_queries(wanted->shard, mutation_run(step->mutation), step->arena,
                           wanted->decision);
    return err;
}

/* A list may have stored the task of a step that was never durable: what has its id now may be
 * another activity, of another list. */
static bool
is_of_list(const struct step *step, const struct task *task)
{
#ifdef CADENZA_FAULT_task_of_any_list
    return true;
#endif
    const STORED(PendingActivity) *activity =
        run_find_activity(mutation_run(step->mutation), task->schedule_id);
    return activity == NULL || activity->task_list == NULL ||
           strcmp(activity->task_list->name, task->list) == 0;
}

static struct error *
decide_start_activity(void *context, struct step *step)
{
    struct start_task_request *wanted = context;
    if (!is_of_list(step, wanted->task)) {
        probe("task_of_another_list");
        return errors_entity_not_exists(step->arena, NULL, "The activity is on another list.");
    }
    return command_start_activity(step, &wanted->name, wanted->request_id, wanted->identity,
                                  wanted->activity);
}

static struct error *
step_start_task(struct start_task_request *wanted, const INTERNAL(StartTask) * asked,
                struct error *(*decide)(void *context, struct step *step), struct arena *arena)
{
    struct task task = task_from_message(asked->task);
    check((wanted->decision == NULL) != (wanted->activity == NULL)); /* it is one of them */
    check(!task_is_query(&task));
    wanted->task = &task;
    wanted->name = (struct task_name){
        .schedule_id = task.schedule_id, .attempt = task.attempt, .activity_id = ""};
    wanted->request_id = asked->request_id;
    wanted->identity = asked->identity;
    struct shard_step step = {.key = {task.run_domain_id, task.workflow_id, task.run_id},
                              .needs_run = true,
                              .range_id = task.row == 0 ? 0 : task.range_id,
                              .task = &task,
                              .decide = decide,
                              .context = wanted};
    return shard_step(wanted->shard, &step, arena);
}

static struct error *
serve_start_decision(void *engine, struct owner owner, const void *request, struct arena *arena,
                     void *answer)
{
    struct decision_start start = {0};
    struct start_task_request wanted = {.shard = engine_served_shard(engine, owner),
                                        .decision = &start};
    struct error *err = step_start_task(&wanted, request, decide_start_decision, arena);
    if (err != NULL)
        return err;
    shard_recall_decision(wanted.shard, arena, &start);
    decision_start_to_message(&start, arena, answer);
    return NULL;
}

static struct error *
serve_start_activity(void *engine, struct owner owner, const void *request, struct arena *arena,
                     void *answer)
{
    struct activity_start start = {0};
    struct start_task_request wanted = {.shard = engine_served_shard(engine, owner),
                                        .activity = &start};
    struct error *err = step_start_task(&wanted, request, decide_start_activity, arena);
    if (err == NULL)
        activity_start_to_message(&start, answer);
    return err;
}

/* No answer: who holds the poll asks again with the same request id, and has the same start, or
 * gives the task back to its list. It does not come twice by itself: a task that its list had
 * stored, and whose run is not active here, would be kept by the shard twice. */
static const struct route_question start_decision_question = {
    .name = "shard.start_decision",
    .request = INTERNAL_TYPE(start_task),
    .answer = INTERNAL_TYPE(decision_start),
    .serve = serve_start_decision,
};
static const struct route_question start_activity_question = {
    .name = "shard.start_activity",
    .request = INTERNAL_TYPE(start_task),
    .answer = INTERNAL_TYPE(activity_start),
    .serve = serve_start_activity,
};

static struct error *
ask_for_start(struct engine *engine, const struct route_question *question, const struct task *task,
              const char *request_id, const char *identity, struct arena *arena, void *answer)
{
    INTERNAL(StartTask) request = INTERNAL_VALUE(START_TASK__INIT);
    INTERNAL(Task) what = task_to_message(task);
    request.task = &what;
    request.request_id = presence_make_text(request_id);
    request.identity = presence_make_text(identity);
    struct error *err = engine_ask(engine, task->workflow_id, question, &request, arena, answer);
    bool is_void =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED ||
                        err->kind == ERR_EVENT_ALREADY_STARTED);
    if (is_void) {
        probe("void_task_dropped");
        engine_task_done(engine, task);
    }
    return err;
}

struct error *
engine_start_decision(struct engine *engine, const struct task *task, const char *request_id,
                      const char *identity, struct arena *arena, struct decision_start *start)
{
    INTERNAL(DecisionStart) told = INTERNAL_VALUE(DECISION_START__INIT);
    struct error *err =
        ask_for_start(engine, &start_decision_question, task, request_id, identity, arena, &told);
    if (err == NULL)
        decision_start_from_message(&told, arena, start);
    return err;
}

struct error *
engine_start_activity(struct engine *engine, const struct task *task, const char *request_id,
                      const char *identity, struct arena *arena, struct activity_start *start)
{
    INTERNAL(ActivityStart) told = INTERNAL_VALUE(ACTIVITY_START__INIT);
    struct error *err =
        ask_for_start(engine, &start_activity_question, task, request_id, identity, arena, &told);
    if (err == NULL)
        *start = activity_start_from_message(&told);
    return err;
}

/* --- decisions that failed; completed ones are in completion.c ---- */

struct fail_request {
    struct task_name task;
    const API(RespondDecisionTaskFailedRequest) *request;
};

static struct error *
decide_fail_decision(void *context, struct step *step)
{
    struct fail_request *wanted = context;
    return command_fail_decision(step, &wanted->task, wanted->request);
}

static struct error *
serve_fail_decision(void *engine, struct owner owner, const void *request, struct arena *arena,
                    void *answer)
{
    const INTERNAL(FailDecision) *asked = request;
    struct fail_request wanted = {task_name_from_message(asked->task), asked->request};
    struct shard_step step = {.key = run_key_from_message(asked->key),
                              .needs_run = true,
                              .decide = decide_fail_decision,
                              .context = &wanted};
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

/* No answer: the worker says it again, and hears that there is no such decision any more. */
static const struct route_question fail_decision_question = {
    .name = "shard.fail_decision",
    .request = INTERNAL_TYPE(fail_decision),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_fail_decision,
};

struct error *
engine_fail_decision(struct engine *engine, const struct run_key *key, const struct task_name *task,
                     const API(RespondDecisionTaskFailedRequest) *request, struct arena *arena)
{
    INTERNAL(FailDecision) asked = INTERNAL_VALUE(FAIL_DECISION__INIT);
    INTERNAL(RunKey) run = run_key_to_message(key);
    INTERNAL(TaskName) name = task_name_to_message(task);
    asked.key = &run;
    asked.task = &name;
    asked.request = (API(RespondDecisionTaskFailedRequest) *)request;
    return engine_ask_done(engine, key->workflow_id, &fail_decision_question, &asked, arena);
}

static struct error *
decide_reset_sticky(void *context, struct step *step)
{
    (void)context;
    return command_reset_sticky(step);
}

static struct error *
serve_reset_sticky(void *engine, struct owner owner, const void *request, struct arena *arena,
                   void *answer)
{
    struct shard_step step = {
        .key = run_key_from_message(request), .needs_run = true, .decide = decide_reset_sticky};
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

/* No answer: the worker asks again, or its sticky list is found to be without polls. */
static const struct route_question reset_sticky_question = {
    .name = "shard.reset_sticky",
    .request = INTERNAL_TYPE(run_key),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_reset_sticky,
};

struct error *
engine_reset_sticky(struct engine *engine, const struct run_key *key, struct arena *arena)
{
    INTERNAL(RunKey) request = run_key_to_message(key);
    return engine_ask_done(engine, key->workflow_id, &reset_sticky_question, &request, arena);
}
