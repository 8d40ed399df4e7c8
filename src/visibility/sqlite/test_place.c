/* test_place.c - see test_place.h. */
#include "visibility/sqlite/test_place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/linux/linux.h"

struct visit {
    void (*run)(struct place *place, void *argument);
    void *argument;
    struct place *place;
};

static void
visit_fiber(void *argument)
{
    struct visit *visit = argument;
    visit->run(visit->place, visit->argument);
}

void
place_begin(struct place *place)
{
    char folder[] = "/tmp/visibility-test-XXXXXX";
    check(mkdtemp(folder) != NULL);
    place->arena = arena_new(0);
    place->folder = arena_text(place->arena, folder);
    place->path = arena_format(place->arena, "%s/visibility.db", folder);
    place->attributes = attribute_set_new(place->arena);
}

void
place_end(struct place *place)
{
    place_clear(place);
    /* tidy: allow rmdir - a test cleans up after itself, outside of any ground */
    rmdir(place->folder);
    arena_free(place->arena);
}

void
place_run_in(struct place *place, void (*run)(struct place *place, void *argument), void *argument)
{
    struct visit visit = {.run = run, .argument = argument, .place = place};
    linux_run(&(struct linux_options){.loops = 2, .pool_threads = 2}, visit_fiber, &visit);
}

void
place_run(void (*run)(struct place *place, void *argument), void *argument)
{
    struct place place;
    place_begin(&place);
    place_run_in(&place, run, argument);
    place_end(&place);
}

struct visibility *
place_open(struct place *place)
{
    struct visibility_options options = {.path = place->path};
    struct visibility *visibility;
    EXPECT_OK(visibility_open_sqlite(&options, place->arena, &visibility));
    return visibility;
}

/* Calls `visit` with the path of each file of the folder whose name has the text. */
static int
each_file(struct place *place, const char *text, void (*visit)(const char *path))
{
    /* tidy: allow opendir - a test looks at a folder from outside of any ground */
    DIR *folder = opendir(place->folder);
    check(folder != NULL);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || strstr(entry->d_name, text) == NULL)
            continue;
        count++;
        char path[600];
        snprintf(path, sizeof path, "%s/%s", place->folder, entry->d_name);
        if (visit != NULL)
            visit(path);
    }
    closedir(folder);
    return count;
}

static void
remove_file(const char *path)
{
    /* tidy: allow unlink - a test cleans up after itself, outside of any ground */
    unlink(path);
}

void
place_clear(struct place *place)
{
    each_file(place, "", remove_file);
}

int
place_count_files(struct place *place, const char *text)
{
    return each_file(place, text, NULL);
}

void
place_feed(struct place *place, struct visibility *visibility, uint64_t first, uint64_t end)
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
    struct error *err =
        visibility_feed(visibility, changes, count, place->attributes, place->arena);
    arena_free(arena);
    EXPECT_OK(err);
}

int64_t
place_count(struct place *place, struct visibility *visibility, const char *query)
{
    struct query parsed;
    int64_t count;
    EXPECT_OK(query_parse(query, place->attributes, place->arena, &parsed));
    EXPECT_OK(visibility_count(visibility, TEST_DOMAIN, &parsed, place->arena, &count));
    return count;
}
