/* test_place.c - see test_place.h. */
#include "store/rocks/test_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/key.h"

void
place_begin(struct place *place)
{
    *place = (struct place){.arena = arena_new(0)};
    place->folder = folder_make_temporary(place->arena);
    place->data = arena_format(place->arena, "%s/data", place->folder);
}

void
place_end(struct place *place)
{
    folder_remove(place->folder);
    arena_free(place->arena);
}

struct visit {
    void (*run)(struct place *place);
    struct place place;
};

static void
visit_fiber(void *argument)
{
    struct visit *visit = argument;
    visit->run(&visit->place);
}

void
place_run(void (*run)(struct place *place))
{
    struct visit visit = {.run = run};
    place_begin(&visit.place);
    linux_run(&(struct linux_options){.loops = 2, .pool_threads = 2}, visit_fiber, &visit);
    place_end(&visit.place);
}

struct store *
place_open(struct place *place)
{
    struct rocks_options options = load_options(place->data);
    if (place->fresh_bytes_max > 0)
        options.fresh_bytes_max = place->fresh_bytes_max;
    struct store *store;
    EXPECT_OK(rocks_open(&options, place->arena, &store));
    return store;
}

struct slice
place_key(struct place *place, uint64_t number)
{
    struct key_writer key;
    key_begin(&key, place->arena);
    key_u64(&key, number);
    return key_end(&key);
}

void
place_put(struct place *place, struct store *store, struct partition partition, enum row_kind kind,
          uint64_t number)
{
    uint64_t guard = place_guard(place, store, partition);
    struct batch *batch = batch_new(place->arena, partition, guard == 0 ? 1 : guard);
    batch_put(batch, kind, place_key(place, number), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, guard, place->arena));
}

size_t
place_count(struct place *place, struct store *store, struct partition partition,
            enum row_kind kind)
{
    struct rows rows;
    struct scan scan = {.partition = partition, .kind = kind};
    EXPECT_OK(store_scan(store, &scan, place->arena, &rows));
    return rows.count;
}

uint64_t
place_guard(struct place *place, struct store *store, struct partition partition)
{
    uint64_t guard;
    EXPECT_OK(store_guard(store, partition, place->arena, &guard));
    return guard;
}

char *
place_find_file(struct arena *arena, const char *data, const char *ending)
{
    FILE *names = popen(arena_format(arena, "ls -S '%s'/rocks/*%s | head -1", data, ending), "r");
    check(names != NULL);
    char line[512] = "";
    char *read = fgets(line, sizeof line, names);
    pclose(names);
    check_that(read != NULL, "no %s in %s", ending, data);
    line[strcspn(line, "\n")] = '\0';
    return arena_text(arena, line);
}

void
place_drop_runway(const char *log)
{
    FILE *file = fopen(log, "r");
    check(file != NULL);
    long end = 0;
    for (int byte; (byte = getc(file)) != EOF;)
        if (byte != 0)
            end = ftell(file);
    fclose(file);
    int failed = truncate(log, end);
    check(failed == 0);
}

void
place_shell(const char *command)
{
    int status = system(command);
    check_that(status == 0, "%s: %d", command, status);
}
