/* cases_owner.c - owning: taken, overtaken, taken again. */
#include "domain/samples.h"
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

static uint64_t
stored_guard(struct rig *rig)
{
    uint64_t guard;
    EXPECT_OK(store_guard(rig->store, PARTITION_OF_SHARD(rig->options.number), rig->arena, &guard));
    return guard;
}

void
case_overtake(struct rig *rig)
{
    struct partition partition = PARTITION_OF_SHARD(rig->options.number);
    uint64_t guard = stored_guard(rig);
    struct batch *batch = batch_new(rig->arena, partition, guard + 1);
    EXPECT_OK(store_commit(rig->store, batch, guard, rig->arena));
}

void
case_an_overtaken_owner_is_fenced_and_reads_afresh(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    uint64_t before = shard_range_id(rig->shard);
    struct shard *old = rig->shard;

    rig_take(rig); /* another owner, as if on another host */
    struct shard *other = rig->shard;
    EXPECT_EQ(shard_range_id(other), before + 1);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));

    rig->shard = old; /* has not heard of it, and has the run in memory without the signal */
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT(!shard_is_owned(old) && shard_range_id(old) == 0);
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena)); /* the next call takes it */
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 5);
    EXPECT_EQ(shard_range_id(old), before + 2);

    rig->shard = other;
    struct rig_run run;
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT_EQ(run.next_event_id, 5);
    shard_close(old);
}

/* The task is a stored one, which names no owner: any host may ask its own shard. This one's copy
 * of the run is from before the decision. */
void
case_a_refusal_of_an_overtaken_owner_is_no_answer(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_complete(rig, rig->tasks.items[0], 50, rig->arena));
    struct shard *old = rig->shard;

    rig_take(rig);
    struct shard *other = rig->shard;
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    rig_wait(rig->tasks.count == 2);
    struct task stored = *rig->tasks.items[1];
    stored.range_id = stored.row = 0;

    rig->shard = old;
    struct error *err = rig_start_decision(rig, &stored, "poll", rig->arena);
    if (err != NULL)
        EXPECT_KIND(err, ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(rig_start_decision(rig, &stored, "poll", rig->arena));
    rig->shard = other;
    shard_close(old);
}

/* To an event that the new owner wrote. */
void
case_an_overtaken_owner_does_not_refuse_a_reset(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    struct shard *old = rig->shard;

    rig_take(rig);
    struct shard *other = rig->shard;
    rig_wait(rig->tasks.count == 2);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[1], "poll", rig->arena));
    EXPECT_OK(rig_complete(rig, rig->tasks.items[1], 50, rig->arena));

    API(ResetWorkflowExecutionRequest) *request =
        message_new(rig->arena, API_TYPE(reset_workflow_execution_request));
    request->workflow_execution = message_new(rig->arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)"wf";
    request->decision_finish_event_id = 4;
    request->request_id = (char *)"reset";
    struct shard_reset reset = {.domain_id = rig->domain_id, .request = request};
    const char *run_id = NULL;
    struct error *err = shard_reset(old, &reset, rig->arena, &run_id);
    if (err != NULL)
        EXPECT_KIND(err, ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(shard_reset(old, &reset, rig->arena, &run_id));
    rig->shard = other;
    shard_close(old);
}

void
case_a_lone_owner_takes_its_shard_again(struct rig *rig)
{
    rig->options.is_alone = true;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    uint64_t before = shard_range_id(rig->shard);
    case_overtake(rig);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_SHARD_OWNERSHIP_LOST);
    rig_wait(shard_is_owned(rig->shard)); /* nobody calls */
    EXPECT_EQ(shard_range_id(rig->shard), before + 2);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4);
}

void
case_a_range_is_renewed_before_it_is_used_up(struct rig *rig)
{
    rig_take(rig);
    uint64_t before = shard_range_id(rig->shard);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    struct tenure *tenure = rig->shard->tenure;
    tenure->ids.next = tenure->ids.end - RANGE_SPARE + 5;
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT_EQ(shard_range_id(rig->shard), before + 1);
    EXPECT_EQ(stored_guard(rig), before + 1);
    EXPECT(tenure->ids.next >> RANGE_BITS == before + 1);
    EXPECT_EQ(rig->tasks.items[0]->range_id, before); /* of the same owner: still good */
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    rig_restart(rig);
    EXPECT_EQ(shard_range_id(rig->shard), before + 2);
}

void
case_everything_is_there_after_a_restart(struct rig *rig)
{
    rig_take(rig);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(
            rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 20);
    for (int i = 0; i < 20; i += 2)
        EXPECT_OK(rig_start_decision(rig, rig->tasks.items[i], "poll", rig->arena));
    rig_restart(rig);
    rig_wait(rig->tasks.count == 10); /* those that were not started */
    rig_sleep(5 * NS_PER_MS);
    EXPECT_EQ(rig->tasks.count, 10);
    for (int i = 0; i < 20; i++) {
        struct rig_run run;
        EXPECT_OK(rig_look(rig, arena_format(rig->arena, "wf-%d", i), rig->arena, &run));
        EXPECT_EQ(run.next_event_id, i % 2 == 0 ? 4 : 3);
        EXPECT(run.alarm_time != 0);
    }
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 20);
    EXPECT_EQ(map64_count(rig->shard->tenure->alarms.by_row), 20);
}

/* The domain is as registered in a cluster where it is not active. */
void
case_a_domain_that_is_active_elsewhere_is_refused(struct rig *rig)
{
    struct domains_options options = {
        .store = rig->store, .group = sample_group(EAST), .dynamic = rig->dynamic};
    domains_close(rig->domains);
    EXPECT_OK(domains_open(&options, rig->arena, &rig->domains));
    API(RegisterDomainRequest) *request = sample_register(WEST, NULL, rig->arena);
    request->name = (char *)"elsewhere";
    EXPECT_OK(domains_register(rig->domains, request, rig->arena, NULL));
    rig->options.domains = rig->domains;
    rig->options.group = options.group;
    rig->domain_id = arena_text(rig->arena, domains_find_name(rig->domains, "elsewhere")->id);
    rig_take(rig);
    EXPECT_KIND(rig_start(rig, "wf", "one", 100, rig->arena, NULL), ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_EQ(rig_rows(rig, ROW_RUN), 0);
    rig->domain_id = "11111111-2222-4333-8444-555555555555";
    EXPECT_KIND(rig_start(rig, "wf", "one", 100, rig->arena, NULL), ERR_ENTITY_NOT_EXISTS);
}
