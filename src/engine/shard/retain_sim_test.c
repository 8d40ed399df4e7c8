/* retain_sim_test.c - closed runs go after their retention, all of them and nothing else. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "engine/test/shard_simulation.h"
#include "wire/message.h"

#define HOUR (3600 * NS_PER_S)
#define DAY  (24 * HOUR)

static const enum row_kind kinds_of_runs[] = {ROW_CURRENT, ROW_RUN,      ROW_PENDING,
                                              ROW_HISTORY, ROW_TRANSFER, ROW_TIMER};

static void
expect_nothing_left(struct shard_fixture *fixture)
{
    for (size_t i = 0; i < array_length(kinds_of_runs); i++)
        EXPECT_EQ(shard_fixture_rows(fixture, kinds_of_runs[i]), 0);
}

/* Time passes in steps: the fixture's deadline for one sleep is its own. */
static void
pass(int64_t nanoseconds)
{
    for (; nanoseconds > 0; nanoseconds -= HOUR)
        shard_fixture_sleep(nanoseconds < HOUR ? nanoseconds : HOUR);
}

static int64_t
retention_of(struct shard_fixture *fixture)
{
    return domains_find_id(fixture->domains, fixture->domain_id)
               ->record->domain->workflow_execution_retention_period->seconds *
           NS_PER_S;
}

/* One of them would have timed out in a hundred days: nothing waits for that any more. */
SHARD_TEST(retain, a_closed_run_goes_after_its_retention_with_all_its_rows, "run_deleted", 40 * DAY,
           "A-256", "A-258", "A-260")
{
    int64_t retention = retention_of(fixture);
    struct shard_fixture_run run;
    shard_fixture_take(fixture);
    for (int i = 0; i < 20; i++) {
        const char *id = arena_format(fixture->arena, "wf-%d", i);
        EXPECT_OK(shard_fixture_start(fixture, id, "one", 1000, fixture->arena, NULL));
        EXPECT_OK(shard_fixture_signal(fixture, id, fixture->arena));
        EXPECT_OK(shard_fixture_terminate(fixture, id, fixture->arena));
    }
    EXPECT_OK(shard_fixture_start(fixture, "open", "one", 100 * 86400, fixture->arena, NULL));
    pass(retention - HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 21); /* not before its time */
    EXPECT_OK(shard_fixture_look(fixture, "wf-3", fixture->arena, &run));
    shard_fixture_restart(fixture); /* by its next owner */
    pass(2 * HOUR + HOUR / 2);
    EXPECT_KIND(shard_fixture_look(fixture, "wf-3", fixture->arena, &run), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf-3", fixture->arena), ERR_ENTITY_NOT_EXISTS);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_CURRENT), 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 1);
    EXPECT_OK(shard_fixture_look(fixture, "open", fixture->arena, &run));
    EXPECT_OK(shard_fixture_start(fixture, "wf-3", "two", 1000, fixture->arena,
                                  NULL)); /* the id is free */
    EXPECT_OK(shard_fixture_terminate(fixture, "wf-3", fixture->arena));
    EXPECT_OK(shard_fixture_terminate(fixture, "open", fixture->arena));
    pass(retention + 2 * HOUR);
    expect_nothing_left(fixture);
}

/* The id was used again meanwhile: its current run stays. */
SHARD_TEST(retain, the_run_that_has_the_id_now_is_left_alone, "run_deleted", 40 * DAY, "A-256")
{
    struct shard_fixture_run run;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    EXPECT_OK(shard_fixture_start(fixture, "wf", "two", 100 * 86400, fixture->arena, NULL));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 2);
    pass(retention_of(fixture) + 2 * HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_CURRENT), 1);
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT(run.is_open);
}

/* --- children that are still to be ended ---- */

/* Their domain is active elsewhere. */
struct remote_domain {
    bool is_back;
};

static struct error *
end_children(void *context, struct cross_task *cross_task, struct arena *arena)
{
    const struct remote_domain *remote_domain = context;
    return remote_domain->is_back ? NULL : error_new(arena, ERR_DOMAIN_NOT_ACTIVE, "elsewhere");
}

/* A run that waits for the end of a child is closed: in its history is no event of one, so the row
 * is made by hand. */
static struct error *
decide_close(void *context, struct step *step)
{
    STORED(TransferRow) *transfer =
        STORED_NEW(step->arena, transfer_row,
                   .type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_END_CHILDREN);
    mutation_core(step->mutation)->children_row = mutation_add_transfer(step->mutation, transfer);
    return NULL;
}

static void
close_parent(struct shard_fixture *fixture, const char *workflow_id)
{
    EXPECT_OK(shard_fixture_start(fixture, workflow_id, "one", 1000, fixture->arena, NULL));
    struct shard_step step = {
        .key = {fixture->domain_id, workflow_id, ""}, .needs_run = true, .decide = decide_close};
    EXPECT_OK(shard_step(fixture->shard, &step, fixture->arena));
    EXPECT_OK(shard_fixture_terminate(fixture, workflow_id, fixture->arena));
}

SHARD_TEST(retain, a_run_stays_until_its_children_were_ended, "deletion_waits_for_children",
           40 * DAY)
{
    struct remote_domain remote_domain = {.is_back = false};
    fixture->options.cross_tasks =
        (struct cross_task_port){.run = end_children, .context = &remote_domain};
    fixture->options.transfers_max = 8;
    shard_fixture_take(fixture);
    shard_run_cross_tasks(fixture->shard);
    for (int i = 0; i < 12; i++) /* most of the rows are deferred, or in the store only */
        close_parent(fixture, arena_format(fixture->arena, "parent-%d", i));
    EXPECT_OK(shard_fixture_start(fixture, "other", "one", 1000, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_terminate(fixture, "other", fixture->arena));
    shard_fixture_sleep(5 * NS_PER_S);
    shard_stop_cross_tasks(fixture->shard); /* days of tries in vain would tell no more */
    pass(retention_of(fixture) + 2 * HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 12);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 12);
    shard_fixture_restart(fixture);
    pass(5 * HOUR);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 12);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 12);
    remote_domain.is_back = true;
    shard_run_cross_tasks(fixture->shard);
    pass(3 * HOUR);
    expect_nothing_left(fixture);
}

static void
look_at_nothing(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
}

/* By its own name, not as the current one. */
static bool
is_seen(struct shard_fixture *fixture, const char *workflow_id, const char *run_id)
{
    struct run_key key = {fixture->domain_id, workflow_id, run_id};
    struct error *err = shard_look(fixture->shard, &key, look_at_nothing, NULL, fixture->arena);
    EXPECT(err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS);
    return err == NULL;
}

/* A run of several portions, whose owner changes again and again while it goes. */
SHARD_TEST(retain, a_long_run_goes_in_portions_and_nobody_sees_half_of_it, "run_deleted_in_part",
           40 * DAY, "A-256")
{
    struct shard_fixture_run run;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "long", "one", 100 * 86400, fixture->arena, NULL));
    for (int i = 0; i < 2500; i++)
        EXPECT_OK(shard_fixture_signal(fixture, "long", fixture->arena));
    EXPECT_OK(shard_fixture_terminate(fixture, "long", fixture->arena));
    EXPECT_OK(shard_fixture_look(fixture, "long", fixture->arena, &run));
    EXPECT(is_seen(fixture, "long", run.run_id));
    shard_fixture_sleep(run.alarm_time - clock_wall() - NS_PER_S);
    case_slow(fixture, 900 * NS_PER_MS);
    for (int i = 0; i < 20 && shard_fixture_rows(fixture, ROW_RUN) > 0; i++) {
        shard_fixture_sleep(NS_PER_S);
        shard_fixture_restart(fixture);
        if (shard_fixture_rows(fixture, ROW_CURRENT) ==
            0) /* it is going: nobody sees the half of it */
            EXPECT(!is_seen(fixture, "long", run.run_id));
    }
    pass(HOUR);
    expect_nothing_left(fixture);
}
