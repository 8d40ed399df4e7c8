/* Whatever a worker decides and whatever happens meanwhile, a client library can read the history.
 *
 * What is at stake: a workflow whose history its client cannot read stands still. Method: random
 * lists of 1 to 50 decisions of every kind, with activities that the worker takes itself, on sticky
 * and on ordinary lists, while activities, timers, children and signals come at any time; before
 * each decision the model of a client (client.h) reads what a worker would be given. */
#include <stdio.h>

#include "engine/command/test/activity_calls.h"
#include "engine/command/test/client.h"
#include "wire/message.h"

#define ROUNDS          12
#define WORLDS_PER_SEED 40

struct scene {
    uint64_t seed;
    struct random random;
    struct fixture *fixture;
    struct client client;
    int names; /* of activities, timers and children so far */
    uint64_t local, held_back, buffered, sticky, failed; /* how often it mattered */
};

static uint64_t
below(struct scene *scene, uint64_t bound)
{
    return random_below(&scene->random, bound);
}

/* A name that is new, or one of the last ones. */
static char *
name_of(struct scene *scene, char letter, bool is_new)
{
    int number = is_new ? scene->names++ : scene->names - 1 - (int)below(scene, 60);
    return arena_format(scene->fixture->arena, "%c%d", letter, number);
}

/* ---- lists ---- */

static API(WorkflowExecution) *
other_workflow(struct scene *scene)
{
    return API_NEW(scene->fixture->arena, workflow_execution, .workflow_id = "other");
}

static API(Decision) *
decide_activity(struct scene *scene)
{
    struct fixture *fixture = scene->fixture;
    char *id = name_of(scene, 'a', true);
    API(Decision) *decision =
        below(scene, 3) == 0
            ? retried_activity_decision(fixture, id, 3, 600)
            : activity_decision(fixture, id, (struct activity_timeouts){600, 0, 0, 0});
    activity_attributes(decision)->request_local_dispatch = below(scene, 2) == 0;
    scene->local += activity_attributes(decision)->request_local_dispatch;
    return decision;
}

static API(Decision) *
decide_child(struct scene *scene)
{
    struct fixture *fixture = scene->fixture;
    return API_DECISION(fixture->arena, start_child_workflow_execution,
                        .workflow_id = name_of(scene, 'c', true),
                        .workflow_type = API_NEW(fixture->arena, workflow_type, .name = "kid"));
}

static API(Decision) *
decide_signal(struct scene *scene)
{
    return API_DECISION(scene->fixture->arena, signal_external_workflow_execution,
                        .workflow_execution = other_workflow(scene), .signal_name = "s");
}

static API(Decision) *
decide_cancel_other(struct scene *scene)
{
    return API_DECISION(scene->fixture->arena, request_cancel_external_workflow_execution,
                        .workflow_execution = other_workflow(scene));
}

static API(Decision) *
decide_something(struct scene *scene)
{
    struct fixture *fixture = scene->fixture;
    switch (below(scene, 10)) {
    case 0:
    case 1:
    case 2:
        return decide_activity(scene);
    case 3:
        return cancel_activity_decision(fixture, name_of(scene, 'a', false));
    case 4:
        return fixture_timer(fixture, name_of(scene, 't', true), 1 + (int64_t)below(scene, 20));
    case 5:
        return cancel_timer_decision(fixture, name_of(scene, 't', false));
    case 6:
        return decide_child(scene);
    case 7:
        return decide_signal(scene);
    case 8:
        return decide_cancel_other(scene);
    default:
        return fixture_marker(fixture, "m");
    }
}

static void
answer(struct scene *scene)
{
    struct fixture *fixture = scene->fixture;
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    size_t count = 1 + below(scene, CLIENT_LIST_MAX);
    request->decisions = arena_zalloc(fixture->arena, count, sizeof request->decisions[0]);
    request->n_decisions = count;
    for (size_t i = 0; i < count; i++)
        request->decisions[i] = decide_something(scene);
    if (below(scene, 12) == 0) /* one that cannot be taken: the whole list is not */
        request->decisions[below(scene, count)] = cancel_activity_decision(fixture, "");
    else if (below(scene, 20) == 0)
        request->decisions[count - 1] = fixture_complete_run(fixture);
    request->force_create_new_decision_task = below(scene, 3) == 0;
    request->return_new_decision_task = below(scene, 2) == 0;
    if (below(scene, 2) == 0) {
        request->sticky_attributes =
            API_NEW(fixture->arena, sticky_execution_attributes,
                    .worker_task_list = API_NEW(fixture->arena, task_list, .name = "sticky"),
                    .schedule_to_start_timeout = fixture_duration(fixture, 5));
    }
    scene->buffered += run_has_buffered(fixture_run(fixture));
    client_send(&scene->client, fixture, request->decisions, count);
    EXPECT_OK(fixture_respond(fixture, request));
    scene->held_back += fixture->completed.local_count > 0;
}

/* ---- what happens meanwhile ---- */

static struct error *
report_child(void *context, struct step *step)
{
    const STORED(PendingChild) *child = context;
    if (child->started_id == EVENT_NONE)
        return command_child_started(step, child->initiated_id, "first");
    API(HistoryEvent) *end = API_NEW(
        step->arena, history_event, .attributes_case = EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED),
        .workflow_execution_completed_event_attributes =
            API_NEW(step->arena, workflow_execution_completed_event_attributes));
    struct child_close close = {
        .workflow_id = child->workflow_id, .run_id = "last", .first_run_id = "first", .event = end};
    return command_child_closed(step, child->initiated_id, &close);
}

static struct error *
report_external(void *context, struct step *step)
{
    const STORED(PendingExternal) *external = context;
    return command_end_external(step, external->initiated_id, EXTERNAL_DELIVERED);
}

/* Any record of a map; NULL: it is empty. */
static void *
pick(struct scene *scene, const struct map64 *map)
{
    void *value, *picked = NULL;
    uint64_t seen = 0;
    for (size_t cursor = 0; map64_next(map, &cursor, NULL, &value);)
        if (below(scene, ++seen) == 0)
            picked = value;
    return picked;
}

static void
end_activity(struct scene *scene)
{
    const STORED(PendingActivity) *activity = pick(scene, fixture_run(scene->fixture)->activities);
    if (activity == NULL || activity->started_id == EVENT_NONE)
        return;
    struct task_name name = {
        .schedule_id = activity->schedule_id, .attempt = activity->attempt, .activity_id = ""};
    EXPECT_OK(below(scene, 2) == 0 ? calls_complete(scene->fixture, name)
                                   : calls_fail(scene->fixture, name, "boom"));
}

static void
happen(struct scene *scene)
{
    struct fixture *fixture = scene->fixture;
    struct activity_start start;
    void *record;
    switch (below(scene, 7)) {
    case 0:
        EXPECT_OK(fixture_signal(fixture, "news", ""));
        return;
    case 1:
    case 2:
        (void)fixture_poll_activity(fixture, &start);
        return;
    case 3:
        end_activity(scene);
        return;
    case 4:
        fixture_advance(fixture, 1 + (int64_t)below(scene, 3));
        return;
    case 5:
        record = pick(scene, fixture_run(fixture)->children);
        if (record != NULL)
            EXPECT_OK(fixture_step(fixture, report_child, record));
        return;
    default:
        record = pick(scene, fixture_run(fixture)->externals);
        if (record != NULL)
            EXPECT_OK(fixture_step(fixture, report_external, record));
    }
}

/* Some things happen; never so much that the run ends. */
static void
live_on(struct scene *scene)
{
    for (uint64_t i = below(scene, 8); i > 0; i--)
        happen(scene);
}

static void
have_decision(struct scene *scene)
{
    struct fixture *fixture = scene->fixture;
    if (!run_has_pending_decision(fixture_run(fixture)))
        EXPECT_OK(fixture_signal(fixture, "go on", ""));
    if (!run_has_started_decision(fixture_run(fixture)))
        EXPECT(fixture_poll_decision(fixture));
    int64_t first = fixture->decision.first_event_id, next = (int64_t)scene->client.seen + 1;
    if (fixture->decision.is_sticky)
        EXPECT(first <= next); /* nothing is left out */
    /* A worker whose list was refused forgets the run and begins again. */
    bool is_sticky = fixture->decision.is_sticky && first == next;
    scene->sticky += is_sticky;
    client_read(&scene->client, fixture, is_sticky, scene->seed);
}

static void
play(struct scene *scene)
{
    struct fixture *fixture = scene->fixture = fixture_new();
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->execution_start_to_close_timeout = fixture_duration(fixture, 1000000);
    request->task_start_to_close_timeout = fixture_duration(fixture, 1000);
    EXPECT_OK(fixture_start(fixture, request));
    for (int i = 0; i < ROUNDS && run_is_open(fixture_run(fixture)); i++) {
        live_on(scene);
        have_decision(scene);
        if (below(scene, 2) == 0)
            live_on(scene);
        if (below(scene, 10) == 0) {
            EXPECT_OK(fixture_fail_decision(fixture));
            scene->failed++;
            continue;
        }
        answer(scene);
    }
    client_read(&scene->client, fixture, false, scene->seed);
    fixture_expect_rebuilt(fixture, fixture->run_count - 1);
    fixture_drop(&fixture);
}

ARENA_TEST(client, a_client_can_read_every_history, "A-120")
{
    struct scene *scene = arena_make(arena, struct scene);
    for (int i = 0; i < test_seed_count(); i++) {
        for (uint64_t world = 0; world < WORLDS_PER_SEED; world++) {
            scene->seed = test_seed(i) * 1000 + world;
            random_seed(&scene->random, scene->seed);
            memset(&scene->client, 0, sizeof scene->client);
            scene->names = 0;
            play(scene);
        }
    }
    printf("  %llu activities taken by the decider, %llu lists with some, %llu with events behind "
           "them, %llu sticky decisions, %llu failed ones\n",
           (unsigned long long)scene->local, (unsigned long long)scene->held_back,
           (unsigned long long)scene->buffered, (unsigned long long)scene->sticky,
           (unsigned long long)scene->failed);
    EXPECT(scene->local > 0 && scene->held_back > 0 && scene->buffered > 0);
    EXPECT(scene->sticky > 0 && scene->failed > 0);
}
