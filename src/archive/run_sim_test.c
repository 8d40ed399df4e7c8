/* run_sim_test.c - runs of a shard into the archive, with crashes and a disk that fails.
 *
 * At stake: nothing is lost between retention and archive. Method: a shard on a store and an
 * archive on a disk that both crash at any moment; at every start, and again and again in between,
 * each run that was closed is in the store, or whole in the archive and in its list. */
#include <stdio.h>

#include "archive/test/sample.h"
#include "engine/test/shard_fixture.h"
#include "fiber/sim/world.h"
#include "wire/message.h"

#define RUNS 12
#define HOUR (3600 * NS_PER_S)

/* Out here, where no crash reaches. */
struct ledger {
    struct memory_base *base;
    struct host *host;
    uint64_t handle; /* of its store */
    char run_ids[RUNS][40];
    int64_t next_event_ids[RUNS];
    bool is_set_up, is_over;
    unsigned archived; /* at the last look */
    size_t left;       /* runs in the store */
};

static void
set_up(struct ledger *ledger, struct shard_fixture *fixture)
{
    for (int i = 0; i < RUNS; i++) {
        const char *id = arena_format(fixture->arena, "wf-%d", i), *run_id = NULL;
        struct shard_fixture_run run;
        EXPECT_OK(shard_fixture_start(fixture, id, "one", 1000, fixture->arena, &run_id));
        for (int s = 0; s < i; s++)
            EXPECT_OK(shard_fixture_signal(fixture, id, fixture->arena));
        EXPECT_OK(shard_fixture_terminate(fixture, id, fixture->arena));
        EXPECT_OK(shard_fixture_look(fixture, id, fixture->arena, &run));
        ledger->next_event_ids[i] = run.next_event_id;
        snprintf(ledger->run_ids[i], sizeof ledger->run_ids[i], "%s", run_id);
    }
    ledger->is_set_up = true;
}

/* --- looking ---- */

static bool
is_stored(struct shard_fixture *fixture, int number, struct arena *arena)
{
    struct shard_fixture_run run;
    struct error *err =
        shard_fixture_look(fixture, arena_format(arena, "wf-%d", number), arena, &run);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    return err == NULL;
}

static bool
is_listed(struct shard_fixture *fixture, struct archive *archive, int number, struct arena *arena)
{
    struct attribute_set *attributes = attribute_set_new(arena);
    struct query query;
    struct archive_list_page page = {0};
    const char *text = arena_format(arena, "WorkflowID = 'wf-%d'", number);
    EXPECT_OK(query_parse(text, attributes, arena, &query));
    struct archive_list_question question = {.uri = "file:///archive",
                                             .domain_id = fixture->domain_id,
                                             .query = &query,
                                             .attributes = attributes,
                                             .page_size = 10};
    EXPECT_OK(archive_list(archive, &question, arena, &page));
    return page.count == 1;
}

/* Whole, if it is there. */
static bool
is_archived(struct ledger *ledger, struct shard_fixture *fixture, struct archive *archive,
            int number, struct arena *arena)
{
    struct archive_run run = {.history_uri = "file:///archive",
                              .domain_id = fixture->domain_id,
                              .workflow_id = arena_format(arena, "wf-%d", number),
                              .run_id = ledger->run_ids[number]};
    struct slice events;
    API(History) *history = NULL;
    struct error *err = sample_read(archive, &run, 4, arena, &events);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    if (err != NULL)
        return false;
    EXPECT_OK(message_decode(arena, API_TYPE(history), events, &history));
    EXPECT_EQ((int64_t)history->n_events, ledger->next_event_ids[number] - 1);
    for (size_t i = 0; i < history->n_events; i++)
        EXPECT_EQ(history->events[i]->event_id, (int64_t)i + 1);
    return true;
}

static void
look(struct ledger *ledger, struct shard_fixture *fixture, struct archive *archive)
{
    unsigned archived = 0;
    for (int i = 0; i < RUNS; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        bool is_there = is_stored(fixture, i, arena);
        bool is_kept = is_archived(ledger, fixture, archive, i, arena) &&
                       is_listed(fixture, archive, i, arena);
        EXPECT(is_there || is_kept);
        archived += is_kept;
    }
    ledger->archived = archived;
    ledger->left = shard_fixture_rows(fixture, ROW_RUN);
}

/* --- the host ---- */

static void
life(void *argument)
{
    struct ledger *ledger = argument;
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, ledger->base);
    ledger->handle = memory_handle(fixture.store);
    struct archive *archive = sample_archive(fixture.dynamic, "host");
    fixture.options.archive = archive_port(archive);
    shard_fixture_archive(&fixture);
    shard_fixture_take(&fixture);
    if (!ledger->is_set_up)
        set_up(ledger, &fixture);
    while (!ledger->is_over) {
        look(ledger, &fixture, archive);
        shard_fixture_sleep(1200 * NS_PER_S);
    }
    look(ledger, &fixture, archive);
    shard_fixture_close(&fixture);
    archive_free(archive);
}

static void
note_crash(void *context)
{
    struct ledger *ledger = context;
    memory_crash(ledger->base, ledger->handle);
}

static bool
is_set_up(void *context)
{
    return ((struct ledger *)context)->is_set_up;
}

static bool
has_ended(void *context)
{
    return !host_is_running(((struct ledger *)context)->host);
}

/* A crash at some write, or a disk that fails for a while. */
static void
trouble(struct ledger *ledger, struct world *world, unsigned *crashes)
{
    struct random *random = world_random(world);
    bool fails = random_below(random, 4) == 0;
    host_fail_disk(ledger->host, fails);
    if (!fails)
        host_crash_at_write(ledger->host, 1 + random_below(random, 30));
    if (world_run_until(world, has_ended, ledger, 1800 * NS_PER_S)) {
        (*crashes)++;
        host_crash_at_write(ledger->host, 0);
        host_start(ledger->host, life, ledger);
    }
    host_crash_at_write(ledger->host, 0);
    host_fail_disk(ledger->host, false);
}

static unsigned
run_storm(uint64_t seed, struct world *world)
{
    struct ledger ledger = {.base = memory_base_new(seed)};
    unsigned crashes = 0;
    ledger.host = world_add_host(world, "alone", 1);
    host_on_crash(ledger.host, note_crash, &ledger);
    host_start(ledger.host, life, &ledger);
    EXPECT(world_run_until(world, is_set_up, &ledger, HOUR));
    world_run_for(world, 23 * HOUR);
    EXPECT_EQ(ledger.archived, 0);
    for (int i = 0; i < 40 && ledger.left > 0; i++)
        trouble(&ledger, world, &crashes);
    world_run_for(world, 4 * HOUR);
    ledger.is_over = true;
    EXPECT(world_run_until(world, has_ended, &ledger, HOUR));
    EXPECT_EQ(ledger.archived, RUNS);
    EXPECT_EQ(ledger.left, 0);
    EXPECT_EQ(host_heap_blocks(ledger.host), 0);
    memory_base_free(ledger.base);
    return crashes;
}

TEST(archive_runs, each_run_is_in_the_archive_before_it_is_gone_whatever_crashes, "J-021")
{
    unsigned crashes = 0;
    uint64_t put_off = 0;
    for (int i = 0; i < test_seed_count(); i++) {
        struct world *world = world_new(.seed = test_seed(i));
        crashes += run_storm(test_seed(i), world);
        put_off += world_probe_count(world, "archive_put_off");
        EXPECT(world_probe_count(world, "run_archived") >= RUNS);
        world_free(world);
    }
    EXPECT(!test_seeds_suffice(1) || crashes > 0);
    EXPECT(!test_seeds_suffice(9) || put_off > 0);
}
