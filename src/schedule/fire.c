/* fire.c - starts workflows, as far as the overlap policy allows. See schedule.h.
 *
 * All of it may happen again, if what came of it was lost: a start is known by its request, and
 * what has ended stays so. */
#include "schedule/inside.h"

#include "base/map.h"

/* --- the request ---- */

/* The same fire of the same schedule has the same id, and no other fire has. */
static char *
request_id(const STORED(ScheduleTask) *task, const STORED(ScheduleFire) *fire, struct arena *arena)
{
    const char *name = arena_format(arena, "%lld %lld %zu %s %s", (long long)task->create_time,
                                    (long long)fire->nominal, strlen(task->schedule_id),
                                    task->schedule_id, fire->backfill_id);
    uint64_t halves[2] = {map_hash(slice_text(name)), 0};
    halves[1] = map_hash(
        slice_text(arena_format(arena, "%s %016llx", name, (unsigned long long)halves[0])));
    struct uuid uuid = uuid_v4((const uint8_t *)halves);
    char *text = arena_zalloc(arena, UUID_TEXT_LENGTH + 1, 1);
    uuid_format(&uuid, text);
    return text;
}

static API(SearchAttributes) *
fire_attributes(const STORED(ScheduleTask) *task, const STORED(ScheduleFire) *fire,
                struct arena *arena)
{
    const API(SearchAttributes) *own = task->action->start_workflow->search_attributes;
    bool is_backfill = fire->backfill_id[0] != '\0';
    API(SearchAttributes) *all = own == NULL ? message_new(arena, API_TYPE(search_attributes))
                                             : message_copy(arena, &own->base);
    schedule_attribute(all, SCHEDULE_ATTRIBUTE "ID", schedule_quote(task->schedule_id, arena),
                       arena);
    schedule_attribute(all, SCHEDULE_ATTRIBUTE "Time",
                       schedule_quote(schedule_time_text(fire->nominal, arena), arena), arena);
    schedule_attribute(all, SCHEDULE_ATTRIBUTE "IsBackfill",
                       slice_text(is_backfill ? "true" : "false"), arena);
    if (is_backfill)
        schedule_attribute(all, SCHEDULE_ATTRIBUTE "BackfillID",
                           schedule_quote(fire->backfill_id, arena), arena);
    wire_map_sort(arena, all->indexed_fields, &all->n_indexed_fields);
    return all;
}

API(StartWorkflowExecutionRequest) *
schedule_start_request(const STORED(ScheduleTask) *task, const STORED(ScheduleFire) *fire,
                       struct arena *arena)
{
    const API(ScheduleAction__StartWorkflowAction) *action = task->action->start_workflow;
    const char *prefix = action->workflow_id_prefix;
    API(StartWorkflowExecutionRequest) *start =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    start->workflow_id =
        arena_format(arena, "%s-%s", prefix[0] != '\0' ? prefix : task->schedule_id,
                     schedule_time_text(fire->nominal, arena));
    start->workflow_type = action->workflow_type;
    start->task_list = action->task_list;
    start->input = action->input;
    start->execution_start_to_close_timeout = action->execution_start_to_close_timeout;
    start->task_start_to_close_timeout = action->task_start_to_close_timeout;
    start->identity = SCHEDULE_IDENTITY;
    start->request_id = request_id(task, fire, arena);
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    start->retry_policy = action->retry_policy;
    start->memo = action->memo;
    start->search_attributes = fire_attributes(task, fire, arena);
    return start;
}

/* --- the activity ---- */

struct firing {
    const STORED(ScheduleTask) *task;
    const struct schedule_port *port;
    struct arena *arena;
    STORED(ScheduleReport) *report;
    /* As far as it is known, open. */
    STORED(ScheduleRun) **running;
    size_t running_count;
    bool has_looked;
};

static void
note_closed(struct firing *firing, STORED(ScheduleRun) *run,
            API(WorkflowExecutionCloseStatus) status)
{
    STORED(ScheduleReport) *report = firing->report;
    STORED(ScheduleClosed) *closed = message_new(firing->arena, STORED_TYPE(schedule_closed));
    closed->run = run;
    closed->close_status = status;
    array_push(firing->arena, report->closed, report->n_closed, closed);
}

/* Which of them are still open? */
static struct error *
check_run(struct firing *firing)
{
    size_t left = 0;
    STORED(ScheduleRun) **open =
        arena_zalloc(firing->arena, firing->running_count + 1, sizeof *open);
    for (size_t i = 0; i < firing->running_count; i++) {
        bool is_open = false;
        API(WorkflowExecutionCloseStatus) status = 0;
        struct error *err =
            firing->port->check_run(firing->port->context, firing->running[i], &is_open, &status);
        if (err != NULL)
            return err;
        if (is_open)
            open[left++] = firing->running[i];
        else
            note_closed(firing, firing->running[i], status);
    }
    firing->running = open;
    firing->running_count = left;
    firing->has_looked = true;
    return NULL;
}

static struct error *
end_previous(struct firing *firing,
             struct error *(*end)(void *context, const STORED(ScheduleRun) *run))
{
    struct error *err = NULL;
    for (size_t i = 0; i < firing->running_count && err == NULL; i++)
        err = end(firing->port->context, firing->running[i]);
    return err;
}

static STORED(ScheduleOutcome) *
add_outcome(struct firing *firing, STORED(ScheduleEnd) end)
{
    STORED(ScheduleReport) *report = firing->report;
    STORED(ScheduleOutcome) *outcome = message_new(firing->arena, STORED_TYPE(schedule_outcome));
    outcome->end = end;
    array_push(firing->arena, report->outcomes, report->n_outcomes, outcome);
    return outcome;
}

static struct error *
start(struct firing *firing, const STORED(ScheduleFire) *fire)
{
    const char *run_id = NULL, *refusal = NULL;
    struct error *err =
        firing->port->start(firing->port->context, firing->task, fire, &run_id, &refusal);
    if (err != NULL)
        return err;
    STORED(ScheduleOutcome) *outcome = add_outcome(firing, refusal != NULL  ? END(REFUSED)
                                                           : run_id == NULL ? END(SKIPPED)
                                                                            : END(STARTED));
    outcome->refusal = refusal == NULL ? "" : (char *)refusal;
    if (run_id == NULL)
        return NULL;
    outcome->run = message_new(firing->arena, STORED_TYPE(schedule_run));
    outcome->run->workflow_id =
        schedule_start_request(firing->task, fire, firing->arena)->workflow_id;
    outcome->run->run_id = (char *)run_id;
    array_push(firing->arena, firing->running, firing->running_count, outcome->run);
    return NULL;
}

static size_t
concurrency_limit(const API(SchedulePolicies) *policies)
{
    int32_t limit = policies == NULL ? 0 : policies->concurrency_limit;
    return limit <= 0                     ? SIZE_MAX
           : limit > SCHEDULE_RUNNING_MAX ? SCHEDULE_RUNNING_MAX
                                          : (size_t)limit;
}

/* *is_held: it must wait, and all behind it. */
static struct error *
fire_one(struct firing *firing, const STORED(ScheduleFire) *fire, bool *is_held)
{
    API(ScheduleOverlapPolicy) policy = schedule_overlap(firing->task->policies, fire);
    size_t limit = policy == OVERLAP(CONCURRENT) ? concurrency_limit(firing->task->policies) : 0;
    bool has_room = firing->has_looked && firing->running_count < limit;
    struct error *err = has_room ? NULL : check_run(firing);
    if (err != NULL)
        return err;
    size_t running = firing->running_count;
    if (policy == OVERLAP(BUFFER) && running > 0) {
        *is_held = true;
        return NULL;
    }
    if ((policy == OVERLAP(SKIP_NEW) && running > 0) ||
        (policy == OVERLAP(CONCURRENT) && running >= limit)) {
        add_outcome(firing, END(SKIPPED));
        return NULL;
    }
    if (policy == OVERLAP(CANCEL_PREVIOUS))
        err = end_previous(firing, firing->port->cancel);
    else if (policy == OVERLAP(TERMINATE_PREVIOUS))
        err = end_previous(firing, firing->port->terminate);
    return err != NULL ? err : start(firing, fire);
}

struct error *
schedule_fire(const STORED(ScheduleTask) *task, const struct schedule_port *port,
              struct arena *arena, STORED(ScheduleReport) **report)
{
    struct firing firing = {.task = task,
                            .port = port,
                            .arena = arena,
                            .report = message_new(arena, STORED_TYPE(schedule_report)),
                            .running = task->running,
                            .running_count = task->n_running};
    bool is_held = false;
    struct error *err = task->n_fires == 0 ? check_run(&firing) : NULL;
    for (size_t i = 0; i < task->n_fires && !is_held && err == NULL; i++)
        err = fire_one(&firing, task->fires[i], &is_held);
    check(firing.report->n_outcomes <= task->n_fires);
    *report = firing.report;
    return err;
}
