/* cases_step.c - steps: durable before they are told, in order, all or nothing. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"

void
case_slow(struct rig *rig, int64_t nanoseconds)
{
    memory_base_set_delays(rig->base, nanoseconds, nanoseconds, NS_PER_MS / 10);
}

void
case_an_answer_comes_after_its_commit(struct rig *rig)
{
    rig_take(rig);
    case_slow(rig, 5 * NS_PER_MS);
    const char *run_id;
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 0);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, &run_id));
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 3); /* started, decision scheduled */
    for (int i = 0; i < 10; i++) {
        EXPECT_OK(rig_signal(rig, "wf", rig->arena));
        EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4 + i);
    }
    struct rig_run run;
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT_EQ(run.next_event_id, 13);
    EXPECT_TEXT(run.run_id, run_id);
}

/* --- several at once ---- */

struct starter {
    struct rig *rig;
    const char *request_id;
    struct error *err;
    const char *run_id;
    int64_t stored; /* what the store had when it was answered */
};

static void
start_one(void *argument)
{
    struct starter *starter = argument;
    starter->err = rig_start(starter->rig, "wf", starter->request_id, 100, starter->rig->arena,
                             &starter->run_id);
    starter->stored = rig_stored_next_event_id(starter->rig, "wf");
}

void
case_a_refusal_waits_for_what_it_saw(struct rig *rig)
{
    rig_take(rig);
    case_slow(rig, 20 * NS_PER_MS);
    struct starter first = {.rig = rig, .request_id = "one"};
    struct starter other = {.rig = rig, .request_id = "other"};
    struct starter repeat = {.rig = rig, .request_id = "one"};
    rig_spawn(rig, start_one, &first);
    rig_spawn(rig, start_one, &other);
    rig_spawn(rig, start_one, &repeat);
    rig_join(rig);
    EXPECT_OK(first.err);
    EXPECT_KIND(other.err, ERR_ALREADY_STARTED);
    EXPECT_OK(repeat.err);
    EXPECT_TEXT(repeat.run_id, first.run_id);
    EXPECT_EQ(other.stored, 3); /* the run that it was told of is durable */
    EXPECT_EQ(repeat.stored, 3);
}

void
case_of_two_starts_at_once_one_wins(struct rig *rig)
{
    rig_take(rig);
    struct starter starters[20];
    for (size_t i = 0; i < array_length(starters); i++) {
        starters[i] =
            (struct starter){.rig = rig, .request_id = arena_format(rig->arena, "request-%zu", i)};
        rig_spawn(rig, start_one, &starters[i]);
    }
    rig_join(rig);
    size_t winners = 0;
    for (size_t i = 0; i < array_length(starters); i++) {
        winners += starters[i].err == NULL;
        if (starters[i].err != NULL)
            EXPECT_KIND(starters[i].err, ERR_ALREADY_STARTED);
    }
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 1);
}

struct signaller {
    struct rig *rig;
    struct error *err;
};

static void
signal_one(void *argument)
{
    struct signaller *signaller = argument;
    signaller->err = rig_signal(signaller->rig, "wf", signaller->rig->arena);
}

/* A point is a commit that arrives, a group that was written, a group that is durable. */
void
case_signals_of_one_id_share_groups(struct rig *rig)
{
    enum { SIGNALS = 1000 };
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    case_slow(rig, 2 * NS_PER_MS);
    uint64_t commits = memory_base_commits(rig->base), points = memory_base_points(rig->base);
    struct signaller *signallers = arena_zalloc(rig->arena, SIGNALS, sizeof signallers[0]);
    for (size_t i = 0; i < SIGNALS; i++) {
        signallers[i].rig = rig;
        rig_spawn(rig, signal_one, &signallers[i]);
    }
    rig_join(rig);
    for (size_t i = 0; i < SIGNALS; i++)
        EXPECT_OK(signallers[i].err);
    commits = memory_base_commits(rig->base) - commits;
    points = memory_base_points(rig->base) - points;
    EXPECT(commits >= SIGNALS);
    uint64_t groups = (points - commits) / 2;
    EXPECT(groups <= 50);
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 3 + SIGNALS);
}

void
case_a_step_that_found_no_room_did_nothing(struct rig *rig)
{
    rig->options.batches_max = 3;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    case_slow(rig, 10 * NS_PER_MS);
    struct signaller signallers[20];
    for (size_t i = 0; i < array_length(signallers); i++) {
        signallers[i] = (struct signaller){.rig = rig};
        rig_spawn(rig, signal_one, &signallers[i]);
    }
    rig_join(rig);
    int64_t taken = 0;
    for (size_t i = 0; i < array_length(signallers); i++) {
        taken += signallers[i].err == NULL;
        if (signallers[i].err != NULL)
            EXPECT_KIND(signallers[i].err, ERR_SERVICE_BUSY);
    }
    EXPECT(taken >= 3 && taken < (int64_t)array_length(signallers));
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 3 + taken);
}

/* --- who gives up ---- */

struct hasty {
    struct rig *rig;
    struct fiber *fiber;
    struct error *err;
};

static void
signal_hastily(void *argument)
{
    struct hasty *hasty = argument;
    hasty->fiber = fiber_self();
    fiber_set_deadline(clock_monotonic() + NS_PER_MS);
    hasty->err = rig_signal(hasty->rig, "wf", hasty->rig->arena);
}

void
case_a_caller_that_gives_up_undoes_nothing(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    case_slow(rig, 0);
    memory_base_set_delays(rig->base, 50 * NS_PER_MS, 50 * NS_PER_MS, 0);
    struct hasty hasty[10];
    for (size_t i = 0; i < array_length(hasty); i++) {
        hasty[i] = (struct hasty){.rig = rig};
        rig_spawn(rig, signal_hastily, &hasty[i]);
    }
    rig_join(rig);
    size_t gave_up = 0;
    for (size_t i = 0; i < array_length(hasty); i++)
        gave_up += hasty[i].err != NULL && hasty[i].err->kind == ERR_DEADLINE;
    EXPECT(gave_up > 0);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4 + (int64_t)array_length(hasty));
}

/* --- memory ---- */

void
case_an_id_that_was_never_used_is_not_kept(struct rig *rig)
{
    struct rig_run run;
    rig_take(rig);
    EXPECT_KIND(rig_look(rig, "nobody", rig->arena, &run), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(rig_signal(rig, "nobody", rig->arena), ERR_ENTITY_NOT_EXISTS);
    EXPECT_EQ(rig->shard->tenure->workflows.weight, 0);
    EXPECT_EQ(map_count(rig->shard->tenure->workflows.by_key), 0);
}

void
case_what_was_forgotten_is_read_again(struct rig *rig)
{
    enum { RUNS = 40 };
    rig->options.runs_max = 6;
    rig_take(rig);
    for (int i = 0; i < RUNS; i++) {
        const char *id = arena_format(rig->arena, "wf-%d", i);
        EXPECT_OK(rig_start(rig, id, "one", 100, rig->arena, NULL));
        EXPECT(rig->shard->tenure->workflows.weight <= 6);
    }
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(rig_signal(rig, arena_format(rig->arena, "wf-%d", i), rig->arena));
    EXPECT(rig->shard->tenure->workflows.weight <= 6);
    for (int i = 0; i < RUNS; i++) {
        struct rig_run run;
        EXPECT_OK(rig_look(rig, arena_format(rig->arena, "wf-%d", i), rig->arena, &run));
        EXPECT_EQ(run.next_event_id, 4);
    }
    case_slow(rig, 5 * NS_PER_MS);
    struct signaller signallers[30]; /* more than fit, all pinned until they are durable */
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    for (size_t i = 0; i < array_length(signallers); i++) {
        signallers[i] = (struct signaller){.rig = rig};
        rig_spawn(rig, signal_one, &signallers[i]);
    }
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(rig_signal(rig, arena_format(rig->arena, "wf-%d", i), rig->arena));
    rig_join(rig);
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 3 + (int64_t)array_length(signallers));
}

/* --- refusals ---- */

static struct error *
decide_and_refuse(void *context, struct step *step)
{
    API(SignalWorkflowExecutionRequest) request;
    uber__cadence__api__v1__signal_workflow_execution_request__init(&request);
    request.signal_name = (char *)"never";
    EXPECT_OK(command_signal(step, &request));
    EXPECT(!mutation_is_empty(step->mutation));
    step_begin_run(step);
    return error_new(step->arena, ERR_BAD_REQUEST, "refused");
}

/* What a step writes. Not all rows: those of the domains come and go meanwhile. */
static size_t
count_rows_of_runs(struct rig *rig)
{
    static const enum row_kind kinds[] = {ROW_CURRENT,  ROW_RUN,   ROW_PENDING,     ROW_HISTORY,
                                          ROW_TRANSFER, ROW_TIMER, ROW_REPLICATION, ROW_VISIBLE};
    size_t count = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        count += rig_rows(rig, kinds[i]);
    return count;
}

void
case_a_refused_step_leaves_nothing(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    size_t rows = count_rows_of_runs(rig);
    struct shard_step step = {
        .key = {rig->domain_id, "wf", ""}, .needs_run = true, .decide = decide_and_refuse};
    EXPECT_KIND(shard_step(rig->shard, &step, rig->arena), ERR_BAD_REQUEST);
    EXPECT_EQ(count_rows_of_runs(rig), rows);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 1);
    struct rig_run run;
    EXPECT_KIND(rig_look(rig, "absent", rig->arena, &run), ERR_ENTITY_NOT_EXISTS);
    struct error *err = rig_signal(rig, "absent", rig->arena);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Workflow execution not found.  WorkflowId: absent");
}

void
case_closing_waits_for_steps_in_flight(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    case_slow(rig, 20 * NS_PER_MS);
    struct signaller signallers[5];
    for (size_t i = 0; i < array_length(signallers); i++) {
        signallers[i] = (struct signaller){.rig = rig};
        rig_spawn(rig, signal_one, &signallers[i]);
    }
    fiber_yield(); /* they have been submitted, and wait */
    shard_close(rig->shard);
    rig->shard = NULL;
    rig_join(rig);
    for (size_t i = 0; i < array_length(signallers); i++)
        EXPECT_OK(signallers[i].err);
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 3 + (int64_t)array_length(signallers));
}
