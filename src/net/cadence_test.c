/* cadence_test.c - what Cadence's clients look at in calls and answers: the headers of YARPC, and
 * typed errors. The pairs of status and detail stand here once more, as those clients have them. */
#include "fiber/contract/contract.h"
#include "net/grpc.h"
#include "net/test_raw.h"

#define API_ERROR(name)    "uber.cadence.api.v1." name
#define SHARED_ERROR(name) "uber.cadence.shared.v1." name

static const struct wire_error {
    enum error_kind kind;
    int status;
    const char *detail; /* NULL: none */
} wire_errors[] = {
    {ERR_BAD_REQUEST, 3, NULL},
    {ERR_QUERY_FAILED, 3, API_ERROR("QueryFailedError")},
    {ERR_ENTITY_NOT_EXISTS, 5, API_ERROR("EntityNotExistsError")},
    {ERR_ALREADY_COMPLETED, 5, API_ERROR("WorkflowExecutionAlreadyCompletedError")},
    {ERR_ALREADY_STARTED, 6, API_ERROR("WorkflowExecutionAlreadyStartedError")},
    {ERR_CANCELLATION_ALREADY_REQUESTED, 6, API_ERROR("CancellationAlreadyRequestedError")},
    {ERR_DOMAIN_ALREADY_EXISTS, 6, API_ERROR("DomainAlreadyExistsError")},
    {ERR_EVENT_ALREADY_STARTED, 6, SHARED_ERROR("EventAlreadyStartedError")},
    {ERR_DOMAIN_NOT_ACTIVE, 9, API_ERROR("DomainNotActiveError")},
    {ERR_CLIENT_VERSION_NOT_SUPPORTED, 9, API_ERROR("ClientVersionNotSupportedError")},
    {ERR_FEATURE_NOT_ENABLED, 9, API_ERROR("FeatureNotEnabledError")},
    {ERR_LIMIT_EXCEEDED, 8, API_ERROR("LimitExceededError")},
    {ERR_SERVICE_BUSY, 8, API_ERROR("ServiceBusyError")},
    {ERR_STICKY_WORKER_UNAVAILABLE, 14, API_ERROR("StickyWorkerUnavailableError")},
    {ERR_REMOTE_SYNC_MATCHED, 14, SHARED_ERROR("RemoteSyncMatchedError")},
    {ERR_READ_ONLY_PARTITION, 10, API_ERROR("ReadOnlyPartitionError")},
    {ERR_SHARD_OWNERSHIP_LOST, 10, SHARED_ERROR("ShardOwnershipLostError")},
    {ERR_CURRENT_BRANCH_CHANGED, 10, SHARED_ERROR("CurrentBranchChangedError")},
    {ERR_RETRY_TASK, 10, SHARED_ERROR("RetryTaskV2Error")},
    {ERR_TASK_LIST_NOT_OWNED, 10, SHARED_ERROR("TaskListNotOwnedByHostError")},
    {ERR_DATA_INCONSISTENCY, 15, SHARED_ERROR("InternalDataInconsistencyError")},
    {ERR_ACCESS_DENIED, 7, NULL},
    {ERR_INTERNAL, 13, NULL},
    {ERR_UNCATEGORISED, 2, NULL},
};

/* Fails with the kind; the detail is "\x0a\x01x", whatever it is a detail of. */
static void
expect_on_the_wire(struct raw *raw, int32_t stream, const struct wire_error *wanted,
                   struct arena *arena)
{
    char request[] = {(char)wanted->kind, 'm', '\0', '\x0a', '\x01', 'x'};
    struct slice message, type, detail;
    int code = -1;
    raw_forget(raw);
    raw_request(raw, stream, "/test/fail", slice_of(request, sizeof request));
    EXPECT(raw_wait(raw));
    EXPECT_EQ(raw->http_status, 200);
    EXPECT_EQ(raw->grpc_status, wanted->status);
    EXPECT_EQ(raw->details[0] != '\0', wanted->detail != NULL);
    EXPECT_TEXT(raw->error_name, wanted->detail == NULL ? "" : strrchr(wanted->detail, '.') + 1);
    if (wanted->detail == NULL)
        return;
    EXPECT(grpc_status_details_decode(slice_text(raw->details), arena, &code, &message, &type,
                                      &detail));
    EXPECT_EQ(code, wanted->status);
    EXPECT(slice_equal(message, slice_text("m")));
    EXPECT_TEXT(arena_text_of(arena, type), wanted->detail);
    EXPECT(slice_equal(detail, slice_of("\x0a\x01x", 3)));
}

CONTRACT(cadence, a_typed_error_is_a_status_and_one_detail, 1, "A-004", "A-005", "A-006", "A-007",
         "A-008", "A-009")
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    for (size_t i = 0; i < array_length(wire_errors); i++)
        expect_on_the_wire(&raw, (int32_t)(2 * i + 1), &wire_errors[i], arena);
    raw_finish(&raw, &service, arena);
}

/* Is every kind that has a detail in the table above? */
CONTRACT(cadence, no_typed_error_is_left_out, 1)
{
    EXPECT(arena != NULL);
    for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
        bool is_there = error_kind_detail((enum error_kind)kind) == NULL;
        for (size_t i = 0; i < array_length(wire_errors); i++)
            is_there = is_there || (int)wire_errors[i].kind == kind;
        if (!is_there)
            TEST_FAIL("errors of kind %s are not tested", error_kind_name((enum error_kind)kind));
    }
}

/* No two kinds look the same to a client. */
CONTRACT(cadence, a_client_tells_all_typed_errors_apart, 1, "A-004", "A-007")
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    for (size_t i = 0; i < array_length(wire_errors); i++) {
        char request[] = {(char)wire_errors[i].kind, 'm', '\0', '\x0a', '\x01', 'x'};
        struct error *err =
            test_call(client, "/test/fail", slice_of(request, sizeof request), arena, &response);
        EXPECT_KIND(err, wire_errors[i].kind);
    }
    grpc_client_free(client);
    test_service_close(&service);
}

/* A client of YARPC fails a call whose answer names another service than it asked for; an answer
 * that names none is good. */
CONTRACT(cadence, the_headers_of_yarpc_are_taken_and_the_answer_names_no_other_service, 1, "A-003")
{
    const struct raw_field fields[] = {
        {":method", "POST"},
        {":scheme", "http"},
        {":path", "/test/echo"},
        {":authority", "cadence"},
        {"te", "trailers"},
        {"content-type", "application/grpc+proto"},
        {"rpc-caller", "worker"},
        {"rpc-service", "cadence-frontend"},
        {"rpc-encoding", "proto"},
        {"context-ttl-ms", "1000"},
        {NULL, NULL},
    };
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_headers(&raw, 0, 1, fields);
    raw_frame(&raw, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, slice_of("\0\0\0\0\1x", 6));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, 0);
    EXPECT_EQ(raw.data_bytes, 6);
    EXPECT(raw.rpc_service[0] == '\0' || strcmp(raw.rpc_service, "cadence-frontend") == 0);
    raw_finish(&raw, &service, arena);
}
