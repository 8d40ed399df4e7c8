/* rocks_bench.c - what one durable commit costs: CPU, rate and latency by how many are in flight.
 *
 *   rocks_bench [FOLDER]          commits at 1, 16, 64 and 256 in flight, beside one bare fdatasync
 * of the same disk rocks_bench FOLDER COMMITS    one long run at 256 in flight: write
 * amplification, size on disk, worst pause
 *
 * A commit is a step of a workflow as the engine writes it: six rows of five kinds in one shard,
 * about 1 KB. CPU is that of the whole process: loop, committer, flushes and compactions. The
 * folder is made, and removed at the end. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/sync.h"
#include "store/key.h"
#include "store/rocks/test_load.h"

#define SHARDS        16
#define IN_FLIGHT_MAX 256
#define RUNS          100000 /* keys of runs that are written again and again */
#define OUTBOX_LIVE   64     /* outbox rows of a fiber before the oldest is deleted */
#define SYNCS         200

struct bench {
    const char *folder;
    uint64_t commits_long; /* 0: the short levels */
    uint64_t memtable_mb;  /* 0: the default */
    struct store *store;
    struct writer *writers[SHARDS];
    unsigned in_flight;
    uint64_t wanted, begun; /* commits of this level */
    int64_t *latency;       /* ns, one per commit */
    uint64_t measured;
    uint64_t sequence; /* makes keys of rows put once */
    struct latch latch;
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
cpu_time(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

/* Bytes that the process handed to the disk. */
static uint64_t
written_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    char line[128];
    unsigned long long bytes = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "write_bytes:", 12) == 0)
            bytes = strtoull(line + 12, NULL, 10);
    if (file != NULL)
        fclose(file);
    return bytes;
}

/* ---- one commit ---- */

static struct slice
two_key(uint64_t first, uint64_t second, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, first);
    key_u64(&key, second);
    return key_end(&key);
}

static struct batch *
make_batch(struct bench *bench, unsigned fiber, uint64_t sequence, uint64_t done,
           struct arena *arena)
{
    static const uint8_t bytes[512] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct batch *batch = batch_new(arena, PARTITION_OF_SHARD(fiber % SHARDS), 1);
    struct slice run = two_key(sequence * UINT64_C(2654435761) % RUNS, 0, arena);
    batch_put(batch, ROW_RUN, run, slice_of(bytes, 400));
    batch_put(batch, ROW_CURRENT, run, slice_of(bytes, 80));
    batch_put(batch, ROW_HISTORY, two_key(sequence, 1, arena), slice_of(bytes, 300));
    batch_put(batch, ROW_TIMER, two_key(sequence, fiber, arena), slice_of(bytes, 60));
    batch_put(batch, ROW_TRANSFER, two_key(fiber, done, arena), slice_of(bytes, 100));
    if (done >= OUTBOX_LIVE)
        batch_delete(batch, ROW_TRANSFER, two_key(fiber, done - OUTBOX_LIVE, arena));
    else
        batch_put(batch, ROW_PENDING, two_key(fiber, done, arena), slice_of(bytes, 60));
    return batch;
}

struct committing {
    struct bench *bench;
    unsigned number;
};

static void
commit_fiber(void *argument)
{
    struct committing *committing = argument;
    struct bench *bench = committing->bench;
    struct writer *writer = bench->writers[committing->number % SHARDS];
    struct arena *arena = arena_new(0);
    uint64_t base = bench->sequence; /* outbox keys of an earlier level are not used again */
    for (uint64_t done = base; bench->begun < bench->wanted; done++) {
        uint64_t index = bench->begun++;
        int64_t start = now();
        struct batch *batch = make_batch(bench, committing->number, base + index, done, arena);
        struct error *err = writer_wait(writer, writer_submit(writer, batch), arena);
        check_that(err == NULL, "%s", err->message);
        bench->latency[index] = now() - start;
        arena_reset(arena);
    }
    arena_free(arena);
    latch_done(&bench->latch);
}

static void
run_commits(struct bench *bench, unsigned in_flight, uint64_t commits)
{
    struct committing committing[IN_FLIGHT_MAX];
    bench->in_flight = in_flight;
    bench->wanted = commits;
    bench->begun = 0;
    bench->latency = memory_zalloc(commits, sizeof *bench->latency);
    latch_init(&bench->latch, in_flight);
    for (unsigned i = 0; i < in_flight; i++) {
        committing[i] = (struct committing){.bench = bench, .number = i};
        fiber_start("commit", commit_fiber, &committing[i]);
    }
    latch_wait(&bench->latch);
    bench->sequence += commits;
}

/* ---- metrics ---- */

static int
compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double
quantile_us(int64_t *times, uint64_t count, double part)
{
    return (double)times[(uint64_t)((double)(count - 1) * part)] / 1000.0;
}

static void
bench_syncs(const char *folder)
{
    char path[512], block[1024] = {1};
    int64_t times[SYNCS];
    snprintf(path, sizeof path, "%s/sync", folder);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(file >= 0);
    for (int i = 0; i < SYNCS; i++) {
        int64_t start = now();
        ssize_t written = write(file, block, sizeof block);
        check(written == sizeof block && fdatasync(file) == 0);
        times[i] = now() - start;
    }
    close(file);
    qsort(times, SYNCS, sizeof times[0], compare_times);
    printf("bare write of 1 KB and fdatasync: p50 %.0f us, p99 %.0f us\n",
           quantile_us(times, SYNCS, 0.5), quantile_us(times, SYNCS, 0.99));
}

static void
bench_level(struct bench *bench, unsigned in_flight, uint64_t commits)
{
    struct rocks_stats before, after;
    rocks_stats(bench->store, &before);
    int64_t cpu = cpu_time(), start = now();
    run_commits(bench, in_flight, commits);
    double seconds = (double)(now() - start) / 1e9;
    double cpu_us = (double)(cpu_time() - cpu) / 1000.0 / (double)commits;
    rocks_stats(bench->store, &after);
    qsort(bench->latency, commits, sizeof bench->latency[0], compare_times);
    printf("%4u in flight: %6.1f us CPU per commit, %7.0f commits/s, p50 %6.0f us, p99 %6.0f us, "
           "%.1f commits per sync\n",
           in_flight, cpu_us, (double)commits / seconds, quantile_us(bench->latency, commits, 0.5),
           quantile_us(bench->latency, commits, 0.99),
           (double)commits / (double)(after.groups - before.groups));
    memory_free(bench->latency);
}

static void
bench_long(struct bench *bench)
{
    uint64_t written = written_bytes();
    bench_level(bench, IN_FLIGHT_MAX, bench->commits_long);
    struct rocks_stats stats;
    rocks_stats(bench->store, &stats);
    written = written_bytes() - written;
    printf("%" PRIu64
           " commits: %.0f MB of rows, %.0f MB written to disk: write amplification %.2f; "
           "%.0f MB of tables on disk; worst group %.1f ms; memtables %.0f MB\n",
           stats.commits, (double)stats.bytes / 1e6, (double)written / 1e6,
           (double)written / (double)stats.bytes, (double)stats.disk_bytes / 1e6,
           (double)stats.group_ns_max / 1e6, (double)stats.memtable_bytes / 1e6);
}

static void
bench_run(void *argument)
{
    struct bench *bench = argument;
    struct arena *arena = arena_new(0);
    struct rocks_options options = {.cluster_name = "bench", .shard_count = SHARDS};
    options.memtable_bytes_max = bench->memtable_mb << 20;
    options.path = arena_format(arena, "%s/data", bench->folder);
    struct error *err = rocks_open(&options, arena, &bench->store);
    check_that(err == NULL, "%s", err->message);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        struct batch *batch = batch_new(arena, PARTITION_OF_SHARD(shard), 1);
        err = store_commit(bench->store, batch, 0, arena);
        check(err == NULL);
        bench->writers[shard] =
            writer_open(bench->store, PARTITION_OF_SHARD(shard), 1, IN_FLIGHT_MAX);
    }
    bench_syncs(bench->folder);
    if (bench->commits_long > 0) {
        bench_long(bench);
    } else {
        bench_level(bench, 1, 2000);
        bench_level(bench, 16, 20000);
        bench_level(bench, 64, 100000);
        bench_level(bench, 256, 200000);
    }
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        writer_close(bench->writers[shard]);
    store_close(bench->store);
    arena_free(arena);
}

int
main(int count, char **arguments)
{
    struct arena *arena = arena_new(0);
    struct bench bench = {.folder = folder_make_temporary(arena)};
    if (count > 1) {
        folder_remove(bench.folder);
        bench.folder = arguments[1];
    }
    if (count > 2)
        bench.commits_long = strtoull(arguments[2], NULL, 10);
    if (count > 3)
        bench.memtable_mb = strtoull(arguments[3], NULL, 10);
    linux_run(&(struct linux_options){.loops = 1}, bench_run, &bench);
    folder_remove(bench.folder);
    arena_free(arena);
    return 0;
}
