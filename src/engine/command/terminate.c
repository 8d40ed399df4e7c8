/* terminate.c - the run ends now, without asking its code. Works in a deprecated domain too. */
#include "engine/command/inside.h"

struct error *
command_terminate(struct step *step, const API(TerminateWorkflowExecutionRequest) *request)
{
    return command_terminate_from(step, request, NULL);
}

struct error *
command_terminate_from(struct step *step, const API(TerminateWorkflowExecutionRequest) *request,
                       const struct origin *origin)
{
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err == NULL)
        err = run_check_chain(mutation, request->first_execution_run_id);
    if (err == NULL)
        err = run_check_parent(mutation, origin);
    if (err != NULL)
        return err;
    run_terminate(mutation, request->reason, request->details, request->identity);
    return NULL;
}
