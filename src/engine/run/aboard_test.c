/* aboard_test.c - which activity is stored in the row of its run, and which has a row. */
#include "base/test.h"
#include "engine/run/test_samples.h"

static size_t
count_pending(const struct sample *sample, enum batch_verb verb)
{
    size_t count = 0;
    for (const struct batch_step *step = sample->batch->first; step != NULL; step = step->next)
        count += step->kind == ROW_PENDING && step->verb == verb;
    return count;
}

/* A run whose first decision completes with this many activities; their first schedule id. */
static int64_t
with_activities(struct sample *sample, int count)
{
    sample_open(sample, 1);
    sample_started_run(sample);
    sample_begin(sample);
    sample_decision_completed(sample);
    int64_t first = 0;
    for (int i = 0; i < count; i++) {
        int64_t id = sample_activity_scheduled(sample, arena_format(sample->arena, "a%d", i), 0);
        first = i == 0 ? id : first;
    }
    return first;
}

/* The row of the run as the step wrote it. */
static STORED(RunRecord) *
stored_record(const struct sample *sample)
{
    const struct batch_step *step = sample->batch->first;
    while (step->kind != ROW_RUN)
        step = step->next;
    STORED(RunRecord) *record = NULL;
    EXPECT_OK(run_read_row(step->key, step->value, sample->arena, &record));
    return record;
}

TEST(aboard, one_small_activity_costs_no_row_in_its_whole_life)
{
    struct sample sample;
    int64_t id = with_activities(&sample, 1);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 0);
    EXPECT_EQ(stored_record(&sample)->activity->schedule_id, id);
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 0);
    EXPECT(stored_record(&sample)->activity->started_id != EVENT_NONE);
    sample_begin(&sample);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT) + count_pending(&sample, BATCH_DELETE), 0);
    EXPECT(stored_record(&sample)->activity == NULL);
    sample_close(&sample);
}

/* Else each step of a run with many would write some that it did not change. */
TEST(aboard, activities_of_one_step_have_a_row_each)
{
    struct sample sample;
    int64_t first = with_activities(&sample, 2);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 2);
    sample_begin(&sample); /* the other one is alone, but has its row */
    sample_activity_ended(&sample, first, EVENT_KIND(ACTIVITY_TASK_CANCELED));
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_DELETE), 1);
    EXPECT(stored_record(&sample)->activity == NULL);
    sample_begin(&sample);
    sample_activity_started(&sample, first + 1);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 1);
    EXPECT_EQ(sample.run->aboard, 0);
    sample_close(&sample);
}

TEST(aboard, the_next_one_has_a_row_and_the_first_stays)
{
    struct sample sample;
    int64_t first = with_activities(&sample, 1);
    sample_finish(&sample);
    sample_begin(&sample);
    sample_activity_scheduled(&sample, "next", 0);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 1);
    EXPECT_EQ(stored_record(&sample)->activity->schedule_id, first);
    sample_close(&sample);
}

TEST(aboard, one_that_follows_in_the_same_step_takes_the_place)
{
    struct sample sample;
    int64_t first = with_activities(&sample, 1);
    sample_finish(&sample);
    sample_begin(&sample);
    int64_t next = sample_activity_scheduled(&sample, "next", 0);
    sample_activity_ended(&sample, first, EVENT_KIND(ACTIVITY_TASK_CANCELED));
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT) + count_pending(&sample, BATCH_DELETE), 0);
    EXPECT_EQ(sample.run->aboard, next);
    sample_close(&sample);
}

/* What heartbeats tell may be large, and comes often. */
TEST(aboard, an_activity_that_grows_gets_a_row_and_keeps_it)
{
    struct sample sample;
    int64_t id = with_activities(&sample, 1);
    sample_finish(&sample);
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    mutation_change_activity(sample.mutation, id)->heartbeat_details =
        API_NEW(sample.run->arena, payload);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 1);
    EXPECT(stored_record(&sample)->activity == NULL);
    sample_begin(&sample);
    mutation_change_activity(sample.mutation, id)->heartbeat_details = NULL;
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 1);
    sample_begin(&sample);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_DELETE), 1);
    sample_close(&sample);
}

TEST(aboard, a_large_input_is_in_its_event_alone)
{
    struct sample sample;
    with_activities(&sample, 0);
    sample.input = arena_format(sample.arena, "%*d EUR", 700, 5);
    int64_t id = sample_activity_scheduled(&sample, "a", 0);
    sample_finish(&sample);
    EXPECT_EQ(count_pending(&sample, BATCH_PUT), 0);
    EXPECT_EQ(sample.run->aboard, id);
    EXPECT(stored_record(&sample)->activity->input == NULL);
    EXPECT(stored_record(&sample)->activity->input_in_event);
    EXPECT_EQ(run_find_activity(sample.run, id)->input->data.len, 704); /* a poller gets it */
    sample_close(&sample);
}
