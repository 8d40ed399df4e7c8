/* shapes.c - see shapes.h. */
#include "shapes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "part.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/presence.h"

#define SIGNALS_PER_RUN 9000 /* a run takes 10,000 */
#define SIGNALS_AT_ONCE 64
#define TIMERS_SET_UP   1000 /* timers, in a second at least */
#define TIMER_POLLS     256

void
shape_workflows(const struct workflows_options *options, struct arena *arena)
{
    struct workflows_result result;
    workflows_run(options, arena, &result);
    double done = result.done == 0 ? 1 : (double)result.done;
    printf("{\"done\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"cpu_ms\": %.4f, \"per_second\": "
           "%.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"memory_mb\": %.1f, \"error\": \"%s\"}\n",
           result.done, result.failures, (double)result.server_cpu / 1e6 / done,
           done * 1e9 / (double)result.elapsed, (double)result.end_p50 / 1e6,
           (double)result.end_p99 / 1e6, (double)result.server_memory / 1e6, result.first_error);
}

/* The id of the number-th signal: the first call of a run starts it. */
static void
make_signal(void *context, uint64_t number, struct arena *arena, struct grpc_request *call)
{
    const char *prefix = context;
    char request_id[UUID_TEXT_LENGTH + 1];
    struct uuid fresh = uuid_new_v4();
    uuid_format(&fresh, request_id);
    API(StartWorkflowExecutionRequest) *start =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    start->domain = DOMAIN_NAME;
    start->workflow_id = arena_format(arena, "%s-%u", prefix, (unsigned)(number / SIGNALS_PER_RUN));
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = "hot";
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = (char *)prefix;
    start->execution_start_to_close_timeout = presence_make_duration(arena, 3600);
    start->task_start_to_close_timeout = presence_make_duration(arena, 10);
    start->request_id = arena_text(arena, request_id);
    API(SignalWithStartWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(signal_with_start_workflow_execution_request));
    request->start_request = start;
    request->signal_name = "go";
    *call = (struct grpc_request){.path = SERVICE("WorkflowAPI/SignalWithStartWorkflowExecution"),
                                  .message = message_encode(arena, &request->base)};
}

void
shape_signals(const char *address, int server_pid, int64_t duration, struct arena *arena)
{
    struct workflows_options one = {.address = address,
                                    .server_pid = server_pid,
                                    .count = 1,
                                    .in_flight = 1,
                                    .pollers = 1,
                                    .connections = 1};
    struct workflows_result ignored;
    workflows_run(&one, arena, &ignored); /* the domain is there */
    struct load_options options = {
        .address = address,
        .connections = 4,
        .in_flight = SIGNALS_AT_ONCE,
        .duration = duration,
        .server_pid = server_pid,
        .request = make_signal,
        .context = arena_format(arena, "hot-%" PRId64, clock_wall()),
    };
    struct load_result result;
    struct error *err = load_run(&options, arena, &result);
    check_that(err == NULL, "%s", err->message);
    double calls = result.calls == 0 ? 1 : (double)result.calls;
    printf("{\"done\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"cpu_us\": %.2f, \"per_second\": "
           "%.0f, \"p50_ms\": %.3f, \"error\": \"%s\"}\n",
           result.calls, result.errors, (double)result.server_cpu / 1000 / calls,
           calls * 1e9 / (double)result.elapsed, (double)result.p50 / 1e6, result.first_error);
}

/* All are started, then all set their timers, then all fire: CPU is that of the last step. */
void
shape_timers(const char *address, int server_pid, unsigned count, struct arena *arena)
{
    static const enum workflows_step steps[] = {STEP_START, STEP_DECIDE, STEP_END};
    struct workflows_options options = {
        .address = address,
        .list = arena_format(arena, "timers-%" PRId64, clock_wall()),
        .server_pid = server_pid,
        .count = count,
        .in_flight = TIMER_POLLS,
        .pollers = TIMER_POLLS,
        .connections = 4,
        .payload = 128,
        .due = clock_wall() + (5 + (int64_t)count / TIMERS_SET_UP) * NS_PER_S,
    };
    struct workflows_result result = {0};
    uint64_t failures = 0;
    for (size_t i = 0; i < array_length(steps); i++) {
        check_that(clock_wall() < options.due, "%u timers are not set in time", count);
        options.step = steps[i];
        workflows_run(&options, arena, &result);
        failures += result.failures + count - result.done;
    }
    printf("{\"done\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"cpu_ms\": %.4f, \"all_s\": %.3f, "
           "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"error\": \"%s\"}\n",
           result.done, failures, (double)result.server_cpu / 1e6 / count,
           (double)(clock_wall() - options.due) / 1e9, (double)result.end_p50 / 1e6,
           (double)result.end_p99 / 1e6, result.first_error);
}
