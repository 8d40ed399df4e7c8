/* poller_test.c - pollers that go away, tasks that are void, polls that are refused. */
#include "api/test/fixture.h"
#include "fiber/sync.h"
#include "wire/names.h"

static struct error *
try_poll(struct fixture *fixture, const API(PollForDecisionTaskRequest) *request)
{
    return fixture_call(fixture, request, NULL);
}

/* --- pollers that go away ------------------------------------------------------------------------
 */

struct poller {
    struct fixture *fixture;
    struct latch done;
    struct error *err;
};

static void
poll_alone(void *argument)
{
    struct poller *poller = argument;
    poller->err = try_poll(poller->fixture, fixture_poll(poller->fixture, "work"));
    latch_done(&poller->done);
}

SERVER_TEST(poller, a_poller_that_has_gone_gets_no_task, "C-003")
{
    struct poller poller = {.fixture = fixture};
    latch_init(&poller.done, 1);
    struct fiber *fiber = fiber_start("poller", poll_alone, &poller);
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    fiber_cancel(fiber); /* sends RST_STREAM */
    latch_wait(&poller.done);
    EXPECT_KIND(poller.err, ERR_CANCELLED);
    EXPECT_OK(fiber_sleep(100 * NS_PER_MS, fixture->arena));

    run_start(fixture, "wf");
    int64_t began = clock_monotonic();
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->task_token.len > 0);
    EXPECT_EQ(task->attempt, 0);
    EXPECT(clock_monotonic() - began < NS_PER_S); /* not after a timeout */
}

SERVER_TEST(poller, a_task_of_a_run_that_has_ended_is_given_to_nobody, "C-002")
{
    run_start(fixture, "wf");
    terminate_run(fixture, "wf");
    fixture->timeout = 4 * NS_PER_S;
    EXPECT_EQ(poll_decision(fixture, "work")->task_token.len, 0);
    fixture->timeout = 10 * NS_PER_S;
    run_start(fixture, "other");
    EXPECT_TEXT(poll_decision(fixture, "work")->workflow_execution->workflow_id, "other");
}

SERVER_TEST(poller, polls_end_empty_when_the_server_drains)
{
    struct poller poller = {.fixture = fixture};
    latch_init(&poller.done, 1);
    fixture->timeout = 60 * NS_PER_S;
    fiber_start("poller", poll_alone, &poller);
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    int64_t began = clock_monotonic();
    api_drain(fixture->api);
    latch_wait(&poller.done);
    EXPECT_OK(poller.err);
    EXPECT(clock_monotonic() - began < NS_PER_S);
}

SERVER_TEST(poller, a_bad_binary_gets_no_decisions, "A-071")
{
    API(UpdateDomainRequest) *update = API_NEW(fixture->arena, update_domain_request);
    API(BadBinaries__BinariesEntry) *entry =
        message_new(fixture->arena, API_TYPE(bad_binaries__binaries_entry));
    entry->key = "abc";
    entry->value = API_NEW(fixture->arena, bad_binary_info, .reason = "broken");
    update->name = "orders";
    update->bad_binaries =
        API_NEW(fixture->arena, bad_binaries, .n_binaries = 1, .binaries = &entry);
    update->update_mask =
        GOOGLE_NEW(fixture->arena, field_mask, .n_paths = 1, .paths = &(char *){"bad_binaries"});
    EXPECT_OK(fixture_call(fixture, update, NULL));
    API(PollForDecisionTaskRequest) *request = fixture_poll(fixture, "work");
    request->binary_checksum = "abc";
    struct error *err = try_poll(fixture, request);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "binary abc already marked as bad deployment");
    request->binary_checksum = "abd";
    EXPECT_OK(try_poll(fixture, request));
}

SERVER_TEST(poller, a_poller_learns_how_long_it_waited_and_how_much_waits, "C-007", "C-008")
{
    fixture->timeout = 4 * NS_PER_S;
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->auto_config_hint != NULL && !task->auto_config_hint->enable_auto_config);
    EXPECT(task->auto_config_hint->poller_wait_time_in_ms > 2900);
    fixture_set(fixture, "matching.enableClientAutoConfig:\n- value: true\n");
    run_start(fixture, "wf");
    run_start(fixture, "wf2");
    EXPECT_OK(fiber_sleep(NS_PER_S, fixture->arena));
    task = poll_decision(fixture, "work");
    EXPECT(task->auto_config_hint->enable_auto_config);
    EXPECT(task->auto_config_hint->poller_wait_time_in_ms < 100);
    EXPECT_EQ(task->backlog_count_hint, 1);
}

SERVER_TEST(poller, an_answer_has_a_largest_number_of_decisions, "A-072")
{
    fixture_set(fixture, "frontend.decisionResultCountLimit:\n- value: 1\n");
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(Decision) *decisions[] = {decide_marker(fixture), decide_end(fixture)};
    API(RespondDecisionTaskCompletedRequest) *request =
        fixture_complete(fixture, task->task_token, NULL);
    request->decisions = decisions;
    request->n_decisions = 2;
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Decision result count exceeds limit.");
    request->n_decisions = 1;
    run_complete(fixture, request);
}
