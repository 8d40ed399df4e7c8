/* bench.c - the load generator behind `make bench`: closed loops of calls at a running server.
 *
 *   bench --address HOST:PORT --pid PID [--folder DIR] [--seconds N] [--workflows N] [--only N]
 *         [--questions N] [--limits]
 *   bench --address HOST:PORT --pid PID --workflows N --step start|decide|end
 *   bench --address HOST:PORT --pid PID --workflows N --in-flight N [--payload N] [--activities N]
 *   bench --address HOST:PORT --pid PID --signals SECONDS
 *   bench --address HOST:PORT --pid PID --timers N
 *
 * The second form takes N workflows a step on, all of them: a backlog is made of those that wait.
 * The others print one line of JSON each, of one shape of load (shapes.h).
 * Prints Markdown. CPU is the server's, from /proc; it is the steady figure on a noisy machine.
 * Durable updates stand beside bare fdatasync calls on the same disk in the same run, since their
 * latency is counted in syncs. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/flags.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "limits.h"
#include "net/load.h"
#include "shapes.h"
#include "storm.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"
#include "workflows.h"

#define DOMAIN_API        "/uber.cadence.api.v1.DomainAPI/"
#define DOMAINS           256 /* updates go round over so many */
#define WARM_UP           (500 * NS_PER_MS)
#define SYNCS             300
#define CONNECTIONS       4
#define BACKLOG_IN_FLIGHT 256

struct bench {
    const char *address, *pid_text, *folder, *seconds_text, *workflows_text, *only_text,
        *questions_text, *step, *in_flight_text, *pollers_text, *payload_text, *activities_text,
        *signals_text, *timers_text;
    /* Of one shape; 0: another form. */
    int64_t in_flight, pollers, payload, activities, signals, timers;
    int pid;
    int64_t workflows; /* per row */
    int64_t only;      /* workflows in flight; 0: all tables with all their rows */
    int64_t questions; /* at a time, in the table with a storm of them */
    int64_t duration;
    bool is_limits; /* only what limits cost */
    struct arena *arena;
};

static const char *
domain_name(struct arena *arena, uint64_t number)
{
    return arena_format(arena, "bench-%03llu", (unsigned long long)(number % DOMAINS));
}

static void
make_register(void *context, uint64_t number, struct arena *arena, struct grpc_request *request)
{
    API(RegisterDomainRequest) *message = message_new(arena, API_TYPE(register_domain_request));
    message->name = (char *)domain_name(arena, number);
    message->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    *request = (struct grpc_request){.path = DOMAIN_API "RegisterDomain",
                                     .message = message_encode(arena, &message->base)};
}

static void
make_describe(void *context, uint64_t number, struct arena *arena, struct grpc_request *request)
{
    API(DescribeDomainRequest) *message = message_new(arena, API_TYPE(describe_domain_request));
    message->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    message->name = (char *)domain_name(arena, number);
    *request = (struct grpc_request){.path = DOMAIN_API "DescribeDomain",
                                     .message = message_encode(arena, &message->base)};
}

static void
make_update(void *context, uint64_t number, struct arena *arena, struct grpc_request *request)
{
    char *path = "description";
    API(UpdateDomainRequest) *message = message_new(arena, API_TYPE(update_domain_request));
    message->name = (char *)domain_name(arena, number);
    message->description = arena_format(arena, "update %llu", (unsigned long long)number);
    message->update_mask = message_new(arena, GOOGLE_TYPE(field_mask));
    message->update_mask->n_paths = 1;
    message->update_mask->paths = &path;
    *request = (struct grpc_request){.path = DOMAIN_API "UpdateDomain",
                                     .message = message_encode(arena, &message->base)};
}

static void
register_domains(struct bench *bench)
{
    struct grpc_client *client =
        grpc_client_new(&(struct grpc_client_options){.address = bench->address});
    for (uint64_t i = 0; i < DOMAINS; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct grpc_request request;
        struct slice response;
        make_register(NULL, i, arena, &request);
        struct error *err = grpc_client_call(client, &request, arena, &response);
        check_that(err == NULL || err->kind == ERR_DOMAIN_ALREADY_EXISTS, "%s",
                   err == NULL ? "" : err->message);
    }
    grpc_client_free(client);
}

static void
print_row(const struct load_result *result, unsigned in_flight)
{
    double calls = result->calls == 0 ? 1 : (double)result->calls;
    printf("| %u | %.1f | %.0f | %.2f | %.2f | %.2f | %llu |\n", in_flight,
           (double)result->server_cpu / 1000 / calls, calls * 1e9 / (double)result->elapsed,
           (double)result->p50 / 1e6, (double)result->p99 / 1e6, (double)result->max / 1e6,
           (unsigned long long)result->errors);
    fflush(stdout);
}

static void
run_table(struct bench *bench, const char *title,
          void (*make)(void *, uint64_t, struct arena *, struct grpc_request *))
{
    static const unsigned in_flight[] = {1, 16, 64, 256};
    printf("\n## %s\n\n| in flight | server CPU µs per call | calls/s | p50 ms | p99 ms | max ms | "
           "errors |\n"
           "|---:|---:|---:|---:|---:|---:|---:|\n",
           title);
    for (size_t i = 0; i < array_length(in_flight); i++) {
        struct load_options options = {
            .address = bench->address,
            .connections = in_flight[i] < CONNECTIONS ? in_flight[i] : CONNECTIONS,
            .in_flight = in_flight[i],
            .warm_up = WARM_UP,
            .duration = bench->duration,
            .server_pid = bench->pid,
            .request = make,
        };
        struct load_result result;
        struct error *err = load_run(&options, bench->arena, &result);
        check_that(err == NULL, "%s", err->message);
        if (result.first_error[0] != '\0')
            fprintf(stderr, "bench: %s\n", result.first_error);
        print_row(&result, in_flight[i]);
    }
}

/* What is measured, and what is not. */
static void
explain_workflows(void)
{
    printf(
        "\nThe generator is like a process with the Go client: its headers, four connections with "
        "a thread each, a\nping with an answer where none is under way (that is how it learns "
        "the bandwidth; about one per workflow).\nPer workflow that are 7 calls, 4 to 6 commits "
        "and about 6 KB on the network. A generator written in Go makes the\nsame calls and needs "
        "three to four times the CPU of this one. Measured in turns on two busy cores, the "
        "server\nneeded about a seventh more for it; RocksDB's share, which does the same work, "
        "grew as much, so most of that is\nthe price of a busy neighbour and not of the "
        "calls.\n");
}

/* start → decision → activity → decision → complete */
static void
run_workflow_table(struct bench *bench)
{
    static const unsigned in_flight[] = {1, 16, 64, 256};
    printf("\n## A workflow: start, decision, activity, decision, complete\n\n"
           "| in flight | server CPU ms per workflow | workflows/s | start p50 ms | start p99 ms | "
           "whole p50 ms | whole p99 ms | server MB | failures |\n"
           "|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < array_length(in_flight); i++) {
        if (bench->only != 0 && bench->only != in_flight[i])
            continue;
        struct workflows_options options = {
            .address = bench->address,
            .server_pid = bench->pid,
            .count = (unsigned)(in_flight[i] == 1 ? bench->workflows / 10 : bench->workflows),
            .in_flight = in_flight[i],
            .pollers = in_flight[i] < 32 ? in_flight[i] : 32,
            .connections = CONNECTIONS,
            .payload = 128,
        };
        struct workflows_result result;
        workflows_run(&options, bench->arena, &result);
        if (result.first_error[0] != '\0')
            fprintf(stderr, "bench: %s\n", result.first_error);
        double done = result.done == 0 ? 1 : (double)result.done;
        printf("| %u | %.3f | %.0f | %.2f | %.2f | %.2f | %.2f | %.0f | %llu |\n", in_flight[i],
               (double)result.server_cpu / 1e6 / done, done * 1e9 / (double)result.elapsed,
               (double)result.start_p50 / 1e6, (double)result.start_p99 / 1e6,
               (double)result.end_p50 / 1e6, (double)result.end_p99 / 1e6,
               (double)result.server_memory / 1e6, (unsigned long long)result.failures);
        fflush(stdout);
    }
    explain_workflows();
}

static void
run_storm_table(struct bench *bench)
{
    struct workflows_options options = {
        .address = bench->address,
        .server_pid = bench->pid,
        .count = (unsigned)bench->workflows / 2,
        .in_flight = 16,
        .pollers = 16,
        .connections = CONNECTIONS,
        .payload = 128,
    };
    storm_run(&options, (unsigned)bench->questions, bench->arena);
}

/* --- a backlog ----------------------------------------------------------------------------------
 */

static enum workflows_step
step_of(const char *name)
{
    static const char *const names[] = {"", "start", "decide", "end"};
    for (size_t i = 1; i < array_length(names); i++) {
        if (strcmp(name, names[i]) == 0)
            return (enum workflows_step)i;
    }
    check_that(false, "--step: start, decide or end");
    return STEP_WHOLE;
}

static void
run_step(struct bench *bench)
{
    struct workflows_options options = {
        .address = bench->address,
        .step = step_of(bench->step),
        .list = "backlog",
        .server_pid = bench->pid,
        .count = (unsigned)bench->workflows,
        .in_flight = BACKLOG_IN_FLIGHT,
        .pollers = BACKLOG_IN_FLIGHT,
        .connections = CONNECTIONS,
        .payload = 128,
    };
    struct workflows_result result;
    workflows_run(&options, bench->arena, &result);
    printf("%llu workflows: %s in %.1f s, %.0f/s, %.3f ms CPU each; %.0f MB; %llu failures, "
           "%llu twice %s\n",
           (unsigned long long)result.done, bench->step, (double)result.elapsed / 1e9,
           (double)result.done * 1e9 / (double)result.elapsed,
           (double)result.server_cpu / 1e6 / (double)bench->workflows,
           (double)result.server_memory / 1e6, (unsigned long long)result.failures,
           (unsigned long long)result.repeats, result.first_error);
}

static void
compare_limits(struct bench *bench)
{
    struct workflows_options options = {
        .address = bench->address,
        .server_pid = bench->pid,
        .count = (unsigned)bench->workflows,
        .in_flight = 64,
        .pollers = 32,
        .connections = CONNECTIONS,
        .payload = 128,
    };
    limits_compare(&options, bench->arena);
}

/* One block written and synced, again and again: the price of being durable on this disk. */
static void
measure_sync(struct bench *bench)
{
    const char *path = arena_format(bench->arena, "%s/sync.tmp", bench->folder);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    check_that(file >= 0, "cannot write to %s", path);
    static struct load_histogram histogram;
    uint8_t block[4096] = {1};
    for (int i = 0; i < SYNCS; i++) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        check(write(file, block, sizeof block) == (ssize_t)sizeof block && fdatasync(file) == 0);
        clock_gettime(CLOCK_MONOTONIC, &after);
        load_histogram_add(&histogram, (after.tv_sec - before.tv_sec) * NS_PER_S + after.tv_nsec -
                                           before.tv_nsec);
    }
    close(file);
    unlink(path);
    printf("\nOne bare 4 KiB write and fdatasync on the same disk: p50 %.2f ms, p99 %.2f ms, max "
           "%.2f ms.\n",
           (double)load_histogram_quantile(&histogram, 0.5) / 1e6,
           (double)load_histogram_quantile(&histogram, 0.99) / 1e6, (double)histogram.max / 1e6);
}

static void
run_shape(struct bench *bench)
{
    struct workflows_options options = {
        .address = bench->address,
        .server_pid = bench->pid,
        .count = (unsigned)bench->workflows,
        .in_flight = (unsigned)bench->in_flight,
        .pollers = bench->pollers > 0      ? (unsigned)bench->pollers
                   : bench->in_flight < 32 ? (unsigned)bench->in_flight
                                           : 32,
        .connections = CONNECTIONS,
        .payload = (size_t)bench->payload,
        .activities = (unsigned)bench->activities,
    };
    shape_workflows(&options, bench->arena);
}

/* The forms that are not all tables. False: it is none. */
static bool
run_part(struct bench *bench)
{
    if (bench->step[0] != '\0')
        run_step(bench);
    else if (bench->signals > 0)
        shape_signals(bench->address, bench->pid, bench->signals * NS_PER_S, bench->arena);
    else if (bench->timers > 0)
        shape_timers(bench->address, bench->pid, (unsigned)bench->timers, bench->arena);
    else if (bench->in_flight > 0)
        run_shape(bench);
    else
        return false;
    return true;
}

static void
bench_main(void *argument)
{
    struct bench *bench = argument;
    bench->arena = arena_new(0);
    if (run_part(bench)) {
        arena_free(bench->arena);
        return;
    }
    uint64_t memory = 0;
    struct error *err = load_process_memory(bench->pid, bench->arena, &memory);
    check_that(err == NULL, "%s", err->message);
    printf("Idle memory of the server: %.1f MB resident.\n", (double)memory / 1e6);
    printf(
        "With one call in flight both sides sleep most of the time: on a virtual machine that row "
        "is the price of\nwaking a halted CPU (the same binary beside a busy neighbour: a quarter "
        "of it).\n");
    if (bench->is_limits) {
        compare_limits(bench);
        arena_free(bench->arena);
        return;
    }
    if (bench->only == 0) {
        register_domains(bench);
        run_table(bench, "DescribeDomain: a small call, network included", make_describe);
        run_table(bench, "UpdateDomain: a durable change", make_update);
    }
    run_workflow_table(bench);
    if (bench->only == 0) {
        run_storm_table(bench);
        compare_limits(bench);
    }
    measure_sync(bench);
    arena_free(bench->arena);
}

int
main(int count, char **arguments)
{
    struct bench bench = {
        .address = "127.0.0.1:7833",
        .pid_text = "",
        .folder = ".",
        .seconds_text = "5",
        .workflows_text = "10000",
        .only_text = "0",
        .questions_text = "8",
        .step = "",
        .in_flight_text = "0",
        .pollers_text = "0",
        .payload_text = "128",
        .activities_text = "1",
        .signals_text = "0",
        .timers_text = "0",
    };
    const struct flag flags[] = {
        {"address", "HOST:PORT", "The server.", &bench.address, NULL},
        {"pid", "PID", "Its process, for CPU and memory.", &bench.pid_text, NULL},
        {"folder", "DIR", "On the disk of its data, for bare syncs.", &bench.folder, NULL},
        {"seconds", "N", "Per row of a table.", &bench.seconds_text, NULL},
        {"workflows", "N", "Per row of the table of workflows.", &bench.workflows_text, NULL},
        {"only", "N", "Only the row of workflows with so many in flight.", &bench.only_text, NULL},
        {"questions", "N", "For lists, at a time, in the table with a storm of them.",
         &bench.questions_text, NULL},
        {"step", "NAME", "Takes workflows a step on: start, decide or end.", &bench.step, NULL},
        {"in-flight", "N", "One shape: so many workflows at a time.", &bench.in_flight_text, NULL},
        {"pollers", "N", "One shape: polls at a time; else as many as workflows, 32 at most.",
         &bench.pollers_text, NULL},
        {"payload", "N", "One shape: bytes of input and results.", &bench.payload_text, NULL},
        {"activities", "N", "One shape: of each workflow.", &bench.activities_text, NULL},
        {"signals", "SECONDS", "One shape: signals to one workflow id.", &bench.signals_text, NULL},
        {"timers", "N", "One shape: so many timers that are due in one second.", &bench.timers_text,
         NULL},
        {"limits", NULL, "Only what limits of workflow ids cost.", NULL, &bench.is_limits},
        {0},
    };
    const struct command_line line = {
        .usage = "bench [flags]", .summary = "Measures a running server.", .flags = flags};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bool wants_help = false;
    struct error *err =
        command_line_read(&line, count - 1, arguments + 1, NULL, &wants_help, arena);
    int64_t pid = 0, seconds = 0;
    bool is_good =
        err == NULL && !wants_help &&
        text_parse_int64(slice_text(bench.pid_text), 1, INT32_MAX, &pid) &&
        text_parse_int64(slice_text(bench.seconds_text), 1, 3600, &seconds) &&
        text_parse_int64(slice_text(bench.workflows_text), 1, 10000000, &bench.workflows) &&
        text_parse_int64(slice_text(bench.only_text), 0, 256, &bench.only) &&
        text_parse_int64(slice_text(bench.questions_text), 1, 10000, &bench.questions) &&
        text_parse_int64(slice_text(bench.in_flight_text), 0, 10000, &bench.in_flight) &&
        text_parse_int64(slice_text(bench.pollers_text), 0, 10000, &bench.pollers) &&
        text_parse_int64(slice_text(bench.payload_text), 0, 1 << 20, &bench.payload) &&
        text_parse_int64(slice_text(bench.activities_text), 1, 100000, &bench.activities) &&
        text_parse_int64(slice_text(bench.signals_text), 0, 3600, &bench.signals) &&
        text_parse_int64(slice_text(bench.timers_text), 0, 1000000, &bench.timers);
    if (!is_good) {
        fprintf(stderr, "%s\n%s", err == NULL ? "" : err->message, command_line_help(&line, arena));
        return 2;
    }
    bench.pid = (int)pid;
    bench.duration = seconds * NS_PER_S;
    linux_run(&(struct linux_options){.loops = CONNECTIONS + 1}, bench_main, &bench);
    return 0;
}
