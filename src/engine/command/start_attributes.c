/* start_attributes.c - the first event of a run that a client starts. */
#include "engine/command/start.h"

#include "base/check.h"
#include "engine/command/schedule.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SECOND      ((int64_t)1000000000)
#define MILLISECOND ((int64_t)1000000)

/* Seconds until the time that the first run was asked for; 0: it has come. */
static int64_t
seconds_until(int64_t now, const GOOGLE(Timestamp) *first_run_at)
{
    int64_t latest = now / SECOND + INT32_MAX;
    if (first_run_at == NULL || first_run_at->seconds < 0)
        return 0;
    if (first_run_at->seconds > latest)
        return INT32_MAX;
    int64_t wait = first_run_at->seconds * SECOND + first_run_at->nanos - now;
    return wait > 0 ? wait / SECOND : 0;
}

/* Seconds that the first decision waits. */
static int64_t
start_backoff(const struct run_context *context, const API(StartWorkflowExecutionRequest) *request)
{
    int64_t wait = seconds_until(context->now, request->first_run_at);
    if (wait > 0)
        return wait;
    int64_t backoff = command_seconds(request->delay_start);
    int64_t jitter = command_seconds(request->jitter_start);
    check(backoff >= 0 && jitter >= 0); /* the door refused others */
    if (request->cron_schedule[0] != '\0') {
        int64_t begin = context->now + backoff * SECOND;
        int64_t fire =
            schedule_backoff(request->cron_schedule, request->cron_overlap_policy, begin, begin);
        backoff += fire == SCHEDULE_NEVER ? 0 : fire;
    }
    if (jitter > 0)
        backoff += (int64_t)random_below(context->random, (uint64_t)jitter + 1);
    check(backoff >= 0);
    return backoff < INT32_MAX ? backoff : INT32_MAX;
}

/* No retry of the run after this: counted from the first decision, whole milliseconds. */
GOOGLE(Timestamp) *
start_expiration(const struct run_context *context, const API(RetryPolicy) *policy, int64_t backoff,
                 struct arena *arena)
{
    int64_t interval = policy == NULL ? 0 : command_seconds(policy->expiration_interval);
    if (interval <= 0)
        return NULL;
    check(backoff >= 0);
    int64_t time = context->now + (interval + backoff) * SECOND;
    time = (time + MILLISECOND / 2) / MILLISECOND * MILLISECOND;
    return presence_make_timestamp(arena, time);
}

/* The decision timeout is lowered, not refused. */
static int64_t
start_decision_timeout(const struct run_context *context,
                       const API(StartWorkflowExecutionRequest) *request)
{
    int64_t timeout = command_seconds(request->task_start_to_close_timeout);
    int64_t limits[] = {run_context_integer(context, DYNAMIC_DECISION_TIMEOUT_MAX),
                        command_seconds(request->execution_start_to_close_timeout)};
    for (size_t i = 0; i < array_length(limits); i++)
        timeout = limits[i] < timeout ? limits[i] : timeout;
    return timeout;
}

static void
start_put_partitions(API(WorkflowExecutionStartedEventAttributes) *attributes,
                     const struct start_command *command, struct arena *arena)
{
    typedef API(WorkflowExecutionStartedEventAttributes__PartitionConfigEntry) entry_t;
    attributes->partition_config = arena_zalloc(arena, command->partition_count, sizeof(entry_t *));
    for (size_t i = 0; i < command->partition_count; i++) {
        entry_t *entry = message_new(
            arena, API_TYPE(workflow_execution_started_event_attributes__partition_config_entry));
        entry->key = presence_make_text(command->partition_keys[i]);
        entry->value = presence_make_text(command->partition_values[i]);
        attributes->partition_config[i] = entry;
    }
    attributes->n_partition_config = command->partition_count;
    wire_map_sort(arena, attributes->partition_config, &attributes->n_partition_config);
}

const API(WorkflowExecutionStartedEventAttributes) *
start_attributes(const struct run_context *context, const struct start_command *command,
                 const char *run_id, struct arena *arena)
{
    const API(StartWorkflowExecutionRequest) *request = command->request;
    API(WorkflowExecutionStartedEventAttributes) *attributes =
        message_new(arena, API_TYPE(workflow_execution_started_event_attributes));
    int64_t backoff = start_backoff(context, request);
    attributes->workflow_type = request->workflow_type;
    attributes->parent_execution_info = (API(ParentExecutionInfo) *)command->parent;
    attributes->task_list = request->task_list;
    attributes->input = request->input;
    attributes->execution_start_to_close_timeout = request->execution_start_to_close_timeout;
    attributes->task_start_to_close_timeout =
        presence_make_duration(arena, start_decision_timeout(context, request));
    attributes->original_execution_run_id = presence_make_text(run_id);
    attributes->first_execution_run_id = presence_make_text(run_id);
    attributes->identity = request->identity;
    attributes->retry_policy = request->retry_policy;
    attributes->expiration_time = start_expiration(context, request->retry_policy, backoff, arena);
    attributes->cron_schedule = request->cron_schedule;
    attributes->cron_overlap_policy = request->cron_overlap_policy;
    attributes->first_decision_task_backoff = presence_make_duration(arena, backoff);
    if (request->cron_schedule[0] != '\0')
        attributes->first_scheduled_time = presence_make_timestamp(arena, context->now);
    attributes->memo = request->memo;
    attributes->search_attributes = request->search_attributes;
    attributes->header = request->header;
    attributes->request_id = request->request_id;
    attributes->active_cluster_selection_policy = request->active_cluster_selection_policy;
    start_put_partitions(attributes, command, arena);
    return attributes;
}
