/* bench_service.h - the server that the benchmarks of this folder talk to.
 *
 * /bench/echo answers the request; /bench/park never answers; /bench/count answers the number of
 * parked calls. */
#ifndef CADENZA_NET_BENCH_SERVICE_H
#define CADENZA_NET_BENCH_SERVICE_H

#include <stdatomic.h>

#include "net/server.h"

struct bench_service {
    struct grpc_server *server;
    atomic_int parked;
};

/* Opens it on all loops of the process, or ends the process with a sentence. Yields. */
void bench_service_open(struct bench_service *service, const char *address, struct arena *arena);
/* Yields. */
void bench_service_close(struct bench_service *service);
/* The number in words[index], or `otherwise` where there is none; a word that is not a number ends
 * the process. */
unsigned bench_number(int count, char **words, int index, unsigned otherwise);

#endif
