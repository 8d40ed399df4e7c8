/* cases_step.c - steps: durable before they are told, in order, all or nothing. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"

void
case_slow(struct shard_fixture *fixture, int64_t nanoseconds)
{
    memory_base_set_delays(fixture->base, nanoseconds, nanoseconds, NS_PER_MS / 10);
}

void
case_an_answer_comes_after_its_commit(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    case_slow(fixture, 5 * NS_PER_MS);
    const char *run_id;
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 0);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, &run_id));
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"),
              3); /* started, decision scheduled */
    for (int i = 0; i < 10; i++) {
        EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
        EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 4 + i);
    }
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT_EQ(run.next_event_id, 13);
    EXPECT_TEXT(run.run_id, run_id);
}

/* --- several at once ---- */

struct starter {
    struct shard_fixture *fixture;
    const char *request_id;
    struct error *err;
    const char *run_id;
    int64_t stored; /* what the store had when it was answered */
};

static void
start_one(void *argument)
{
    struct starter *starter = argument;
    starter->err = shard_fixture_start(starter->fixture, "wf", starter->request_id, 100,
                                       starter->fixture->arena, &starter->run_id);
    starter->stored = shard_fixture_stored_next_event_id(starter->fixture, "wf");
}

void
case_a_refusal_waits_for_what_it_saw(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    case_slow(fixture, 20 * NS_PER_MS);
    struct starter first = {.fixture = fixture, .request_id = "one"};
    struct starter other = {.fixture = fixture, .request_id = "other"};
    struct starter repeat = {.fixture = fixture, .request_id = "one"};
    shard_fixture_spawn(fixture, start_one, &first);
    shard_fixture_spawn(fixture, start_one, &other);
    shard_fixture_spawn(fixture, start_one, &repeat);
    shard_fixture_join(fixture);
    EXPECT_OK(first.err);
    EXPECT_KIND(other.err, ERR_ALREADY_STARTED);
    EXPECT_OK(repeat.err);
    EXPECT_TEXT(repeat.run_id, first.run_id);
    EXPECT_EQ(other.stored, 3); /* the run that it was told of is durable */
    EXPECT_EQ(repeat.stored, 3);
}

void
case_of_two_starts_at_once_one_wins(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    struct starter starters[20];
    for (size_t i = 0; i < array_length(starters); i++) {
        starters[i] = (struct starter){
            .fixture = fixture, .request_id = arena_format(fixture->arena, "request-%zu", i)};
        shard_fixture_spawn(fixture, start_one, &starters[i]);
    }
    shard_fixture_join(fixture);
    size_t winners = 0;
    for (size_t i = 0; i < array_length(starters); i++) {
        winners += starters[i].err == NULL;
        if (starters[i].err != NULL)
            EXPECT_KIND(starters[i].err, ERR_ALREADY_STARTED);
    }
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 1);
}

struct signaller {
    struct shard_fixture *fixture;
    struct error *err;
};

static void
signal_one(void *argument)
{
    struct signaller *signaller = argument;
    signaller->err = shard_fixture_signal(signaller->fixture, "wf", signaller->fixture->arena);
}

/* A point is a commit that arrives, a group that was written, a group that is durable. */
void
case_signals_of_one_id_share_groups(struct shard_fixture *fixture)
{
    enum { SIGNALS = 1000 };
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    case_slow(fixture, 2 * NS_PER_MS);
    uint64_t commits = memory_base_commits(fixture->base),
             points = memory_base_points(fixture->base);
    struct signaller *signallers = arena_zalloc(fixture->arena, SIGNALS, sizeof signallers[0]);
    for (size_t i = 0; i < SIGNALS; i++) {
        signallers[i].fixture = fixture;
        shard_fixture_spawn(fixture, signal_one, &signallers[i]);
    }
    shard_fixture_join(fixture);
    for (size_t i = 0; i < SIGNALS; i++)
        EXPECT_OK(signallers[i].err);
    commits = memory_base_commits(fixture->base) - commits;
    points = memory_base_points(fixture->base) - points;
    EXPECT(commits >= SIGNALS);
    uint64_t groups = (points - commits) / 2;
    EXPECT(groups <= 50);
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 3 + SIGNALS);
}

void
case_a_step_that_found_no_room_did_nothing(struct shard_fixture *fixture)
{
    fixture->options.batches_max = 3;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    case_slow(fixture, 10 * NS_PER_MS);
    struct signaller signallers[20];
    for (size_t i = 0; i < array_length(signallers); i++) {
        signallers[i] = (struct signaller){.fixture = fixture};
        shard_fixture_spawn(fixture, signal_one, &signallers[i]);
    }
    shard_fixture_join(fixture);
    int64_t taken = 0;
    for (size_t i = 0; i < array_length(signallers); i++) {
        taken += signallers[i].err == NULL;
        if (signallers[i].err != NULL)
            EXPECT_KIND(signallers[i].err, ERR_SERVICE_BUSY);
    }
    EXPECT(taken >= 3 && taken < (int64_t)array_length(signallers));
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 3 + taken);
}

/* --- who gives up ---- */

struct hasty {
    struct shard_fixture *fixture;
    struct fiber *fiber;
    struct error *err;
};

static void
signal_hastily(void *argument)
{
    struct hasty *hasty = argument;
    hasty->fiber = fiber_self();
    fiber_set_deadline(clock_monotonic() + NS_PER_MS);
    hasty->err = shard_fixture_signal(hasty->fixture, "wf", hasty->fixture->arena);
}

void
case_a_caller_that_gives_up_undoes_nothing(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    case_slow(fixture, 0);
    memory_base_set_delays(fixture->base, 50 * NS_PER_MS, 50 * NS_PER_MS, 0);
    struct hasty hasty[10];
    for (size_t i = 0; i < array_length(hasty); i++) {
        hasty[i] = (struct hasty){.fixture = fixture};
        shard_fixture_spawn(fixture, signal_hastily, &hasty[i]);
    }
    shard_fixture_join(fixture);
    size_t gave_up = 0;
    for (size_t i = 0; i < array_length(hasty); i++)
        gave_up += hasty[i].err != NULL && hasty[i].err->kind == ERR_DEADLINE;
    EXPECT(gave_up > 0);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 4 + (int64_t)array_length(hasty));
}

/* --- memory ---- */

void
case_an_id_that_was_never_used_is_not_kept(struct shard_fixture *fixture)
{
    struct shard_fixture_run run;
    shard_fixture_take(fixture);
    EXPECT_KIND(shard_fixture_look(fixture, "nobody", fixture->arena, &run), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(shard_fixture_signal(fixture, "nobody", fixture->arena), ERR_ENTITY_NOT_EXISTS);
    EXPECT_EQ(fixture->shard->tenure->workflows.weight, 0);
    EXPECT_EQ(map_count(fixture->shard->tenure->workflows.by_key), 0);
}

void
case_what_was_forgotten_is_read_again(struct shard_fixture *fixture)
{
    enum { RUNS = 40 };
    fixture->options.runs_max = 6;
    shard_fixture_take(fixture);
    for (int i = 0; i < RUNS; i++) {
        const char *id = arena_format(fixture->arena, "wf-%d", i);
        EXPECT_OK(shard_fixture_start(fixture, id, "one", 100, fixture->arena, NULL));
        EXPECT(fixture->shard->tenure->workflows.weight <= 6);
    }
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(shard_fixture_signal(fixture, arena_format(fixture->arena, "wf-%d", i),
                                       fixture->arena));
    EXPECT(fixture->shard->tenure->workflows.weight <= 6);
    for (int i = 0; i < RUNS; i++) {
        struct shard_fixture_run run;
        EXPECT_OK(shard_fixture_look(fixture, arena_format(fixture->arena, "wf-%d", i),
                                     fixture->arena, &run));
        EXPECT_EQ(run.next_event_id, 4);
    }
    case_slow(fixture, 5 * NS_PER_MS);
    struct signaller signallers[30]; /* more than fit, all pinned until they are durable */
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    for (size_t i = 0; i < array_length(signallers); i++) {
        signallers[i] = (struct signaller){.fixture = fixture};
        shard_fixture_spawn(fixture, signal_one, &signallers[i]);
    }
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(shard_fixture_signal(fixture, arena_format(fixture->arena, "wf-%d", i),
                                       fixture->arena));
    shard_fixture_join(fixture);
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"),
              3 + (int64_t)array_length(signallers));
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
count_rows_of_runs(struct shard_fixture *fixture)
{
    static const enum row_kind kinds[] = {ROW_CURRENT,  ROW_RUN,   ROW_PENDING,     ROW_HISTORY,
                                          ROW_TRANSFER, ROW_TIMER, ROW_REPLICATION, ROW_VISIBLE};
    size_t count = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        count += shard_fixture_rows(fixture, kinds[i]);
    return count;
}

void
case_a_refused_step_leaves_nothing(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    size_t rows = count_rows_of_runs(fixture);
    struct shard_step step = {
        .key = {fixture->domain_id, "wf", ""}, .needs_run = true, .decide = decide_and_refuse};
    EXPECT_KIND(shard_step(fixture->shard, &step, fixture->arena), ERR_BAD_REQUEST);
    EXPECT_EQ(count_rows_of_runs(fixture), rows);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 4);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 1);
    struct shard_fixture_run run;
    EXPECT_KIND(shard_fixture_look(fixture, "absent", fixture->arena, &run), ERR_ENTITY_NOT_EXISTS);
    struct error *err = shard_fixture_signal(fixture, "absent", fixture->arena);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Workflow execution not found.  WorkflowId: absent");
}

void
case_closing_waits_for_steps_in_flight(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    case_slow(fixture, 20 * NS_PER_MS);
    struct signaller signallers[5];
    for (size_t i = 0; i < array_length(signallers); i++) {
        signallers[i] = (struct signaller){.fixture = fixture};
        shard_fixture_spawn(fixture, signal_one, &signallers[i]);
    }
    fiber_yield(); /* they have been submitted, and wait */
    shard_close(fixture->shard);
    fixture->shard = NULL;
    shard_fixture_join(fixture);
    for (size_t i = 0; i < array_length(signallers); i++)
        EXPECT_OK(signallers[i].err);
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"),
              3 + (int64_t)array_length(signallers));
}
