/* signal_with_start.c - signals the open run; if there is none, begins one with the signal. */
#include "engine/command/start.h"

#include "base/check.h"

static struct error *
signal_open_run(struct step *step, const struct start_command *command, struct start_answer *answer)
{
    struct mutation *mutation = step->mutation;
    struct error *err = run_check_signals(mutation);
    if (err != NULL)
        return err;
    run_add_signal(mutation, command->signal->signal_name, command->signal->signal_input,
                   command->request->identity, command->request->request_id);
    decision_schedule_if_needed(mutation);
    answer->run_id = arena_text(step->arena, mutation_run(mutation)->core->run_id);
    return NULL;
}

struct error *
command_signal_with_start(struct step *step, const struct start_command *command,
                          struct start_answer *answer)
{
    const API(StartWorkflowExecutionRequest) *request = command->request;
    check(command->signal != NULL);
    *answer = (struct start_answer){0};
    struct error *err = step_check_domain(step);
    if (err != NULL)
        return err;
    const struct run *run = step->mutation == NULL ? NULL : mutation_run(step->mutation);
    if (run != NULL && run_has_signal_request(run, request->request_id)) {
        answer->run_id = arena_text(step->arena, run->core->run_id);
        return NULL;
    }
    bool is_terminated =
        request->workflow_id_reuse_policy ==
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    if (run != NULL && run_is_open(run) && !is_terminated)
        return signal_open_run(step, command, answer);
    if (start_is_repeat(step, request, answer))
        return NULL;
    err = start_check_reuse(step, request);
    if (err != NULL)
        return err;
    start_new_run(step, command, answer);
    return NULL;
}
