/* cases_cross_tasks.c - rows that are work on other workflows are worked off: again until they are
 * done, in portions, a bounded number at a time, by any owner of the shard. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "wire/message.h"

#define MANY 150

/* Who does the work, and how badly. */
struct helper {
    unsigned calls, failures_left;
    unsigned running, running_max;
    unsigned portions; /* of each cross-workflow task; 0: it is done at once */
    int64_t takes;     /* ns */
    bool was_repeat;   /* of the last call */
    uint64_t cursor;   /* of the last call */
    const struct memory_base *base;
    size_t rows; /* of the base at the last call */
};

static struct error *
helper_run(void *context, struct cross_task *cross_task, struct arena *arena)
{
    struct helper *helper = context;
    helper->calls++;
    helper->rows = helper->base == NULL ? 0 : memory_base_rows(helper->base);
    helper->was_repeat = cross_task->is_repeat;
    helper->cursor = cross_task->cursor;
    helper->running++;
    if (helper->running > helper->running_max)
        helper->running_max = helper->running;
    struct error *err = helper->takes == 0 ? NULL : fiber_sleep(helper->takes, arena);
    helper->running--;
    if (err != NULL)
        return err;
    if (helper->failures_left > 0) {
        helper->failures_left--;
        return error_new(arena, ERR_UNAVAILABLE, "not today");
    }
    cross_task->has_more = cross_task->cursor < helper->portions;
    cross_task->cursor++;
    return NULL;
}

static struct error *
decide_cross_task(void *context, struct step *step)
{
    STORED(TransferRow) *transfer =
        STORED_NEW(step->arena, transfer_row,
                   .type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_END_CHILDREN);
    mutation_add_transfer(step->mutation, transfer);
    return NULL;
}

static void
take_with(struct shard_fixture *fixture, struct helper *helper)
{
    fixture->options.cross_tasks = (struct cross_task_port){.run = helper_run, .context = helper};
    shard_fixture_take(fixture);
    shard_run_cross_tasks(fixture->shard);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
}

static void
add_cross_task(struct shard_fixture *fixture)
{
    struct shard_step step = {
        .key = {fixture->domain_id, "wf", ""}, .needs_run = true, .decide = decide_cross_task};
    EXPECT_OK(shard_step(fixture->shard, &step, fixture->arena));
}

void
case_work_elsewhere_is_tried_again_until_it_is_done(struct shard_fixture *fixture)
{
    struct helper helper = {.failures_left = 3};
    take_with(fixture, &helper);
    add_cross_task(fixture);
    shard_fixture_wait(helper.calls == 1);
    EXPECT(!helper.was_repeat);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 2); /* with the decision's */
    shard_fixture_wait(helper.calls == 4);
    EXPECT(helper.was_repeat);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(helper.calls, 4);
}

void
case_work_elsewhere_is_begun_when_its_row_is_durable(struct shard_fixture *fixture)
{
    struct helper helper = {.base = fixture->base};
    take_with(fixture, &helper);
    shard_fixture_sleep(5 * NS_PER_MS);
    case_slow(fixture, 20 * NS_PER_MS);
    size_t rows = memory_base_rows(fixture->base);
    add_cross_task(fixture);
    shard_fixture_wait(helper.calls == 1);
    EXPECT(helper.rows > rows);
}

void
case_work_elsewhere_goes_on_in_portions(struct shard_fixture *fixture)
{
    struct helper helper = {.portions = 3};
    take_with(fixture, &helper);
    add_cross_task(fixture);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1);
    EXPECT_EQ(helper.calls, 4);
    EXPECT_EQ(helper.cursor, 3);
}

void
case_work_elsewhere_is_begun_again_by_the_next_owner(struct shard_fixture *fixture)
{
    struct helper helper = {.failures_left = 1000000};
    take_with(fixture, &helper);
    add_cross_task(fixture);
    shard_fixture_wait(helper.calls >= 2);
    shard_fixture_restart(fixture);
    unsigned calls = helper.calls;
    shard_fixture_sleep(100 * NS_PER_MS);
    EXPECT_EQ(helper.calls, calls); /* nobody has said that others can be asked */
    helper.failures_left = 0;
    shard_run_cross_tasks(fixture->shard);
    shard_fixture_wait(helper.calls == calls + 1);
    EXPECT(helper.was_repeat);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1);
}

void
case_work_elsewhere_is_bounded_and_is_stopped(struct shard_fixture *fixture)
{
    struct helper helper = {.takes = 20 * NS_PER_MS};
    take_with(fixture, &helper);
    shard_stop_cross_tasks(fixture->shard);
    for (int i = 0; i < MANY; i++)
        add_cross_task(fixture);
    EXPECT_EQ(helper.calls, 0);
    shard_run_cross_tasks(fixture->shard);
    shard_fixture_wait(helper.calls > 0);
    shard_stop_cross_tasks(fixture->shard); /* waits for those that are under way */
    EXPECT_EQ(helper.running, 0);
    unsigned calls = helper.calls;
    shard_fixture_sleep(100 * NS_PER_MS);
    EXPECT_EQ(helper.calls, calls);
    shard_run_cross_tasks(fixture->shard);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 1);
    EXPECT_EQ(helper.calls, MANY);
    EXPECT_EQ(helper.running_max, 64);
}
