/* deprecation_test.c - a domain is deprecated by the workflow that Cadence's tools start. */
#include "system/test_fixture.h"

#include "api/workflow/diagnose.h"
#include "engine/run/mutation.h"
#include "system/deprecation.h"

static void
start(struct fixture *fixture, const char *id, const char *domain, bool is_forced)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, id);
    request->domain = SYSTEM_DOMAIN;
    request->workflow_type->name = DEPRECATION_TYPE;
    request->task_list = fixture_list(fixture, DEPRECATION_LIST);
    request->input = fixture_payload(
        fixture, arena_format(fixture->arena,
                              "{\"domain_name\":\"%s\",\"security_token\":\"\",\"force\":%s}",
                              domain, is_forced ? "true" : "false"));
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static const API(HistoryEvent) *
wait_closed(struct fixture *fixture, const char *id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, id);
    request->domain = SYSTEM_DOMAIN;
    request->wait_for_new_event = true;
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    const API(History) *history = read_history(fixture, request)->history;
    EXPECT_EQ(history->n_events, 1);
    return history->events[0];
}

static void
poll_once(struct fixture *fixture)
{
    EXPECT_OK(API_CALL(fixture, NULL, poll_for_decision_task, .domain = "orders",
                       .task_list = fixture_list(fixture, "work"), .identity = "worker"));
}

static void
deprecated(struct fixture *fixture)
{
    fixture->timeout = 60 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    run_start(fixture, "one");
    run_start(fixture, "two");
    poll_once(fixture);
    start(fixture, "polite", "orders", false);
    const API(HistoryEvent) *last = wait_closed(fixture, "polite");
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    EXPECT_TEXT(last->workflow_execution_failed_event_attributes->failure->reason,
                "domain has active pollers");
    start(fixture, "forced", "orders", true);
    last = wait_closed(fixture, "forced");
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    const struct domain *domain = domains_find_name(fixture->domains, "orders");
    EXPECT_EQ(domain->record->domain->status, API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED));
    for (int i = 0; i < 2; i++) {
        const API(History) *history =
            read_history(fixture, fixture_history(fixture, i == 0 ? "one" : "two"))->history;
        EXPECT_EQ(history->events[history->n_events - 1]->attributes_case,
                  EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
    }
    start(fixture, "unknown", "nobody", false);
    last = wait_closed(fixture, "unknown");
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    EXPECT_TEXT(last->workflow_execution_failed_event_attributes->failure->reason,
                "domain does not exist");
}

TEST(deprecation, a_domain_is_deprecated_and_its_runs_are_ended_unless_somebody_polls)
{
    fixture_run(deprecated);
}
