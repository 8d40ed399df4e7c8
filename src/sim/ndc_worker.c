/* ndc_worker.c - the workers of one cluster: they decide by the plan, and do activities, badly at
 * times. See ndc_load.h. */
#include <inttypes.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "sim/ndc_load.h"
#include "sim/workflow_inside.h"
#include "wire/message.h"

#define CALL_TIMEOUT (4 * NS_PER_S)
#define POLL_TIMEOUT (20 * NS_PER_S)

struct shift {
    struct ndc_load *load;
    unsigned cluster, number;
    uint64_t sequence;
    struct load_call call;
};

static void
see_decision(struct shift *shift, const API(PollForDecisionTaskResponse) *task)
{
    struct ndc_load *load = shift->load;
    size_t count = task->history == NULL ? 0 : task->history->n_events;
    if (count == 0 || task->next_page_token.len > 0)
        return;
    const API(HistoryEvent) *last = task->history->events[count - 1];
    load->decisions++;
    if (last->event_id != task->started_event_id)
        verdict_violate(&load->verdict, "%s: the history given does not end with the start",
                        task->workflow_execution->workflow_id);
    else if (sim_group_of_version(last->version) != (int)shift->cluster)
        verdict_violate(&load->verdict, "cluster%u hands out a decision of version %" PRId64,
                        shift->cluster, last->version);
}

static struct error *
answer_decision(struct shift *shift, const API(PollForDecisionTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    struct history_seen seen = {task->history->events, task->history->n_events};
    struct plan_step step;
    char *name = arena_format(arena, "m%u.%" PRIu64, shift->number, shift->sequence++);
    plan_decide(&seen, task->workflow_execution->workflow_id, name, arena, &step);
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_decision_task_completed_request));
    request->task_token = task->task_token;
    ndc_home_put_children(shift->load, step.decisions, step.count, arena);
    request->decisions = step.decisions;
    request->n_decisions = step.count;
    request->identity = ndc_identity(shift->cluster, arena);
    API(RespondDecisionTaskCompletedResponse) *response = NULL;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return ndc_call(shift->load, &shift->call, "WorkerAPI/RespondDecisionTaskCompleted", request,
                    respond_decision_task_completed_response, &response);
}

static struct error *
decide_once(struct shift *shift)
{
    API(PollForDecisionTaskRequest) *request =
        message_new(shift->call.arena, API_TYPE(poll_for_decision_task_request));
    request->domain = NDC_DOMAIN;
    request->task_list = workflow_task_list(shift->call.arena);
    request->identity = ndc_identity(shift->cluster, shift->call.arena);
    API(PollForDecisionTaskResponse) *task = NULL;
    struct error *err = ndc_call(shift->load, &shift->call, "WorkerAPI/PollForDecisionTask",
                                 request, poll_for_decision_task_response, &task);
    if (err != NULL || task->task_token.len == 0)
        return err;
    see_decision(shift, task);
    if (entropy_below(15) == 0)
        return NULL; /* forgotten: a timeout covers it */
    return answer_decision(shift, task);
}

static struct error *
fail_activity(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    API(RespondActivityTaskFailedRequest) *failed =
        message_new(arena, API_TYPE(respond_activity_task_failed_request));
    failed->task_token = task->task_token;
    failed->failure = message_new(arena, API_TYPE(failure));
    failed->failure->reason = "not today";
    API(RespondActivityTaskFailedResponse) *response = NULL;
    return ndc_call(shift->load, &shift->call, "WorkerAPI/RespondActivityTaskFailed", failed,
                    respond_activity_task_failed_response, &response);
}

static struct error *
beat(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    API(RecordActivityTaskHeartbeatRequest) *beat =
        message_new(arena, API_TYPE(record_activity_task_heartbeat_request));
    beat->task_token = task->task_token;
    beat->details = workflow_payload(arena, "beat");
    API(RecordActivityTaskHeartbeatResponse) *beaten = NULL;
    return ndc_call(shift->load, &shift->call, "WorkerAPI/RecordActivityTaskHeartbeat", beat,
                    record_activity_task_heartbeat_response, &beaten);
}

static struct error *
complete_activity(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    API(RespondActivityTaskCompletedRequest) *done =
        message_new(arena, API_TYPE(respond_activity_task_completed_request));
    done->task_token = task->task_token;
    done->result = workflow_payload(arena, "done");
    API(RespondActivityTaskCompletedResponse) *response = NULL;
    return ndc_call(shift->load, &shift->call, "WorkerAPI/RespondActivityTaskCompleted", done,
                    respond_activity_task_completed_response, &response);
}

/* One in eight forgets the task, one fails, two send a heartbeat before they are done; a slow one
 * may find that the domain has moved meanwhile. */
static struct error *
work_once(struct shift *shift)
{
    struct arena *arena = shift->call.arena;
    API(PollForActivityTaskRequest) *request =
        message_new(arena, API_TYPE(poll_for_activity_task_request));
    request->domain = NDC_DOMAIN;
    request->task_list = workflow_task_list(arena);
    request->identity = ndc_identity(shift->cluster, arena);
    API(PollForActivityTaskResponse) *task = NULL;
    struct error *err = ndc_call(shift->load, &shift->call, "WorkerAPI/PollForActivityTask",
                                 request, poll_for_activity_task_response, &task);
    if (err != NULL || task->task_token.len == 0)
        return err;
    plan_check_activity(task, &shift->load->verdict, arena);
    uint64_t what = entropy_below(8);
    if (entropy_below(4) == 0)
        ndc_pass_time(4 * NS_PER_S);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    if (what == 0)
        return NULL;
    if (what == 1)
        return fail_activity(shift, task);
    err = what < 4 ? beat(shift, task) : NULL;
    return err != NULL ? err : complete_activity(shift, task);
}

static void
run_shifts(struct ndc_part *part, struct error *(*once)(struct shift *shift))
{
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    struct shift shift = {.load = load, .cluster = part->cluster, .number = part->number};
    while (!load->is_audited && load->verdict.violation == NULL) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        shift.call = (struct load_call){
            .clients = clients, .host = part->cluster, .arena = arena, .is_worker = true};
        fiber_set_deadline(clock_monotonic() + POLL_TIMEOUT);
        struct error *err = once(&shift);
        if (err != NULL)
            ndc_pass_time(500 * NS_PER_MS);
    }
    load_clients_free(clients);
    load->workers_running--;
}

void
ndc_decider_main(void *argument)
{
    run_shifts(argument, decide_once);
}

void
ndc_activity_main(void *argument)
{
    run_shifts(argument, work_once);
}
