/* workflow_reset.c - workflow reset and workflow reset-batch: finding the place in the history that
 * the flags mean, then asking the server. */
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "cli/base/request.h"
#include "cli/output/table.h"
#include "cli/workflow/history.h"
#include "cli/workflow/reset.h"
#include "cli/workflow/run_list.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "wire/message.h"
#include "wire/presence.h"

#define WORKFLOW_API "/uber.cadence.api.v1.WorkflowAPI/"
#define TIMEOUT      (10 * NS_PER_S)
#define PAGE_SIZE    1000
#define FILE_MAX     (64u * 1024 * 1024)
#define OFFSET_MIN   (-1000000)

/* A run to be reset: what was asked for, and what was found. */
struct reset {
    struct cli_call *call;
    struct reset_criteria criteria;
    bool has_type;
    int64_t event_id; /* --event_id; 0: by type */
    const char *domain, *workflow_id, *run_id, *reason;
};

static struct error *
fail(struct reset *reset, const char *sentence)
{
    return error_new(reset->call->arena, ERR_BAD_REQUEST, "%s", sentence);
}

/* ---- flags ---- */

static struct error *
read_times(struct cli_call *call, struct reset_criteria *criteria)
{
    const char *earliest = cli_text(call, "decided_after"),
               *latest = cli_text(call, "decided_before");
    bool is_by_time = criteria->type == RESET_DECISION_COMPLETED_TIME;
    if (is_by_time && (earliest == NULL) == (latest == NULL))
        return error_new(
            call->arena, ERR_BAD_REQUEST,
            "DecisionCompletedTime needs one of --earliest_time TIME and --latest_time "
            "TIME");
    if (earliest != NULL && !time_read(earliest, clock_wall(), &criteria->earliest))
        return error_new(call->arena, ERR_BAD_REQUEST, "--earliest_time: '%s' is not a time",
                         earliest);
    if (latest != NULL && !time_read(latest, clock_wall(), &criteria->latest))
        return error_new(call->arena, ERR_BAD_REQUEST, "--latest_time: '%s' is not a time", latest);
    return NULL;
}

static struct error *
read_criteria(struct cli_call *call, struct reset *reset)
{
    const char *type = cli_text(call, "reset_type");
    reset->has_type = type != NULL;
    if (type != NULL && !reset_type_read(type, &reset->criteria.type))
        return error_new(call->arena, ERR_BAD_REQUEST, "--reset_type: '%s' is not one of %s", type,
                         reset_type_names());
    reset->criteria.binary_checksum = cli_text(call, "reset_bad_binary_checksum");
    if (type != NULL && reset->criteria.type == RESET_BAD_BINARY &&
        reset->criteria.binary_checksum == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "BadBinary needs --reset_bad_binary_checksum CHECKSUM");
    struct error *err =
        cli_number(call, "decision_offset", OFFSET_MIN, 0, 0, &reset->criteria.offset);
    return err != NULL ? err : read_times(call, &reset->criteria);
}

static struct error *
open_reset(struct cli_call *call, struct reset *reset)
{
    *reset = (struct reset){.call = call};
    struct error *err = cli_need_domain(call, &reset->domain);
    if (err == NULL)
        err = cli_need(call, "why", &reset->reason);
    if (err == NULL)
        err = cli_wrong(call, read_criteria(call, reset));
    return err;
}

/* ---- finding ---- */

static struct error *
describe(struct reset *reset, const char *run_id, API(DescribeWorkflowExecutionResponse) **response)
{
    API(WorkflowExecution) execution = API_VALUE(WORKFLOW_EXECUTION__INIT);
    API(DescribeWorkflowExecutionRequest)
    request = API_VALUE(DESCRIBE_WORKFLOW_EXECUTION_REQUEST__INIT);
    execution.workflow_id = (char *)reset->workflow_id;
    execution.run_id = (char *)run_id;
    request.domain = (char *)reset->domain;
    request.workflow_execution = &execution;
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(reset->call, WORKFLOW_API "DescribeWorkflowExecution", &request.base, TIMEOUT,
                API_TYPE(describe_workflow_execution_response), &answer);
    *response = (API(DescribeWorkflowExecutionResponse) *)answer;
    return err == NULL ? NULL : cli_advise(reset->call, err);
}

static struct error *
read_history(struct reset *reset, API(History) *all)
{
    struct cli_history_reader reader = {.call = reset->call,
                                        .domain = reset->domain,
                                        .workflow_id = reset->workflow_id,
                                        .run_id = reset->run_id};
    struct {
        API(HistoryEvent) **items;
        size_t count, capacity;
    } events = {0};
    struct error *err = NULL;
    while (err == NULL && !reader.is_over) {
        API(History) *page = NULL;
        err = history_next(&reader, &page);
        for (size_t i = 0; err == NULL && i < page->n_events; i++)
            vector_push_in(&events, reset->call->arena, page->events[i]);
    }
    all->events = events.items;
    all->n_events = events.count;
    return err;
}

static struct error *
find_bad_binary(struct reset *reset, int64_t *event_id)
{
    API(DescribeWorkflowExecutionResponse) *response = NULL;
    struct error *err = describe(reset, reset->run_id, &response);
    if (err != NULL)
        return err;
    const API(ResetPoints) *points = response->workflow_execution_info->auto_reset_points;
    for (size_t i = 0; points != NULL && i < points->n_points && *event_id == 0; i++) {
        const API(ResetPointInfo) *point = points->points[i];
        if (strcmp(point->binary_checksum, reset->criteria.binary_checksum) == 0 &&
            point->resettable)
            *event_id = point->first_decision_completed_id;
    }
    return NULL;
}

/* The event that the request names; the run may become the one before it. */
static struct error *
find_event(struct reset *reset, int64_t *event_id)
{
    API(History) history = API_VALUE(HISTORY__INIT);
    *event_id = reset->event_id;
    if (*event_id != 0)
        return NULL;
    if (reset->criteria.type == RESET_BAD_BINARY) {
        struct error *err = find_bad_binary(reset, event_id);
        if (err != NULL)
            return err;
    } else {
        struct error *err = read_history(reset, &history);
        if (err == NULL && reset->criteria.type == RESET_LAST_CONTINUED_AS_NEW) {
            reset->run_id =
                history.events[0]
                    ->workflow_execution_started_event_attributes->continued_execution_run_id;
            if (reset->run_id[0] == '\0')
                return fail(reset, "this run was not continued from another one; "
                                   "LastDecisionCompleted resets it to its own last decision");
            err = read_history(reset, &history);
        }
        if (err != NULL)
            return err;
        *event_id = reset_find(&reset->criteria, history.events, history.n_events);
    }
    return *event_id != 0
               ? NULL
               : fail(reset, "there is no such decision in its history; cadenza workflow show "
                             "--reset_points_only lists the possible ones");
}

/* The run that is meant when none is named. */
static struct error *
find_run(struct reset *reset)
{
    API(DescribeWorkflowExecutionResponse) *response = NULL;
    if (reset->run_id != NULL && reset->run_id[0] != '\0')
        return NULL;
    struct error *err = describe(reset, "", &response);
    if (err == NULL)
        reset->run_id = response->workflow_execution_info->workflow_execution->run_id;
    return err;
}

/* ---- doing ---- */

static struct error *
send_reset(struct reset *reset, int64_t event_id, const char **new_run_id)
{
    API(WorkflowExecution) execution = API_VALUE(WORKFLOW_EXECUTION__INIT);
    API(ResetWorkflowExecutionRequest) request = API_VALUE(RESET_WORKFLOW_EXECUTION_REQUEST__INIT);
    execution.workflow_id = (char *)reset->workflow_id;
    execution.run_id = (char *)reset->run_id;
    request.domain = (char *)reset->domain;
    request.workflow_execution = &execution;
    request.reason = (char *)reset->reason;
    request.decision_finish_event_id = event_id;
    request.request_id = uuid_new_text(reset->call->arena);
    request.skip_signal_reapply = cli_is_on(reset->call, "skip_signal_reapply");
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(reset->call, WORKFLOW_API "ResetWorkflowExecution", &request.base,
                                TIMEOUT, API_TYPE(reset_workflow_execution_response), &answer);
    if (err != NULL)
        return cli_advise(reset->call, err);
    *new_run_id = ((const API(ResetWorkflowExecutionResponse) *)answer)->run_id;
    return NULL;
}

struct error *
cli_workflow_reset(struct cli_call *call)
{
    struct reset reset;
    const char *new_run_id = NULL;
    int64_t event_id = 0;
    struct error *err = open_reset(call, &reset);
    if (err == NULL)
        err = cli_need(call, "workflow_id", &reset.workflow_id);
    if (err == NULL)
        err = cli_number(call, "reset_event_id", 1, INT64_MAX, 0, &reset.event_id);
    if (err != NULL)
        return err;
    if (reset.event_id == 0 && !reset.has_type)
        return cli_wrong(call,
                         fail(&reset, "no reset point; give --event_id N or --reset_type TYPE"));
    reset.run_id = cli_text(call, "run_id");
    err = find_run(&reset);
    if (err == NULL)
        err = find_event(&reset, &event_id);
    if (err == NULL)
        err = send_reset(&reset, event_id, &new_run_id);
    if (err != NULL)
        return err;
    if (call->as_json)
        cli_print("{\"runId\": \"%s\"}\n", new_run_id);
    else
        cli_print("Reset Workflow Id: %s to event %lld, run Id: %s\n",
                  show_text(reset.workflow_id, call->arena), (long long)event_id, new_run_id);
    return NULL;
}

/* ---- many of them ---- */

struct batch_target {
    const char *workflow_id, *run_id;
};
struct target_list {
    struct batch_target *items;
    size_t count, capacity;
};

static struct error *
read_targets(struct cli_call *call, const char *key, const char *separator,
             struct target_list *targets)
{
    const char *file = cli_text(call, key);
    struct slice bytes;
    if (file == NULL)
        return NULL;
    struct error *err = file_load(file, FILE_MAX, call->arena, &bytes);
    if (err != NULL)
        return err;
    size_t count;
    const char **lines = words_cut(arena_text_of(call->arena, bytes), '\n', call->arena, &count);
    for (size_t i = 0; i < count; i++) {
        const char *cut = strstr(lines[i], separator);
        size_t length = cut == NULL ? strlen(lines[i]) : (size_t)(cut - lines[i]);
        const char *run_id = cut == NULL ? "" : cut + strlen(separator);
        vector_push_in(
            targets, call->arena,
            (struct batch_target){arena_text_of(call->arena, slice_of(lines[i], length)), run_id});
    }
    return NULL;
}

static struct error *
query_targets(struct cli_call *call, const char *key, struct target_list *targets)
{
    const char *query = cli_text(call, key);
    struct run_list runs = {0};
    if (query == NULL)
        return NULL;
    struct error *err =
        run_list_query(call, "ListWorkflowExecutions", query, PAGE_SIZE, true, &runs);
    for (size_t i = 0; err == NULL && i < runs.count; i++)
        vector_push_in(targets, call->arena,
                       (struct batch_target){runs.items[i]->workflow_execution->workflow_id,
                                             runs.items[i]->workflow_execution->run_id});
    return err;
}

static bool
is_excluded(const struct target_list *excluded, const char *workflow_id)
{
    for (size_t i = 0; i < excluded->count; i++) {
        if (strcmp(excluded->items[i].workflow_id, workflow_id) == 0)
            return true;
    }
    return false;
}

/* Why a target is left alone; NULL: it is not. */
static struct error *
find_skip_reason(struct reset *reset, const char *base_run_id, const char **skip_reason)
{
    API(DescribeWorkflowExecutionResponse) *response = NULL;
    struct error *err = describe(reset, "", &response);
    if (err != NULL)
        return err;
    const API(WorkflowExecutionInfo) *info = response->workflow_execution_info;
    const char *status = run_list_status(info, reset->call->arena);
    bool is_current =
        base_run_id[0] == '\0' || strcmp(info->workflow_execution->run_id, base_run_id) == 0;
    reset->run_id = base_run_id[0] != '\0' ? base_run_id : info->workflow_execution->run_id;
    if (cli_is_on(reset->call, "skip_current_open") && strcmp(status, "OPEN") == 0)
        *skip_reason = "its current run is open";
    if (cli_is_on(reset->call, "skip_current_completed") && strcmp(status, "COMPLETED") == 0)
        *skip_reason = "its current run completed";
    if (cli_is_on(reset->call, "skip_base_is_not_current") && !is_current)
        *skip_reason = "it is not the current run";
    return NULL;
}

#define NON_DETERMINISTIC "nondeterministic"

/* Did its last decision fail because code and history differ? */
static struct error *
check_determinism(struct reset *reset, const char **skip_reason)
{
    API(History) history = API_VALUE(HISTORY__INIT);
    if (!cli_is_on(reset->call, "only_non_deterministic"))
        return NULL;
    struct error *err = read_history(reset, &history);
    if (err != NULL)
        return err;
    const API(HistoryEvent) *last = history.events[history.n_events - 1];
    const API(DecisionTaskFailedEventAttributes) *failed =
        last->decision_task_failed_event_attributes;
    bool is_failed = last->attributes_case ==
                     API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_FAILED_EVENT_ATTRIBUTES);
    const char *details =
        is_failed && failed->failure != NULL
            ? arena_text_of(reset->call->arena, presence_read_bytes(failed->failure->details))
            : "";
    if (strstr(details, NON_DETERMINISTIC) == NULL)
        *skip_reason =
            "its last event is not a decision that failed because code and history differ";
    return NULL;
}

static struct error *
reset_target(struct reset *reset, const struct batch_target *batch_target, const char **outcome)
{
    const char *skip_reason = NULL, *new_run_id = NULL;
    int64_t event_id = 0;
    reset->workflow_id = batch_target->workflow_id;
    struct error *err = find_skip_reason(reset, batch_target->run_id, &skip_reason);
    if (err == NULL && skip_reason == NULL)
        err = check_determinism(reset, &skip_reason);
    if (err == NULL && skip_reason != NULL) {
        *outcome = arena_format(reset->call->arena, "skipped: %s", skip_reason);
        return NULL;
    }
    if (err == NULL)
        err = find_event(reset, &event_id);
    if (err == NULL && cli_is_on(reset->call, "dry_run")) {
        *outcome =
            arena_format(reset->call->arena, "would go back to event %lld", (long long)event_id);
        return NULL;
    }
    if (err == NULL)
        err = send_reset(reset, event_id, &new_run_id);
    if (err == NULL)
        *outcome = arena_format(reset->call->arena, "back to event %lld, run Id: %s",
                                (long long)event_id, new_run_id);
    return err;
}

static struct error *
find_targets(struct cli_call *call, struct target_list *targets, struct target_list *excluded)
{
    const char *separator = cli_text(call, "input_separator");
    if (cli_text(call, "reset_file") == NULL && cli_text(call, "query") == NULL)
        return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                         "no workflows; give --query QUERY or --input_file FILE"));
    struct error *err = read_targets(call, "reset_file", separator, targets);
    if (err == NULL)
        err = query_targets(call, "query", targets);
    if (err == NULL)
        err = read_targets(call, "exclude_file", separator, excluded);
    if (err == NULL)
        err = query_targets(call, "exclude_query", excluded);
    return err;
}

struct error *
cli_workflow_reset_batch(struct cli_call *call)
{
    struct reset reset;
    struct target_list targets = {0}, excluded = {0};
    size_t done = 0, failed = 0;
    struct error *err = open_reset(call, &reset);
    if (err == NULL && !reset.has_type)
        err = cli_wrong(call, fail(&reset, "no reset point; give --reset_type TYPE"));
    if (err == NULL)
        err = find_targets(call, &targets, &excluded);
    for (size_t i = 0; err == NULL && i < targets.count; i++) {
        const char *outcome = "";
        if (is_excluded(&excluded, targets.items[i].workflow_id))
            continue;
        struct error *problem = reset_target(&reset, &targets.items[i], &outcome);
        done += problem == NULL;
        failed += problem != NULL;
        cli_print("%s: %s\n", show_text(targets.items[i].workflow_id, call->arena),
                  problem == NULL ? outcome : problem->message);
    }
    if (err == NULL)
        cli_print("%zu done, %zu failed, %zu excluded.\n", done, failed,
                  targets.count - done - failed);
    call->exit_code = err == NULL && failed > 0 ? 1 : call->exit_code;
    return err;
}
