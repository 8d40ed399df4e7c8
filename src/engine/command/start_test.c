/* Starting runs: who may use a workflow id, what the first event says, when the first decision
 * comes. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/errors.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define POLICY(name) API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_##name)
#define FIRST_TWO    "WorkflowExecutionStarted DecisionTaskScheduled"

static const API(WorkflowExecutionStartedEventAttributes) *
started_event(struct fixture *fixture)
{
    return fixture_event(fixture, 1)->workflow_execution_started_event_attributes;
}

/* The current run ends in the way that `how` says. */
static void
close_run(struct fixture *fixture, API(Decision) *how)
{
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, how));
}

COMMAND_TEST(start, a_plain_start_writes_two_events, "A-029")
{
    fixture_begin(fixture);
    EXPECT_HISTORY(fixture, FIRST_TWO);
    EXPECT_EQ(fixture_event(fixture, 2)->decision_task_scheduled_event_attributes->attempt, 0);
    EXPECT_EQ(fixture_run(fixture)->core->next_event_id - 1, 2);
    EXPECT_TEXT(fixture->started.run_id, fixture_run(fixture)->core->run_id);
    EXPECT_EQ(fixture_run(fixture)->core->start_time,
              fixture_event_time(fixture_event(fixture, 1)));
}

COMMAND_TEST(start, every_run_has_a_history_of_its_own)
{
    struct uuid run_id;
    for (int i = 0; i < 2; i++) {
        fixture_begin(fixture);
        EXPECT_OK(fixture_terminate(fixture));
        struct history_branch branch = run_branch(fixture_run(fixture));
        EXPECT(uuid_parse(slice_text(fixture_run(fixture)->core->run_id), &run_id));
        EXPECT(memcmp(&branch.tree, &run_id, sizeof run_id) == 0);
        EXPECT(memcmp(&branch.branch, &run_id, sizeof run_id) != 0);
    }
    struct history_branch one = run_branch(fixture_run_at(fixture, 0));
    struct history_branch two = run_branch(fixture_run_at(fixture, 1));
    EXPECT(memcmp(&one.tree, &two.tree, sizeof one.tree) != 0);
    EXPECT(memcmp(&one.branch, &two.branch, sizeof one.branch) != 0);
}

COMMAND_TEST(start, the_same_request_twice_starts_one_run, "A-020")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    EXPECT_OK(fixture_start(fixture, request));
    const char *run_id = fixture->started.run_id;
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_TEXT(fixture->started.run_id, run_id);
    EXPECT(!fixture->started.is_new);
    EXPECT_HISTORY(fixture, FIRST_TWO);
}

COMMAND_TEST(start, a_repeat_after_the_run_has_completed_still_answers_that_run, "A-027")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(REJECT_DUPLICATE);
    EXPECT_OK(fixture_start(fixture, request));
    const char *run_id = fixture->started.run_id;
    close_run(fixture, fixture_complete_run(fixture));
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_TEXT(fixture->started.run_id, run_id);
    EXPECT_EQ(fixture->run_count, 1);
}

TEST(start, another_request_while_a_run_is_open_is_refused_and_told_which, "A-021", "A-023")
{
    static const int policies[] = {POLICY(INVALID), POLICY(ALLOW_DUPLICATE_FAILED_ONLY),
                                   POLICY(ALLOW_DUPLICATE), POLICY(REJECT_DUPLICATE)};
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    API(StartWorkflowExecutionRequest) *first = fixture_start_request(fixture);
    EXPECT_OK(fixture_start(fixture, first));
    const char *run_id = fixture_run(fixture)->core->run_id;
    for (size_t i = 0; i < array_length(policies); i++) {
        API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
        request->workflow_id_reuse_policy = policies[i];
        struct error *refusal = fixture_start(fixture, request);
        EXPECT_KIND(refusal, ERR_ALREADY_STARTED);
        EXPECT_TEXT(refusal->message,
                    arena_format(fixture->arena,
                                 "Workflow execution is already running. WorkflowId: wf, RunId: "
                                 "%s.",
                                 run_id));
        API(WorkflowExecutionAlreadyStartedError) *detail = NULL;
        EXPECT_OK(errors_read(fixture->arena, refusal, &detail));
        EXPECT_TEXT(detail->run_id, run_id);
        EXPECT_TEXT(detail->start_request_id, first->request_id);
    }
    EXPECT_EQ(fixture->run_count, 1);
    EXPECT_HISTORY(fixture, FIRST_TWO);
}

COMMAND_TEST(start, terminate_if_running_ends_the_open_run_and_begins_another_in_one_step, "A-024")
{
    fixture_begin(fixture);
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(TERMINATE_IF_RUNNING);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT(fixture->started.is_new);
    EXPECT_HISTORY_OF(fixture, 0, FIRST_TWO " WorkflowExecutionTerminated");
    EXPECT_HISTORY_OF(fixture, 1, FIRST_TWO);
    const API(WorkflowExecutionTerminatedEventAttributes) *terminated =
        fixture_event_of(fixture, 0, 3)->workflow_execution_terminated_event_attributes;
    EXPECT_TEXT(terminated->reason, "TerminateIfRunning Policy");
    EXPECT_TEXT(terminated->identity, "history-service");
    EXPECT_TEXT(fixture_payload_text(fixture, terminated->details),
                arena_format(fixture->arena, "New runID: %s", fixture->started.run_id));
    EXPECT_TEXT(fixture->current->run_id, fixture->started.run_id);
    EXPECT_EQ(fixture->tasks.count, 1); /* that of the old run is gone */
}

/* All ways to end, all policies. Method: end a run each way, then start again with each policy. */
TEST(start, after_a_close_the_policy_decides, "A-025", "A-026")
{
    enum { COMPLETED, CONTINUED, FAILED, CANCELED, TERMINATED, TIMED_OUT, WAYS };
    static const int policies[] = {POLICY(ALLOW_DUPLICATE_FAILED_ONLY), POLICY(ALLOW_DUPLICATE),
                                   POLICY(REJECT_DUPLICATE), POLICY(TERMINATE_IF_RUNNING)};
    for (int way = 0; way < WAYS; way++) {
        for (size_t i = 0; i < array_length(policies); i++) {
            scoped(fixture_drop) struct fixture *fixture = fixture_new();
            fixture_begin(fixture);
            if (way == COMPLETED)
                close_run(fixture, fixture_complete_run(fixture));
            else if (way == FAILED)
                close_run(fixture, fixture_fail_run(fixture, "why"));
            else if (way == CANCELED)
                close_run(fixture, fixture_cancel_run(fixture));
            else if (way == TERMINATED)
                EXPECT_OK(fixture_terminate(fixture));
            else if (way == TIMED_OUT)
                fixture_advance(fixture, 101);
            else
                continue; /* its next run is open */
            API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
            request->workflow_id_reuse_policy = policies[i];
            struct error *refusal = fixture_start(fixture, request);
            bool failed_only = policies[i] == POLICY(ALLOW_DUPLICATE_FAILED_ONLY);
            if (policies[i] == POLICY(REJECT_DUPLICATE)) {
                EXPECT_KIND(refusal, ERR_ALREADY_STARTED);
                EXPECT(strstr(refusal->message, "reject duplicate workflow ID.") != NULL);
            } else if (failed_only && way == COMPLETED) {
                EXPECT_KIND(refusal, ERR_ALREADY_STARTED);
                EXPECT(strstr(refusal->message,
                              "allow duplicate workflow ID if last run failed.") != NULL);
            } else {
                EXPECT_OK(refusal);
                EXPECT(fixture->started.is_new);
            }
        }
    }
}

COMMAND_TEST(start, a_continued_run_counts_as_one_that_ended_well, "A-025")
{
    fixture_begin(fixture);
    close_run(fixture, fixture_complete_run(fixture));
    fixture->current->close_status = API_VALUE(
        WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW);
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(ALLOW_DUPLICATE_FAILED_ONLY);
    EXPECT_KIND(fixture_start(fixture, request), ERR_ALREADY_STARTED);
}

COMMAND_TEST(start, over_a_corrupted_run_any_policy_starts, "A-028")
{
    fixture_begin(fixture);
    close_run(fixture, fixture_complete_run(fixture));
    fixture->current->state = CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CORRUPTED;
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(REJECT_DUPLICATE);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT(fixture->started.is_new);
}

COMMAND_TEST(start, a_deprecated_domain_takes_no_start, "A-045", "D-025")
{
    STORED(DomainRecord) *record = fixture_domain_record(fixture);
    record->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    fixture_set_domain(fixture, record);
    struct error *refusal = fixture_start(fixture, fixture_start_request(fixture));
    EXPECT_KIND(refusal, ERR_BAD_REQUEST);
    EXPECT_TEXT(refusal->message, "Domain is deprecated.");
}

/* ---- the first event ---- */

COMMAND_TEST(start, header_fields_are_kept_also_empty_ones, "A-031")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    API(Header__FieldsEntry) *entries[2];
    for (int i = 0; i < 2; i++) {
        entries[i] = message_new(fixture->arena, API_TYPE(header__fields_entry));
        entries[i]->key = (char *)(i == 0 ? "a" : "b");
        entries[i]->value = fixture_payload(fixture, i == 0 ? "one" : "");
    }
    request->header = API_NEW(fixture->arena, header, .fields = entries, .n_fields = 2);
    EXPECT_OK(fixture_start(fixture, request));
    const API(Header) *header = started_event(fixture)->header;
    EXPECT_EQ(header->n_fields, 2);
    EXPECT_TEXT(
        fixture_payload_text(fixture, wire_map_find(header->fields, header->n_fields, "a")->value),
        "one");
    const API(Payload) *empty = wire_map_find(header->fields, header->n_fields, "b")->value;
    EXPECT(empty != NULL);
    EXPECT_TEXT(fixture_payload_text(fixture, empty), "");
}

COMMAND_TEST(start, the_first_event_carries_what_the_request_said, "A-032")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->memo = API_NEW(fixture->arena, memo);
    request->search_attributes = API_NEW(fixture->arena, search_attributes);
    request->retry_policy =
        API_NEW(fixture->arena, retry_policy, .initial_interval = fixture_duration(fixture, 1),
                .backoff_coefficient = 2, .maximum_attempts = 3);
    request->active_cluster_selection_policy =
        API_NEW(fixture->arena, active_cluster_selection_policy);
    EXPECT_OK(fixture_start(fixture, request));
    const API(WorkflowExecutionStartedEventAttributes) *first = started_event(fixture);
    EXPECT_TEXT(first->request_id, request->request_id);
    EXPECT_TEXT(first->identity, "client");
    EXPECT_TEXT(first->first_execution_run_id, fixture->started.run_id);
    EXPECT_TEXT(first->original_execution_run_id, fixture->started.run_id);
    EXPECT_TEXT(first->continued_execution_run_id, "");
    EXPECT_EQ(first->attempt, 0);
    EXPECT_TEXT(first->task_list->name, "list");
    EXPECT_EQ(first->task_list->kind, API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
    EXPECT(first->memo != NULL && first->search_attributes != NULL);
    EXPECT_EQ(first->retry_policy->maximum_attempts, 3);
    EXPECT(first->active_cluster_selection_policy != NULL);
    EXPECT_EQ(first->execution_start_to_close_timeout->seconds, 100);
}

TEST(start, the_decision_timeout_is_lowered_without_an_error, "A-034")
{
    static const struct {
        int64_t execution, asked, wanted;
    } cases[] = {{1000, 10, 10}, {1000, 500, 240}, {5, 10, 5}, {241, 240, 240}};
    for (size_t i = 0; i < array_length(cases); i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
        request->execution_start_to_close_timeout = fixture_duration(fixture, cases[i].execution);
        request->task_start_to_close_timeout = fixture_duration(fixture, cases[i].asked);
        EXPECT_OK(fixture_start(fixture, request));
        EXPECT_EQ(started_event(fixture)->task_start_to_close_timeout->seconds, cases[i].wanted);
        EXPECT_EQ(fixture_run(fixture)->core->decision_timeout, cases[i].wanted);
    }
}

/* ---- the first decision ---- */

COMMAND_TEST(start, a_delayed_run_gets_its_first_decision_at_its_time, "A-040")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted");
    fixture_advance(fixture, 9);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted");
    EXPECT(!fixture_poll_decision(fixture));
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_TWO);
    EXPECT_EQ(fixture_event_time(fixture_event(fixture, 2)) -
                  fixture_event_time(fixture_event(fixture, 1)),
              10 * FIXTURE_SECOND);
    /* The timeout of the run counts from its first decision. */
    EXPECT_EQ(fixture_run(fixture)->core->timeout_time - fixture_run(fixture)->core->start_time,
              110 * FIXTURE_SECOND);
}

COMMAND_TEST(start, a_signal_before_the_delay_has_passed_schedules_nothing, "A-041")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT_OK(fixture_signal(fixture, "early", ""));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted WorkflowExecutionSignaled");
    EXPECT(!run_has_pending_decision(fixture_run(fixture)));
    EXPECT(run_is_open(fixture_run(fixture)));
    fixture_advance(fixture, 10);
    EXPECT_HISTORY(fixture,
                   "WorkflowExecutionStarted WorkflowExecutionSignaled DecisionTaskScheduled");
}

/* Seconds that the first decision of such a start waits. */
static int64_t
backoff_of(struct fixture *fixture, int64_t delay, int64_t jitter, int64_t first_run_in)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->workflow_id_reuse_policy = POLICY(TERMINATE_IF_RUNNING);
    request->delay_start = fixture_duration(fixture, delay);
    request->jitter_start = fixture_duration(fixture, jitter);
    request->first_run_at = presence_make_timestamp(
        fixture->arena, fixture->context.now + first_run_in * FIXTURE_SECOND);
    EXPECT_OK(fixture_start(fixture, request));
    return started_event(fixture)->first_decision_task_backoff->seconds;
}

COMMAND_TEST(start, the_time_of_the_first_run_overrides_the_delay_unless_it_has_passed, "A-042")
{
    EXPECT_EQ(backoff_of(fixture, 7, 5, 30), 30);
    EXPECT_EQ(backoff_of(fixture, 7, 0, -30), 7);
    EXPECT_EQ(backoff_of(fixture, 0, 0, 0), 0);
    EXPECT_EQ(backoff_of(fixture, (int64_t)1 << 38, (int64_t)1 << 38, -1), INT32_MAX);
}

TEST(start, jitter_adds_up_to_so_many_seconds_to_the_delay, "A-043")
{
    bool seen[4] = {false};
    for (int i = 0; i < 100; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        random_seed(&fixture->random, (uint64_t)i);
        int64_t backoff = backoff_of(fixture, 10, 3, -1);
        EXPECT(backoff >= 10 && backoff <= 13);
        seen[backoff - 10] = true;
        EXPECT_EQ(fixture_run(fixture)->core->jitter_start, 3);
    }
    for (int i = 0; i < 4; i++)
        EXPECT(seen[i]);
}

COMMAND_TEST(start, retries_expire_counted_from_the_first_decision_in_whole_milliseconds, "A-044")
{
    fixture->context.now += 1500400; /* 1.5004 ms */
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    request->retry_policy =
        API_NEW(fixture->arena, retry_policy, .expiration_interval = fixture_duration(fixture, 60));
    EXPECT_OK(fixture_start(fixture, request));
    const GOOGLE(Timestamp) *expiration = started_event(fixture)->expiration_time;
    int64_t time = expiration->seconds * FIXTURE_SECOND + expiration->nanos;
    EXPECT_EQ(time, (fixture->context.now - 1500400) + 70 * FIXTURE_SECOND + 2000000);
    EXPECT_EQ(fixture_run(fixture)->core->expiration_time, time);
}
