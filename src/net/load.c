/* load.c - the load generator: one fiber per call in flight. */
#include "net/load.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/sync.h"

struct load {
    const struct load_options *options;
    struct grpc_client **clients;
    unsigned connections;
    uint64_t number;
    bool is_counting, is_over;
    struct latch workers;
    struct load_histogram histogram;
    struct load_result result;
};

struct worker_start {
    struct load *load;
    unsigned index;
};

/* ---- latencies ---- */

static size_t
bucket_of(int64_t value)
{
    uint64_t number = value < 0 ? 0 : (uint64_t)value;
    if (number < 128)
        return (size_t)number;
    unsigned shift = 57u - (unsigned)__builtin_clzll(number); /* 64 .. 127 after the shift */
    return (size_t)(shift * 64 + (number >> shift));
}

static int64_t
bucket_value(size_t bucket)
{
    if (bucket < 128)
        return (int64_t)bucket;
    unsigned shift = (unsigned)(bucket / 64 - 1);
    return (int64_t)((bucket - shift * 64) << shift);
}

void
load_histogram_add(struct load_histogram *histogram, int64_t value)
{
    size_t bucket = bucket_of(value);
    check(bucket < LOAD_HISTOGRAM_BUCKETS);
    histogram->buckets[bucket]++;
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
}

int64_t
load_histogram_quantile(const struct load_histogram *histogram, double part)
{
    uint64_t wanted = (uint64_t)((double)histogram->count * part), seen = 0;
    for (size_t i = 0; i < LOAD_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > wanted)
            return bucket_value(i);
    }
    return histogram->max;
}

/* ---- /proc ---- */

static struct error *
read_proc(int pid, const char *name, struct arena *arena, char *text, size_t room)
{
    struct file *file;
    const char *path = arena_format(arena, "/proc/%d/%s", pid, name);
    struct error *err = file_open(path, FILE_READ, arena, &file);
    if (err != NULL)
        return err;
    size_t count = 0;
    err = file_read(file, 0, text, room - 1, &count, arena);
    file_close(file);
    text[count] = '\0';
    return err;
}

struct error *
load_process_cpu(int pid, struct arena *arena, int64_t *nanoseconds)
{
    char text[1024];
    struct error *err = read_proc(pid, "stat", arena, text, sizeof text);
    if (err != NULL)
        return err;
    /* The name in brackets may hold anything; fields 14 and 15 count from behind it. */
    const char *rest = strrchr(text, ')');
    unsigned long user, kernel;
    bool is_good =
        rest != NULL && sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                               &user, &kernel) == 2;
    if (!is_good)
        return error_new(arena, ERR_IO, "/proc/%d/stat is not as expected", pid);
    *nanoseconds = (int64_t)(user + kernel) * (10 * NS_PER_MS); /* Linux shows hundredths */
    return NULL;
}

struct error *
load_process_memory(int pid, struct arena *arena, uint64_t *bytes)
{
    char text[256];
    struct error *err = read_proc(pid, "statm", arena, text, sizeof text);
    if (err != NULL)
        return err;
    unsigned long pages;
    if (sscanf(text, "%*u %lu", &pages) != 1)
        return error_new(arena, ERR_IO, "/proc/%d/statm is not as expected", pid);
    *bytes = (uint64_t)pages * 4096;
    return NULL;
}

/* ---- the loop ---- */

static void
note_error(struct load *load, const struct error *err)
{
    if (load->result.first_error[0] == '\0')
        snprintf(load->result.first_error, sizeof load->result.first_error, "%s", err->message);
    if (load->is_counting)
        load->result.errors++;
}

static void
call_once(struct load *load, struct grpc_client *client, struct arena *arena)
{
    const struct load_options *options = load->options;
    struct grpc_request request = {0};
    struct slice response;
    options->request(options->context, load->number++, arena, &request);
    int64_t began = clock_monotonic();
    fiber_set_deadline(began +
                       (options->call_timeout == 0 ? 10 * NS_PER_S : options->call_timeout));
    struct error *err = grpc_client_call(client, &request, arena, &response);
    if (err != NULL) {
        note_error(load, err);
    } else if (load->is_counting) {
        load->result.calls++;
        load_histogram_add(&load->histogram, clock_monotonic() - began);
    }
}

static void
worker_run(void *argument)
{
    struct worker_start *start = argument;
    struct load *load = start->load;
    struct grpc_client *client = load->clients[start->index % load->connections];
    memory_free(start);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    while (!load->is_over && !fiber_is_cancelled()) {
        call_once(load, client, arena);
        arena_reset(arena);
    }
    latch_done(&load->workers);
}

static void
start_workers(struct load *load)
{
    const struct load_options *options = load->options;
    unsigned in_flight = options->in_flight == 0 ? 1 : options->in_flight;
    for (unsigned i = 0; i < load->connections; i++)
        load->clients[i] = grpc_client_new(&(struct grpc_client_options){
            .address = options->address,
            .tls = options->tls,
            .headers = options->headers,
            .header_count = options->header_count,
        });
    latch_init(&load->workers, in_flight);
    for (unsigned i = 0; i < in_flight; i++) {
        struct worker_start *start = memory_alloc(sizeof *start);
        *start = (struct worker_start){load, i};
        fiber_start("load", worker_run, start);
    }
}

/* Sleeps through warm-up and measured time, and reads the clocks around the latter. */
static struct error *
measure(struct load *load, struct arena *arena)
{
    const struct load_options *options = load->options;
    int pid = options->server_pid;
    int64_t cpu_before = 0, cpu_after = 0;
    struct error *err = fiber_sleep(options->warm_up, arena);
    if (err == NULL && pid != 0)
        err = load_process_cpu(pid, arena, &cpu_before);
    int64_t began = clock_monotonic();
    load->is_counting = true;
    if (err == NULL)
        err = fiber_sleep(options->duration, arena);
    load->is_counting = false;
    load->result.elapsed = clock_monotonic() - began;
    if (err == NULL && pid != 0)
        err = load_process_cpu(pid, arena, &cpu_after);
    load->result.server_cpu = cpu_after - cpu_before;
    return err;
}

struct error *
load_run(const struct load_options *options, struct arena *arena, struct load_result *result)
{
    check(options->request != NULL && options->duration > 0);
    struct load *load = memory_zalloc(1, sizeof *load);
    load->options = options;
    load->connections = options->connections == 0 ? 1 : options->connections;
    load->clients = memory_zalloc(load->connections, sizeof load->clients[0]);
    start_workers(load);
    struct error *err = measure(load, arena);
    load->is_over = true;
    latch_wait(&load->workers);
    for (unsigned i = 0; i < load->connections; i++)
        grpc_client_free(load->clients[i]);
    load->result.p50 = load_histogram_quantile(&load->histogram, 0.50);
    load->result.p99 = load_histogram_quantile(&load->histogram, 0.99);
    load->result.max = load->histogram.max;
    *result = load->result;
    memory_free(load->clients);
    memory_free(load);
    return err;
}
