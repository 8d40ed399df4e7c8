/* standby_test.c - tasks of a domain that is active in another cluster for a while. */
#include "api/test/moving.h"
#include "fiber/clock.h"
#include "fiber/sync.h"

SERVER_TEST_IN(standby, a_task_that_was_polled_while_its_domain_was_active_elsewhere_is_not_lost,
               fixture_run_in(sample_group(EAST), body))
{
    API(PollForDecisionTaskRequest) *poll = moving_begin(fixture);
    moving_go(fixture, "west");
    API(PollForDecisionTaskResponse) *task = fixture_ok(fixture, poll);
    EXPECT_EQ(task->task_token.len, 0);
    moving_go(fixture, "east");
    task = fixture_ok(fixture, poll);
    EXPECT(task->task_token.len > 0);
}

/* A poll that waits while its domain is active elsewhere. */
struct patient_poll {
    struct fixture *fixture;
    const API(PollForDecisionTaskRequest) *request;
    API(PollForDecisionTaskResponse) *task;
    int64_t answered;
    struct latch latch;
};

static void
poll_patiently(void *argument)
{
    struct patient_poll *poll = argument;
    EXPECT_OK(fixture_call(poll->fixture, poll->request, &poll->task));
    poll->answered = clock_monotonic();
    latch_done(&poll->latch);
}

SERVER_TEST_IN(standby, a_poll_that_waits_gets_its_task_as_soon_as_the_domain_is_active_here,
               fixture_run_in(sample_group(EAST), body))
{
    struct patient_poll poll = {.fixture = fixture, .request = moving_begin(fixture)};
    latch_init(&poll.latch, 1);
    moving_go(fixture, "west");
    fiber_start("patient poll", poll_patiently, &poll);
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, fixture->arena));
    EXPECT_EQ(poll.answered, 0);
    int64_t began = clock_monotonic();
    moving_go(fixture, "east");
    latch_wait(&poll.latch);
    EXPECT(poll.task->task_token.len > 0);
    EXPECT(poll.answered - began < 200 * NS_PER_MS); /* the failover itself included */
}

/* --- the history of failovers ---- */

static API(ListFailoverHistoryResponse) *
list_history(struct fixture *fixture, API(ListFailoverHistoryRequest) *request)
{
    return fixture_ok(fixture, request);
}

SERVER_TEST_IN(standby, the_history_of_failovers_is_listed_newest_first_fifty_a_page,
               fixture_run_in(sample_group(EAST), body), "D-052")
{
    moving_begin(fixture);
    API(DescribeDomainResponse) *described = API_OK(
        fixture, describe_domain,
        .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME), .name = "moving");
    for (int i = 0; i < 51; i++)
        moving_go(fixture, i % 2 == 0 ? "west" : "east");

    API(ListFailoverHistoryRequest) *request =
        API_NEW(fixture->arena, list_failover_history_request);
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "DomainID is required in filters") != NULL);
    request->filters = API_NEW(fixture->arena, list_failover_history_request_filters,
                               .domain_id = described->domain->id);
    API(ListFailoverHistoryResponse) *page = list_history(fixture, request);
    EXPECT_EQ(page->n_failover_events, 50);
    const API(FailoverEvent) *newest = page->failover_events[0];
    EXPECT_EQ(newest->id[14], '7');
    EXPECT_EQ(newest->failover_type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE));
    EXPECT(newest->created_time != NULL);
    EXPECT_EQ(newest->n_cluster_failovers, 1);
    EXPECT(newest->cluster_failovers[0]->cluster_attribute == NULL); /* the domain itself */
    EXPECT_TEXT(newest->cluster_failovers[0]->from_cluster->active_cluster_name, "east");
    EXPECT_EQ(newest->cluster_failovers[0]->from_cluster->failover_version, 250);
    EXPECT_TEXT(newest->cluster_failovers[0]->to_cluster->active_cluster_name, "west");
    EXPECT_EQ(newest->cluster_failovers[0]->to_cluster->failover_version, 251);
    request->pagination =
        API_NEW(fixture->arena, pagination_options, .next_page_token = page->next_page_token);
    page = list_history(fixture, request);
    EXPECT_EQ(page->n_failover_events, 1);
    EXPECT_EQ(page->failover_events[0]->cluster_failovers[0]->to_cluster->failover_version, 1);
}
