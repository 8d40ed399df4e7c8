/* cases_errands.c - rows that are work on other workflows are worked off: again until they are
 * done, in portions, a bounded number at a time, by whoever has the shard. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

#define MANY 150

/* Who does the work, and how badly. */
struct helper {
    unsigned calls, failures_left;
    unsigned running, running_max;
    unsigned portions; /* of each errand; 0: it is done at once */
    int64_t takes;     /* ns */
    bool was_repeat;   /* of the last call */
    uint64_t cursor;   /* of the last call */
    const struct memory_base *base;
    size_t rows; /* of the base at the last call */
};

static struct error *
helper_run(void *context, struct errand *errand, struct arena *arena)
{
    struct helper *helper = context;
    helper->calls++;
    helper->rows = helper->base == NULL ? 0 : memory_base_rows(helper->base);
    helper->was_repeat = errand->is_repeat;
    helper->cursor = errand->cursor;
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
    errand->has_more = errand->cursor < helper->portions;
    errand->cursor++;
    return NULL;
}

static struct error *
decide_errand(void *context, struct step *step)
{
    STORED(TransferRow) *transfer = message_new(step->arena, STORED_TYPE(transfer_row));
    transfer->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_END_CHILDREN;
    mutation_add_transfer(step->mutation, transfer);
    return NULL;
}

static void
take_with(struct rig *rig, struct helper *helper)
{
    rig->options.errands = (struct errand_port){.run = helper_run, .context = helper};
    rig_take(rig);
    shard_run_errands(rig->shard);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
}

static void
add_errand(struct rig *rig)
{
    struct shard_step step = {
        .key = {rig->domain_id, "wf", ""}, .needs_run = true, .decide = decide_errand};
    EXPECT_OK(shard_step(rig->shard, &step, rig->arena));
}

void
case_work_elsewhere_is_tried_again_until_it_is_done(struct rig *rig)
{
    struct helper helper = {.failures_left = 3};
    take_with(rig, &helper);
    add_errand(rig);
    rig_wait(helper.calls == 1);
    EXPECT(!helper.was_repeat);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 2); /* with the decision's */
    rig_wait(helper.calls == 4);
    EXPECT(helper.was_repeat);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1);
    rig_sleep(NS_PER_S);
    EXPECT_EQ(helper.calls, 4);
}

void
case_work_elsewhere_is_begun_when_its_row_is_durable(struct rig *rig)
{
    struct helper helper = {.base = rig->base};
    take_with(rig, &helper);
    rig_sleep(5 * NS_PER_MS);
    case_slow(rig, 20 * NS_PER_MS);
    size_t rows = memory_base_rows(rig->base);
    add_errand(rig);
    rig_wait(helper.calls == 1);
    EXPECT(helper.rows > rows);
}

void
case_work_elsewhere_goes_on_in_portions(struct rig *rig)
{
    struct helper helper = {.portions = 3};
    take_with(rig, &helper);
    add_errand(rig);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1);
    EXPECT_EQ(helper.calls, 4);
    EXPECT_EQ(helper.cursor, 3);
}

void
case_work_elsewhere_is_begun_again_by_the_next_owner(struct rig *rig)
{
    struct helper helper = {.failures_left = 1000000};
    take_with(rig, &helper);
    add_errand(rig);
    rig_wait(helper.calls >= 2);
    rig_restart(rig);
    unsigned calls = helper.calls;
    rig_sleep(100 * NS_PER_MS);
    EXPECT_EQ(helper.calls, calls); /* nobody has said that others can be asked */
    helper.failures_left = 0;
    shard_run_errands(rig->shard);
    rig_wait(helper.calls == calls + 1);
    EXPECT(helper.was_repeat);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1);
}

void
case_work_elsewhere_is_bounded_and_is_stopped(struct rig *rig)
{
    struct helper helper = {.takes = 20 * NS_PER_MS};
    take_with(rig, &helper);
    shard_stop_errands(rig->shard);
    for (int i = 0; i < MANY; i++)
        add_errand(rig);
    EXPECT_EQ(helper.calls, 0);
    shard_run_errands(rig->shard);
    rig_wait(helper.calls > 0);
    shard_stop_errands(rig->shard); /* waits for those that are under way */
    EXPECT_EQ(helper.running, 0);
    unsigned calls = helper.calls;
    rig_sleep(100 * NS_PER_MS);
    EXPECT_EQ(helper.calls, calls);
    shard_run_errands(rig->shard);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 1);
    EXPECT_EQ(helper.calls, MANY);
    EXPECT_EQ(helper.running_max, 64);
}
