/* visibility_bench.c - what the SQLite engine costs: feeding, asking, the file.
 *
 *   visibility_bench FOLDER [RUNS]     a million runs unless told
 *
 * The first tenth starts and closes in one batch each, the rest in two that lie 20 batches apart,
 * as workflows of some seconds do. A tenth of the runs has a custom attribute. CPU is the writer's
 * thread (all threads of the process but the one that makes the changes), the sync of every tenth
 * batch included. Questions are asked in a fresh process state of the same run: median of several.
 * The folder must exist; what is made in it is removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/uuid.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/linux/linux.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "visibility/sqlite/test_runs.h"

#define BATCH   200 /* runs */
#define LAG     20  /* batches between start and close */
#define SHARDS  16
#define REPEATS 9

struct bench {
    const char *folder;
    uint64_t runs;
    struct visibility *visibility;
    struct attribute_set *attributes;
    uint64_t row;
    struct arena *arena; /* of a step */
};

static int64_t
now(void)
{
    struct timespec time;
    /* tidy: allow clock_gettime - a bench measures real time, finer than a tick */
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static int64_t
usage_ns(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

/* Of all threads but this one. */
static int64_t
others_cpu(void)
{
    return usage_ns(RUSAGE_SELF) - usage_ns(RUSAGE_THREAD);
}

static void
must(struct error *err)
{
    check_that(err == NULL, "%s", err->message);
}

/* ---- feeding ---- */

/* Shards take turns, so that rows of each rise. */
static void
add_changes(struct bench *bench, struct visibility_change *changes, size_t *count, uint64_t first,
            bool is_closed)
{
    for (uint64_t i = first; i < first + BATCH && i < bench->runs; i++) {
        struct test_run run = test_run_of(i);
        run.is_closed = is_closed;
        changes[*count] = test_run_change(&run, bench->arena);
        changes[*count].shard = (uint32_t)(i % SHARDS);
        changes[(*count)++].row = ++bench->row;
    }
}

static void
feed(struct bench *bench, struct visibility_change *changes, size_t count, uint64_t batch)
{
    must(visibility_feed(bench->visibility, changes, count, bench->attributes, bench->arena));
    if (batch % 10 == 0)
        must(visibility_sync(bench->visibility, bench->arena));
    arena_reset(bench->arena);
}

static void
report_feed(const char *what, uint64_t runs, int64_t cpu, int64_t wall)
{
    printf("feed, %-34s %7.1f us of CPU a run, %8.0f runs/s\n", what,
           (double)cpu / 1000 / (double)runs, (double)runs * 1e9 / (double)wall);
}

static void
feed_together(struct bench *bench, uint64_t first, uint64_t end)
{
    struct visibility_change changes[2 * BATCH];
    int64_t cpu = others_cpu(), wall = now();
    for (uint64_t i = first; i < end; i += BATCH) {
        size_t count = 0;
        add_changes(bench, changes, &count, i, false);
        add_changes(bench, changes, &count, i, true);
        feed(bench, changes, count, i / BATCH);
    }
    report_feed("start and close in one batch:", end - first, others_cpu() - cpu, now() - wall);
}

static void
feed_apart(struct bench *bench, uint64_t first, uint64_t end)
{
    struct visibility_change changes[2 * BATCH];
    int64_t cpu = others_cpu(), wall = now();
    for (uint64_t i = first; i < end + LAG * BATCH; i += BATCH) {
        size_t count = 0;
        if (i < end)
            add_changes(bench, changes, &count, i, false);
        if (i >= first + LAG * BATCH)
            add_changes(bench, changes, &count, i - LAG * BATCH, true);
        feed(bench, changes, count, i / BATCH);
    }
    char what[64];
    snprintf(what, sizeof what, "apart, %" PRIu64 " to %" PRIu64 ":", first, end);
    report_feed(what, end - first, others_cpu() - cpu, now() - wall);
}

/* ---- asking ---- */

static int
compare_times(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static double
median_ms(int64_t *times)
{
    qsort(times, REPEATS, sizeof times[0], compare_times);
    return (double)times[REPEATS / 2] / 1e6;
}

static struct query
parse(struct bench *bench, const char *text)
{
    struct query query;
    must(query_parse(text, bench->attributes, bench->arena, &query));
    return query;
}

static void
ask_list(struct bench *bench, const char *text)
{
    int64_t times[REPEATS];
    size_t found = 0;
    for (int i = 0; i < REPEATS; i++) {
        struct query query = parse(bench, text);
        struct visibility_question question = {
            .domain_id = TEST_DOMAIN, .query = &query, .page_size = 100};
        struct visibility_page page;
        int64_t begun = now();
        must(visibility_list(bench->visibility, &question, bench->arena, &page));
        times[i] = now() - begun;
        found = page.count;
        arena_reset(bench->arena);
    }
    printf("list  %8.2f ms %7zu  %s\n", median_ms(times), found, text);
}

static void
ask_count(struct bench *bench, const char *text)
{
    int64_t times[REPEATS], count = 0;
    for (int i = 0; i < REPEATS; i++) {
        struct query query = parse(bench, text);
        int64_t begun = now();
        must(visibility_count(bench->visibility, TEST_DOMAIN, &query, bench->arena, &count));
        times[i] = now() - begun;
        arena_reset(bench->arena);
    }
    printf("count %8.2f ms %7" PRId64 "  %s\n", median_ms(times), count, text);
}

/* All pages of everything: the first ones against those near page 5000. */
static void
page_deep(struct bench *bench)
{
    enum { NEAR = 50 };
    scoped(arena_drop) struct arena *kept = arena_new(0);
    struct query query = {0};
    struct visibility_question question = {
        .domain_id = TEST_DOMAIN, .query = &query, .page_size = 100};
    struct visibility_page page;
    int64_t first = 0, deep = 0;
    uint64_t pages = bench->runs / 100 < 5000 ? bench->runs / 100 : 5000;
    for (uint64_t i = 0; i < pages; i++) {
        int64_t begun = now();
        must(visibility_list(bench->visibility, &question, bench->arena, &page));
        first += i < NEAR ? now() - begun : 0;
        deep += i >= pages - NEAR ? now() - begun : 0;
        arena_reset(kept);
        question.token = arena_slice(kept, page.token);
        arena_reset(bench->arena);
    }
    printf("pages of 100: the first %d take %.2f ms each, those up to page %" PRIu64
           " %.2f ms: ratio %.2f\n",
           NEAR, (double)first / 1e6 / NEAR, pages, (double)deep / 1e6 / NEAR,
           (double)deep / (double)first);
}

static void
ask_all(struct bench *bench)
{
    ask_list(bench, "");
    ask_list(bench, "WorkflowType = 'type-3' AND StartTime >= '2023-11-14T22:23:20Z' AND "
                    "StartTime < '2023-11-14T22:24:20Z'");
    ask_list(bench, "WorkflowType = 'type-3' AND CloseTime >= '2023-11-14T22:23:20Z' AND "
                    "CloseTime < '2023-11-14T22:24:20Z' ORDER BY CloseTime");
    ask_list(bench, "CloseTime = missing");
    ask_list(bench, "CloseStatus = 'failed'");
    ask_list(bench, "WorkflowID = 'order-12345'");
    ask_list(bench,
             "WorkflowID = 'order-777' OR RunID = 'order-777' OR WorkflowType = 'order-777'");
    ask_list(bench, "CustomKeywordField = 'customer-17'");
    ask_list(bench, "CustomKeywordField = 'customer-17' AND CloseStatus = 'completed' "
                    "ORDER BY CloseTime DESC");
    ask_count(bench, "");
    ask_count(bench, "CustomKeywordField = 'customer-17'");
    ask_count(bench, "CustomIntField >= 5");
    ask_count(bench, "WorkflowType = 'type-3' AND CloseStatus = 'failed'");
    ask_count(bench, "WorkflowType = 'type-3'");
    page_deep(bench);
}

/* ---- the whole ---- */

static double
file_megabytes(struct bench *bench, const char *path)
{
    int64_t modified;
    uint64_t size;
    must(file_stat(path, &modified, &size, bench->arena));
    return (double)size / 1e6;
}

static void
run(void *argument)
{
    struct bench *bench = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bench->arena = arena_new(0);
    bench->attributes = attribute_set_new(arena);
    struct visibility_options options = {
        .path = arena_format(arena, "%s/visibility.db", bench->folder)};
    must(visibility_open_sqlite(&options, arena, &bench->visibility));
    uint64_t tenth = bench->runs / 10;
    feed_together(bench, 0, tenth);
    feed_apart(bench, tenth, 2 * tenth);
    feed_apart(bench, 2 * tenth, 9 * tenth);
    feed_apart(bench, 9 * tenth, bench->runs);
    ask_all(bench);
    visibility_close(bench->visibility);
    printf("file: %.0f MB, %.0f bytes a run\n", file_megabytes(bench, options.path),
           file_megabytes(bench, options.path) * 1e6 / (double)bench->runs);
    must(file_remove(options.path, arena));
    arena_free(bench->arena);
}

int
main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line when it is known */
    if (count < 2) {
        fprintf(stderr, "usage: visibility_bench FOLDER [RUNS]\n");
        return 2;
    }
    struct bench bench = {.folder = arguments[1],
                          .runs = count > 2 ? strtoull(arguments[2], NULL, 10) : 1000000};
    linux_run(&(struct linux_options){.loops = 1}, run, &bench);
    return 0;
}
