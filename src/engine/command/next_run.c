/* next_run.c - what follows the end of a run: its next attempt, or the next run of its schedule.
 *
 * The next run is started as this one was (run->birth), not as it became: what was upserted since
 * stays behind. A retry comes before the schedule; only when no attempt is left does the run wait
 * for the next fire. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "engine/command/retry.h"
#include "engine/command/schedule.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

#define INITIATOR(name) API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_##name)

/* When the next run begins, and why. */
struct succession {
    API(ContinueAsNewInitiator) initiator;
    int64_t backoff;
};

static bool
find_retry(const struct mutation *mutation, const struct run_end *end,
           struct succession *succession)
{
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    if (end->failure == NULL || core->retry_policy == NULL)
        return false;
    struct retry_state state = {.now = mutation_context(mutation)->now,
                                .expiration_time = core->expiration_time,
                                .attempt = core->attempt,
                                .reason = end->failure->reason};
    int64_t backoff = retry_backoff(core->retry_policy, &state);
    *succession = (struct succession){INITIATOR(RETRY_POLICY), backoff};
    return backoff > 0;
}

static bool
find_fire(const struct mutation *mutation, struct succession *succession)
{
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    const struct run_context *context = mutation_context(mutation);
    if (core->cron_schedule[0] == '\0')
        return false;
    int64_t backoff = schedule_backoff(core->cron_schedule, core->cron_overlap_policy,
                                       core->execution_time, context->now);
    if (backoff == SCHEDULE_NEVER)
        return false;
#ifdef CADENZA_FAULT_fire_early
    backoff -= backoff > 0;
#endif
    if (core->jitter_start > 0)
        backoff += (int64_t)random_below(context->random, (uint64_t)core->jitter_start + 1);
    check(backoff >= 0);
    *succession =
        (struct succession){INITIATOR(CRON_SCHEDULE), backoff < INT32_MAX ? backoff : INT32_MAX};
    return true;
}

/* As this run was started, except for what the next one gets from its end. */
static const API(ContinueAsNewWorkflowExecutionDecisionAttributes) *
make_request(const struct mutation *mutation, const struct run_end *end,
             const struct succession *succession)
{
    const API(WorkflowExecutionStartedEventAttributes) *birth = mutation_run(mutation)->birth;
    struct arena *arena = mutation_arena(mutation);
    API(ContinueAsNewWorkflowExecutionDecisionAttributes) *request =
        message_new(arena, API_TYPE(continue_as_new_workflow_execution_decision_attributes));
    request->workflow_type = birth->workflow_type;
    request->task_list = birth->task_list;
    request->input = birth->input;
    request->execution_start_to_close_timeout = birth->execution_start_to_close_timeout;
    request->task_start_to_close_timeout = birth->task_start_to_close_timeout;
    request->backoff_start_interval = presence_make_duration(arena, succession->backoff);
    request->retry_policy = birth->retry_policy;
    request->initiator = succession->initiator;
    request->failure = (API(Failure) *)end->failure;
    request->last_completion_result =
        end->failure == NULL ? (API(Payload) *)end->result : birth->last_completion_result;
    request->cron_schedule = birth->cron_schedule;
    request->cron_overlap_policy = birth->cron_overlap_policy;
    request->header = birth->header;
    request->memo = birth->memo;
    request->search_attributes = birth->search_attributes;
    request->jitter_start =
        presence_make_duration(arena, mutation_run(mutation)->core->jitter_start);
    request->active_cluster_selection_policy = birth->active_cluster_selection_policy;
    return request;
}

bool
run_is_followed(struct step *step, struct mutation *mutation, const struct run_end *end)
{
    const struct run *run = mutation_run(mutation);
    struct succession succession;
    check(run_is_open(run) && !run_has_started_decision(run));
    if (run->core->is_cancel_requested || run->birth == NULL)
        return false;
    if (find_retry(mutation, end, &succession))
        probe("run_retried");
    else if (find_fire(mutation, &succession))
        probe("cron_goes_on");
    else
        return false;
    run_go_on(step, mutation, make_request(mutation, end, &succession), end->completed_id);
    check(!run_is_open(run) && step->begun != NULL);
    return true;
}
