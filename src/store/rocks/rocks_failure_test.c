/* rocks_failure_test.c - processes are killed, lose power, and get disks that fail: what was
 * acknowledged is there.
 *
 * The load (test_load.h) runs in a process of its own and tells each durable step over a pipe.
 * Walks do one small load once per call that changes the disk, with the fault at that call; with
 * --seeds=5 or more no write and no sync is left out, else every few are taken, by seed. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/random.h"
#include "base/test.h"
#include "store/rocks/test_crash.h"

#define WALK_SHARDS 3
#define SEEDS_FEW   4 /* the default; with more (--seeds=) walks leave no call out */
#define WALK_STEPS  12
#define TORN_STEPS  60   /* most calls of the second half are about groups */
#define TORN_FEW    3    /* so many are enough */
#define LONG_STEPS  1500 /* about 6 MB with memtables of 1 MB */

/* ---- kill -9 ---- */

TEST(rocks_failure, what_was_acknowledged_survives_kill_nine)
{
    struct crash_fixture crash_fixture;
    struct random random;
    random_seed(&random, test_seed(0));
    crash_begin(&crash_fixture, 8, UINT64_MAX / 2);
    for (int round = 0; round < 20; round++) {
        struct crash_run run = {.kill_after = 1 + random_below(&random, 800)};
        crash_fixture.fresh_bytes_max =
            round % 3 == 0 ? 64 << 20 : 0; /* or all of it is replayed */
        EXPECT_EQ(crash_run(&crash_fixture, &run), CRASH_KILLED);
        EXPECT_TEXT(crash_judge(&crash_fixture, NULL), NULL);
    }
    EXPECT(crash_fixture.acks > 20);
    crash_end(&crash_fixture);
}

/* ---- walks ---- */

/* A load, and what goes wrong in it. */
struct walk {
    const char *action;
    uint64_t steps;
    int openings;
    size_t padding;     /* of each step */
    const char *ending; /* NULL: every call counts */
    uint64_t *torn;     /* counts logs that were cut; may be NULL */
};

/* How many calls one load makes when nothing goes wrong. */
static uint64_t
count_once(const struct walk *walk)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, WALK_SHARDS, walk->steps);
    crash_fixture.padding = walk->padding;
    struct crash_run run = {.action = "none", .ending = walk->ending};
    EXPECT_EQ(crash_run(&crash_fixture, &run), CRASH_DONE);
    EXPECT_EQ(crash_fixture.acks, WALK_SHARDS * walk->steps);
    uint64_t calls = crash_calls(&crash_fixture);
    crash_end(&crash_fixture);
    EXPECT(calls > (walk->ending == NULL ? 50 : 3));
    return calls;
}

/* How many calls a load makes at least: how many commits go together depends on how busy the
 * machine is. */
static uint64_t
count_calls(const struct walk *walk)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t calls = count_once(walk);
        least = calls < least ? calls : least;
    }
    return least;
}

/* Every so many calls get a fault; all of them if there is time. */
static uint64_t
walk_stride(uint64_t stride)
{
    return test_seed_count() > SEEDS_FEW ? 1 : stride;
}

static uint64_t
walk_first(uint64_t stride)
{
    return 1 + test_seed(test_seed_count() - 1) % stride; /* varies with CADENZA_SEED */
}

/* One load with a fault at call `at`; how the process ended, and whether it came so far.
 * Acknowledged steps must be there, or the test fails. */
static int
walk_one(const struct walk *walk, uint64_t at, bool *is_reached)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, WALK_SHARDS, walk->steps);
    crash_fixture.openings = walk->openings;
    crash_fixture.padding = walk->padding;
    struct crash_run run = {.action = walk->action, .at = at, .ending = walk->ending, .seed = at};
    int end = crash_run(&crash_fixture, &run);
    const char *complaint = crash_judge(&crash_fixture, NULL);
    bool is_end = end == CRASH_DONE || end == CRASH_CLOSED || end == CRASH_POWER;
    if (complaint != NULL || !is_end) {
        char sentence[4608]; /* the words, and room for ours */
        snprintf(sentence, sizeof sentence,
                 "%s at call %" PRIu64 ": %s; the process ended with %d: %s", walk->action, at,
                 complaint == NULL ? "nothing is lost" : complaint, end,
                 crash_output(&crash_fixture));
        crash_end(&crash_fixture);
        TEST_FAIL("%s", sentence);
    }
    *is_reached = end == CRASH_POWER || crash_calls(&crash_fixture) >= at;
    if (walk->torn != NULL)
        *walk->torn +=
            access(arena_format(crash_fixture.arena, "%s/torn", crash_fixture.data), F_OK) == 0;
    crash_end(&crash_fixture);
    return end;
}

/* At a call the power goes, and unsynced bytes and names with it, some of them torn. */
TEST(rocks_failure, what_was_acknowledged_survives_a_power_cut_at_any_call)
{
    struct walk walk = {.action = "power", .steps = WALK_STEPS, .openings = 1};
    uint64_t calls = count_calls(&walk), stride = walk_stride(2), tries = 0, cuts = 0;
    for (uint64_t at = walk_first(stride); at <= calls; at += stride, tries++) {
        bool is_reached;
        int end = walk_one(&walk, at, &is_reached);
        EXPECT(end == CRASH_POWER || end == CRASH_DONE); /* may make fewer calls */
        cuts += end == CRASH_POWER;
    }
    EXPECT(cuts > tries / 2);
}

/* Groups of many sectors, of which some come to the disk and others do not, in a log that has its
 * size already. */
TEST(rocks_failure, groups_that_a_power_cut_tears_are_cut_off)
{
    uint64_t torn = 0;
    struct walk walk = {
        .action = "power", .steps = TORN_STEPS, .openings = 1, .padding = 9000, .torn = &torn};
    uint64_t calls = count_calls(&walk);
    for (uint64_t at = calls / 2; at <= calls && torn < TORN_FEW; at++) { /* first it is opened */
        bool is_reached;
        walk_one(&walk, at, &is_reached);
    }
    EXPECT(torn > 0);
}

/* One load on such a disk; whether it came to where the power goes, with something acknowledged. */
static bool
is_lied_to(uint64_t at)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, WALK_SHARDS, WALK_STEPS);
    struct crash_run run = {.action = "lie", .at = at};
    int end = crash_run(&crash_fixture, &run);
    bool is_tried = end == CRASH_POWER && crash_fixture.acks > 0;
    bool is_seen = is_tried && crash_judge(&crash_fixture, NULL) != NULL;
    crash_end(&crash_fixture);
    EXPECT(end == CRASH_POWER || end == CRASH_DONE);
    EXPECT(is_seen || !is_tried);
    return is_tried;
}

/* The judge is judged: on a disk that only says it synced, losses must be seen. */
TEST(rocks_failure, a_disk_that_lies_about_syncs_is_found_out)
{
    uint64_t calls = count_calls(&(struct walk){.steps = WALK_STEPS});
    bool is_tried = false;
    for (uint64_t at = calls * 3 / 4; !is_tried && at < 2 * calls; at += 1 + calls / 16)
        is_tried = is_lied_to(at);
    EXPECT(is_tried);
}

/* One call fails; the store says so, is opened again, and everything goes on to the end. */
static void
walk_errors(const struct walk *walk, uint64_t stride)
{
    uint64_t calls = count_calls(walk), tries = 0, reached = 0;
    for (uint64_t at = walk_first(stride); at <= calls; at += stride) {
        bool is_reached;
        EXPECT_EQ(walk_one(walk, at, &is_reached), CRASH_DONE);
        reached += is_reached;
        tries++;
    }
    EXPECT(reached > tries / 2);
}

TEST(rocks_failure, one_io_error_at_any_call_loses_nothing_and_is_recovered_from)
{
    walk_errors(&(struct walk){.action = "eio", .steps = WALK_STEPS, .openings = 3},
                walk_stride(3));
}

TEST(rocks_failure, one_lack_of_space_loses_nothing_and_is_recovered_from)
{
    walk_errors(&(struct walk){.action = "enospc", .steps = WALK_STEPS, .openings = 3},
                walk_stride(8)); /* the same places, another reason */
}

/* Each commit fills the memtables of both families, so both are switched before the next, and one
 * call opens the log that this needs. If that call fails, RocksDB left to itself would end the
 * process when it is closed: invariant 4 of the committer. */
TEST(rocks_failure, no_log_for_two_full_memtables_loses_nothing_and_is_recovered_from)
{
    struct walk walk = {.action = "enospc", .steps = 4, .openings = 3};
    walk.padding = 3 << 19; /* one and a half times a memtable */
    walk.ending = ".log";
    walk_errors(&walk, 1);
}

/* From some call on nothing can be written at all. */
TEST(rocks_failure, a_disk_that_stays_full_loses_nothing)
{
    struct walk walk = {.action = "full", .steps = WALK_STEPS, .openings = 2};
    uint64_t calls = count_calls(&walk), stride = walk_stride(8);
    for (uint64_t at = walk_first(stride); at <= calls; at += stride) {
        bool is_reached;
        EXPECT(walk_one(&walk, at, &is_reached) != CRASH_POWER);
    }
}

/* A longer load, whose memtables are flushed and compacted while it runs: too many calls for all,
 * so some, by seed. */
TEST(rocks_failure, a_fault_in_the_middle_of_flushes_and_compactions_loses_nothing)
{
    static const char *const actions[] = {"power", "eio", "enospc", "full"};
    struct walk walk = {.steps = LONG_STEPS, .openings = 3};
    uint64_t calls = count_calls(&walk), tries = 0, reached = 0;
    for (int i = 0; i < test_seed_count(); i++) {
        struct random random;
        random_seed(&random, test_seed(i));
        for (size_t action = 0; action < array_length(actions); action++) {
            for (uint64_t times = 0; times < (walk_stride(3) == 1 ? 3 : 1); times++, tries++) {
                bool is_reached;
                uint64_t at = 1 + random_below(&random, calls);
                walk.action = actions[action];
                walk_one(&walk, at, &is_reached);
                reached += is_reached;
            }
        }
    }
    EXPECT(reached > tries / 2); /* how many groups there are varies */
}

/* ---- a disk that really is full ---- */

static void
write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    check_that(file != NULL, "%s", path);
    fputs(text, file);
    fclose(file);
}

/* A mount that nobody else sees: in a name space of its own, as root of it if not root already. */
static void
make_small_disk(const char *folder)
{
    unsigned user = geteuid(), group = getegid();
    int failed = unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER);
    check_that(failed == 0, "unshare: %s", strerror(errno));
    if (user != 0) {
        char line[64];
        write_text("/proc/self/setgroups", "deny");
        snprintf(line, sizeof line, "0 %u 1", user);
        write_text("/proc/self/uid_map", line);
        snprintf(line, sizeof line, "0 %u 1", group);
        write_text("/proc/self/gid_map", line);
    }
    failed = mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    check_that(failed == 0, "make / private: %s", strerror(errno));
    failed = mount("tmpfs", folder, "tmpfs", 0, "size=4m");
    check_that(failed == 0, "mount: %s", strerror(errno));
}

/* In a process of its own: fills the disk, makes it larger, goes on. Its exit code is the answer.
 */
static int
fill_small_disk(struct crash_fixture *crash_fixture)
{
    make_small_disk(crash_fixture->folder);
    struct crash_run run = {.action = NULL};
    int first = crash_run(crash_fixture, &run);
    bool has_room_left = crash_fixture->acks >= 8 * 2000;
    if (first != CRASH_CLOSED || crash_fixture->acks == 0 || has_room_left)
        return 10 + first;
    int failed = mount("tmpfs", crash_fixture->folder, "tmpfs", MS_REMOUNT, "size=256m");
    check_that(failed == 0, "remount: %s", strerror(errno));
    return crash_run(crash_fixture, &run);
}

TEST(rocks_failure, a_full_disk_stops_the_store_and_room_lets_it_go_on)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, 8, 2000);
    fflush(stdout);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0)
        _exit(fill_small_disk(&crash_fixture));
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), CRASH_DONE);
    crash_end(&crash_fixture);
}
