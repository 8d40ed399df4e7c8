/* files_sim_test.c - files of the archive on a disk that crashes and fails.
 *
 * At stake: the run is deleted because the archive said that it has it. Method: one put, and a
 * crash at its first, second, … write to the disk, until none is left to crash at; whatever of it
 * survived, what was promised must be there whole, and nothing else may be seen in part. */
#include "archive/test/sample.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/sim/world.h"
#include "fiber/sync.h"

#define BATCHES 10

struct archive_fixture {
    size_t payload;
    bool is_put;  /* the archive said that it has it */
    bool is_seen; /* it was found after the crash */
};

static void
put_fiber(void *argument)
{
    struct archive_fixture *archive_fixture = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(NULL);
    struct archive *archive = sample_archive(dynamic, "one");
    EXPECT_OK(archive_put(archive, sample_run(arena, BATCHES, archive_fixture->payload), arena));
    archive_fixture->is_put = true;
    archive_free(archive);
    dynamic_free(dynamic);
    arena_free(arena);
}

static size_t
count_listed(struct archive *archive, const struct archive_run *run, struct arena *arena)
{
    struct attribute_set *attributes = attribute_set_new(arena);
    struct query query;
    struct archive_list_page page = {0};
    EXPECT_OK(query_parse("CloseStatus = 'CONTINUED_AS_NEW'", attributes, arena, &query));
    struct archive_list_question question = {.uri = run->visibility_uri,
                                             .domain_id = run->domain_id,
                                             .query = &query,
                                             .attributes = attributes,
                                             .page_size = 10};
    EXPECT_OK(archive_list(archive, &question, arena, &page));
    return page.count;
}

static void
look_fiber(void *argument)
{
    struct archive_fixture *archive_fixture = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(NULL);
    struct archive *archive = sample_archive(dynamic, "one");
    struct archive_run *run = sample_run(arena, BATCHES, archive_fixture->payload);
    struct slice events = {0};
    struct error *err = sample_read(archive, run, 3, arena, &events);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    if (err == NULL)
        EXPECT(slice_equal(events, sample_events(run, arena)));
    size_t listed = count_listed(archive, run, arena);
    EXPECT(listed == 0 || err == NULL); /* who is listed has a history */
    archive_fixture->is_seen = err == NULL && listed == 1;
    EXPECT(archive_fixture->is_seen || !archive_fixture->is_put);
    EXPECT_OK(archive_put(archive, run, arena)); /* what was left beside is not in the way */
    EXPECT_OK(sample_read(archive, run, 3, arena, &events));
    EXPECT(slice_equal(events, sample_events(run, arena)));
    EXPECT_EQ(count_listed(archive, run, arena), 1);
    archive_free(archive);
    dynamic_free(dynamic);
    arena_free(arena);
}

/* Crashes at the k-th write; false: there were fewer. */
static bool
crash_at(uint64_t seed, uint64_t k, size_t payload, unsigned *seen)
{
    struct world *world = world_new(.seed = seed * 1000 + k);
    struct host *host = world_add_host(world, "alone", 1);
    struct archive_fixture archive_fixture = {.payload = payload};
    host_crash_at_write(host, k);
    host_start(host, put_fiber, &archive_fixture);
    EXPECT(world_run_until(world, host_has_ended, host, 600 * NS_PER_S));
    bool is_over = archive_fixture.is_put;
    host_crash_at_write(host, 0);
    if (is_over) { /* and then the power fails */
        host_start(host, put_fiber, &archive_fixture);
        EXPECT(world_run_until(world, host_has_ended, host, 600 * NS_PER_S));
    }
    host_start(host, look_fiber, &archive_fixture);
    EXPECT(world_run_until(world, host_has_ended, host, 600 * NS_PER_S));
    *seen += archive_fixture.is_seen;
    world_free(world);
    return !is_over;
}

TEST(archive_files, a_crash_at_any_write_leaves_a_file_whole_or_none)
{
    for (int i = 0; i < test_seed_count(); i++) {
        unsigned seen = 0;
        uint64_t k = 1;
        while (crash_at(test_seed(i), k, i % 2 == 0 ? 10 : 40000, &seen))
            k++;
        EXPECT(k > 15); /* folders, two files, each written, synced, renamed */
        EXPECT(seen > 0);
    }
}

/* --- what is durable ---- */

struct promise {
    struct host *host;
    struct archive_fixture archive_fixture;
    bool is_held; /* the host waits to be crashed */
};

static void
put_and_hold(void *argument)
{
    struct promise *promise = argument;
    put_fiber(&promise->archive_fixture);
    promise->is_held = true;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    (void)!fiber_sleep(3600 * NS_PER_S, arena);
}

static bool
is_held(void *context)
{
    return ((struct promise *)context)->is_held;
}

TEST(archive_files, what_was_put_is_there_after_the_power_failed)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct world *world = world_new(.seed = test_seed(i));
        struct promise promise = {.host = world_add_host(world, "alone", 1)};
        host_start(promise.host, put_and_hold, &promise);
        EXPECT(world_run_until(world, is_held, &promise, 600 * NS_PER_S));
        host_crash(promise.host);
        host_start(promise.host, look_fiber, &promise.archive_fixture);
        EXPECT(world_run_until(world, host_has_ended, promise.host, 600 * NS_PER_S));
        EXPECT(promise.archive_fixture.is_seen);
        world_free(world);
    }
}

/* --- two owners, and a disk without room ---- */

struct candidates {
    struct archive *archive;
    struct arena *arenas[2];
    struct latch latch;
    unsigned next;
};

static void
candidate_fiber(void *argument)
{
    struct candidates *candidates = argument;
    unsigned number = candidates->next++;
    for (int i = 0; i < 20; i++) {
        struct archive_run *run = sample_run(candidates->arenas[number], BATCHES, 1000);
        run->range_id = 100 + number;
        EXPECT_OK(archive_put(candidates->archive, run, candidates->arenas[number]));
        struct slice events;
        EXPECT_OK(sample_read(candidates->archive, run, 100, candidates->arenas[number], &events));
        EXPECT(slice_equal(events, sample_events(run, candidates->arenas[number])));
    }
    latch_done(&candidates->latch);
}

static void
run_alone(void (*body)(void *argument), void *argument)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "alone", 1);
        host_start(host, body, argument == NULL ? host : argument);
        EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(host), 0);
        world_free(world);
    }
}

TEST_IN(archive_files, two_owners_of_a_shard_do_not_get_in_each_others_way, void *argument,
        run_alone(body, NULL))
{
    struct dynamic *dynamic = dynamic_new(NULL);
    struct candidates candidates = {.archive = sample_archive(dynamic, "one"),
                                    .arenas = {arena_new(0), arena_new(0)}};
    latch_init(&candidates.latch, 2);
    fiber_start("candidate", candidate_fiber, &candidates);
    fiber_start("candidate", candidate_fiber, &candidates);
    latch_wait(&candidates.latch);
    archive_free(candidates.archive);
    dynamic_free(dynamic);
    arena_free(candidates.arenas[0]);
    arena_free(candidates.arenas[1]);
}

TEST_IN(archive_files, a_disk_without_room_is_reported_and_leaves_nothing, void *argument,
        run_alone(body, NULL))
{
    struct host *host = argument;
    struct arena *arena = arena_new(0);
    struct dynamic *dynamic = dynamic_new(NULL);
    struct archive *archive = sample_archive(dynamic, "one");
    struct archive_run *run = sample_run(arena, BATCHES, 1000);
    struct slice events;
    const char **names;
    host_fail_disk(host, true);
    EXPECT_KIND(archive_put(archive, run, arena), ERR_IO);
    EXPECT_KIND(sample_read(archive, run, 10, arena, &events), ERR_ENTITY_NOT_EXISTS);
    host_fail_disk(host, false);
    EXPECT_OK(archive_put(archive, run, arena));
    host_fail_disk(host, true);
    EXPECT_KIND(archive_put(archive, run, arena), ERR_IO); /* the old one stays */
    host_fail_disk(host, false);
    EXPECT_OK(sample_read(archive, run, 10, arena, &events));
    EXPECT(slice_equal(events, sample_events(run, arena)));
    EXPECT_OK(folder_list("/archive/histories", arena, &names));
    EXPECT(names[0] != NULL && names[1] == NULL); /* nothing beside it */
    archive_free(archive);
    dynamic_free(dynamic);
    arena_free(arena);
}
