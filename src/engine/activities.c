/* activities.c - what workers say of activities: how they end, and that they live. See engine.h. */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"

struct report_request {
    struct activity_report report;
    struct error *(*command)(struct step *step, const struct activity_report *report);
    bool *is_cancel_requested; /* NULL: it is no heartbeat */
};

static struct error *
decide_report(void *context, struct step *step)
{
    struct report_request *wanted = context;
    check((wanted->command == NULL) != (wanted->is_cancel_requested == NULL));
    if (wanted->is_cancel_requested != NULL)
        return command_heartbeat_activity(step, &wanted->report, wanted->is_cancel_requested);
    return wanted->command(step, &wanted->report);
}

/* --- where the shard is ---- */

static struct activity_report
report_from_message(const INTERNAL(ReportActivity) * message)
{
    return (struct activity_report){.task = task_name_from_message(message->task),
                                    .identity = message->identity,
                                    .payload = message->payload,
                                    .failure = message->failure};
}

static struct shard_step
report_step(const INTERNAL(ReportActivity) * message, struct report_request *wanted)
{
    wanted->report = report_from_message(message);
    return (struct shard_step){.key = run_key_from_message(message->key),
                               .needs_run = true,
                               .decide = decide_report,
                               .context = wanted};
}

static struct error *
serve_complete(void *engine, struct owner owner, const void *request, struct arena *arena,
               void *answer)
{
    struct report_request wanted = {.command = command_complete_activity};
    struct shard_step step = report_step(request, &wanted);
    step.foresee = engine_foresee_decision; /* the run hears of it */
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

static struct error *
serve_fail(void *engine, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    struct report_request wanted = {.command = command_fail_activity};
    struct shard_step step = report_step(request, &wanted);
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

static struct error *
serve_cancel(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    struct report_request wanted = {.command = command_cancel_activity};
    struct shard_step step = report_step(request, &wanted);
    step.foresee = engine_foresee_decision;
    return shard_step(engine_served_shard(engine, owner), &step, arena);
}

static struct error *
serve_heartbeat(void *engine, struct owner owner, const void *request, struct arena *arena,
                void *answer)
{
    bool is_cancel_requested = false;
    struct report_request wanted = {.is_cancel_requested = &is_cancel_requested};
    struct shard_step step = report_step(request, &wanted);
    struct error *err = shard_step(engine_served_shard(engine, owner), &step, arena);
    ((INTERNAL(ActivityLives) *)answer)->is_cancel_requested = is_cancel_requested;
    return err;
}

/* No answer: the worker says it again, and hears that there is no such activity any more. */
static const struct route_question complete_question = {
    .name = "shard.complete_activity",
    .request = INTERNAL_TYPE(report_activity),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_complete,
};
static const struct route_question fail_question = {
    .name = "shard.fail_activity",
    .request = INTERNAL_TYPE(report_activity),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_fail,
};
static const struct route_question cancel_question = {
    .name = "shard.cancel_activity",
    .request = INTERNAL_TYPE(report_activity),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_cancel,
};
/* No answer: the next heartbeat comes. */
static const struct route_question heartbeat_question = {
    .name = "shard.heartbeat_activity",
    .request = INTERNAL_TYPE(report_activity),
    .answer = INTERNAL_TYPE(activity_lives),
    .serve = serve_heartbeat,
};

/* --- where the call is ---- */

static struct error *
report_activity(struct engine *engine, const struct route_question *question,
                const struct run_key *key, const struct activity_report *report,
                struct arena *arena, void *answer)
{
    INTERNAL(ReportActivity) message = INTERNAL_VALUE(REPORT_ACTIVITY__INIT);
    INTERNAL(RunKey) run = run_key_to_message(key);
    INTERNAL(TaskName) name = task_name_to_message(&report->task);
    message.key = &run;
    message.task = &name;
    message.identity = presence_make_text(report->identity);
    message.payload = (API(Payload) *)report->payload;
    message.failure = (API(Failure) *)report->failure;
    return engine_ask(engine, key->workflow_id, question, &message, arena, answer);
}

struct error *
engine_complete_activity(struct engine *engine, const struct run_key *key,
                         const struct activity_report *report, struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return report_activity(engine, &complete_question, key, report, arena, &answer);
}

struct error *
engine_fail_activity(struct engine *engine, const struct run_key *key,
                     const struct activity_report *report, struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return report_activity(engine, &fail_question, key, report, arena, &answer);
}

struct error *
engine_cancel_activity(struct engine *engine, const struct run_key *key,
                       const struct activity_report *report, struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return report_activity(engine, &cancel_question, key, report, arena, &answer);
}

struct error *
engine_heartbeat_activity(struct engine *engine, const struct run_key *key,
                          const struct activity_report *report, struct arena *arena,
                          bool *is_cancel_requested)
{
    INTERNAL(ActivityLives) answer = INTERNAL_VALUE(ACTIVITY_LIVES__INIT);
    struct error *err = report_activity(engine, &heartbeat_question, key, report, arena, &answer);
    *is_cancel_requested = answer.is_cancel_requested;
    return err;
}
