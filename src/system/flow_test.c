/* flow_test.c - the server's own workers on real threads: a batch over runs of all shards, with
 * lists, slots and fibers on every loop. Its worth is the thread sanitizer. */
#include "engine/run/mutation.h"
#include "fiber/linux/test_loops.h"
#include "system/bulk.h"
#include "system/test_fixture.h"

#define RUNS 40

static const API(HistoryEvent) *
run_batch(struct fixture *fixture)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "job");
    start->domain = BULK_DOMAIN;
    start->workflow_type->name = BULK_TYPE_V2;
    start->task_list = fixture_list(fixture, BULK_LIST);
    start->input = fixture_payload(
        fixture, "{\"DomainName\":\"orders\",\"Query\":\"CloseTime = missing\",\"Reason\":\"r\","
                 "\"BatchType\":\"terminate\",\"PageSize\":7,\"RPS\":1000}");
    EXPECT_OK(fixture_call(fixture, start, NULL));
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, "job");
    request->domain = BULK_DOMAIN;
    request->wait_for_new_event = true;
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    return read_history(fixture, request)->history->events[0];
}

LOOP_TEST(system_flow, a_batch_is_done_on_several_threads, 2)
{
    struct fixture fixture;
    fixture_open(&fixture, "127.0.0.1:0");
    fixture.timeout = 30 * NS_PER_S;
    fixture_open_system(&fixture, &system_types);
    for (int i = 0; i < RUNS; i++)
        run_start(&fixture, arena_format(fixture.arena, "wf-%d", i));
    const API(HistoryEvent) *last = run_batch(&fixture);
    struct bulk_progress progress;
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT(bulk_read_progress(
        presence_read_payload(last->workflow_execution_completed_event_attributes->result).bytes,
        fixture.arena, &progress));
    EXPECT_EQ(progress.success, RUNS);
    fixture_close(&fixture);
}
