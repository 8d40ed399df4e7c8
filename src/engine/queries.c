/* queries.c - decisions that answer queries. See engine.h. */
#include "base/check.h"
#include "engine/inside.h"
#include "fiber/probe.h"
#include "route/route.h"
#include "wire/maps.h"
#include "wire/message.h"

struct completion_call {
    const struct engine *engine;
    struct shard *shard;
    const struct run_key *key;
    const struct complete_command *command;
    struct complete_answer *answer;
    struct arena *arena;
    struct error *err;
    struct list taken; /* struct run_query: those that this completion settles */
};

static bool
take_query(struct completion_call *call, const char *run_id, const char *id)
{
    struct run_query *query = shard_take_query(call->shard, run_id, id);
    check(query == NULL || list_is_empty(&query->node));
    if (query != NULL)
        list_push_back(&call->taken, &query->node);
    return query != NULL;
}

/* Which of the queries that wait are settled by this. A heartbeat settles none: what the worker has
 * not told yet may belong to the answer. */
static void
take_queries(struct completion_call *call, const char *run_id)
{
    const API(RespondDecisionTaskCompletedRequest) *request = call->command->request;
    bool is_heartbeat = request->force_create_new_decision_task && request->n_decisions == 0;
    while (call->command->refuses_queries && take_query(call, run_id, NULL))
        continue;
    for (size_t i = 0; i < request->n_query_results && !is_heartbeat; i++)
        take_query(call, run_id, request->query_results[i]->key);
}

static struct error *
decide_complete_decision(void *context, struct step *step)
{
    struct completion_call *call = context;
    struct error *err = command_complete_decision(step, call->command, call->answer);
    if (err != NULL)
        return err;
    const struct run *run = mutation_run(step->mutation);
    take_queries(call, run->core->run_id);
    if (call->answer->has_started_decision)
        shard_ride_queries(call->shard, run, call->arena, &call->answer->start);
    return NULL;
}

static bool
is_own_domain(const struct completion_call *call,
              const API(ScheduleActivityTaskDecisionAttributes) *wanted)
{
    const struct domain *domain =
        domains_find_id(call->engine->options.domains, call->key->domain_id);
    return wanted->domain[0] == '\0' ||
           (domain != NULL && strcmp(wanted->domain, domain->name) == 0);
}

/* Activities of the run's own domain that the decisions schedule. */
static size_t
foresee_activities(void *context, const struct run *run, const STORED(CurrentRecord) *current,
                   struct foreseen *tasks)
{
    const struct completion_call *call = context;
    const API(RespondDecisionTaskCompletedRequest) *request = call->command->request;
    size_t count = 0;
    for (size_t i = 0; i < request->n_decisions && count < FORESEEN_MAX; i++) {
        if (request->decisions[i]->attributes_case !=
            API_VALUE(DECISION__ATTRIBUTES_SCHEDULE_ACTIVITY_TASK_DECISION_ATTRIBUTES))
            continue;
        const API(ScheduleActivityTaskDecisionAttributes) *wanted =
            request->decisions[i]->schedule_activity_task_decision_attributes;
        if (wanted->request_local_dispatch || wanted->task_list == NULL ||
            !is_own_domain(call, wanted))
            continue;
        tasks[count++] = (struct foreseen){.type = TASK_ACTIVITY,
                                           .kind = LIST_NORMAL,
                                           .list = wanted->task_list->name,
                                           .activity_id = wanted->activity_id};
    }
    return count;
}

/* The answer that fits the query; one that is too large is a failure that says so. */
static const API(WorkflowQueryResult) *
find_result(struct completion_call *call, const struct run_query *query)
{
    const API(RespondDecisionTaskCompletedRequest) *request = call->command->request;
    const API(RespondDecisionTaskCompletedRequest__QueryResultsEntry) *entry =
        wire_map_find(request->query_results, request->n_query_results, query->id);
    check(entry != NULL && entry->value != NULL);
    const API(Payload) *answer = entry->value->answer;
    if (answer == NULL || answer->data.len <= call->command->query_answer_max)
        return entry->value;
    API(WorkflowQueryResult) *failure = message_new(call->arena, API_TYPE(workflow_query_result));
    failure->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED);
    failure->error_message = "Blob data size exceeds limit.";
    return failure;
}

/* If the step came to nothing, or nobody knows, they look again. */
static void
resolve_queries(struct completion_call *call)
{
    for (struct list *node; (node = list_pop_front(&call->taken)) != NULL;) {
        struct run_query *query = list_entry(node, struct run_query, node);
        if (call->err != NULL)
            query->fire(query, QUERY_FREE, NULL);
        else if (call->command->refuses_queries)
            query->fire(query, QUERY_REFUSED, NULL);
        else
            query->fire(query, QUERY_ANSWERED, find_result(call, query));
    }
}

static void
complete_on_loop(void *argument)
{
    struct completion_call *call = argument;
    struct shard_step step = {.key = *call->key,
                              .needs_run = true,
                              .foresee = foresee_activities,
                              .decide = decide_complete_decision,
                              .context = call};
    list_init(&call->taken);
    call->err = shard_step(call->shard, &step, call->arena);
    if (call->err == NULL && call->answer->has_started_decision)
        shard_recall_decision(call->shard, call->arena, &call->answer->start);
    resolve_queries(call);
}

struct error *
engine_complete_decision(struct engine *engine, const struct run_key *key,
                         const struct complete_command *command, struct arena *arena,
                         struct complete_answer *answer)
{
    uint32_t number = engine_shard_of(engine, key->workflow_id);
    struct completion_call call = {.engine = engine,
                                   .shard = engine->shards[number],
                                   .key = key,
                                   .command = command,
                                   .answer = answer,
                                   .arena = arena};
    struct error *err = route_to_shard(number, complete_on_loop, &call, arena);
    return err != NULL ? err : call.err;
}
