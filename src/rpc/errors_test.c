/* errors_test.c - which errors a door shows.
 *
 * Method: a door whose only call fails as it is told; our client reads the kind back from what came
 * over the wire. The door for clusters shows all kinds; the one for clients hides some. How each
 * looks on the wire is net's (cadence_test.c). */
#include "fiber/linux/test_loops.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "net/client.h"
#include "rpc/over_grpc.h"
#include "wire/errors.h"

#define ADMIN_CALL  "/uber.cadence.admin.v1.AdminAPI/DescribeCluster"
#define PUBLIC_CALL "/uber.cadence.api.v1.MetaAPI/Health"

/* The door fails with what it is told. */
static struct error *
fail_so(struct rpc_call *call)
{
    const enum error_kind *kind = call->door;
    return error_new(call->arena, *kind, "it went wrong");
}

static const struct rpc_method methods[] = {
    {ADMIN_CALL, fail_so}, {PUBLIC_CALL, fail_so}, {NULL, NULL}};

static struct error *
fail_over_the_wire(enum error_kind kind, const char *path, struct arena *arena)
{
    struct metrics *metrics = metrics_new();
    struct rpc_table table = {.methods = methods, .door = &kind};
    struct rpc_service *service = rpc_service_new(&table, 1, NULL, metrics);
    struct grpc_server *server = NULL;
    struct grpc_server_options options = {.address = "127.0.0.1:0",
                                          .service = rpc_over_grpc(service)};
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

LOOP_TEST(errors, what_is_meant_for_inside_is_unknown_to_clients, 1, "A-009")
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    static const enum error_kind hidden[] = {ERR_INTERNAL, ERR_RETRY_TASK, ERR_DATA_INCONSISTENCY};
    fiber_set_deadline(clock_monotonic() + 60 * NS_PER_S);
    for (size_t i = 0; i < array_length(hidden); i++) {
        struct error *err = fail_over_the_wire(hidden[i], PUBLIC_CALL, arena);
        EXPECT_KIND(err, ERR_UNCATEGORISED);
        EXPECT(strstr(err->message, "it went wrong") != NULL);
        EXPECT_KIND(fail_over_the_wire(hidden[i], ADMIN_CALL, arena), hidden[i]);
    }
}
