/* apply_test.c - what each event does to a run. */
#include "base/test.h"
#include "engine/run/test_samples.h"

static const struct transfer_effect *
only_added(const struct sample *sample)
{
    EXPECT_EQ(sample->effects.added_count, 1);
    return &sample->effects.added[0];
}

TEST(apply, a_start_makes_a_created_run, "A-032")
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_begin(&sample);
    EXPECT_EQ(sample_started(&sample, 0), 1);
    const STORED(RunRecord) *core = sample.run->core;
    EXPECT_EQ(core->state, RUN_CREATED);
    EXPECT_TEXT(core->workflow_type->name, "sell");
    EXPECT_TEXT(core->task_list->name, "orders");
    EXPECT_TEXT(core->first_execution_run_id, SAMPLE_RUN);
    EXPECT_TEXT(core->original_execution_run_id, SAMPLE_RUN);
    EXPECT_TEXT(core->create_request_id, "start-1");
    EXPECT_EQ(core->execution_timeout, 1000);
    EXPECT_EQ(core->decision_timeout, 10);
    EXPECT_EQ(core->start_time, SAMPLE_TIME);
    EXPECT_EQ(core->tree_id.len, 16);
    EXPECT(run_is_open(sample.run));
    EXPECT(!run_has_pending_decision(sample.run));
    mutation_cancel(sample.mutation);
    sample_close(&sample);
}

TEST(apply, a_scheduled_decision_waits_with_a_row_on_the_normal_list)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    const STORED(PendingDecision) *decision = sample.run->core->decision;
    EXPECT_EQ(sample.run->core->state, RUN_RUNNING);
    EXPECT_EQ(decision->schedule_id, 2);
    EXPECT_EQ(decision->started_id, EVENT_NONE);
    EXPECT_EQ(decision->schedule_timeout_time, 0);
    const struct transfer_effect *added = only_added(&sample);
    EXPECT_EQ(added->row, decision->row);
    EXPECT_EQ(added->transfer->schedule_id, 2);
    EXPECT_TEXT(added->transfer->task_list->name, "orders");
    EXPECT_TEXT(added->transfer->normal_list, "");
    EXPECT_TEXT(added->transfer->workflow_id, "order-1");
    EXPECT_EQ(added->transfer->created_time, SAMPLE_TIME);
    EXPECT_EQ(added->transfer->expiry_time, sample.run->core->timeout_time); /* not for ever */
    sample_close(&sample);
}

TEST(apply, a_started_decision_has_no_row_and_completing_it_leaves_none)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    uint64_t row = sample.run->core->decision->row;
    sample_begin(&sample);
    EXPECT_EQ(sample_decision_started(&sample), 3);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.dropped_count, 1);
    EXPECT_EQ(sample.effects.dropped[0], row);
    EXPECT_EQ(sample.run->core->decision->started_id, 3);
    EXPECT_EQ(sample.run->core->decision->row, 0);
    EXPECT_TEXT(sample.run->core->decision->request_id, "poll-1");
    sample_begin(&sample);
    EXPECT_EQ(sample_decision_completed(&sample), 4);
    sample_finish(&sample);
    EXPECT(!run_has_pending_decision(sample.run));
    EXPECT_EQ(sample.run->core->previous_started_event_id, 3);
    EXPECT_EQ(sample.run->core->execution_context.len, 7);
    EXPECT_EQ(sample.effects.dropped_count, 0);
    sample_close(&sample);
}

static void
make_sticky(struct sample *sample)
{
    STORED(RunRecord) *core = mutation_core(sample->mutation);
    core->sticky_task_list = API_NEW(sample->run->arena, task_list, .name = "host-7",
                                     .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY));
    core->sticky_timeout = 5;
    core->sticky_time = sample->context.now;
}

TEST(apply, a_sticky_decision_times_out_unstarted_without_counting, "A-091")
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    make_sticky(&sample);
    sample_decision_scheduled(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->decision->schedule_timeout_time, SAMPLE_TIME + 5 * SECOND);
    EXPECT_TEXT(only_added(&sample)->transfer->task_list->name, "host-7");
    EXPECT_TEXT(only_added(&sample)->transfer->normal_list, "orders");
    uint64_t row = sample.run->core->decision->row;
    sample_begin(&sample);
    sample_decision_timed_out(&sample, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->decision_attempt, 0);
    EXPECT(sample.run->core->sticky_task_list == NULL);
    EXPECT_EQ(sample.effects.dropped[0], row);
    sample_close(&sample);
}

TEST(apply, a_failed_decision_counts_and_forgets_the_sticky_list)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    make_sticky(&sample);
    sample_decision_failed(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->decision_attempt, 1);
    EXPECT(sample.run->core->sticky_task_list == NULL);
    EXPECT_EQ(sample.run->core->previous_started_event_id, 0);
    sample_close(&sample);
}

TEST(apply, a_started_decision_that_times_out_counts)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    sample_decision_timed_out(&sample, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->decision_attempt, 1);
    EXPECT(!run_has_pending_decision(sample.run));
    sample_close(&sample);
}

TEST(apply, an_activity_is_pending_from_its_schedule_to_its_end)
{
    static const API(HistoryEvent__AttributesCase) ends[] = {
        EVENT_KIND(ACTIVITY_TASK_COMPLETED), EVENT_KIND(ACTIVITY_TASK_FAILED),
        EVENT_KIND(ACTIVITY_TASK_TIMED_OUT), EVENT_KIND(ACTIVITY_TASK_CANCELED)};
    for (size_t i = 0; i < array_length(ends); i++) {
        struct sample sample;
        sample_open(&sample, 1);
        sample_started_run(&sample);
        sample_begin(&sample);
        sample_decision_completed(&sample);
        int64_t id = sample_activity_scheduled(&sample, "a", 0);
        sample_finish(&sample);
        const STORED(PendingActivity) *activity = run_find_activity_id(sample.run, "a");
        EXPECT_EQ(activity->schedule_id, id);
        EXPECT_EQ(activity->schedule_batch_event_id, 4);
        EXPECT_EQ(activity->schedule_to_start, 40);
        EXPECT_EQ(activity->expiration_time, 0);
        EXPECT_EQ(only_added(&sample)->row, activity->row);
        EXPECT_EQ(only_added(&sample)->transfer->expiry_time, SAMPLE_TIME + 40 * SECOND);
        uint64_t row = activity->row;
        sample_begin(&sample);
        sample_activity_started(&sample, id);
        sample_finish(&sample);
        EXPECT_EQ(sample.effects.dropped[0], row);
        EXPECT_EQ(run_find_activity(sample.run, id)->started_id, id + 1);
        EXPECT_EQ(run_find_activity(sample.run, id)->started_time, SAMPLE_TIME);
        sample_begin(&sample);
        sample_activity_ended(&sample, id, ends[i]);
        sample_finish(&sample);
        EXPECT(run_find_activity(sample.run, id) == NULL);
        EXPECT(run_find_activity_id(sample.run, "a") == NULL);
        sample_close(&sample);
    }
}

TEST(apply, an_unstarted_activity_takes_its_row_with_it)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    int64_t id = sample_activity_scheduled(&sample, "a", 0);
    sample_finish(&sample);
    uint64_t row = run_find_activity(sample.run, id)->row;
    sample_begin(&sample);
    int64_t requested = sample_activity_cancel_requested(&sample, "a");
    EXPECT(run_find_activity(sample.run, id)->is_cancel_requested);
    EXPECT_EQ(run_find_activity(sample.run, id)->cancel_requested_event_id, requested);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.dropped_count, 1);
    EXPECT_EQ(sample.effects.dropped[0], row);
    sample_close(&sample);
}

/* The start that is written with the end must not make the activity younger. */
TEST(apply, a_start_that_is_told_late_keeps_the_time_it_had)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    int64_t id = sample_activity_scheduled(&sample, "a", 3);
    sample_finish(&sample);
    EXPECT_EQ(run_find_activity(sample.run, id)->expiration_time, SAMPLE_TIME + 90 * SECOND);
    sample_begin(&sample);
    STORED(PendingActivity) *activity = mutation_change_activity(sample.mutation, id);
    mutation_drop_transfer(sample.mutation, activity->row);
    activity->row = 0;
    activity->started_id = EVENT_TRANSIENT;
    activity->started_time = SAMPLE_TIME;
    sample_finish(&sample);
    sample_wait(&sample, 7);
    sample_begin(&sample);
    int64_t started = sample_activity_started(&sample, id);
    EXPECT_EQ(run_find_activity(sample.run, id)->started_id, started);
    EXPECT_EQ(run_find_activity(sample.run, id)->started_time, SAMPLE_TIME);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    sample_finish(&sample);
    sample_close(&sample);
}

TEST(apply, signals_and_a_cancel_request_are_noted)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_begin(&sample);
    sample_signaled(&sample, "s", "r-1");
    sample_signaled(&sample, "s", "");
    sample_plain(&sample, EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    sample_plain(&sample, EVENT_KIND(MARKER_RECORDED));
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->signal_count, 2);
    EXPECT_EQ(map_count(sample.run->signal_requests), 1);
    EXPECT(sample.run->core->is_cancel_requested);
    EXPECT_EQ(sample.run->core->next_event_id, 7);
    sample_close(&sample);
}

static void
upsert(struct sample *sample, const char *key, const char *value)
{
    API(HistoryEvent) *event =
        mutation_new_event(sample->mutation, EVENT_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES));
    API(SearchAttributes) *attributes = API_NEW(sample->arena, search_attributes);
    API(SearchAttributes__IndexedFieldsEntry) *entry =
        message_new(sample->arena, API_TYPE(search_attributes__indexed_fields_entry));
    entry->key = (char *)key;
    entry->value = API_NEW(sample->arena, payload, .data = presence_make_bytes(slice_text(value)));
    attributes->n_indexed_fields = 1;
    attributes->indexed_fields = arena_zalloc(sample->arena, 1, sizeof(void *));
    attributes->indexed_fields[0] = entry;
    event->upsert_workflow_search_attributes_event_attributes->search_attributes = attributes;
    mutation_add_event(sample->mutation, event);
}

TEST(apply, search_attributes_are_added_to_those_there)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_begin(&sample);
    upsert(&sample, "b", "1");
    struct mutation_savepoint savepoint = mutation_savepoint(sample.mutation);
    upsert(&sample, "a", "2");
    upsert(&sample, "b", "3");
    const API(SearchAttributes) *all = sample.run->core->search_attributes;
    EXPECT_EQ(all->n_indexed_fields, 2);
    EXPECT_TEXT(all->indexed_fields[0]->key, "a");
    EXPECT_EQ(all->indexed_fields[1]->value->data.data[0], '3');
    mutation_rewind(sample.mutation, &savepoint);
    EXPECT_EQ(sample.run->core->search_attributes->n_indexed_fields, 1);
    EXPECT_EQ(sample.run->core->search_attributes->indexed_fields[0]->value->data.data[0], '1');
    sample_finish(&sample);
    sample_close(&sample);
}

TEST(apply, a_close_ends_everything_that_waits_outside)
{
    static const struct {
        API(HistoryEvent__AttributesCase) kind;
        close_status_t status;
    } ends[] = {{EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED), CLOSE_COMPLETED},
                {EVENT_KIND(WORKFLOW_EXECUTION_FAILED), CLOSE_FAILED},
                {EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT), CLOSE_TIMED_OUT},
                {EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED), CLOSE_TERMINATED},
                {EVENT_KIND(WORKFLOW_EXECUTION_CANCELED), CLOSE_CANCELED}};
    for (size_t i = 0; i < array_length(ends); i++) {
        struct sample sample;
        sample_open(&sample, 1);
        sample_started_run(&sample);
        sample_begin(&sample);
        sample_decision_completed(&sample);
        sample_activity_scheduled(&sample, "a", 0);
        sample_decision_scheduled(&sample);
        sample_finish(&sample);
        sample_wait(&sample, 3);
        sample_begin(&sample);
        sample_plain(&sample, ends[i].kind);
        sample_finish(&sample);
        EXPECT(!run_is_open(sample.run));
        EXPECT_EQ(sample.run->core->close_status, ends[i].status);
        EXPECT_EQ(sample.run->core->close_time, SAMPLE_TIME + 3 * SECOND);
        EXPECT_EQ(sample.run->core->close_batch_event_id, 7);
        EXPECT_EQ(sample.effects.dropped_count, 2); /* the decision's row and the activity's */
        sample_close(&sample);
    }
}
