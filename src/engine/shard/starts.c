/* starts.c - see starts.h. */
#include "engine/shard/starts.h"

#include "base/check.h"
#include "engine/branches/history_message.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- decisions ---- */

static void
show_queries(const struct decision_start *start, struct arena *arena,
             INTERNAL(DecisionStart) * message)
{
    if (start->query_count == 0)
        return;
    message->with_queries = message_new(arena, API_TYPE(poll_for_decision_task_response));
    message->with_queries->queries = start->queries;
    message->with_queries->n_queries = start->query_count;
}

void
decision_start_to_message(const struct decision_start *start, struct arena *arena,
                          INTERNAL(DecisionStart) * message)
{
    check((start->transient_scheduled == NULL) == (start->transient_started == NULL));
    message->schedule_id = start->schedule_id;
    message->started_id = start->started_id;
    message->previous_started_id = start->previous_started_id;
    message->attempt = start->attempt;
    message->next_event_id = start->next_event_id;
    message->first_event_id = start->first_event_id;
    message->scheduled_time = start->scheduled_time;
    message->started_time = start->started_time;
    message->is_sticky = start->is_sticky;
    message->history_bytes = start->history_bytes;
    message->workflow_type = (API(WorkflowType) *)start->workflow_type;
    message->task_list = (API(TaskList) *)start->task_list;
    message->run_id = presence_make_text(start->run_id);
    message->lineage = history_lineage_to_message(&start->lineage, arena);
    message->transient_scheduled = (API(HistoryEvent) *)start->transient_scheduled;
    message->transient_started = (API(HistoryEvent) *)start->transient_started;
    if (start->recent.count > 0)
        message->recent = history_page_to_message(&start->recent, arena);
    show_queries(start, arena, message);
}

void
decision_start_from_message(const INTERNAL(DecisionStart) * message, struct arena *arena,
                            struct decision_start *start)
{
    *start = (struct decision_start){
        .schedule_id = message->schedule_id,
        .started_id = message->started_id,
        .previous_started_id = message->previous_started_id,
        .attempt = message->attempt,
        .next_event_id = message->next_event_id,
        .first_event_id = message->first_event_id,
        .scheduled_time = message->scheduled_time,
        .started_time = message->started_time,
        .is_sticky = message->is_sticky,
        .history_bytes = message->history_bytes,
        .workflow_type = message->workflow_type,
        .task_list = message->task_list,
        .run_id = message->run_id,
        .lineage = history_lineage_from_message(message->lineage, arena),
        .transient_scheduled = message->transient_scheduled,
        .transient_started = message->transient_started,
    };
    if (message->recent != NULL)
        start->recent = history_page_from_message(message->recent, arena);
    if (message->with_queries != NULL) {
        start->queries = message->with_queries->queries;
        start->query_count = message->with_queries->n_queries;
    }
}

/* --- activities ---- */

void
activity_start_to_message(const struct activity_start *start, INTERNAL(ActivityStart) * message)
{
    message->activity = (STORED(PendingActivity) *)start->activity;
    message->workflow_type = (API(WorkflowType) *)start->workflow_type;
    message->run_id = presence_make_text(start->run_id);
}

struct activity_start
activity_start_from_message(const INTERNAL(ActivityStart) * message)
{
    return (struct activity_start){message->activity, message->workflow_type, message->run_id};
}

/* --- one of them, as bytes ---- */

struct slice
task_start_encode(enum task_type type, const struct task_start *start, struct arena *arena)
{
    INTERNAL(TaskStart) message = INTERNAL_VALUE(TASK_START__INIT);
    INTERNAL(DecisionStart) decision = INTERNAL_VALUE(DECISION_START__INIT);
    INTERNAL(ActivityStart) activity = INTERNAL_VALUE(ACTIVITY_START__INIT);
    if (type == TASK_DECISION) {
        decision_start_to_message(&start->decision, arena, &decision);
        message.decision = &decision;
    } else {
        activity_start_to_message(&start->activity, &activity);
        message.activity = &activity;
    }
    return message_encode(arena, &message.base);
}

struct task_start *
task_start_decode(struct slice bytes, struct arena *arena)
{
    INTERNAL(TaskStart) *message = NULL;
    struct task_start *start = arena_make(arena, struct task_start);
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(task_start), bytes, &message);
    if (err != NULL || (message->decision == NULL) == (message->activity == NULL))
        return NULL;
    if (message->decision != NULL)
        decision_start_from_message(message->decision, arena, &start->decision);
    else
        start->activity = activity_start_from_message(message->activity);
    return start;
}
