/* workflow_query.c - queries of the workflow load: asked by clients, answered by workers. See
 * workflow_load.h.
 *
 * An answer is the set of signals in the history that the worker was given: so it tells whether the
 * worker knew what it had to. A query is asked once; that it is answered is not promised. */
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ASK_TIMEOUT (4 * NS_PER_S)

/* --- clients -------------------------------------------------------------------------------------
 */

static unsigned
acknowledged(const struct workflow_entry *entry)
{
    unsigned signals = 0;
    for (unsigned i = 0; i < QUERIED_SIGNALS; i++)
        signals |= entry->is_signal_acknowledged[i] ? 1u << i : 0;
    return signals;
}

static void
judge(struct workflow_load *load, const struct workflow_entry *entry, bool is_strong,
      unsigned known_before, const char *answer)
{
    unsigned seen = 0;
    int count = sscanf(answer, "%u", &seen);
    load->queries_answered++;
    world_probe(load->sim->world, is_strong ? "strong_query_answered" : "eventual_query_answered");
    if (count != 1 || (seen & ~entry->signals_sent) != 0)
        verdict_violate(&load->verdict, "%s: a query sees signals %s, sent were %u", entry->id,
                        answer, entry->signals_sent);
    if (is_strong && (known_before & ~seen) != 0)
        verdict_violate(&load->verdict,
                        "%s: a strong query sees signals %u, acknowledged before were %u",
                        entry->id, seen, known_before);
}

/* How a query may end without an answer, beside what any call may. */
static bool
is_no_answer(const struct error *err)
{
    return err->kind == ERR_QUERY_FAILED ||
           strstr(err->message, "consistent query buffer is full") != NULL;
}

void
workflow_query(struct workflow_load *load, struct workflow_entry *entry,
               struct load_clients *clients)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = {.clients = clients, .host = workflow_any_host(load), .arena = arena};
    API(QueryWorkflowRequest) *request = API_NEW(arena, query_workflow_request);
    bool is_strong = entropy_below(4) != 0;
    request->domain = WORKFLOW_DOMAIN;
    request->workflow_execution = workflow_execution(arena, entry->id, workflow_run_id(entry));
    request->query = API_NEW(arena, workflow_query, .query_type = "signals");
    request->query_consistency_level =
        is_strong ? API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG)
                  : API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_EVENTUAL);
    unsigned known_before = acknowledged(entry);
    API(QueryWorkflowResponse) *response = NULL;
    load->queries++;
    fiber_set_deadline(clock_monotonic() + ASK_TIMEOUT);
    struct error *err = load_send(&call, request, &response);
    fiber_set_deadline(NEVER);
    if (err == NULL)
        /* Where the domain is not active a query is answered at once, with what workers know. */
        judge(load, entry, is_strong && load->shard_log == NULL, known_before,
              workflow_payload_text(arena, response->query_result));
    else if (err->kind == ERR_ENTITY_NOT_EXISTS ||
             !(workflow_is_expected(err) || is_no_answer(err)))
        verdict_violate(&load->verdict, "%s: a query failed with %s: %s", entry->id,
                        error_kind_name(err->kind), err->message);
}

/* --- workers -------------------------------------------------------------------------------------
 */

static API(WorkflowQueryResult) *
make_result(const struct history_seen *seen, struct arena *arena)
{
    return API_NEW(arena, workflow_query_result,
                   .result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED),
                   .answer = workflow_payload(arena, workload_answer(seen, arena)));
}

void
workflow_answer_query(struct workflow_load *load, struct load_call *call,
                      const API(PollForDecisionTaskResponse) *task, const struct history_seen *seen)
{
    const char *run_id = task->workflow_execution->run_id;
    API(RespondQueryTaskCompletedRequest) *request =
        API_NEW(call->arena, respond_query_task_completed_request);
    ledger_check_history(load, run_id, seen);
    ledger_see(load, run_id, seen->events, seen->count);
    if ((int64_t)seen->count != task->next_event_id - 1 || task->started_event_id != 0)
        verdict_violate(&load->verdict, "%s: a query with %zu events", run_id, seen->count);
    request->task_token = task->task_token;
    request->result = make_result(seen, call->arena);
    struct error *err = workflow_call(load, call, request, NULL);
    if (err != NULL) /* nobody waits any more */
        world_probe(load->sim->world, "query_answer_refused");
}

void
workflow_add_results(const API(PollForDecisionTaskResponse) *task, const struct history_seen *seen,
                     struct arena *arena, API(RespondDecisionTaskCompletedRequest) *completion)
{
    completion->n_query_results = task->n_queries;
    completion->query_results =
        arena_zalloc(arena, task->n_queries + 1, sizeof *completion->query_results);
    for (size_t i = 0; i < task->n_queries; i++) {
        API(RespondDecisionTaskCompletedRequest__QueryResultsEntry) *entry = message_new(
            arena, API_TYPE(respond_decision_task_completed_request__query_results_entry));
        entry->key = task->queries[i]->key;
        entry->value = make_result(seen, arena);
        completion->query_results[i] = entry;
    }
}
