/* settle.c - a run changes hands: what one cluster had begun with it is brought to an end.
 *
 * While a decision is started, what comes is buffered and known in one cluster alone. So where the
 * run goes on elsewhere, the cluster that gives it up fails the decision: all that it took is in
 * the history then. The cluster that goes on does not wait for a worker of the other one: it fails
 * the decision that it finds started, and one that waits on a worker's own list is sent to the
 * run's list: that worker is of another cluster, or of a time before. Attempts that are in no
 * history are known in one place only
 * and begin anew, as a first one, whose events all clusters see. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "fiber/mark.h"

void
command_close_decision(struct step *step)
{
    struct mutation *mutation = step->mutation;
    check(mutation != NULL && run_is_open(mutation_run(mutation)));
    if (run_has_started_decision(mutation_run(mutation))) {
        mark("decision_closed_by_failover");
        decision_fail(mutation, &(struct decision_failure){
                                    .cause = FAILED_CAUSE(FAILOVER_CLOSE_DECISION),
                                    .identity = HISTORY_SERVICE,
                                });
    }
    mutation_flush_buffered(mutation);
}

void
command_drop_transient(struct step *step)
{
    struct mutation *mutation = step->mutation;
    STORED(RunRecord) *core = mutation_core(mutation);
    check(!run_has_buffered(mutation_run(mutation)));
    if (core->decision == NULL || core->decision->attempt == 0)
        return;
    mark("transient_decision_dropped");
    core->decision_attempt = core->decision->attempt;
    mutation_drop_transfer(mutation, core->decision->row);
    core->decision = NULL;
}

void
command_give_way(struct step *step, const char *details)
{
    run_terminate(step->mutation, "Terminate Workflow Due To Version Conflict.",
                  command_text_payload(details, step->arena), "worker-service");
}

bool
settle_is_needed(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    bool is_transient = core->decision != NULL && core->decision->attempt > 0;
    bool has_failed = core->decision == NULL && core->decision_attempt > 0;
    bool is_sticky = core->sticky_task_list != NULL || run_decision_is_elsewhere(run);
    return run_is_open(run) && !run_is_zombie(run) &&
           (run_has_started_decision(run) || is_transient || has_failed || is_sticky);
}

void
command_settle(struct step *step, bool was_closed)
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
}
