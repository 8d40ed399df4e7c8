/* fixture.c - see fixture.h. */
#include "matching/test/fixture.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"

static void
note_done(void *context, const struct task *task)
{
    struct matching_fixture *matching_fixture = context;
    check(task->row > 0 && task->row < TASKS_NOTED);
    EXPECT(!matching_fixture->is_row_done[task->row]); /* rows are deleted once */
    matching_fixture->is_row_done[task->row] = true;
    matching_fixture->done++;
    matching_fixture->done_range_id = task->range_id;
}

static bool
is_isolation_group_drained(void *context, const char *domain_id, const char *group)
{
    const struct matching_fixture *matching_fixture = context;
    EXPECT_TEXT(domain_id, "domain");
    return matching_fixture->drained != NULL && strcmp(matching_fixture->drained, group) == 0;
}

/* What is to be known of a start is a text here. */
static struct slice
start_encode(void *context, enum task_type type, const void *start, struct arena *arena)
{
    return arena_slice(arena, slice_text(start));
}

static void *
start_decode(void *context, enum task_type type, struct slice bytes, struct arena *arena)
{
    return arena_text_of(arena, bytes);
}

static void
fixture_open(struct matching_fixture *matching_fixture)
{
    matching_fixture->arena = arena_new(0);
    matching_fixture->rate = -1;
    matching_fixture->identity = "worker";
    matching_fixture->store = memory_open(matching_fixture->base);
    matching_fixture->handle = memory_handle(matching_fixture->store);
    matching_fixture->dynamic = dynamic_new(NULL);
    if (matching_fixture->yaml != NULL)
        EXPECT_OK(dynamic_load(matching_fixture->dynamic, slice_text(matching_fixture->yaml),
                               "test", matching_fixture->arena));
    matching_fixture->matching = matching_new(
        &(struct matching_options){.store = matching_fixture->store,
                                   .dynamic = matching_fixture->dynamic,
                                   .host = "test",
                                   .is_alone = !matching_fixture->is_shared,
                                   .polls_max = matching_fixture->polls_max,
                                   .task_done = note_done,
                                   .is_isolation_group_drained = is_isolation_group_drained,
                                   .start_encode = start_encode,
                                   .start_decode = start_decode,
                                   .context = matching_fixture});
}

void
fixture_life(void *argument)
{
    struct matching_fixture *matching_fixture = argument;
    fixture_open(matching_fixture);
    matching_fixture->body(matching_fixture);
    matching_free(matching_fixture->matching);
    dynamic_free(matching_fixture->dynamic);
    store_close(matching_fixture->store);
    arena_free(matching_fixture->arena);
}

static bool
has_ended(void *host)
{
    return !host_is_running(host);
}

void
fixture_run_on(struct matching_fixture *matching_fixture, unsigned loops)
{
    /* Nothing that comes twice: the tests count. What is lost is in lost_sim_test.c. */
    bool is_by_bytes = matching_fixture->messages == MESSAGES_BY_SEED;
    struct world *world =
        world_new(.seed = 7, .messages = is_by_bytes ? MESSAGES_BYTES : matching_fixture->messages);
    struct host *host = world_add_host(world, "matching", loops);
    host_start(host, fixture_life, matching_fixture);
    EXPECT(world_run_until(world, has_ended, host, 24 * 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
}

void
fixture_run(void (*body)(struct matching_fixture *matching_fixture), const char *yaml,
            unsigned loops)
{
    struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
    matching_fixture->base = memory_base_new(1);
    matching_fixture->yaml = yaml;
    matching_fixture->body = body;
    fixture_run_on(matching_fixture, loops);
    memory_base_free(matching_fixture->base);
    memory_free(matching_fixture);
}

void
fixture_sleep(struct matching_fixture *matching_fixture, int64_t duration)
{
    EXPECT_OK(fiber_sleep(duration, matching_fixture->arena));
}

struct task
fixture_task(struct spot spot, uint64_t row)
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
fixture_add(struct matching_fixture *matching_fixture, struct spot spot, uint64_t first,
            uint64_t last)
{
    for (uint64_t row = first; row <= last; row++) {
        struct task task = fixture_task(spot, row);
        task.isolation_group = matching_fixture->group;
        if (matching_fixture->domain_id != NULL)
            task.domain_id = task.run_domain_id = matching_fixture->domain_id;
        EXPECT(matching_add(matching_fixture->matching, &task));
    }
}

static void
probe_back(struct poll *poll, enum poll_end end)
{
    struct test_poll *test_poll = container_of(poll, struct test_poll, poll);
    check(!test_poll->is_back);
    test_poll->is_back = true;
    test_poll->end = end;
    if (test_poll->waiter != NULL)
        fiber_wake(test_poll->waiter);
}

void
test_poll_start(struct matching_fixture *matching_fixture, struct spot spot,
                struct test_poll *test_poll, int64_t patience)
{
    *test_poll = (struct test_poll){.poll = {.type = spot.type,
                                             .kind = spot.kind,
                                             .domain_id = matching_fixture->domain_id == NULL
                                                              ? "domain"
                                                              : matching_fixture->domain_id,
                                             .domain_name = "shop",
                                             .list = spot.list,
                                             .base_list = spot.normal,
                                             .identity = matching_fixture->identity,
                                             .isolation_group = matching_fixture->group,
                                             .partition_wanted = matching_fixture->partition,
                                             .rate_per_second = matching_fixture->rate,
                                             .expiry = clock_monotonic() + patience,
                                             .back = probe_back}};
    matching_poll(matching_fixture->matching, &test_poll->poll);
    EXPECT(!test_poll->is_back);
}

enum poll_end
test_poll_wait(struct test_poll *test_poll)
{
    test_poll->waiter = fiber_self();
    while (!test_poll->is_back)
        fiber_wait_uncancellable();
    test_poll->waiter = NULL;
    EXPECT((test_poll->end == POLL_MATCHED) == (test_poll->poll.task != NULL));
    return test_poll->end;
}

void
test_poll_finish(struct matching_fixture *matching_fixture, struct test_poll *test_poll)
{
    EXPECT(test_poll->is_back && test_poll->end == POLL_MATCHED);
    matching_finish(matching_fixture->matching, test_poll->poll.task);
    arena_free(test_poll->poll.task_arena);
}

int64_t
fixture_take(struct matching_fixture *matching_fixture, struct spot spot, int64_t patience)
{
    struct test_poll test_poll;
    test_poll_start(matching_fixture, spot, &test_poll, patience);
    if (test_poll_wait(&test_poll) != POLL_MATCHED)
        return 0;
    int64_t schedule_id = test_poll.poll.task->schedule_id;
    if (test_poll.poll.task->partition >= matching_fixture->partitions_seen)
        matching_fixture->partitions_seen = test_poll.poll.task->partition + 1;
    test_poll_finish(matching_fixture, &test_poll);
    return schedule_id;
}

void
fixture_expect(struct matching_fixture *matching_fixture, struct spot spot, int64_t first,
               int64_t last)
{
    for (int64_t wanted = first; wanted <= last; wanted++)
        EXPECT_EQ(fixture_take(matching_fixture, spot, 10 * NS_PER_S), wanted);
}
