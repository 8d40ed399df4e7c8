/* flush_test.c - events that come while a decision is started: when and in which order they get
 * ids. */
#include "base/test.h"
#include "engine/run/test_samples.h"
#include "wire/names.h"

/* The names of the step's events, in order: "DecisionTaskCompleted WorkflowExecutionSignaled". */
static const char *
names(const struct sample *sample)
{
    size_t count;
    API(HistoryEvent) *const *events = mutation_events(sample->mutation, &count);
    const char *text = "";
    for (size_t i = 0; i < count; i++)
        text = arena_format(sample->arena, "%s%s%s", text, i == 0 ? "" : " ",
                            event_name(events[i]->attributes_case));
    return text;
}

static const API(HistoryEvent) *
find_event(const struct sample *sample, API(HistoryEvent__AttributesCase) kind)
{
    size_t count;
    API(HistoryEvent) *const *events = mutation_events(sample->mutation, &count);
    for (size_t i = 0; i < count; i++)
        if (events[i]->attributes_case == kind)
            return events[i];
    TEST_FAIL("no %s", event_name(kind));
}

/* A run with an activity scheduled (its id is given back), a timer, and a started decision. */
static int64_t
busy_run(struct sample *sample)
{
    sample_started_run(sample);
    sample_begin(sample);
    sample_decision_completed(sample);
    int64_t id = sample_activity_scheduled(sample, "a", 0);
    sample_timer_started(sample, "t", 5);
    sample_decision_scheduled(sample);
    sample_finish(sample);
    sample_begin(sample);
    sample_decision_started(sample);
    sample_finish(sample);
    return id;
}

TEST(flush, buffered_events_follow_the_decision_and_its_own_events, "A-084")
{
    struct sample sample;
    sample_open(&sample, 1);
    busy_run(&sample);
    int64_t next = sample.run->core->next_event_id;
    sample_begin(&sample);
    EXPECT_EQ(sample_signaled(&sample, "s", "r"), EVENT_BUFFERED);
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->next_event_id, next);
    EXPECT(!sample.effects.has_new_events);
    EXPECT_EQ(sample.run->core->signal_count, 1); /* applied at once */
    EXPECT(run_has_buffered(sample.run));

    sample_begin(&sample);
    struct mutation *mutation = sample.mutation;
    sample_decision_completed(&sample);
    sample_plain(&sample, EVENT_KIND(MARKER_RECORDED));
    sample_finish(&sample);
    sample.mutation = mutation;
    EXPECT_TEXT(names(&sample), "DecisionTaskCompleted MarkerRecorded WorkflowExecutionSignaled");
    sample.mutation = NULL;
    EXPECT(!run_has_buffered(sample.run));
    EXPECT_EQ(sample.run->core->next_event_id, next + 3);
    sample_close(&sample);
}

TEST(flush, an_end_goes_behind_its_start_and_names_it, "A-086")
{
    struct sample sample;
    sample_open(&sample, 1);
    int64_t id = busy_run(&sample);
    sample_begin(&sample);
    EXPECT_EQ(sample_activity_started(&sample, id), EVENT_BUFFERED);
    EXPECT_EQ(run_find_activity(sample.run, id)->started_id, EVENT_BUFFERED);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    sample_signaled(&sample, "late", "");
    sample_finish(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    EXPECT(mutation_flush_buffered(sample.mutation));
    EXPECT_TEXT(names(&sample), "DecisionTaskCompleted ActivityTaskStarted "
                                "WorkflowExecutionSignaled ActivityTaskCompleted");
    const API(HistoryEvent) *started = find_event(&sample, EVENT_KIND(ACTIVITY_TASK_STARTED));
    const API(HistoryEvent) *ended = find_event(&sample, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    EXPECT_EQ(ended->activity_task_completed_event_attributes->started_event_id, started->event_id);
    EXPECT_EQ(ended->activity_task_completed_event_attributes->scheduled_event_id, id);
    EXPECT(started->event_id < ended->event_id);
    sample_finish(&sample);
    sample_close(&sample);
}

/* After memory was lost what is buffered is written with a later version than it came with. */
TEST(flush, an_activity_that_goes_on_learns_the_version_of_its_start)
{
    struct sample sample;
    sample_open(&sample, 1);
    int64_t id = busy_run(&sample);
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    sample_finish(&sample);
    int64_t before = run_find_activity(sample.run, id)->event_version;
    sample.context.event_version = before + 10;
    sample_begin(&sample);
    sample_decision_completed(&sample);
    sample_finish(&sample);
    EXPECT_EQ(run_find_activity(sample.run, id)->event_version, before + 10);
    sample_close(&sample);
}

TEST(flush, an_activity_that_goes_on_learns_the_id_of_its_start)
{
    struct sample sample;
    sample_open(&sample, 1);
    int64_t id = busy_run(&sample);
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    sample_finish(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    sample_finish(&sample);
    int64_t started_id = run_find_activity(sample.run, id)->started_id;
    EXPECT_EQ(started_id, sample.run->core->next_event_id - 1);
    sample_close(&sample);
}

/* Two timeouts at one moment: the decision's ends the buffering, the activity's names a start that
 * is still in the buffer. */
TEST(flush, an_end_that_names_a_buffered_start_brings_the_buffer_with_it)
{
    struct sample sample;
    sample_open(&sample, 1);
    int64_t id = busy_run(&sample);
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    sample_finish(&sample);
    sample_begin(&sample);
    sample_decision_timed_out(&sample, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
    EXPECT_TEXT(names(&sample), "DecisionTaskTimedOut ActivityTaskStarted ActivityTaskTimedOut");
    const API(HistoryEvent) *ended = find_event(&sample, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
    EXPECT_EQ(ended->activity_task_timed_out_event_attributes->started_event_id,
              ended->event_id - 1);
    sample_finish(&sample);
    sample_close(&sample);
}

TEST(flush, what_is_buffered_when_the_run_closes_is_dropped, "A-089")
{
    struct sample sample;
    sample_open(&sample, 1);
    busy_run(&sample);
    sample_begin(&sample);
    sample_signaled(&sample, "s", "");
    sample_finish(&sample);
    sample_begin(&sample);
    struct mutation *mutation = sample.mutation;
    sample_decision_completed(&sample);
    sample_plain(&sample, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    sample_finish(&sample);
    sample.mutation = mutation;
    EXPECT_TEXT(names(&sample), "DecisionTaskCompleted WorkflowExecutionCompleted");
    sample.mutation = NULL;
    EXPECT(!run_has_buffered(sample.run));
    size_t deletes = 0;
    for (const struct batch_step *step = sample.batch->first; step != NULL; step = step->next)
        deletes += step->verb == BATCH_DELETE && step->kind == ROW_PENDING;
    EXPECT_EQ(deletes, 1);
    sample_close(&sample);
}

TEST(flush, a_forced_close_writes_behind_the_buffer, "A-080")
{
    struct sample sample;
    sample_open(&sample, 1);
    busy_run(&sample);
    sample_begin(&sample);
    sample_signaled(&sample, "s", "");
    sample_decision_failed(&sample);
    EXPECT(mutation_flush_buffered(sample.mutation));
    EXPECT(!mutation_flush_buffered(sample.mutation));
    sample_plain(&sample, EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
    EXPECT_TEXT(names(&sample),
                "DecisionTaskFailed WorkflowExecutionSignaled WorkflowExecutionTerminated");
    sample_finish(&sample);
    sample_close(&sample);
}

TEST(flush, a_timer_that_fired_into_the_buffer_can_still_be_cancelled, "A-088")
{
    struct sample sample;
    sample_open(&sample, 1);
    busy_run(&sample);
    int64_t started_id = run_find_timer(sample.run, "t")->started_id;
    sample_begin(&sample);
    sample_timer_fired(&sample, "t");
    sample_finish(&sample);
    EXPECT(run_find_timer(sample.run, "t") == NULL);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    EXPECT(!mutation_unbuffer_timer(sample.mutation, "other"));
    EXPECT(mutation_unbuffer_timer(sample.mutation, "t"));
    EXPECT_EQ(run_find_timer(sample.run, "t")->started_id, started_id);
    sample_timer_canceled(&sample, "t");
    EXPECT_TEXT(names(&sample), "DecisionTaskCompleted TimerCanceled");
    sample_finish(&sample);
    EXPECT(!run_has_buffered(sample.run));
    EXPECT(run_find_timer(sample.run, "t") == NULL);
    sample_close(&sample);
}

/* A rewind puts a record that was taken out back behind the others in its map. */
TEST(flush, the_order_of_arrival_survives_a_rewind)
{
    struct sample sample;
    sample_open(&sample, 1);
    busy_run(&sample);
    sample_begin(&sample);
    sample_timer_fired(&sample, "t");
    sample_signaled(&sample, "s", "");
    struct mutation_savepoint savepoint = mutation_savepoint(sample.mutation);
    EXPECT(mutation_unbuffer_timer(sample.mutation, "t"));
    mutation_rewind(sample.mutation, &savepoint);
    sample_decision_completed(&sample);
    mutation_flush_buffered(sample.mutation);
    EXPECT_TEXT(names(&sample), "DecisionTaskCompleted TimerFired WorkflowExecutionSignaled");
    sample_finish(&sample);
    sample_close(&sample);
}

/* Every kind once: what the worker or the run itself does is never held back. */
TEST(flush, only_what_comes_from_outside_is_buffered, "A-085")
{
    static const API(HistoryEvent__AttributesCase) outside[] = {
        EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED),
        EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED),
        EVENT_KIND(ACTIVITY_TASK_STARTED),
        EVENT_KIND(ACTIVITY_TASK_COMPLETED),
        EVENT_KIND(ACTIVITY_TASK_FAILED),
        EVENT_KIND(ACTIVITY_TASK_TIMED_OUT),
        EVENT_KIND(ACTIVITY_TASK_CANCELED),
        EVENT_KIND(REQUEST_CANCEL_ACTIVITY_TASK_FAILED),
        EVENT_KIND(TIMER_FIRED),
        EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED),
        EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED),
        EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_FAILED),
        EVENT_KIND(CHILD_WORKFLOW_EXECUTION_STARTED),
        EVENT_KIND(CHILD_WORKFLOW_EXECUTION_COMPLETED),
        EVENT_KIND(CHILD_WORKFLOW_EXECUTION_FAILED),
        EVENT_KIND(CHILD_WORKFLOW_EXECUTION_CANCELED),
        EVENT_KIND(CHILD_WORKFLOW_EXECUTION_TIMED_OUT),
        EVENT_KIND(CHILD_WORKFLOW_EXECUTION_TERMINATED),
        EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED),
        EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED),
    };
    int buffered = 0, last = 0, closing = 0;
    for (unsigned i = 0; i < API_TYPE(history_event)->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &API_TYPE(history_event)->fields[i];
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
            continue;
        bool wanted = false;
        for (size_t n = 0; n < array_length(outside); n++)
            wanted |= (uint32_t)outside[n] == field->id;
        if (event_may_be_buffered(field->id) != wanted)
            TEST_FAIL("%s", event_name(field->id));
        EXPECT(!wanted || !event_comes_from_decision(field->id));
        EXPECT(!event_goes_last(field->id) || wanted);
        EXPECT(!event_closes_run(field->id) || !wanted);
        buffered += wanted;
        last += event_goes_last(field->id);
        closing += event_closes_run(field->id);
    }
    EXPECT_EQ(buffered, (int)array_length(outside));
    EXPECT_EQ(last, 4 + 5);
    EXPECT_EQ(closing, 6);
}
