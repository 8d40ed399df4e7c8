/* disk_test.c - what a disk keeps through a crash, and that a walk over all crash points finds who
 * relies on more. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/slice.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/sim/world.h"

/* Runs a function as the main fiber of a host until it ends, by itself or by a crash. */
static void
run_on(struct host *host, void (*function)(void *argument), void *argument)
{
    host_start(host, function, argument);
    /* host_crash_at_write may end it; nothing in these tests takes longer */
    struct world *world = *(struct world **)argument; /* first member of every context here */
    EXPECT(world_run_until(world, host_has_ended, host, 100 * NS_PER_S));
}

/* --- plain use ------------------------------------------------------------------------------- */

struct use {
    struct world *world;
    struct slice found; /* points to `bytes` */
    uint8_t bytes[64];
    bool is_found;
};

static void
use_files(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct file *file, *other;
    uint8_t room[16];
    size_t count;
    uint64_t size;
    int64_t modified;
    const char **names;
    EXPECT_KIND(file_open("data/log", FILE_READ, arena, &file), ERR_NOT_FOUND);
    EXPECT_OK(folder_create("data/deep/er", arena));
    EXPECT_OK(folder_create("data/deep", arena));
    EXPECT_OK(file_open("data/log", FILE_READ | FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_KIND(file_open("data/log", FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, arena, &other),
                ERR_IO);
    EXPECT_OK(file_write(file, 4, "abcd", 4, arena));
    EXPECT_OK(file_read(file, 2, room, sizeof room, &count, arena));
    EXPECT_EQ(count, 6);
    EXPECT(memcmp(room, "\0\0abcd", 6) == 0);
    EXPECT_OK(file_size(file, &size, arena));
    EXPECT_EQ(size, 8);
    EXPECT_OK(file_open("/data/./log", FILE_READ, arena, &other));
    EXPECT_OK(file_lock(file, arena));
    EXPECT_KIND(file_lock(other, arena), ERR_BUSY);
    file_close(file);
    EXPECT_OK(file_lock(other, arena));
    EXPECT_OK(file_rename("data/log", "data/deep/log", arena));
    EXPECT_OK(file_read(other, 4, room, 2, &count, arena)); /* the handle stays good */
    EXPECT_EQ(count, 2);
    file_close(other);
    EXPECT_OK(folder_list("data/deep", arena, &names));
    EXPECT_TEXT(names[0], "er");
    EXPECT_TEXT(names[1], "log");
    EXPECT(names[2] == NULL);
    EXPECT_OK(file_stat("data/deep/log", &modified, &size, arena));
    EXPECT(size == 8 && modified <= clock_wall() && modified > clock_wall() - NS_PER_S);
    EXPECT_KIND(file_remove("data/deep", arena), ERR_IO);
    EXPECT_OK(file_remove("data/deep/log", arena));
    EXPECT_KIND(file_stat("data/deep/log", &modified, &size, arena), ERR_NOT_FOUND);
}

TEST(sim_disk, files_and_folders_behave_as_everywhere)
{
    struct use use = {.world = world_new(.seed = 1)};
    struct host *host = world_add_host(use.world, "h", 1);
    run_on(host, use_files, &use);
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(use.world);
}

/* --- what a crash keeps ---------------------------------------------------------------------- */

static void
load_main(void *argument)
{
    struct use *use = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice bytes;
    use->is_found = file_load("f", sizeof use->bytes, arena, &bytes) == NULL;
    if (use->is_found) {
        memcpy(use->bytes, bytes.data, bytes.length);
        use->found = slice_of(use->bytes, bytes.length);
    }
}

/* "synced" is synced and "then not" is not; then the plug is pulled. */
static void
write_half_synced(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct file *file;
    EXPECT_OK(file_open("f", FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(file_write(file, 0, "synced", 6, arena));
    EXPECT_OK(file_sync(file, arena));
    EXPECT_OK(folder_sync(".", arena));
    EXPECT_OK(file_write(file, 6, "then", 4, arena));
    EXPECT_OK(file_write(file, 10, " not", 4, arena));
    EXPECT_OK(fiber_sleep(1000 * NS_PER_S, arena));
    file_close(file);
}

/* What is synced is always there; over many seeds every fate of the rest occurs: lost, kept, torn,
 * a hole. */
TEST(sim_disk, a_crash_keeps_what_was_synced_and_any_part_of_the_rest)
{
    unsigned lost = 0, kept = 0, torn = 0, holes = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct use use = {.world = world_new(.seed = seed)};
        struct host *host = world_add_host(use.world, "h", 1);
        host_start(host, write_half_synced, &use);
        world_run_for(use.world, NS_PER_S);
        host_crash(host);
        run_on(host, load_main, &use);
        EXPECT(use.is_found && use.found.length >= 6 && memcmp(use.bytes, "synced", 6) == 0);
        size_t rest = use.found.length - 6;
        bool is_hole = rest > 4 && use.bytes[6] == 0;
        EXPECT(rest <= 8);
        EXPECT(is_hole || memcmp(use.bytes + 6, "then not", rest) == 0);
        lost += rest == 0;
        kept += rest == 8 && !is_hole;
        torn += rest % 4 != 0;
        holes += is_hole;
        world_free(use.world);
    }
    EXPECT(lost > 10 && kept > 10 && torn > 10 && holes > 0);
}

static void
create_without_folder_sync(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct file *file;
    EXPECT_OK(file_open("f", FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(file_write(file, 0, "synced", 6, arena));
    EXPECT_OK(file_sync(file, arena));
    file_close(file);
}

/* The process ended well; it is the machine that fails later. */
TEST(sim_disk, a_new_name_is_durable_only_after_its_folder_was_synced)
{
    unsigned found = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct use use = {.world = world_new(.seed = seed)};
        struct host *host = world_add_host(use.world, "h", 1);
        run_on(host, create_without_folder_sync, &use);
        run_on(host, load_main, &use);
        EXPECT(use.is_found); /* without a crash nothing is lost */
        host_crash(host);
        run_on(host, load_main, &use);
        EXPECT(!use.is_found || use.found.length == 6);
        found += use.is_found;
        world_free(use.world);
    }
    EXPECT(found > 10 && found < 90);
}

struct save {
    struct world *world;
    struct use use;
    unsigned saved; /* versions whose file_save has returned */
};

static void
save_versions(void *argument)
{
    struct save *save = argument;
    for (unsigned i = save->saved; i < 5; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        EXPECT_OK(file_save("f", slice_text(arena_format(arena, "version %u", i)), arena));
        save->saved = i + 1;
    }
}

/* Walks every crash point of five saves, with several seeds each. */
TEST(sim_disk, a_saved_file_is_the_old_one_or_the_new_one_at_every_crash_point)
{
    for (uint64_t point = 1; point <= 5 * 5 + 1; point++) {
        for (uint64_t seed = 0; seed < 8; seed++) {
            struct world *world = world_new(.seed = seed);
            struct save save = {.world = world, .use = {.world = world}};
            struct host *host = world_add_host(world, "h", 1);
            host_crash_at_write(host, point);
            run_on(host, save_versions, &save);
            EXPECT_EQ(host_disk_writes(host), point <= 25 ? point : 25);
            EXPECT(save.saved == (point <= 25 ? (point - 1) / 5 : 5));
            run_on(host, load_main, &save.use);
            EXPECT(save.use.is_found || save.saved == 0);
            unsigned version = save.use.is_found ? (unsigned)(save.use.bytes[8] - '0') : 0;
            EXPECT(version == save.saved || version + 1 == save.saved);
            world_free(world);
        }
    }
}

static void
write_while_failing(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct use *use = argument;
    struct file *file;
    EXPECT_OK(file_open("f", FILE_READ | FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(file_write(file, 0, "a", 1, arena));
    use->is_found = true;
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, arena));
    EXPECT_KIND(file_write(file, 1, "b", 1, arena), ERR_IO);
    EXPECT_KIND(file_sync(file, arena), ERR_IO);
    EXPECT_KIND(folder_sync(".", arena), ERR_IO);
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, arena));
    uint64_t size;
    EXPECT_OK(file_size(file, &size, arena));
    EXPECT_EQ(size, 1);
    EXPECT_OK(file_sync(file, arena));
    file_close(file);
}

TEST(sim_disk, a_failing_disk_refuses_writes_and_syncs_until_it_is_well_again)
{
    struct use use = {.world = world_new(.seed = 1)};
    struct host *host = world_add_host(use.world, "h", 1);
    host_start(host, write_while_failing, &use);
    world_run_for(use.world, NS_PER_S);
    EXPECT(use.is_found);
    host_fail_disk(host, true);
    world_run_for(use.world, 2 * NS_PER_S);
    host_fail_disk(host, false);
    EXPECT(world_run_until(use.world, host_has_ended, host, 10 * NS_PER_S));
    world_free(use.world);
}

/* --- a log, and the walk over its crash points ----------------------------------------------- */

/* Each record is a number and its complement: enough to tell a torn one. */
struct record {
    uint64_t number, complement;
};

enum { RECORDS = 12 };

struct writer {
    struct world *world;
    bool forgets_sync;  /* the built-in fault */
    uint64_t promised;  /* records whose append has returned: acknowledged to the outside */
    uint64_t recovered; /* what the last start found */
    bool is_corrupt;
};

static void
log_recover(struct writer *writer, struct file *file, struct arena *arena)
{
    struct record record;
    size_t count;
    writer->recovered = 0;
    for (;;) {
        uint64_t offset = writer->recovered * sizeof record;
        EXPECT_OK(file_read(file, offset, &record, sizeof record, &count, arena));
        if (count < sizeof record || record.number != ~record.complement)
            return;
        writer->is_corrupt |= record.number != writer->recovered;
        writer->recovered++;
    }
}

static void
log_append(struct writer *writer, struct file *file, uint64_t number, struct arena *arena)
{
    struct record record = {number, ~number};
    EXPECT_OK(file_write(file, number * sizeof record, &record, sizeof record, arena));
    if (!writer->forgets_sync)
        EXPECT_OK(file_sync(file, arena));
    writer->promised = number + 1;
}

static void
writer_main(void *argument)
{
    struct writer *writer = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct file *file;
    EXPECT_OK(file_open("log", FILE_READ | FILE_WRITE | FILE_CREATE, arena, &file));
    EXPECT_OK(folder_sync("/", arena));
    log_recover(writer, file, arena);
    for (uint64_t number = writer->recovered; number < RECORDS; number++)
        log_append(writer, file, number, arena);
    file_close(file);
}

/* Crashes at one write point, starts again, and looks: is everything that was promised there, and
 * valid? */
static bool
survives(uint64_t seed, uint64_t point, bool forgets_sync)
{
    struct writer writer = {.world = world_new(.seed = seed), .forgets_sync = forgets_sync};
    struct host *host = world_add_host(writer.world, "h", 1);
    host_crash_at_write(host, point);
    run_on(host, writer_main, &writer);
    uint64_t promised = writer.promised;
    run_on(host, writer_main, &writer);
    bool is_kept = writer.recovered >= promised && !writer.is_corrupt;
    world_free(writer.world);
    return is_kept;
}

static unsigned
count_losses(bool forgets_sync)
{
    unsigned losses = 0;
    uint64_t points = 2 + 2 * RECORDS; /* open and folder_sync, then write and sync of each */
    for (uint64_t point = 1; point <= points; point++)
        for (uint64_t seed = 0; seed < 6; seed++)
            losses += !survives(seed, point, forgets_sync);
    return losses;
}

TEST(sim_disk, a_log_that_syncs_keeps_every_promise_at_every_crash_point)
{
    EXPECT_EQ(count_losses(false), 0);
}

/* The checker itself is tested here: a walk that cannot find this fault proves nothing. */
TEST(sim_disk, the_walk_finds_a_log_that_forgets_to_sync)
{
    EXPECT(count_losses(true) > 10);
}
