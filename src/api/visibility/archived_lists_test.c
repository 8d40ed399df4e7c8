/* archived_lists_test.c - lists of runs that are gone. */
#include "api/test/archiving.h"

static API(ListArchivedWorkflowExecutionsRequest) *
make_request(struct fixture *fixture, const char *query)
{
    return API_NEW(fixture->arena, list_archived_workflow_executions_request, .domain = "orders",
                   .query = (char *)query);
}

#define EXPECT_REFUSED(call, text)                                                                 \
    do {                                                                                           \
        struct error *refusal = (call);                                                            \
        EXPECT_KIND(refusal, ERR_BAD_REQUEST);                                                     \
        EXPECT_TEXT(refusal->message, text);                                                       \
    } while (0)

SERVER_TEST(archived_lists, what_cannot_be_answered_is_refused_in_cadences_words, "B-034")
{
    API(ListArchivedWorkflowExecutionsResponse) *response;
    API(ListArchivedWorkflowExecutionsRequest) *request = make_request(fixture, "");
    request->domain = "";
    EXPECT_REFUSED(fixture_call(fixture, request, &response), "Domain not set on request.");
    request->domain = "orders";
    request->page_size = 10001;
    EXPECT_REFUSED(fixture_call(fixture, request, &response),
                   "Pagesize is larger than allowed 10000");
    request->page_size = 10000;
    EXPECT_REFUSED(fixture_call(fixture, request, &response),
                   "Domain is not configured for visibility archival");
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    response = fixture_ok(fixture, request); /* nothing was archived yet */
    EXPECT_EQ(response->n_executions, 0);
    fixture_set(fixture, "system.enableReadFromVisibilityArchival: [{value: false}]\n");
    EXPECT_REFUSED(fixture_call(fixture, request, &response),
                   "Cluster is not configured for reading archived visibility records");
    fixture_set(fixture, "system.visibilityArchivalStatus: [{value: paused}]\n");
    EXPECT_REFUSED(fixture_call(fixture, request, &response),
                   "Cluster is not configured for visibility archival");
    fixture_set(fixture, "system.visibilityArchivalStatus: [{value: enabled}]\n");
    EXPECT_KIND(fixture_call(fixture, make_request(fixture, "Nothing = 1"), &response),
                ERR_BAD_REQUEST);
    EXPECT_KIND(fixture_call(fixture, make_request(fixture, "ORDER BY Nothing"), &response),
                ERR_BAD_REQUEST);
    request->next_page_token = presence_make_bytes(slice_text("no token"));
    EXPECT_REFUSED(fixture_call(fixture, request, &response), "next page token is corrupted");
    request->domain = "unknown";
    EXPECT_KIND(fixture_call(fixture, request, &response), ERR_ENTITY_NOT_EXISTS);
}

/* Ids of all pages of so many, in order, joined by commas. */
static const char *
list_ids(struct fixture *fixture, const char *query, int page_size)
{
    API(ListArchivedWorkflowExecutionsRequest) *request = make_request(fixture, query);
    const char *ids = "";
    request->page_size = page_size;
    do {
        API(ListArchivedWorkflowExecutionsResponse) *response = fixture_ok(fixture, request);
        EXPECT(page_size == 0 || response->n_executions <= (size_t)page_size);
        for (size_t i = 0; i < response->n_executions; i++) {
            const API(WorkflowExecutionInfo) *info = response->executions[i];
            ids = arena_format(fixture->arena, "%s%s%s", ids, ids[0] == '\0' ? "" : ",",
                               info->workflow_execution->workflow_id);
            EXPECT(info->execution_time != NULL && info->start_time != NULL &&
                   info->close_time != NULL);
            EXPECT_TEXT(info->type->name, "order");
            EXPECT_TEXT(info->task_list, "work");
            EXPECT(info->history_length >= 3);
        }
        request->next_page_token = response->next_page_token;
    } while (request->next_page_token.len > 0);
    return ids;
}

SERVER_TEST(archived_lists, runs_that_are_gone_are_found_by_query_and_come_in_pages, "B-034",
            "J-021")
{
    EXPECT_OK(archiving_update(fixture, ARCHIVING_ON, ""));
    for (int i = 0; i < 5; i++) {
        archiving_run(fixture, arena_format(fixture->arena, "wf-%d", i));
        child_tree_sleep(fixture, NS_PER_S);
    }
    run_start(fixture, "killed");
    terminate_run(fixture, "killed");
    int64_t then = clock_wall();
    EXPECT_TEXT(list_ids(fixture, "", 0), ""); /* they are not gone */
    archiving_pass(fixture);
    EXPECT_TEXT(list_ids(fixture, "", 0), "killed,wf-4,wf-3,wf-2,wf-1,wf-0");
    EXPECT_TEXT(list_ids(fixture, "", 2), "killed,wf-4,wf-3,wf-2,wf-1,wf-0");
    EXPECT_TEXT(list_ids(fixture, "", 6), "killed,wf-4,wf-3,wf-2,wf-1,wf-0");
    EXPECT_TEXT(list_ids(fixture, "ORDER BY StartTime ASC", 2), "killed,wf-4,wf-3,wf-2,wf-1,wf-0");
    EXPECT_TEXT(list_ids(fixture, "WorkflowID = 'wf-3' ORDER BY CloseTime DESC", 0), "wf-3");
    EXPECT_TEXT(list_ids(fixture, "WorkflowID = 'wf-3'", 0), "wf-3");
    EXPECT_TEXT(list_ids(fixture, "CloseStatus = 'terminated'", 0), "killed");
    EXPECT_TEXT(list_ids(fixture, "CloseStatus = 0 and WorkflowType = 'order'", 3),
                "wf-4,wf-3,wf-2,wf-1,wf-0");
    EXPECT_TEXT(list_ids(fixture, "WorkflowType = 'other'", 3), "");
    EXPECT_TEXT(list_ids(fixture, "WorkflowID in ('wf-1', 'wf-2') or CloseStatus = 3", 1),
                "killed,wf-2,wf-1");
    const char *late = arena_format(fixture->arena, "CloseTime >= %lld and CloseTime <= %lld",
                                    (long long)(then - 2500 * NS_PER_MS), (long long)then);
    EXPECT_TEXT(list_ids(fixture, late, 0), "killed,wf-4,wf-3");
}
