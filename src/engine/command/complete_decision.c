/* complete_decision.c - a worker has decided: its list becomes events, and perhaps a new decision.
 *
 * A list that cannot be taken as a whole is not taken at all: the step goes back to where it was
 * before the list, and the decision task has failed instead, which the worker does not learn
 * (A-074).
 */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/errors.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

/* The start that a worker gets with the answer to its completion was asked for by this. */
#define RELAYED_REQUEST "request-from-RespondDecisionTaskCompleted"

/* No step may need more numbers for its events and rows than a shard keeps back for one. */
#define DECISIONS_MAX 100000

/* One completion while it is worked on. */
struct completion {
    struct step *step;
    struct mutation *mutation;
    const struct complete_command *command;
    const API(RespondDecisionTaskCompletedRequest) *request;
    bool is_heartbeat;               /* decides nothing, only asks for more time */
    int64_t original_scheduled_time; /* of the first of a row of heartbeats */
    bool wants_decision;             /* a new one is due */
    /* Schedule ids of activities that the worker got with its list. */
    const int64_t *local;
    size_t local_count;
};

static bool
heartbeat_is_late(const struct completion *completion)
{
    const struct run_context *context = completion->step->context;
    return completion->is_heartbeat && completion->original_scheduled_time > 0 &&
           context->now > completion->original_scheduled_time +
                              run_context_duration(context, DYNAMIC_DECISION_HEARTBEAT_TIMEOUT);
}

/* The worker has kept its decision for too long: it loses it. */
static void
heartbeat_time_out(struct completion *completion, struct complete_answer *answer)
{
    struct mutation *mutation = completion->mutation;
    check(completion->is_heartbeat);
    decision_time_out(mutation, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
    decision_schedule_if_needed(mutation);
    answer->late_refusal =
        errors_entity_not_exists(completion->step->arena, NULL, "decision heartbeat timeout");
}

/* Where the next decisions go, and who the worker is. */
static void
keep_worker(struct completion *completion)
{
    struct run *run = mutation_run(completion->mutation);
    STORED(RunRecord) *core = mutation_core(completion->mutation);
    const API(StickyExecutionAttributes) *sticky = completion->request->sticky_attributes;
    mutation_clear_sticky(completion->mutation);
    if (sticky != NULL && sticky->worker_task_list != NULL &&
        sticky->worker_task_list->name[0] != '\0') {
        API(TaskList) *list = command_copy_list(sticky->worker_task_list, run->arena);
        list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
        core->sticky_task_list = list;
        int64_t timeout = command_seconds(sticky->schedule_to_start_timeout);
        core->sticky_timeout = timeout > 0 ? timeout : 0;
        core->sticky_time = completion->step->context->now;
    }
    core->client_name = run_keep_text(run, completion->command->client_name);
    core->client_feature_version = run_keep_text(run, completion->command->client_feature_version);
    core->client_library_version = run_keep_text(run, completion->command->client_library_version);
}

static bool
binary_is_bad(const struct completion *completion)
{
    const API(BadBinaries) *bad = completion->step->context->domain->record->domain->bad_binaries;
    return bad != NULL && wire_map_find(bad->binaries, bad->n_binaries,
                                        completion->request->binary_checksum) != NULL;
}

/* A limit was passed: the run ends as failed. */
static void
fail_run(struct decision_list *decision_list)
{
    struct mutation *mutation = decision_list->mutation;
    check(!decision_list->is_closed && !decision_list->is_bad);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    API(WorkflowExecutionFailedEventAttributes) *attributes =
        event->workflow_execution_failed_event_attributes;
    attributes->failure = message_new(mutation_arena(mutation), API_TYPE(failure));
    attributes->failure->reason = presence_make_text(decision_list->run_failure_reason);
    attributes->failure->details =
        presence_make_bytes(slice_text(decision_list->run_failure_details));
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    mutation_add_event(mutation, event);
}

/* The list was bad: back to before it, and the task has failed. */
static void
fail_task(struct completion *completion, const struct mutation_savepoint *before,
          const struct decision_list *decision_list)
{
    struct mutation *mutation = completion->mutation;
    struct decision_failure failure = decision_list->bad;
    check(completion->step->begun == NULL);
    mutation_rewind(mutation, before);
    check(run_has_started_decision(mutation_run(mutation)));
    failure.identity = completion->request->identity;
    failure.binary_checksum = completion->request->binary_checksum;
    decision_fail(mutation, &failure);
    const char *details =
        arena_format(completion->step->arena,
                     "Decision attempt exceeds limit. Last decision failure cause and details: "
                     "%d - %s",
                     (int)failure.cause, failure.details == NULL ? "" : failure.details);
    decision_limit_attempts(mutation, details);
    completion->wants_decision = !decision_pause(mutation, &failure);
}

/* Too much history is the end of a run that decides once more. */
static bool
history_is_too_long(const struct completion *completion)
{
    const struct run_context *context = completion->step->context;
    const STORED(RunRecord) *core = mutation_run(completion->mutation)->core;
    return core->next_event_id - 1 > run_context_integer(context, DYNAMIC_HISTORY_COUNT_ERROR) ||
           core->history_bytes > run_context_integer(context, DYNAMIC_HISTORY_SIZE_ERROR);
}

/* Works the list through, unless the run may not decide any more. */
static struct error *
take_list(struct completion *completion, struct decision_list *decision_list)
{
    const API(RespondDecisionTaskCompletedRequest) *request = completion->request;
    if (binary_is_bad(completion)) {
        decision_list_refuse(decision_list, FAILED_CAUSE(BAD_BINARY),
                             "binary %s is already marked as bad deployment",
                             request->binary_checksum);
        return NULL;
    }
    if (history_is_too_long(completion)) {
        decision_list->run_failure_reason = "HISTORY_EXCEEDS_LIMIT";
        decision_list->run_failure_details = "Workflow history size / count exceeds limit.";
        return NULL;
    }
    return decisions_take(decision_list, request->decisions, request->n_decisions);
}

/* Takes the list. Error: it holds something that we do not know. */
static struct error *
take_decisions(struct completion *completion)
{
    struct mutation *mutation = completion->mutation;
    const API(RespondDecisionTaskCompletedRequest) *request = completion->request;
    struct mutation_savepoint before = mutation_savepoint(mutation);
    struct decision_list decision_list = {
        .step = completion->step,
        .mutation = mutation,
        .identity = request->identity,
        .completed_id = decision_complete(mutation, request),
        .child_faults = completion->command->child_faults,
        .has_unhandled = run_has_buffered(mutation_run(mutation)),
    };
    check(decision_list.completed_id > 0);
    keep_worker(completion);
    mutation_hold_events(mutation);
    struct error *err = take_list(completion, &decision_list);
    if (err != NULL)
        return err;
    completion->wants_decision = decision_list.has_unhandled || decision_list.needs_decision ||
                                 request->force_create_new_decision_task;
    if (decision_list.is_bad) {
        fail_task(completion, &before, &decision_list);
        return NULL;
    }
    if (decision_list.run_failure_reason != NULL)
        fail_run(&decision_list);
    mutation_release_events(mutation);
    completion->local = decision_list.local.items;
    completion->local_count = decision_list.local.count;
    return NULL;
}

/* What the step adds to the history, in bytes. */
static int64_t
events_size(const struct mutation *mutation)
{
    size_t count, size = 0;
    API(HistoryEvent) *const *events = mutation_events(mutation, &count);
    for (size_t i = 0; i < count; i++)
        size += protobuf_c_message_get_packed_size(&events[i]->base);
    return (int64_t)size;
}

/* A list that adds more to the history than one commit may hold ends the run, and nothing of the
 * list is done; the worker gets an error. */
static void
limit_size(struct completion *completion, const struct mutation_savepoint *before,
           struct complete_answer *answer)
{
    struct step *step = completion->step;
    struct mutation *mutation = completion->mutation;
    int64_t size = events_size(mutation);
    int64_t limit = run_context_integer(step->context, DYNAMIC_TRANSACTION_SIZE);
    if (size <= limit)
        return;
    const char *sentence =
        arena_format(step->arena, "transaction size of %lld bytes exceeds limit of %lld bytes",
                     (long long)size, (long long)limit);
    step_forget_begun(step);
    mutation_rewind(mutation, before);
    check(run_has_started_decision(mutation_run(mutation)));
    run_terminate(mutation, "TRANSACTION_SIZE_EXCEEDS_LIMIT",
                  command_text_payload(sentence, step->arena), HISTORY_SERVICE);
    answer->late_refusal = error_new(step->arena, ERR_BAD_REQUEST, "%s", sentence);
}

/* The worker learns which activities it has already; if the run has ended there is nothing to do
 * for them. */
static void
give_local(const struct completion *completion, struct complete_answer *answer)
{
    const struct run *run = mutation_run(completion->mutation);
    struct arena *arena = completion->step->arena;
    if (!run_is_open(run) || completion->local_count == 0)
        return;
    answer->local = arena_zalloc(arena, completion->local_count, sizeof answer->local[0]);
    answer->local_count = completion->local_count;
    for (size_t i = 0; i < completion->local_count; i++)
        activity_fill_start(run, completion->local[i], arena, &answer->local[i]);
}

/* A heartbeat is the same task going on, and its worker is in the middle of it. */
static bool
has_turn(const struct completion *completion)
{
    const struct step *step = completion->step;
    bool is_free = run_context_take_turn(step->context, step->domain_id, step->workflow_id);
    return is_free || completion->is_heartbeat;
}

/* The next decision, if one is due; started at once if the worker asked for that. */
static void
go_on(struct completion *completion, struct complete_answer *answer)
{
    struct mutation *mutation = completion->mutation;
    if (!completion->wants_decision || !run_is_open(mutation_run(mutation)))
        return;
    check(completion->step->begun == NULL && answer->late_refusal == NULL);
    decision_schedule(mutation, completion->is_heartbeat ? completion->original_scheduled_time : 0);
    if (!completion->request->return_new_decision_task || !has_turn(completion))
        return;
    decision_start(mutation, RELAYED_REQUEST, completion->request->identity);
    decision_fill_start(mutation, &answer->start);
    answer->has_started_decision = true;
    answer->start.is_sticky = true; /* who asked has the run in its memory */
    answer->start.first_event_id = answer->start.previous_started_id + 1;
}

struct error *
command_complete_decision(struct step *step, const struct complete_command *command,
                          struct complete_answer *answer)
{
    const API(RespondDecisionTaskCompletedRequest) *request = command->request;
    *answer = (struct complete_answer){0};
    if (request->n_decisions > DECISIONS_MAX)
        return error_new(step->arena, ERR_BAD_REQUEST, "Decision result count exceeds limit.");
    struct completion completion = {.step = step, .command = command, .request = request};
    struct error *err = decision_find_started(step, &command->task, &completion.mutation);
    if (err != NULL)
        return err;
    completion.is_heartbeat = request->force_create_new_decision_task && request->n_decisions == 0;
    completion.original_scheduled_time =
        mutation_run(completion.mutation)->core->decision->original_scheduled_time;
    if (heartbeat_is_late(&completion)) {
        heartbeat_time_out(&completion, answer);
        return NULL;
    }
    struct mutation_savepoint before = mutation_savepoint(completion.mutation);
    err = take_decisions(&completion);
    if (err != NULL)
        return err;
    limit_size(&completion, &before, answer);
    give_local(&completion, answer);
    go_on(&completion, answer);
    step_check(step);
    return NULL;
}
