/* errors_test.c - every kind of error as a client gets it: its status and its detail tell them
 * apart.
 *
 * Method: a door whose only call fails with each kind in turn; our client reads the kind back from
 * what came over the wire. The door for clusters shows all kinds; the one for clients hides some.
 */
#include "fiber/linux/linux.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "net/client.h"
#include "rpc/service.h"
#include "wire/errors.h"

#define ADMIN_CALL  "/uber.cadence.admin.v1.AdminAPI/DescribeCluster"
#define PUBLIC_CALL "/uber.cadence.api.v1.MetaAPI/Health"

struct shown {
    enum error_kind kind;
    int status;
    const char *detail; /* NULL: none */
};

#define API_DETAIL(name)    "uber.cadence.api.v1." name
#define SHARED_DETAIL(name) "uber.cadence.shared.v1." name

static const struct shown kinds[] = {
    {ERR_BAD_REQUEST, 3, NULL},
    {ERR_QUERY_FAILED, 3, API_DETAIL("QueryFailedError")},
    {ERR_ENTITY_NOT_EXISTS, 5, API_DETAIL("EntityNotExistsError")},
    {ERR_ALREADY_COMPLETED, 5, API_DETAIL("WorkflowExecutionAlreadyCompletedError")},
    {ERR_ALREADY_STARTED, 6, API_DETAIL("WorkflowExecutionAlreadyStartedError")},
    {ERR_CANCELLATION_ALREADY_REQUESTED, 6, API_DETAIL("CancellationAlreadyRequestedError")},
    {ERR_DOMAIN_ALREADY_EXISTS, 6, API_DETAIL("DomainAlreadyExistsError")},
    {ERR_DOMAIN_NOT_ACTIVE, 9, API_DETAIL("DomainNotActiveError")},
    {ERR_CLIENT_VERSION_NOT_SUPPORTED, 9, API_DETAIL("ClientVersionNotSupportedError")},
    {ERR_FEATURE_NOT_ENABLED, 9, API_DETAIL("FeatureNotEnabledError")},
    {ERR_LIMIT_EXCEEDED, 8, API_DETAIL("LimitExceededError")},
    {ERR_SERVICE_BUSY, 8, API_DETAIL("ServiceBusyError")},
    {ERR_STICKY_WORKER_UNAVAILABLE, 14, API_DETAIL("StickyWorkerUnavailableError")},
    {ERR_REMOTE_SYNC_MATCHED, 14, SHARED_DETAIL("RemoteSyncMatchedError")},
    {ERR_READ_ONLY_PARTITION, 10, API_DETAIL("ReadOnlyPartitionError")},
    {ERR_SHARD_OWNERSHIP_LOST, 10, SHARED_DETAIL("ShardOwnershipLostError")},
    {ERR_CURRENT_BRANCH_CHANGED, 10, SHARED_DETAIL("CurrentBranchChangedError")},
    {ERR_RETRY_TASK, 10, SHARED_DETAIL("RetryTaskV2Error")},
    {ERR_TASK_LIST_NOT_OWNED, 10, SHARED_DETAIL("TaskListNotOwnedByHostError")},
    {ERR_DATA_INCONSISTENCY, 15, SHARED_DETAIL("InternalDataInconsistencyError")},
    {ERR_ACCESS_DENIED, 7, NULL},
    {ERR_INTERNAL, 13, NULL},
    {ERR_UNCATEGORISED, 2, NULL},
};

/* The door fails with what it is told. */
static struct error *
fail_so(struct rpc_call *call)
{
    const struct shown *shown = call->door;
    return error_new(call->arena, shown->kind, "it went wrong");
}

static const struct rpc_method methods[] = {
    {ADMIN_CALL, fail_so}, {PUBLIC_CALL, fail_so}, {NULL, NULL}};

static struct error *
fail_over_the_wire(const struct shown *shown, const char *path, struct arena *arena)
{
    struct metrics *metrics = metrics_new();
    struct rpc_table table = {.methods = methods, .door = (void *)shown};
    struct rpc_service *service = rpc_service_new(&table, 1, NULL, metrics);
    struct grpc_server *server = NULL;
    struct grpc_server_options options = {.address = "127.0.0.1:0",
                                          .service = rpc_service_port(service)};
    EXPECT_OK(grpc_server_open(&options, arena, &server));
    struct grpc_client *client =
        grpc_client_new(&(struct grpc_client_options){.address = grpc_server_address(server)});
    struct grpc_request request = {.path = path};
    struct slice response;
    struct error *err = grpc_client_call(client, &request, arena, &response);
    grpc_client_free(client);
    grpc_server_close(server, clock_monotonic() + NS_PER_S);
    rpc_service_free(service);
    metrics_free(metrics);
    return err;
}

static void
all_kinds(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(clock_monotonic() + 60 * NS_PER_S);
    for (size_t i = 0; i < array_length(kinds); i++) {
        EXPECT_EQ(error_kind_status(kinds[i].kind), kinds[i].status);
        EXPECT((error_kind_detail(kinds[i].kind) == NULL) == (kinds[i].detail == NULL));
        if (kinds[i].detail != NULL)
            EXPECT_TEXT(error_kind_detail(kinds[i].kind), kinds[i].detail);
        struct error *err = fail_over_the_wire(&kinds[i], ADMIN_CALL, arena);
        EXPECT_KIND(err, kinds[i].kind);
        EXPECT(strstr(err->message, "it went wrong") != NULL);
    }
}

TEST(errors, a_client_tells_every_kind_by_status_and_detail, "A-004", "A-005", "A-006", "A-007",
     "A-008", "A-009")
{
    linux_run(&(struct linux_options){.loops = 1}, all_kinds, NULL);
}

static void
hidden_kinds(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    static const enum error_kind hidden[] = {ERR_INTERNAL, ERR_RETRY_TASK, ERR_DATA_INCONSISTENCY};
    fiber_set_deadline(clock_monotonic() + 60 * NS_PER_S);
    for (size_t i = 0; i < array_length(hidden); i++) {
        struct shown shown = {.kind = hidden[i]};
        struct error *err = fail_over_the_wire(&shown, PUBLIC_CALL, arena);
        EXPECT_KIND(err, ERR_UNCATEGORISED);
        EXPECT(strstr(err->message, "it went wrong") != NULL);
    }
}

TEST(errors, what_is_meant_for_inside_is_unknown_to_clients, "A-009")
{
    linux_run(&(struct linux_options){.loops = 1}, hidden_kinds, NULL);
}
