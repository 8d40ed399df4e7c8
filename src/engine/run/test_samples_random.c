/* test_samples_random.c - events by chance, each one that fits the run as it is. */
#include "engine/run/test_samples.h"

static uint64_t
below(struct sample *sample, uint64_t bound)
{
    return random_below(&sample->random, bound);
}

/* With a small input or a large one. */
static void
schedule_activity(struct sample *sample, const char *name)
{
    if (below(sample, 3) == 0)
        sample->input = arena_format(sample->arena, "%s %*d EUR", name, 700, 5);
    sample_activity_scheduled(sample, name, 0);
    sample->input = NULL;
}

/* What a worker's decision may ask for: only when none is started. */
static void
random_decided(struct sample *sample)
{
    const char *name = arena_format(sample->arena, "%c", 'a' + (int)below(sample, 5));
    bool is_timer = below(sample, 2) == 0;
    if (is_timer && run_find_timer(sample->run, name) == NULL)
        sample_timer_started(sample, name, 1 + (int64_t)below(sample, 500));
    else if (is_timer)
        sample_timer_canceled(sample, name);
    else if (run_find_activity_id(sample->run, name) == NULL)
        schedule_activity(sample, name);
    else
        sample_activity_cancel_requested(sample, name);
}

static void
random_of_activity(struct sample *sample, const STORED(PendingActivity) *activity)
{
    static const API(HistoryEvent__AttributesCase) ends[] = {
        EVENT_KIND(ACTIVITY_TASK_COMPLETED), EVENT_KIND(ACTIVITY_TASK_FAILED),
        EVENT_KIND(ACTIVITY_TASK_TIMED_OUT), EVENT_KIND(ACTIVITY_TASK_CANCELED)};
    if (activity->started_id == EVENT_NONE)
        sample_activity_started(sample, activity->schedule_id);
    else
        sample_activity_ended(sample, activity->schedule_id, ends[below(sample, 4)]);
}

/* Something that comes from outside: it may be buffered. */
static void
random_from_outside(struct sample *sample)
{
    const char *name = arena_format(sample->arena, "%c", 'a' + (int)below(sample, 5));
    const STORED(PendingActivity) *activity = run_find_activity_id(sample->run, name);
    if (activity != NULL && below(sample, 2) == 0)
        random_of_activity(sample, activity);
    else if (run_find_timer(sample->run, name) != NULL)
        sample_timer_fired(sample, name);
    else
        sample_signaled(sample, name, arena_format(sample->arena, "r%d", (int)below(sample, 50)));
}

static void
random_of_decision(struct sample *sample)
{
    if (!run_has_pending_decision(sample->run)) {
        mutation_flush_buffered(sample->mutation);
        sample_decision_scheduled(sample);
    } else if (!run_has_started_decision(sample->run)) {
        sample_decision_started(sample);
    } else if (below(sample, 4) == 0) {
        sample_decision_failed(sample);
    } else {
        sample_decision_completed(sample);
    }
}

void
sample_random_event(struct sample *sample)
{
    if (sample->run->core->state == 0) {
        sample_started(sample, 0);
        return;
    }
    uint64_t choice = below(sample, 10);
    if (choice < 3)
        random_of_decision(sample);
    else if (choice < 6 && !run_has_started_decision(sample->run))
        random_decided(sample);
    else
        random_from_outside(sample);
}
