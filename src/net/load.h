/* load.h - a closed loop of calls, for benchmarks and soak runs: so many in flight, each followed
 * by the next.
 *
 * Runs on the current loop with clients of its own. Counts, latencies and the CPU time of a server
 * process come out; the CPU time of the generator itself is not in them. */
#ifndef CADENZA_NET_LOAD_H
#define CADENZA_NET_LOAD_H

#include "net/client.h"

struct load_options {
    const char *address;
    struct tls *tls;      /* NULL: plain */
    unsigned connections; /* 0: 1 */
    unsigned in_flight;   /* over all connections; 0: 1 */
    int64_t warm_up;      /* ns before counting starts */
    int64_t duration;     /* ns of counting */
    int64_t call_timeout; /* ns; 0: 10 s */
    int server_pid;       /* whose CPU time to read from /proc; 0: nobody's */
    const struct call_header *headers;
    size_t header_count;
    /* The request of the number-th call; lives until the call has ended, e.g. in `arena`. Must not
     * yield. */
    void (*request)(void *context, uint64_t number, struct arena *arena,
                    struct grpc_request *request);
    void *context;
};

struct load_result {
    uint64_t calls;        /* answered well while counting */
    uint64_t errors;       /* while counting */
    char first_error[256]; /* "" if there was none, warm-up included */
    int64_t elapsed;       /* ns */
    int64_t p50, p99, max; /* latency, ns; p50 and p99 within 2 % */
    int64_t server_cpu;    /* ns of user and system time while counting; resolution 10 ms */
};

/* Runs the load to its end. Yields. Errors: ERR_IO (the process of server_pid cannot be read).
 * Failed calls are counted, not an error. */
must_use struct error *load_run(const struct load_options *options, struct arena *arena,
                                struct load_result *result);
/* CPU time that a process has used so far, ns. Yields. */
must_use struct error *load_process_cpu(int pid, struct arena *arena, int64_t *nanoseconds);
/* Resident bytes of a process. Yields. */
must_use struct error *load_process_memory(int pid, struct arena *arena, uint64_t *bytes);

/* --- latencies
 * ---------------------------------------------------------------------------------------- */

/* Buckets grow by 1/64 of their power of two: 1.6 % at most. */
#define LOAD_HISTOGRAM_BUCKETS (64 * 58)
struct load_histogram {
    uint64_t count;
    int64_t max;
    uint32_t buckets[LOAD_HISTOGRAM_BUCKETS];
};
void load_histogram_add(struct load_histogram *histogram, int64_t value);
/* The value below which `part` (0 .. 1) of all values lie. */
int64_t load_histogram_quantile(const struct load_histogram *histogram, double part);

#endif
