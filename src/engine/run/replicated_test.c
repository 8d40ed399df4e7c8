/* replicated_test.c - a run that gets its events from another cluster is the same run. */
#include "engine/run/replicated.h"

#include "base/test.h"
#include "engine/run/rebuild.h"
#include "engine/run/test_samples.h"

/* The nodes that a step wrote, in order. */
static struct slice
next_node(struct batch_step **step)
{
    while (*step != NULL && (*step)->kind != ROW_HISTORY)
        *step = (*step)->next;
    if (*step == NULL)
        return slice_of(NULL, 0);
    struct slice events = (*step)->value;
    *step = (*step)->next;
    return events;
}

static const API(History) *
decode_node(struct slice events, struct arena *arena)
{
    API(History) *history = NULL;
    EXPECT_OK(message_decode(arena, API_TYPE(history), events, &history));
    return history;
}

/* Gives a batch to the follower, and expects the same bytes in its node. */
static void
follow(struct sample *follower, struct slice events)
{
    const API(History) *history = decode_node(events, follower->arena);
    follower->run->core->next_event_id += follower->run->core->next_event_id == 0;
    sample_begin(follower);
    EXPECT(mutation_add_replicated(follower->mutation, history->events, history->n_events) == NULL);
    sample_finish(follower);
    struct batch_step *step = follower->batch->first;
    EXPECT(slice_equal(next_node(&step), events));
    EXPECT(next_node(&step).data == NULL);
}

/* What belongs to one cluster: rows, the timer, when it was written, how often a decision failed
 * that is not in the history. */
static void
forget_place(struct run *run)
{
    STORED(RunRecord) *core = run->core;
    core->alarm_row = 0;
    core->alarm_time = core->last_updated_time = 0;
    core->buffered_next = 0;
    if (core->decision != NULL)
        core->decision->row = 0;
    size_t cursor = 0;
    void *value;
    while (map64_next(run->activities, &cursor, NULL, &value)) {
        STORED(PendingActivity) *activity = value;
        activity->row = 0;
        if (activity->started_id > 0) /* if it was buffered, the event is later */
            activity->started_time = activity->heartbeat_time = 0;
    }
}

static void
expect_same_run(struct sample *one, struct sample *other)
{
    forget_place(one->run);
    forget_place(other->run);
    EXPECT(slice_equal(sample_image(one->run, one->arena), sample_image(other->run, one->arena)));
}

/* A random step of the source, at times after a failover from it and back to it. */
static void
random_step(struct sample *source)
{
    bool is_free = !run_has_started_decision(source->run) && !run_has_buffered(source->run);
    if (is_free && random_below(&source->random, 10) == 0)
        source->context.event_version += 10;
    sample_wait(source, (int64_t)random_below(&source->random, 3));
    sample_begin(source);
    for (uint64_t n = 1 + random_below(&source->random, 6); n > 0; n--)
        sample_random_event(source);
    sample_finish(source);
}

TEST(run_replicated, a_run_that_gets_all_batches_of_another_is_the_same)
{
    int compared = 0;
    for (int i = 0; i < 60; i++) {
        struct sample source, follower;
        sample_open(&source, test_seed(0) + (uint64_t)i);
        sample_open(&follower, 1);
        follower.context.range_id = 3;
        follower.ids.next = (uint64_t)3 << 24; /* numbers of its own, lower ones */
        follower.context.event_version = 777;
        for (int j = 0; j < 60; j++) {
            random_step(&source);
            struct batch_step *step = source.batch->first;
            for (struct slice node; (node = next_node(&step)).data != NULL;)
                follow(&follower, node);
        }
        if (!run_has_buffered(source.run)) {
            expect_same_run(&source, &follower);
            compared++;
        }
        sample_close(&source);
        sample_close(&follower);
    }
    EXPECT(compared > 10);
}

/* A failover between two events of one step. */
TEST(run_replicated, a_node_has_one_version)
{
    struct sample source;
    sample_open(&source, 1);
    sample_scheduled_run(&source);
    sample_begin(&source);
    sample_signaled(&source, "one", "");
    sample_signaled(&source, "two", "");
    source.context.event_version += 10;
    sample_signaled(&source, "three", "");
    sample_finish(&source);
    struct batch_step *step = source.batch->first;
    EXPECT_EQ(decode_node(next_node(&step), source.arena)->n_events, 2);
    const API(History) *last = decode_node(next_node(&step), source.arena);
    EXPECT(last->n_events == 1 && last->events[0]->version == source.context.event_version);
    EXPECT(next_node(&step).data == NULL);
    EXPECT_EQ(source.run->core->last_first_event_id, last->events[0]->event_id);
    sample_close(&source);
}

/* This cluster goes on with a run whose events have higher numbers than it gives. */
TEST(run_replicated, numbers_of_events_are_compared_within_a_version_only)
{
    struct sample source, follower;
    sample_open(&source, 1);
    sample_open(&follower, 1);
    follower.ids.next = (uint64_t)3 << 24;
    sample_begin(&source);
    sample_started(&source, 0);
    sample_finish(&source);
    struct batch_step *step = source.batch->first;
    follow(&follower, next_node(&step));
    EXPECT_EQ(follower.run->core->last_event_task_id, source.run->core->last_event_task_id);
    follower.context.event_version = source.context.event_version + 1;
    sample_begin(&follower);
    sample_signaled(&follower, "s", "");
    sample_finish(&follower);
    EXPECT(follower.run->core->last_event_task_id < source.run->core->last_event_task_id);
    sample_close(&source);
    sample_close(&follower);
}

TEST(run_replicated, a_batch_that_does_not_fit_leaves_nothing)
{
    struct sample source, follower;
    sample_open(&source, 1);
    sample_open(&follower, 1);
    sample_begin(&source);
    sample_started(&source, 0);
    sample_finish(&source);
    struct batch_step *step = source.batch->first;
    follow(&follower, next_node(&step));
    struct slice before = sample_image(follower.run, follower.arena);
    sample_begin(&source);
    sample_signaled(&source, "s", "r");
    sample_decision_scheduled(&source);
    sample_decision_started(&source);
    sample_finish(&source);
    step = source.batch->first;
    const API(History) *history = decode_node(next_node(&step), source.arena);
    history->events[2]->decision_task_started_event_attributes->scheduled_event_id = 1;
    sample_begin(&follower);
    EXPECT(mutation_add_replicated(follower.mutation, history->events, 3) != NULL);
    mutation_cancel(follower.mutation);
    EXPECT(slice_equal(sample_image(follower.run, follower.arena), before));
    sample_close(&source);
    sample_close(&follower);
}

/* An activity ended while a decision was started, which then used its name again: the end stands
 * behind the new activity, here in another batch. */
TEST(run_replicated, an_end_may_come_with_a_later_batch_than_its_name_is_used_again)
{
    struct sample source, follower;
    sample_open(&source, 1);
    sample_open(&follower, 1);
    sample_started_run(&source);
    sample_begin(&source);
    sample_decision_completed(&source);
    int64_t first = sample_activity_scheduled(&source, "a", 0);
    sample_decision_scheduled(&source);
    sample_decision_started(&source);
    sample_activity_ended(&source, first, EVENT_KIND(ACTIVITY_TASK_CANCELED));
    sample_decision_completed(&source);
    int64_t second = sample_activity_scheduled(&source, "a", 0);
    sample_finish(&source);
    struct batch_step *step = source.batch->first;
    const API(History) *history = decode_node(next_node(&step), source.arena);
    size_t count = history->n_events;
    EXPECT(event_goes_last(history->events[count - 1]->attributes_case));

    sample_started_run(&follower);
    sample_begin(&follower);
    EXPECT(mutation_add_replicated(follower.mutation, history->events, count - 1) == NULL);
    sample_finish(&follower);
    EXPECT(follower.run->core->n_ended == 1 && follower.run->core->ended[0] == first);
    EXPECT_EQ(run_find_activity_id(follower.run, "a")->schedule_id, second);
    sample_begin(&follower);
    EXPECT(mutation_add_replicated(follower.mutation, history->events + count - 1, 1) == NULL);
    sample_finish(&follower);
    EXPECT_EQ(follower.run->core->n_ended, 0);
    EXPECT(run_find_activity(follower.run, second) != NULL);
    EXPECT(run_find_activity(follower.run, first) == NULL);
    sample_close(&source);
    sample_close(&follower);
}

/* Attempts have no events. This cluster knows of a later one than the cluster that went on with the
 * run: the event says which one counted. */
TEST(run_replicated, a_start_counts_although_a_later_attempt_is_known_here)
{
    struct sample source, follower;
    sample_open(&source, 1);
    sample_open(&follower, 1);
    sample_started_run(&source);
    sample_begin(&source);
    sample_decision_completed(&source);
    int64_t schedule_id = sample_activity_scheduled(&source, "a", 5);
    sample_activity_started(&source, schedule_id);
    sample_finish(&source);
    struct batch_step *step = source.batch->first;
    const API(History) *history = decode_node(next_node(&step), source.arena);
    size_t count = history->n_events;

    sample_started_run(&follower);
    sample_begin(&follower);
    EXPECT(mutation_add_replicated(follower.mutation, history->events, count - 1) == NULL);
    sample_finish(&follower);
    sample_begin(&follower);
    STORED(PendingActivity) *activity = mutation_change_activity(follower.mutation, schedule_id);
    activity->attempt = 1;
    activity->started_id = EVENT_TRANSIENT;
    mutation_drop_transfer(follower.mutation, activity->row);
    activity->row = 0;
    sample_finish(&follower);
    sample_begin(&follower);
    EXPECT(mutation_add_replicated(follower.mutation, history->events + count - 1, 1) == NULL);
    sample_finish(&follower);
    EXPECT_EQ(run_find_activity(follower.run, schedule_id)->attempt, 0);
    EXPECT_EQ(run_find_activity(follower.run, schedule_id)->started_id,
              history->events[count - 1]->event_id);
    sample_close(&source);
    sample_close(&follower);
}
