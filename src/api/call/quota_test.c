/* quota_test.c - domains and hosts that call too often, through the door (H.3). */
#include "api/test/fixture.h"
#include "fiber/fiber.h"
#include "wire/names.h"

static struct error *
describe(struct fixture *fixture, const char *domain)
{
    API(DescribeWorkflowExecutionRequest) *request = fixture_describe(fixture, "wf", "");
    request->domain = (char *)domain;
    return fixture_call(fixture, request, NULL);
}

static bool
is_over_quota(const struct error *err)
{
    return err != NULL && err->kind == ERR_SERVICE_BUSY &&
           strcmp(err->message, "Too many outstanding requests to the cadence service") == 0;
}

static int
count_passed(struct fixture *fixture, const char *domain, int calls)
{
    int passed = 0;
    for (int i = 0; i < calls; i++)
        passed += !is_over_quota(describe(fixture, domain));
    return passed;
}

static void
register_other(struct fixture *fixture)
{
    API(RegisterDomainRequest) *request = API_NEW(
        fixture->arena, register_domain_request, .name = "other",
        .workflow_execution_retention_period = presence_make_duration(fixture->arena, 86400));
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

SERVER_TEST(quota, a_domain_that_calls_too_often_is_told_and_no_other_is, "H-025", "H-026", "H-029")
{
    register_other(fixture);
    fixture_set(fixture, "frontend.domainrps: [{value: 5, constraints: {domainName: orders}}]\n");
    EXPECT_EQ(count_passed(fixture, "orders", 20), 5);
    EXPECT_EQ(count_passed(fixture, "other", 20), 20);
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    EXPECT_EQ(count_passed(fixture, "orders", 20), 5);
    fixture_set(fixture, "frontend.globalDomainrps: [{value: 2}]\n"); /* the smaller one counts */
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    EXPECT_EQ(count_passed(fixture, "orders", 20), 2);
}

static bool
is_poll_refused(struct fixture *fixture, const char *list, const char *base)
{
    API(PollForActivityTaskRequest) *request =
        API_NEW(fixture->arena, poll_for_activity_task_request, .domain = "orders",
                .task_list = API_NEW(fixture->arena, task_list, .name = (char *)list,
                                     .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL)));
    if (base != NULL) {
        request->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL);
        request->task_list->base_name = (char *)base;
    }
    struct error *err = fixture_call(fixture, request, NULL);
    return is_over_quota(err);
}

SERVER_TEST(quota, a_list_and_those_that_go_with_it_share_a_rate, "C-026")
{
    fixture_set(fixture, "frontend.tasklistworkerrps:\n"
                         "  - {value: 2, constraints: {taskListName: work}}\n"
                         "frontend.tasklistrps:\n"
                         "  - {value: 0, constraints: {taskListName: work}}\n"
                         "matching.longPollExpirationInterval: [{value: 1ms}]\n");
    EXPECT(!is_poll_refused(fixture, "work", NULL));
    EXPECT(!is_poll_refused(fixture, "host-1", "work"));
    EXPECT(is_poll_refused(fixture, "host-2", "work")); /* they share what their base may */
    EXPECT(is_poll_refused(fixture, "work", NULL));
    EXPECT(!is_poll_refused(fixture, "other", NULL));
    EXPECT(!is_poll_refused(fixture, "host-3", ""));
    EXPECT(is_over_quota(fixture_call(fixture, fixture_start(fixture, "wf"), NULL)));
    fixture_set(fixture, "frontend.globalTaskListrps: [{value: 5}]\n");
    run_start(fixture, "wf");
}

SERVER_TEST(quota, all_domains_share_what_the_host_takes, "H-025", "H-029")
{
    register_other(fixture);
    fixture_set(fixture, "frontend.rps: [{value: 6}]\n");
    int passed = count_passed(fixture, "orders", 5) + count_passed(fixture, "other", 20);
    EXPECT_EQ(passed, 6);
    fixture_set(fixture, "frontend.rps: [{value: 0}]\n");
    EXPECT_EQ(count_passed(fixture, "orders", 5), 0);
}

static struct error *
poll_once(struct fixture *fixture)
{
    return fixture_call(fixture, fixture_poll(fixture, "work"), NULL);
}

SERVER_TEST(quota, answers_of_workers_and_calls_about_domains_are_never_refused, "H-027")
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    fixture_set(fixture,
                "frontend.domainworkerrps: [{value: 0}]\nfrontend.workerrps: [{value: 0}]\n"
                "frontend.domainrps: [{value: 0}]\n");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    EXPECT(is_over_quota(poll_once(fixture)));
    EXPECT_OK(API_CALL(fixture, NULL, describe_domain,
                       .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME),
                       .name = "orders"));
}

/* Two a second: the third waits half a second, if it may. */
SERVER_TEST(quota, a_poll_waits_for_its_turn_as_long_as_the_setting_says, "H-028")
{
    static const struct {
        const char *delay;
        bool is_refused;
    } cases[] = {{"0s", true}, {"100ms", true}, {"2s", false}};
    for (size_t i = 0; i < array_length(cases); i++) {
        fixture_set(fixture, arena_format(fixture->arena,
                                          "frontend.domainworkerrps: [{value: 2}]\n"
                                          "frontend.maxWorkerPollDelay: [{value: %s}]\n",
                                          cases[i].delay));
        EXPECT_OK(fiber_sleep(5 * NS_PER_S, fixture->arena));
        for (int k = 0; k < 3; k++)
            run_start(fixture, arena_format(fixture->arena, "wf-%zu-%d", i, k));
        EXPECT_OK(poll_once(fixture));
        EXPECT_OK(poll_once(fixture));
        EXPECT_EQ(is_over_quota(poll_once(fixture)), cases[i].is_refused);
    }
}

SERVER_TEST(quota, some_kinds_of_callers_have_none, "H-030")
{
    const struct call_header header = {slice_text("cadence-caller-type"), slice_text("cli")};
    fixture_set(fixture, "frontend.rps: [{value: 0}]\n"
                         "system.rateLimiterBypassCallerTypes: [{value: [ui, cli]}]\n");
    EXPECT_EQ(count_passed(fixture, "orders", 3), 0);
    fixture->headers = &header;
    fixture->header_count = 1;
    EXPECT_EQ(count_passed(fixture, "orders", 3), 3);
    fixture->headers = NULL;
    fixture->header_count = 0;
}
