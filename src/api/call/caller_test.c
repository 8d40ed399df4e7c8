/* caller_test.c - answers depend on who asks: what a client knows, and whether the server stays. */
#include "api/test/fixture.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"
#include "wire/names.h"
#include "wire/services.h"

#define HEADER(name_, value_)                                                                      \
    {                                                                                              \
        SLICE_LITERAL(name_), SLICE_LITERAL(value_)                                                \
    }

static struct error *
cancel_closed(struct fixture *fixture, const struct call_header *headers, size_t count)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        API_NEW(fixture->arena, request_cancel_workflow_execution_request, .domain = "orders",
                .workflow_execution = fixture_execution(fixture, "wf"),
                .request_id = fixture_uuid(fixture));
    fixture->headers = headers;
    fixture->header_count = count;
    struct error *err = fixture_call(fixture, request, NULL);
    fixture->header_count = 0;
    return err;
}

static void
close_run(struct fixture *fixture)
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
}

/* As the Go client and the CLI say it, with a flag that nobody knows; the other name of the field;
 * a name that it does not have. */
#define FLAGS_ON    "{\"WorkflowExecutionAlreadyCompletedErrorEnabled\":true,\"other\":1}"
#define FLAGS_FIELD "{\"workflow_execution_already_completed_error_enabled\":true}"
#define FLAGS_WRONG "{\"workflowExecutionAlreadyCompletedErrorEnabled\":true}"
#define FLAGS_OFF   "{\"WorkflowExecutionAlreadyCompletedErrorEnabled\":false}"

SERVER_TEST(caller, only_clients_that_know_the_error_are_told_that_a_run_has_completed, "A-010",
            "A-002", "A-006")
{
    static const struct {
        struct call_header headers[3];
        size_t count;
        bool is_known;
    } cases[] = {
        {.count = 0},
        {{HEADER("cadence-client-feature-flags", FLAGS_ON)}, 1, false},
        {{HEADER("cadence-client-name", "uber-go"),
          HEADER("cadence-client-feature-version", "1.7.0"),
          HEADER("cadence-client-feature-flags", FLAGS_ON)},
         3,
         true},
        {{HEADER("cadence-client-name", "uber-go"),
          HEADER("cadence-client-feature-version", "1.6.9"),
          HEADER("cadence-client-feature-flags", FLAGS_ON)},
         3,
         false},
        {{HEADER("cadence-client-name", "uber-java"),
          HEADER("cadence-client-feature-version", "1.4.0"),
          HEADER("cadence-client-feature-flags", FLAGS_ON)},
         3,
         true},
        {{HEADER("cadence-client-name", "cli"), HEADER("cadence-client-feature-version", "1.10.0"),
          HEADER("cadence-client-feature-flags", FLAGS_ON)},
         3,
         true},
        {{HEADER("cadence-client-name", "uber-go"),
          HEADER("cadence-client-feature-version", "1.7.0"),
          HEADER("cadence-client-feature-flags", "{not json")},
         3,
         false},
        {{HEADER("cadence-client-name", "uber-go"),
          HEADER("cadence-client-feature-version", "1.7.0"),
          HEADER("cadence-client-feature-flags", FLAGS_FIELD)},
         3,
         true},
        {{HEADER("cadence-client-name", "uber-go"),
          HEADER("cadence-client-feature-version", "1.7.0"),
          HEADER("cadence-client-feature-flags", FLAGS_WRONG)},
         3,
         false},
        {{HEADER("cadence-client-name", "uber-go"),
          HEADER("cadence-client-feature-version", "1.7.0"),
          HEADER("cadence-client-feature-flags", FLAGS_OFF)},
         3,
         false},
    };
    close_run(fixture);
    for (size_t i = 0; i < array_length(cases); i++) {
        struct error *err = cancel_closed(fixture, cases[i].headers, cases[i].count);
        EXPECT_KIND(err, cases[i].is_known ? ERR_ALREADY_COMPLETED : ERR_ENTITY_NOT_EXISTS);
        if (!cases[i].is_known)
            EXPECT_TEXT(err->message, "Workflow execution already completed.");
    }
}

static struct error *
describe_as(struct fixture *fixture, const struct call_header *headers, size_t count)
{
    API(DescribeDomainRequest) *request = API_NEW(
        fixture->arena, describe_domain_request,
        .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME), .name = "orders");
    fixture->headers = headers;
    fixture->header_count = count;
    struct error *err = fixture_call(fixture, request, NULL);
    fixture->header_count = 0;
    return err;
}

SERVER_TEST(caller, clients_that_are_too_new_are_refused_where_that_is_asked_for, "A-011")
{
    static const struct call_header newer[] = {HEADER("cadence-client-name", "uber-java"),
                                               HEADER("cadence-client-feature-version", "1.5.1")};
    static const struct call_header newest[] = {HEADER("cadence-client-name", "uber-java"),
                                                HEADER("cadence-client-feature-version", "1.5.0")};
    static const struct call_header stranger[] = {
        HEADER("cadence-client-name", "uber-cobol"),
        HEADER("cadence-client-feature-version", "9.0.0")};
    EXPECT_OK(describe_as(fixture, newer, 2)); /* not checked unless it is asked for */
    fixture_set(fixture, "frontend.enableClientVersionCheck:\n- value: true\n");
    EXPECT_KIND(describe_as(fixture, newer, 2), ERR_CLIENT_VERSION_NOT_SUPPORTED);
    EXPECT_OK(describe_as(fixture, newest, 2));
    EXPECT_OK(describe_as(fixture, stranger, 2));
    EXPECT_OK(describe_as(fixture, newer, 1));
    EXPECT_OK(describe_as(fixture, NULL, 0));
}

static void
cluster_info(struct fixture *fixture)
{
    API(GetClusterInfoResponse) *response = API_OK(fixture, get_cluster_info);
    EXPECT_TEXT(response->supported_client_versions->go_sdk, "1.7.0");
    EXPECT_TEXT(response->supported_client_versions->java_sdk, "1.5.0");
}

TEST(caller, the_newest_known_clients_are_told, "A-012")
{
    fixture_run(cluster_info);
}

SERVER_TEST(caller, a_server_that_stops_says_so_to_every_call, "A-015")
{
    api_drain(fixture->api);
    struct error *err = describe_as(fixture, NULL, 0);
    EXPECT_KIND(err, ERR_UNCATEGORISED); /* INTERNAL is never shown at this door */
    EXPECT(strstr(err->message, "Shutting down") != NULL);
    cluster_info(fixture);
}

/* YARPC's headers, as the Go client sends them. */
SERVER_TEST(caller, the_headers_of_yarpc_are_understood, "A-003")
{
    static const struct call_header right[] = {HEADER("rpc-caller", "cadence-client"),
                                               HEADER("rpc-service", "cadence-frontend"),
                                               HEADER("rpc-encoding", "proto")};
    static const struct call_header wrong[] = {HEADER("rpc-service", "another")};
    EXPECT_OK(describe_as(fixture, right, 3));
    EXPECT_KIND(describe_as(fixture, wrong, 1), ERR_UNIMPLEMENTED);
}

TEST(caller, the_public_services_have_all_their_rpcs, "A-001")
{
    static const struct {
        const char *service;
        size_t count;
    } services[] = {
        {"uber.cadence.api.v1.WorkflowAPI", 18}, {"uber.cadence.api.v1.WorkerAPI", 14},
        {"uber.cadence.api.v1.DomainAPI", 8},    {"uber.cadence.api.v1.VisibilityAPI", 7},
        {"uber.cadence.api.v1.ScheduleAPI", 8},  {"uber.cadence.api.v1.MetaAPI", 1},
        {"uber.cadence.admin.v1.AdminAPI", 39},
    };
    for (size_t i = 0; i < array_length(services); i++) {
        size_t count = 0;
        for (size_t j = 0; j < wire_method_count(); j++)
            count += strcmp(wire_method_at(j).service->name, services[i].service) == 0;
        EXPECT_EQ(count, services[i].count);
    }
}

/* Is there such a field? */
static bool
has_field(const ProtobufCMessageDescriptor *type, uint32_t number, const char *name)
{
    const ProtobufCFieldDescriptor *field = message_find_field(type, number);
    return field != NULL && strcmp(field->name, name) == 0;
}

TEST(caller, fields_of_the_newest_clients_are_known, "A-018")
{
    EXPECT(has_field(API_TYPE(failure), 3, "options"));
    EXPECT(has_field(API_TYPE(failure_options), 1, "failure_category"));
    EXPECT(has_field(API_TYPE(failure_options), 2, "next_retry_interval"));
    EXPECT(has_field(API_TYPE(respond_activity_task_failed_request), 4, "heartbeat_details"));
    EXPECT(has_field(API_TYPE(respond_activity_task_failed_by_idrequest), 6, "heartbeat_details"));
    EXPECT(has_field(API_TYPE(create_schedule_request), 8, "state"));
    EXPECT(has_field(API_TYPE(schedule_info), 9, "buffered_fire_count"));
    EXPECT(has_field(API_TYPE(schedule_info), 10, "running_workflow_count"));
    EXPECT_EQ(API_VALUE(FAILURE_CATEGORY__FAILURE_CATEGORY_FATAL), 3);
}
