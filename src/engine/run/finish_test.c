/* finish_test.c - a step as rows: numbers, versions, the node, what is written and what is not. */
#include "base/test.h"
#include "engine/run/test_samples.h"
#include "store/key.h"

static size_t
count_rows(const struct sample *sample, enum row_kind kind, enum batch_verb verb)
{
    size_t count = 0;
    for (const struct batch_step *step = sample->batch->first; step != NULL; step = step->next)
        count += step->kind == kind && step->verb == verb;
    return count;
}

TEST(finish, a_start_is_one_node_one_core_one_row_and_one_for_the_lists)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    EXPECT_EQ(count_rows(&sample, ROW_HISTORY, BATCH_PUT), 1);
    EXPECT_EQ(count_rows(&sample, ROW_RUN, BATCH_PUT), 1);
    EXPECT_EQ(count_rows(&sample, ROW_TRANSFER, BATCH_PUT), 1);
    EXPECT_EQ(count_rows(&sample, ROW_VISIBLE, BATCH_PUT), 1);
    EXPECT_EQ(sample.batch->count, 4); /* the shard writes the wake-up timer */
    EXPECT(sample.effects.has_new_events);
    EXPECT(!sample.effects.is_closed_now);
    EXPECT_EQ(sample.run->core->last_first_event_id, 1);
    EXPECT(sample.run->core->history_bytes > 0);
    sample_close(&sample);
}

static char *
long_name(struct sample *sample, size_t length)
{
    char *name = arena_alloc(sample->arena, length + 1);
    memset(name, 'x', length);
    name[length] = '\0';
    return name;
}

/* A client takes only so many bytes at once, and readers get whole nodes. */
TEST(finish, many_bytes_of_events_are_several_nodes)
{
    enum { EVENTS = 30, LENGTH = 100000, MOST = 1024 * 1024 + 100 };
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    int64_t before = sample.run->core->history_bytes;
    sample_begin(&sample);
    for (int i = 0; i < EVENTS; i++)
        sample_signaled(&sample, long_name(&sample, LENGTH), "");
    sample_plain(&sample, EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
    sample_finish(&sample);
    EXPECT_EQ(count_rows(&sample, ROW_HISTORY, BATCH_PUT), 3);
    size_t bytes = 0;
    for (const struct batch_step *step = sample.batch->first; step != NULL; step = step->next) {
        EXPECT(step->kind != ROW_HISTORY || step->value.length <= MOST);
        bytes += step->kind == ROW_HISTORY ? step->value.length : 0;
    }
    const STORED(RunRecord) *core = sample.run->core;
    EXPECT(core->history_bytes - before >= EVENTS * LENGTH);
    EXPECT(bytes >= (size_t)(core->history_bytes - before));
    EXPECT_EQ(core->close_batch_event_id, core->last_first_event_id);
    EXPECT(core->close_batch_event_id > 3 + EVENTS / 2);
    sample_close(&sample);
}

TEST(finish, a_step_without_changes_writes_nothing)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    uint64_t next = sample.ids.next;
    sample_begin(&sample);
    EXPECT(mutation_is_empty(sample.mutation));
    sample_finish(&sample);
    EXPECT_EQ(sample.batch->count, 0);
    EXPECT_EQ(sample.effects.alarm_row, 0);
    EXPECT_EQ(sample.ids.next, next);
    sample_close(&sample);
}

TEST(finish, numbers_of_events_rise_over_all_steps, "A-177")
{
    struct sample sample;
    sample_open(&sample, 5);
    int64_t last = 0;
    for (int step = 0; step < 30; step++) {
        sample_begin(&sample);
        for (int i = 0; i < 4; i++)
            sample_random_event(&sample);
        struct mutation *mutation = sample.mutation;
        sample_finish(&sample);
        size_t count;
        API(HistoryEvent) *const *events = mutation_events(mutation, &count);
        for (size_t i = 0; i < count; i++) {
            EXPECT(events[i]->task_id > last);
            last = events[i]->task_id;
        }
    }
    EXPECT_EQ(sample.run->core->last_event_task_id, last);
    EXPECT(last > (int64_t)7 << 24);
    sample_close(&sample);
}

TEST(finish, a_row_that_came_and_went_in_one_step_was_never_there)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_begin(&sample);
    sample_started(&sample, 0);
    sample_decision_scheduled(&sample);
    sample_decision_started(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.added_count, 0);
    EXPECT_EQ(sample.effects.dropped_count, 0);
    EXPECT_EQ(count_rows(&sample, ROW_TRANSFER, BATCH_PUT), 0);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    int64_t id = sample_activity_scheduled(&sample, "a", 0);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_CANCELED));
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.added_count, 0);
    EXPECT_EQ(count_rows(&sample, ROW_PENDING, BATCH_PUT), 0);
    EXPECT_EQ(count_rows(&sample, ROW_PENDING, BATCH_DELETE), 0);
    sample_close(&sample);
}

TEST(finish, a_row_that_is_dropped_twice_is_reported_once)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    uint64_t row = sample.run->core->decision->row;
    sample_begin(&sample);
    mutation_drop_transfer(sample.mutation, row);
    mutation_drop_transfer(sample.mutation, 0);
    sample_decision_started(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.dropped_count, 1);
    EXPECT_EQ(sample.effects.dropped[0], row);
    sample_close(&sample);
}

/* The cost of a step must not grow with the run: one changed activity of many is one row. */
TEST(finish, only_what_changed_is_written)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    int64_t id = 0;
    for (int i = 0; i < 50; i++)
        id = sample_activity_scheduled(&sample, arena_format(sample.arena, "a%d", i), 0);
    sample_finish(&sample);
    EXPECT_EQ(count_rows(&sample, ROW_PENDING, BATCH_PUT), 50);
    EXPECT_EQ(sample.effects.added_count, 50);
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    mutation_change_activity(sample.mutation, id)->heartbeat_time += 1;
    sample_finish(&sample);
    EXPECT_EQ(count_rows(&sample, ROW_PENDING, BATCH_PUT), 1);
    sample_begin(&sample);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    sample_finish(&sample);
    EXPECT_EQ(count_rows(&sample, ROW_PENDING, BATCH_PUT), 0);
    EXPECT_EQ(count_rows(&sample, ROW_PENDING, BATCH_DELETE), 1);
    sample_close(&sample);
}

TEST(finish, each_version_has_its_last_event)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    EXPECT_EQ(sample.run->core->n_versions, 1);
    EXPECT_EQ(sample.run->core->versions[0]->event_version, 10);
    EXPECT_EQ(sample.run->core->versions[0]->event_id, 3);
    sample_begin(&sample);
    sample_signaled(&sample, "s", ""); /* buffered under the old version */
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->versions[0]->event_id, 3);
    sample.context.event_version = 12;
    sample_begin(&sample);
    sample_decision_failed(&sample);
    struct mutation *mutation = sample.mutation;
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->n_versions, 2);
    EXPECT_EQ(sample.run->core->versions[0]->event_id, 3);
    EXPECT_EQ(sample.run->core->versions[1]->event_version, 12);
    EXPECT_EQ(sample.run->core->versions[1]->event_id, 5);
    size_t count;
    API(HistoryEvent) *const *events = mutation_events(mutation, &count);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(events[1]->version, 12); /* written now, not when it came */
    sample_close(&sample);
}

TEST(finish, the_node_holds_the_events_as_they_go_out)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    const struct batch_step *step = sample.batch->first;
    while (step->kind != ROW_HISTORY)
        step = step->next;
    struct slice bytes = step->value; /* format and next event id stand before, in the head */
    EXPECT_EQ((int64_t)bytes.length, sample.run->core->history_bytes);
    API(History) *history = NULL;
    EXPECT_OK(message_decode(sample.arena, API_TYPE(history), bytes, &history));
    EXPECT_EQ(history->n_events, 2);
    EXPECT_EQ(history->events[1]->event_id, 2);
    EXPECT_EQ(history->events[1]->version, 10);
    EXPECT(history->events[0]->task_id < history->events[1]->task_id);
    EXPECT_EQ(history->events[1]->attributes_case, EVENT_KIND(DECISION_TASK_SCHEDULED));
    EXPECT_EQ(event_time(history->events[0]), SAMPLE_TIME);
    sample_close(&sample);
}
