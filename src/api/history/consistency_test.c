/* consistency_test.c - what readers see, and that they see the same. Of a domain that is active
 * here, and there is no other cluster, all levels of consistency mean the same: everything that was
 * acknowledged is seen. */
#include "api/test/fixture.h"
#include "wire/names.h"

#define LEVEL(name) API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_##name)

static API(DescribeWorkflowExecutionResponse) *
describe(struct fixture *fixture, API(QueryConsistencyLevel) level)
{
    API(DescribeWorkflowExecutionRequest) *request = fixture_describe(fixture, "wf", "");
    request->query_consistency_level = level;
    return fixture_ok(fixture, request);
}

static void
levels(struct fixture *fixture)
{
    static const API(QueryConsistencyLevel) all[] = {LEVEL(INVALID), LEVEL(EVENTUAL),
                                                     LEVEL(STRONG)};
    run_start(fixture, "wf");
    for (size_t i = 0; i < array_length(all); i++) {
        int64_t length = 2 + (int64_t)i + 1; /* with the signal that was taken just now */
        run_signal(fixture, "wf", "go");
        EXPECT_EQ(describe(fixture, all[i])->workflow_execution_info->history_length, length);
        API(GetWorkflowExecutionHistoryRequest) *history = fixture_history(fixture, "wf");
        history->query_consistency_level = all[i];
        EXPECT_EQ(read_history(fixture, history)->history->n_events, length);
    }
}

TEST(consistency, a_reader_sees_what_was_acknowledged_at_any_level)
{
    fixture_run(levels);
}

static int64_t
time_of(struct fixture *fixture, const GOOGLE(Timestamp) *time)
{
    struct maybe_int64 read = {0};
    EXPECT_OK(presence_read_timestamp(fixture->arena, "time", time, &read));
    EXPECT(read.is_set);
    return read.value;
}

/* Lists of runs, the third place, are not here yet. */
SERVER_TEST(consistency, the_first_event_and_the_description_agree_when_a_run_started, "A-030")
{
    int64_t before = clock_wall();
    run_start(fixture, "wf");
    int64_t after = clock_wall();
    EXPECT_OK(fiber_sleep(3 * NS_PER_S, fixture->arena));
    run_signal(fixture, "wf", "go");
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    int64_t in_history = time_of(fixture, history->events[0]->event_time);
    int64_t described =
        time_of(fixture, describe(fixture, LEVEL(INVALID))->workflow_execution_info->start_time);
    EXPECT(in_history >= before && in_history <= after);
    EXPECT(described >= in_history - NS_PER_MS && described <= in_history + NS_PER_MS);
}
