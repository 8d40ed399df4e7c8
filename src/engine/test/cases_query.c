/* cases_query.c - queries that wait for a decision. */
#include "engine/shard/inside.h"
#include "engine/shard/workflows.h"
#include "engine/test/shard_cases.h"
#include "wire/message.h"

struct questioner {
    struct run_query query;
    int fired;
    enum query_end end;
};

static void
questioner_fire(struct run_query *query, enum query_end end, const API(WorkflowQueryResult) *result)
{
    struct questioner *questioner = container_of(query, struct questioner, query);
    EXPECT(list_is_empty(&query->node) && query->queried == NULL && result == NULL);
    questioner->fired++;
    questioner->end = end;
}

/* A query of the current run of "wf", which must be there. */
static void
keep(struct shard_fixture *fixture, struct questioner *questioner, const char *id)
{
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    API(WorkflowQuery) *question = API_NEW(fixture->arena, workflow_query, .query_type = "state");
    *questioner = (struct questioner){.query.id = id, .query.fire = questioner_fire};
    questioner->query.bytes = message_encode(fixture->arena, &question->base);
    list_init(&questioner->query.node);
    struct run_key key = {fixture->domain_id, "wf", run.run_id};
    shard_keep_query(fixture->shard, &key, &questioner->query);
}

/* What rides on the decision of the current run now. */
static size_t
riding(struct shard_fixture *fixture, const char *id)
{
    struct shard_fixture_run run;
    struct decision_start start = {0};
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    struct run_key key = {fixture->domain_id, "wf", run.run_id};
    struct workflow *workflow = workflow_find(fixture->shard->tenure, &key, fixture->arena);
    shard_ride_queries(fixture->shard, workflow_find_run(workflow, run.run_id)->run, fixture->arena,
                       &start);
    for (size_t i = 0; i < start.query_count; i++)
        EXPECT_TEXT(start.queries[i]->value->query_type, "state");
    if (start.query_count == 1)
        EXPECT_TEXT(start.queries[0]->key, id);
    return start.query_count;
}

void
case_a_query_rides_on_a_decision_that_starts_after_it(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(dynamic_load(fixture->dynamic,
                           slice_text("history.MaxBufferedQueryCount: [{value: 2}]"), "test",
                           fixture->arena));
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct questioner before, after, third;
    keep(fixture, &before, "before");
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    keep(fixture, &after, "after");
    EXPECT_EQ(riding(fixture, "before"), 1); /* the start that is asked for again has no other */
    keep(fixture, &third, "third");
    EXPECT(third.fired == 1 && third.end == QUERY_FULL);

    const char *run_id = fixture->tasks.items[0]->run_id;
    EXPECT(shard_take_query(fixture->shard, run_id, "before") == &before.query);
    EXPECT(shard_take_query(fixture->shard, run_id, "before") == NULL && before.fired == 0);
    EXPECT_OK(shard_fixture_signal(fixture, "wf",
                                   fixture->arena)); /* buffered: another decision follows */
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[0], 50, fixture->arena));
    EXPECT_EQ(after.fired, 0);
    shard_fixture_wait(fixture->tasks.count == 2);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[1], "poll", fixture->arena));
    EXPECT_EQ(riding(fixture, "after"), 1);
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[1], 0, fixture->arena));
    EXPECT(after.fired == 1 && after.end == QUERY_FREE);
    EXPECT_EQ(map_count(fixture->shard->tenure->queried), 0);
    keep(fixture, &third, "third"); /* nothing follows */
    EXPECT(third.fired == 1 && third.end == QUERY_FREE);
}

static void
complete_one(void *argument)
{
    struct shard_fixture *fixture = argument;
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[0], 50, fixture->arena));
}

void
case_a_query_is_set_free_when_the_end_of_the_decision_is_durable(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    struct questioner questioner;
    keep(fixture, &questioner, "one");
    int64_t before = shard_fixture_stored_next_event_id(fixture, "wf");
    case_slow(fixture, 20 * NS_PER_MS);
    shard_fixture_spawn(fixture, complete_one, fixture);
    while (questioner.fired == 0)
        shard_fixture_sleep(NS_PER_MS / 4);
    EXPECT(shard_fixture_stored_next_event_id(fixture, "wf") > before);
    EXPECT_EQ(questioner.end, QUERY_FREE);
    shard_fixture_join(fixture);
}

void
case_a_query_is_set_free_when_the_run_closes_or_the_shard_is_lost(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct questioner one, two, back;
    keep(fixture, &one, "one");
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    EXPECT(one.fired == 1 && one.end == QUERY_FREE);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "two", 100, fixture->arena, NULL));
    keep(fixture, &back, "back");
    shard_drop_query(fixture->shard, &back.query);
    shard_drop_query(fixture->shard, &back.query);
    EXPECT_EQ(map_count(fixture->shard->tenure->queried), 0);
    keep(fixture, &two, "two");
    case_overtake(fixture);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT(two.fired == 1 && two.end == QUERY_FREE && back.fired == 0);
    struct run_key key = {fixture->domain_id, "wf", "some-run"};
    shard_keep_query(fixture->shard, &key, &two.query); /* nobody owns it */
    EXPECT(two.fired == 2 && two.end == QUERY_FREE);
}

static void
count_look(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    ++*(int *)context;
}

void
case_a_sure_look_notices_that_its_owner_was_overtaken(struct shard_fixture *fixture)
{
    int looks = 0;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct run_key key = {fixture->domain_id, "wf", ""};
    uint64_t range_id = shard_range_id(fixture->shard);
    EXPECT_OK(shard_look_surely(fixture->shard, &key, count_look, &looks, fixture->arena));
    EXPECT(looks == 1 && shard_range_id(fixture->shard) == range_id);
    case_overtake(fixture);
    EXPECT_OK(shard_look(fixture->shard, &key, count_look, &looks, fixture->arena));
    EXPECT(looks == 2 && shard_range_id(fixture->shard) == range_id); /* it does not know yet */
    EXPECT_OK(shard_look_surely(fixture->shard, &key, count_look, &looks, fixture->arena));
    EXPECT(looks == 4 && shard_range_id(fixture->shard) > range_id); /* taken again, looked again */
}
