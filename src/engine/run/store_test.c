/* store_test.c - a run comes back from the store as it was. */
#include "base/buffer.h"
#include "base/test.h"
#include "engine/run/rebuild.h"
#include "engine/run/test_samples.h"
#include "fiber/linux/test_loops.h"
#include "store/memory/memory.h"

static const struct run_key key = {SAMPLE_DOMAIN, "order-1", SAMPLE_RUN};
#define SHARD PARTITION_OF_SHARD(3)

struct place {
    struct memory_base *base;
    struct store *store;
};

static void
place_open(struct place *place)
{
    place->base = memory_base_new(1);
    place->store = memory_open(place->base);
}

static void
place_close(struct place *place)
{
    store_close(place->store);
    memory_base_free(place->base);
}

static void
commit_step(struct place *place, struct sample *sample, uint64_t *guard)
{
    sample_finish(sample);
    if (sample->batch->count == 0)
        return;
    EXPECT_OK(store_commit(place->store, sample->batch, *guard, sample->arena));
    *guard = sample->context.range_id;
}

/* All events of the stored history, decoded. */
static API(History) *
read_history(struct place *place, struct sample *sample)
{
    struct history_branch branch = run_branch(sample->run);
    struct history_page page;
    EXPECT_OK(store_read_history(place->store, SHARD, &branch, 1, sample->run->core->next_event_id,
                                 0, sample->arena, &page));
    EXPECT_EQ(page.next_event_id, sample->run->core->next_event_id);
    struct buffer bytes = {0};
    for (size_t i = 0; i < page.count; i++)
        buffer_append(&bytes, page.node[i].events);
    EXPECT_EQ((int64_t)bytes.length, sample->run->core->history_bytes);
    API(History) *history = NULL;
    EXPECT_OK(message_decode(sample->arena, API_TYPE(history), buffer_slice(&bytes), &history));
    buffer_free(&bytes);
    return history;
}

static void
check_history(const API(History) *history, const struct run *run)
{
    EXPECT_EQ((int64_t)history->n_events, run->core->next_event_id - 1);
    int64_t time = 0;
    for (size_t i = 0; i < history->n_events; i++) {
        EXPECT_EQ(history->events[i]->event_id, (int64_t)i + 1);
        EXPECT(event_time(history->events[i]) >= time);
        time = event_time(history->events[i]);
    }
}

/* Method: after each random step the run is read from the store and must have the same bytes as the
 * one in memory; in the end the history is read and must be without gaps. */
LOOP_TEST(run_store, a_run_is_read_back_as_it_was_after_every_step, 1)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct sample sample;
        struct place place;
        uint64_t guard = 0;
        sample_open(&sample, test_seed(i));
        place_open(&place);
        for (int step = 0; step < 60; step++) {
            sample_wait(&sample, (int64_t)random_below(&sample.random, 3));
            sample_begin(&sample);
            for (uint64_t n = random_below(&sample.random, 4) + (step == 0); n > 0; n--)
                sample_random_event(&sample);
            commit_step(&place, &sample, &guard);
            struct run *loaded = NULL;
            EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
            EXPECT(loaded != NULL);
            EXPECT(slice_equal(sample_image(loaded, sample.arena),
                               sample_image(sample.run, sample.arena)));
            EXPECT_EQ(loaded->aboard, sample.run->aboard);
            run_free(loaded);
        }
        check_history(read_history(&place, &sample), sample.run);
        place_close(&place);
        sample_close(&sample);
    }
}

/* An empty run with the names and the branch of the sample's. */
static struct run *
same_names(const struct sample *sample)
{
    const STORED(RunRecord) *core = sample->run->core;
    struct run *run = run_new();
    run->core->domain_id = run_keep_text(run, core->domain_id);
    run->core->workflow_id = run_keep_text(run, core->workflow_id);
    run->core->run_id = run_keep_text(run, core->run_id);
    run->core->tree_id = core->tree_id;
    run->core->branch_id = core->branch_id;
    return run;
}

/* The run as its stored history says it is, read in pages of a batch or two. */
static void
expect_rebuilt(struct place *place, const struct sample *sample)
{
    const STORED(RunRecord) *core = sample->run->core;
    struct run *run = same_names(sample);
    EXPECT_OK(run_rebuild(place->store, SHARD, core->next_event_id, 300, &sample->context, run,
                          sample->arena));
    EXPECT_EQ(run->core->next_event_id, core->next_event_id);
    EXPECT_EQ(run->core->last_first_event_id, core->last_first_event_id);
    EXPECT_EQ(run->core->history_bytes, core->history_bytes);
    EXPECT_EQ(run->core->last_event_task_id, core->last_event_task_id);
    EXPECT_EQ(run->core->previous_started_event_id, core->previous_started_event_id);
    EXPECT_EQ(run->core->n_versions, core->n_versions);
    if (!run_has_buffered(sample->run)) {
        EXPECT_EQ(run->core->signal_count, core->signal_count);
        EXPECT_EQ(map64_count(run->activities), map64_count(sample->run->activities));
        EXPECT_EQ(map_count(run->timers), map_count(sample->run->timers));
    }
    run_free(run);
}

LOOP_TEST(run_store, a_run_is_rebuilt_from_its_stored_history_in_pages, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    sample_open(&sample, test_seed(0));
    place_open(&place);
    for (int step = 0; step < 100; step++) {
        sample_wait(&sample, (int64_t)random_below(&sample.random, 3));
        sample_begin(&sample);
        for (uint64_t n = random_below(&sample.random, 4) + (step == 0); n > 0; n--)
            sample_random_event(&sample);
        commit_step(&place, &sample, &guard);
        expect_rebuilt(&place, &sample);
    }
    struct run *run = same_names(&sample);
    int64_t next = sample.run->core->next_event_id;
    EXPECT_KIND(run_rebuild(place.store, SHARD, next + 5, 300, &sample.context, run, sample.arena),
                ERR_CORRUPT); /* not that long */
    run_free(run);
    place_close(&place);
    sample_close(&sample);
}

/* The owner in memory and one that read the run from the store must decide alike from then on. */
LOOP_TEST(run_store, a_run_that_was_read_goes_on, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    sample_open(&sample, test_seed(0));
    place_open(&place);
    for (int step = 0; step < 60; step++) {
        sample_begin(&sample);
        for (int n = 0; n < 3; n++)
            sample_random_event(&sample);
        commit_step(&place, &sample, &guard);
        struct run *loaded = NULL;
        EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
        run_free(sample.run);
        sample.run = loaded;
        EXPECT_EQ(run_next_deadline(loaded) >= loaded->core->alarm_time, true);
    }
    check_history(read_history(&place, &sample), sample.run);
    place_close(&place);
    sample_close(&sample);
}

LOOP_TEST(run_store, many_pending_rows_are_all_read, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    sample_open(&sample, 1);
    place_open(&place);
    sample_begin(&sample);
    sample_started(&sample, 0);
    for (int i = 0; i < 2500; i++) /* more than two pages of a scan */
        sample_signaled(&sample, "s", arena_format(sample.arena, "r%d", i));
    commit_step(&place, &sample, &guard);
    struct run *loaded = NULL;
    EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
    EXPECT_EQ(map_count(loaded->signal_requests), 2500);
    run_free(loaded);
    place_close(&place);
    sample_close(&sample);
}

/* ---- inputs that are in their events alone ---- */

/* A run whose first decision a worker has, in a store. */
static void
open_deciding(struct place *place, struct sample *sample, uint64_t *guard)
{
    sample_open(sample, 1);
    place_open(place);
    sample_begin(sample);
    sample_started(sample, 0);
    sample_decision_scheduled(sample);
    sample_decision_started(sample);
    commit_step(place, sample, guard);
}

/* A decision completes and schedules so many activities, each with an input of so many bytes. */
static void
schedule_activities(struct place *place, struct sample *sample, uint64_t *guard, int count,
                    int bytes)
{
    sample_begin(sample);
    sample_decision_completed(sample);
    for (int i = 0; i < count; i++) {
        char *id = arena_format(sample->arena, "%lld", (long long)sample->run->core->next_event_id);
        sample->input = arena_format(sample->arena, "%*s", bytes, id);
        sample_activity_scheduled(sample, id, 0);
    }
    commit_step(place, sample, guard);
    sample_begin(sample);
    sample_decision_scheduled(sample);
    sample_decision_started(sample);
    commit_step(place, sample, guard);
}

static void
expect_loaded(struct place *place, struct sample *sample)
{
    struct run *loaded = NULL;
    EXPECT_OK(run_load(place->store, SHARD, &key, sample->arena, &loaded, NULL));
    EXPECT(
        slice_equal(sample_image(loaded, sample->arena), sample_image(sample->run, sample->arena)));
    run_free(loaded);
}

/* Method: several in one node, a step of several nodes, steps in between without any, many events
 * in between. */
LOOP_TEST(run_store, large_inputs_come_back_from_the_history, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    open_deciding(&place, &sample, &guard);
    schedule_activities(&place, &sample, &guard, 3, 600);
    expect_loaded(&place, &sample);
    schedule_activities(&place, &sample, &guard, 2, 5);
    schedule_activities(&place, &sample, &guard, 300, 16384);
    expect_loaded(&place, &sample);
    sample_begin(&sample);
    for (int i = 0; i < 40; i++) /* the next one is far */
        sample_signaled(&sample, "s", arena_format(sample.arena, "r%d", i));
    commit_step(&place, &sample, &guard);
    schedule_activities(&place, &sample, &guard, 1, 600);
    schedule_activities(&place, &sample, &guard, 1, 600);
    expect_loaded(&place, &sample);
    place_close(&place);
    sample_close(&sample);
}

static void
delete_history(struct place *place, struct sample *sample, uint64_t guard)
{
    struct history_branch branch = run_branch(sample->run);
    struct batch *batch = batch_new(sample->arena, SHARD, guard);
    batch_delete_nodes(batch, &branch, 1);
    run_put_row(batch, sample->run);
    EXPECT_OK(store_commit(place->store, batch, guard, sample->arena));
}

LOOP_TEST(run_store, a_run_whose_inputs_are_gone_is_told_unless_it_is_going_itself, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    struct run *loaded = NULL;
    open_deciding(&place, &sample, &guard);
    schedule_activities(&place, &sample, &guard, 1, 600);
    delete_history(&place, &sample, guard);
    struct error *err = run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, "order-1") != NULL && strstr(err->message, "no node") != NULL);
    sample.run->core->is_deleting = true; /* then it is meant to be gone, and nobody needs it */
    delete_history(&place, &sample, guard);
    EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
    EXPECT_EQ(map64_count(loaded->activities), 1);
    struct batch *batch = batch_new(sample.arena, SHARD, guard);
    run_put_row(batch, loaded); /* and stays as it is */
    run_free(loaded);
    EXPECT_OK(store_commit(place.store, batch, guard, sample.arena));
    EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
    run_free(loaded);
    place_close(&place);
    sample_close(&sample);
}

static void
put_row(struct place *place, enum row_kind kind, struct slice row_key, struct slice value,
        uint64_t *guard, struct arena *arena)
{
    struct batch *batch = batch_new(arena, SHARD, 7);
    batch_put(batch, kind, row_key, value);
    EXPECT_OK(store_commit(place->store, batch, *guard, arena));
    *guard = 7;
}

LOOP_TEST(run_store, damaged_rows_are_reported_and_not_believed, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    sample_open(&sample, 1);
    place_open(&place);
    struct run *loaded = NULL;
    EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
    EXPECT(loaded == NULL); /* there is none: not an error */
    sample_begin(&sample);
    sample_started(&sample, 0);
    commit_step(&place, &sample, &guard);
    struct slice bad = slice_text("\xff\xff\xff");
    put_row(&place, ROW_PENDING, pending_key_text(&key, PENDING_TIMER, "t", sample.arena), bad,
            &guard, sample.arena);
    EXPECT_KIND(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL), ERR_CORRUPT);
    EXPECT(loaded == NULL);
    put_row(&place, ROW_RUN, run_row_key(&key, sample.arena), bad, &guard, sample.arena);
    EXPECT_KIND(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL), ERR_CORRUPT);
    place_close(&place);
    sample_close(&sample);
}

/* Rows that can be read, but of no run that could be. */
LOOP_TEST(run_store, a_stored_run_that_breaks_a_rule_is_reported_and_not_believed, 1)
{
    struct sample sample;
    struct place place;
    uint64_t guard = 0;
    struct run *loaded = NULL;
    sample_open(&sample, 1);
    place_open(&place);
    sample_begin(&sample);
    sample_started(&sample, 0);
    commit_step(&place, &sample, &guard);
    struct slice row_key = run_row_key(&key, sample.arena);
    for (int i = 0; i < 5; i++) {
        STORED(RunRecord) *core = message_copy(sample.arena, &sample.run->core->base);
        core->state = i == 0 ? 99 : core->state;
        core->n_versions = i == 1 ? 0 : core->n_versions;
        core->workflow_type = i == 2 ? NULL : core->workflow_type;
        core->alarm_row = i == 3 ? 0 : core->alarm_row;
        core->timeout_time = i == 4 ? -5 : core->timeout_time;
        put_row(&place, ROW_RUN, row_key, message_encode(sample.arena, &core->base), &guard,
                sample.arena);
        struct error *err = run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL);
        EXPECT_KIND(err, ERR_CORRUPT);
        EXPECT(strstr(err->message, "breaks rule") != NULL);
        EXPECT(loaded == NULL);
    }
    sample.run->core->format = 3; /* of a newer program */
    put_row(&place, ROW_RUN, row_key, message_encode(sample.arena, &sample.run->core->base), &guard,
            sample.arena);
    EXPECT_KIND(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL), ERR_CORRUPT);
    sample.run->core->format = RUN_RECORD_FORMAT;
    STORED(BufferedEvent) *empty = STORED_NEW(sample.arena, buffered_event);
    put_row(&place, ROW_RUN, row_key, message_encode(sample.arena, &sample.run->core->base), &guard,
            sample.arena);
    EXPECT_OK(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL));
    run_free(loaded);
    put_row(&place, ROW_PENDING, pending_key_number(&key, PENDING_BUFFERED, 1, sample.arena),
            message_encode(sample.arena, &empty->base), &guard, sample.arena);
    EXPECT_KIND(run_load(place.store, SHARD, &key, sample.arena, &loaded, NULL), ERR_CORRUPT);
    place_close(&place);
    sample_close(&sample);
}

LOOP_TEST(run_store, the_current_run_is_found_by_its_workflow_id, 1)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct place place;
    uint64_t guard = 0;
    place_open(&place);
    STORED(CurrentRecord) *current = NULL;
    EXPECT_OK(current_load(place.store, SHARD, "d", "w", arena, &current, NULL));
    EXPECT(current == NULL);
    STORED(CurrentRecord) record;
    cadenza__storage__v1__current_record__init(&record);
    record.run_id = (char *)SAMPLE_RUN;
    record.state = RUN_RUNNING;
    put_row(&place, ROW_CURRENT, current_key("d", "w", arena), message_encode(arena, &record.base),
            &guard, arena);
    EXPECT_OK(current_load(place.store, SHARD, "d", "w", arena, &current, NULL));
    EXPECT_TEXT(current->run_id, SAMPLE_RUN);
    EXPECT_EQ(current->state, RUN_RUNNING);
    place_close(&place);
}
