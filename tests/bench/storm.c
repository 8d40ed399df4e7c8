/* storm.c - see storm.h.
 *
 * Questions are those that people and web pages ask: the newest of a type, how many are open, how
 * many ended well, everything page by page, one by its id. Each fiber asks one after another over
 * the same connection. Alone and beside the storm take turns, so that a machine that becomes slower
 * does not look like a server that does. */
#include "storm.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "part.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

#define TURNS      4 /* alone, beside, alone, beside */
#define PAGE       100
#define VISIBILITY SERVICE("VisibilityAPI/")

/* On the last loop. */
struct storm {
    const char *address;
    unsigned questions; /* at a time */
    struct grpc_client *client;
    struct latch asking;
    bool is_over;
    uint64_t number, answered, failed;
    char first_error[256];
    struct load_histogram times;
};

/* --- questions ---- */

static void
make_count(const char *query, struct arena *arena, struct grpc_request *request)
{
    API(CountWorkflowExecutionsRequest) *message =
        message_new(arena, API_TYPE(count_workflow_executions_request));
    message->domain = DOMAIN_NAME;
    message->query = (char *)query;
    *request = (struct grpc_request){.path = VISIBILITY "CountWorkflowExecutions",
                                     .message = message_encode(arena, &message->base)};
}

static void
make_list(const char *query, struct arena *arena, struct grpc_request *request)
{
    API(ListWorkflowExecutionsRequest) *message =
        message_new(arena, API_TYPE(list_workflow_executions_request));
    message->domain = DOMAIN_NAME;
    message->query = (char *)query;
    message->page_size = PAGE;
    *request = (struct grpc_request){.path = VISIBILITY "ListWorkflowExecutions",
                                     .message = message_encode(arena, &message->base)};
}

static void
make_scan(const char *query, struct arena *arena, struct grpc_request *request)
{
    API(ScanWorkflowExecutionsRequest) *message =
        message_new(arena, API_TYPE(scan_workflow_executions_request));
    message->domain = DOMAIN_NAME;
    message->query = (char *)query;
    message->page_size = PAGE;
    *request = (struct grpc_request){.path = VISIBILITY "ScanWorkflowExecutions",
                                     .message = message_encode(arena, &message->base)};
}

static const struct {
    void (*make)(const char *query, struct arena *arena, struct grpc_request *request);
    const char *query;
} questions[] = {
    {make_list, ""},
    {make_list, "WorkflowType = 'wf' and CloseStatus = 'COMPLETED'"},
    {make_count, "CloseTime = missing"},
    {make_list, "WorkflowID = 'bench-1'"},
    {make_count, "WorkflowType = 'wf' and CloseStatus = 'COMPLETED'"},
    {make_scan, "WorkflowType = 'wf'"},
};

static void
ask_once(struct storm *storm, struct arena *arena)
{
    struct grpc_request request;
    struct slice response;
    size_t which = storm->number++ % array_length(questions);
    questions[which].make(questions[which].query, arena, &request);
    int64_t begin = clock_monotonic();
    fiber_set_deadline(begin + CALL_TIMEOUT);
    struct error *err = grpc_client_call(storm->client, &request, arena, &response);
    fiber_set_deadline(NEVER);
    if (err == NULL) {
        storm->answered++;
        load_histogram_add(&storm->times, clock_monotonic() - begin);
        return;
    }
    if (storm->failed++ == 0)
        snprintf(storm->first_error, sizeof storm->first_error, "%s", err->message);
}

static void
ask(void *argument)
{
    struct storm *storm = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    while (!storm->is_over) {
        ask_once(storm, arena);
        arena_reset(arena);
    }
    latch_done(&storm->asking);
}

static void
begin_storm(void *argument)
{
    struct storm *storm = argument;
    storm->client = grpc_client_new(&(struct grpc_client_options){.address = storm->address});
    latch_init(&storm->asking, storm->questions);
    for (unsigned i = 0; i < storm->questions; i++)
        fiber_start("question", ask, storm);
}

static void
end_storm(void *argument)
{
    struct storm *storm = argument;
    storm->is_over = true;
    latch_wait(&storm->asking);
    grpc_client_free(storm->client);
}

static void
on_last_loop(void (*function)(void *argument), struct storm *storm, struct arena *arena)
{
    struct error *err = loop_call(loop_at(loop_count() - 1), function, storm, arena);
    check_that(err == NULL, "%s", err->message);
}

/* --- the table ---- */

/* Sums over the turns of one kind. */
struct sum {
    double done, seconds, cpu, start_p99, end_p99;
};

static void
add_turn(struct sum *sum, const struct workflows_result *result)
{
    sum->done += (double)result->done;
    sum->seconds += (double)result->elapsed / 1e9;
    sum->cpu += (double)result->server_cpu / 1e6;
    sum->start_p99 += (double)result->start_p99;
    sum->end_p99 += (double)result->end_p99;
}

static void
print_turn(const struct workflows_result *result, const struct storm *storm)
{
    double done = result->done == 0 ? 1 : (double)result->done;
    double seconds = (double)result->elapsed / 1e9;
    printf("| %u | %.3f | %.0f | %.2f | %.2f | %.2f | %.0f | %.2f | %.2f | %llu |\n",
           storm->questions, (double)result->server_cpu / 1e6 / done, done / seconds,
           (double)result->start_p50 / 1e6, (double)result->start_p99 / 1e6,
           (double)result->end_p99 / 1e6, (double)storm->answered / seconds,
           (double)load_histogram_quantile(&storm->times, 0.5) / 1e6,
           (double)load_histogram_quantile(&storm->times, 0.99) / 1e6,
           (unsigned long long)(result->failures + storm->failed));
    fflush(stdout);
    if (result->first_error[0] != '\0' || storm->first_error[0] != '\0')
        fprintf(stderr, "bench: %s %s\n", result->first_error, storm->first_error);
}

static void
run_turn(const struct workflows_options *options, unsigned asked, struct arena *arena,
         struct sum *sum)
{
    struct storm *storm = memory_zalloc(1, sizeof *storm);
    storm->address = options->address;
    storm->questions = asked;
    on_last_loop(begin_storm, storm, arena);
    struct workflows_result result;
    workflows_run(options, arena, &result);
    on_last_loop(end_storm, storm, arena);
    print_turn(&result, storm);
    add_turn(sum, &result);
    memory_free(storm);
}

void
storm_run(const struct workflows_options *options, unsigned asked, struct arena *arena)
{
    check(options->connections < loop_count());
    printf("\n## Workflows beside a storm of lists, %u in flight\n\n"
           "| questions at a time | server CPU ms per workflow | workflows/s | start p50 ms | "
           "start p99 ms | whole p99 ms | questions/s | question p50 ms | question p99 ms | "
           "failures |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
           options->in_flight);
    struct sum alone = {0}, beside = {0};
    for (unsigned turn = 0; turn < TURNS; turn++)
        run_turn(options, turn % 2 == 0 ? 0 : asked, arena, turn % 2 == 0 ? &alone : &beside);
    printf("\nBeside the storm: %.2f of the workflows per second, %.2f times the server's CPU per "
           "workflow (the questions\nare in it), p99 of a start %.2f times, of a whole workflow "
           "%.2f times as long.\n",
           beside.done / beside.seconds / (alone.done / alone.seconds),
           beside.cpu / beside.done / (alone.cpu / alone.done), beside.start_p99 / alone.start_p99,
           beside.end_p99 / alone.end_p99);
}
