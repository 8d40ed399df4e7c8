/* apply_run.c - events about the run as a whole: its beginning, its end, signals, attributes. */
#include "engine/run/inside.h"
#include "wire/presence.h"

#define ASK_PARENT_AFTER (10 * SECOND) /* a start rarely takes that long */

static int64_t
moment_after(int64_t moment, int64_t seconds)
{
    int64_t sum;
    if (__builtin_mul_overflow(seconds, SECOND, &sum) || __builtin_add_overflow(sum, moment, &sum))
        return INT64_MAX;
    return sum;
}

/* ---- the beginning ---- */

static void
keep_partitions(struct run *run, const API(WorkflowExecutionStartedEventAttributes) *started)
{
    STORED(RunRecord) *core = run->core;
    size_t count = started->n_partition_config;
    core->n_partition_config = count;
    core->partition_config = arena_zalloc(run->arena, count, sizeof(core->partition_config[0]));
    for (size_t i = 0; i < count; i++) {
        STORED(RunRecord__PartitionConfigEntry) *entry =
            message_new(run->arena, STORED_TYPE(run_record__partition_config_entry));
        entry->key = run_keep_text(run, started->partition_config[i]->key);
        entry->value = run_keep_text(run, started->partition_config[i]->value);
        core->partition_config[i] = entry;
    }
}

/* History names the parent's domain, the record knows its id too. */
static void
keep_parent(struct mutation *mutation, const API(ParentExecutionInfo) *parent)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    const struct run_context *context = mutation->context;
    core->parent = run_keep(mutation->run, (API(ParentExecutionInfo) *)parent);
    if (parent == NULL)
        return;
    core->waits_for_parent = core->continued_execution_run_id[0] == '\0'; /* a first run */
    core->ask_parent_time = core->start_time + ASK_PARENT_AFTER;
    core->parent->domain_id = core->domain_id;
    if (context->find_domain == NULL)
        return;
    const struct domain *domain =
        context->find_domain(context->find_domain_context, parent->domain_name);
    if (domain != NULL)
        core->parent->domain_id = run_keep_text(mutation->run, domain->id);
}

static void
keep_chain(struct run *run, const API(WorkflowExecutionStartedEventAttributes) *started)
{
    STORED(RunRecord) *core = run->core;
    const char *first = started->first_execution_run_id, *own = core->run_id;
    const char *original = started->original_execution_run_id;
    core->first_execution_run_id = run_keep_text(run, first[0] == '\0' ? own : first);
    core->original_execution_run_id = run_keep_text(run, original[0] == '\0' ? own : original);
    core->continued_execution_run_id = run_keep_text(run, started->continued_execution_run_id);
    core->attempt = started->attempt;
    core->retry_policy = run_keep(run, started->retry_policy);
    core->expiration_time = presence_time(started->expiration_time);
    core->cron_schedule = run_keep_text(run, started->cron_schedule);
    core->cron_overlap_policy = started->cron_overlap_policy;
}

static void
keep_times(STORED(RunRecord) *core, const API(WorkflowExecutionStartedEventAttributes) *started,
           int64_t time)
{
    int64_t backoff = duration_seconds(started->first_decision_task_backoff);
    core->execution_timeout = duration_seconds(started->execution_start_to_close_timeout);
    core->decision_timeout = duration_seconds(started->task_start_to_close_timeout);
    check(backoff >= 0);
    core->start_time = time;
    core->execution_time = moment_after(time, backoff);
    core->first_decision_time = backoff == 0 ? 0 : core->execution_time;
    if (core->execution_timeout > 0)
        core->timeout_time = moment_after(core->execution_time, core->execution_timeout);
    /* The first attempt has all of its time, whatever its policy says. */
    int64_t expiration = presence_time(started->expiration_time);
    if (started->attempt > 0 && expiration != 0 &&
        (core->timeout_time == 0 || expiration < core->timeout_time))
        core->timeout_time = expiration;
}

/* The first branch of a tree has the tree's id, unless its maker chose another. */
static void
keep_branch(struct run *run)
{
    STORED(RunRecord) *core = run->core;
    struct uuid uuid;
    if (core->tree_id.len != 0 && core->branch_id.len != 0)
        return;
    check_that(uuid_parse(slice_text(core->run_id), &uuid), "run id %s", core->run_id);
    ProtobufCBinaryData id = presence_make_bytes(run_keep_bytes(run, slice_of(uuid.bytes, 16)));
    core->tree_id = core->branch_id = id;
}

/* What the next run is started with, if the schedule or the policy asks for one: kept beside the
 * core, which is written with every step. */
static void
keep_birth(struct mutation *mutation, const API(WorkflowExecutionStartedEventAttributes) *started)
{
    if (started->cron_schedule[0] == '\0' && started->retry_policy == NULL)
        return;
    API(WorkflowExecutionStartedEventAttributes) birth = *started;
    birth.prev_auto_reset_points = NULL; /* the core has them */
    journal_set(mutation, PENDING_BIRTH, 0, NULL, run_keep(mutation->run, &birth));
}

void
apply_started(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    struct run *run = mutation->run;
    STORED(RunRecord) *core = mutation_core(mutation);
    check(event->event_id == 1);
    check(core->run_id[0] != '\0' && core->workflow_id[0] != '\0' && core->domain_id[0] != '\0');
    check(started->workflow_type != NULL && started->task_list != NULL);
    core->format = RUN_RECORD_FORMAT;
    run_move(core, RUN_CREATED, CLOSE_NONE);
    core->workflow_type = run_keep(run, started->workflow_type);
    core->task_list = run_keep(run, started->task_list);
    if (core->create_request_id[0] == '\0')
        core->create_request_id = run_keep_text(run, started->request_id);
    core->memo = run_keep(run, started->memo);
    core->search_attributes = run_keep(run, started->search_attributes);
    core->auto_reset_points = run_keep(run, started->prev_auto_reset_points);
    core->active_cluster_selection_policy = run_keep(run, started->active_cluster_selection_policy);
    keep_branch(run);
    keep_chain(run, started);
    keep_times(core, started, event_time(event));
    keep_partitions(run, started);
    keep_parent(mutation, started->parent_execution_info);
    reset_points_take_over(mutation, started->prev_auto_reset_points,
                           started->continued_execution_run_id);
    keep_birth(mutation, started);
}

/* ---- the end ---- */

static close_status_t
close_status_of(const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED):
        return CLOSE_COMPLETED;
    case EVENT_KIND(WORKFLOW_EXECUTION_FAILED):
        return CLOSE_FAILED;
    case EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT):
        return CLOSE_TIMED_OUT;
    case EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED):
        return CLOSE_TERMINATED;
    case EVENT_KIND(WORKFLOW_EXECUTION_CANCELED):
        return CLOSE_CANCELED;
    case EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW):
        return CLOSE_CONTINUED_AS_NEW;
    default:
        unreachable("%s does not close a run", event_name(event->attributes_case));
    }
}

/* Nobody works for a closed run: its tasks are void. What is pending stays as it was. */
void
apply_closed(struct mutation *mutation, const API(HistoryEvent) *event)
{
    struct run *run = mutation->run;
    STORED(RunRecord) *core = mutation_core(mutation);
    check_that(!run_has_started_decision(run), "%s while a decision is started",
               event_name(event->attributes_case));
    check(event->event_id == core->next_event_id - 1); /* nothing follows it */
#ifndef CADENZA_FAULT_void_task_stays
    if (core->decision != NULL)
        mutation_drop_transfer(mutation, core->decision->row);
#endif
    core->decision = NULL;
    size_t cursor = 0;
    void *value;
    while (map64_next(run->activities, &cursor, NULL, &value))
        mutation_drop_transfer(mutation, ((const STORED(PendingActivity) *)value)->row);
    core->decision_retry_time = 0;
    core->decision_failure = presence_make_text(NULL);
    core->first_decision_time = 0;
    core->waits_for_parent = false;
    core->close_time = event_time(event);
    run_move(core, RUN_COMPLETED, close_status_of(event));
    apply_close_to_others(mutation, event);
    core->delete_time = retention_end(mutation->context, core);
}

/* ---- in between ---- */

void
apply_cancel_requested(struct mutation *mutation, const API(HistoryEvent) *event)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    check(run_is_open(mutation->run));
    core->is_cancel_requested = true;
    core->cancel_request_id = run_keep_text(
        mutation->run, event->workflow_execution_cancel_requested_event_attributes->request_id);
}

void
apply_signaled(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const char *request_id = event->workflow_execution_signaled_event_attributes->request_id;
    check(run_is_open(mutation->run));
    mutation_core(mutation)->signal_count++;
    if (request_id[0] != '\0')
        mutation_put_signal_request(mutation, request_id);
}

void
apply_search_attributes(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(SearchAttributes) *news =
        event->upsert_workflow_search_attributes_event_attributes->search_attributes;
    STORED(RunRecord) *core = mutation_core(mutation);
    struct run *run = mutation->run;
    if (news == NULL)
        return;
    size_t had = core->search_attributes == NULL ? 0 : core->search_attributes->n_indexed_fields;
    size_t count = had + news->n_indexed_fields;
    API(SearchAttributes) *sum = message_new(run->arena, API_TYPE(search_attributes));
    sum->indexed_fields = arena_zalloc(run->arena, count, sizeof(sum->indexed_fields[0]));
    for (size_t i = 0; i < had; i++)
        sum->indexed_fields[i] = core->search_attributes->indexed_fields[i];
    for (size_t i = 0; i < news->n_indexed_fields; i++)
        sum->indexed_fields[had + i] = run_keep(run, news->indexed_fields[i]);
    wire_map_sort(run->arena, sum->indexed_fields, &count);
    sum->n_indexed_fields = count;
    check(count >= had);
    core->search_attributes = sum;
}
