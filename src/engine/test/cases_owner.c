/* cases_owner.c - owning: taken, overtaken, taken again. */
#include "domain/test/samples.h"
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "route/test_answers.h"
#include "wire/message.h"

static uint64_t
stored_guard(struct shard_fixture *fixture)
{
    uint64_t guard;
    EXPECT_OK(store_guard(fixture->store, PARTITION_OF_SHARD(fixture->options.number),
                          fixture->arena, &guard));
    return guard;
}

void
case_overtake(struct shard_fixture *fixture)
{
    struct partition partition = PARTITION_OF_SHARD(fixture->options.number);
    uint64_t guard = stored_guard(fixture);
    struct batch *batch = batch_new(fixture->arena, partition, guard + 1);
    EXPECT_OK(store_commit(fixture->store, batch, guard, fixture->arena));
}

void
case_an_overtaken_owner_is_fenced_and_reads_afresh(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    uint64_t before = shard_range_id(fixture->shard);
    struct shard *old = fixture->shard;

    shard_fixture_take(fixture); /* another owner, as if on another host */
    struct shard *other = fixture->shard;
    EXPECT_EQ(shard_range_id(other), before + 1);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));

    fixture->shard = old; /* has not heard of it, and has the run in memory without the signal */
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT(!shard_is_owned(old) && shard_range_id(old) == 0);
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 4);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena)); /* the next call takes it */
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 5);
    EXPECT_EQ(shard_range_id(old), before + 2);

    fixture->shard = other;
    struct shard_fixture_run run;
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT_EQ(run.next_event_id, 5);
    shard_close(old);
}

/* The task is a stored one, which names no owner: any host may ask its own shard. This one's copy
 * of the run is from before the decision. */
void
case_a_refusal_of_an_overtaken_owner_is_no_answer(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[0], 50, fixture->arena));
    struct shard *old = fixture->shard;

    shard_fixture_take(fixture);
    struct shard *other = fixture->shard;
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    shard_fixture_wait(fixture->tasks.count == 2);
    struct task stored = *fixture->tasks.items[1];
    stored.range_id = stored.row = 0;

    fixture->shard = old;
    struct error *err = shard_fixture_start_decision(fixture, &stored, "poll", fixture->arena);
    if (err != NULL)
        EXPECT_KIND(err, ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(shard_fixture_start_decision(fixture, &stored, "poll", fixture->arena));
    fixture->shard = other;
    shard_close(old);
}

/* To an event that the new owner wrote. */
void
case_an_overtaken_owner_does_not_refuse_a_reset(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    struct shard *old = fixture->shard;

    shard_fixture_take(fixture);
    struct shard *other = fixture->shard;
    shard_fixture_wait(fixture->tasks.count == 2);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[1], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[1], 50, fixture->arena));

    API(ResetWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, reset_workflow_execution_request,
        .workflow_execution = API_NEW(fixture->arena, workflow_execution, .workflow_id = "wf"),
        .decision_finish_event_id = 4, .request_id = "reset");
    struct shard_reset reset = {.domain_id = fixture->domain_id, .request = request};
    const char *run_id = NULL;
    struct error *err = shard_reset(old, &reset, fixture->arena, &run_id);
    if (err != NULL)
        EXPECT_KIND(err, ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(shard_reset(old, &reset, fixture->arena, &run_id));
    fixture->shard = other;
    shard_close(old);
}

void
case_a_lone_owner_takes_its_shard_again(struct shard_fixture *fixture)
{
    fixture->options.is_alone = true;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    uint64_t before = shard_range_id(fixture->shard);
    case_overtake(fixture);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SHARD_OWNERSHIP_LOST);
    shard_fixture_wait(shard_is_owned(fixture->shard)); /* nobody calls */
    EXPECT_EQ(shard_range_id(fixture->shard), before + 2);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 4);
}

/* An attempt that failed puts the next one off; one that went well ends that. */
void
case_a_shard_that_was_taken_at_last_may_be_taken_again_at_once(struct shard_fixture *fixture)
{
    fixture->shard = shard_new(&fixture->options);
    fixture->shard->failures = 1; /* as if one had failed */
    fixture->shard->take_time = clock_monotonic() + 5 * NS_PER_S;
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_UNAVAILABLE);
    EXPECT_ANSWER(shard_take(fixture->shard, fixture->arena));
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    case_overtake(fixture);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_ANSWER(shard_fixture_signal(fixture, "wf", fixture->arena));
}

void
case_a_range_is_renewed_before_it_is_used_up(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    uint64_t before = shard_range_id(fixture->shard);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    struct tenure *tenure = fixture->shard->tenure;
    tenure->ids.next = tenure->ids.end - RANGE_SPARE + 5;
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT_EQ(shard_range_id(fixture->shard), before + 1);
    EXPECT_EQ(stored_guard(fixture), before + 1);
    EXPECT(tenure->ids.next >> RANGE_BITS == before + 1);
    EXPECT_EQ(fixture->tasks.items[0]->range_id, before); /* of the same owner: still good */
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    shard_fixture_restart(fixture);
    EXPECT_EQ(shard_range_id(fixture->shard), before + 2);
}

void
case_everything_is_there_after_a_restart(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 100,
                                      fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 20);
    for (int i = 0; i < 20; i += 2)
        EXPECT_OK(
            shard_fixture_start_decision(fixture, fixture->tasks.items[i], "poll", fixture->arena));
    shard_fixture_restart(fixture);
    shard_fixture_wait(fixture->tasks.count == 10); /* those that were not started */
    shard_fixture_sleep(5 * NS_PER_MS);
    EXPECT_EQ(fixture->tasks.count, 10);
    for (int i = 0; i < 20; i++) {
        struct shard_fixture_run run;
        EXPECT_OK(shard_fixture_look(fixture, arena_format(fixture->arena, "wf-%d", i),
                                     fixture->arena, &run));
        EXPECT_EQ(run.next_event_id, i % 2 == 0 ? 4 : 3);
        EXPECT(run.alarm_time != 0);
    }
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 20);
    EXPECT_EQ(map64_count(fixture->shard->tenure->wakeups.by_row), 20);
}

/* The domain is as registered in a cluster where it is not active. */
void
case_a_domain_that_is_active_elsewhere_is_refused(struct shard_fixture *fixture)
{
    struct domains_options options = {
        .store = fixture->store, .group = sample_group(EAST), .dynamic = fixture->dynamic};
    domains_close(fixture->domains);
    EXPECT_OK(domains_open(&options, fixture->arena, &fixture->domains));
    API(RegisterDomainRequest) *request = sample_register(WEST, NULL, fixture->arena);
    request->name = "elsewhere";
    EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
    fixture->options.domains = fixture->domains;
    fixture->options.group = options.group;
    fixture->domain_id =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "elsewhere")->id);
    shard_fixture_take(fixture);
    EXPECT_KIND(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL),
                ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_RUN), 0);
    fixture->domain_id = "11111111-2222-4333-8444-555555555555";
    EXPECT_KIND(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL),
                ERR_ENTITY_NOT_EXISTS);
}
