/* archive_sim_test.c - a closed run is in the archive before it is gone, whatever the archive does.
 *
 * At stake: what the retention takes is lost for ever if the archive does not have it. Method: an
 * archive in memory that fails, hangs and is slow as a case wants, and that outlives owners of the
 * shard; virtual days pass. */
#include "base/map.h"
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "engine/test/shard_simulation.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define HOUR (3600 * NS_PER_S)
#define DAY  (24 * HOUR)
#define RUNS 30

struct shelf {
    struct shard_fixture *fixture;
    struct map *kept;       /* run id → number of events */
    const char *refused_id; /* workflow id that never gets in; NULL: none */
    bool is_failing;
    int64_t delay;
    unsigned puts, refusals, busy, busiest;
};

/* Reads all of the history, and counts its events. */
static struct error *
count_events(const struct archive_run *run, struct arena *arena, int64_t *next)
{
    struct history_page page = {0};
    struct error *err = NULL;
    for (*next = 1; err == NULL && *next < run->next_event_id; *next = page.next_event_id)
        err = run->read(run->context, *next, arena, &page);
    return err;
}

static struct error *
shelf_put(void *context, const struct archive_run *run, struct arena *arena)
{
    struct shelf *shelf = context;
    int64_t next = 0;
    EXPECT_TEXT(run->history_uri, "file:///archive");
    EXPECT_TEXT(run->visibility_uri, "file:///archive");
    EXPECT_TEXT(run->domain_name, "orders");
    EXPECT(run->info.length > 0);
    shelf->busy++;
    shelf->busiest = shelf->busy > shelf->busiest ? shelf->busy : shelf->busiest;
    if (shelf->delay > 0)
        shard_fixture_sleep(shelf->delay);
    struct error *err = count_events(run, arena, &next);
    shelf->busy--;
    if (err != NULL)
        return err;
    bool is_refused = shelf->refused_id != NULL && strcmp(run->workflow_id, shelf->refused_id) == 0;
    if (shelf->is_failing || is_refused) {
        shelf->refusals++;
        return error_new(arena, ERR_IO, "no space left");
    }
    EXPECT_EQ(next, run->next_event_id);
    map_put(shelf->kept, slice_text(run->run_id), (void *)(intptr_t)next);
    shelf->puts++;
    return NULL;
}

static struct shelf
shelf_open(struct shard_fixture *fixture)
{
    shard_fixture_archive(fixture);
    return (struct shelf){.fixture = fixture, .kept = map_new()};
}

static void
shelf_use(struct shelf *shelf)
{
    shelf->fixture->options.archive = (struct archive_port){shelf_put, shelf};
    shard_fixture_take(shelf->fixture);
}

static const char *
close_one(struct shard_fixture *fixture, const char *id)
{
    const char *run_id = NULL;
    EXPECT_OK(shard_fixture_start(fixture, id, "one", 1000, fixture->arena, &run_id));
    EXPECT_OK(shard_fixture_signal(fixture, id, fixture->arena));
    EXPECT_OK(shard_fixture_terminate(fixture, id, fixture->arena));
    return run_id;
}

static void
close_runs(struct shard_fixture *fixture, const char *run_ids[RUNS])
{
    for (int i = 0; i < RUNS; i++)
        run_ids[i] = close_one(fixture, arena_format(fixture->arena, "wf-%d", i));
}

static void
pass(int64_t nanoseconds)
{
    for (; nanoseconds > 0; nanoseconds -= HOUR)
        shard_fixture_sleep(nanoseconds < HOUR ? nanoseconds : HOUR);
}

static bool
is_there(struct shard_fixture *fixture, const char *workflow_id)
{
    struct shard_fixture_run run;
    struct error *err = shard_fixture_look(fixture, workflow_id, fixture->arena, &run);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    return err == NULL;
}

/* Each run is in the store or in the archive, at every look. */
static void
expect_none_lost(struct shelf *shelf, const char *const run_ids[RUNS])
{
    for (int i = 0; i < RUNS; i++) {
        bool is_kept = map_get(shelf->kept, slice_text(run_ids[i])) != NULL;
        EXPECT(is_kept ||
               is_there(shelf->fixture, arena_format(shelf->fixture->arena, "wf-%d", i)));
    }
}

SHARD_TEST(archive_sim, a_run_is_in_the_archive_before_it_is_gone, "run_archived", 10 * DAY)
{
    const char *run_ids[RUNS];
    struct shelf shelf = shelf_open(fixture);
    shelf_use(&shelf);
    close_runs(fixture, run_ids);
    pass(DAY - HOUR);
    EXPECT_EQ(shelf.puts, 0); /* not before its time */
    shelf.delay = 2 * NS_PER_S;
    for (int i = 0; i < 40; i++) {
        shard_fixture_sleep(HOUR / 10);
        expect_none_lost(&shelf, run_ids);
    }
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 0);
    EXPECT_EQ(map_count(shelf.kept), RUNS);
    map_free(shelf.kept);
}

/* The owner changes while runs are archived, again and again. */
SHARD_TEST(archive_sim, an_owner_that_comes_and_goes_loses_nothing, "run_archived", 10 * DAY)
{
    const char *run_ids[RUNS];
    struct shelf shelf = shelf_open(fixture);
    shelf_use(&shelf);
    close_runs(fixture, run_ids);
    pass(DAY - HOUR);
    shelf.delay = 90 * NS_PER_S;
    for (int i = 0; i < 60; i++) {
        shard_fixture_sleep(97 * NS_PER_S);
        shard_fixture_restart(fixture);
        expect_none_lost(&shelf, run_ids);
    }
    shelf.delay = 0;
    pass(3 * HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 0);
    EXPECT_EQ(map_count(shelf.kept), RUNS);
    map_free(shelf.kept);
}

/* An archive without room for a week: the runs stay, and what others do goes on in time. */
SHARD_TEST(archive_sim, an_archive_that_fails_keeps_the_runs_and_nobody_else_waits,
           "archive_put_off", 20 * DAY)
{
    const char *run_ids[RUNS];
    struct shelf shelf = shelf_open(fixture);
    struct shard_fixture_run run;
    fixture->options.wakeups_max = 8; /* memory for fewer than fail */
    shelf.is_failing = true;
    shelf_use(&shelf);
    close_runs(fixture, run_ids);
    EXPECT_OK(shard_fixture_start(fixture, "other", "one", 3 * 86400, fixture->arena, NULL));
    pass(2 * DAY);
    expect_none_lost(&shelf, run_ids);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), RUNS + 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), RUNS + 1);
    shard_fixture_restart(fixture);
    pass(DAY + HOUR);
    EXPECT_OK(
        shard_fixture_look(fixture, "other", fixture->arena, &run)); /* its own time was kept */
    EXPECT(!run.is_open && run.close_time < run.timeout_time + 5 * NS_PER_S);
    pass(4 * DAY);
    EXPECT_EQ(map_count(shelf.kept), 0);
    EXPECT(shelf.refusals < 300 * RUNS); /* once an hour in the end */
    shelf.is_failing = false;
    pass(4 * HOUR);
    EXPECT_EQ(map_count(shelf.kept), RUNS + 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 0);
    map_free(shelf.kept);
}

/* One run that cannot be archived does not keep others from going. */
SHARD_TEST(archive_sim, one_run_that_cannot_be_archived_is_the_only_one_that_stays,
           "archive_put_off", 10 * DAY)
{
    const char *run_ids[RUNS];
    struct shelf shelf = shelf_open(fixture);
    shelf.refused_id = "wf-3";
    shelf_use(&shelf);
    close_runs(fixture, run_ids);
    pass(DAY + 3 * HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 1);
    EXPECT(is_there(fixture, "wf-3"));
    EXPECT_EQ(map_count(shelf.kept), RUNS - 1);
    map_free(shelf.kept);
}

/* A file system that hangs: few wait for it, and timers of the shard go on. */
SHARD_TEST(archive_sim, an_archive_that_hangs_holds_up_few, "run_archived", 20 * DAY)
{
    const char *run_ids[RUNS];
    struct shelf shelf = shelf_open(fixture);
    struct shard_fixture_run run;
    shelf_use(&shelf);
    close_runs(fixture, run_ids);
    EXPECT_OK(shard_fixture_start(fixture, "other", "one", 86400 + 2 * 3600, fixture->arena, NULL));
    pass(DAY - HOUR);
    shelf.delay = 6 * HOUR;
    pass(4 * HOUR);
    EXPECT_OK(shard_fixture_look(fixture, "other", fixture->arena, &run));
    EXPECT(!run.is_open && run.close_time < run.timeout_time + 5 * NS_PER_S);
    EXPECT(shelf.busiest > 0 && shelf.busiest <= 4);
    expect_none_lost(&shelf, run_ids);
    shelf.delay = 0;
    pass(8 * HOUR);
    EXPECT_EQ(map_count(shelf.kept), RUNS);
    pass(DAY);
    map_free(shelf.kept);
}

/* A domain that does not want it, and one that no longer does. */
SHARD_TEST(archive_sim, a_domain_that_does_not_archive_is_not_asked, "run_deleted", 10 * DAY)
{
    struct shelf shelf = {.fixture = fixture, .kept = map_new()};
    shelf_use(&shelf);
    close_one(fixture, "wf");
    pass(DAY + 2 * HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 0);
    EXPECT_EQ(shelf.puts + shelf.refusals, 0);
    map_free(shelf.kept);
}
