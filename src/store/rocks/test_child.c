/* test_child.c - a process that a test kills, cuts off power from, or gives a bad disk.
 *
 *   rocks_child FOLDER SHARDS STEPS OPENINGS
 *
 * Opens the folder, runs the load, and tells each durable step on standard output (shard, step: 4
 * and 8 bytes). When the store fails it closes it, opens it again (OPENINGS times at most), judges
 * what it finds, and goes on. With ROCKS_BACKUP set, a store that has done all its steps is backed
 * up into FOLDER-backup, and that restored into FOLDER-restored; both are told as a step 1, of the
 * shards BACKUP_REPORTED and RESTORE_REPORTED. ROCKS_PADDING: bytes that make each step larger;
 * ROCKS_FRESH: bytes that do not settle. Exit: 0 all steps done, 2 it does not open (any more), 4 a
 * failure against the contract, 5 the store does not hold what was acknowledged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "fiber/linux/linux.h"
#include "store/rocks/test_load.h"

enum verdict { VERDICT_DONE = 0, VERDICT_CLOSED = 2, VERDICT_BROKEN = 4, VERDICT_LOST = 5 };

struct child {
    const char *folder;
    uint32_t shards;
    uint64_t steps;
    int openings;
    size_t padding;
    uint64_t fresh_bytes_max;
    uint64_t acked[LOAD_SHARDS_MAX];
    enum verdict verdict;
};

static void
report(uint32_t shard, uint64_t step)
{
    uint8_t word[12];
    memcpy(word, &shard, 4);
    memcpy(word + 4, &step, 8);
    ssize_t written = write(STDOUT_FILENO, word, sizeof word);
    check(written == sizeof word);
}

static void
say(const struct error *err)
{
    fprintf(stderr, "child: %s\n", err->message);
}

static char *
beside(const struct child *child, const char *ending, struct arena *arena)
{
    return arena_format(arena, "%s-%s", child->folder, ending);
}

static void
back_up(const struct child *child, struct store *store, struct arena *arena)
{
    struct error *err = rocks_backup(store, beside(child, "backup", arena), arena);
    if (err == NULL)
        report(BACKUP_REPORTED, 1);
    else
        say(err);
}

static void
restore(const struct child *child, struct arena *arena)
{
    struct error *err =
        rocks_restore(beside(child, "backup", arena), beside(child, "restored", arena), arena);
    if (err == NULL)
        report(RESTORE_REPORTED, 1);
    else
        say(err);
}

/* One life of the store. True: it is worth opening again. */
static bool
live(struct child *child, struct store *store, struct arena *arena)
{
    struct load load = {.store = store,
                        .shards = child->shards,
                        .steps = child->steps,
                        .padding = child->padding,
                        .report = report};
    memcpy(load.acked, child->acked, sizeof load.acked);
    const char *lost = load_verify(store, child->shards, child->acked, arena);
    if (lost == NULL)
        load_run(&load);
    memcpy(child->acked, load.acked, sizeof load.acked);
    child->verdict = VERDICT_DONE;
    if (lost != NULL && store_failure(store) == NULL)
        child->verdict = VERDICT_LOST;
    else if (load.complaint != NULL)
        child->verdict = VERDICT_BROKEN;
    if (child->verdict != VERDICT_DONE)
        fprintf(stderr, "child: %s\n", lost != NULL ? lost : load.complaint);
    bool is_backup = getenv("ROCKS_BACKUP") != NULL && child->verdict == VERDICT_DONE;
    if (is_backup)
        back_up(child, store, arena);
    store_close(store);
    if (is_backup)
        restore(child, arena);
    return child->verdict == VERDICT_DONE && (load.has_failed || lost != NULL);
}

static void
run(void *argument)
{
    struct child *child = argument;
    struct rocks_options options = load_options(child->folder);
    if (child->fresh_bytes_max > 0)
        options.fresh_bytes_max = child->fresh_bytes_max;
    bool goes_on = true;
    for (int i = 0; i < child->openings && goes_on; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct store *store;
        struct error *err = rocks_open(&options, arena, &store);
        if (err != NULL) {
            fprintf(stderr, "child: %s\n", err->message);
            child->verdict = VERDICT_CLOSED;
            continue;
        }
        goes_on = live(child, store, arena);
    }
    if (goes_on && child->verdict == VERDICT_DONE)
        child->verdict = VERDICT_CLOSED;
}

static void
read_acked(struct child *child)
{
    const char *text = getenv("ROCKS_ACKED");
    for (int i = 0; text != NULL && *text != '\0' && i < LOAD_SHARDS_MAX; i++) {
        char *end;
        child->acked[i] = strtoull(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
}

int
main(int count, char **arguments)
{
    check(count == 5);
    struct child child = {.folder = arguments[1],
                          .shards = (uint32_t)strtoul(arguments[2], NULL, 10),
                          .steps = strtoull(arguments[3], NULL, 10),
                          .openings = (int)strtol(arguments[4], NULL, 10)};
    read_acked(&child);
    const char *padding = getenv("ROCKS_PADDING");
    child.padding = padding == NULL ? 0 : strtoull(padding, NULL, 10);
    const char *fresh = getenv("ROCKS_FRESH");
    child.fresh_bytes_max = fresh == NULL ? 0 : strtoull(fresh, NULL, 10);
    linux_run(&(struct linux_options){.loops = 1, .pool_threads = 2}, run, &child);
    return (int)child.verdict;
}
