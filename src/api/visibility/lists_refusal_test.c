/* lists_refusal_test.c - what is wrong with a list request is said in the words that Cadence's
 * users know.
 *
 * Method: a request that is fine, one thing in it made wrong, and the answer compared. */
#include "api/test/listing.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "wire/names.h"

#define EXPECT_REFUSED(err_, text_)                                                                \
    do {                                                                                           \
        const struct error *refusal_ = (err_);                                                     \
        EXPECT_KIND(refusal_, ERR_BAD_REQUEST);                                                    \
        EXPECT_TEXT(refusal_->message, text_);                                                     \
    } while (0)

static struct error *
try_open(struct fixture *fixture, const API(StartTimeFilter) *times)
{
    API(ListOpenWorkflowExecutionsRequest) *request = listing_of_open(fixture);
    request->start_time_filter = (API(StartTimeFilter) *)times;
    return fixture_call(fixture, request, NULL);
}

static struct error *
try_closed(struct fixture *fixture, const API(StartTimeFilter) *times)
{
    API(ListClosedWorkflowExecutionsRequest) *request = listing_of_closed(fixture);
    request->start_time_filter = (API(StartTimeFilter) *)times;
    return fixture_call(fixture, request, NULL);
}

static bool
is_too_often(const struct error *err)
{
    return err != NULL && err->kind == ERR_SERVICE_BUSY &&
           strcmp(err->message, "Persistence Max QPS Reached for List Operations.") == 0;
}

/* How many of so many questions were answered: by query, by filters and counts in turns. */
static int
count_answered(struct fixture *fixture, int questions)
{
    int answered = 0;
    for (int i = 0; i < questions; i++) {
        int64_t count;
        struct error *err = i % 3 == 0 ? fixture_call(fixture, listing_by_query(fixture, ""), NULL)
                            : i % 3 == 1 ? try_open(fixture, listing_times(fixture, 1, 2))
                                         : list_send_count(fixture, "", &count);
        EXPECT(err == NULL || is_too_often(err));
        answered += err == NULL;
    }
    return answered;
}

SERVER_TEST(lists_refusal, a_domain_that_asks_for_lists_too_often_is_told, "H-032")
{
    EXPECT_EQ(count_answered(fixture, 30), 30);
    fixture_set(fixture, "frontend.esVisibilityListMaxQPS: "
                         "[{value: 4, constraints: {domainName: orders}}]\n"
                         "frontend.visibilityListMaxQPS: [{value: 0}]\n");
    EXPECT_EQ(count_answered(fixture, 30), 4);
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    EXPECT_EQ(count_answered(fixture, 30), 4);
    fixture_set(fixture, "frontend.esVisibilityListMaxQPS: [{value: 0}]\n"
                         "frontend.visibilityListMaxQPS: [{value: 2}]\n"
                         "system.readVisibilityStoreName: [{value: db}]\n");
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    int opened = 0;
    for (int i = 0; i < 10; i++)
        opened += !is_too_often(try_open(fixture, listing_times(fixture, 1, 2)));
    EXPECT_EQ(opened, 2);
}

static void
times(struct fixture *fixture)
{
    API(StartTimeFilter) *no_earliest = listing_times(fixture, 1, 2),
                         *no_latest = listing_times(fixture, 1, 2);
    no_earliest->earliest_time = NULL;
    no_latest->latest_time = NULL;
    struct error *(*const tries[])(struct fixture *, const API(StartTimeFilter) *) = {try_open,
                                                                                      try_closed};
    for (size_t i = 0; i < array_length(tries); i++) {
        EXPECT_REFUSED(tries[i](fixture, NULL), "StartTimeFilter is required");
        EXPECT_REFUSED(tries[i](fixture, no_earliest),
                       "EarliestTime in StartTimeFilter is required");
        EXPECT_REFUSED(tries[i](fixture, no_latest), "LatestTime in StartTimeFilter is required");
        EXPECT_REFUSED(tries[i](fixture, listing_times(fixture, 2, 1)),
                       "EarliestTime in StartTimeFilter should not be larger than LatestTime");
        EXPECT_OK(tries[i](fixture, listing_times(fixture, 1, 1)));
    }
}

TEST(lists_refusal, lists_of_open_and_closed_runs_need_both_ends_of_a_time, "B-002")
{
    fixture_run(times);
}

SERVER_TEST(lists_refusal, a_page_has_the_usual_size_or_one_that_is_not_too_large, "B-005")
{
    API(ListWorkflowExecutionsRequest) *request = listing_by_query(fixture, "");
    API(ListWorkflowExecutionsResponse) *response;
    request->page_size = 10001;
    EXPECT_REFUSED(fixture_call(fixture, request, &response),
                   "Pagesize is larger than allow 10000");
    request->page_size = 10000;
    response = fixture_ok(fixture, request);
    API(ListOpenWorkflowExecutionsRequest) *open = listing_of_open(fixture);
    open->page_size = 10001;
    EXPECT_REFUSED(fixture_call(fixture, open, NULL), "Pagesize is larger than allow 10000");

    fixture_set(fixture, "frontend.visibilityMaxPageSize: [{value: 2}]\n");
    listing_wait(fixture);
    for (int i = 0; i < 3; i++)
        run_start(fixture, arena_format(fixture->arena, "w%d", i));
    request->page_size = 0; /* as the setting says */
    response = fixture_ok(fixture, request);
    EXPECT_EQ(response->n_executions, 2);
    request->page_size = -1;
    response = fixture_ok(fixture, request);
    EXPECT_EQ(response->n_executions, 2);
}

SERVER_TEST(lists_refusal, filters_can_be_forbidden, "B-009")
{
    fixture_set(fixture, "frontend.disableListVisibilityByFilter: [{value: true}]\n");
    API(ListOpenWorkflowExecutionsRequest) *open = listing_of_open(fixture);
    EXPECT_OK(fixture_call(fixture, open, NULL)); /* without a filter */
    open->filters_case = API_VALUE(LIST_OPEN_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_TYPE_FILTER);
    open->type_filter = API_NEW(fixture->arena, workflow_type_filter, .name = "order");
    EXPECT_REFUSED(fixture_call(fixture, open, NULL), "No permission to do this operation.");
    API(ListClosedWorkflowExecutionsRequest) *closed = listing_of_closed(fixture);
    closed->filters_case =
        API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_STATUS_FILTER);
    closed->status_filter = API_NEW(fixture->arena, status_filter, .status = CLOSED(FAILED));
    EXPECT_REFUSED(fixture_call(fixture, closed, NULL), "No permission to do this operation.");
}

static struct error *
try_scan(struct fixture *fixture)
{
    return API_CALL(fixture, NULL, scan_workflow_executions, .domain = "orders");
}

SERVER_TEST(lists_refusal, a_domain_can_be_given_the_lists_of_a_basic_store, "B-010")
{
    int64_t count;
    fixture_set(fixture, "system.readVisibilityStoreName:\n"
                         "- value: db\n  constraints: {domainName: orders}\n");
    EXPECT_REFUSED(fixture_call(fixture, listing_by_query(fixture, ""), NULL),
                   "Operation is not supported");
    EXPECT_REFUSED(try_scan(fixture), "Operation is not supported");
    EXPECT_REFUSED(list_send_count(fixture, "", &count), "Operation is not supported");
    EXPECT_OK(fixture_call(fixture, listing_of_open(fixture), NULL));
    fixture_set(fixture, "system.readVisibilityStoreName: [{value: es}]\n");
    EXPECT_OK(fixture_call(fixture, listing_by_query(fixture, ""), NULL));
}

SERVER_TEST(lists_refusal, a_question_that_makes_no_sense_is_refused)
{
    int64_t count;
    EXPECT_KIND(fixture_call(fixture, listing_by_query(fixture, "Nothing = 1"), NULL),
                ERR_BAD_REQUEST);
    EXPECT_KIND(list_send_count(fixture, "WorkflowID = ", &count), ERR_BAD_REQUEST);
    API(ListWorkflowExecutionsRequest) *request = listing_by_query(fixture, "");
    request->domain = "";
    EXPECT_REFUSED(fixture_call(fixture, request, NULL), "Domain not set on request.");
    request->domain = "nobody";
    EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_ENTITY_NOT_EXISTS);
    request->domain = "orders";
    request->next_page_token = presence_make_bytes(slice_text("no token"));
    EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_BAD_REQUEST);
}
