/* test_fixture.c - see test_fixture.h. */
#include "visibility/sqlite/test_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/linux/linux.h"

struct fixture_call {
    void (*run)(struct visibility_fixture *visibility_fixture, void *argument);
    void *argument;
    struct visibility_fixture *visibility_fixture;
};

static void
fixture_call_fiber(void *argument)
{
    struct fixture_call *fixture_call = argument;
    fixture_call->run(fixture_call->visibility_fixture, fixture_call->argument);
}

void
visibility_fixture_begin(struct visibility_fixture *visibility_fixture)
{
    char folder[] = "/tmp/visibility-test-XXXXXX";
    check(mkdtemp(folder) != NULL);
    visibility_fixture->arena = arena_new(0);
    visibility_fixture->folder = arena_text(visibility_fixture->arena, folder);
    visibility_fixture->path = arena_format(visibility_fixture->arena, "%s/visibility.db", folder);
    visibility_fixture->attributes = attribute_set_new(visibility_fixture->arena);
}

void
visibility_fixture_end(struct visibility_fixture *visibility_fixture)
{
    visibility_fixture_clear(visibility_fixture);
    /* tidy: allow rmdir - a test cleans up after itself, outside of any platform */
    rmdir(visibility_fixture->folder);
    arena_free(visibility_fixture->arena);
}

void
visibility_fixture_run_in(struct visibility_fixture *visibility_fixture,
                          void (*run)(struct visibility_fixture *visibility_fixture,
                                      void *argument),
                          void *argument)
{
    struct fixture_call fixture_call = {
        .run = run, .argument = argument, .visibility_fixture = visibility_fixture};
    linux_run(&(struct linux_options){.loops = 2, .pool_threads = 2}, fixture_call_fiber,
              &fixture_call);
}

void
visibility_fixture_run(void (*run)(struct visibility_fixture *visibility_fixture, void *argument),
                       void *argument)
{
    struct visibility_fixture visibility_fixture;
    visibility_fixture_begin(&visibility_fixture);
    visibility_fixture_run_in(&visibility_fixture, run, argument);
    visibility_fixture_end(&visibility_fixture);
}

struct visibility *
visibility_fixture_open(struct visibility_fixture *visibility_fixture)
{
    struct visibility_options options = {.path = visibility_fixture->path};
    struct visibility *visibility;
    EXPECT_OK(visibility_open_sqlite(&options, visibility_fixture->arena, &visibility));
    return visibility;
}

/* Calls `visit` with the path of each file of the folder whose name has the text. */
static int
each_file(struct visibility_fixture *visibility_fixture, const char *text,
          void (*fixture_call)(const char *path))
{
    /* tidy: allow opendir - a test looks at a folder from outside of any platform */
    DIR *folder = opendir(visibility_fixture->folder);
    check(folder != NULL);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || strstr(entry->d_name, text) == NULL)
            continue;
        count++;
        char path[600];
        snprintf(path, sizeof path, "%s/%s", visibility_fixture->folder, entry->d_name);
        if (fixture_call != NULL)
            fixture_call(path);
    }
    closedir(folder);
    return count;
}

static void
remove_file(const char *path)
{
    /* tidy: allow unlink - a test cleans up after itself, outside of any platform */
    unlink(path);
}

void
visibility_fixture_clear(struct visibility_fixture *visibility_fixture)
{
    each_file(visibility_fixture, "", remove_file);
}

int
visibility_fixture_count_files(struct visibility_fixture *visibility_fixture, const char *text)
{
    return each_file(visibility_fixture, text, NULL);
}

void
visibility_fixture_feed(struct visibility_fixture *visibility_fixture,
                        struct visibility *visibility, uint64_t first, uint64_t end)
{
    struct arena *arena = arena_new(0);
    size_t count = 0;
    struct visibility_change *changes = arena_zalloc(arena, end - first, sizeof changes[0]);
    for (uint64_t i = first; i < end; i++) {
        struct test_run run = test_run_of(i);
        changes[count] = test_run_change(&run, arena);
        changes[count].shard = 1;
        changes[count++].row = i + 1;
    }
    struct error *err = visibility_feed(visibility, changes, count, visibility_fixture->attributes,
                                        visibility_fixture->arena);
    arena_free(arena);
    EXPECT_OK(err);
}

int64_t
visibility_fixture_count(struct visibility_fixture *visibility_fixture,
                         struct visibility *visibility, const char *query)
{
    struct query parsed;
    int64_t count;
    EXPECT_OK(
        query_parse(query, visibility_fixture->attributes, visibility_fixture->arena, &parsed));
    EXPECT_OK(
        visibility_count(visibility, TEST_DOMAIN, &parsed, visibility_fixture->arena, &count));
    return count;
}
