/* flow_test.c - workers and clients on the real platform, on several loops at once.
 *
 * At stake: what passes between a call, a poll, a list and a shard crosses threads. Method: many
 * runs side by side, each with an activity, by workers on every loop, while readers wait for the
 * end and others ask queries, weak and strong ones. */
#include "api/test/query_calls.h"
#include "fiber/linux/linux.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "net/server.h"
#include "wire/names.h"

#define RUNS    24
#define WORKERS 4

struct flow {
    struct fixture *fixture;
    atomic_int ended; /* runs */
};

/* A fixture of this loop's own: the same server, another connection. */
static void
connect_here(struct fixture *fixture, const struct fixture *server)
{
    *fixture = (struct fixture){.timeout = 60 * NS_PER_S, .arena = arena_new(0)};
    fixture->client = grpc_client_new(
        &(struct grpc_client_options){.address = grpc_server_address(server->server)});
}

static void
disconnect(struct fixture *fixture)
{
    grpc_client_free(fixture->client);
    arena_free(fixture->arena);
}

static void
complete_activity(struct fixture *fixture, const API(PollForActivityTaskResponse) *task)
{
    EXPECT_OK(
        API_CALL(fixture, NULL, respond_activity_task_completed, .task_token = task->task_token));
}

static void
decide(struct fixture *fixture, const API(PollForDecisionTaskResponse) *task)
{
    bool is_first = task->previous_started_event_id == NULL;
    API(Decision) *decision = is_first ? decide_activity(fixture, "1") : decide_end(fixture);
    run_complete(fixture, query_call_complete(fixture, task, decision, "riding"));
}

/* Who asked may have gone meanwhile. */
static void
answer_query(struct fixture *fixture, const API(PollForDecisionTaskResponse) *task)
{
    struct error *err =
        respond_query(fixture, task->task_token, query_call_result(fixture, "alone"));
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
}

/* Polls for decisions and activities in turn until all runs have ended. */
static void
worker_run(void *argument)
{
    struct flow *flow = argument;
    struct fixture fixture;
    connect_here(&fixture, flow->fixture);
    query_call_as(&fixture, "uber-go", "1.7.0");
    fixture.timeout = 3 * NS_PER_S;
    while (atomic_load(&flow->ended) < RUNS) {
        API(PollForDecisionTaskResponse) *decision = poll_decision(&fixture, "work");
        if (decision->query != NULL)
            answer_query(&fixture, decision);
        else if (decision->task_token.len > 0)
            decide(&fixture, decision);
        API(PollForActivityTaskResponse) *activity = poll_activity(&fixture, "work");
        if (activity->task_token.len > 0)
            complete_activity(&fixture, activity);
        arena_reset(fixture.arena);
        query_call_as(&fixture, "uber-go", "1.7.0"); /* lies in the arena */
    }
    disconnect(&fixture);
}

/* Some are cancelled in the middle. */
static void
query(struct fixture *fixture, const char *workflow_id, int number)
{
    struct query_call query_call;
    API(QueryWorkflowRequest) *request = query_call_request(fixture, workflow_id);
    if (number % 2 == 0)
        request->query_consistency_level =
            API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG);
    query_call_begin(&query_call, fixture, request);
    if (number % 3 == 2 &&
        !query_call_is_over(&query_call)) /* else the fiber is somebody else's by now */
        fiber_cancel(query_call.fiber);
    query_call_wait(&query_call);
    EXPECT(query_call.err == NULL || number % 3 == 2);
}

/* Starts runs and waits for the end of each. */
static void
client_run(void *argument)
{
    struct flow *flow = argument;
    struct fixture fixture;
    connect_here(&fixture, flow->fixture);
    for (int i = 0; i < RUNS / 2; i++) {
        const char *id = arena_format(fixture.arena, "%u-%d", loop_index(loop_self()), i);
        run_start(&fixture, id);
        query(&fixture, id, i);
        API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(&fixture, id);
        request->wait_for_new_event = true;
        request->history_event_filter_type =
            API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
        API(GetWorkflowExecutionHistoryResponse) *page = read_history(&fixture, request);
        EXPECT_EQ(page->history->n_events, 1);
        atomic_fetch_add(&flow->ended, 1);
    }
    disconnect(&fixture);
}

struct fibers {
    struct flow *flow;
    void (*function)(void *flow);
    unsigned loop;
    struct latch *done;
};

static void
run_there(void *argument)
{
    struct fibers *fibers = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(loop_call(loop_at(fibers->loop), fibers->function, fibers->flow, arena));
    latch_done(fibers->done);
}

static void
flow(void *argument)
{
    struct fixture fixture;
    struct latch done;
    fixture_open(&fixture, "127.0.0.1:0");
    fixture_set(&fixture, "history.EnableConsistentQueryByDomain: [{value: true}]");
    struct flow shared = {.fixture = &fixture};
    struct fibers fibers[2 + WORKERS];
    latch_init(&done, array_length(fibers));
    for (unsigned i = 0; i < array_length(fibers); i++) {
        fibers[i] = (struct fibers){.flow = &shared,
                                    .function = i < 2 ? client_run : worker_run,
                                    .loop = i % loop_count(),
                                    .done = &done};
        fiber_start("flow", run_there, &fibers[i]);
    }
    latch_wait(&done);
    EXPECT_EQ(shared.ended, RUNS);
    fixture_close(&fixture);
}

TEST(flow, runs_end_while_everybody_waits_on_every_loop, "A-230", "A-231")
{
    linux_run(&(struct linux_options){.loops = 2}, flow, NULL);
}
