/* store_test.c - a caller's mistake against rows.h ends the process before an engine sees it. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "store/engine.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

/* Runs `body` in a child; true if a check ended it, with a sentence that holds `part`. */
static bool
is_refused(void (*body)(struct arena *arena), const char *part)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        body(arena_new(0));
        _exit(0);
    }
    close(ends[1]);
    char output[4096] = "";
    ssize_t length = read(ends[0], output, sizeof output - 1);
    output[length < 0 ? 0 : length] = '\0';
    close(ends[0]);
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(output, part) != NULL;
}

static void
put_into_another_partition(struct arena *arena)
{
    struct batch *batch = batch_new(arena, PARTITION_OF_DOMAINS, 1);
    batch_put(batch, ROW_RUN, TEXT("k"), TEXT("v"));
    store_check_batch(batch, 0);
}

static void
put_an_unknown_kind(struct arena *arena)
{
    struct batch *batch = batch_new(arena, SHARD(1), 1);
    batch_put(batch, ROW_KIND_END, TEXT("k"), TEXT("v"));
    store_check_batch(batch, 0);
}

static void
lower_the_guard(struct arena *arena)
{
    store_check_batch(batch_new(arena, SHARD(1), 4), 5);
}

static void
leave_no_guard(struct arena *arena)
{
    store_check_batch(batch_new(arena, SHARD(1), 0), 0);
}

static void
delete_one_row_of_ranges(struct arena *arena)
{
    struct batch *batch = batch_new(arena, SHARD(1), 1);
    batch_delete(batch, ROW_HISTORY, TEXT("k"));
    store_check_batch(batch, 0);
}

static void
delete_a_range_of_single_rows(struct arena *arena)
{
    struct batch *batch = batch_new(arena, SHARD(1), 1);
    batch_delete_range(batch, ROW_TIMER, TEXT("a"), TEXT("b"));
    store_check_batch(batch, 0);
}

static void
delete_a_range_turned_round(struct arena *arena)
{
    struct batch *batch = batch_new(arena, SHARD(1), 1);
    batch_delete_range(batch, ROW_PENDING, TEXT("b"), TEXT("a"));
    store_check_batch(batch, 0);
}

static void
scan_forward_rows_backwards(struct arena *arena)
{
    struct scan scan = {.partition = SHARD(1), .kind = ROW_TIMER, .is_backward = true};
    struct rows rows;
    struct error *err = store_scan(NULL, &scan, arena, &rows);
    EXPECT(err == NULL); /* not reached */
}

static void
walk_forward_rows(struct arena *arena)
{
    struct walk_rows rows;
    struct error *err = store_walk(NULL, ROW_RUN, NULL, 1, arena, &rows);
    EXPECT(err == NULL); /* not reached */
}

static void
read_another_kind(struct arena *arena)
{
    bool found;
    struct slice value;
    struct error *err = store_get(NULL, SHARD(1), ROW_DOMAIN, TEXT("k"), arena, &found, &value);
    EXPECT(err == NULL); /* not reached */
}

static void
name_a_shard(struct arena *arena)
{
    struct partition partition = SHARD(1);
    partition.name = TEXT("one");
    store_check_batch(batch_new(arena, partition, 1), 0);
}

TEST(store, mistakes_against_the_table_of_rows_are_refused)
{
    EXPECT(is_refused(put_into_another_partition, "run rows do not live in"));
    EXPECT(is_refused(put_an_unknown_kind, "row kind"));
    EXPECT(is_refused(delete_one_row_of_ranges, "history-node rows are deleted by ranges only"));
    EXPECT(is_refused(delete_a_range_of_single_rows, "timer rows are deleted one by one only"));
    EXPECT(is_refused(delete_a_range_turned_round, "ends before it begins"));
    EXPECT(is_refused(scan_forward_rows_backwards, "timer rows are scanned forward only"));
    EXPECT(is_refused(walk_forward_rows, "run rows are not walked"));
    EXPECT(is_refused(read_another_kind, "domain rows do not live in"));
    EXPECT(is_refused(name_a_shard, "partition.name.length == 0"));
}

TEST(store, a_guard_never_falls_and_is_never_zero)
{
    EXPECT(is_refused(lower_the_guard, "the guard would fall from 5 to 4"));
    EXPECT(is_refused(leave_no_guard, "no guard 0"));
}

ARENA_TEST(store, a_batch_that_obeys_the_table_passes)
{
    struct batch *batch = batch_new(arena, SHARD(1), 5);
    batch_put(batch, ROW_RUN, TEXT("k"), TEXT("v"));
    batch_delete(batch, ROW_TIMER, TEXT("k"));
    batch_delete_range(batch, ROW_HISTORY, TEXT("a"), TEXT(""));
    store_check_batch(batch, 5);
    EXPECT_EQ(batch->count, 3);
}
