/* fixture.c - see fixture.h. */
#include "matching/fixture.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"

static void
note_done(void *context, const struct task *task)
{
    struct bench *bench = context;
    check(task->row > 0 && task->row < TASKS_NOTED);
    EXPECT(!bench->is_row_done[task->row]); /* rows are deleted once */
    bench->is_row_done[task->row] = true;
    bench->done++;
    bench->done_range_id = task->range_id;
}

static bool
is_drained(void *context, const char *domain_id, const char *group)
{
    const struct bench *bench = context;
    EXPECT_TEXT(domain_id, "domain");
    return bench->drained != NULL && strcmp(bench->drained, group) == 0;
}

static void
bench_open(struct bench *bench)
{
    bench->arena = arena_new(0);
    bench->rate = -1;
    bench->identity = "worker";
    bench->store = memory_open(bench->base);
    bench->handle = memory_handle(bench->store);
    bench->dynamic = dynamic_new(NULL);
    if (bench->yaml != NULL)
        EXPECT_OK(dynamic_load(bench->dynamic, slice_text(bench->yaml), "test", bench->arena));
    bench->matching = matching_new(&(struct matching_options){.store = bench->store,
                                                              .dynamic = bench->dynamic,
                                                              .host = "test",
                                                              .is_alone = !bench->is_shared,
                                                              .task_done = note_done,
                                                              .is_drained = is_drained,
                                                              .context = bench});
}

void
bench_life(void *argument)
{
    struct bench *bench = argument;
    bench_open(bench);
    bench->body(bench);
    matching_free(bench->matching);
    dynamic_free(bench->dynamic);
    store_close(bench->store);
    arena_free(bench->arena);
}

static bool
has_ended(void *host)
{
    return !host_is_running(host);
}

void
bench_run_on(struct bench *bench, unsigned loops)
{
    struct world *world = world_new(.seed = 7);
    struct host *host = world_add_host(world, "matching", loops);
    host_start(host, bench_life, bench);
    EXPECT(world_run_until(world, has_ended, host, 24 * 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
}

void
bench_run(void (*body)(struct bench *bench), const char *yaml, unsigned loops)
{
    struct bench *bench = memory_zalloc(1, sizeof *bench);
    bench->base = memory_base_new(1);
    bench->yaml = yaml;
    bench->body = body;
    bench_run_on(bench, loops);
    memory_base_free(bench->base);
    memory_free(bench);
}

void
bench_sleep(struct bench *bench, int64_t duration)
{
    EXPECT_OK(fiber_sleep(duration, bench->arena));
}

struct task
bench_task(struct spot spot, uint64_t row)
{
    return (struct task){.type = spot.type,
                         .kind = spot.kind,
                         .domain_id = "domain",
                         .list = spot.list,
                         .normal_list = spot.normal,
                         .run_domain_id = "domain",
                         .workflow_id = "workflow",
                         .run_id = "run",
                         .schedule_id = (int64_t)row,
                         .created_time = clock_wall(),
                         .shard = 3,
                         .range_id = 1,
                         .row = row};
}

void
bench_add(struct bench *bench, struct spot spot, uint64_t first, uint64_t last)
{
    for (uint64_t row = first; row <= last; row++) {
        struct task task = bench_task(spot, row);
        task.isolation_group = bench->group;
        if (bench->domain_id != NULL)
            task.domain_id = task.run_domain_id = bench->domain_id;
        EXPECT(matching_add(bench->matching, &task));
    }
}

static void
probe_back(struct poll *poll, enum poll_end end)
{
    struct probe *probe = container_of(poll, struct probe, poll);
    check(!probe->is_back);
    probe->is_back = true;
    probe->end = end;
    if (probe->waiter != NULL)
        fiber_wake(probe->waiter);
}

void
probe_start(struct bench *bench, struct spot spot, struct probe *probe, int64_t patience)
{
    *probe =
        (struct probe){.poll = {.type = spot.type,
                                .kind = spot.kind,
                                .domain_id = bench->domain_id == NULL ? "domain" : bench->domain_id,
                                .domain_name = "shop",
                                .list = spot.list,
                                .base_list = spot.normal,
                                .identity = bench->identity,
                                .isolation_group = bench->group,
                                .partition_wanted = bench->partition,
                                .rate_per_second = bench->rate,
                                .expiry = clock_monotonic() + patience,
                                .back = probe_back}};
    matching_poll(bench->matching, &probe->poll);
    EXPECT(!probe->is_back);
}

enum poll_end
probe_wait(struct probe *probe)
{
    probe->waiter = fiber_self();
    while (!probe->is_back)
        fiber_wait_uncancellable();
    probe->waiter = NULL;
    EXPECT((probe->end == POLL_MATCHED) == (probe->poll.task != NULL));
    return probe->end;
}

void
probe_finish(struct bench *bench, struct probe *probe)
{
    EXPECT(probe->is_back && probe->end == POLL_MATCHED);
    matching_finish(bench->matching, probe->poll.task);
    arena_free(probe->poll.task_arena);
}

int64_t
bench_take(struct bench *bench, struct spot spot, int64_t patience)
{
    struct probe probe;
    probe_start(bench, spot, &probe, patience);
    if (probe_wait(&probe) != POLL_MATCHED)
        return 0;
    int64_t schedule_id = probe.poll.task->schedule_id;
    if (probe.poll.task->partition >= bench->partitions_seen)
        bench->partitions_seen = probe.poll.task->partition + 1;
    probe_finish(bench, &probe);
    return schedule_id;
}

void
bench_expect(struct bench *bench, struct spot spot, int64_t first, int64_t last)
{
    for (int64_t wanted = first; wanted <= last; wanted++)
        EXPECT_EQ(bench_take(bench, spot, 10 * NS_PER_S), wanted);
}
