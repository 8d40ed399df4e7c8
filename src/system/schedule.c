/* schedule.c - the workflow that is a schedule: what schedule/ plans becomes decisions. Served in
 * every domain where schedules are switched on. */
#include "schedule/schedule.h"

#include "base/check.h"
#include "base/json.h"
#include "config/dynamic.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "system/fold.h"
#include "system/types.h"
#include "wire/message.h"
#include "wire/presence.h"

#define HISTORY_EVENTS 500
#define HISTORY_BYTES  (512 * 1024)
#define HISTORY_AGE    (180 * 24 * 3600 * NS_PER_S)
#define FIRE_TIME      60 /* seconds for one attempt */
#define FIRE_RETRY     2  /* seconds between two of them */
#define FIRE_EXPIRY    3600
#define DESCRIBE       "scheduler-describe"

static void
fold(void *state, const API(HistoryEvent) *event, struct arena *arena)
{
    schedule_fold(state, event, arena);
}

static API(Payload) *
payload_of(struct system_decider *decider, struct slice bytes)
{
    return presence_make_payload(decider->arena,
                                 (struct maybe_bytes){.is_set = true, .bytes = bytes});
}

/* --- decisions ---- */

static void
decide_marker(struct system_decider *decider, struct slice details)
{
    API(Decision) *decision =
        system_decide(decider, API_VALUE(DECISION__ATTRIBUTES_RECORD_MARKER_DECISION_ATTRIBUTES));
    decision->record_marker_decision_attributes =
        message_new(decider->arena, API_TYPE(record_marker_decision_attributes));
    decision->record_marker_decision_attributes->marker_name = SCHEDULE_MARKER;
    decision->record_marker_decision_attributes->details = payload_of(decider, details);
}

static void
decide_upsert(struct system_decider *decider, API(SearchAttributes) *attributes)
{
    API(Decision) *decision = system_decide(
        decider,
        API_VALUE(DECISION__ATTRIBUTES_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_DECISION_ATTRIBUTES));
    decision->upsert_workflow_search_attributes_decision_attributes = message_new(
        decider->arena, API_TYPE(upsert_workflow_search_attributes_decision_attributes));
    decision->upsert_workflow_search_attributes_decision_attributes->search_attributes = attributes;
}

/* The next run is like this one: what is not said is taken from it. */
static void
decide_continue(struct system_decider *decider, const struct schedule *schedule, struct slice input)
{
    API(Decision) *decision = system_decide(
        decider,
        API_VALUE(DECISION__ATTRIBUTES_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES));
    API(ContinueAsNewWorkflowExecutionDecisionAttributes) *next = message_new(
        decider->arena, API_TYPE(continue_as_new_workflow_execution_decision_attributes));
    decision->continue_as_new_workflow_execution_decision_attributes = next;
    next->workflow_type = message_new(decider->arena, API_TYPE(workflow_type));
    next->workflow_type->name = SCHEDULE_TYPE;
    next->task_list = message_new(decider->arena, API_TYPE(task_list));
    next->task_list->name = SCHEDULE_LIST;
    next->input = payload_of(decider, input);
    next->execution_start_to_close_timeout =
        presence_make_duration(decider->arena, SCHEDULE_RUN_SECONDS);
    next->task_start_to_close_timeout =
        presence_make_duration(decider->arena, SCHEDULE_DECISION_SECONDS);
    next->initiator = API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_DECIDER);
    next->memo = schedule->definition->memo;
    next->search_attributes =
        schedule_attributes(schedule->definition, schedule->progress->is_paused, decider->arena);
    probe("schedule_continued");
}

static void
decide_fire(struct system_decider *decider, struct slice task)
{
    system_schedule(decider,
                    &(struct system_activity_order){
                        .id = "fire",
                        .type = SCHEDULE_FIRE,
                        .list = SCHEDULE_LIST,
                        .input = task,
                        .start_to_close = FIRE_TIME,
                        .retry = system_retry(decider->arena, FIRE_RETRY, FIRE_EXPIRY, NULL)});
}

static void
decide(void *state, struct system_decider *decider)
{
    struct schedule *schedule = state;
    struct schedule_plan plan = {0};
    if (schedule->definition == NULL) {
        system_fail(decider, "cadenceInternal:Generic", slice_text("not a schedule"));
        return;
    }
    struct schedule_now now = {
        .time = decider->now,
        .events = decider->next_event_id - 1,
        .bytes = decider->history_bytes,
        .limits = {.events = HISTORY_EVENTS, .bytes = HISTORY_BYTES, .age = HISTORY_AGE}};
    schedule_plan(schedule, &now, &plan);
    check(!(plan.continues && plan.is_over));
    if (plan.has_marker)
        decide_marker(decider, plan.marker);
    if (plan.upsert != NULL)
        decide_upsert(decider, plan.upsert);
    if (plan.fires)
        decide_fire(decider, plan.fire_task);
    if (plan.cancels_timer != NULL)
        system_cancel_timer(decider, plan.cancels_timer);
    if (plan.has_timer)
        system_start_timer(decider, plan.timer_id, plan.timer_seconds);
    if (plan.continues)
        decide_continue(decider, schedule, plan.input);
    if (plan.is_over)
        system_complete(decider, (struct slice){0});
}

/* --- the query, for people; DescribeSchedule says everything ---- */

static struct error *
query(void *state, const char *type, struct slice arguments, struct arena *arena,
      struct slice *answer)
{
    const struct schedule *schedule = state;
    if (strcmp(type, DESCRIBE) != 0)
        return error_new(arena, ERR_QUERY_FAILED, "unknown queryType %s", type);
    if (schedule->definition == NULL)
        return error_new(arena, ERR_QUERY_FAILED, "not a schedule");
    const STORED(ScheduleProgress) *progress = schedule->progress;
    const char *cron = schedule->definition->spec->cron_expression;
    const char *id = schedule->definition->schedule_id;
    struct json_writer writer = object_write_begin(arena, 8, strlen(cron) + strlen(id));
    object_write_text(&writer, "scheduleId", id);
    object_write_text(&writer, "cronExpression", cron);
    object_write_flag(&writer, "paused", progress->is_paused);
    object_write_integer(&writer, "totalRuns", progress->total_runs);
    object_write_integer(&writer, "missedRuns", progress->missed_runs);
    object_write_integer(&writer, "skippedRuns", progress->skipped_runs);
    object_write_integer(&writer, "bufferedFireCount", (int64_t)progress->n_buffered);
    object_write_integer(&writer, "runningWorkflowCount", (int64_t)progress->n_running);
    *answer = object_write_end(&writer);
    return NULL;
}

static bool
is_on(const struct system_parts *parts, const char *domain_id)
{
    const struct domain *domain = domains_find_id(parts->domains, domain_id);
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    if (domain == NULL)
        return false;
    filter.domain_name = domain->name;
    return dynamic_flag(parts->dynamic, DYNAMIC_SCHEDULER, &filter);
}

const struct system_workflow schedule_workflow = {.type = SCHEDULE_TYPE,
                                                  .list = SCHEDULE_LIST,
                                                  .state_size = sizeof(struct schedule),
                                                  .fold = fold,
                                                  .decide = decide,
                                                  .query = query,
                                                  .is_on = is_on};
