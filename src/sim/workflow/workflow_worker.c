/* workflow_worker.c - who polls, decides and works. See workflow_load.h.
 *
 * Workers are unreliable on purpose: polls are given up in the middle, tasks are dropped without an
 * answer, activities fail or fall silent. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/sync.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define POLL_TIMEOUT (20 * NS_PER_S)
#define CALL_TIMEOUT (4 * NS_PER_S)
#define QUALMS       (200 * NS_PER_MS) /* of who is about to end a workflow */

/* One worker between two polls. */
struct shift {
    struct workflow_load *load;
    struct load_call call;
    unsigned number;
    uint64_t sequence; /* of its answers, for names */
};

static void
pause_after(const struct error *err)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(NEVER);
    if (err != NULL && fiber_sleep((int64_t)entropy_below(500 * NS_PER_MS), arena) != NULL)
        return;
}

/* --- decisions ----------------------------------------------------------------------------------
 */

/* The task's history; the pages that did not fit are read as a worker does. */
static struct error *
whole_history(struct shift *shift, const API(PollForDecisionTaskResponse) *task,
              struct history_seen *seen)
{
    struct arena *arena = shift->call.arena;
    *seen =
        (struct history_seen){.events = task->history->events, .count = task->history->n_events};
    API(GetWorkflowExecutionHistoryRequest) *request = API_NEW(
        arena, get_workflow_execution_history_request, .domain = WORKFLOW_DOMAIN,
        .workflow_execution = task->workflow_execution, .next_page_token = task->next_page_token);
    while (request->next_page_token.len > 0) {
        API(GetWorkflowExecutionHistoryResponse) *page = NULL;
        struct error *err = workflow_call(shift->load, &shift->call, request, &page);
        if (err != NULL)
            return err;
        size_t count = seen->count + page->history->n_events;
        API(HistoryEvent) **all = arena_zalloc(arena, count + 1, sizeof *all);
        memcpy(all, seen->events, seen->count * sizeof *all);
        for (size_t i = 0; i < page->history->n_events; i++)
            all[seen->count + i] = page->history->events[i];
        *seen = (struct history_seen){.events = all, .count = count};
        request->next_page_token = page->next_page_token;
    }
    return NULL;
}

/* What every decision task must be. */
static void
check_task(struct shift *shift, const API(PollForDecisionTaskResponse) *task,
           const struct history_seen *seen)
{
    struct workflow_load *load = shift->load;
    const char *run_id = task->workflow_execution->run_id;
    ledger_check_history(load, run_id, seen);
    size_t transient = task->attempt > 0 ? 2 : 0;
    if (seen->count < 3) {
        verdict_violate(&load->verdict, "%s: a task with %zu events", run_id, seen->count);
        return;
    }
    const API(HistoryEvent) *last = seen->events[seen->count - 1];
    if (last->attributes_case !=
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_STARTED_EVENT_ATTRIBUTES) ||
        last->event_id != task->started_event_id)
        verdict_violate(&load->verdict, "%s: the history given does not end with the start",
                        run_id);
    ledger_see(load, run_id, seen->events, seen->count - transient);
}

/* One decider of three takes its time before it ends a workflow: what comes meanwhile makes its
 * decision void. */
static struct error *
hesitate(const struct shift *shift)
{
    return shift->number % 3 == 0 ? fiber_sleep(QUALMS, shift->call.arena) : NULL;
}

static void
answer_decision(struct shift *shift, const API(PollForDecisionTaskResponse) *task,
                const struct history_seen *seen)
{
    struct arena *arena = shift->call.arena;
    char *name = arena_format(arena, "m%u.%" PRIu64, shift->number, shift->sequence++);
    struct workload_step step;
    workload_decide(seen, task->workflow_execution->workflow_id, name, arena, &step);
    API(RespondDecisionTaskCompletedRequest) *request =
        API_NEW(arena, respond_decision_task_completed_request, .task_token = task->task_token,
                .decisions = step.decisions, .n_decisions = step.count, .identity = "decider");
    workflow_add_results(task, seen, arena, request);
    struct reported *reported = ledger_promise(shift->load, name);
    reported->is_transient = task->attempt > 0;
    if (step.is_closing)
        snprintf(
            reported->unhandled, sizeof reported->unhandled, "%s",
            ledger_unhandled_name(task->workflow_execution->run_id, task->started_event_id, arena));
    struct workflow_entry *entry = ledger_find(shift->load, task->workflow_execution->workflow_id);
    if (step.is_closing && hesitate(shift) != NULL)
        return;
    for (int try = 0; try < 3; try++) {
        if (step.is_closing)
            ledger_note_ending(shift->load, entry, shift->call.host);
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        struct error *err = workflow_call(shift->load, &shift->call, request, NULL);
        reported->is_acknowledged = reported->is_acknowledged || err == NULL;
        if (err == NULL && step.has_children && entry != NULL)
            entry->has_asked = true;
        if (err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS)
            return;
        shift->call.host = workflow_any_host(shift->load);
    }
}

static void
decide_once(struct shift *shift)
{
    struct arena *arena = shift->call.arena;
    API(PollForDecisionTaskRequest) *request =
        API_NEW(arena, poll_for_decision_task_request, .domain = WORKFLOW_DOMAIN,
                .task_list = workflow_task_list(arena), .identity = "decider");
    API(PollForDecisionTaskResponse) *task = NULL;
    fiber_set_deadline(clock_monotonic() + POLL_TIMEOUT);
    struct error *err = workflow_call(shift->load, &shift->call, request, &task);
    if (err == NULL && task->task_token.len > 0) {
        struct history_seen seen;
        shift->load->tasks_seen++;
        if (task->query == NULL)
            ledger_hand_out(shift->load, arena_format(arena, "d%s/%" PRId64 ".%" PRId64,
                                                      task->workflow_execution->run_id,
                                                      task->started_event_id, task->attempt));
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        bool is_dropped = entropy_below(12) == 0;
        shift->load->tasks_dropped += is_dropped;
        err = is_dropped ? NULL : whole_history(shift, task, &seen);
        if (err == NULL && !is_dropped && task->query != NULL) {
            workflow_answer_query(shift->load, &shift->call, task, &seen);
        } else if (err == NULL && !is_dropped) {
            check_task(shift, task, &seen);
            answer_decision(shift, task, &seen);
        }
    }
    pause_after(err);
}

/* --- activities ---------------------------------------------------------------------------------
 */

static struct error *
heartbeat(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    API(RecordActivityTaskHeartbeatRequest) *request = API_NEW(
        shift->call.arena, record_activity_task_heartbeat_request, .task_token = task->task_token,
        .details = workflow_payload(shift->call.arena, "beat"));
    return workflow_call(shift->load, &shift->call, request, NULL);
}

static struct error *
fail_activity(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    API(RespondActivityTaskFailedRequest) *request = API_NEW(
        shift->call.arena, respond_activity_task_failed_request, .task_token = task->task_token,
        .failure = API_NEW(shift->call.arena, failure, .reason = "not today"));
    shift->load->activities_failed++;
    return workflow_call(shift->load, &shift->call, request, NULL);
}

static struct error *
complete_activity(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    char *name = arena_format(arena, "r%u.%" PRIu64, shift->number, shift->sequence++);
    struct reported *reported = ledger_promise(shift->load, name);
    API(RespondActivityTaskCompletedRequest) *request =
        API_NEW(arena, respond_activity_task_completed_request, .task_token = task->task_token,
                .result = workflow_payload(arena, name));
    struct error *err = NULL;
    for (int try = 0; try < 3; try++) {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = workflow_call(shift->load, &shift->call, request, NULL);
        reported->is_acknowledged = reported->is_acknowledged || err == NULL;
        if (err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS)
            return NULL;
        shift->call.host = workflow_any_host(shift->load);
    }
    return err;
}

static struct error *
work(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    uint64_t what = entropy_below(10);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    shift->load->tasks_seen++;
    shift->load->tasks_dropped += what == 0;
    if (what == 0)
        return NULL;
    if (what < 3)
        return fail_activity(shift, task);
    struct error *err = what < 5 ? heartbeat(shift, task) : NULL;
    return err != NULL ? err : complete_activity(shift, task);
}

static void
work_once(struct shift *shift)
{
    struct arena *arena = shift->call.arena;
    API(PollForActivityTaskRequest) *request =
        API_NEW(arena, poll_for_activity_task_request, .domain = WORKFLOW_DOMAIN,
                .task_list = workflow_task_list(arena), .identity = "worker");
    API(PollForActivityTaskResponse) *task = NULL;
    fiber_set_deadline(clock_monotonic() + POLL_TIMEOUT);
    struct error *err = workflow_call(shift->load, &shift->call, request, &task);
    if (err == NULL && task->task_token.len > 0) {
        workload_check_activity(task, &shift->load->verdict, arena);
        ledger_hand_out(shift->load,
                        arena_format(arena, "%s/%s.%d", task->workflow_execution->run_id,
                                     task->activity_id, task->attempt));
        err = work(shift, task);
    }
    pause_after(err);
}

/* --- both ---------------------------------------------------------------------------------------
 */

/* A poll in a fiber of its own, which may be cancelled: the client goes away in the middle. */
struct attempt {
    struct shift *shift;
    void (*once)(struct shift *shift);
    struct latch open;
};

static void
attempt_main(void *argument)
{
    struct attempt *attempt = argument;
    attempt->once(attempt->shift);
    latch_done(&attempt->open);
}

static void
try_impatiently(struct shift *shift, void (*once)(struct shift *shift))
{
    struct attempt attempt = {.shift = shift, .once = once};
    latch_init(&attempt.open, 1);
    struct fiber *fiber = fiber_start("impatient", attempt_main, &attempt);
    int64_t patience = (int64_t)entropy_below((uint64_t)shift->load->patience_max);
    if (latch_wait_until(&attempt.open, clock_monotonic() + patience))
        return;
    shift->load->polls_abandoned++;
    fiber_cancel(fiber);
    latch_wait(&attempt.open);
}

static void
run_shifts(struct workflow_part *part, void (*once)(struct shift *shift))
{
    struct workflow_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    struct shift shift = {.load = load, .number = part->number};
    bool is_impatient = part->number % 3 == 1;
    while (!load->is_audited && load->verdict.violation == NULL) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        shift.call = (struct load_call){.clients = clients, .arena = arena, .is_worker = true};
        shift.call.host = workflow_any_host(load);
        if (is_impatient)
            try_impatiently(&shift, once);
        else
            once(&shift);
    }
    load_clients_free(clients);
    load->workers_running--;
}

void
workflow_decider_main(void *argument)
{
    run_shifts(argument, decide_once);
}

void
workflow_activity_main(void *argument)
{
    run_shifts(argument, work_once);
}
