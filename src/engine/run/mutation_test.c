/* mutation_test.c - a step can be taken back, as a whole and to a savepoint. */
#include "base/test.h"
#include "engine/run/test_samples.h"

/* A rewind that forgets a field, a map or a pointer is found by comparing all bytes of the run.
 * Method: a random past, a savepoint, random events, back; then on from there, and back to the
 * beginning. */
TEST(mutation, random_events_taken_back_leave_the_run_as_it_was)
{
    for (int i = 0; i < test_seed_count() * 20; i++) {
        struct sample sample;
        sample_open(&sample, test_seed(i % test_seed_count()) + (uint64_t)i);
        for (int step = 0; step < 8; step++) {
            struct slice before = sample_image(sample.run, sample.arena);
            sample_begin(&sample);
            for (uint64_t n = random_below(&sample.random, 8); n > 0; n--)
                sample_random_event(&sample);
            struct slice at_mark = sample_image(sample.run, sample.arena);
            struct mutation_savepoint savepoint = mutation_savepoint(sample.mutation);
            for (uint64_t n = random_below(&sample.random, 12); n > 0; n--)
                sample_random_event(&sample);
            mutation_rewind(sample.mutation, &savepoint);
            EXPECT(slice_equal(sample_image(sample.run, sample.arena), at_mark));
            if (random_below(&sample.random, 3) == 0) {
                mutation_cancel(sample.mutation);
                sample.mutation = NULL;
                EXPECT(slice_equal(sample_image(sample.run, sample.arena), before));
            } else if (sample.run->core->state != 0) {
                sample_finish(&sample);
            } else {
                mutation_cancel(sample.mutation);
                sample.mutation = NULL;
            }
        }
        sample_close(&sample);
    }
}

TEST(mutation, what_was_rewound_leaves_no_rows_behind)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    EXPECT(mutation_is_empty(sample.mutation));
    sample_decision_completed(&sample);
    struct mutation_savepoint savepoint = mutation_savepoint(sample.mutation);
    sample_activity_scheduled(&sample, "a", 0);
    sample_timer_started(&sample, "t", 5);
    EXPECT_EQ(map64_count(sample.run->activities), 1);
    mutation_rewind(sample.mutation, &savepoint);
    EXPECT_EQ(map64_count(sample.run->activities), 0);
    EXPECT_EQ(map_count(sample.run->activity_ids), 0);
    sample_decision_scheduled(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.added_count, 1); /* the decision's alone */
    for (const struct batch_step *step = sample.batch->first; step != NULL; step = step->next)
        EXPECT(step->kind != ROW_PENDING);
    EXPECT_EQ(sample.run->core->next_event_id, 6);
    sample_close(&sample);
}

/* A pointer to a record that is changed still shows the old one: a decision compares both.
 */
TEST(mutation, a_change_gives_a_copy_and_leaves_the_old_record_alone)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_begin(&sample);
    sample_decision_completed(&sample);
    int64_t id = sample_activity_scheduled(&sample, "a", 0);
    const STORED(PendingActivity) *old = run_find_activity(sample.run, id);
    STORED(PendingActivity) *changed = mutation_change_activity(sample.mutation, id);
    changed->attempt = 4;
    EXPECT_EQ(old->attempt, 0);
    EXPECT(run_find_activity(sample.run, id) == changed);
    EXPECT(run_find_activity_id(sample.run, "a") == changed);
    mutation_cancel(sample.mutation);
    EXPECT(run_has_started_decision(sample.run));
    sample_close(&sample);
}

TEST(mutation, the_same_signal_request_is_kept_once)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_begin(&sample);
    mutation_put_signal_request(sample.mutation, "r");
    mutation_put_signal_request(sample.mutation, "r");
    EXPECT_EQ(map_count(sample.run->signal_requests), 1);
    sample_finish(&sample);
    size_t puts = 0;
    for (const struct batch_step *step = sample.batch->first; step != NULL; step = step->next)
        puts += step->kind == ROW_PENDING;
    EXPECT_EQ(puts, 1);
    sample_close(&sample);
}

TEST(mutation, event_times_never_go_backwards, "A-240")
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample.context.now -= 100 * SECOND; /* the clock was set back */
    sample_begin(&sample);
    sample_signaled(&sample, "s", "");
    size_t count;
    API(HistoryEvent) *const *events = mutation_events(sample.mutation, &count);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(event_time(events[0]), SAMPLE_TIME);
    EXPECT_EQ(sample.run->core->start_time, SAMPLE_TIME);
    sample_finish(&sample);
    sample_close(&sample);
}

TEST(mutation, an_old_sticky_list_is_not_used, "A-094")
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_begin(&sample);
    STORED(RunRecord) *core = mutation_core(sample.mutation);
    core->sticky_task_list = API_NEW(sample.run->arena, task_list, .name = "sticky");
    core->sticky_time = sample.context.now;
    EXPECT(mutation_decision_list(sample.mutation) == core->sticky_task_list);
    core->sticky_time -= 366 * 24 * 3600 * SECOND;
    EXPECT(mutation_decision_list(sample.mutation) == core->task_list);
    mutation_cancel(sample.mutation);
    sample_close(&sample);
}
