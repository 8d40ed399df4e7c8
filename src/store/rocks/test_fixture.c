/* test_fixture.c - see test_fixture.h. */
#include "store/rocks/test_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/key.h"

void
rocks_fixture_begin(struct rocks_fixture *rocks_fixture)
{
    *rocks_fixture = (struct rocks_fixture){.arena = arena_new(0)};
    rocks_fixture->folder = folder_make_temporary(rocks_fixture->arena);
    rocks_fixture->data = arena_format(rocks_fixture->arena, "%s/data", rocks_fixture->folder);
}

void
rocks_fixture_end(struct rocks_fixture *rocks_fixture)
{
    folder_remove(rocks_fixture->folder);
    arena_free(rocks_fixture->arena);
}

struct fixture_call {
    void (*run)(struct rocks_fixture *rocks_fixture);
    struct rocks_fixture rocks_fixture;
};

static void
fixture_call_fiber(void *argument)
{
    struct fixture_call *fixture_call = argument;
    fixture_call->run(&fixture_call->rocks_fixture);
}

void
rocks_fixture_run(void (*run)(struct rocks_fixture *rocks_fixture))
{
    struct fixture_call fixture_call = {.run = run};
    rocks_fixture_begin(&fixture_call.rocks_fixture);
    linux_run(&(struct linux_options){.loops = 2, .pool_threads = 2}, fixture_call_fiber,
              &fixture_call);
    rocks_fixture_end(&fixture_call.rocks_fixture);
}

struct store *
rocks_fixture_open(struct rocks_fixture *rocks_fixture)
{
    struct rocks_options options = load_options(rocks_fixture->data);
    if (rocks_fixture->fresh_bytes_max > 0)
        options.fresh_bytes_max = rocks_fixture->fresh_bytes_max;
    struct store *store;
    EXPECT_OK(rocks_open(&options, rocks_fixture->arena, &store));
    return store;
}

struct slice
rocks_fixture_key(struct rocks_fixture *rocks_fixture, uint64_t number)
{
    struct key_writer key;
    key_begin(&key, rocks_fixture->arena);
    key_u64(&key, number);
    return key_end(&key);
}

void
rocks_fixture_put(struct rocks_fixture *rocks_fixture, struct store *store,
                  struct partition partition, enum row_kind kind, uint64_t number)
{
    uint64_t guard = rocks_fixture_guard(rocks_fixture, store, partition);
    struct batch *batch = batch_new(rocks_fixture->arena, partition, guard == 0 ? 1 : guard);
    batch_put(batch, kind, rocks_fixture_key(rocks_fixture, number), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, guard, rocks_fixture->arena));
}

size_t
rocks_fixture_count(struct rocks_fixture *rocks_fixture, struct store *store,
                    struct partition partition, enum row_kind kind)
{
    struct rows rows;
    struct scan scan = {.partition = partition, .kind = kind};
    EXPECT_OK(store_scan(store, &scan, rocks_fixture->arena, &rows));
    return rows.count;
}

uint64_t
rocks_fixture_guard(struct rocks_fixture *rocks_fixture, struct store *store,
                    struct partition partition)
{
    uint64_t guard;
    EXPECT_OK(store_guard(store, partition, rocks_fixture->arena, &guard));
    return guard;
}

char *
rocks_fixture_find_file(struct arena *arena, const char *data, const char *ending)
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
rocks_fixture_drop_runway(const char *log)
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
rocks_fixture_shell(const char *command)
{
    int status = system(command);
    check_that(status == 0, "%s: %d", command, status);
}
