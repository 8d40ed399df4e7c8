/* retain_sim_test.c - closed runs go after their retention, all of them and nothing else. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "engine/shard/trial.h"
#include "wire/message.h"

#define HOUR (3600 * NS_PER_S)
#define DAY  (24 * HOUR)

static const enum row_kind kinds_of_runs[] = {ROW_CURRENT, ROW_RUN,      ROW_PENDING,
                                              ROW_HISTORY, ROW_TRANSFER, ROW_TIMER};

static void
expect_nothing_left(struct rig *rig)
{
    for (size_t i = 0; i < array_length(kinds_of_runs); i++)
        EXPECT_EQ(rig_rows(rig, kinds_of_runs[i]), 0);
}

/* Time passes in steps: the rig's deadline for one sleep is its own. */
static void
pass(int64_t nanoseconds)
{
    for (; nanoseconds > 0; nanoseconds -= HOUR)
        rig_sleep(nanoseconds < HOUR ? nanoseconds : HOUR);
}

static int64_t
retention_of(struct rig *rig)
{
    return domains_find_id(rig->domains, rig->domain_id)
               ->record->domain->workflow_execution_retention_period->seconds *
           NS_PER_S;
}

static void
delete_in_time(struct rig *rig)
{
    int64_t retention = retention_of(rig);
    struct rig_run run;
    rig_take(rig);
    for (int i = 0; i < 20; i++) {
        const char *id = arena_format(rig->arena, "wf-%d", i);
        EXPECT_OK(rig_start(rig, id, "one", 1000, rig->arena, NULL));
        EXPECT_OK(rig_signal(rig, id, rig->arena));
        EXPECT_OK(rig_terminate(rig, id, rig->arena));
    }
    EXPECT_OK(rig_start(rig, "open", "one", 100 * 86400, rig->arena, NULL));
    pass(retention - HOUR);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 21); /* not before its time */
    EXPECT_OK(rig_look(rig, "wf-3", rig->arena, &run));
    rig_restart(rig); /* whoever owns it then */
    pass(2 * HOUR + HOUR / 2);
    EXPECT_KIND(rig_look(rig, "wf-3", rig->arena, &run), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(rig_signal(rig, "wf-3", rig->arena), ERR_ENTITY_NOT_EXISTS);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 1);
    EXPECT_EQ(rig_rows(rig, ROW_CURRENT), 1);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 1);
    EXPECT_OK(rig_look(rig, "open", rig->arena, &run));
    EXPECT_OK(rig_start(rig, "wf-3", "two", 1000, rig->arena, NULL)); /* the id is free */
    EXPECT_OK(rig_terminate(rig, "wf-3", rig->arena));
    EXPECT_OK(rig_terminate(rig, "open", rig->arena));
    pass(retention + 2 * HOUR);
    expect_nothing_left(rig);
}

/* One of them would have timed out in a hundred days: nothing waits for that any more. */
TEST(retain, a_closed_run_goes_after_its_retention_with_all_its_rows, "A-256", "A-258", "A-260")
{
    trial_run(delete_in_time, .mark = "run_deleted", .limit = 40 * DAY);
}

/* The id was used again meanwhile: its current run stays. */
static void
keep_successor(struct rig *rig)
{
    struct rig_run run;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, NULL));
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    EXPECT_OK(rig_start(rig, "wf", "two", 100 * 86400, rig->arena, NULL));
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 2);
    pass(retention_of(rig) + 2 * HOUR);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 1);
    EXPECT_EQ(rig_rows(rig, ROW_CURRENT), 1);
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT(run.is_open);
}

TEST(retain, the_run_that_has_the_id_now_is_left_alone, "A-256")
{
    trial_run(keep_successor, .mark = "run_deleted", .limit = 40 * DAY);
}

/* --- children that are still to be ended ---- */

/* Their domain is active elsewhere. */
struct elsewhere {
    bool is_back;
};

static struct error *
end_children(void *context, struct errand *errand, struct arena *arena)
{
    const struct elsewhere *elsewhere = context;
    return elsewhere->is_back ? NULL : error_new(arena, ERR_DOMAIN_NOT_ACTIVE, "elsewhere");
}

/* A run that waits for the end of a child is closed: in its history is no event of one, so the row
 * is made by hand. */
static struct error *
decide_close(void *context, struct step *step)
{
    STORED(TransferRow) *transfer = message_new(step->arena, STORED_TYPE(transfer_row));
    transfer->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_END_CHILDREN;
    mutation_core(step->mutation)->children_row = mutation_add_transfer(step->mutation, transfer);
    return NULL;
}

static void
close_parent(struct rig *rig, const char *workflow_id)
{
    EXPECT_OK(rig_start(rig, workflow_id, "one", 1000, rig->arena, NULL));
    struct shard_step step = {
        .key = {rig->domain_id, workflow_id, ""}, .needs_run = true, .decide = decide_close};
    EXPECT_OK(shard_step(rig->shard, &step, rig->arena));
    EXPECT_OK(rig_terminate(rig, workflow_id, rig->arena));
}

static void
keep_parent(struct rig *rig)
{
    struct elsewhere elsewhere = {.is_back = false};
    rig->options.errands = (struct errand_port){.run = end_children, .context = &elsewhere};
    rig->options.transfers_max = 8;
    rig_take(rig);
    shard_run_errands(rig->shard);
    for (int i = 0; i < 12; i++) /* most of the rows are parked, or in the store only */
        close_parent(rig, arena_format(rig->arena, "parent-%d", i));
    EXPECT_OK(rig_start(rig, "other", "one", 1000, rig->arena, NULL));
    EXPECT_OK(rig_terminate(rig, "other", rig->arena));
    rig_sleep(5 * NS_PER_S);
    shard_stop_errands(rig->shard); /* days of tries in vain would tell no more */
    pass(retention_of(rig) + 2 * HOUR);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 12);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 12);
    rig_restart(rig);
    pass(5 * HOUR);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 12);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 12);
    elsewhere.is_back = true;
    shard_run_errands(rig->shard);
    pass(3 * HOUR);
    expect_nothing_left(rig);
}

TEST(retain, a_run_stays_until_its_children_were_ended)
{
    trial_run(keep_parent, .mark = "deletion_waits_for_children", .limit = 40 * DAY);
}

static void
look_at_nothing(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
}

/* By its own name, not as the current one. */
static bool
is_seen(struct rig *rig, const char *workflow_id, const char *run_id)
{
    struct run_key key = {rig->domain_id, workflow_id, run_id};
    struct error *err = shard_look(rig->shard, &key, look_at_nothing, NULL, rig->arena);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    return err == NULL;
}

/* A run of several portions, whose owner changes again and again while it goes. */
static void
delete_in_portions(struct rig *rig)
{
    struct rig_run run;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "long", "one", 100 * 86400, rig->arena, NULL));
    for (int i = 0; i < 2500; i++)
        EXPECT_OK(rig_signal(rig, "long", rig->arena));
    EXPECT_OK(rig_terminate(rig, "long", rig->arena));
    EXPECT_OK(rig_look(rig, "long", rig->arena, &run));
    EXPECT(is_seen(rig, "long", run.run_id));
    rig_sleep(run.alarm_time - clock_wall() - NS_PER_S);
    case_slow(rig, 900 * NS_PER_MS);
    for (int i = 0; i < 20 && rig_rows(rig, ROW_RUN) > 0; i++) {
        rig_sleep(NS_PER_S);
        rig_restart(rig);
        if (rig_rows(rig, ROW_CURRENT) == 0) /* it is going: nobody sees the half of it */
            EXPECT(!is_seen(rig, "long", run.run_id));
    }
    pass(HOUR);
    expect_nothing_left(rig);
}

TEST(retain, a_long_run_goes_in_portions_and_nobody_sees_half_of_it, "A-256")
{
    trial_run(delete_in_portions, .mark = "run_deleted_in_part", .limit = 40 * DAY);
}
