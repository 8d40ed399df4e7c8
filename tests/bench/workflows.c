/* workflows.c - see workflows.h.
 *
 * Starters are fibers that start a workflow, wait for its end, and start the next. A workflow's end
 * is known when the answer to its last decision arrives: the worker wakes the starter, whose number
 * is the workflow's. Pollers are fibers that poll, work and answer.
 *
 * Each connection has a loop of its own, with its share of starters and pollers, all on one task
 * list: the server sees requests as they come from several processes, in small pieces. One loop for
 * all would write a whole tick's requests at once, and the server would look cheaper than it is. */
#include "workflows.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/random.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "part.h"
#include "rpc/client.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/presence.h"

#define FINISH_TIMEOUT (900 * NS_PER_S)

void
part_note(struct part *part, const struct error *err)
{
    if (err == NULL || part->is_over)
        return;
    part->failures++;
    if (part->first_error[0] == '\0')
        snprintf(part->first_error, sizeof part->first_error, "%s", err->message);
}

struct error *
part_call_at(struct part *part, const char *path, int64_t timeout, const ProtobufCMessage *request,
             struct arena *arena, const ProtobufCMessageDescriptor *type,
             ProtobufCMessage **response)
{
    fiber_set_deadline(clock_monotonic() + timeout);
    struct error *err = rpc_client_call_at(part->client, path, request, arena, type, response);
    fiber_set_deadline(NEVER);
    return err;
}

API(TaskList) *
part_list(struct part *part, struct arena *arena)
{
    API(TaskList) *list = message_new(arena, API_TYPE(task_list));
    list->name = part->all->list;
    return list;
}

API(Payload) *
part_payload(struct part *part, struct arena *arena)
{
    struct slice bytes = slice_of(part->all->payload, part->options->payload);
    return presence_make_payload(arena, (struct maybe_bytes){.is_set = true, .bytes = bytes});
}

/* --- starters -----------------------------------------------------------------------------------
 */

static struct error *
start_one(struct part *part, unsigned number, struct arena *arena)
{
    char request_id[UUID_TEXT_LENGTH + 1];
    struct uuid fresh = uuid_new_v4();
    API(StartWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    request->domain = DOMAIN_NAME;
    request->workflow_id = arena_format(arena, "%s-%u", part->all->list, number);
    request->workflow_type = message_new(arena, API_TYPE(workflow_type));
    request->workflow_type->name = "wf";
    request->task_list = part_list(part, arena);
    request->input = part_payload(part, arena);
    request->execution_start_to_close_timeout = presence_make_duration(arena, 3600);
    request->task_start_to_close_timeout = presence_make_duration(arena, 10);
    request->identity = "bench";
    uuid_format(&fresh, request_id);
    request->request_id = request_id;
    API(StartWorkflowExecutionResponse) *response;
    return part_call(part, "WorkflowAPI/StartWorkflowExecution", CALL_TIMEOUT, request, arena,
                     start_workflow_execution_response, &response);
}

/* One workflow from its start to its end. */
static void
live_through(struct part *part, unsigned number)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int64_t begin = clock_monotonic(), limit = begin + FINISH_TIMEOUT;
    struct error *err = start_one(part, number, arena);
    part_note(part, err);
    if (err != NULL)
        return;
    load_histogram_add(&part->starts, clock_monotonic() - begin);
    if (part->options->step == STEP_START) {
        part->done++;
        return;
    }
    part->starters[number] = fiber_self();
    enum wake wake = WAKE_READY;
    while (!part->is_finished[number] && wake == WAKE_READY)
        wake = fiber_wait(limit);
    part->starters[number] = NULL;
    if (!part->is_finished[number]) {
        part_note(part, error_new(arena, ERR_DEADLINE, "workflow %u did not end in time", number));
        return;
    }
    part->done++;
    load_histogram_add(&part->ends, clock_monotonic() - begin);
}

static void
start_workflows(void *argument)
{
    struct part *part = argument;
    while (part->number_next < part->options->count) {
        unsigned number = part->number_next;
        part->number_next += part->all->count;
        live_through(part, number);
    }
    latch_done(&part->working);
}

/* --- all together -------------------------------------------------------------------------------
 */

static void
register_domain(struct part *part)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = DOMAIN_NAME;
    request->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    API(RegisterDomainResponse) *response;
    struct error *err = part_call(part, "DomainAPI/RegisterDomain", CALL_TIMEOUT, request, arena,
                                  register_domain_response, &response);
    check_that(err == NULL || err->kind == ERR_DOMAIN_ALREADY_EXISTS, "%s",
               err == NULL ? "" : err->message);
}

/* As the Go client says it. */
static struct grpc_client *
open_client(const char *address)
{
    static const struct {
        const char *name, *value;
    } said[] = {
        {"rpc-caller", "bench"},
        {"rpc-service", "cadence-frontend"},
        {"rpc-encoding", "proto"},
        {"cadence-client-library-version", "1.3.0"},
        {"cadence-client-feature-version", "1.7.0"},
        {"cadence-client-name", "uber-go"},
    };
    struct call_header headers[array_length(said)];
    for (size_t i = 0; i < array_length(said); i++)
        headers[i] = (struct call_header){slice_text(said[i].name), slice_text(said[i].value)};
    return grpc_client_new(&(struct grpc_client_options){.address = address,
                                                         .is_probing = true,
                                                         .headers = headers,
                                                         .header_count = array_length(headers)});
}

/* The share of one part of so many things. */
static unsigned
share(const struct part *part, unsigned count)
{
    return (count + part->all->count - 1 - part->index) / part->all->count;
}

static bool
is_starting(const struct part *part)
{
    return part->options->step == STEP_WHOLE || part->options->step == STEP_START;
}

/* What it waits for: its starters, or, where all were started before, its workflows. */
static unsigned
work_of(const struct part *part)
{
    return share(part, is_starting(part) ? part->options->in_flight : part->options->count);
}

static void
open_part(void *argument)
{
    struct part *part = argument;
    unsigned pollers = share(part, part->options->pollers);
    part->client = open_client(part->options->address);
    part->number_next = part->index;
    part->starters = memory_zalloc(part->options->count, sizeof *part->starters);
    part->is_finished = memory_zalloc(part->options->count, sizeof *part->is_finished);
    part->pollers = memory_zalloc(3 * pollers, sizeof *part->pollers);
    latch_init(&part->working, work_of(part));
    if (part->index == 0)
        register_domain(part);
}

static void
start_pollers(struct part *part)
{
    enum workflows_step step = part->options->step;
    unsigned pollers = step == STEP_START ? 0 : share(part, part->options->pollers);
    unsigned kinds = step == STEP_DECIDE || part->options->due != 0 ? 1 : 2;
    bool is_sticky = part->options->activities > 1;
    latch_init(&part->polling, (kinds + is_sticky) * pollers);
    for (unsigned i = 0; i < pollers; i++) {
        part->pollers[part->poller_count++] = fiber_start("decisions", part_poll_decisions, part);
        if (is_sticky)
            part->pollers[part->poller_count++] = fiber_start("sticky", part_poll_sticky, part);
        if (kinds == 2)
            part->pollers[part->poller_count++] =
                fiber_start("activities", part_poll_activities, part);
    }
}

/* Runs all workflows of this part. Its pollers go on: they serve the others, too. */
static void
run_part(void *argument)
{
    struct part *part = argument;
    unsigned starters = is_starting(part) ? work_of(part) : 0;
    start_pollers(part);
    for (unsigned i = 0; i < starters; i++)
        fiber_start("starter", start_workflows, part);
    latch_wait(&part->working);
}

static void
close_part(void *argument)
{
    struct part *part = argument;
    part->is_over = true;
    for (unsigned i = 0; i < part->poller_count; i++)
        fiber_cancel(part->pollers[i]);
    latch_wait(&part->polling);
    grpc_client_free(part->client);
    memory_free(part->starters);
    memory_free(part->is_finished);
    memory_free(part->pollers);
}

static void
on_its_loop(struct part *part, void (*function)(void *argument))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = loop_call(loop_at(part->index), function, part, arena);
    check_that(err == NULL, "%s", err->message);
}

static void
wait_for_part(void *argument)
{
    struct part *part = argument;
    on_its_loop(part, run_part);
    latch_done(&part->all->going);
}

static void
run_parts(struct all_parts *all)
{
    latch_init(&all->going, all->count);
    for (unsigned i = 0; i < all->count; i++)
        fiber_start("part", wait_for_part, all->by_loop[i]);
    latch_wait(&all->going);
}

static int64_t
server_cpu(const struct workflows_options *options, struct arena *arena)
{
    int64_t cpu = 0;
    struct error *err = load_process_cpu(options->server_pid, arena, &cpu);
    check_that(err == NULL, "%s", err->message);
    return cpu;
}

static void
add_histogram(struct load_histogram *sum, const struct load_histogram *histogram)
{
    sum->count += histogram->count;
    sum->max = histogram->max > sum->max ? histogram->max : sum->max;
    for (size_t i = 0; i < LOAD_HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += histogram->buckets[i];
}

static void
add_part(struct workflows_result *result, const struct part *part)
{
    result->done += part->done;
    result->failures += part->failures;
    result->repeats += part->repeats;
    if (result->first_error[0] == '\0')
        memcpy(result->first_error, part->first_error, sizeof result->first_error);
}

/* The parts have ended: adds up their numbers. Frees them. */
static void
sum_up(struct all_parts *all, struct workflows_result *result)
{
    struct load_histogram *starts = memory_zalloc(1, sizeof *starts);
    struct load_histogram *ends = memory_zalloc(1, sizeof *ends);
    for (unsigned i = 0; i < all->count; i++) {
        struct part *part = all->by_loop[i];
        add_part(result, part);
        add_histogram(starts, &part->starts);
        add_histogram(ends, &part->ends);
        memory_free(part);
    }
    result->start_p50 = load_histogram_quantile(starts, 0.5);
    result->start_p99 = load_histogram_quantile(starts, 0.99);
    result->end_p50 = load_histogram_quantile(ends, 0.5);
    result->end_p99 = load_histogram_quantile(ends, 0.99);
    memory_free(starts);
    memory_free(ends);
}

/* Bytes that cannot be made fewer: stores compress. */
static uint8_t *
make_payload(size_t length, struct arena *arena)
{
    struct random random;
    uint8_t *bytes = arena_alloc(arena, length);
    random_seed(&random, 1);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)random_next(&random);
    return bytes;
}

void
workflows_run(const struct workflows_options *options, struct arena *arena,
              struct workflows_result *result)
{
    *result = (struct workflows_result){0};
    unsigned count = options->connections < loop_count() ? options->connections : loop_count();
    struct all_parts all = {
        .options = options,
        .list = options->list != NULL ? arena_text(arena, options->list)
                                      : arena_format(arena, "bench-%" PRId64, clock_wall()),
        .payload = make_payload(options->payload, arena),
        .by_loop = arena_zalloc(arena, count, sizeof *all.by_loop),
        .count = count < options->in_flight ? count : options->in_flight,
    };
    for (unsigned i = 0; i < all.count; i++) {
        struct part *part = memory_zalloc(1, sizeof *part);
        part->all = &all;
        part->options = options;
        part->index = i;
        all.by_loop[i] = part;
        on_its_loop(part, open_part);
    }
    int64_t cpu = server_cpu(options, arena), begin = clock_monotonic();
    run_parts(&all);
    result->elapsed = clock_monotonic() - begin;
    result->server_cpu = server_cpu(options, arena) - cpu;
    struct error *err = load_process_memory(options->server_pid, arena, &result->server_memory);
    check_that(err == NULL, "%s", err->message);
    for (unsigned i = 0; i < all.count; i++)
        on_its_loop(all.by_loop[i], close_part);
    sum_up(&all, result);
}
