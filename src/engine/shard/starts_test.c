/* starts_test.c - what a worker hears of a start survives the way between owners. */
#include "engine/shard/starts.h"

#include "base/test.h"
#include "engine/test/history_sample.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "wire/message.h"

static struct task_start
send_start(enum task_type type, const struct task_start *start, struct arena *arena)
{
    const struct task_start *read = task_start_decode(task_start_encode(type, start, arena), arena);
    EXPECT(read != NULL);
    return *read;
}

static API(PollForDecisionTaskResponse__QueriesEntry) *
make_query(const char *id, const char *type, struct arena *arena)
{
    API(PollForDecisionTaskResponse__QueriesEntry) *entry =
        message_new(arena, API_TYPE(poll_for_decision_task_response__queries_entry));
    entry->key = (char *)id;
    entry->value = API_NEW(arena, workflow_query, .query_type = (char *)type);
    return entry;
}

ARENA_TEST(starts, a_plain_decision_survives_the_way)
{
    struct history_branch branch = sample_branch('A');
    struct decision_start start = {
        .schedule_id = 1,
        .started_id = 2,
        .previous_started_id = -3,
        .attempt = 4,
        .next_event_id = 5,
        .first_event_id = 6,
        .scheduled_time = 7,
        .started_time = 8,
        .is_sticky = true,
        .history_bytes = 9,
        .workflow_type = API_NEW(arena, workflow_type, .name = "type"),
        .task_list = API_NEW(arena, task_list, .name = "list"),
        .run_id = "run",
        .lineage = history_lineage_root(&branch, arena),
    };
    struct decision_start read =
        send_start(TASK_DECISION, &(struct task_start){.decision = start}, arena).decision;
    EXPECT(read.schedule_id == 1 && read.started_id == 2 && read.previous_started_id == -3);
    EXPECT(read.attempt == 4 && read.next_event_id == 5 && read.first_event_id == 6);
    EXPECT(read.scheduled_time == 7 && read.started_time == 8 && read.is_sticky);
    EXPECT_EQ(read.history_bytes, 9);
    EXPECT_TEXT(read.workflow_type->name, "type");
    EXPECT_TEXT(read.task_list->name, "list");
    EXPECT_TEXT(read.run_id, "run");
    EXPECT_EQ(read.lineage.count, 1);
    EXPECT(read.transient_scheduled == NULL && read.transient_started == NULL);
    EXPECT(read.recent.count == 0 && read.query_count == 0);
}

ARENA_TEST(starts, a_decision_with_all_that_it_may_carry_survives_the_way)
{
    struct history_branch branch = sample_branch('A');
    struct history_node node = {1, 3, 4, 5, slice_text("\xff events")};
    API(PollForDecisionTaskResponse__QueriesEntry) *queries[] = {
        make_query("1", "state", arena),
        make_query("2", "stack", arena),
    };
    struct decision_start start = {
        .run_id = "run",
        .lineage = history_lineage_root(&branch, arena),
        .transient_scheduled = API_NEW(arena, history_event, .event_id = 3),
        .transient_started = API_NEW(arena, history_event, .event_id = 4),
        .recent = {&node, 1, 3},
        .queries = queries,
        .query_count = 2,
    };
    struct decision_start read =
        send_start(TASK_DECISION, &(struct task_start){.decision = start}, arena).decision;
    EXPECT_EQ(read.transient_scheduled->event_id, 3);
    EXPECT_EQ(read.transient_started->event_id, 4);
    EXPECT(read.recent.count == 1 && read.recent.next_event_id == 3);
    EXPECT(slice_equal(read.recent.node[0].events, node.events));
    EXPECT_EQ(read.query_count, 2);
    EXPECT_TEXT(read.queries[1]->key, "2");
    EXPECT_TEXT(read.queries[1]->value->query_type, "stack");
}

ARENA_TEST(starts, an_activity_survives_the_way)
{
    struct activity_start start = {
        .activity = STORED_NEW(arena, pending_activity, .schedule_id = 7, .activity_id = "a"),
        .workflow_type = API_NEW(arena, workflow_type, .name = "type"),
        .run_id = "run",
    };
    struct activity_start read =
        send_start(TASK_ACTIVITY, &(struct task_start){.activity = start}, arena).activity;
    EXPECT_EQ(read.activity->schedule_id, 7);
    EXPECT_TEXT(read.activity->activity_id, "a");
    EXPECT_TEXT(read.workflow_type->name, "type");
    EXPECT_TEXT(read.run_id, "run");
}

ARENA_TEST(starts, bytes_that_are_no_start_are_refused)
{
    EXPECT(task_start_decode(slice_text("\xff"), arena) == NULL);
    EXPECT(task_start_decode((struct slice){0}, arena) == NULL);
}
