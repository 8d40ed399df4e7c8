/* lists_test.c - lists show runs as they are: open, then closed, with all that is known of them.
 *
 * What is at stake: a client that looks for its workflows finds them. Method: runs are started and
 * ended in a simulated world, lists ask to see all that was committed, and are compared. What a
 * query means is proven by the tests of visibility/. */
#include <stdlib.h>

#include "api/test/listing.h"
#include "wire/names.h"

#define MS 1000000LL

static int64_t
time_of(const GOOGLE(Timestamp) *time)
{
    return time == NULL ? 0 : time->seconds * NS_PER_S + time->nanos;
}

/* --- open and closed ---- */

SERVER_TEST(lists, a_run_is_listed_as_open_until_it_is_listed_as_closed, "B-001")
{
    listing_wait(fixture);
    run_start(fixture, "wf");
    EXPECT_TEXT(list_open_ids(fixture), "wf");
    EXPECT_TEXT(list_closed_ids(fixture), "");
    EXPECT_EQ(list_one(fixture, "wf")->close_status, 0);
    EXPECT(list_one(fixture, "wf")->close_time == NULL);

    listing_end(fixture);
    EXPECT_TEXT(list_open_ids(fixture), "");
    EXPECT_TEXT(list_closed_ids(fixture), "wf");
    const API(WorkflowExecutionInfo) *info = list_one(fixture, "wf");
    EXPECT_EQ(info->close_status, CLOSED(COMPLETED));
    EXPECT(time_of(info->close_time) >= time_of(info->start_time));
    EXPECT_EQ(info->history_length, 5);
}

/* Without asking for it lists are a moment behind, and no longer (B-011). */
SERVER_TEST(lists, a_started_run_is_listed_soon, "B-011")
{
    run_start(fixture, "wf");
    int tries = 0;
    while (list_open_ids(fixture)[0] == '\0' && tries++ < 20) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        EXPECT_OK(fiber_sleep(100 * MS, arena));
    }
    EXPECT_TEXT(list_open_ids(fixture), "wf");
}

/* The time filter of both is about the start (B-004). */
SERVER_TEST(lists, closed_runs_are_found_by_when_they_started, "B-004")
{
    listing_wait(fixture);
    run_start(fixture, "wf");
    int64_t start = time_of(list_one(fixture, "wf")->start_time);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(10 * NS_PER_S, arena));
    terminate_run(fixture, "wf");
    API(ListClosedWorkflowExecutionsRequest) *request = listing_of_closed(fixture);
    request->start_time_filter = listing_times(fixture, start, start + NS_PER_S);
    API(ListClosedWorkflowExecutionsResponse) *response = fixture_ok(fixture, request);
    EXPECT_EQ(response->n_executions, 1); /* closed behind the filter's end */
    request->start_time_filter = listing_times(fixture, start + NS_PER_S, start + 60 * NS_PER_S);
    response = fixture_ok(fixture, request);
    EXPECT_EQ(response->n_executions, 0);
}

/* --- filters ---- */

static void
start_of_type(struct fixture *fixture, const char *workflow_id, const char *type)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, workflow_id);
    request->workflow_type->name = (char *)type;
    run_start_by(fixture, request);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(10 * MS, arena)); /* so that their order is known */
}

static void
filters(struct fixture *fixture)
{
    listing_wait(fixture);
    start_of_type(fixture, "a", "one");
    start_of_type(fixture, "b", "two");
    API(ListOpenWorkflowExecutionsRequest) *open = listing_of_open(fixture);
    open->filters_case = API_VALUE(LIST_OPEN_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_TYPE_FILTER);
    open->type_filter = API_NEW(fixture->arena, workflow_type_filter, .name = "two");
    API(ListOpenWorkflowExecutionsResponse) *opened = fixture_ok(fixture, open);
    EXPECT_EQ(opened->n_executions, 1);
    EXPECT_TEXT(opened->executions[0]->workflow_execution->workflow_id, "b");

    terminate_run(fixture, "a");
    API(ListClosedWorkflowExecutionsRequest) *closed = listing_of_closed(fixture);
    closed->filters_case =
        API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_STATUS_FILTER);
    closed->status_filter = API_NEW(fixture->arena, status_filter, .status = CLOSED(TERMINATED));
    API(ListClosedWorkflowExecutionsResponse) *ended = fixture_ok(fixture, closed);
    EXPECT_EQ(ended->n_executions, 1);
    closed->status_filter->status = CLOSED(COMPLETED);
    ended = fixture_ok(fixture, closed);
    EXPECT_EQ(ended->n_executions, 0);

    closed->filters_case =
        API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_EXECUTION_FILTER);
    closed->execution_filter =
        API_NEW(fixture->arena, workflow_execution_filter, .workflow_id = "a");
    ended = fixture_ok(fixture, closed);
    EXPECT_EQ(ended->n_executions, 1);
}

/* The wire has one place for a filter: nobody can send two (B-003). */
TEST(lists, one_filter_chooses_by_id_type_or_status, "B-003")
{
    fixture_run(filters);
}

/* --- pages ---- */

static void
pages(struct fixture *fixture)
{
    listing_wait(fixture);
    for (int i = 0; i < 6; i++)
        start_of_type(fixture, arena_format(fixture->arena, "w%d", i), "order");
    EXPECT_TEXT(list_open_ids(fixture), "w5,w4,w3,w2,w1,w0");
    API(ListWorkflowExecutionsRequest) *request = listing_by_query(fixture, "");
    request->page_size = 4;
    API(ListWorkflowExecutionsResponse) *page = fixture_ok(fixture, request);
    EXPECT_EQ(page->n_executions, 4);
    EXPECT(page->next_page_token.len > 0);
    request->next_page_token = page->next_page_token;
    page = fixture_ok(fixture, request);
    EXPECT_EQ(page->n_executions, 2);
    EXPECT_EQ(page->next_page_token.len, 0);
}

TEST(lists, pages_go_on_behind_each_other_newest_first, "B-006", "B-027")
{
    fixture_run(pages);
}

SERVER_TEST(lists, a_scan_has_every_run_once_and_a_count_says_how_many, "B-029", "B-030")
{
    listing_wait(fixture);
    for (int i = 0; i < 5; i++)
        run_start(fixture, arena_format(fixture->arena, "w%d", i));
    API(ScanWorkflowExecutionsRequest) *request = API_NEW(
        fixture->arena, scan_workflow_executions_request, .domain = "orders", .page_size = 2);
    size_t count = 0, calls = 0;
    do {
        API(ScanWorkflowExecutionsResponse) *page = fixture_ok(fixture, request);
        count += page->n_executions;
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0 && ++calls < 10);
    EXPECT_EQ(count, 5);
    int64_t counted;
    EXPECT_OK(list_send_count(fixture, "WorkflowType = 'order'", &counted));
    EXPECT_EQ(counted, 5);
    EXPECT_OK(list_send_count(fixture, "WorkflowType = 'nothing'", &counted));
    EXPECT_EQ(counted, 0);
}

/* --- what is shown ---- */

SERVER_TEST(lists, a_run_is_shown_with_all_that_is_known_of_it, "B-007", "B-008", "B-026")
{
    listing_wait(fixture);
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->search_attributes = listing_attributes(fixture, "CustomKeywordField", "\"blue\"");
    request->delay_start = presence_make_duration(fixture->arena, 60);
    const char *run_id = run_start_by(fixture, request);
    const API(WorkflowExecutionInfo) *info = list_one(fixture, "wf");
    EXPECT_TEXT(info->workflow_execution->run_id, run_id);
    EXPECT_TEXT(info->type->name, "order");
    EXPECT_TEXT(info->task_list, "work");
    EXPECT(info->memo != NULL && info->update_time != NULL && !info->is_cron);
    EXPECT_TEXT(info->cron_schedule, "");
    EXPECT_EQ(info->execution_status,
              API_VALUE(WORKFLOW_EXECUTION_STATUS__WORKFLOW_EXECUTION_STATUS_PENDING));
    EXPECT_EQ(time_of(info->execution_time), time_of(info->start_time) + 60 * NS_PER_S);
    EXPECT_EQ(time_of(info->scheduled_execution_time), time_of(info->execution_time));
    EXPECT_EQ(info->search_attributes->n_indexed_fields, 1);
    EXPECT(slice_equal(presence_read_bytes(info->search_attributes->indexed_fields[0]->value->data),
                       slice_text("\"blue\"")));
    EXPECT_TEXT(list_ids(fixture, "ExecutionTime > 0"), "wf");

    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(61 * NS_PER_S, arena)); /* the first decision is there */
    EXPECT_EQ(list_one(fixture, "wf")->execution_status,
              API_VALUE(WORKFLOW_EXECUTION_STATUS__WORKFLOW_EXECUTION_STATUS_STARTED));
    run_start(fixture, "now");
    info = list_one(fixture, "now");
    EXPECT_EQ(time_of(info->execution_time), time_of(info->start_time));
}

SERVER_TEST(lists, history_description_and_list_agree_when_a_run_started, "A-030")
{
    listing_wait(fixture);
    run_start(fixture, "wf");
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    int64_t listed = time_of(list_one(fixture, "wf")->start_time);
    EXPECT(llabs(listed - time_of(history->events[0]->event_time)) < MS);
    EXPECT(llabs(listed -
                 time_of(run_describe(fixture, "wf", "")->workflow_execution_info->start_time)) <
           MS);
}

/* --- signal with start, memo ---- */

static API(Memo) *
make_memo(struct fixture *fixture)
{
    API(Memo) *memo = API_NEW(fixture->arena, memo);
    API(Memo__FieldsEntry) *entry = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    entry->key = "note";
    entry->value = fixture_payload(fixture, "\"hello\"");
    memo->fields = arena_zalloc(fixture->arena, 1, sizeof(void *));
    memo->fields[memo->n_fields++] = entry;
    return memo;
}

static void
expect_memo(const API(Memo) *memo)
{
    EXPECT(memo != NULL);
    EXPECT_EQ(memo->n_fields, 1);
    EXPECT_TEXT(memo->fields[0]->key, "note");
    EXPECT(slice_equal(presence_read_bytes(memo->fields[0]->value->data), slice_text("\"hello\"")));
}

static void
expect_memo_everywhere(struct fixture *fixture)
{
    expect_memo(list_one(fixture, "wf")->memo);
    expect_memo(run_describe(fixture, "wf", "")->workflow_execution_info->memo);
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    expect_memo(history->events[0]->workflow_execution_started_event_attributes->memo);
}

SERVER_TEST(lists, a_run_started_with_a_signal_is_listed_with_its_memo, "A-143", "A-144")
{
    listing_wait(fixture);
    API(SignalWithStartWorkflowExecutionRequest) *request =
        API_NEW(fixture->arena, signal_with_start_workflow_execution_request,
                .start_request = fixture_start(fixture, "wf"));
    request->start_request->memo = make_memo(fixture);
    request->signal_name = "go";
    EXPECT_OK(fixture_call(fixture, request, NULL));
    EXPECT_TEXT(list_open_ids(fixture), "wf");
    expect_memo_everywhere(fixture);
    terminate_run(fixture, "wf");
    EXPECT_TEXT(list_open_ids(fixture), "");
    EXPECT_TEXT(list_closed_ids(fixture), "wf");
    expect_memo_everywhere(fixture);
}

SERVER_TEST(lists, the_memo_of_a_start_is_seen_while_it_is_open_and_when_it_is_closed, "A-242")
{
    listing_wait(fixture);
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->memo = make_memo(fixture);
    run_start_by(fixture, request);
    expect_memo_everywhere(fixture);
    listing_end(fixture);
    expect_memo_everywhere(fixture);
    EXPECT_TEXT(list_closed_ids(fixture), "wf");
}

SERVER_TEST(lists, a_run_that_timed_out_is_listed_as_closed, "A-198")
{
    listing_wait(fixture);
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->execution_start_to_close_timeout = presence_make_duration(fixture->arena, 5);
    run_start_by(fixture, request);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(10 * NS_PER_S, arena));
    EXPECT_TEXT(list_closed_ids(fixture), "wf");
    EXPECT_EQ(list_one(fixture, "wf")->close_status, CLOSED(TIMED_OUT));
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    EXPECT_EQ(last->workflow_execution_timed_out_event_attributes->timeout_type,
              API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
}

SERVER_TEST(lists, a_run_that_was_deleted_is_in_no_list, "B-012")
{
    listing_wait(fixture);
    run_start(fixture, "wf");
    listing_end(fixture);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(20 * 3600 * NS_PER_S, arena));
    EXPECT_TEXT(list_ids(fixture, ""), "wf"); /* its domain keeps it for a day */
    EXPECT_OK(fiber_sleep(6 * 3600 * NS_PER_S, arena));
    EXPECT_TEXT(list_ids(fixture, ""), "");
    int64_t count;
    EXPECT_OK(list_send_count(fixture, "", &count));
    EXPECT_EQ(count, 0);
}

/* --- operators ---- */

SERVER_TEST(lists, lists_can_be_rebuilt_from_the_runs)
{
    listing_wait(fixture);
    run_start(fixture, "a");
    listing_end(fixture);
    run_start(fixture, "b");
    EXPECT_TEXT(list_open_ids(fixture), "b");
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++) /* somebody broke them */
        EXPECT_OK(visibility_forget(fixture->visibility, i, 1, arena));
    EXPECT_TEXT(list_ids(fixture, ""), "");
    uint64_t runs;
    EXPECT_OK(engine_visibility_rebuild(fixture->engine, fixture->arena, &runs));
    EXPECT_EQ(runs, 2);
    EXPECT_TEXT(list_open_ids(fixture), "b");
    EXPECT_TEXT(list_closed_ids(fixture), "a");
    run_start(fixture, "c"); /* and it goes on from there */
    terminate_run(fixture, "b");
    EXPECT_TEXT(list_open_ids(fixture), "c");
}

/* --- what the connection wrote ---- */

SERVER_TEST(lists, a_list_shows_what_its_connection_has_just_started)
{
    listing_do_not_wait(fixture);
    for (int i = 0; i < 10; i++) {
        const char *id = arena_format(fixture->arena, "own-%d", i);
        run_start(fixture, id);
        EXPECT(strstr(list_open_ids(fixture), id) != NULL);
        terminate_run(fixture, id);
        EXPECT(strstr(list_open_ids(fixture), id) == NULL);
    }
}

/* Lists that take longer than a list may wait for are shown as they are; so are they if it shall
 * not wait at all. */
SERVER_TEST(lists, a_list_does_not_wait_for_ever_for_what_its_connection_started)
{
    static const char *const waits[] = {"1us", "0s"};
    listing_do_not_wait(fixture);
    for (size_t i = 0; i < array_length(waits); i++) {
        fixture_set(fixture, arena_format(fixture->arena,
                                          "frontend.listOwnStartsWait:\n- value: %s\n", waits[i]));
        int64_t before = clock_monotonic();
        run_start(fixture, arena_format(fixture->arena, "late-%zu", i));
        EXPECT(strstr(list_open_ids(fixture), "late") == NULL);
        EXPECT(clock_monotonic() - before < NS_PER_S);
        EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
        terminate_run(fixture, arena_format(fixture->arena, "late-%zu", i));
        EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    }
}
