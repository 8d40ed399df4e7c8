/* test_samples.c - a run to try things on. */
#include "engine/run/test_samples.h"

#include "base/buffer.h"
#include "base/tree.h"

void
sample_open(struct sample *sample, uint64_t seed)
{
    *sample = (struct sample){.arena = arena_new(0), .dynamic = dynamic_new(NULL)};
    random_seed(&sample->random, seed);
    sample->ids = (struct row_ids){.next = (uint64_t)7 << 24, .end = (uint64_t)8 << 24};
    sample->context = (struct run_context){.now = SAMPLE_TIME,
                                           .event_version = 10,
                                           .dynamic = sample->dynamic,
                                           .random = &sample->random,
                                           .range_id = 7,
                                           .ids = &sample->ids};
    sample->run = run_new();
    STORED(RunRecord) *core = sample->run->core;
    core->domain_id = run_keep_text(sample->run, SAMPLE_DOMAIN);
    core->workflow_id = run_keep_text(sample->run, "order-1");
    core->run_id = run_keep_text(sample->run, SAMPLE_RUN);
}

void
sample_close(struct sample *sample)
{
    run_free(sample->run);
    dynamic_free(sample->dynamic);
    arena_free(sample->arena);
}

void
sample_begin(struct sample *sample)
{
    check(sample->mutation == NULL);
    sample->mutation = mutation_begin(sample->run, &sample->context, sample->arena);
}

void
sample_finish(struct sample *sample)
{
    sample->batch = batch_new(sample->arena, PARTITION_OF_SHARD(3), sample->context.range_id);
    mutation_finish(sample->mutation, sample->batch, &sample->effects);
    sample->mutation = NULL;
    run_check(sample->run);
    int64_t deadline = run_next_deadline(sample->run), least = sample->context.wakeup_time_min;
    check(sample->run->core->alarm_time <= (deadline > least ? deadline : least));
}

void
sample_wait(struct sample *sample, int64_t seconds)
{
    sample->context.now += seconds * SECOND;
}

/* ---- images ---- */

static void
image_add(struct tree *tree, struct slice key, void *value, struct arena *arena)
{
    struct slice *bytes = arena_make(arena, struct slice);
    *bytes = message_encode(arena, value);
    tree_put(tree, key, bytes);
}

struct slice
sample_image(const struct run *run, struct arena *arena)
{
    const STORED(RunRecord) *core = run->core;
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    struct tree *tree = tree_new();
    image_add(tree, run_row_key(&key, arena), run->core, arena);
    size_t cursor = 0;
    uint64_t number;
    struct slice text;
    void *value;
    while (map64_next(run->activities, &cursor, &number, &value))
        image_add(tree, pending_key_number(&key, PENDING_ACTIVITY, number, arena), value, arena);
    for (cursor = 0; map64_next(run->buffered, &cursor, &number, &value);)
        image_add(tree, pending_key_number(&key, PENDING_BUFFERED, number, arena), value, arena);
    for (cursor = 0; map_next(run->timers, &cursor, &text, &value);)
        image_add(tree, pending_key_text(&key, PENDING_TIMER, arena_text_of(arena, text), arena),
                  value, arena);
    for (cursor = 0; map_next(run->signal_requests, &cursor, &text, &value);)
        image_add(tree,
                  pending_key_text(&key, PENDING_SIGNAL_REQUEST, arena_text_of(arena, text), arena),
                  value, arena);
    if (run->birth != NULL)
        image_add(tree, pending_key_number(&key, PENDING_BIRTH, 0, arena), run->birth, arena);
    struct buffer image = {0};
    for (struct tree_row *row = tree_first(tree); row != NULL; row = tree_next(row)) {
        buffer_append(&image, row->key);
        buffer_append(&image, *(const struct slice *)row->value);
    }
    tree_free(tree);
    struct slice copy = arena_slice(arena, buffer_slice(&image));
    buffer_free(&image);
    return copy;
}

/* ---- events ---- */

static API(HistoryEvent) *
new_event(struct sample *sample, API(HistoryEvent__AttributesCase) kind)
{
    return mutation_new_event(sample->mutation, kind);
}

static int64_t
add_event(struct sample *sample, API(HistoryEvent) *event)
{
    return mutation_add_event(sample->mutation, event);
}

static API(TaskList) *
new_list(struct sample *sample, const char *name)
{
    return API_NEW(sample->arena, task_list, .name = arena_text(sample->arena, name),
                   .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
}

static API(Payload) *
new_payload(struct sample *sample, const char *text)
{
    API(Payload) *payload =
        API_NEW(sample->arena, payload, .data = presence_make_bytes(slice_text(text)));
    return payload;
}

int64_t
sample_started(struct sample *sample, int64_t backoff)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
    API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    started->workflow_type = API_NEW(sample->arena, workflow_type, .name = "sell");
    started->task_list = new_list(sample, "orders");
    started->input = new_payload(sample, "in");
    started->execution_start_to_close_timeout = presence_make_duration(sample->arena, 1000);
    started->task_start_to_close_timeout = presence_make_duration(sample->arena, 10);
    started->request_id = "start-1";
    if (backoff > 0)
        started->first_decision_task_backoff = presence_make_duration(sample->arena, backoff);
    return add_event(sample, event);
}

int64_t
sample_decision_scheduled(struct sample *sample)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(DECISION_TASK_SCHEDULED));
    API(DecisionTaskScheduledEventAttributes) *scheduled =
        event->decision_task_scheduled_event_attributes;
    scheduled->task_list = (API(TaskList) *)mutation_decision_list(sample->mutation);
    scheduled->start_to_close_timeout = presence_make_duration(sample->arena, 10);
    return add_event(sample, event);
}

int64_t
sample_decision_started(struct sample *sample)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(DECISION_TASK_STARTED));
    event->decision_task_started_event_attributes->scheduled_event_id =
        sample->run->core->decision->schedule_id;
    event->decision_task_started_event_attributes->request_id = "poll-1";
    event->decision_task_started_event_attributes->identity = "worker";
    return add_event(sample, event);
}

int64_t
sample_decision_completed(struct sample *sample)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(DECISION_TASK_COMPLETED));
    API(DecisionTaskCompletedEventAttributes) *completed =
        event->decision_task_completed_event_attributes;
    completed->scheduled_event_id = sample->run->core->decision->schedule_id;
    completed->started_event_id = sample->run->core->decision->started_id;
    completed->execution_context = presence_make_bytes(slice_text("context"));
    return add_event(sample, event);
}

int64_t
sample_decision_failed(struct sample *sample)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(DECISION_TASK_FAILED));
    event->decision_task_failed_event_attributes->scheduled_event_id =
        sample->run->core->decision->schedule_id;
    event->decision_task_failed_event_attributes->started_event_id =
        sample->run->core->decision->started_id;
    return add_event(sample, event);
}

int64_t
sample_decision_timed_out(struct sample *sample, API(TimeoutType) type)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(DECISION_TASK_TIMED_OUT));
    event->decision_task_timed_out_event_attributes->scheduled_event_id =
        sample->run->core->decision->schedule_id;
    event->decision_task_timed_out_event_attributes->timeout_type = type;
    return add_event(sample, event);
}

int64_t
sample_activity_scheduled(struct sample *sample, const char *id, int32_t attempts)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(ACTIVITY_TASK_SCHEDULED));
    API(ActivityTaskScheduledEventAttributes) *scheduled =
        event->activity_task_scheduled_event_attributes;
    scheduled->activity_id = arena_text(sample->arena, id);
    scheduled->activity_type = API_NEW(sample->arena, activity_type, .name = "charge");
    scheduled->task_list = new_list(sample, "cards");
    scheduled->input = new_payload(sample, sample->input == NULL ? "5 EUR" : sample->input);
    scheduled->schedule_to_close_timeout = presence_make_duration(sample->arena, 100);
    scheduled->schedule_to_start_timeout = presence_make_duration(sample->arena, 40);
    scheduled->start_to_close_timeout = presence_make_duration(sample->arena, 60);
    scheduled->heartbeat_timeout = presence_make_duration(sample->arena, 20);
    if (attempts > 0) {
        scheduled->retry_policy =
            API_NEW(sample->arena, retry_policy, .maximum_attempts = attempts,
                    .expiration_interval = presence_make_duration(sample->arena, 90));
    }
    return add_event(sample, event);
}

int64_t
sample_activity_started(struct sample *sample, int64_t schedule_id)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(ACTIVITY_TASK_STARTED));
    API(ActivityTaskStartedEventAttributes) *started =
        event->activity_task_started_event_attributes;
    started->scheduled_event_id = schedule_id;
    started->request_id = "poll-2";
    started->identity = "hand";
    started->attempt = run_find_activity(sample->run, schedule_id)->attempt;
    return add_event(sample, event);
}

int64_t
sample_activity_ended(struct sample *sample, int64_t schedule_id,
                      API(HistoryEvent__AttributesCase) kind)
{
    const STORED(PendingActivity) *activity = run_find_activity(sample->run, schedule_id);
    API(HistoryEvent) *event = new_event(sample, kind);
    if (kind == EVENT_KIND(ACTIVITY_TASK_COMPLETED)) {
        event->activity_task_completed_event_attributes->scheduled_event_id = schedule_id;
        event->activity_task_completed_event_attributes->started_event_id = activity->started_id;
    } else if (kind == EVENT_KIND(ACTIVITY_TASK_FAILED)) {
        event->activity_task_failed_event_attributes->scheduled_event_id = schedule_id;
        event->activity_task_failed_event_attributes->started_event_id = activity->started_id;
    } else if (kind == EVENT_KIND(ACTIVITY_TASK_TIMED_OUT)) {
        event->activity_task_timed_out_event_attributes->scheduled_event_id = schedule_id;
        event->activity_task_timed_out_event_attributes->started_event_id = activity->started_id;
    } else {
        event->activity_task_canceled_event_attributes->scheduled_event_id = schedule_id;
        event->activity_task_canceled_event_attributes->started_event_id = activity->started_id;
    }
    return add_event(sample, event);
}

int64_t
sample_activity_cancel_requested(struct sample *sample, const char *id)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED));
    event->activity_task_cancel_requested_event_attributes->activity_id = (char *)id;
    return add_event(sample, event);
}

int64_t
sample_timer_started(struct sample *sample, const char *id, int64_t seconds)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(TIMER_STARTED));
    event->timer_started_event_attributes->timer_id = arena_text(sample->arena, id);
    event->timer_started_event_attributes->start_to_fire_timeout =
        presence_make_duration(sample->arena, seconds);
    return add_event(sample, event);
}

int64_t
sample_timer_fired(struct sample *sample, const char *id)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(TIMER_FIRED));
    event->timer_fired_event_attributes->timer_id = arena_text(sample->arena, id);
    event->timer_fired_event_attributes->started_event_id =
        run_find_timer(sample->run, id)->started_id;
    return add_event(sample, event);
}

int64_t
sample_timer_canceled(struct sample *sample, const char *id)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(TIMER_CANCELED));
    event->timer_canceled_event_attributes->timer_id = arena_text(sample->arena, id);
    event->timer_canceled_event_attributes->started_event_id =
        run_find_timer(sample->run, id)->started_id;
    return add_event(sample, event);
}

int64_t
sample_signaled(struct sample *sample, const char *name, const char *request_id)
{
    API(HistoryEvent) *event = new_event(sample, EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED));
    event->workflow_execution_signaled_event_attributes->signal_name =
        arena_text(sample->arena, name);
    event->workflow_execution_signaled_event_attributes->request_id =
        arena_text(sample->arena, request_id);
    return add_event(sample, event);
}

int64_t
sample_plain(struct sample *sample, API(HistoryEvent__AttributesCase) kind)
{
    return add_event(sample, new_event(sample, kind));
}

/* ---- shortcuts ---- */

void
sample_scheduled_run(struct sample *sample)
{
    sample_begin(sample);
    sample_started(sample, 0);
    sample_decision_scheduled(sample);
    sample_finish(sample);
}

void
sample_started_run(struct sample *sample)
{
    sample_scheduled_run(sample);
    sample_begin(sample);
    sample_decision_started(sample);
    sample_finish(sample);
}
