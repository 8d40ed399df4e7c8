/* growth_test.c - a step costs the same whatever the run has behind it and what is pending.
 *
 * What is at stake: a workflow with ten thousand pending activities or a hundred thousand events
 * stays usable. Method: the same turn of seven steps (a signal, a decision that schedules an
 * activity, its work, another decision) on runs of many sizes, through commands, applying and the
 * rows of the commit. Rows and bytes must not grow; CPU is printed, as is that of a wake-up. */
#include <stdio.h>
#include <time.h>

#include "engine/command/test/activity_calls.h"
#include "wire/message.h"

#define TURNS 200

struct growth {
    struct fixture *fixture;
    struct run *run;
    struct arena *arena; /* of the step */
    size_t rows, bytes;
    unsigned count; /* of activities and signals so far, for names */
};

/* ns that this thread has worked. */
static int64_t
cpu_time(void)
{
    struct timespec time;
    /* tidy: allow clock_gettime - CPU is printed, nothing depends on it */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * FIXTURE_SECOND + time.tv_nsec;
}

static struct error *
step(struct growth *growth, struct error *(*decide)(void *context, struct step *step),
     void *context)
{
    struct fixture *fixture = growth->fixture;
    arena_reset(growth->arena);
    struct step step = {.arena = growth->arena,
                        .context = &fixture->context,
                        .domain_id = fixture->domain->id,
                        .workflow_id = "wf",
                        .current = fixture->current};
    step.mutation = mutation_begin(growth->run, &fixture->context, growth->arena);
    struct error *err = decide(context, &step);
    struct partition partition = {0};
    struct batch *batch = batch_new(growth->arena, partition, 1);
    struct effects effects;
    mutation_finish(step.mutation, batch, &effects);
    growth->rows += batch->count;
    growth->bytes += batch->bytes;
    run_compact(growth->run);
    return err;
}

static struct error *
decide_signal(void *context, struct step *step)
{
    struct growth *growth = context;
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(step->arena, signal_workflow_execution_request, .signal_name = "news",
                .request_id = arena_format(step->arena, "request-%09u", growth->count++));
    return command_signal(step, request);
}

static struct error *
decide_start(void *context, struct step *step)
{
    struct growth *growth = context;
    struct decision_start start;
    struct task_name task = {.schedule_id = growth->run->core->decision->schedule_id,
                             .attempt = growth->run->core->decision->attempt};
    return command_start_decision(step, &task, "poll", "worker", &start);
}

/* A completion with so many activities. */
struct completing {
    struct growth *growth;
    unsigned activities, timers;
};

static API(Decision) *
new_activity(struct completing *completing, struct arena *arena)
{
    struct fixture lent = {.arena = arena};
    const char *id = arena_format(arena, "a%09u", completing->growth->count++);
    return activity_decision(&lent, id, (struct activity_timeouts){3600, 3600, 3600, 0});
}

static API(Decision) *
new_timer(struct completing *completing, struct arena *arena)
{
    struct fixture lent = {.arena = arena};
    unsigned number = completing->growth->count++;
    return fixture_timer(&lent, arena_format(arena, "t%09u", number), 1000 + number % 1000);
}

static struct error *
decide_complete(void *context, struct step *step)
{
    struct completing *completing = context;
    const STORED(PendingDecision) *decision = completing->growth->run->core->decision;
    API(RespondDecisionTaskCompletedRequest) *request = API_NEW(
        step->arena, respond_decision_task_completed_request,
        .decisions = arena_zalloc(step->arena, completing->activities + completing->timers + 1,
                                  sizeof(API(Decision) *)));
    for (unsigned i = 0; i < completing->activities; i++)
        request->decisions[request->n_decisions++] = new_activity(completing, step->arena);
    for (unsigned i = 0; i < completing->timers; i++)
        request->decisions[request->n_decisions++] = new_timer(completing, step->arena);
    struct complete_command command = {
        .request = request,
        .task = {.schedule_id = decision->schedule_id, .attempt = decision->attempt},
        .client_name = "",
        .client_feature_version = "",
        .client_library_version = ""};
    struct complete_answer answer;
    return command_complete_decision(step, &command, &answer);
}

static struct error *
decide_work(void *context, struct step *step)
{
    const char *id = context;
    const STORED(PendingActivity) *activity =
        run_find_activity_id(mutation_run(step->mutation), id);
    struct task_name task = {.schedule_id = activity->schedule_id};
    struct activity_start start;
    if (activity->started_id == EVENT_NONE)
        return command_start_activity(step, &task, "poll", "worker", &start);
    struct activity_report report = {.task = task, .identity = "worker"};
    return command_complete_activity(step, &report);
}

static struct error *
decide_wake(void *context, struct step *step)
{
    (void)context;
    command_wake(step);
    mutation_core(step->mutation)->alarm_row = 0;
    mutation_core(step->mutation)->alarm_time = 0;
    return NULL;
}

/* One decision with so many new activities and timers. */
static void
decide_once(struct growth *growth, unsigned activities, unsigned timers)
{
    struct completing completing = {growth, activities, timers};
    EXPECT_OK(step(growth, decide_start, growth));
    EXPECT_OK(step(growth, decide_complete, &completing));
}

static void
turn(struct growth *growth)
{
    char id[16];
    EXPECT_OK(step(growth, decide_signal, growth));
    snprintf(id, sizeof id, "a%09u", growth->count);
    decide_once(growth, 1, 0);
    EXPECT_OK(step(growth, decide_work, id));
    EXPECT_OK(step(growth, decide_work, id));
    decide_once(growth, 0, 0);
}

struct cost {
    size_t rows, bytes;
    int64_t turn_ns, wake_ns;
};

static struct cost
measure(unsigned activities, unsigned timers, int64_t events)
{
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    fixture_configure(fixture, "history.maximumSignalsPerExecution: [{value: 0}]\n");
    fixture_begin(fixture);
    fixture->context.now += FIXTURE_SECOND;
    struct growth growth = {.fixture = fixture, .run = fixture_run(fixture), .arena = arena_new(0)};
    decide_once(&growth, 0, 0);
    for (unsigned left = activities + timers; left > 0;) {
        unsigned count = left < 1000 ? left : 1000;
        EXPECT_OK(step(&growth, decide_signal, &growth));
        decide_once(&growth, activities > 0 ? count : 0, activities > 0 ? 0 : count);
        left -= count;
    }
    while (growth.run->core->next_event_id < events)
        turn(&growth);
    growth.rows = growth.bytes = 0;
    int64_t begun = cpu_time();
    for (int i = 0; i < TURNS; i++)
        turn(&growth);
    struct cost cost = {
        .rows = growth.rows, .bytes = growth.bytes, .turn_ns = (cpu_time() - begun) / TURNS};
    begun = cpu_time();
    for (int i = 0; i < TURNS; i++)
        EXPECT_OK(step(&growth, decide_wake, NULL));
    cost.wake_ns = (cpu_time() - begun) / TURNS;
    printf("    %6u activities %6u timers %7lld events: a step %6.1f us, %.1f rows, %zu bytes; a "
           "wake-up %6.1f us\n",
           activities, timers, (long long)growth.run->core->next_event_id - 1,
           (double)cost.turn_ns / 7000, (double)cost.rows / (7 * TURNS), cost.bytes / (7 * TURNS),
           (double)cost.wake_ns / 1000);
    arena_free(growth.arena);
    return cost;
}

static void
expect_same(struct cost small, struct cost large)
{
    EXPECT_EQ(large.rows, small.rows);
    EXPECT(large.bytes < small.bytes + small.bytes / 20); /* larger numbers are longer */
}

/* An activity that is alone has no row: many are compared with a few. */
TEST(growth, a_step_writes_the_same_whatever_the_run_has_behind_it)
{
    struct cost alone = measure(0, 0, 0), few = measure(2, 0, 0);
    EXPECT(alone.rows < few.rows);
    expect_same(few, measure(1000, 0, 0));
    expect_same(few, measure(10000, 0, 0));
    expect_same(alone, measure(0, 10000, 0));
    expect_same(alone, measure(0, 0, 10000));
    expect_same(alone, measure(0, 0, 100000));
}
