/* rocks_copy_test.c - a data folder knows whether it lies where it was written, and a copy that is
 * opened says so from then on, whatever ends its first opening. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "fiber/file.h"
#include "fiber/linux/linux.h"
#include "store/rocks/rocks.h"
#include "store/rocks/test_crash.h"
#include "store/rocks/test_fixture.h"

static const struct partition shard = PARTITION_OF_SHARD(1);

/* Another folder beside the data folder. */
static char *
beside(struct rocks_fixture *rocks_fixture, const char *name)
{
    return arena_format(rocks_fixture->arena, "%s/%s", rocks_fixture->folder, name);
}

/* One run of a command on two paths. */
static void
command(struct rocks_fixture *rocks_fixture, const char *words, const char *from, const char *to)
{
    rocks_fixture_shell(arena_format(rocks_fixture->arena, "%s '%s' '%s'", words, from, to));
}

/* Opens, expects what it remembers and whether its guards were raised, puts a row, closes. */
static void
work(struct rocks_fixture *rocks_fixture, enum store_memory memory, bool is_raised)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT_TEXT(store_memory_word(store_memory(store)), store_memory_word(memory));
    size_t rows = rocks_fixture_count(rocks_fixture, store, shard, ROW_RUN);
    EXPECT((rocks_fixture_guard(rocks_fixture, store, shard) >= ROCKS_RESTORE_LEAP) == is_raised);
    rocks_fixture_put(rocks_fixture, store, shard, ROW_RUN, rows);
    store_close(store);
}

static enum store_memory
memory_in_info(struct rocks_fixture *rocks_fixture)
{
    struct store_info info;
    EXPECT_OK(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info));
    return info.memory;
}

static struct slice
identity(struct rocks_fixture *rocks_fixture)
{
    struct slice text;
    EXPECT_OK(file_load(arena_format(rocks_fixture->arena, "%s/CADENZA", rocks_fixture->data), 4096,
                        rocks_fixture->arena, &text));
    return text;
}

static bool
says(struct rocks_fixture *rocks_fixture, const char *words)
{
    return strstr(arena_text_of(rocks_fixture->arena, identity(rocks_fixture)), words) != NULL;
}

/* Replaces lines of the identity, by a script of sed. */
static void
edit(struct rocks_fixture *rocks_fixture, const char *script)
{
    rocks_fixture_shell(arena_format(rocks_fixture->arena, "sed -i '%s' '%s/CADENZA'", script,
                                     rocks_fixture->data));
}

ROCKS_TEST(rocks_copy, a_copy_says_so_until_it_is_told_that_it_is_whole)
{
    work(rocks_fixture, STORE_WHOLE, false);
    char *original = rocks_fixture->data;
    command(rocks_fixture, "cp -a", original, rocks_fixture->data = beside(rocks_fixture, "copy"));
    EXPECT(says(rocks_fixture, "memory: whole"));
    EXPECT(memory_in_info(rocks_fixture) == STORE_COPIED); /* at its next opening */
    EXPECT(says(rocks_fixture, "memory: whole"));          /* looking changes nothing */
    work(rocks_fixture, STORE_COPIED, true);
    EXPECT(says(rocks_fixture, "memory: copied") && says(rocks_fixture, "guards: good"));
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT(rocks_memory(store) == STORE_COPIED);
    uint64_t guard = rocks_fixture_guard(rocks_fixture, store, shard);
    EXPECT_OK(rocks_set_whole(store, rocks_fixture->arena));
    EXPECT(rocks_memory(store) == STORE_WHOLE);
    store_close(store);
    store = rocks_fixture_open(rocks_fixture);
    EXPECT(rocks_memory(store) == STORE_WHOLE);
    EXPECT_EQ(rocks_fixture_guard(rocks_fixture, store, shard), guard); /* raised once */
    store_close(store);
    rocks_fixture->data = original;
    work(rocks_fixture, STORE_WHOLE, false);
}

ROCKS_TEST(rocks_copy, an_old_copy_that_is_put_back_is_one_each_time)
{
    work(rocks_fixture, STORE_WHOLE, false);
    char *saved = beside(rocks_fixture, "saved");
    command(rocks_fixture, "cp -a", rocks_fixture->data, saved);
    uint64_t guard = 0;
    for (int i = 0; i < 3; i++) {
        work(rocks_fixture, i == 0 ? STORE_WHOLE : STORE_COPIED, i > 0);
        rocks_fixture_shell(arena_format(rocks_fixture->arena, "rm -r '%s'", rocks_fixture->data));
        command(rocks_fixture, "cp -a", saved, rocks_fixture->data);
        struct store *store = rocks_fixture_open(rocks_fixture);
        EXPECT(rocks_memory(store) == STORE_COPIED);
        EXPECT(rocks_fixture_guard(rocks_fixture, store, shard) >= guard);
        guard = rocks_fixture_guard(rocks_fixture, store, shard);
        EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, shard, ROW_RUN), 1);
        store_close(store);
    }
}

ROCKS_TEST(rocks_copy, a_restart_and_a_rename_are_no_copies)
{
    work(rocks_fixture, STORE_WHOLE, false);
    work(rocks_fixture, STORE_WHOLE, false);
    char *renamed = beside(rocks_fixture, "renamed");
    command(rocks_fixture, "mv", rocks_fixture->data, renamed);
    rocks_fixture->data = renamed;
    EXPECT(memory_in_info(rocks_fixture) == STORE_WHOLE);
    work(rocks_fixture, STORE_WHOLE, false);
}

/* Its lock file may be left out, or be made again: nobody knows then. */
ROCKS_TEST(rocks_copy, a_folder_without_its_lock_file_is_taken_for_a_copy)
{
    work(rocks_fixture, STORE_WHOLE, false);
    command(rocks_fixture, "mv", beside(rocks_fixture, "data/cadenza.lock"),
            beside(rocks_fixture, "old.lock"));
    work(rocks_fixture, STORE_COPIED, true);
}

ROCKS_TEST(rocks_copy, a_file_system_without_birth_times_is_judged_by_the_inode)
{
    work(rocks_fixture, STORE_WHOLE, false);
    edit(rocks_fixture, "s/^\\(place: [0-9]*\\)[.].*/\\1/");
    work(rocks_fixture, STORE_WHOLE, false);
    edit(rocks_fixture, "s/^place: .*/place: 1/");
    work(rocks_fixture, STORE_COPIED, true);
}

/* Who made the inode a second time is known by its birth. */
ROCKS_TEST(rocks_copy, the_same_inode_born_at_another_time_is_another_place)
{
    work(rocks_fixture, STORE_WHOLE, false);
    if (!says(rocks_fixture, "."))
        return;
    edit(rocks_fixture, "s/^\\(place: [0-9]*[.]\\).*/\\11/");
    work(rocks_fixture, STORE_COPIED, true);
}

ROCKS_TEST(rocks_copy, a_restored_folder_has_a_place_and_stays_restored_as_a_copy)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    rocks_fixture_put(rocks_fixture, store, shard, ROW_RUN, 1);
    char *backup = beside(rocks_fixture, "backup"), *copy = beside(rocks_fixture, "copy");
    EXPECT_OK(rocks_backup(store, backup, rocks_fixture->arena));
    store_close(store);
    rocks_fixture->data = backup;
    EXPECT(says(rocks_fixture, "memory: restored") && says(rocks_fixture, "place: -"));
    rocks_fixture->data = beside(rocks_fixture, "restored");
    EXPECT_OK(rocks_restore(backup, rocks_fixture->data, rocks_fixture->arena));
    EXPECT(says(rocks_fixture, "memory: restored") && !says(rocks_fixture, "place: -"));
    work(rocks_fixture, STORE_RESTORED, true);
    store = rocks_fixture_open(rocks_fixture);
    uint64_t guard = rocks_fixture_guard(rocks_fixture, store, shard);
    store_close(store);
    command(rocks_fixture, "cp -a", rocks_fixture->data, copy);
    rocks_fixture->data = copy;
    EXPECT(memory_in_info(rocks_fixture) == STORE_RESTORED);
    store = rocks_fixture_open(rocks_fixture);
    EXPECT(rocks_memory(store) == STORE_RESTORED);
    EXPECT(rocks_fixture_guard(rocks_fixture, store, shard) >= guard + ROCKS_RESTORE_LEAP);
    store_close(store);
    EXPECT_KIND(rocks_restore(copy, beside(rocks_fixture, "third"), rocks_fixture->arena),
                ERR_BAD_REQUEST); /* it was one */
}

/* As programs of formats 1 and 2 left them. */
ROCKS_TEST(rocks_copy, an_older_folder_opens_as_it_is_and_gets_a_place)
{
    static const struct {
        const char *restored, *guards;
        enum store_memory memory;
        bool is_raised;
    } old[] = {
        {"no", "good", STORE_WHOLE, false},
        {"yes", "good", STORE_RESTORED, false},
        {"yes", "to be raised", STORE_RESTORED, true},
    };
    for (size_t i = 0; i < array_length(old); i++) {
        rocks_fixture->data = beside(rocks_fixture, arena_format(rocks_fixture->arena, "%zu", i));
        work(rocks_fixture, STORE_WHOLE, false);
        edit(rocks_fixture,
             arena_format(rocks_fixture->arena,
                          "s/format 3/format %zu/; s/^memory: .*/restored: %s/; /^place/d; "
                          "s/^guards: .*/guards: %s/",
                          1 + i % 2, old[i].restored, old[i].guards));
        EXPECT(memory_in_info(rocks_fixture) == old[i].memory);
        work(rocks_fixture, old[i].memory, old[i].is_raised);
        EXPECT(says(rocks_fixture, "format 3\n") && says(rocks_fixture, "\nplace: "));
        EXPECT(!says(rocks_fixture, "restored: ") && !says(rocks_fixture, "place: -"));
        command(rocks_fixture, "cp -a", rocks_fixture->data, beside(rocks_fixture, "copy"));
        rocks_fixture->data = beside(rocks_fixture, "copy");
        work(rocks_fixture, old[i].memory == STORE_WHOLE ? STORE_COPIED : old[i].memory, true);
        rocks_fixture_shell(arena_format(rocks_fixture->arena, "rm -r '%s'", rocks_fixture->data));
    }
}

ROCKS_TEST(rocks_copy, lines_that_make_no_sense_are_damage)
{
    static const char *const scripts[] = {
        "s/^memory: .*/memory: some/",
        "/^memory/d",
        "s/^place: .*/place: /",
        "s/^place: .*/place: here/",
        "/^place/d",
        "s/^place: .*/place: 12.x/",
        "s/^place: .*/place: 12./",
        "s/format 3/format 2/",
    };
    work(rocks_fixture, STORE_WHOLE, false);
    struct slice before = identity(rocks_fixture);
    for (size_t i = 0; i < array_length(scripts); i++) {
        edit(rocks_fixture, scripts[i]);
        struct rocks_options options = load_options(rocks_fixture->data);
        struct store *store;
        struct error *err = rocks_open(&options, rocks_fixture->arena, &store);
        EXPECT_KIND(err, ERR_CORRUPT);
        EXPECT(strstr(err->message, "does not say what the folder is") != NULL);
        EXPECT_OK(file_save(arena_format(rocks_fixture->arena, "%s/CADENZA", rocks_fixture->data),
                            before, rocks_fixture->arena));
    }
    work(rocks_fixture, STORE_WHOLE, false);
}

/* ---- the first opening of a copy ends at any call ---- */

#define WALK_SHARDS 2
#define WALK_STEPS  3
#define SEEDS_FEW   4 /* the default; with more (--seeds=) walks leave no call out */

/* A closed folder, all of which is a copy. */
static void
make_copy(struct crash_fixture *crash_fixture)
{
    crash_begin(crash_fixture, WALK_SHARDS, WALK_STEPS);
    EXPECT_EQ(crash_run(crash_fixture, &(struct crash_run){.action = NULL}), CRASH_DONE);
    const char *data = crash_fixture->data;
    rocks_fixture_shell(arena_format(crash_fixture->arena,
                                     "cp -a '%s' '%s.copy' && rm -r '%s' && mv '%s.copy' '%s'",
                                     data, data, data, data, data));
}

struct judging {
    struct crash_fixture *crash_fixture;
    const char *complaint;
};

static void
judge(void *argument)
{
    struct judging *judging = argument;
    struct crash_fixture *crash_fixture = judging->crash_fixture;
    struct rocks_options options = load_options(crash_fixture->data);
    struct store *store;
    struct error *err = rocks_open(&options, crash_fixture->arena, &store);
    if (err != NULL) {
        judging->complaint = err->message;
        return;
    }
    if (rocks_memory(store) != STORE_COPIED)
        judging->complaint = "it is not marked";
    for (uint32_t i = 0; i < WALK_SHARDS && judging->complaint == NULL; i++) {
        uint64_t guard;
        EXPECT_OK(store_guard(store, PARTITION_OF_SHARD(i), crash_fixture->arena, &guard));
        if (guard < ROCKS_RESTORE_LEAP)
            judging->complaint = "its guards were not raised";
    }
    if (judging->complaint == NULL)
        judging->complaint =
            load_verify(store, WALK_SHARDS, crash_fixture->acked, crash_fixture->arena);
    store_close(store);
}

/* How the process ended. */
static int
walk_one(const char *action, uint64_t at)
{
    struct crash_fixture crash_fixture;
    make_copy(&crash_fixture);
    int end = crash_run(&crash_fixture,
                        &(struct crash_run){.action = action, .at = at, .seed = test_seed(0) + at});
    struct judging judging = {.crash_fixture = &crash_fixture};
    linux_run(&(struct linux_options){.loops = 1, .pool_threads = 2}, judge, &judging);
    if (judging.complaint != NULL)
        TEST_FAIL("%s at call %llu: %s; the process ended with %d: %s", action,
                  (unsigned long long)at, judging.complaint, end, crash_output(&crash_fixture));
    crash_end(&crash_fixture);
    return end;
}

static void
walk(const char *action, int end_expected)
{
    struct crash_fixture crash_fixture;
    make_copy(&crash_fixture);
    EXPECT_EQ(crash_run(&crash_fixture, &(struct crash_run){.action = "none"}), CRASH_DONE);
    uint64_t calls = crash_calls(&crash_fixture), hits = 0;
    crash_end(&crash_fixture);
    EXPECT(calls > 15);
    uint64_t stride = test_seed_count() > SEEDS_FEW ? 1 : 3;
    for (uint64_t at = 1 + test_seed(0) % stride; at <= calls; at += stride)
        hits += walk_one(action, at) == end_expected;
    EXPECT(hits > 0);
}

TEST(rocks_copy, a_power_cut_while_a_copy_is_marked_leaves_it_marked)
{
    walk("power", CRASH_POWER);
}

TEST(rocks_copy, an_io_error_while_a_copy_is_marked_leaves_it_marked)
{
    walk("eio", CRASH_CLOSED);
}
