/* ndc_worker.c - the workers of one cluster: they decide by the plan, and do activities, badly at
 * times. See ndc_load.h.
 *
 * Deciders ask for some workflows to come back on a sticky list of their own, which a second fiber
 * of each polls, with pauses: so decisions wait there while the workflows move. What it is given
 * begins where the worker left off; as one that has forgotten the rest it reads the whole. */
#include <inttypes.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "sim/clusters/ndc_load.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT (4 * NS_PER_S)
#define POLL_TIMEOUT (20 * NS_PER_S)

#define STICKY_PAUSE (3 * NS_PER_S)

struct shift {
    struct ndc_load *load;
    unsigned cluster, number;
    bool is_sticky; /* polls its own list */
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

/* --- sticky lists ---- */

static API(TaskList) *
sticky_list(const struct shift *shift)
{
    return API_NEW(shift->call.arena, task_list,
                   .name = arena_format(shift->call.arena, "sticky%u", shift->number),
                   .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY));
}

/* Half of the decisions; the timeout is soon over, or practically never. */
static API(StickyExecutionAttributes) *
choose_sticky(const struct shift *shift)
{
    if (!shift->load->options.has_sticky || entropy_below(2) == 0)
        return NULL;
    API(StickyExecutionAttributes) *sticky =
        API_NEW(shift->call.arena, sticky_execution_attributes);
    int64_t timeout = entropy_below(3) == 0 ? 2 : 3600;
    sticky->worker_task_list = sticky_list(shift);
    sticky->schedule_to_start_timeout = presence_make_duration(shift->call.arena, timeout);
    return sticky;
}

/* All events up to the start of the decision. False: the cluster does not show them, or not any
 * more. */
static bool
read_whole(struct shift *shift, const API(PollForDecisionTaskResponse) *task,
           struct history_seen *seen)
{
    struct arena *arena = shift->call.arena;
    *seen = (struct history_seen){task->history->events, task->history->n_events};
    if (seen->count > 0 && seen->events[0]->event_id == 1)
        return true;
    API(GetWorkflowExecutionHistoryRequest) *request =
        API_NEW(arena, get_workflow_execution_history_request, .domain = NDC_DOMAIN,
                .workflow_execution = task->workflow_execution);
    API(GetWorkflowExecutionHistoryResponse) *response = NULL;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = ndc_call(shift->load, &shift->call, request, &response);
    size_t count = (size_t)task->started_event_id;
    if (err != NULL || response->history->n_events < count)
        return false;
    world_probe(shift->load->sim->world, "sticky_worker_read_history");
    *seen = (struct history_seen){response->history->events, count};
    return true;
}

/* --- decisions ---- */

static struct error *
answer_decision(struct shift *shift, const API(PollForDecisionTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    struct history_seen seen;
    if (!read_whole(shift, task, &seen))
        return NULL; /* a timeout covers it */
    struct workload_step step;
    char *name = arena_format(arena, "m%u.%" PRIu64, shift->number, shift->sequence++);
    workload_decide(&seen, task->workflow_execution->workflow_id, name, arena, &step);
    API(RespondDecisionTaskCompletedRequest) *request =
        API_NEW(arena, respond_decision_task_completed_request, .task_token = task->task_token);
    ndc_home_put_children(shift->load, step.decisions, step.count, arena);
    request->decisions = step.decisions;
    request->n_decisions = step.count;
    request->identity = ndc_identity(shift->cluster, arena);
    request->sticky_attributes = choose_sticky(shift);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return ndc_call(shift->load, &shift->call, request, NULL);
}

static struct error *
decide_once(struct shift *shift)
{
    API(PollForDecisionTaskRequest) *request = API_NEW(
        shift->call.arena, poll_for_decision_task_request, .domain = NDC_DOMAIN,
        .task_list = shift->is_sticky ? sticky_list(shift) : workflow_task_list(shift->call.arena),
        .identity = ndc_identity(shift->cluster, shift->call.arena));
    API(PollForDecisionTaskResponse) *task = NULL;
    struct error *err = ndc_call(shift->load, &shift->call, request, &task);
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
    return ndc_call(shift->load, &shift->call,
                    API_NEW(arena, respond_activity_task_failed_request,
                            .task_token = task->task_token,
                            .failure = API_NEW(arena, failure, .reason = "not today")),
                    NULL);
}

static struct error *
beat(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    return ndc_call(shift->load, &shift->call,
                    API_NEW(arena, record_activity_task_heartbeat_request,
                            .task_token = task->task_token,
                            .details = workflow_payload(arena, "beat")),
                    NULL);
}

static struct error *
complete_activity(struct shift *shift, const API(PollForActivityTaskResponse) *task)
{
    struct arena *arena = shift->call.arena;
    return ndc_call(shift->load, &shift->call,
                    API_NEW(arena, respond_activity_task_completed_request,
                            .task_token = task->task_token,
                            .result = workflow_payload(arena, "done")),
                    NULL);
}

/* One in eight forgets the task, one fails, two send a heartbeat before they are done; a slow one
 * may find that the domain has moved meanwhile. */
static struct error *
work_once(struct shift *shift)
{
    struct arena *arena = shift->call.arena;
    API(PollForActivityTaskRequest) *request = API_NEW(
        arena, poll_for_activity_task_request, .domain = NDC_DOMAIN,
        .task_list = workflow_task_list(arena), .identity = ndc_identity(shift->cluster, arena));
    API(PollForActivityTaskResponse) *task = NULL;
    struct error *err = ndc_call(shift->load, &shift->call, request, &task);
    if (err != NULL || task->task_token.len == 0)
        return err;
    workload_check_activity(task, &shift->load->verdict, arena);
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
run_shifts(struct ndc_part *part, bool is_sticky, struct error *(*once)(struct shift *shift))
{
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    struct shift shift = {
        .load = load, .cluster = part->cluster, .number = part->number, .is_sticky = is_sticky};
    while (!load->is_audited && load->verdict.violation == NULL) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        shift.call = (struct load_call){
            .clients = clients, .host = part->cluster, .arena = arena, .is_worker = true};
        fiber_set_deadline(clock_monotonic() + POLL_TIMEOUT);
        struct error *err = once(&shift);
        if (err != NULL)
            ndc_pass_time(500 * NS_PER_MS);
        if (is_sticky && load->calm_time == 0)
            ndc_pass_time(STICKY_PAUSE);
        ndc_rest(load);
    }
    load_clients_free(clients);
    load->workers_running--;
}

void
ndc_decider_main(void *argument)
{
    run_shifts(argument, false, decide_once);
}

void
ndc_sticky_main(void *argument)
{
    run_shifts(argument, true, decide_once);
}

void
ndc_activity_main(void *argument)
{
    run_shifts(argument, false, work_once);
}
