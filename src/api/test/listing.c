/* listing.c - see listing.h. */
#include "api/test/listing.h"

void
listing_wait(struct fixture *fixture)
{
    static const struct call_header committed[] = {
        {SLICE_LITERAL("cadenza-consistency"), SLICE_LITERAL("committed")}};
    fixture->headers = committed;
    fixture->header_count = 1;
}

void
listing_do_not_wait(struct fixture *fixture)
{
    fixture->header_count = 0;
}

/* --- requests ---- */

API(StartTimeFilter) *
listing_times(struct fixture *fixture, int64_t earliest, int64_t latest)
{
    return API_NEW(fixture->arena, start_time_filter,
                   .earliest_time = presence_make_timestamp(fixture->arena, earliest),
                   .latest_time = presence_make_timestamp(fixture->arena, latest));
}

API(ListWorkflowExecutionsRequest) *
listing_by_query(struct fixture *fixture, const char *query)
{
    return API_NEW(fixture->arena, list_workflow_executions_request, .domain = "orders",
                   .query = (char *)query);
}

API(ListOpenWorkflowExecutionsRequest) *
listing_of_open(struct fixture *fixture)
{
    return API_NEW(fixture->arena, list_open_workflow_executions_request, .domain = "orders",
                   .start_time_filter = listing_times(fixture, 0, INT64_MAX / 2));
}

API(ListClosedWorkflowExecutionsRequest) *
listing_of_closed(struct fixture *fixture)
{
    return API_NEW(fixture->arena, list_closed_workflow_executions_request, .domain = "orders",
                   .start_time_filter = listing_times(fixture, 0, INT64_MAX / 2));
}

/* --- calls ---- */

struct error *
list_send_count(struct fixture *fixture, const char *query, int64_t *count)
{
    API(CountWorkflowExecutionsResponse) *response = NULL;
    struct error *err = API_CALL(fixture, &response, count_workflow_executions, .domain = "orders",
                                 .query = (char *)query);
    *count = err == NULL ? response->count : -1;
    return err;
}

static const char *
join_ids(struct fixture *fixture, API(WorkflowExecutionInfo) *const *runs, size_t count)
{
    const char *ids = "";
    for (size_t i = 0; i < count; i++)
        ids = arena_format(fixture->arena, "%s%s%s", ids, i == 0 ? "" : ",",
                           runs[i]->workflow_execution->workflow_id);
    return ids;
}

const char *
list_ids(struct fixture *fixture, const char *query)
{
    API(ListWorkflowExecutionsResponse) *response =
        fixture_ok(fixture, listing_by_query(fixture, query));
    return join_ids(fixture, response->executions, response->n_executions);
}

const char *
list_open_ids(struct fixture *fixture)
{
    API(ListOpenWorkflowExecutionsResponse) *response =
        fixture_ok(fixture, listing_of_open(fixture));
    return join_ids(fixture, response->executions, response->n_executions);
}

const char *
list_closed_ids(struct fixture *fixture)
{
    API(ListClosedWorkflowExecutionsResponse) *response =
        fixture_ok(fixture, listing_of_closed(fixture));
    return join_ids(fixture, response->executions, response->n_executions);
}

const API(WorkflowExecutionInfo) *
list_one(struct fixture *fixture, const char *workflow_id)
{
    const char *query = arena_format(fixture->arena, "WorkflowID = '%s'", workflow_id);
    API(ListWorkflowExecutionsResponse) *response =
        fixture_ok(fixture, listing_by_query(fixture, query));
    EXPECT_EQ(response->n_executions, 1);
    return response->executions[0];
}

/* --- runs ---- */

void
listing_end(struct fixture *fixture)
{
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
}

API(SearchAttributes) *
listing_attributes(struct fixture *fixture, const char *key, const char *json)
{
    API(SearchAttributes) *attributes = API_NEW(fixture->arena, search_attributes);
    API(SearchAttributes__IndexedFieldsEntry) *entry =
        message_new(fixture->arena, API_TYPE(search_attributes__indexed_fields_entry));
    entry->key = (char *)key;
    entry->value = fixture_payload(fixture, json);
    attributes->indexed_fields =
        arena_zalloc(fixture->arena, 1, sizeof attributes->indexed_fields[0]);
    attributes->indexed_fields[attributes->n_indexed_fields++] = entry;
    return attributes;
}
