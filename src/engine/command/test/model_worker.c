/* model_worker.c - what workers do to a run and to its model. See model_world.h. */
#include <stdio.h>

#include "engine/command/test/model_world.h"
#include "wire/message.h"

/* ---- decisions ---- */

void
world_start_decision(struct world *world)
{
    const STORED(TransferRow) *task =
        fixture_task(world->fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION);
    const STORED(PendingDecision) *pending = fixture_run(world->fixture)->core->decision;
    if (task == NULL && pending == NULL)
        return;
    world_say(world, task == NULL ? "start the decision again" : "start the decision");
    struct task_name name = {
        .schedule_id = task == NULL ? pending->schedule_id : task->schedule_id,
        .attempt = task == NULL ? pending->attempt : task->attempt,
        .activity_id = "",
    };
    const char *request = world_request(world);
    enum model_answer wanted = model_start_decision(world->model, request);
    world_expect_answer(world, fixture_start_decision(world->fixture, &name, request), wanted);
    if (wanted != MODEL_DONE)
        return;
    int64_t least, most, timeout = fixture_run(world->fixture)->core->decision->timeout;
    model_decision_timeout(world->model, &least, &most);
    EXPECT(timeout >= least && timeout <= most);
    if (task != NULL)
        model_set_decision_timeout(world->model, timeout);
    world->transients += world->model->decision.attempt > 0;
}

/* Activities that came with the answer: the worker has their tokens. */
static void
keep_local(struct world *world)
{
    const struct complete_answer *answer = &world->fixture->completed;
    for (size_t i = 0; i < answer->local_count; i++) {
        const STORED(PendingActivity) *activity = answer->local[i].activity;
        if (world->token_count == WORLD_TOKENS_MAX)
            return;
        struct world_token *token = &world->tokens[world->token_count++];
        *token =
            (struct world_token){.name = {.schedule_id = activity->schedule_id, .activity_id = ""}};
        snprintf(token->id, sizeof token->id, "%s", activity->activity_id);
        snprintf(token->request, sizeof token->request, "nobody");
    }
}

void
world_complete_decision(struct world *world)
{
    struct fixture *fixture = world->fixture;
    struct model_order orders[4];
    API(Decision) *decisions[4];
    size_t count = world_below(world, 4);
    for (size_t i = 0; i < count; i++) {
        orders[i] = world_random_order(world);
        decisions[i] = world_make_decision(fixture, &orders[i]);
    }
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->decisions = decisions;
    request->n_decisions = count;
    request->force_create_new_decision_task = world_one_in(world, 6);
    int64_t sticky_timeout = world_one_in(world, 3) ? 5 : 0;
    if (sticky_timeout != 0) {
        request->sticky_attributes =
            API_NEW(fixture->arena, sticky_execution_attributes,
                    .worker_task_list = API_NEW(fixture->arena, task_list, .name = "sticky"),
                    .schedule_to_start_timeout = fixture_duration(fixture, sticky_timeout));
    }
    world_say(world, "complete the decision");
    size_t runs = fixture->run_count;
    world->buffered += world->model->buffer_count > 0;
    enum model_answer wanted = model_complete_decision(
        world->model, orders, count, request->force_create_new_decision_task, sticky_timeout);
    fixture->completed.local_count = 0;
    world_expect_answer(world, fixture_respond(fixture, request), wanted);
    keep_local(world);
    if (fixture->run_count == runs)
        return;
    EXPECT_TEXT(world->model->close, "WorkflowExecutionContinuedAsNew");
    world_follow(world, 0, NULL);
    world->start_request =
        arena_text(fixture->arena, fixture_run(fixture)->core->create_request_id);
}

static void
fail_once(struct world *world)
{
    world_say(world, "fail the decision");
    world_expect_answer(world, fixture_fail_decision(world->fixture),
                        model_fail_decision(world->model, 14));
}

/* Once, or as long as the next attempt comes at once. */
void
world_fail_decision(struct world *world)
{
    fail_once(world);
    if (!world_one_in(world, 3))
        return;
    while (world->model->decision.state == MODEL_SCHEDULED) {
        world_compare(world);
        world_start_decision(world);
        if (world->model->decision.state == MODEL_STARTED)
            fail_once(world);
    }
    world->paused += world->model->retry_time != 0;
}

static struct error *
decide_reset(void *context, struct step *step)
{
    EXPECT(context == NULL);
    return command_reset_sticky(step);
}

void
world_reset_sticky(struct world *world)
{
    world_say(world, "reset the sticky list");
    world_expect_answer(world, fixture_step(world->fixture, decide_reset, NULL),
                        model_reset_sticky(world->model));
}

/* ---- activities ---- */

/* The activity that a token is about, if it still is; NULL: it is not. */
static struct model_activity *
resolve(struct world *world, const struct world_token *token, bool is_by_id)
{
    struct model_activity *activity = model_find_activity(world->model, token->id);
    bool is_same = activity != NULL && activity->scheduled->id == token->name.schedule_id &&
                   activity->attempt == token->name.attempt;
    return is_by_id || is_same ? activity : NULL;
}

/* A random one of those that have a task; NULL: none has. */
static struct model_activity *
pick_sent(struct world *world)
{
    struct model_activity *picked = NULL;
    uint64_t seen = 0;
    for (size_t i = 0; i < MODEL_ACTIVITIES_MAX; i++) {
        struct model_activity *activity = &world->model->activities[i];
        if (activity->is_pending && activity->phase == MODEL_SENT && world_one_in(world, ++seen))
            picked = activity;
    }
    return picked;
}

/* A task that was started before is started again, by the same poll or by another. */
static void
start_again(struct world *world)
{
    struct world_token token = world->tokens[world_below(world, world->token_count)];
    struct model_activity *activity = resolve(world, &token, false);
    const char *request = world_one_in(world, 2) ? "other" : token.request;
    world_say(world, "start an old activity task");
    enum model_answer wanted = activity == NULL || !world->model->is_open
                                   ? MODEL_NOT_FOUND
                                   : model_start_activity(world->model, activity, request);
    struct activity_start start;
    world_expect_answer(world, calls_start_activity(world->fixture, &token.name, request, &start),
                        wanted);
}

void
world_start_activity(struct world *world)
{
    if (world->token_count > 0 && world_one_in(world, 6)) {
        start_again(world);
        return;
    }
    struct model_activity *activity = pick_sent(world);
    if (activity == NULL || !world->model->is_open || world->token_count == WORLD_TOKENS_MAX)
        return;
    struct world_token token = {.name = {.schedule_id = activity->scheduled->id,
                                         .attempt = activity->attempt,
                                         .activity_id = ""}};
    snprintf(token.id, sizeof token.id, "%s", activity->id);
    snprintf(token.request, sizeof token.request, "%s", world_request(world));
    world_say(world, "start an activity");
    struct activity_start start;
    enum model_answer wanted = model_start_activity(world->model, activity, token.request);
    world_expect_answer(
        world, calls_start_activity(world->fixture, &token.name, token.request, &start), wanted);
    EXPECT_EQ(start.activity->attempt, activity->attempt);
    world->tokens[world->token_count++] = token;
}

/* A token of an activity that runs, mostly; sometimes just any. */
static const struct world_token *
pick_token(struct world *world)
{
    const struct world_token *picked = &world->tokens[world_below(world, world->token_count)];
    uint64_t seen = 0;
    if (world_one_in(world, 4))
        return picked;
    for (size_t i = 0; i < world->token_count; i++) {
        const struct world_token *token = &world->tokens[i];
        const struct model_activity *activity = resolve(world, token, false);
        if (activity != NULL && activity->phase == MODEL_RUNNING && world_one_in(world, ++seen))
            picked = token;
    }
    return picked;
}

/* Details of a heartbeat: as many letters as the model's number says. */
#define BEAT        "xxxxxxx"
#define BEAT_LENGTH 7

static struct error *
report(struct world *world, uint64_t verb, struct task_name name, const char *reason,
       bool *is_cancel_requested)
{
    switch (verb) {
    case 0:
        return calls_complete(world->fixture, name);
    case 1:
        return calls_fail(world->fixture, name, reason);
    case 2:
        return calls_cancel(world->fixture, name);
    default:
        return calls_heartbeat(world->fixture, name, BEAT, is_cancel_requested);
    }
}

static enum model_answer
report_to_model(struct world *world, uint64_t verb, struct model_activity *activity,
                const char *reason, bool *is_cancel_requested)
{
    struct model *model = world->model;
    if (!model->is_open)
        return MODEL_CLOSED;
    if (activity == NULL)
        return MODEL_NOT_FOUND;
    int32_t attempt = activity->attempt;
    enum model_answer answer = MODEL_DONE;
    if (verb == 0)
        answer = model_complete_activity(model, activity);
    else if (verb == 1)
        answer = model_fail_activity(model, activity, reason);
    else if (verb == 2)
        answer = model_cancel_activity(model, activity);
    else
        answer = model_heartbeat_activity(model, activity, BEAT_LENGTH, is_cancel_requested);
    world->retries += activity->attempt > attempt;
    return answer;
}

void
world_report(struct world *world)
{
    static const char *const names[] = {"complete an activity", "fail an activity",
                                        "cancel an activity", "beat"};
    if (world->token_count == 0)
        return;
    const struct world_token *token = pick_token(world);
    bool is_by_id = world_one_in(world, 3);
    static const uint8_t verbs[] = {0, 1, 1, 1, 2, 3};
    uint64_t verb = verbs[world_below(world, 6)];
    const char *reason = world_one_in(world, 2) ? "boom" : "bang";
    world_say(world, names[verb]);
    struct task_name name = is_by_id ? calls_by_id(token->id) : token->name;
    bool is_asked = false, is_reported = false;
    enum model_answer wanted =
        report_to_model(world, verb, resolve(world, token, is_by_id), reason, &is_asked);
    world_expect_answer(world, report(world, verb, name, reason, &is_reported), wanted);
    EXPECT_EQ(is_reported, is_asked);
}
