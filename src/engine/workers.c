/* workers.c - what matching and workers ask for: starts of tasks, and how they end. See engine.h.
 */
#include "base/check.h"
#include "base/memory.h"
#include "engine/inside.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "route/route.h"
#include "wire/errors.h"

/* --- starts ---- */

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

struct start_task_call {
    const struct shard_step *step;
    struct start_task_request *wanted;
    struct arena *arena;
    struct error *err;
};

static void
start_on_loop(void *argument)
{
    struct start_task_call *call = argument;
    struct start_task_request *wanted = call->wanted;
    call->err = shard_step(wanted->shard, call->step, call->arena);
    if (call->err == NULL && wanted->decision != NULL)
        shard_recall_decision(wanted->shard, call->arena, wanted->decision);
}

static struct error *
start_task(struct engine *engine, const struct task *task, struct start_task_request *wanted,
           struct error *(*decide)(void *context, struct step *step), struct arena *arena)
{
    uint32_t number = engine_shard_of(engine, task->workflow_id);
    check((wanted->decision == NULL) != (wanted->activity == NULL)); /* it is one of them */
    wanted->shard = engine_shard(engine, number);
    wanted->task = task;
    wanted->name = (struct task_name){
        .schedule_id = task->schedule_id, .attempt = task->attempt, .activity_id = ""};
    struct shard_step step = {.key = {task->run_domain_id, task->workflow_id, task->run_id},
                              .needs_run = true,
                              .range_id = task->row == 0 ? 0 : task->range_id,
                              .task = task,
                              .decide = decide,
                              .context = wanted};
    struct start_task_call call = {.step = &step, .wanted = wanted, .arena = arena};
    struct error *err = route_to_shard(number, start_on_loop, &call, arena);
    if (err == NULL)
        err = call.err;
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
    struct start_task_request wanted = {
        .request_id = request_id, .identity = identity, .decision = start};
    return start_task(engine, task, &wanted, decide_start_decision, arena);
}

struct error *
engine_start_activity(struct engine *engine, const struct task *task, const char *request_id,
                      const char *identity, struct arena *arena, struct activity_start *start)
{
    struct start_task_request wanted = {
        .request_id = request_id, .identity = identity, .activity = start};
    return start_task(engine, task, &wanted, decide_start_activity, arena);
}

/* --- a row that is not needed any more ---- */

struct done_message {
    struct loop_message message;
    struct engine *engine;
    uint32_t shard;
    uint64_t range_id, row;
};

static void
deliver_done(struct loop_message *message)
{
    struct done_message *done = container_of(message, struct done_message, message);
    check(done->row != 0 && atomic_load(&done->engine->messages) > 0);
    shard_task_done(done->engine->shards[done->shard], done->range_id, done->row);
    atomic_fetch_sub(&done->engine->messages, 1);
    memory_free(done);
}

void
engine_task_done(struct engine *engine, const struct task *task)
{
    if (task->row == 0)
        return;
    check(task->shard < engine->options.shard_count);
    struct done_message *done = memory_zalloc(1, sizeof *done);
    done->message.deliver = deliver_done;
    done->engine = engine;
    done->shard = task->shard;
    done->range_id = task->range_id;
    done->row = task->row;
    atomic_fetch_add(&engine->messages, 1);
    /* Never refused: there are at most as many as rows that were offered. */
    loop_post_answer(loop_at(task->shard % loop_count()), &done->message);
}

/* --- decisions ---- */

struct fail_request {
    const struct task_name *task;
    const API(RespondDecisionTaskFailedRequest) *request;
};

static struct error *
decide_fail_decision(void *context, struct step *step)
{
    struct fail_request *wanted = context;
    return command_fail_decision(step, wanted->task, wanted->request);
}

struct error *
engine_fail_decision(struct engine *engine, const struct run_key *key, const struct task_name *task,
                     const API(RespondDecisionTaskFailedRequest) *request, struct arena *arena)
{
    struct fail_request wanted = {task, request};
    struct shard_step step = {
        .key = *key, .needs_run = true, .decide = decide_fail_decision, .context = &wanted};
    return engine_step(engine, &step, arena);
}

static struct error *
decide_reset_sticky(void *context, struct step *step)
{
    (void)context;
    return command_reset_sticky(step);
}

struct error *
engine_reset_sticky(struct engine *engine, const struct run_key *key, struct arena *arena)
{
    struct shard_step step = {.key = *key, .needs_run = true, .decide = decide_reset_sticky};
    return engine_step(engine, &step, arena);
}

/* --- activities ---- */

struct report_request {
    const struct activity_report *report;
    struct error *(*command)(struct step *step, const struct activity_report *report);
    bool *is_cancel_requested;
    bool is_end; /* the run hears of it */
};

static struct error *
decide_report(void *context, struct step *step)
{
    struct report_request *wanted = context;
    check((wanted->command == NULL) != (wanted->is_cancel_requested == NULL));
    if (wanted->is_cancel_requested != NULL)
        return command_heartbeat_activity(step, wanted->report, wanted->is_cancel_requested);
    return wanted->command(step, wanted->report);
}

static struct error *
report_activity(struct engine *engine, const struct run_key *key, struct report_request wanted,
                struct arena *arena)
{
    struct shard_step step = {
        .key = *key, .needs_run = true, .decide = decide_report, .context = &wanted};
    if (wanted.is_end)
        step.foresee = engine_foresee_decision;
    return engine_step(engine, &step, arena);
}

struct error *
engine_complete_activity(struct engine *engine, const struct run_key *key,
                         const struct activity_report *report, struct arena *arena)
{
    struct report_request wanted = {
        .report = report, .command = command_complete_activity, .is_end = true};
    return report_activity(engine, key, wanted, arena);
}

struct error *
engine_fail_activity(struct engine *engine, const struct run_key *key,
                     const struct activity_report *report, struct arena *arena)
{
    struct report_request wanted = {.report = report, .command = command_fail_activity};
    return report_activity(engine, key, wanted, arena);
}

struct error *
engine_cancel_activity(struct engine *engine, const struct run_key *key,
                       const struct activity_report *report, struct arena *arena)
{
    struct report_request wanted = {
        .report = report, .command = command_cancel_activity, .is_end = true};
    return report_activity(engine, key, wanted, arena);
}

struct error *
engine_heartbeat_activity(struct engine *engine, const struct run_key *key,
                          const struct activity_report *report, struct arena *arena,
                          bool *is_cancel_requested)
{
    struct report_request wanted = {.report = report, .is_cancel_requested = is_cancel_requested};
    return report_activity(engine, key, wanted, arena);
}
