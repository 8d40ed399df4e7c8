/* decision.c - a decision of the server's own: history → state → decisions; and queries, which are
 * answered from the same state. See worker.h.
 *
 * What fails on the way is left to the decision's timeout, after which it is tried again. */
#include "api/api.h"
#include "api/worker/start_attempt.h"
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "system/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

/* What the engine takes us for: a client that understands everything. */
#define CLIENT_NAME    "uber-go"
#define CLIENT_VERSION "1.7.0"

#define QUERY_ANSWER_MAX ((size_t)2 * 1024 * 1024)

/* --- queries ---- */

static API(WorkflowQueryResult) *
answer_query(const struct system_workflow *workflow, void *state, const API(WorkflowQuery) *query,
             struct arena *arena)
{
    API(WorkflowQueryResult) *result = message_new(arena, API_TYPE(workflow_query_result));
    struct slice answer = {0};
    struct error *err =
        workflow == NULL || workflow->query == NULL
            ? error_new(arena, ERR_QUERY_FAILED, "unknown queryType %s", query->query_type)
            : workflow->query(state, query->query_type,
                              presence_read_payload(query->query_args).bytes, arena, &answer);
    if (err != NULL) {
        result->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED);
        result->error_message = arena_text(arena, err->message);
        return result;
    }
    result->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED);
    result->answer =
        presence_make_payload(arena, (struct maybe_bytes){.is_set = true, .bytes = answer});
    return result;
}

/* The state of a run after its events before next_event_id. Yields. */
static struct error *
fold_run(struct engine *engine, const struct system_workflow *workflow, const char *workflow_id,
         const struct history_lineage *lineage, int64_t next_event_id, struct arena *arena,
         void **state)
{
    check(workflow->state_size > 0 && next_event_id > 1);
    *state = arena_zalloc(arena, 1, workflow->state_size);
    struct history_fold fold = {.workflow_id = workflow_id,
                                .lineage = lineage,
                                .next_event_id = next_event_id,
                                .add = workflow->fold,
                                .state = *state};
    return engine_fold_history(engine, &fold, arena);
}

static struct error *
find_answer(struct system_frame *frame, const struct task *task, struct arena *arena,
            API(WorkflowQueryResult) **result)
{
    struct run_key key = {task->run_domain_id, task->workflow_id, task->run_id};
    struct query_view view;
    API(WorkflowQuery) *query = NULL;
    void *state = NULL;
    struct error *err = engine_query_view(frame->parts.engine, &key, false, arena, &view);
    if (err == NULL)
        err = message_decode_as(arena, ERR_CORRUPT, API_TYPE(workflow_query), task->query, &query);
    if (err != NULL)
        return err;
    const struct system_workflow *workflow =
        system_find_workflow(frame, task->run_domain_id, view.workflow_type->name);
    if (workflow != NULL)
        err = fold_run(frame->parts.engine, workflow, task->workflow_id, &view.lineage,
                       view.next_event_id, arena, &state);
    if (err == NULL)
        *result = answer_query(workflow, state, query, arena);
    return err;
}

/* Nothing is recorded: the answer goes to the caller, if it still waits. */
static void
work_on_query(struct system_frame *frame, const struct task *task)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(WorkflowQueryResult) *result = NULL;
    struct error *err = find_answer(frame, task, arena, &result);
    if (err != NULL) {
        result = message_new(arena, API_TYPE(workflow_query_result));
        result->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED);
        result->error_message = arena_text(arena, err->message);
    }
    err = api_answer_query(frame->parts.api, task, result, arena);
    probe(err == NULL ? "system_query_answered" : "system_query_not_answered");
}

/* --- decisions ---- */

/* A decision in work. */
struct deciding {
    struct system_frame *frame;
    const struct task *task;
    const struct decision_start *start;
    const struct system_workflow *workflow;
    void *state;
    struct system_decider decider;
};

/* Answers the queries that came with the decision. */
static void
answer_riding(const struct deciding *deciding, API(RespondDecisionTaskCompletedRequest) *request)
{
    const struct decision_start *start = deciding->start;
    struct arena *arena = deciding->decider.arena;
    request->n_query_results = start->query_count;
    request->query_results =
        arena_zalloc(arena, start->query_count, sizeof request->query_results[0]);
    for (size_t i = 0; i < start->query_count; i++) {
        request->query_results[i] = message_new(
            arena, API_TYPE(respond_decision_task_completed_request__query_results_entry));
        request->query_results[i]->key = start->queries[i]->key;
        request->query_results[i]->value =
            answer_query(deciding->workflow, deciding->state, start->queries[i]->value, arena);
    }
}

static struct error *
complete(const struct deciding *deciding)
{
    const struct decision_start *start = deciding->start;
    struct arena *arena = deciding->decider.arena;
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_decision_task_completed_request));
    request->identity = SYSTEM_IDENTITY;
    request->decisions = deciding->decider.decisions;
    request->n_decisions = deciding->decider.count;
    answer_riding(deciding, request);
    struct complete_command command = {
        .request = request,
        .task = {.schedule_id = start->schedule_id, .attempt = start->attempt, .activity_id = ""},
        .client_name = CLIENT_NAME,
        .client_feature_version = CLIENT_VERSION,
        .client_library_version = "",
        .query_answer_max = QUERY_ANSWER_MAX,
    };
    struct complete_answer answer = {0};
    struct run_key key = {deciding->task->run_domain_id, deciding->task->workflow_id,
                          start->run_id};
    struct error *err =
        engine_complete_decision(deciding->frame->parts.engine, &key, &command, arena, &answer);
    return err != NULL ? err : answer.late_refusal;
}

static struct error *
decide(struct deciding *deciding)
{
    struct system_frame *frame = deciding->frame;
    const struct decision_start *start = deciding->start;
    const struct task *task = deciding->task;
    struct arena *arena = deciding->decider.arena;
    deciding->workflow =
        system_find_workflow(frame, task->run_domain_id, start->workflow_type->name);
    if (deciding->workflow == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "unknown workflow type %s",
                         start->workflow_type->name);
    struct error *err = fold_run(frame->parts.engine, deciding->workflow, task->workflow_id,
                                 &start->lineage, start->next_event_id, arena, &deciding->state);
    if (err != NULL)
        return err;
    deciding->decider.now = start->started_time;
    deciding->decider.domain_id = task->run_domain_id;
    deciding->decider.workflow_id = task->workflow_id;
    deciding->decider.run_id = start->run_id;
    deciding->decider.next_event_id = start->next_event_id;
    deciding->decider.history_bytes = start->history_bytes;
    check(start->next_event_id > 1); /* there is the start of the run, at least */
    NO_YIELD
    {
        deciding->workflow->decide(deciding->state, &deciding->decider);
    }
    return complete(deciding);
}

bool
work_on_decision(struct system_frame *frame, const struct task *task)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct start_attempt start_attempt = {.engine = frame->parts.engine,
                                          .matching = frame->parts.matching,
                                          .task = task,
                                          .identity = SYSTEM_IDENTITY,
                                          .arena = arena};
    fiber_set_deadline(clock_monotonic() + DECISION_TIME);
    if (task_is_query(task)) {
        work_on_query(frame, task);
        return true;
    }
    enum start_outcome end = start_attempt_record(&start_attempt);
    if (end != STARTED)
        return end != START_IN_DOUBT;
    struct deciding deciding = {.frame = frame,
                                .task = task,
                                .start = &start_attempt.decision,
                                .decider = {.arena = arena}};
    struct error *err = decide(&deciding);
    probe(err == NULL ? "system_decision_made" : "system_decision_failed");
    if (err != NULL && err->kind == ERR_BAD_REQUEST)
        log_warn(frame->parts.log, "A system workflow cannot go on.",
                 log_text("workflow_id", task->workflow_id), log_error(err));
    return true;
}
