/* graceful_cross_tasks_test.c - what workflows ask of each other while their domain drains.
 *
 * Each shard of the source turns passive at its own moment. So one that still decides may ask
 * one that no longer does: a signal, a cancel request, the start of a child, the end of a child
 * for its parent, the end of the children of a closed run. None of this may become an event that
 * says "it failed": the next owner carries it out, once. Decisions that ask for all of it are
 * completed a little later in each round, so that every order of the two comes about. */
#include <stdio.h>
#include <string.h>

#include "fiber/fiber.h"
#include "route/owner.h"
#include "sim/scripts/script_drain.h"

#define SOURCE 0
#define TARGET 1
#define ROUNDS 36
#define DELAY  (NS_PER_MS / 2) /* more in each round */

/* Workflow ids, each in another shard than the one before it. */
enum role {
    ASKING, /* signals, cancels, starts a child */
    ASKED,
    CANCELLED,
    CHILD,
    CLOSING, /* its child goes with it */
    ORPHAN,
    TELLING, /* its parent hears of its end */
    HEARING,
    ROLE_COUNT
};
static const char *const names[ROLE_COUNT] = {"asking",  "asked",  "cancelled", "child",
                                              "closing", "orphan", "telling",   "hearing"};

struct cross_tasks_fixture {
    unsigned round;
    uint64_t in_time; /* decisions that came in time, of all rounds */
    uint64_t refused; /* cross-workflow tasks that found a shard passive */
    const char *ids[ROLE_COUNT];
    API(PollForDecisionTaskResponse) *open[ROLE_COUNT]; /* in the source */
};

static struct cross_tasks_fixture *
test_of(const struct script *script)
{
    return script->fixture->test;
}

static void
name_workflows(struct script *script)
{
    struct cross_tasks_fixture *test = test_of(script);
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        uint32_t wanted = i % SIM_SHARDS;
        for (unsigned number = 0; test->ids[i] == NULL; number++) {
            const char *id = arena_format(script->arena, "%s%u", names[i], number);
            if (route_shard_of(slice_text(id), SIM_SHARDS) == wanted)
                test->ids[i] = id;
        }
    }
}

static enum role
role_of(const struct script *script, const char *id)
{
    enum role role = ASKING;
    while (role < ROLE_COUNT && strcmp(test_of(script)->ids[role], id) != 0)
        role++;
    EXPECT(role < ROLE_COUNT);
    return role;
}

/* --- decisions ---- */

static API(Decision) *
start_child(struct script *script, enum role role)
{
    API(Decision) *decision = script_start_child(script, test_of(script)->ids[role]);
    decision->start_child_workflow_execution_decision_attributes->parent_close_policy =
        API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_TERMINATE);
    return decision;
}

static bool
has_child(const API(History) *history)
{
    return script_count_events(history, EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED)) > 0;
}

/* What each decides when it can; parents first start their children. */
static size_t
decide(struct script *script, const API(PollForDecisionTaskResponse) *task,
       API(Decision) **decisions)
{
    const struct cross_tasks_fixture *test = test_of(script);
    enum role role = role_of(script, task->workflow_execution->workflow_id);
    const API(History) *history = task->history;
    size_t count = 0;
    if (role == ASKING && !has_child(history)) {
        decisions[count++] = script_ask_other(script, test->ids[ASKED], "external");
        decisions[count++] = script_cancel_other(script, test->ids[CANCELLED]);
        decisions[count++] = start_child(script, CHILD);
    } else if ((role == CLOSING || role == HEARING) && !has_child(history)) {
        decisions[count++] = start_child(script, role == CLOSING ? ORPHAN : TELLING);
    } else if (role == CLOSING || role == TELLING) {
        decisions[count++] = script_complete_workflow(script);
    }
    return count;
}

#define DECISIONS_MAX 3

/* A decision that is to come later is kept. */
static bool
is_kept(const struct script *script, const API(PollForDecisionTaskResponse) *task)
{
    enum role role = role_of(script, task->workflow_execution->workflow_id);
    bool is_second = role == CLOSING && has_child(task->history);
    return role == ASKING || role == TELLING || is_second;
}

static void
begin_runs(struct script *script)
{
    static const enum role roots[] = {ASKING, ASKED, CANCELLED, CLOSING, HEARING};
    struct cross_tasks_fixture *test = test_of(script);
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        script_start(script, SOURCE, test->ids[roots[i]]);
    while (test->open[ASKING] == NULL || test->open[CLOSING] == NULL ||
           test->open[TELLING] == NULL) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, SOURCE, WITHIN);
        API(Decision) *decisions[DECISIONS_MAX];
        EXPECT(task != NULL);
        if (is_kept(script, task))
            test->open[role_of(script, task->workflow_execution->workflow_id)] = task;
        else
            EXPECT_OK(
                script_complete(script, SOURCE, task, decisions, decide(script, task, decisions)));
    }
}

/* --- what must have happened in the end ---- */

static bool
is_all_done(struct script *script)
{
    const struct cross_tasks_fixture *test = test_of(script);
    API(History) *histories[ROLE_COUNT];
    for (unsigned i = 0; i < ROLE_COUNT; i++)
        histories[i] = script_history(script, TARGET, test->ids[i], "");
    return script_count_signals(histories[ASKED], "external") > 0 &&
           script_count_events(histories[ASKING],
                               EVENT(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED)) > 0 &&
           script_count_events(histories[CANCELLED], EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED)) >
               0 &&
           script_count_events(histories[ASKING], EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)) >
               0 &&
           script_count_events(histories[ASKING], EVENT(CHILD_WORKFLOW_EXECUTION_STARTED)) > 0 &&
           script_count_events(histories[CHILD], EVENT(DECISION_TASK_COMPLETED)) > 0 &&
           script_count_events(histories[ORPHAN], EVENT(WORKFLOW_EXECUTION_TERMINATED)) > 0 &&
           script_count_events(histories[HEARING], EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)) > 0;
}

static void
expect_once(struct script *script)
{
    static const int never[] = {EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED),
                                EVENT(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED),
                                EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED)};
    static const int once[] = {
        EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED), EVENT(CHILD_WORKFLOW_EXECUTION_STARTED),
        EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED), EVENT(WORKFLOW_EXECUTION_TERMINATED),
        EVENT(WORKFLOW_EXECUTION_SIGNALED)};
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        const char *id = test_of(script)->ids[i];
        script_expect_same(script, id);
        const API(History) *history = script_history(script, TARGET, id, "");
        for (size_t j = 0; j < sizeof never / sizeof never[0]; j++)
            EXPECT_EQ(script_count_events(history, never[j]), 0);
        for (size_t j = 0; j < sizeof once / sizeof once[0]; j++)
            EXPECT(script_count_events(history, once[j]) <= 1);
    }
    EXPECT_EQ(world_probe_count(script->sim->world, "history_forked"), 0);
    EXPECT_EQ(world_probe_count(script->sim->world, "divergence_noted"), 0);
}

/* The drain begins while the decisions come. */
struct side {
    struct script script;
    bool is_done;
};

static void
begin_aside(void *argument)
{
    struct side *side = argument;
    side->script.clients = load_clients_new(side->script.sim);
    side->script.arena = arena_new(0);
    script_begin_drain(&side->script, TARGET, 300);
    load_clients_free(side->script.clients);
    arena_free(side->script.arena);
    side->is_done = true;
}

static void
play_round(struct script *script)
{
    struct cross_tasks_fixture *test = test_of(script);
    name_workflows(script);
    begin_runs(script);
    struct side side = {.script = *script};
    fiber_start("drain", begin_aside, &side);
    script_sleep(script, test->round * DELAY + 1);
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        if (test->open[i] == NULL)
            continue;
        API(Decision) *decisions[DECISIONS_MAX];
        size_t count = decide(script, test->open[i], decisions);
        struct error *err = script_complete(script, SOURCE, test->open[i], decisions, count);
        EXPECT(err == NULL || err->kind == ERR_DOMAIN_NOT_ACTIVE);
        test->in_time += err == NULL;
    }
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    while (!side.is_done || !is_all_done(script)) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, TARGET, NS_PER_S);
        API(Decision) *decisions[DECISIONS_MAX];
        size_t count = task == NULL ? 0 : decide(script, task, decisions);
        if (task != NULL)
            EXPECT_OK(script_complete(script, TARGET, task, decisions, count));
        EXPECT(clock_monotonic() < limit);
    }
    expect_once(script);
    test->refused += world_probe_count(script->sim->world, "cross_task_not_active");
}

TEST(graceful_script, what_workflows_ask_of_each_other_never_fails_since_a_domain_drains)
{
    uint64_t in_time = 0, refused = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct cross_tasks_fixture test = {.round = round};
        script_play_on(&(struct script_fixture){.clusters = 2, .run = play_round, .test = &test});
        in_time += test.in_time;
        refused += test.refused;
    }
    printf("%llu of %u decisions in time, %llu cross-workflow tasks found a shard passive\n",
           (unsigned long long)in_time, ROUNDS * 3, (unsigned long long)refused);
    EXPECT(in_time > 0 && in_time < ROUNDS * 3); /* some came before, some after */
    EXPECT(refused > 0);
}
