/* follow.c - workflow observe and workflow run: a history as it grows.
 *
 * On a terminal a line at the bottom says how long it has been going and what it waits for; it is
 * drawn by a fiber of its own, ten times a second, and wiped before an event is printed. Elsewhere
 * only events are printed, one to a line, so that the output can be read by a program. */
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/timeline.h"
#include "cli/workflow/history.h"
#include "cli/workflow/workflow_start.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "uber/cadence/api/v1/tasklist.pb-c.h"
#include "wire/presence.h"

#define DRAW_INTERVAL (100 * NS_PER_MS)
#define RETRY_PAUSE   (500 * NS_PER_MS)
#define RETRIES_MAX   60
#define TIMEOUT       (5 * NS_PER_S)
#define WIPE          "\r\033[K"

struct follow {
    struct cli_call *call;
    struct cli_history_reader reader;
    struct timeline timeline;
    struct timeline_style style;
    unsigned frame;
    unsigned failures;     /* in a row */
    bool is_over;          /* the drawing fiber may go */
    bool has_drawn;        /* there is something to wipe */
    struct arena *scratch; /* of one drawing */
};

/* ---- the line at the bottom ---- */

static void
draw(struct follow *follow)
{
    static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"};
    arena_reset(follow->scratch);
    const char *text = follow->failures > 0
                           ? "the server does not answer; trying again"
                           : timeline_summary(&follow->timeline, clock_wall(), follow->scratch);
    cli_print(WIPE "%s %.100s", frames[follow->frame++ % array_length(frames)], text);
    follow->has_drawn = true;
}

static void
wipe(struct follow *follow)
{
    if (follow->has_drawn)
        cli_print(WIPE);
    follow->has_drawn = false;
}

static void
draw_for_ever(void *argument)
{
    struct follow *follow = argument;
    while (!follow->is_over && !fiber_is_cancelled()) {
        if (follow->timeline.event_count > 0)
            draw(follow);
        if (fiber_wait(clock_monotonic() + DRAW_INTERVAL) == WAKE_CANCELLED)
            break;
    }
    arena_free(follow->scratch);
}

/* ---- events ---- */

static void
show_page(struct follow *follow, const API(History) *page)
{
    wipe(follow);
    for (size_t i = 0; i < page->n_events; i++) {
        timeline_note(&follow->timeline, page->events[i], follow->call->arena);
        if (follow->call->as_json)
            continue;
        cli_print("%s", timeline_line(&follow->timeline, &follow->style, page->events[i],
                                      follow->call->arena));
    }
}

/* A server may restart: events that were printed are not printed again. */
static bool
is_worth_retrying(struct follow *follow, const struct error *err)
{
    bool may_pass = err->kind == ERR_UNAVAILABLE || err->kind == ERR_DEADLINE ||
                    err->kind == ERR_SHARD_OWNERSHIP_LOST;
    return may_pass && follow->timeline.event_count > 0 && ++follow->failures < RETRIES_MAX;
}

static struct error *
follow_run(struct follow *follow)
{
    while (!follow->reader.is_over || follow->timeline.status == NULL) {
        API(History) *page = NULL;
        struct error *err = history_next(&follow->reader, &page);
        if (err == NULL) {
            follow->failures = 0;
            show_page(follow, page);
            continue;
        }
        if (!is_worth_retrying(follow, err))
            return err;
        err = fiber_sleep(RETRY_PAUSE, follow->call->arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}

/* A run that went on as another: the same for that one. */
static void
follow_next(struct follow *follow)
{
    const char *next = follow->timeline.next_run_id;
    wipe(follow);
    if (!follow->call->as_json)
        cli_print("Continued as run %s.\n", next);
    follow->reader.run_id = next;
    follow->reader.token = (ProtobufCBinaryData){0};
    follow->reader.is_over = false;
    follow->timeline = (struct timeline){0};
}

static void
show_end(struct follow *follow)
{
    const struct timeline *timeline = &follow->timeline;
    struct arena *arena = follow->call->arena;
    wipe(follow);
    follow->call->exit_code = strcmp(timeline->status, "COMPLETED") == 0 ? 0 : 1;
    if (follow->call->as_json) {
        cli_print_json(json_pack("{s:s, s:s, s:s, s:I, s:s*}", "workflowId",
                                 follow->reader.workflow_id, "runId", follow->reader.run_id,
                                 "status", timeline->status, "historyLength",
                                 (json_int_t)timeline->event_count, "outcome", timeline->outcome));
        return;
    }
    cli_print("%s\n", timeline_summary(timeline, timeline->last, arena));
    if (timeline->outcome != NULL)
        cli_print("%s\n", timeline->outcome);
}

/* Prints the events of a run as they come, and of those that it is continued as, until the last is
 * closed; then how it ended. With exit code 1 unless it completed. Yields. */
static struct error *
history_follow(struct cli_call *call, const char *domain, const char *workflow_id,
               const char *run_id)
{
    int64_t length_max;
    struct error *err = cli_number(call, "max_field_length", 0, INT32_MAX, 0, &length_max);
    if (err != NULL)
        return err;
    struct follow *follow = arena_make(call->arena, struct follow);
    *follow = (struct follow){
        .call = call,
        .reader = {.call = call,
                   .domain = domain,
                   .workflow_id = workflow_id,
                   .run_id = run_id,
                   .waits = true},
        .style = {.has_detail = cli_is_on(call, "show_detail"),
                  .has_colours = call->is_terminal,
                  .field_length_max = (size_t)length_max},
    };
    if (call->is_terminal && !call->as_json) {
        follow->scratch = arena_new(0);
        fiber_start("progress", draw_for_ever, follow);
    }
    do {
        err = follow_run(follow);
        if (err == NULL && follow->timeline.next_run_id != NULL)
            follow_next(follow);
    } while (err == NULL && follow->timeline.status == NULL);
    follow->is_over = true;
    if (err == NULL)
        show_end(follow);
    else
        wipe(follow);
    return err;
}

struct error *
cli_workflow_observe(struct cli_call *call)
{
    struct cli_history_reader reader;
    struct error *err = history_open(call, &reader);
    return err != NULL ? err
                       : history_follow(call, reader.domain, reader.workflow_id, reader.run_id);
}

/* ---- run ---- */

/* A workflow whose task list nobody polls goes nowhere: that is worth a word. */
static void
warn_without_worker(struct cli_call *call, const API(StartWorkflowExecutionRequest) *start)
{
    API(DescribeTaskListRequest) request = API_VALUE(DESCRIBE_TASK_LIST_REQUEST__INIT);
    request.domain = start->domain;
    request.task_list = start->task_list;
    request.task_list_type = API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_DECISION);
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.WorkflowAPI/DescribeTaskList", &request.base, TIMEOUT,
                API_TYPE(describe_task_list_response), &answer);
    const API(DescribeTaskListResponse) *response = (const API(DescribeTaskListResponse) *)answer;
    if (err == NULL && response->n_pollers == 0)
        cli_note("No worker polls task list %s; the workflow waits for one.",
                 start->task_list->name);
}

static const struct cli_rpc start_rpc = {
    .request = API_TYPE(start_workflow_execution_request),
    .fields = START_FIELDS(""),
    .complete = workflow_complete_start,
};

static struct error *
start(struct cli_call *call, API(StartWorkflowExecutionRequest) **request, const char **run_id)
{
    ProtobufCMessage *message = NULL, *answer = NULL;
    struct error *err = cli_make_request(call, &start_rpc, &message);
    if (err != NULL)
        return err;
    err = cli_call_rpc(call, &start_rpc, message, &answer);
    if (err != NULL)
        return cli_advise(call, err);
    *request = (API(StartWorkflowExecutionRequest) *)message;
    *run_id = ((const API(StartWorkflowExecutionResponse) *)answer)->run_id;
    return NULL;
}

static void
print_started(struct cli_call *call, const char *workflow_id, const char *run_id)
{
    if (call->as_json)
        cli_print_json(json_pack("{s:s, s:s}", "workflowId", workflow_id, "runId", run_id));
    else
        cli_print("Started Workflow Id: %s, run Id: %s\n", show_text(workflow_id, call->arena),
                  run_id);
}

struct error *
cli_workflow_start(struct cli_call *call)
{
    API(StartWorkflowExecutionRequest) *request = NULL;
    const char *run_id = NULL;
    struct error *err = start(call, &request, &run_id);
    if (err != NULL)
        return err;
    print_started(call, request->workflow_id, run_id);
    warn_without_worker(call, request);
    return NULL;
}

struct error *
cli_workflow_run(struct cli_call *call)
{
    API(StartWorkflowExecutionRequest) *request = NULL;
    const char *run_id = NULL;
    struct error *err = start(call, &request, &run_id);
    if (err != NULL)
        return err;
    if (!call->as_json)
        print_started(call, request->workflow_id, run_id);
    warn_without_worker(call, request);
    return history_follow(call, request->domain, request->workflow_id, run_id);
}
