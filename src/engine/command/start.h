/* start.h - what the verbs that begin a run share: start, signal-with-start, continue-as-new. */
#ifndef CADENZA_ENGINE_COMMAND_START_H
#define CADENZA_ENGINE_COMMAND_START_H

#include "engine/command/inside.h"

/* The first event of a run that a client starts. What it points to is the request's or the
 * arena's. */
const API(WorkflowExecutionStartedEventAttributes) *
start_attributes(const struct run_context *context, const struct start_command *command,
                 const char *run_id, struct arena *arena);
/* When a run whose first decision waits `backoff` seconds is not retried any more; NULL: never. */
GOOGLE(Timestamp) *start_expiration(const struct run_context *context,
                                    const API(RetryPolicy) *policy, int64_t backoff,
                                    struct arena *arena);

/* May the id be used again? The run before it is not open, unless the
 * policy terminates it. Errors: ERR_ALREADY_STARTED, ERR_INTERNAL. */
must_use struct error *start_check_reuse(const struct step *step,
                                         const API(StartWorkflowExecutionRequest) *request);
/* Begins the run; ends the one that is open, if the policy says so, which was checked. */
void start_new_run(struct step *step, const struct start_command *command,
                   struct start_answer *answer);
/* A run that goes on, or is reset, belongs to another attribute than the current one: the first
 * events of the next run are written here, with the version of the current one. So it may be moved
 * only to where it could have stayed: to what is active in the same cluster, with a version that is
 * not lower. Anything else would give it to a cluster whose version is lower than that of its
 * events. Nor may a run of the id that belongs to the same have a later version: it would have the
 * id elsewhere (branches/runs.h). What is wrong, in the words of the verb; NULL: nothing; then the
 * step has a context in which the next run begins after all runs of the current one's attribute. */
const char *start_move_attribute(struct step *step, const API(ActiveClusterSelectionPolicy) *own,
                                 const API(ActiveClusterSelectionPolicy) *next, const char *verb);
/* Was the current run started by this very request? Then it is the answer. */
bool start_is_repeat(const struct step *step, const API(StartWorkflowExecutionRequest) *request,
                     struct start_answer *answer);

#endif
