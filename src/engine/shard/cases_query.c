/* cases_query.c - queries that wait for a decision. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
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
keep(struct rig *rig, struct questioner *questioner, const char *id)
{
    struct rig_run run;
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    API(WorkflowQuery) *question = message_new(rig->arena, API_TYPE(workflow_query));
    question->query_type = "state";
    *questioner = (struct questioner){.query.id = id, .query.fire = questioner_fire};
    questioner->query.bytes = message_encode(rig->arena, &question->base);
    list_init(&questioner->query.node);
    struct run_key key = {rig->domain_id, "wf", run.run_id};
    shard_keep_query(rig->shard, &key, &questioner->query);
}

/* What rides on the decision of the current run now. */
static size_t
riding(struct rig *rig, const char *id)
{
    struct rig_run run;
    struct decision_start start = {0};
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    struct run_key key = {rig->domain_id, "wf", run.run_id};
    struct workflow *workflow = workflow_find(rig->shard->tenure, &key, rig->arena);
    shard_ride_queries(rig->shard, workflow_find_run(workflow, run.run_id)->run, rig->arena,
                       &start);
    for (size_t i = 0; i < start.query_count; i++)
        EXPECT_TEXT(start.queries[i]->value->query_type, "state");
    if (start.query_count == 1)
        EXPECT_TEXT(start.queries[0]->key, id);
    return start.query_count;
}

void
case_a_query_rides_on_a_decision_that_starts_after_it(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(dynamic_load(rig->dynamic, slice_text("history.MaxBufferedQueryCount: [{value: 2}]"),
                           "test", rig->arena));
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct questioner before, after, third;
    keep(rig, &before, "before");
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    keep(rig, &after, "after");
    EXPECT_EQ(riding(rig, "before"), 1); /* the start that is asked for again has no other */
    keep(rig, &third, "third");
    EXPECT(third.fired == 1 && third.end == QUERY_FULL);

    const char *run_id = rig->tasks.items[0]->run_id;
    EXPECT(shard_take_query(rig->shard, run_id, "before") == &before.query);
    EXPECT(shard_take_query(rig->shard, run_id, "before") == NULL && before.fired == 0);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena)); /* buffered: another decision follows */
    EXPECT_OK(rig_complete(rig, rig->tasks.items[0], 50, rig->arena));
    EXPECT_EQ(after.fired, 0);
    rig_wait(rig->tasks.count == 2);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[1], "poll", rig->arena));
    EXPECT_EQ(riding(rig, "after"), 1);
    EXPECT_OK(rig_complete(rig, rig->tasks.items[1], 0, rig->arena));
    EXPECT(after.fired == 1 && after.end == QUERY_FREE);
    EXPECT_EQ(map_count(rig->shard->tenure->queried), 0);
    keep(rig, &third, "third"); /* nothing follows */
    EXPECT(third.fired == 1 && third.end == QUERY_FREE);
}

static void
complete_one(void *argument)
{
    struct rig *rig = argument;
    EXPECT_OK(rig_complete(rig, rig->tasks.items[0], 50, rig->arena));
}

void
case_a_query_is_set_free_when_the_end_of_the_decision_is_durable(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    struct questioner questioner;
    keep(rig, &questioner, "one");
    int64_t before = rig_stored_next_event_id(rig, "wf");
    case_slow(rig, 20 * NS_PER_MS);
    rig_spawn(rig, complete_one, rig);
    while (questioner.fired == 0)
        rig_sleep(NS_PER_MS / 4);
    EXPECT(rig_stored_next_event_id(rig, "wf") > before);
    EXPECT_EQ(questioner.end, QUERY_FREE);
    rig_join(rig);
}

void
case_a_query_is_set_free_when_the_run_closes_or_the_shard_is_lost(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct questioner one, two, back;
    keep(rig, &one, "one");
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    EXPECT(one.fired == 1 && one.end == QUERY_FREE);
    EXPECT_OK(rig_start(rig, "wf", "two", 100, rig->arena, NULL));
    keep(rig, &back, "back");
    shard_drop_query(rig->shard, &back.query);
    shard_drop_query(rig->shard, &back.query);
    EXPECT_EQ(map_count(rig->shard->tenure->queried), 0);
    keep(rig, &two, "two");
    case_overtake(rig);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT(two.fired == 1 && two.end == QUERY_FREE && back.fired == 0);
    struct run_key key = {rig->domain_id, "wf", "some-run"};
    shard_keep_query(rig->shard, &key, &two.query); /* nobody owns it */
    EXPECT(two.fired == 2 && two.end == QUERY_FREE);
}

static void
count_look(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    ++*(int *)context;
}

void
case_a_sure_look_notices_that_its_owner_was_overtaken(struct rig *rig)
{
    int looks = 0;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct run_key key = {rig->domain_id, "wf", ""};
    uint64_t range_id = shard_range_id(rig->shard);
    EXPECT_OK(shard_look_surely(rig->shard, &key, count_look, &looks, rig->arena));
    EXPECT(looks == 1 && shard_range_id(rig->shard) == range_id);
    case_overtake(rig);
    EXPECT_OK(shard_look(rig->shard, &key, count_look, &looks, rig->arena));
    EXPECT(looks == 2 && shard_range_id(rig->shard) == range_id); /* it does not know yet */
    EXPECT_OK(shard_look_surely(rig->shard, &key, count_look, &looks, rig->arena));
    EXPECT(looks == 4 && shard_range_id(rig->shard) > range_id); /* taken again, looked again */
}
