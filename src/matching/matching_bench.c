/* matching_bench.c - what task lists cost on this machine.
 *
 *   matching_bench FOLDER [TASKS]
 *
 * Three rounds, in one process with the embedded store, without the network:
 *   1. 100,000 polls wait at 10,000 lists: memory of each, and how long a task takes from being
 *      offered to its poll's being back at its caller, on another loop as often as not;
 *   2. a storm on one list, and what it does to the tasks of another;
 *   3. a backlog of a million tasks of one list: stored, restarted, drained; memory stays flat.
 * In the last round each task must come exactly once. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/sync.h"
#include "matching/matching.h"
#include "store/rocks/rocks.h"

#define LISTS   10000
#define POLLS   100000
#define LOOPS   2
#define SAMPLES 40000

struct bench {
    const char *folder;
    uint64_t tasks; /* of the backlog */
    const char *settings;
    struct store *store;
    struct dynamic *dynamic;
    struct matching *matching;
    atomic_uint_fast64_t stored;
};

/* Tasks on their way, one after the other, each with a poll that waits for it. */
struct chain {
    struct bench *bench;
    unsigned lists, in_flight;
    const char *prefix;
    uint64_t wanted, begun, ended;
    int64_t *latency; /* NULL: not measured */
    int64_t *began;   /* by number of the task */
    bool is_stopped;
    unsigned out; /* polls */
    struct fiber *waiter;
};

struct waiting {
    struct poll poll;
    struct chain *chain;
    char list[24];
};

static int64_t
now(void)
{
    struct timespec time;
    /* tidy: allow clock_gettime - a bench measures real time, finer than a tick */
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static double
memory_mb(void)
{
    long pages = 0, resident = 0;
    /* tidy: allow fopen - a bench looks at its own process */
    FILE *file = fopen("/proc/self/statm", "r");
    int count = file == NULL ? 0 : fscanf(file, "%ld %ld", &pages, &resident);
    if (file != NULL)
        fclose(file);
    return count == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6 : 0;
}

static double
cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int
compare(const void *one, const void *other)
{
    int64_t difference = *(const int64_t *)one - *(const int64_t *)other;
    return (difference > 0) - (difference < 0);
}

static double
percentile(int64_t *samples, uint64_t count, double partition_state)
{
    qsort(samples, count, sizeof *samples, compare);
    return count == 0 ? 0
                      : (double)samples[(uint64_t)((double)(count - 1) * partition_state)] / 1000;
}

static void
nap(int64_t duration)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = fiber_sleep(duration, arena);
    check(err == NULL);
}

/* --- the server's part ------------------------------------------------------------------------ */

static void
note_stored(void *context, const struct task *task)
{
    struct bench *bench = context;
    atomic_fetch_add(&bench->stored, 1);
}

static void
open_all(struct bench *bench, struct arena *arena)
{
    struct rocks_options options = {
        .path = bench->folder, .cluster_name = "bench", .shard_count = 16};
    struct error *err = rocks_open(&options, arena, &bench->store);
    check_that(err == NULL, "%s", err->message);
    bench->dynamic = dynamic_new(NULL);
    if (bench->settings != NULL)
        err = dynamic_load(bench->dynamic, slice_text(bench->settings), "bench", arena);
    check(err == NULL);
    bench->matching = matching_new(&(struct matching_options){.store = bench->store,
                                                              .dynamic = bench->dynamic,
                                                              .host = "bench",
                                                              .is_alone = true,
                                                              .task_done = note_stored,
                                                              .context = bench});
}

static void
close_all(struct bench *bench)
{
    matching_free(bench->matching);
    dynamic_free(bench->dynamic);
    store_close(bench->store);
}

static bool
offer(struct bench *bench, const char *list, uint64_t number)
{
    struct task task = {.type = TASK_DECISION,
                        .kind = LIST_NORMAL,
                        .domain_id = "0192f1a0-0000-7000-8000-000000000000",
                        .list = list,
                        .normal_list = "",
                        .run_domain_id = "0192f1a0-0000-7000-8000-000000000000",
                        .workflow_id = "a-workflow-id-of-usual-length",
                        .run_id = "0192f1a0-1111-7000-8000-000000000000",
                        .schedule_id = (int64_t)number,
                        .shard = (uint32_t)(number % 16),
                        .range_id = 1,
                        .row = number + 1};
    return matching_add(bench->matching, &task);
}

/* --- chains ----------------------------------------------------------------------------------- */

static void came_back(struct poll *poll, enum poll_end end);

static void
wait_for_task(struct waiting *waiting)
{
    struct chain *chain = waiting->chain;
    waiting->poll = (struct poll){.type = TASK_DECISION,
                                  .kind = LIST_NORMAL,
                                  .domain_id = "0192f1a0-0000-7000-8000-000000000000",
                                  .domain_name = "bench",
                                  .list = waiting->list,
                                  .base_list = "",
                                  .identity = "worker",
                                  .rate_per_second = -1,
                                  .expiry = clock_monotonic() + 3600 * NS_PER_S,
                                  .back = came_back};
    matching_poll(chain->bench->matching, &waiting->poll);
}

static void
begin_next(struct chain *chain)
{
    if (chain->is_stopped || chain->begun >= chain->wanted)
        return;
    char list[24];
    uint64_t number = chain->begun++;
    snprintf(list, sizeof list, "%s-%" PRIu64, chain->prefix, number * 7919 % chain->lists);
    if (chain->began != NULL)
        chain->began[number] = now();
    bool is_taken = offer(chain->bench, list, number);
    check(is_taken);
}

static bool
chain_is_over(const struct chain *chain)
{
    return chain->ended == (chain->is_stopped ? chain->begun : chain->wanted);
}

static void
came_back(struct poll *poll, enum poll_end end)
{
    struct waiting *waiting = container_of(poll, struct waiting, poll);
    struct chain *chain = waiting->chain;
    if (end != POLL_MATCHED) {
        chain->out--;
        memory_free(waiting);
    } else {
        uint64_t number = (uint64_t)poll->task->schedule_id;
        if (chain->latency != NULL)
            chain->latency[chain->ended] = now() - chain->began[number];
        chain->ended++;
        matching_finish(chain->bench->matching, poll->task);
        arena_free(poll->task_arena);
        wait_for_task(waiting);
        begin_next(chain);
    }
    if (chain->waiter != NULL && (chain->out == 0 || chain_is_over(chain)))
        fiber_wake(chain->waiter);
}

/* So many polls wait, spread over the lists. */
static void
park(struct chain *chain, unsigned polls)
{
    for (unsigned i = 0; i < polls; i++) {
        struct waiting *waiting = memory_zalloc(1, sizeof *waiting);
        waiting->chain = chain;
        snprintf(waiting->list, sizeof waiting->list, "%s-%u", chain->prefix, i % chain->lists);
        chain->out++;
        wait_for_task(waiting);
        if (i % 1000 == 999)
            nap(NS_PER_MS);
    }
}

/* Lets `wanted` tasks go, `in_flight` at a time. Yields. */
static void
run_chain(struct chain *chain, uint64_t wanted, unsigned in_flight)
{
    chain->wanted = wanted;
    chain->begun = chain->ended = 0;
    chain->latency = memory_zalloc(wanted, sizeof *chain->latency);
    chain->began = memory_zalloc(wanted, sizeof *chain->began);
    chain->waiter = fiber_self();
    for (unsigned i = 0; i < in_flight; i++)
        begin_next(chain);
    while (!chain_is_over(chain))
        fiber_wait_uncancellable();
    chain->waiter = NULL;
}

static void
print_chain(struct chain *chain, const char *what)
{
    double p50 = percentile(chain->latency, chain->ended, 0.5);
    double p99 = percentile(chain->latency, chain->ended, 0.99);
    printf("%-44s p50 %7.1f us, p99 %7.1f us\n", what, p50, p99);
    memory_free(chain->latency);
    memory_free(chain->began);
    chain->latency = chain->began = NULL;
}

/* --- the rounds ------------------------------------------------------------------------------- */

static void
end_polls(struct bench *bench, struct chain **chains, size_t count)
{
    matching_shut_down(bench->matching);
    for (size_t i = 0; i < count; i++) {
        while (chains[i]->out > 0)
            nap(NS_PER_MS);
    }
}

static void
round_pollers(struct bench *bench)
{
    struct chain chain = {.bench = bench, .prefix = "list", .lists = LISTS};
    double before = memory_mb();
    park(&chain, POLLS);
    nap(200 * NS_PER_MS);
    double taken = memory_mb() - before;
    printf(
        "%d polls wait at %d lists: %.0f MB, %.0f bytes for each poll with its share of a list\n",
        POLLS, LISTS, taken, taken * 1e6 / POLLS);
    run_chain(&chain, SAMPLES, 1);
    print_chain(&chain, "a task to its poll, one at a time:");
    int64_t began = now();
    double cpu = cpu_seconds();
    run_chain(&chain, 20 * SAMPLES, 64);
    double seconds = (double)(now() - began) / 1e9;
    cpu = cpu_seconds() - cpu;
    print_chain(&chain, "the same, 64 at a time:");
    printf("%44s %.0f tasks/s, %.2f us CPU each\n", "", 20.0 * SAMPLES / seconds,
           cpu * 1e6 / (20.0 * SAMPLES));
    end_polls(bench, (struct chain *[]){&chain}, 1);
}

struct storm {
    struct chain *chain;
    bool is_over;
};

static void
storm_fiber(void *argument)
{
    struct storm *storm = argument;
    run_chain(storm->chain, UINT64_C(1) << 22, 2000);
    storm->is_over = true;
}

static void
round_storm(struct bench *bench)
{
    struct chain quiet = {.bench = bench, .prefix = "quiet", .lists = 1};
    struct chain hot = {.bench = bench, .prefix = "hot", .lists = 1};
    park(&quiet, 10);
    park(&hot, 500);
    nap(100 * NS_PER_MS);
    run_chain(&quiet, SAMPLES, 1);
    double alone = percentile(quiet.latency, quiet.ended, 0.5);
    double alone_99 = percentile(quiet.latency, quiet.ended, 0.99);
    print_chain(&quiet, "a quiet list alone:");
    struct storm storm = {.chain = &hot};
    int64_t began = now();
    fiber_start("storm", storm_fiber, &storm);
    nap(100 * NS_PER_MS);
    uint64_t before = hot.ended;
    run_chain(&quiet, SAMPLES / 8, 1);
    uint64_t stormed = hot.ended - before;
    double beside = percentile(quiet.latency, quiet.ended, 0.5);
    double beside_99 = percentile(quiet.latency, quiet.ended, 0.99);
    print_chain(&quiet, "beside a list with 2000 tasks in flight:");
    printf("%44s ratios %.0f and %.0f; the storm: %.0f tasks/s\n", "", beside / alone,
           beside_99 / alone_99, (double)stormed * 1e9 / (double)(now() - began));
    hot.is_stopped = true;
    while (!storm.is_over)
        nap(NS_PER_MS);
    memory_free(hot.latency);
    memory_free(hot.began);
    end_polls(bench, (struct chain *[]){&quiet, &hot}, 2);
}

static void
store_backlog(struct bench *bench)
{
    double before = memory_mb(), most = before;
    int64_t began = now();
    for (uint64_t i = 0; i < bench->tasks; i++) {
        while (!offer(bench, "backlog-0", i))
            nap(NS_PER_MS);
        if (i % 1000 == 0) {
            double taken = memory_mb();
            most = taken > most ? taken : most;
            nap(NS_PER_MS / 10);
        }
    }
    while (atomic_load(&bench->stored) + 11000 < bench->tasks) /* the rest waits in memory */
        nap(NS_PER_MS);
    double seconds = (double)(now() - began) / 1e9;
    printf("%" PRIu64 " tasks of one list: %.0f/s stored, at most %.0f MB more than before\n",
           bench->tasks, (double)bench->tasks / seconds, most - before);
}

struct drain {
    struct chain chain;
    uint8_t *is_seen;
    uint64_t seen, again;
    int64_t first, last;
};

static void drained_one(struct poll *poll, enum poll_end end);

static void
drain_poll(struct waiting *waiting)
{
    wait_for_task(waiting);
    waiting->poll.back = drained_one;
}

static void
drained_one(struct poll *poll, enum poll_end end)
{
    struct waiting *waiting = container_of(poll, struct waiting, poll);
    struct drain *drain = container_of(waiting->chain, struct drain, chain);
    if (end != POLL_MATCHED) {
        drain->chain.out--;
        memory_free(waiting);
        return;
    }
    uint8_t *is_seen = &drain->is_seen[poll->task->schedule_id];
    drain->again += *is_seen;
    drain->seen += *is_seen == 0;
    *is_seen = 1;
    drain->last = now();
    matching_finish(drain->chain.bench->matching, poll->task);
    arena_free(poll->task_arena);
    drain_poll(waiting);
}

static void
drain_backlog(struct bench *bench, uint64_t offered)
{
    struct drain drain = {.chain = {.bench = bench, .prefix = "backlog", .lists = 1}};
    drain.is_seen = memory_zalloc(bench->tasks, 1);
    double before = memory_mb(), most = before, cpu = cpu_seconds();
    drain.first = drain.last = now();
    for (unsigned i = 0; i < 1000; i++) {
        struct waiting *waiting = memory_zalloc(1, sizeof *waiting);
        waiting->chain = &drain.chain;
        snprintf(waiting->list, sizeof waiting->list, "backlog-0");
        drain.chain.out++;
        drain_poll(waiting);
    }
    while (drain.seen < offered && now() - drain.last < 30 * NS_PER_S) {
        nap(10 * NS_PER_MS);
        double taken = memory_mb();
        most = taken > most ? taken : most;
    }
    double seconds = (double)(drain.last - drain.first) / 1e9;
    printf("drained after a restart: %" PRIu64 " of %" PRIu64 ", %" PRIu64
           " twice, %.0f/s, %.2f us CPU each, at most %.0f MB more than before\n",
           drain.seen, offered, drain.again, (double)drain.seen / seconds,
           (cpu_seconds() - cpu) * 1e6 / (double)drain.seen, most - before);
    check(drain.seen == offered && drain.again == 0);
    end_polls(bench, (struct chain *[]){&drain.chain}, 1);
    memory_free(drain.is_seen);
}

static void
bench_run(void *argument)
{
    struct bench *bench = argument;
    struct arena *arena = arena_new(0);
    open_all(bench, arena);
    round_pollers(bench);
    close_all(bench);
    open_all(bench, arena);
    round_storm(bench);
    close_all(bench);
    bench->settings = "matching.maxTasksInMemory: [{value: 1}]\n"; /* so all are in the store */
    open_all(bench, arena);
    store_backlog(bench);
    while (atomic_load(&bench->stored) + 1 < bench->tasks)
        nap(NS_PER_MS);
    close_all(bench);
    bench->settings = NULL;
    open_all(bench, arena);
    drain_backlog(bench, atomic_load(&bench->stored));
    close_all(bench);
    arena_free(arena);
}

int
main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "matching_bench FOLDER [TASKS]\n");
        return 2;
    }
    struct bench bench = {.folder = arguments[1],
                          .tasks = count > 2 ? strtoull(arguments[2], NULL, 10) : 1000000};
    linux_run(&(struct linux_options){.loops = LOOPS}, bench_run, &bench);
    return 0;
}
