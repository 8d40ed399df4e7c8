/* sqlite_failure_test.c - what is left after a crash, and of a damaged file; what a sync syncs. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "visibility/sqlite/test_fixture.h"

/* ---- a process that is killed ---- */

enum { STEP = 50, STEPS_MAX = 2000 };

/* Feeds step after step and tells each when it was taken; never ends by itself. */
static void
feed_until_killed(struct visibility_fixture *visibility_fixture, void *argument)
{
    int pipe_end = *(int *)argument;
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    for (uint64_t i = 0; i < STEPS_MAX; i++) {
        visibility_fixture_feed(visibility_fixture, visibility, i * STEP, (i + 1) * STEP);
        /* tidy: allow write - the child's word to its parent */
        check(write(pipe_end, "x", 1) == 1);
    }
    pause();
}

/* A child that works on the place until `steps` were told, then dies. How many it told in all. */
static uint64_t
kill_after(struct visibility_fixture *visibility_fixture, uint64_t steps)
{
    int ends[2];
    check(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        visibility_fixture_run_in(visibility_fixture, feed_until_killed, &ends[1]);
        _exit(3);
    }
    close(ends[1]);
    char byte;
    uint64_t steps_reported = 0;
    /* tidy: allow read - the child's word to its parent */
    while (read(ends[0], &byte, 1) == 1)
        if (++steps_reported == steps)
            kill(child, SIGKILL);
    close(ends[0]);
    int status;
    check(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    return steps_reported;
}

struct steps_reported {
    uint64_t steps;
};

/* What is there is whole steps, in order, and the level says which. */
static void
expect_prefix(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct steps_reported *steps_reported = argument;
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    uint64_t level;
    EXPECT_OK(visibility_level(visibility, 1, visibility_fixture->arena, &level));
    EXPECT(level % STEP == 0 && level / STEP >= steps_reported->steps);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), level);
    for (uint64_t i = 0; i < level; i += STEP) {
        char *query = arena_format(visibility_fixture->arena, "WorkflowID = 'order-%d'", (int)i);
        EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, query), 1);
    }
    visibility_fixture_feed(visibility_fixture, visibility, 0,
                            level + STEP); /* the shard feeds again what it is not sure of */
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), level + STEP);
    visibility_close(visibility);
}

/* Promise 3: a crash of the process takes nothing back that a feed returned for. Method: kill it in
 * the midst of feeding, without any sync, and look. */
TEST(visibility_crash, what_a_feed_returned_for_is_there_after_a_kill)
{
    static const uint64_t kills[] = {1, 7, 40};
    for (size_t i = 0; i < array_length(kills); i++) {
        struct visibility_fixture visibility_fixture;
        visibility_fixture_begin(&visibility_fixture);
        struct steps_reported steps_reported = {.steps = kill_after(&visibility_fixture, kills[i])};
        visibility_fixture_run_in(&visibility_fixture, expect_prefix, &steps_reported);
        visibility_fixture_end(&visibility_fixture);
    }
}

/* The end of the log is cut off or garbled, as by a machine that lost power before a sync: an
 * earlier moment is there, whole. */
static void
tear_log(struct visibility_fixture *visibility_fixture, uint64_t percent, bool is_garbled)
{
    char *log = arena_format(visibility_fixture->arena, "%s-wal", visibility_fixture->path);
    struct stat before;
    check(stat(log, &before) == 0 && before.st_size > 0);
    off_t kept = (off_t)((uint64_t)before.st_size * percent / 100);
    check(truncate(log, kept) == 0);
    if (is_garbled)
        check(truncate(log, before.st_size) == 0); /* zeros where there was something */
}

TEST(visibility_crash, a_torn_log_leaves_an_earlier_moment_whole)
{
    for (uint64_t percent = 5; percent < 100; percent += 30) {
        struct visibility_fixture visibility_fixture;
        visibility_fixture_begin(&visibility_fixture);
        kill_after(&visibility_fixture, 12);
        tear_log(&visibility_fixture, percent, percent % 2 == 0);
        struct steps_reported steps_reported = {0}; /* not synced: nothing was promised */
        visibility_fixture_run_in(&visibility_fixture, expect_prefix, &steps_reported);
        visibility_fixture_end(&visibility_fixture);
    }
}

/* ---- syncs ---- */

/* SQLite's own calls come here: the program stands before the libraries. */
static _Atomic int log_syncs, file_syncs; /* tidy: allow global - counted by what SQLite calls */

static void
count_sync(int descriptor)
{
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (strstr(path, "visibility.db-wal") != NULL)
        log_syncs++;
    else if (strstr(path, "visibility.db") != NULL)
        file_syncs++;
}

int
fdatasync(int descriptor)
{
    count_sync(descriptor);
    return (int)syscall(SYS_fdatasync, descriptor);
}

int
fsync(int descriptor)
{
    count_sync(descriptor);
    return (int)syscall(SYS_fsync, descriptor);
}

static void
run_syncs(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 10);
    log_syncs = file_syncs = 0;
    for (uint64_t i = 1; i < 10; i++)
        visibility_fixture_feed(visibility_fixture, visibility, i * 10, i * 10 + 10);
    EXPECT_EQ(log_syncs + file_syncs, 0); /* feeds do not wait for the disk */
    EXPECT_OK(visibility_sync(visibility, visibility_fixture->arena));
    EXPECT_EQ(log_syncs, 1);
    EXPECT_OK(visibility_sync(visibility,
                              visibility_fixture->arena)); /* there may be nothing new: still */
    EXPECT_EQ(log_syncs, 2);
    visibility_fixture_feed(visibility_fixture, visibility, 100, 110);
    EXPECT_EQ(log_syncs, 2);
    visibility_close(visibility);
}

TEST(visibility_sync, a_sync_syncs_the_log_and_a_feed_does_not)
{
    visibility_fixture_run(run_syncs, NULL);
}

/* ---- unusable files ---- */

static void
spoil(const char *path, long offset, const char *bytes, size_t count)
{
    /* tidy: allow open - the test damages a file from outside */
    int file = open(path, O_RDWR | O_CREAT, 0600);
    /* tidy: allow pwrite - the test damages a file from outside */
    check(file >= 0 && pwrite(file, bytes, count, offset) == (ssize_t)count);
    close(file);
}

/* Opens it and expects a new, empty one, the old one beside it. */
static void
expect_new_file(struct visibility_fixture *visibility_fixture)
{
    uint64_t level;
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    EXPECT_OK(visibility_level(visibility, 1, visibility_fixture->arena, &level));
    EXPECT_EQ(level, 0);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), 0);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 10);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, ""), 10);
    visibility_close(visibility);
    EXPECT(visibility_fixture_count_files(visibility_fixture, "unusable") >= 1);
}

static void
run_another_version(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 100);
    visibility_close(visibility);
    spoil(visibility_fixture->path, 60, "\0\0\0\x63", 4); /* where SQLite keeps user_version */
    expect_new_file(visibility_fixture);
}

TEST(visibility_file, one_of_another_version_is_moved_aside_and_replaced)
{
    visibility_fixture_run(run_another_version, NULL);
}

static void
run_no_database(struct visibility_fixture *visibility_fixture, void *argument)
{
    spoil(visibility_fixture->path, 0, "this is a letter to somebody else, not a database", 49);
    expect_new_file(visibility_fixture);
}

TEST(visibility_file, one_that_is_not_a_database_is_moved_aside_and_replaced)
{
    visibility_fixture_run(run_no_database, NULL);
}

/* Garbage instead of each page that has the text in it. */
static void
spoil_pages_with(const char *path, const char *text)
{
    char page[4096], garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    /* tidy: allow open - the test damages a file from outside */
    int file = open(path, O_RDWR);
    int spoiled = 0;
    /* tidy: allow pread - the test damages a file from outside */
    for (off_t at = 0; pread(file, page, sizeof page, at) == sizeof page; at += sizeof page) {
        if (memmem(page, sizeof page, text, strlen(text)) == NULL)
            continue;
        spoil(path, at, garbage, sizeof garbage);
        spoiled++;
    }
    close(file);
    EXPECT(spoiled > 0);
}

static struct error *
list_all(struct visibility_fixture *visibility_fixture, struct visibility *visibility)
{
    struct query query;
    struct visibility_page found;
    struct visibility_question question = {
        .domain_id = TEST_DOMAIN, .query = &query, .page_size = 5000};
    EXPECT_OK(query_parse("", visibility_fixture->attributes, visibility_fixture->arena, &query));
    return visibility_list(visibility, &question, visibility_fixture->arena, &found);
}

/* A page in the middle is garbage: a question that meets it says so, others are answered, and the
 * next start begins again. */
static void
run_damage(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 3000);
    visibility_close(visibility);
    spoil_pages_with(visibility_fixture->path, "order-1500");
    visibility = visibility_fixture_open(visibility_fixture);
    EXPECT_EQ(visibility_fixture_count(visibility_fixture, visibility, "WorkflowID = 'order-2999'"),
              1);
    EXPECT_KIND(list_all(visibility_fixture, visibility), ERR_CORRUPT);
    visibility_close(visibility);
    expect_new_file(visibility_fixture);
}

TEST(visibility_file, damage_is_an_error_and_the_next_start_makes_a_new_one)
{
    visibility_fixture_run(run_damage, NULL);
}

/* The damage is where the writer looks first. */
static void
run_damaged_levels(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility *visibility = visibility_fixture_open(visibility_fixture);
    visibility_fixture_feed(visibility_fixture, visibility, 0, 3000);
    visibility_close(visibility);
    char garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    for (long page = 1; page < 50; page++)
        spoil(visibility_fixture->path, page * 4096, garbage, sizeof garbage);
    expect_new_file(visibility_fixture);
}

TEST(visibility_file, one_that_cannot_even_be_prepared_is_moved_aside)
{
    visibility_fixture_run(run_damaged_levels, NULL);
}

static void
run_no_folder(struct visibility_fixture *visibility_fixture, void *argument)
{
    struct visibility_options options = {.path = arena_format(visibility_fixture->arena,
                                                              "%s/nowhere/visibility.db",
                                                              visibility_fixture->folder)};
    struct visibility *visibility;
    EXPECT_KIND(visibility_open_sqlite(&options, visibility_fixture->arena, &visibility), ERR_IO);
}

TEST(visibility_file, a_folder_that_is_not_there_is_a_clear_error)
{
    visibility_fixture_run(run_no_folder, NULL);
}
