/* workers.c - what matching and workers ask for: starts of tasks, and how they end. See engine.h.
 */
#include "base/check.h"
#include "base/memory.h"
#include "engine/inside.h"
#include "fiber/loop.h"
#include "fiber/mark.h"
#include "route/route.h"
#include "wire/errors.h"

/* --- starts ---- */

struct start_task_wish {
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
    struct start_task_wish *wish = context;
    struct error *err =
        command_start_decision(step, &wish->name, wish->request_id, wish->identity, wish->decision);
    if (err == NULL)
        shard_ride_queries(wish->shard, mutation_run(step->mutation), step->arena, wish->decision);
    return err;
}

/* A list may have stored the task of a step that was never durable: what has its id now may be
 * another activity, of another list. */
static bool
is_of_list(const struct step *step, const struct task *task)
{
#ifdef CADENZA_PLANT_task_of_any_list
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
    struct start_task_wish *wish = context;
    if (!is_of_list(step, wish->task)) {
        mark("task_of_another_list");
        return errors_entity_not_exists(step->arena, NULL, "The activity is on another list.");
    }
    return command_start_activity(step, &wish->name, wish->request_id, wish->identity,
                                  wish->activity);
}

struct start_call {
    const struct shard_step *step;
    struct start_task_wish *wish;
    struct arena *arena;
    struct error *err;
};

static void
start_on_loop(void *argument)
{
    struct start_call *call = argument;
    struct start_task_wish *wish = call->wish;
    call->err = shard_step(wish->shard, call->step, call->arena);
    if (call->err == NULL && wish->decision != NULL)
        shard_recall_decision(wish->shard, call->arena, wish->decision);
}

static struct error *
start_task(struct engine *engine, const struct task *task, struct start_task_wish *wish,
           struct error *(*decide)(void *context, struct step *step), struct arena *arena)
{
    uint32_t number = engine_shard_of(engine, task->workflow_id);
    wish->shard = engine_shard(engine, number);
    wish->task = task;
    wish->name = (struct task_name){
        .schedule_id = task->schedule_id, .attempt = task->attempt, .activity_id = ""};
    struct shard_step step = {.key = {task->run_domain_id, task->workflow_id, task->run_id},
                              .needs_run = true,
                              .range_id = task->row == 0 ? 0 : task->range_id,
                              .task = task,
                              .decide = decide,
                              .context = wish};
    struct start_call call = {.step = &step, .wish = wish, .arena = arena};
    struct error *err = route_to_shard(number, start_on_loop, &call, arena);
    if (err == NULL)
        err = call.err;
    bool is_void =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED ||
                        err->kind == ERR_EVENT_ALREADY_STARTED);
    if (is_void) {
        mark("void_task_dropped");
        engine_task_done(engine, task);
    }
    return err;
}

struct error *
engine_start_decision(struct engine *engine, const struct task *task, const char *request_id,
                      const char *identity, struct arena *arena, struct decision_start *start)
{
    struct start_task_wish wish = {
        .request_id = request_id, .identity = identity, .decision = start};
    return start_task(engine, task, &wish, decide_start_decision, arena);
}

struct error *
engine_start_activity(struct engine *engine, const struct task *task, const char *request_id,
                      const char *identity, struct arena *arena, struct activity_start *start)
{
    struct start_task_wish wish = {
        .request_id = request_id, .identity = identity, .activity = start};
    return start_task(engine, task, &wish, decide_start_activity, arena);
}

/* --- a row that is not needed any more ---- */

struct done_letter {
    struct letter letter;
    struct engine *engine;
    uint32_t shard;
    uint64_t range_id, row;
};

static void
deliver_done(struct letter *letter)
{
    struct done_letter *done = container_of(letter, struct done_letter, letter);
    shard_task_done(done->engine->shards[done->shard], done->range_id, done->row);
    atomic_fetch_sub(&done->engine->letters, 1);
    memory_free(done);
}

void
engine_task_done(struct engine *engine, const struct task *task)
{
    if (task->row == 0)
        return;
    check(task->shard < engine->options.shard_count);
    struct done_letter *done = memory_zalloc(1, sizeof *done);
    done->letter.deliver = deliver_done;
    done->engine = engine;
    done->shard = task->shard;
    done->range_id = task->range_id;
    done->row = task->row;
    atomic_fetch_add(&engine->letters, 1);
    /* Never refused: there are at most as many as rows that were offered. */
    loop_post_answer(loop_at(task->shard % loop_count()), &done->letter);
}

/* --- decisions ---- */

struct fail_wish {
    const struct task_name *task;
    const API(RespondDecisionTaskFailedRequest) *request;
};

static struct error *
decide_fail_decision(void *context, struct step *step)
{
    struct fail_wish *wish = context;
    return command_fail_decision(step, wish->task, wish->request);
}

struct error *
engine_fail_decision(struct engine *engine, const struct run_key *key, const struct task_name *task,
                     const API(RespondDecisionTaskFailedRequest) *request, struct arena *arena)
{
    struct fail_wish wish = {task, request};
    struct shard_step step = {
        .key = *key, .needs_run = true, .decide = decide_fail_decision, .context = &wish};
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

struct report_wish {
    const struct activity_report *report;
    struct error *(*command)(struct step *step, const struct activity_report *report);
    bool *is_cancel_requested;
    bool is_end; /* the run hears of it */
};

static struct error *
decide_report(void *context, struct step *step)
{
    struct report_wish *wish = context;
    if (wish->is_cancel_requested != NULL)
        return command_heartbeat_activity(step, wish->report, wish->is_cancel_requested);
    return wish->command(step, wish->report);
}

static struct error *
report_activity(struct engine *engine, const struct run_key *key, struct report_wish wish,
                struct arena *arena)
{
    struct shard_step step = {
        .key = *key, .needs_run = true, .decide = decide_report, .context = &wish};
    if (wish.is_end)
        step.foresee = engine_foresee_decision;
    return engine_step(engine, &step, arena);
}

struct error *
engine_complete_activity(struct engine *engine, const struct run_key *key,
                         const struct activity_report *report, struct arena *arena)
{
    struct report_wish wish = {
        .report = report, .command = command_complete_activity, .is_end = true};
    return report_activity(engine, key, wish, arena);
}

struct error *
engine_fail_activity(struct engine *engine, const struct run_key *key,
                     const struct activity_report *report, struct arena *arena)
{
    struct report_wish wish = {.report = report, .command = command_fail_activity};
    return report_activity(engine, key, wish, arena);
}

struct error *
engine_cancel_activity(struct engine *engine, const struct run_key *key,
                       const struct activity_report *report, struct arena *arena)
{
    struct report_wish wish = {
        .report = report, .command = command_cancel_activity, .is_end = true};
    return report_activity(engine, key, wish, arena);
}

struct error *
engine_heartbeat_activity(struct engine *engine, const struct run_key *key,
                          const struct activity_report *report, struct arena *arena,
                          bool *is_cancel_requested)
{
    struct report_wish wish = {.report = report, .is_cancel_requested = is_cancel_requested};
    return report_activity(engine, key, wish, arena);
}
