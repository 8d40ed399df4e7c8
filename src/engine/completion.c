/* completion.c - a worker's decisions: they become a step, and the queries that rode on the
 * decision task have their answers once that is durable. See engine.h. */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "engine/shard/starts.h"
#include "route/refusal.h"
#include "wire/maps.h"
#include "wire/message.h"

/* One of them, where the shard is. */
struct completion_call {
    const struct engine *engine;
    struct shard *shard;
    struct run_key key;
    struct complete_command command;
    struct complete_answer answer;
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
    const API(RespondDecisionTaskCompletedRequest) *request = call->command.request;
    bool is_heartbeat = request->force_create_new_decision_task && request->n_decisions == 0;
    while (call->command.refuses_queries && take_query(call, run_id, NULL))
        continue;
    for (size_t i = 0; i < request->n_query_results && !is_heartbeat; i++)
        take_query(call, run_id, request->query_results[i]->key);
}

static struct error *
decide_complete_decision(void *context, struct step *step)
{
    struct completion_call *call = context;
    struct error *err = command_complete_decision(step, &call->command, &call->answer);
    if (err != NULL)
        return err;
    const struct run *run = mutation_run(step->mutation);
    take_queries(call, run->core->run_id);
    if (call->answer.has_started_decision)
        shard_ride_queries(call->shard, run, call->arena, &call->answer.start);
    return NULL;
}

static bool
is_own_domain(const struct completion_call *call,
              const API(ScheduleActivityTaskDecisionAttributes) *wanted)
{
    const struct domain *domain =
        domains_find_id(call->engine->options.domains, call->key.domain_id);
    return wanted->domain[0] == '\0' ||
           (domain != NULL && strcmp(wanted->domain, domain->name) == 0);
}

/* Activities of the run's own domain that the decisions schedule. */
static size_t
foresee_activities(void *context, const struct run *run, const STORED(CurrentRecord) *current,
                   struct foreseen *tasks)
{
    const struct completion_call *call = context;
    const API(RespondDecisionTaskCompletedRequest) *request = call->command.request;
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
    const API(RespondDecisionTaskCompletedRequest) *request = call->command.request;
    const API(RespondDecisionTaskCompletedRequest__QueryResultsEntry) *entry =
        wire_map_find(request->query_results, request->n_query_results, query->id);
    check(entry != NULL && entry->value != NULL);
    const API(Payload) *answer = entry->value->answer;
    if (answer == NULL || answer->data.len <= call->command.query_answer_max)
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
        else if (call->command.refuses_queries)
            query->fire(query, QUERY_REFUSED, NULL);
        else
            query->fire(query, QUERY_ANSWERED, find_result(call, query));
    }
}

static void
complete(struct completion_call *call)
{
    struct shard_step step = {.key = call->key,
                              .needs_run = true,
                              .foresee = foresee_activities,
                              .decide = decide_complete_decision,
                              .context = call};
    list_init(&call->taken);
    call->err = shard_step(call->shard, &step, call->arena);
    if (call->err == NULL && call->answer.has_started_decision)
        shard_recall_decision(call->shard, call->arena, &call->answer.start);
    resolve_queries(call);
}

/* --- the way there and back ---- */

/* "" is no fault. */
static const char *const *
read_faults(const INTERNAL(CompleteDecision) * message, struct arena *arena)
{
    if (message->n_child_faults == 0)
        return NULL;
    const char **faults = arena_zalloc(arena, message->n_child_faults, sizeof *faults);
    check(message->n_child_faults == message->request->n_decisions);
    for (size_t i = 0; i < message->n_child_faults; i++)
        faults[i] = message->child_faults[i][0] == '\0' ? NULL : message->child_faults[i];
    return faults;
}

static struct complete_command
command_from_message(const INTERNAL(CompleteDecision) * message, struct arena *arena)
{
    return (struct complete_command){
        .request = message->request,
        .task = task_name_from_message(message->task),
        .client_name = message->client_name,
        .client_feature_version = message->client_feature_version,
        .client_library_version = message->client_library_version,
        .refuses_queries = message->refuses_queries,
        .query_answer_max = (size_t)message->query_answer_max,
        .child_faults = read_faults(message, arena),
    };
}

static void
show_faults(const struct complete_command *command, struct arena *arena,
            INTERNAL(CompleteDecision) * message)
{
    if (command->child_faults == NULL)
        return;
    message->n_child_faults = command->request->n_decisions;
    message->child_faults =
        arena_zalloc(arena, message->n_child_faults, sizeof message->child_faults[0]);
    for (size_t i = 0; i < message->n_child_faults; i++) {
        check(command->child_faults[i] == NULL || command->child_faults[i][0] != '\0');
        message->child_faults[i] = presence_make_text(command->child_faults[i]);
    }
}

static void
show_local(const struct complete_answer *answer, struct arena *arena,
           INTERNAL(DecisionCompleted) * message)
{
    if (answer->local_count == 0)
        return;
    message->n_local = answer->local_count;
    message->local = arena_zalloc(arena, answer->local_count, sizeof message->local[0]);
    for (size_t i = 0; i < answer->local_count; i++) {
        message->local[i] = message_new(arena, INTERNAL_TYPE(activity_start));
        activity_start_to_message(&answer->local[i], message->local[i]);
    }
}

static void
answer_to_message(const struct complete_answer *answer, struct arena *arena,
                  INTERNAL(DecisionCompleted) * message)
{
    if (answer->has_started_decision) {
        message->start = message_new(arena, INTERNAL_TYPE(decision_start));
        decision_start_to_message(&answer->start, arena, message->start);
    }
    show_local(answer, arena, message);
    if (answer->late_refusal != NULL) {
        message->late_refusal = message_new(arena, INTERNAL_TYPE(error));
        *message->late_refusal = refusal_to_message(answer->late_refusal);
    }
}

static void
read_local(const INTERNAL(DecisionCompleted) * message, struct arena *arena,
           struct complete_answer *answer)
{
    answer->local_count = message->n_local;
    answer->local = NULL;
    if (message->n_local > 0)
        answer->local = arena_zalloc(arena, message->n_local, sizeof answer->local[0]);
    for (size_t i = 0; i < message->n_local; i++)
        answer->local[i] = activity_start_from_message(message->local[i]);
}

/* Fills all of it, its start if there is one. */
static void
answer_from_message(const INTERNAL(DecisionCompleted) * message, struct arena *arena,
                    struct complete_answer *answer)
{
    answer->has_started_decision = message->start != NULL;
    if (message->start != NULL)
        decision_start_from_message(message->start, arena, &answer->start);
    read_local(message, arena, answer);
    answer->late_refusal = NULL;
    if (message->late_refusal != NULL)
        answer->late_refusal = refusal_from_message(message->late_refusal, arena);
}

static struct error *
serve_complete(void *engine, struct owner owner, const void *request, struct arena *arena,
               void *answer)
{
    const INTERNAL(CompleteDecision) *asked = request;
    struct completion_call call = {.engine = engine,
                                   .shard = engine_served_shard(engine, owner),
                                   .key = run_key_from_message(asked->key),
                                   .command = command_from_message(asked, arena),
                                   .arena = arena};
    complete(&call);
    if (call.err == NULL)
        answer_to_message(&call.answer, arena, answer);
    return call.err;
}

/* No answer: the worker says it again, and hears that there is no such decision any more. A new
 * decision that was started for it is lost with the answer, and times out. */
static const struct route_question complete_question = {
    .name = "shard.complete_decision",
    .request = INTERNAL_TYPE(complete_decision),
    .answer = INTERNAL_TYPE(decision_completed),
    .serve = serve_complete,
};

struct error *
engine_complete_decision(struct engine *engine, const struct run_key *key,
                         const struct complete_command *command, struct arena *arena,
                         struct complete_answer *answer)
{
    INTERNAL(CompleteDecision) request = INTERNAL_VALUE(COMPLETE_DECISION__INIT);
    INTERNAL(DecisionCompleted) told = INTERNAL_VALUE(DECISION_COMPLETED__INIT);
    INTERNAL(RunKey) run = run_key_to_message(key);
    INTERNAL(TaskName) name = task_name_to_message(&command->task);
    request.key = &run;
    request.task = &name;
    request.request = (API(RespondDecisionTaskCompletedRequest) *)command->request;
    request.client_name = presence_make_text(command->client_name);
    request.client_feature_version = presence_make_text(command->client_feature_version);
    request.client_library_version = presence_make_text(command->client_library_version);
    request.refuses_queries = command->refuses_queries;
    request.query_answer_max = command->query_answer_max;
    show_faults(command, arena, &request);
    struct error *err =
        engine_ask(engine, key->workflow_id, &complete_question, &request, arena, &told);
    if (err == NULL)
        answer_from_message(&told, arena, answer);
    return err;
}
