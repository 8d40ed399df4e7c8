/* refusal_test.c - what is wrong with a request is said in the words that Cadence's users know.
 *
 * Method: a request that is fine, one thing in it made wrong, and the answer compared. */
#include "api/test/fixture.h"
#include "wire/names.h"

#define EXPECT_REFUSED(err_, text_)                                                                \
    do {                                                                                           \
        const struct error *refusal_ = (err_);                                                     \
        EXPECT_KIND(refusal_, ERR_BAD_REQUEST);                                                    \
        EXPECT_TEXT(refusal_->message, text_);                                                     \
    } while (0)

/* A start with one thing changed. */
#define EXPECT_START_REFUSED(fixture, change, text)                                                \
    do {                                                                                           \
        API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");                \
        change;                                                                                    \
        EXPECT_REFUSED(fixture_call(fixture, request, NULL), text);                                \
    } while (0)

static char *
long_name(struct fixture *fixture, size_t length)
{
    char *name = arena_alloc(fixture->arena, length + 1);
    memset(name, 'x', length);
    name[length] = '\0';
    return name;
}

SERVER_TEST(refusal, a_start_without_what_names_it_is_refused, "A-016", "A-017", "A-022", "A-036")
{
    EXPECT_START_REFUSED(fixture, request->domain = "", "Domain not set on request.");
    EXPECT_START_REFUSED(fixture, request->workflow_id = "", "WorkflowId is not set on request.");
    EXPECT_START_REFUSED(fixture, request->request_id = "again",
                         "requestId \"again\" is not a valid UUID");
    EXPECT_START_REFUSED(fixture, request->workflow_type = NULL,
                         "WorkflowType is not set on request.");
    EXPECT_START_REFUSED(fixture, request->workflow_type->name = "",
                         "WorkflowType is not set on request.");
    EXPECT_START_REFUSED(fixture, request->task_list = NULL, "TaskList is not set on request.");
    EXPECT_START_REFUSED(fixture, request->task_list->name = "", "TaskList is not set on request.");
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->domain = "nobody";
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Domain nobody does not exist.");
}

/* Cadence runs it in the server. It would be accepted here, and nobody would ever run it. */
SERVER_TEST(refusal, a_start_of_the_shadow_workflow_says_that_it_is_not_served)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "orders-shadow-workflow");
    request->domain = "cadence-shadower";
    request->workflow_type->name = "cadence-shadow-workflow";
    struct error *err = fixture_call(fixture, request, NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message,
                "Workflows of type cadence-shadow-workflow are not served: this server has no "
                "worker that shadows workflows. Replay histories with the client's workflow "
                "replayer instead.");
    request->domain = "orders"; /* anybody's own type of that name */
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

SERVER_TEST(refusal, times_of_a_start_must_make_sense, "A-033", "A-035", "A-182")
{
    struct arena *arena = fixture->arena;
    EXPECT_START_REFUSED(
        fixture, request->execution_start_to_close_timeout = presence_make_duration(arena, 0),
        "A valid ExecutionStartToCloseTimeoutSeconds is not set on request.");
    EXPECT_START_REFUSED(fixture, request->execution_start_to_close_timeout = NULL,
                         "A valid ExecutionStartToCloseTimeoutSeconds is not set on request.");
    EXPECT_START_REFUSED(fixture,
                         request->task_start_to_close_timeout = presence_make_duration(arena, -1),
                         "A valid TaskStartToCloseTimeoutSeconds is not set on request.");
    EXPECT_START_REFUSED(fixture, request->delay_start = presence_make_duration(arena, -5),
                         "A valid DelayStartSeconds is not set on request.");
    EXPECT_START_REFUSED(fixture, request->jitter_start = presence_make_duration(arena, -5),
                         "A valid JitterStartSeconds is not set on request (negative).");
    EXPECT_START_REFUSED(fixture,
                         (request->jitter_start = presence_make_duration(arena, 61),
                          request->cron_schedule = "* * * * *"),
                         "A valid JitterStartSeconds is not set on request (larger than cron "
                         "duration).");
    EXPECT_START_REFUSED(
        fixture, request->cron_schedule = "* * * *",
        "Invalid CronSchedule, failed to parse: \"* * * *\", err: expected exactly "
        "5 fields, found 4: [* * * *]");
    EXPECT_START_REFUSED(fixture, request->cron_schedule = "0 0 31 4 *",
                         "Invalid CronSchedule, no next firing time found, maybe impossible date: "
                         "\"0 0 31 4 *\"");
}

SERVER_TEST(refusal, names_have_a_longest_length, "A-016", "A-037")
{
    char *longest = long_name(fixture, 1000), *longer = long_name(fixture, 1001);
    EXPECT_START_REFUSED(fixture, request->domain = longer, "Domain length exceeds limit.");
    EXPECT_START_REFUSED(fixture, request->workflow_id = longer,
                         "WorkflowID length exceeds limit.");
    EXPECT_START_REFUSED(fixture, request->workflow_type->name = longer,
                         "WorkflowType length exceeds limit.");
    EXPECT_START_REFUSED(fixture, request->task_list->name = longer,
                         "TaskList length exceeds limit.");
    EXPECT_START_REFUSED(fixture, request->identity = longer, "Identity length exceeds limit.");
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, longest);
    request->workflow_type->name = longest;
    request->task_list->name = longest;
    EXPECT_OK(fixture_call(fixture, request, NULL));

    API(SignalWithStartWorkflowExecutionRequest) *signal =
        API_NEW(fixture->arena, signal_with_start_workflow_execution_request,
                .start_request = fixture_start(fixture, "wf"));
    signal->start_request->request_id = longer;
    signal->signal_name = "go";
#define SIGNAL_WITH_START fixture_call(fixture, signal, NULL)
    EXPECT_REFUSED(SIGNAL_WITH_START, "RequestID length exceeds limit.");
    signal->start_request->request_id = fixture_uuid(fixture);
    signal->signal_name = longer;
    EXPECT_REFUSED(SIGNAL_WITH_START, "SignalName length exceeds limit.");
    signal->signal_name = "";
    EXPECT_REFUSED(SIGNAL_WITH_START, "SignalName is not set on request.");
    signal->start_request = NULL;
    EXPECT_REFUSED(SIGNAL_WITH_START, "Request is nil.");
}

SERVER_TEST(refusal, input_and_memo_together_have_a_largest_size, "A-038", "A-135")
{
    fixture_set(fixture, "limit.blobSize.error:\n- value: 100\n");
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->input = fixture_payload(fixture, long_name(fixture, 60));
    request->memo = API_NEW(fixture->arena, memo);
    API(Memo__FieldsEntry) *entry = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    entry->key = long_name(fixture, 20);
    entry->value = fixture_payload(fixture, long_name(fixture, 21));
    request->memo->n_fields = 1;
    request->memo->fields = &entry;
    EXPECT_REFUSED(fixture_call(fixture, request, NULL), "Blob data size exceeds limit.");
    EXPECT(strstr(fixture->logged, "Blob size exceeds limit.") != NULL);
    fixture->logged[0] = '\0';
    entry->value = fixture_payload(fixture, long_name(fixture, 20));
    EXPECT_OK(fixture_call(fixture, request, NULL));
    EXPECT_TEXT(fixture->logged, ""); /* far from the default */
    fixture_set(fixture, "limit.blobSize.error:\n- value: 100\n"
                         "limit.blobSize.warn:\n- value: 99\n");
    request->request_id = fixture_uuid(fixture);
    request->workflow_id = "large";
    EXPECT_OK(fixture_call(fixture, request, NULL));
    EXPECT(strstr(fixture->logged, "Blob size close to the limit.") != NULL);
    EXPECT(strstr(fixture->logged, "\"large\"") != NULL);

    API(SignalWorkflowExecutionRequest) *signal =
        API_NEW(fixture->arena, signal_workflow_execution_request, .domain = "orders",
                .workflow_execution = fixture_execution(fixture, "wf"), .signal_name = "go",
                .signal_input = fixture_payload(fixture, long_name(fixture, 101)));
    EXPECT_REFUSED(fixture_call(fixture, signal, NULL), "Blob data size exceeds limit.");
    signal->signal_name = "";
    EXPECT_REFUSED(fixture_call(fixture, signal, NULL), "SignalName is not set on request.");
}

SERVER_TEST(refusal, every_breach_of_a_retry_policy_has_its_own_sentence, "A-039")
{
    static const struct {
        int64_t initial, maximum, expiration;
        double coefficient;
        int32_t attempts;
        const char *text;
    } cases[] = {
        {0, 0, 10, 2, 3, "InitialIntervalInSeconds must be greater than 0 on retry policy."},
        {1, 0, 10, 0.5, 3, "BackoffCoefficient cannot be less than 1 on retry policy."},
        {1, -1, 10, 2, 3, "MaximumIntervalInSeconds cannot be less than 0 on retry policy."},
        {5, 4, 10, 2, 3,
         "MaximumIntervalInSeconds cannot be less than InitialIntervalInSeconds on retry policy."},
        {1, 0, 10, 2, -1, "MaximumAttempts cannot be less than 0 on retry policy."},
        {1, 0, -1, 2, 3, "ExpirationIntervalInSeconds cannot be less than 0 on retry policy."},
        {1, 0, 0, 2, 0,
         "MaximumAttempts and ExpirationIntervalInSeconds are both 0. At least one of them must be "
         "specified."},
        {1, 1, 0, 1, 1, NULL},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
        request->retry_policy = API_NEW(
            fixture->arena, retry_policy,
            .initial_interval = presence_make_duration(fixture->arena, cases[i].initial),
            .maximum_interval = presence_make_duration(fixture->arena, cases[i].maximum),
            .expiration_interval = presence_make_duration(fixture->arena, cases[i].expiration),
            .backoff_coefficient = cases[i].coefficient, .maximum_attempts = cases[i].attempts);
        if (cases[i].text == NULL)
            EXPECT_OK(fixture_call(fixture, request, NULL));
        else
            EXPECT_REFUSED(fixture_call(fixture, request, NULL), cases[i].text);
    }
}

static void
deprecated(struct fixture *fixture)
{
    run_start(fixture, "wf");
    EXPECT_OK(API_CALL(fixture, NULL, deprecate_domain, .name = "orders"));
    EXPECT_REFUSED(fixture_call(fixture, fixture_start(fixture, "other"), NULL),
                   "Domain is deprecated.");

    EXPECT_REFUSED(API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                            .workflow_execution = fixture_execution(fixture, "wf"),
                            .signal_name = "go"),
                   "Domain is deprecated.");

    terminate_run(fixture, "wf");
    EXPECT_REFUSED(API_CALL(fixture, NULL, delete_domain,
                            .name = "orders" /* its runs are over, but still to be read */),
                   "Domain still have workflow execution history.");
}

TEST(refusal, a_deprecated_domain_takes_no_runs_and_no_signals_but_lets_them_be_ended, "A-045",
     "A-136", "A-197", "D-025", "D-027")
{
    fixture_run(deprecated);
}

SERVER_TEST(refusal, a_run_must_be_named, "A-016", "A-017")
{
    API(TerminateWorkflowExecutionRequest) *end =
        API_NEW(fixture->arena, terminate_workflow_execution_request);
#define TERMINATE fixture_call(fixture, end, NULL)
    EXPECT_REFUSED(TERMINATE, "Domain not set on request.");
    end->domain = "orders";
    EXPECT_REFUSED(TERMINATE, "Execution is not set on request.");
    end->workflow_execution = fixture_execution(fixture, "");
    EXPECT_REFUSED(TERMINATE, "WorkflowId is not set on request.");
    end->workflow_execution->workflow_id = "wf";
    end->workflow_execution->run_id = "not-a-uuid";
    EXPECT_REFUSED(TERMINATE, "Invalid RunId.");
    end->workflow_execution->run_id = fixture_uuid(fixture);
    EXPECT_KIND(TERMINATE, ERR_ENTITY_NOT_EXISTS);
    end->domain = "nobody";
    EXPECT_KIND(TERMINATE, ERR_ENTITY_NOT_EXISTS);
}

SERVER_TEST(refusal, a_task_list_is_described_by_name_and_type, "C-013")
{
    API(DescribeTaskListRequest) *request = API_NEW(fixture->arena, describe_task_list_request);
    API(DescribeTaskListResponse) *response;
#define DESCRIBE fixture_call(fixture, request, &response)
    request->domain = "orders";
    request->task_list = fixture_list(fixture, "work");
    EXPECT_REFUSED(DESCRIBE, "TaskListType is not set on request.");
    request->task_list_type = API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_DECISION);
    EXPECT_OK(DESCRIBE);
    EXPECT_EQ(response->n_pollers, 0);
    request->task_list = NULL;
    EXPECT_REFUSED(DESCRIBE, "TaskList is not set on request.");
}

SERVER_TEST(refusal, fields_that_newer_clients_send_are_not_refused, "A-019")
{
    struct slice known = message_encode(fixture->arena, &fixture_start(fixture, "wf")->base);
    uint8_t *bytes = arena_alloc(fixture->arena, known.length + 4);
    memcpy(bytes, known.data, known.length);
    memcpy(bytes + known.length, "\xf2\x7f\x01x", 4); /* field 2046, one byte of text */
    struct grpc_request request = {.path =
                                       "/uber.cadence.api.v1.WorkflowAPI/StartWorkflowExecution",
                                   .message = slice_of(bytes, known.length + 4)};
    struct slice answer;
    EXPECT_OK(grpc_client_call(fixture->client, &request, fixture->arena, &answer));
}
