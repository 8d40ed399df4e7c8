/* fail_decision.c - a worker says that it cannot decide. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

struct error *
decision_find_started(struct step *step, const struct task_name *task, struct mutation **mutation)
{
    struct error *err = step_open_run(step, mutation);
    if (err != NULL)
        return err;
    const STORED(PendingDecision) *decision = mutation_run(*mutation)->core->decision;
    if (decision == NULL || decision->schedule_id != task->schedule_id ||
        decision->attempt != task->attempt || decision->started_id == EVENT_NONE)
        return errors_entity_not_exists(step->arena, NULL, "Decision task not found.");
    return NULL;
}

struct error *
command_fail_decision(struct step *step, const struct task_name *task,
                      const API(RespondDecisionTaskFailedRequest) *request)
{
    struct mutation *mutation;
    struct error *err = decision_find_started(step, task, &mutation);
    if (err != NULL)
        return err;
    API(Failure) *failure = message_new(step->arena, API_TYPE(failure));
    if (request->details != NULL)
        failure->details = request->details->data;
    struct decision_failure failed = {
        .cause = request->cause,
        .failure = failure,
        .identity = request->identity,
        .binary_checksum = request->binary_checksum,
    };
    decision_fail(mutation, &failed);
    if (!decision_pause(mutation, &failed))
        decision_schedule_if_needed(mutation);
    check(run_has_pending_decision(mutation_run(mutation)) ||
          mutation_run(mutation)->core->decision_retry_time != 0);
    return NULL;
}
