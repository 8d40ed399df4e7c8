/* take_over.c - a run moves between clusters: what one of them had begun with it is ended.
 *
 * While a decision is started, what comes is buffered and known in one cluster alone. So before the
 * run moves, the cluster that gives it up fails the decision: then all that it took is in the
 * history. The cluster that takes over does not wait for a worker of the other one: it fails the
 * decision that it finds started, and a decision that waits on a sticky list is sent to the run's
 * own list, since that worker is of another cluster, or remembers an older state. Attempts that are
 * in no history are known in one cluster only: they start again as first attempts, whose events all
 * clusters see. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "fiber/probe.h"

void
command_close_decision(struct step *step)
{
    struct mutation *mutation = step->mutation;
    check(mutation != NULL && run_is_open(mutation_run(mutation)));
    if (run_has_started_decision(mutation_run(mutation))) {
        probe("decision_closed_by_failover");
        decision_fail(mutation, &(struct decision_failure){
                                    .cause = FAILED_CAUSE(FAILOVER_CLOSE_DECISION),
                                    .identity = HISTORY_SERVICE,
                                });
    }
    mutation_flush_buffered(mutation);
    check(!run_has_started_decision(mutation_run(mutation)));
}

void
command_drop_transient(struct step *step)
{
    struct mutation *mutation = step->mutation;
    STORED(RunRecord) *core = mutation_core(mutation);
    check(run_is_open(mutation_run(mutation)) && !run_has_buffered(mutation_run(mutation)));
    if (core->decision == NULL || core->decision->attempt == 0)
        return;
    probe("transient_decision_dropped");
    core->decision_attempt = core->decision->attempt;
    mutation_drop_transfer(mutation, core->decision->row);
    core->decision = NULL;
}

#define REASON_OF_GIVING_WAY "Terminate Workflow Due To Version Conflict." /* Cadence's */

void
command_give_way(struct step *step, const char *details)
{
    run_terminate(step->mutation, REASON_OF_GIVING_WAY, command_text_payload(details, step->arena),
                  "worker-service");
}

bool
command_event_gives_way(const API(HistoryEvent) *event)
{
    return event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED) &&
           strcmp(event->workflow_execution_terminated_event_attributes->reason,
                  REASON_OF_GIVING_WAY) == 0;
}

bool
take_over_is_needed(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    bool is_transient = core->decision != NULL && core->decision->attempt > 0;
    bool has_failed = core->decision == NULL && core->decision_attempt > 0;
    bool is_sticky = core->sticky_task_list != NULL || run_decision_is_elsewhere(run);
    return run_is_open(run) && !run_is_zombie(run) &&
           (run_has_started_decision(run) || is_transient || has_failed || is_sticky);
}

void
command_take_over(struct step *step, bool was_closed)
{
    struct mutation *mutation = step->mutation;
    STORED(RunRecord) *core = mutation_core(mutation);
    bool has_begun = was_closed || core->decision != NULL || core->decision_attempt > 0;
    command_close_decision(step);
    command_drop_transient(step);
    mutation_clear_sticky(mutation);
    if (run_decision_is_elsewhere(mutation_run(mutation)))
        mutation_resend_decision(mutation);
    core->decision_attempt = 0;
    core->decision_retry_time = 0;
    if (has_begun)
        decision_schedule_if_needed(mutation);
    check(!take_over_is_needed(mutation_run(mutation)));
}
