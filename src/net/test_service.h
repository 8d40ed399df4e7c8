/* test_service.h - a small service for the tests of this folder, and a server that offers it.
 *
 * Methods: /test/echo answers the request; /test/fail fails with the kind in byte 0, the rest being
 * message, NUL, detail; /test/park parks until somebody calls /test/wake, which answers all parked
 * calls of its loop; /test/hang waits until it is cancelled or past its deadline; /test/sleep waits
 * for the nanoseconds in the request; /test/size answers with as many bytes as the request's number
 * says; /test/header answers the value of the header that the request names. */
#ifndef CADENZA_NET_TEST_SERVICE_H
#define CADENZA_NET_TEST_SERVICE_H

#include <stdatomic.h>

#include "base/list.h"

#include "net/client.h"
#include "net/server.h"

#define TEST_LOOPS_MAX 8

struct test_service {
    struct grpc_server *server;
    struct list parked[TEST_LOOPS_MAX]; /* struct parked, per loop */
    atomic_uint parked_count;
    atomic_uint gone_count;    /* parked calls whose on_gone was called */
    atomic_uint handled;       /* handlers that returned */
    atomic_uint cancelled;     /* of /test/hang, by a client that left */
    atomic_uint past_deadline; /* of /test/hang */
};

/* Opens a server on a free port; `options` NULL: defaults. Only address (if NULL) and service are
 * filled in. */
void test_service_open(struct test_service *service, const struct grpc_server_options *options,
                       struct arena *arena);
/* Answers what is parked on this loop; closes within ten seconds. */
void test_service_close(struct test_service *service);
/* Answers what is parked on this loop with an empty message. */
void test_service_wake(struct test_service *service);
/* Fills a service without opening a server: for the fuzzer. */
struct grpc_service test_service_init(struct test_service *service);

/* A client of it. */
struct grpc_client *test_client(const struct test_service *service);
/* One call; the message is a C string. */
struct error *test_call(struct grpc_client *client, const char *path, struct slice message,
                        struct arena *arena, struct slice *response);
/* Sleeps in small steps until the number is reached; false after ten seconds. */
bool test_wait_for(atomic_uint *number, unsigned wanted);

#endif
