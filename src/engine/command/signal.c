/* signal.c - a signal for a run. */
#include "engine/command/inside.h"

struct error *
command_signal(struct step *step, const API(SignalWorkflowExecutionRequest) *request)
{
    return command_signal_from(step, request, NULL);
}

struct error *
command_signal_from(struct step *step, const API(SignalWorkflowExecutionRequest) *request,
                    const struct origin *origin)
{
    struct error *err = step_check_domain(step);
    if (err != NULL)
        return err;
    /* A repeat is told that all is well, even when the run has closed since. */
    if (step->mutation != NULL &&
        run_has_signal_request(mutation_run(step->mutation), request->request_id))
        return NULL;
    struct mutation *mutation;
    err = step_open_run(step, &mutation);
    if (err == NULL)
        err = run_check_signals(mutation);
    if (err == NULL)
        err = run_check_parent(mutation, origin);
    if (err != NULL)
        return err;
    run_add_signal(mutation, request->signal_name, request->signal_input, request->identity,
                   request->request_id);
    decision_schedule_if_needed(mutation);
    return NULL;
}
